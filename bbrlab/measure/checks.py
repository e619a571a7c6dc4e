"""Compares what was asked for with what the guest measured. A run that fails a check is not averaged with others."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bbrlab.experiment.plan import Plan
from bbrlab.measure.counters import EDGE_TOLERANCE_S, Counter
from bbrlab.measure.numbers import ratio
from bbrlab.measure.queues import Queue
from bbrlab.measure.sockets import Flows
from bbrlab.scenario.rates import rate_at
from bbrlab.scenario.schema import FRAME_BYTES, Scenario

if TYPE_CHECKING:
    import pandas as pd


# Why these tolerances: the rate is measured between departures that are polled 50 times a frame, over 26 frames or
# more, so it is right to .1 %; ping prints microseconds and crosses two veth pairs in no time; a FIFO that overflowed
# holds its limit less at most one frame.
BUSY_RATE_TOLERANCE = 0.005
WINDOW_LIMITED_TOLERANCE = 0.01
LOSS_SIGMAS = 4.5
MIN_BUSY_INTERVALS = 10
TCP_ESTABLISHED = 1
IPERF3_COOKIE_BYTES = 37  # the first thing on every connection; the data follows one or two RTTs later
FQ_CODEL_DROP_BATCH = 64  # net/sched/sch_fq_codel.c, drop_batch_size
FQ_FAST_PATH = 8  # net/sched/sch_fq.c, fq_fastpath_check()


@dataclass(frozen=True)
class Tolerance:
    """How far from what was asked a measurement may be: ``rate`` as a fraction, RTT, lateness of a sample."""

    rate: float
    rtt_ms: float
    sample_s: float


VIRTUAL_TIME = Tolerance(rate=0.002, rtt_ms=0.02, sample_s=EDGE_TOLERANCE_S)
# In real time the poller, ping and the sampler compete with everything else for a processor.
REAL_TIME = Tolerance(rate=0.03, rtt_ms=2.0, sample_s=0.05)


@dataclass(frozen=True)
class Check:
    """One comparison. ``asked`` and ``measured`` share a unit that the name implies; ``detail`` says how and where."""

    name: str
    asked: float | None
    measured: float | None
    ok: bool
    detail: str = ""


def run_checks(
    scenario: Scenario,
    plan: Plan,
    report: dict[str, Any],
    counters: list[Counter],
    queues: dict[str, Queue],
    short: dict[int, pd.DataFrame] | None = None,
) -> list[dict[str, Any]]:
    """All checks of a run, as dictionaries for summary.json.

    Args:
        scenario: what was asked for. (Not the plan: a wrong plan must be found, too.)
        plan: names of hosts and devices, order of flows.
        report: the guest's report.json.
        counters: one per flow.
        queues: {direction: samples of its bottleneck}.
        short: {group: what became of its short flows}.
    """
    links = plan.content["bottlenecks"]
    tolerance = VIRTUAL_TIME if plan.content["virtual"] else REAL_TIME
    found: list[Check] = []
    for link, burst in zip(links, report["burst"], strict=True):
        found += _burst(scenario, link["direction"], burst, tolerance)
        found += _queue(scenario, link["direction"], queues[link["direction"]])
    found += _base_rtt(scenario, plan, report, tolerance)
    found += _drops(scenario, plan, report, queues)
    found += _flows(scenario, plan, report, counters)
    found += [_short_flows(scenario, plan, group, table) for group, table in (short or {}).items()]
    found += _parameters(scenario, plan, report)
    found.append(_samples(scenario, queues, tolerance))
    return [asdict(c) for c in found]


def _suffix(direction: str) -> str:
    return "" if direction == "forward" else "_reverse"


def _burst(scenario: Scenario, direction: str, burst: dict[str, Any] | None, tolerance: Tolerance) -> list[Check]:
    if burst is None:  # RED and CAKE drop a burst before the buffer is full
        return []
    rate, limit = scenario.network.rate_mbit, scenario.network.buffer_bytes
    checks = []
    if burst["rate_bps"] is not None:
        measured = burst["rate_bps"] / 1e6
        checks.append(Check("rate" + _suffix(direction), rate, round(measured, 6), abs(measured / rate - 1) <= tolerance.rate,
                            "Mbit/s at which a burst leaves the bottleneck before the experiment"))  # fmt: skip
    size = burst["buffer_bytes"]
    low, high, how = _buffer_bounds(scenario, limit)
    if not burst["filled"]:  # a buffer too large to be filled before every experiment: all that was sent must be there
        low, how = int(0.9 * (burst["packets"] - 3) * FRAME_BYTES), "bytes of a burst that all fit"
    ok = low <= size <= high
    checks.append(Check("buffer" + _suffix(direction), limit, size, ok, how))
    return checks


def _buffer_bounds(scenario: Scenario, limit: int) -> tuple[int, int, str]:
    """What an overflowing burst of one flow may leave in the buffer, in bytes, and why."""
    qdisc = scenario.network.qdisc
    packets = limit // FRAME_BYTES
    if qdisc.kind == "fifo":
        return limit - FRAME_BYTES + 1, limit, "bytes that an overflowing burst leaves in the buffer"
    if qdisc.kind == "fq_codel":  # overflowing, it drops up to 64 packets of the longest queue at once
        return (
            (packets - FQ_CODEL_DROP_BATCH) * FRAME_BYTES,
            limit,
            "bytes left of an overflowing burst, of which fq_codel drops up to 64 packets at once",
        )
    if qdisc.kind == "fq":  # its first packets do not count against the limit of a flow
        packets = min(packets, qdisc.flow_limit_packets or packets)
        return (
            packets * FRAME_BYTES,
            (packets + FQ_FAST_PATH) * FRAME_BYTES,
            "bytes that an overflowing burst leaves; fq lets 8 packets more in",
        )
    return (packets - 1) * FRAME_BYTES, packets * FRAME_BYTES, "bytes that an overflowing burst leaves in the buffer"


def _queue(scenario: Scenario, direction: str, queue: Queue) -> list[Check]:
    limit = scenario.network.buffer_bytes
    columns = queue.columns
    peak = int(columns["bytes"].max()) if len(columns["bytes"]) else 0
    room = limit + (FQ_FAST_PATH * FRAME_BYTES if scenario.network.qdisc.kind == "fq" else 0)
    checks = [Check("queue_peak" + _suffix(direction), limit, peak, peak <= room, "largest backlog sampled, bytes")]
    times = columns["time_s"]
    busy = (columns["bytes"][:-1] > 2 * FRAME_BYTES) & (columns["bytes"][1:] > 2 * FRAME_BYTES) & (np.diff(times) > 0)
    rates = rate_at(scenario, times + EDGE_TOLERANCE_S)
    busy &= rates[:-1] == rates[1:]
    # A queue can run empty between two samples; what cannot be is a link that carries more than its rate.
    if busy.sum() >= MIN_BUSY_INTERVALS:
        carried = np.diff(columns["sent_bytes"])[busy] * 8e-6
        possible = (rates[:-1] * np.diff(times))[busy]
        ratio_of_sums = float(carried.sum() / possible.sum())
        checks.append(Check("busy_rate" + _suffix(direction), 1.0, round(ratio_of_sums, 6),
                            ratio_of_sums <= 1 + BUSY_RATE_TOLERANCE,
                            "bytes carried while the queue was busy, over what the rate allows"))  # fmt: skip
    return checks


def _base_rtt(scenario: Scenario, plan: Plan, report: dict[str, Any], tolerance: Tolerance) -> list[Check]:
    """The worst ping of each group's hosts."""
    asked: dict[str, list[float]] = {}
    for spec in plan.flows:
        host = plan.content["transfers"][spec.transfer]["client"]
        asked.setdefault(host, []).append(spec.rtt_ms)
    for entry in plan.content["short_flows"]:
        for host in entry["clients"]:
            asked.setdefault(host, []).append(entry["rtt_ms"])
    jitter = scenario.network.jitter
    worst: Check | None = None
    for ping, measured in zip(plan.content["pings"], report["ping_ms"], strict=True):
        host = next(h for h in plan.content["hosts"] if h["name"] == ping["host"])
        rtt = asked[ping["host"]][0]
        room = jitter.ms if jitter and host["jitter_kind"] else 0.0
        error = measured - rtt
        ok = -tolerance.rtt_ms <= error <= room + tolerance.rtt_ms
        if worst is None or (worst.ok and (not ok or abs(error) > abs((worst.measured or 0) - (worst.asked or 0)))):
            worst = Check(
                "base_rtt", rtt, measured, ok, f"ms, ping on the idle path (worst of {len(report['ping_ms'])} hosts)"
            )
    return [worst] if worst else []


