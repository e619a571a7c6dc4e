"""``bbrlab plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import ScaleName, app, overrides_of, words_of


@app.command()
def plot(
    what: Annotated[list[str], typer.Argument(metavar="FOLDER|PAPER/FIGURE|RUN...", help="A study's folder, a figure with results, or folders of runs.")],
    x: Annotated[str | None, typer.Option("--x", help="Field on the axis, of no cdf; default: the first that is swept.")] = None,
    y: Annotated[list[str] | None, typer.Option("--y", help="Metric, as share_of_capacity or queue_ms_mean; of runs, and with cdf: goodput, queue, rtt, cwnd, inflight, state ..., several times.")] = None,
    hue: Annotated[str | None, typer.Option(help="Field whose values are colours; default: the flows.")] = None,
    kind: Annotated[str, typer.Option(help="line: means with 95 % intervals, or runs over time; box: each seed; cdf: distribution of samples; heat: two swept fields.")] = "line",
    where: Annotated[list[str] | None, typer.Option(metavar="FIELD=VALUE", help="Draw these points only, e.g. qdisc.kind=fifo.")] = None,
    acks: Annotated[bool, typer.Option("--acks", help="Of runs with --trace-acks: each ACK in place of the samples, of the first flow of each group.")] = False,
    scale: ScaleName = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.png|.svg|.pdf", help="Default: a PNG in the working folder.", show_default=False)] = None,
) -> None:  # fmt: skip
    """Draw a study, a figure, or one or several runs over each other.

    Alone, FOLDER gives the flows' shares over the study's first swept field, PAPER/FIGURE the metric that most of the figure's claims read, RUN the run over time: goodput, queue, RTT, windows, BBR's state.
    """
    from bbrlab_apps.study.plot import Wish, check_out, save
    from bbrlab_apps.study.plot import plot as draw
    from bbrlab_apps.study.sources import source_of

    check_out(out)
    wish = Wish(
        kind,
        x,
        words_of(y),
        hue,
        overrides_of(where, "--where", "qdisc.kind=fifo"),
        acks,
    )
    figure, name = draw(source_of(what, scale), wish)
    file = out or Path(f"{name}.png")
    check_out(file)
    save(figure, file)
    typer.echo(str(file))
