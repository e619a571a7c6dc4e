"""What is drawn of chosen runs (results/curves.py), over time or as distributions: the site's pages and notebooks draw the same pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.results.algorithm_table import OTHER_COLOURS, QUEUE_COLOUR, QUIET, colour_of_cca, label_of_cca
from bbrlab.results.curves import DISTRIBUTION, SEED, TIME, Choice, choices, curves_of_figure, file_of, read_curves
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.series import series_of
from bbrlab.results.shipped import ShownResults, is_shipped
from bbrlab.scenario.point import Point
from bbrlab.scenario.rates import before, buffer_full_ms
from bbrlab_apps.site.case_words import words_of_case
from bbrlab_apps.site.charts import label_of_trait, named, value_words
from bbrlab_apps.site.html import number

FULL_MOST = 4  # times the longest queue: above that the line of the full buffer is left out
TIME_AXIS, FRACTION = "virtual time (s)", "fraction of the samples"

Line = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """Panels that share their axis."""

    title: str  # what tells it from the figure's other pictures; empty if it is the only one
    # From above: ``label`` of the axis, ``lines`` (``name``, ``colour``, ``x``, ``y``, ``legend``: whether it has a name there, some with ``dash``)
    panels: list[dict[str, Any]]
    xlabel: str
    window_s: list[float] | None  # of the metrics; None of a distribution

    def data(self) -> dict[str, Any]:
        """What site.js draws."""
        return {"panels": self.panels, "xlabel": self.xlabel, "window_s": self.window_s}


@dataclass(frozen=True)
class Curves:
    """The curves of a figure's chosen runs."""

    choice: Choice
    figure: Figure
    scale: str
    table: pd.DataFrame

    @property
    def words(self) -> str:
        """Which runs these are, in a sentence."""
        return f"Single runs, seed {SEED}, scale {self.scale}, chosen by a rule and not by their looks: {self.choice.because}."

    @property
    def points(self) -> list[Point]:
        """Those that have curves."""
        there = set(self.table["point"])
        return [p for p in self.choice.points_of(self.figure) if p.label in there]


def curves_shown(shown: ShownResults, id: str, scale: str) -> Curves | None:
    """The curves of a figure that is shown at a scale; None if it has no chosen runs, or none of them was run.

    Of results that ship those of the scale, or, where that has none, of the largest other scale that has some.
    """
    if (choice := choices().get(id)) is None:
        return None
    if not shown.shipped:
        figure = _figure(id, scale)
        table = curves_of_figure(choice, figure, shown.results / "runs") if figure else None
        return Curves(choice, figure, scale, table) if figure and table is not None else None
    for at in dict.fromkeys([scale, *reversed(shown.scales)]):
        path = shown.results / at / file_of(id)
        if is_shipped(shown.results, at) and path.exists() and (figure := _figure(id, at)):
            return Curves(choice, figure, at, read_curves(path))
    return None


def _figure(id: str, scale: str) -> Figure | None:
    return next((figure for figure in figures_at(scale, []) if figure.id == id), None)


def pictures_of(curves: Curves) -> list[Picture]:
    """The pictures of a figure: one for each point, or each group of points that are drawn over each other."""
    groups: dict[str, list[Point]] = {}
    for point in curves.points:
        groups.setdefault(_title(curves, point), []).append(point)
    alone = len(groups) == 1
    return [
        picture
        for title, points in groups.items()
        for kind in (TIME, DISTRIBUTION)
        if (picture := _picture(curves, points, kind, "" if alone else title)) is not None
    ]


def _title(curves: Curves, point: Point) -> str:
    """The point's values in which the figure's points with curves differ, without those that are drawn over each other."""
    together = curves.choice.together
    apart = [
        key for key in point.values
        if key != together and len({str(p.values.get(key)) for p in curves.points}) > 1
    ]  # fmt: skip
    words = []
    for key in apart:
        value = point.values[key]
        if key == "case":
            words.append(words_of_case(str(value), curves.figure.id))
        else:
            words.append(
                named(
                    label_of_trait(key, curves.points), value_words(value, [p.values.get(key) for p in curves.points])
                )
            )
    return ", ".join(words)


def _picture(curves: Curves, points: list[Point], kind: str, title: str) -> Picture | None:
    names = [name for of, name in curves.choice.curves if of == kind]
    panels = [panel for name in names if (panel := _panel(curves, points, kind, name))["lines"]]
    if not panels:
        return None
    name_once(panels)
    if kind == DISTRIBUTION:
        (panel,) = panels[:1]
        return Picture(title, [panel | {"label": FRACTION}], _label(curves, names[0]), None)
    return Picture(title, panels, TIME_AXIS, list(points[0].scenario.window_s))


