"""Packs figures of a finished campaign as results that ship: shipped/SCALE/ (bbrlab/results/shipped.py reads it)."""

from __future__ import annotations

import enum
import importlib.metadata
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.git import commit_time
from bbrlab.base.words import number_of
from bbrlab.kernel.built import without_build
from bbrlab.measure import metrics
from bbrlab.models.predictions import PACKED, PLACE, packed
from bbrlab.results.config import command_in, in_checkout
from bbrlab.results.curves import choices, curves_of_figure, figure_of, file_of
from bbrlab.results.figures import Figure, Run, figures_at, runs_of, scenario_files
from bbrlab.results.schema import read_with
from bbrlab.results.seeds import seeds_needed
from bbrlab.results.shipped import CHECKS, FORMAT, RUNS, Failed, Manifest, Version, is_shipped, shipped_figures
from bbrlab.results.tables import read_figure, table_of_rows
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.manifest import always_loaded
from bbrlab.run.output import SUMMARY
from bbrlab_apps.shipping.accepted_failures import AcceptedFailure, failed_runs
from bbrlab_apps.shipping.finished_run import FinishedRun, check_frame, load_all, run_frame
from bbrlab_apps.shipping.rejudge import place_of, predictions_read, renew
from bbrlab_apps.shipping.shipped_folder import Say, check_place, exclusive_access, read_shipped, replace_shipped

LIBRARIES = ("pyarrow", "pandas")
NOT_RESULT = "wall_s"  # the one column of figure tables that depends on the machine


def in_order(figures: Iterable[Figure]) -> list[Figure]:
    """Figures by file name, so that equal results give equal bytes."""
    places = {id: place for place, id in enumerate(scenario_files())}
    return sorted(figures, key=lambda figure: places[figure.id])


@dataclass(frozen=True)
class Finished:
    """A finished campaign that is to be packed."""

    scale: str
    figures: Sequence[Figure]  # all of the scale, or some; sorted (in_order())
    results: Path
    accepted: Sequence[AcceptedFailure] = ()  # why runs that failed self-checks are packed nevertheless
    # Of each figure take only the points whose runs are all there; its others stay as they ship
    by_point: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", in_order(self.figures))


class OtherFigures(enum.Enum):
    """What to do with other figures that ship at the scale."""

    REFUSE = enum.auto()  # there must be none
    KEEP = enum.auto()
    DROP = enum.auto()


def pack(
    campaign: Finished,
    out: Path,
    jobs: int = 1,
    say: Say = lambda text: None,
    others: OtherFigures = OtherFigures.REFUSE,
) -> Manifest:
    """Pack figures of a finished campaign into ``out``/SCALE, whole or not at all; one that ships there is replaced.

    Only the campaign's tables and runs are used: points and verdicts are made here, of all shipped figures together. Predictions for
    claims and panels are taken from the campaign if it has them, else computed.

    Equal results give equal bytes, packed at once or one after the other: they depend neither on the machine nor on the time.
    UserError if nothing ships with KEEP, other figures ship with REFUSE, a table or run is missing, tables are not of these runs,
    runs are of several kernels or versions of the guest's code, one failed self-checks without a reason given, or a figure of which
    some points are to stay does not ship with all points of its scenario.

    Args:
        others: what to do with shipped figures that this campaign does not have.

    Returns:
        The manifest.
    """
    scale, figures = campaign.scale, list(campaign.figures)
    keeps = others is OtherFigures.KEEP
    if others is OtherFigures.REFUSE:
        _check_no_others(campaign, out)
    if not keeps:  # before the folder is made
        check_place(out, scale)
        runs = load_runs(campaign, say)
    with exclusive_access(out, scale, say, "leave --add out" if keeps else ""):
        if others is OtherFigures.REFUSE:  # again: another command may have packed some meanwhile
            _check_no_others(campaign, out)
        kept = Retained()
        if keeps:
            shipped = read_shipped(out, scale)
            runs = load_runs(campaign, say)
            if campaign.by_point:
                _check_stay(figures, shipped[1], out / scale)
            kept = _retained(*shipped, runs.points(), partly=campaign.by_point)
        new = runs.content() | {PACKED: predictions_of_campaign(campaign)} | curves_of_campaign(campaign)
        figures = in_order(figures_at(scale, sorted({*(figure.id for figure in figures), *kept.figures})))
        content = _merged(kept.content, new, figures)
        manifest = manifest_of(
            scale, content[RUNS], [*kept.versions, *_versions(runs.runs)], [*kept.failed, *runs.failed]
        )
        renew(content, scale, figures, say, jobs=jobs)
        say("writing")
        return replace_shipped(out / scale, content, manifest)


