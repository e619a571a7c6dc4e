"""A figure's data for its chart: measured means at every point, what is expected there, and what the models say.

The chart itself is drawn in the reader's browser (static/site.js); the same numbers stand as a table below it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.claims.columns import PREDICTION_OF, speaks_of
from bbrlab.claims.expected import WHOLE_RUN, Expected, expected_at, metrics_read
from bbrlab.claims.load import claims_of
from bbrlab.claims.schema import BURST, FLUID, WARE, Claim
from bbrlab.measure.metrics import GROUP, METRICS, RUN, SUMMED, label_of
from bbrlab.models import predictions, ware
from bbrlab.results.algorithm_table import colour_of_cca, label_of_cca
from bbrlab.results.figures import Figure
from bbrlab.results.schema import check_columns
from bbrlab.results.statistics import over_seeds
from bbrlab.scenario.point import Point
from bbrlab.show.findings import Findings
from bbrlab_apps.site.case_words import words_of_case
from bbrlab_apps.site.gains import Gain, gains_of
from bbrlab_apps.site.html import number

MODELLED = "share_of_capacity"  # what all three models give, of the first flow group
_RATES = ("goodput_mbit", "written_mbit")
# Up to a comma: their short names.
MODELS = {WARE: "Ware, steady state", FLUID: "fluid, as long as the runs", BURST: "burst"}
_DIGITS = 6
_OF_GAINS = {"0", WHOLE_RUN}  # whose numbers gains are of
_LISTED = 3  # algorithms of a group that are named; of more it has a number
_NEAR = 0.05  # how far the words of a number that is not whole may be from it, as a part of the way to the next
_APART = 5e-3  # of an axis: nearer than this two places on it look like one
_WIDE = 8.0  # largest over smallest value, from which on an axis is logarithmic
# What a field of a scenario is called on an axis or in a legend, of flows with their name.
LABELS = {
    "case": "case",
    "network.buffer.bdp": "buffer (BDP)",
    "network.buffer.packets": "buffer (packets)",
    "network.buffer.bytes": "buffer",
    "network.rate_mbit": "rate (Mbit/s)",
    "network.rtt_ms": "base RTT (ms)",
    "network.loss": "random loss",
}
OF_FLOWS = {
    "count": "{} flows",
    "start_s": "start of {} (s)",
    "rtt_ms": "base RTT of {} (ms)",
    "bytes": "size of {}",
    "links": "links of {}",
}

Chart = dict[str, Any]


def shown_chart(findings: Findings, figure: str) -> Chart:
    """chart_of() a figure that is shown, by its id."""
    claims = claims_of(findings.defined)
    return chart_of(findings.figures[figure], findings.tables[figure], claims, findings.shown.results)


def chart_of(figure: Figure, table: pd.DataFrame, claims: Iterable[Claim], results: Path) -> Chart:
    """What a figure's chart is drawn from; plain lists and numbers, None where there is no value.

    Its metrics: gains (gains.py) first, then in_reading_order(), then the others by kind.

    Args:
        table: tables.figure_table().
        claims: on any figure; those that expect a number at this one's points are shown in it.
        results: the folder that has the models' predictions.

    Returns:
        ``keys`` (what the points differ in, each with ``name``, ``label``, ``values`` and their ``words``), ``points`` (for each, its label and the
        places of its values), ``groups``, ``metrics``, ``colours`` and ``flows`` ({group: of each point's algorithm}, its colour and what it is called), ``measured`` and ``expected`` ({metric: {group: a row for each point}}:
        mean, half of its 95 % interval, seeds; value, lowest, highest, claim), ``models`` ({model: share of each point}) and their ``model_labels``.
    """
    run = set(table["point"])
    points = [p for p in figure.points if p.label in run]
    claims = list(claims)
    names = list(dict.fromkeys(name for p in points for name in p.values))
    keys = [_key(name, figure, points) for name in names]
    cells_expected = expected_at(figure, points, claims)
    expected = {
        metric: {
            group: [cell and [*map(_short, cell[:3]), cell.claim] for cell in cells]
            for group, cells in of_groups.items()
        }
        for metric, of_groups in cells_expected.items()
    }
    measured = _measured(table, points)
    gains = [gain for gain in gains_of(figure, claims) if measured.get(gain.metric, {}).keys() & _OF_GAINS]
    for gain in gains:
        (group,) = measured[gain.metric].keys() & _OF_GAINS
        cells = [c and [_short(c[0]), *c[1:]] for c in gain.of(points, measured[gain.metric][group])]
        of_gain = [gain.expected.get(p.label) for p in points]
        measured[gain.name] = {group: cells}
        expected[gain.name] = {group: [g and [*map(_short, g[:3]), g[3]] for g in of_gain]}
    models = _models(figure, points, results)
    groups = _groups(table)
    read = metrics_read(figure.id, claims)
    goals = {m: [cell for cells in of_groups.values() for cell in cells] for m, of_groups in cells_expected.items()}
    first = [m for m in in_reading_order(read, goals, compete=len(groups) > 1) if m in measured]
    others = [m for m in METRICS if m in measured and m not in first and _tells(measured[m])]
    several = [str(i) for i in range(len(groups)) if any(p.scenario.flows[i].count > 1 for p in points if i < len(p.scenario.flows))]  # fmt: skip
    return {
        "id": figure.id,
        "title": figure.scenario.figure,
        "keys": keys,
        "points": [{"label": p.label, "at": [_place(k, p) for k in keys]} for p in points],
        "groups": groups,
        "metrics": [
            *(_gain_metric(gain, figure) for gain in gains),
            *(_metric(m, ASKED if m in read else kind_of(m), several) for m in (*first, *others)),
        ],
        "colours": _colours(table, points),
        "flows": _flows(table, points),
        "measured": {m: cells for m, cells in measured.items() if m in {*first, *others, *(g.name for g in gains)}},
        "expected": expected,
        "models": models,
        "model_labels": {model: MODELS[model] for model in models},
    }


def in_reading_order(
    read: Sequence[str], goals: Mapping[str, Collection[Expected | None]], *, compete: bool
) -> list[str]:
    """The metrics that claims read, those first of which most values are published, else most bounds; the first is what a picture begins with.

    Where flows compete and no goodput is published their share of the capacity comes first: goodput says little over several rates.

    Args:
        read: claims.expected.metrics_read().
        goals: {metric: what is expected of it at each point}.
        compete: whether there are several flow groups.
    """

    def goal_counts(metric: str) -> tuple[int, int]:
        cells = [cell for cell in goals.get(metric, ()) if cell is not None]
        return sum(cell.value is not None for cell in cells), len(cells)

    ordered = sorted(read, key=goal_counts, reverse=True)
    if compete and (not ordered or (ordered[0] in _RATES and not any(goal_counts(ordered[0])))):
        return [MODELLED, *(metric for metric in ordered if metric != MODELLED)]
    return ordered


ASKED, GOODPUT = "what the claims read", "goodput and shares"
_KINDS = {
    GOODPUT: r"goodput|share|written|jain|(link_)?utilisation",
    "queue and RTT": r"(classic_|l4s_)?queue|occupancy|(min_)?rtt_ms",
    "loss and marks": r"loss|drops|retrans|ecn",
    "BBR's states and estimates": r"bbr_|probe_|startup_s|up_|down_s|cruise_|between_",
    "transmissions": r"chunks|unfinished|concurrent|slowdown|srpt|completion",
}


def kind_of(metric: str) -> str:
    """Among which others a metric stands in a menu."""
    return next((kind for kind, names in _KINDS.items() if re.match(names, metric)), "others")


def _metric(name: str, kind: str, several: Sequence[str]) -> dict[str, Any]:
    """
    Args:
        several: the groups that have several flows.
    """
    most = METRICS[name].most
    return {
        "name": name,
        "label": label_of(name),
        "kind": kind,
        "run": name in RUN,
        "summed": several if name in SUMMED else [],
        "modelled": name == MODELLED,
        "most": most if np.isfinite(most) else None,
    }


def _gain_metric(gain: Gain, figure: Figure) -> dict[str, Any]:
    """A gain, with ``sides``: of less than 0 and of more, whose side it is on: name and colour of the one that does better."""
    over, under = (words_of_case(case, figure.id) for case in (gain.over, gain.under))
    colours = {str(p.values.get("case")): colour_of_cca(p.scenario.flows[0].cca) for p in figure.points}
    sides = [[under, colours[gain.under]], [over, colours[gain.over]]]
    if kind_of(gain.metric) != GOODPUT:  # less is better: of queues, losses and times
        sides.reverse()
    label = f"{METRICS[gain.metric].label}: {over} over {under} (%)"
    return {
        "name": gain.name,
        "label": label,
        "kind": ASKED,
        "run": gain.metric in RUN,
        "gain": True,
        "sides": sides,
        "most": None,
    }


def _tells(cells: Mapping[str, list[Any]]) -> bool:
    """Whether a metric is anywhere other than 0."""
    return any(cell and cell[0] for of_group in cells.values() for cell in of_group)


def _in_bytes(value: float) -> str:
    return f"{number(value / 1e6)} MB" if value >= 1e6 else f"{number(value / 1e3)} kB"


def _key(name: str, figure: Figure, points: list[Point]) -> dict[str, Any]:
    values = list(dict.fromkeys(_plain(p.values.get(name)) for p in points))
    if all(isinstance(v, int | float) for v in values):
        values.sort()
    label = label_of_trait(name, points)
    words = [_in_bytes(v) if name.endswith(".bytes") and isinstance(v, int | float) else words_of_case(v, figure.id) if name == "case" or name.endswith(".cca") else value_words(v, values) for v in values]  # fmt: skip
    return {"name": name, "label": label, "values": values, "words": words, "named": [named(label, w) for w in words], "crowded": are_crowded(values)}  # fmt: skip


def is_wide(values: Sequence[float]) -> bool:
    """Whether an axis of these numbers, in their order, is logarithmic."""
    return len(values) > 2 and values[0] > 0 and values[-1] / values[0] >= _WIDE


def are_crowded(values: Sequence[Any]) -> bool:
    """Whether these are numbers, in their order, some of which an axis of numbers cannot tell apart: their names stand at even distances."""
    if len(values) < 3 or not all(isinstance(v, int | float) for v in values):
        return False
    at = np.log(values) if is_wide(values) else np.array(values, dtype=float)
    return bool(np.diff(at).min() < _APART * (at[-1] - at[0]))


def label_of_trait(name: str, points: Sequence[Point]) -> str:
    """What a swept path of these points is called for people, with its unit."""
    of_flows = re.fullmatch(r"flows\.(\d+)\.(\w+)", name)
    if of_flows and of_flows[2] in OF_FLOWS:
        return OF_FLOWS[of_flows[2]].format(_name_of_group(points, int(of_flows[1])))
    if of_flows and of_flows[2] == "cca":
        return f"flow {int(of_flows[1]) + 1}"
    return LABELS.get(name, name)


def named(label: str, word: str) -> str:
    """A value with the name of what it is of, as a legend has it: "base RTT 10 ms", "4 BBRv1 flows"."""
    if label == LABELS["case"]:
        return word
    if starts := re.fullmatch(r"start of (.+) \(s\)", label):
        return f"{starts[1]} starts at {word} s"
    if crossing := re.fullmatch(r"links of (.+)", label):
        return f"{crossing[1]} over links {word}"
    if with_unit := re.fullmatch(r"(.+) \((.+)\)", label):
        return f"{with_unit[1]} {word} {with_unit[2]}"
    if label.endswith(" flows"):
        return f"{word} {label.removesuffix('s') if word == '1' else label}"
    return f"{label} {word}"


def _name_of_group(points: Sequence[Point], group: int) -> str:
    """What a group of flows is called: its algorithms, if no other group has them."""
    groups = [
        {p.scenario.flows[i].cca for p in points if i < len(p.scenario.flows)}
        for i in range(max(len(p.scenario.flows) for p in points))
    ]
    alone = all(not groups[group] & other for i, other in enumerate(groups) if i != group)
    return _name_of(sorted(groups[group])) if alone else f"group {group + 1}"


def _name_of(ccas: Sequence[str]) -> str:
    return (
        label_of_cca(ccas[0])
        if len(ccas) == 1
        else "BBR"
        if all(c.startswith("bbr") for c in ccas)
        else " or ".join(map(label_of_cca, ccas))
    )


def _plain(value: Any) -> Any:
    """A swept value as a number or text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, str) else json.dumps(value)
    return value


