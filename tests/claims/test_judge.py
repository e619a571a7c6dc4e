"""How claims and statements are judged, on tables that are made up."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from bbrlab.base.errors import UserError
from bbrlab.claims import columns, expressions
from bbrlab.claims import series as of_series
from bbrlab.claims.code import LAB, LINUX, code_of
from bbrlab.claims.inference import ERROR, LOOKS, enough_for, estimate, kept_by_holm, looks, p_equal, p_values, standing
from bbrlab.claims.judge import (
    DETERMINISTIC,
    EQUAL,
    UNDECIDED,
    WIDE,
    Outcome,
    Verdict,
    counts,
    judge_all,
    outcome,
    verdict_frame,
)
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.resolution import resolution
from bbrlab.claims.sample import pseudo_values, reach
from bbrlab.claims.schema import WARE, Expectation, Term
from bbrlab.claims.select import full_figures, select
from bbrlab.claims.statement_verdict import judgement, statement_counts, statement_frame
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.verdicts import (
    AS_READ,
    FINAL,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    PARTLY_RUN,
    REPRODUCED,
    STATEMENT_VERDICTS,
    VERDICTS,
)
from bbrlab.scenario.draws import draws_flows
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from tests.conftest import scenario_dict
from tests.made_up import (
    EACH,
    GOOD,
    ORDER,
    all_statements,
    expecting,
    judge_claim,
    of_parts,
    of_seeds,
    one,
    only_claim,
    partly,
    sample,
    series,
    table,
    written,
)

FIG2A = "sarpkaya2025/fig2a"
SHARE = Expectation(value=0.5, within=0.1)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((0.49, 0.50, 0.51), REPRODUCED),  # .50 +- .025
        ((0.79, 0.80, 0.81), NOT_REPRODUCED),
        ((0.58, 0.60, 0.62), INCONCLUSIVE),  # .60 +- .05
        ((0.30, 0.50, 0.70), INCONCLUSIVE),
    ],
)
def test_an_interval_inside_reproduces(tmp_path, values, verdict):
    found = one(tmp_path, GOOD, of_seeds(*values))
    assert found.verdict == verdict
    assert found.outcome.seeds == 3
    assert found.outcome.mean == pytest.approx(np.mean(values))
    half = 4.302653 * np.std(values, ddof=1) / math.sqrt(3)
    assert (found.outcome.low, found.outcome.high) == pytest.approx(
        (np.mean(values) - half, np.mean(values) + half), abs=1e-6
    )
    assert found.outcome.confidence == 0.95


@pytest.mark.parametrize(
    ("expect", "values", "verdict"),
    [
        (
            {"trend": "rising", "beyond": 0.5},
            (1, 1, 0.9),
            REPRODUCED,
        ),  # the far side is open: tau cannot exceed 1, its interval can
        ({"trend": "rising", "beyond": 0.5}, (0.3, 0.3, 0.4), NOT_REPRODUCED),
        ({"trend": "falling", "beyond": 0.5}, (-1, -1, -0.9), REPRODUCED),
        ({"trend": "falling", "beyond": 0.5}, (1, 1, 0.9), NOT_REPRODUCED),
        ({"order": ["a", "b"]}, (0,) * 6, NOT_REPRODUCED),  # a tie is no order
        ({"order": ["a", "b"]}, (0.1, 0.11, 0.12), REPRODUCED),
        ({"order": ["a", "b"], "beyond": 0.05}, (0.1, 0.11, 0.12), REPRODUCED),
        ({"order": ["a", "b"], "beyond": 0.2}, (0.1, 0.11, 0.12), NOT_REPRODUCED),  # in order, but by too little
        ({"above": 0.5}, (0.5,) * 6, NOT_REPRODUCED),
        ({"at_least": 0.5}, (0.5,) * 6, REPRODUCED),
        ({"below": 0.0}, (0,) * 6, NOT_REPRODUCED),
        ({"at_most": 0.0}, (0,) * 6, REPRODUCED),
        ({"at_most": 0.0}, (0,) * 5, INCONCLUSIVE),  # a sign test of five: .0625
        ({"value": 0.5, "within": 0.1}, (0.5,) * 5, INCONCLUSIVE),
        ({"at_most": 0.0}, (0, 0, 0.1), INCONCLUSIVE),
        ({"range": [0, 1]}, (0.4, 0.5, 0.6), REPRODUCED),
        ({"range": [0, 1]}, (2, 2.01, 2.02), NOT_REPRODUCED),
    ],
)
def test_every_kind_of_expectation(expect, values, verdict):
    assert outcome(Expectation(**expect), of_parts(values)).verdict == verdict


def test_a_claim_without_a_tolerance_may_be_looked_at_three_times():
    found = outcome(Expectation(above=0), of_parts([1, 2, 3]), LOOKS)
    assert found.confidence == pytest.approx(1 - 0.05 / 3)
    assert found.verdict == INCONCLUSIVE  # 2 +- 4.4; at .95 it were 2 +- 2.5
    assert outcome(Expectation(above=0), of_parts([1, 2, 3])).verdict == INCONCLUSIVE
    assert outcome(Expectation(above=-0.5), of_parts([1, 2, 3])).verdict == REPRODUCED


def test_it_is_said_whether_more_seeds_could_have_decided():
    expect = Expectation(value=0.5, within=0.05)
    scattered, on_edge = (outcome(expect, of_parts(values)) for values in ([0.4, 0.5, 0.6], [0.545, 0.55, 0.556]))
    assert (scattered.verdict, scattered.why) == (INCONCLUSIVE, WIDE)
    assert (on_edge.verdict, on_edge.why) == (INCONCLUSIVE, UNDECIDED[""])


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf])
def test_seeds_without_a_number_are_counted(tmp_path, missing):
    few = one(tmp_path, GOOD, of_seeds(0.49, 0.5, 0.51, 0.5, missing), trials=5)
    assert (few.verdict, few.outcome.seeds, few.outcome.without) == (REPRODUCED, 5, 1)
    assert few.outcome.mean == pytest.approx(0.5)
    many = one(tmp_path, GOOD, of_seeds(0.49, 0.5, 0.51, missing), trials=4)
    assert (many.verdict, many.outcome.without) == (INCONCLUSIVE, 1)
    assert many.outcome.why == "1 have no number of 4 seeds"
    assert math.isnan(many.outcome.p)


def test_failed_runs_are_counted(tmp_path):
    claim = only_claim(tmp_path, GOOD)
    (figure,) = figures_at("full", [FIG2A])
    runs = table(figure, of_seeds(0.49, 0.5, 0.51, 0.5, 99.0), trials=5)
    runs.loc[runs["seed"] == 5, "ok"] = False
    found = judge_claim(claim, {figure.id: figure}, {figure.id: runs})
    assert (found.verdict, found.outcome.seeds, found.outcome.failed) == (REPRODUCED, 5, 1)
    assert found.outcome.mean == pytest.approx(0.5)
    runs.loc[runs["seed"] == 4, "ok"] = False
    found = judge_claim(claim, {figure.id: figure}, {figure.id: runs})
    assert (found.verdict, found.outcome.why) == (INCONCLUSIVE, "2 failed of 5 seeds")


def test_one_seed_or_none_says_nothing(tmp_path):
    assert one(tmp_path, GOOD, of_seeds(0.5), trials=1).outcome.why == "1 seed with a number: two are needed"
    claim = only_claim(tmp_path, GOOD)
    (figure,) = figures_at("full", [FIG2A])
    nothing = table(figure).iloc[:0]
    assert judge_claim(claim, {figure.id: figure}, {figure.id: nothing}).verdict == NOT_RUN


def test_a_claim_over_points_takes_the_seeds_that_all_of_them_have(tmp_path):
    claim = only_claim(tmp_path, ORDER)
    (figure,) = figures_at("full", [FIG2A])
    runs = table(figure, lambda p, s: p.values["flows.0.count"] * (1 + s / 100), trials=6)
    runs = runs[(runs["seed"] <= 4) | (runs["flows.0.count"] == 1)]
    found = judge_claim(claim, {figure.id: figure}, {figure.id: runs})
    assert (found.verdict, found.outcome.seeds, found.outcome.failed) == (REPRODUCED, 4, 0)


def test_repeats_that_are_identical_have_no_interval(tmp_path):
    claim = only_claim(tmp_path, GOOD)
    (figure,) = figures_at("full", [FIG2A])
    runs = table(figure)
    equal = judge_claim(claim, {figure.id: figure}, {figure.id: runs}).outcome  # drops differ: other runs, same share
    assert (equal.verdict, equal.spread, equal.p) == (REPRODUCED, EQUAL, 0), "farther from 0.4 and 0.6 than a packet"
    runs["drops"] = 7.0
    same = judge_claim(claim, {figure.id: figure}, {figure.id: runs}).outcome
    assert (same.verdict, same.spread) == (REPRODUCED, DETERMINISTIC)
    assert math.isnan(same.p) and math.isnan(same.low)


def test_what_was_not_run(tmp_path):
    deep = GOOD.replace("network.buffer.bdp: 4", "network.buffer.bdp: 64")
    found = one(tmp_path, deep, lambda p, s: 0.5, "quick")
    assert (found.verdict, found.why) == (NOT_RUN, f"its point of {FIG2A} was not run")
    assert (found.points, found.points_full) == (0, 1)
    claim = only_claim(tmp_path, GOOD)
    (figure,) = figures_at("full", [FIG2A])
    assert judge_claim(claim, {figure.id: figure}, {}).verdict == NOT_RUN


def test_what_an_older_version_did_not_measure_was_not_run(tmp_path):
    """Points ship as they are finished: beside those of today stand some of a version without the metric."""
    claim = only_claim(tmp_path, series("{below: 2}"))
    (figure,) = figures_at("full", claim.figures)
    runs = table(figure, of_seeds(0.4, 0.5, 0.6), 3)
    old = runs["point"].isin([p.label for p in figure.points[:2]])
    asked = next(iter(claim.columns)).rpartition(".")[2]
    mixed = runs.assign(**{asked: runs[asked].mask(old), "kernel_key": old.map({True: "a", False: "b"})})
    found = judge_claim(claim, {figure.id: figure}, {figure.id: mixed})
    assert (found.verdict, found.outcome) == (NOT_RUN, None)
    assert re.search(rf"{FIG2A}: \d of 7 points have no {asked}: made by an older version", found.why)
    of_one = judge_claim(claim, {figure.id: figure}, {figure.id: mixed.assign(kernel_key="a")})
    assert of_one.verdict == INCONCLUSIVE, "runs of today may have no number"


def test_what_is_said_of_all_points_needs_all_of_them(tmp_path):
    part = one(tmp_path, series("{below: 2}"), of_seeds(0.4, 0.5, 0.6), "quick")
    assert (part.verdict, part.interim, part.why) == (PARTLY_RUN, REPRODUCED, "3 of 7 points")
    assert (part.points, part.points_full) == (3, 7)
    assert one(tmp_path, series("{below: 2}"), of_seeds(0.4, 0.5, 0.6)).verdict == REPRODUCED
    few = one(tmp_path, series("{trend: rising}"), of_seeds(0.4, 0.5, 0.6), "quick")
    assert (few.verdict, few.interim, few.why) == (NOT_RUN, "", "3 of 7 points: a trend needs 4 points")


def test_shorter_runs_are_marked(tmp_path):
    found = one(tmp_path, GOOD, of_seeds(0.49, 0.51), "smoke", trials=2)
    assert (found.verdict, found.interim, found.shorter_s, found.why) == (PARTLY_RUN, INCONCLUSIVE, 60, "runs of 60 s")


def test_shorter_runs_may_do_where_they_measure_a_part_of_the_window(tmp_path):
    claim = only_claim(tmp_path, GOOD.rstrip("\n") + "\n      shortest_s: 800\n")
    (figure,) = figures_at("full", [FIG2A])  # 1000 s, from 600 s on

    def judged(duration_s: float, window_s: list[float]) -> Verdict:
        def shorter(point: Point) -> Point:
            scenario = point.scenario.model_copy(update={"duration_s": duration_s, "window_s": window_s})
            return Point(scenario, point.values)

        cut = dataclasses.replace(figure, points=[shorter(p) for p in figure.points])
        return judge_claim(claim, {FIG2A: cut}, {FIG2A: table(cut, of_seeds(0.499, 0.5, 0.501))})

    assert judged(800, [650, 800]).verdict == REPRODUCED
    assert judged(799, [650, 799]).why == "runs of 799 s"
    early = judged(800, [500, 800])
    low, high = figure.scenario.window_s
    assert (early.verdict, early.interim) == (PARTLY_RUN, REPRODUCED)
    assert early.why == f"measured from 500 to 800 s, not within {low:g} to {high:g} s"
    assert judged(1200, [low, 1200]).verdict == PARTLY_RUN, "longer, and beyond"


def test_terms_with_other_points_make_no_number(tmp_path):
    text = """
