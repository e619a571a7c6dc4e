"""What is drawn: the points of a study or of a campaign's figure, or runs over time."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.words import in_short, number_of
from bbrlab.claims.expected import WHOLE_RUN, Expected, expected_at
from bbrlab.claims.load import claims_files, claims_of, load_statements
from bbrlab.claims.schema import Claim
from bbrlab.measure.summary import Summary
from bbrlab.results.config import command_for, in_checkout, load_config
from bbrlab.results.figures import figures_at, scenario_files
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.run_manifest import RunManifest, RunScenario
from bbrlab.results.samples import read_over_time
from bbrlab.results.shipped import is_shipped
from bbrlab.results.tables import read_figure
from bbrlab.run.output import ACKS, SAMPLES, SUMMARY
from bbrlab.show.points_table import swept_columns
from bbrlab_apps.study.plan import RUNS, TABLE

DEPTH = 3  # of the runs below a folder of a study or a figure
NAME_MAX = 40  # letters of a run's name in a legend


@dataclass(frozen=True)
class RunSource:
    """A finished run."""

    name: str  # what it is called in a legend
    folder: RunFolder
    of_acks: bool = False  # whether what is drawn of flows is their records of ACKs, not their samples

    @property
    def summary(self) -> Summary:
        """Its summary.json."""
        return self.folder.summary

    @cached_property
    def scenario(self) -> RunScenario:
        """What it ran."""
        return self.folder.manifest_as(RunManifest).scenario

    def samples(self, columns: Sequence[str]) -> pd.DataFrame:
        """Some columns of samples.parquet. UserError if it is not there, or lacks one."""
        if self.of_acks:
            return self._acks(columns)
        path = self.folder.path / SAMPLES
        if not path.exists():
            raise UserError(f"{path}: is not there: samples do not ship; run the point again (bbrlab run)")
        return read_over_time(path, self.scenario, columns, most_rows=self.scenario.most_samples)

    def _acks(self, columns: Sequence[str]) -> pd.DataFrame:
        """The same columns of acks.parquet, of the first flow of each group: a mean over flows is of no ACK."""
        path = self.folder.path / ACKS
        if not path.exists():
            raise UserError(f"{path}: is not there; run it with --trace-acks, or leave --acks out")
        there = [column for column in columns if column != "group"]
        table = read_over_time(path, self.scenario, there)
        groups = [entry["group"] for entry in self.summary["flows"]]
        first = [flow for flow, group in enumerate(groups) if group not in groups[:flow]]
        table = table[table["flow"].isin(first)]
        return table.assign(group=[groups[flow] for flow in table["flow"]])

    @cached_property
    def states(self) -> tuple[pd.DataFrame, bool]:
        """BBR's states, and whether each change of them is there (records of ACKs), or those only that samples meet."""
        columns = ["time_s", "flow", "bbr_state"]
        path = self.folder.path / ACKS
        if path.exists():
            return read_over_time(path, self.scenario, columns), True
        return self.samples(columns), False


@dataclass(frozen=True)
class PointsSource:
    """The runs of a study, or of a figure."""

    name: str  # of the study, or PAPER/FIGURE
    table: pd.DataFrame  # figure_table()
    swept: list[str]  # its columns that tell points apart
    run_folder: Callable[[str, int], Path]  # of a point's label and a seed
    claims_file: Path | None = None  # of the paper whose figure it is
    scale: str | None = None  # of the figure's points
    run_again: str = "run it again (bbrlab sweep)"  # how to have the runs, in words

    def sampled_run(self, label: str, seed: int) -> RunSource:
        """A run of a point, with its samples. UserError if they are not there."""
        folder = self.run_folder(label, seed)
        if not (folder / SAMPLES).exists():
            raise UserError(f"{self.name}: {folder / SAMPLES} is not there; {self.run_again}")
        return RunSource("", RunFolder(folder))

    @cached_property
    def claims(self) -> list[Claim]:
        """Those of the paper whose figure it is."""
        return claims_of(load_statements([self.claims_file], known_good=True)) if self.claims_file else []

    def expected(self, metric: str) -> dict[tuple[str, int], Expected]:
        """{(a point's label, group): what claims expect of a metric there}, of a published figure; of one of the whole run for each group."""
        if not self.claims_file:
            return {}
        (figure,) = figures_at(self.scale, [self.name])
        groups = expected_at(figure, figure.points, self.claims).get(metric, {})
        return {
            (point.label, number): cell
            for group, cells in groups.items()
            for point, cell in zip(figure.points, cells, strict=True)
            for number in (range(len(point.scenario.flows)) if group == WHOLE_RUN else [int(group)])
            if cell
        }


Source = PointsSource | list[RunSource]


def source_of(words: Sequence[str], scale: str | None = None) -> Source:
    """What the words of a command line name: a study's folder, PAPER/FIGURE, or folders of one or several runs.

    UserError if there is no such thing, they are of several kinds, or one is given twice.

    Args:
        scale: of a campaign's results; default: the configuration's, and of results that ship the largest.
    """
    if len(words) == 1 and not _is_run(Path(words[0])):
        return _points(words[0], scale)
    _check_scale(scale, "runs are")
    for word in words:
        if not _is_run(Path(word)):
            raise UserError(
                f"{word}: several things on one plot are runs, and this is no folder of a run (it has no {SUMMARY})"
            )
    places = [Path(word).resolve() for word in words]
    if again := next((word for i, word in enumerate(words) if places[i] in places[:i]), None):
        raise UserError(f"{again}: this run is given twice; give each once")
    folders = [RunFolder(Path(word)) for word in words]
    return [RunSource(name, folder) for name, folder in zip(_names(folders), folders, strict=True)]