def name_once(panels: list[dict[str, Any]]) -> None:
    """Say of each line whether the legend has it (``legend``): the first of a name and colour, where there are several to be told apart."""
    lines = [line for panel in panels for line in panel["lines"]]
    looks = [(line["name"], line["colour"]) for line in lines]
    for i, (line, look) in enumerate(zip(lines, looks, strict=True)):
        line["legend"] = look not in looks[:i] and len(set(looks)) > 1


def _label(curves: Curves, name: str) -> str:
    return "queue (base RTTs)" if name == "queue" and curves.choice.in_rtts else series_of(name).label


def _panel(curves: Curves, points: list[Point], kind: str, name: str) -> dict[str, Any]:
    table = curves.table[(curves.table["kind"] == kind) & (curves.table["curve"] == name)]
    lines: list[Line] = []
    several = len(points) > 1
    for point in points:
        scale = 1 / point.scenario.network.mean_rtt_ms if name == "queue" and curves.choice.in_rtts else 1.0
        rows = table[table["point"] == point.label]
        for of, line in rows.groupby("of"):
            if curves.choice.groups is not None and int(str(of)) not in (-1, *curves.choice.groups):
                continue
            x, y = line["x"].to_numpy(), line["y"].to_numpy()
            x, y = (x, y * scale) if kind == TIME else (x * scale, y)
            lines.append(_named(curves, point, int(str(of)), several) | {"x": x.tolist(), "y": [_cell(v) for v in y]})
    _tell_apart(lines)
    if name == "queue" and kind == TIME and not several:
        lines += _full_buffer(points[0], lines, curves.choice.in_rtts)
    if name == "bw":
        lines += _sum(lines)
    return {"label": _label(curves, name), "lines": lines}


def _cell(value: float) -> float | None:
    return None if not np.isfinite(value) else float(f"{value:.5g}")


def _named(curves: Curves, point: Point, of: int, several: bool) -> Line:
    """A line's name and its algorithm's colour."""
    flows = point.scenario.flows
    if several:
        value = point.traits[str(curves.choice.together)]
        name = words_of_case(str(value), curves.figure.id) if curves.choice.together == "case" else str(value)
        return {"name": name, "colour": colour_of_cca(flows[max(of, 0)].cca)}
    if of < 0:
        return {"name": "queue", "colour": QUEUE_COLOUR}
    if curves.choice.by == "flow":
        groups = [group for group, flow in enumerate(flows) for _ in range(flow.count)]
        cca = flows[groups[of]].cca
        return {"name": f"{label_of_cca(cca)}, flow {of + 1}", "colour": colour_of_cca(cca)}
    flow = flows[of]
    name = f"{flow.count} {label_of_cca(flow.cca)}" if flow.count > 1 else label_of_cca(flow.cca)
    if sum(other.cca == flow.cca for other in flows) > 1:
        name += next(_differences(flows, of), f", group {of + 1}")
    return {"name": name, "colour": colour_of_cca(flow.cca)}


def _differences(flows: list[Any], of: int) -> Iterator[str]:
    """In what a flow group differs from others of its algorithm, for its name."""
    if len({str(flow.rtt_ms) for flow in flows}) > 1 and isinstance(flows[of].rtt_ms, int | float):
        yield f", RTT {number(flows[of].rtt_ms)} ms"
    if len({flow.start_s for flow in flows}) > 1:
        yield f" from {number(flows[of].start_s)} s on"


def _tell_apart(lines: list[Line]) -> None:
    """Give lines of one colour others."""
    used: list[str] = []
    for line in lines:
        if line["colour"] in used:
            line["colour"] = next((colour for colour in OTHER_COLOURS if colour not in used), line["colour"])
        used.append(line["colour"])


def _full_buffer(point: Point, lines: list[Line], in_rtts: bool) -> list[Line]:
    network, end_s = point.scenario.network, point.scenario.duration_s
    highest = max((v for line in lines for v in line["y"] if v is not None), default=0.0)
    times, delays_ms = buffer_full_ms(before(network, end_s), 0.0, end_s, network.buffer_bytes)
    full = delays_ms / network.mean_rtt_ms if in_rtts else delays_ms
    if not lines or max(full) > FULL_MOST * max(highest, 1e-9):
        return []
    inside = lines[0]["x"]
    times = np.clip(times, inside[0], inside[-1])
    return [
        {
            "name": "full buffer",
            "colour": QUIET,
            "dash": "dash",
            "x": times.tolist(),
            "y": [_cell(v) for v in full],
        }
    ]


def _sum(lines: list[Line]) -> list[Line]:
    """The sum of several lines that have the same times."""
    by_time: list[Mapping[float, float]] = [
        {x: y for x, y in zip(line["x"], line["y"], strict=True) if y is not None} for line in lines
    ]
    times = sorted({time for values in by_time for time in values})
    if len(lines) < 2 or not all(set(values) <= set(by_time[0]) for values in by_time[1:]):
        return []
    total = [_cell(sum(values.get(time, 0.0) for values in by_time)) for time in times]
    return [{"name": "their sum", "colour": QUIET, "dash": "dash", "x": times, "y": total}]
