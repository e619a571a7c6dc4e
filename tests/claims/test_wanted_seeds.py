"""How many seeds claims ask for, on made-up tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbrlab.claims.inference import enough_equal, estimate, looks
from bbrlab.claims.judge import outcome
from bbrlab.claims.schema import Expectation
from bbrlab.claims.wanted_seeds import PART_OF_TOLERANCE, narrow_enough, wanted_seeds
from bbrlab.results.figures import figures_at
from bbrlab.results.verdicts import INCONCLUSIVE, REPRODUCED
from tests.made_up import GOOD, ORDER, expecting, judge_claim, of_parts, of_seeds, only_claim, partly, series, table

FIG2A = "sarpkaya2025/fig2a"
CAP = 12


@pytest.fixture(scope="module")
def fig2a():
    """At full, with any number of packets for more seeds: these tests are of the rule, not of what runs cost."""
    return replace(figures_at("full", [FIG2A])[0], seeds_packets=math.inf)


def asked(folder, figure, text, value, trials=3, cap=CAP) -> dict[str, int]:
    """Seeds that the claim's point, and that another, are given."""
    runs = table(figure, value, trials)
    found = wanted_seeds(replace(figure, seeds_cap=cap), runs, [only_claim(folder, text)])
    assert set(found) == {p.label for p in figure.points}
    named = {str(p.values): found[p.label] for p in figure.points}
    return {
        "own": named["{'network.buffer.bdp': 4, 'flows.0.count': 1}"],
        "other": named["{'network.buffer.bdp': 64, 'flows.0.count': 32}"],
    }


def test_narrow_enough_asks_for_no_more(tmp_path, fig2a):
    assert asked(tmp_path, fig2a, GOOD, of_seeds(0.500, 0.501, 0.502)) == {"own": 3, "other": 3}


@pytest.mark.parametrize("mean", [0.5, 0.6, 5.0])
def test_a_wide_interval_asks_for_more_whatever_the_mean(tmp_path, fig2a, mean):
    found = asked(tmp_path, fig2a, GOOD, of_seeds(mean - 0.015, mean, mean + 0.015))
    assert found == {"own": 6, "other": 3}  # 2.57 x .015 / 6 ** .5 is .0157, with 5 seeds .0186; wanted: .1 / 6


def test_the_cap_is_kept(tmp_path, fig2a):
    assert asked(tmp_path, fig2a, GOOD, of_seeds(0, 0.5, 1)) == {"own": CAP, "other": 3}
    assert asked(tmp_path, fig2a, GOOD, of_seeds(0, 0.5, 1), cap=2) == {"own": 3, "other": 3}, "never below the trials"
    many = lambda point, seed: seed % 2  # noqa: E731
    assert asked(tmp_path, fig2a, GOOD, many, trials=20)["own"] == 20, "never below what there is"


def test_bounds_are_looked_at_three_times(tmp_path, fig2a):
    above = expecting("{above: 0.5}")
    close = lambda point, seed: 0.5 + (seed % 2) / 100 - 0.004  # noqa: E731
    assert [asked(tmp_path, fig2a, above, close, n, 40)["own"] for n in (3, 6, 12)] == [6, 12, 12]
    assert asked(tmp_path, fig2a, above, of_seeds(0.8, 0.81, 0.82)) == {"own": 3, "other": 3}, "decided"
    assert asked(tmp_path, fig2a, above, of_seeds(0.2, 0.21, 0.22)) == {"own": 3, "other": 3}, "decided, too"
    assert looks(3, 12) == [3, 6, 12]
    assert looks(3, 10) == [3, 6, 10]
    assert looks(3, 3) == [3]


def test_repeats_that_are_identical_ask_for_no_more(tmp_path, fig2a):
    runs = table(fig2a, of_seeds(0.5, 0.5, 0.5)).assign(drops=1.0)
    for text in (GOOD, expecting("{above: 0.5}"), expecting("{value: 9, within: 1}")):
        assert set(wanted_seeds(replace(fig2a, seeds_cap=CAP), runs, [only_claim(tmp_path, text)]).values()) == {3}


