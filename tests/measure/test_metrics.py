"""One schema of metrics: everything in it is computed, stands in summary.json, in the tables and in the docs; nothing else does."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bbrlab.base.errors import UserError
from bbrlab.experiment.plan import make_plan
from bbrlab.kernel.built import KernelEntry
from bbrlab.measure import metrics
from bbrlab.measure.bottleneck import RUN
from bbrlab.measure.checks.check import CheckEntry
from bbrlab.measure.flow_counters import flow_counters
from bbrlab.measure.long_flows import LONG
from bbrlab.measure.queues import Queue
from bbrlab.measure.registry import Registry
from bbrlab.measure.sample_schema import ACKS, BBR_COLUMNS, SAMPLES, SHORT_FLOWS, TCP_INFO
from bbrlab.measure.short_flows import SHORT, Read, ShortFlows, chunk_outcomes
from bbrlab.measure.sockets import Flows
from bbrlab.measure.summarise import summarise
from bbrlab.measure.summary import FlowEntry, GroupEntry, Summary
from bbrlab.measure.tables import samples_table, short_flows_table
from bbrlab.results.figures import Figure, Run
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.tables import figure_table, run_rows, tidy, write_table
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests import made_up
from tests.conftest import scenario_dict

IDENTITY = GroupEntry.__required_keys__
FLOWS = [{"cca": "cubic", "count": 2}, {"cca": "bbr3"}, {"cca": "cubic", "bytes": 1000}, {"cca": "bbr3", "traffic": {}}]


def empty_queue(times):
    names = ("bytes", "packets", "sent_bytes", "sent_packets", "drops", "marks")
    return Queue({"time_s": np.array(times, float), **{n: np.zeros(len(times), int) for n in names}})


def flow_columns(times, flows):
    columns = {name: np.zeros(len(times), kind) for name, (_, kind) in TCP_INFO.items()}
    columns |= {name: np.full(len(times), np.nan) for name in BBR_COLUMNS}
    return {"time_s": np.array(times, float), "flow": np.array(flows, "i4")} | columns


def summary_of(flows=FLOWS, times=(), **changes):
    """summary.json's measured part of a run in which nobody sent anything."""
    point = base_point(validate(scenario_dict(flows=flows, **changes), "test"))
    plan = make_plan(point, 1, {"cubic": "cubic", "bbr3": "bbr3"})
    table = pd.DataFrame({"flow": [], "chunk": [], "bytes": [], "begin_s": [], "end_s": [], "ideal_s": []}, dtype=float)
    short = {g: ShortFlows(point.scenario, 40, table, Read(0, point.scenario.window_s)) for g in plan.workloads}
    counters = flow_counters(Flows(flow_columns([], []), {}), len(plan.flows))
    return point, plan, summarise(point.scenario, plan, counters, {"forward": empty_queue(times)}, short)


def test_what_is_summed_over_flows_is_drawn_as_a_sum():
    assert {m.name for m in metrics.GROUP.values() if "summed" in m.meaning} <= metrics.SUMMED <= metrics.GROUP.keys()


def test_every_metric_is_computed_and_nothing_else():
    assert LONG.names | SHORT.names == set(metrics.GROUP)
    assert RUN.names == set(metrics.RUN)
    with pytest.raises(KeyError, match="not in"):
        LONG.of("surprise")
    twice = Registry(metrics.GROUP)
    twice.of("goodput_mbit")(lambda group: 1.0)
    with pytest.raises(KeyError, match="computed by two"):
        twice.of("goodput_mbit")


def leaves(content, place=()):
    if not isinstance(content, dict):
        return {place}
    return set().union(*(leaves(value, (*place, key)) for key, value in content.items()))


def names_in(summary):
    """(of each group, of the run) what summary.json says beside what is asked for."""
    of_run = leaves({k: summary[k] for k in ("bottleneck", "jain_index")}) - {("bottleneck", "buffer_bytes")}
    return [set(group) - set(IDENTITY) for group in summary["groups"]], of_run


def test_a_summary_has_exactly_the_schemas_names():
    groups, of_run = names_in(summary_of()[2])
    assert groups == [set(metrics.GROUP)] * len(FLOWS)
    assert of_run == {m.place or ("bottleneck", name) for name, m in metrics.RUN.items() if not m.sometimes}


@pytest.mark.guest
def test_a_runs_summary_has_exactly_the_schemas_names(run_scenario):
    groups, of_run = names_in(run_scenario().summary)
    assert groups == [set(metrics.GROUP)]
    assert of_run == {m.place or ("bottleneck", name) for name, m in metrics.RUN.items() if not m.sometimes}


