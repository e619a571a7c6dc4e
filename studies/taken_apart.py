"""The fluid model on the small set-up of Sarpkaya et al.'s Fig. 2a, one change after another (notebooks/models.ipynb).

10 Mbit/s, a link of 10 ms and 10 ms of access delay each: an RTT of 40 ms. The ten flows of the step's cases have Scherrer
et al.'s set-up: 100 Mbit/s over the same link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from bbrlab.models import fluid, ware

RATE_MBIT, LINK_DELAY_MS, ACCESS_DELAY_MS, RTT_MS = 10, 10, 10, 40
LINK_BDP_PACKETS = 9  # of the link's 10 ms, rounded up as the reference does
PATH_BDP_PACKETS = RATE_MBIT * 1e6 * RTT_MS / 1000 / 8 / fluid.PACKET_BYTES
LONG_STEP_MS = 0.05  # of runs that are longer than the published 9 s
STEPS_MS = (0.1, 0.05, 0.02, 0.01, 0.005)  # of convergence()

# What separates the published curve from an aligned one, in the order in which it is put back.
CHANGES = {
    "delayed_probe_rtt": "ProbeRTT begins one RTT late and lasts some 350 ms",
    "late_probe_rtt": "first ProbeRTT after 10 s, later than the run",
    "early_queue": "whether there was a queue is looked up without its wait",
    "first_flow_delay": "start rates from the first flow's RTT",
    "sending_rate": "what is sent, lost packets included",
    "link_bdp_buffer": "1 BDP of the link (10 ms), not of the path (40 ms)",
    "rate_scale": "packets/ms x 10 over Mbit/s: a full link is 0.826",
}
# Flows and buffer (BDP of the path) of the runs that are drawn over time.
OVER_TIME = (
    (("bbr1", "cubic"), 1),
    (("bbr1", "cubic"), 8),
    (("bbr2", "cubic"), 4),
    (("bbr1", "bbr1", "bbr2", "bbr2"), 4),
)
# Access delays of Scherrer et al.'s ten flows (ms), rounded as theirs; 83 packets are 1 BDP of their link.
TEN_ACCESS_DELAYS_MS = (5.7, 9.2, 8.8, 6.3, 7.5, 7.2, 8.3, 8.9, 5.5, 5.1)
TEN_LINK_BDP_PACKETS = 83
# Of each case of the step: the flows, the rate (Mbit/s), their access delays (ms), the buffer (packets).
STEP_CASES: dict[str, tuple[Sequence[str], float, Sequence[float], float]] = {
    "BBRv1 v CUBIC, 16 BDP": (("bbr1", "cubic"), 10, (10, 10), 16 * PATH_BDP_PACKETS),
    "BBRv1 v CUBIC, 1 BDP": (("bbr1", "cubic"), 10, (10, 10), PATH_BDP_PACKETS),
    "5 BBRv1 + 5 CUBIC, 1 link BDP": (("bbr1",) * 5 + ("cubic",) * 5, 100, TEN_ACCESS_DELAYS_MS, TEN_LINK_BDP_PACKETS),
    "5 BBRv2 + 5 CUBIC, 5 link BDP": (("bbr2",) * 5 + ("cubic",) * 5, 100, TEN_ACCESS_DELAYS_MS, 5 * TEN_LINK_BDP_PACKETS),
}  # fmt: skip


def small(ccas: Sequence[str], buffer_packets: float, **options: Any) -> fluid.Run:
    """The model with these flows on the small set-up; options: fluid.simulate()'s."""
    delays = [ACCESS_DELAY_MS] * len(ccas)
    return fluid.simulate(list(ccas), RATE_MBIT, LINK_DELAY_MS, delays, buffer_packets, **options)


def over_time(
    ccas: Sequence[str], buffer_bdp: float, duration_s: float = 40, *, rtprop_may_rise: bool = False
) -> fluid.Run:
    """An aligned run with its trace, every 10 ms.

    Args:
        buffer_bdp: in BDP of the path.
        rtprop_may_rise: whether ProbeRTT may raise RTprop (fluid.Quirks.rtprop_never_rises off).
    """
    quirks = replace(fluid.ALIGNED, rtprop_never_rises=not rtprop_may_rise)
    buffer = buffer_bdp * PATH_BDP_PACKETS
    return small(ccas, buffer, duration_s=duration_s, step_ms=LONG_STEP_MS, sample_ms=10, quirks=quirks)


