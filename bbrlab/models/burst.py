"""The burst model: BBRv1, BBRv2, BBRv3, CUBIC and Reno at one drop-tail bottleneck, with send bursts as the only events.

Every flow runs its algorithm, once per ACK, as the Internet-Drafts and Linux describe it; the network is one queue, first in
first out, whose state is the time at which the link will be free. A burst is what TCP hands down at once: 1 ms of its pacing
rate, mostly two packets. No constant is fitted: all come from the algorithms. Which facts of Linux are in it was partly decided after
comparisons (docs/explanation/models.md). What the model was asked for: Sarpkaya et al.,
IFIP Networking 2025, end with the wish for a model of BBRv3.

Sources, part by part: _burst_bbr23 (draft-cardwell-iccrg-bbr-congestion-control-02, draft-ietf-ccwg-bbr), _burst_bbr1 (mainline's
tcp_bbr.c), _burst_loss_based (RFC 9438, RFC 6937, tcp_cubic.c), _burst_loop (the network). docs/explanation/models.md has what it meets
and where it fails.

Packets are full-size frames of 1514 bytes with 1448 of payload; a buffer holds whole packets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbrlab.base.errors import UserError
from bbrlab.models import _burst_loop
from bbrlab.models._burst_state import (
    ACK,
    BURST,
    FLOW,
    STATES,
)  # fmt: skip
from bbrlab.models.burst_versions import CCAS, LETTER, LOSS_BASED, VERSIONS, Reading, Version, reading_of, version_table
from bbrlab.scenario.frames import FRAME_BYTES, PAYLOAD_BYTES

# Flows start within it, each at a moment drawn from the seed.
STARTS_WITHIN_S = 0.1
SHARE_DURATION_S = 1000.0
# Means are over the end of a run: by the rival, as the published experiments have it.
SHARE_WINDOW_S = {"cubic": 400.0, "reno": 200.0}
FLOWS_LIMIT = 1000
IN_FLIGHT_LIMIT = 5e6  # packets that path and buffer hold; some 90 bytes each
EVENTS_LIMIT = 1e11  # about two hours on one core
SAMPLES_LIMIT = 1e7
RTT_BINS = 500
FIRST_PLACES = 1024  # for bursts that are outstanding; the loop doubles them when there are more
Floats = NDArray[np.float64]
Flows = Mapping[str, int] | Sequence[str | tuple[str, int]]


@dataclass(frozen=True)
class Run:
    """A finished simulation."""

    # One row per flow: cca, rtt_ms (base), start_s, goodput_mbit, share (goodput over capacity), sent_packets, lost_packets, all
    # over the window
    flows: pd.DataFrame
    loss: float  # lost per sent over the window
    queue_packets: float  # mean queue over the window
    buffer_packets: int  # what the queue holds
    # Packets of each flow by RTT over the window, shape (flows, RTT_BINS), bins of ``rtt_bin_ms`` from the flow's base RTT on
    rtt_histogram: Floats
    rtt_bin_ms: float
    events: int  # ACKs, departures and timers
    # One row per sample and flow, if asked for: t_s, flow, queue_packets, goodput_mbit (since the last sample), cwnd_packets,
    # inflight_packets, inflight_hi_packets, max_bw_mbit, min_rtt_ms, state
    trace: pd.DataFrame | None

    @property
    def shares(self) -> dict[str, float]:
        """Goodput over capacity of all flows of each algorithm."""
        return {str(k): float(v) for k, v in self.flows.groupby("cca", sort=False)["share"].sum().items()}

    @property
    def occupancy(self) -> float:
        """Mean queue over buffer."""
        return self.queue_packets / self.buffer_packets

    @property
    def jain_index(self) -> float:
        """Jain's fairness index of the flows' goodput."""
        rates = self.flows["goodput_mbit"].to_numpy()
        return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())) if rates.any() else float("nan")

    def rtt_ms(self, percentile: float, chosen: Sequence[int] | None = None) -> float:
        """Percentile of the RTTs that packets of some flows saw over the window (default: of all), to a bin's width. UserError for
        a percentile outside 0 to 100."""
        if not 0 <= percentile <= 100:
            raise UserError(f"percentile: must be from 0 to 100, found {percentile:g}")
        rows = range(len(self.flows)) if chosen is None else chosen
        upper = (np.arange(RTT_BINS) + 1) * self.rtt_bin_ms
        values = np.concatenate([self.flows["rtt_ms"].iloc[i] + upper for i in rows])
        weights = np.concatenate([self.rtt_histogram[i] for i in rows])
        order = np.argsort(values, kind="stable")
        summed = np.cumsum(weights[order])
        if not summed[-1]:
            return float("nan")
        at = int(np.searchsorted(summed, max(percentile / 100 * summed[-1], np.nextafter(0, 1))))
        return float(values[order][min(at, len(order) - 1)])


def simulate(
    flows: Flows,
    rate_mbit: float,
    rtt_ms: float | Sequence[float],
    *,
    buffer_bdp: float | None = None,
    buffer_packets: float | None = None,
    buffer_bytes: float | None = None,
    duration_s: float = SHARE_DURATION_S,
    window_s: tuple[float, float] | None = None,
    seed: int = 1,
    reading: str | Reading = LETTER,
    start_s: float | Sequence[float] = 0.0,
    segments: bool = True,
    sample_ms: float | None = None,
    versions: Mapping[str, Version] | None = None,
) -> Run:
    """Simulate flows without end at one drop-tail bottleneck.

    UserError for an argument that is not possible, naming it and its limit.

    Args:
        flows: algorithms and how many flows of each: {"bbr3": 4, "cubic": 1}, or one name per flow, or (name, count).
        rtt_ms: base RTT, of all flows or one for each.
        buffer_bdp, buffer_packets, buffer_bytes: the buffer, exactly one of them. A BDP is of the (mean) base RTT.
        window_s: over which means are taken; default: the last 40 %.
        seed: of the starts, the waits between probes and BBRv1's phase. The same seed gives the same run.
        reading: of the drafts of BBRv2 and BBRv3: a name in READINGS, or a Reading; default: to the letter, as the lab's bbr2 and bbr3.
        start_s: when flows start, of all or one for each; up to STARTS_WITHIN_S later, drawn.
        segments: whether TCP builds segments of several packets, which leave at once; else every packet is a burst.
        sample_ms: keep a trace with a row per flow at this interval.
        versions: in place of VERSIONS, by name: what would be if.
    """
    ccas = _ccas(flows)
    rtt = _per_flow("rtt_ms", rtt_ms, len(ccas), positive=True) / 1e3
    start = _per_flow("start_s", start_s, len(ccas), positive=False)
    _positive(rate_mbit=rate_mbit, duration_s=duration_s)
    packets_per_s = rate_mbit * 1e6 / 8 / FRAME_BYTES
    buffer = _buffer_packets(buffer_bdp, buffer_packets, buffer_bytes, rate_mbit, float(rtt.mean()))
    low_s, high_s = window_s or (0.6 * duration_s, duration_s)
    if not 0 <= low_s < high_s <= duration_s:
        raise UserError(f"window_s: must lie within the duration of {duration_s:g} s, found {low_s:g} to {high_s:g}")
    if start.max() >= duration_s:
        raise UserError(f"start_s: must be before the end at {duration_s:g} s, found {start.max():g}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise UserError(f"seed: must be a whole number, 0 or more, found {seed!r}")
    _check_cost(len(ccas), packets_per_s, float(rtt.max()), buffer, duration_s)
    sample_times = _sample_times(sample_ms, duration_s, len(ccas))

    count = len(ccas)
    draws = np.random.default_rng(seed)
    starts = start + STARTS_WITHIN_S * draws.random(count)
    table = np.zeros(count, dtype=FLOW)
    table["kind"] = [CCAS[name] for name in ccas]
    table["rtt"] = rtt
    bursts = np.zeros(FIRST_PLACES, dtype=BURST)
    histogram = np.zeros((count, RTT_BINS))
    longest_wait_s = (buffer + 50) / packets_per_s
    totals = np.zeros(1)
    samples = np.zeros((len(sample_times), count, len(_burst_loop.SAMPLE)))
    queue_samples = np.zeros(len(sample_times))
    events = _burst_loop.run(
        table, version_table(reading_of(reading), versions or {}), starts, 1 / packets_per_s, float(buffer), float(duration_s),
        np.array([low_s, high_s]), draws, segments, np.zeros(1, dtype=ACK), bursts, histogram, RTT_BINS / longest_wait_s,
        totals, sample_times, samples, queue_samples,
    )  # fmt: skip
    length_s = high_s - low_s
    goodput = table["window_delivered"] * PAYLOAD_BYTES * 8 / 1e6 / length_s
    outcome = pd.DataFrame({
        "cca": ccas, "rtt_ms": rtt * 1e3, "start_s": starts, "goodput_mbit": goodput, "share": goodput / rate_mbit,
        "sent_packets": table["window_sent"], "lost_packets": table["window_lost"],
    })  # fmt: skip
    sent = float(table["window_sent"].sum())
    return Run(
        flows=outcome,
        loss=float(table["window_lost"].sum()) / sent if sent else float("nan"),
        queue_packets=float(totals[0]) * packets_per_s / length_s,
        buffer_packets=buffer,
        rtt_histogram=histogram,
        rtt_bin_ms=longest_wait_s / RTT_BINS * 1e3,
        events=int(events),
        trace=_trace(sample_times, samples, queue_samples) if sample_ms is not None else None,
    )


def share(
    cca: str, flows: int, rival: str, rate_mbit: float, rtt_ms: float, buffer_bdp: float, *,
    reading: str | Reading = LETTER, seeds: int = 3,
) -> float:  # fmt: skip
    """Mean share of capacity of ``flows`` BBR flows against one ``rival``, over the last 400 of 1000 s (Reno: 200).

    UserError for an argument that is not possible.

    Args:
        cca: bbr1, bbr2 or bbr3.
        rival: cubic or reno.
        rate_mbit, rtt_ms: of the bottleneck and of every flow.
        buffer_bdp: multiples of rate_mbit x rtt_ms, exactly as given.
        reading: as for simulate().
        seeds: the mean is over seeds 1 to this.

    Returns:
        Goodput of the BBR flows over capacity.
    """
    return float(np.mean(shares(cca, flows, rival, rate_mbit, rtt_ms, buffer_bdp, reading=reading, seeds=seeds)))


def shares(
    cca: str, flows: int, rival: str, rate_mbit: float, rtt_ms: float, buffer_bdp: float, *,
    reading: str | Reading = LETTER, seeds: int = 3, versions: Mapping[str, Version] | None = None,
) -> Floats:  # fmt: skip
    """What share() takes the mean of: shape (seeds,)."""
    if cca not in VERSIONS:
        raise UserError(f"cca: must be one of {', '.join(VERSIONS)}, found '{cca}'")
    if rival not in LOSS_BASED:
        raise UserError(f"rival: must be one of {', '.join(LOSS_BASED)}, found '{rival}'")
    if isinstance(seeds, bool) or not isinstance(seeds, int | np.integer) or not 1 <= seeds <= 1000:
        raise UserError(f"seeds: must be a whole number from 1 to 1000, found {seeds!r}")
    if isinstance(flows, bool) or not isinstance(flows, int | np.integer) or not 1 <= flows < FLOWS_LIMIT:
        raise UserError(f"flows: must be a whole number from 1 to {FLOWS_LIMIT - 1}, found {flows!r}")
    window_s = (SHARE_DURATION_S - SHARE_WINDOW_S[rival], SHARE_DURATION_S)
    return np.array([
        simulate({cca: int(flows), rival: 1}, rate_mbit, rtt_ms, buffer_bdp=buffer_bdp, window_s=window_s, seed=seed,
                 reading=reading, versions=versions).shares[cca]
        for seed in range(1, seeds + 1)
    ])  # fmt: skip


def _ccas(flows: Flows) -> list[str]:
    pairs: Iterable[tuple[str, int]]
    if isinstance(flows, str) or not isinstance(flows, Iterable):
        raise UserError(f"flows: must be algorithms with their numbers, as {{'bbr3': 4, 'cubic': 1}}, found {flows!r}")
    pairs = flows.items() if isinstance(flows, Mapping) else [(f, 1) if isinstance(f, str) else f for f in flows]
    ccas: list[str] = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UserError(f"flows: each must be a name, or a name and a number, found {pair!r}")
        name, count = pair
        if name not in CCAS:
            raise UserError(f"flows: the burst model knows {', '.join(CCAS)}, found '{name}'")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count <= FLOWS_LIMIT:
            raise UserError(f"flows: {name} must be a whole number of flows from 0 to {FLOWS_LIMIT}, found {count!r}")
        ccas += [name] * int(count)
    if not 1 <= len(ccas) <= FLOWS_LIMIT:
        raise UserError(f"flows: must be from 1 to {FLOWS_LIMIT} flows in all, found {len(ccas)}")
    return ccas


def _positive(**values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise UserError(f"{name}: must be a number, found {value!r}")
        if not (math.isfinite(value) and value > 0):
            raise UserError(f"{name}: must be positive and finite, found {value:g}")


def _per_flow(name: str, value: float | Sequence[float], count: int, positive: bool) -> Floats:
    try:
        given = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise UserError(f"{name}: must be a number, or one per flow, found {value!r}") from None
    if given.ndim != 1 or len(given) not in (1, count):
        raise UserError(f"{name}: must be one number, or one per flow ({count}), found {len(given)}")
    if not np.all(np.isfinite(given)) or (given < 0).any() or (positive and (given == 0).any()):
        least = "positive" if positive else "0 or more"
        raise UserError(f"{name}: must be {least} and finite, found {', '.join(f'{g:g}' for g in given[:5])}")
    return np.array(np.broadcast_to(given, (count,)), dtype=np.float64)


def _buffer_packets(
    bdp: float | None, packets: float | None, size_bytes: float | None, rate_mbit: float, rtt_s: float
) -> int:
    given = {
        k: v
        for k, v in (("buffer_bdp", bdp), ("buffer_packets", packets), ("buffer_bytes", size_bytes))
        if v is not None
    }
    if len(given) != 1:
        raise UserError(
            f"give exactly one of buffer_bdp, buffer_packets, buffer_bytes (found: {', '.join(given) or 'none'})"
        )
    _positive(**given)
    if bdp is not None:
        size_bytes = bdp * rate_mbit * 1e6 / 8 * rtt_s
    size = packets if packets is not None else (size_bytes or 0.0) / FRAME_BYTES
    if size > IN_FLIGHT_LIMIT:
        raise UserError(f"{next(iter(given))}: must be at most {IN_FLIGHT_LIMIT:g} packets, found {size:.4g}")
    if size < 1:
        raise UserError(f"{next(iter(given))}: must hold at least one packet of {FRAME_BYTES} bytes, found {size:.3g}")
    return math.floor(size)


def _check_cost(flows: int, packets_per_s: float, rtt_s: float, buffer: int, duration_s: float) -> None:
    if packets_per_s * rtt_s + buffer > IN_FLIGHT_LIMIT:
        raise UserError(
            f"rate_mbit, rtt_ms: path and buffer must hold at most {IN_FLIGHT_LIMIT:g} packets, found "
            f"{packets_per_s * rtt_s + buffer:.4g}"
        )
    # A packet is an event or two; at each the next one is looked for among all flows.
    events = (packets_per_s * duration_s + 4 * flows * duration_s / rtt_s) * (1 + flows / 50)
    if events > EVENTS_LIMIT:
        most = duration_s * EVENTS_LIMIT / events
        raise UserError(
            f"duration_s: {flows} flows at {packets_per_s * FRAME_BYTES * 8 / 1e6:g} Mbit/s can be simulated for at most "
            f"{most:.3g} s (about two hours of computing), found {duration_s:g}"
        )


def _sample_times(sample_ms: float | None, duration_s: float, flows: int) -> Floats:
    if sample_ms is None:
        return np.zeros(0)
    _positive(sample_ms=sample_ms)
    count = math.floor(duration_s * 1e3 / sample_ms * (1 + 1e-12))
    if count * flows > SAMPLES_LIMIT:
        least = duration_s * 1e3 * flows / SAMPLES_LIMIT
        raise UserError(
            f"sample_ms: must be at least {least:.3g} for {duration_s:g} s of {flows} flows, found {sample_ms:g}"
        )
    return np.arange(1, count + 1, dtype=np.float64) * np.float64(sample_ms / 1e3)


def _trace(times: Floats, samples: Floats, queue: Floats) -> pd.DataFrame:
    count, flows, _ = samples.shape
    column = {name: samples[:, :, i] for i, name in enumerate(_burst_loop.SAMPLE)}
    interval_s = times[0] if count else 1.0
    packets = np.diff(column["delivered"], axis=0, prepend=0.0)
    mbit = PAYLOAD_BYTES * 8 / 1e6
    return pd.DataFrame({
        "t_s": np.repeat(times, flows),
        "flow": np.tile(np.arange(flows), count),
        "queue_packets": np.repeat(queue, flows),
        "goodput_mbit": (packets * mbit / interval_s).ravel(),
        "cwnd_packets": column["cwnd"].ravel(),
        "inflight_packets": column["inflight"].ravel(),
        "inflight_hi_packets": column["inflight_hi"].ravel(),
        "max_bw_mbit": column["max_bw"].ravel() * mbit,
        "min_rtt_ms": column["min_rtt"].ravel() * 1e3,
        "state": np.array(STATES)[column["state"].ravel().astype(int)],
    })  # fmt: skip
