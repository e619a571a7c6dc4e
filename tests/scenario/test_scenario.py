"""Scenario files: what is accepted, what is refused and in which words."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bbrlab.base import files as base_files
from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import dump_yaml, parse_yaml, read_yaml
from bbrlab.cli.app import overrides_of
from bbrlab.experiment.plan import make_plan
from bbrlab.results.figures import Figure, write_points
from bbrlab.run.memory import flight_bytes
from bbrlab.scenario.draws import draw_rtt_offsets, draw_rtts
from bbrlab.scenario.load import assign, base_point, load_scenario, points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab.scenario.point_files import read_point
from bbrlab.scenario.schema import Scenario
from tests.conftest import scenario_dict

DESIGN_EXAMPLE = """
name: fig2a
paper: sarpkaya2025
figure: "Fig. 2a"
network:
  rate_mbit: 10
  rtt_ms: 40
  buffer: {bdp: 1}
  qdisc: {kind: fifo}
  loss: 0.0
  changes: []
hosts:
  pacing: internal
  segmentation: off
  ecn: off
flows:
  - {cca: bbr1, count: 1, start_s: 0, direction: forward, params: {}}
  - {cca: cubic, count: 1}
duration_s: 1000
window_s: [600, 1000]
trials: 3
sample_hz: 10
sweep:
  network.buffer.bdp: [1, 2, 4, 8, 16, 32, 64]
  flows.0.count: [1, 2, 4, 8, 16, 32]
