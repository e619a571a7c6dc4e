"""The smallest step that a judged number can take: one packet, one of 64 points, one pair of points of a trend.

A number that is equal in every seed says nothing of chance; if it is farther from its limit than this step, it is decided all the same.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.claims.expressions import evaluate
from bbrlab.claims.schema import CONDITIONS, PREDICTED, PUBLISHED, WARE
from bbrlab.measure.metrics import METRICS
from bbrlab.scenario.point import Point

WITHOUT_CHANCE = {*CONDITIONS, PUBLISHED, WARE, *PREDICTED}
_OF_ALL_PACKETS = {"share_of_capacity", "share_of_goodput", "utilisation", "link_utilisation", "loss", "loss_over_delivered", "ecn_marked"}  # fmt: skip
OF_THE_BUFFER = {"occupancy", "occupancy_p50", "occupancy_p95"}  # what the buffer's size alone changes
_JAIN = {"jain_index", "jain_index_all"}
_RATES = {"goodput_mbit", "written_mbit"}
_OF_STAYS, _PROBE_RTT_S = {"probe_rtt_together"}, 10  # BBRv1's; the others' come twice as often
_BY_SAMPLES = {"startup_s", "up_s", "down_s", "cruise_s", "between_probe_rtt_s", "between_up_s"}


def step_of(column: str, point: Point, utilisation: float) -> float:
    """The smallest step of a column of a point's table; 0 of what no run measures, infinite if it has none that is known.

    Args:
        utilisation: of the link, by its runs.
    """
    if column in WITHOUT_CHANCE:
        return 0.0
    scenario = point.scenario
    network, (begin, end) = scenario.network, scenario.window_s
    packet_mbit = network.frame_bytes * 8 / 1e6
    packet_s = packet_mbit / network.rate_mbit
    if column in _OF_ALL_PACKETS or column in _JAIN:
        packets = (end - begin) * utilisation / packet_s
        # Of Jain's index of shares x: a packet moves the squared sum and the sum of squares by at most so much each.
        return (4 if column in _JAIN else 1) / packets if packets > 0 else math.inf
    if column in OF_THE_BUFFER:
        return network.frame_bytes / network.buffer_bytes
    if column in _RATES:
        return packet_mbit / (end - begin)
    if column in _OF_STAYS:  # one stay of one flow's
        return min(1.0, _PROBE_RTT_S / scenario.duration_s)
    if column in _BY_SAMPLES:
        return 1 / scenario.sample_hz
    unit = METRICS[column].unit
    return {"packets": 1.0, "flows": 1.0, "transmissions": 1.0, "ms": 1000 * packet_s, "s": packet_s}.get(
        unit, math.inf
    )


def resolution(tree: ast.expr, values: Mapping[str, Any], steps: Mapping[str, Any]) -> Any:
    """How far an expression moves, at most, if each column that it reads moves by its step.

    Args:
        tree: from expressions.parse().
        values: the columns' means over the seeds, a number or shape (points,) each.
        steps: of the same columns and shapes.

    Returns:
        A number, or shape (points,).
    """
    with np.errstate(all="ignore"):
        return _of(tree, values, steps)


def _of(tree: ast.expr, values: Mapping[str, Any], steps: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Constant():
            return 0.0
        case ast.Name() | ast.Attribute():
            return steps[ast.unparse(tree)]
        case ast.UnaryOp(operand=operand):
            return _of(operand, values, steps)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = evaluate(left, values), evaluate(right, values)
            move_a, move_b = _of(left, values, steps), _of(right, values, steps)
            match op:
                case ast.Mult():
                    return np.abs(a) * move_b + np.abs(b) * move_a + move_a * move_b
                case ast.Div():
                    return (np.abs(b) * move_a + np.abs(a) * move_b) / np.maximum(np.abs(b) - move_b, 0) / np.abs(b)
                case ast.Pow():
                    return np.abs(np.float_power(np.abs(a) + move_a, b) - np.float_power(np.abs(a), b))
                case _:
                    return move_a + move_b
        case ast.Call(func=ast.Name(id=name), args=arguments):
            moves = [np.max(_of(a, values, steps)) for a in arguments]
            first = np.atleast_1d(evaluate(arguments[0], values))
            return _of_function(name, moves, first, _of(arguments[0], values, steps))
    raise AssertionError(ast.dump(tree))  # parse() lets nothing else pass


def _of_function(name: str, moves: list[Any], first: Array, each: Any) -> Any:
    """The same of a function: those that count points move by one of them, whatever their columns do."""
    if name == "abs":
        return each
    if not any(moves):
        return 0.0
    count = len(first)
    match name:
        case "fraction_above" | "tree_accuracy":
            return 1 / count
        case "trend":
            return pair_of(count)
        case "crossing":
            return float(np.diff(np.sort(first)).max()) if count > 1 else math.inf
        case "sum":
            return count * max(moves)
        case _:
            return max(moves)


def pair_of(points: int) -> float:
    """How far Kendall's tau of so many points moves by one pair that goes the other way."""
    return 4 / (points * (points - 1)) if points > 1 else math.inf
