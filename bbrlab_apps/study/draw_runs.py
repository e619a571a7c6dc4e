"""Draws one or several runs: over time, on one axis, and distributions of their samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bbrlab.base.errors import UserError
from bbrlab.measure.bbr_record import STATES
from bbrlab.measure.phases import phases
from bbrlab.measure.summary import path_words
from bbrlab.results.algorithm_table import QUEUE_COLOUR, QUIET, colour_of_link, group_colour, label_of_cca
from bbrlab.results.series import DEFAULT, OF_ACKS, STATE, columns_of, names, series_of, values_of
from bbrlab.scenario.rates import before, buffer_full_ms
from bbrlab.show.plots.style import COLUMNS, grey_outside
from bbrlab_apps.study.names import resolve
from bbrlab_apps.study.sources import RunSource

DASHES: tuple[Any, ...] = ("-", (0, (5, 1)), (0, (1, 1)), (0, (6, 1, 1, 1)))
RUNS_MAX = len(DASHES)
SUMMED = "goodput"  # the series that is a sum over a group's flows; of others it is their mean
# No algorithm and no link has one of these (results/algorithm_table.py), nor looks like one to the colour-blind. Most are pale, as areas
# may be and lines may not.
STATE_COLOURS = {
    "Startup": "#BBBBCC", "Drain": "#EEEECC", "DOWN": "#88CCEE", "CRUISE": "#DDEEFF", "REFILL": "#DDCC77", "UP": "#AA2222",
    "ProbeRTT": "#000000",
}  # fmt: skip


def chosen(wanted: Sequence[str], *, of_acks: bool = False) -> list[str]:
    """Names of series. UserError for one that there is not, or not in this table."""
    there = names(of_acks=of_acks)
    for name in set(wanted) & set(names(of_acks=not of_acks)) - set(there):
        raise UserError(
            f"--y {name}: {'samples have it and ACKs do not; leave --acks out' if of_acks else 'ACKs have it; give --acks'}"
        )
    default = OF_ACKS if of_acks else DEFAULT
    return [resolve("--y", name, there, "docs/howto/ask.md has the list") for name in wanted] or list(default)


def over_time(runs: Sequence[RunSource], wanted: Sequence[str]) -> Figure:
    """Stacked curves of one time axis: colours are algorithms, dashes are runs. UserError for more runs than can be told apart.

    Args:
        wanted: names of series (chosen()); the default ones are left out where no run has them.
    """
    if len(runs) > RUNS_MAX:
        raise UserError(
            f"{len(runs)} runs over each other are too many: at most {RUNS_MAX} can be told apart over time; use --kind cdf or box"
        )
    samples = [_samples(run, wanted) for run in runs]
    rows = [name for name in wanted if _has(name, runs, samples) or name not in DEFAULT]
    strips = (
        [(run, *strip) for run, table in zip(runs, samples, strict=True) for strip in _strips(table)]
        if STATE in rows
        else []
    )
    curves = [name for name in rows if name != STATE]
    heights = [1.9] * len(curves) + ([0.42 + 0.27 * len(strips)] if strips else [])
    if not heights:
        raise UserError(f"no run has {' or '.join(wanted)}{_why(wanted, runs)}")
    figure, grid = plt.subplots(len(heights), 1, figsize=(10.5, 0.7 + sum(heights)), sharex=True, squeeze=False, layout="constrained",
                                height_ratios=heights)  # fmt: skip
    for axes, name in zip(grid.flat, curves, strict=False):
        _curves(axes, name, runs, samples)
        if series_of(name).of_flows and not runs[0].of_acks and _have_several(runs):
            axes.set_ylabel(f"{axes.get_ylabel()}\n{'sum of flows' if name == SUMMED else 'mean of flows'}")
    if strips:
        _states(grid.flat[-1], strips, several=len(runs) > 1)
    end_s = max(run.scenario.duration_s for run in runs)
    windows = [run.scenario.window_s for run in runs]  # no metric is of what lies outside of all of them
    for axes in grid.flat:
        grey_outside(axes, (min(low for low, _ in windows), max(high for _, high in windows)), 0.0, end_s)
    when = ["virtual time (s); grey: outside of the metrics' window", *_sampled(runs)]
    grid.flat[-1].set(xlabel="; ".join(when), xlim=(0, end_s))
    handles, labels = _legend(runs, wanted)
    figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)), frameon=False)
    figure.align_ylabels([axes for axes in grid.flat if axes.get_ylabel()])
    return figure


def _samples(run: RunSource, wanted: Sequence[str]) -> pd.DataFrame:
    columns = [c for name in wanted for c in columns_of(run.scenario, name, of_acks=run.of_acks)]
    return run.samples(list(dict.fromkeys(["time_s", "flow", "group", *columns])))


def _has(name: str, runs: Sequence[RunSource], samples: Sequence[pd.DataFrame]) -> bool:
    if name == STATE:
        return any(table["bbr_state"].notna().any() for table in samples)
    return any(values_of(run.scenario, name, table) for run, table in zip(runs, samples, strict=True))


def _why(wanted: Sequence[str], runs: Sequence[RunSource]) -> str:
    """Why no run has the queue's delay, for the end of a message; empty if it is of another series, or their traces are here."""
    files = [run.scenario.files for run in runs if not run.scenario.network.rate_is_known]
    if "queue" not in wanted or not files:
        return ""
    as_run = f"{' and '.join(files[0])} as {'it was' if len(files[0]) == 1 else 'they were'} run"
    return f": when the link sends is not known without {as_run}; put that back, or draw queue_bytes"


