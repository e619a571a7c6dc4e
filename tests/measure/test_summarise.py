"""Definitions of the metrics, on numbers that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bbrlab.experiment.plan import make_plan
from bbrlab.measure import traces
from bbrlab.measure.bbr_record import STATES
from bbrlab.measure.flow_counters import FlowCounters
from bbrlab.measure.lateness import lateness_s
from bbrlab.measure.long_flows import LONG, LongFlow, LongGroup
from bbrlab.measure.metrics import GROUP, RUN
from bbrlab.measure.numbers import jain_index
from bbrlab.measure.phases import phase_lengths, phase_queues, probe_rtt_together
from bbrlab.measure.queues import Queue
from bbrlab.measure.sample_schema import BBR_COLUMNS, ONLY_READ, SAMPLES, TCP_INFO
from bbrlab.measure.sockets import Flows
from bbrlab.measure.summarise import summarise
from bbrlab.results import tables as collect
from bbrlab.results.statistics import all_equal, half_width
from bbrlab.results.tables import point_means
from bbrlab.run import evaluate as evaluation
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab.scenario.rates import capacity_mbit, rates_at
from tests.conftest import scenario_dict

COUNTED = tuple(TCP_INFO)


def counter(times, values, final=None):
    return FlowCounters(np.array(times, float), {"bytes_acked": np.array(values)}, final)


def test_counters_between_before_and_after_samples():
    c = counter([1.0, 2.0, 3.0], [10, 20, 30], {"bytes_acked": 35, "time_ns": int(3.5e9)})
    assert [c.at(t, "bytes_acked") for t in (0.5, 1.0, 1.9, 2.0, 3.2, 3.5, 9)] == [0, 10, 10, 20, 30, 35, 35]


def test_a_sample_some_microseconds_late_still_belongs_to_the_edge():
    assert counter([0.0, 600.0000005], [0, 7]).at(600, "bytes_acked") == 7


def test_jain_index_known_values():
    assert jain_index(np.array([1, 1, 1, 1])) == 1
    assert jain_index(np.array([1, 0, 0, 0])) == 0.25
    assert jain_index(np.array([0, 0])) is None, "nobody sent anything"
    assert jain_index(np.array([])) is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_jain_index_bounds(values):
    assume(any(values))
    assert 1 / len(values) - 1e-9 <= jain_index(np.array(values)) <= 1 + 1e-9


def test_a_stay_that_probe_rtt_cut_short_is_not_counted():
    # Half-second samples of: Startup 1 s, UP 1 s, DOWN 3 s, CRUISE 1 s, UP 2 s, DOWN 1 s, ProbeRTT .5 s, CRUISE without an end
    names = ["Startup", "UP", "DOWN", "CRUISE", "UP", "DOWN", "ProbeRTT", "CRUISE"]
    codes = np.repeat([STATES.index(name) for name in names], [2, 2, 6, 2, 4, 2, 1, 3])
    none = [np.nan, np.nan]  # before BBR tells anything
    columns = {"time_s": 0.5 * np.arange(2 + len(codes)), "bbr_state": np.append(none, codes)}
    assert phase_lengths(columns) == {
        "startup_s": 1, "up_s": 1.5, "down_s": 3, "cruise_s": 1, "between_probe_rtt_s": None, "between_up_s": 5,
    }  # fmt: skip
    assert set(phase_lengths({"time_s": columns["time_s"][:2], "bbr_state": np.array(none)}).values()) == {None}


def test_stays_in_probe_rtt_are_together_if_all_flows_are_in_it_at_one_sample():
    cruise, probe = float(STATES.index("CRUISE")), float(STATES.index("ProbeRTT"))

    def flow(first, *stays):
        states = np.full(20, cruise)
        for low, high in stays:
            states[low:high] = probe
        states[0] = np.nan  # before BBR tells anything
        return np.arange(first, first + 20), states

    one = flow(0, (3, 5), (10, 13))
    assert probe_rtt_together([one, flow(0, (4, 6), (13, 15))]) == 0.5, "the second stays follow each other"
    assert probe_rtt_together([one, flow(1, (4, 6), (9, 12))]) == 0.5, "its samples are numbered from one later"
    assert probe_rtt_together([one, flow(0, (2, 4), (12, 20)), flow(0, (3, 4))]) == 0.6, "all three, not two of them"
    assert probe_rtt_together([one, flow(0)]) == 0
    assert probe_rtt_together([flow(0), flow(0)]) is None
    assert probe_rtt_together([one]) is None


def test_the_queue_of_a_phase_is_that_of_its_own_samples():
    # One sample a second; the first UP began before the window, the last has no end in it.
    names = ["UP", "UP", "DOWN", "CRUISE", "CRUISE", "UP", "UP", "DOWN", "CRUISE", "UP", "UP"]
    delay = np.array([50.0, 60, 70, 0, 4, 2, 8, 10, 8, 90, 99])
    columns = {"time_s": np.arange(11.0), "bbr_state": np.array([float(STATES.index(n)) for n in names])}
    found = phase_queues(columns, delay, 1, 9.5)
    assert (found["up_start_queue_ms"], found["up_peak_queue_ms"]) == (2, 10), "the peak may be seen as DOWN begins"
    assert found["cruise_queue_ms_p05"] == pytest.approx(0.4), "of 0, 4, 8: a tenth of the way to 4"
    assert set(phase_queues(columns, delay, 9, 10).values()) == {None}


def test_capacity_with_changes():
    changes = [{"at_s": 4, "rate_mbit": 5}, {"at_s": 6, "loss": 0.1}, {"at_s": 8, "rate_mbit": 20}]
    scenario = validate(scenario_dict(network__changes=changes), "s")
    assert capacity_mbit(scenario, 0, 10) == pytest.approx((4 * 10 + 4 * 5 + 2 * 20) / 10)
    assert capacity_mbit(scenario, 5, 7) == 5
    assert list(rates_at(scenario.network, np.array([0, 4, 7.9, 8]))) == [10, 5, 5, 20]


def test_confidence_interval_is_students_t():
    # Three values 1, 2, 3: mean 2, standard error 1/sqrt(3), t(.975, 2) = 4.3027
    assert half_width(pd.Series([1.0, 2.0, 3.0])) == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    assert np.isnan(half_width(pd.Series([1.0])))
    assert np.isnan(half_width(pd.Series([0.1 + 0.2, 0.3, 0.3]))), (
        "rounding is no scatter, and no scatter tells nothing"
    )
    assert np.isnan(half_width(pd.Series([0.0, 0.0])))
    assert half_width(pd.Series([1.0, 2.0, np.nan])) == pytest.approx(12.7062 * 0.5, rel=1e-4), "two values, not three"
    assert np.isnan(half_width(pd.Series([np.inf, np.inf]))), "infinities are not equal"
    assert np.isnan(half_width(pd.Series([1.0, 1.0, np.inf])))
    assert np.isnan(half_width(pd.Series([np.nan, 3.0])))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.sampled_from([np.nan, np.inf, -np.inf])), min_size=1, max_size=8))
def test_pages_and_points_agree(values):
    """Whatever the seeds say: point_means(), which pages and plots use, and points.parquet."""
    conditions = base_point(validate(scenario_dict(), "s")).conditions
    table = pd.DataFrame(conditions | {"figure": "p/f", "point": "a", "group": 0, "seed": range(len(values)), "cca": "cubic",
                                       "ok": True, "count": 1, "goodput_mbit": values})  # fmt: skip
    (page,) = point_means(table, ["point"], "goodput_mbit").to_dict("records")
    found = collect.tidy({"p/f": table})
    if np.isnan(values).all():
        assert found.empty
        return
    row = found.iloc[0]
    assert row["seeds"] == page["runs"] == np.count_nonzero(~np.isnan(values))
    assert (row["failed"], row["without"]) == (0, np.count_nonzero(np.isnan(values)))
    np.testing.assert_equal(row["mean"], page["mean"])
    np.testing.assert_equal(row["ci95_high"], page["mean"] + page["ci95"])
    told = row["seeds"] > 1 and not np.isinf(values).any() and not all_equal(pd.Series(values).dropna().to_numpy())
    assert np.isfinite(page["ci95"]) == told, "equal numbers tell no interval"


def test_failed_runs_are_counted_and_not_averaged():
    table = pd.DataFrame({"x": [1, 1, 1], "ok": [True, True, False], "share_of_capacity": [0.4, 0.6, 99.0]})
    (row,) = point_means(table, ["x"]).to_dict("records")
    assert (row["mean"], row["runs"], row["failed"]) == (pytest.approx(0.5), 2, 1)


def test_a_point_is_one_row_per_metric():
    """However many flows its seeds drew, and even if all of them failed their checks."""
    conditions = base_point(validate(scenario_dict(), "s")).conditions
    seeds = pd.DataFrame(conditions | {
        "figure": "p/f", "point": ["a"] * 3 + ["b"] * 2, "group": 0, "seed": [1, 2, 3, 1, 2], "cca": "bbr3",
        "ok": [True, True, True, False, False], "count": [10, 10, 13, 5, 5], "slowdown_mean": [1.0, 2.0, 3.0, 9.0, 9.0], "up_s": np.nan, "utilisation": 0.9,
    })  # fmt: skip
    tidy = collect.tidy({"p/f": seeds}).set_index(["point", "metric"])
    assert sorted(tidy.index) == [(p, m) for p in "ab" for m in ("slowdown_mean", "utilisation")], (
        "no up_s: nobody has it"
    )
    row = tidy.loc[("a", "slowdown_mean")]
    assert (row["flows"], row["seeds"], row["failed"], row["mean"]) == (11, 3, 0, 2)
    assert row["ci95_low"] == pytest.approx(2 - 4.3027 / 3**0.5, rel=1e-4)
    row = tidy.loc[("b", "slowdown_mean")]
    assert (row["flows"], row["seeds"], row["failed"], row["without"]) == (5, 0, 2, 0)
    assert np.isnan(row["mean"])
    assert tuple(tidy.loc[("a", "utilisation"), ["group", "flows", "seeds"]]) == (-1, 0, 3)


def test_a_group_is_described_by_the_flows_that_were_sampled():
    point = base_point(validate(scenario_dict(flows=[{"cca": "cubic", "count": 2}], window_s=[0, 10]), "s"))
    plan = make_plan(point, 1, {"cubic": "cubic"})
    seen = {name: np.array([0, 40_000]) for name in COUNTED}
    unseen = {name: np.array([], int) for name in COUNTED}
    counters = [FlowCounters(np.array([0.0, 10.0]), seen, None), FlowCounters(np.array([]), unseen, None)]
    queue = Queue(
        {
            n: np.array([0.0, 10.0])
            for n in ("time_s", "bytes", "packets", "sent_bytes", "sent_packets", "drops", "marks")
        }
    )
    summary = summarise(point.scenario, plan, counters, {"forward": queue})
    (group,) = summary["groups"]
    assert [f["rtt_ms"]["mean"] for f in summary["flows"]] == [20, None]
    assert (group["rtt_ms_mean"], group["cwnd_packets"], group["in_flight_packets"]) == (20, 20_000, 20_000)
    assert group["min_rtt_ms"] == 20


def test_what_is_acknowledged_selectively_or_lost_is_not_in_flight():
    """In loss recovery more than the window is sent and not yet acknowledged, and the window holds for what is in flight."""
    counts = {"unacked": [100, 1242, 0], "sacked": [0, 600, 0], "lost": [0, 60, 0], "retrans": [0, 18, 0]}
    flow = flow_of(delivered=[0, 1, 2], **{name: np.array(values, "<u4") for name, values in counts.items()})
    assert flow.in_flight.tolist() == [100, 600, 0]
    few = flow_of(
        delivered=[0, 1, 2],
        **{name: np.array(values, "<u4") for name, values in (counts | {"sacked": [0, 1300, 0]}).items()},
    )
    assert few.in_flight.tolist()[1] == -100  # no unsigned number


def test_the_median_window_is_that_outside_of_probe_rtt():
    point = base_point(validate(scenario_dict(flows=[{"cca": "cubic"}], window_s=[0, 10]), "s"))
    times = np.arange(0, 10.1)
    samples = {name: np.arange(11) for name in COUNTED} | {"cwnd": np.array([100] * 9 + [4, 4])}
    queue = Queue({n: times for n in ("time_s", "bytes", "packets", "sent_bytes", "sent_packets", "drops", "marks")})
    plan = make_plan(point, 1, {"cubic": "cubic"})
    summary = summarise(point.scenario, plan, [FlowCounters(times, samples, None)], {"forward": queue})
    (group,) = summary["groups"]
    assert (group["cwnd_packets"], group["cwnd_packets_p50"]) == (pytest.approx(908 / 11, abs=1e-3), 100)


def flow_of(index=0, final=None, **columns):
    """A long flow with these columns at 0, 5 and 10 s."""
    point = base_point(
        validate(scenario_dict(flows=[{"cca": "cubic", "count": 2, "bytes": 1000}], window_s=[0, 10]), "s")
    )
    plan = make_plan(point, 1, {"cubic": "cubic"})
    given = dict.fromkeys(COUNTED, np.zeros(3, int)) | {k: np.array(v) for k, v in columns.items()}
    return LongFlow(point.scenario, plan.flows[index], FlowCounters(np.array([0.0, 5.0, 10.0]), given, final), None)


def ended(**fields):
    return (
        dict.fromkeys((*COUNTED, *ONLY_READ), 0)
        | {
            "time_ns": 10**10,
            "bytes_acked": 1000 + 38 + 1,
            "bytes_sent": 1000 + 37,
            "min_rtt_us": 200_000,
            "busy_us": 1_281_000,
        }
        | fields
    )


def test_completion_is_the_time_of_the_data_alone():
    """iperf3's cookie and the FIN are unacknowledged for a round trip each: by the samples around the data, or one RTT each."""
    seen = flow_of(final=ended(), bytes_acked=[38, 500, 1038], unacked=[0, 5, 0], busy_us=[210_000, 600_000, 1_081_000])
    assert seen.completion_s == pytest.approx(1.081 - 0.210)
    assert flow_of(final=ended(), bytes_acked=[1, 500, 1038], unacked=[1, 5, 3]).completion_s == pytest.approx(0.881)
    assert flow_of(final=ended(bytes_acked=1037)).completion_s is None, "a cookie's bytes are no data"
    assert flow_of().completion_s is None


