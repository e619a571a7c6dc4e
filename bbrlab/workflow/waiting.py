"""Runs that wait: of a figure that is not finished, beside what ships, not judged and not shown, until the others join them.

A figure of which a machine has not the time for all runs is made part by part, on one machine after the other. Of a run waits all
that is needed to ship it (workflow/seen.py), and not its samples, as of a run that ships.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import BeforeValidator, Field, ValidationError

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict
from bbrlab.base.tables import read_table
from bbrlab.base.words import number_of
from bbrlab.campaign.collect import CONDITIONS, IDENTITY, table_of_rows
from bbrlab.campaign.figures import Figure, Run, runs_of
from bbrlab.campaign.seeds import ROUNDS
from bbrlab.campaign.versions import check_columns, check_runs
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.seeds import wanted_seeds
from bbrlab.kernel.built import get_kernel, without_build
from bbrlab.measure import schema
from bbrlab.measure.checks.check import failed_of
from bbrlab.report.shipped import GET_ANEW, Manifest, read_manifest, waiting_file
from bbrlab.run.guest_code import always_loaded
from bbrlab.workflow.digest import MANIFEST, SUMMARY, TABLES, summary_digest
from bbrlab.workflow.seen import Seen, look_at_all

OF_MANIFEST = (
    "kernel",
    "guest_code_sha256",
    "packages",
    "source",
)  # what of a run's manifest.json is shipped or compared
PARTS = ("rows", "checks", "fields", "tables", "manifest")  # of Seen, each as JSON


def _json(text: object) -> object:
    """Python's own reader, which reads what Python's writer writes: every digit, and NaN."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        raise ValueError(f"is no JSON ({error})") from None


class _OfManifest(Strict):
    kernel: dict[str, Any]
    guest_code_sha256: dict[str, str]
    packages: dict[str, str]
    source: dict[str, Any]


class _Waits(Strict):
    """A row of wait_table()."""

    point: str
    seed: Annotated[int, Field(ge=1)]
    summary_sha256: str
    rows: Annotated[list[dict[str, Any]], BeforeValidator(_json)]
    checks: Annotated[list[dict[str, Any]], BeforeValidator(_json)]
    fields: Annotated[list[str], BeforeValidator(_json)]
    tables: Annotated[dict[str, str], BeforeValidator(_json)]
    manifest: Annotated[_OfManifest, BeforeValidator(_json)]


def wait_table(seen: Iterable[Seen]) -> pd.DataFrame:
    """Runs as they wait: one row for each, with JSON in the columns PARTS; nothing of the machine is in it."""
    rows = []
    for one in seen:
        content = {
            "rows": [row | {"wall_s": None} for row in one.rows],
            "checks": one.checks,
            "fields": sorted(one.fields),
            "tables": one.tables,
            "manifest": {key: one.manifest[key] for key in OF_MANIFEST},
        }
        place = {"point": one.run.point.label, "seed": one.run.seed, "summary_sha256": one.summary_sha256}
        rows.append(place | {part: json.dumps(content[part]) for part in PARTS})
    return pd.DataFrame(rows, columns=["point", "seed", "summary_sha256", *PARTS])