def _check_scale(scale: str | None, what: str) -> None:
    """UserError for a scale that nothing is chosen by."""
    if scale is not None:
        raise UserError(f"--scale {scale}: would have no effect: {what} of no scale, as PAPER/FIGURE is; leave it out")


def _names(folders: Sequence[RunFolder]) -> list[str]:
    """Names for a legend: of points of one scenario the values in which they differ, of others the parts of their paths that do."""
    if len(folders) == 1:
        return [folders[0].path.absolute().name]
    settings = [{**f.summary["values"], "seed": f.summary["seed"]} for f in folders]
    if (
        len({(f.summary["paper"], f.summary["scenario"], *values) for f, values in zip(folders, settings, strict=True)})
        == 1
    ):
        apart = [key for key in settings[0] if len({str(values[key]) for values in settings}) > 1]
        names = [", ".join(f"{key.removeprefix('network.')} = {values[key]}" for key in apart) for values in settings]
        if apart and len(set(names)) == len(names):
            return [_short(name) for name in names]
    return [_short(name) for name in _parts_apart([folder.path for folder in folders])]


def _short(name: str) -> str:
    """A name that has room in a legend."""
    return name if len(name) <= NAME_MAX else f"{name[: NAME_MAX // 2 - 1]}...{name[-NAME_MAX // 2 + 2 :]}"


def _is_run(folder: Path) -> bool:
    return (folder / SUMMARY).is_file()


def _parts_apart(folders: Sequence[Path]) -> list[str]:
    parts = [folder.absolute().parts for folder in folders]
    first = next((i for i, at in enumerate(zip(*parts, strict=False)) if len(set(at)) > 1), 0)
    same_end = 0
    while all(len(p) - same_end > first + 1 for p in parts) and len({p[-1 - same_end] for p in parts}) == 1:
        same_end += 1
    return ["/".join(p[first : len(p) - same_end]) or p[-1] for p in parts]


def _points(word: str, scale: str | None) -> PointsSource:
    folder = Path(word)
    if (folder / TABLE).is_file():
        _check_scale(scale, "a study is")
        table = read_figure(folder / TABLE)
        name = str(table["figure"].iloc[0]).rpartition("/")[2]
        return PointsSource(
            name, table, swept_columns(table), lambda label, seed: folder / RUNS / label / f"seed-{seed}"
        )
    if folder.is_dir() and word not in scenario_files():
        below = sorted(path.parent for depth in range(1, DEPTH + 1) for path in folder.glob("*/" * depth + SUMMARY))
        if below:
            few = shlex.join(str(path) for path in below[:2])
            raise UserError(
                f"{folder}: is neither a run's folder nor a finished study's; it has {number_of(len(below), 'run')} below it: name some "
                f"of them (bbrlab plot {few}), or let `bbrlab sweep` finish its study"
            )
        raise UserError(f"{folder}: is neither a run's folder (it has no {SUMMARY}) nor a study's (it has no {TABLE})")
    return _figure(word, scale)


def _figure(word: str, scale: str | None) -> PointsSource:
    files = scenario_files()
    wanted = [id for id in files if word in (id, id.split("/")[1])]
    if len(wanted) != 1:
        raise UserError(_no_such(word, wanted, list(files)))
    (id,) = wanted
    scales = load_config().scales
    if scale is not None and scale not in scales:
        raise UserError(f"--scale {scale}: no such scale; there are {', '.join(scales)}")
    own = paths.results_folder()
    at = scale or load_config().scale
    places = [
        (own, at),
        *((paths.SHIPPED, s) for s in ([scale] if scale else reversed(scales)) if is_shipped(paths.SHIPPED, s)),
    ]
    for results, at in places:
        path = results / at / f"{id}.parquet"
        if path.exists():
            table = read_figure(path)
            return PointsSource(
                id,
                table,
                swept_columns(table),
                lambda label, seed: own / RUNS / id / label / f"seed-{seed}",
                next((file for file in claims_files() if file.parent.name == id.split("/")[0]), None),
                at,
                f"samples do not ship; run the figure: {in_checkout(command_for(id, at))}",
            )
    raise UserError(
        f"{id}: there are no results of it; compute them: {in_checkout(command_for(id, scale or load_config().scale))}"
    )


def _no_such(word: str, wanted: list[str], ids: list[str]) -> str:
    if wanted:
        return f"{word}: may be {' or '.join(wanted)}; give one of them"
    papers = list(dict.fromkeys(id.split("/")[0] for id in ids))
    if word in papers:
        of_paper = [id for id in ids if id.startswith(f"{word}/")]
        return f"{word}: is a paper; give one of its figures: {in_short(of_paper)}"
    close = difflib.get_close_matches(word, [*ids, *(id.split("/")[1] for id in ids)], 3)
    meant = f"; did you mean {' or '.join(close)}?" if close else " (bbrlab list says what there is)"
    return f"{word}: is no folder, and there is no such figure{meant}"
