"""Which flows are there for a part of the window only, of which the metrics are."""

from __future__ import annotations

from collections.abc import Iterable

from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Flow, Scenario


def partly_there(points: Iterable[Point]) -> list[str]:
    """In words, each once: the groups that start or stop within ``window_s``, or are not there in it at all.

    That may be meant. A flow of some ``bytes`` and short flows (``traffic``) have metrics of their own and are left out.
    """
    found = (
        _words(i, flow, point.scenario)
        for point in points
        for i, flow in enumerate(point.scenario.flows)
        if flow.bytes is None and flow.traffic is None
    )
    return list(dict.fromkeys(words for words in found if words))


def _words(i: int, flow: Flow, scenario: Scenario) -> str:
    low_s, high_s = scenario.window_s
    stop_s = scenario.duration_s if flow.stop_s is None else flow.stop_s
    there_s = min(stop_s, high_s) - max(flow.start_s, low_s)
    if there_s >= high_s - low_s:
        return ""
    how = (
        f"is there for {there_s:g} s of the {high_s - low_s:g} s"
        if there_s > 0
        else f"is not there in the {high_s - low_s:g} s"
    )
    when = f"start_s {flow.start_s:g}" + ("" if flow.stop_s is None else f", stop_s {flow.stop_s:g}")
    return f"flows.{i} ({flow.cca}) {how} of window_s [{low_s:g}, {high_s:g}] ({when}): its goodput and share are means over the whole window"