- id: SA-y
  says: One flow takes as much as four do.
  source: Fig. 2a
  exactness: raw data
  because: a reason
  claims:
    - at:
        few: {figure: fig2a, where: {flows.0.count: 1}, along: network.buffer.bdp}
        four: {figure: fig2c, where: {flows.0.count: 1}, along: network.buffer.bdp}
      metric: max(few.share_of_capacity - four.share_of_capacity)
      expect: {below: 0.1}
"""
    claim = only_claim(tmp_path, text)
    known = {f.id: f for f in figures_at("full", claim.figures)}
    cut = Figure(FIG2A, known[FIG2A].scenario, known[FIG2A].points[6:], 3)
    tables = {id: table(f) for id, f in known.items()}
    found = judge_claim(claim, known | {FIG2A: cut}, tables)
    assert (found.verdict, found.why) == (NOT_RUN, "13 of 14 points: its terms have different points")


def test_bounds_along_a_series(tmp_path):
    def share(point, seed):
        return point.values["network.buffer.bdp"] / 64 + seed / 1e4

    labelled = one(tmp_path, series("{below: 0.9}"), share).outcome
    assert (labelled.verdict, labelled.part) == (NOT_REPRODUCED, "buffer.bdp 64")
    assert one(tmp_path, series("{trend: rising}"), share).verdict == REPRODUCED
    assert one(tmp_path, series("{trend: falling}"), share).verdict == NOT_REPRODUCED
    assert one(tmp_path, series("{above: 0.01}"), share).outcome.mean == pytest.approx(1 / 64, abs=1e-3), "the lowest"
    assert one(tmp_path, series("{at_least: 0.01}"), share).outcome.mean == pytest.approx(1 / 64, abs=1e-3)
    assert one(tmp_path, series("{below: 0.9}"), share).outcome.mean == pytest.approx(1, abs=1e-3), "the highest counts"
    assert one(tmp_path, series("{at_most: 0.9}"), share).outcome.mean == pytest.approx(1, abs=1e-3)


def test_a_value_of_a_series_is_expected_at_each_point(tmp_path):
    near = lambda point, seed: 0.45 + point.values["network.buffer.bdp"] / 640 + seed / 1e4  # noqa: E731 - .45 to .55
    assert one(tmp_path, series("{value: 0.5, within: 0.06}"), near).verdict == REPRODUCED
    assert one(tmp_path, series("{range: [0.44, 0.56]}"), near).verdict == REPRODUCED
    assert one(tmp_path, series("{range: [0.40, 0.54]}"), near).verdict == NOT_REPRODUCED
    assert one(tmp_path, series("{value: 0.5, within: 0.04}"), near).verdict == NOT_REPRODUCED


@pytest.mark.parametrize(("few", "many", "mean"), [(0.3, 0.1 + 0.2, 0), (0.3, 0.3 + 1e-9, 1e-9), (0, 5e-324, 5e-324)])
def test_what_differs_by_rounding_is_a_tie(tmp_path, few, many, mean):
    verdict = one(tmp_path, ORDER, lambda point, seed: few if point.values["flows.0.count"] == 1 else many, trials=7)
    assert verdict.outcome.mean == pytest.approx(mean, rel=1e-6)
    assert verdict.outcome.verdict == (REPRODUCED if mean else NOT_REPRODUCED)


def test_a_trend_has_a_least_strength(tmp_path):
    """Kendall's tau of each seed is above 0.5, or beyond what is given; points with the same key are no steps."""
    rising = series("{trend: rising}")
    found = one(tmp_path, rising, lambda p, s: p.values["network.buffer.bdp"] + s, trials=2).outcome
    assert (found.verdict, found.mean, found.spread) == (REPRODUCED, 1, EQUAL), "farther from 0.5 than a pair of points"
    few = rising.replace("{flows.0.count: 1}", "{flows.0.count: 1, network.buffer.bdp: [1, 2, 4, 8]}")
    assert one(tmp_path, few, lambda p, s: p.values["network.buffer.bdp"] + s, trials=2).verdict == REPRODUCED
    flat = one(tmp_path, rising, lambda p, s: 0.5).outcome
    assert (flat.verdict, flat.mean) == (NOT_REPRODUCED, 0)
    # Half of the pairs more rise than fall, and that surely: a leaning, but none that a paper would call a trend.
    order = {1: 1, 2: 3, 4: 2, 8: 5, 16: 4, 32: 7, 64: 6}
    leaning = lambda p, s: order[p.values["network.buffer.bdp"]] + (s % 2) * 3 * (p.values["network.buffer.bdp"] == 1)  # noqa: E731
    found = one(tmp_path, series("{trend: rising, beyond: 0.9}"), leaning, trials=6).outcome
    assert found.verdict == NOT_REPRODUCED and 0 < found.mean < 0.9
    both = rising.replace("where: {flows.0.count: 1}, ", "where: {flows.0.count: [1, 4]}, ")
    by_flows = lambda p, s: p.values["network.buffer.bdp"] + 1e-6 * s * p.values["flows.0.count"]  # noqa: E731
    assert one(tmp_path, both, by_flows).outcome.mean == pytest.approx(
        stats.kendalltau(np.repeat(range(7), 2), range(14)).statistic
    )


