"""Claims: what is refused, and how one is judged."""

from __future__ import annotations

import math
import re
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.claims import expressions
from bbrlab.claims import series as of_series
from bbrlab.claims.code import LAB, LINUX, algorithms_of
from bbrlab.claims.columns import JOINED, Cells
from bbrlab.claims.expand import expand, number_or_text, published_rows, with_paper
from bbrlab.claims.expected import NOT_PUBLISHED, expected_at
from bbrlab.claims.load import claims_files, claims_of, load_statements
from bbrlab.claims.schema import Expectation, Term, later_choices, rounded, same_number
from bbrlab.claims.select import full_figures, select
from bbrlab.results.best_scale import shipped_statements
from bbrlab.results.figures import figures_at, scenario_files
from bbrlab.results.verdicts import FINAL, INCONCLUSIVE, NOT_RUN, PARTLY_RUN, REPRODUCED, read_claims
from docs._make import outcomes as outcomes_page
from docs._make.readme import PAGE, page, renewed, with_scorecard
from tests.made_up import EACH, GOOD, ORDER, all_statements, judge_claim, only_claim, table, written


def test_every_paper_has_statements_and_every_row_its_claim():
    statements = all_statements()
    assert {s.paper for s in statements} == {id.split("/")[0] for id in scenario_files()}
    assert len({c.id for c in claims_of(statements)}) == len(claims_of(statements))


def test_the_readme_counts_statements_and_claims():
    text = PAGE.read_text()
    assert text == page(), "run: make format"
    with pytest.raises(ValueError, match="rows for"):
        renewed(text.replace("(scenarios/tang)", "(scenarios/nobody)"), all_statements())


def test_the_readme_has_what_came_of_the_statements():
    """One table that fits on a screen: papers and whose code, by verdict; and where the causes lie."""
    columns = ["paper", "verdict", "scale", "own", "chosen_after", "exactness", "code", "cause"]
    rows = [
        ("tang", "reproduced", "full", False, "", "text", LINUX, ""),
        ("tang", "reproduced as read", "full", False, "", "text", LINUX, ""),
        ("tang", "partly reproduced", "quick", False, "the reading", "text", LINUX, "paper"),
        ("tang", "not reproduced", "full", False, "", "text", LAB, ""),
        ("ware2019", "not run", "full", False, "", "text", LAB, ""),
        ("ware2019", "inconclusive", "full", False, "the reading", "text", LAB, ""),
        ("ware2019", "not reproduced", "full", False, "", "secondary", LINUX, ""),
        ("tang", "inconclusive", "quick", True, "", "text", LINUX, ""),
    ]
    known = pd.DataFrame(rows, columns=columns)
    text = with_scorecard(PAGE.read_text(), known, [])
    assert "| paper | statements | reproduced | as read | partly | not | open |" in text
    assert "| Tang | 4 | 1 | 1 | 1 | 1 |  |" in text
    assert "| Ware et al. 2019 | 2 |  |  |  |  | 2 |" in text
    assert "| **all** | 6 | 1 | 1 | 1 | 1 | 2 |" in text
    assert "| resting on Linux's own BBRv1, CUBIC and Reno | 3 | 1 | 1 | 1 |  |  |" in text
    assert "| resting on the lab's BBRv2 or BBRv3 | 3 |  |  |  | 1 | 2 |" in text
    assert "| at second hand, counted apart | 1 |  |  |  | 1 |  |" in text
    assert "| the lab's own, counted apart | 1 |  |  |  |  | 1 |" in text
    assert (
        "Of the 2 that are partly or not reproduced the cause is, each with its evidence: the paper 1, not looked into 1."
        in text
    )
    told = " ".join(text.split("made by make format: scorecard")[1].split("| paper | statements")[0].split())
    assert "Of **6** statements **4** are decided: **1** reproduced, " in told
    assert "3 of the decided were run with all points and trials" in told
    assert "1 of the decided depends on a choice" in told and "claims" not in told
    text = with_scorecard(text, known, ["tang/fig2", "bless2025/fig14"])
    assert f"2 of the {len(full_figures())} figures do not ship at `full` (tang/fig2, bless2025/fig14). " in text
    with pytest.raises(ValueError, match="no row for nobody"):
        with_scorecard(text, known.assign(paper="nobody"), [])
    with pytest.raises(ValueError, match="needs the lines"):
        with_scorecard(text.replace("<!-- end of scorecard -->", ""), known, [])