"""


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_scenario(path)
    return str(caught.value)


def refused_change(**changes) -> str:
    with pytest.raises(UserError) as caught:
        points_of(validate(scenario_dict(**changes), "s.yaml"), "s.yaml")
    return str(caught.value)


def test_the_documented_example_is_valid(tmp_path):
    path = tmp_path / "fig2a.yaml"
    path.write_text(DESIGN_EXAMPLE)
    scenario = load_scenario(path)
    assert scenario.hosts.segmentation == "off"  # YAML reads a bare off as false
    grid = points_of(scenario)
    assert len(grid) == 42
    assert grid[1].values == {"network.buffer.bdp": 1, "flows.0.count": 2}
    assert grid[1].scenario.flows[0].count == 2
    assert grid[-1].scenario.network.buffer_bytes == 64 * 50_000


@pytest.mark.parametrize("path", sorted(paths.SCENARIOS.glob("*/*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_scenario_is_valid(path):
    scenario = load_scenario(path)
    assert (scenario.paper, scenario.name) == (path.parent.name, path.stem)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network__rate_mbit": -1}, ["network.rate_mbit", "-1", "greater than or equal to 0.001"]),
        ({"network__rate_mbit": "fast"}, ["network.rate_mbit", "fast", "number"]),
        ({"network__rate_mbti": 10}, ["network.rate_mbti", "did you mean 'rate_mbit'"]),
        ({"netwrok": {}}, ["netwrok", "did you mean 'network'"]),
        (
            {"sweep": {"network.rtt_ms": [20, 20]}},
            ["2 points of the sweep are the same", "leave out what stands twice"],
        ),
        ({"sweep": {"network.buffer.bdp": [1, 1.0]}}, ["2 points of the sweep are the same (buffer.bdp=1,"]),
        (
            {"cases": {"a": {"network.rtt_ms": 20}, "b": {"network.rtt_ms": 20.0}}},
            ["cases.b has the same points as cases.a", "leave one of them out"],
        ),
        ({"window_s": [5, 20]}, ["window_s", "20", "10 s"]),
        ({"window_s": [8, 5]}, ["window_s"]),
        ({"network__buffer": {"bdp": 1, "bytes": 5000}}, ["network.buffer", "exactly one", "bdp, bytes"]),
        ({"network__qdisc": {"kind": "fifo", "ecn": True}}, ["network.qdisc", "fifo has no option ecn"]),
        ({"network__qdisc": {"kind": "blue"}}, ["network.qdisc.kind", "blue", "fifo"]),
        (
            {"hosts__receive_offload_us": 100},
            ["hosts", "receive_offload_us 100", "receive_offload is off", "set it to gro"],
        ),
        (
            {"network__loss": 0.1, "network__loss_place": "before", "hosts__segmentation": "router"},
            ["segmentation router is not possible", "use nic"],
        ),
        ({"network__loss": 1.5}, ["network.loss", "1.5", "less than 1"]),
        ({"network__rtt_ms": [40, 30]}, ["RTT range", "40 > 30"]),
        ({"network__rtt_ms": 0}, ["network.rtt_ms", "0"]),
        ({"network__changes": [{"at_s": 99, "rate_mbit": 1}]}, ["network.changes.0.at_s", "99", "end of the run"]),
        ({"network__changes": [{"at_s": 1}]}, ["network.changes.0", "at least one of"]),
        ({"network__jitter": {"kind": "slotted", "ms": 1, "group": 3}}, ["network.jitter.group 3", "groups 0 to 0"]),
        ({"flows": []}, ["flows"]),
        ({"flows": [{"cca": "bbr4"}]}, ["flows.0.cca", "bbr4", "bbr1"]),
        ({"flows": [{"cca": "cubic", "start_s": 5, "stop_s": 4}]}, ["flows.0", "stop_s 4", "start_s 5"]),
        ({"flows": [{"cca": "cubic", "count": 3, "rtts_ms": [10, 20]}]}, ["flows.0", "rtts_ms has 2 RTTs", "count 3"]),
        ({"flows": [{"cca": "cubic", "rtt_ms": 10, "rtts_ms": [10]}]}, ["flows.0", "rtt_ms or rtts_ms, not both"]),
        ({"flows": [{"cca": "cubic", "rtts_ms": [-1]}]}, ["flows.0.rtts_ms.0", "-1"]),
        (
            {
                "flows": [{"cca": "cubic", "rtt_ms": 10}, {"cca": "cubic", "rtts_ms": [9]}],
                "network__changes": [{"at_s": 1, "rtt_ms": 5}],
            },
            ["network.changes.0.rtt_ms 5", "no effect"],
        ),
        ({"flows": [{"cca": "cubic", "start_s": 50}]}, ["flows.0.start_s", "50", "end of the run"]),
        (
            {"flows": [{"cca": "cubic", "params": {"beta": 700}}, {"cca": "cubic", "params": {"beta": 717}}]},
            ["flows.1.params", "whole kernel"],
        ),
        ({"flows": [{"cca": "cubic", "params": {"beta": "1 init=/bin/sh"}}]}, ["flows.0", "beta", "not a plain value"]),
        ({"flows": [{"cca": "bbr3", "params": {"ecn": "on"}}]}, ["flows.0.params.ecn", "no effect", "hosts.ecn: on"]),
        *[
            ({"flows": [{"cca": cca, "params": {name: value}}]}, ["flows.0.params", f"{name} = {word}: must be {kind}"])
            for cca, name, value, word, kind in (
                ("cubic", "beta", 0, 0, "a whole number from 1 to 1023"),
                ("cubic", "beta", 1024, 1024, "a whole number from 1 to 1023"),
                ("cubic", "beta", 0.7, 0.7, "a whole number from 1 to 1023"),
                ("cubic", "beta", True, "on", "a whole number from 1 to 1023"),
                ("cubic", "beta", 204, 204, "from 205 to 1023, or tcp_friendliness off"),
                ("cubic", "bic_scale", 0, 0, "a whole number from 1 to 214748364"),
                ("cubic", "hystart", "maybe", "maybe", "on or off"),
                ("cubic", "hystart", 2, 2, "on or off"),
                ("dctcp", "dctcp_shift_g", 11, 11, "a whole number from 0 to 10"),
                ("dctcp", "dctcp_alpha_on_init", 1025, 1025, "a whole number from 0 to 1024"),
                ("bbr1", "up_pacing_gain_percent", 9, 9, "a whole number from 10 to 399"),
                ("bbr1", "down_pacing_gain_percent", 400, 400, "a whole number from 10 to 399"),
                ("bbr1", "policer_detection", "maybe", "maybe", "on or off"),
            )
        ],
        ({"duration_s": float("inf")}, ["duration_s"]),
        ({"network__rate_mbit": float("nan")}, ["network.rate_mbit", "finite"]),
        ({"network__loss": float("nan")}, ["network.loss", "finite"]),
        ({"network__buffer": {"bdp": 1e308}}, ["network", "buffer", "tc's limit is 4294967295"]),
        ({"network__buffer": {"bytes": 2**32}}, ["buffer", "tc's limit"]),
        ({"network__buffer": {"packets": 10**9}}, ["buffer", "tc's limit"]),
        ({"network__jitter": {"kind": "slotted", "ms": 1e308}}, ["network.jitter.ms", "1e+308"]),
        ({"network__changes": [{"at_s": 1, "rate_mbit": 1e308}]}, ["network.changes.0.rate_mbit", "1e+308"]),
        ({"network__qdisc": {"kind": "codel", "target_ms": 1e308}}, ["network.qdisc.target_ms", "1e+308"]),
        ({"flows": [{"cca": "bbr3", "params": {"x": float("inf")}}]}, ["flows.0.params.x", "finite"]),
        ({"flows": [{"cca": "bbr3", "traffic": {"offered_mbit": 1e308}}]}, ["flows.0.traffic.offered_mbit", "1e+308"]),
        ({"sweep": {"network.buffer.bdp": [1, 1e308]}}, ["sweep at network.buffer.bdp=1e+308", "buffer"]),
        ({"sweep": {"network.buffer.bdp": [1, 2, 1]}}, ["2 points", "the same", "buffer.bdp=1"]),
        ({"sweep": {f"flows.0.{key}": [*range(1, 101)] for key in ("count", "bytes", "rtt_ms")}}, ["1000000 points"]),
        ({"sample_hz": 0}, ["sample_hz"]),
        # A number in quotes, or true, is no number: a table's column would have both.
        ({"network__rate_mbit": "10"}, ["network.rate_mbit", '"10"', "number"]),
        ({"network__rate_mbit": True}, ["network.rate_mbit", "true", "number"]),
        ({"trials": "3"}, ["trials", '"3"', "a whole number"]),
        ({"trials": 2.0}, ["trials", "2.0", "a whole number"]),
        ({"window_s": ["5", 10]}, ["window_s.0", '"5"', "number"]),
        ({"sweep": {"network.buffer.bdp": ["1", 2]}}, ["sweep at network.buffer.bdp=1", "number"]),
        ({"name": "../evil"}, ["name"]),
        ({"sweep": {"network.buffer.bpd": [1]}}, ["network.buffer.bpd", "sweep"]),
        ({"sweep": {"flows.3.count": [1]}}, ["flows.3.count", "0 to 0"]),
        ({"sweep": {"flows.0.count": [1, -2]}}, ["flows.0.count", "-2"]),
        ({"sweep": {"trials": [1]}}, ["trials", "cannot differ"]),
        ({"network.links": [{"rate_mbit": 5}]}, ["network.links", "must have at least 2 entries, it has 1"]),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else "",
)
def test_refusals_name_field_value_and_what_is_valid(changes, words):
    message = refused_change(**changes)
    assert all(word in message for word in ["s.yaml", *words]), message


def test_bare_on_and_off_are_words_for_the_modules_ecn(tmp_path):
    text = "name: s\nnetwork: {rate_mbit: 1, rtt_ms: 9, buffer: {bdp: 1}, qdisc: {kind: codel, ecn: true}}\nhosts: {ecn: on}\nduration_s: 1\nwindow_s: [0, 1]\n"
    for bare in ("on", "off", "ignore"):
        path = tmp_path / f"{bare}.yaml"
        path.write_text(text + f"flows: [{{cca: bbr3, params: {{ecn: {bare}}}}}, {{cca: cubic}}]\n")
        assert load_scenario(path, {}).flows[0].params == {"ecn": bare}


@pytest.mark.parametrize(
    ("cca", "written", "kept"),
    [
        ("cubic", {"hystart": False, "fast_convergence": "on"}, {"hystart": 0, "fast_convergence": 1}),
        ("cubic", {"beta": 1, "tcp_friendliness": False}, {"beta": 1, "tcp_friendliness": 0}),
        ("cubic", {"beta": 1023, "of_another_kernel": "x"}, {"beta": 1023, "of_another_kernel": "x"}),
        ("bbr1", {"policer_detection": False}, {"policer_detection": False}),
        ("dctcp", {"dctcp_shift_g": 0, "dctcp_alpha_on_init": 1024}, {"dctcp_shift_g": 0, "dctcp_alpha_on_init": 1024}),
        ("bbr3", {"headroom": "off"}, {"headroom": "off"}),
    ],
)
def test_switches_are_as_the_kernel_takes_them_and_ends_are_valid(cca, written, kept):
    (flow,) = validate(scenario_dict(flows=[{"cca": cca, "params": written}]), "s").flows
    assert json.dumps(flow.params) == json.dumps(kept)


def test_every_error_of_a_file_is_told_at_once():
    message = refused_change(network__rate_mbit=-1, duration_s=-5)
    assert "network.rate_mbit" in message
    assert "duration_s" in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: [", ["s.yaml:2:1", "not valid YAML"]),
        ("- a\n- b\n", ["a scenario is a mapping"]),
        ("", ["s.yaml: is empty; see docs/reference/scenario.md"]),
        ("name: a\nname: b\n", ["'name' stands twice", ":2:"]),
        ("!!python/object/apply:os.system ['true']", ["not valid YAML"]),
    ],
)
def test_broken_files(tmp_path, text, words):
    message = refused(tmp_path, text)
    assert all(word in message for word in words), message


def test_missing_and_unreadable_files(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(UserError, match="cannot be read"):
            load_scenario(path)
    (tmp_path / "latin.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(UserError, match="UTF-8"):
        load_scenario(tmp_path / "latin.yaml")


def test_overrides(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(DESIGN_EXAMPLE)
    scenario = load_scenario(path, {"network.buffer.bytes": 99_000, "flows.1.cca": "reno", "flows.0.count": 5})
    assert scenario.network.buffer_bytes == 99_000
    assert scenario.flows[1].cca == "reno"
    assert "flows.0.count" not in scenario.sweep  # a value that was set is not swept any more
    with pytest.raises(UserError, match=r"--set flows.9.count=1.*does not exist"):
        load_scenario(path, {"flows.9.count": 1})
    with pytest.raises(UserError, match="unknown key 'network.bufer'"):
        load_scenario(path, {"network.bufer": 1})


def test_schema_is_complete():
    schema = json.loads(json.dumps(Scenario.model_json_schema()))
    assert {"network", "hosts", "flows", "duration_s", "window_s", "trials", "sample_hz", "sweep"} <= set(
        schema["properties"]
    )


@pytest.mark.parametrize(
    ("rate_mbit", "rtt_ms", "bdp", "size_bytes"),
    [
        (10, 40, 1, 50_000),
        (100, 20, 3, 750_000),
        (1000, 1, 0.5, 62_500),
        (0.1, 1, 1, 1514),
        (10_000, 100, 2, 250_000_000),
    ],
)
def test_buffer_is_a_multiple_of_the_bdp(rate_mbit, rtt_ms, bdp, size_bytes):
    changes = {"network__rate_mbit": rate_mbit, "network__rtt_ms": rtt_ms, "network__buffer__bdp": bdp}
    assert validate(scenario_dict(**changes), "s").network.buffer_bytes == size_bytes


@given(st.floats(0.1, 1000), st.floats(1, 100), st.floats(1, 10))
def test_buffer_grows_with_rate_rtt_and_factor(rate, rtt, bdp):
    def size(**more):
        changes = {"network__rate_mbit": rate, "network__rtt_ms": rtt, "network__buffer__bdp": bdp} | more
        return validate(scenario_dict(**changes), "s").network.buffer_bytes

    twice = {size(network__rate_mbit=2 * rate), size(network__rtt_ms=2 * rtt), size(network__buffer__bdp=2 * bdp)}
    assert len(twice) == 1, "each counts alike"
    assert size() == 1514 or abs(twice.pop() - 2 * size()) <= 1


def test_each_flow_of_a_group_may_have_its_own_rtt():
    """Each RTT has a host of its own, whatever the seed; a change of the network's RTT is not theirs."""
    flows = [{"cca": "cubic", "count": 3, "rtts_ms": [10, 30.5, 10]}, {"cca": "reno"}]
    point = points_of(validate(scenario_dict(flows=flows, network__rtt_ms=20), "s"))[0]
    assert draw_rtts(point.scenario, 1) == draw_rtts(point.scenario, 2) == [[10, 30.5, 10], [20]]
    plan = make_plan(point, 1, {"cubic": "cubic", "reno": "reno"})
    senders = {host["delay_us"]: host["network_rtt"] for host in plan.content["hosts"] if host["delay_us"]}
    offsets_us = [1000 * ms for ms in draw_rtt_offsets(point.scenario, 1)]
    assert senders == {10_000 + offsets_us[0]: False, 30_500 + offsets_us[0]: False, 20_000 + offsets_us[1]: True}
    more = [{"cca": "cubic", "count": 3, "rtts_ms": [10, 3000, 10]}, {"cca": "reno"}]
    longer = points_of(validate(scenario_dict(flows=more, network__rtt_ms=20), "s"))[0]
    assert flight_bytes(longer) > 10 * 0.9 * 1e6 / 8 * 3, "its memory is planned"