def _check_no_others(campaign: Finished, out: Path) -> None:
    """UserError if figures ship that the campaign does not have."""
    if not is_shipped(out, campaign.scale):
        return
    dropped = shipped_figures(out, campaign.scale) - {figure.id for figure in campaign.figures}
    if dropped:
        raise UserError(
            f"{out / campaign.scale}: {len(dropped)} figures ship there that are not to be packed, such as {min(dropped)}: give --add to keep "
            "them, or --replace to drop them"
        )


@dataclass(frozen=True)
class Retained:
    """The part of shipped results that stays."""

    figures: Sequence[str] = ()
    content: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    versions: Sequence[Version] = ()
    failed: Sequence[Failed] = ()


def _check_stay(figures: Sequence[Figure], content: Mapping[str, pd.DataFrame], place: Path) -> None:
    """UserError if a figure does not ship with the points of its scenario, so that those without new runs could not stay."""
    for figure in figures:
        table = content.get(f"{figure.id}.parquet")
        if table is None or set(table["point"]) != {point.label for point in figure.points}:
            why = "does not ship" if table is None else "ships with other points than its scenario has"
            raise UserError(f"{place}: {figure.id} {why}; leave --by-point out and ship it whole")


def _retained(
    manifest: Manifest, content: Mapping[str, pd.DataFrame], replaced: Mapping[str, Collection[str]], partly: bool
) -> Retained:
    """Shipped results without some figures, their runs and checks. All predictions stay: they are of points, not of runs.

    Args:
        replaced: {figure: points that have new runs}.
        partly: keep these figures' other points.
    """

    def stays(figure: str, point: str) -> bool:
        return figure not in replaced or (partly and point not in replaced[figure])

    tables = {}
    for name, table in content.items():
        if name in (RUNS, CHECKS):
            tables[name] = table[[stays(*place) for place in zip(table["figure"], table["point"], strict=True)]]
        elif (figure := figure_of(name)) not in replaced:
            tables[name] = table
        elif partly:
            tables[name] = table[[stays(figure, point) for point in table["point"]]]
    failed = [failure for failure in manifest.failed if stays(failure.figure, failure.point)]
    ids = [id for id in manifest.figures if partly or id not in replaced]
    return Retained(ids, tables, joined(manifest.versions, set(tables[RUNS]["commit"])), failed)


def _merged(
    kept: Mapping[str, pd.DataFrame], new: Mapping[str, pd.DataFrame], figures: Sequence[Figure]
) -> dict[str, pd.DataFrame]:
    """The files of both; tables that both have with the rows of both, in the order of figures and points."""
    content = {**kept, **new}
    if not kept:
        return content
    order = {figure.id: place for place, figure in enumerate(figures)}
    made = set(new[RUNS]["figure"])
    ranks = {(f.id, p.label): rank for f in figures if f.id in made for rank, p in enumerate(f.points)}
    for name in kept.keys() & new.keys() - {PACKED}:
        rows = pd.concat([kept[name], new[name]], ignore_index=True)
        ids = rows["figure"] if name in (RUNS, CHECKS) else [figure_of(name)] * len(rows)
        places = [(order[id], ranks.get((id, point), 0)) for id, point in zip(ids, rows["point"], strict=True)]
        content[name] = rows.iloc[sorted(range(len(rows)), key=places.__getitem__)].reset_index(drop=True)
    content[PACKED] = packed([kept[PACKED], new[PACKED]])
    return content


@dataclass(frozen=True)
class Runs:
    """The runs of a campaign's figures, checked."""

    tables: dict[str, pd.DataFrame]
    runs: list[FinishedRun]
    failed: list[Failed]  # those that failed self-checks, with the reasons given

    def content(self) -> dict[str, pd.DataFrame]:
        """{file below SCALE/: table}, of the runs and the figures."""
        figures = {f"{id}.parquet": table.assign(**{NOT_RESULT: float("nan")}) for id, table in self.tables.items()}
        return {**figures, RUNS: run_frame(self.runs), CHECKS: check_frame(self.runs)}

    def points(self) -> dict[str, set[str]]:
        """{figure: labels of the points that were run}."""
        points: dict[str, set[str]] = {}
        for finished in self.runs:
            points.setdefault(finished.run.figure, set()).add(finished.run.point.label)
        return points

    def manifest(self, scale: str) -> dict[str, Any]:
        """Their manifest (manifest_of())."""
        return manifest_of(scale, run_frame(self.runs), _versions(self.runs), self.failed)


