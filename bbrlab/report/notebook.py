"""What the pages' cells have in common, so that a notebook holds only what is its own paper's.

A page begins with ``page = open_page(scale, "PAPER")`` and ``glance(page)`` and ends with ``close_page(page)``
(findings, every claim, soundness, each under its heading). Between them:

    say(text)                                   Markdown
    show(figure), show(table)                   a figure or a table; figures are closed
    published("PAPER/TABLE", {column: name})    published values under the columns' names of the figure tables
    ware_beside(table, *keys)                   the Ware model's share at each point, rate, RTT and buffer as run
    part_of_both(table)                         group 0's part of what groups 0 and 1 carry, for each run
    samples_of(page, FIGURE, columns, ...)      a run's samples, or None where this scale lacks the point
    beside_ns3(page)                            goodput in ns-3 beside goodput here, or None if ns-3 was not run
    queueing_delay(page, FIGURE, ...)           time and queueing delay of a run, in ms or in base RTTs
    one_run(page, FIGURE, ...)                  a run over time: goodput of each group, and the queue
    between_cuts(page, FIGURE, group)           mean time between a loss-based group's window cuts, for each run
    flow_names(figure)                          names of a figure's flow groups, for people

Numbers of papers come from ``data/`` through ``published``; rates and RTTs from the figures' own scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown, display
from matplotlib.figure import Figure as Drawing

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.tables import read_table
from bbrlab.campaign.figures import Figure
from bbrlab.measure.sawtooth import loss_epochs
from bbrlab.models import ware
from bbrlab.report.pages import NAMES, Page, load_page
from bbrlab.report.plots.runs import run_over_time
from bbrlab.report.plots.style import set_style


def open_page(scale: str, paper: str) -> Page:
    """A paper's page, with the look of its figures set. UserError if nothing of it has been run."""
    set_style()
    return load_page(scale, paper)


def say(text: str) -> None:
    """Show Markdown."""
    display(Markdown(text))  # type: ignore[no-untyped-call]


def show(what: Any) -> None:
    """Show a figure, and let it go, or a table."""
    display(what)  # type: ignore[no-untyped-call]
    if isinstance(what, Drawing):
        plt.close(what)


def glance(page: Page) -> None:
    """What was run, and how the claims came out."""
    say(f"## At a glance\n\n{page.glance()}")


def found(page: Page) -> None:
    """What investigations of claims that miss have found."""
    say(f"## What agrees, what does not, and why\n\n{page.findings()}")


def every_claim(page: Page) -> None:
    """Every claim on the page's figures, with what was measured."""
    say("## Every claim")
    show(page.claims())


def soundness(page: Page) -> None:
    """The runs' self-checks."""
    say(
        "## Were the runs sound?\n\nEach run compares what was asked for with what was measured before and during it. "
        "A run that fails is left out of the averages."
    )
    show(page.checks().style.format({"lowest": "{:.6g}", "highest": "{:.6g}"}))


def close_page(page: Page) -> None:
    """The end of every page: findings, claims, soundness."""
    found(page)
    every_claim(page)
    soundness(page)


def flow_names(figure: Figure) -> list[str]:
    """The algorithm of each flow group of a figure, as people write it."""
    return [NAMES.get(flow.cca, flow.cca) for flow in figure.scenario.flows]