@pytest.mark.guest
def test_a_runs_summary_has_exactly_the_fields_that_its_type_has(run_scenario):
    """What mypy takes a summary.json to be is what a run writes; beside the typed fields stand metrics only."""
    summary = run_scenario().summary
    assert set(summary) == Summary.__required_keys__
    (group,), (flow,) = summary["groups"], summary["flows"]
    assert set(group) - set(metrics.GROUP) == GroupEntry.__required_keys__
    assert set(flow) == FlowEntry.__required_keys__
    assert summary["kernel"].keys() >= KernelEntry.__required_keys__
    assert all(set(check) == CheckEntry.__required_keys__ for check in summary["checks"])


@pytest.mark.parametrize("name", sorted(Summary.__required_keys__))
def test_a_summary_that_lacks_a_field_is_named(tmp_path, name):
    content = made_up.whole_summary(summary_of()[2])
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(content))
    assert RunFolder(tmp_path).summary == content
    del content[name]
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"summary.json: has no '{name}': made by another version of bbrlab; run this"):
        _ = RunFolder(tmp_path).summary


def test_what_was_never_measured_is_null():
    """No sample, no flow that sent: counts and sums are 0, all else is null."""
    _, _, summary = summary_of()
    counts = {"goodput_mbit": 0, "share_of_capacity": 0}
    long, _, finite, short = summary["groups"]
    said = {k: v for k, v in long.items() if v is not None and k not in IDENTITY}
    assert said == counts | {"written_mbit": 0, "retransmits": 0, "sampled_flows": 0}
    assert {k: finite[k] for k in ("completion_s", "unfinished_flows")} == {"completion_s": None, "unfinished_flows": 1}
    said = {k: v for k, v in short.items() if v is not None and k not in IDENTITY}
    assert said == counts | {"chunks": 0, "unfinished": 0, "concurrent_max": 0}
    values = {name: m.of_run(summary) for name, m in metrics.RUN.items()}
    assert {k: v for k, v in values.items() if v is not None} == {"utilisation": 0}
    assert {f[k] for f in summary["flows"] for k in ("loss", "loss_over_delivered", "ecn_marked")} == {None}


def test_a_run_of_short_flows_only_has_no_fairness():
    _, _, summary = summary_of(FLOWS[3:], times=[5, 10])
    values = {name: m.of_run(summary) for name, m in metrics.RUN.items()}
    assert (values["jain_index_all"], values["loss_over_delivered"], values["loss"]) == (None, None, None)
    assert (values["drops"], values["occupancy"]) == (0, 0)


def test_rows_of_a_run(tmp_path):
    point, _, measured = summary_of()
    summary = made_up.whole_summary(measured)
    run = Run("p/f", point, 3, tmp_path)
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    rows = run_rows(run)
    assert [(r["group"], r["cca"], r["count"], r["seed"], r["figure"]) for r in rows] == [
        (0, "cubic", 2, 3, "p/f"), (1, "bbr3", 1, 3, "p/f"), (2, "cubic", 1, 3, "p/f"), (3, "bbr3", 0, 3, "p/f"),
    ]  # fmt: skip
    always = {name for name, metric in metrics.METRICS.items() if not metric.sometimes}
    assert all(always == set(row) & set(metrics.METRICS) for row in rows), (
        "a run without two queues has no column of theirs"
    )
    assert (rows[0]["kernel"], rows[0]["virtual_s"], rows[0]["utilisation"]) == ("k (6)", 10, 0)
    del summary["groups"][1]["up_s"]
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(UserError, match=r"summary.json: has no 'up_s': made by another version"):
        run_rows(run)


def test_conditions_are_those_of_the_first_groups_first_link():
    """Which are what the run's ``bottleneck`` is: its buffer in BDP is of its own rate and the base RTT over all links."""
    links = [{"rtt_ms": 10}, {"rtt_ms": 20, "rate_mbit": 5, "qdisc": {"kind": "fq_codel"}}]
    changes = {"network__links": links, "network__rtt_ms": 10, "network__buffer": {"bdp": 2}}
    point = base_point(validate(scenario_dict(flows=[{"cca": "reno", "links": 1}, {"cca": "reno"}], **changes), "s"))
    found = {
        name: point.conditions[name] for name in ("rate_mbit", "base_rtt_ms", "buffer_bytes", "buffer_bdp", "qdisc")
    }
    assert found == {"rate_mbit": 5, "base_rtt_ms": 40, "buffer_bytes": 50_000, "buffer_bdp": 2, "qdisc": "fq_codel"}
    plan = make_plan(point, 1, {"reno": "reno"})
    (link,) = [link for link in plan.content["bottlenecks"] if link["link"] == 1]
    assert link["buffer_bytes"] == found["buffer_bytes"]