def test_a_series_with_a_sure_step_back_does_not_rise(tmp_path):
    """However many seeds repeat the curve. A step of less than a twentieth of the span is none, nor one within the scatter."""
    down = lambda by, scatter=0.002: lambda p, s: (  # noqa: E731
        math.log2(p.values["network.buffer.bdp"]) / 6 - (by if p.values["network.buffer.bdp"] == 4 else 0) + scatter * (-1) ** s * s
        + scatter * (s % 3) * (p.values["network.buffer.bdp"] == 2)
    )  # fmt: skip
    rising = series("{trend: rising}")
    found = one(tmp_path, rising, down(0.5), trials=6).outcome
    assert (found.verdict, found.part) == (NOT_REPRODUCED, "a step back from buffer.bdp 2 to buffer.bdp 4")
    assert found.mean > 0.5, "the rank correlation alone says that it rises"
    assert one(tmp_path, rising, down(0.2), trials=6).verdict == REPRODUCED, "back by 0.03, of a span of 1"
    assert one(tmp_path, rising, down(0.5, 0.4), trials=3).verdict != NOT_REPRODUCED, "as large as the scatter"
    assert one(tmp_path, rising.replace("rising", "falling"), down(0.5), trials=6).verdict == NOT_REPRODUCED


def test_a_step_back_is_tested_with_all_runs_of_its_two_points(tmp_path):
    """A third point with fewer runs takes none of theirs (QU-rtt-bdp: six runs at one rate, three at the other)."""
    rng, key = np.random.default_rng(6), np.arange(4)
    curves = [np.array([0.5, 0.4, 0.7, 0.9]) + rng.normal(0, 0.02, 4) for _ in range(8)]
    cut = [np.where((key == 3) & (i > 1), np.nan, curve) for i, curve in enumerate(curves)]
    back = of_series.step_back(cut, key, True)
    assert (back.first, back.last) == (0, 1) and back.p < 0.025
    assert of_series.step_back(curves[:2], key, True).p > 0.025, "two runs of each would not have told"
    bdp = lambda p: p.values["network.buffer.bdp"]  # noqa: E731
    share = lambda p, s: math.log2(bdp(p)) / 6 - (0.5 if bdp(p) == 4 else 0) + 0.1 * math.sin(7 * s + bdp(p))  # noqa: E731
    claim = only_claim(tmp_path, series("{trend: rising}"))
    (figure,) = figures_at("full", [FIG2A])
    whole = table(figure, share, trials=8)
    buffers = {p.label: bdp(p) for p in figure.points}
    less = whole[(whole["point"].map(buffers) != 64) | (whole["seed"] < 3)]
    p = [sample(claim, reach(claim, {FIG2A: figure}).points, {FIG2A: t}).back.p for t in (whole, less)]
    assert p[0] <= p[1] < 0.025


def test_runs_of_two_points_are_compared_as_pairs_only_where_the_seed_draws_their_flows():
    """What both have in common is no scatter of their difference; else there is nothing in common."""
    shared, key = np.arange(6) / 2, np.arange(2)
    curves = [np.array([0.3, 0.1]) + x + 0.01 * (i % 2) * key for i, x in enumerate(shared)]
    assert of_series.step_back(curves, key, True, paired=True).p < 0.001
    assert of_series.step_back(curves, key, True).p > 0.2
    lost = [*curves, np.array([9.0, np.nan])]
    assert of_series.step_back(lost, key, True, paired=True).p < 0.001, "a seed that one of them has is no pair"


@pytest.mark.parametrize(("curve", "verdict"), [((1, 3, 2, 4), NOT_REPRODUCED), ((1, 2, 3, 4), REPRODUCED)])
def test_a_series_without_chance_rises_or_not(curve, verdict):
    key, curves = np.arange(4), [np.array(curve, dtype=float)] * 2
    back = of_series.step_back(curves, key, True, identical=True)
    found = dataclasses.replace(
        of_parts([of_series.trend(c, key) for c in curves]), identical=np.array([True]), back=back
    )  # fmt: skip
    assert (back.first, back.last) == (1, 2) or verdict == REPRODUCED
    told = outcome(Expectation(trend="rising"), found)
    assert (told.verdict, told.spread) == (verdict, DETERMINISTIC)


@pytest.mark.slow
def test_a_series_without_a_trend_is_rarely_rising():
    """At most one of forty is called rising, whether looked at once or three times; nor one whose tau is 0.5 at most."""
    rng, key = np.random.default_rng(4), np.arange(6)
    rising = Expectation(trend="rising")
    told = []
    for _ in range(400):
        curves = rng.normal(0, 1, (8, len(key))) + 0.35 * key  # tau of one seed: 0.4 on average
        for count in looks(2, 8):
            taus = [of_series.trend(c, key) for c in curves[:count]]
            back = of_series.step_back(curves[:count], key, True)
            verdict = outcome(rising, dataclasses.replace(of_parts(taus), back=back), LOOKS).verdict
            if verdict != INCONCLUSIVE:
                break
        told.append(verdict)
    assert told.count(REPRODUCED) / len(told) < 0.025