def load_runs(campaign: Finished, say: Say = lambda text: None) -> Runs:
    """Load the runs of a campaign's figures and check that they are complete and match the tables. Errors: pack()."""
    place = campaign.results / campaign.scale
    if not campaign.results.is_dir():
        raise UserError(f"{campaign.results}: there is no such folder of results")
    tables = {} if campaign.by_point else _tables_of(campaign, place)
    finished: list[FinishedRun] = []
    for figure in campaign.figures:
        say(f"{figure.id}: hashing runs")
        if campaign.by_point:
            runs = _runs_of_whole_points(campaign, figure)
        else:
            runs = _runs_of_table(campaign, figure, tables[figure.id])
            _check_complete(campaign, figure, runs)
        made = load_all(runs)
        if campaign.by_point:
            tables[figure.id] = table_of_rows([row for one in made for row in one.rows])
        else:
            _check_table(figure, tables[figure.id], made, place)
        finished += made
    _check_one_origin(finished)
    return Runs(tables, finished, failed_runs(finished, campaign.accepted))


def _tables_of(campaign: Finished, place: Path) -> dict[str, pd.DataFrame]:
    """The figures' tables. UserError if one is missing."""
    for figure in campaign.figures:
        if not (place / f"{figure.id}.parquet").exists():
            raise UserError(
                f"{place / figure.id}.parquet: is missing: the campaign is not finished; {_command_for(campaign, figure)}"
            )
    return {f.id: read_figure(place / f"{f.id}.parquet") for f in campaign.figures}


def _runs_of_whole_points(campaign: Finished, figure: Figure) -> list[Run]:
    """The runs of the points that have at least the seeds which they begin with. UserError if no point has."""
    seeds = {}
    for point in figure.points:
        folder = campaign.results / "runs" / figure.id / point.label
        made = next(n for n in itertools.count() if not (folder / f"seed-{n + 1}" / SUMMARY).is_file())
        seeds[point.label] = made if made >= figure.trials_of(point) else 0
    if not any(seeds.values()):
        raise UserError(
            f"{figure.id}: no point has all of its runs in {campaign.results}; {_command_for(campaign, figure)}"
        )
    return runs_of(figure, seeds, campaign.results)


def _command_for(campaign: Finished, figure: Figure) -> str:
    """The command that makes what a figure lacks, for a message."""
    return f"run: {in_checkout(command_in(campaign.results, figure.id, campaign.scale))}"


def _runs_of_table(campaign: Finished, figure: Figure, table: pd.DataFrame) -> list[Run]:
    """The runs of a figure's table. UserError if the table and the scenario do not have the same points."""
    counts = {str(label): int(n) for label, n in table.groupby("point")["seed"].nunique().items()}
    labels = {p.label for p in figure.points}
    for what, labels_differing in (
        ("lacks", labels - counts.keys()),
        ("has, beside those of the scenario,", counts.keys() - labels),
    ):
        if labels_differing:
            raise UserError(
                f"{figure.id}: the table {what} {len(labels_differing)} points, such as {min(labels_differing)}; {_command_for(campaign, figure)}"
            )
    seeds_min = seeds_needed(figure, table)
    if short := [label for label, n in counts.items() if n < seeds_min[label]]:
        raise UserError(
            f"{figure.id}: {short[0]} has fewer than {seeds_min[short[0]]} seeds; {_command_for(campaign, figure)}"
        )
    return runs_of(figure, counts, campaign.results)


def _check_complete(campaign: Finished, figure: Figure, runs: Sequence[Run]) -> None:
    """UserError if runs of a figure are missing."""
    if missing := [run for run in runs if not (run.folder / SUMMARY).is_file()]:
        raise UserError(
            f"{figure.id}: {len(missing)} of {number_of(len(runs), 'run')} {'is' if len(missing) == 1 else 'are'} missing, such as "
            f"{missing[0].folder}; {_command_for(campaign, figure)}"
        )


def _check_table(figure: Figure, table: pd.DataFrame, runs: Sequence[FinishedRun], place: Path) -> None:
    """UserError if a table is not of these runs."""
    expected = table_of_rows([row for finished in runs for row in finished.rows])
    newer = [m for m in metrics.METRICS.keys() - {*metrics.ALWAYS} if m in expected and m not in table]
    expected = expected.drop(columns=newer).astype(
        {c: float for c in expected if c in table and table[c].dtype == float}
    )
    try:
        pd.testing.assert_frame_equal(expected, table, check_exact=True, check_dtype=False, check_like=True)
    except AssertionError as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"{place / figure.id}.parquet: is not the table of the runs that are there ({reason}); start the campaign again"
        ) from None


def predictions_of_campaign(campaign: Finished) -> pd.DataFrame:
    """The campaign's existing predictions of the figures' points that claims and pages read.

    Returns:
        The predictions' columns, and those of PLACE.
    """
    there = filter(Path.exists, predictions_read(campaign.figures, campaign.results))
    return packed(
        read_with(path, ["share_of_capacity"]).assign(**dict(zip(PLACE, place_of(path), strict=True))) for path in there
    )


