"""How claims and statements are judged, on tables that are made up."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from bbrlab.base.errors import UserError
from bbrlab.campaign.figures import Figure, figures_at
from bbrlab.claims import columns
from bbrlab.claims.inference import ERROR, LOOKS, estimate, p_value, standing
from bbrlab.claims.judge import (
    DETERMINISTIC,
    EQUAL,
    FINAL,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY_RUN,
    REPRODUCED,
    judge_all,
    judge_claim,
    outcome,
    verdict_counts,
    verdict_frame,
)
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.sample import Sample
from bbrlab.claims.schema import Expectation
from bbrlab.claims.statements import PARTLY, statement_counts, statement_frame, statement_verdict
from tests.made_up import GOOD, ORDER, expecting, of_seeds, one, only_claim, series, table, written

FIG2A = "sarpkaya2025/fig2a"
SHARE = Expectation(value=0.5, within=0.1)


def seeds(*values: float, failed: int = 0, without: int = 0, identical: bool = False) -> Sample:
    """A sample of these numbers."""
    return Sample(np.array(values, dtype=float), len(values) + failed + without, failed, without, identical)


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
        ({"trend": "rising"}, (1, 1, 0.9), REPRODUCED),  # the far side is open: tau cannot exceed 1, its interval can
        ({"trend": "rising"}, (0.5, 0.5, 0.5), NOT_REPRODUCED),
        ({"trend": "falling"}, (-1, -1, -0.9), REPRODUCED),
        ({"trend": "falling"}, (1, 1, 0.9), NOT_REPRODUCED),
        ({"order": ["a", "b"]}, (0, 0, 0), NOT_REPRODUCED),  # a tie is no order
        ({"order": ["a", "b"]}, (0.1, 0.11, 0.12), REPRODUCED),
        ({"above": 0.5}, (0.5, 0.5, 0.5), NOT_REPRODUCED),
        ({"at_least": 0.5}, (0.5, 0.5, 0.5), REPRODUCED),
        ({"below": 0.0}, (0, 0, 0), NOT_REPRODUCED),
        ({"at_most": 0.0}, (0, 0, 0), REPRODUCED),
        ({"at_most": 0.0}, (0, 0, 0.1), INCONCLUSIVE),
        ({"range": [0, 1]}, (0.4, 0.5, 0.6), REPRODUCED),
        ({"range": [0, 1]}, (2, 2.01, 2.02), NOT_REPRODUCED),
    ],
)
def test_every_kind_of_expectation(expect, values, verdict):
    assert outcome(Expectation(**expect), seeds(*values)).verdict == verdict


def test_a_claim_without_a_tolerance_may_be_looked_at_three_times():
    found = outcome(Expectation(above=0), seeds(1, 2, 3))
    assert found.confidence == pytest.approx(1 - 0.05 / 3)
    assert found.verdict == INCONCLUSIVE  # 2 +- 4.4; at .95 it were 2 +- 2.5
    assert outcome(SHARE, seeds(1, 2, 3)).confidence == 0.95


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
    assert one(tmp_path, GOOD, of_seeds(0.5), trials=1).outcome.why == "1 seeds with a number: two are needed"
    claim = only_claim(tmp_path, GOOD)
    (figure,) = figures_at("full", [FIG2A])
    nothing = table(figure).iloc[:0]
    assert judge_claim(claim, {figure.id: figure}, {figure.id: nothing}).verdict == NOT_RUN


def test_a_claim_over_points_takes_the_seeds_that_all_of_them_have(tmp_path):
    claim = only_claim(tmp_path, ORDER)
    (figure,) = figures_at("full", [FIG2A])
    runs = table(figure, lambda p, s: p.values["flows.0.count"] + s / 100, trials=6)
    runs = runs[(runs["seed"] <= 4) | (runs["flows.0.count"] == 1)]
    found = judge_claim(claim, {figure.id: figure}, {figure.id: runs})
    assert (found.verdict, found.outcome.seeds, found.outcome.failed) == (REPRODUCED, 4, 0)


def test_repeats_that_are_identical_have_no_interval(tmp_path):
    claim = only_claim(tmp_path, GOOD)
    (figure,) = figures_at("full", [FIG2A])
    runs = table(figure)
    equal = judge_claim(claim, {figure.id: figure}, {figure.id: runs}).outcome  # drops differ: other runs, same share
    assert (equal.verdict, equal.spread, equal.p) == (REPRODUCED, EQUAL, 2 * 0.5**3)
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
    patient = GOOD.rstrip("\n") + "\n      shortest_s: 60\n"
    assert one(tmp_path, patient, of_seeds(0.499, 0.501), "smoke", trials=2).verdict == REPRODUCED
    assert one(tmp_path, patient.replace("60", "61"), of_seeds(0.49, 0.51), "smoke", trials=2).verdict == PARTLY_RUN


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
    verdict = one(tmp_path, ORDER, lambda point, seed: few if point.values["flows.0.count"] == 1 else many)
    assert verdict.outcome.mean == pytest.approx(mean, rel=1e-6)
    assert verdict.outcome.verdict == (REPRODUCED if mean else NOT_REPRODUCED)


def test_an_order_is_its_smallest_step(tmp_path):
    found = one(tmp_path, ORDER, lambda point, seed: point.values["flows.0.count"] / 10 + seed / 1e4)
    assert found.verdict == REPRODUCED
    assert found.outcome.mean == pytest.approx(0.3)


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
    found = {outcome(expect, seeds(*p)).verdict for p in permutations(values)}
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
def test_a_verdict_has_a_p_value_of_at_most_the_error(values, looks):
    """The interval rule and the p value are two words for one test."""
    numbers = np.array(values)
    assume(np.ptp(numbers) > 1e-6)
    interval, p = estimate(numbers, looks), p_value(numbers, 0.0, 1.0, looks)
    assume(abs(p - ERROR) > 1e-9)
    one_side = (interval.low >= 0 and interval.high <= 1) or interval.high < 0 or interval.low > 1
    assert (p <= ERROR) == one_side


def test_p_values_are_those_of_scipy():
    numbers = np.array([0.4, 0.5, 0.55, 0.7])
    inside = max(stats.ttest_1samp(numbers, 0, alternative="greater").pvalue, stats.ttest_1samp(numbers, 1, alternative="less").pvalue)  # fmt: skip
    assert p_value(numbers, 0, 1) == pytest.approx(2 * inside)
    assert p_value(numbers, 0.9, 1, 3) == pytest.approx(6 * stats.ttest_1samp(numbers, 0.9, alternative="less").pvalue)
    low, high = stats.t.interval(0.95, 3, numbers.mean(), stats.sem(numbers))
    assert (estimate(numbers).low, estimate(numbers).high) == pytest.approx((low, high))


def test_error_rates_are_what_the_rules_say():
    """A mean on the very edge of what is expected is called within in one of forty trials, and in as many outside."""
    rng = np.random.default_rng(17)
    told = [outcome(Expectation(range=[0, 100]), seeds(*rng.normal(0, 1, 4))).verdict for _ in range(8000)]
    for verdict in (REPRODUCED, NOT_REPRODUCED):
        assert told.count(verdict) / len(told) == pytest.approx(0.025, abs=0.006)


def test_few_of_many_stand():
    """Of a thousand claims about noise some are significant each for itself, and hardly one among all."""
    rng = np.random.default_rng(5)
    p = [p_value(rng.normal(0, 1, 5), 0, math.inf) for _ in range(1000)]
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
    found = judge_all(claims, [figure], {})
    assert {(v.verdict, v.stands) for v in found} == {(NOT_RUN, None)}
    assert verdict_frame(found)["stands"].isna().all()


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
def test_what_comes_of_a_statement(of_claims, verdict):
    assert {statement_verdict(p) for p in permutations(of_claims)} == {verdict}


def test_statements_and_claims_are_counted(tmp_path):
    head, claim = GOOD.split("    - at:")
    text = f"{head}    - id: SA-a\n      at:{claim}    - id: SA-b\n      at:{claim.replace('value: 0.5', 'value: 5')}"
    text += GOOD.replace("SA-x", "SA-z").replace("network.buffer.bdp: 4", "network.buffer.bdp: 64").lstrip()
    statements = load_statements([written(tmp_path, text)])
    (figure,) = figures_at("quick", [FIG2A])
    verdicts = judge_all(claims_of(statements), [figure], {FIG2A: table(figure, of_seeds(0.49, 0.5, 0.51))})
    claims, stated = verdict_frame(verdicts), statement_frame(statements, verdicts)
    assert list(stated["in_words"]) == ["partly reproduced: 1 of 2", NOT_RUN]
    assert stated[["claims", "reproduced", "not_reproduced", "not_run"]].to_numpy().tolist() == [
        [2, 1, 1, 0],
        [1, 0, 0, 1],
    ]
    assert statement_counts(stated).loc["all"].to_dict() == {
        REPRODUCED: 0, PARTLY: 1, NOT_REPRODUCED: 0, INCONCLUSIVE: 0, PARTLY_RUN: 0, NOT_RUN: 1
    }  # fmt: skip
    assert verdict_counts(claims).loc["sarpkaya2025"].to_dict() == {
        REPRODUCED: 1, NOT_REPRODUCED: 1, INCONCLUSIVE: 0, PARTLY_RUN: 0, NOT_RUN: 1
    }  # fmt: skip
    assert stated["stand"].tolist() == [2, 0]


def test_quick_and_full_can_judge_every_paper():
    """Every claim has a verdict at full, whatever was measured; and every statement of quick one of the known ones."""
    statements = load_statements()
    rng = np.random.default_rng(3)
    figures = figures_at("full")
    tables = {f.id: table(f, lambda p, s: rng.uniform(0.3, 0.7), trials=2) for f in figures}
    claims = [c for c in claims_of(statements) if not any("fluid" in name for name in c.columns)]
    verdicts = judge_all(claims, figures, tables)
    assert {v.verdict for v in verdicts} <= set(FINAL)
    assert {c.paper for c in claims} == {f.id.split("/")[0] for f in figures}


def test_published_values_are_joined_by_point(tmp_path):
    text = series("{below: 0.001}").replace("along: network.buffer.bdp}", "along: network.buffer.bdp, published: 'sarpkaya2025/fig2a:share_of_capacity'}")  # fmt: skip
    text = text.replace("metric: share_of_capacity", "metric: rms(share_of_capacity - published)")
    rows = pd.read_csv("data/sarpkaya2025/fig2a.csv").set_index(["buffer_bdp", "bbr_flows"])["share_of_capacity"]
    assert one(tmp_path, text, lambda p, s: rows[p.values["network.buffer.bdp"], 1]).verdict == REPRODUCED
    assert one(tmp_path, text, lambda p, s: rows[p.values["network.buffer.bdp"], 2]).verdict == NOT_REPRODUCED


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
    assert columns.prediction_files([only_claim(tmp_path, GOOD)], [figure], tmp_path) == []
