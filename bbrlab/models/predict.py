"""Predictions of the fluid model for a scenario of experiments, point by point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.models import fluid
from bbrlab.models.of_paper import models_of
from bbrlab.models.world import World
from bbrlab.scenario.draws import draw_rtts
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Scenario

# Two steps, one twice the other, must agree to this in the share of the link.
STEP_TOLERANCE = 0.01
WORLD = World("the fluid model", ccas=tuple(fluid.CCAS), qdiscs=("fifo", "red"), starts=False)


@dataclass(frozen=True)
class Prediction:
    """The fluid model of one point."""

    run: fluid.Run
    shares: list[float]  # of each flow group, of the link, counted as the quirks say
    step_difference: float  # largest change of a share with twice or half the step; NaN if that was not computed

    @property
    def step_matters(self) -> bool:
        """Whether the step is too coarse for the result."""
        return self.step_difference > STEP_TOLERANCE


def _arguments(scenario: Scenario, seed: int, quirks: fluid.Quirks) -> dict[str, Any]:
    """simulate()'s arguments for a scenario. UserError, naming the field, if the model does not speak of such a one."""
    network = scenario.network
    WORLD.check(scenario)
    rtts = [rtt for group in draw_rtts(scenario, seed) for rtt in group]
    link_ms = models_of(scenario.paper).link_share_of_rtt * min(rtts)
    buffer = network.buffer_bytes / fluid.PACKET_BYTES
    if quirks.link_bdp_buffer:
        link_bdp = math.ceil(network.rate_mbit * 1000 / 8 * link_ms / fluid.PACKET_BYTES)
        buffer = network.buffer_bytes / network.bdp_bytes * link_bdp
    return {
        "cca": [flow.cca for flow in scenario.flows for _ in range(flow.count)],
        "rate_mbit": network.rate_mbit,
        "link_delay_ms": link_ms,
        "access_delay_ms": [rtt / 2 - link_ms for rtt in rtts],
        "buffer_packets": buffer,
        "qdisc": "red" if network.qdisc.kind == "red" else "drop-tail",
        "quirks": quirks,
    }


def fluid_share(
    scenario: Scenario, duration_s: float | None = None, step_ms: float = fluid.STEP_MS,
    quirks: fluid.Quirks = fluid.ALIGNED, seed: int = 1, check_step: bool = False,
) -> Prediction:  # fmt: skip
    """Integrate the fluid model for a scenario. UserError if the model does not speak of such a scenario, or refuses an argument.

    Args:
        duration_s: default: the scenario's own, with its window; else the means are over the last 5/9, as published.
        seed: which RTTs are drawn, where the scenario gives a range.
        check_step: integrate again with twice the step, or with half of it where twice is more than the model takes.
    """
    arguments = _arguments(scenario, seed, quirks)
    window = (scenario.window_s[0], scenario.window_s[1]) if duration_s is None else None
    seconds = scenario.duration_s if duration_s is None else duration_s
    arguments |= {"duration_s": seconds, "window_s": window}
    limit = fluid.step_limit_ms(arguments["access_delay_ms"])
    # Of twice the step, too, one must lie in the window.
    doubles = 2 * step_ms <= limit and (window[1] if window else seconds) * 1000 > step_ms
    other = 2 * step_ms if doubles else step_ms / 2
    most, longest = (fluid.duration_limit_s(len(arguments["cca"]), step) for step in (other, step_ms))
    if check_step and other < step_ms <= limit and most < seconds <= longest:
        raise UserError(
            f"check_step: takes half of step_ms {step_ms:g} here, at which at most {most:.0f} s can be integrated, found "
            f"{seconds:g}; give a shorter duration_s, or do without it (--no-check-step)"
        )

    def go(step: float) -> tuple[fluid.Run, list[float]]:
        run = fluid.simulate(step_ms=step, sample_ms=None, **arguments)
        shares, first = [], 0
        for flow in scenario.flows:
            chosen = [first <= i < first + flow.count for i in range(len(run.sent))]
            shares.append(run.share(chosen, quirks))
            first += flow.count
        return run, shares

    run, shares = go(step_ms)
    difference = float("nan")
    if check_step:
        difference = max(abs(a - b) for a, b in zip(shares, go(other)[1], strict=True))
    return Prediction(run, shares, difference)


def predictions_of(
    points: Sequence[Point], duration_s: float | None, step_ms: float, quirks: fluid.Quirks
) -> pd.DataFrame:
    """Predictions of several points: their swept values, share_of_capacity (group 0), jain_index, loss, occupancy,
    utilisation, duration_s, step_ms, step_difference.

    Args:
        step_ms: the longest; a path of short delays takes a shorter one.
    """
    rows = []
    for point in points:
        access_ms = _arguments(point.scenario, 1, quirks)["access_delay_ms"]
        step = min(step_ms, fluid.step_limit_ms(access_ms))
        p = fluid_share(point.scenario, duration_s, step, quirks, check_step=True)
        rows.append({
            **point.values, "share_of_capacity": p.shares[0], "jain_index": p.run.jain_index, "loss": p.run.loss,
            "occupancy": p.run.occupancy, "utilisation": p.run.utilisation,
            "duration_s": duration_s or point.scenario.duration_s, "step_ms": step, "step_difference": p.step_difference,
        })  # fmt: skip
    return pd.DataFrame(rows)
