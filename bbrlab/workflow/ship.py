"""Packs a finished campaign as results that ship: shipped/SCALE/ (bbrlab/report/shipped.py reads it)."""

from __future__ import annotations

import importlib.metadata
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.campaign.collect import read_figure, read_points
from bbrlab.campaign.config import command_for
from bbrlab.campaign.figures import Figure, Run, runs_of, scenario_files
from bbrlab.campaign.seeds import least_seeds
from bbrlab.campaign.versions import read_with
from bbrlab.claims.columns import prediction_files
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.statements import read_claims, read_statements, statements_beside
from bbrlab.models.predictions import PACKED, PLACE, packed
from bbrlab.models.predictions import files_of as predictions_of
from bbrlab.report.panel import has_panel
from bbrlab.report.shipped import CHECKS, FORMAT, MANIFEST, RUNS, own_hash
from bbrlab.run.guest_code import always_loaded
from bbrlab.workflow.explained import Explained, failed_runs
from bbrlab.workflow.seen import Seen, check_frame, look_at, run_frame

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
        explained: why runs that failed self-checks are packed all the same.
        without_curves: pack it also if a model's prediction is missing that no claim reads, so that a page has no curve of it;
            rejudge.rejudge() computes it.
    """

    scale: str
    figures: Sequence[Figure]
    results: Path
    explained: Sequence[Explained] = ()
    without_curves: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", in_order(self.figures))


def pack(campaign: Finished, out: Path, on_progress: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Pack a finished campaign into ``out``/SCALE, in place of what was there; whole or not at all.

    The bytes are the same for the same results: nothing of the machine, and no time, is in them.

    Args:
        out: the folder for shipped results.
        on_progress: told now and then, in words, how far it is.

    Returns:
        The manifest.

    Raises:
        UserError: if something is missing, tables are not of these runs, runs are of several kernels or versions of the guest's
            code, or one failed self-checks unexplained.
    """
    found = gather(campaign, on_progress)
    on_progress("predictions")
    found.content[PACKED] = predictions_of_campaign(campaign)
    on_progress("writing")
    return replace_shipped(out / campaign.scale, found.content, found.manifest)


@dataclass(frozen=True)
class Gathered:
    """A finished campaign, looked through.

    Attributes:
        content: {file below SCALE/: table}, predictions apart.
        manifest: what it came from, without the hashes of files.
        seen: every run.
    """

    content: dict[str, pd.DataFrame]
    manifest: dict[str, Any]
    seen: list[Seen]


@dataclass(frozen=True)
class Runs:
    """The runs of a campaign's figures, looked through.

    Attributes:
        tables: {figure: its table}.
        seen: every run.
        failed: those that failed self-checks, with the reasons given.
    """

    tables: dict[str, pd.DataFrame]
    seen: list[Seen]
    failed: list[dict[str, Any]]

    def content(self) -> dict[str, pd.DataFrame]:
        """{file below SCALE/: table}, of the runs and the figures."""
        figures = {f"{id}.parquet": table.assign(**{NOT_RESULT: float("nan")}) for id, table in self.tables.items()}
        return {**figures, RUNS: run_frame(self.seen), CHECKS: check_frame(self.seen)}


def look_through(campaign: Finished, on_progress: Callable[[str], None] = lambda text: None) -> Runs:
    """The runs of a campaign's figures: that all are there, whole, and of their tables. Errors: pack()."""
    place = campaign.results / campaign.scale
    for figure in campaign.figures:
        if not (place / f"{figure.id}.parquet").exists():
            raise UserError(
                f"{place / figure.id}.parquet: is missing: the campaign is not finished; run: {command_for(figure.id, campaign.scale)}"
            )
    tables = {f.id: read_figure(place / f"{f.id}.parquet") for f in campaign.figures}
    seen: list[Seen] = []
    for figure in campaign.figures:
        on_progress(f"{figure.id}: hashing runs")
        found = _runs_there(figure, tables[figure.id], campaign.results)
        with ThreadPoolExecutor() as pool:  # hashing lets go of the interpreter
            seen += pool.map(look_at, found)
        _same_table(figure, tables[figure.id], seen[-len(found) :], place)
    return Runs(tables, seen, failed_runs(seen, campaign.explained))


def gather(campaign: Finished, on_progress: Callable[[str], None] = lambda text: None) -> Gathered:
    """Look through a finished campaign: that all is there, whole, and of one kernel. Errors: pack()."""
    scale, figures = campaign.scale, campaign.figures
    place = campaign.results / scale
    papers = list(dict.fromkeys(f.id.split("/")[0] for f in figures))
    judged = [f"{part}{kind}.parquet" for part in ("", *(f"{p}." for p in papers)) for kind in ("claims", "statements")]
    for name in (*judged, "points.parquet"):
        if not (place / name).exists():
            raise UserError(
                f"{place / name}: is missing: the campaign is not finished; run: {command_for('all', scale)}"
            )
    points = read_points(place / "points.parquet")
    _check_claims(read_claims(place / "claims.parquet"), place)
    runs = look_through(campaign, on_progress)
    content = runs.content() | {"points.parquet": points}
    for name in judged:
        if name.endswith("claims.parquet"):
            content[name], beside = read_claims(place / name), statements_beside(place / name)
            content[beside.name] = read_statements(place / name)
    return Gathered(content, manifest_of_runs(scale, figures, runs), runs.seen)


