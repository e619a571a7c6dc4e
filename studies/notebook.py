"""What the pages' cells have in common, so that a notebook holds only what is its own paper's.

A page begins with ``page = open_page(scale, "PAPER")`` and ``glance(page)`` and ends with ``close_page(page)``
(ns-3 where it was run, findings, every claim, soundness, each under its heading). Between them:

    say(text)                                   Markdown
    show(figure), show(table)                   a figure or a table; figures are closed, long tables folded
    published("PAPER/TABLE", {column: name})    published values under the columns' names of the figure tables
    ware_beside(table, *keys)                   the Ware model's share at each point, rate, RTT and buffer as run
    part_of_both(table)                         group 0's part of what groups 0 and 1 carry, for each run
    show_runs(page, FIGURE)                     its chosen runs over time, or the distributions of their samples (data/curves.yaml)
    between_cuts(page, FIGURE)                  mean time between group 1's window cuts, for each run
    flow_names(figure)                          names of a figure's flow groups, for people
    good(page, FIGURE)                          its good runs' first flow group, with queueing delays in base RTTs
    means(table, keys, columns)                 means over the runs, for reading
    both_sides(table, names)                    goodput and marks of groups 0 and 1, and group 0's part, by case

Numbers of papers come from ``data/`` through ``published``; rates and RTTs from the figures' own scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML, Markdown, display
from matplotlib.figure import Figure as Drawing
from pandas.io.formats.style import Styler

from bbrlab.base.errors import UserError
from bbrlab.base.tables import published_table
from bbrlab.claims.select import full_figures
from bbrlab.measure.checks.check import kind_of
from bbrlab.models import ware
from bbrlab.results.algorithm_table import colour_of_cca, label_of_cca
from bbrlab.results.figures import Figure
from bbrlab.results.schema import read_with
from bbrlab.show.plots.style import plain, set_style
from bbrlab_apps.ns3.runs import program_identity
from bbrlab_apps.site.case_words import words_of_case
from bbrlab_apps.site.charts import label_of_trait
from bbrlab_apps.site.curve_pictures import pictures_of
from studies.curve_plots import drawn
from studies.page import MANY, Page, folded, load_page
from studies.sawtooth import loss_epochs


def open_page(scale: str, paper: str) -> Page:
    """A paper's page, with the look of its figures set. UserError if nothing of it has been run."""
    set_style()
    return load_page(scale, paper)


def say(text: str) -> None:
    """Show Markdown."""
    display(Markdown(text))  # type: ignore[no-untyped-call]


def show(what: Any) -> None:
    """Show a figure, and let it go, or a table, folded if it has more than MANY rows."""
    if isinstance(what, pd.DataFrame | Styler) and len(what.index) > MANY:
        what = HTML(folded(what.to_html(), f"{len(what.index)} rows"))  # type: ignore[no-untyped-call]
    display(what)  # type: ignore[no-untyped-call]
    if isinstance(what, Drawing):
        plt.close(what)


def glance(page: Page) -> None:
    """What was run, and how the claims came out."""
    say(f"## At a glance\n\n{page.glance()}")


def findings(page: Page) -> None:
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
    checks = page.checks().reset_index()
    counts = ["passed", "failed", "not checked"]
    show(checks.assign(check=checks["check"].map(kind_of)).groupby("check")[counts].sum())
    if len(failed := checks[checks["failed"] > 0]):
        say("Where some failed, with the lowest and the highest measurement of all its runs:")
        show(failed.set_index(["figure", "check"]).style.format({"lowest": "{:.6g}", "highest": "{:.6g}"}))


def other_engine(page: Page) -> None:
    """The same points in ns-3, if it was run."""
    if (both := beside_ns3(page)) is None:
        return
    table, stale = both
    say(f"## By another engine: ns-3\n\nMean goodput of each group (Mbit/s) there and here. {stale}")
    show(table.style.format("{:.2f}"))


def close_page(page: Page) -> None:
    """The end of every page: ns-3 beside it, where that was run, findings, claims, soundness."""
    other_engine(page)
    findings(page)
    every_claim(page)
    soundness(page)