def test_a_table_of_runs_has_numbers_where_nobody_has_a_value(tmp_path, monkeypatch):
    point, _, measured = summary_of()
    folder = tmp_path / "runs/p/f" / point.label / "seed-1"
    folder.mkdir(parents=True)
    summary = made_up.whole_summary(measured)
    (folder / "summary.json").write_text(json.dumps(summary))
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    table = figure_table(Figure("p/f", point.scenario, [point], 1))
    assert {str(table[name].dtype) for name in metrics.METRICS if name in table} == {"float64"}
    assert table["jain_index_all"].isna().all()
    found = tidy({"p/f": table})
    assert set(found["unit"]) <= {m.unit for m in metrics.METRICS.values()}
    assert "jain_index_all" not in set(found["metric"]), "nobody has it"
    write_table(found, tmp_path / "points.parquet")
    assert len(pd.read_csv(tmp_path / "points.csv")) == len(found)


def test_runs_of_two_kernels_are_no_table(tmp_path, monkeypatch):
    """The same entry and release, built by two compilers, look alike in every other column."""
    point, _, measured = summary_of()
    for seed, key in ((1, "aaaa"), (2, "aaaa"), (3, "bbbb")):
        folder = tmp_path / "runs/p/f" / point.label / f"seed-{seed}"
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps(made_up.whole_summary(measured, key)))
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    assert set(figure_table(Figure("p/f", point.scenario, [point], 2))["kernel_key"]) == {"aaaa"}
    with pytest.raises(UserError, match=r"p/f: has runs of 2 kernels: aaaa \(.*seed-1\), bbbb \(.*seed-3\); remove"):
        figure_table(Figure("p/f", point.scenario, [point], 3))


def test_an_instant_without_flows_has_one_row():
    """``flow`` = -1 with the bottleneck's columns; no number of a flow is made up."""
    point, plan, _ = summary_of()
    flows = Flows(flow_columns([1.0, 1.0, 2.0], [0, 1, 1]), {})
    queue = empty_queue([0.0, 1.0, 2.0, 3.0])
    queue.columns["bytes"][:] = [5, 6, 7, 8]
    table = samples_table(point.scenario, plan, flows, {"forward": queue}).to_pandas()
    assert list(table[["time_s", "flow", "queue_bytes"]].itertuples(index=False, name=None)) == [
        (0, -1, 5), (1, 0, 6), (1, 1, 6), (2, 1, 7), (3, -1, 8),
    ]  # fmt: skip
    filler = table[table["flow"] == -1]
    assert set(filler["group"]) == {-1}
    assert filler["bbr_bw"].isna().all()
    assert table[["time_s", "flow"]].duplicated().sum() == 0


def test_the_tables_of_a_run_have_their_schemas_columns(tmp_path):
    """In their order; acks.parquet: test_traces."""
    point, plan, _ = summary_of()
    table = samples_table(point.scenario, plan, Flows(flow_columns([1.0], [0]), {}), {"forward": empty_queue([1.0])})
    assert table.column_names == list(SAMPLES)
    (tmp_path / "log").write_text("0 0 1000000000\n")
    outcomes = chunk_outcomes(next(iter(plan.workloads.values())), [tmp_path / "log"], [tmp_path / "log"], 10, 40)
    short = short_flows_table({3: ShortFlows(point.scenario, 40, outcomes, Read(0, point.scenario.window_s))})
    assert short.column_names == list(SHORT_FLOWS)


def test_a_name_means_one_thing_in_every_table():
    seen = {}
    for column in (*SAMPLES.values(), *ACKS.values(), *SHORT_FLOWS.values()):
        assert seen.setdefault(column.name, (column.unit, column.label)) == (column.unit, column.label), column.name
    assert set(seen) & set(metrics.METRICS) == set()


def test_no_two_metrics_have_one_label():
    labels = [metrics.label_of(name) for name in metrics.METRICS]
    assert len(labels) == len(set(labels))


def test_the_largest_value_of_parts_and_of_others():
    most = {
        name: metrics.METRICS[name].most
        for name in ("share_of_capacity", "loss", "occupancy", "slowdown_p99", "queue_ms_mean")
    }
    assert most == {
        "share_of_capacity": 1,
        "loss": 1,
        "occupancy": 1,
        "slowdown_p99": np.inf,
        "queue_ms_mean": np.inf,
    }


def test_axis_labels():
    assert metrics.label_of("goodput_mbit") == "goodput (Mbit/s)"
    assert metrics.label_of("drops") == "dropped packets"
    assert metrics.label_of("share_of_capacity") == "share of capacity"
    assert metrics.label_of("network.rtt_ms") == "network.rtt_ms"
    assert metrics.label_of("cwnd") == "cwnd (packets)"
    assert metrics.label_of("srtt_us") == "smoothed RTT (us)"
    assert (metrics.label_of("slowdown"), metrics.label_of("group")) == ("slowdown", "group")
    assert len({m.label for m in metrics.GROUP.values()}) == len(metrics.GROUP)
    assert len({m.label for m in metrics.RUN.values()}) == len(metrics.RUN)
