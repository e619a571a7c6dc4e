"""All checks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bbrlab.experiment.links import name_of, scenario_of
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.bottleneck import burst_checks, queue_checks, sends_check
from bbrlab.measure.checks.check import REAL_TIME, VIRTUAL_TIME, Check, CheckEntry, entry_of
from bbrlab.measure.checks.data_path import data_path_checks
from bbrlab.measure.checks.drops import drop_checks
from bbrlab.measure.checks.flows import flow_checks, short_flows_check
from bbrlab.measure.checks.guest import acks_check, capture_check, parameter_checks, samples_check, states_check
from bbrlab.measure.checks.kernel_values import host_check, path_check, qdisc_check
from bbrlab.measure.checks.passed_packets import passing_checks
from bbrlab.measure.checks.path import base_rtt_check, policer_checks
from bbrlab.measure.checks.path_steps import path_steps_check
from bbrlab.measure.checks.reception import ip_version_check, receive_offload_check, segmentation_check
from bbrlab.measure.flow_counters import FlowCounters
from bbrlab.measure.queues import Queue
from bbrlab.measure.sockets import Flows
from bbrlab.scenario.schema import Scenario

if TYPE_CHECKING:
    from bbrlab.measure.short_flows import ShortFlows


def run_checks(
    scenario: Scenario,
    plan: Plan,
    report: Report,
    counters: list[FlowCounters],
    queues: dict[str, Queue],
    short: dict[int, ShortFlows] | None = None,
    flows: Flows | None = None,
) -> list[CheckEntry]:
    """All checks of a run, as dictionaries (of Check) for summary.json.

    Args:
        scenario: of the run. (Not the plan: the checks must also notice a wrong plan.)
        plan: names of hosts and devices, order of flows.
        queues: {name of a bottleneck (experiment.links.name_of()): its samples}.
        short: {group: the outcome of its short flows (short_flows.ShortFlows)}.
        flows: the decoded samples; needed for checks of the algorithms' own records.
    """
    links = plan.content["bottlenecks"]
    tolerance = VIRTUAL_TIME if plan.content["virtual"] else REAL_TIME
    checks: list[Check] = []
    for link, burst in zip(links, report["burst"], strict=True):
        as_scenario, name = scenario_of(scenario, link), name_of(link)
        checks += burst_checks(as_scenario, name, burst, tolerance)
        checks += queue_checks(as_scenario, name, queues[name], tolerance)
        checks.append(sends_check(as_scenario, name, queues[name], tolerance))
        checks.append(qdisc_check(scenario, plan, report, link))
    checks += [path_check(scenario, plan, report), host_check(scenario, plan, report)]
    if steps := path_steps_check(scenario, plan, report):
        checks.append(steps)
    checks.append(base_rtt_check(scenario, plan, report, tolerance))
    checks += data_path_checks(scenario, report, tolerance)
    checks += policer_checks(scenario, plan, report, tolerance)
    checks += passing_checks(scenario, plan, report, queues)
    checks += drop_checks(scenario, plan, report, queues)
    checks.append(segmentation_check(scenario, plan, report))
    checks.append(receive_offload_check(scenario, plan, report))
    checks += ip_version_check(scenario, report)
    checks += flow_checks(scenario, plan, report, counters)
    checks += [short_flows_check(scenario, plan, group, s, tolerance) for group, s in (short or {}).items()]
    checks += parameter_checks(plan, report)
    checks.append(samples_check(scenario, queues, tolerance))
    if flows is not None and (states := states_check(flows)):
        checks.append(states)
    if flows is not None and flows.acks is not None:
        checks.append(acks_check(flows))
    if "capture" in plan.content:
        checks.append(capture_check(plan, report))
    return [entry_of(c) for c in checks]