def test_the_page_of_outcomes_is_of_what_ships():
    text = outcomes_page.PAGE.read_text()
    assert text == outcomes_page.outcomes(), "run: make format"
    known = shipped_statements(paths.ROOT / "shipped")
    for id, verdict in known[["id", "verdict"]].itertuples(index=False):
        assert f"`{id}`" in text, f"{id} ({verdict}) is on no line"
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == int((~known["verdict"].isin([NOT_RUN, PARTLY_RUN])).sum())
    assert all(line.count("|") - line.count("\\|") == 8 for line in rows), "a cell breaks its row"


def test_the_share_of_claims_that_quick_leaves_open_is_as_two_pages_say():
    claims = read_claims(paths.ROOT / "shipped/quick/claims.parquet")
    judged = claims[(claims["role"] == "") & claims["verdict"].isin(FINAL)]
    share = float((judged["verdict"] == INCONCLUSIVE).mean())
    assert 0.155 < share < 0.225, (
        f"{share:.3f} is not 'nearly one in five': docs/reference/benchmarks.md, docs/development/reviews.md"
    )


# Claims whose tolerance is wider than all that their table spans, and why.
WIDER_THAN_THE_TABLE = {
    "CA-07": "four mean losses; a second laboratory is half as far from the largest as they span",
    "SA-4-jain-bbr2+bbr2-f6": "2 standard errors: one of three trials went another way",
    "SA-6-utilisation-bbr3+cubic-f8": "2 standard errors: one trial has 99.87 %",
}