@pytest.mark.parametrize(("forward_mbit", "reverse_mbit"), [(100, 20), (20, 100)])
def test_the_offset_of_an_rtt_is_at_most_a_packets_time_at_the_link_that_the_data_crosses(forward_mbit, reverse_mbit):
    flows = [{"cca": "cubic"}, {"cca": "cubic", "direction": "reverse"}]
    reverse = {"rate_mbit": reverse_mbit, "buffer": {"bdp": 1}}
    scenario = validate(scenario_dict(flows=flows, network__rate_mbit=forward_mbit, network__reverse=reverse), "s")
    most = [max(ms) for ms in zip(*(draw_rtt_offsets(scenario, seed) for seed in range(200)), strict=True)]
    assert most == pytest.approx([1514 * 8e-3 / mbit for mbit in (forward_mbit, reverse_mbit)], rel=0.05)


@pytest.mark.parametrize("first", ["forward", "reverse"])
def test_conditions_are_of_the_bottleneck_that_the_first_group_crosses(first):
    """As the metrics of the run, beside which they stand in tables."""
    flows = [{"cca": "cubic", "direction": first}, {"cca": "cubic", "direction": "forward"}]
    reverse = {"rate_mbit": 2, "buffer": {"packets": 10}, "qdisc": {"kind": "codel"}}
    conditions = base_point(validate(scenario_dict(flows=flows, network__reverse=reverse), "s")).conditions
    own = conditions["rate_mbit"], conditions["buffer_bytes"], conditions["qdisc"]
    assert (own == (2, 15140, "codel")) == (first == "reverse")


