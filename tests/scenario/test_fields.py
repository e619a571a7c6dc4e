"""Every field of a scenario changes what is run, or somebody is told that it does not; every limit is a true one."""

from __future__ import annotations

import copy
import itertools
import operator
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal

import annotated_types
import pytest
from pydantic import BaseModel

from bbrlab.base.errors import UserError
from bbrlab.cli.checks import check
from bbrlab.experiment import links
from bbrlab.experiment.plan import make_plan
from bbrlab.measure.checks.bottleneck import BEYOND_LIMIT_PACKETS
from bbrlab.scenario import needs
from bbrlab.scenario.load import assign, load_scenario, points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.notes import FQ_BEYOND_PACKETS, notes_of
from bbrlab.scenario.schema import NOT_DECISIVE, QDISC_OPTIONS, Qdisc, Scenario
from bbrlab.scenario.windows import partly_there
from tests.conftest import scenario_dict
from tests.fuzz.scenarios import CCAS

TWO_FLOWS = {"flows": [{"cca": "cubic"}, {"cca": "bbr3"}]}


def refused_change(**changes) -> str:
    with pytest.raises(UserError) as caught:
        points_of(validate(scenario_dict(**changes), "s.yaml"), "s.yaml")
    return str(caught.value)


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field may hold, or a list of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in models_in(part)]


def metadata_of(annotation: Any) -> Iterator[Any]:
    for part in typing.get_args(annotation):
        yield from metadata_of(part)
    for item in getattr(annotation, "__metadata__", ()):
        yield from getattr(item, "metadata", [item])


def values_of(annotation: Any, metadata: typing.Sequence[Any] = ()) -> list[Any]:
    """Some values that a plain field may have, by its type and bounds alone."""
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return values_of(inside[0], [*metadata, *metadata_of(annotation)])
    if origin is Literal:
        return list(inside)
    if origin in (typing.Union, types.UnionType):
        return [value for part in inside if part is not type(None) for value in values_of(part, metadata)]
    if origin is list:
        several = values_of(inside[0])
        return [[value] for value in several[-2:]] + [list(pair) for pair in itertools.combinations(several, 2)][:3]
    if annotation is bool:
        return [True, False]
    if annotation in (int, float):
        found = [0, 1, 2, 7, 0.25, 0.5, 300, 20_000, 60_000]
        found += [m.ge + step for m in metadata if isinstance(m, annotated_types.Ge) for step in (0, 1)]
        return [annotation(v) for v in found if (annotation is float or v == int(v)) and all(map(_within(v), metadata))]
    if origin is dict:
        return [{"beta": 1}, {"beta": 2}]
    return ["bbr1", "cubic", "reno", "model", "leo", "cellular", "0"] if annotation is str else []


def _within(value: float) -> Callable[[Any], bool]:
    """Whether a value keeps one of pydantic's bounds."""
    bounds = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
    return lambda bound: all(
        test(value, getattr(bound, name)) for name, test in bounds.items() if getattr(bound, name, None) is not None
    )