def test_no_tolerance_is_wider_than_the_table_that_it_is_for():
    """A `value` of a table of at least four numbers must be able to fail: else the verdict says nothing of the number."""
    by_id = {claim.id: claim for claim in claims_of(all_statements())}
    wide = set()
    for file in claims_files():
        for statement in yaml.safe_load(file.read_text()):
            for entry in statement["claims"]:
                columns = re.findall(r"\{(\w+)\}", str(entry["expect"].get("value", "")))
                if "each" not in entry or len(columns) != 1:
                    continue
                rows = published_rows(with_paper(entry["each"], file.parent.name))
                values = pd.to_numeric([row[columns[0]] for row in rows])
                values = values[np.isfinite(values)]
                if len(values) < 4 or not np.ptp(values):
                    continue
                ids = [one["id"] for one in expand({"id": statement["id"]} | entry, file.parent.name)]
                wide |= {id for id in ids if 2 * by_id[id].expect.tolerance > np.ptp(values)}
    unknown = {id for id in wide if not id.startswith(tuple(WIDER_THAN_THE_TABLE))}
    assert unknown == set()
    assert {name for name in WIDER_THAN_THE_TABLE if not any(id.startswith(name) for id in wide)} == set(), "not needed"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  source: Fig. 2a\n", "", [":2: SA-x", "source", "missing"]),
        (
            "sarpkaya2025/fig2a, where",
            "fig99, where",
            [":8: SA-x", "at.figure: there is no figure 'sarpkaya2025/fig99'"],
        ),
        ("network.buffer.bdp: 4", "network.buffer.bdp: 5", ["no point of sarpkaya2025/fig2a matches"]),
        (", flows.0.count: 1", "", ["6 points of sarpkaya2025/fig2a match", "one is meant"]),
        (
            "flows.0.count: 1}}",
            "flows.0.count: 1}, along: network.buffer.bdp}",
            ["along: one point", "along needs several"],
        ),
        ("flows.0.count: 1}}", "flows.0.count: 1}, group: 2}", ["group 2 does not exist (groups 0 to 1)"]),
        ("network.buffer.bdp: 4", "buffer: 4", ["'buffer' tells no points", "buffer_bdp"]),
        ("metric: share_of_capacity", "metric: share", ["no column 'share'"]),
        ("metric: share_of_capacity", "metric: '1'", ["metric: reads no column"]),
        ("metric: share_of_capacity", "metric: x.share_of_capacity", ["no column 'x.share_of_capacity'"]),
        ("metric: share_of_capacity", "metric: __import__('os')", ["no function __import__"]),
        ("metric: share_of_capacity", "metric: share_of_capacity if 1 else 2", ["not allowed"]),
        ("value: 0.5, within: 0.1", "value: 0.5", ["within"]),
        ("value: 0.5, within: 0.1", "value: 0.5, within: 0.1, above: 0.3", ["exactly one"]),
        ("  source: Fig. 2a", "  paper: sarpkaya2025\n  source: Fig. 2a", [":4: SA-x: paper", "remove it"]),
        ("exactness: raw data", "exactness: guess", ["exactness", "raw data"]),
        ("  because:", "  becuse: 1\n  because:", [":6: SA-x: becuse: unknown key", "did you mean 'because'?"]),
        (
            "value: 0.5, within",
            "value: 0.5, witin",
            [":10: SA-x: claim 1: expect: witin: unknown key", "did you mean 'within'?"],
        ),
        (
            "value: 0.5, within: 0.1",
            "trend: rising",
            ["expect.trend: needs a metric with a value for each of at least 4"],
        ),
        ("value: 0.5, within: 0.1", "value: 0.5, within: 0", ["expect.within", "greater than 0"]),
        ("value: 0.5, within: 0.1", "value: .inf, within: 0.1", ["claims.yaml:", ".inf: a number is finite"]),
        (
            "metric: share_of_capacity",
            "metric: crossing(share_of_capacity)",
            ["has 1 arguments", "crossing(x, y, fraction)"],
        ),
        ("metric: share_of_capacity", "metric: rms(1, 2)", ["rms(1, 2)", "rms(x)"]),
        ("metric: share_of_capacity", "metric: 'grouped_rms(loss, flows)'", ["no column 'flows'"]),
        ("metric: share_of_capacity", "metric: 2 ** loss", ["exponent"]),
        ("  because: two laboratories differ by so much\n", "", [": SA-x: claim 1: because: is missing"]),
        ("    - at:", "    - variant: one reading\n      at:", ["SA-x: its claims have variants", "'open'"]),
        ("says: One flow", "says: One {bbr_flows} flow", [":3: SA-x: says", "only a claim has a table's row"]),
        (
            "    - at:",
            "    - each: fig2z\n      at:",
            [": SA-x: claim 1: each: there is no table data/sarpkaya2025/fig2z.csv"],
        ),
        ("    - at:", "    - rows: {bbr_flows: 1}\n      at:", ["rows", "each"]),
        (
            "    - at:",
            f"    - each: fig2a\n      rows: {{bbr_flows: {10**300}}}\n      at:",
            ["rows.bbr_flows: no row of the table has 1000"],
        ),
        ("network.buffer.bdp: 4", f"network.buffer.bdp: {10**300}", ["no point of sarpkaya2025/fig2a matches"]),
        ("flows.0.count: 1}", "flows.0.count: '{bbr_flows}'}", ["'{bbr_flows}' stands for a cell", "each"]),
        ("    - at:", "    - each: fig2a\n      rows: {bbr_flow: 1}\n      at:", ["no column 'bbr_flow'", "bbr_flows"]),
        (
            "    - at:",
            "    - each: fig2a\n      rows: {bbr_flows: 3}\n      at:",
            ["rows.bbr_flows: no row of the table has 3"],
        ),
        ("    - at:", "    - each: fig2a\n      at:", ["another with this id"]),
        ("  claims:\n", "  claims: []\n  x:\n", ["claims: a list of at least one claim"]),
        ("within: 0.1", "within: 0.1 +", ["expect.within", "'0.1 +' is not an expression"]),
        ("within: 0.1", "within: 2 * loss", ["expect.within", "a row's cells only (found: loss)"]),
        ("within: 0.1", "within: 1 / 0", ["expect.within", "finite"]),
        ("value: 0.5, within: 0.1", "value: 1.0e+308, within: 1.0e+308", ["expect: its bounds are too large"]),
        ("value: 0.5, within: 0.1", "range: [-1.0e+308, 1.0e+308]", ["expect: its bounds are too large"]),
    ],
)
def test_refusals_name_line_and_reason(tmp_path, old, new, words):
    assert old in GOOD
    file = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(UserError) as refused:
        load_statements([file])
    message = str(refused.value)
    assert "claims.yaml" in message
    assert all(word in message for word in words), message


def test_claims_of_figures_that_are_not_run_are_not_compared(tmp_path):
    """Whoever runs one figure does not wait for those of all papers; a figure that there is not is told all the same."""
    no_point = written(tmp_path, GOOD.replace("network.buffer.bdp: 4", "network.buffer.bdp: 5"))
    assert len(load_statements([no_point], figures=["tang/fig2"])) == 1
    with pytest.raises(UserError, match="no point of sarpkaya2025/fig2a matches"):
        load_statements([no_point], figures=["tang/fig2", "sarpkaya2025/fig2a"])
    with pytest.raises(UserError, match="there is no figure 'sarpkaya2025/fig99'"):
        load_statements([written(tmp_path, GOOD.replace("sarpkaya2025/fig2a", "fig99"))], figures=["tang/fig2"])
    for metric, words in (("few.loss", "metric: there is no column .few.loss."), ("mean(loss", ":9: SA-x: .*metric: ")):
        with pytest.raises(UserError, match=words):
            load_statements([written(tmp_path, GOOD.replace("metric: share_of_capacity", f"metric: {metric}"))], figures=["tang/fig2"])  # fmt: skip