def _drops(scenario: Scenario, plan: Plan, report: dict[str, Any], queues: dict[str, Queue]) -> list[Check]:
    bottlenecks = {link["device"] for link in plan.content["bottlenecks"]}
    receivers = {f"{h['switch']}-{h['name']}" for h in plan.content["hosts"] if h["receives"]}
    before = {(q["device"], q["handle"]): q for q in report["qdiscs_before"]}
    elsewhere, where, lost, offered = 0, [], 0, 0
    for q in report["qdiscs"]:
        old = before.get((q["device"], q["handle"]), {"drops": 0, "packets": 0})
        drops = q["drops"] - old["drops"]
        if q["device"] in bottlenecks:
            continue
        if q["device"] in receivers and q["kind"] == "netem":
            lost += drops
            offered += drops + q["packets"] - old["packets"]
        elif drops:
            elsewhere += drops
            where.append(f"{q['device']} {q['kind']}: {drops}")
    for host, counters in report["host_drops"].items():
        for name, count in counters.items():
            if count:
                elsewhere += count
                where.append(f"{host} {name}: {count}")
    if report["switch_misses"]:
        elsewhere += report["switch_misses"]
        where.append(f"Open vSwitch had no flow for {report['switch_misses']} packets")
    checks = []
    changing = any(c.loss is not None for c in scenario.network.changes)
    if scenario.network.loss > 0 and not changing:
        asked, measured = scenario.network.loss, ratio(lost, offered)
        sigma = math.sqrt(asked * (1 - asked) / max(offered, 1))
        checks.append(Check("random_loss", asked, round(measured, 9), abs(measured - asked) <= LOSS_SIGMAS * sigma,
                            f"{lost} of {offered} packets behind the bottleneck"))  # fmt: skip
    elif not changing:
        elsewhere += lost
    checks.append(
        Check(
            "drops_elsewhere",
            0,
            elsewhere,
            elsewhere == 0,
            "; ".join(where) or "packets dropped anywhere but at the bottleneck",
        )
    )
    return checks


