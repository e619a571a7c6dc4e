"""Turns a run's samples into the numbers of summary.json. What each metric is: bbrlab/measure/schema.py."""

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
        scenario: what was asked for.
        plan: which group each flow belongs to.
        counters: one per long flow, in the plan's order.
        queues: {name of a bottleneck (experiment.links.name_of()): its samples}.
        short: {group: what became of its short flows}.

    Returns:
        ``groups``: one entry per flow group, all metrics of schema.GROUP, as well as ``cca``, ``count`` (flows; of short ones
        those that began a transmission in the window) and ``direction``. ``flows``: one per long flow. ``bottleneck`` and
        ``jain_index``: the metrics of schema.RUN, of the bottleneck that the first group crosses; if there is one
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
    goodputs = {g: sum(f.goodput_mbit for f in mine) for g, mine in members.items()}
    goodputs |= {g: mine.goodput_mbit for g, mine in (short or {}).items()}
    whole = sum(goodputs.values())
    groups: list[GroupEntry] = []
    for g, asked in enumerate(scenario.flows):
        if short and g in short:
            from bbrlab.measure.short_flows import SHORT, ShortGroup

            counted, values = short[g].count, SHORT.values(ShortGroup(short[g], whole))
        else:
            counted, values = asked.count, LONG.values(LongGroup(_slowest(scenario, asked), members[g], whole))
        known: GroupEntry = {"cca": asked.cca, "count": counted, "direction": asked.direction}
        groups.append(cast(GroupEntry, known | values))  # names of metrics are the schema's
    found: dict[str, BottleneckEntry] = {}
    fairness: dict[str, float | None] = {}
    links: list[LinkEntry] = []
    crossing = [{name for name, _ in crossed_by(scenario, asked)} for asked in scenario.flows]
    for link in plan.content["bottlenecks"]:
        name, there = name_of(link), scenario_of(scenario, link)
        if name not in queues:
            continue
        over = [g for g, names in enumerate(crossing) if name in names]
        goodput = sum(goodputs[g] for g in over)
        values = RUN.values(Bottleneck(there, queues[name], goodput, [f for f in flows if f.spec.group in over], flows))
        size: BottleneckEntry = {"buffer_bytes": there.network.buffer_bytes}
        found[name] = cast(BottleneckEntry, _placed(values) | size)
        fairness[name] = values["jain_index_all"]
        if "link" in link:
            who = {"link": link["link"], "rate_mbit": there.network.rate_mbit, "groups": over}
            links.append(cast(LinkEntry, who | found[name]))
    main = crossed_by(scenario, scenario.flows[0])[0][0]
    content: Measured = {
        "groups": groups, "flows": [f.entry() for f in flows], "bottleneck": found[main], "jain_index": fairness[main],
    }  # fmt: skip
    if links:
        content["links"] = links
    else:
        for name in found.keys() - {main}:
            content["bottleneck_reverse"] = found[name]
    return content


def _slowest(scenario: Scenario, flow: Flow) -> Scenario:
    """The scenario with the slowest bottleneck that a group crosses as its network."""
    return min((there for _, there in crossed_by(scenario, flow)), key=lambda there: there.network.rate_mbit)


def _placed(values: dict[str, Value]) -> dict[str, Any]:
    """The ``bottleneck`` entry: the metrics of the run at their places in it."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        place = RUN.scope[name].place or ("bottleneck", name)
        if place[0] == "bottleneck":
            inner = found
            for key in place[1:-1]:
                inner = inner.setdefault(key, {})
            inner[place[-1]] = value
    return found
