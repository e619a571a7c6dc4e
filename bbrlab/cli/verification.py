"""Result of `bbrlab verify` on the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from bbrlab.base.console import Console
from bbrlab.base.words import number_of
from bbrlab.campaign.progress import span
from bbrlab.publish.expected_runs import ExpectedRun, Problem
from bbrlab.publish.verify import Outcome
from bbrlab.results.cost import estimate_s


@dataclass
class Course:
    """How far running again is.

    Attributes:
        runs: all of them.
        cores: how many run at once.
        clock: seconds that pass.
    """

    runs: Sequence[ExpectedRun]
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
        return sum(estimate_s(run.run.point) for run in self.runs) / self.cores

    def words(self, done: Sequence[Outcome], waits: str = "") -> str:
        """That in one line.

        Args:
            done: those that are over.
            waits: which wait for a core, in words: of them nobody knows how long that takes.
        """
        if len(done) > self._over:
            self._over, now = len(done), self.clock()
            part = sum(estimate_s(one.expected.run.point) for one in done) / self.cores / self.expected_s
            self._end_s = now + (now - self._start_s) * (1 - part) / part
        left = f"{span(max(0.0, self._end_s - self.clock()))} left"
        bad = sum(bool(one.problems) for one in done)
        return f"runs {len(done)} of {len(self.runs)} · {bad} not equal · {waits or left}"


def show_verification(outcomes: Sequence[Outcome], problems: Sequence[Problem]) -> None:
    """Print what came of each run, then every difference by run and file.

    Args:
        problems: what is wrong with the whole.
    """
    console = Console(highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name, side in (("figure", "left"), ("point", "left"), ("seed", "right"), ("s", "right"), ("", "left")):
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for one in outcomes:
        run = one.expected.run
        files = ", ".join(dict.fromkeys(problem.file or "the run" for problem in one.problems))
        how = "differs" if one.wall_s is not None else "not run again"
        said = (
            Text(f"{how}: {files}", "red")
            if one.problems
            else "equal" + (" (another kernel build)" if one.note else "")
        )
        took = "-" if one.wall_s is None else f"{one.wall_s:.0f}"
        table.add_row(run.figure, run.point.label, str(run.seed), took, said)
    console.print(table)
    for one in outcomes:
        run = one.expected.run
        for what in one.problems:
            place = f"{run.figure} {run.point.label} seed {run.seed}"
            console.print(f"{place}: {f'{what.file}: ' if what.file else ''}{what.what}")
    for note in dict.fromkeys(one.note for one in outcomes if one.note):
        count = sum(one.note == note for one in outcomes)
        console.print(f"{number_of(count, 'run')}: {note}")
    for what in problems:
        console.print(f"{what.file}: {what.what}")
    bad = sum(bool(one.problems) for one in outcomes)
    runs = f"{number_of(len(outcomes), 'run')} {'is' if len(outcomes) == 1 else 'are'}"
    words = f"{len(outcomes) - bad} of {runs} equal in every hash"
    console.print(words + (f"; {number_of(len(problems), 'fault')} in the files" if problems else ""))


def _content(problem: Problem) -> dict[str, str]:
    return {"file": problem.file, "what": problem.what}


def content_of(outcomes: Sequence[Outcome], problems: Sequence[Problem]) -> dict[str, Any]:
    """The same for a program: ``ok``, every run with what differs, and what is wrong with the whole."""
    runs = [
        {
            "figure": one.expected.run.figure,
            "point": one.expected.run.point.label,
            "seed": one.expected.run.seed,
            "equal": not one.problems,
            "wrong": [_content(what) for what in one.problems],
            "note": one.note,
            "wall_s": one.wall_s,
        }
        for one in outcomes
    ]
    return {
        "ok": not problems and all(r["equal"] for r in runs),
        "runs": runs,
        "wrong": [_content(what) for what in problems],
    }