def _flows(scenario: Scenario, plan: Plan, report: dict[str, Any], counters: list[Counter]) -> list[Check]:
    failures = {transfer: text for transfer, text in report["traffic_failures"]}
    silent = [
        f.flow for f, c in zip(plan.flows, counters, strict=True) if c.at(scenario.duration_s, "bytes_acked") <= 1
    ]
    detail = "; ".join([f"flow {i} sent nothing" for i in silent] + [f"transfer {k}: {v}" for k, v in failures.items()])
    checks = [
        Check(
            "flows_ran",
            len(counters),
            len(counters) - len(silent),
            not silent and not failures,
            detail or "flows that carried data",
        )
    ]
    end = scenario.duration_s
    window = max((ratio(c.at(end, "rwnd_limited_us"), c.at(end, "busy_us")) for c in counters), default=0.0)
    checks.append(
        _limit(
            "receive_window",
            window,
            scenario.hosts.rmem_max_bytes,
            "of a flow's busy time (tcp_info) that it was the limit",
        )
    )
    unlimited = [c for f, c in zip(plan.flows, counters, strict=True) if scenario.flows[f.group].bytes is None]
    starved = max((_starved(c) for c in unlimited), default=0.0)
    checks.append(
        _limit(
            "send_buffer",
            starved,
            scenario.hosts.wmem_max_bytes,
            "of a flow's samples with room in the window and nothing to send",
        )
    )
    return checks


