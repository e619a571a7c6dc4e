"""What the hosts take in: who cuts segments, whether several packets are taken in at once and merged, of which version of IP they are."""

from __future__ import annotations

from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check, not_checked
from bbrlab.scenario.frames import IP_VERSION
from bbrlab.scenario.schema import Scenario

# What an interface gets besides TCP: some ARP, and on a real machine what its kernel sends by itself.
OTHER_PACKETS_PER_HOST = 10
FEW_PACKETS = 1000  # of fewer, chance may let none come together
INTERRUPT_QDISC = "3:"  # handle of the netem that hands over several packets at once (mininet/dumbbell.py)


def segmentation_check(scenario: Scenario, plan: Plan, report: Report) -> Check:
    """``segmentation``: the hosts' offloads, which decide where segments are cut."""
    asked = {"off": (False, False), "nic": (False, True), "router": (True, True)}[scenario.hosts.segmentation]
    right = sum((entry["tso"], entry["gso"]) == asked for entry in report["received"].values())
    count = len(plan.content["hosts"])
    return Check(
        "segmentation", count, right, right == count, f"hosts whose offloads are set for {scenario.hosts.segmentation}"
    )


def receive_offload_check(scenario: Scenario, plan: Plan, report: Report) -> Check:
    """``receive_offload``: GRO and delayed interrupts must be on exactly where the scenario has them, and packets must be merged if
    several come within that delay all the time. It measures packets for each segment that receivers' TCP got; in a play pings,
    which are no segments, would count as merged.
    """
    delay_us, timer_us = scenario.hosts.interrupt_delay_us, scenario.hosts.gro_timer_us
    hosts = plan.content["hosts"]
    ports = {f"{h['switch']}-{h['name']}" for h in hosts}
    delayed = {q["device"] for q in report["qdiscs"] if q["kind"] == "netem" and q["handle"] == INTERRUPT_QDISC}
    receivers = [h["name"] for h in hosts if h["receives"]]
    packets, segments = (
        sum(report["received"][name][key] - report["received_before"][name][key] for name in receivers)
        for key in ("packets", "tcp_segments")
    )
    merging = sum(entry["gro"] for entry in report["received"].values())
    timers = {entry["gro_timer_ns"] for entry in report["received"].values()}
    off = delay_us is None and timer_us is None
    ok = (
        merging == (0 if off else len(hosts))
        and delayed == (ports if delay_us else set())
        and timers == {round((timer_us or 0) * 1000)}
    )
    together = packets >= FEW_PACKETS and _come_together(scenario, delay_us or timer_us or 0)
    if "prompt" not in plan.content and (off or together):
        merged = packets - segments > OTHER_PACKETS_PER_HOST * len(receivers)
        ok = ok and merged == (not off)
    detail = f"packets for each segment that receivers got; GRO on at {merging} of {len(hosts)} hosts"
    detail += f", interrupts delayed at {len(delayed & ports)}"
    measured = round(packets / segments, 6) if segments else None
    if timer_us:
        detail += f", timers of {', '.join(f'{ns / 1000:g}' for ns in sorted(timers))} us"
    return Check("receive_offload", 1.0 if off else None, measured, ok, detail)


def _come_together(scenario: Scenario, within_us: float) -> bool:
    """Whether a full bottleneck always sends more than two packets within a time, and nothing else can space them farther apart."""
    network = scenario.network
    slower = network.links or network.policer or any(change.rate_mbit is not None for change in network.changes)
    ways = [scenario.towards(flow.direction).network for flow in scenario.flows]
    return not slower and all(w.opportunities is None and within_us > 2 * w.frame_bytes * 8 / w.rate_mbit for w in ways)


def ip_version_check(scenario: Scenario, report: Report) -> list[Check]:
    """``ip_version``: of which version the packets are that hosts received in the run, where network.ip_version is not the usual one."""
    asked = scenario.network.ip_version
    if asked == IP_VERSION:
        return []
    before, after = report["received_before"], report["received"]
    of_4 = sum(after[host].get("ipv4_packets", 0) - before[host].get("ipv4_packets", 0) for host in after)
    of_6 = sum(after[host].get("ipv6_packets", 0) - before[host].get("ipv6_packets", 0) for host in after)
    if not of_4 + of_6:
        return [not_checked("ip_version", asked, "no packet came to a host")]
    detail = f"{of_6} packets of IPv6 and {of_4} of IPv4 came to the hosts in the run"
    return [Check("ip_version", asked, 4 if of_4 else 6, not of_4, detail)]
