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
- **BBR's jitter estimate** of a flow: its extra_acked times the segment size over its goodput, in ms (as Bless et al.
  2025, Fig. 12); ``bbr2`` and ``bbr3`` only.
- **phases** of a BBR flow, over the whole run and as fine as the samples: mean length of a stay in UP, DOWN, CRUISE and
  Startup, without those that ProbeRTT cut short, mean time between two entries into ProbeRTT and into UP.
- Percentiles interpolate linearly between samples (numpy default, method 7 of Hyndman and Fan).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbrlab.bbr_record import STATES
from bbrlab.plan import Plan
from bbrlab.scenario import Scenario
from bbrlab.traces import Flows, Queue

if TYPE_CHECKING:
    import pandas as pd

EDGE_TOLERANCE_S = 1e-3  # a sample at a window's edge is stamped some hundred nanoseconds after it
DIGITS = 9
PERCENTILES = (5, 25, 50, 75, 95, 99)
PHASES = ("startup_s", "up_s", "down_s", "cruise_s", "between_probe_rtt_s", "between_up_s")
Array = NDArray[Any]


@dataclass(frozen=True)
class Counter:
    """A flow's counters at any time: exact at samples, carried on from the last one between them."""

    times_s: Array
    columns: dict[str, Array]
    final: dict[str, int] | None

    def at(self, time_s: float, name: str) -> int:
        """Value of counter ``name`` at ``time_s``: 0 before the flow's first sample, its last value after its end."""
        index = int(np.searchsorted(self.times_s, time_s + EDGE_TOLERANCE_S, side="right")) - 1
        if self.final is not None and time_s + EDGE_TOLERANCE_S >= self.final["time_ns"] / 1e9:
            return self.final[name]
        if index < 0:
            return 0
        return int(self.columns[name][index])


def capacity_mbit(scenario: Scenario, low_s: float, high_s: float) -> float:
    """Mean nominal bottleneck rate in Mbit/s between two instants, with ``changes`` taken into account."""
    network = scenario.network
    steps = [(0.0, network.rate_mbit)] + [
        (c.at_s, c.rate_mbit) for c in sorted(network.changes, key=lambda c: c.at_s) if c.rate_mbit
    ]
    total = 0.0
    for (start, rate), end in zip(steps, [s for s, _ in steps[1:]] + [high_s], strict=True):
        total += rate * max(0.0, min(end, high_s) - max(start, low_s))
    return total / (high_s - low_s)


def rate_at(scenario: Scenario, times_s: Array) -> Array:
    """Nominal bottleneck rate in Mbit/s at each of ``times_s``."""
    rates = np.full(len(times_s), scenario.network.rate_mbit)
    for change in sorted(scenario.network.changes, key=lambda c: c.at_s):
        if change.rate_mbit:
            rates[times_s >= change.at_s] = change.rate_mbit
    return rates


def jain_index(values: Array) -> float:
    """Jain's fairness index of non-negative values, 1/n to 1; 1 if all are zero."""
    values = np.asarray(values, dtype=float)
    squares = float((values**2).sum())
    return float(values.sum() ** 2 / (len(values) * squares)) if squares else 1.0


def ratio(part: float, whole: float) -> float:
    """part / whole, or 0 if there is no whole."""
    return part / whole if whole else 0.0


def _round(value: float) -> float:
    return round(float(value), DIGITS)


def _mean(values: Array) -> float | None:
    return _round(values.mean()) if len(values) else None


def _mean_of(entries: list[dict[str, Any]], *keys: str) -> float | None:
    """Mean over entries of a value some levels down; None if one of them has none."""
    values: list[Any] = list(entries)
    for key in keys:
        values = [v.get(key) if isinstance(v, dict) else None for v in values]
    return _round(np.mean(values)) if values and all(v is not None for v in values) else None


def _spread(values: Array) -> dict[str, float | None]:
    """Mean, percentiles and maximum; None each if there is nothing to tell."""
    names = [f"p{p:02d}" for p in PERCENTILES]
    if not len(values):
        return dict.fromkeys(["mean", *names, "max"])
    percentiles = map(_round, np.percentile(values, PERCENTILES))
    return {"mean": _mean(values), **dict(zip(names, percentiles, strict=True)), "max": _round(values.max())}


