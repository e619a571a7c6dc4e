"""The command line: ``bbrlab --help``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from bbrlab.errors import UserError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
                  help="TCP BBR experiments on a real Linux kernel in virtual time.")  # fmt: skip
kernel_app = typer.Typer(no_args_is_help=True, help="Build and list guest kernels.")
model_app = typer.Typer(no_args_is_help=True, help="What the models predict for a scenario.")
app.add_typer(kernel_app, name="kernel")
app.add_typer(model_app, name="model")

EXIT_FAILED, EXIT_CHECKS, EXIT_INTERRUPTED = 2, 4, 130
ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO.yaml", help="Scenario file.", show_default=False)]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a value, e.g. network.buffer.bdp=4.")
]


@app.callback()
def _main() -> None:
    # No matrix here is worth a second core, and NumPy's idle threads spin on the one that another guest has.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _overrides(items: list[str] | None) -> dict[str, Any]:
    from bbrlab.scenario import parse_value

    found = {}
    for item in items or []:
        path, equals, text = item.partition("=")
        if not equals or not path:
            raise UserError(f"--set {item}: give PATH=VALUE, for example --set network.buffer.bdp=4")
        found[path] = parse_value(text)
    return found


@app.command()
def run(
    scenario: ScenarioFile,
    out: Annotated[Path, typer.Option(help="Folder for summary.json, samples.parquet, manifest.json and guest.log.")],
    set_: Overrides = None,
    case: Annotated[str | None, typer.Option(help="One of the scenario's cases.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of this trial.")] = 1,
    backend: Annotated[
        str,
        typer.Option(
            help="uml: virtual time; qemu: a virtual machine in real time; host: this machine's kernel, as root, in real time."
        ),
    ] = "uml",
    kernel: Annotated[str | None, typer.Option(help="Entry of config/kernels.yaml.")] = None,
    watchdog_s: Annotated[
        float, typer.Option(help="End a guest that shows no sign of life for so many real seconds.")
    ] = 60,
    strict: Annotated[bool, typer.Option(help=f"Exit with {EXIT_CHECKS} if a self-check fails.")] = False,
    trace_acks: Annotated[
        bool, typer.Option("--trace-acks", help="Also write acks.parquet: BBRv2's and BBRv3's state at every ACK.")
    ] = False,
    quiet: Annotated[bool, typer.Option(help="Print only what is wrong.")] = False,
    die_with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run one point of a scenario once."""
    from bbrlab import run as runner
    from bbrlab import scenario as scenarios

    if backend not in runner.BACKENDS:
        raise UserError(f"--backend {backend}: no such backend; use one of {', '.join(runner.BACKENDS)}")
    loaded = scenarios.load(scenario, _overrides(set_), case)
    point = scenarios.base_point(loaded)
    if (loaded.sweep or loaded.cases) and not quiet:
        axes = ([f"{len(loaded.cases)} cases"] if loaded.cases else []) + [
            f"{len(v)} values of {k}" for k, v in loaded.sweep.items()
        ]
        typer.echo(f"{loaded.name} has {' x '.join(axes)}; this runs the file's own values. "
                   "Choose others with --set and --case, or run them all with snakemake.")  # fmt: skip
    _interruptible()
    with _progress(point.scenario.duration_s, quiet) as tell:
        summary = runner.run_point(point, seed, out, kernel_name=kernel, backend=backend, watchdog_s=watchdog_s,
                                   die_with_parent=die_with_parent, trace_acks=trace_acks, on_progress=tell)  # fmt: skip
    if not quiet:
        _show(summary, out)
    failed = [c["name"] for c in summary["checks"] if not c["ok"]]
    if failed:
        if quiet:
            typer.echo(
                f"bbrlab: {out}: self-checks failed: {', '.join(failed)}; the run is marked and left out of averages",
                err=True,
            )
        if strict:
            raise typer.Exit(EXIT_CHECKS)


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM during a run. (Typer would swallow a KeyboardInterrupt.)"""


def _interruptible() -> None:
    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


@contextlib.contextmanager
def _progress(duration_s: float, quiet: bool) -> Iterator[Any]:
    if quiet or not sys.stderr.isatty():
        last = [0.0]

        def plain(verb: str, text: str) -> None:
            if quiet:
                return
            if verb == "stage":
                typer.echo(f"guest: {text}")
            elif verb == "at" and time.monotonic() - last[0] > 10:
                last[0] = time.monotonic()
                typer.echo(f"guest: {float(text):g} of {duration_s:g} virtual seconds")

        yield plain
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} virtual s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("set-up", total=duration_s)

        def tell(verb: str, text: str) -> None:
            if verb == "stage":
                bar.update(task, description=text)
            elif verb == "at":
                bar.update(task, completed=float(text))

        yield tell


def _show(summary: dict[str, Any], out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    speed = summary["virtual_s"] / summary["wall_s"]
    console.print(f"[bold]{summary['scenario']}[/bold] seed {summary['seed']}: {summary['virtual_s']:g} s in "
                  f"{summary['wall_s']:.1f} s ({speed:.0f} x real time), Linux {summary['kernel']['release']}", highlight=False)  # fmt: skip
    columns = {"goodput_mbit": ("goodput Mbit/s", 3), "share_of_capacity": ("share", 3), "retransmits": ("retransmits", 0),
               "rtt_ms_mean": ("RTT ms", 1), "jain_index": ("Jain", 3), "slowdown_mean": ("slowdown", 2),
               "unfinished": ("unfinished", 0)}  # fmt: skip
    shown = {k: v for k, v in columns.items() if any(g.get(k) is not None for g in summary["groups"])}
    table = Table(box=None, pad_edge=False)
    table.add_column("flows")
    for name, _ in shown.values():
        table.add_column(name, justify="right")
    for group in summary["groups"]:
        cells = ["-" if group.get(k) is None else f"{group[k]:.{digits}f}" for k, (_, digits) in shown.items()]
        table.add_row(f"{group['count']} {group['cca']}", *cells)
    console.print(table)
    b = summary["bottleneck"]
    console.print(f"bottleneck: utilisation {b['utilisation']:.3f}, loss {b['loss']:.4f}, occupancy {b['occupancy']:.2f}, "
                  f"queue {b['queue_ms']['mean']:.1f} ms (p95 {b['queue_ms']['p95']:.1f})", highlight=False, soft_wrap=True)  # fmt: skip
    failed = [c for c in summary["checks"] if not c["ok"]]
    if failed:
        console.print(f"[bold red]{len(failed)} of {len(summary['checks'])} self-checks failed[/bold red]; "
                      "this run is marked and left out of averages:")  # fmt: skip
        for c in failed:
            console.print(
                f"  {c['name']}: asked {c['asked']}, measured {c['measured']} ({c['detail']})", highlight=False
            )
    else:
        console.print(f"[green]all {len(summary['checks'])} self-checks passed[/green]")
    console.print(f"results: {out}", highlight=False, soft_wrap=True)


@kernel_app.command("build")
def kernel_build(
    name: Annotated[str | None, typer.Argument(help="Entry of config/kernels.yaml; default: its default.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Parallel compilers; default: all cores.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Also write what was built to this JSON file (for Snakemake).")
    ] = None,
) -> None:
    """Build a kernel, once for each (source version, options, patches, compiler)."""
    from bbrlab import files, guest_tools, kernel

    start = time.monotonic()
    built = kernel.build(name, jobs, say=typer.echo)
    guest_tools.library_folder()
    if record:
        content = kernel.describe(built) | {"ccas": built.ccas, "parameters": built.parameters}
        if not record.exists() or json.loads(record.read_text(encoding="utf-8")) != content:
            files.write_json(record, content)
        else:
            os.utime(record)
    typer.echo(f"kernel {built.name}: Linux {built.release}, {', '.join(sorted(built.ccas))} (build {built.build_id}, "
               f"{time.monotonic() - start:.1f} s)")  # fmt: skip


@kernel_app.command("list")
def kernel_list() -> None:
    """List the kernels that can be built, and what the built ones can do."""
    from bbrlab import kernel

    specs = kernel.load_specs()
    for name, spec in specs.kernels.items():
        try:
            built = kernel.get(name)
            state = f"built: Linux {built.release}, {', '.join(sorted(built.ccas))}"
        except UserError:
            state = "not built"
        typer.echo(f"{name}{' (default)' if name == specs.default else ''}: {spec.description} [{state}]")


@app.command()
def doctor() -> None:
    """Say what this machine lacks, and how to get it."""
    from rich.console import Console

    from bbrlab import doctor as examiner

    console = Console()
    findings = examiner.examine()
    for f in findings:
        mark = "[green]ok  [/green]" if f.ok else "[bold red]lack[/bold red]"
        console.print(f"{mark} {f.name}: {f.found}", highlight=False, soft_wrap=True)
        if not f.ok:
            console.print(f"     -> {f.remedy}", highlight=False, soft_wrap=True)
    if not all(f.ok for f in findings):
        raise typer.Exit(1)
    console.print("This machine can run bbrlab.")


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files."""
    from bbrlab.scenario import Scenario

    typer.echo(json.dumps(Scenario.model_json_schema(), indent=1))


