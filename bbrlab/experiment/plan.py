"""Turns one point of a scenario and a seed into the plan that the guest carries out.

The plan (docs/reference/plan.md) has hosts, switch ports, tc arguments and iperf3 processes only: everything that needs a decision
or a random draw is decided here, so that the guest's code needs nothing of bbrlab/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bbrlab.base.errors import UserError
from bbrlab.experiment.hosts import Hosts, loss_devices, switch_links, sysctls
from bbrlab.experiment.iperf3_library import TOGETHER
from bbrlab.experiment.links import NS, bottlenecks, changes, late_packets, opportunities, pings, policers, probes
from bbrlab.experiment.plan_types import GuestPlan, ParameterSetPlan, Trace
from bbrlab.experiment.transfers import FlowPlan, plan_traffic
from bbrlab.scenario.draws import draw_added_rtts, draw_base_rtts
from bbrlab.scenario.frames import IP_VERSION, MTU_BYTES
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Scenario

if TYPE_CHECKING:
    import pandas as pd


PLAN_FORMAT = 1
TRACE_RECORDS = 1 << 17  # records of ACKs that the kernel keeps until the next sample is taken (36 MiB)
SHORT_FLOWS_AT_ONCE = 64  # among how many the kernel's buffers are shared out


@dataclass(frozen=True)
class Plan:
    """The guest's plan, and what is needed to read its results."""

    content: GuestPlan
    flows: list[FlowPlan]
    kernel_arguments: list[str]  # module parameters for the guest kernel's command line
    # {group: chunks of its short flows} (bbrlab.workload.chunks.COLUMNS)
    workloads: dict[int, pd.DataFrame] = field(default_factory=dict)
    # {OpportunitiesPlan.file: its content}: the times at which a bottleneck may send
    opportunities: dict[str, bytes] = field(default_factory=dict)


def make_plan(
    point: Point,
    seed: int,
    ccas: dict[str, str],
    *,
    virtual: bool = True,
    own_machine: bool = True,
    preload: str | None = None,
    helpers: str = "/run/lib",
    trace: Trace = "",
    modules: Mapping[str, str] | None = None,
    machines: Mapping[int, int] | None = None,
) -> Plan:
    """The plan for one run. UserError for a CCA that the kernel lacks.

    Args:
        seed: decides the drawn RTTs (and, elsewhere, the guest's entropy).
        ccas: the kernel's names of the CCAs: {"bbr1": "bbr", ...}.
        own_machine: whether the guest is a machine of its own, not this one.
        preload: the iperf3 helper library as the guest sees it, or None.
        helpers: the folder of the compiled helpers as the guest sees it.
        trace: whether a record is kept of every ACK ("acks"), or of those at which a flow's state changes ("changes").
        modules: {the kernel's name of a CCA that may be had in parameter sets: the module that has it}.
        machines: {group: the machine that its senders are in}, of those that are not in the first (run/several.py).
    """
    scenario = point.scenario
    network = scenario.network
    missing = sorted({f.cca for f in scenario.flows} - set(ccas))
    if missing:
        raise UserError(
            f"{scenario.name}: flows: this kernel has no {', '.join(missing)} (it has {', '.join(sorted(ccas))}); "
            "choose another kernel with --kernel (config/kernels.yaml lists them), or give the algorithm's source "
            "(docs/howto/own_algorithm.md)"
        )
    rtts_ms = draw_base_rtts(scenario, seed)
    hosts = Hosts(scenario, draw_added_rtts(scenario, seed), machines)
    modules = modules or {}
    names, parameter_sets, arguments = _parameters(scenario, ccas, modules)
    transfers, flows, short_flows = plan_traffic(scenario, hosts, rtts_ms, names, f"{helpers}/{TOGETHER}")
    used = {ccas[f.cca] for f in scenario.flows}
    links = bottlenecks(scenario, hosts)
    connections = len(flows) + SHORT_FLOWS_AT_ONCE * len(short_flows)
    content: GuestPlan = {
        "format": PLAN_FORMAT,
        "virtual": virtual,
        "own_machine": own_machine,
        "seed": seed,
        "sample_hz": scenario.sample_hz,
        "duration_ns": round(scenario.duration_s * NS),
        "window_ns": [round(s * NS) for s in scenario.window_s],
        "switch_links": switch_links(scenario, hosts.specs),
        "hosts": hosts.specs,
        "bottlenecks": links,
        "segmentation": scenario.hosts.segmentation,
        "interrupt_delay_us": scenario.hosts.interrupt_delay_us,
        "pacing_late_ns": round(scenario.hosts.noise.processing_us * 1000) if virtual else 0,
        "gro_timer_us": scenario.hosts.gro_timer_us,
        "sysctls": sysctls(scenario, max(max(r) for r in rtts_ms), connections),
        "loss": network.loss,
        "loss_devices": loss_devices(scenario, hosts.specs),
        "changes": changes(scenario, hosts),
        "pings": pings(hosts, links),
        "transfers": transfers,
        "short_flows": short_flows,
        "preload": preload,
        "trace_acks": bool(trace),
        "ccas": sorted(used),
        "parameter_sets": parameter_sets,
    }
    if network.policer is not None:
        content["policers"] = policers(scenario, hosts.specs)
    if network.loss_burst_packets is not None:
        content["loss_burst_packets"] = network.loss_burst_packets
    if network.mtu_bytes != MTU_BYTES:
        content["mtu_bytes"] = network.mtu_bytes
    if network.ip_version != IP_VERSION:
        content["ip_version"] = network.ip_version
    if network.data_path is not None:
        content["probes"] = probes(hosts)
        if network.data_path.reordering is not None:
            content["late"] = late_packets(scenario, hosts.specs)
    timed = opportunities(scenario, content["bottlenecks"])
    if timed:
        content["opportunities"] = [entry for entry, _ in timed]
    arguments += [f"tcp_ack_records.kept={TRACE_RECORDS}"] if trace else []
    arguments += ["tcp_ack_records.changes=Y"] if trace == "changes" else []
    return Plan(content, flows, arguments, _workloads(scenario, seed), {entry["file"]: times for entry, times in timed})


