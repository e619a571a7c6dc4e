"""How the hosts take packets in: each by itself, or several at once that are merged (receive offload)."""

from __future__ import annotations

from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check
from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab.scenario.schema import Scenario

# What an interface gets besides TCP: some ARP, and on a real machine what its kernel sends by itself.
OTHER_PACKETS_PER_HOST = 10
FEW_PACKETS = 1000  # of fewer, chance may let none come together
INTERRUPT_QDISC = "3:"  # handle of the netem that hands over several packets at once (mininet/dumbbell.py)


def receive_offload_check(scenario: Scenario, plan: Plan, report: Report) -> Check:
    """``receive_offload``: GRO and the delay of interrupts are where they were asked for and nowhere else, and packets are
    merged where several can come within that delay. It measures packets for each segment that receivers' TCP got."""
    delay_us = scenario.hosts.interrupt_delay_us
    hosts = plan.content["hosts"]
    ports = {f"{h['switch']}-{h['name']}" for h in hosts}
    delayed = {q["device"] for q in report["qdiscs"] if q["kind"] == "netem" and q["handle"] == INTERRUPT_QDISC}
    receivers = [h["name"] for h in hosts if h["receives"]]
    packets, segments = (
        sum(report["received"][name][key] - report["received_before"][name][key] for name in receivers)
        for key in ("packets", "tcp_segments")
    )
    merging = sum(entry["gro"] for entry in report["received"].values())
    if delay_us is None:
        in_place = merging == 0 and not delayed
        ok = in_place and packets - segments <= OTHER_PACKETS_PER_HOST * len(receivers)
    else:
        in_place = merging == len(hosts) and delayed == ports
        together = delay_us > 2 * FRAME_BYTES * 8 / scenario.network.rate_mbit and packets >= FEW_PACKETS
        ok = in_place and (not together or packets - segments > OTHER_PACKETS_PER_HOST * len(receivers))
    detail = f"packets for each segment that receivers got; GRO on at {merging} of {len(hosts)} hosts"
    detail += f", interrupts delayed at {len(delayed & ports)}"
    measured = round(packets / segments, 6) if segments else None
    return Check("receive_offload", None if delay_us else 1.0, measured, ok, detail)