def flow_names(figure: Figure) -> list[str]:
    """The algorithm of each flow group of a figure, as people write it."""
    return [label_of_cca(flow.cca) for flow in figure.scenario.flows]


def published(
    table: str, names: Mapping[str, str] | None = None, among: pd.DataFrame | None = None, on: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Published values of a table of data/. UserError if there is no such table or column.

    Args:
        table: PAPER/TABLE, of data/PAPER/TABLE.csv.
        names: {column: its name here}; the others keep theirs.
        among: a figure table; only rows whose values of every column in ``on`` it has are kept: the points that were run.
        on: those columns, by their names here.
    """
    values = published_table(table)
    if missing := [c for c in names or {} if c not in values]:
        raise UserError(
            f"data/{table}.csv: there is no column {missing[0]} (there are {', '.join(map(str, values.columns))})"
        )
    values = values.rename(columns=dict(names or {}))
    if among is not None:
        for column in on:
            values = values[values[column].isin(set(among[column]))]
    return values


def ware_beside(table: pd.DataFrame, *keys: str, column: str = "share_of_capacity") -> pd.DataFrame:
    """The Ware model's share of group 0 at each point of a figure table, in the conditions that were run.

    Args:
        table: tables.figure_table() of a figure.
        keys: columns that tell its points apart; they stand beside the share.
    """
    points = table[table["group"] == 0].drop_duplicates(list(keys))
    share = ware.bbr_share(points["rate_mbit"], points["base_rtt_ms"], points["buffer_bdp"], points["count"])
    return points[list(keys)].assign(**{column: share})


def part_of_both(table: pd.DataFrame) -> pd.DataFrame:
    """Good runs' rows of group 0, with ``part``: its goodput over that of groups 0 and 1 together."""
    good = table[table["ok"] & table["group"].isin([0, 1])]
    both = good.groupby(["point", "seed"])["goodput_mbit"].transform("sum")
    return good.assign(part=good["goodput_mbit"] / both)[good["group"] == 0]


def show_runs(page: Page, figure: str, published: Mapping[str, float] | None = None) -> None:
    """Show the pictures of a figure's chosen runs (data/curves.yaml), and which runs these are; nothing if there are none.

    Args:
        published: {algorithm: a value of the first panel}, which is dotted.
    """
    if (curves := page.curves(figure)) is None:
        return
    say(f"**{curves.figure.scenario.figure}**. {curves.words}")
    for picture in pictures_of(curves):
        drawing = drawn(picture)
        for cca, value in (published or {}).items():
            drawing.axes[0].axhline(value, color=colour_of_cca(cca), ls=":")
        show(drawing)


def beside_ns3(page: Page) -> tuple[pd.DataFrame, str] | None:
    """Goodput (Mbit/s) of each flow group in ns-3 and here, mean over the seeds; None if ns-3 was not run (``make ns3``).

    Returns:
        Columns "ns-3" and "here", indexed by figure, point, group and algorithm, of the points that this page has; and what
        of ns-3's table is of other points or of another program than today's, in words ("" if nothing is).
    """
    file = page.results / page.scale / "ns3" / f"{page.paper}.parquet"
    if not file.exists():
        return None
    keys = ["figure", "point", "group", "cca"]
    own_table = pd.concat([t[t["ok"]].assign(figure=f"{page.paper}/{name}") for name, t in page.tables.items()])
    ns3_table = read_with(file, [*keys, "goodput_mbit"], remedy="run `make ns3` again")
    notes = []
    if set(ns3_table.get("program", [""])) != {program_identity()}:
        notes.append("These numbers of ns-3 are of another version of its program")
    stale = ~ns3_table["point"].isin(
        set(own_table["point"])
    )  # a point's name has the hash of all that decides its outcome
    if stale.any():
        notes.append(
            f"{ns3_table['point'][stale].nunique()} of its points are not of this page's scenarios and are left out"
        )
    both = {"ns-3": ns3_table[~stale], "here": own_table}
    means_of = {name: table.groupby(keys)["goodput_mbit"].mean() for name, table in both.items()}
    table = pd.concat(means_of, axis=1).loc[means_of["ns-3"].index].reset_index()
    table["point"] = table["point"].str.rsplit(",", n=1).str[0]  # without its fingerprint
    return table.set_index(keys), f"{'; '.join(notes)}: run `make ns3` again." if notes else ""


def between_cuts(page: Page, figure: str) -> pd.DataFrame:
    """Mean time between the window cuts of the first flow of group 1, which is loss-based, for each run of a figure.

    Returns:
        One row per run: the swept paths, ``seed`` and ``between_cuts_s``; infinite for fewer than two cuts. None of what ships.
    """
    rows: list[dict[str, Any]] = []
    for point in [] if page.shipped else page.figures[figure].points:
        table = page.tables[figure]
        for seed in sorted(table.loc[table["point"] == point.label, "seed"].unique()):
            samples = page.samples(figure, ["time_s", "flow", "group", "ssthresh"], int(seed), **_words(point.values))
            cuts = loss_epochs(samples, 1)
            apart = float(np.diff(cuts).mean()) if len(cuts) > 1 else float("inf")
            rows.append(point.values | {"seed": int(seed), "between_cuts_s": apart})
    return pd.DataFrame(rows)


def _words(values: Mapping[str, Any]) -> dict[str, Any]:
    """Swept paths as keyword arguments: "." written as "__"."""
    return {path.replace(".", "__"): value for path, value in values.items()}


def good(page: Page, figure: str) -> pd.DataFrame:
    """A figure's good runs, first flow group.

    Returns:
        Its table with ``rate`` and ``RTT`` in words, ``setting`` (both) and ``qd_mean``, ``qd_p25`` ... ``qd_max``: queueing delays in base
        RTTs.
    """
    table = page.tables[figure]
    first_group = table[table["ok"] & (table["group"] == 0)]
    rate, rtt = first_group["rate_mbit"].map("{:g} Mbit/s".format), first_group["base_rtt_ms"].map("{:g} ms".format)
    delays = {
        f"qd_{p}": first_group[f"queue_ms_{p}"] / first_group["base_rtt_ms"]
        for p in ("mean", "p25", "p50", "p75", "p95", "max")
    }
    return first_group.assign(rate=rate, RTT="RTT " + rtt, setting=rate + ", " + rtt, **delays)


def means(
    table: pd.DataFrame, keys: list[str], columns: Mapping[str, str], fmt: Any = "{:.2f}", caption: str = ""
) -> Any:
    """Means over the runs, for show().

    Args:
        table: of one figure.
        keys: columns that tell the rows apart; they and cases stand in words.
        columns: {column: heading}.
        fmt: of all numbers, or {heading: of its numbers}.
    """
    averages = table.groupby(keys)[list(columns)].mean().rename(columns=dict(columns))
    (figure,) = set(table["figure"])
    if "case" in keys:
        averages = averages.rename(index=lambda case: words_of_case(case, figure), level="case")
    points = full_figures()[figure].points
    averages = averages.rename_axis(index=[label_of_trait(key, points) for key in keys])
    shown = averages.style.format_index(plain).format(fmt)
    return shown.set_caption(caption) if caption else shown


def both_sides(table: pd.DataFrame, names: tuple[str, str]) -> pd.DataFrame:
    """Goodput (Mbit/s) of groups 0 and 1 and how much of their packets is marked, and group 0's part, by case."""
    ok = table[table["ok"]]
    wide = ok.pivot_table(index="case", columns="group", values=["goodput_mbit", "ecn_marked"])
    labels = {"ecn_marked": "marked", "goodput_mbit": "Mbit/s"}
    headings = [f"{labels[place[0]]}, {names[int(place[1])]}" for place in wide.columns.to_flat_index()]
    part = ok[ok["group"] == 0].groupby("case")["share_of_goodput"].mean()
    return wide.set_axis(headings, axis=1).assign(**{f"{names[0]}'s part": part})
