"""``bbrlab crosscheck``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base.errors import UserError
from bbrlab.base.outputs import check_file
from bbrlab.cli.app import EXIT_MOVED, AsJson, Overrides, ScenarioFile, app, print_json, settings_of

FEWEST = 3  # seeds by default: a run in real time takes as long as it says


@app.command()
def crosscheck(
    scenario: ScenarioFile,
    set_: Overrides = None,
    case: Annotated[str | None, typer.Option(help="One of the scenario's cases; default: all points of the file.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each point in either time, with seeds 1 to this.")] = FEWEST,
    backend: Annotated[str | None, typer.Option(help="qemu or host; default: host where it can (root, Open vSwitch), else qemu.")] = None,
    virtual_kernel: Annotated[str | None, typer.Option(help="Entry of config/kernels.yaml for virtual time.")] = None,
    real_kernel: Annotated[str | None, typer.Option(help="Entry of config/kernels.yaml for QEMU.")] = None,
    metric: Annotated[list[str] | None, typer.Option(help="What to compare (docs/reference/results.md); may be given several times. Default: share_of_capacity, utilisation, loss, queue_ms_mean.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the runs; default: crosschecks/NAME in the results folder.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every comparison to this file.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Run a scenario in virtual time and in real time, and say how far they are apart.

    A run in real time that fails a self-check, also because this machine was too slow or too busy, is refused: it counts for
    nothing. Ends with 0 if nothing differs, 1 if something does, 2 if there is nothing to compare.
    """
    from bbrlab.base import paths
    from bbrlab.comparison.compare import METRICS, POINTS
    from bbrlab.scenario.load import load_scenario, points_of
    from bbrlab.scenario.notes import notes_of
    from bbrlab_apps.crosscheck.runs import REAL, check_options, real_backend
    from bbrlab_apps.crosscheck.runs import crosscheck as run_both
    from bbrlab_apps.crosscheck.table import content_of, show_crosscheck, write_crosscheck

    if backend is not None and backend not in REAL:
        raise UserError(f"--backend {backend}: not in real time; use one of {', '.join(REAL)}")
    check_options(seeds, metric or METRICS, {"--virtual-kernel": virtual_kernel, "--real-kernel": real_kernel})
    check_file("--csv", csv, f"{','.join(POINTS)},backend,".encode())
    loaded = load_scenario(scenario, settings_of(set_), case)
    points = points_of(loaded, str(scenario))
    chosen = backend or real_backend(points)
    if chosen == "host" and real_kernel:
        raise UserError(
            f"--real-kernel {real_kernel}: would have no effect: real time is that of this machine's own kernel (host); leave it out, or "
            "give --backend qemu"
        )

    for note in notes_of(points):
        typer.echo(f"note: {note}", err=True)
    printed = set()

    def report(verb: str, text: str) -> None:
        if verb == "run" or (verb == "stage" and text.startswith("emulated") and text not in printed):
            printed.add(text)  # why it is emulated holds for all runs
            typer.echo(text, err=True)

    folder = out or paths.results_folder() / "crosschecks" / loaded.name
    result = run_both(
        loaded.name, points, seeds, folder, backend=chosen, kernels={"uml": virtual_kernel, chosen: real_kernel},
        metrics=metric or METRICS, on_progress=report,
    )  # fmt: skip
    if csv:
        write_crosscheck(result, csv)
    if as_json:
        print_json(content_of(result))
    else:
        show_crosscheck(result)
        typer.echo(f"results: {folder}")
    if not result.compared:
        raise UserError(
            "no metric has a number in both times: every run in real time was refused, or none observed what was asked for"
        )
    if result.moved:
        raise typer.Exit(EXIT_MOVED)