POINTS_INSIDE = [(3, 0.5), (12, 1.0), (25, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize(("points", "inside"), POINTS_INSIDE)
@pytest.mark.parametrize("rounds", [(2, 8), (10, 30)])
def test_true_at_every_point_is_rarely_not_reproduced(points, inside, rounds):
    """Every point ``inside`` standard deviations of a seed within the bound: not reproduced in at most one of forty."""
    rng = np.random.default_rng(points)
    above = Expectation(above=0)
    told = []
    for _ in range(200):
        draws = rng.normal(inside, 1, (rounds[1], points))
        for count in looks(*rounds):
            verdict = outcome(above, of_parts(draws[:count]), LOOKS).verdict
            if verdict != INCONCLUSIVE:
                break
        told.append(verdict)
    assert told.count(NOT_REPRODUCED) / len(told) <= 0.025 + 0.015
    if rounds == (10, 30) and inside == 1:
        assert told.count(REPRODUCED) / len(told) > 0.5


def test_on_the_bound_at_every_point_is_rarely_not_reproduced():
    """As hard as it gets: at most one of forty, however many points there are, since the error is divided by their number."""
    rng = np.random.default_rng(11)
    told = [outcome(Expectation(above=0), of_parts(rng.normal(0, 1, (6, 12)))).verdict for _ in range(600)]
    assert 0 < told.count(NOT_REPRODUCED) / len(told) <= 0.025 + 0.015


def test_false_at_one_point_is_rarely_reproduced():
    """One of twelve points on the bound, the others far inside: reproduced in at most one of forty."""
    rng = np.random.default_rng(8)
    mean = np.array([0.0] + [9.0] * 11)
    told = [outcome(Expectation(above=0), of_parts(rng.normal(mean, 1, (6, 12)))).verdict for _ in range(1000)]
    assert told.count(REPRODUCED) / len(told) == pytest.approx(0.025, abs=0.012)


def test_one_point_outside_among_many_is_not_reproduced():
    rng = np.random.default_rng(9)
    values = rng.normal([5] * 6 + [-5] + [5] * 5, 1, (10, 12))
    found = outcome(Expectation(above=0), of_parts(values))
    assert (found.verdict, found.part) == (NOT_REPRODUCED, "point 6")
    assert found.confidence == pytest.approx(1 - 0.05 / 12)
    assert found.mean == pytest.approx(values[:, 6].mean())


@pytest.mark.parametrize("deviation", [0.02, 0.035, 0.05])
def test_table_1_itself_does_not_reject_what_is_said_of_it(deviation):
    """Bless et al.'s Table I as the truth: that .8 and 1 BDP differ by .05 at most is not rejected."""
    cells = pd.read_csv("data/bless2025/table1.csv").pivot(
        index=["rate_mbit", "case"], columns="buffer_bdp", values="share_of_jittered_flow"
    )
    steps = (cells[0.8] - cells[1]).dropna().to_numpy()
    assert len(steps) >= 8 and np.abs(steps).max() == pytest.approx(0.05)
    rng = np.random.default_rng(10)
    near = Expectation(range=[-0.05, 0.05])
    told = [
        outcome(near, of_parts(rng.normal(steps, deviation * 2**0.5, (30, len(steps))))).verdict for _ in range(200)
    ]
    assert told.count(NOT_REPRODUCED) <= 200 / 40 + 4


def campaigns(
    folder: Path, text: str, truth: Callable[[Point], float], deviation: float, count: int, trials: int
) -> list[Outcome]:
    """What some campaigns say of a claim along one flow's buffers, whose seeds scatter about a truth."""
    claim = only_claim(folder, text)
    (figure,) = figures_at("full", [FIG2A])
    cut = dataclasses.replace(figure, points=[p for p in figure.points if p.values["flows.0.count"] == 1])
    rng = np.random.default_rng(6)
    value = lambda p, s: truth(p) + rng.normal(0, deviation)  # noqa: E731
    return [judge_claim(claim, {FIG2A: cut}, {FIG2A: table(cut, value, trials)}).outcome for _ in range(count)]


def test_the_root_mean_square_is_of_the_means(tmp_path):
    """Every mean is .02 off, within .05: so it is told, though the seeds' scatter makes .054 of each seed's own."""
    text = series("{at_most: 0.05}").replace("metric: share_of_capacity", "metric: rms(share_of_capacity - 0.5)")
    found = campaigns(tmp_path, text, lambda p: 0.52, 0.05, 30, 10)
    assert sum(o.low <= 0.02 <= o.high for o in found) >= 26, "nine of ten intervals hold the true number"
    assert NOT_REPRODUCED not in {o.verdict for o in found}
    assert [o.verdict for o in found].count(REPRODUCED) > 20
    assert np.mean([o.mean for o in found]) == pytest.approx(0.02, abs=0.004)


def test_the_largest_is_of_the_means(tmp_path):
    """Seven means of .5 scatter by .03: the largest of each seed is .04 more on average, and no point is above .53."""
    text = series("{at_most: 0.53}").replace("metric: share_of_capacity", "metric: max(share_of_capacity)")
    found = campaigns(tmp_path, text, lambda p: 0.5, 0.03, 30, 10)
    assert [o.verdict for o in found].count(NOT_REPRODUCED) <= 1
    assert np.mean([o.mean for o in found]) < 0.515


def test_a_point_with_one_good_run_leaves_means_open(tmp_path):
    """Each seed is .1 off, the mean .01: within .05. With one good run at a point the others are not judged seed by seed."""
    claim = only_claim(
        tmp_path, series("{at_most: 0.05}").replace("metric: share_of_capacity", "metric: abs(share_of_capacity - 0.5)")
    )
    (figure,) = figures_at("full", [FIG2A])
    cut = dataclasses.replace(figure, points=[p for p in figure.points if p.values["flows.0.count"] == 1])
    offs = {1: 0.10, 2: -0.101, 3: 0.102, 4: -0.10, 5: -0.103}
    whole = table(cut, lambda p, s: 0.51 + offs[s], 5)
    verdicts = []
    for good in (2, 1, 0):
        lacking = whole.copy()
        lacking.loc[(lacking["point"] == cut.points[-1].label) & (lacking["seed"] > good), "ok"] = False
        verdicts.append(judge_claim(claim, {FIG2A: cut}, {FIG2A: lacking}).verdict)
    assert verdicts == [INCONCLUSIVE] * 3


@pytest.mark.parametrize(
    ("cells", "seeds", "limit", "worst"),
    [(42, 3, 1.0, 0.04), (6, 5, 1.0, 0.04), (42, 5, 2.0, 0.03), (42, 3, 0.5, 0.08), (1, 3, 0.5, 0.1)],
)
def test_root_mean_squares_on_the_limit_err_as_documented(tmp_path, cells, seeds, limit, worst):
    """Every cell (of one: abs) is as far off as the limit, in standard deviations of a seed (docs/explanation/verdicts.md)."""
    claim = only_claim(
        tmp_path, series("{at_most: 0.05}").replace("metric: share_of_capacity", "metric: rms(share_of_capacity)")
    )
    rng = np.random.default_rng(cells + seeds)
    told = [
        outcome(Expectation(at_most=limit), of_parts(pseudo_values(claim, {"share_of_capacity": draws}, []))).verdict
        for draws in rng.normal(limit, 1, (400, seeds, cells))
    ]
    assert max(told.count(v) for v in (REPRODUCED, NOT_REPRODUCED)) / len(told) <= worst + 0.015


LINE = np.linspace(0, 2, 17)


@pytest.mark.parametrize(
    ("metric", "truth", "seeds", "more", "less"),
    [
        ("max(x)", [5] + [0] * 16, 3, 1 / 40, 1 / 40),
        ("max(x) - min(x)", [0, 10] + [5] * 15, 3, 1 / 40, 1 / 40),
        ("median(x)", [0, 10, 20, 30, 40], 3, 1 / 40, 1 / 40),
        ("max(x)", [0] * 17, 10, 1 / 5, 1 / 40),
        ("max(x) - min(x)", [0] * 17, 10, 1 / 3, 1 / 40),
        ("median(x)", [0] * 17, 10, 1 / 6, 1 / 6),
        ("max(x)", LINE, 10, 1 / 25, 1 / 11),
    ],
)
def test_the_largest_and_the_median_of_near_points_err_as_documented(tmp_path, metric, truth, seeds, more, less):
    """How often a number is falsely called more than it is, or less; truth in standard deviations of a seed (verdicts.md)."""
    metric = metric.replace("x)", "share_of_capacity)")
    claim = only_claim(tmp_path, series("{at_most: 0.05}").replace("metric: share_of_capacity", f"metric: {metric}"))
    rng = np.random.default_rng(7)
    number = float(expressions.evaluate(claim.trees[0], {"share_of_capacity": np.array(truth)}))
    told = [
        outcome(Expectation(above=number), of_parts(pseudo_values(claim, {"share_of_capacity": draws}, []))).verdict
        for draws in rng.normal(truth, 1, (600, seeds, len(truth)))
    ]
    for verdict, rate in ((REPRODUCED, more), (NOT_REPRODUCED, less)):
        assert told.count(verdict) / len(told) == pytest.approx(rate, abs=3 * math.sqrt(rate * (1 - rate) / len(told)))


def test_an_order_is_its_smallest_step(tmp_path):
    found = one(tmp_path, ORDER, lambda point, seed: point.values["flows.0.count"] / 10 + seed / 1e4)
    assert found.verdict == REPRODUCED, "its steps are equal in three seeds, and far from 0"
    assert found.outcome.mean == pytest.approx(0.3)
    three = outcome(Expectation(order=["a", "b", "c"]), of_parts([[0.1, 0.5], [0.11, 0.4], [0.12, 0.6]]))
    assert (three.verdict, three.mean, three.part) == (REPRODUCED, pytest.approx(0.5), "point 1"), "the less sure one"


def test_relative_tolerance_and_group(tmp_path):
    text = expecting("{value: 0.5, within_percent: 10}")
    assert one(tmp_path, text, of_seeds(0.539, 0.54, 0.541)).verdict == REPRODUCED
    assert one(tmp_path, text, of_seeds(0.559, 0.56, 0.561)).verdict == NOT_REPRODUCED
    claim = only_claim(tmp_path, GOOD.replace("flows.0.count: 1}}", "flows.0.count: 1}, group: 1}"))
    (figure,) = figures_at("full", [FIG2A])
    runs = table(figure)
    runs.loc[runs["group"] == 1, "share_of_capacity"] = 0.9
    assert judge_claim(claim, {figure.id: figure}, {figure.id: runs}).outcome.mean == pytest.approx(0.9)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=5), st.data())
