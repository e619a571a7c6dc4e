"""The fluid model of Scherrer, Legner, Perrig, Schmid, "Model-Based Insights on the Performance, Fairness, and Stability
of BBR" (IMC 2022, arXiv 2208.10103): BBRv1, BBRv2, CUBIC and Reno flows as differential equations at one bottleneck.

Two modes. ``reference`` is what the authors' public code integrates, to the last digits (explicit Euler, its initial
conditions and its quirks). ``aligned`` is what should be compared with experiments; every difference between the two is a
field of Quirks, so that each can be switched on by itself.

Units: ms, packets of PACKET_BYTES, packets per ms.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbrlab.base.errors import UserError
from bbrlab.models import _fluid_kernel
from bbrlab.scenario.frames import FRAME_BYTES

PACKET_BYTES = FRAME_BYTES  # the public code's packets are full-size frames
CCAS = {
    "reno": _fluid_kernel.RENO,
    "cubic": _fluid_kernel.CUBIC,
    "bbr1": _fluid_kernel.BBR1,
    "bbr2": _fluid_kernel.BBR2,
}
STEP_MS = 0.01
# Beyond it the fastest term of the model (xmax follows the delivery rate at 5 per ms) is no longer resolved.
STEP_LIMIT_MS = 0.1
# About two hours on one core (docs/reference/benchmarks.md has the measured time per step and flow).
FLOW_STEPS_LIMIT = 1.5e11
# The public code draws the access delays, and after them BBRv2's places in the cycle, from random.seed(1).
REFERENCE_SEED = 1
Mode = Literal["reference", "aligned"]
QueueDiscipline = Literal["drop-tail", "red"]


@dataclass(frozen=True)
class Quirks:
    """Departures of the public code from BBR, or from what experiments measure. All True: reference mode.

    The first seven are off in aligned mode. The last three belong to the published model and stay on in both modes;
    switching them off shows what the model owes to them.
    """

    link_bdp_buffer: bool = True
    """A scenario's buffer in BDP is taken of the link's delay alone, not of the path's RTT."""
    rate_scale: bool = True
    """Shares are packets/ms times 10 over Mbit/s, so that a full link has 10 000 / (8 x 1514) = .8256."""
    sending_rate: bool = True
    """Shares are of what flows send, lost packets included, not of what the link delivers."""
    late_probe_rtt: bool = True
    """BBRv1's first ProbeRTT comes after 10 s, later than the published runs of 9 s end; without it, after 5 s.
    BBRv2's come after 5 s and then every 10 s; without it, every 5 s."""
    delayed_probe_rtt: bool = True
    """ProbeRTT's timer and mode look back by the base RTT: ProbeRTT begins one RTT late and lasts 350 to 410 ms with RTTs of
    30 to 38 ms; without it, 200 ms at once."""
    early_queue: bool = True
    """Whether packets that arrive now met a queue is looked up by the base RTT, without their wait in that queue: BBR takes the
    last packets of a queue that empties for ones that met none, and its maximum of the delivery rate ends a little lower."""
    first_flow_delay: bool = True
    """Rates start from the first flow's RTT in place of each flow's own: BBRv1 flows start unequal."""
    buffer_sets_inflight_hi: bool = True
    """BBRv2's inflight_hi starts higher in buffers above four link BDP (there is no Startup that could find it)."""
    cubic_offset: bool = True
    """CUBIC's window starts a constant 2 s before the cube's inflection, with .7 in place of .3 in K."""
    rtprop_never_rises: bool = True
    """RTprop stays at the lowest RTT ever; without it, ProbeRTT sets it to the lowest RTT seen there."""


REFERENCE = Quirks()
ALIGNED = replace(REFERENCE, link_bdp_buffer=False, rate_scale=False, sending_rate=False, late_probe_rtt=False,
                  delayed_probe_rtt=False, early_queue=False, first_flow_delay=False)  # fmt: skip
MODES: dict[str, Quirks] = {"reference": REFERENCE, "aligned": ALIGNED}


@dataclass(frozen=True)
class Run:
    """A finished integration."""

    # t_ms, queue_packets, loss_probability (what drives the queue), rate_0_packets_per_ms, ... at the start and at every sample
    trace: pd.DataFrame
    # sent, delivered: mean rate of each flow over the window, packets/ms
    sent: NDArray[np.float64]
    delivered: NDArray[np.float64]
    loss: float  # lost per sent over the window
    queue_packets: float  # mean queue over the window
    utilisation: float  # mean of min(1, arrivals over capacity), 1 while there is a queue
    # buffer_packets, capacity: of the link; packets and packets/ms
    buffer_packets: float
    capacity: float
    quirks: Quirks

    @property
    def occupancy(self) -> float:
        """Mean queue over buffer. The published figures divide by the buffer in packets of 1500 bytes: 84 for 83."""
        return self.queue_packets / self.buffer_packets

    @property
    def jain_index(self) -> float:
        """Jain's fairness index of what flows send (quirk ``sending_rate``: as the public code has it), else of what arrives."""
        rates = self.sent if self.quirks.sending_rate else self.delivered
        return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))

    def share(self, chosen: Sequence[bool] | NDArray[np.bool_], quirks: Quirks = ALIGNED) -> float:
        """Share of the link of the flows chosen (one truth value per flow), with the quirks of how shares are counted."""
        rate = float((self.sent if quirks.sending_rate else self.delivered)[np.asarray(chosen, dtype=bool)].sum())
        return rate * 10 / (self.capacity * PACKET_BYTES * 8 / 1000) if quirks.rate_scale else rate / self.capacity