def _place(key: Mapping[str, Any], point: Point) -> int:
    return int(key["values"].index(_plain(point.values.get(key["name"]))))


def _groups(table: pd.DataFrame) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    for group, rows in table.groupby("group"):
        ccas = sorted(set(rows["cca"]))
        label = _name_of(ccas) if len(ccas) <= _LISTED else f"flow group {int(str(group)) + 1}"
        groups.append({"group": str(group), "label": label})
    labels = [g["label"] for g in groups]
    for g in groups:
        if labels.count(g["label"]) > 1:
            g["label"] += f" (group {int(g['group']) + 1})"
    return groups


def _colours(table: pd.DataFrame, points: list[Point]) -> dict[str, list[str | None]]:
    """{group: the colour of its algorithm at each point}; of the run None where its groups are of several algorithms."""
    at = table.drop_duplicates(["point", "group"])
    colours = {
        str(group): [None if (cca := of.get(p.label)) is None else colour_of_cca(str(cca)) for p in points]
        for group, rows in at.groupby("group")
        for of in [rows.set_index("point")["cca"]]
    }
    of_run = [{c for of_group in colours.values() if (c := of_group[i])} for i in range(len(points))]
    return colours | {WHOLE_RUN: [next(iter(found)) if len(found) == 1 else None for found in of_run]}