def test_the_order_of_seeds_does_not_matter(values, data):
    """Whatever was measured, numbering the seeds otherwise changes no verdict."""
    expect = data.draw(st.sampled_from([SHARE, Expectation(above=0.3), Expectation(range=[0.1, 0.2])]))
    found = {outcome(expect, of_parts(p)).verdict for p in permutations(values)}
    assert len(found) == 1


@settings(deadline=None, max_examples=20)
@given(st.permutations([1, 2, 3, 4]))
def test_a_table_with_other_seed_numbers_gives_the_same_verdict(tmp_path_factory, order):
    claim = only_claim(tmp_path_factory.mktemp("c"), ORDER)
    (figure,) = figures_at("full", [FIG2A])
    runs = table(figure, lambda p, s: p.values["flows.0.count"] * (1 + s / 50), trials=4)
    first = judge_claim(claim, {figure.id: figure}, {figure.id: runs}).outcome
    runs["seed"] = runs["seed"].map(dict(zip([1, 2, 3, 4], order, strict=True)))
    again = judge_claim(claim, {figure.id: figure}, {figure.id: runs.sample(frac=1, random_state=1)}).outcome
    assert (again.verdict, again.mean, again.low) == pytest.approx((first.verdict, first.mean, first.low))


@given(st.lists(st.floats(-1, 2), min_size=2, max_size=8), st.sampled_from([1, LOOKS]))
def test_a_verdict_has_a_p_value_of_at_most_the_error(values, times):
    """The interval rule and the p value are two words for one test."""
    numbers = np.array(values)
    assume(np.ptp(numbers) > 1e-6)
    interval, p = estimate(numbers, times), min(p_values(numbers, 0.0, 1.0, times))
    assume(abs(p - ERROR) > 1e-9)
    one_side = (interval.low >= 0 and interval.high <= 1) or interval.high < 0 or interval.low > 1
    assert (p <= ERROR) == one_side


def test_p_values_are_those_of_scipy():
    numbers = np.array([0.4, 0.5, 0.55, 0.7])
    inside = max(stats.ttest_1samp(numbers, 0, alternative="greater").pvalue, stats.ttest_1samp(numbers, 1, alternative="less").pvalue)  # fmt: skip
    assert p_values(numbers, 0, 1)[0] == pytest.approx(2 * inside)
    outside = stats.ttest_1samp(numbers, 0.9, alternative="less").pvalue
    assert p_values(numbers, 0.9, 1, 3)[1] == pytest.approx(6 * outside)
    assert p_equal(5) == pytest.approx(stats.binomtest(5, 5).pvalue)
    low, high = stats.t.interval(0.95, 3, numbers.mean(), stats.sem(numbers))
    assert (estimate(numbers).low, estimate(numbers).high) == pytest.approx((low, high))


@pytest.mark.slow
def test_error_rates_are_what_the_rules_say():
    """A mean on the very edge of what is expected is called within in one of forty trials, and in as many outside."""
    rng = np.random.default_rng(17)
    told = [outcome(Expectation(range=[0, 100]), of_parts(rng.normal(0, 1, 4))).verdict for _ in range(8000)]
    for verdict in (REPRODUCED, NOT_REPRODUCED):
        assert told.count(verdict) / len(told) == pytest.approx(0.025, abs=0.006)


def test_few_of_many_stand():
    """Of a thousand claims about noise some are significant each for itself, and hardly one among all."""
    rng = np.random.default_rng(5)
    p = [min(1.0, *p_values(rng.normal(0, 1, 5), 0, math.inf)) for _ in range(1000)]
    assert sum(x <= ERROR for x in p) > 30
    assert sum(standing(p)) <= 2
    assert standing([]) == []
    assert standing([1e-9, 0.04, 0.5]) == [True, False, False]


def test_verdicts_among_many(tmp_path):
    """Each claim of a file judged together: a deterministic number stands, an inconclusive one does not."""
    head, claim = GOOD.split("    - at:")
    text = head + "".join(f"    - id: SA-{i}\n      at:{claim}" for i in range(4))
    claims = claims_of(load_statements([written(tmp_path, text)]))
    (figure,) = figures_at("full", [FIG2A])
    runs = {FIG2A: table(figure, of_seeds(0.44, 0.5, 0.56), trials=3)}  # .5 +- .149
    found = judge_all(claims, [figure], runs)
    assert {(v.verdict, v.stands) for v in found} == {(INCONCLUSIVE, False)}
    found = judge_all(claims, [figure], {FIG2A: table(figure).assign(drops=0.0)})
    assert {(v.verdict, v.stands) for v in found} == {(REPRODUCED, True)}
    near = judge_all(claims, [figure], {FIG2A: table(figure, of_seeds(0.463, 0.5, 0.537))})  # p = .045
    assert {(v.verdict, v.stands) for v in near} == {(REPRODUCED, True)}
    found = judge_all(claims, [figure], {})
    assert {(v.verdict, v.stands) for v in found} == {(NOT_RUN, None)}
    assert verdict_frame(found)["stands"].isna().all()


def judged_as(statement, *outcomes, p=1e-4, measurements=None):
    """A statement's claims with these verdicts, each with this p value, each of a measurement of its own unless said."""
    numbers = measurements or range(len(outcomes))
    return [
        Verdict(c, v, Outcome(v, mean=float(i), p=p) if v not in (NOT_RUN, PARTLY_RUN) else None, measurement=f"m{m}")
        for i, (c, v, m) in enumerate(zip(statement.claims, outcomes, numbers, strict=True))
    ]  # fmt: skip


def statement_of(folder, *variants, roles=None):
    """A statement with a claim for each of these variants (None: none) and roles."""
    head, claim = GOOD.replace("  claims:", "  open: which of the readings it is\n  claims:").split("    - at:")
    text = head
    for i, variant in enumerate(variants):
        text += f"    - id: SA-{i}\n" + (f"      variant: {variant}\n" if variant else "")
        text += (f"      role: {roles[i]}\n" if roles and roles[i] else "") + f"      at:{claim}"
    (statement,) = load_statements([written(folder, text)])
    return statement