def curves_of_campaign(campaign: Finished) -> dict[str, pd.DataFrame]:
    """{file below SCALE/: curves} of the campaign's figures of data/curves.yaml. UserError if samples are not as they must be."""
    made = {
        file_of(figure.id): curves_of_figure(choices()[figure.id], figure, campaign.results / "runs")
        for figure in campaign.figures
        if figure.id in choices()
    }
    return {name: table for name, table in made.items() if table is not None}


def manifest_of(
    scale: str, runs: pd.DataFrame, versions: Iterable[Version], failed: Iterable[Failed]
) -> dict[str, Any]:
    """The manifest of shipped results with these runs, without the hashes of files. UserError if runs of one commit have two
    versions."""
    figures = {str(id): int(n) for id, n in runs.groupby("figure", sort=False).size().items()}
    order = list(figures)
    return {
        "format": FORMAT,
        "scale": scale,
        "figures": figures,
        "commits": {str(commit): int(n) for commit, n in runs.groupby("commit").size().items()},
        "versions": [one.model_dump(mode="json") for one in joined(versions)],
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "failed": [one.model_dump(mode="json") for one in sorted(failed, key=lambda one: order.index(one.figure))],
    }


def _check_one_origin(runs: Sequence[FinishedRun]) -> None:
    """UserError if runs are of several kernels, versions of the guest's code, or conditions."""
    for what, part in ORIGIN.items():
        first = part(runs[0].manifest)
        if differing := next((run for run in runs if part(run.manifest) != first), None):
            raise UserError(
                f"{differing.run.folder}: its {what} is another one than that of {runs[0].run.folder}; remove the older of them and start "
                "the campaign again"
            )


# What all runs of a campaign must have in common: {name: function of a run's manifest.json}.
ORIGIN: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "kernel": lambda manifest: without_build(manifest["kernel"]),
    "guest_code_sha256": lambda manifest: always_loaded(manifest["guest_code_sha256"]),
    "conditions": lambda manifest: manifest.get("conditions", CONDITIONS[0]),
}


def _versions(runs: Sequence[FinishedRun]) -> list[Version]:
    """The versions that made runs, one for each commit."""
    of_commit: dict[str, list[FinishedRun]] = {}
    for run in runs:
        of_commit.setdefault(run.commit, []).append(run)
    return [
        Version(
            commits={commit: commit_time(commit)},
            fields=sorted(frozenset().union(*(run.fields for run in runs_of_version))),
            guest_code_sha256=ORIGIN["guest_code_sha256"](runs_of_version[0].manifest),
            kernel=runs_of_version[0].manifest["kernel"],
            packages=sorted(
                {f"{name} {version}" for run in runs_of_version for name, version in run.manifest["packages"].items()}
            ),
            conditions=ORIGIN["conditions"](runs_of_version[0].manifest),
        )
        for commit, runs_of_version in of_commit.items()
    ]


def joined(versions: Iterable[Version], commits: Collection[str] | None = None) -> list[Version]:
    """Merge versions: each commit is in one, and equal versions are one. UserError if runs of one commit are of several kernels,
    versions of the guest's code, or conditions."""
    of_commit: dict[str, Version] = {}
    for version in versions:
        for commit, time in version.commits.items():
            if commits is not None and commit not in commits:
                continue
            version_of_commit = version.model_copy(update={"commits": {commit: time}, "packages": [*version.packages]})
            known_version = of_commit.setdefault(commit, version_of_commit)
            if known_version is version_of_commit:
                continue
            if _origin_of(known_version) != _origin_of(version_of_commit):
                raise UserError(
                    f"runs of commit {commit} have two versions of the kernel, of the guest's code or of other code that they come from; "
                    "commit what was changed and make the newer of them again"
                )
            merged = {
                "fields": {*known_version.fields, *version_of_commit.fields},
                "packages": {*known_version.packages, *version_of_commit.packages},
            }
            of_commit[commit] = known_version.model_copy(
                update={name: sorted(values) for name, values in merged.items()}
            )
    equal_versions: dict[str, Version] = {}
    for commit in sorted(of_commit):
        version_of_commit = of_commit[commit]
        first = equal_versions.setdefault(
            json.dumps([_origin_of(version_of_commit), version_of_commit.fields], sort_keys=True), version_of_commit
        )
        if first is not version_of_commit:
            first.commits.update(version_of_commit.commits)
            first.packages[:] = sorted({*first.packages, *version_of_commit.packages})
    return list(equal_versions.values())


def _origin_of(version: Version) -> list[Any]:
    """What all runs of a commit have in common."""
    return [without_build(version.kernel), version.guest_code_sha256, version.conditions]