def test_a_group_that_did_not_end_says_how_many():
    done, left = flow_of(final=ended()), flow_of(1)
    scenario = done.scenario
    both, half = (LONG.values(LongGroup(scenario, flows, 1.0)) for flows in ([done, done], [done, left]))
    assert (both["completion_s"], both["unfinished_flows"]) == (pytest.approx(0.881), 0)
    assert (half["completion_s"], half["unfinished_flows"]) == (None, 1)


@pytest.mark.parametrize(
    ("segmentation", "acked", "loss"), [("nic", 10_000, 0.1), ("router", 10_000, None), ("router", 0, 0.1)]
)
def test_segments_that_are_dropped_whole_are_over_no_packets(segmentation, acked, loss):
    """A merged segment is one drop and, if it is sent on, as many packets as it has. Where no data comes, there are none."""
    bottleneck = measured(bytes_acked=[0, acked // 2, acked], bytes_sent=[0, acked // 2, acked],
                          segmentation=segmentation, queue={"drops": [0, 5, 10], "sent_packets": [0, 45, 90]})["bottleneck"]  # fmt: skip
    assert (bottleneck["loss"], bottleneck["drops"]) == (loss, 10)


def test_marks_of_a_group_are_a_ratio_of_sums():
    """A flow with one packet weighs as one packet, not as half of the group."""
    flows = [
        flow_of(0, delivered=[0, 0, 999], delivered_ce=[0, 0, 0]),
        flow_of(1, delivered=[0, 0, 1], delivered_ce=[0, 0, 1]),
    ]
    values = LONG.values(LongGroup(flows[0].scenario, flows, 1.0))
    assert values["ecn_marked"] == 0.001


def test_what_bbr_makes_of_the_path_and_how_long_the_queue_is():
    """Two flows of one group and one of another, 10 Mbit/s and 40 ms; the queue is 0, 10 and 60 ms long."""
    flows = [{"cca": "bbr3", "count": 2}, {"cca": "bbr3"}]
    point = base_point(validate(scenario_dict(flows=flows, window_s=[0, 10]), "s"))
    plan = make_plan(point, 1, {"bbr3": "bbr3"})
    times = np.array([0.0, 5.0, 10.0])

    def flow(mbyte, bandwidth_mbit):
        sent = np.array([0, 0, mbyte * 1_000_000])
        columns = dict.fromkeys(COUNTED, np.zeros(3, int)) | {
            "time_s": times, "bytes_acked": sent, "bytes_sent": sent, "delivered": sent // 1448, "snd_mss": np.full(3, 1448),
            "bbr_state": np.full(3, np.nan), "bbr_extra_acked": np.zeros(3), "bbr_min_rtt_us": np.array([np.nan, 40e3, 60e3]),
            "bbr_bw": np.array([np.nan, 1, 3]) * bandwidth_mbit / 8e-6,
        }  # fmt: skip
        return FlowCounters(times, columns, None)

    counters_of = dict.fromkeys(("packets", "sent_bytes", "sent_packets", "drops", "marks"), np.zeros(3))
    queue = Queue({"time_s": times, "bytes": np.array([0, 12_500, 75_000])} | counters_of)
    summary = summarise(point.scenario, plan, [flow(1, 2), flow(2, 3), flow(9, 4)], {"forward": queue})
    first, second = summary["groups"]
    assert (first["bbr_bw_mbit"], second["bbr_bw_mbit"]) == (2 * (2 + 3), 2 * 4)
    assert first["bbr_min_rtt_ms"] == 50
    assert (first["share_of_goodput"], second["share_of_goodput"]) == (0.25, 0.75)
    assert list(summary["bottleneck"]["queue_cdf"].values()) == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1, 1])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([10, 25, 100]),
    st.sampled_from([(0.0, 1.0), (4.0, 5.0), (3.25, 8.5), (5.0, 10.0)]),
    st.sampled_from([0.0, 0.05]),
    st.randoms(use_true_random=False),
)
def test_metrics_do_not_depend_on_how_late_samples_are(hz, window_s, most_s, random):
    """A link that is full and drops 100 packets a second; each sample up to 50 ms late, as in real time."""
    point = base_point(validate(scenario_dict(window_s=list(window_s), sample_hz=hz), "s"))
    plan = make_plan(point, 1, {"cubic": "cubic"})
    due = np.unique([*np.arange(10 * hz + 1) / hz, *window_s])
    times = np.sort(np.maximum(due, due + [random.uniform(0, most_s) for _ in due]))
    counts = {"sent_bytes": 1.25e6, "sent_packets": 825, "drops": 100, "marks": 0}
    columns = {name: np.round(times * per_s).astype(int) for name, per_s in counts.items()}
    queue = Queue({"time_s": times, "bytes": np.full(len(times), 9000), **columns}, lateness_s(not most_s))
    sent = np.round(times * 1.2e6).astype(int)
    acked = {name: np.zeros(len(times), int) for name in COUNTED} | {"bytes_acked": sent, "bytes_sent": sent}
    counters = [FlowCounters(times, acked, None, lateness_s(not most_s))]
    summary = summarise(point.scenario, plan, counters, {"forward": queue})
    link, (group,) = summary["bottleneck"], summary["groups"]
    length = window_s[1] - window_s[0]
    allowed = 1e-2 if window_s[0] else 0.06  # nothing was sampled before the first instant
    assert link["link_utilisation"] == pytest.approx(1, rel=allowed if most_s else 1e-6)
    assert link["drops"] == pytest.approx(100 * length, rel=allowed if most_s else 1e-6, abs=1)
    assert group["goodput_mbit"] == pytest.approx(9.6, rel=1e-2 if most_s else 1e-6)


