"""RED's thresholds with their defaults, and what tc and the kernel can make of them.

tc turns a burst into the weight of the mean queue, 2^-weight, and hands over the probability in 32 bits (tc_red.c and q_red.c
of iproute2 6.1); the kernel keeps the mean queue shifted by the weight in 32 bits and divides the probability by
the distance of the thresholds in whole numbers (red.h of Linux 6.12).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from bbrlab.scenario.frames import FRAME_BYTES

WORD = 1 << 32
PROBABILITY = 0.02  # tc's own default
PROBABILITY_MAX = 1 - 1 / WORD  # the largest that 32 bits carry: tc would make 0 of 1
PROBABILITY_ERROR = 0.05  # of what the kernel's whole numbers make of a probability: half of what two of 10 % differ by
TICKS_PER_US = 15.625  # the kernel's, of 64 ns
IDLE_TABLE, IDLE_STEPS = 512, 31


class Thresholds(NamedTuple):
    """What RED gets, in bytes, packets and a probability."""

    min_bytes: int
    max_bytes: int
    avpkt_bytes: int
    burst_packets: int
    probability: float


def thresholds(
    buffer_bytes: int,
    min_bytes: int | None = None,
    max_bytes: int | None = None,
    avpkt_bytes: int | None = None,
    burst_packets: int | None = None,
    probability: float | None = None,
    *,
    frame_bytes: int = FRAME_BYTES,
) -> Thresholds:
    """RED's parameters: what is given, and for the rest the defaults that tc-red(8) advises, of a burst at most what Linux takes."""
    low = min_bytes or max(frame_bytes, min(buffer_bytes // 12, (max_bytes or buffer_bytes) // 3))
    high = max_bytes or max(low + frame_bytes, buffer_bytes // 4)
    average = avpkt_bytes or frame_bytes
    most = _largest_burst(low, average, _largest_weight(high))
    burst = burst_packets or min(-(-(2 * low + high) // (3 * average)) + 1, most)
    return Thresholds(low, high, average, burst, min(probability or PROBABILITY, PROBABILITY_MAX))


def problem(red: Thresholds, rate_mbit: float) -> str:
    """Why tc or the kernel would not take these, naming the field and its true limit; empty if they take them."""
    low, high, average, burst, probability = red
    if low >= high:
        return f"min_bytes {low} must be below max_bytes {high}"
    if average > low:
        return f"avpkt_bytes {average} must be at most min_bytes, {low}: RED's mean queue starts to count there"
    if burst + 1 - low / average < 1:
        return f"burst_packets {burst} must be at least {-(-low // average)}: min_bytes {low} / avpkt_bytes {average}"
    most = _largest_weight(high)
    if most < 1:
        return f"max_bytes {high} must be at most {2**30 - 1}: Linux keeps RED's mean queue in 32 bits"
    weight = _weight(low, burst, average)
    if weight > most:
        return (
            f"burst_packets {burst} must be at most {_largest_burst(low, average, most)} with these thresholds: Linux keeps "
            f"RED's mean queue, here up to {high} bytes, in 32 bits"
        )
    slope = probability * WORD / (high - low)
    if not probability > (high - low) / 2**31 or abs(max(1, math.floor(slope)) / slope - 1) > PROBABILITY_ERROR:
        return (
            f"probability {probability:g} is too small for thresholds that are {high - low} bytes apart: Linux counts it in "
            f"steps of {(high - low) / WORD:.2g}; {_above(high - low):.2g} is possible, or thresholds that are closer"
        )
    frame_ticks = average * 8 / rate_mbit * TICKS_PER_US
    if frame_ticks >= WORD or IDLE_STEPS * frame_ticks / -math.log1p(-(0.5**weight)) >= IDLE_TABLE * 2**31:
        return (
            f"kind red: rate_mbit {rate_mbit:g} is too low for RED with burst_packets {burst} and avpkt_bytes {average}: tc "
            "cannot count how its mean queue falls in so long a time (a smaller buffer, burst or avpkt_bytes can)"
        )
    return ""


def _above(distance: int) -> float:
    """A probability that the kernel counts well enough for thresholds at some distance."""
    return min(1.0, math.ceil(1 / PROBABILITY_ERROR) * distance / WORD)


def _largest_weight(high: int) -> int:
    """The largest weight with which the kernel keeps a mean queue of so many bytes (red_check_params in red.h)."""
    return 31 - high.bit_length()


def _weight(low: int, burst: int, average: int) -> int:
    """The weight that tc takes for a burst, as a power of 1/2; 32 if none is small enough."""
    packets = burst + 1 - low / average
    for weight in range(1, 32):
        part = 0.5**weight
        if packets <= (1 - (1 - part) ** burst) / part:
            return weight
    return 32


@functools.lru_cache(maxsize=1024)  # the points of a sweep share few of them
def _largest_burst(low: int, average: int, most: int) -> int:
    """The largest burst whose weight is at most ``most``."""
    fits, fails = -(-low // average), WORD
    while fails - fits > 1:  # the weight grows with the burst
        middle = (fits + fails) // 2
        if _weight(low, middle, average) <= most:
            fits = middle
        else:
            fails = middle
    return fits