def phase_lengths(columns: dict[str, Array]) -> dict[str, float | None]:
    """Mean lengths and distances of a BBR flow's phases in s (module docstring); None for what did not happen."""
    known = ~np.isnan(columns["bbr_state"])
    codes, times = columns["bbr_state"][known].astype(int), columns["time_s"][known]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    begins, states = times[starts], codes[starts]
    lengths = np.diff(begins)
    whole = states[1:] != STATES.index("ProbeRTT")

    found: dict[str, float | None] = {}
    for name in ("Startup", "UP", "DOWN", "CRUISE"):
        found[f"{name.lower()}_s"] = _mean(lengths[whole & (states[:-1] == STATES.index(name))])
    for key, name in (("between_probe_rtt_s", "ProbeRTT"), ("between_up_s", "UP")):
        found[key] = _mean(np.diff(begins[states == STATES.index(name)]))
    return found


def flow_counters(flows: Flows, count: int) -> list[Counter]:
    """One Counter for each of ``count`` flows."""
    order = np.argsort(flows.columns["flow"], kind="stable")
    edges = np.searchsorted(flows.columns["flow"][order], np.arange(count + 1))
    ordered = {name: values[order] for name, values in flows.columns.items()}
    result = []
    for f in range(count):
        columns = {name: values[edges[f] : edges[f + 1]] for name, values in ordered.items()}
        result.append(Counter(columns["time_s"], columns, flows.final.get(f)))
    return result


def flow_summary(scenario: Scenario, plan: Plan, counter: Counter, index: int) -> dict[str, Any]:
    """The ``flows`` entry of summary.json for one flow."""
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
        "goodput_mbit": _round(delta("bytes_acked") * 8e-6 / (high - low)),
        "delivered_bytes": counter.at(scenario.duration_s, "bytes_acked"),
        "retransmits": retransmits,
        "loss": _round(ratio(retransmits, sent)),
        "loss_over_delivered": _round(ratio(retransmits, delivered)),
        "ecn_marked": _round(ratio(delta("delivered_ce"), delivered)),
        "rtt_ms": {"min": _round(minimum.min() / 1e3) if len(minimum) else None, **_spread(srtt_ms)},
        "cwnd_packets": _mean(counter.columns["cwnd"][inside]),
        "in_flight_packets": _mean(counter.columns["unacked"][inside]),
        "first_sample_s": _round(counter.times_s[0]) if len(counter.times_s) else None,
    }
    if group.cca.startswith("bbr"):
        entry["phases"] = phase_lengths(counter.columns)
        extra = counter.columns["bbr_extra_acked"][inside] * counter.columns["snd_mss"][inside]
        goodput = delta("bytes_acked") * 8e-6 / (high - low)
        known = len(extra) > 0 and not np.isnan(extra).any() and goodput > 0
        entry["bbr_jitter_ms"] = _round(extra.mean() * 8e-3 / goodput) if known else None
    if group.bytes is not None:
        done = counter.final is not None and counter.final["bytes_acked"] >= group.bytes
        # The time in which the sender had unacknowledged data: for a bulk transfer, first byte sent to last byte acked.
        entry["completion_s"] = _round(counter.final["busy_us"] / 1e6) if done and counter.final else None
    return entry


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
    occupied = _spread(backlog / scenario.network.buffer_bytes)
    sent, drops = delta("sent_packets"), delta("drops")
    return {
        "buffer_bytes": scenario.network.buffer_bytes,
        "utilisation": _round(goodput_mbit / capacity),
        "link_utilisation": _round(delta("sent_bytes") * 8e-6 / (high - low) / capacity),
        "loss": _round(ratio(drops, drops + sent)),
        "drops": int(drops),
        "ecn_marks": int(delta("marks")),
        "occupancy": occupied["mean"],
        "occupancy_p50": occupied["p50"],
        "occupancy_p95": occupied["p95"],
        "queue_ms": _spread(delay_ms),
    }