@pytest.mark.parametrize(("virtual", "expected"), [(True, 1000), (False, 1800)])
def test_a_counter_at_an_edge_whose_sample_came_late(virtual, expected):
    """25 ms late at 10 Hz: in real time four fifths of the way between its neighbours; in virtual time no sample is late."""
    times = np.array([4.9, 5.025, 5.1])
    counters = FlowCounters(times, {"bytes_acked": np.array([1000, 2000, 3000])}, None, lateness_s(virtual))
    assert counters.at(5.0, "bytes_acked") == expected
    assert counters.at(4.9, "bytes_acked") == 1000  # exact at samples
    assert counters.at(5.1, "bytes_acked") == 3000
    assert counters.at(4.8, "bytes_acked") == 0  # not begun
    assert counters.at(6.0, "bytes_acked") == 3000


def test_a_counter_far_from_the_next_sample_is_not_guessed():
    counters = FlowCounters(np.array([4.0, 5.0]), {"bytes_acked": np.array([1000, 2000])}, None, lateness_s(False))
    assert counters.at(4.5, "bytes_acked") == 1000


@pytest.mark.parametrize("virtual", [True, False])
def test_how_late_samples_may_be_reaches_every_counter(virtual, tmp_path, monkeypatch):
    """By the backend: of flows and of the bottleneck."""
    point = base_point(validate(scenario_dict(), "s"))
    plan = make_plan(point, 1, {"cubic": "cubic"}, virtual=virtual)
    (tmp_path / "report.json").write_text("{}")
    columns = dict.fromkeys(("time_s", "flow", "bytes_acked"), np.array([]))
    monkeypatch.setattr(evaluation, "decode", lambda path, plan: (Flows(columns, {}), {"forward": Queue({})}))
    checked = []

    def look(*arguments):
        checked.extend(arguments[3:5])
        raise InterruptedError

    monkeypatch.setattr(evaluation, "run_checks", look)
    with pytest.raises(InterruptedError):
        evaluation.evaluate(point, 1, "uml", plan, None, tmp_path)
    (counters,), queues = checked
    assert counters.late_s == queues["forward"].late_s == lateness_s(virtual)