def test_one_rtt_is_set_in_place_of_several_and_the_reverse():
    content = {"flows": [{"cca": "cubic", "count": 2, "rtts_ms": [10, 20]}]}
    assign(content, "flows.0.rtt_ms", 30, "s")
    assert content["flows"][0] == {"cca": "cubic", "count": 2, "rtt_ms": 30}
    assign(content, "flows.0.rtts_ms", [5, 6], "s")
    assert content["flows"][0] == {"cca": "cubic", "count": 2, "rtts_ms": [5, 6]}
    assign(content, "flows.0.rtt_ms", None, "s")
    assert content["flows"][0]["rtts_ms"] == [5, 6], "what is emptied takes nothing's place"


def test_a_field_that_is_not_given_names_no_point():
    """Points keep their names, and so their results, when a scenario may have one more field."""
    content = validate(scenario_dict(), "s").model_dump(mode="json")
    assert "rtts_ms" not in content["flows"][0]


def test_bdp_of_a_range_uses_its_mean():
    network = validate(scenario_dict(network__rtt_ms=[30, 40], network__buffer__bdp=1), "s").network
    assert network.buffer_bytes == 43_750


def test_a_default_written_down_is_no_other_point():
    """10 and 10.0 of a file are the default of 10."""
    plain = scenario_dict()
    plain.pop("sample_hz", None)
    base = base_point(validate(plain, "s")).fingerprint
    for hz in (10, 10.0):
        assert base_point(validate({**plain, "sample_hz": hz}, "s")).fingerprint == base


def test_fingerprint_changes_with_what_matters_only():
    base = base_point(validate(scenario_dict(), "s"))
    same = base_point(validate(scenario_dict(name="other", paper="x", figure="y", trials=9), "s"))
    assert same.fingerprint == base.fingerprint
    for changes in ({"duration_s": 11}, {"network__loss": 0.1}, {"flows": [{"cca": "reno"}]}, {"sample_hz": 5}):
        assert base_point(validate(scenario_dict(**changes), "s")).fingerprint != base.fingerprint


def test_a_point_survives_the_way_through_its_file(tmp_path, monkeypatch):
    path = tmp_path / "fig2a.yaml"
    path.write_text(DESIGN_EXAMPLE)
    scenario = load_scenario(path)
    figure = Figure("sarpkaya2025/fig2a", scenario, points_of(scenario), 1)
    files = write_points(figure, tmp_path)
    for point in figure.points:
        again = read_point(files[point.label])
        assert again.fingerprint == point.fingerprint
        assert again.values == point.values
    assert yaml.safe_load(files[figure.points[0].label].read_text())["values"]["flows.0.count"] == 1


def test_the_line_of_a_wrong_field(tmp_path):
    file = tmp_path / "s.yaml"
    text = "name: a\nnetwork:\n  rate_mbit: 10\n  rtt_ms: 40\n  buffer: {bdp: 1}\nflows:\n  - {cca: cubic}\n  - cca: bbr9\nduration_s: 10\nwindow_s: [1, 10]\n"
    file.write_text(text)
    with pytest.raises(UserError, match=r"s\.yaml:8: flows\.1\.cca"):
        load_scenario(file)
    file.write_text(text.replace("bbr9", "bbr1").replace("  rtt_ms: 40\n", "  rtt_ms: 40\n  colour: red\n"))
    with pytest.raises(UserError, match=r"s\.yaml:[25]: unknown key 'network\.colour'"):
        load_scenario(file)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ("cases:\n  a: {flows.0.cca: reno}\n  b:\n    network.rat_mbit: 5\n", "s.yaml:10: sweep at case=b: unknown key 'network.rat_mbit'; did you mean"),
        ("cases:\n  a: {flows.0.cca: reno}\n  b: {flows.7.cca: reno}\n", "s.yaml:9: cases.b: path 'flows.7.cca' does not exist"),
        ("cases:\n  a: {flows.0.cca: reno}\n  b:\n    duration_s: 5\n", "s.yaml:9: sweep at case=b: window_s"),
        ("cases:\n  a: {flows.0.cca: reno}\n  b: {trials: 5}\n", "s.yaml:9: 'trials' cannot differ among the points"),
        ("sweep:\n  network.rtt_ms: [40, 50]\n  network.rate_mbit: [10, -1]\n", "s.yaml:9: sweep at network.rtt_ms=40, network.rate_mbit=-1: network.rate_mbit = -1"),
        ("sweep:\n  network.rtt_ms: [40, 50]\n  flows.7.cca: [reno]\n", "s.yaml:9: sweep: path 'flows.7.cca' does not exist"),
        ("sweep:\n  network.rtt_ms: [40, 40]\n", "s.yaml:7: 2 points of the sweep are the same (rtt_ms=40,"),
        ("cases:\n  a: {network.rtt_ms: 3}\nsweep:\n  network.rtt_ms: [40]\n", "s.yaml:10: 'network.rtt_ms' is both in cases.a and in sweep"),
    ],
    ids=lambda v: v[:30].strip(),
)  # fmt: skip
def test_the_line_of_a_wrong_case_or_sweep(tmp_path, grid, words):
    start = "name: a\nnetwork: {rate_mbit: 10, rtt_ms: 40, buffer: {bdp: 1}}\nflows:\n  - {cca: cubic}\nduration_s: 10\nwindow_s: [1, 10]\n"
    assert words in refused(tmp_path, start + grid)