def _flows(table: pd.DataFrame, points: list[Point]) -> dict[str, list[str]]:
    """{group: what its flows are called at each point}: by their algorithm there, and which group they are where others have it; empty where
    each group is of one algorithm."""
    at = table.drop_duplicates(["point", "group"])
    if (at.groupby("group")["cca"].nunique() == 1).all():
        return {}
    shared = at.duplicated(["point", "cca"], keep=False)
    names = [
        label_of_cca(c) + (f" (group {g + 1})" if twice else "")
        for c, g, twice in zip(at["cca"], at["group"], shared, strict=True)
    ]
    called = {(point, group): name for point, group, name in zip(at["point"], at["group"], names, strict=True)}
    return {str(group): [called.get((p.label, group), "") for p in points] for group in sorted(set(at["group"]))}


def _measured(table: pd.DataFrame, points: list[Point]) -> dict[str, dict[str, list[Any]]]:
    good = table[table["ok"].astype(bool)]
    places = {p.label: i for i, p in enumerate(points)}
    measured: dict[str, dict[str, list[Any]]] = {}
    for metrics, rows in ((GROUP, good), (RUN, good[good["group"] == 0])):
        present = [m for m in metrics if m in rows]
        long = rows.melt(["group", "point"], present, "metric", "value").dropna(subset="value")
        over = over_seeds(long.groupby(["metric", "group", "point"], sort=False)["value"])
        for place, mean, half, seeds in zip(over.index, over["mean"], over["half"], over["seeds"], strict=True):
            metric, group, point = place
            if point in places and np.isfinite(mean):
                cells = measured.setdefault(metric, {}).setdefault(
                    str(group) if metrics is GROUP else WHOLE_RUN, [None] * len(points)
                )
                cells[places[point]] = [_short(mean), _short(half), int(seeds)]
    return measured