def test_a_claim_twice(tmp_path):
    with pytest.raises(UserError, match=r":12: SA-x: id: SA-x: there is another"):
        load_statements([written(tmp_path, GOOD + GOOD)])
    second = written(tmp_path, GOOD, "ware2019")
    with pytest.raises(UserError, match=r"ware2019/claims.yaml:2: SA-x: id: SA-x: there is another"):
        load_statements([written(tmp_path, GOOD), second])


def test_the_folder_is_the_paper(tmp_path):
    with pytest.raises(UserError, match=r"nobody/claims.yaml: its folder must be named as one of scenarios/"):
        load_statements([written(tmp_path, GOOD, "nobody")])


def test_a_term_that_nothing_reads_is_refused(tmp_path):
    at = "{figure: sarpkaya2025/fig2a, where: {network.buffer.bdp: 4, flows.0.count: 1}}"
    named = GOOD.replace(at, f"{{a: {at}, b: {at}}}").replace("share_of_capacity", "a.share_of_capacity")
    with pytest.raises(
        UserError, match=r"at\.b: nothing reads it; write 'b\.' and a column in metric, or leave it out"
    ):
        load_statements([written(tmp_path, named)])


def test_an_order_is_of_series_over_the_same_points(tmp_path):
    along = ORDER.replace("network.buffer.bdp: 4, flows.0.count: 1}", "flows.0.count: 1}, along: network.buffer.bdp")
    with pytest.raises(UserError, match="each expression must have a value .* has 7, .* has one number"):
        load_statements([written(tmp_path, along)])
    both = along.replace("network.buffer.bdp: 4, flows.0.count: 4}", "flows.0.count: 4}, along: network.buffer.bdp")
    assert only_claim(tmp_path, both).expect.kind == "order"


def test_own_is_the_statement_s(tmp_path):
    own = GOOD.replace("  source:", "  own: true\n  source:")
    assert only_claim(tmp_path, own).own
    assert not only_claim(tmp_path, GOOD).own
    with pytest.raises(UserError, match="own: belongs to the statement"):
        load_statements([written(tmp_path, GOOD.replace("    - at:", "    - own: true\n      at:"))])


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_expressions_compute(a, b):
    tree = expressions.parse("2 * (x - y) / y ** 2 + abs(-x)")
    assert expressions.names(tree) == {"x", "y"}
    assert expressions.evaluate(tree, {"x": a, "y": b}) == pytest.approx(2 * (a - b) / b**2 + abs(a))


@pytest.mark.parametrize("text", ["", "x +", "x.y.z", "[1, 2]", "x[0]", "lambda: 1", "'a'", "x < 1", "f(x=1)", "x and y", "open('a')", "True"])  # fmt: skip
def test_expressions_refuse(text):
    with pytest.raises(UserError):
        expressions.parse(text)


def test_expressions_know_a_number_from_a_series():
    scalar = {
        t: expressions.points_of(expressions.parse(t), {"s": 5}) is None
        for t in ("s", "abs(s)", "mean(s)", "1 - x", "s / max(s)")
    }
    assert scalar == {"s": False, "abs(s)": False, "mean(s)": True, "1 - x": True, "s / max(s)": False}


TERMS = {
    "seven": "{figure: fig2a, where: {flows.0.count: 1}, along: network.buffer.bdp}",
    "three": "{figure: fig2a, where: {flows.0.count: 1, network.buffer.bdp: [1, 2, 4]}, along: network.buffer.bdp}",
    "six": "{figure: fig2a, where: {network.buffer.bdp: 4}, along: flows.0.count}",
    "one": "{figure: fig2a, where: {flows.0.count: 1, network.buffer.bdp: 4}}",
}


def with_terms(metric, expect):
    """A claim on those of TERMS that its metric reads."""
    terms = "".join(f"        {name}: {term}\n" for name, term in TERMS.items() if f"{name}." in metric)
    return GOOD.split("    - at:")[0] + f"    - at:\n{terms}      metric: {metric}\n      expect: {expect}\n"


