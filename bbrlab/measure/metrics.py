"""Turns a run's samples into the numbers of summary.json. What each metric is: bbrlab/measure/schema.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from bbrlab.experiment.plan import Plan
from bbrlab.measure.bottleneck import RUN, Bottleneck
from bbrlab.measure.flow_counters import FlowCounters
from bbrlab.measure.long_flows import LONG, LongFlow, LongGroup
from bbrlab.measure.numbers import Value
from bbrlab.measure.queues import Queue
from bbrlab.measure.summary import BottleneckEntry, GroupEntry, Measured
from bbrlab.scenario.schema import Scenario

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
        queues: {direction: samples of its bottleneck}.
        short: {group: what became of its short flows}.

    Returns:
        ``groups``: one entry per flow group, all metrics of schema.GROUP, as well as ``cca``, ``count`` (flows; of short ones
        those that began a transmission in the window) and ``direction``. ``flows``: one per long flow. ``bottleneck`` and
        ``jain_index``: the metrics of schema.RUN, of the bottleneck that the first group crosses; if there is one
        in the other direction, too, it stands under ``bottleneck_reverse``. Numbers with nine decimals, None where nothing was seen.
    """
    flows = []
    for spec, c in zip(plan.flows, counters, strict=True):
        way = scenario.flows[spec.group].direction
        flows.append(LongFlow(scenario.towards(way), spec, c, queues[way]))
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
            counted, values = asked.count, LONG.values(LongGroup(scenario.towards(asked.direction), members[g], whole))
        known: GroupEntry = {"cca": asked.cca, "count": counted, "direction": asked.direction}
        groups.append(cast(GroupEntry, known | values))  # names of metrics are the schema's
    found: dict[str, BottleneckEntry] = {}
    fairness: dict[str, float | None] = {}
    for direction, queue in queues.items():
        goodput = sum(goodputs[g] for g, asked in enumerate(scenario.flows) if asked.direction == direction)
        crossing = [f for f in flows if f.asked.direction == direction]
        there = scenario.towards(direction)
        values = RUN.values(Bottleneck(there, queue, goodput, crossing, flows))
        size: BottleneckEntry = {"buffer_bytes": there.network.buffer_bytes}
        found[direction] = cast(BottleneckEntry, _placed(values) | size)
        fairness[direction] = values["jain_index_all"]
    main = scenario.flows[0].direction
    content: Measured = {
        "groups": groups, "flows": [f.entry() for f in flows], "bottleneck": found.pop(main), "jain_index": fairness[main],
    }  # fmt: skip
    for entry in found.values():
        content["bottleneck_reverse"] = entry
    return content


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