@pytest.mark.parametrize(
    ("of_claims", "verdict"),
    [
        ([REPRODUCED], REPRODUCED),
        ([REPRODUCED, REPRODUCED], REPRODUCED),
        ([REPRODUCED, NOT_REPRODUCED], PARTLY),
        ([REPRODUCED, INCONCLUSIVE], PARTLY),
        ([NOT_REPRODUCED, INCONCLUSIVE], NOT_REPRODUCED),
        ([NOT_REPRODUCED], NOT_REPRODUCED),
        ([INCONCLUSIVE, INCONCLUSIVE], INCONCLUSIVE),
        ([REPRODUCED, NOT_RUN], PARTLY_RUN),
        ([REPRODUCED, PARTLY_RUN], PARTLY_RUN),
        ([NOT_REPRODUCED, NOT_RUN], PARTLY_RUN),
        ([PARTLY_RUN, NOT_RUN], PARTLY_RUN),
        ([NOT_RUN, NOT_RUN], NOT_RUN),
    ],
)
def test_what_comes_of_a_statement(tmp_path, of_claims, verdict):
    statement = statement_of(tmp_path, *[None] * len(of_claims))
    assert {judgement(judged_as(statement, *p)).verdict for p in permutations(of_claims)} == {verdict}


@pytest.mark.parametrize(
    ("variants", "of_claims", "verdict", "as_read"),
    [
        (["a", "b"], [REPRODUCED, REPRODUCED], REPRODUCED, ()),
        (["a", "b"], [REPRODUCED, NOT_REPRODUCED], AS_READ, ("a",)),
        (["a", "b", "c"], [REPRODUCED, INCONCLUSIVE, REPRODUCED], AS_READ, ("a", "c")),
        (["a", "a", "b"], [REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED], PARTLY, ()),
        (["a", "b", None], [REPRODUCED, NOT_REPRODUCED, REPRODUCED], AS_READ, ("a",)),
        (["a", "b", None], [REPRODUCED, REPRODUCED, NOT_REPRODUCED], PARTLY, ()),
        (["a", "b"], [NOT_REPRODUCED, NOT_REPRODUCED], NOT_REPRODUCED, ()),
        (["a", "b"], [NOT_REPRODUCED, INCONCLUSIVE], INCONCLUSIVE, ()),
        (["a", "b", None], [INCONCLUSIVE, INCONCLUSIVE, NOT_REPRODUCED], NOT_REPRODUCED, ()),
    ],
)
def test_readings_of_what_is_open(tmp_path, variants, of_claims, verdict, as_read):
    """One reading that holds is a class of its own; not reproduced means that every reading fails."""
    found = judgement(judged_as(statement_of(tmp_path, *variants), *of_claims))
    assert (found.verdict, found.as_read) == (verdict, as_read)


def test_a_reading_that_is_chosen_needs_its_part_of_the_error(tmp_path):
    statement = statement_of(tmp_path, "a", "b")
    assert judgement(judged_as(statement, REPRODUCED, NOT_REPRODUCED, p=0.024)).verdict == AS_READ
    assert judgement(judged_as(statement, REPRODUCED, NOT_REPRODUCED, p=0.026)).verdict != AS_READ


def test_a_statement_has_an_error_rate_of_its_own(tmp_path):
    """One failing claim among many that are open: its p value must be small for so many (Holm)."""
    statement = statement_of(tmp_path, *[None] * 10)
    few = [NOT_REPRODUCED, *[INCONCLUSIVE] * 9]
    assert judgement(judged_as(statement, *few, p=0.04)).verdict == INCONCLUSIVE
    assert judgement(judged_as(statement, *few, p=0.004)).verdict == NOT_REPRODUCED
    assert judgement(judged_as(statement, *[REPRODUCED] * 10, p=0.04)).verdict == REPRODUCED, (
        "all must be: no correction"
    )
    some = [REPRODUCED, *[NOT_REPRODUCED] * 9]
    assert judgement(judged_as(statement, *some, p=0.004)).verdict == PARTLY
    assert kept_by_holm([0.001, 0.02, 0.04, 0.9]) == [True, False, False, False]
    unequal = judged_as(statement_of(tmp_path, None, None), REPRODUCED, REPRODUCED, p=0.001)
    unequal = [
        unequal[0],
        *judged_as(statement_of(tmp_path, *[None] * 3), REPRODUCED, REPRODUCED, NOT_REPRODUCED, p=0.04)[1:],
    ]
    found = judgement(unequal)
    assert found.in_words == "partly reproduced: 1 of 3 claims", (
        "those that the error rate does not keep are not counted"
    )
    assert [found.count(v) for v in (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE)] == [1, 0, 2]
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(400):  # ten true claims, each on its very edge, so that p is uniform
        p = rng.uniform(0, 1, 10)
        claims = [
            dataclasses.replace(v, verdict=NOT_REPRODUCED if q <= 0.05 else INCONCLUSIVE, outcome=Outcome("", p=q))
            for v, q in zip(judged_as(statement, *few), p, strict=True)
        ]
        wrong += judgement(claims).verdict == NOT_REPRODUCED
    assert 0 < wrong / 400 < 0.08


def test_controls_and_details_are_outside_of_the_count(tmp_path):
    statement = statement_of(tmp_path, None, None, None, roles=["control", None, "detail"])
    found = judgement(judged_as(statement, NOT_REPRODUCED, REPRODUCED, NOT_RUN))
    assert (found.verdict, len(found.claims)) == (REPRODUCED, 1)
    with pytest.raises(UserError, match="one at least must judge it"):
        statement_of(tmp_path, None, roles=["detail"])


def test_copies_are_one_measurement(tmp_path):
    """The same question on the same numbers counts once; another question on them counts, but is on one measurement."""
    statement = statement_of(tmp_path, None, None, None)
    copies = judged_as(statement, REPRODUCED, REPRODUCED, NOT_REPRODUCED, measurements=[0, 0, 1])
    copies[1] = dataclasses.replace(copies[1], outcome=copies[0].outcome)
    found = judgement(copies)
    assert (len(found.claims), found.copies, found.measurements) == (2, 1, 2)
    assert found.in_words == "partly reproduced: 1 of 2 claims"
    others = judged_as(statement, REPRODUCED, REPRODUCED, NOT_REPRODUCED, measurements=[0, 0, 1])
    found = judgement(others)
    assert found.in_words == "partly reproduced: 2 of 3 claims on 2 measurements"


def test_the_same_runs_at_two_points_are_one_measurement(tmp_path):
    claims = claims_of(load_statements([written(tmp_path, EACH)]))
    (figure,) = figures_at("full", [FIG2A])
    alike = table(figure, lambda p, s: 0.5 + s / 100 + p.values["flows.0.count"])  # whatever the buffer
    found = {v.claim.id: v.measurement for v in judge_all(claims, [figure], {FIG2A: alike})}
    assert found["SA-p-N1-X4"] == found["SA-p-N1-X64"] != found["SA-p-N2-X4"]
    other = table(figure, lambda p, s: 0.5 + s / 100 + p.values["flows.0.count"] + 100 * p.values["network.buffer.bdp"])
    assert len({v.measurement for v in judge_all(claims, [figure], {FIG2A: other})}) == len(claims)


def test_a_failed_run_takes_no_other_points_seed(tmp_path):
    """Each of five seeds fails at another of seven points: every point has four of five, and so has the series."""
    claim = only_claim(
        tmp_path, series("{above: 0.1}").replace("metric: share_of_capacity", "metric: mean(share_of_capacity)")
    )
    (figure,) = figures_at("full", [FIG2A])
    runs = table(figure, of_seeds(0.49, 0.5, 0.51, 0.5, 0.5), trials=5)
    points = [p.label for p in select(claim.at[""], figure.points)]
    for seed in range(1, 6):
        runs.loc[(runs["seed"] == seed) & (runs["point"] == points[seed]), "ok"] = False
    found = judge_claim(claim, {FIG2A: figure}, {FIG2A: runs}).outcome
    assert (found.verdict, found.seeds, found.failed) == (REPRODUCED, 5, 1)


