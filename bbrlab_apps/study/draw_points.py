"""Draws the points of a study or a figure: means over a swept field, their spread, distributions of samples, heat maps."""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from bbrlab.base.errors import UserError
from bbrlab.claims.expected import metrics_read
from bbrlab.measure import metrics
from bbrlab.measure.metrics import label_of
from bbrlab.results.algorithm_table import ALGORITHMS, group_colour, label_of_cca
from bbrlab.results.series import STATE, columns_of, names, series_of, values_of
from bbrlab.results.tables import CONDITIONS, point_means
from bbrlab.show.plots.style import (
    LETTER,
    MARKERS,
    bounds_of,
    in_order,
    interval_bars,
    is_number,
    line_looks,
    log2_axis,
    multiples,
    plain,
    rows_with,
    short_number,
)
from bbrlab_apps.site import charts
from bbrlab_apps.site.case_words import words_of_case
from bbrlab_apps.study.names import resolve
from bbrlab_apps.study.sources import PointsSource

FLOWS = "flows"  # the dimension of the flow groups
WINDOW = "window_s"
PANELS_MAX = 12
LINES_MAX = 12
CELLS_TOLD = 150  # of a heat map, that have room for their numbers
LEGEND_MARK = 9  # letters that a line and the spaces around its name take in a legend
ASIDE_PT = 5.0, 20.0  # between two lines on an axis of numbers, and all of them at most, in points of 1/72 inch
EQUAL_NAME = "equal share"
PUBLISHED = [
    "published",
    "published_low",
    "published_high",
]  # columns: what claims expect, and the bounds of their tolerance
PUBLISHED_NAME, ALLOWED_NAME = "published", "what its claim allows"
# Metrics that an equal share is drawn for, and its columns: what each group had if all flows had the same.
EQUAL = {"share_of_capacity": "equal_of_capacity", "share_of_goodput": "equal_of_goodput"}
ONE_LINE = 0.01  # equal shares that are nearer than this are drawn as one
DODGE = 0.16, 0.6  # of the distance of two names on an axis: between two lines there, and all of them at most
# What a field of a scenario, or a condition, is called on an axis: as on the site, but sizes are numbers here, and have a unit.
LABELS = charts.LABELS | {
    "network.buffer.bytes": "buffer (bytes)", "network.qdisc.kind": "queue discipline",
    "buffer_bdp": "buffer (BDP)", "buffer_bytes": "buffer (bytes)", "rate_mbit": "rate (Mbit/s)", "base_rtt_ms": "base RTT (ms)",
    "qdisc": "queue discipline", "random_loss": "random loss", "duration_s": "duration (s)", WINDOW: "window (s)",
}  # fmt: skip
OF_FLOWS = charts.OF_FLOWS | {"cca": "algorithm of {}", "count": "number of {} flows", "bytes": "size of {} (bytes)"}


class NotOnePictureError(UserError):
    """There is too much to draw for one picture; the message says how to draw a part of it."""


@dataclass(frozen=True)
class Choice:
    """What is drawn of points."""

    y: str  # a metric; with ``sampled`` a series of series.names()
    # x, hue: columns, FLOWS, or None: nothing is there
    x: str | None
    hue: str | None
    panel: list[str]  # columns, each combination of whose values has axes of its own
    sampled: bool = False  # whether the distribution of samples is drawn, and not of a metric


def label(column: str, table: pd.DataFrame) -> str:
    """What a column is called on an axis or in a legend: of flow groups with the name of their algorithm, if they have one."""
    if column in LABELS:
        return LABELS[column]
    if of := re.fullmatch(r"flows\.(\d+)\.(.+)", column):
        ccas = table.loc[table["group"] == int(of[1]), "cca"].unique()
        return OF_FLOWS.get(of[2], f"{of[2]} of {{}}").format(
            label_of_cca(ccas[0]) if len(ccas) == 1 else f"flows.{of[1]}"
        )
    return label_of(column).removeprefix("network.")


