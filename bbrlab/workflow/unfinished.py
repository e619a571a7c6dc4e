"""Runs of figures that are not finished: they wait beside what ships, not judged and not shown, until the others join them.

A figure of which a machine has not the time for all runs is made part by part, on one machine after the other. Of a run waits all
that is needed to ship it (workflow/seen.py), and not its samples, as of a run that ships.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.campaign.collect import table_of_rows
from bbrlab.campaign.figures import Figure, Run, runs_of
from bbrlab.campaign.seeds import ROUNDS
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.seeds import wanted_seeds
from bbrlab.report.shipped import waiting_file
from bbrlab.workflow.digest import SUMMARY
from bbrlab.workflow.seen import Seen, look_at_all

OF_MANIFEST = (
    "kernel",
    "guest_code_sha256",
    "packages",
    "source",
)  # what of a run's manifest.json is shipped or compared
PARTS = ("rows", "checks", "tables", "manifest")  # of Seen, each as JSON


def wait_table(seen: Iterable[Seen]) -> pd.DataFrame:
    """Runs as they wait: one row for each, with JSON in the columns PARTS; nothing of the machine is in it."""
    rows = []
    for one in seen:
        content = {
            "rows": [row | {"wall_s": None} for row in one.rows],
            "checks": one.checks,
            "tables": one.tables,
            "manifest": {key: one.manifest[key] for key in OF_MANIFEST},
        }
        place = {"point": one.run.point.label, "seed": one.run.seed, "summary_sha256": one.summary_sha256}
        rows.append(place | {part: json.dumps(content[part]) for part in PARTS})
    return pd.DataFrame(rows, columns=["point", "seed", "summary_sha256", *PARTS])


def read_waiting(table: pd.DataFrame, figure: Figure, results: Path) -> list[Seen]:
    """The runs of a wait_table(). UserError if the figure's scenario has not their points any more.

    Args:
        results: the folder in which their places are; they need not be there.
    """
    points = {point.label: point for point in figure.points}
    found = []
    for row in table.to_dict("records"):
        if row["point"] not in points:
            raise UserError(
                f"{waiting_file(figure.id)}: its scenario has other points now than the runs that wait (such as {row['point']}); "
                f"run the figure anew, and pack it with --replace or remove it from what ships"
            )
        point = points[row["point"]]
        run = Run(figure.id, point, row["seed"], results / "runs" / figure.id / point.label / f"seed-{row['seed']}")
        parts: dict[str, Any] = {part: json.loads(row[part]) for part in PARTS}
        found.append(Seen(run, summary_sha256=row["summary_sha256"], **parts))
    return found


@dataclass(frozen=True)
class Gathered:
    """A figure's runs, those that wait and those of a folder of results.

    Attributes:
        seen: in the order of points and seeds, none that the figure's seeds do not ask for.
        missing: runs that it still needs: of each point the seeds of the figure; when all are there, those that claims ask for.
    """

    figure: Figure
    seen: list[Seen]
    missing: list[Run]

    @property
    def most(self) -> int:
        """Runs that the figure has when it is finished, as far as is known."""
        return len(self.seen) + len(self.missing)

    @property
    def told(self) -> str:
        """In a sentence, what is there and what is not."""
        there = f"{len(self.seen)} of {number_of(self.most, 'run')} wait"
        return f"{there}, {len(self.missing)} missing" if self.missing else f"{there}: all that it needs"

    def finished(self, scale: str) -> Gathered:
        """Itself. UserError if a run is missing."""
        if self.missing:
            first = self.missing[0]
            raise UserError(
                f"{self.figure.id}: {len(self.missing)} of {self.most} runs are not there, neither in the results nor among those that wait, "
                f"such as {first.point.label} seed {first.seed}; `bbrlab missing --scale {scale} {self.figure.id}` lists them"
            )
        return self

    def table(self) -> pd.DataFrame:
        """The figure's table, of the runs that are there."""
        return table_of_rows([row for one in self.seen for row in one.rows], [one.run for one in self.seen])


def gather(figure: Figure, waiting: pd.DataFrame | None, results: Path) -> Gathered:
    """The runs of a figure that wait or are in a folder of results.

    Raises:
        UserError: if a run is both here and there, and not the same; or one in the folder is not whole.
    """
    found = {} if waiting is None else {_key(s.run): s for s in read_waiting(waiting, figure, results)}
    own = [run for run in runs_of(figure, figure.caps, results) if (run.folder / SUMMARY).is_file()]
    for one in look_at_all(own):
        other = found.setdefault(_key(one.run), one)
        if (other.summary_sha256, other.tables) != (one.summary_sha256, one.tables):
            raise UserError(
                f"{one.run.folder}: is not equal to the same run that waits in {waiting_file(figure.id)}; "
                "`bbrlab verify --results` tells which of them is made again"
            )
    table = table_of_rows([row for one in found.values() for row in one.rows], [one.run for one in found.values()])
    runs = runs_of(figure, wanted_so_far(figure, table), results)
    seen = [found[_key(run)] for run in runs if _key(run) in found]
    return Gathered(figure, seen, [run for run in runs if _key(run) not in found])


def _key(run: Run) -> tuple[str, int]:
    return run.point.label, run.seed


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
    claims: Sequence[Any] = claims_of(load_statements(known_good=True))
    for _ in range(ROUNDS - 1):
        if not has_all(table, wanted):
            break
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