def _curves(axes: Axes, name: str, runs: Sequence[RunSource], samples: Sequence[pd.DataFrame]) -> None:
    levels: dict[float, float] = {}  # at which the buffer is full: until when
    for number, (run, table) in enumerate(zip(runs, samples, strict=True)):
        for group, (times, values) in values_of(run.scenario, name, table).items():
            axes.plot(times, values, lw=1.1, **_look(run, number, group))
        for network in (
            run.scenario.network.bottlenecks if name == "queue" and run.scenario.network.rate_is_known else []
        ):
            rate = before(network, run.scenario.duration_s)
            full = buffer_full_ms(rate, 0.0, run.scenario.duration_s, network.buffer_bytes)
            if max(full[1]) < 4 * max(axes.dataLim.y1, 1e-9):
                axes.plot(*full, color=QUIET, lw=0.9, ls=":")
                levels[round(float(full[1][-1]), 3)] = full[0][-1]
    for level, end_s in levels.items():
        axes.annotate(
            "full buffer",
            (end_s, level),
            xytext=(-3, 1),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=QUIET,
        )
    axes.set_ylabel(series_of(name).label.replace(" (", "\n("))
    if axes.dataLim.y0 >= 0 and axes.dataLim.y1 > 0:  # with room above a line that is level, and for the words
        axes.set_ylim(0, (1.2 if levels else 1.05) * axes.dataLim.y1)


def _look(run: RunSource, number: int, group: int) -> dict[str, Any]:
    """Colour and dashes of a curve: colours are flow groups, dashes are runs.

    Args:
        group: of flows; -1: the bottleneck; of several links in a row -1, -2 and on.
    """
    if group >= 0:
        colour = group_colour([flow.cca for flow in run.scenario.flows], group)
    else:
        colour = QUEUE_COLOUR if run.scenario.network.links is None else colour_of_link(-1 - group)
    return {"color": colour, "ls": DASHES[number % RUNS_MAX]}


def _strips(table: pd.DataFrame) -> list[tuple[int, int]]:
    """The first flow of each group that tells its states, and the group."""
    with_state = table[table["bbr_state"].notna() & (table["flow"] >= 0)]
    return [(int(flow), int(str(group))) for group, flow in with_state.groupby("group")["flow"].min().items()]


def _sampled(runs: Sequence[RunSource]) -> list[str]:
    """How coarse curves are; nothing of records of ACKs."""
    every_s = sorted({f"{1 / run.scenario.sample_hz:g}" for run in runs if not run.of_acks}, key=float)
    return [f"sampled every {' or '.join(every_s)} s"] if every_s else []


def _states(axes: Axes, strips: Sequence[tuple[RunSource, int, int]], *, several: bool) -> None:
    """A bar for each flow, coloured by state: each stay where ACKs were recorded, else as fine as the samples are."""
    used: set[str] = set()
    for row, (run, flow, _) in enumerate(strips):
        stays = phases(run.states[0], flow)
        ends = stays["end_s"].fillna(run.scenario.duration_s)
        for state, of in stays.assign(end=ends).groupby("state"):
            used.add(str(state))
            spans = list(zip(of["start_s"], of["end"] - of["start_s"], strict=True))
            axes.broken_barh(spans, (row - 0.4, 0.8), color=STATE_COLOURS[str(state)], lw=0)
    texts = [
        f"{_group_name(run, group, numbered=False)}{f', {run.name}' if several else ''}" for run, _, group in strips
    ]
    axes.set_yticks(range(len(strips)), texts, fontsize=9)
    axes.set_ylim(len(strips) - 0.5, -0.5)
    axes.grid(visible=False)
    handles = [Patch(facecolor=STATE_COLOURS[s], edgecolor="0.6", label=s) for s in STATES if s in used]
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=len(handles), fontsize=8, handlelength=1,
                columnspacing=1, borderaxespad=0.1, title=_how_exact_states_are([run for run, _, _ in strips]), title_fontsize=8)  # fmt: skip


def _how_exact_states_are(runs: Sequence[RunSource]) -> str:
    """How exact the times of states are."""
    sampled = [run for run in runs if not run.states[1]]
    if not sampled:
        return "state, each change recorded"
    of = "" if len(sampled) == len(runs) else f" in {', '.join(dict.fromkeys(run.name for run in sampled))}"
    every_s = 1 / min(run.scenario.sample_hz for run in sampled)
    return f"state, sampled every {every_s:g} s{of}: shorter stays are not seen"