def _short_flows(scenario: Scenario, plan: Plan, group: int, table: pd.DataFrame) -> Check:
    """Every short flow that was due in the run must have been begun at its time."""
    workload = plan.workloads[group]
    due = workload[(workload["chunk"] == 0) & (workload["start_s"] < scenario.duration_s)]
    begun = table[table["chunk"] == 0].set_index("flow")["begin_s"]
    late = (begun - due.set_index("flow")["start_s"]).abs()
    on_time = int((late <= EDGE_TOLERANCE_S).sum())
    return Check(
        "short_flows", len(due), on_time, on_time == len(due), "short flows, each begun within 1 ms of its time"
    )


def _limit(name: str, measured: float, asked: int | None, detail: str) -> Check:
    detail = f"largest fraction {detail}"
    if asked is not None:
        detail += f" (set to {asked} bytes by the scenario, so this is no fault)"
    return Check(name, 0.0, round(measured, 6), asked is not None or measured <= WINDOW_LIMITED_TOLERANCE, detail)


def _starved(counter: Counter) -> float:
    """Fraction of a flow's samples, once data flows, in which its socket held no byte that the window would admit."""
    columns = counter.columns
    alive = (columns["state"] == TCP_ESTABLISHED) & (columns["bytes_acked"] > IPERF3_COOKIE_BYTES + 1)
    starving = (columns["notsent_bytes"] < columns["snd_mss"]) & (columns["unacked"] + 1 < columns["cwnd"])
    return ratio(float((starving & alive).sum()), float(alive.sum()))


def _parameters(scenario: Scenario, plan: Plan, report: dict[str, Any]) -> list[Check]:
    checks = []
    for argument in plan.kernel_arguments:
        name, _, asked = argument.partition("=")
        module, _, parameter = name.removeprefix("tcp_").partition(".")
        actual = report["parameters"].get(module, {}).get(parameter)
        same = actual is not None and _number(actual) == _number(asked)
        checks.append(
            Check(
                f"parameter {module}.{parameter}",
                _number(asked),
                _number(actual),
                same,
                "module parameter in the guest",
            )
        )
    return checks


def _number(text: str | None) -> float | None:
    try:
        return float({"Y": "1", "N": "0"}.get(text or "", text or ""))
    except ValueError:
        return None


def acks_traced(flows: Flows) -> dict[str, Any]:
    """Whether every ACK was recorded, as a dictionary for summary.json."""
    count = 0 if flows.acks is None else len(flows.acks["time_ns"])
    whole = count + flows.acks_missing
    return asdict(Check("acks_traced", whole, count, flows.acks_missing == 0, "ACKs, all of them recorded"))


def _samples(scenario: Scenario, queues: dict[str, Queue], tolerance: Tolerance) -> Check:
    times = next(iter(queues.values())).columns["time_s"]
    expected = int(scenario.duration_s * scenario.sample_hz) + 1
    grid = np.round(np.arange(expected) / scenario.sample_hz, 9)
    at = np.searchsorted(times, grid - EDGE_TOLERANCE_S)
    present = int(np.sum(times[np.clip(at, 0, len(times) - 1)] - grid <= tolerance.sample_s)) if len(times) else 0
    return Check(
        "samples",
        expected,
        present,
        present == expected,
        f"instants of the sampling grid, each hit within {tolerance.sample_s * 1000:g} ms",
    )
