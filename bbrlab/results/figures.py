"""The figures of a campaign at a scale, their points, and the folder of each run.

A run's folder is named by the swept values and a fingerprint of all that decides its outcome. So an unchanged point is never run
twice, whatever scale or sweep it belongs to, and a changed one never gets an old result.
"""

from __future__ import annotations

import difflib
import functools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import Lines, Node, dump_yaml
from bbrlab.kernel.own import OwnCca, own_of
from bbrlab.kernel.specs import find_spec
from bbrlab.results.algorithm_table import draws_nothing
from bbrlab.results.config import Config, load_config
from bbrlab.results.replacement import Replacement, replacement
from bbrlab.results.run_estimate import packets_of
from bbrlab.scenario.load import at_scale, load_points, points_of
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import GRID, Override, Scenario

# Ids that Snakemake's rules and wildcards accept.
PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_-]*")
# Names of the workflow's own: its rules, since papers and figures are targets, too, and files beside the papers' folders.
TAKEN = frozenset(
    "all burst_notebook burst_prediction claims collect container figure_claims fluid_prediction kernel models_notebook notebook "
    "overview_notebook own_kernel paper_claims points run scorecard seeds sif site verdicts "
    "burst figures models ns3 overview statements".split()
)
# {swept field of a panel (has_panel()): column}.
PANEL_KEYS = {"network.buffer.bdp": "buffer_bdp", "flows.0.count": "bbr_flows"}
ABLE_MAX = 5  # figures in a message, at most
REPEATS = 2  # seeds of a point that draws nothing: the second one shows that it measures the same


@dataclass(frozen=True)
class Figure:
    """A figure at a scale."""

    id: str
    scenario: Scenario
    points: list[Point]
    trials: int  # each point begins with the seeds 1 to trials, or fewer if it draws nothing (trials_of())
    seeds_cap: int = 0  # seeds of a point, at most, if its claims need more
    # A point whose runs carry so many packets (run_estimate.packets_of()) may have one seed more than trials, others in proportion
    # to one over the root of their packets
    seeds_packets: float = math.inf

    @functools.cached_property
    def caps(self) -> dict[str, int]:
        """{point label: its largest number of seeds}."""
        return {p.label: self._cap(p) for p in self.points}

    def trials_of(self, point: Point) -> int:
        """The seeds that a point begins with: fewer than the figure's trials if it draws nothing."""
        return min(self.trials, REPEATS) if draws_nothing(point.scenario) else self.trials

    def _cap(self, point: Point) -> int:
        more = max(0, self.seeds_cap - self.trials)
        # With equal spread this allocation to dear and cheap points is optimal for a given cost (Cochran, Sampling Techniques, 3rd
        # edition 1977, section 5.5: in proportion to the spread over the root of the cost).
        return self.trials + int(min(more, math.sqrt(self.seeds_packets / packets_of(point.scenario))))


@dataclass(frozen=True)
class Run:
    """One point with one seed and the folder of its result."""

    figure: str
    point: Point
    seed: int
    folder: Path


def scenario_files() -> dict[str, Path]:
    """{paper/figure: scenario file} of everything under scenarios/."""
    return {f"{p.parent.name}/{p.stem}": p for p in sorted(paths.SCENARIOS.glob("*/*.yaml"))}


def figures_at(
    scale: str | None = None, chosen: list[str] | str | None = None, swap: Replacement | None = None
) -> list[Figure]:
    """The figures of a campaign. UserError for an unknown scale or figure, or a scenario that is not valid.

    Args:
        scale: entry of config.yaml's ``scales``; default: its ``scale``.
        chosen: "paper", "paper/figure", or "figure" (of all papers that have one of this name), one or several; default: config.yaml's
            ``figures``, or all.
        swap: a replaced algorithm; default: this process's (results/replacement.py).
    """
    config = load_config()
    scale = scale or config.scale
    if not isinstance(scale, str) or scale not in config.scales:
        raise UserError(f"scale {scale}: no such scale; config/config.yaml has {', '.join(config.scales)}")
    files = scenario_files()
    chosen = [chosen] if isinstance(chosen, str) else chosen  # as --config figures=NAME gives it
    wanted = []
    for name in chosen or config.figures or list(files):
        wanted += figures_called(name, files)
    swap = swap or replacement()
    figures = [_scaled(name, files[name], scale, config, swap) for name in dict.fromkeys(wanted)]
    names = {name for f in figures if f is not None for name in (f.id, *f.id.split("/"))}
    if missing := [name for name in chosen or [] if name not in names]:
        raise UserError(f"{missing[0]} is not part of scale {scale}; choose another with --config scale=...")
    return [f for f in figures if f is not None]