def _short(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.{_DIGITS}g}")


def _models(figure: Figure, points: list[Point], results: Path) -> dict[str, list[float | None]]:
    shares = {model: [share_by(model, figure.id, p, results) for p in points] for model in MODELS}
    return {model: cells for model, cells in shares.items() if any(c is not None for c in cells)}


def share_by(model: str, figure: str, point: Point, results: Path) -> float | None:
    """The first group's share of capacity by a model of MODELS; None where it does not speak of the point, or no prediction
    is there."""
    flows = point.scenario.flows
    if len(flows) < 2 or not speaks_of(model, point):
        return None
    if model == WARE:
        return _short(ware.share_of(point.scenario.network, flows[0].count))
    path = predictions.prediction_file(PREDICTION_OF[model], figure, point, results)
    if (table := predictions.read_prediction(path)) is None:
        return None
    check_columns(path, table, [MODELLED])
    return _short(float(table[MODELLED].iloc[0]))


def first_metric(chart: Chart) -> str:
    """The metric that a chart begins with."""
    return str(chart["metrics"][0]["name"]) if chart["metrics"] else ""


def table_of(chart: Chart) -> tuple[list[str], list[list[str]]]:
    """The chart's numbers of its first metric as heads and rows of a table, for who does not see the chart."""
    metric = first_metric(chart)
    models = list(chart["models"]) if metric == MODELLED else []
    names = {g["group"]: g["label"] for g in chart["groups"]} | {WHOLE_RUN: "all"}
    heads = [*(k["label"] for k in chart["keys"]), "flows", "measured", "95 % ±", "seeds", "expected", *(MODELS[m] for m in models)]  # fmt: skip
    rows = []
    for i, point in enumerate(chart["points"]):
        at = [k["words"][place] for k, place in zip(chart["keys"], point["at"], strict=True)]
        for group, cells in chart["measured"].get(metric, {}).items():
            if (cell := cells[i]) is None:
                continue
            mean, half, seeds = cell
            goal = (chart["expected"].get(metric, {}).get(group) or [None] * (i + 1))[i]
            modelled = [chart["models"][m][i] if group == "0" else None for m in models]
            who = chart["flows"][group][i] if group in chart["flows"] else names[group]
            rows.append([*at, who, number(mean), number(half, 2), str(seeds), _goal_words(goal), *map(number, modelled)])  # fmt: skip
    return heads, rows


def _goal_words(goal: Sequence[Any] | None) -> str:
    """What is expected: its value, else its bounds."""
    if goal is None:
        return "–"
    return number(goal[0]) if goal[0] is not None else f"{number(goal[1])} to {number(goal[2])}"


def value_words(value: Any, among: Sequence[Any] = ()) -> str:
    """A swept value in words: a number that is not whole with no more digits than tell it from the others.

    Args:
        among: all values of the sweep.
    """
    if not isinstance(value, int | float):
        return str(value)
    apart = [abs(value - other) for other in among if isinstance(other, int | float) and other != value]
    error = 0 if value == int(value) else _NEAR * min([*apart, abs(value)])
    return number(value, next(digits for digits in range(3, 18) if abs(float(f"{value:.{digits}g}") - value) <= error))