SHORT = """
- id: BL-x
  says: CUBIC's slowdown is higher.
  source: Fig. 14
  exactness: text
  because: the paper's words
  claims:
    - at:
        bbr: {figure: fig14, where: {case: bbr3-replay}, along: network.rtt_ms}
        cubic: {figure: fig14, where: {case: cubic-replay}, along: network.rtt_ms}
      metric: cubic.slowdown_mean - bbr.slowdown_mean
      expect: {above: 0}
"""


def test_runs_of_the_same_drawn_flows_are_paired_by_their_seed(tmp_path):
    """CUBIC is 0.2 higher in every trace, and traces differ by 1: without its failed run, a point has the pairs of the others."""
    (claim,) = claims_of(load_statements([written(tmp_path, SHORT, "bless2025")]))
    (figure,) = figures_at("full", ["bless2025/fig14"])
    runs = table(
        figure,
        lambda p, s: s + 0.001 * s * s + (0.2 + 0.001 * s if p.values["case"] == "cubic-replay" else 0),
        trials=6,
    )
    at_50ms = {p.values["case"]: p.label for p in figure.points if p.values["network.rtt_ms"] == 50}
    runs.loc[(runs["seed"] == 2) & (runs["point"] == at_50ms["cubic-replay"]), "ok"] = False
    found = sample(claim, reach(claim, {figure.id: figure}).points, {figure.id: runs})
    assert found.of_part(0) == pytest.approx([0.201, 0.202, 0.203, 0.204, 0.205, 0.206])
    assert found.of_part(2) == pytest.approx([0.201, 0.203, 0.204, 0.205, 0.206])
    assert (found.seeds.tolist(), found.failed.tolist(), found.without.tolist()) == ([6, 6, 6], [0, 0, 1], [0, 0, 0])
    verdict = judge_claim(claim, {figure.id: figure}, {figure.id: runs})
    assert verdict.verdict == REPRODUCED
    runs.loc[(runs["seed"] == 3) & (runs["point"] == at_50ms["bbr3-replay"]), "ok"] = False
    found = judge_claim(claim, {figure.id: figure}, {figure.id: runs})
    assert (found.verdict, found.why or found.outcome.why) == (INCONCLUSIVE, "2 failed of 6 seeds")


def test_a_pair_needs_a_run_of_each_point(tmp_path):
    """One point has three seeds and the other six: three pairs, of which none failed."""
    (claim,) = claims_of(load_statements([written(tmp_path, SHORT, "bless2025")]))
    (figure,) = figures_at("full", ["bless2025/fig14"])
    runs = table(figure, lambda p, s: s + (0.2 if p.values["case"] == "cubic-replay" else 0), trials=6)
    runs = runs[(runs["seed"] <= 3) | (runs["case"] != "cubic-replay")]
    found = sample(claim, reach(claim, {figure.id: figure}).points, {figure.id: runs})
    assert [len(found.of_part(i)) for i in range(3)] == [3, 3, 3]
    assert (found.seeds.tolist(), found.failed.tolist(), found.without.tolist()) == ([3] * 3, [0] * 3, [0] * 3)


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({}, False),
        ({"network": {"rate_mbit": 10, "rtt_ms": [30, 40], "buffer": {"bdp": 1}}}, True),
        ({"flows": [{"cca": "bbr3", "rtt_ms": [10, 20]}]}, True),
        ({"flows": [{"cca": "bbr3", "traffic": {"offered_mbit": 2}}]}, True),
    ],
)
def test_which_flows_the_seed_draws(changes, drawn):
    assert draws_flows(base_point(validate(scenario_dict(**changes), "s")).scenario) is drawn


def test_points_without_runs_are_put_on_either_side_of_a_count(tmp_path):
    """Of 7 points 5 are above and one has no good run: more than half whichever way; with 4 above it is open."""
    claim = only_claim(
        tmp_path,
        series("{above: 0.6}").replace(
            "metric: share_of_capacity", '"metric": "fraction_above(share_of_capacity, 0.5)"'
        ),
    )
    (figure,) = figures_at("full", [FIG2A])
    points = [p.label for p in select(claim.at[""], figure.points)]

    def with_above(count):
        above = set(points[:count])
        runs = table(figure, lambda p, s: (0.7 if p.label in above else 0.3) + s / 1000)
        runs.loc[runs["point"] == points[-1], "ok"] = False
        return judge_claim(claim, {FIG2A: figure}, {FIG2A: runs}).outcome

    assert (with_above(6).verdict, with_above(6).set_aside) == (REPRODUCED, 1)
    assert with_above(4).verdict == INCONCLUSIVE, "4 or 5 of 7, and 0.6 is between"
    assert with_above(2).verdict == NOT_REPRODUCED


def test_a_seed_that_only_some_points_have_is_no_number_of_a_count(tmp_path):
    """The first point has a fourth seed: the others are not on a side of the limit for it, as a point without any good run is."""
    text = series("{above: 0.6}").replace(
        "metric: share_of_capacity", '"metric": "fraction_above(share_of_capacity, 0.5)"'
    )
    claim = only_claim(tmp_path, text)
    (figure,) = figures_at("full", [FIG2A])
    points = [p.label for p in select(claim.at[""], figure.points)]
    runs = table(figure, lambda p, s: 0.7 + s / 1000, trials=4)
    runs = runs[(runs["seed"] <= 3) | (runs["point"] == points[0])].copy()
    runs.loc[runs["point"] == points[-1], "ok"] = False
    outcome = judge_claim(claim, {FIG2A: figure}, {FIG2A: runs}).outcome
    assert (outcome.verdict, outcome.mean) == (REPRODUCED, pytest.approx(6 / 7))


def test_equal_numbers_nearer_than_their_resolution_are_open(tmp_path):
    """A share can move by one packet of those that a window holds; a fraction of seven points by one of them."""
    (figure,) = figures_at("full", [FIG2A])
    near = only_claim(tmp_path, GOOD.replace("{value: 0.5, within: 0.1}", "{above: 0.499999}"))
    found = judge_claim(near, {FIG2A: figure}, {FIG2A: table(figure)}).outcome
    assert (found.verdict, found.spread, found.p, found.settles) == (INCONCLUSIVE, EQUAL, 0.5, 7)
    assert found.why == "equal in 3 seeds: too few to tell"
    half = series("{above: 0.5}").replace(
        "metric: share_of_capacity", '"metric": "fraction_above(share_of_capacity, 0.5)"'
    )
    claim = only_claim(tmp_path, half)
    points = [p.label for p in select(claim.at[""], figure.points)]

    def with_above(count):
        runs = table(figure, lambda p, s: 0.7 if p.label in points[:count] else 0.3)
        return judge_claim(claim, {FIG2A: figure}, {FIG2A: runs}).verdict

    assert [with_above(n) for n in (2, 4, 5)] == [NOT_REPRODUCED, INCONCLUSIVE, REPRODUCED]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("x", 0.1), ("x - y", 0.3), ("2 * x", 0.2), ("mean(x)", 0.1), ("-x", 0.1), ("abs(x)", 0.1), ("published", 0),
        ("fraction_above(x, 1)", 1 / 4), ("fraction_above(published, 1)", 0), ("fraction_above(x, 1) - fraction_above(published, 1)", 1 / 4),
        ("trend(x, y)", 1 / 3), ("x / 2", 0.05), ("sum(x)", 0.4), ("crossing(x, y, 0.5)", 1.0),
    ],
)  # fmt: skip
def test_the_resolution_of_an_expression(text, step):
    values = {"x": np.array([1.0, 2, 3, 4]), "y": np.array([4.0, 3, 2, 1]), "published": np.ones(4)}
    steps = {"x": np.full(4, 0.1), "y": np.full(4, 0.2), "published": np.zeros(4)}
    assert np.max(resolution(expressions.parse(text), values, steps)) == pytest.approx(step)


