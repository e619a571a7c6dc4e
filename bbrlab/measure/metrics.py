"""Turns a run's samples into the numbers of summary.json.

Everything is a mean over the window ``window_s`` = [w0, w1] of virtual time unless said otherwise. Definitions:

- **goodput** of a flow: bytes newly acknowledged in the window, exact at its edges (tcp_info ``bytes_acked``, RFC 4898
  tcpEStatsAppHCThruOctetsAcked), over its length; Mbit/s. A flow that starts late or ends early counts as silent outside.
- **share of capacity** of a group: sum of its goodputs over the nominal bottleneck rate (as Sarpkaya et al. 2025,
  Fig. 2, plot it); its ceiling is payload over frame, 1448/1514 = .956.
- **Jain index** of goodputs x_i over all n flows: (sum x)^2 / (n sum x^2) (Jain, Chiu, Hawe 1984).
- **retransmits**: segments retransmitted in the window (tcp_info ``total_retrans``).
- **loss**: two definitions are in use. ``loss`` is lost over sent: drops over (drops + packets sent) at the bottleneck,
  for a flow retransmits over segments sent (as Scherrer et al. 2022). ``loss_over_delivered`` is retransmits over
  delivered segments (as Sarpkaya et al. 2025, Fig. 4: retransmits x 1500 B / delivered bytes).
- **utilisation**: total goodput over the nominal rate (as Sarpkaya, Scherrer); ``link_utilisation`` counts whole frames.
- **RTT** of a flow: the kernel's smoothed RTT (tcp_info ``rtt``, RFC 6298) at the samples; ``min`` is its minimum filter.
  A group's mean is over its flows; one without a sample in the window (finite flows are short) has no RTT and is left out.
- **queueing delay**: backlog bytes x 8 / rate at the samples (as Bless et al. 2025). **occupancy**: backlog over buffer.
- **cwnd**, **in flight**: tcp_info ``snd_cwnd`` and ``unacked`` at the samples, in packets; a group's is the sum over its
  flows, without those that have no sample.
- **distribution of the queueing delay**: the fraction of the samples at which it is at most .05, .5, 1, 1.5 and 2 base RTTs
  (the mean of a range).
- **share of goodput** of a group: its goodput over that of all groups.
- **BBR's estimates** of a flow: of the bandwidth (a group's is the sum over its flows) and of the smallest RTT, mean over
  the samples.
- **BBR's jitter estimate** of a flow: its extra_acked times the segment size over its goodput, in ms (as Bless et al.
  2025, Fig. 12); ``bbr2`` and ``bbr3`` only.
- **phases** of a BBR flow, over the whole run and as fine as the samples: mean length of a stay in UP, DOWN, CRUISE and
  Startup, without those that ProbeRTT cut short, mean time between two entries into ProbeRTT and into UP.
- **queue in the phases** of a BBR flow, within the window: bbrlab.measure.phases.phase_queues().
- Percentiles interpolate linearly between samples (numpy default, method 7 of Hyndman and Fan).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.experiment.plan import Plan
from bbrlab.measure.flow_counters import EDGE_TOLERANCE_S, FlowCounters
from bbrlab.measure.numbers import jain_index, mean, mean_of, ratio, rounded, spread_of
from bbrlab.measure.phases import PHASE_QUEUES, PHASES, phase_lengths, phase_queues
from bbrlab.measure.queues import Queue
from bbrlab.scenario.rates import capacity_mbit, rate_at
from bbrlab.scenario.schema import Scenario

if TYPE_CHECKING:
    import pandas as pd


BANDWIDTH, SMALLEST_RTT = "bbr_bw_mbit", "bbr_min_rtt_ms"  # BBR's own estimates
QUEUE_CDF_RTTS = (0.05, 0.5, 1, 1.5, 2)  # where the distribution of the queueing delay is told, in base RTTs
QUEUE_CDF = tuple(f"queue_cdf_{rtts:g}".replace(".", "_") for rtts in QUEUE_CDF_RTTS)


def flow_summary(scenario: Scenario, plan: Plan, counter: FlowCounters, index: int, queue: Queue) -> dict[str, Any]:
    """The ``flows`` entry of summary.json for one flow; ``queue`` is the bottleneck that it crosses."""
    low, high = scenario.window_s
    spec = plan.flows[index]
    group = scenario.flows[spec.group]

    def delta(name: str) -> int:
        return counter.at(high, name) - counter.at(low, name)

    inside = (counter.times_s >= low - EDGE_TOLERANCE_S) & (counter.times_s <= high + EDGE_TOLERANCE_S)
    srtt_ms = counter.columns["srtt_us"][inside] / 1e3
    minimum = counter.columns["min_rtt_us"][inside]
    retransmits, sent, delivered = delta("total_retrans"), delta("data_segs_out"), delta("delivered")
    entry: dict[str, Any] = {
        "flow": index,
        "group": spec.group,
        "cca": group.cca,
        "base_rtt_ms": spec.rtt_ms,
        "goodput_mbit": rounded(delta("bytes_acked") * 8e-6 / (high - low)),
        "delivered_bytes": counter.at(scenario.duration_s, "bytes_acked"),
        "retransmits": retransmits,
        "loss": rounded(ratio(retransmits, sent)),
        "loss_over_delivered": rounded(ratio(retransmits, delivered)),
        "ecn_marked": rounded(ratio(delta("delivered_ce"), delivered)),
        "rtt_ms": {"min": rounded(minimum.min() / 1e3) if len(minimum) else None, **spread_of(srtt_ms)},
        "cwnd_packets": mean(counter.columns["cwnd"][inside]),
        "in_flight_packets": mean(counter.columns["unacked"][inside]),
        "first_sample_s": rounded(counter.times_s[0]) if len(counter.times_s) else None,
    }
    if group.cca.startswith("bbr"):
        entry["phases"] = phase_lengths(counter.columns)
        extra = counter.columns["bbr_extra_acked"][inside] * counter.columns["snd_mss"][inside]
        goodput = delta("bytes_acked") * 8e-6 / (high - low)
        known = len(extra) > 0 and not np.isnan(extra).any() and goodput > 0
        entry["bbr_jitter_ms"] = rounded(extra.mean() * 8e-3 / goodput) if known else None
        told = inside & ~np.isnan(counter.columns["bbr_bw"])
        entry[BANDWIDTH] = mean(counter.columns["bbr_bw"][told] * 8e-6)
        entry[SMALLEST_RTT] = mean(counter.columns["bbr_min_rtt_us"][told] / 1e3)
        backlog = queue.columns["bytes"][_latest(queue.columns["time_s"], counter.times_s)]
        delay_ms = backlog * 8e-3 / rate_at(scenario, counter.times_s)
        entry["phase_queues"] = phase_queues(counter.columns, delay_ms, low, high)
    if group.bytes is not None:
        done = counter.final is not None and counter.final["bytes_acked"] >= group.bytes
        # The time in which the sender had unacknowledged data: for a bulk transfer, first byte sent to last byte acked.
        entry["completion_s"] = rounded(counter.final["busy_us"] / 1e6) if done and counter.final else None
    return entry


def _latest(sampled_s: Array, times_s: Array) -> Array:
    """Index of the latest sample at each of ``times_s``; samples of one instant are some microseconds apart."""
    return np.clip(np.searchsorted(sampled_s, times_s + EDGE_TOLERANCE_S, side="right") - 1, 0, None)


def bottleneck_summary(scenario: Scenario, queue: Queue, goodput_mbit: float) -> dict[str, Any]:
    """The ``bottleneck`` entry of summary.json for one direction."""
    low, high = scenario.window_s
    columns = queue.columns
    times = columns["time_s"]
    inside = (times >= low - EDGE_TOLERANCE_S) & (times <= high + EDGE_TOLERANCE_S)
    capacity = capacity_mbit(scenario, low, high)

    def delta(name: str) -> float:
        values = columns[name][inside]
        return float(values[-1] - values[0]) if len(values) else 0.0

    backlog = columns["bytes"][inside]
    delay_ms = backlog * 8e-3 / rate_at(scenario, times[inside])
    occupied = spread_of(backlog / scenario.network.buffer_bytes)
    sent, drops = delta("sent_packets"), delta("drops")
    return {
        "buffer_bytes": scenario.network.buffer_bytes,
        "utilisation": rounded(goodput_mbit / capacity),
        "link_utilisation": rounded(delta("sent_bytes") * 8e-6 / (high - low) / capacity),
        "loss": rounded(ratio(drops, drops + sent)),
        "drops": int(drops),
        "ecn_marks": int(delta("marks")),
        "occupancy": occupied["mean"],
        "occupancy_p50": occupied["p50"],
        "occupancy_p95": occupied["p95"],
        "queue_ms": spread_of(delay_ms),
        "queue_cdf": {
            name: mean(delay_ms <= rtts * scenario.network.mean_rtt_ms)
            for name, rtts in zip(QUEUE_CDF, QUEUE_CDF_RTTS, strict=True)
        },
    }


def short_flows_summary(scenario: Scenario, group: int, table: pd.DataFrame) -> dict[str, Any]:
    """The ``groups`` entry of summary.json for a group of short flows (short_flows.outcome()).

    Slowdowns are over the chunks that began in the window and were whole before the end; ``unfinished`` counts the
    others. The goodput counts whole chunks in the window in which they ended.
    """
    from bbrlab.measure.short_flows import (
        concurrent_chunks,  # and with it pandas and SciPy, which take a second that other runs need not wait
    )

    low, high = scenario.window_s
    begun = table[(table["begin_s"] >= low) & (table["begin_s"] < high)]
    whole = begun.dropna(subset="end_s")
    ended = table[(table["end_s"] >= low) & (table["end_s"] < high)]
    goodput = float(ended["bytes"].sum()) * 8e-6 / (high - low)
    spread = spread_of(whole["slowdown"].to_numpy())
    return {
        "cca": scenario.flows[group].cca,
        "count": int(begun["flow"].nunique()),
        "direction": scenario.flows[group].direction,
        "goodput_mbit": rounded(goodput),
        "share_of_capacity": rounded(goodput / capacity_mbit(scenario, low, high)),
        "retransmits": None,
        "jain_index": None,
        "rtt_ms_mean": None,
        "ecn_marked": None,
        "cwnd_packets": None,
        "in_flight_packets": None,
        "completion_s": mean((whole["end_s"] - whole["begin_s"]).to_numpy()),
        **dict.fromkeys(("bbr_jitter_ms", BANDWIDTH, SMALLEST_RTT)),
        **dict.fromkeys(PHASES + PHASE_QUEUES),
        "chunks": len(begun),
        "unfinished": len(begun) - len(whole),
        "concurrent_max": concurrent_chunks(table, scenario.duration_s),
        **{f"slowdown_{key}": spread[key] for key in ("mean", "p50", "p95", "p99")},
        "srpt_slowdown_mean": mean(begun["srpt_slowdown"].to_numpy()),
    }


def summarise(
    scenario: Scenario,
    plan: Plan,
    counters: list[FlowCounters],
    queues: dict[str, Queue],
    short: dict[int, pd.DataFrame] | None = None,
) -> dict[str, Any]:
    """``groups``, ``flows``, ``bottleneck`` and ``jain_index`` of summary.json.

    ``bottleneck`` is the one that the first group crosses; if flows run in both directions, the other one stands under
    ``bottleneck_reverse``.
    """
    low, high = scenario.window_s
    capacity = capacity_mbit(scenario, low, high)
    entries = [
        flow_summary(scenario, plan, c, i, queues[scenario.flows[plan.flows[i].group].direction])
        for i, c in enumerate(counters)
    ]
    groups = []
    for g, group in enumerate(scenario.flows):
        if short and g in short:
            groups.append(short_flows_summary(scenario, g, short[g]))
            continue
        mine = [e for e in entries if e["group"] == g]
        sampled = [e for e in mine if e["cwnd_packets"] is not None]
        goodput = sum(e["goodput_mbit"] for e in mine)
        groups.append({
            "cca": group.cca,
            "count": group.count,
            "direction": group.direction,
            "goodput_mbit": rounded(goodput),
            "share_of_capacity": rounded(goodput / capacity),
            "retransmits": sum(e["retransmits"] for e in mine),
            "jain_index": rounded(jain_index(np.array([e["goodput_mbit"] for e in mine]))),
            "rtt_ms_mean": mean_of(sampled, "rtt_ms", "mean"),
            "ecn_marked": mean_of(mine, "ecn_marked"),
            "cwnd_packets": rounded(sum(e["cwnd_packets"] for e in sampled)) if sampled else None,
            "in_flight_packets": rounded(sum(e["in_flight_packets"] for e in sampled)) if sampled else None,
            "completion_s": mean_of(mine, "completion_s"),
            "bbr_jitter_ms": mean_of(mine, "bbr_jitter_ms"),
            BANDWIDTH: _sum_of(mine, BANDWIDTH),
            SMALLEST_RTT: mean_of(mine, SMALLEST_RTT),
            **{key: mean_of(mine, "phases", key) for key in PHASES},
            **{key: mean_of(mine, "phase_queues", key) for key in PHASE_QUEUES},
        })  # fmt: skip
    whole = sum(g["goodput_mbit"] for g in groups)
    for entry in groups:
        entry["share_of_goodput"] = rounded(entry["goodput_mbit"] / whole) if whole else None
    content: dict[str, Any] = {"groups": groups, "flows": entries}
    main = scenario.flows[0].direction
    for direction, queue in queues.items():
        goodput = sum(g["goodput_mbit"] for g in groups if g["direction"] == direction)
        content["bottleneck" if direction == main else "bottleneck_reverse"] = bottleneck_summary(
            scenario, queue, goodput
        )
    content["bottleneck"]["loss_over_delivered"] = _over_delivered(scenario, counters, plan)
    content["jain_index"] = rounded(jain_index(np.array([e["goodput_mbit"] for e in entries])))
    return content


def _sum_of(entries: list[dict[str, Any]], key: str) -> float | None:
    """Sum over entries of a value; None if one of them has none."""
    values = [e[key] for e in entries if e.get(key) is not None]
    return rounded(sum(values)) if values and len(values) == len(entries) else None


def _over_delivered(scenario: Scenario, counters: list[FlowCounters], plan: Plan) -> float | None:
    low, high = scenario.window_s
    main = scenario.flows[0].direction
    mine = [c for c, f in zip(counters, plan.flows, strict=True) if scenario.flows[f.group].direction == main]
    retransmits = sum(c.at(high, "total_retrans") - c.at(low, "total_retrans") for c in mine)
    return rounded(ratio(retransmits, sum(c.at(high, "delivered") - c.at(low, "delivered") for c in mine)))
