"""``bbrlab compare RUN RUN``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bbrlab.base.errors import UserError
from bbrlab.cli.app import EXIT_MOVED, print_json

if TYPE_CHECKING:
    from bbrlab_apps.study.run_differences import Field, Number

DIGITS = 4


def compare_runs(
    words: Sequence[str], metrics: Sequence[str] | None, out: Path | None, others: Sequence[str], as_json: bool
) -> None:
    """Say in what two runs differ, and draw them over each other.

    Args:
        metrics: what to compare; default: run_differences.METRICS.
        out: of the picture; None: there is none.
        others: options that were given, and mean nothing for runs.
    """
    from bbrlab.measure.metrics import METRICS
    from bbrlab_apps.study import run_differences
    from bbrlab_apps.study.names import resolve
    from bbrlab_apps.study.plot import Wish, check_out, plot, save
    from bbrlab_apps.study.sources import source_of

    if len(words) != 2:
        raise UserError(
            f"bbrlab compare: two runs are compared, not {len(words)}; more of them on one picture: bbrlab plot RUN RUN RUN"
        )
    if others:
        raise UserError(f"{others[0]}: is for the sides of a campaign; two runs are compared as they are")
    check_out(out)
    chosen = [resolve("--metric", name, list(METRICS), "docs/reference/results.md has all") for name in metrics or ()]
    runs = source_of(words)
    assert isinstance(runs, list)
    one, two = runs
    fields = run_differences.fields_that_differ(one, two)
    numbers = run_differences.numbers_of(one, two, chosen or run_differences.METRICS)
    if out:
        save(plot(runs, Wish())[0], out)
    if as_json:
        print_json(
            {
                "runs": [str(run.folder.path) for run in runs],
                "fields": [asdict(f) for f in fields],
                "metrics": [asdict(n) for n in numbers],
            }
        )
    else:
        _show(one.name, two.name, fields, numbers)
        if out:
            typer.echo(f"\npicture: {out}")
    if any(number.one != number.two for number in numbers):
        raise typer.Exit(EXIT_MOVED)


def _show(one: str, two: str, fields: Sequence[Field], numbers: Sequence[Number]) -> None:
    from rich.table import Table

    from bbrlab.base.console import Console
    from bbrlab.measure.metrics import label_of

    console = Console()
    if fields:
        table = Table(box=None, pad_edge=False)
        for head in ("field", one, two):
            table.add_column(head, overflow="fold")
        for field in fields:
            table.add_row(field.name, _value(field, field.one), _value(field, field.two))
        console.print(table)
        if any(_of_algorithm(field) and None in (field.one, field.two) for field in fields):
            console.print("default: the algorithm's own, of its profile (docs/reference/bbr_parameters.md)")
    else:
        console.print("The two runs are of the same scenario, seed, kernel and commit.")
    table = Table(box=None, pad_edge=False)
    table.add_column("\nmetric", no_wrap=True)
    for head in (one, two, "difference"):
        table.add_column(f"\n{head}", justify="right", overflow="fold")
    flows = None
    for number in sorted(numbers, key=lambda n: n.flows or "~"):  # the bottleneck last
        if number.flows != flows:
            flows = number.flows
            table.add_row(flows or "bottleneck", style="bold")
        table.add_row(f"  {label_of(number.metric)}", _number(number.one), _number(number.two), _difference(number))
    console.print(table)
    if words := _chance(fields, numbers):
        console.print(words)


def _chance(fields: Sequence[Field], numbers: Sequence[Number]) -> str:
    """What one run of each says of a difference: not how much of it is chance."""
    if not fields or all(number.one == number.two for number in numbers):
        return ""
    if {field.name for field in fields} == {"seed"}:
        return "The runs differ in their seed alone: these differences are chance."
    return "One run of each: several seeds of both (bbrlab sweep) say how much of a difference is chance."


def _value(field: Field, value: Any) -> str:
    if value is not None:
        return str(value)
    return "default" if _of_algorithm(field) else "-"


def _of_algorithm(field: Field) -> bool:
    """Whether it is an algorithm's parameter: without a value in the scenario it has the algorithm's own."""
    return ".params." in field.name


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    digits = max(0, DIGITS - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{min(digits, 6)}f}"


def _difference(number: Number) -> str:
    if number.one is None or number.two is None:
        return ""
    by = number.two - number.one
    if not by:
        return "="
    share = f" ({by / abs(number.one):+.0%})" if number.one else ""
    return f"{'+' if by > 0 else '-'}{_number(abs(by))}{share}"
