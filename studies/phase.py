"""The share over the RTT's fraction of a packet's time: the scenarios questions/phase*.yaml (docs/explanation/phase.md)."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.tables import point_means
from bbrlab.scenario.frames import FRAME_BYTES
from studies.figure_plots import curves
from studies.page import load_page

EXACT, NOISY = "exact", "with noise"
KEYS = ["rate_mbit", "pair", "flows", "rtt", "hosts"]


def over_fraction(table: pd.DataFrame, moved: str = "network.rtt_ms") -> pd.DataFrame:
    """The first group's rows of a figure's table, by what the scenarios vary.

    Args:
        table: tables.figure_table() of one of the scenarios.
        moved: the column of the RTT in ms that moves by fractions of a packet's time.

    Returns:
        The rows with the columns ``pair``, ``flows`` (of both groups), ``rtt`` (of the moved flows, whole ms), ``hosts`` (EXACT or NOISY),
        ``fraction``: of a packet's time by which the RTT is longer than whole ms, and ``part``: of what both groups carry.
    """
    keys = ["point", "seed"]
    other = table.loc[table["group"] == 1, [*keys, "cca", "count", "goodput_mbit"]]
    both = table[table["group"] == 0].merge(other, on=keys, suffixes=("", "_other"))
    rtt_ms = both[moved]
    base_ms = np.floor(rtt_ms / 10) * 10  # they move by less than 2 ms from 40 or 80
    packets = (rtt_ms - base_ms) * both["rate_mbit"] * 1e3 / (FRAME_BYTES * 8)
    return both.assign(
        pair=both["cca"].map(label_of_cca) + " v " + both["cca_other"].map(label_of_cca),
        flows=both["count"] + both["count_other"],
        rtt=base_ms,
        hosts=np.where(both["case"].str.endswith("-off"), EXACT, NOISY),
        fraction=(np.round(packets * 8) / 8) % 1,
        part=both["goodput_mbit"] / (both["goodput_mbit"] + both["goodput_mbit_other"]),
    )


def spreads(table: pd.DataFrame) -> pd.DataFrame:
    """How much the part of the first group hangs on the fraction, and on the seed.

    Args:
        table: over_fraction().

    Returns:
        A row for each rate, pair, number of flows and RTT; columns ``mean, HOSTS`` over all fractions and seeds, ``over fractions, HOSTS``: the
        largest mean over the seeds less the smallest, ``over seeds, HOSTS``: the mean over the fractions of the largest seed's part
        less the smallest one's.
    """
    means = point_means(table, [*KEYS, "fraction"], "part").groupby(KEYS)["mean"]
    seeds = table[table["ok"]].groupby([*KEYS, "fraction"])["part"].agg(lambda part: part.max() - part.min())
    columns = {
        "mean": means.mean(),
        "over fractions": means.max() - means.min(),
        "over seeds": seeds.groupby(level=KEYS).mean(),
    }
    by_hosts = pd.DataFrame(columns)
    return pd.DataFrame(
        {f"{name}, {hosts}": by_hosts.xs(hosts, level="hosts")[name] for name in columns for hosts in (EXACT, NOISY)}
    )


def draw(table: pd.DataFrame) -> Figure:
    """The first flow's part over the fraction, with noise and at the exact RTT: an axes for each pair and rate."""
    return curves(
        table.assign(place=table["pair"] + ", " + table["rate_mbit"].map("{:g} Mbit/s".format)),
        "fraction",
        "part",
        "hosts",
        "place",
        log_x=False,
        labels=("the RTT is longer by so much of a packet's time", "the first flow's part"),
        of_whole=True,
    )


def draw_second(table: pd.DataFrame) -> Figure:
    """The same of questions/phase_second, in which only the second flow's RTT moves: an axes for each pair and RTT of the second flow.

    Grey is what theory has for long averages: half with equal RTTs, of Reno 0.6 to 0.8 with 40 and 80 ms (docs/explanation/phase.md).
    """
    pairs = table["pair"] + ", 40 and " + table["rtt"].map("{:g} ms".format)
    figure = curves(
        table.assign(place=pairs),
        "fraction",
        "part",
        "hosts",
        "place",
        log_x=False,
        labels=("the second flow's RTT is longer by so much of a packet's time", "the first flow's part"),
        of_whole=True,
    )
    for axes in figure.axes:
        if axes.get_title().endswith("40 and 40 ms"):
            axes.axhline(0.5, color="0.85", zorder=0)
        elif axes.get_title().startswith("Reno"):
            axes.axhspan(0.6, 0.8, color="0.85", zorder=0)
    return figure


def draw_period(table: pd.DataFrame) -> Figure:
    """A BBR flow's share beside CUBIC over the RTT of the one that moves: an axes for each BBR, a line for each flow that moves.

    Dotted: where the path of the moving flow holds one more whole packet.

    Args:
        table: tables.figure_table() of questions/phase_period.
    """
    moved = "network.rtt_ms"
    rows = table.assign(
        pair=table["cca"].map(label_of_cca) + " v CUBIC",
        moves=np.where(table["case"].str.endswith("cubic-moves"), "CUBIC's RTT moves", "BBR's RTT moves"),
    )
    figure = curves(
        rows,
        moved,
        "share_of_capacity",
        "moves",
        "pair",
        log_x=False,
        labels=("RTT of one flow (ms); the other one has 40 ms", "the BBR flow's share of capacity"),
    )
    packet_ms = FRAME_BYTES * 8 / (table["rate_mbit"].iloc[0] * 1e3)
    lowest, highest = rows[moved].min(), rows[moved].max()
    for axes in figure.axes:
        for packets in range(int(lowest / packet_ms) + 1, int(highest / packet_ms) + 1):
            axes.axvline(packets * packet_ms, color="0.6", lw=1, ls=":", zorder=0)
    return figure


def main() -> None:
    """Draw phase_shares.png, phase_second.png and phase_period.png of docs/images, of the largest scale that there is."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    folder = parser.parse_args().out
    tables = load_page("full", "questions").tables
    draw(over_fraction(tables["phase"])).savefig(folder / "phase_shares.png", dpi=90)
    draw_second(over_fraction(tables["phase_second"], "flows.1.rtt_ms")).savefig(folder / "phase_second.png", dpi=90)
    draw_period(tables["phase_period"]).savefig(folder / "phase_period.png", dpi=90)


if __name__ == "__main__":
    main()
