"""``bbrlab list``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from bbrlab.base.limits import all_cores
from bbrlab.base.words import number_of
from bbrlab.cli.app import AsJson, Figures, app, print_json

if TYPE_CHECKING:
    from bbrlab_apps.study.catalogue import Listed

TITLE_MAX = 28  # letters of a figure's title
NARROW = 100  # columns of a terminal below which the number of runs is left out


@app.command("list")
def list_(figures: Figures = None, as_json: AsJson = False) -> None:
    """Say what there is: papers, figures, points, and how long they take; of one figure its points."""
    from bbrlab.results.figures import scenario_files
    from bbrlab_apps.study.catalogue import catalogue

    wanted = figures or []
    listed = catalogue(wanted)
    if as_json:
        print_json([asdict(one) for one in listed])
    elif len(listed) == 1 and wanted[0] not in {id.split("/")[0] for id in scenario_files()}:
        _show_points(listed[0])
    else:
        _show_figures(listed)


def _show_figures(figures: list[Listed]) -> None:
    from rich.table import Table

    from bbrlab.base.console import wide_console
    from bbrlab.results.config import in_checkout, load_config

    console, cores, scales = wide_console(), all_cores(), list(load_config().scales)
    narrow = console.width < NARROW
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    table.add_column("what it is", overflow="ellipsis", no_wrap=True, max_width=TITLE_MAX // 2 if narrow else TITLE_MAX)
    for head in ("points", *([] if narrow else ["runs"]), *scales, "results"):
        table.add_column(head, justify="left" if head == "results" else "right", no_wrap=True, min_width=len(head))
    for one in figures:
        largest = one.scales[max(one.scales, key=scales.index)]
        minutes = [_minutes(one.scales[s].core_s / cores) if s in one.scales else "-" for s in scales]
        here = [s for s, at in one.scales.items() if at.own] + [
            f"ships: {s}" for s, at in one.scales.items() if at.shipped
        ][-1:]
        table.add_row(
            one.id,
            one.title,
            str(largest.points),
            *([] if narrow else [str(largest.runs)]),
            *minutes,
            ", ".join(here) or "none",
        )
    console.print(table)
    sums = ", ".join(
        f"{s} {_minutes(sum(f.scales[s].core_s for f in figures if s in f.scales) / cores)}" for s in scales
    )
    console.print(
        f"points and runs: of the largest scale, of the seeds to begin with; {', '.join(scales)}: minutes on {number_of(cores, 'core')}, in all: {sums}\n"
        f"run one: {in_checkout(f'snakemake --cores {cores} PAPER/FIGURE')}; its points: bbrlab list PAPER/FIGURE; a picture: bbrlab plot PAPER/FIGURE",
        soft_wrap=True,
    )


def _minutes(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:.1f}" if minutes < 10 else f"{minutes:.0f}"


def _show_points(one: Listed) -> None:
    from rich.table import Table

    from bbrlab.base.console import wide_console
    from bbrlab.results.figures import figures_at
    from bbrlab.results.run_estimate import estimate_s
    from bbrlab.show.plots.style import plain

    console = wide_console()
    scale = list(one.scales)[-1]
    (figure,) = figures_at(scale, [one.id])
    console.print(f"{one.id}: {one.title}; scale {scale}", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    swept = list(dict.fromkeys(name for point in figure.points for name in point.values))
    for name in (*swept, "flows", "seeds", "s on 1 core"):
        table.add_column(name.removeprefix("network."), justify="right" if name.startswith("s") else "left")
    for point in figure.points:
        flows = " v ".join(f"{flow.count} {flow.cca}" for flow in point.scenario.flows)
        table.add_row(*(plain(point.values.get(name, "")) for name in swept), flows, str(figure.trials_of(point)),
                      f"{estimate_s(point):.0f}")  # fmt: skip
    console.print(table)
    at = one.scales[scale]
    console.print(
        f"{number_of(at.points, 'point')}, {number_of(at.runs, 'run')}; other scales: "
        + (
            ", ".join(
                f"{s}: {number_of(o.points, 'point')}, {number_of(o.runs, 'run')}"
                for s, o in one.scales.items()
                if s != scale
            )
            or "none"
        ),
        soft_wrap=True,
    )