def read_waiting(table: pd.DataFrame, figure: Figure, results: Path) -> list[Seen]:
    """The runs of a wait_table().

    Args:
        results: the folder in which their places are; they need not be there.

    Raises:
        UserError: if the figure's scenario has not their points any more, or the table is not one of this version of bbrlab.
    """
    path = Path(waiting_file(figure.id))
    drop = f"`bbrlab keep --forget {figure.id}` drops the runs that wait, and they must be made again"
    remedy = f"it was edited, or made by another version; {drop}"
    check_columns(path, table, ("point", "seed", "summary_sha256", *PARTS), remedy)
    points, found = {point.label: point for point in figure.points}, []
    for number, row in enumerate(table.to_dict("records")):
        if row["point"] not in points:
            raise UserError(
                f"{path}: the figure's scenario has other points now than the runs that wait (such as {row['point']}); {drop}"
            )
        try:
            waits = _Waits.model_validate({str(key): value for key, value in row.items()})
        except ValidationError as error:
            first = error.errors()[0]
            what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise UserError(f"{path}: row {number}: {what}; {remedy}") from None
        point = points[waits.point]
        run = Run(figure.id, point, waits.seed, results / "runs" / figure.id / point.label / f"seed-{waits.seed}")
        must = {"figure": figure.id, "point": point.label, "seed": waits.seed, **point.values, **point.conditions}
        if wrong := next((k for row in waits.rows for k, v in must.items() if _other(row.get(k), v)), None):
            raise UserError(f"{path}: row {number}: {wrong} is not that of {point.label} seed {waits.seed}; {remedy}")
        manifest = waits.manifest.model_dump()
        fields = frozenset(waits.fields)
        found.append(Seen(run, waits.rows, waits.checks, waits.summary_sha256, fields, waits.tables, manifest))
    if found:
        rows = pd.DataFrame([row for one in found for row in one.rows])
        check_columns(path, rows, (*IDENTITY, *CONDITIONS, *schema.ALWAYS), remedy)
        check_runs(path, rows, remedy)
    return found


def _other(there: object, must: object) -> bool:
    """Whether a value that was read from JSON is another one than that which was written."""
    return bool(json.dumps(there) != json.dumps(must))


@dataclass(frozen=True)
class Gathered:
    """A figure's runs, those that wait and those of a folder of results.

    Attributes:
        there: all of them, in the order of points and seeds.
        asked: the runs that the figure has when it is finished, as far as is known: of each point the figure's trials; when these are
            there, what claims ask for.
    """

    figure: Figure
    there: list[Seen]
    asked: list[Run]

    @property
    def seen(self) -> list[Seen]:
        """Those of the asked runs that are there."""
        places = {_place(run) for run in self.asked}
        return [one for one in self.there if _place(one.run) in places]

    @property
    def missing(self) -> list[Run]:
        """Those that are not."""
        places = {_place(one.run) for one in self.there}
        return [run for run in self.asked if _place(run) not in places]

    @property
    def failed(self) -> list[tuple[Run, list[str]]]:
        """The runs that failed self-checks, with the checks' names."""
        named = [(one.run, [str(check["name"]) for check in failed_of(one.checks)]) for one in self.there]
        return [(run, names) for run, names in named if names]

    @property
    def told(self) -> str:
        """In a sentence, what is there and what is not."""
        seen, missing = len(self.seen), len(self.missing)
        more = f", and {len(self.there) - seen} that nothing asks for now" if len(self.there) > seen else ""
        there = f"{seen} of {number_of(len(self.asked), 'run')} wait{more}"
        return f"{there}; {missing} missing" if missing else f"{there}: all that it needs"

    def all_there(self, scale: str) -> Gathered:
        """Itself. UserError if a run is missing."""
        if missing := self.missing:
            raise UserError(
                f"{self.figure.id}: {len(missing)} of {len(self.asked)} runs are not there, neither in the results nor among those that "
                f"wait, such as {missing[0].point.label} seed {missing[0].seed}; `bbrlab missing --scale {scale} {self.figure.id}` lists them"
            )
        return self

    def table(self) -> pd.DataFrame:
        """The figure's table, of the runs that are asked for and there."""
        return table_of_rows([row for one in self.seen for row in one.rows])


def own_runs(figure: Figure, results: Path) -> list[Run]:
    """The runs of a figure in a folder of results. One that was killed has not all its files, and is none."""
    runs = runs_of(figure, figure.caps, results)
    return [run for run in runs if all((run.folder / name).is_file() for name in (SUMMARY, MANIFEST, TABLES[0]))]


