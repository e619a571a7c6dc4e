"""Result of `bbrlab verify` on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from bbrlab.base.console import wide_console
from bbrlab.base.words import number_of
from bbrlab.campaign.progress import Progress, span
from bbrlab.comparison.expected_runs import Problem
from bbrlab.comparison.verify import OTHER_BUILD, Outcome

OF_ANOTHER_BUILD = (
    "Another build of the kernel gives another trial, as good as any. Equal bytes need the same source and compiler, iperf3 and Python:"
    ' the release of Debian that they were made on, with its updates (LIMITATIONS.md, What "bit for bit" covers).'
)


def progress_words(progress: Progress, waits: str = "") -> str:
    """How far running again is, in one line.

    Args:
        progress: of it; failed are the runs that differ.
        waits: which runs wait for a core, in words: of them nobody knows how long that takes.
    """
    left = waits or f"{span(progress.left_s)} left"
    return f"runs {len(progress.done)} of {len(progress.planned)} · {progress.failed} not equal · {left}"


def show_verification(outcomes: Sequence[Outcome], problems: Sequence[Problem]) -> None:
    """Print what came of each run, then every difference by run and file."""
    console = wide_console(soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name, side in (("figure", "left"), ("point", "left"), ("seed", "right"), ("s", "right"), ("", "left")):
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for one in outcomes:
        run = one.expected.run
        files = ", ".join(dict.fromkeys(problem.file or "the run" for problem in one.problems))
        how = "differs" if one.wall_s is not None else "not run again"
        text = (
            Text(f"{how}: {files}", "red")
            if one.problems
            else "equal" + (" (another kernel build)" if one.note else "")
        )
        took = "-" if one.wall_s is None else f"{one.wall_s:.0f}"
        table.add_row(run.figure, run.point.label, str(run.seed), took, text)
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
    if any(what.what.startswith(OTHER_BUILD) for one in outcomes for what in one.problems):
        console.print(OF_ANOTHER_BUILD)


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