def fields(model: type[BaseModel] = Scenario, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of the schema that holds no other: (dotted path, pydantic's field)."""
    for name, field in model.model_fields.items():
        if not before and name in NOT_DECISIVE:
            continue  # labels, and what makes many points
        inner = models_in(field.annotation)
        if not inner:
            yield before + name, field
        for part in inner:
            is_list = "list" in str(field.annotation)
            yield from fields(part, f"{before}{name}.{'0.' if is_list else ''}")


# What a part needs besides the field in question; the walk itself knows no field.
AROUND = {
    "network.buffer": {},
    "network.qdisc": {"kind": "red"},
    "network.jitter": {"kind": "slotted", "ms": 3},
    "network.data_path": {"delay_ms": 5},
    "network.data_path.jitter": {"kind": "per-packet", "ms": 5},
    "network.data_path.reordering": {"share": 0.1, "late_ms": 5},
    "network.policer": {"rate_mbit": 5, "burst_bytes": 20_000},
    "network.reverse": {"rate_mbit": 1, "buffer": {"packets": 20}},
    "network.reverse.grants": {"period_ms": 5, "bytes": 660},
    "network.changes.0": {"at_s": 2, "rate_mbit": 5},
    "flows.0.traffic": {"mode": "replay"},
}
# Where a part excludes what its own part has above: that without it.
OUTSIDE = {"network.reverse.grants": {"network.reverse": {"buffer": {"packets": 20}}}}


def outcome(content: dict[str, Any]) -> Any:
    """What is run of a scenario's content, or the message that refuses it, or the notes about it."""
    try:
        scenario = validate(content, "s")
        (point,) = points_of(scenario)
        plan = make_plan(point, 1, CCAS, modules={"bbr2": "bbr_model", "bbr3": "bbr_model"})
    except UserError as error:
        return str(error)
    work = {group: chunks.to_csv() for group, chunks in plan.workloads.items()}
    return (plan.content, plan.kernel_arguments, work, needs.without_effect([point]))


def contents(path: str, field: Any, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The base scenario with each of some values of a field."""
    for value in values_of(field.annotation, field.metadata):
        content = copy.deepcopy(base)
        around = path.rpartition(".")[0]
        while around and not any(around == place for place in AROUND):
            around = around.rpartition(".")[0]
        if around:
            if around.endswith(".0") and around != "flows.0":
                assign(content, around.rpartition(".")[0], [dict(AROUND[around])], "s")
            elif around != "network.buffer":
                for place, part in OUTSIDE.get(around, {}).items():
                    assign(content, place, dict(part), "s")
                assign(content, around, dict(AROUND[around]), "s")
        assign(content, path, value, "s")
        yield content


QUEUES = ("network.qdisc", "network.reverse.qdisc")
ALL_FIELDS = [
    *(("fifo", path, field) for path, field in fields() if path.rpartition(".")[0] not in QUEUES),
    *(("fifo", f"{queue}.kind", Qdisc.model_fields["kind"]) for queue in QUEUES),
    *(
        (kind, f"{queue}.{name}", Qdisc.model_fields[name])
        for queue in QUEUES
        for kind, options in QDISC_OPTIONS.items()
        for name in options
    ),
]


@pytest.mark.parametrize(("kind", "path", "field"), ALL_FIELDS, ids=[f"{kind}-{path}" for kind, path, _ in ALL_FIELDS])
def test_every_field_changes_the_plan_or_is_told(kind, path, field, monkeypatch):
    """With no partner there: two values of a field never make the same run without a word."""
    monkeypatch.setitem(AROUND, "network.qdisc", {"kind": kind})
    monkeypatch.setitem(AROUND, "network.reverse", {**AROUND["network.reverse"], "qdisc": {"kind": kind}})
    base = scenario_dict(**TWO_FLOWS, duration_s=5, window_s=[1, 5])
    assert len(values_of(field.annotation, field.metadata)) > 1, f"{path}: teach values_of() its type"
    told = [outcome(content) for content in contents(path, field, base)]
    assert any(one != told[0] for one in told), f"{path}: no value of it makes a difference, and nobody is told"
    words = ("s: ", "scenario: ", "flows: traffic: ")
    assert not [one for one in told if isinstance(one, str) and not one.startswith(words)]


@pytest.mark.parametrize(("kind", "name"), [("fq", "quantum_bytes"), ("fq_codel", "flows"), ("cake", "isolation")])
def test_the_walk_finds_what_is_accepted_and_ignored(kind, name, monkeypatch):
    """As a new option would be that nobody hands over."""
    monkeypatch.setattr(links, "qdisc_words", lambda *_: [])
    with pytest.raises(AssertionError, match=f"{name}: no value of it makes a difference"):
        test_every_field_changes_the_plan_or_is_told(
            kind, f"network.qdisc.{name}", Qdisc.model_fields[name], monkeypatch
        )


def test_the_walk_meets_a_new_field():
    class More(Qdisc):
        idle: float = 1.0

    class Larger(Scenario):
        more: list[More] = []

    assert "more.0.idle" in dict(fields(Larger))


def test_each_option_is_of_some_kind():
    assert {name for options in QDISC_OPTIONS.values() for name in options} == Qdisc.model_fields.keys() - {"kind"}


def test_each_need_is_of_a_field_of_the_schema():
    known = {path for path, _ in fields()}
    for need in needs.NEEDS:
        path = need.field.replace("*", "0")
        part = any(name.startswith(f"{path}.") for name in known)  # a part of a scenario, such as a buffer
        assert part or path in known or path.startswith("flows.0.params."), need.field


ECN_ON = {"hosts__ecn": "on"}
CODEL = {"kind": "codel", "ecn": True}
SLOW = {"rate_mbit": 5, "buffer": {"packets": 50}}  # of the link against the flows
BACK = {"cca": "cubic", "direction": "reverse"}
FILTER = {"kind": "cake", "ack_filter": "aggressive"}
ECT1 = {"kind": "fq_codel", "ce_threshold_ms": 1, "l4s_of": "ect1"}
NO_EFFECT: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    # (what has no effect, what is said, what gives it one)
    ({"network__qdisc": CODEL}, "network.qdisc.ecn true would have no effect: the hosts do not", ECN_ON),
    ({"network__qdisc": {"kind": "fq_codel", "ecn": True}}, "network.qdisc.ecn true would", ECN_ON),
    ({"network__qdisc": {"kind": "fq_codel", "ecn": False}}, "network.qdisc.ecn false would", {}),
    ({"network__qdisc": {"kind": "pie", "ecn": True}}, "network.qdisc.ecn true would", ECN_ON),
    ({"network__qdisc": {"kind": "fq", "ce_threshold_ms": 1}}, "network.qdisc.ce_threshold_ms 1 would", ECN_ON),
    ({"network__qdisc": {"kind": "fq_codel", "ce_threshold_ms": 2}}, "network.qdisc.ce_threshold_ms 2 would", ECN_ON),
    ({"network__qdisc": {"kind": "codel", "ce_threshold_ms": 82}, **ECN_ON}, "ce_threshold_ms 82 would have no effect: with a full buffer a packet waits 81.21 ms", {"network__qdisc__ce_threshold_ms": 81}),
    ({"network__qdisc": {"kind": "red", "harddrop": True}}, "harddrop true would have no effect: without ecn", ECN_ON | {"network__qdisc__ecn": True}),
    ({"network__qdisc": {"kind": "red", "harddrop": True, "ecn": True, "max_bytes": 10**6}, **ECN_ON}, "never passes max_bytes, 1000000", {"network__qdisc__max_bytes": 50_000}),
    ({"network__qdisc": {"kind": "red", "adaptive": True}}, "network.qdisc.adaptive true would", {}),
    ({"network__qdisc": {"kind": "red", "min_bytes": 200_000, "max_bytes": 400_000}}, "min_bytes 200000 would have no effect: the buffer has 100000", {"network__buffer": {"bytes": 500_000}}),
    ({"network__qdisc": {"kind": "fq", "flow_limit_packets": 66}}, "flow_limit_packets 66 would have no effect: the whole buffer has 66", {"network__qdisc__flow_limit_packets": 65}),
    ({"hosts__ecn": "on"}, "hosts.ecn on would have no effect: the queue marks no packets: it is fifo", {"network__qdisc": CODEL}),
    ({"hosts__ecn": "on", "network__qdisc": {"kind": "codel"}}, "set network.qdisc.ecn: true", {"network__qdisc": CODEL}),
    ({"hosts__ecn": "on", "network__qdisc": {"kind": "fq_codel", "ecn": False}}, "leave network.qdisc.ecn out", {"network__qdisc": {"kind": "fq_codel"}}),
    ({"hosts__ecn": "on", "network__qdisc": CODEL, "flows": [{"cca": "bbr3"}]}, "no flow's packets may be marked", {"flows": [{"cca": "bbr3", "params": {"ecn": "on"}}]}),
    ({"flows": [{"cca": "dctcp"}]}, "flows.0.cca dctcp would have no effect: without ECN Linux runs reno", ECN_ON | {"network__qdisc": CODEL}),
    ({"flows": [{"cca": "cubic"}, {"cca": "bbr2", "params": {"ecn": "ignore"}}]}, "flows.1.params.ecn ignore would", ECN_ON | {"network__qdisc": CODEL}),
    ({"flows": [{"cca": "cubic"}, {"cca": "bbr2", "params": {"ecn_max_rtt_us": 0}}]}, "flows.1.params.ecn_max_rtt_us 0 would", {}),
    ({"network__loss_place": "before"}, "network.loss_place before would have no effect: nothing is lost", {"network__loss": 0.01}),
    ({"network__jitter": {"kind": "slotted", "ms": 1, "group": 1}}, "group 1 does not exist (groups 0 to 0)", {**TWO_FLOWS}),
    ({"network__changes": [{"at_s": 10, "rate_mbit": 1}]}, "at_s 10 would have no effect: it is at or after the end", {"network__changes": [{"at_s": 9.9, "rate_mbit": 1}]}),
    ({"network__changes": [{"at_s": 5, "rate_mbit": 10}]}, "changes.0.rate_mbit 10 would have no effect: it is 10 already", {}),
    ({"network__changes": [{"at_s": 6, "rate_mbit": 5}, {"at_s": 5, "rate_mbit": 5}]}, "changes.0.rate_mbit 5 would have no effect: it is 5 already", {}),
    ({"network__changes": [{"at_s": 5, "rtt_ms": 40}]}, "changes.0.rtt_ms 40 would have no effect: it is 40 already", {}),
    ({"network__changes": [{"at_s": 5, "loss": 0}]}, "changes.0.loss 0 would have no effect: it is 0 already", {"network__loss": 0.1}),
    ({"network__changes": [{"at_s": 5, "loss": 0.1}, {"at_s": 5, "loss": 0.2}]}, "network.changes.1 puts 0.2 in its place", {}),
    ({"flows": [{"cca": "cubic", "start": "together"}]}, "flows.0.start together would have no effect: the group has one flow", {"flows__0__count": 2}),
    ({"flows": [{"cca": "cubic", "count": 2, "bytes": 9, "start": "together"}]}, "begin on their own", {}),
    ({"flows": [{"cca": "cubic"}, {"cca": "reno", "start_s": 10}]}, "flows.1.start_s 10 would have no effect", {"flows__1__start_s": 9}),
    ({"network__reverse": {**SLOW, "qdisc": CODEL}, **ECN_ON}, "hosts.ecn on would have no effect: only ACKs cross the queue", {"flows__0__cca": "dctcp"}),
    ({"network__qdisc": CODEL, "network__reverse": {**SLOW, "qdisc": CODEL}, **ECN_ON}, "network.reverse.qdisc.ecn true would have no effect: only ACKs cross the queue", {"flows": [{"cca": "cubic"}, BACK]}),
    ({"network__qdisc": CODEL, "network__reverse": {**SLOW, "qdisc": CODEL}, **ECN_ON, "flows": [BACK]}, "network.qdisc would have no effect: no flow goes forward", {"flows": [{"cca": "cubic"}, BACK]}),
    ({"network__trace": "cellular", "network__reverse": SLOW, "flows": [BACK]}, "network.trace", {"flows": [{"cca": "cubic"}, BACK]}),
    ({"network__changes": [{"at_s": 2, "rate_mbit": 5}], "network__reverse": SLOW, "flows": [BACK]}, "changes.0.rate_mbit 5 would have no effect: no flow goes forward", {"flows": [{"cca": "cubic"}, BACK]}),
    ({"network__qdisc": FILTER}, "network.qdisc.ack_filter aggressive would have no effect: only data crosses the queue", {"flows": [{"cca": "cubic"}, BACK]}),
    ({"network__qdisc": FILTER, "flows": [BACK]}, "network.qdisc.ack_filter aggressive would", {"flows": [{"cca": "cubic"}, BACK]}),
    ({"network__reverse": {**SLOW, "qdisc": FILTER}, "flows": [BACK]}, "network.reverse.qdisc.ack_filter aggressive would", {"flows": [{"cca": "cubic"}]}),
    ({"network__links": [{"qdisc": FILTER}, {}]}, "network.links.0.qdisc.ack_filter aggressive would", {"network__links": [{"qdisc": {"kind": "cake"}}, {}]}),
    ({"network__links": [{"qdisc": CODEL}, {}], **ECN_ON, "flows": [{"cca": "bbr3"}, {"cca": "cubic", "links": 1}]}, "network.links.0.qdisc.ecn true would have no effect: no flow's packets", {"flows__1__links": 0}),
    ({"network__links": [{"qdisc": CODEL}, {}], **ECN_ON, "flows": [{"cca": "bbr3"}, {"cca": "cubic", "links": 1}]}, "hosts.ecn on would have no effect: no flow's packets", {"flows__1__links": 0}),
    ({"network__qdisc": ECT1, **ECN_ON}, "network.qdisc.l4s_of ect1 would have no effect: no flow that crosses the queue sends ECT(1)", {"flows__0__cca": "dctcp1"}),
    ({"network__links": [{}, {"qdisc": ECT1}], **ECN_ON}, "network.links.1.qdisc.l4s_of ect1 would", {"network__links": [{}, {"qdisc": {**ECT1, "l4s_of": "ect"}}]}),
    ({"network__reverse": {**SLOW, "qdisc": ECT1}, **ECN_ON, "flows": [{"cca": "cubic"}, BACK]}, "network.reverse.qdisc.l4s_of ect1 would", {"flows": [{"cca": "cubic"}, {**BACK, "cca": "dctcp1"}]}),
    ({"network__policer": {"rate_mbit": 5, "burst_bytes": 7_000_000, "place": "behind"}}, "network.policer.burst_bytes 7000000 would have no effect", {"network__policer__burst_bytes": 6_000_000}),
    ({"network__trace": "wifi", "network__buffer": {"packets": 50}, "sweep": {"network.rate_mbit": [10, 20]}}, "network.rate_mbit 10 would have no effect: the bottleneck sends when its trace says", {"network__buffer": {"bdp": 1}}),
    ({"network__qdisc": {"kind": "dualpi2", "step_threshold_ms": 4}, **ECN_ON}, "step_threshold_ms 4 would have no effect: no flow that crosses the queue sends ECT(1)", {"network__qdisc__l4s_of": "ect"}),
    ({"network__qdisc": {"kind": "dualpi2", "coupling": 4}}, "coupling 4 would have no effect: the hosts do not negotiate ECN", ECN_ON),
    ({"network__qdisc": {"kind": "dualpi2", "l4s_of": "ect"}}, "l4s_of ect would have no effect: the hosts do not negotiate ECN", ECN_ON),
    ({"network__reverse": {**SLOW, "qdisc": {"kind": "dualpi2", "coupling": 4}}, **ECN_ON, "network__qdisc": CODEL}, "network.reverse.qdisc.coupling 4 would have no effect: only ACKs", {"flows": [{"cca": "cubic"}, BACK]}),
    ({"flows": [{"cca": "cubic", "params": {"hystart": "off", "hystart_low_window": 99}}]}, "hystart_low_window 99 would have no effect: hystart is off", {"flows__0__params__hystart": "on"}),
    ({"flows": [{"cca": "cubic", "params": {"hystart_detect": 0, "hystart_low_window": 99}}]}, "hystart_low_window 99 would have no effect: hystart_detect 0", {"flows__0__params__hystart_detect": 2}),
    ({"flows": [{"cca": "cubic", "params": {"hystart_detect": 2, "hystart_ack_delta_us": 99}}]}, "hystart_ack_delta_us 99 would have no effect", {"flows__0__params__hystart_detect": 1}),
    ({"network__rtt_ms": [30, 50], "hosts__noise": {"rtt_offset_us": 5000}}, "hosts.noise.rtt_offset_us 5000 would have no effect: every flow's RTT is drawn", {"flows__0__rtt_ms": 30}),
    ({"network__policer": {"rate_mbit": 10, "burst_bytes": 80_000, "place": "behind"}, "hosts__segmentation": "router"}, "network.policer.burst_bytes 80000 would have no effect", {"network__policer__burst_bytes": 68_000}),
    ({"hosts__receive_offload_us": 99}, "hosts.receive_offload_us 99 would", {"hosts__receive_offload": "gro"}),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words", "cure"), NO_EFFECT, ids=[words[:40] for _, words, _ in NO_EFFECT])
def test_what_has_no_effect_is_refused_and_with_its_partner_runs(changes, words, cure):
    message = refused_change(**changes)
    assert words in message and message.startswith("s.yaml: "), message
    content = scenario_dict(**changes)
    for path, value in cure.items():
        assign(content, path.replace("__", "."), value, "s")
    if cure:
        points_of(validate(content, "s"))


@pytest.mark.parametrize(
    "changes",
    [
        {"network__reverse": {**SLOW, "qdisc": CODEL}, **ECN_ON, "flows": [BACK]},
        {"network__qdisc": CODEL, **ECN_ON, "flows": [BACK]},
        {"network__qdisc": CODEL, "network__reverse": {**SLOW, "qdisc": CODEL}, **ECN_ON, "flows": [{"cca": "dctcp"}]},
        {"network__policer": {"rate_mbit": 20, "burst_bytes": 9999, "place": "behind"}, "network__reverse": {**SLOW, "rate_mbit": 50}, "flows": [BACK]},
        {"network__data_path": {"jitter": {"kind": "per-packet", "ms": 1, "order": "free"}}, "network__reverse": {**SLOW, "rate_mbit": 50}, "flows": [BACK]},
        {"network__buffer": {"packets": 50}, "network__reverse": {"rate_mbit": 5, "buffer": {"bdp": 1}}, "flows": [{"cca": "cubic", "rtt_ms": 9}], "sweep": {"network.rtt_ms": [10, 20]}},
    ],
    ids=str,
)  # fmt: skip
def test_what_has_an_effect_in_the_other_direction_has_one(changes):
    assert not needs.without_effect(points_of(validate(scenario_dict(**changes), "s")))


WIFI = {"network__rate_mbit": 20, "network__buffer": {"packets": 200}, "network__trace": "wifi"}


@pytest.mark.parametrize(
    "changes",
    [
        {"network__rate_mbit": 100, "network__buffer": {"packets": 100}, "network__trace": "cellular", "network__qdisc": {"kind": "codel", "ce_threshold_ms": 20}, **ECN_ON},
        {**WIFI, "network__policer": {"rate_mbit": 30, "burst_bytes": 1514, "place": "behind"}},
        {**WIFI, "network__data_path": {"reordering": {"share": 0.01, "late_ms": 0.4}}},
        {"network__policer": {"rate_mbit": 10, "burst_bytes": 1514, "place": "behind"}, "hosts__segmentation": "router"},
    ],
    ids=str,
)  # fmt: skip
def test_what_has_an_effect_on_what_comes_at_once_or_waits_long_has_one(changes):
    """A trace pauses, and lets several packets through at once; a router sends a whole segment at once."""
    assert not needs.without_effect(points_of(validate(scenario_dict(**changes), "s")))


def test_the_line_of_what_has_no_effect(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nnetwork:\n  rate_mbit: 10\n  rtt_ms: 40\n  buffer: {bdp: 1}\n  changes:\n    - at_s: 1\n      loss: 0\n"
        "flows: [{cca: cubic}]\nduration_s: 2\nwindow_s: [0, 2]\n"
    )
    with pytest.raises(UserError, match=r"s\.yaml:8: network\.changes\.0\.loss 0 would have no effect"):
        load_scenario(path)
    with pytest.raises(UserError, match=r"s\.yaml: network\.changes\.0\.loss 0 would"):
        load_scenario(path, {"trials": 1})
    load_scenario(path, {"network.loss": 0.5})


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ("cases:\n  a: {}\n  b:\n    flows.0.start: together\n", r":10: flows\.0\.start together would.*\(set count\) \(case b\)$"),
        ("sweep:\n  flows.0.count: [1]\n  flows.0.start: [together]\n", r":9: flows\.0\.start together would.*\(sweep\)$"),
        ("cases:\n  a: {}\n  b: {network.rtt_ms: 50}\nflows: [{cca: cubic, start: together}]\n", r":9: flows\.0\.start together would.*\(set count\)$"),
    ],
)  # fmt: skip
def test_the_line_of_what_has_no_effect_is_that_of_the_case_or_sweep_that_sets_it(tmp_path, grid, words):
    path = tmp_path / "s.yaml"
    flows = "" if "flows:" in grid else "flows: [{cca: cubic}]\n"
    path.write_text(
        f"name: s\nduration_s: 2\nwindow_s: [0, 2]\nnetwork: {{rate_mbit: 10, rtt_ms: 40, buffer: {{bdp: 1}}}}\nsample_hz: 1\n{flows}{grid}"
    )
    with pytest.raises(UserError, match=words):
        load_scenario(path)


def test_a_sweep_of_the_partner_is_noted_and_one_without_effect_anywhere_is_refused():
    """What is meant as a comparison is no mistake."""
    changes = {"network__qdisc": CODEL, "sweep": {"hosts.ecn": ["off", "on"], "network.rtt_ms": [10, 20]}}
    points = points_of(validate(scenario_dict(**changes), "s"))
    (note,) = needs.without_effect(points)
    assert note.startswith("network.qdisc.ecn true would have no effect: the hosts") and note.endswith(
        "(at 2 of 4 points)"
    )
    message = refused_change(network__qdisc=CODEL, sweep={"network.rtt_ms": [10, 20]})
    assert "network.qdisc.ecn true would" in message and message.count("\n") == 0
    cases = {"a": {"hosts.ecn": "on", "network.qdisc": CODEL}, "b": {"network.qdisc": CODEL}}
    assert needs.without_effect(points_of(validate(scenario_dict(cases=cases), "s")))
    message = refused_change(cases={"b": {"network.qdisc": CODEL}})
    assert "network.qdisc.ecn" in message


def test_a_threshold_beyond_the_buffer_is_noted():
    """It flattens the slope, which somebody may want."""
    scenario = validate(scenario_dict(network__qdisc={"kind": "red", "max_bytes": 200_000}), "s")
    (note,) = needs.without_effect(points_of(scenario))
    assert note.startswith(
        "network.qdisc.max_bytes 200000 is beyond what it can have an effect on: the buffer has 100000"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network__qdisc": {"kind": "pie", "target_ms": 82}}, "network.qdisc.target_ms 82 is beyond"),
        ({"network__qdisc": {"kind": "codel", "target_ms": 82}}, "network.qdisc.target_ms 82 is beyond what it can have an effect on: with a full buffer a packet waits 81.21 ms"),
        ({"network__buffer": {"bdp": 0.01}}, "network.buffer.bdp 0.01 is beyond what it can have an effect on: a buffer has a frame of 1514 bytes in any case, and these are 500"),
    ],
)  # fmt: skip
def test_what_has_less_effect_than_it_says_is_noted(changes, words):
    (note,) = needs.without_effect(points_of(validate(scenario_dict(**changes), "s")))
    assert note.startswith(words)


def test_codel_that_only_marks_has_a_target_that_is_never_reached():
    codel = {"kind": "codel", "target_ms": 10_000, "interval_ms": 10_000, "ce_threshold_ms": 1}
    assert not needs.without_effect(points_of(validate(scenario_dict(network__qdisc=codel, **ECN_ON), "s")))


def test_a_sweep_of_an_rtt_that_no_flow_has_is_refused():
    """Its points would be one run under two names."""
    changes = {
        "network__buffer": {"packets": 50},
        "flows": [{"cca": "cubic", "rtt_ms": 20}],
        "sweep": {"network.rtt_ms": [10, 30]},
    }
    assert "network.rtt_ms 10 would have no effect: every flow has an RTT of its own" in refused_change(**changes)
    points_of(validate(scenario_dict(**changes | {"network__buffer": {"bdp": 2}}), "s"))
    points_of(validate(scenario_dict(**changes | {"flows": [*changes["flows"], {"cca": "reno"}]}), "s"))
    points_of(validate(scenario_dict(**changes | {"sweep": {}}), "s"))  # each scenario has to have one


@pytest.mark.parametrize(
    ("scales", "words"),
    [
        ("{smoke: {cases: [b]}}", "scales.smoke.cases: 'b' is not in the scenario's cases"),
        ("{smoke: {sweep: {network.rtt_ms: [5]}}}", "scales.smoke.sweep: 'network.rtt_ms' is not in"),
        ("{smoke: {duration_s: 1}}", r"\(at scale smoke\): window_s \[0.0, 2.0\] must lie within the run"),
        ("{smoke: {skip: true, trials: 1}}", "scales.smoke.trials would have no effect: skip leaves the figure out"),
        ("{hasty: {trials: 1}}", "scales.hasty: no such scale"),
    ],
)
def test_check_looks_at_every_scale(scales, words, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nnetwork: {rate_mbit: 10, rtt_ms: 40, buffer: {bdp: 1}}\nflows: [{cca: cubic}]\nduration_s: 2\nwindow_s: [0, 2]\n"
        f"cases: {{a: {{flows.0.cca: reno}}}}\nscales: {scales}\n"
    )
    with pytest.raises(UserError, match=words):
        check([path])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network__reverse": {"rate_mbit": 0.1, "buffer": {"bytes": 90_840}, "qdisc": {"kind": "codel"}}}, "network.reverse.buffer.bytes 90840: only ACKs cross this queue: codel counts packets, and holds 60 ACKs (3960 bytes)"),
        ({"network__reverse": {"rate_mbit": 9, "buffer": {"bdp": 2}, "qdisc": {"kind": "cake"}}}, "network.reverse.buffer.bdp 2: only ACKs cross this queue: cake counts memory, that of 59 full packets"),
        ({"network__ip_version": 6, "network__reverse": {"rate_mbit": 1, "buffer": {"bytes": 90_840}, "qdisc": {"kind": "pie"}}}, "holds 60 ACKs (5160 bytes)"),
        ({"network__reverse": {"rate_mbit": 1, "buffer": {"packets": 60}, "qdisc": {"kind": "codel"}}}, None),
        ({"network__reverse": {"rate_mbit": 1, "buffer": {"bytes": 90_840}}}, None),
        ({"network__reverse": {"rate_mbit": 1, "buffer": {"bytes": 90_840}, "qdisc": {"kind": "codel"}}, "flows": [{"cca": "cubic"}, BACK]}, None),
        ({"network__qdisc": {"kind": "fq"}, "network__buffer": {"packets": 5}}, "network.buffer: fq holds up to 8 packets more than it is told, which is much beside the 5"),
        ({"network__links": [{}, {"qdisc": {"kind": "fq"}, "buffer": {"packets": 79}}]}, "network.links.1.buffer: fq holds"),
        ({"network__reverse": {**SLOW, "qdisc": {"kind": "fq"}}}, "network.reverse.buffer: fq holds"),
        ({"network__qdisc": {"kind": "fq"}, "network__buffer": {"packets": 80}}, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_queue_that_does_not_hold_what_its_buffer_says_is_noted(changes, words):
    found = notes_of(points_of(validate(scenario_dict(**changes), "s")))
    assert len(found) == (words is not None) and all(words in note for note in found), found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([{"at_s": 1, "rtt_ms": 0.05}, {"at_s": 2, "rtt_ms": 0.04}], ["network.changes.0.rtt_ms: 0.05 ms is 1/800 of network.rtt_ms, 40 ms (RTTs are in ms, also in a file)"]),
        ([{"at_s": 1, "rtt_ms": 2000}], ["network.changes.0.rtt_ms: 2000 ms is 50 times network.rtt_ms, 40 ms (RTTs are in ms, also in a file)"]),
        ([{"at_s": 1, "rtt_ms": 1}, {"at_s": 2, "rtt_ms": 1999, "loss": 0.5}], []),
        ([{"at_s": 0, "rtt_ms": 60, "loss": 0.1}], ["network.changes.0.rtt_ms: is 60 from the start of the run, so that network.rtt_ms never holds, but the buffer in BDP is of it",
                                                    "network.changes.0.loss: is 0.1 from the start of the run, so that network.loss never holds"]),
    ],
    ids=str,
)  # fmt: skip
def test_a_change_that_looks_unmeant_is_noted(changes, found):
    points = points_of(validate(scenario_dict(network__changes=changes, network__buffer={"bdp": 2}), "s"))
    assert notes_of(points) == found


def test_what_fq_holds_beside_its_limit_is_what_the_check_of_the_buffer_lets_it():
    assert BEYOND_LIMIT_PACKETS["fq"] == FQ_BEYOND_PACKETS


def test_a_window_without_samples_is_noted():
    def notes(**changes):
        return [n for n in partly_there(points_of(validate(scenario_dict(**changes), "s"))) if "no sample" in n]

    assert notes(sample_hz=1, window_s=[2.1, 2.9]) and notes(sample_hz=1, window_s=[2, 3]) and notes(sample_hz=0.01)
    assert not notes(sample_hz=1, window_s=[2.1, 3.1]) and not notes(sample_hz=1, window_s=[2, 4])


def test_points_that_have_run_are_read_whatever_the_table_says():
    content = scenario_dict(network__qdisc=CODEL)
    assert validate(content, "manifest.json").network.qdisc.ecn is True


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "red", "max_bytes": 20_000, "burst_packets": 1}, "qdisc.burst_packets 1 must be at least 5"),
        ({"kind": "red", "burst_packets": 4_000_000_000}, "qdisc.burst_packets 4000000000 must be at most "),
        ({"kind": "red", "avpkt_bytes": 4_000_000_000}, "qdisc.avpkt_bytes 4000000000 must be at most min_bytes, 8333"),
        ({"kind": "red", "min_bytes": 5000, "max_bytes": 5000}, "qdisc.min_bytes 5000 must be below max_bytes 5000"),
        (
            {"kind": "red", "probability": 1e-8},
            "qdisc.probability 1e-08 is too small for thresholds that are 16667 bytes apart",
        ),
        ({"kind": "red", "max_bytes": 2**30}, "qdisc.max_bytes = 1073741824: input should be less than 1073741824"),
        ({"kind": "fq_codel", "flows": 65_537}, "qdisc.flows = 65537: input should be less than or equal to 65536"),
        (
            {"kind": "fq_codel", "quantum_bytes": 255},
            "qdisc.quantum_bytes = 255: input should be greater than or equal to 256",
        ),
        ({"kind": "fq", "quantum_bytes": 2**20 + 1}, "less than or equal to 1048576"),
        ({"kind": "pie", "alpha": 0}, "qdisc.alpha = 0: input should be greater than or equal to 1"),
        ({"kind": "pie", "beta": 33}, "less than or equal to 32"),
        ({"kind": "pie", "tupdate_ms": 1.5}, "qdisc.tupdate_ms = 1.5: input should be a multiple of 1"),
        ({"kind": "pie", "target_ms": 0.009}, "target_ms 0.009: pie takes 0.01 to 4294"),
        ({"kind": "codel", "target_ms": 0.099}, "target_ms 0.099: codel takes 0.1 to 10000"),
        ({"kind": "codel", "interval_ms": 1.0005}, "1.0005 ms is not a whole number of microseconds"),
        ({"kind": "cake", "rtt_ms": 0.019}, "rtt_ms 0.019: cake takes 0.02 to 10000"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_limits_of_queues_are_told(changes, words):
    assert words in refused_change(network__qdisc=changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network__rate_mbit": 0.0009}, "network.rate_mbit = 0.0009: input should be greater than or equal to 0.001"),
        ({"network__rtt_ms": 0.0009}, "network.rtt_ms = 0.0009"),
        ({"network__loss": 1e-8}, "a loss of 1e-08 is more than netem can count: give 0, or 1e-07 to 0.9999999"),
        ({"network__loss": 0.99999999}, "give 0, or"),
        ({"network__changes": [{"at_s": 1, "loss": 1e-12}]}, "give 0, or"),
        ({"network__qdisc": {"kind": "fq_codel"}, "network__buffer": {"packets": 941_879}}, "fq_codel holds at most 941878"),
        ({"network__qdisc": {"kind": "cake"}, "network__buffer": {"packets": 1_883_761}}, "cake holds at most 1883757"),
        ({"network__rate_mbit": 12_001}, "rate_mbit = 12001: input should be less than or equal to 12000"),
        ({"network__qdisc": {"kind": "red"}, "network__rate_mbit": 0.001, "network__buffer": {"packets": 9999}}, "rate_mbit 0.001 is too low for RED"),
        ({"hosts__segmentation": "router", "network__qdisc": {"kind": "codel"}}, "counts packets: a segment of 64 KiB would be one (use nic, or a queue that counts bytes: fifo, red)"),
        ({"hosts__segmentation": "router", "network__qdisc": {"kind": "cake"}}, "cuts the segments itself"),
        ({"hosts__segmentation": "router", "network__rate_mbit": 0.009}, "needs a rate of at least 0.01 Mbit/s"),
        ({"sample_hz": 1e-6}, "sample_hz = 1e-06"),
    ],
    ids=lambda v: v[:30] if isinstance(v, str) else "",
)  # fmt: skip
def test_limits_of_tc_and_the_kernel_are_told(changes, words):
    assert words in refused_change(**changes)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("network__wander", "unknown key 'network.wander': there is no such field (valid here: rate_mbit, rtt_ms,"),
        (
            "network__policer__peak_mbit",
            "unknown key 'network.policer.peak_mbit': there is no such field (valid here: rate_mbit, burst_bytes, place)",
        ),
        ("network__reverse_rate_mbit", "there is no such field"),
        ("network__loss_model", "there is no such field"),
        ("network__jitter__loss", "did you mean 'network.loss'?"),
        ("network__rate", "did you mean 'rate_mbit'?"),
        ("network__rtt_s", "did you mean 'rtt_ms'?"),
        ("network__bdp", "did you mean 'network.buffer.bdp'?"),
        ("pacing", "did you mean 'hosts.pacing'?"),
        ("rate_mbit", "did you mean 'network.rate_mbit'?"),
        ("rtt", "did you mean 'network.rtt_ms' or 'flows.0.rtt_ms'?"),
        ("network__ack_filter", "did you mean 'network.qdisc.ack_filter'?"),
    ],
)
def test_only_what_may_be_meant_is_suggested(path, words):
    assert words in refused_change(**{path: 3})


def test_a_number_for_a_word_is_meant_for_the_field_with_a_unit():
    """start is a field, too: in-turn or together."""
    assert "flows.0.start = 10: must be 'in-turn' or 'together'; did you mean 'start_s'?" in refused_change(
        flows=[{"cca": "reno", "start": 10}]
    )
    assert "did you mean 'receive_offload_us'?" in refused_change(hosts__receive_offload=20)
    assert "did you mean" not in refused_change(flows=[{"cca": "reno", "start": "later"}])


def test_a_buffer_of_ms_is_no_jitter():
    message = refused_change(network__buffer={"bdp": 1, "ms": 3})
    assert "there is no such field (valid here: bdp, bytes, packets)" in message