def figures_called(name: str, ids: Iterable[str]) -> list[str]:
    """Those of some figures that a word of a person means: a paper, PAPER/FIGURE or FIGURE. UserError if there is none."""
    matching = [id for id in ids if name in (id, *id.split("/"))]
    if not matching:
        raise UserError(f"there is no figure or paper '{name}'{_suggestion(name, ids)}")
    return matching


def _suggestion(name: str, ids: Iterable[str]) -> str:
    """The closest name to an unknown one, and the known papers or figures, for a message; of a scenario file how it is named."""
    if name.endswith(".yaml"):
        figure = "/".join(Path(name).with_suffix("").parts[-2:])
        if figure in ids:
            return f", a figure is named without folder and ending: {figure}"
        return "; a file of your own is looked at by bbrlab check, and run by bbrlab run and bbrlab sweep"
    of_papers: dict[str, list[str]] = {}
    for id in ids:
        of_papers.setdefault(id.split("/")[0], []).append(id)
    paper = name.split("/", maxsplit=1)[0]
    listed = of_papers.get(paper, list(of_papers))
    hint = "" if paper in of_papers else "; their figures are the files in scenarios/"
    names = sorted({part for id in ids for part in (id, *id.split("/"))})
    close = difflib.get_close_matches(name, names, 1)
    return f"{f', did you mean {close[0]}?' if close else ''} (there are {', '.join(listed)}{hint})"


def _scaled(name: str, path: Path, scale_name: str, config: Config, swap: Replacement | None = None) -> Figure | None:
    """A figure at a scale; None if the scale leaves it out."""
    scale = config.scales[scale_name]
    if not PLACE.fullmatch(name):
        raise UserError(
            f"{path}: a paper's folder and a figure's file have names of the letters A to Z, digits, - and _ (a folder also .); "
            "give it another name"
        )
    if taken := sorted(TAKEN & {*name.split("/")}):
        raise UserError(f"{path}: '{taken[0]}' is a name of the workflow's own; give the paper or the figure another")
    content = (
        path.read_bytes() if os.access(path, os.R_OK) and path.is_file() else b""
    )  # else load_points() says what is wrong
    scenario, scaled, points = _read(path, content, scale_name, paths.KERNELS)
    if f"{scenario.paper}/{scenario.name}" != name:
        raise UserError(
            f"{path}: must say paper: {name.split('/', maxsplit=1)[0]} and name: {name.split('/')[1]}, as its place says"
        )
    check_names(scenario, config, path)
    if scaled is None:
        return None
    if swap is not None:
        scaled, points = swap.of_scenario(scaled), [swap.of_point(point) for point in points]
    override = scenario.scales.get(scale_name, Override())
    trials = override.trials or min(scaled.trials, scale.trials or scaled.trials)
    return Figure(
        name, scaled, list(points), trials, max(trials, scale.seeds_cap or trials), scale.seeds_packets or math.inf
    )


@functools.lru_cache(maxsize=1024)
def _read(path: Path, content: bytes, scale: str, kernels: Path) -> tuple[Scenario, Scenario | None, list[Point]]:
    """A scenario, the same at a scale (None: the scale leaves it out), and its points there.

    Pages ask for the figures of a scale again and again, each time for 5,000 points that must be valid.

    Args:
        content: of the file, and
        kernels: the folder with algorithms of the user's own: with another one the scenario is read anew.
    """
    scenario, whole = _whole(path, content, kernels)
    scaled = at_scale(scenario, scale, path)
    if scaled is None:
        return scenario, None, []
    return scenario, scaled, whole if scaled is scenario else points_of(scaled, str(path))


@functools.lru_cache(maxsize=1024)
def _whole(path: Path, content: bytes, kernels: Path) -> tuple[Scenario, list[Point]]:
    """A scenario with all of its points, which every scale begins with; arguments as of _read()."""
    return load_points(path)