def short_flows_summary(scenario: Scenario, group: int, table: pd.DataFrame) -> dict[str, Any]:
    """The ``groups`` entry of summary.json for a group of short flows (short_flows.outcome()).

    Slowdowns are over the chunks that began in the window and were whole before the end; ``unfinished`` counts the
    others. The goodput counts whole chunks in the window in which they ended.
    """
    from bbrlab import short_flows  # and with it pandas and SciPy, which take a second that other runs need not wait

    low, high = scenario.window_s
    begun = table[(table["begin_s"] >= low) & (table["begin_s"] < high)]
    whole = begun.dropna(subset="end_s")
    ended = table[(table["end_s"] >= low) & (table["end_s"] < high)]
    goodput = float(ended["bytes"].sum()) * 8e-6 / (high - low)
    spread = _spread(whole["slowdown"].to_numpy())
    return {
        "cca": scenario.flows[group].cca,
        "count": int(begun["flow"].nunique()),
        "direction": scenario.flows[group].direction,
        "goodput_mbit": _round(goodput),
        "share_of_capacity": _round(goodput / capacity_mbit(scenario, low, high)),
        "retransmits": None,
        "jain_index": None,
        "rtt_ms_mean": None,
        "ecn_marked": None,
        "cwnd_packets": None,
        "in_flight_packets": None,
        "completion_s": _mean((whole["end_s"] - whole["begin_s"]).to_numpy()),
        "bbr_jitter_ms": None,
        **dict.fromkeys(PHASES),
        "chunks": len(begun),
        "unfinished": len(begun) - len(whole),
        "concurrent_max": short_flows.concurrent(table, scenario.duration_s),
        **{f"slowdown_{key}": spread[key] for key in ("mean", "p50", "p95", "p99")},
        "srpt_slowdown_mean": _mean(begun["srpt_slowdown"].to_numpy()),
    }


def summarise(
    scenario: Scenario,
    plan: Plan,
    counters: list[Counter],
    queues: dict[str, Queue],
    short: dict[int, pd.DataFrame] | None = None,
) -> dict[str, Any]:
    """``groups``, ``flows``, ``bottleneck`` and ``jain_index`` of summary.json.

    ``bottleneck`` is the one that the first group crosses; if flows run in both directions, the other one stands under
    ``bottleneck_reverse``.
    """
    low, high = scenario.window_s
    capacity = capacity_mbit(scenario, low, high)
    entries = [flow_summary(scenario, plan, c, i) for i, c in enumerate(counters)]
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
            "goodput_mbit": _round(goodput),
            "share_of_capacity": _round(goodput / capacity),
            "retransmits": sum(e["retransmits"] for e in mine),
            "jain_index": _round(jain_index(np.array([e["goodput_mbit"] for e in mine]))),
            "rtt_ms_mean": _mean_of(sampled, "rtt_ms", "mean"),
            "ecn_marked": _mean_of(mine, "ecn_marked"),
            "cwnd_packets": _round(sum(e["cwnd_packets"] for e in sampled)) if sampled else None,
            "in_flight_packets": _round(sum(e["in_flight_packets"] for e in sampled)) if sampled else None,
            "completion_s": _mean_of(mine, "completion_s"),
            "bbr_jitter_ms": _mean_of(mine, "bbr_jitter_ms"),
            **{key: _mean_of(mine, "phases", key) for key in PHASES},
        })  # fmt: skip
    content: dict[str, Any] = {"groups": groups, "flows": entries}
    main = scenario.flows[0].direction
    for direction, queue in queues.items():
        goodput = sum(g["goodput_mbit"] for g in groups if g["direction"] == direction)
        content["bottleneck" if direction == main else "bottleneck_reverse"] = bottleneck_summary(
            scenario, queue, goodput
        )
    content["bottleneck"]["loss_over_delivered"] = _over_delivered(scenario, counters, plan)
    content["jain_index"] = _round(jain_index(np.array([e["goodput_mbit"] for e in entries])))
    return content


def _over_delivered(scenario: Scenario, counters: list[Counter], plan: Plan) -> float:
    low, high = scenario.window_s
    main = scenario.flows[0].direction
    mine = [c for c, f in zip(counters, plan.flows, strict=True) if scenario.flows[f.group].direction == main]
    retransmits = sum(c.at(high, "total_retrans") - c.at(low, "total_retrans") for c in mine)
    return _round(ratio(retransmits, sum(c.at(high, "delivered") - c.at(low, "delivered") for c in mine)))
