"""Checks of the data path behind the bottleneck: delay, and the share of late packets."""

from __future__ import annotations

import math

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.chance import CHANCE, room
from bbrlab.measure.checks.check import Check, Tolerance, not_checked
from bbrlab.scenario.schema import DataPath, Scenario


def data_path_checks(scenario: Scenario, report: Report, tolerance: Tolerance) -> list[Check]:
    """``data_delay``: the distribution of the delay behind the bottleneck, by packets on the idle path before the experiment;
    ``late_packets``: the share of packets that were held back in the experiment."""
    path = scenario.network.data_path
    if path is None:
        return []
    interrupts_ms = (scenario.hosts.interrupt_delay_us or 0.0) / 1000
    checks = [_worst([_delay(path, np.array(us) / 1000, interrupts_ms, tolerance) for us in report["data_delays_us"]])]
    if path.reordering is not None:
        packets, late = (sum(entry[name] for entry in report["late"].values()) for name in ("packets", "late"))
        asked, detail = path.reordering.share, f"{late} of {packets} packets came late"
        if not packets:
            return [*checks, not_checked("late_packets", asked, "no data packet came")]
        ok = abs(late - packets * asked) <= room(packets, asked)
        checks.append(Check("late_packets", asked, round(late / packets, 9), ok, detail))
    return checks


def _worst(checks: list[Check]) -> Check:
    return min(checks, key=lambda check: check.ok is not False)


def _delay(path: DataPath, took_ms: Array, interrupts_ms: float, tolerance: Tolerance) -> Check:
    """Compare the packets' delays with their distribution; each may be off by the tolerance of an RTT.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz (Massart 1990) a sample of n is further than sqrt(ln(2 / p) / 2n) from its law
    with a probability of at most p.
    """
    took_ms = np.sort(took_ms)
    low, high = took_ms - interrupts_ms - tolerance.rtt_ms, took_ms + tolerance.rtt_ms
    count = np.arange(len(took_ms))
    distance = float(
        max((count / len(count) - _law(path, high)).max(), (_law(path, low) - (count + 1) / len(count)).max(), 0)
    )
    largest = math.sqrt(math.log(2 / CHANCE) / (2 * len(count)))
    within = high[0] >= path.delay_ms and low[-1] <= path.delay_ms + path.varies_ms
    detail = (
        f"ms that a data packet takes behind the bottleneck: mean of {len(count)} on the idle path, from {took_ms[0]:.4g} to {took_ms[-1]:.4g}; "
        f"at most {distance:.3f} from the law (allowed: {largest:.3f})"
    )
    return Check(
        "data_delay", _mean_ms(path), round(float(took_ms.mean()), 6), bool(within and distance <= largest), detail
    )


def _mean_ms(path: DataPath) -> float:
    jitter_ms = path.jitter.ms / 2 if path.jitter else 0.0
    return path.delay_ms + jitter_ms + (path.reordering.share * path.reordering.late_ms if path.reordering else 0.0)


def _law(path: DataPath, ms: Array) -> Array:
    """The probability that a packet on the idle path takes at most each of some times."""
    share, late_ms = (path.reordering.share, path.reordering.late_ms) if path.reordering else (0.0, 0.0)
    probability: Array = (1 - share) * _jitter_law(path, ms - path.delay_ms) + share * _jitter_law(
        path, ms - path.delay_ms - late_ms
    )
    return probability


def _jitter_law(path: DataPath, ms: Array) -> Array:
    probability: Array = np.clip(ms / path.jitter.ms, 0, 1) if path.jitter else (ms >= 0).astype(float)
    return probability
