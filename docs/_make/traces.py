"""The traces of links that come with the package (data/traces/), by the models that their first lines state. No measured link."""

from __future__ import annotations

import math
import random
from pathlib import Path

from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab.scenario.link_trace import FOLDER

CELLULAR_S, CELLULAR_MBIT, SPREAD, REMEMBERED_S, STEP_MS = 20, 6.0, 0.6, 2.0, 100
LEO_S, STAYS_S, OUTAGE_S, LEO_MBIT = 60, 15, 0.05, (20, 100)


def pages() -> dict[Path, str]:
    """Both files."""
    return {FOLDER / "cellular.txt": _cellular(), FOLDER / "leo.txt": _leo()}


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