@pytest.mark.parametrize(
    ("metric", "expect", "words"),
    [
        ("fraction_above(seven.loss, three.loss)", "{above: 0}", "limit of fraction_above must be one number (found: a series of 3 points)"),
        ("1 - crossing(seven.buffer_bdp, seven.loss, -seven.loss)", "{above: 0}", "fraction of crossing must be one number (found: a series of 7"),
        ("six.loss - mean(seven.loss)", "{trend: rising}", "is along the points of 'seven', but metric has a value for each of those of six; write six before seven"),
    ],
)  # fmt: skip
def test_a_claim_that_could_not_be_judged_is_refused(tmp_path, metric, expect, words):
    with pytest.raises(UserError) as refused:
        load_statements([written(tmp_path, with_terms(metric, expect))])
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("metric", "expect"),
    [
        ("fraction_above(seven.loss, mean(three.loss))", "{above: 0}"),
        ("crossing(seven.buffer_bdp, seven.loss, one.loss)", "{above: 0}"),
        ("seven.loss - mean(six.loss)", "{trend: rising}"),
        ("abs(six.loss - one.loss)", "{trend: rising}"),
    ],
)
def test_a_claim_of_several_series_can_be_judged(tmp_path, metric, expect):
    claim = only_claim(tmp_path, with_terms(metric, expect))
    (figure,) = figures_at("full", ["sarpkaya2025/fig2a"])
    made = table(figure, lambda point, seed: 0.5 + seed / 100)
    verdict = judge_claim(claim, {figure.id: figure}, {figure.id: made})
    assert verdict.outcome and verdict.outcome.seeds, verdict.why


def test_the_series_of_an_expression():
    several = {"a.x", "b.x"}
    found = {
        t: expressions.series_in(expressions.parse(t), several)
        for t in ("a.x", "-a.x / c.x", "abs(a.x) + mean(b.x)", "mean(a.x)", "a.x - b.x")
    }
    assert list(found.values()) == [{"a.x"}, {"a.x"}, {"a.x"}, set(), several]


def test_bounds_choose_points():
    points = full_figures()["cao2019/fig5"].points
    between = Term(
        figure="cao2019/fig5", where={"case": "bbr1", "buffer_bdp": {"above": 0.5, "below": 1}}, along="buffer_bdp"
    )
    found = [p.traits["buffer_bdp"] for p in select(between, points)]
    assert found == sorted(
        p.traits["buffer_bdp"] for p in points if p.values["case"] == "bbr1" and 0.5 < p.traits["buffer_bdp"] < 1
    )
    assert len(found) == 19
    deep = Term(figure="cao2019/fig5", where={"case": "bbr1", "buffer_bdp": {"above": 1}}, along="buffer_bdp")
    assert len(select(deep, points)) == 232
    assert select(Term(figure="cao2019/fig5", where={"case": {"above": 1}}), points) == [], (
        "text is not between numbers"
    )


@pytest.mark.parametrize("bounds", [{}, {"over": 1}, {"above": "much"}, {"above": 1, "upto": 2}])
def test_bounds_are_above_and_below(bounds):
    """Also those among alternatives."""
    for want in (bounds, [2, bounds], [[bounds]]):
        with pytest.raises(ValidationError, match="must be bounds"):
            Term(figure="cao2019/fig5", where={"buffer_bdp": want})
    Term(figure="cao2019/fig5", where={"buffer_bdp": [{"above": 1, "below": 2}, {"above": 8}, 4]})


def test_crossing():
    x, y = np.array([0.3, 0.1, 0.2, 0.0]), np.array([10.0, 100.0, 90.0, 100.0])
    assert of_series.crossing(x, y, 0.5) == pytest.approx(0.25)
    assert math.isnan(of_series.crossing(x, np.ones(4), 0.5))


@pytest.mark.parametrize("name", sorted(set(expressions.FUNCTIONS) - {"first", "last", "abs"}))
def test_a_number_of_all_points_needs_a_value_of_each(name):
    """So a seed that only some points have is none of a claim's numbers; first and last read one point each."""
    function = expressions.FUNCTIONS[name]
    arguments = ["0.5" if a in function.numbers else ("y", "x", "x")[i] for i, a in enumerate(function.arguments)]
    for column in ("y", "x")[: sum(a != "0.5" for a in arguments)]:
        columns = {"x": np.arange(40.0), "y": np.tile([3.0, 1.0], 20)[::-1] * np.arange(40.0, 0, -1)}
        tree = expressions.parse(f"{name}({', '.join(arguments)})")
        assert np.isfinite(expressions.evaluate(tree, columns)), name
        columns[column][5] = np.nan
        assert np.isnan(expressions.evaluate(tree, columns)), f"{name}: {column}"