# --- what was not measured ------------------------------------------------------------------------------------------------


def measured(
    window_s=(0, 10),
    changes=(),
    times=(0.0, 5.0, 10.0),
    flows=({"cca": "cubic"},),
    backlog=None,
    segmentation="nic",
    queue=None,
    **columns,
):
    """The summary of flows with these columns, the same for each, at some instants; what is not given is 0."""
    changed = scenario_dict(
        flows=[*flows],
        window_s=[*window_s],
        network__changes=[*changes],
        hosts__segmentation=segmentation,
        duration_s=20,
    )
    point = base_point(validate(changed, "s"))
    plan = make_plan(point, 1, {flow["cca"]: flow["cca"] for flow in flows})
    at = np.array(times)
    zero = np.zeros(len(at), int)
    given = {"time_s": at} | dict.fromkeys(COUNTED, zero) | dict.fromkeys(BBR_COLUMNS, np.full(len(at), np.nan))
    counters = [FlowCounters(at, given | {k: np.array(v) for k, v in columns.items()}, None) for _ in plan.flows]
    counts = dict.fromkeys(("packets", "sent_bytes", "sent_packets", "drops", "marks"), zero)
    counted = {name: np.array(values) for name, values in (queue or {}).items()}
    sampled = Queue({"time_s": at, "bytes": zero + 1000 if backlog is None else np.array(backlog)} | counts | counted)
    return summarise(point.scenario, plan, counters, {"forward": sampled})