@app.command()
def check(
    scenarios: Annotated[
        list[Path], typer.Argument(metavar="FILE.yaml...", help="Scenario files; claims.yaml is one of claims.")
    ],
) -> None:
    """Check scenario files, and claims against the scenarios, without running anything."""
    from bbrlab import claims
    from bbrlab.scenario import load, points

    for path in scenarios:
        if path.name == "claims.yaml":
            typer.echo(f"{path}: {len(claims.load(path))} claims")
            continue
        loaded = load(path)
        typer.echo(
            f"{path}: {loaded.paper}/{loaded.name}, {len(points(loaded))} points x {loaded.trials} trials, {loaded.duration_s:g} s each"
        )


@app.command(hidden=True)
def point(
    file: Annotated[Path, typer.Argument(help="Point file made by the workflow.")],
    seed: Annotated[int, typer.Option()],
    out: Annotated[Path, typer.Option()],
    kernel: Annotated[str | None, typer.Option()] = None,
) -> None:
    """Run one point of a campaign (used by the workflow)."""
    from bbrlab import campaign
    from bbrlab import run as runner

    _interruptible()
    summary = runner.run_point(campaign.read_point(file), seed, out, kernel_name=kernel, die_with_parent=True)
    failed = [c["name"] for c in summary["checks"] if not c["ok"]]
    if failed:
        typer.echo(
            f"bbrlab: {out}: self-checks failed: {', '.join(failed)}; the run is marked and left out of averages",
            err=True,
        )


