"""A finished play as a scenario and a plan, so that it is measured, checked and shown like any run, and can be run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from bbrlab.base.yaml_files import dump_yaml
from bbrlab.experiment.links import NS
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.plan_types import GuestPlan, TransferPlan
from bbrlab.experiment.transfers import FlowPlan
from bbrlab.measure.summary import EventEntry
from bbrlab.scenario.load import without_empty
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import GRID, PARAMETER_SETS, Flow, Scenario

EVENTS = "events.jsonl"


def read_events(folder: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The events that the guest wrote (mininet/play.py) from ``offset`` on, and the offset of those to come. ValueError for a line
    that is not one."""
    try:
        with open(folder / EVENTS, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()], offset + len(whole)


class Played:
    """What happened so far; live as it happens, and in the end.

    Attributes:
        transfers: what was started, in that order; the index is the flow's and its group's in the result.
        names: for each of them the flow that it is at the prompt.
        stopped_s: for each when it was stopped or ended; None: it was not.
        others: the commands that may have done anything.
    """

    def __init__(self, scenario: Scenario, plan: Plan):
        self.scenario, self.plan = scenario, plan
        self.transfers: list[TransferPlan] = []
        self.names: list[str] = []
        self.stopped_s: list[float | None] = []
        self.changes: list[dict[str, float]] = []
        self.events: list[EventEntry] = []
        self.others: list[str] = []
        self._fields = {kernels: field for field, kernels in plan.content["prompt"]["ccas"].items()}

    def add(self, raw: dict[str, Any]) -> EventEntry:
        """Take one event of the guest's in. KeyError if it lacks something. Returns it as summary.json has it."""
        at_s = raw["at_ns"] / NS
        event: EventEntry = {"at_s": at_s, "took_s": raw["took_ns"] / NS, "command": raw["command"]}
        if "started" in raw:
            transfer = raw["started"]
            self.transfers.append(cast(TransferPlan, transfer | {"start_ns": raw["at_ns"]}))
            self.names.append(raw["flow"])
            self.stopped_s.append(None)
            group = len(self.transfers) - 1
            event |= {"what": "start", "flow": raw["flow"], "group": group, "cca": self.group(group)["cca"]}
        elif "changed" in raw:
            settings = raw["changed"]
            change = {"rate_mbit": settings["rate_bps"] / 1e6} if "rate_bps" in settings else {}
            change |= {"rtt_ms": settings["rtt_us"] / 1000} if "rtt_us" in settings else {}
            change |= {"loss": settings["loss"]} if "loss" in settings else {}
            self.changes.append({"at_s": at_s, **change})
            event |= cast(EventEntry, {"what": "change", **change})
        elif "other" in raw:
            self.others.append(raw["command"])
            event["what"] = "other"
        else:
            group = raw["stopped"] if "stopped" in raw else raw["ended"]
            self.stopped_s[group] = at_s
            event |= {"what": "stop" if "stopped" in raw else "end", "flow": raw["flow"], "group": group}
        self.events.append(event)
        return event

    def _asked(self, name: str) -> int:
        """Index of the flow in the scenario that the prompt calls ``name``."""
        return int(name[1:]) - 1

    def group(self, index: int) -> dict[str, Any]:
        """What was started, as a flow group of a scenario."""
        flow = self._asked(self.names[index])
        planned, cca = self.scenario.flows[flow], self.transfers[index]["cca"]
        if cca == self.plan.content["transfers"][flow]["cca"]:
            field, params = planned.cca, planned.params
        else:
            field, params = self._fields[cca], self._params_of(self._fields[cca])
        content: dict[str, Any] = {"cca": field, "start_s": self.transfers[index]["start_ns"] / NS}
        if self.stopped_s[index] is not None:
            content["stop_s"] = self.stopped_s[index]
        if planned.rtt_ms is not None:
            content["rtt_ms"] = planned.rtt_ms
        if planned.direction != Flow.model_fields["direction"].default:
            content["direction"] = planned.direction
        if planned.links is not None:
            content["links"] = planned.links
        return content | ({"params": params} if params else {})

    def _params_of(self, cca: str) -> dict[str, Any]:
        """The parameters that a flow has which was given ``cca``: those of the module, if another group set them."""
        same = [flow.params for flow in self.scenario.flows if flow.cca == cca]
        return same[0] if same and cca not in PARAMETER_SETS else {}

    def as_plan(self, duration_ns: int) -> Plan:
        """The plan that has what was started, and no more."""
        content: GuestPlan = {**self.plan.content, "transfers": self.transfers, "duration_ns": duration_ns,
                              "window_ns": [0, duration_ns]}  # fmt: skip
        rtts_ms = [f.rtt_ms for f in self.plan.flows]
        flows = [FlowPlan(i, i, i, 0, rtts_ms[self._asked(name)]) for i, name in enumerate(self.names)]
        return Plan(content, flows, self.plan.kernel_arguments)

    def as_point(self, duration_ns: int) -> Point:
        """The point that has what was started and changed, when it was. At least one flow must have been started."""
        duration_s = duration_ns / NS
        content: dict[str, Any] = self.scenario.model_dump(exclude=GRID, exclude_unset=True)
        content |= {"figure": "", "trials": 1, "duration_s": duration_s, "window_s": [0.0, duration_s]}
        groups = [self.group(i) for i in range(len(self.transfers))]
        for group in groups:
            if group.get("stop_s", duration_s) >= duration_s:
                group.pop("stop_s", None)
            group["start_s"] = min(group["start_s"], duration_s)
        content["flows"] = groups
        network = content["network"] = dict(content["network"])
        network["changes"] = [c for c in self.changes if c["at_s"] <= duration_s]
        return Point(validate(content, "played", None, self.scenario.folder, self.scenario.sources), {})


def played_text(point: Point, played: Played) -> str:
    """The YAML text of played.yaml."""
    name = point.scenario.name
    head = [f"# {name} as it was played. Run this again in virtual time: bbrlab run played.yaml --out FOLDER"]
    head += [f"# Also at the prompt, which no scenario can say: {command}" for command in played.others]
    content = without_empty(point.scenario.model_dump(exclude=GRID, exclude_unset=True))
    return "\n".join(head) + "\n" + dump_yaml(content, allow_unicode=True)