UP, DOWN, CRUISE = (float(STATES.index(name)) for name in ("UP", "DOWN", "CRUISE"))


@pytest.mark.parametrize("late_s", [0, 3e-7])
@pytest.mark.parametrize(
    ("window_s", "at_s", "delays_ms", "share", "cruise_ms"),
    [((5, 15), 5, [8, 8, 8], 1, 8), ((5, 15), 10, [0.8, 8, 8], 1 / 5.5, 0.8), ((5, 15), 15, [0.8, 0.8, 0.8], 1 / 10, 0.8),
     ((10, 20), 20, [0.8, 0.8, 0.8], 1 / 10, 0.8), ((0, 10), 5, [0.8, 8, 8], 1 / 5.5, 0.8 + 0.05 * 7.2)],
    ids=["begin", "inside", "end", "end of the run", "first half"],
)  # fmt: skip
def test_a_change_at_an_edge_of_the_window_belongs_to_one_side(late_s, window_s, at_s, delays_ms, share, cruise_ms):
    """1,000 bytes take 0.8 ms at 10 Mbit/s and 8 ms at 1. A window is [begin, end)."""
    times = np.array([0.0, 5.0, 10.0, 15.0, 20.0]) + late_s
    states = [CRUISE, CRUISE, UP, DOWN, CRUISE]
    sent = (times * 125_000).astype(int)
    for change in ({"rate_mbit": 1}, {"rate_mbit": 1, "rtt_ms": 7, "loss": 0.1}):
        found = measured(window_s, [{"at_s": at_s} | change], times, [{"cca": "bbr3"}], bbr_state=states,
                         bytes_acked=sent, bytes_sent=sent, delivered=sent)  # fmt: skip
        queue = found["bottleneck"]["queue_ms"]
        assert (queue["max"], queue["mean"]) == (pytest.approx(max(delays_ms)), pytest.approx(np.mean(delays_ms)))
        assert queue["p05"] == pytest.approx(np.percentile(delays_ms, 5))
        assert found["groups"][0]["share_of_capacity"] == pytest.approx(share), "1 Mbit/s of goodput"
        cdf = found["bottleneck"]["queue_cdf"]["queue_cdf_0_05"]
        assert cdf == pytest.approx(np.mean(np.array(delays_ms) <= 0.05 * 40))
        assert found["groups"][0]["cruise_queue_ms_p05"] in (
            pytest.approx(cruise_ms),
            None if at_s == 20 else cruise_ms,
        )
    unchanged = measured(window_s, [], times)["bottleneck"]["queue_ms"]
    other = measured(window_s, [{"at_s": at_s, "rtt_ms": 7, "loss": 0.1}], times)["bottleneck"]["queue_ms"]
    assert unchanged == other == dict.fromkeys(unchanged, pytest.approx(0.8)), "RTT and loss are no rate"