@app.command()
def plan(
    figures: Annotated[list[str] | None, typer.Argument(help="paper, paper/figure ...; default: all.")] = None,
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
) -> None:
    """Show what a campaign would run: points, seeds, and how long it will take and how much disk it needs."""
    from bbrlab import campaign, planning

    planning.show(campaign.figures(scale, figures or None))


@app.command(hidden=True)
def collect(figure: str, scale: Annotated[str, typer.Option()], out: Annotated[Path, typer.Option()]) -> None:
    """Gather the runs of a figure into one tidy table (used by the workflow)."""
    from bbrlab import campaign
    from bbrlab import collect as gathering

    (chosen,) = campaign.figures(scale, [figure])
    gathering.write_table(gathering.table(chosen), out)


def _tables(paths: list[Path]) -> dict[str, Any]:
    """{figure: its table} of results/SCALE/PAPER/FIGURE.parquet files."""
    import pandas as pd

    return {f"{p.parent.name}/{p.stem}": pd.read_parquet(p) for p in paths}


@app.command(hidden=True)
def points(tables: list[Path], out: Annotated[Path, typer.Option()]) -> None:
    """Gather every point of every figure into one tidy table (used by the workflow)."""
    from bbrlab import collect as gathering

    gathering.write_table(gathering.tidy(_tables(tables)), out)


