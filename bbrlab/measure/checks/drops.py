"""Checks of dropped packets: by random loss, and elsewhere than at the bottleneck."""

from __future__ import annotations

from bbrlab.experiment.hosts import loss_devices
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.chance import room
from bbrlab.measure.checks.check import Check
from bbrlab.measure.checks.kernel_values import POLICERS_PLACE
from bbrlab.measure.checks.path_steps import stepwise_loss_check
from bbrlab.measure.checks.reception import INTERRUPT_QDISC
from bbrlab.measure.queues import Queue
from bbrlab.scenario.schema import Scenario


def drop_checks(scenario: Scenario, plan: Plan, report: Report, queues: dict[str, Queue]) -> list[Check]:
    """``random_loss`` and ``drops_elsewhere``."""
    bottlenecks = {link["device"] for link in plan.content["bottlenecks"]}
    lossy = set(loss_devices(scenario, plan.content["hosts"]))
    before = {(q["device"], q["handle"]): q for q in report["qdiscs_before"]}
    elsewhere, places, lost, offered = 0, [], 0, 0
    for q in report["qdiscs"]:
        old = before.get((q["device"], q["handle"]), q | {"drops": 0, "packets": 0})
        drops = q["drops"] - old["drops"]
        if q["device"] in bottlenecks or q["kind"] == POLICERS_PLACE:
            continue
        if q["device"] in lossy and q["kind"] == "netem" and q["handle"] != INTERRUPT_QDISC:
            lost += drops
            offered += drops + q["packets"] - old["packets"]
        elif drops:
            elsewhere += drops
            places.append(f"{q['device']} {q['kind']}: {drops}")
    for host, counters in report["host_drops"].items():
        for name, count in counters.items():
            if count:
                elsewhere += count
                places.append(f"{host} {name}: {count}")
    for host, entry in report["received"].items():
        lost_there = entry["drops"] - report["received_before"][host]["drops"]
        if lost_there:
            elsewhere += lost_there
            places.append(f"{host} interface: {lost_there}")
    if report["switch_misses"]:
        elsewhere += report["switch_misses"]
        places.append(f"Open vSwitch had no flow for {report['switch_misses']} packets")
    counted = {q["device"] for q in report["qdiscs"]}
    uncounted = [f"{device} has no counters" for device in sorted((bottlenecks | lossy) - counted)]
    checks = []
    changing = any(c.loss is not None for c in scenario.network.changes)
    if scenario.network.loss > 0 and not changing:
        asked, measured = scenario.network.loss, lost / max(offered, 1)
        ok = offered > 0 and abs(lost - offered * asked) <= room(offered, asked, scenario.network.loss_burst_packets)
        checks.append(Check("random_loss", asked, round(measured, 9), ok,
                            f"{lost} of {offered} packets {scenario.network.loss_place} the bottleneck"))  # fmt: skip
    elif changing:
        checks.append(stepwise_loss_check(scenario, plan, report))
    detail = "; ".join([*places, *uncounted]) or "packets dropped anywhere but at the bottleneck"
    return [*checks, Check("drops_elsewhere", 0, elsewhere, elsewhere == 0 and not uncounted, detail)]
