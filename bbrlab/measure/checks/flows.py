"""Checks that every flow ran, and that the network limited it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check, Tolerance, not_checked
from bbrlab.measure.flow_counters import BEFORE_DATA_BYTES, FlowCounters
from bbrlab.measure.numbers import ratio
from bbrlab.scenario.frames import IP_VERSION, MTU_BYTES
from bbrlab.scenario.schema import Scenario

if TYPE_CHECKING:
    from bbrlab.measure.short_flows import ShortFlows

WINDOW_LIMITED_TOLERANCE = 0.01
# One late flow in 10,000 moves their mean by 1e-4 of its lateness. Chosen after two of 54 runs had failed for one flow of
# 288,853 that began 1 ms late.
LATE_FLOWS = 1e-4
TCP_ESTABLISHED = 1


def flow_checks(scenario: Scenario, plan: Plan, report: Report, counters: list[FlowCounters]) -> list[Check]:
    """``flows_ran``, ``first_data``, ``receive_window`` and ``send_buffer`` of the long flows."""
    failures = {transfer: text for transfer, text in report["traffic_failures"]}
    silent = [f.flow for f, c in zip(plan.flows, counters, strict=True) if not c.sent_data(scenario.duration_s)]
    detail = [f"flow {i} sent no data" for i in silent]
    detail += [
        f"transfer {source}: {v}" if isinstance(source, int) else f"{source}: {v}" for source, v in failures.items()
    ]
    ran = len(counters) - len(silent)
    if counters or failures:
        ok = not silent and not failures
        checks = [Check("flows_ran", len(counters), ran, ok, "; ".join(detail) or "flows that carried data")]
    else:
        checks = [not_checked("flows_ran", 0, "there is no long flow")]
    checks += _first_data(scenario, plan, counters)
    checks += _segment_size(scenario, counters)
    end, hosts = scenario.duration_s, scenario.hosts
    limited = [ratio(c.at(end, "rwnd_limited_us"), c.at(end, "busy_us")) for c in counters]
    how = "fraction of a flow's busy time (tcp_info) that it was the limit"
    checks.append(_limit("receive_window", limited, _given(hosts.rmem_max_bytes, hosts.rmem_initial_bytes), how))
    unlimited = [c for f, c in zip(plan.flows, counters, strict=True) if scenario.flows[f.group].bytes is None]
    how = "fraction of a flow's samples with room in the window and nothing to send"
    checks.append(
        _limit(
            "send_buffer", [_starved(c) for c in unlimited], _given(hosts.wmem_max_bytes, hosts.wmem_initial_bytes), how
        )
    )
    return checks


def _segment_size(scenario: Scenario, counters: list[FlowCounters]) -> list[Check]:
    """``segment_size``: what TCP sends in a packet, in bytes, against network.mtu_bytes and ip_version, where a scenario has one of them."""
    network = scenario.network
    if (network.mtu_bytes == MTU_BYTES and network.ip_version == IP_VERSION) or not counters:
        return []
    asked = network.payload_bytes
    sizes = np.unique(np.concatenate([c.columns["snd_mss"] for c in counters]))
    if not len(sizes):
        return [not_checked("segment_size", asked, "no sample of a flow")]
    other = sizes[sizes != asked]
    detail = "bytes of data in a packet of full size, at every sample of every flow"
    return [Check("segment_size", asked, float(other[0] if len(other) else asked), not len(other), detail)]


def _first_data(scenario: Scenario, plan: Plan, counters: list[FlowCounters]) -> list[Check]:
    """``first_data``: every flow that starts before the window must have sent data when it begins; else means are over fewer flows.

    There is no such check if no flow of unlimited size starts before the window and runs in it. ``flows_ran`` reports flows that
    never send data.
    """
    low_s = scenario.window_s[0]
    groups = [f.bytes is None and f.start_s < low_s and (f.stop_s is None or f.stop_s > low_s) for f in scenario.flows]
    end_s = scenario.duration_s
    due = {f.flow: c for f, c in zip(plan.flows, counters, strict=True) if groups[f.group] and c.sent_data(end_s)}
    if not due:
        return []
    late = [flow for flow, counter in due.items() if not counter.sent_data(low_s)]
    how = f"flows that start before window_s and had sent data when it began, at {low_s:g} s"
    if late:
        listed = ", ".join(map(str, late[:5])) + (", ..." if len(late) > 5 else "")
        how += f"; not flows {listed}: iperf3's connections took longer to open (start in docs/reference/scenario.md)"
    return [Check("first_data", len(due), len(due) - len(late), not late, how)]


def _given(most_bytes: int | None, initial_bytes: int | None) -> str:
    """What the scenario says of a socket's memory, in words; empty: nothing."""
    if most_bytes is not None:
        return f"sets it to {most_bytes}"
    return "" if initial_bytes is None else f"starts it at {initial_bytes}"


def _limit(name: str, fractions: list[float | None], given: str, how: str) -> Check:
    """Check that the largest of the flows' fractions is almost 0, unless the scenario sets the limit (_given())."""
    fractions_measured = [f for f in fractions if f is not None]
    if not fractions_measured:
        return not_checked(name, 0.0, "no flow of unlimited size sent data")
    largest = round(max(fractions_measured), 6)
    if given:
        return not_checked(name, 0.0, f"the scenario {given} bytes, so that it may be the limit", largest)
    return Check(name, 0.0, largest, largest <= WINDOW_LIMITED_TOLERANCE, f"largest {how}")


def _starved(counter: FlowCounters) -> float | None:
    """The fraction of a flow's samples, once data flows, with nothing in the socket to send although the window would allow it."""
    columns = counter.columns
    alive = (columns["state"] == TCP_ESTABLISHED) & (columns["bytes_acked"] > BEFORE_DATA_BYTES)
    starving = (columns["notsent_bytes"] < columns["snd_mss"]) & (columns["unacked"] + 1 < columns["cwnd"])
    return ratio(float((starving & alive).sum()), float(alive.sum()))


def short_flows_check(scenario: Scenario, plan: Plan, group: int, short: ShortFlows, tolerance: Tolerance) -> Check:
    """``short_flows``: every short flow that was due must have begun, all but LATE_FLOWS of them on time, and the receiver's count must
    have been recorded at the window's edges."""
    workload = plan.workloads[group]
    due = workload[(workload["chunk"] == 0) & (workload["start_s"] < scenario.duration_s)]
    if due.empty:
        return not_checked("short_flows", 0, f"none of group {group} was due in the run")
    begun = short.table[short.table["chunk"] == 0].set_index("flow")["begin_s"]
    late_s = (begun - due.set_index("flow")["start_s"]).abs()
    on_time = int((late_s <= tolerance.sample_s).sum())
    how = f"short flows of group {group}, each begun within {tolerance.sample_s * 1000:g} ms of its time (one in {1 / LATE_FLOWS:,.0f} may be later)"
    pairs = zip(short.read.at_s, scenario.window_s, strict=True)
    read_late_s = max(abs(at_s - edge_s) for at_s, edge_s in pairs)
    if read_late_s > tolerance.sample_s:
        how += f"; what had been read at the window's edges was noted {read_late_s * 1000:.0f} ms late"
    whole = bool(begun.reindex(due["flow"]).notna().all())
    ok = whole and len(due) - on_time <= LATE_FLOWS * len(due) and read_late_s <= tolerance.sample_s
    return Check("short_flows", len(due), on_time, ok, how)
