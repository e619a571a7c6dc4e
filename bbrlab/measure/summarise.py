"""Turns a run's samples into the numbers of summary.json (definitions: bbrlab/measure/metrics.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from bbrlab.experiment.links import crossed_by, name_of, scenario_of
from bbrlab.experiment.plan import Plan
from bbrlab.measure.bottleneck import RUN, Bottleneck
from bbrlab.measure.flow_counters import FlowCounters
from bbrlab.measure.long_flows import LONG, LongFlow, LongGroup
from bbrlab.measure.numbers import Value
from bbrlab.measure.queues import Queue
from bbrlab.measure.summary import BottleneckEntry, GroupEntry, LinkEntry, Measured
from bbrlab.scenario.schema import Flow, Scenario

if TYPE_CHECKING:
    from bbrlab.measure.short_flows import ShortFlows


def summarise(
    scenario: Scenario,
    plan: Plan,
    counters: list[FlowCounters],
    queues: dict[str, Queue],
    short: dict[int, ShortFlows] | None = None,
) -> Measured:
    """The measured part of summary.json.

    Args:
        counters: one per long flow, in the plan's order.
        queues: {name of a bottleneck (experiment.links.name_of()): its samples}.
        short: {group: the outcome of its short flows}.

    Returns:
        ``groups``: one entry per flow group, all metrics of metrics.GROUP, as well as ``cca``, ``count`` (flows; of short ones
        those that began a transmission in the window) and ``direction``. ``flows``: one per long flow. ``bottleneck`` and
        ``jain_index``: the metrics of metrics.RUN, of the bottleneck that the first group crosses; if there is one
        in the other direction, too, it stands under ``bottleneck_reverse``. Of several links in a row ``links`` has the same of each,
        and ``bottleneck`` is the first that the first group crosses. Numbers with nine decimals, None where nothing was seen.
    """
    flows = []
    for spec, c in zip(plan.flows, counters, strict=True):
        path = [(there.network, queues[name]) for name, there in crossed_by(scenario, scenario.flows[spec.group])]
        flows.append(LongFlow(scenario, spec, c, path))
    members = {
        g: [f for f in flows if f.spec.group == g] for g in range(len(scenario.flows)) if not (short and g in short)
    }
    goodputs = {g: sum(f.goodput_mbit for f in of_group) for g, of_group in members.items()}
    goodputs |= {g: of_group.goodput_mbit for g, of_group in (short or {}).items()}
    whole = sum(goodputs.values())
    groups: list[GroupEntry] = []
    for g, spec_of_group in enumerate(scenario.flows):
        if short and g in short:
            from bbrlab.measure.short_flows import SHORT, ShortGroup

            counted, values = short[g].count, SHORT.values(ShortGroup(short[g], whole))
        else:
            counted, values = (
                spec_of_group.count,
                LONG.values(LongGroup(_slowest(scenario, spec_of_group), members[g], whole)),
            )
        identity: GroupEntry = {"cca": spec_of_group.cca, "count": counted, "direction": spec_of_group.direction}
        groups.append(cast(GroupEntry, identity | values))  # names of metrics are the schema's
    bottlenecks: dict[str, BottleneckEntry] = {}
    fairness: dict[str, float | None] = {}
    links: list[LinkEntry] = []
    crossing = [{name for name, _ in crossed_by(scenario, spec_of_group)} for spec_of_group in scenario.flows]
    for link in plan.content["bottlenecks"]:
        name, there = name_of(link), scenario_of(scenario, link)
        if name not in queues:
            continue
        over = [g for g, names in enumerate(crossing) if name in names]
        goodput = sum(goodputs[g] for g in over)
        values = RUN.values(Bottleneck(there, queues[name], goodput, [f for f in flows if f.spec.group in over], flows))
        size: BottleneckEntry = {"buffer_bytes": there.network.buffer_bytes}
        bottlenecks[name] = cast(BottleneckEntry, _placed(values) | size)
        fairness[name] = values["jain_index_all"]
        if "link" in link:
            link_entry = {"link": link["link"], "rate_mbit": there.network.rate_mbit, "groups": over}
            links.append(cast(LinkEntry, link_entry | bottlenecks[name]))
    main = crossed_by(scenario, scenario.flows[0])[0][0]
    content: Measured = {
        "groups": groups, "flows": [f.entry() for f in flows], "bottleneck": bottlenecks[main], "jain_index": fairness[main],
    }  # fmt: skip
    if links:
        content["links"] = links
    else:
        for name in bottlenecks.keys() - {main}:
            content["bottleneck_reverse"] = bottlenecks[name]
    return content


def _slowest(scenario: Scenario, flow: Flow) -> Scenario:
    """The scenario with the slowest bottleneck that a group crosses as its network."""
    return min((there for _, there in crossed_by(scenario, flow)), key=lambda there: there.network.rate_mbit)


def _placed(values: dict[str, Value]) -> dict[str, Any]:
    """The ``bottleneck`` entry: the metrics of the run at their places in it."""
    entry: dict[str, Any] = {}
    for name, value in values.items():
        place = RUN.scope[name].place or ("bottleneck", name)
        if place[0] == "bottleneck":
            inner = entry
            for key in place[1:-1]:
                inner = inner.setdefault(key, {})
            inner[place[-1]] = value
    return entry