def runs_over_time() -> Iterator[tuple[Sequence[str], float, fluid.Run]]:
    """The flows, the buffer (BDP of the path) and the run of each of OVER_TIME."""
    for ccas, buffer_bdp in OVER_TIME:
        yield ccas, buffer_bdp, over_time(ccas, buffer_bdp)


def share_on_axis(label: float, quirks: fluid.Quirks) -> float:
    """BBRv1's share against one CUBIC flow at a label of the figure's axis, in BDP as the quirks read it; 9 s."""
    bdp = LINK_BDP_PACKETS if quirks.link_bdp_buffer else PATH_BDP_PACKETS
    return small(["bbr1", "cubic"], label * bdp, quirks=quirks).share([True, False], quirks)


def changes() -> pd.DataFrame:
    """BBRv1's share at 1 BDP from the aligned model to the published curve: columns ``change``, ``share``."""
    quirks = fluid.ALIGNED
    rows = [{"change": "aligned", "share": share_on_axis(1, quirks)}]
    for name, words in CHANGES.items():
        quirks = replace(quirks, **{name: True})
        rows.append({"change": f"+ {words}", "share": share_on_axis(1, quirks)})
    return pd.DataFrame(rows)


def curves(published: pd.DataFrame) -> pd.DataFrame:
    """The published fluid curve beside this code's, with all quirks and aligned.

    Args:
        published: sarpkaya2025/fig2a_fluid: columns ``buffer_bdp_label``, ``fluid_share``.
    """
    labels = published["buffer_bdp_label"]
    table = pd.DataFrame({"BDP on the axis": labels, "published curve": published["fluid_share"]})
    for name, quirks in (("this code, all quirks", fluid.REFERENCE), ("aligned", fluid.ALIGNED)):
        table[name] = [share_on_axis(x, quirks) for x in labels]
    return table.set_index("BDP on the axis")


def long_shares(measured: pd.DataFrame, buffers_bdp: Sequence[float] = (1, 2, 4, 8, 16)) -> pd.DataFrame:
    """BBRv1's share over 100 to 200 s with an RTprop that never rises, as published, and with one that may.

    Args:
        measured: sarpkaya2025/fig2a: columns ``buffer_bdp``, ``bbr_flows``, ``share_of_capacity``.
        buffers_bdp: of the path.

    Returns:
        Rows: both readings, the Ware model, the published measurement; columns: ``buffers_bdp``.
    """
    shares = {}
    for words, rises in (("as published", False), ("RTprop may rise", True)):
        quirks = replace(fluid.ALIGNED, rtprop_never_rises=not rises)
        options: dict[str, Any] = {"duration_s": 200, "window_s": (100, 200), "step_ms": LONG_STEP_MS, "quirks": quirks}
        runs = [small(["bbr1", "cubic"], x * PATH_BDP_PACKETS, **options) for x in buffers_bdp]
        shares[words] = [run.share([True, False]) for run in runs]
    shares["Ware"] = [float(ware.bbr_share(RATE_MBIT, RTT_MS, x, 1)) for x in buffers_bdp]
    single = measured[measured["bbr_flows"] == 1].set_index("buffer_bdp")["share_of_capacity"]
    shares["published measurement"] = [float(single[x]) for x in buffers_bdp]
    table = pd.DataFrame.from_dict(shares, orient="index", columns=list(buffers_bdp)).rename_axis("model")
    return table.rename_axis("buffer (BDP)", axis=1)


def step_tables() -> dict[str, pd.DataFrame]:
    """convergence() of each of STEP_CASES."""
    return {
        name: convergence(
            cca=list(ccas),
            rate_mbit=rate,
            link_delay_ms=LINK_DELAY_MS,
            access_delay_ms=list(delays),
            buffer_packets=buffer,
        )
        for name, (ccas, rate, delays, buffer) in STEP_CASES.items()
    }


def convergence(**arguments: Any) -> pd.DataFrame:
    """The means of fluid.simulate(**arguments) at several steps, to separate the model from the step.

    Returns:
        One row per step: step_ms, share_0, share_1, ... (of the link, delivered), jain_index, loss, occupancy, utilisation.
    """
    rows = []
    for step_ms in STEPS_MS:
        run = fluid.simulate(step_ms=step_ms, **arguments)
        shares = {f"share_{i}": rate / run.capacity for i, rate in enumerate(run.delivered)}
        rows.append({"step_ms": step_ms, **shares, "jain_index": run.jain_index, "loss": run.loss,
                     "occupancy": run.occupancy, "utilisation": run.utilisation})  # fmt: skip
    return pd.DataFrame(rows)