def test_the_tree_finds_a_rule():
    rng = np.random.default_rng(1)
    features = rng.uniform(0, 1, (200, 3))
    won = features[:, 0] > 0.6
    accuracy = of_series.tree_accuracy(won.astype(float), np.full(200, 0.5), *features.T)
    assert accuracy > 0.95
    assert math.isnan(of_series.tree_accuracy(np.ones(200), np.zeros(200), *features.T)), "one kind only"


def test_the_documentation_names_every_function():
    text = (paths.ROOT / "docs" / "reference" / "claims.md").read_text(encoding="utf-8")
    for name, function in expressions.FUNCTIONS.items():
        arguments = ", ".join(function.arguments)
        assert f"`{name}`" in text or f"`{name}({arguments})`" in text, f"{name}({arguments})"


def test_numbers_are_for_reading():
    said = [rounded(v, 3) for v in (81140.2, 235798.0, 0.01234, -0.5, 0.0, 2.0, float("nan"))]
    assert said == ["81100", "236000", "0.0123", "-0.5", "0", "2", "nan"]
    assert str(Expectation(value=235798, within_percent=50)) == "235798 ± 118000"
    assert str(Expectation(range=[102, 408])) == "102 to 408"
    assert str(Expectation(below=50)) == "< 50"


def test_a_claim_for_each_row_of_a_table(tmp_path):
    (statement,) = load_statements([written(tmp_path, EACH)])
    rows = pd.read_csv("data/sarpkaya2025/fig2a.csv")
    assert len(statement.claims) == len(rows)
    for claim, row in zip(statement.claims, rows.itertuples(), strict=True):
        assert claim.id == f"SA-p-N{row.bbr_flows}-X{row.buffer_bdp}"
        assert claim.expect.value == row.share_of_capacity
        assert claim.says == f"{row.bbr_flows} flows in {row.buffer_bdp} BDP take {row.share_of_capacity}."
        (point,) = select(claim.at[""], full_figures()["sarpkaya2025/fig2a"].points)
        assert point.values == {"network.buffer.bdp": row.buffer_bdp, "flows.0.count": row.bbr_flows}


def test_rows_choose_and_empty_cells_are_skipped(tmp_path):
    chosen = EACH.replace("each: fig2a", "each: fig2a\n      rows: {bbr_flows: [1, 4], buffer_bdp: 4}")
    (statement,) = load_statements([written(tmp_path, chosen)])
    assert [c.id for c in statement.claims] == ["SA-p-N1-X4", "SA-p-N4-X4"]
    rows = [{"a": "1", "b": "2.50"}, {"a": "3", "b": ""}, {"a": "5", "b": "NaN"}, {"a": "x", "b": "1e3"}]
    with mock.patch("bbrlab.claims.expand.published_rows", return_value=rows):
        found = expand({"each": "t", "id": "I-{a}", "deep": [{"value": "{b}", "text": "b is {b}"}]}, "p")
    assert found == [
        {"id": "I-1", "deep": [{"value": 2.5, "text": "b is 2.50"}]},
        {"id": "I-x", "deep": [{"value": 1000.0, "text": "b is 1e3"}]},
    ]


def test_a_number_that_no_float_holds_equals_none():
    assert number_or_text("9" * 400) == "9" * 400
    assert list(Cells(pd.Series([1, 2.5, math.nan])).agree(10**400)) == [False, False, False]
    assert list(Cells(pd.Series([1, 2.5, math.nan])).agree(2.5)) == [False, True, False]


NUMBERS = (
    st.floats(allow_nan=True, allow_infinity=True)
    | st.integers(-(10**400), 10**400)
    | st.sampled_from([0, 1, 1 + 9e-6, 1 - 1.1e-5])
)


@given(st.lists(st.floats(), min_size=1, max_size=4), NUMBERS)
def test_a_column_is_compared_cell_by_cell(cells, wanted):
    """All cells at once agree as each would alone, whatever the numbers."""
    found = Cells(pd.Series([*cells, 1.0])).agree(wanted)
    assert found.tolist() == [same_number(cell, wanted, JOINED) for cell in [*cells, 1.0]]


def test_what_is_expected_may_be_arithmetic_on_a_row_s_cells(tmp_path):
    arithmetic = EACH.replace("within: 0.05", 'within: "max(0.05, ({two_sem_high} - {two_sem_low}) / 2)"')
    (statement,) = load_statements([written(tmp_path, arithmetic.replace("fig2a", "fig2c"))])
    rows = pd.read_csv("data/sarpkaya2025/fig2c.csv")
    found = {c.id: c.expect.within for c in statement.claims}
    assert found["SA-p-N8-X64"] == pytest.approx(0.0734)  # of three trials one had more goodput than the link carries
    assert sum(within == 0.05 for within in found.values()) == len(rows) - 1
    ranged = EACH.replace(
        'value: "{share_of_capacity}", within: 0.05', 'range: ["{two_sem_low} - 0.05", "{two_sem_high}"]'
    )
    (statement,) = load_statements([written(tmp_path, ranged)])
    assert statement.claims[0].expect.bounds == pytest.approx((0.7613, 0.8169))


