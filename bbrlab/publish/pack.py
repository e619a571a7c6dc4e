"""Packs figures of a finished campaign as results that ship: shipped/SCALE/ (bbrlab/results/shipped.py reads it)."""

from __future__ import annotations

import enum
import importlib.metadata
import json
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.git import commit_time
from bbrlab.base.words import number_of
from bbrlab.claims.columns import prediction_files
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.kernel.built import without_build
from bbrlab.measure import schema
from bbrlab.models.predictions import PACKED, PLACE, packed
from bbrlab.models.predictions import files_of as predictions_of
from bbrlab.publish.accepted_failures import AcceptedFailure, failed_runs
from bbrlab.publish.finished_run import FinishedRun, check_frame, load_all, run_frame
from bbrlab.publish.rejudge import Renewal, renew
from bbrlab.publish.shipped_folder import Say, exclusive_access, read_shipped, replace_shipped
from bbrlab.results.config import command_for
from bbrlab.results.figures import Figure, Run, figures_at, has_panel, runs_of, scenario_files
from bbrlab.results.schema import read_with
from bbrlab.results.seeds import least_seeds
from bbrlab.results.shipped import CHECKS, FORMAT, RUNS, Failed, Manifest, Version, is_shipped, shipped_figures
from bbrlab.results.tables import read_figure
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.guest_code import always_loaded
from bbrlab.run.output import SUMMARY

LIBRARIES = ("pyarrow", "pandas")
NOT_RESULT = "wall_s"  # the one column of figure tables that is of the machine


def in_order(figures: Iterable[Figure]) -> list[Figure]:
    """Figures in the order of their files' names, so that the same results are the same bytes."""
    places = {id: place for place, id in enumerate(scenario_files())}
    return sorted(figures, key=lambda figure: places[figure.id])


@dataclass(frozen=True)
class Finished:
    """A finished campaign that is to be packed.

    Attributes:
        scale: at which it ran.
        figures: all of the scale, or some; kept in the order of their files' names, whatever order they are given in.
        results: the folder of results.
        accepted: why runs that failed self-checks are packed all the same.
        without_curves: do not compute a model's prediction that is missing and that no claim reads, so that a page has no curve of
            it; rejudge.rejudge() computes it.
    """

    scale: str
    figures: Sequence[Figure]
    results: Path
    accepted: Sequence[AcceptedFailure] = ()
    without_curves: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", in_order(self.figures))