def test_a_flow_of_which_nothing_was_delivered_in_the_window_is_in_no_mean():
    """It waits for a retransmission timeout: what TCP says of it is its handshake's."""
    stale = {"srtt_us": [20_000] * 3, "min_rtt_us": [20_000] * 3, "cwnd": [1] * 3, "unacked": [11] * 3,
             "bbr_bw": [9e9] * 3, "bbr_min_rtt_us": [20_000.0] * 3, "bbr_extra_acked": [0.0] * 3, "snd_mss": [1448] * 3}  # fmt: skip
    alone = measured(
        (5, 10),
        flows=[{"cca": "bbr3"}],
        delivered=[0, 2, 2],
        bytes_acked=[0, 38, 38],
        bytes_sent=[0, 15_000, 15_000],
        **stale,
    )
    (group,), (flow,) = alone["groups"], alone["flows"]
    names = (
        "rtt_ms_mean",
        "cwnd_packets",
        "in_flight_packets",
        "pipe_packets",
        "min_rtt_ms",
        "bbr_bw_mbit",
        "bbr_min_rtt_ms",
        "bbr_jitter_ms",
        "jain_index",
    )
    assert {group[name] for name in names} == {None}
    assert (group["sampled_flows"], group["goodput_mbit"]) == (0, 0)
    assert {flow["cwnd_packets"], *flow["rtt_ms"].values()} == {None}

    live, dead = (
        flow_of(0, delivered=[0, 3, 9], srtt_us=[300_000] * 3, cwnd=[4] * 3),
        flow_of(1, delivered=[0, 0, 0], srtt_us=[20_000] * 3, cwnd=[1] * 3),
    )
    values = LONG.values(LongGroup(live.scenario, [live, dead], 1.0))
    assert (values["rtt_ms_mean"], values["cwnd_packets"], values["sampled_flows"]) == (300, 4, 1)