def published(
    table: str, names: Mapping[str, str] | None = None, among: pd.DataFrame | None = None, on: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Published values of a table of data/.

    Args:
        table: PAPER/TABLE, of data/PAPER/TABLE.csv.
        names: {column: its name here}; the others keep theirs.
        among: a figure table; only rows whose values of every column in ``on`` it has are kept: the points that were run.
        on: those columns, by their names here.

    Raises:
        UserError: if there is no such table or column.
    """
    path = paths.DATA / f"{table}.csv"
    if not path.exists():
        raise UserError(f"{path}: there is no such published table")
    values = pd.read_csv(path)
    if missing := [c for c in names or {} if c not in values]:
        raise UserError(f"{path}: there is no column {missing[0]} (there are {', '.join(map(str, values.columns))})")
    values = values.rename(columns=dict(names or {}))
    if among is not None:
        for column in on:
            values = values[values[column].isin(set(among[column]))]
    return values


def ware_beside(table: pd.DataFrame, *keys: str, column: str = "share_of_capacity") -> pd.DataFrame:
    """The Ware model's share of group 0 at each point of a figure table, in the conditions that were run.

    Args:
        table: collect.figure_table() of a figure.
        keys: columns that tell its points apart; they stand beside the share.
        column: the share's name here.
    """
    points = table[table["group"] == 0].drop_duplicates(list(keys))
    share = ware.bbr_share(points["rate_mbit"], points["base_rtt_ms"], points["buffer_bdp"], points["count"])
    return points[list(keys)].assign(**{column: share})


def part_of_both(table: pd.DataFrame) -> pd.DataFrame:
    """Good runs' rows of group 0, with ``part``: its goodput over that of groups 0 and 1 together."""
    good = table[table["ok"] & table["group"].isin([0, 1])]
    both = good.groupby(["point", "seed"])["goodput_mbit"].transform("sum")
    return good.assign(part=good["goodput_mbit"] / both)[good["group"] == 0]


def samples_of(page: Page, figure: str, columns: list[str], seed: int = 1, **values: Any) -> pd.DataFrame | None:
    """Columns of a run's samples.parquet (docs/results.md), or None if this scale has no such run.

    Args:
        values: the traits that choose the point, "." written as "__"; they must leave at most one.

    Raises:
        UserError: if they leave several.
    """
    if figure not in page.figures:
        return None
    wanted = {k.replace("__", "."): v for k, v in values.items()}
    points = [p for p in page.figures[figure].points if all(p.traits.get(k) == v for k, v in wanted.items())]
    if not points or seed not in set(page.tables[figure]["seed"]):
        return None
    return page.samples(figure, columns, seed, **values)


def queueing_delay(
    page: Page, figure: str, seed: int = 1, *, in_rtts: bool = False, **values: Any
) -> tuple[pd.Series, pd.Series] | None:
    """Time (s) and the bottleneck's queueing delay of a run: backlog over rate, in ms or in mean base RTTs.

    Returns:
        Two series of shape (samples,), or None if this scale has no such run. For values see samples_of().
    """
    samples = samples_of(page, figure, ["time_s", "queue_bytes"], seed, **values)
    if samples is None:
        return None
    network = page.run(figure, seed, **values).point.scenario.network
    samples = samples.drop_duplicates("time_s")
    delay_ms = samples["queue_bytes"] * 8e-3 / network.rate_mbit
    return samples["time_s"], delay_ms / network.mean_rtt_ms if in_rtts else delay_ms


def beside_ns3(page: Page) -> pd.DataFrame | None:
    """Goodput (Mbit/s) of each flow group in ns-3 and here, mean over the seeds; None if ns-3 was not run (``make ns3``).

    Returns:
        Columns "ns-3" and "here", indexed by figure, point, group and algorithm.
    """
    file = page.results / page.scale / "ns3" / f"{page.paper}.parquet"
    if not file.exists():
        return None
    keys = ["figure", "point", "group", "cca"]
    ours = pd.concat([t[t["ok"]].assign(figure=f"{page.paper}/{name}") for name, t in page.tables.items()])
    both = {"ns-3": read_table(file), "here": ours}
    means = {name: table.groupby(keys)["goodput_mbit"].mean() for name, table in both.items()}
    table = pd.concat(means, axis=1).loc[means["ns-3"].index].reset_index()
    table["point"] = table["point"].str.rsplit(",", n=1).str[0]  # without its fingerprint
    return table.set_index(keys)


def one_run(page: Page, figure: str, seed: int = 1, **values: Any) -> None:
    """Show one run over time, if this scale has it: goodput of each flow group, and the bottleneck queue.

    For values see samples_of().
    """
    if samples_of(page, figure, ["time_s"], seed, **values) is None:
        return
    run = page.run(figure, seed, **values)
    scenario = run.point.scenario
    say(f"**{scenario.figure}**: {' against '.join(flow_names(page.figures[figure]))}, {scenario.duration_s:g} s")
    network = scenario.network
    ccas: list[str] = [flow.cca for flow in scenario.flows]
    show(run_over_time(run.folder / "samples.parquet", network.rate_mbit, network.buffer_bytes, ccas))


def between_cuts(page: Page, figure: str, group: int = 1) -> pd.DataFrame:
    """Mean time between the window cuts of a loss-based group's first flow, for each run of a figure.

    Returns:
        One row per run: the swept paths, ``seed`` and ``between_cuts_s``; infinite for fewer than two cuts.
    """
    rows = []
    for point in page.figures[figure].points:
        table = page.tables[figure]
        for seed in sorted(table.loc[table["point"] == point.label, "seed"].unique()):
            samples = page.samples(figure, ["time_s", "flow", "group", "ssthresh"], int(seed), **_words(point.values))
            cuts = loss_epochs(samples, group)
            apart = float(np.diff(cuts).mean()) if len(cuts) > 1 else float("inf")
            rows.append(point.values | {"seed": int(seed), "between_cuts_s": apart})
    return pd.DataFrame(rows)


def _words(values: Mapping[str, Any]) -> dict[str, Any]:
    """Swept paths as keyword arguments: "." written as "__"."""
    return {path.replace(".", "__"): value for path, value in values.items()}
