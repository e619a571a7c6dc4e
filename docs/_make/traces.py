"""The traces of links that come with the package (data/traces/), by the models that their first lines state. No measured link."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab.scenario.link_trace import FOLDER

CELLULAR_S, CELLULAR_MBIT, SPREAD, REMEMBERED_S, STEP_MS = 20, 6.0, 0.6, 2.0, 100
LEO_S, STAYS_S, OUTAGE_S, LEO_MBIT = 60, 15, 0.05, (20, 100)
# IEEE 802.11-2020: times of the 5 GHz band (17.4.4), access of best effort (9.4.2.28), rates of 20 MHz, one stream, short guard interval (19.5).
WIFI_S, OTHERS, OTHERS_US, AGGREGATE_US, AGGREGATE_PACKETS = 6, 2, (300, 4000), 4000, 64
SLOT_US, SIFS_US, AIFS_US, PREAMBLE_US, BLOCK_ACK_US, WINDOW_MIN, WINDOW_MAX = 9, 16, 43, 36, 32, 15, 1023
WIFI_MBIT, WIFI_STEP_MS, ON_AIR_BYTES = (28.9, 43.3, 57.8, 65.0, 72.2), 100, 1544


def pages() -> dict[Path, str]:
    """All files."""
    return {FOLDER / "cellular.txt": _cellular(), FOLDER / "leo.txt": _leo(), FOLDER / "wifi.txt": _wifi()}


def _cellular() -> str:
    """Times in ms, as mahimahi has them."""
    rng = random.Random("trace:cellular")
    lines = [
        f"# {CELLULAR_S} s of a link whose rate wanders as a radio cell's may. The logarithm of the rate is a first-order autoregressive process in steps of",
        f"# {STEP_MS} ms: standard deviation {SPREAD}, remembered for {REMEMBERED_S:g} s, mean rate {CELLULAR_MBIT:g} Mbit/s. In each ms those packets of {FRAME_BYTES} bytes may leave that the rate",
        "# has made up. A time in ms for each, as mahimahi has them; no measured link. Made by docs/_make/traces.py.",
    ]
    kept, state, made_up = math.exp(-STEP_MS / 1000 / REMEMBERED_S), 0.0, 0.0
    for ms in range(1, CELLULAR_S * 1000 + 1):
        if (ms - 1) % STEP_MS == 0:
            state = kept * state + math.sqrt(1 - kept**2) * rng.gauss(0, 1)
        made_up += CELLULAR_MBIT * math.exp(SPREAD * state - SPREAD**2 / 2) * 125
        while made_up >= FRAME_BYTES:
            made_up -= FRAME_BYTES
            lines.append(str(ms))
    return "\n".join(lines) + "\n"


def _leo() -> str:
    """A table of times in s and rates."""
    rng = random.Random("trace:leo")
    low, high = LEO_MBIT
    lines = [
        f"# {LEO_S} s of a link by way of satellites in low orbit: every {STAYS_S} s it is given another, after {OUTAGE_S * 1000:g} ms without any, whose rate",
        f"# is uniform between {low} and {high} Mbit/s. Times in s and rates in Mbit/s; no measured link. Made by docs/_make/traces.py.",
    ]
    for begin_s in range(0, LEO_S, STAYS_S):
        lines += [f"{begin_s:g} 0", f"{begin_s + OUTAGE_S:g} {rng.uniform(low, high):.1f}"]
    return "\n".join([*lines, f"{LEO_S:g} 0"]) + "\n"


def _wifi() -> str:
    """Times in ms, as mahimahi has them, those of an aggregate all the same."""
    lines = [
        f"# {WIFI_S} s of the way from an access point to a station in 802.11n (20 MHz, one stream), where {OTHERS} others send all the time, too. Who sends next is",
        f"# drawn as the standard has it (AIFS {AIFS_US} us, slots of {SLOT_US} us, windows of {WINDOW_MIN} to {WINDOW_MAX} slots, which double when two begin at once and both lose).",
        f"# An aggregate has what {AGGREGATE_US / 1000:g} ms of air carry, at most {AGGREGATE_PACKETS} packets, all of which come at its end; the others' take {OTHERS_US[0] / 1000:g} to {OTHERS_US[1] / 1000:g} ms. Every {WIFI_STEP_MS} ms the rate",
        f"# of the air goes one step up or down or stays ({', '.join(map(str, WIFI_MBIT))} Mbit/s). No packet is lost otherwise, and an aggregate for which fewer",
        "# packets wait takes no less air. A time in ms for each packet; no measured link. Made by docs/_make/traces.py.",
    ]
    for end_us, packets in wifi_aggregates(WIFI_S):
        lines += [f"{end_us / 1000:.1f}"] * packets
    return "\n".join([*lines, ""])


def wifi_aggregates(duration_s: float) -> Iterator[tuple[float, int]]:
    """When each aggregate of the access point has come, in us, and how many packets it has."""
    rng = random.Random("trace:wifi")
    stations = range(1 + OTHERS)  # the access point is 0
    windows = [WINDOW_MIN for _ in stations]
    slots = [rng.randint(0, WINDOW_MIN) for _ in stations]
    now_us, rate, steps = 0.0, len(WIFI_MBIT) // 2, 0
    while True:
        waited = min(slots)
        senders = [i for i in stations if slots[i] == waited]
        slots = [left - waited - 1 for left in slots]  # who does not send counts the slot in which others begin
        now_us += AIFS_US + waited * SLOT_US + PREAMBLE_US
        while steps * WIFI_STEP_MS * 1000 < now_us:
            steps += 1
            rate = min(max(rate + rng.choice((-1, 0, 1)), 0), len(WIFI_MBIT) - 1)
        packets = min(AGGREGATE_PACKETS, int(AGGREGATE_US * WIFI_MBIT[rate] / (ON_AIR_BYTES * 8)))
        takes_us = {i: rng.uniform(*OTHERS_US) if i else packets * ON_AIR_BYTES * 8 / WIFI_MBIT[rate] for i in senders}
        now_us += max(takes_us.values())
        if now_us > duration_s * 1e6:
            return
        if senders == [0]:
            yield now_us, packets
        now_us += SIFS_US + BLOCK_ACK_US
        for i in senders:
            windows[i] = WINDOW_MIN if len(senders) == 1 else min(2 * windows[i] + 1, WINDOW_MAX)
            slots[i] = rng.randint(0, windows[i])