def check_names(scenario: Scenario, config: Config, path: Path) -> None:
    """UserError if a scenario names an unknown scale."""
    for given in scenario.scales:
        if given not in config.scales:
            raise UserError(f"{path}: scales.{given}: no such scale; config/config.yaml has {', '.join(config.scales)}")


def lacking_ccas(figure: Figure, kernel_name: str | None = None) -> list[str]:
    """The CCAs of a figure that a kernel lacks and that are not the user's own. UserError if there is no such kernel."""
    own = {cca.name for cca in own_of_figure(figure, kernel_name)}
    return sorted(_used(figure) - set(find_spec(kernel_name)[1].names) - own)


def check_ccas(chosen: Iterable[Figure], kernel_name: str | None = None) -> None:
    """UserError, naming file and line, if a figure has a CCA that the kernel lacks and that is not the user's own, or if there is
    no such kernel."""
    name, spec = find_spec(kernel_name)
    chosen = list(chosen)
    for figure in chosen:
        for cca in lacking_ccas(figure, kernel_name):
            path = scenario_files()[figure.id]
            number = next(_lines_of_cca(Lines(path).root, cca), 1)
            able = [f.id for f in chosen if not lacking_ccas(f, kernel_name)]
            advice = f", or ask for figures that it can run: {', '.join(able[:ABLE_MAX])}" if able else ""
            raise UserError(
                f"{path}:{number}: kernel {name} has no {cca} (it has {', '.join(sorted(spec.names))}); "
                f"choose another with --config kernel=... (bbrlab kernel list){advice}"
                + (f" ... ({len(able)} in all)" if len(able) > ABLE_MAX else "")
            )


def _lines_of_cca(node: Node, cca: str, of_cca: bool = False) -> Iterator[int]:
    """The lines of a scenario file that give a flow this CCA: ``cca``, or ``flows.0.cca`` of a case or sweep.

    Args:
        of_cca: whether the node is what such a key gives.
    """
    if of_cca and node.content == cca:
        yield node.line
    for key, part in node.parts.items():
        in_list = of_cca and isinstance(key, int)
        yield from _lines_of_cca(part, cca, in_list or str(key).rpartition(".")[2] == "cca")


def own_of_figure(figure: Figure, kernel_name: str | None = None) -> list[OwnCca]:
    """The user's own algorithms in a figure's flows: one kernel with all of them runs all its points."""
    return own_of(_used(figure), kernel_name)


def _used(figure: Figure) -> set[str]:
    return {flow.cca for point in figure.points for flow in point.scenario.flows}


def runs_of(figure: Figure, seeds: Mapping[str, int] | None = None, results: Path | None = None) -> list[Run]:
    """Every run of a figure.

    Args:
        seeds: {point label: number of seeds, from 1 on}; default: what a point begins with (Figure.trials_of()).
    """
    results = results or paths.results_folder()
    counts = seeds or {}
    return [
        Run(figure.id, point, seed, results / "runs" / figure.id / point.label / f"seed-{seed}")
        for point in figure.points
        for seed in range(1, counts.get(point.label, figure.trials_of(point)) + 1)
    ]


def write_points(figure: Figure, results: Path | None = None) -> dict[str, Path]:
    """Write one file per point for the workflow, unless its content is there already. Returns {label: file}."""
    written = {}
    results = results or paths.results_folder()
    for point in figure.points:
        path = results / "points" / figure.id / f"{point.label}.yaml"
        content = {"scenario": point.scenario.model_dump(exclude=GRID, exclude_unset=True), "values": point.values}
        files.write_if_changed(path, dump_yaml(content, sort_keys=True))
        written[point.label] = path
    return written


def has_panel(figure: Figure) -> bool:
    """Whether a figure sweeps the number of BBR flows against loss-based ones and the buffer, and has a published table."""
    if set(figure.scenario.sweep) != set(PANEL_KEYS) or figure.scenario.cases:
        return False
    path = paths.DATA / f"{figure.id}.csv"
    return path.exists() and "share_of_capacity" in path.read_text(encoding="utf-8").split("\n", 1)[0].split(",")
