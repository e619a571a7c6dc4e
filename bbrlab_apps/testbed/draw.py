"""A testbed and the lab's runs of what it looks like, over each other and in numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bbrlab.measure.metrics import GROUP
from bbrlab.results.algorithm_table import group_colour, label_of_cca
from bbrlab.show.plots.style import grey_outside, set_style
from bbrlab_apps.study.sources import RunSource
from bbrlab_apps.testbed.estimate import Estimate, clock_of, rate_over_time, rates_between
from bbrlab_apps.testbed.recording import Flow, complete

BINS = 150  # of the time, at most
TESTBED, LAB = "testbed", "lab"
LABELS = {"goodput": "goodput (Mbit/s)", "rtt": "smoothed RTT (ms)"}


@dataclass(frozen=True)
class Row:
    """A number of a group of flows in the testbed and in the lab: the mean over the runs, the least and the most. NaN: there is none."""

    group: str
    metric: str
    testbed: float
    lab: float
    low: float
    high: float


def numbers(estimate: Estimate, runs: Sequence[RunSource]) -> list[Row]:
    """Goodput, RTT and retransmissions of each group in the window."""
    rows = []
    low_s, high_s = estimate.window_s
    for i, group in enumerate(estimate.groups):
        inside = [f.samples[(f.samples["time_s"] + clock_of(group)).between(low_s, high_s)] for f in group.flows]
        goodput = rate_over_time([(clock_of(group), f) for f in group.flows], low_s, high_s, bins=1)[1]
        rtts = [float(t["rtt_ms"].mean()) for t in inside if t["rtt_ms"].notna().any()]
        lost = [float(t["retransmits"].sum()) for t in inside if t["retransmits"].notna().any()]
        testbed = {
            "goodput_mbit": float(goodput.mean()),
            "rtt_ms_mean": float(np.mean(rtts)) if rtts else math.nan,
            "retransmits": sum(lost) if lost else math.nan,
        }
        for metric, value in testbed.items():
            lab = [math.nan if (v := GROUP[metric].of_group(run.summary["groups"][i])) is None else v for run in runs]
            rows.append(Row(name_of(estimate, i), metric, value, float(np.mean(lab)), min(lab), max(lab)))
    return rows


def name_of(estimate: Estimate, number: int) -> str:
    """What a group is called in pictures and tables."""
    group = estimate.groups[number]
    same = sum(other.cca == group.cca for other in estimate.groups) > 1
    count = f"{len(group.flows)} " if len(group.flows) > 1 else ""
    return f"{count}{label_of_cca(group.cca)}{f' (flows.{number})' if same else ''}"


def draw(estimate: Estimate, runs: Sequence[RunSource]) -> Figure:
    """Goodput and RTT over time: the testbed as full lines, the lab as dashes, with a band from the least to the most of its runs."""
    mpl.use("Agg")
    set_style(math=False)
    bin_s = max(
        [
            estimate.duration_s / BINS,
            *(2 * float(f.samples["seconds"].median()) for g in estimate.groups for f in g.flows),
        ]
    )
    names = [name_of(estimate, i) for i in range(len(estimate.groups))]
    parts = [
        _curves(g.flows, clock_of(g), bin_s, name, TESTBED, -1) for g, name in zip(estimate.groups, names, strict=True)
    ]
    for number, run in enumerate(runs):
        at = -_first_data_s(run)
        parts += [_curves(flows, at, bin_s, names[i], LAB, number) for i, flows in _flows_of(run).items()]
    table = pd.concat(parts, ignore_index=True)
    colours = {name: group_colour([g.cca for g in estimate.groups], i) for i, name in enumerate(names)}
    figure, grid = plt.subplots(2, 1, figsize=(10.5, 6.6), sharex=True, layout="constrained")
    for axes, (metric, label) in zip(grid, LABELS.items(), strict=True):
        of = table[table["metric"] == metric].dropna()
        sns.lineplot(of, x="time_s", y="value", hue="group", style="who", hue_order=names, style_order=[TESTBED, LAB], palette=colours,
                     dashes={TESTBED: "", LAB: (3, 1.2)}, errorbar=("pi", 100), lw=1.6, ax=axes, legend=axes is grid[0])  # fmt: skip
        axes.set(xlabel="", ylabel=label, xlim=(0, estimate.duration_s))
        axes.set_ylim(bottom=0)
        grey_outside(axes, estimate.window_s, 0.0, estimate.duration_s)
    grid[1].set_xlabel("time (s); grey: outside of the window of the numbers")
    handles, labels = grid[0].get_legend_handles_labels()
    grid[0].get_legend().remove()
    words = {LAB: f"{LAB}: mean and range of {len(runs)} runs"} if len(runs) > 1 else {}
    kept = [(h, words.get(n, n)) for h, n in zip(handles, labels, strict=True) if n not in ("group", "who")]
    figure.legend(*zip(*kept, strict=True), loc="outside upper center", ncols=min(6, len(kept)), frameon=False)
    return figure


def _curves(flows: Sequence[Flow], at: float, bin_s: float, group: str, who: str, run: int) -> pd.DataFrame:
    """Goodput, summed, and RTT, averaged, of a group's flows, in bins that are the same for all groups and runs.

    Args:
        at: when the flows' clock was 0.
    """
    begin_s, end_s = min(f.start_s for f in flows) + at, max(f.end_s for f in flows) + at
    first = math.ceil(begin_s / bin_s)
    last = max(math.floor(end_s / bin_s), first + 1)
    edges = np.arange(first, last + 1) * bin_s
    goodput = pd.DataFrame(
        {"time_s": edges[:-1] + bin_s / 2, "value": rates_between([(at, f) for f in flows], edges), "metric": "goodput"}
    )
    rows = pd.concat([f.samples.assign(time_s=f.samples["time_s"] + at) for f in flows])
    return pd.concat([goodput, _binned(rows["time_s"], rows["rtt_ms"], bin_s)]).assign(group=group, who=who, run=run)


def _binned(times: pd.Series[float], values: pd.Series[float], bin_s: float) -> pd.DataFrame:
    means = values.groupby(np.floor(times / bin_s)).mean()
    return pd.DataFrame({"time_s": (means.index.to_numpy() + 0.5) * bin_s, "value": means.to_numpy(), "metric": "rtt"})


def _first_data_s(run: RunSource) -> float:
    """When a run's first data left, with which the files' clock begins."""
    begins = [GROUP["first_data_s"].of_group(group) for group in run.summary["groups"]]
    return min((s for s in begins if s is not None), default=0.0)


def _flows_of(run: RunSource) -> dict[int, list[Flow]]:
    """The flows of a run, group by group, as if they had been recorded on a testbed."""
    samples = run.samples(["time_s", "flow", "group", "bytes_acked", "srtt_us"])
    flows: dict[int, list[Flow]] = {}
    for (group, flow), rows in samples[(samples["flow"] >= 0) & (samples["bytes_acked"] > 0)].groupby(
        ["group", "flow"]
    ):
        seconds = rows["time_s"].diff()
        table = complete(pd.DataFrame({
            "time_s": rows["time_s"], "seconds": seconds, "rtt_ms": rows["srtt_us"] / 1e3,
            "goodput_mbit": rows["bytes_acked"].diff() * 8e-6 / seconds,
        }))  # fmt: skip
        if len(table):
            flows.setdefault(int(str(group)), []).append(Flow(f"flow {flow}", table))
    return flows
