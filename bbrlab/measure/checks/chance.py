"""How far chance alone may bring a sound run from what was asked."""

from __future__ import annotations

import math

from bbrlab.scenario.schema import burst_probabilities

CHANCE = math.erfc(4.5 / math.sqrt(2))  # that a sound run fails, one of 150,000: that of 4.5 sigmas of a normal law


def room(packets: int, share: float, burst_packets: float | None = None, *, among: int = 1) -> float:
    """By how much a count of ``packets`` of which each is lost, or late, with probability ``share`` may be off.

    By Bernstein's inequality, which holds where few are expected, too. Bursts count as if so many packets were lost or not together
    as their variance is larger.

    Args:
        among: how many counts one check judges, which share its chance to fail.
    """
    if not 0 < share < 1:
        return 0.0
    together = variance_factor(share, burst_packets)
    chance = math.log(2 * among / CHANCE)
    third = together * chance / 3
    return third + math.sqrt(third**2 + 2 * chance * together * packets * share * (1 - share))


def variance_factor(loss: float, burst_packets: float | None) -> float:
    """By how much the variance of a count of lost packets is larger than if each were lost on its own: (1 + r) / (1 - r) for a Markov
    chain whose states are correlated by r from packet to packet."""
    if burst_packets is None:
        return 1.0
    r = 1 - sum(burst_probabilities(loss, burst_packets))
    return (1 + r) / (1 - r)