CASES = {
    "cases": {"v1": {"flows.0.cca": "bbr1"}, "v3": {"flows.0.cca": "bbr3", "network.rtt_ms": 80}},
    "sweep": {"network.buffer.bdp": [1, 2]},
}


def test_cases_meet_the_whole_sweep():
    scenario = validate(scenario_dict(**CASES), "test")
    found = points_of(scenario)
    assert [p.values for p in found] == [
        {"case": c, "network.buffer.bdp": b} for c in ("v1", "v3") for b in (1, 2)
    ]  # fmt: skip
    assert [(p.scenario.flows[0].cca, p.scenario.network.rtt_ms) for p in found] == [("bbr1", 40)] * 2 + [
        ("bbr3", 80)
    ] * 2
    assert found[0].label.startswith("case=v1,buffer.bdp=1,")
    assert found[3].traits["base_rtt_ms"] == 80
    assert len({p.fingerprint for p in found}) == 4
    alone = scenario_dict(network__buffer__bdp=1, flows=[{"cca": "bbr1"}])
    assert points_of(validate(alone, "test"))[0].fingerprint == found[0].fingerprint, "a case is no part of the outcome"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cases": {"a": {"network.buffer.bdp": 3}}}, "both in cases.a and in sweep"),
        ({"cases": {"a": {"trials": 3}}}, "'trials' cannot differ"),
        ({"cases": {"a": {"flows.4.cca": "bbr1"}}}, "flows.4"),
        ({"cases": {"a": {"network.rtt_ms": -1}}}, "case=a"),
        ({"cases": {"a b": {}}}, "a b"),
    ],
)
def test_refused_cases(changes, words):
    with pytest.raises(UserError, match=words):
        points_of(validate(scenario_dict(**(CASES | changes)), "test"))


def test_one_case_of_a_file(tmp_path):
    file = tmp_path / "s.yaml"
    import yaml

    file.write_text(yaml.safe_dump(scenario_dict(**CASES)))
    assert load_scenario(file, {}, "v3").network.rtt_ms == 80
    assert load_scenario(file, {"network.rtt_ms": 20}, "v3").network.rtt_ms == 20, "--set after --case"
    with pytest.raises(UserError, match=r"no such case \(it has: v1, v3\)"):
        load_scenario(file, {}, "v2")


def file_of(tmp_path: Path, **changes) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(scenario_dict(**changes)))
    return path


FLOWS = [{"cca": "bbr1", "count": 2}, {"cca": "cubic"}]


@pytest.mark.parametrize(
    ("swept", "overrides"),
    [
        ({"network.buffer.bdp": [1, 2]}, {"network.buffer.packets": 50}),
        ({"network.buffer.bdp": [1, 2]}, {"network.buffer": {"packets": 50}}),
        ({"network.buffer": [{"bdp": 1}, {"packets": 9}]}, {"network.buffer.bytes": 75_700}),
        ({"flows.0.rtts_ms": [[5, 6], [7, 8]]}, {"flows.0.rtt_ms": 30}),
        ({"flows.0.rtt_ms": [5, 6]}, {"flows.0.rtts_ms": [7, 8]}),
        ({"flows.0.rtt_ms": [5, 6]}, {"flows.0": {"cca": "bbr1", "count": 2, "rtts_ms": [7, 8]}}),
        ({"flows.0.count": [1, 2]}, {"flows": [{"cca": "cubic", "count": 3}]}),
    ],
)
def test_what_is_set_ends_the_sweep_of_a_field_that_it_excludes(tmp_path, swept, overrides):
    """`bbrlab model` and `crosscheck` showed the sweep's values, as if nothing had been set."""
    path = file_of(tmp_path, flows=FLOWS, sweep={**swept, "duration_s": [10, 20]})
    scenario = load_scenario(path, overrides)
    assert list(scenario.sweep) == ["duration_s"]
    points = points_of(scenario)
    assert len(points) == 2
    for point in points:
        assert (point.scenario.network, point.scenario.flows) == (scenario.network, scenario.flows)


def test_what_is_set_leaves_other_sweeps_alone(tmp_path):
    path = file_of(tmp_path, flows=FLOWS, sweep={"flows.0.rtts_ms": [[5, 6], [7, 8]], "flows.1.rtt_ms": [9, 10]})
    assert list(load_scenario(path, {"flows.1.rtts_ms": [8]}).sweep) == ["flows.0.rtts_ms"]
    assert len(points_of(load_scenario(path, {"flows.1": {"cca": "reno"}}))) == 4, "its RTT is still swept"


