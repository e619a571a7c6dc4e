"""What a flow's samples show of its algorithm: its pacing gains, when it drains the queue, what it does after loss.

Sources: Linux 6.12's tcp_bbr.c and tcp_cubic.c, draft-ietf-ccwg-bbr-06 (its constants), RFC 9438 (CUBIC's beta), RFC 5681 (Reno's).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array
from bbrlab_apps.testbed.recording import Flow, is_there

FINE_S = 0.21  # between samples: ProbeRTT lasts 200 ms, and one that is longer between them may miss each
BEGIN_S = 4.0  # of a flow, whose Startup is left out
NEAR_S = 2.5  # around a sample: what its window is compared with
LOW = 0.7  # of the median around it, which ProbeRTT falls below: it is half of a BDP (v2, v3), or four packets (v1)
LONG_S = 1.2  # of a low stay that may be ProbeRTT's, at most, beyond a sample: 200 ms and some RTTs
FLOOR_PACKETS = 5.0  # BBRv1's window of ProbeRTT is 4 packets
# How far two ProbeRTTs are apart at least, in s: the constants 10 and 5, and a stay and some round trips more. Each is put off when the
# minimum is met again, so that others are farther apart.
PERIOD_1_S, PERIODS_23_S = 9.5, (4.5, 6.5)
# Pacing gains that one version alone has: Startup 2 / ln 2 of v1 and v2 against 4 ln 2 of v3, DOWN 0.75 against 0.9.
GAINS = {"bbr12": ((2.85, 2.92), (0.74, 0.76)), "bbr3": ((2.75, 2.80), (0.88, 0.92))}
JUMP = 1.5  # of the window between two samples: BBRv1 restores it after recovery, CUBIC and Reno grow slowly but in slow start
CUTS = {
    "cubic": (0.62, 0.80),
    "reno": (0.42, 0.58),
}  # of the window after loss: 0.7 and 0.5, and what samples miss of it


@dataclass(frozen=True)
class Fingerprint:
    """What is to be noticed of a flow."""

    fine: bool  # whether its samples are close enough to show a ProbeRTT, and last long enough for two
    gains: frozenset[str]  # the keys of GAINS of which it had one
    dips_s: Array  # when its window was low for a moment, and nothing was lost
    floor_packets: float  # the smallest window of those moments; NaN without one
    cuts: Array  # its window after each loss, over that before it
    jumps: int  # how often its window rose by JUMP or more between two samples

    @property
    def period_s(self) -> float:
        """The shortest time between two dips; NaN of fewer than two."""
        return float(np.diff(self.dips_s).min()) if len(self.dips_s) > 1 else float("nan")


def fingerprint_of(flow: Flow) -> Fingerprint:
    """The fingerprint of a flow."""
    table = flow.samples[flow.samples["time_s"] >= flow.start_s + BEGIN_S].reset_index(drop=True)
    gains = flow.samples["pacing_gain"].dropna().to_numpy()
    of = {name for name, ranges in GAINS.items() if any(((gains > low) & (gains < high)).any() for low, high in ranges)}
    has_window = len(table) > 4 and table["cwnd_packets"].notna().mean() > 0.9
    if not has_window:
        return Fingerprint(False, frozenset(of), np.array([]), float("nan"), np.array([]), 0)
    step_s = float(table["seconds"].median())
    fine = step_s <= FINE_S and flow.end_s - flow.start_s >= BEGIN_S + 2 * PERIOD_1_S
    dips, floor = _dips(table, step_s)
    window = table["cwnd_packets"].to_numpy()
    jumps = int((window[1:] >= JUMP * window[:-1]).sum())
    return Fingerprint(fine, frozenset(of), dips, floor, _cuts(table, step_s), jumps)


def _dips(table: pd.DataFrame, step_s: float) -> tuple[Array, float]:
    """When the window was low for a moment without a loss, and the smallest one of those moments."""
    window = table["cwnd_packets"]
    around = window.rolling(max(3, round(2 * NEAR_S / step_s)), center=True, min_periods=3).median()
    low = (window < LOW * around).to_numpy()
    times, lost = table["time_s"].to_numpy(), table["retransmits"].fillna(0).to_numpy()
    dips, floors, i = [], [], 0
    while i < len(low):
        if not low[i]:
            i += 1
            continue
        j = i
        while j + 1 < len(low) and low[j + 1]:
            j += 1
        if times[j] - times[i] <= LONG_S and not lost[max(0, i - 1) : i + 1].any():
            dips.append(times[i])
            floors.append(window[i : j + 1].min())
        i = j + 1
    return np.array(dips), min(floors, default=float("nan"))


def _cuts(table: pd.DataFrame, step_s: float) -> Array:
    """The least window in the round trips after a loss over that before it; a loss that goes on is one."""
    window, lost = table["cwnd_packets"].to_numpy(), table["retransmits"].fillna(0).to_numpy() > 0
    rtt_s = table["rtt_ms"].median() / 1e3
    after = 2 + (math.ceil(1.5 * rtt_s / step_s) if is_there(rtt_s) else 0)
    cuts = []
    for i in range(1, len(window) - after):
        if lost[i] and not lost[i - 1]:
            before = max(window[i - 1], window[i])
            cuts.append(window[i : i + after].min() / before)
    return np.array(cuts)