class OtherFigures(enum.Enum):
    """What becomes of other figures that ship at the scale."""

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

    Only the figures' tables and runs are needed of the campaign: points and verdicts are made here, of all figures that ship together.
    Predictions that claims read, and curves of its panels, are taken from it where they are there, else computed.

    The bytes are the same for the same results, packed at once or one after the other: nothing of the machine, and no time, is in them.

    Args:
        out: the folder for shipped results.
        jobs: predictions at once.
        say: told now and then, in words, how far it is.
        others: what becomes of figures that ship there and are not of this campaign.

    Returns:
        The manifest.

    Raises:
        UserError: if nothing ships and something is to be kept, other figures ship and were to be refused, a table or run is missing, tables
            are not of these runs, runs are of several kernels or versions of the guest's code, or one failed self-checks unexplained.
    """
    scale, figures = campaign.scale, list(campaign.figures)
    keeps = others is OtherFigures.KEEP
    if others is OtherFigures.REFUSE:
        _check_no_others(campaign, out)
    if not keeps:  # before the folder is made
        runs = load_runs(campaign, say)
    with exclusive_access(out, scale, say, "leave --add out" if keeps else ""):
        if others is OtherFigures.REFUSE:  # again: another command may have been at it meanwhile
            _check_no_others(campaign, out)
        kept = _without(*read_shipped(out, scale), {figure.id for figure in figures}) if keeps else Retained()
        if keeps:
            runs = load_runs(campaign, say)
        new = runs.content() | {PACKED: predictions_of_campaign(campaign)}
        figures = in_order(figures_at(scale, [*(figure.id for figure in figures), *kept.figures]))
        content = _together(kept.content, new, [figure.id for figure in figures])
        manifest = manifest_of(
            scale, content[RUNS], [*kept.versions, *_versions(runs.runs)], [*kept.failed, *runs.failed]
        )
        renew(content, Renewal(scale, figures, jobs=jobs, curves=not campaign.without_curves), say)
        say("writing")
        return replace_shipped(out / scale, content, manifest)


def _check_no_others(campaign: Finished, out: Path) -> None:
    """UserError if figures ship that the campaign has not."""
    if not is_shipped(out, campaign.scale):
        return
    gone = shipped_figures(out, campaign.scale) - {figure.id for figure in campaign.figures}
    if gone:
        raise UserError(
            f"{out / campaign.scale}: {len(gone)} figures ship there that are not to be packed, such as {min(gone)}: give --add to keep "
            "them, or --replace to drop them"
        )


@dataclass(frozen=True)
class Retained:
    """What stays of results that ship.

    Attributes:
        figures: ids.
        content: {file: table}.
        versions: that made their runs.
        failed: their runs that failed self-checks.
    """

    figures: Sequence[str] = ()
    content: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    versions: Sequence[Version] = ()
    failed: Sequence[Failed] = ()


def _without(manifest: Manifest, content: Mapping[str, pd.DataFrame], figures: Collection[str]) -> Retained:
    """What stays without some figures, their runs and checks; predictions stay, they are of points and not of runs."""
    ids = [id for id in manifest.figures if id not in figures]
    tables = {name: table for name, table in content.items() if name.removesuffix(".parquet") not in figures}
    tables |= {name: content[name][content[name]["figure"].isin(ids)] for name in (RUNS, CHECKS)}
    failed = [one for one in manifest.failed if one.figure in ids]
    return Retained(ids, tables, joined(manifest.versions, set(tables[RUNS]["commit"])), failed)


def _together(
    kept: Mapping[str, pd.DataFrame], new: Mapping[str, pd.DataFrame], order: list[str]
) -> dict[str, pd.DataFrame]:
    """The files of both; of runs and checks the rows of both, figure by figure."""
    content = {**kept, **new}
    if kept:
        for name in (RUNS, CHECKS):
            rows = pd.concat([kept[name], new[name]], ignore_index=True)
            by_figure = rows.sort_values(
                "figure", key=lambda ids: ids.map(order.index), kind="stable", ignore_index=True
            )
            content[name] = by_figure
        content[PACKED] = packed([kept[PACKED], new[PACKED]])
    return content


@dataclass(frozen=True)
class Runs:
    """The runs of a campaign's figures, looked through.

    Attributes:
        tables: {figure: its table}.
        runs: every run.
        failed: those that failed self-checks, with the reasons given.
    """

    tables: dict[str, pd.DataFrame]
    runs: list[FinishedRun]
    failed: list[Failed]

    def content(self) -> dict[str, pd.DataFrame]:
        """{file below SCALE/: table}, of the runs and the figures."""
        figures = {f"{id}.parquet": table.assign(**{NOT_RESULT: float("nan")}) for id, table in self.tables.items()}
        return {**figures, RUNS: run_frame(self.runs), CHECKS: check_frame(self.runs)}

    def manifest(self, scale: str) -> dict[str, Any]:
        """What they come from (manifest_of())."""
        return manifest_of(scale, run_frame(self.runs), _versions(self.runs), self.failed)


def load_runs(campaign: Finished, say: Say = lambda text: None) -> Runs:
    """The runs of a campaign's figures: that all are there, whole, and of their tables. Errors: pack()."""
    place = campaign.results / campaign.scale
    if not campaign.results.is_dir():
        raise UserError(f"{campaign.results}: there is no such folder of results")
    for figure in campaign.figures:
        if not (place / f"{figure.id}.parquet").exists():
            raise UserError(
                f"{place / figure.id}.parquet: is missing: the campaign is not finished; {_command_for(campaign, figure)}"
            )
    tables = {f.id: read_figure(place / f"{f.id}.parquet") for f in campaign.figures}
    finished: list[FinishedRun] = []
    for figure in campaign.figures:
        say(f"{figure.id}: hashing runs")
        runs = _runs_of_table(campaign, figure, tables[figure.id])
        _check_complete(campaign, figure, runs)
        finished += load_all(runs)
        _check_table(figure, tables[figure.id], finished[-len(runs) :], place)
    _check_one_origin(finished)
    return Runs(tables, finished, failed_runs(finished, campaign.accepted))


def _command_for(campaign: Finished, figure: Figure) -> str:
    """How to make what is missing of a figure."""
    return f"run: BBRLAB_RESULTS={shlex.quote(str(campaign.results))} {command_for(figure.id, campaign.scale)}"


def _runs_of_table(campaign: Finished, figure: Figure, table: pd.DataFrame) -> list[Run]:
    """The runs of a figure's table. UserError if the table lacks a point of the figure, or has one that is not there any more."""
    counts = {str(label): int(n) for label, n in table.groupby("point")["seed"].nunique().items()}
    labels = {p.label for p in figure.points}
    for what, wrong in (
        ("lacks", labels - counts.keys()),
        ("has, beside those of the scenario,", counts.keys() - labels),
    ):
        if wrong:
            raise UserError(
                f"{figure.id}: the table {what} {len(wrong)} points, such as {min(wrong)}; {_command_for(campaign, figure)}"
            )
    least = least_seeds(figure, table)
    if short := [label for label, n in counts.items() if n < least[label]]:
        raise UserError(
            f"{figure.id}: {short[0]} has fewer than {least[short[0]]} seeds; {_command_for(campaign, figure)}"
        )
    return runs_of(figure, counts, campaign.results)


def _check_complete(campaign: Finished, figure: Figure, runs: Sequence[Run]) -> None:
    """UserError with what to do if runs of a figure are missing."""
    if missing := [run for run in runs if not (run.folder / SUMMARY).is_file()]:
        raise UserError(
            f"{figure.id}: {len(missing)} of {number_of(len(runs), 'run')} {'is' if len(missing) == 1 else 'are'} missing, such as "
            f"{missing[0].folder}; {_command_for(campaign, figure)}"
        )