def gather(figure: Figure, waiting: pd.DataFrame | None, results: Path) -> Gathered:
    """The runs of a figure that wait (a wait_table()), and those that are in a folder of results.

    Raises:
        UserError: if a run is both here and there, and not the same; one here is of another kernel or version of the guest's code
            than those that wait; or as look_at() and read_waiting() have it.
    """
    waits = [] if waiting is None else read_waiting(waiting, figure, results)
    found = {_place(one.run): one for one in waits}
    for one in look_at_all(own_runs(figure, results)):
        if waits:
            _same_origin(one, waits[0])
        other = found.setdefault(_place(one.run), one)
        if other is one:
            continue
        digest = summary_digest(
            files.read_json(one.run.folder / SUMMARY), other.fields
        )  # a later version measures more
        if (other.summary_sha256, other.tables) != (digest, one.tables):
            raise UserError(
                f"{one.run.folder}: is not equal to the same run that waits in {waiting_file(figure.id)}; remove this folder and make "
                f"the run again. If it comes out the same, `bbrlab keep --forget {figure.id}` drops the runs that wait"
            )
    order = {point.label: number for number, point in enumerate(figure.points)}
    there = sorted(found.values(), key=lambda one: (order[one.run.point.label], one.run.seed))
    table = table_of_rows([row for one in there for row in one.rows])
    return Gathered(figure, there, runs_of(figure, wanted_so_far(figure, table), results))


def _same_origin(mine: Seen, waits: Seen) -> None:
    """UserError if a run is of another kernel or guest code than those that wait."""
    theirs, own = waits.manifest, mine.manifest
    for key, part in (("kernel", without_build), ("guest_code_sha256", always_loaded)):
        if part(theirs[key]) != part(own[key]):
            raise UserError(
                f"{mine.run.folder}: its {key} is not that of the runs that wait in {waiting_file(mine.run.figure)}; make it with the "
                "kernel and the version of bbrlab that made these"
            )


def _place(run: Run) -> tuple[str, int]:
    return run.point.label, run.seed


def waiting_table(folder: Path, scale: str, figure: Figure) -> pd.DataFrame | None:
    """The runs of a figure that wait with what ships; None if none does. UserError if the file is not as the manifest says."""
    name = waiting_file(figure.id)
    path = folder / scale / name
    said = read_manifest(folder, scale).files.get(name)
    if said is None:
        return None
    if not path.is_file() or path.is_symlink() or files.sha256(path) != said:
        raise UserError(f"{path}: is not the file that the manifest has the hash of; {GET_ANEW}")
    return read_table(path)


def other_origin(manifest: Manifest) -> str | None:
    """In what this checkout would make other runs than those that ship: its default kernel, where one is built; None: in nothing."""
    try:
        kernel = get_kernel()
    except UserError:  # none is built yet
        return None
    if kernel.key == manifest.kernel["key"]:
        return None
    return f"kernel {kernel.name} has the key {kernel.key}, that of what ships {manifest.kernel['key']}"


def wanted_so_far(figure: Figure, table: pd.DataFrame) -> dict[str, int]:
    """How many seeds the rounds of the workflow ask of each point (campaign/seeds.py), by the runs that are there.

    Each round is judged by the seeds of the one before it alone, whatever else is there, so that runs that came part by part
    are as many as a campaign makes.

    Args:
        table: the figure's, of the runs that are there.

    Returns:
        {point label: seeds}, of the first round of which a run is missing, else of the last.
    """
    wanted = {point.label: figure.trials_of(point) for point in figure.points}
    claims: Sequence[Any] | None = None
    for _ in range(ROUNDS - 1):
        if not has_all(table, wanted):
            break
        claims = claims_of(load_statements(known_good=True)) if claims is None else claims
        of_round = table[table["seed"] <= table["point"].map(wanted)]
        more = wanted_seeds(figure, of_round, claims)
        if more == wanted:
            break
        wanted = more
    return wanted


def has_all(table: pd.DataFrame, seeds: Mapping[str, int]) -> bool:
    """Whether a figure's table has the seeds 1 to so many of each point."""
    there = set(zip(table["point"], table["seed"], strict=True)) if len(table) else set()
    return all((label, seed) in there for label, count in seeds.items() for seed in range(1, count + 1))