@pytest.mark.parametrize(
    ("file", "overrides", "words"),
    [
        (
            {"cases": {"c": {"flows.1.cca": "cubic"}, "r": {"flows.1.cca": "reno"}}},
            {"flows.1.cca": "bbr3"},
            "--set flows.1.cca=bbr3 would have no effect in case c, where cases.c sets flows.1.cca; choose one case with --case",
        ),
        (
            {"cases": {"c": {}, "r": {"flows.1.cca": "reno"}}},
            {"flows.1": {"cca": "cubic"}},
            "in case r, where cases.r sets flows.1.cca",
        ),
        (
            {"cases": {"c": {"network.buffer.packets": 50}}},
            {"network.buffer.bdp": 4},
            "in case c, where cases.c sets network.buffer.packets",
        ),
        (
            {"cases": {"c": {"flows.0.rtts_ms": [5, 6]}}},
            {"flows.0.rtt_ms": 40},
            "in case c, where cases.c sets flows.0.rtts_ms",
        ),
        (
            {"sweep": {"network.qdisc": [{"kind": "fifo"}, {"kind": "codel"}]}},
            {"network.qdisc.kind": "codel"},
            "where sweep sets network.qdisc; set network.qdisc itself, which ends its sweep",
        ),
    ],
)
def test_what_is_set_holds_at_every_point_or_is_refused(tmp_path, file, overrides, words):
    path = file_of(tmp_path, flows=FLOWS, **file)
    scenario = load_scenario(path, overrides)
    for path_, value in overrides.items():
        part = base_point(scenario).scenario.model_dump(exclude_unset=True)
        for key in path_.split("."):
            part = part[int(key) if isinstance(part, list) else key]
        assert part == value, "one run has it, whatever the cases and the sweep say"
    with pytest.raises(UserError) as caught:
        points_of(scenario, str(path))
    assert f"{path}: --set " in str(caught.value) and words in str(caught.value), str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_set_and_holds_is_not_refused(tmp_path):
    """Beside a case that is chosen, without the cases, as the cases have it, and as another number or word for the same."""
    cases = {"c": {"flows.1.cca": "cubic"}, "r": {"flows.1.cca": "cubic", "network.rtt_ms": 80}}
    path = file_of(tmp_path, flows=FLOWS, cases=cases)

    def count(overrides, case=None):
        return len(points_of(load_scenario(path, overrides, case)))

    assert count({"network.rtt_ms": 20}, "r") == count({"flows.1.cca": "reno"}, "c") == 1
    assert count({"flows.1.cca": "bbr3", "cases": {}}) == count({"cases": {}, "flows.1.cca": "bbr3"}) == 1
    assert (
        count(
            {"flows.1.cca": "cubic", "network.qdisc": {"kind": "cake"}, "hosts.ecn": True, "trials": 9, "name": "other"}
        )
        == 2
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"cases": {"a": {"network.buffer.packets": 9}}, "sweep": {"network.buffer.bdp": [1, 2]}},
            "'network.buffer.packets' of cases.a and 'network.buffer.bdp' of sweep exclude each other",
        ),
        (
            {"sweep": {"network.buffer.bdp": [1], "network.buffer.packets": [9]}},
            "'network.buffer.bdp' of sweep and 'network.buffer.packets' of sweep exclude each other",
        ),
        (
            {"cases": {"a": {"flows.0.rtts_ms": [5, 6], "flows.0.rtt_ms": 5}}},
            "'flows.0.rtts_ms' of cases.a and 'flows.0.rtt_ms' of cases.a exclude each other",
        ),
        (
            {"cases": {"a": {"hosts.ecn": "on", "hosts": {"segmentation": "nic"}}}},
            "'hosts.ecn' of cases.a and 'hosts' of cases.a exclude each other",
        ),
        (
            {"cases": {"a": {"network.qdisc": {"kind": "red", "ecn": True}}}, "sweep": {"network.qdisc.ecn": [False]}},
            "'network.qdisc' of cases.a and 'network.qdisc.ecn' of sweep exclude each other",
        ),
        (
            {"sweep": {"network.rtt_ms": [[10, 20]], "network.rtt_ms.0": [15]}},
            "'network.rtt_ms' of sweep and 'network.rtt_ms.0' of sweep exclude each other",
        ),
        ({"cases": {"a": {"flows.00.count": 2}}}, "'flows.00' is not one of 0 to 1"),
        ({"cases": {"a": {"flows.²": 2}}}, "'flows.²' is not one of 0 to 1"),
        ({"sweep": {f"flows.{'9' * 5000}.count": [1]}}, "is not one of 0 to 1"),
    ],
)
def test_cases_and_sweep_have_one_of_what_excludes_each_other(changes, words):
    assert words in refused_change(flows=FLOWS, **changes)


def test_what_is_added_inside_of_a_value_loses_nothing(tmp_path):
    """In the order in which a file has them, and a field that is emptied for the other of two."""
    cases = {
        "a": {
            "network.qdisc": {"kind": "red"},
            "network.qdisc.ecn": True,
            "flows.0.rtt_ms": None,
            "flows.0.rtts_ms": [5, 6],
        }
    }
    (point,) = points_of(load_scenario(file_of(tmp_path, flows=FLOWS, cases=cases, hosts__ecn="on")))
    assert point.scenario.network.qdisc.ecn and point.scenario.flows[0].rtts_ms == [5, 6]


def test_what_is_set_takes_nothing_from_what_is_set(tmp_path):
    """A case's values are others': what is set comes in their place."""
    path = file_of(tmp_path, cases={"a": {"hosts.ecn": "on"}})
    assert load_scenario(path, {"hosts": {"segmentation": "nic"}}, "a").hosts.ecn == "off"
    with pytest.raises(UserError, match=r"--set hosts\.ecn and --set hosts exclude each other; keep one"):
        load_scenario(path, {"hosts.ecn": "on", "hosts": {"segmentation": "nic"}})
    with pytest.raises(UserError, match="at most 100 characters"):
        load_scenario(path, {"name": "a" * 101})


AXES = st.fixed_dictionaries(
    {},
    optional={
        "network.buffer.bdp": st.lists(st.floats(0.1, 100), min_size=1, max_size=3, unique=True),
        "network.rtt_ms": st.lists(st.floats(0.1, 100), min_size=1, max_size=3, unique=True),
        "flows.0.count": st.lists(st.integers(1, 100), min_size=1, max_size=3, unique=True),
        "flows.0.cca": st.lists(st.sampled_from(["bbr1", "bbr3", "reno"]), min_size=1, max_size=3, unique=True),
        "network.qdisc": st.lists(
            st.sampled_from([{"kind": "fifo"}, {"kind": "red"}, {"kind": "codel", "target_ms": 5}]),
            min_size=1,
            max_size=3,
            unique_by=lambda v: v["kind"],
        ),
    },
)


def value_at(content, path):
    for part in path.split("."):
        content = content[int(part)] if isinstance(content, list) else content[part]
    return content


