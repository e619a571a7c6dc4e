"""``bbrlab model``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bbrlab.base.errors import UserError
from bbrlab.base.outputs import check_file
from bbrlab.cli.app import AsJson, Overrides, ScenarioFile, model_app, print_json, settings_of
from bbrlab.cli.interrupts import die_of_sigterm, held_back

if TYPE_CHECKING:
    from rich.table import Table

    from bbrlab.scenario.point import Point
    from bbrlab.scenario.schema import Scenario

T = TypeVar("T")
UNLIMITED = 10_000  # columns
SEED = 1  # by default


def _table(*numbers: str) -> Table:
    """A table of points. Nothing in it is cut off, however narrow the terminal: a point's name goes on in the next line."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("point", overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", overflow="fold", min_width=5)
    return table


def _show(table: Table, rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print a table, or its rows as JSON; one line for each point where no terminal limits it, as other programs read it."""
    from bbrlab.base.console import Console

    if as_json:
        print_json(rows)
        return
    console = Console()
    if not console.is_terminal:
        console.width = max(
            console.width, console.measure(table, options=console.options.update(width=UNLIMITED)).maximum
        )
    console.print(table)


def _name_of(point: Point) -> str:
    return " ".join(f"{k}={v}" for k, v in point.values.items()) or point.scenario.name


@model_app.command("ware")
def model_ware(scenario: ScenarioFile, set_: Overrides = None, as_json: AsJson = False) -> None:
    """Print the Ware steady-state share of capacity for every point of a scenario."""
    from bbrlab.models import ware
    from bbrlab.scenario.load import load_scenario, points_of

    loaded = load_scenario(scenario, settings_of(set_))
    table = _table("share of all BBR flows")
    rows = []
    for p in points_of(loaded, str(scenario)):
        share = ware.scenario_share(p.scenario)
        rows.append({"point": p.values, "share": share})
        table.add_row(_name_of(p), f"{share:.3f}")
    _show(table, rows, as_json)


@model_app.command("fluid")
def model_fluid(
    scenario: ScenarioFile,
    set_: Overrides = None,
    duration_s: Annotated[
        float | None,
        typer.Option(
            "--duration-s",
            help="Seconds to integrate, with means over the last 5/9; default: the experiment's, and its window.",
        ),
    ] = None,
    step_ms: Annotated[float, typer.Option("--step-ms", help="Euler step.")] = 0.01,
    mode: Annotated[
        str, typer.Option(help="aligned (comparable with experiments) or reference (the public code).")
    ] = "aligned",
    quirk: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Switch one quirk of the mode to its other position.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which RTTs, where the scenario gives a range.")] = SEED,
    check_step: Annotated[
        bool, typer.Option(help="Integrate again with twice the step and compare (with half where twice is too long).")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Integrate the Scherrer fluid model for every point of a scenario: shares of the link, loss, queue."""
    from bbrlab.models import fluid
    from bbrlab.models.predict import STEP_TOLERANCE, fluid_share
    from bbrlab.scenario.draws import draws_flows
    from bbrlab.scenario.load import load_scenario, points_of

    loaded = load_scenario(scenario, settings_of(set_))
    quirks = fluid.quirks_of(mode, quirk or [])
    table = _table(
        *(f"{group.cca} share" for group in loaded.flows), "Jain", "loss", "occupancy", "utilisation", "step"
    )
    doubtful, rows = 0, []
    points = points_of(loaded, str(scenario))
    _check_red(points)
    if seed != SEED and not any(draws_flows(p.scenario) for p in points):
        raise UserError(f"--seed {seed}: would have no effect: no RTT of the scenario is a range; leave it out")
    scenarios = [p.scenario for p in points]
    integrate = partial(
        fluid_share, duration_s=duration_s, step_ms=step_ms, quirks=quirks, seed=seed, check_step=check_step
    )
    for p, prediction in zip(points, _computed(integrate, scenarios, "integrating"), strict=True):
        run = prediction.run
        doubtful += prediction.step_matters
        rows.append({"point": p.values, "shares": prediction.shares, "jain_index": run.jain_index, "loss": run.loss,
                     "occupancy": run.occupancy, "utilisation": run.utilisation, "step_difference": prediction.step_difference})  # fmt: skip
        change = (
            "" if prediction.step_difference != prediction.step_difference else f"±{prediction.step_difference:.3f}"
        )
        table.add_row(_name_of(p), *(f"{s:.3f}" for s in prediction.shares), f"{run.jain_index:.3f}",
                      f"{run.loss:.4f}", f"{run.occupancy:.3f}", f"{run.utilisation:.3f}",
                      change + (" !" if prediction.step_matters else ""))  # fmt: skip
    _show(table, rows, as_json)
    if doubtful:
        typer.echo(
            f"bbrlab: warning: {doubtful} point(s) marked ! change by more than {STEP_TOLERANCE:g} with the step; "
            "try a smaller --step-ms, and take what still changes as chaotic", err=True,
        )  # fmt: skip


def _check_red(points: Sequence[Point]) -> None:
    """UserError for options of RED: the fluid model's has those of the published code."""
    for p in points:
        qdisc = p.scenario.network.qdisc
        if qdisc.kind == "red" and (given := sorted(qdisc.model_fields_set - {"kind"})):
            raise UserError(
                f"{p.scenario.name}: the fluid model does not describe network.qdisc.{given[0]}: its RED is the published one; leave it out"
            )


@model_app.command("burst")
def model_burst(
    scenario: ScenarioFile,
    set_: Overrides = None,
    seeds: Annotated[int, typer.Option(help="Simulate with this many seeds.")] = 3,
    reading: Annotated[
        str | None,
        typer.Option(
            help="Of BBRv2's and BBRv3's drafts: draft, cut, narrow or observed (docs/explanation/models.md). Default: draft, which "
            "is to the letter, as the lab's bbr2 and bbr3."
        ),
    ] = None,
    duration_s: Annotated[
        float | None,
        typer.Option(
            "--duration-s",
            help="Seconds to simulate, with means over the last 40 %; default: the experiment's, and its window.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate every point of a scenario burst by burst: shares of capacity (mean ± standard deviation over the seeds), loss,
    queue, RTT."""
    from bbrlab.models.burst_scenario import predict
    from bbrlab.models.burst_versions import LETTER
    from bbrlab.scenario.load import load_scenario, points_of

    loaded = load_scenario(scenario, settings_of(set_))
    table = _table(
        *(f"{group.cca} share" for group in loaded.flows), "Jain", "loss", "occupancy", "RTT p50", "RTT p95 (ms)"
    )
    rows = []
    points = points_of(loaded, str(scenario))
    if reading and not {flow.cca for p in points for flow in p.scenario.flows} & {"bbr2", "bbr3"}:
        raise UserError(
            f"--reading {reading}: would have no effect: no flow is bbr2 or bbr3, whose drafts it is of; leave it out"
        )
    scenarios = [p.scenario for p in points]
    simulate = partial(predict, seeds=seeds, reading=reading or LETTER, duration_s=duration_s)
    for p, prediction in zip(points, _computed(simulate, scenarios, "simulating"), strict=True):
        runs = prediction.runs
        rows.append({"point": p.values, "shares": prediction.means, "share_deviations": prediction.spreads,
                     "jain_index": fmean(r.jain_index for r in runs), "loss": fmean(r.loss for r in runs),
                     "occupancy": fmean(r.occupancy for r in runs), "rtt_ms_p50": fmean(r.rtt_ms(50) for r in runs),
                     "rtt_ms_p95": fmean(r.rtt_ms(95) for r in runs)})  # fmt: skip
        spread = ["" if math.isnan(s) else f" ±{s:.3f}" for s in prediction.spreads]
        table.add_row(
            _name_of(p),
            *(f"{mean:.3f}{sd}" for mean, sd in zip(prediction.means, spread, strict=True)),
            _mean(r.jain_index for r in runs), _mean((r.loss for r in runs), 4), _mean(r.occupancy for r in runs),
            _mean((r.rtt_ms(50) for r in runs), 1), _mean((r.rtt_ms(95) for r in runs), 1),
        )  # fmt: skip
    _show(table, rows, as_json)


@model_app.command("table")
def model_table(
    name: Annotated[str, typer.Argument(help="Its name: data/burst/NAME.csv.")],
    out: Annotated[Path | None, typer.Option(help="Write it here; default: where it is kept.")] = None,
) -> None:
    """Compute a kept table of the burst model again. Takes minutes."""
    from studies import burst_tables

    check_file("--out", out)
    table = burst_tables.table_of(name)
    typer.echo(f"{name}: some {table.minutes:g} minutes on one core", err=True)
    typer.echo(burst_tables.write(name, table.of(_progress(list(table.items), "simulating")), out))


def _mean(values: Iterable[float], digits: int = 3) -> str:
    return f"{fmean(values):.{digits}f}"


def _computed(compute: Callable[[Scenario], T], scenarios: Sequence[Scenario], doing: str) -> Iterator[T]:
    """What is computed of each scenario, with progress.

    In a process of its own, which can be ended: a compiled loop takes up to hours, in which no handler of Python's runs.
    """
    import multiprocessing

    from bbrlab.base.workers import workers

    context = multiprocessing.get_context("fork")  # it has all libraries already
    with workers(1, die_of_sigterm, "the process that computed was killed", "nothing was printed", context) as pool:
        with held_back():
            jobs = [pool.submit(compute, scenario) for scenario in scenarios]
        for job in _progress(jobs, doing):
            yield job.result()


def _progress(points: list[Any], doing: str) -> Iterable[Any]:
    """The points, with a progress bar on a terminal."""
    from rich.progress import track

    from bbrlab.base.console import Console

    console = Console(stderr=True)
    return track(points, description=doing, console=console, transient=True, disable=not console.is_terminal)
