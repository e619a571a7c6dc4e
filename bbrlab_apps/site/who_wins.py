"""Who wins, for the front page: one BBR flow against one loss-based flow, buffer by buffer, here beside what was published."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from bbrlab.results.algorithm_table import colour_of_cca, label_of_cca, tinted
from bbrlab.results.figures import Figure, has_panel
from bbrlab.scenario.point import Point
from bbrlab.show.findings import Findings
from bbrlab.show.verdicts import ink_on
from bbrlab_apps.site.charts import MODELLED, shown_chart
from bbrlab_apps.site.html import number

_BUFFER = "network.buffer.bdp"
# From the loss-based flow's side to BBR's: how much there is of the winner's colour; none: white, even.
_STRENGTHS = (1, 0.6, 0.3, 0, 0.3, 0.6, 1)
_EVEN = len(_STRENGTHS) // 2
_EVEN_PART = _EVEN / len(_STRENGTHS), (_EVEN + 1) / len(_STRENGTHS)  # of what both carry, where neither wins

Cell = dict[str, Any]


def who_wins(findings: Findings) -> list[dict[str, Any]]:
    """A table against each loss-based algorithm.

    Returns:
        For each its ``name``, ``colour``, ``setting``, ``buffers`` (BDP), and ``rows``: of a BBR's ``name``, ``colour``, ``figure`` and a
        cell for each buffer (``here`` and ``published``: BBR's percentage of the link; ``open``: either may win, as far as the seeds tell;
        ``colour``: the winner's, ``ink``: of words on it; None: not run), and ``words``: where it wins.
    """
    tables: dict[str, dict[str, Figure]] = {}
    for _, figure in sorted(findings.figures.items()):
        if has_panel(figure):
            bbr, other = (flow.cca for flow in figure.scenario.flows)
            tables.setdefault(other, {}).setdefault(bbr, figure)  # the first one's rate, where a paper has several
    return [_against(findings, other, figures) for other, figures in tables.items()]


def sides_of(tables: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Name and colour of each algorithm of these tables."""
    both = [side for table in tables for side in (*table["rows"], table)]
    return [{"name": name, "colour": colour} for name, colour in dict.fromkeys((s["name"], s["colour"]) for s in both)]


def _against(findings: Findings, other: str, figures: dict[str, Figure]) -> dict[str, Any]:
    buffers = sorted({p.values[_BUFFER] for figure in figures.values() for p in _alone(figure)})
    rows = []
    for bbr, figure in figures.items():
        cells = _cells(findings, figure)
        rows.append({
            "name": label_of_cca(bbr), "colour": colour_of_cca(bbr), "figure": figure.id, "cells": [cells.get(buffer) for buffer in buffers],
            "words": f"{label_of_cca(bbr)} {where_it_wins([cells[b] for b in buffers if b in cells])}",
        })  # fmt: skip
    network = next(iter(figures.values())).scenario.network
    return {
        "name": label_of_cca(other), "colour": colour_of_cca(other), "setting": f"{number(network.rate_mbit)} Mbit/s, {number(network.mean_rtt_ms)} ms",
        "buffers": [number(b) for b in buffers], "rows": [row for row in rows if any(row["cells"])],
    }  # fmt: skip


def _alone(figure: Figure) -> list[Point]:
    return [p for p in figure.points if all(flow.count == 1 for flow in p.scenario.flows)]


def _cells(findings: Findings, figure: Figure) -> dict[float, Cell]:
    """{buffer: what one flow of each kind gets there}."""
    chart = shown_chart(findings, figure.id)
    places = {point["label"]: i for i, point in enumerate(chart["points"])}
    here, published = chart["measured"].get(MODELLED, {}), chart["expected"].get(MODELLED, {})
    bbr, other = (colour_of_cca(flow.cca) for flow in figure.scenario.flows)
    by_place: dict[float, Cell] = {}
    for point in _alone(figure):
        at = places.get(point.label)
        if at is None:
            continue
        both = [cells[at] for group in ("0", "1") if (cells := here.get(group)) and cells[at]]
        if len(both) == 2:
            first, second = (cell[0] for cell in both)
            part, half = first / (first + second), (both[0][1] or 0) / (first + second)
            level = min(int(part * len(_STRENGTHS)), len(_STRENGTHS) - 1)
            is_open = part - half < _EVEN_PART[0] and part + half > _EVEN_PART[1]
            colour = tinted(bbr if level > _EVEN else other, 0 if is_open else _STRENGTHS[level])
            goal = (published["0"][at] if "0" in published else None) or [None]
            by_place[point.values[_BUFFER]] = {
                "buffer": number(point.values[_BUFFER]), "here": round(100 * first), "published": None if goal[0] is None else round(100 * goal[0]),
                "level": level, "open": is_open, "colour": colour, "ink": ink_on(colour),
            }  # fmt: skip
    return by_place


def where_it_wins(cells: list[Cell]) -> str:
    """At which buffers BBR wins, is even or loses, and where that is open."""
    outcomes = [
        "is open" if c["open"] else "wins" if c["level"] > _EVEN else "loses" if c["level"] < _EVEN else "is even"
        for c in cells
    ]
    runs = [list(of) for _, of in groupby(range(len(cells)), key=lambda i: outcomes[i])]
    listed = [f"{outcome} at {_buffers(runs, outcomes, outcome, cells)}" for outcome in dict.fromkeys(outcomes)]
    return " and ".join(filter(None, [", ".join(listed[:-1]), *listed[-1:]])) + " BDP"


def _buffers(runs: list[list[int]], outcomes: list[str], outcome: str, cells: list[Cell]) -> str:
    """The buffers of one outcome, neighbours as a range: "1 and 4 to 32"."""
    ends = [(cells[run[0]]["buffer"], cells[run[-1]]["buffer"]) for run in runs if outcomes[run[0]] == outcome]
    ranges = [first if first == last else f"{first} to {last}" for first, last in ends]
    return " and ".join(filter(None, [", ".join(ranges[:-1]), ranges[-1]]))