def test_equal_numbers_ask_until_they_tell_something(tmp_path, fig2a):
    """Other runs with the same number, nearer to the limit than a packet: six tell it, at three looks the third does. Farther: at once."""
    equal = lambda point, seed: 0.5  # noqa: E731
    assert enough_equal() == 6
    assert asked(tmp_path, fig2a, GOOD, equal) == {"own": 3, "other": 3}
    near = expecting("{value: 0.5, within: 0.000000001}")
    assert asked(tmp_path, fig2a, near, equal) == {"own": 6, "other": 3}
    assert asked(tmp_path, fig2a, near, equal, cap=4) == {"own": 4, "other": 3}
    above = expecting("{above: 0.499999999}")
    assert [asked(tmp_path, fig2a, above, equal, n)["own"] for n in (3, 6, 8)] == [6, 12, 8]


def test_a_claim_that_cannot_ask_is_looked_at_once(tmp_path, fig2a):
    """One over two figures, and one whose points may have no more seeds, have the whole error for their only look."""
    (other,) = figures_at("full", ["sarpkaya2025/fig2c"])
    known = {f.id: replace(f, trials=3, seeds_cap=CAP, seeds_packets=math.inf) for f in (fig2a, other)}
    tables = {id: table(f, lambda p, s: p.values["flows.0.count"] + s / 10, 3) for id, f in known.items()}
    near = ORDER.replace("]}", "], beyond: 2.99999999}")  # nearer than a packet, or equal numbers would decide
    two = near.replace("many: {figure: fig2a", "many: {figure: fig2c")
    confidence = {}
    for name, text, figures in (
        ("two figures", two, known),
        ("one", near, known),
        ("at its cap", near, {FIG2A: replace(fig2a, trials=3, seeds_cap=3)}),
        ("two looks", near, {FIG2A: replace(fig2a, trials=3, seeds_cap=5)}),
    ):
        found = judge_claim(only_claim(tmp_path, text), figures, tables).outcome
        spread = tables[FIG2A]  # the seeds' scatter cancels out in the difference: equal numbers
        assert len(spread) and found.spread == "equal in every seed"
        confidence[name] = found.p
    assert confidence == {"two figures": 2 / 8, "one": 6 / 8, "at its cap": 2 / 8, "two looks": 4 / 8}


def test_nothing_without_a_number_asks_for_ever(tmp_path, fig2a):
    assert asked(tmp_path, fig2a, GOOD, lambda p, s: math.nan) == {"own": 3, "other": 3}


def test_failed_runs_are_made_up_for(tmp_path, fig2a):
    runs = table(fig2a, of_seeds(0.485, 0.5, 0.515, 9.0), trials=4)
    runs.loc[runs["seed"] == 4, "ok"] = False
    found = wanted_seeds(replace(fig2a, seeds_cap=CAP), runs, [only_claim(tmp_path, GOOD)])
    assert max(found.values()) == 6 + 1


def test_all_points_of_a_series_get_the_same(tmp_path, fig2a):
    noisy = lambda point, seed: 0.5 + (-1) ** seed  # noqa: E731
    found = wanted_seeds(
        replace(fig2a, seeds_cap=CAP),
        table(fig2a, noisy),
        [only_claim(tmp_path, series("{below: 1.4}"))],
    )
    wanted = {p.label: 6 if p.values["flows.0.count"] == 1 else 3 for p in fig2a.points}
    assert found == wanted