def check_room(scenario: Scenario) -> None:
    """UserError if a run would need more addresses or ports than there are: make_plan() without a kernel."""
    hosts = Hosts(scenario, draw_added_rtts(scenario, 1))
    plan_traffic(scenario, hosts, draw_base_rtts(scenario, 1), [flow.cca for flow in scenario.flows], "")


def _parameters(
    scenario: Scenario, ccas: Mapping[str, str], modules: Mapping[str, str]
) -> tuple[list[str], list[ParameterSetPlan], list[str]]:
    """How the groups' ``params`` reach the kernel: as module parameters, or as parameter sets of their own.

    A module's parameters hold for the whole kernel, whichever flow asked for them. Some modules have sets of parameters beside
    that: a line written to their parameter ``sets`` registers one more congestion control, by a name of its own
    (kernels/bbr/tcp_bbr_sets.c). Groups with the same CCA and the same parameters share a set.

    Args:
        modules: {the kernel's name of a CCA that may be had in parameter sets: the module that has it}.

    Returns:
        For each group the kernel's name of its CCA, an algorithm or a parameter set; the sets; arguments of the kernel.
    """
    names: list[str] = []
    sets: dict[tuple[str, str], ParameterSetPlan] = {}
    arguments: dict[str, list[str]] = {}
    for flow in scenario.flows:
        cca = ccas[flow.cca]
        values = {name: _word(value) for name, value in flow.params.items()}
        if cca in modules and values:
            key = cca, json.dumps(values, sort_keys=True)
            if key not in sets:
                ordered = {k: values[k] for k in sorted(values, key=lambda k: (k != "profile", k))}
                name = f"{cca}_set{len(sets) + 1}"
                sets[key] = {"module": modules[cca], "name": name, "base": cca, "values": ordered}
            names.append(sets[key]["name"])
        else:
            names.append(cca)
            if cca not in modules:
                arguments[cca] = [f"tcp_{cca}.{name}={value}" for name, value in values.items()]
    return names, list(sets.values()), [a for cca in sorted(arguments) for a in arguments[cca]]


def _word(value: Any) -> str:
    return {True: "Y", False: "N"}[value] if isinstance(value, bool) else str(value)


def _workloads(scenario: Scenario, seed: int) -> dict[int, pd.DataFrame]:
    """{group: chunks of its short flows}."""
    groups = {g: flow.traffic for g, flow in enumerate(scenario.flows) if flow.traffic is not None}
    if not groups:
        return {}
    from bbrlab.workload.workload import workload_of  # takes a second that other runs need not wait

    return {
        g: workload_of(traffic.mode, traffic.trace, seed, scenario.duration_s, traffic.offered_mbit)
        for g, traffic in groups.items()
    }
