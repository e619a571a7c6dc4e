"""What running again came to, on the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from bbrlab.base.console import Console
from bbrlab.base.words import number_of
from bbrlab.publish.expected_runs import Record, Wrong
from bbrlab.publish.verify import Outcome
from bbrlab.results.cost import estimate_s
from bbrlab.workflow.progress import span


@dataclass
class Course:
    """How far running again is.

    Attributes:
        records: of all runs.
        cores: how many run at once.
        clock: seconds that pass.
    """

    records: Sequence[Record]
    cores: int
    clock: Callable[[], float] = time.monotonic
    _start_s: float = field(init=False)
    _over: int = field(default=0, init=False)
    _end_s: float = field(init=False)  # when all is expected to be over

    def __post_init__(self) -> None:
        self._start_s = self.clock()
        self._end_s = self._start_s + self.expected_s

    @property
    def expected_s(self) -> float:
        """What all takes, by the estimate."""
        return sum(estimate_s(record.run.point) for record in self.records) / self.cores

    def words(self, done: Sequence[Outcome], waits: str = "") -> str:
        """That in one line.

        Args:
            done: those that are over.
            waits: which wait for a core, in words: of them nobody knows how long that takes.
        """
        if len(done) > self._over:
            self._over, now = len(done), self.clock()
            part = sum(estimate_s(one.record.run.point) for one in done) / self.cores / self.expected_s
            self._end_s = now + (now - self._start_s) * (1 - part) / part
        left = f"{span(max(0.0, self._end_s - self.clock()))} left"
        bad = sum(bool(one.wrong) for one in done)
        return f"runs {len(done)} of {len(self.records)} · {bad} not equal · {waits or left}"


def show_verification(outcomes: Sequence[Outcome], wrong: Sequence[Wrong]) -> None:
    """Print what came of each run, then every difference by run and file.

    Args:
        wrong: what is wrong with the whole.
    """
    console = Console(highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name, side in (("figure", "left"), ("point", "left"), ("seed", "right"), ("s", "right"), ("", "left")):
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for one in outcomes:
        run = one.record.run
        files = ", ".join(dict.fromkeys(w.file or "the run" for w in one.wrong))
        how = "differs" if one.wall_s is not None else "not run again"
        said = Text(f"{how}: {files}", "red") if one.wrong else "equal" + (" (another kernel)" if one.note else "")
        took = "-" if one.wall_s is None else f"{one.wall_s:.0f}"
        table.add_row(run.figure, run.point.label, str(run.seed), took, said)
    console.print(table)
    for one in outcomes:
        run = one.record.run
        for what in one.wrong:
            place = f"{run.figure} {run.point.label} seed {run.seed}"
            console.print(f"{place}: {f'{what.file}: ' if what.file else ''}{what.what}")
    for note in dict.fromkeys(one.note for one in outcomes if one.note):
        count = sum(one.note == note for one in outcomes)
        console.print(f"{number_of(count, 'run')}: {note}")
    for what in wrong:
        console.print(f"{what.file}: {what.what}")
    bad = sum(bool(one.wrong) for one in outcomes)
    runs = f"{number_of(len(outcomes), 'run')} {'is' if len(outcomes) == 1 else 'are'}"
    words = f"{len(outcomes) - bad} of {runs} equal in every hash"
    console.print(words + (f"; {number_of(len(wrong), 'fault')} in the files" if wrong else ""))


def content_of(outcomes: Sequence[Outcome], wrong: Sequence[Wrong]) -> dict[str, Any]:
    """The same for a program: ``ok``, every run with what differs, and what is wrong with the whole."""
    runs = [
        {
            "figure": one.record.run.figure,
            "point": one.record.run.point.label,
            "seed": one.record.run.seed,
            "equal": not one.wrong,
            "wrong": [asdict(what) for what in one.wrong],
            "note": one.note,
            "wall_s": one.wall_s,
        }
        for one in outcomes
    ]
    return {"ok": not wrong and all(r["equal"] for r in runs), "runs": runs, "wrong": [asdict(what) for what in wrong]}