def test_only_what_can_have_a_verdict_asks(tmp_path):
    quick = partly(figures_at("quick", [FIG2A])[0])
    noisy = table(quick, of_seeds(0, 0.5, 1))
    assert set(
        wanted_seeds(
            replace(quick, seeds_cap=CAP, seeds_packets=math.inf), noisy, [only_claim(tmp_path, series("{below: 1.4}"))]
        ).values()
    ) == {3}
    other = only_claim(tmp_path, GOOD.replace("fig2a, where", "fig2c, where"))
    assert set(wanted_seeds(replace(quick, seeds_cap=CAP, seeds_packets=math.inf), noisy, [other]).values()) == {3}
    (smoke,) = figures_at("smoke", [FIG2A])
    short = wanted_seeds(
        replace(smoke, seeds_cap=CAP, seeds_packets=math.inf),
        table(smoke, of_seeds(0, 1), trials=2),
        [only_claim(tmp_path, GOOD)],
    )
    assert set(short.values()) == {2}


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.floats(1, 5), st.floats(0.01, 1))
def test_more_variance_asks_for_no_fewer(values, factor, half_width):
    numbers = np.array(values)
    assert narrow_enough(numbers * factor, half_width, 60) >= narrow_enough(numbers, half_width, 60)


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.floats(-9, 9), st.floats(0.01, 1))
def test_the_mean_decides_nothing(values, shift, half_width):
    numbers = np.round(np.array(values), 6)
    shifted = np.round(numbers + round(shift, 6), 6)
    assert narrow_enough(shifted, half_width, 60) == narrow_enough(numbers, half_width, 60)


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.05, 0.16, 0.25, 0.5])
@pytest.mark.parametrize(("first", "largest"), [(2, 1 / 17), (3, 1 / 20)])
def test_the_error_rate_with_seeds_added(deviation, first, largest):
    """How often a mean on the very edge of a tolerance of 1 is called reproduced, at most (docs/explanation/verdicts.md)."""
    rng = np.random.default_rng(11)
    expect = Expectation(value=1, within=1)
    campaigns, wrong = 3000, 0
    for _ in range(campaigns):
        draws, count = rng.normal(0, deviation, CAP), first
        for _round in range(3):
            count = narrow_enough(draws[:count], PART_OF_TOLERANCE * expect.tolerance, CAP)
        wrong += outcome(expect, of_parts(draws[:count])).verdict == REPRODUCED
    assert wrong / campaigns < largest + 0.01


@pytest.mark.slow
def test_the_error_rate_of_three_looks():
    """A mean on the very bound is called above in at most one of forty campaigns that look three times."""
    rng = np.random.default_rng(12)
    expect = Expectation(above=0)
    campaigns, wrong = 3000, 0
    for _ in range(campaigns):
        draws = rng.normal(0, 1, CAP)
        for count in looks(3, CAP):
            found = outcome(expect, of_parts(draws[:count]), 3).verdict
            if found != INCONCLUSIVE:
                wrong += found == REPRODUCED
                break
    assert wrong / campaigns < 0.03


def test_with_its_seeds_an_interval_is_narrow_enough():
    """Deterministic: three rounds from the same seeds end at the same number, and its interval is a third of the tolerance."""
    draws = np.random.default_rng(2).normal(0.5, 0.05, 60)
    count = 3
    for _ in range(6):
        count = narrow_enough(draws[:count], 0.1 / 3, 60)
    interval = estimate(draws[:count])
    assert (interval.high - interval.low) / 2 <= 0.1 / 3


def test_what_seeds_may_cost_caps_those_of_costly_points(tmp_path, fig2a):
    """10 Mbit/s for 1000 s are 825,627 packets of 1514 bytes: the root of four millions
    over that is 2.2, so two seeds more; the cap holds besides."""
    noisy = lambda point, seed: 0.5 + 0.2 * (-1) ** seed  # noqa: E731
    for packets, cap, expected in ((4e6, CAP, 5), (2e6, CAP, 4), (8e5, CAP, 3), (4e6, 4, 4), (math.inf, CAP, CAP)):
        figure = replace(fig2a, seeds_cap=cap, seeds_packets=packets)
        assert set(figure.caps.values()) == {expected}
        found = wanted_seeds(figure, table(figure, noisy), [only_claim(tmp_path, GOOD)])
        assert max(found.values()) == expected


def test_a_claim_asks_no_more_than_its_costliest_point_may_have(tmp_path, fig2a):
    """Only seeds that all its points have are looked at, so more of the cheap ones are run for nothing."""
    noisy = lambda point, seed: 0.5 + 0.2 * (-1) ** seed  # noqa: E731
    figure = replace(fig2a, seeds_cap=CAP)
    costly = figure.points[0].label
    figure.__dict__["caps"] = figure.caps | {costly: figure.trials}
    found = wanted_seeds(figure, table(figure, noisy), [only_claim(tmp_path, series("{below: 0.6}"))])
    assert set(found.values()) == {figure.trials}