def _runs_there(figure: Figure, table: pd.DataFrame, results: Path) -> list[Run]:
    """The runs of a figure's table. UserError if the table lacks a point of the figure, or has one that is not there any more."""
    counts = {str(label): int(n) for label, n in table.groupby("point")["seed"].nunique().items()}
    labels = {p.label for p in figure.points}
    for what, wrong in (
        ("lacks", labels - counts.keys()),
        ("has, beside those of the scenario,", counts.keys() - labels),
    ):
        if wrong:
            raise UserError(
                f"{figure.id}: the table {what} {len(wrong)} points, such as {min(wrong)}; start the campaign again"
            )
    least = least_seeds(figure, table)
    if short := [label for label, n in counts.items() if n < least[label]]:
        raise UserError(f"{figure.id}: {short[0]} has fewer than {least[short[0]]} seeds; start the campaign again")
    return runs_of(figure, counts, results)


def _same_table(figure: Figure, table: pd.DataFrame, seen: Sequence[Seen], place: Path) -> None:
    """UserError if a table is not of these runs."""
    again = pd.DataFrame([row for one in seen for row in one.rows])
    again = again.astype({c: float for c in again if c in table and table[c].dtype == float})
    try:
        pd.testing.assert_frame_equal(again, table, check_exact=True, check_dtype=False, check_like=True)
    except AssertionError as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"{place / figure.id}.parquet: is not the table of the runs that are there ({reason}); start the campaign again"
        ) from None


def _check_claims(claims: pd.DataFrame, place: Path) -> None:
    """UserError if the verdicts are not on the claims that there are now."""
    known = {c.id for c in claims_of(load_statements(known_good=True))}
    if wrong := known ^ set(claims["id"]):
        raise UserError(
            f"{place / 'claims.parquet'}: is not of the claims that there are now (such as {min(wrong)}); start the campaign again"
        )


def predictions_of_campaign(campaign: Finished, whole: bool = True) -> pd.DataFrame:
    """What the models say of the figures' points: what claims and pages read.

    Args:
        campaign: with predictions in its results.
        whole: all that is read must be there (Finished.without_curves); else what is there.

    Returns:
        The predictions' columns, and those of PLACE.

    Raises:
        UserError: naming the first that is missing, if all must be there.
    """
    figures, results = campaign.figures, campaign.results
    wanted = set(prediction_files(claims_of(load_statements(known_good=True)), figures, results))
    for figure in filter(has_panel, figures):
        curves = predictions_of(figure.id, figure.scenario, figure.points, results)
        wanted |= {path for path in curves if path.exists() or not campaign.without_curves}
    if not whole:
        wanted = {path for path in wanted if path.exists()}
    parts = []
    for path in sorted(wanted):
        if not path.exists():
            raise UserError(f"{path}: is missing: the campaign is not finished; start it again")
        point = path.parent
        at = (f"{point.parent.parent.name}/{point.parent.name}", point.name, path.stem)
        parts.append(read_with(path, ["share_of_capacity"]).assign(**dict(zip(PLACE, at, strict=True))))
    return packed(parts)


def manifest_of_runs(scale: str, figures: Sequence[Figure], runs: Runs) -> dict[str, Any]:
    """What shipped results with these runs come from, without the hashes of files. UserError if runs are of several kernels or
    versions of the guest's code."""
    seen = runs.seen
    kernel = _only(seen, "kernel")
    packages = Counter(f"{name} {version}" for s in seen for name, version in s.manifest["packages"].items())
    return {
        "format": FORMAT,
        "scale": scale,
        "figures": {f.id: sum(s.run.figure == f.id for s in seen) for f in figures},
        "commits": dict(sorted(Counter(s.commit for s in seen).items())),
        "kernel": kernel,
        "guest_code_sha256": _only(seen, "guest_code_sha256", always_loaded),
        "packages": dict(sorted(packages.items())),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "failed": runs.failed,
    }


def _only(seen: Sequence[Seen], key: str, part: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> dict[str, Any]:
    """What all runs' manifests say of something, or the part of it that matters. UserError if they do not say the same."""
    first = seen[0]
    found = part(first.manifest[key])
    for one in seen:
        if part(one.manifest[key]) != found:
            raise UserError(
                f"{one.run.folder}: its {key} is another one than that of {first.run.folder}; remove the older of them and start "
                "the campaign again"
            )
    return found


def replace_shipped(folder: Path, content: dict[str, pd.DataFrame], manifest: dict[str, Any]) -> dict[str, Any]:
    """Write tables and manifest in the place of a folder of shipped results, whole or not at all.

    Args:
        content: {file below the folder: table}.
        manifest: without the hashes of files and its own.

    Returns:
        The manifest with them.
    """
    with files.folder_aside(folder) as aside:
        aside.chmod(0o755)
        for name, table in sorted(content.items()):
            path = aside / name
            path.parent.mkdir(exist_ok=True)
            with open(path, "wb") as file:
                table.to_parquet(file, index=False, compression="zstd", compression_level=19)
        manifest["files"] = {name: files.sha256(aside / name) for name in sorted(content)}
        manifest["sha256"] = own_hash(manifest)
        files.write_json(aside / MANIFEST, manifest)
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.replace(old)
        aside.replace(folder)
        shutil.rmtree(old, ignore_errors=True)
    return manifest
