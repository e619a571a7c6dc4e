"""Checks the base RTT of every sending host."""

from __future__ import annotations

from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check, Tolerance, not_checked
from bbrlab.scenario.schema import Scenario


def base_rtt_check(scenario: Scenario, plan: Plan, report: Report, tolerance: Tolerance) -> Check:
    """``base_rtt``: ping on the idle path; the worst of the hosts."""
    rtts_of: dict[str, list[float]] = {}
    for flow in plan.flows:
        client = plan.content["transfers"][flow.transfer]["client"]
        rtts_of.setdefault(client, []).append(flow.rtt_ms)
    for entry in plan.content["short_flows"]:
        for client in entry["clients"]:
            rtts_of.setdefault(client, []).append(entry["rtt_ms"])
    jitter = scenario.network.jitter
    interrupts_ms = 2 * (scenario.hosts.interrupt_delay_us or 0.0) / 1000  # of both hosts; a real path has them, too
    results: list[tuple[bool, float, Check]] = []
    hosts = sum(host["sends"] for host in plan.content["hosts"])
    for ping, measured in zip(plan.content["pings"], report["ping_ms"], strict=True):
        if ping["host"] not in rtts_of:
            continue  # its flow was never started (bbrlab play)
        host = next(h for h in plan.content["hosts"] if h["name"] == ping["host"])
        rtt = rtts_of[ping["host"]][0]
        if jitter and host["jitter_kind"] == "aggregated":  # a ping is alone
            rtt += jitter.ms
        room = scenario.hosts.noise.processing_us / 1000 + (
            jitter.ms if jitter and host["jitter_kind"] in ("slotted", "per-packet") else 0.0
        )
        room += scenario.network.data_path.varies_ms if scenario.network.data_path else 0.0
        error = measured - rtt
        ok = -tolerance.rtt_ms <= error <= room + interrupts_ms + tolerance.rtt_ms
        how = f"ms, ping on the idle path (worst of {hosts} hosts)"
        results.append((not ok, abs(error), Check("base_rtt", rtt, measured, ok, how)))
    if not results:
        return not_checked("base_rtt", None, "no host was pinged")
    return max(results, key=lambda entry: entry[:2])[2]  # a host that failed goes before one that passed