def _check_table(figure: Figure, table: pd.DataFrame, runs: Sequence[FinishedRun], place: Path) -> None:
    """UserError if a table is not of these runs."""
    again = pd.DataFrame([row for one in runs for row in one.rows])
    later = [m for m in schema.METRICS.keys() - {*schema.ALWAYS} if m in again and m not in table]
    again = again.drop(columns=later).astype({c: float for c in again if c in table and table[c].dtype == float})
    try:
        pd.testing.assert_frame_equal(again, table, check_exact=True, check_dtype=False, check_like=True)
    except AssertionError as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"{place / figure.id}.parquet: is not the table of the runs that are there ({reason}); start the campaign again"
        ) from None


def predictions_of_campaign(campaign: Finished) -> pd.DataFrame:
    """What the models say of the figures' points, as far as it is there: what claims and pages read.

    Args:
        campaign: with predictions in its results.

    Returns:
        The predictions' columns, and those of PLACE.
    """
    figures, results = campaign.figures, campaign.results
    wanted = set(prediction_files(claims_of(load_statements(known_good=True)), figures, results))
    for figure in filter(has_panel, figures):
        wanted |= set(predictions_of(figure.id, figure.scenario, figure.points, results))
    parts = []
    for path in sorted(path for path in wanted if path.exists()):
        point = path.parent
        at = (f"{point.parent.parent.name}/{point.parent.name}", point.name, path.stem)
        parts.append(read_with(path, ["share_of_capacity"]).assign(**dict(zip(PLACE, at, strict=True))))
    return packed(parts)


def manifest_of(
    scale: str, runs: pd.DataFrame, versions: Iterable[Version], failed: Iterable[Failed]
) -> dict[str, Any]:
    """What shipped results with these runs come from, without the hashes of files.

    Args:
        runs: runs.parquet.
        versions: of bbrlab that made them.
        failed: those that failed self-checks.

    Raises:
        UserError: if runs of one commit have two versions.
    """
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
    """UserError if runs are of several kernels or versions of the guest's code, or had other conditions."""
    for what, part in ORIGIN.items():
        first = part(runs[0].manifest)
        if other := next((one for one in runs if part(one.manifest) != first), None):
            raise UserError(
                f"{other.run.folder}: its {what} is another one than that of {runs[0].run.folder}; remove the older of them and start "
                "the campaign again"
            )


# What all runs of a campaign must have in common: {what it is called: it, of a run's manifest.json}.
ORIGIN: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "kernel": lambda manifest: without_build(manifest["kernel"]),
    "guest_code_sha256": lambda manifest: always_loaded(manifest["guest_code_sha256"]),
    "conditions": lambda manifest: manifest.get("conditions", CONDITIONS[0]),
}


def _versions(runs: Sequence[FinishedRun]) -> list[Version]:
    """The versions of runs, one for each commit."""
    of_commit: dict[str, list[FinishedRun]] = {}
    for one in runs:
        of_commit.setdefault(one.commit, []).append(one)
    return [
        Version(
            commits={commit: commit_time(commit)},
            fields=sorted(frozenset().union(*(one.fields for one in runs_of_version))),
            guest_code_sha256=ORIGIN["guest_code_sha256"](runs_of_version[0].manifest),
            kernel=runs_of_version[0].manifest["kernel"],
            packages=sorted(
                {f"{name} {version}" for one in runs_of_version for name, version in one.manifest["packages"].items()}
            ),
            conditions=ORIGIN["conditions"](runs_of_version[0].manifest),
        )
        for commit, runs_of_version in of_commit.items()
    ]


def joined(versions: Iterable[Version], commits: Collection[str] | None = None) -> list[Version]:
    """Versions, each commit in one of them, those that are equal in one.

    Args:
        commits: which to keep; default: all.

    Raises:
        UserError: if runs of one commit are of several kernels or versions of the guest's code, or had other conditions.
    """
    of_commit: dict[str, Version] = {}
    for version in versions:
        for commit, time in version.commits.items():
            if commits is not None and commit not in commits:
                continue
            one = version.model_copy(update={"commits": {commit: time}, "packages": [*version.packages]})
            other = of_commit.setdefault(commit, one)
            if other is one:
                continue
            if _same(other) != _same(one):
                raise UserError(
                    f"runs of commit {commit} have two versions of the kernel, of the guest's code or of other code that they come from; "
                    "commit what was changed and make the newer of them again"
                )
            more = {"fields": {*other.fields, *one.fields}, "packages": {*other.packages, *one.packages}}
            of_commit[commit] = other.model_copy(update={name: sorted(values) for name, values in more.items()})
    together: dict[str, Version] = {}
    for commit in sorted(of_commit):
        one = of_commit[commit]
        first = together.setdefault(json.dumps([_same(one), one.fields], sort_keys=True), one)
        if first is not one:
            first.commits.update(one.commits)
            first.packages[:] = sorted({*first.packages, *one.packages})
    return list(together.values())


def _same(version: Version) -> list[Any]:
    """What is the same in all runs of a commit."""
    return [without_build(version.kernel), version.guest_code_sha256, version.conditions]