def with_flows(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the column FLOWS: each row's algorithm, with the number of its flows where there are several of any, and which group
    where several groups have that algorithm."""
    groups = table.groupby("cca")["group"].nunique()
    several = set(groups.index[groups > 1])
    names = [
        label_of_cca(cca) + (f" (flows.{g})" if cca in several else "")
        for cca, g in zip(table["cca"], table["group"], strict=True)
    ]
    counts = table.groupby(names)["count"].agg(["min", "max"])
    numbers = {name: f"{few} " if few == most else f"{few} to {most} " for name, few, most in counts.itertuples()}
    return table.assign(**{FLOWS: [(numbers[name] if _has_several(table) else "") + name for name in names]})


def _has_several(table: pd.DataFrame) -> bool:
    """Whether any flow group has several flows."""
    return bool((table["count"] > 1).any())


def with_equal_share(table: pd.DataFrame) -> pd.DataFrame:
    """The table of all groups with the columns of EQUAL: a group's part of the flows of its direction, of what these carry together.

    Null of a group that is alone, where a flow of the run ends by itself, and where the flows carry more than one link: they cross several.
    """
    runs = table.groupby(["point", "seed", "direction"])
    part = table["count"] / runs["count"].transform("sum")
    ends = table[["unfinished_flows", "unfinished"]].notna().any(axis=1)
    ends = ends.groupby([table["point"], table["seed"]]).transform("any")
    none = ends | (part == 1) | (runs["share_of_capacity"].transform("sum") > 1)
    return table.assign(**{EQUAL[share]: (part * runs[share].transform("sum")).mask(none) for share in EQUAL})


def where(table: pd.DataFrame, swept: list[str], wanted: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that have some values. UserError for a field that there is not, or a value that it has not."""
    fields = [*swept, FLOWS, "cca", "group", *CONDITIONS]
    for word, value in wanted.items():
        column = resolve("--where", word, fields, f"there are {', '.join(fields)}")
        there = table["cca"].map(label_of_cca) if column == FLOWS else table[column]
        same = there.map(lambda v, value=value: v == value or str(v) == str(value))
        if not same.any():
            raise UserError(f"--where {word}={value}: {column} has {', '.join(plain(v) for v in in_order(there))}")
        table = table[same]
    return table


def choose(
    source: PointsSource, table: pd.DataFrame, kind: str, x: str | None, y: str | None, hue: str | None
) -> Choice:
    """What is drawn, where somebody said some of it, or nothing.

    UserError for a name that there is not; if there is too much for one picture.

    Args:
        table: of the source, with_flows(), as far as it is drawn.
        kind: line, box, cdf or heat.
    """
    if kind == "cdf" and x:
        raise UserError(f"--x {x}: is not of a cdf, on whose axis is the metric (--y); --hue gives each value a curve")
    columns = [*source.swept, FLOWS, "cca", "group", "seed", *CONDITIONS]
    others = f"there are {', '.join(columns)}"
    sampled = kind == "cdf" and (y is None or y not in metrics.METRICS)
    if sampled:
        y = resolve("--y", y or "queue", [n for n in names() if n != STATE], "docs/howto/ask.md has the list")
        of_flows = series_of(y).of_flows
    else:
        there = [m for m in metrics.METRICS if m in table and table[m].notna().any()]
        y = (
            resolve("--y", y, there, "docs/reference/results.md has all metrics")
            if y
            else _default_metric(source, there)
        )
        of_flows = y in metrics.GROUP
    free = [c for c in source.swept if table[c].nunique(dropna=False) > 1]
    x = resolve("--x", x, columns, others) if x else None
    hue = resolve("--hue", hue, columns, others) if hue else None
    on_an_axis = table[FLOWS].nunique() > 1 and any(c and c != FLOWS and _tells_flows(table, c) for c in (x, hue))
    free += [FLOWS] if of_flows and not on_an_axis else []
    left = [c for c in free if c not in (x, hue) and not (of_flows and c != FLOWS and _tells_flows(table, c))]
    if x is None and kind != "cdf":
        # The first swept field, of a published figure the numbers of which there are most, as on the site; algorithms, which have colours, only if there is no
        # other, and cases, which come before all, if no field.
        fields = [c for c in left if c not in ("case", FLOWS)]
        if source.claims_file is not None:
            fields.sort(key=lambda c: -_numbers_in(table, c))
        fields.sort(key=lambda c: c.endswith(".cca"))
        x = next((c for c in [*fields, *left] if c != hue), FLOWS)
        left = [c for c in left if c != x]
    if hue is None and left:
        fields = [c for c in left if c not in ("case", FLOWS)]
        hue = FLOWS if FLOWS in left and kind != "heat" else [*fields, *left][0]
        left.remove(hue)
    elif hue is None and x == FLOWS:
        hue = FLOWS  # its colours
    left = [c for c in left if c != FLOWS or table[FLOWS].nunique() > 1]
    if kind == "heat" and hue in (None, FLOWS):
        raise UserError("--kind heat: needs two fields that are swept; use line or box")
    return Choice(y, x, hue, left, sampled)


def _numbers_in(table: pd.DataFrame, column: str) -> int:
    """How many numbers a column has; 0 of one with words."""
    values = set(table[column])
    return len(values) if all(is_number(v) for v in values) else 0


def _tells_flows(table: pd.DataFrame, column: str) -> bool:
    """Whether a column tells the same rows apart as FLOWS."""
    pairs = table[[column, FLOWS]].drop_duplicates()
    return len(pairs) == pairs[column].nunique(dropna=False) == pairs[FLOWS].nunique()


def order(values: pd.Series) -> list[Any]:
    """The values of a column once each: numbers by their size, others as they come in the scenario."""
    once = list(dict.fromkeys(values))
    return in_order(once) if all(is_number(v) for v in once) else once


def _default_metric(source: PointsSource, there: list[str]) -> str:
    """What a published figure's chart on the site begins with (charts.in_reading_order()); else, and of a study of one's own, the share."""
    if not there:
        raise UserError("no run has a metric: every run failed its self-checks, or nothing was observed")
    read = metrics_read(source.name, source.claims)
    goals = {metric: source.expected(metric).values() for metric in read}
    first = charts.in_reading_order(read, goals, compete=source.table["group"].nunique() > 1)
    wanted = [*first, charts.MODELLED, "completion_s", "utilisation"]
    return next((m for m in wanted if m in there), there[0])


def draw(source: PointsSource, table: pd.DataFrame, kind: str, choice: Choice) -> Figure:
    """One picture of points.

    Args:
        table: with_flows() of the source's, as far as it is drawn.
        kind: line, box, cdf or heat.
    """
    named, table = table, _cases_in_words(source, _windows_in_words(table))
    if not choice.sampled and choice.y in metrics.RUN:
        table = table[table["group"] == table.groupby(["point", "seed"])["group"].transform("min")]
    good = table[table["ok"]]
    if not len(good):
        raise UserError(f"{source.name}: all runs failed their self-checks: there is nothing to draw")
    data = _samples(source, good, choice.y) if choice.sampled else good
    if kind == "line":
        data = _with_published(source, data, choice.y)
    panels = _panels(data, choice.panel)
    if len(panels) > PANELS_MAX:
        raise NotOnePictureError(
            f"{source.name}: {len(panels)} pictures beside each other are too many ({', '.join(choice.panel)}); draw a part of it "
            f"(--where {choice.panel[0]}={plain(named[choice.panel[0]].iloc[0])}), or choose other --x and --hue"
        )
    lines = order(data[choice.hue]) if choice.hue else [None]
    if kind != "heat" and len(lines) > LINES_MAX:
        raise NotOnePictureError(
            f"--hue {choice.hue}: {len(lines)} lines are too many for one picture; draw a part of it (--where)"
        )
    figure, grid = multiples(len(panels))
    looks = _looks(data, choice.hue, lines)
    for axes, wanted in zip(grid.flat, panels, strict=False):
        here = rows_with(data, dict(wanted))
        match kind:
            case "line":
                _line(axes, here, table, choice, lines, looks)
            case "box":
                _box(axes, here, choice, lines, looks)
            case "cdf":
                _cdf(axes, here, choice, lines, looks)
            case _:
                _heat(axes, here, data, choice)
        axes.set_title(", ".join(_is(column, value, table) for column, value in wanted.items()))
    if kind == "cdf":
        _whole(list(grid.flat)[: len(panels)])
    if kind == "heat":
        shown = [axes for axes, _ in zip(grid.flat, panels, strict=False)]
        figure.colorbar(shown[0].collections[0], ax=list(grid.flat), label=_what(choice, table))
    _labels(figure, kind, choice, table)
    if kind != "heat" and choice.hue not in (None, choice.x):
        _legend(figure, grid, lines, label(choice.hue, table) if choice.hue not in (FLOWS, "case") else None)
    figure.text(0.995, 0.01, _caption(source, good, kind, choice), fontsize=8, color="0.4", ha="right", va="bottom")
    return figure


def _legend(figure: Figure, grid: Any, lines: list[Any], title: str | None) -> None:
    """What any axes has, in the order of the lines, once."""
    drawn = [entry for axes in grid.flat for entry in zip(*axes.get_legend_handles_labels(), strict=True)]
    names = [*(_value(line) for line in lines), *_BESIDE]
    once = {text: handle for handle, text in sorted(drawn, key=lambda entry: names.index(entry[1]))}
    row = int(figure.get_figwidth() / (LETTER * (max(map(len, once)) + LEGEND_MARK)))
    rows = -(-len(once) // max(row, 1))
    columns = -(-len(once) // rows)
    figure.legend(once.values(), once.keys(), loc="outside upper center", ncols=columns, frameon=False, title=title)


def _windows_in_words(table: pd.DataFrame) -> pd.DataFrame:
    """The table with 10–30 for the window [10, 30], where windows are swept."""
    if WINDOW not in table:
        return table
    return table.assign(**{WINDOW: [f"{low:g}–{high:g}" for low, high in map(json.loads, table[WINDOW].map(str))]})


def _cases_in_words(source: PointsSource, table: pd.DataFrame) -> pd.DataFrame:
    """The table with the cases of a published figure in the words that they have on the site; algorithms keep their name, and colour."""
    if "case" not in table or source.claims_file is None:
        return table
    return table.assign(case=[c if c in ALGORITHMS else words_of_case(str(c), source.name) for c in table["case"]])


def _with_published(source: PointsSource, table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The table with the columns PUBLISHED; null where no claim expects anything of the metric."""
    expected = source.expected(metric)
    cells = [expected.get(place) for place in zip(table["point"], table["group"], strict=True)]
    rows = [(cell.value, cell.low, cell.high) if cell else (None,) * len(PUBLISHED) for cell in cells]
    return table.join(pd.DataFrame(rows, table.index, PUBLISHED, dtype=float))


def _caption(source: PointsSource, good: pd.DataFrame, kind: str, choice: Choice) -> str:
    """What is drawn, in small letters."""
    seeds = good.groupby("point")["seed"].nunique()
    few, many = int(seeds.min()), int(seeds.max())
    count = f"{few} seed{'s' if few != 1 else ''}" if few == many else f"{few} to {many} seeds"
    what = {"line": f"means over {count}" + (", bars: 95 % intervals" if many > 1 else ""), "heat": f"means over {count}", "box": count,
            "cdf": f"{'samples' if choice.sampled else 'runs'} of {count}"}  # fmt: skip
    return f"{source.name}: {what[kind]}"


def _panels(data: pd.DataFrame, columns: list[str]) -> list[dict[str | None, Any]]:
    """The values of each axes, of those combinations that there are."""
    there = set(map(tuple, data[columns].drop_duplicates().to_numpy().tolist())) if columns else {()}
    every = itertools.product(*(order(data[c]) for c in columns))
    return [dict(zip(columns, values, strict=True)) for values in every if tuple(values) in there]


def _is(column: Any, value: Any, table: pd.DataFrame) -> str:
    """A field and its value in words."""
    if column in (FLOWS, "case"):
        return str(value)
    name = label(column, table)
    unit = name[name.find("(") + 1 : -1] if name.endswith(")") else ""
    text = _value(value)
    return f"{name.removesuffix(f' ({unit})')} {text} {unit}" if unit else f"{name} = {text}"


def _value(value: Any) -> str:
    if isinstance(value, str) and value in ALGORITHMS:
        return label_of_cca(value)
    return f"{value:,.0f}" if is_number(value) and value >= 1e5 and float(value).is_integer() else plain(value)


def _looks(data: pd.DataFrame, hue: str | None, lines: list[Any]) -> dict[Any, dict[str, Any]]:
    """{line: colour and marker}: algorithms have their own colours, groups of one algorithm tints of it and each group a marker; swept
    numbers go from light to dark."""
    if hue in (FLOWS, "cca"):
        first = data.drop_duplicates(hue).set_index(hue, drop=False).loc[lines]
        return {n: {"color": group_colour(list(first["cca"]), i), "marker": _MARKS[int(first["group"].iloc[i]) % len(_MARKS)]}
                for i, n in enumerate(lines)}  # fmt: skip
    colours = {n: look["color"] for n, look in line_looks(lines).items()}
    if all(is_number(n) for n in lines) and len(lines) > 2:
        colours = dict(zip(lines, sns.color_palette("crest", len(lines)), strict=True))
    return {n: {"color": colours[n], "marker": _MARKS[i % len(_MARKS)]} for i, n in enumerate(lines)}


_BESIDE = (PUBLISHED_NAME, ALLOWED_NAME, EQUAL_NAME)  # in a legend, behind what was measured
_MARKS = "o" + MARKERS[1:]


def _line(
    axes: Axes, here: pd.DataFrame, table: pd.DataFrame, choice: Choice, lines: list[Any], looks: Mapping[Any, Any]
) -> None:
    """Means with 95 % intervals; lines between numbers, none between names."""
    x = str(choice.x)
    values = order(table[x])
    numbers = _are_places(values)
    keys = list(dict.fromkeys([k for k in (choice.hue, x) if k]))
    means = point_means(here, keys, choice.y)
    if choice.hue:
        lines = [name for name in lines if name in set(here[choice.hue])]  # of this panel
    for i, name in enumerate(lines):
        points = rows_with(means, {choice.hue: name}) if choice.hue else means
        points = points.sort_values(x)
        shift = (
            0.0
            if numbers or len(lines) < 2 or choice.hue == x
            else min(DODGE[0] * (len(lines) - 1), DODGE[1]) * (i / (len(lines) - 1) - 0.5)
        )
        at = points[x] if numbers else [values.index(v) + shift for v in points[x]]
        drawn = axes.errorbar(at, points["mean"], yerr=interval_bars(points["mean"], points["ci95"], *bounds_of(choice.y)), ls="-" if numbers else "", lw=1.5, ms=6, capsize=3,
                              label=None if name is None else _value(name), **looks[name])  # fmt: skip
        artists = [
            *drawn.get_children(),
            *_published(axes, here, choice, name, dict(zip(points[x], at, strict=True)), looks),
        ]
        if numbers and len(lines) > 1:  # beside each other, so that no interval hides another
            by_pt = min(ASIDE_PT[0], ASIDE_PT[1] / (len(lines) - 1)) * (i - (len(lines) - 1) / 2)
            beside = axes.transData + ScaledTranslation(by_pt / 72, 0, axes.figure.dpi_scale_trans)
            for artist in artists:
                artist.set_transform(beside)
    if choice.y in EQUAL:
        _equal(axes, here, choice, values, lines, looks)
    if numbers:
        _numbers(axes, values)
    else:
        _texts(axes, [_value(v) for v in values])
        axes.set_xlim(-0.6, len(values) - 0.4)
        axes.grid(axis="x", visible=False)
    _from_zero(axes)


def _are_places(values: list[Any]) -> bool:
    """Whether values are places on an axis: numbers that can be told apart there."""
    return len(values) > 1 and all(is_number(v) for v in values) and not charts.are_crowded(values)


def _published(
    axes: Axes, here: pd.DataFrame, choice: Choice, name: Any, places: Mapping[Any, float], looks: Mapping[Any, Any]
) -> list[Artist]:
    """Published values of a line as open circles, and what claims allow as broad pale bands; returns what was drawn.

    Args:
        places: {a value of the x axis: where it stands}.
    """
    rows = rows_with(here, {choice.hue: name}) if choice.hue else here
    values = rows.groupby(choice.x)[PUBLISHED].mean().dropna(how="all")
    if values.empty:
        return []
    value, low, high = (values[column] for column in PUBLISHED)
    least, most = bounds_of(choice.y)
    low, high = low.clip(lower=least), high.clip(upper=most)
    at, colour = [places[v] for v in values.index], looks[name]["color"]
    circle: dict[str, Any] = {"ls": "", "marker": "o", "ms": 9, "mfc": "none", "mew": 1.4, "alpha": 0.75}
    band: dict[str, Any] = {"lw": 8, "alpha": 0.22, "zorder": 1}
    if value.notna().any():
        axes.plot([], [], color="0.4", label=PUBLISHED_NAME, **circle)
    if low.notna().any():
        axes.plot([], [], color="0.4", label=ALLOWED_NAME, **band)
    return [axes.vlines(at, low, high, color=colour, **band), *axes.plot(at, value, color=colour, **circle)]


def _equal(
    axes: Axes, here: pd.DataFrame, choice: Choice, values: list[Any], lines: list[Any], looks: Mapping[Any, Any]
) -> None:
    """What flows had if all had the same: one line where all lines have nearly that, else one for each, in its colour."""
    x = str(choice.x)
    numbers = _are_places(values)
    each = pd.DataFrame(
        {
            n: (rows_with(here, {choice.hue: n}) if choice.hue else here).groupby(x)[EQUAL[choice.y]].mean()
            for n in lines
        }
    )
    if each.isna().all(axis=None):
        return
    how: dict[str, Any] = {"ls": (0, (4, 3)), "lw": 1.0, "zorder": 1}
    axes.plot([], [], color="0.5", label=EQUAL_NAME, **how)
    one = (each.max(axis=1) - each.min(axis=1)).max() < ONE_LINE
    curves = [("0.5", each.mean(axis=1))] if one else [(looks[n]["color"], each[n].dropna()) for n in lines]
    for colour, shares in curves:
        if numbers:
            axes.plot(shares.index, shares, color=colour, **how)
        for at, share in shares.items() if not numbers else ():
            axes.hlines(share, values.index(at) - 0.4, values.index(at) + 0.4, color=colour, **how)


def _texts(axes: Axes, texts: list[str]) -> None:
    """Names along an axis, aslant where there is no room."""
    room = float(axes.get_window_extent().width) / axes.figure.dpi / max(len(texts), 1)
    aslant = max(map(len, texts)) * LETTER > room
    axes.set_xticks(range(len(texts)), texts, rotation=30 if aslant else 0, ha="right" if aslant else "center",
                    rotation_mode="anchor" if aslant else "default")  # fmt: skip


def _numbers(axes: Axes, values: list[float]) -> None:
    """An axis with a tick at each value where there is room: logarithmic if they span much."""
    if charts.is_wide(values):
        log2_axis(axes, values)
    elif len(values) <= 8:
        longest = max(len(plain(v)) for v in values) * LETTER * axes.figure.dpi  # in pixels
        apart = min(np.diff(values)) / (max(values) - min(values)) * float(axes.get_window_extent().width)
        axes.set_xticks(values, [short_number(v) if longest > apart else plain(v) for v in values])


def _from_zero(axes: Axes) -> None:
    """An axis from 0, so that twice as much looks like it; a little room above."""
    low, high = axes.dataLim.y0, axes.dataLim.y1
    if np.isfinite(high) and low >= 0 and high > 0:
        axes.set_ylim(0, max(high * 1.08, axes.get_ylim()[1] if axes.get_ylim()[0] == 0 else 0))


def _box(axes: Axes, here: pd.DataFrame, choice: Choice, lines: list[Any], looks: Mapping[Any, Any]) -> None:
    """The spread over the seeds: boxes, and each run as a point."""
    x = str(choice.x)
    data = here.assign(**{x: here[x].map(_value)})
    order_ = [_value(v) for v in order(here[x])]
    how: dict[str, Any] = {"data": data, "x": x, "y": choice.y, "order": order_, "ax": axes}
    if choice.hue:
        data[choice.hue] = here[choice.hue].map(_value)
        how |= {
            "hue": choice.hue,
            "hue_order": [_value(n) for n in lines],
            "palette": {_value(n): looks[n]["color"] for n in lines},
        }
    sns.boxplot(**how, fliersize=0, linewidth=1, boxprops={"alpha": 0.5}, legend="full" if choice.hue else False)
    sns.stripplot(**how, dodge=bool(choice.hue), size=4, jitter=False, legend=False)
    axes.set(xlabel="", ylabel="")
    _texts(axes, order_)
    axes.grid(axis="x", visible=False)
    if legend := axes.get_legend():
        legend.remove()
    _from_zero(axes)


def _cdf(axes: Axes, here: pd.DataFrame, choice: Choice, lines: list[Any], looks: Mapping[Any, Any]) -> None:
    """The distribution of samples, or of the runs' metric, as a step function."""
    for name in lines:
        rows = rows_with(here, {choice.hue: name}) if choice.hue else here
        if rows[choice.y].notna().any():
            sns.ecdfplot(
                x=rows[choice.y],
                ax=axes,
                color=looks[name]["color"],
                lw=1.8,
                label=None if name is None else _value(name),
            )
    axes.set(xlabel="", ylabel="", ylim=(0, 1.02))


def _whole(panels: list[Axes]) -> None:
    """One axis for all panels, from 0 on, with all of their curves."""
    low, high = min(axes.dataLim.x0 for axes in panels), max(axes.dataLim.x1 for axes in panels)
    if np.isfinite([low, high]).all() and high > low:
        panels[0].set_xlim(0 if low >= 0 else low, high + 0.03 * (high - low))


def _heat(axes: Axes, here: pd.DataFrame, every: pd.DataFrame, choice: Choice) -> None:
    """Means over the seeds as colours, with their numbers, on one scale for all axes."""
    x, y = str(choice.x), str(choice.hue)
    cells = here.groupby([y, x])[choice.y].mean().unstack(x)
    cells = cells.reindex(index=order(every[y])[::-1], columns=order(every[x]))  # axes share their names
    all_means = every.groupby([*(c for c in (x, y, *choice.panel))])[choice.y].mean()
    digits = max(0, 2 - max(0, int(np.floor(np.log10(max(all_means.abs().max(), 0.1))))))
    sns.heatmap(cells, ax=axes, cmap="cividis", vmin=min(0.0, all_means.min()), vmax=all_means.max(), annot=cells.size <= CELLS_TOLD,
                fmt=f".{digits}f", annot_kws={"size": 9}, linewidths=0.5, cbar=False)  # fmt: skip
    axes.set_xticklabels([_value(v) for v in cells.columns], rotation=0)
    axes.set_yticklabels([_value(v) for v in cells.index], rotation=0)
    axes.set(xlabel="", ylabel="")


def _what(choice: Choice, table: pd.DataFrame) -> str:
    """What is drawn of points, with its unit, and whether it is of a group's flows together."""
    if choice.sampled:
        return series_of(choice.y).label
    return label(choice.y, table) + (", sum of flows" if choice.y in metrics.SUMMED and _has_several(table) else "")


def _labels(figure: Figure, kind: str, choice: Choice, table: pd.DataFrame) -> None:
    what = _what(choice, table)
    height = int(figure.get_figheight() / LETTER) - 2
    y = "\n".join(line for part in what.split(", ") for line in textwrap.wrap(part, height))
    x = what if kind == "cdf" else label(str(choice.x), table)
    if kind == "cdf":
        y = "fraction of samples" if choice.sampled else "fraction of runs"
    elif kind == "heat":
        y = label(str(choice.hue), table)
    figure.supxlabel(" " if x == FLOWS else x, fontsize=12)  # the caption has its line
    figure.supylabel(y, fontsize=12)


def _samples(source: PointsSource, good: pd.DataFrame, name: str) -> pd.DataFrame:
    """The samples of a series in the runs' windows, with the runs' columns. UserError if they are not there."""
    series = series_of(name)
    parts = []  # of several links in a row the first
    for (point, seed), rows in good.groupby(["point", "seed"], sort=False):
        run = source.sampled_run(str(point), int(str(seed)))
        columns = ["time_s", "flow", "group", *columns_of(run.scenario, name)]
        low, high = rows[["window_start_s", "window_end_s"]].iloc[0]
        for group, (times, values) in values_of(run.scenario, name, run.samples(columns)).items():
            row = rows[rows["group"] == group] if series.of_flows else rows.head(1 if group == -1 else 0)
            inside = (times >= low) & (times <= high)
            if len(row) and inside.any():
                head = {c: row[c].iloc[0] for c in row.columns if c not in metrics.METRICS}
                parts.append(pd.DataFrame({name: values[inside]}).assign(**head))
    if not parts:
        raise UserError(f"{source.name}: no run has samples of {name} in its window")
    return pd.concat(parts, ignore_index=True)