@given(AXES, st.sampled_from([{}, {"a": {"duration_s": 11}, "b": {}}]))
def test_points_are_every_combination_once(axes, cases):
    scenario = validate(scenario_dict(sweep=axes, cases=cases), "s")
    found = points_of(scenario)
    wanted = [
        dict(zip(axes, values, strict=True)) | ({} if case is None else {"case": case})
        for case in cases or [None]
        for values in itertools.product(*axes.values())
    ]
    assert [p.values for p in found] == wanted, "all of them, the last path varying fastest"
    assert len({p.label for p in found}) == len(found)
    assert all(len(p.label.encode()) <= 255 and "/" not in p.label for p in found)
    for point in found:
        assert point.scenario.duration_s == (11 if point.values.get("case") == "a" else 10)
        content = point.scenario.model_dump(exclude_unset=True)
        assert all(value_at(content, path) == value for path, value in point.values.items() if path != "case")
        assert not point.scenario.sweep


@given(st.lists(st.text("abcdé/ ,=", max_size=200), min_size=2, max_size=2, unique=True))
def test_points_with_long_or_odd_values_have_names_of_their_own(texts):
    scenario = validate(scenario_dict(), "s")
    points = [Point(scenario, {"network.buffer.bdp": text}) for text in texts]
    names = [point.label for point in points]
    assert all(0 < len(name.encode()) <= 255 and "/" not in name for name in names)
    assert all(name.endswith(point.fingerprint) for name, point in zip(names, points, strict=True))


@given(
    st.sampled_from(
        ["network.rate_mbit", "network.rtt_ms", "flows.0.cca", "flows.1.params.beta", "hosts.ecn", "sweep.x"]
    ),
    st.one_of(st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2)),
)
def test_assign_changes_one_value_and_nothing_else(path, value):
    before = scenario_dict(flows=[{"cca": "cubic"}, {"cca": "reno"}])
    after = copy.deepcopy(before)
    assign(after, path, value, "s")
    assert value_at(after, path) == value
    old, new = dict(leaves(before)), dict(leaves(after))
    inside = [p for p in old.keys() | new.keys() if f"{p}.".startswith(f"{path}.")]
    assert {p: v for p, v in old.items() if p not in inside} == {p: v for p, v in new.items() if p not in inside}


def leaves(content, path=""):
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    if not items:
        yield path, content
    for key, value in items:
        yield from leaves(value, f"{path}.{key}".lstrip("."))


def test_assign_to_the_buffer_takes_the_other_unit_away():
    content = scenario_dict(network__buffer={"bdp": 2})
    assign(content, "network.buffer.packets", 9, "s")
    assert content["network"]["buffer"] == {"packets": 9}


@pytest.fixture
def with_trace(tmp_path):
    """A scenario file in a folder of its own, with a trace beside it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, size in (("a.csv", 1000), ("b.csv", 2000)):
        (folder / name).write_text(f"flow,chunk,start_s,pause_s,bytes\n0,0,0.5,0,{size}\n")
    changes = {"flows": [{"cca": "bbr3", "traffic": {"trace": "a.csv"}}], "network__buffer__bdp": 2}
    path = folder / "s.yaml"

    def write(**more) -> Path:
        path.write_text(yaml.safe_dump(scenario_dict(**changes, **more)))
        return path

    return write


def test_a_trace_is_relative_to_its_scenario(with_trace, tmp_path, monkeypatch):
    path = with_trace()
    monkeypatch.chdir(tmp_path)
    for given_path in (path, Path("mine/s.yaml")):
        point = base_point(load_scenario(given_path))
        assert point.scenario.flows[0].traffic.trace == str(path.parent / "a.csv")
        assert make_plan(point, 1, {"bbr3": "bbr3"}).workloads[0]["bytes"].tolist() == [1000]
    for value in ("b.csv", str(path.parent / "b.csv"), "../mine/b.csv"):
        point = base_point(load_scenario(path, {"flows.0.traffic.trace": value}))
        assert point.scenario.flows[0].traffic.trace == str(path.parent / "b.csv")
    (tmp_path / "here.csv").write_text("")
    with pytest.raises(UserError, match=r"mine/here\.csv is not a file.*relative to the scenario's folder"):
        load_scenario(path, {"flows.0.traffic.trace": "here.csv"})


def test_a_sweep_over_traces(with_trace, tmp_path, monkeypatch):
    """Relative to the scenario as well, whole in the workflow's files, hashed once each."""
    path = with_trace(sweep={"flows.0.traffic.trace": ["a.csv", "b.csv"], "network.rtt_ms": [1, 2, 3]})
    monkeypatch.chdir(tmp_path)
    hashed = []
    real = base_files.sha256
    monkeypatch.setattr(base_files, "sha256", lambda p: hashed.append(p.name) or real(p))
    scenario = load_scenario(path)
    points = points_of(scenario)
    assert sorted(hashed) == ["a.csv", "b.csv"]
    assert len({p.fingerprint for p in points}) == 6
    assert points[0].label.startswith("flows.0.traffic.trace=a.csv,rtt_ms=1,")
    files = write_points(Figure("p/f", scenario, points, 1), tmp_path / "results")
    monkeypatch.chdir("/")
    for point in points:
        again = read_point(files[point.label])
        assert again.fingerprint == point.fingerprint
        assert Path(again.scenario.flows[0].traffic.trace).is_absolute()


def test_a_trace_that_changes_or_goes(with_trace):
    path = with_trace()
    before = base_point(load_scenario(path)).fingerprint
    trace = path.parent / "a.csv"
    trace.write_text(trace.read_text() + "1,0,0.6,0,1000\n")
    point = base_point(load_scenario(path))
    assert point.fingerprint != before
    point = base_point(load_scenario(path))
    trace.unlink()
    with pytest.raises(UserError, match=r"a\.csv: flows: traffic\.trace cannot be read \(No such file"):
        _ = point.fingerprint


def test_a_file_that_is_no_point(with_trace):
    with pytest.raises(UserError, match=r"s\.yaml: is no point of a campaign"):
        read_point(with_trace())