def test_every_function_takes_one_number():
    """The mean of one number is that number; its root mean square ended in a traceback."""
    for name, function in expressions.FUNCTIONS.items():
        least, _ = function.arity
        expressions.evaluate(expressions.parse(f"{name}({', '.join(['3'] * least)})"), {})
    assert expressions.evaluate(expressions.parse("rms(0 - 3)"), {}) == 3


def test_the_number_of_flows_groups_a_panel(tmp_path):
    text = GOOD.replace(
        "where: {network.buffer.bdp: 4, flows.0.count: 1}", "along: [flows.0.count, network.buffer.bdp]"
    )
    claim = only_claim(
        tmp_path, text.replace("metric: share_of_capacity", "metric: 'grouped_rms(share_of_capacity, count)'")
    )
    assert claim.columns == {"share_of_capacity", "count"}
    content = {"share_of_capacity": np.array([3.0, 4.0, 0.0, 0.0]), "count": np.array([1, 1, 2, 2])}
    assert expressions.evaluate(claim.trees[0], content) == pytest.approx(math.sqrt(12.5) / 2), "not 2.5, of all pooled"


def test_what_a_statement_says_its_claims_inherit(tmp_path):
    text = GOOD.replace("  claims:", "  chosen_after: a comparison\n  shortest_s: 60\n  claims:")
    head, claim = text.split("    - at:")
    text = f"{head}    - id: SA-y\n      because: another reason\n      at:{claim}    - id: SA-z\n      at:{claim}"
    (statement,) = load_statements([written(tmp_path, text)])
    second, first = statement.claims
    assert (first.id, second.id) == ("SA-z", "SA-y")
    assert (first.chosen_after, first.shortest_s, first.because) == ("a comparison", 60, statement.because)
    assert second.because == "another reason"
    assert first.says == second.says == statement.says


def test_the_reason_of_a_trend_names_its_own_limit():
    """A rank correlation beyond so much; without a limit of its own, if at all, the one of all trends."""
    trends = [c for c in claims_of(all_statements()) if c.expect.trend]
    assert trends
    for claim in trends:
        named = [float(limit) for limit in re.findall(r"beyond -?(0?\.\d+)", claim.because)]
        assert "the sign of the rank" not in claim.because, claim.id
        assert named == [claim.expect.beyond] or (not claim.expect.beyond and named in ([], [0.5])), claim.id


def versions_in(claim):
    """The lab's own versions of BBR in the runs that a claim reads."""
    return algorithms_of(claim) & {"bbr2", "bbr3"}


def test_what_depends_on_a_reading_of_the_drafts_says_so():
    """BBRv2 and BBRv3 read them in ways that were chosen after comparisons: every statement on them names them, and no other."""
    statements = all_statements()
    there = {s.id: set().union(*(versions_in(claim) for claim in s.claims)) for s in statements}
    assert {s.id: set(s.readings) for s in statements} == there
    assert [c.id for c in claims_of(statements) if not versions_in(c) <= set(c.readings)] == []


def test_what_is_reproduced_has_no_cause():
    """A cause says why something is not, or not wholly, reproduced: at a statement that what ships reproduces it is a leftover."""
    known = shipped_statements(paths.ROOT / "shipped").set_index("id")["verdict"]
    causes = [s.id for s in all_statements() if s.cause]
    assert causes
    assert [id for id in causes if known.get(id) == REPRODUCED] == []


def test_later_choices_are_told_with_the_readings():
    assert later_choices(None, []) == ""
    assert later_choices("the tolerance: after a look", []) == "The tolerance: after a look."
    told = later_choices("the tolerance: after a look", ["bbr3"])
    assert told.startswith("The tolerance: after a look. Readings of the drafts in BBRv3")
    assert "BBRv2" in later_choices(None, ["bbr2", "bbr3"])


@pytest.mark.parametrize("id", ["zeynali2024/fig1", "zeynali2024/red"])
def test_quick_has_every_way_in_which_bbr_may_use_ecn(id):
    """The paper does not say which; quick must not leave out those that fail."""
    (quick,) = figures_at("quick", [id])
    assert {p.values["case"] for p in quick.points} == {p.values["case"] for p in full_figures()[id].points}