def test_jitter_of_a_flow_that_is_there_for_a_part_of_the_window_is_over_that_part():
    """Both of its parts are: 10 packets of 1000 bytes at 0.8 Mbit/s are 100 ms, whenever it began."""
    shaken = {"bbr_extra_acked": [10.0] * 3, "bbr_bw": [1e5] * 3, "snd_mss": [1000] * 3, "delivered": [1, 500, 1000]}
    for times, acked in (
        ((0.0, 5.0, 10.0), [0, 500_000, 1_000_000]),
        ((6.0, 8.0, 10.0), [0, 200_000, 400_000]),
        ((6.2, 7.0, 8.0), [0, 100_000, 200_000]),
    ):
        flow = {"cca": "bbr3", "start_s": times[0] // 1, "stop_s": times[-1]}
        (group,) = measured(times=times, flows=(flow,), bytes_acked=acked, bytes_sent=acked, **shaken)["groups"]
        assert group["bbr_jitter_ms"] == pytest.approx(100)


def test_flows_that_only_opened_carried_nothing():
    """Ten flows whose cookies were acknowledged: no goodput, and not fairness 1."""
    opened = {"bytes_acked": [0, 38, 38], "bytes_sent": [0, 37, 37], "delivered": [0, 2, 2]}
    found = measured(flows=[{"cca": "cubic", "count": 10}, {"cca": "cubic", "bytes": 1000}], **opened)
    for group in found["groups"]:
        assert (group["goodput_mbit"], group["share_of_goodput"], group["jain_index"]) == (0, None, None)
        assert (group["first_data_s"], group["last_first_data_s"]) == (None, None)
    assert (found["jain_index"], found["bottleneck"]["utilisation"]) == (None, 0)


@pytest.mark.parametrize(("size", "fin"), [(1, 0), (1, 1), (1448, 1), (100_000_000, 1)])
def test_bytes_of_a_finite_flow_are_its_data(size, fin):
    """Without SYN, iperf3's cookie of 37 bytes, FIN, and what was sent twice."""
    sent = {"bytes_sent": [37, 37 + size, 37 + size + 500], "bytes_retrans": [0, 0, 500]}
    acked = [1, 38 + size, 38 + size + fin]
    found = measured((0, 10), flows=[{"cca": "cubic", "bytes": size}], bytes_acked=acked, **sent)
    assert found["flows"][0]["delivered_bytes"] == size
    assert found["groups"][0]["goodput_mbit"] == pytest.approx(size * 8e-7, abs=1e-9)
    late = measured((5, 10), flows=[{"cca": "cubic", "bytes": size}], bytes_acked=acked, **sent)
    assert late["groups"][0]["goodput_mbit"] == 0, "all of it was acknowledged before; a FIN is no data"


def test_bytes_of_a_flow_that_was_stopped_have_no_fin():
    sent = {"bytes_sent": [37, 37 + 1448, 37 + 2896], "bytes_acked": [1, 38 + 1448, 38 + 2896 + 1]}
    found = measured(flows=[{"cca": "cubic", "bytes": 10**6, "stop_s": 8}], **sent)
    assert found["flows"][0]["delivered_bytes"] == 2896


def test_bytes_of_an_unlimited_flow_are_as_tcp_counts_them():
    sent = {"bytes_sent": [0, 37 + 1448, 37 + 2896], "bytes_acked": [0, 38 + 1448, 38 + 2896], "delivered": [0, 2, 3]}
    assert measured((0, 10), **sent)["groups"][0]["goodput_mbit"] == pytest.approx((38 + 2896) * 8e-7)
    assert measured((5, 10), **sent)["groups"][0]["goodput_mbit"] == pytest.approx(1448 * 8e-6 / 5)


def test_what_was_written_is_what_was_sent_once_and_what_waits_in_the_socket():
    sent = {"bytes_sent": [37, 5037, 20_537], "bytes_retrans": [0, 0, 500], "notsent_bytes": [0, 70_000, 80_000],
            "bytes_acked": [38, 2038, 12_038], "delivered": [0, 2, 9]}  # fmt: skip
    assert measured((0, 10), **sent)["groups"][0]["written_mbit"] == pytest.approx((20_000 + 80_000) * 8e-7)
    assert measured((5, 10), **sent)["groups"][0]["written_mbit"] == pytest.approx((15_000 + 10_000) * 8e-6 / 5)


def first_data(times, final=None, **columns):
    given = {"min_rtt_us": [20_000], "srtt_us": [20_000], "bytes_retrans": [0]} | columns
    whole = {name: np.resize(np.array(given.get(name, [0])), len(times)) for name in COUNTED}
    return FlowCounters(
        np.array(times, float), whole, None if final is None else dict.fromkeys(COUNTED, 0) | final
    ).first_data_s


def test_when_a_flow_began_to_send_data():
    opened = {"bytes_acked": [38, 38, 38], "bytes_sent": [37, 37, 37 + 14_480], "busy_us": [20_000, 20_000, 20_000 + 30_000],
              "unacked": [0, 0, 10]}  # fmt: skip
    assert first_data([1, 2, 3], **opened) == pytest.approx(2.97), "30 ms before the first sample that tells of it"
    hurried = opened | {
        "bytes_sent": [37, 37 + 14_480],
        "unacked": [1, 10],
        "bytes_acked": [1, 38],
        "busy_us": [4_000, 20_000 + 30_000],
    }
    assert first_data([1, 1.05], **hurried) == pytest.approx(1.02), "the cookie was busy for one round trip"
    assert first_data([1, 2], **hurried | {"bytes_sent": [37, 37]}) is None
    assert first_data([1, 2, 3], **opened | {"busy_us": [20_000, 20_000, 2_000_000]}) == 2, (
        "not before a sample without data"
    )
    small = opened | {"unacked": [0, 0, 0], "bytes_acked": [38, 38, 38 + 14_480], "busy_us": [20_000, 20_000, 40_000]}
    assert first_data([1, 2, 3], **small) == pytest.approx(2.98), "all acknowledged since: the latest that may be"
    ended = {
        "time_ns": 3 * 10**9,
        "bytes_sent": 38,
        "busy_us": 60_000,
        "min_rtt_us": 20_000,
        "srtt_us": 20_000,
        "last_data_sent_ms": 900,
    }
    cookie = {"bytes_sent": [37], "bytes_acked": [38], "busy_us": [20_000]}
    assert first_data([1, 2], ended, **cookie) == pytest.approx(2.1), "no sample saw its byte"
    assert first_data([1, 2], ended | {"bytes_sent": 37}, **cookie) is None
    assert first_data([], ended) == pytest.approx(2.1)


def test_a_group_begins_with_its_first_flow_and_has_begun_with_its_last():
    early = flow_of(0, bytes_sent=[0, 2000, 3000], busy_us=[0, 1_000_000, 0], unacked=[0, 5, 5])
    late = flow_of(1, bytes_sent=[0, 0, 3000], busy_us=[0, 0, 2_000_000], unacked=[0, 0, 5])
    values = LONG.values(LongGroup(early.scenario, [late, early], 1.0))
    assert (values["first_data_s"], values["last_first_data_s"]) == (4, 8)
    values = LONG.values(LongGroup(early.scenario, [early, flow_of(1)], 1.0))
    assert (values["first_data_s"], values["last_first_data_s"]) == (4, None)


def test_a_flow_is_gone_when_it_is_not_sampled_any_more():
    """The guest reads up to a second later that its socket was destroyed: what it sent is of no window between."""
    instants = np.arange(0, 5.01, 0.5)
    columns = {"time_s": np.array([0.0, 0.0, 0.5]), "flow": np.array([0, 1, 0])}
    flows = Flows(columns, {0: {"time_ns": 2 * 10**9}, 1: {"time_ns": 4 * 10**8}, 2: {"time_ns": 3 * 10**9}})
    traces._end_by_samples(flows, instants)
    assert [flows.final[f]["time_ns"] / 1e9 for f in range(3)] == [1, 0.4, 3]


@pytest.mark.parametrize("window_s", [(0, 10), (4, 6), (7, 9)])
@pytest.mark.parametrize("times", [(), (5.0,), (0.0, 5.0, 10.0)], ids=["never", "one sample", "idle"])
@pytest.mark.parametrize(
    "flows", [[{"cca": "cubic", "count": 3}], [{"cca": "bbr3", "bytes": 1000}, {"cca": "cubic", "start_s": 9}]]
)
def test_metrics_of_what_was_not_there_are_nothing(window_s, times, flows):
    """A flow that never started, one sample in all, a window without traffic: counts and sums are 0, all else is null."""
    found = measured(
        window_s, times=times, flows=flows, backlog=[0] * len(times), srtt_us=[9] * len(times), cwnd=[10] * len(times)
    )
    zero = {"goodput_mbit", "share_of_capacity", "written_mbit", "retransmits", "sampled_flows"}
    for group in found["groups"]:
        said = {name: group[name] for name in GROUP if group[name] is not None and name != "unfinished_flows"}
        assert said == dict.fromkeys(zero, 0)
    values = {name: m.of_run(found) for name, m in RUN.items()}
    of_none = {name for name, value in values.items() if value is None}
    assert {"jain_index_all", "loss", "loss_over_delivered"} <= of_none
    inside = any(window_s[0] <= t <= window_s[1] for t in times)
    assert (values["queue_ms_max"], values["drops"], values["queue_cdf_1"]) == (
        (0, 0, 1) if inside else (None, None, None)
    )


def test_all_that_is_measured_of_unlimited_flows_is_in_the_samples_alone():
    """Grading counts it again from samples.parquet: what only the end of a socket says may change no number of a flow that lives on."""
    assert not set(ONLY_READ) & set(SAMPLES)
    early = {
        "bytes_sent": [37, 37, 3000],
        "bytes_acked": [38, 38, 1486],
        "busy_us": [20_000, 20_000, 70_000],
        "unacked": [0, 0, 2],
    }
    assert measured(delivered=[1, 1, 2], **early)["groups"][0]["first_data_s"] == pytest.approx(9.95)