def test_more_short_flows_than_a_guest_can_hold():
    content = scenario_dict(
        flows=[{"cca": "bbr3", "traffic": {"offered_mbit": 100_000}}], duration_s=1000, window_s=[0, 9]
    )
    with pytest.raises(UserError, match=r"offered_mbit 100000 for 1000 s are \d+ flows; at most 2000000"):
        make_plan(base_point(validate(content, "s")), 1, {"bbr3": "bbr3"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x [*x]\n", ":1:8: .*an alias .*not possible"),
        ("a: &x [1]\nb: *x\n", ":2:4: .*an alias .*not possible"),
        ("a: !!bool x\n", r":1:4: .*a tag \(tag:yaml.org,2002:bool\) is not possible"),
        ("network: !!map [b]\n", r":1:10: .*a tag"),
        ("a: 1\nb: !!set {c}\n", r":2:4: .*a tag"),
        ("a: ! 1\n", r":1:4: .*a tag \(!\) is not possible"),
        ("--- !!map\n- a\n", r":1:5: .*a tag"),
        ("? [a]\n: 1\n", r":1:3: .*a key is a single word"),
        ("%YAML 1.10\n---\na: 1\n", "not valid YAML"),
        ('a: "\\ud800"\n', ":1:.*not valid YAML"),
        ("a: 1\n\ufeffb: 2\n", "not valid YAML"),
        ("a: \x01\n", "not valid YAML: .*control characters"),
        ("[" * 5000, ":1:51: .*nested too deeply"),
        ("a: " + "[" * 40_000, ":1:53: .*nested too deeply"),
        ("a: " + "{b: " * 40_000, "nested too deeply"),
        ("".join(" " * i + "a:\n" for i in range(99)), "nested too deeply"),
        ("a: " + "9" * 5000, "a number of 5000 characters is too long"),
    ],
    ids=lambda v: v[:12] if isinstance(v, str) else "",
)
def test_yaml_that_is_more_than_data(tmp_path, text, words):
    """One message with file and line, also where libyaml ends the process or PyYAML's two loaders differ."""
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(UserError, match=words) as caught:
        load_scenario(tmp_path / "s.yaml")
    assert str(tmp_path / "s.yaml") in str(caught.value) and len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("020", "020: a number has no leading 0"),
        ("0100.5", "0100.5: a number has no leading 0"),
        ("-08", "-08: a number has no leading 0"),
        ("1:30", "no colon; a time is in seconds"),
        ("1:02:03.5", "no colon"),
        ("0x1F", "a number is decimal"),
        ("0o17", "a number is decimal"),
        ("0b11", "a number is decimal"),
        ("1_000", "no _ in it"),
        (".inf", "a number is finite"),
        ("-.INF", "a number is finite"),
        (".nan", "a number is finite"),
        ("1e999", "1e999 is too large a number"),
        ("1e-999", "1e-999 is too small a number"),
    ],
)
def test_numbers_that_two_readers_take_for_two(tmp_path, typed, words):
    """In a file, in a list of it, on the command line: refused, with the rule."""
    for text in (f"name: a\nnetwork: {{rate_mbit: {typed}}}\n", f"name: a\nsweep: {{network.rtt_ms: [1, {typed}]}}\n"):
        assert words in refused(tmp_path, text) and "s.yaml:2:" in refused(tmp_path, text)
    with pytest.raises(UserError) as caught:
        overrides_of([f"network.rtt_ms={typed}"])
    assert str(caught.value).startswith(f"--set network.rtt_ms={typed}: ") and words in str(caught.value)


def test_numbers_as_people_write_them(tmp_path):
    typed = {
        "1e1": 10,
        "1E2": 100,
        "1e+3": 1000,
        "5e-1": 0.5,
        "1.5e1": 15.0,
        ".5": 0.5,
        "5.": 5.0,
        "+3": 3,
        "-0.5": -0.5,
        "0": 0,
    }
    path = tmp_path / "s.yaml"
    path.write_text("\n".join(f"- {number}" for number in typed))
    content = read_yaml(path)
    assert content == list(typed.values())
    assert [type(number) for number in content] == [type(number) for number in typed.values()]
    assert overrides_of([f"a.{i}={number}" for i, number in enumerate(typed)]) == dict(
        (f"a.{i}", number) for i, number in enumerate(typed.values())
    )
    path.write_text('[2020-13-01, "020", \'1:30\', "1e5", =, 10.0.0.1, v1, １２]')
    assert read_yaml(path) == ["2020-13-01", "020", "1:30", "1e5", "=", "10.0.0.1", "v1", "１２"], "these are texts"


@given(
    st.dictionaries(
        st.text(),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(10**15), 10**15),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(),
        ),
    )
)
def test_what_is_written_is_read_again(content):
    content = {k: v for k, v in content.items() if not isinstance(v, str) or v.isprintable() if k.isprintable()}
    again = parse_yaml(dump_yaml(content))
    assert again == content and [type(v) for v in again.values()] == [type(v) for v in content.values()]
    for text in ("1e5", "020", "1:30", "0o17", "1_0", ".inf", "on", "5.", "2020-01-01"):
        assert parse_yaml(dump_yaml([text])) == [text]


def test_a_word_of_a_megabyte_is_cut_in_messages():
    for text in ("x" * 10**6, "x " * 10**6):
        message = refused_change(network__qdisc={"kind": text}) + refused_change(flows=[{"cca": text}])
        assert len(message) < 60_000 and "s.yaml" in message
    assert len(refused_change(**{"x" * 10**6: 1})) < 10_000


def test_a_case_that_is_no_mapping(tmp_path):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(scenario_dict(cases={"a": 5}, scales=3)))
    with pytest.raises(UserError, match=r"s\.yaml: cases\.a: is a mapping of dotted paths"):
        load_scenario(tmp_path / "s.yaml", {}, "a")


@pytest.mark.parametrize("grid", ["cases: {1: {}}", "cases: {on: {}, off: {network.rtt_ms: 9}}", "sweep: {7: [1]}"])
def test_a_case_or_path_whose_name_is_no_text(tmp_path, grid):
    path = tmp_path / "s.yaml"
    path.write_text(f"{yaml.safe_dump(scenario_dict())}{grid}\n")
    for overrides, case in (({}, None), ({"network.rtt_ms": 20}, "1")):
        with pytest.raises(
            UserError, match=r"s\.yaml:\d+:\d+: not valid YAML: the key (1|on|7): .*; write it in quotes: '"
        ):
            load_scenario(path, overrides, case)