@pytest.mark.parametrize("id", ["CA-15", "CA-16", "CA-17"])
def test_a_cliff_is_looked_for_among_all_losses(id):
    (claim,) = [c for c in claims_of(all_statements()) if c.id == id]
    (term,) = claim.at.values()
    losses = {p.values["network.loss"] for p in full_figures()["cao2019/fig7"].points}
    assert {p.values["network.loss"] for p in select(term, full_figures()[term.figure].points)} == losses


@pytest.mark.parametrize("statement", ["TA-06", "TA-07", "TA-08", "TA-13", "TA-loss"])
def test_tang_s_delays_are_one_way(statement):
    """A propagation delay of 100 ms is an RTT of 0.2 s (section V-A), so that 10 and 50 ms (section V-C) are RTTs of 20 and 100."""
    judged = [c for c in claims_of(all_statements()) if c.statement == statement and c.role != "control"]
    terms = [t for c in judged for t in c.at.values()]
    found = {p.values["network.rtt_ms"] for t in terms for p in select(t, full_figures()[t.figure].points)}
    assert found == {20, 100}


def test_what_a_claim_gives_a_range_of_has_no_published_value():
    """Of all claims here: a value is one that a claim has, or a published table; a range has its bounds alone, and so has our
    reading of words."""
    claims = claims_of(load_statements(known_good=True))
    kinds = {claim.id: "range" if claim.exactness in NOT_PUBLISHED else claim.expect.kind for claim in claims}
    found = [
        cell
        for figure in full_figures().values()
        for groups in expected_at(figure, figure.points, claims).values()
        for cells in groups.values()
        for cell in cells
        if cell
    ]
    ranges = [cell for cell in found if cell.value is None]
    assert {kinds[cell.claim] for cell in ranges} == {"range"}
    assert all(math.isfinite(cell.low) and math.isfinite(cell.high) for cell in ranges)
    assert all(kinds[cell.claim] != "range" for cell in found if cell.value is not None and cell.low is not None)


def test_a_point_s_own_published_value_is_that_of_its_table():
    """Fig. 4's table beside fig4_fluid.csv, with which statements earlier in the file compare the same metric."""
    figure = full_figures()["sarpkaya2025/fig4"]
    cells = expected_at(figure, figure.points, claims_of(load_statements(known_good=True)))["jain_index_all"]["run"]
    measured = pd.read_csv("data/sarpkaya2025/fig4.csv").set_index(["case", "buffer_bytes"])["jain_index"]
    for point, cell in zip(figure.points, cells, strict=True):
        assert cell.value == measured[point.values["case"], point.values["network.buffer.bytes"]], point.label


def test_another_paper_s_model_and_our_reading_of_words_are_not_published_values():
    """What fig4_fluid.csv has of loss is the fluid model's, of three pairs even this package's; that a half is "about equally" is
    our reading."""
    claims = {claim.id: claim for claim in claims_of(load_statements(known_good=True))}
    fig4, tang = full_figures()["sarpkaya2025/fig4"], full_figures()["tang/fig5"]
    assert any("loss" in claim.columns and fig4.id in claim.figures for claim in claims.values())
    assert "loss" not in expected_at(fig4, fig4.points, claims.values())
    halves = [cell for cell in expected_at(tang, tang.points, claims.values())["share_of_goodput"]["0"] if cell]
    assert [claims[cell.claim].expect.value for cell in halves] == [0.5, 0.5]
    assert [(cell.value, cell.low, cell.high) for cell in halves] == [(None, 0.4, 0.6)] * 2


@pytest.mark.parametrize(
    ("metric", "column", "times"),
    [
        ("jain_index_all", "jain_index", 1),
        ("loss", "loss_percent", 100),
        ("occupancy", "occupancy_percent", 100),
        ("link_utilisation", "utilisation_percent", 100),
    ],
)
def test_a_paper_about_its_own_model_publishes_what_that_gives(metric, column, times):
    figure = full_figures()["scherrer2022/droptail"]
    cells = expected_at(figure, figure.points, claims_of(load_statements(known_good=True)))[metric]["run"]
    table = pd.read_csv("data/scherrer2022/aggregates.csv")
    table = table.assign(case=table["cca_first"] + "+" + table["cca_second"]).set_index(["case", "buffer_bytes"])[
        column
    ]
    there = {
        (p.values["case"], p.values["network.buffer.bytes"]): c for p, c in zip(figure.points, cells, strict=True) if c
    }
    assert len(there) == 28
    assert {at: cell.value for at, cell in there.items()} == pytest.approx({at: table[at] / times for at in there})