@pytest.mark.parametrize(("deviation", "distance"), [(0.1, 0.05), (0.1, 0.5), (0.02, 0.001)])
def test_how_many_seeds_would_tell(deviation, distance):
    """With so many numbers of this scatter the interval just ends at the limit; with one fewer it does not."""
    values = np.array([-1.0, 0, 1]) * deviation
    count = int(enough_for(values, distance))
    half = lambda n: stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n)  # noqa: E731
    assert half(count) <= distance and (count == 2 or half(count - 1) > distance)
    assert math.isinf(enough_for(values, 0.0))


def test_statements_and_claims_are_counted(tmp_path):
    head, claim = GOOD.split("    - at:")
    text = f"{head}    - id: SA-a\n      at:{claim}    - id: SA-b\n      at:{claim.replace('value: 0.5', 'value: 5')}"
    text += GOOD.replace("SA-x", "SA-z").replace("network.buffer.bdp: 4", "network.buffer.bdp: 64").lstrip()
    text += GOOD.replace("SA-x", "SA-s").replace("raw data", "secondary").lstrip()
    statements = load_statements([written(tmp_path, text)])
    figure = partly(figures_at("full", [FIG2A])[0])
    verdicts = judge_all(claims_of(statements), [figure], {FIG2A: table(figure, of_seeds(0.49, 0.5, 0.51))})
    claims, stated = verdict_frame(verdicts), statement_frame(statements, verdicts)
    assert list(stated["in_words"]) == ["partly reproduced: 1 of 2 claims on 1 measurement", NOT_RUN, REPRODUCED]
    assert stated[["claims", "measurements", "reproduced", "not_reproduced", "not_run"]].to_numpy().tolist() == [
        [2, 1, 1, 1, 0],
        [1, 1, 0, 0, 1],
        [1, 1, 1, 0, 0],
    ]
    assert set(stated["code"]) == {LINUX}
    none = dict.fromkeys(STATEMENT_VERDICTS, 0)
    assert statement_counts(stated).loc["all"].to_dict() == none | {PARTLY: 1, NOT_RUN: 1}
    assert statement_counts(stated).loc["at second hand"].to_dict() == none | {REPRODUCED: 1}
    assert counts(claims, VERDICTS).loc["sarpkaya2025"].to_dict() == {
        REPRODUCED: 1, NOT_REPRODUCED: 1, INCONCLUSIVE: 0, PARTLY_RUN: 0, NOT_RUN: 1
    }  # fmt: skip


def test_whose_code_a_statement_rests_on():
    """By the flows of the runs that its claims read."""
    of = {s.id: code_of(s) for s in all_statements() if s.id in ("SA-2a", "SA-5a", "CA-06")}
    assert of == {"SA-2a": LINUX, "SA-5a": LAB, "CA-06": LINUX}


def test_a_cause_in_the_algorithm_needs_one_of_the_labs(tmp_path):
    cause = "\n  cause: {kind: algorithm, evidence: the released code has 0.5 in the same lab}\n  claims:"
    with pytest.raises(UserError, match="no BBRv2 or BBRv3"):
        load_statements([written(tmp_path, GOOD.replace("\n  claims:", cause))])


def test_quick_and_full_can_judge_every_paper():
    """Whatever was measured, a claim has a verdict at full: one of each kind is judged, for those of a table's rows differ in numbers alone."""
    rng = np.random.default_rng(3)
    figures = list(full_figures().values())
    tables = {f.id: table(f, lambda p, s: rng.uniform(0.3, 0.7), trials=2) for f in figures}
    measured = [c for c in claims_of(all_statements()) if not any(n.endswith(("fluid", "burst")) for n in c.columns)]
    claims = list({(c.statement, c.metric, c.expect.kind, *c.figures): c for c in measured}.values())
    verdicts = judge_all(claims, figures, tables)
    assert {v.verdict for v in verdicts} <= set(FINAL)
    assert {c.paper for c in claims} == {f.id.split("/")[0] for f in figures}


def test_published_values_are_joined_by_point(tmp_path):
    text = series("{below: 0.001}").replace("along: network.buffer.bdp}", "along: network.buffer.bdp, published: 'sarpkaya2025/fig2a:share_of_capacity'}")  # fmt: skip
    text = text.replace("metric: share_of_capacity", "metric: rms(share_of_capacity - published)")
    rows = pd.read_csv("data/sarpkaya2025/fig2a.csv").set_index(["buffer_bdp", "bbr_flows"])["share_of_capacity"]
    own = lambda p, s: rows[p.values["network.buffer.bdp"], 1]  # noqa: E731
    assert one(tmp_path, text, own, trials=7).verdict == REPRODUCED
    assert one(tmp_path, text, lambda p, s: rows[p.values["network.buffer.bdp"], 2], trials=7).verdict == NOT_REPRODUCED


def test_published_values_may_be_named_otherwise_and_chosen(tmp_path):
    """Another laboratory's table has a column for the kernel, and its kilobytes are of 1024 bytes."""
    chosen = "published: 'cao2019/second_laboratory:goodput_mbit', rows: {kernel: 4.15, buffer_bytes: 102400}, join: {cca: case}"
    where = "where: {case: cubic, rate_mbit: 10, network.buffer.bytes: 100000}, along: base_rtt_ms"
    text = GOOD.replace("{figure: sarpkaya2025/fig2a, where: {network.buffer.bdp: 4, flows.0.count: 1}}", f"{{figure: cao2019/fig5, {where}, {chosen}}}")  # fmt: skip
    text = text.replace("metric: share_of_capacity", "metric: max(published) - min(published)")
    rows = pd.read_csv("data/cao2019/second_laboratory.csv").query("kernel == '4.15' and cca == 'cubic' and rate_mbit == 10 and buffer_bytes == 102400")  # fmt: skip
    assert len(rows) == 8
    span = rows["goodput_mbit"].max() - rows["goodput_mbit"].min()
    assert one(tmp_path, text, of_seeds(1, 2), trials=2).outcome.mean == pytest.approx(span)
    for part in ("kernel: 4.15, ", ", join: {cca: case}", ", buffer_bytes: 102400"):
        with pytest.raises(UserError, match="at.published: .* rows for point .*, one is needed"):
            only_claim(tmp_path, text.replace(part, ""))


def test_the_fluid_model_stands_beside_the_runs(tmp_path):
    text = GOOD.replace("metric: share_of_capacity", "metric: share_of_capacity - fluid").replace(
        "0.5, within", "0.1, within"
    )
    claim = only_claim(tmp_path, text)
    (figure,) = figures_at("full", [FIG2A])
    (path,) = columns.prediction_files([claim], [figure], tmp_path)
    assert path.parent.parent == tmp_path / "models" / FIG2A
    runs = {FIG2A: table(figure, of_seeds(0.59, 0.6, 0.61))}
    missing = judge_claim(claim, {FIG2A: figure}, runs, tmp_path)
    assert missing.verdict == NOT_RUN and "prediction is missing" in missing.why
    path.parent.mkdir(parents=True)
    pd.DataFrame({"share_of_capacity": [0.5]}).to_parquet(path)
    found = judge_claim(claim, {FIG2A: figure}, runs, tmp_path)
    assert (found.verdict, found.outcome.mean) == (REPRODUCED, pytest.approx(0.1))
    assert columns.prediction_files([only_claim(tmp_path, GOOD)], [figure], tmp_path) == {}


def test_claims_compare_with_ware_s_formula_wherever_there_are_two_groups(tmp_path):
    """Flows of Scherrer et al. have RTTs of their own, which the model does not describe: what is drawn depends on that, no verdict."""
    (figure,) = figures_at("full", ["scherrer2022/droptail"])
    described = [p for p in figure.points if columns.speaks_of(WARE, p)]
    pairs = [p for p in figure.points if len(p.scenario.flows) > 1]
    shares = columns.beside(WARE, Term(figure=figure.id), pairs)
    assert pairs and described == [] and np.all((shares > 0) & (shares < 1))
