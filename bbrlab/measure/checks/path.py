"""Checks of the path: the base RTT of every sending host, and what policers let pass."""

from __future__ import annotations

from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check, Tolerance, not_checked
from bbrlab.measure.checks.kernel_values import policer_values_check
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


def policer_checks(scenario: Scenario, plan: Plan, report: Report, tolerance: Tolerance) -> list[Check]:
    """``policer_values``, and ``policer``: the bytes that passed each policer, at most a full bucket and its rate for the whole run.

    A policer that drops all the time passes exactly that. One more packet may pass on credit.
    """
    policer = scenario.network.policer
    if policer is None:
        return []
    duration_s = report.get("duration_ns", plan.content["duration_ns"]) * 1e-9
    allowed = policer.burst_bytes + policer.rate_mbit * 1e6 / 8 * duration_s
    checks = []
    for entry in report["policers"]:
        checks.append(policer_values_check(scenario, entry))
        passed, drops = entry["passed_bytes"], entry["drops"]
        counted = entry["passed_packets"] + drops == entry["offered_packets"]
        ok = counted and passed <= allowed * (1 + tolerance.rate) + scenario.network.frame_bytes
        detail = (
            f"bytes that passed the policer at {entry['device']}; {drops} of {entry['offered_packets']} packets dropped"
        )
        if ok and not drops:
            checks.append(not_checked("policer", round(allowed), "nothing exceeded it: no packet was dropped", passed))
        else:
            checks.append(Check("policer", round(allowed), passed, ok, detail))
    return checks