def simulate(
    cca: Sequence[str],
    rate_mbit: float,
    link_delay_ms: float,
    access_delay_ms: Sequence[float],
    buffer_packets: float,
    qdisc: QueueDiscipline = "drop-tail",
    duration_s: float = 9.0,
    step_ms: float = STEP_MS,
    mode: Mode = "reference",
    cycle_start_ms: Sequence[float] | None = None,
    sample_ms: float | None = 1.0,
    window_s: tuple[float, float] | None = None,
    quirks: Quirks | None = None,
) -> Run:
    """Integrate the model.

    UserError for an argument that is not possible, naming it and its limit; and if the integration leaves the finite numbers, with
    the time and the flow.

    Args:
        cca: of each flow: bbr1, bbr2, cubic or reno.
        link_delay_ms: one-way delay of the bottleneck link.
        access_delay_ms: one-way delay of each flow's access link; a flow's RTT is twice the sum of both delays.
        buffer_packets: bottleneck buffer, packets of 1514 bytes.
        qdisc: drop-tail, or red (loss probability = queue / buffer).
        step_ms: of the explicit Euler method; at most STEP_LIMIT_MS and the smallest access delay.
        mode: which quirks are on.
        cycle_start_ms: of each flow, when its BBR cycle began (at most 0). Default, as in the public code: 0 without
            BBRv2 flows, else -10 RTT - uniform(0, 1000) from a fixed seed.
        sample_ms: between two rows of the trace; a multiple of step_ms. None: no row but the first.
        window_s: over which means are taken; default: from 4/9 of the duration to its end, as published (4 to 9 s).
        quirks: in place of those of the mode.
    """
    chosen = quirks or _mode(mode)
    flows = len(cca)
    _check(cca, rate_mbit, link_delay_ms, access_delay_ms, buffer_packets, qdisc, duration_s, step_ms, sample_ms)
    low_s, high_s = window_s or (duration_s * 4 / 9, duration_s)
    if not 0 <= low_s < high_s <= duration_s:
        raise UserError(f"window_s: must lie within the duration of {duration_s:g} s, found {low_s:g} to {high_s:g}")
    first, last = round(low_s * 1000 / step_ms), round(high_s * 1000 / step_ms)
    if last < 1:  # steps are counted from 1
        raise UserError(
            f"{'window_s' if window_s else 'duration_s'}: no step of {step_ms:g} ms lies in the window of {low_s:g} to {high_s:g} s, "
            "over which means are taken; give more seconds, or a smaller step_ms"
        )

    capacity = rate_mbit * 1000 / 8 / PACKET_BYTES
    kind = np.array([CCAS[name] for name in cca], dtype=np.int64)
    access = np.array(access_delay_ms, dtype=float)
    rtt = 2 * link_delay_ms + 2 * access
    start = _cycle_start(kind, rtt, cycle_start_ms)
    v2 = kind == _fluid_kernel.BBR2
    late = chosen.late_probe_rtt
    first_probe_rtt = np.where(v2, 5000.0, 10_000.0 if late else 5000.0)
    probe_rtt_every = np.where(v2, 10_000.0 if late else 5000.0, 10_000.0)
    link_bdp = math.ceil(rate_mbit * 1000 / 8 * link_delay_ms / PACKET_BYTES)
    v2_start = 1.0
    if chosen.buffer_sets_inflight_hi:
        v2_start += 2 * max(buffer_packets / link_bdp - 4, 0.0) / 4

    count = round(duration_s * 1000 / step_ms)
    every = round(sample_ms / step_ms) if sample_ms else count + 1
    longest_ms = rtt.max() + max(buffer_packets / capacity, rtt.max())
    samples = np.zeros((count // every + 1, 3 + flows))
    totals, flow_totals = np.zeros(len(_fluid_kernel.TOTALS)), np.zeros((flows, len(_fluid_kernel.FLOW_TOTALS)))
    longest_cycle_ms = min(2000.0 + 1000.0, 63 * rtt.max()) + 1 if v2.any() else 0.0
    step, flow = _fluid_kernel.steps(
        kind, rtt, access, capacity, float(buffer_packets), qdisc == "red", step_ms, count, every, start,
        first_probe_rtt, probe_rtt_every, chosen.delayed_probe_rtt, chosen.early_queue, not chosen.first_flow_delay, v2_start,
        not chosen.cubic_offset, not chosen.rtprop_never_rises,
        np.array([first, last + 1]),
        _power_of_two(longest_ms / step_ms + 2), _power_of_two(longest_cycle_ms / step_ms + 2),
        samples, totals, flow_totals,
    )  # fmt: skip
    if step != _fluid_kernel.ENDED_WELL:
        raise UserError(
            f"the fluid model left the finite numbers at {step * step_ms:g} ms in flow {flow} ({cca[flow]}); "
            f"try a step_ms smaller than {step_ms:g}"
        )
    measured_s = totals[0]
    columns = ["t_ms", "queue_packets", "loss_probability", *(f"rate_{i}_packets_per_ms" for i in range(flows))]
    return Run(
        trace=pd.DataFrame(samples, columns=columns),
        sent=flow_totals[:, 0] / measured_s,
        delivered=flow_totals[:, 1] / measured_s,
        loss=float(totals[2] / totals[1]),
        queue_packets=float(totals[3] / measured_s),
        utilisation=float(totals[4] / measured_s),
        buffer_packets=float(buffer_packets),
        capacity=capacity,
        quirks=chosen,
    )


def _mode(mode: str) -> Quirks:
    if mode not in MODES:
        raise UserError(f"mode: must be one of {', '.join(MODES)}, found '{mode}'")
    return MODES[mode]


def quirks_of(mode: str, names: Sequence[str]) -> Quirks:
    """The quirks of a mode, with those named switched to the other position. UserError for an unknown name."""
    base = _mode(mode)
    valid = [f.name for f in fields(Quirks)]
    for name in names:
        if name not in valid:
            raise UserError(f"quirk: must be one of {', '.join(valid)}, found '{name}'")
        base = replace(base, **{name: not getattr(base, name)})
    return base


def step_limit_ms(access_delay_ms: Sequence[float]) -> float:
    """The longest step that simulate() takes."""
    return min(STEP_LIMIT_MS, *access_delay_ms)


def duration_limit_s(flows: int, step_ms: float) -> float:
    """The longest duration that simulate() takes."""
    return FLOW_STEPS_LIMIT * step_ms / 1000 / flows


def _power_of_two(least: float) -> int:
    return 1 << max(int(math.ceil(least)) - 1, 1).bit_length()


def _cycle_start(
    kind: NDArray[np.int64], rtt: NDArray[np.float64], given: Sequence[float] | None
) -> NDArray[np.float64]:
    if given is not None:
        start = np.array(given, dtype=float)
        if start.shape != rtt.shape or not np.all(np.isfinite(start)) or (start > 0).any():
            raise UserError(f"cycle_start_ms: must be {len(rtt)} numbers, one per flow, none above 0")
        return start
    if not (kind == _fluid_kernel.BBR2).any():
        return np.zeros(len(rtt))
    drawn = random.Random(REFERENCE_SEED)  # noqa: S311 (the public code's generator, not a secret)
    for _ in rtt:
        drawn.random()  # what the public code drew the access delays from
    return np.array([-10 * d - drawn.uniform(0, 1000) for d in rtt])


def _check(
    cca: Sequence[str], rate_mbit: float, link_delay_ms: float, access_delay_ms: Sequence[float], buffer_packets: float,
    qdisc: str, duration_s: float, step_ms: float, sample_ms: float | None,
) -> None:  # fmt: skip
    if not cca:
        raise UserError("cca: needs at least one flow")
    for name in cca:
        if name not in CCAS:
            raise UserError(f"cca: the fluid model knows {', '.join(CCAS)}, found '{name}'")
    if len(access_delay_ms) != len(cca):
        raise UserError(f"access_delay_ms: must be one per flow ({len(cca)}), found {len(access_delay_ms)}")
    positive = {
        "rate_mbit": rate_mbit, "link_delay_ms": link_delay_ms, "buffer_packets": buffer_packets,
        "duration_s": duration_s, "step_ms": step_ms, **({} if sample_ms is None else {"sample_ms": sample_ms}),
        **{f"access_delay_ms[{i}]": d for i, d in enumerate(access_delay_ms)},
    }  # fmt: skip
    for name, value in positive.items():
        if not (math.isfinite(value) and value > 0):
            raise UserError(f"{name}: must be positive and finite, found {value:g}")
    if qdisc not in ("drop-tail", "red"):
        raise UserError(f"qdisc: must be drop-tail or red, found '{qdisc}'")
    limit = step_limit_ms(access_delay_ms)
    if step_ms > limit:
        raise UserError(
            f"step_ms: must be at most {limit:g} (the smaller of {STEP_LIMIT_MS:g} ms and the smallest access delay), "
            f"found {step_ms:g}"
        )
    if sample_ms is not None and (abs(sample_ms / step_ms - round(sample_ms / step_ms)) > 1e-6 or sample_ms < step_ms):
        raise UserError(f"sample_ms: must be a multiple of step_ms ({step_ms:g}), found {sample_ms:g}")
    if duration_s > (most := duration_limit_s(len(cca), step_ms)):
        raise UserError(
            f"duration_s: {len(cca)} flows at a step of {step_ms:g} ms can be integrated for at most {most:.0f} s (about "
            f"two hours of computing), found {duration_s:g}; use a larger step_ms"
        )
