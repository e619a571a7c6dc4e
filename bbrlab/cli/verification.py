"""What running again came to, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bbrlab.workflow.records import Wrong
from bbrlab.workflow.verify import Outcome


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
        said = (
            f"[red]{how}: {escape(files)}[/red]" if one.wrong else "equal" + (" (another kernel)" if one.note else "")
        )
        took = "-" if one.wall_s is None else f"{one.wall_s:.0f}"
        table.add_row(run.figure, escape(run.point.label), str(run.seed), took, said)
    console.print(table)
    for one in outcomes:
        run = one.record.run
        for what in one.wrong:
            place = f"{run.figure} {run.point.label} seed {run.seed}"
            console.print(f"{place}: {f'{what.file}: ' if what.file else ''}{what.what}", markup=False)
    for note in dict.fromkeys(one.note for one in outcomes if one.note):
        count = sum(one.note == note for one in outcomes)
        console.print(f"{count} runs: {note}", markup=False)
    for what in wrong:
        console.print(f"{what.file}: {what.what}", markup=False)
    bad = sum(bool(one.wrong) for one in outcomes)
    words = f"{len(outcomes) - bad} of {len(outcomes)} runs are equal in every hash"
    console.print(words + (f"; {len(wrong)} faults in the files" if wrong else ""))


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
