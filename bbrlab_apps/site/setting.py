"""A figure's setting in one sentence: who sends, over what, for how long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.figures import Figure
from bbrlab.scenario.point import Point
from bbrlab_apps.site.html import number

_LISTED = 3  # of more values the smallest and the largest are named
# Queue disciplines as papers write them.
QUEUES = {"fifo": "drop-tail", "red": "RED", "codel": "CoDel", "fq_codel": "FQ-CoDel", "pie": "PIE", "cake": "CAKE", "fq": "fq", "dualpi2": "DualPI2"}  # fmt: skip


def setting_of(figure: Figure) -> str:
    """The flows, the path and the times of a figure's points."""
    points = figure.points
    sizes = _of(points, "buffer_bdp"), _of(points, "buffer_bytes")
    buffer = (
        f"{_values(sizes[0])} BDP" if len(sizes[0]) <= len(sizes[1]) else f"{_values([b / 1000 for b in sizes[1]])} kB"
    )
    parts = [
        _flows(points),
        f"{_values(_of(points, 'rate_mbit'))} Mbit/s",
        *_base_rtt(points),
        f"buffer {buffer}",
        *_links(points),
        " or ".join(dict.fromkeys(QUEUES[p.scenario.network.qdisc.kind] for p in points)),
    ]
    if any(loss := _of(points, "random_loss")):
        parts.append(f"random loss {_values(loss)}")
    parts.append(
        f"{_values(_of(points, 'duration_s'))} s, measured from {_values(_of(points, 'window_start_s'))} to {_values(_of(points, 'window_end_s'))} s"
    )
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _flows(points: Sequence[Point]) -> str:
    """The flow groups, one after the other where all points have as many, else point by point."""
    numbers = {len(p.scenario.flows) for p in points}
    if len(numbers) == 1:
        groups = [_group([p.scenario.flows[i] for p in points]) for i in range(numbers.pop())]
        alike = len(groups) > 2 and len(set(groups)) == 1
        return f"{len(groups)} groups of {groups[0]}" if alike else " against ".join(groups)
    each = list(dict.fromkeys(" against ".join(_group([f]) for f in p.scenario.flows) for p in points))
    return " or ".join(each) if len(each) <= _LISTED else f"{len(each)} sets of flows, such as {each[0]}"


def _group(flows: Sequence[Any]) -> str:
    names = " or ".join(dict.fromkeys(label_of_cca(f.cca) for f in flows))
    if any(f.traffic is not None for f in flows):
        return f"short flows of {names}"
    own = f" ({_own_rtts(flows)} ms)" if not any(f.has_networks_rtt for f in flows) else ""
    return f"{_values(sorted({f.count for f in flows}))} {names}{own}"


def _links(points: Sequence[Point]) -> list[str]:
    """How many bottlenecks stand in a row, if there are several."""
    counts = sorted({len(p.scenario.network.bottlenecks) for p in points})
    return [f"{_values(counts)} bottlenecks in a row"] if counts[-1] > 1 else []


def _base_rtt(points: Sequence[Point]) -> list[str]:
    """The network's base RTT, if a flow has it."""
    its = [p.scenario.network.rtt_ms for p in points if any(f.has_networks_rtt for f in p.scenario.flows)]
    return [f"base RTT {_rtts(its)} ms"] if its else []


def _own_rtts(flows: Sequence[Any]) -> str:
    return _rtts([rtt for f in flows for rtt in (f.rtts_ms or [f.rtt_ms])])


def _rtts(given: Sequence[float | list[float]]) -> str:
    """RTTs as scenarios give them, in ms: single ones, or from the least to the largest if there are ranges."""
    ends = sorted({rtt for one in given for rtt in (one if isinstance(one, list) else [one])})
    return (
        f"{number(ends[0], 3)} to {number(ends[-1], 3)}"
        if any(isinstance(one, list) for one in given)
        else _values(ends)
    )


def _of(points: Iterable[Point], condition: str) -> list[float]:
    return sorted({p.conditions[condition] for p in points})


def _values(values: Sequence[float]) -> str:
    texts = list(dict.fromkeys(number(v, 3) for v in values))
    if len(texts) > _LISTED:
        return f"{texts[0]} to {texts[-1]}"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