@app.command(hidden=True)
def judge(
    tables: list[Path],
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
    only: Annotated[bool, typer.Option("--only", help="Print and keep only the claims about these figures.")] = False,
) -> None:
    """Judge the papers' claims by the tables of a campaign (used by the workflow)."""
    from bbrlab import campaign, claims, scorecard
    from bbrlab import collect as gathering
    from bbrlab import judge as judging

    found = _tables(tables)
    chosen = [c for c in claims.load() if not only or {t.figure for t in c.at.values()} & set(found)]
    verdicts = judging.judge_all(chosen, campaign.figures(scale, list(found)), found)
    frame = judging.frame(verdicts)
    if only:
        scorecard.show_verdicts(frame)
    gathering.write_table(frame, out)


@app.command(hidden=True)
def render(
    notebook: Path,
    out: Annotated[Path, typer.Option()],
    figures: Annotated[Path | None, typer.Option()] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p")] = None,
) -> None:
    """Execute a notebook and write it as HTML, its figures as files (used by the workflow)."""
    from bbrlab import render as rendering

    rendering.render(notebook, out, dict(item.split("=", 1) for item in parameter or []), figures)


@app.command(hidden=True)
def report(
    tables: list[Path],
    claims: Annotated[Path, typer.Option()],
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
) -> None:
    """Print and write the scorecard (used by the workflow)."""
    import pandas as pd

    from bbrlab import scorecard

    scorecard.write(_tables(tables), pd.read_parquet(claims), scale, out)


@app.command()
def ns3(
    figures: Annotated[list[str], typer.Argument(help="paper, paper/figure ...")],
    out: Annotated[Path, typer.Option(help="Table to write (.parquet, and .csv beside it).")],
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Per point.")] = 1,
) -> None:
    """Run figures in ns-3, as a check by another engine (optional: make ns3)."""
    from bbrlab import campaign
    from bbrlab import collect as gathering
    from bbrlab import ns3 as engine

    gathering.write_table(engine.run(campaign.figures(scale, figures), seeds), out)
    typer.echo(f"results: {out}")


@app.command()
def traffic(
    capture: Annotated[Path, typer.Argument(metavar="CAPTURE.pcap", help="pcap or pcapng, headers are enough.")],
    out: Annotated[Path, typer.Option(help="CSV for flows[].traffic.trace of a scenario.")],
) -> None:
    """Turn a capture into short flows: its TCP flows and the pauses in them."""
    from bbrlab import short_flows

    chunks = short_flows.from_capture(capture)
    short_flows.write(chunks, out)
    flows, size = chunks["flow"].nunique(), chunks["bytes"].sum()
    typer.echo(f"{out}: {flows} flows, {len(chunks)} transmissions, {size / 1e6:.1f} MB")


@model_app.command("ware")
def model_ware(
    scenario: ScenarioFile,
    set_: Overrides = None,
) -> None:
    """Print the Ware steady-state share of capacity for every point of a scenario."""
    from bbrlab import scenario as scenarios
    from bbrlab.models import ware

    loaded = scenarios.load(scenario, _overrides(set_))
    for p in scenarios.points(loaded, str(scenario)):
        share = ware.scenario_share(p.scenario)
        at = " ".join(f"{k}={v}" for k, v in p.values.items())
        typer.echo(f"{at or loaded.name}: {share:.3f}")