def _have_several(runs: Sequence[RunSource]) -> bool:
    """Whether any flow group has several flows."""
    return any(flow.count > 1 for run in runs for flow in run.scenario.flows)


def _legend(runs: Sequence[RunSource], wanted: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Colours of the flow groups, of several links in a row where they are drawn, and, of several runs, their dashes."""
    groups: dict[tuple[str, Any], None] = {}  # one name may be of two colours in runs of other groups
    for run in runs:
        ccas = [flow.cca for flow in run.scenario.flows]
        for group in range(len(ccas)):
            groups[_group_name(run, group, numbered=_have_several(runs)), group_colour(ccas, group)] = None
    handles: list[Any] = [Line2D([], [], color=colour, lw=2.5) for _, colour in groups]
    labels = [name for name, _ in groups]
    drawn = any(not series_of(name).of_flows for name in wanted)
    numbers = max(len(run.scenario.network.links or []) for run in runs) if drawn else 0
    handles += [Line2D([], [], color=colour_of_link(i), lw=2.5) for i in range(numbers)]
    labels += [f"link {i}" for i in range(numbers)]
    if len(runs) > 1:
        handles += [Line2D([], [], color=QUIET, ls=dashes, lw=1.6) for dashes in DASHES[: len(runs)]]
        labels += [run.name for run in runs]
    return handles, labels


def distributions(runs: Sequence[RunSource], wanted: Sequence[str], kind: str) -> Figure:
    """Distributions of the samples in the runs' windows, one axes for each series.

    Args:
        wanted: names of series (chosen()), without STATE.
        kind: cdf or box.
    """
    columns = min(COLUMNS, len(wanted))
    rows = -(-len(wanted) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(5.2 * columns, 3.6 * rows), squeeze=False, layout="constrained")
    for axes in list(grid.flat)[len(wanted) :]:
        axes.set_visible(False)
    for axes, name in zip(grid.flat, wanted, strict=False):
        data = _in_window(runs, name)
        if kind == "cdf":
            for number, group in data[["number", "group"]].drop_duplicates().itertuples(index=False):
                of_group = data[(data["number"] == number) & (data["group"] == group)]
                sns.ecdfplot(x=of_group["value"], ax=axes, lw=1.8, **_look(runs[number], number, group))
            axes.set(xlabel=series_of(name).label, ylabel="fraction of samples", ylim=(0, 1.02))
            axes.set_xlim(left=0 if axes.dataLim.x0 >= 0 else None)
        else:
            looks = {
                line: _look(runs[n], n, g)["color"]
                for line, n, g in data[["line", "number", "group"]].drop_duplicates().itertuples(index=False)
            }
            sns.boxplot(
                data=data,
                x="line",
                y="value",
                hue="line",
                palette=looks,
                ax=axes,
                fliersize=1,
                linewidth=1,
                legend=False,
            )
            axes.set(xlabel="", ylabel=series_of(name).label)
            axes.set_ylim(bottom=0 if axes.dataLim.y0 >= 0 else None)
            axes.tick_params(axis="x", rotation=20)
    if kind == "cdf":
        handles, labels = _legend(runs, wanted)
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)), frameon=False)
    return figure


def _line_name(run: RunSource, group: int, *, several: bool) -> str:
    flows = run.scenario.flows
    if group < 0:
        which = "bottleneck" if run.scenario.network.links is None else f"link {-1 - group}"
        return which if not several else run.name if which == "bottleneck" else f"{run.name}: {which}"
    text = _group_name(run, group, numbered=any(flow.count > 1 for flow in flows))
    return f"{run.name}: {text}" if several else text


def _group_name(run: RunSource, group: int, *, numbered: bool) -> str:
    """A flow group's algorithm, with the number of its flows, which group where several have that algorithm, and its links in a row."""
    flows = run.scenario.flows
    same = sum(flow.cca == flows[group].cca for flow in flows) > 1
    number = f"{flows[group].count} " if numbered else ""
    return (
        f"{number}{label_of_cca(flows[group].cca)}{f' (flows.{group})' if same else ''}{path_words(run.summary, group)}"
    )


def _in_window(runs: Sequence[RunSource], name: str) -> pd.DataFrame:
    """The samples of a series: columns value, number (of the run), group and line (what they are called)."""
    parts = []
    for number, run in enumerate(runs):
        low, high = run.scenario.window_s
        for group, (times, values) in values_of(run.scenario, name, _samples(run, [name])).items():
            inside = (times >= low) & (times <= high)
            line = _line_name(run, group, several=len(runs) > 1)
            parts.append(pd.DataFrame({"value": values[inside]}).assign(number=number, group=group, line=line))
    if not parts:
        raise UserError(f"no run has samples of {name} in its window{_why([name], runs)}")
    return pd.concat(parts, ignore_index=True)