@model_app.command("fluid")
def model_fluid(
    scenario: ScenarioFile,
    set_: Overrides = None,
    duration_s: Annotated[
        float | None, typer.Option("--duration-s", help="Seconds to integrate; default: as long as the experiment.")
    ] = None,
    step_ms: Annotated[float, typer.Option("--step-ms", help="Euler step.")] = 0.01,
    mode: Annotated[
        str, typer.Option(help="aligned (comparable with experiments) or reference (the public code).")
    ] = "aligned",
    quirk: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Switch one quirk of the mode to its other position.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which RTTs, where the scenario gives a range.")] = 1,
    check_step: Annotated[bool, typer.Option(help="Integrate again with twice the step and compare.")] = True,
) -> None:
    """Integrate the Scherrer fluid model for every point of a scenario: shares of the link, loss, queue."""
    from rich.console import Console
    from rich.table import Table

    from bbrlab import scenario as scenarios
    from bbrlab.models import fluid, predict

    loaded = scenarios.load(scenario, _overrides(set_))
    quirks = fluid.quirks_of(mode, quirk or [])
    table = Table(box=None, pad_edge=False)
    table.add_column("point")
    for group in loaded.flows:
        table.add_column(f"{group.cca} share", justify="right")
    for name in ("Jain", "loss", "occupancy", "utilisation", "step"):
        table.add_column(name, justify="right")
    doubtful = 0
    with _points_progress(scenarios.points(loaded, str(scenario))) as points:
        for p in points:
            found = predict.fluid_share(p.scenario, duration_s, step_ms, quirks, seed, check_step)
            run = found.run
            doubtful += found.step_matters
            at = " ".join(f"{k}={v}" for k, v in p.values.items())
            change = "" if found.step_difference != found.step_difference else f"±{found.step_difference:.3f}"
            table.add_row(at or loaded.name, *(f"{s:.3f}" for s in found.shares), f"{run.jain_index:.3f}",
                          f"{run.loss:.4f}", f"{run.occupancy:.3f}", f"{run.utilisation:.3f}",
                          change + (" !" if found.step_matters else ""))  # fmt: skip
    Console().print(table, highlight=False)
    if doubtful:
        typer.echo(
            f"bbrlab: warning: {doubtful} point(s) marked ! change by more than {predict.STEP_TOLERANCE:g} with the step; "
            "try a smaller --step-ms, and take what still changes as chaotic", err=True,
        )  # fmt: skip


@contextlib.contextmanager
def _points_progress(points: list[Any]) -> Iterator[Iterator[Any]]:
    """The points, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield iter(
        track(points, description="integrating", console=console, transient=True, disable=not console.is_terminal)
    )


@app.command(hidden=True)
def predict(
    point: Path,
    out: Annotated[Path, typer.Option()],
    step_ms: Annotated[float, typer.Option("--step-ms")],
    duration_s: Annotated[float | None, typer.Option("--duration-s")] = None,
) -> None:
    """Integrate the fluid model for one point, aligned (used by the workflow)."""
    from bbrlab import campaign
    from bbrlab.models import fluid
    from bbrlab.models import predict as prediction

    prediction.write([campaign.read_point(point)], duration_s, step_ms, fluid.ALIGNED, out)


def main() -> None:
    """Entry point: one clear line for what the user can put right, no traceback."""
    try:
        status = app(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)  # typer returns the code of an Exit
    except UserError as error:
        typer.echo(f"bbrlab: {error}", err=True)
        sys.exit(EXIT_FAILED)
    except (Interrupted, KeyboardInterrupt):
        typer.echo("bbrlab: interrupted; nothing half-done was kept", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:  # click's own usage errors
        if hasattr(error, "format_message"):
            context = getattr(error, "ctx", None)
            hint = f" (see '{context.command_path} --help')" if context else ""
            typer.echo(f"bbrlab: {error.format_message()}{hint}", err=True)
            sys.exit(EXIT_FAILED)
        raise


if __name__ == "__main__":
    main()
