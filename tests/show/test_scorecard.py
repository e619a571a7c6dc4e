"""What is told of the verdicts: the scorecard, a page's tables and findings."""

from __future__ import annotations

import io
import json
from itertools import combinations, product
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from bbrlab.base.errors import UserError
from bbrlab.claims.judge import OWN, judge_all, verdict_frame
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.statement_verdict import statement_frame
from bbrlab.results.algorithm_table import COLOURS, OTHER_COLOURS, QUEUE_COLOUR, QUIET
from bbrlab.results.figures import figures_at
from bbrlab.results.judged import write_verdicts
from bbrlab.results.tables import write_table
from bbrlab.results.verdicts import (
    AS_READ,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    PARTLY_RUN,
    REPRODUCED,
    STATEMENT_VERDICTS,
    statements_beside,
)
from bbrlab.show.terminal import show_verdicts, write_scorecard
from bbrlab.show.verdict_counts import HALF, HARDLY, MOSTLY, STEPS, outcome_words, step
from bbrlab.show.verdicts import LOOKS, colours_css, contrast
from studies.page import MANY, load_page, statement_table
from tests.made_up import EACH, GOOD, partly, series, table, written
from tests.show.colours import apart

FIG2A = "sarpkaya2025/fig2a"
VARIANTS = """
- id: SA-v
  says: Four flows <b>take</b> most.
  source: Fig. 2a
  exactness: raw data
  because: a reason
  open: which of the two was meant
  chosen_after: the larger was chosen by eye
  finding: {text: It is the queue., shows: bbrlab run scenarios/sarpkaya2025/fig2a.yaml --out x}
  claims:
    - {id: SA-v-low, variant: low, at: {figure: fig2a, where: {network.buffer.bdp: 4, flows.0.count: 4}}, metric: share_of_capacity, expect: {above: 0.2}}
    - {id: SA-v-high, variant: high, at: {figure: fig2a, where: {network.buffer.bdp: 4, flows.0.count: 4}}, metric: share_of_capacity, expect: {above: 0.8}}
"""


@pytest.fixture
def judged(tmp_path):
    """Statements of every kind at quick: claims, statements, tables."""
    deep = GOOD.replace("SA-x", "SA-deep").replace("bdp: 4", "bdp: 64").lstrip()
    text = GOOD + series("{below: 2}").replace("SA-x", "SA-s").lstrip() + deep + VARIANTS.lstrip() + EACH.lstrip()
    statements = load_statements([written(tmp_path, text)])
    figures = [partly(f) for f in figures_at("quick", [FIG2A])]
    tables = {FIG2A: table(figures[0], lambda p, s: 0.5 + s / 1000)}
    verdicts = judge_all(claims_of(statements), figures, tables)
    return verdict_frame(verdicts), statement_frame(statements, verdicts), tables


def test_the_scorecard_counts_statements_and_beside_them_claims(judged, tmp_path, capsys):
    claims, statements, tables = judged
    tables[FIG2A].loc[tables[FIG2A]["seed"] == 3, "ok"] = False
    write_scorecard(tables, claims, statements, "quick", tmp_path / "card.json")
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["statements"]["all"] == {
        REPRODUCED: 1, AS_READ: 1, PARTLY: 0, NOT_REPRODUCED: 0, INCONCLUSIVE: 0, PARTLY_RUN: 2, NOT_RUN: 1
    }  # fmt: skip
    assert card["statements"]["sarpkaya2025"] == card["statements"]["all"]
    of_claims = card["claims"]["all"]
    assert of_claims["judged"] == of_claims[REPRODUCED] + of_claims[NOT_REPRODUCED] + of_claims[INCONCLUSIVE]
    assert (
        sum(of_claims[v] for v in (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE, PARTLY_RUN, NOT_RUN)) == len(claims) == 47
    )
    assert of_claims["stand"] == int(claims["stands"].fillna(False).sum()) > 0
    (figure,) = card["figures"]
    assert (figure["runs_failed"], figure["seeds"], figure["seeds_most"]) == (6, 3, 3)
    points = tables[FIG2A].drop_duplicates(["network.buffer.bdp", "flows.0.count"])
    published = pd.read_csv("data/sarpkaya2025/fig2a.csv").set_index(["buffer_bdp", "bbr_flows"])["share_of_capacity"]
    residuals = [0.5015 - published[x, n] for x, n in points[["network.buffer.bdp", "flows.0.count"]].to_numpy()]
    assert figure["rmse"] == pytest.approx((sum(r * r for r in residuals) / len(residuals)) ** 0.5, abs=1e-5)
    said = capsys.readouterr().out
    assert "Statements of the papers" in said and "The claims that test them" in said


def test_the_lab_s_own_readings_are_counted_apart(judged, tmp_path):
    claims, statements, tables = judged
    own = statements["id"] == "SA-v"
    statements, claims = statements.assign(own=own), claims.assign(own=claims["statement"] == "SA-v")
    write_scorecard(tables, claims, statements, "quick", tmp_path / "card.json")
    card = json.loads((tmp_path / "card.json").read_text())
    assert sum(card["statements"]["all"][v] for v in STATEMENT_VERDICTS) == len(statements) - 1
    assert card["statements"][OWN] == dict.fromkeys(STATEMENT_VERDICTS, 0) | {AS_READ: 1}
    assert (card["claims"][OWN][REPRODUCED], card["claims"][OWN]["judged"]) == (1, 2)
    assert "**1** reproduced. Not decided" in outcome_words(statements), "not what is counted apart"
    assert outcome_words(statements).endswith("(And the lab's own: 1 reproduced as read.)")


def test_of_a_paper_at_second_hand_it_is_told_what_came_of_it():
    """Its page said that none of 0 statements was decided yet."""
    row = {"verdict": REPRODUCED, "exactness": "secondary", "own": False}
    assert outcome_words(pd.DataFrame([row])) == "Counted apart, at second hand: 1 reproduced."


def test_every_verdict_has_its_colours():
    assert set(LOOKS) == {*STATEMENT_VERDICTS, *STEPS}
    looks = [LOOKS[name] for name in STEPS]
    for kind in ("css", "mark", "colour"):
        assert len({getattr(look, kind) for look in looks}) == len(STEPS), kind
    assert len({LOOKS[v].terminal for v in STATEMENT_VERDICTS}) == len(STATEMENT_VERDICTS)
    assert all(f".bb-{look.css} {{ --bb: {look.colour}; --bb-ink: {look.ink}; }}" in colours_css() for look in looks)
    assert all(contrast(look.ink, look.colour) >= 4.5 for look in looks), (
        "words on a verdict's colour can be read (WCAG 2, AA)"
    )


@pytest.mark.parametrize("vision", ["normal", "deuteranopia", "protanopia"])
def test_nobody_takes_one_verdict_for_another(vision):
    for one, other in combinations(STEPS, 2):
        assert apart(LOOKS[one].colour, LOOKS[other].colour, vision) > 15, (one, other)


@pytest.mark.parametrize("vision", ["normal", "deuteranopia", "protanopia"])
def test_a_link_s_colour_is_no_algorithm_s(vision):
    for one, other in (*product(OTHER_COLOURS, COLOURS.values()), *combinations(OTHER_COLOURS, 2)):
        assert apart(one, other, vision) > 13, (one, other)


@pytest.mark.parametrize("vision", ["normal", "deuteranopia", "protanopia"])
def test_a_queue_is_told_from_a_full_buffer_and_from_flows(vision):
    assert all(apart(QUEUE_COLOUR, other, vision) > 13 for other in (*COLOURS.values(), *OTHER_COLOURS[:3]))
    assert apart(QUEUE_COLOUR, QUIET, vision) > 30, "on dark pages lighter ones stand for both: two greys became one"


def test_a_colour_has_one_meaning():
    """Algorithms, what is no algorithm, and verdicts: whoever sees all colours takes none for one of another kind."""
    kinds = [COLOURS.values(), OTHER_COLOURS, {LOOKS[name].colour for name in STEPS}]
    for one, other in combinations(kinds, 2):
        for a, b in product(one, other):
            assert apart(a, b) > 15, (a, b)
    assert f"--bb-lines: {' '.join(OTHER_COLOURS)};" in colours_css(), "the site's charts have the same"


@pytest.mark.parametrize(
    ("reproduced", "judged", "name"),
    [(42, 43, MOSTLY), (2, 3, MOSTLY), (1, 2, HALF), (1, 3, HARDLY), (15, 55, HARDLY), (0, 0, PARTLY)],
)
def test_partly_has_three_steps(reproduced, judged, name):
    assert step(PARTLY, reproduced, judged) == name
    assert step(NOT_REPRODUCED, 1, 2) == NOT_REPRODUCED, "of no other verdict"


def test_the_terminal_shows_every_claim_that_was_run_and_counts_the_others(judged):
    claims, statements, _ = judged
    said = Console(file=io.StringIO(), width=200)
    show_verdicts(claims, statements, said)
    text = said.file.getvalue()
    alone = claims.groupby("statement")["id"].transform("size") == 1
    shown = (claims["verdict"] != NOT_RUN) | alone
    assert all(id in text for id in claims.loc[shown, "id"])
    assert not any(f" {id} " in text for id in claims.loc[~shown, "id"])
    counts = claims[~shown].groupby("statement").size()
    assert len(counts) and all(f"  {n} claim{'s' * (n > 1)} " in text for n in counts)
    assert "partly run: 6 of 42 claims" in text
    assert "partly run (so far: reproduced)" in text


def test_a_page_shows_every_claim_and_variant_whichever_way_it_came_out(judged):
    claims, statements, _ = judged
    page = statement_table(statements, claims)
    assert all(id in page for id in [*claims["id"], *statements["id"]])
    assert "SA-v-low: low" in page and "SA-v-high: high" in page
    assert "reproduced as read: low" in page
    assert "open: which of the two was meant" in page and "chosen after a comparison: The larger" in page
    assert "&lt;b&gt;take&lt;/b&gt;" in page, "text is text"
    assert page.count("<details>") == 1, f"only what has more than {MANY} claims is folded"


def test_a_page_takes_verdicts_and_seeds_from_the_tables(judged, tmp_path):
    claims, statements, tables = judged
    runs = pd.concat([tables[FIG2A], tables[FIG2A].query("seed == 1 and `flows.0.count` == 1").assign(seed=4)])
    file = tmp_path / "quick" / "sarpkaya2025.claims.parquet"
    runs_file = tmp_path / "quick" / f"{FIG2A}.parquet"
    write_table(runs, runs_file)
    write_verdicts(claims, statements, file, [runs_file])
    page = load_page("quick", "sarpkaya2025", tmp_path)
    of_points = {p: [r.seed for r in page.runs("fig2a") if r.point.label == p] for p in set(runs["point"])}
    assert sorted(map(len, of_points.values())) == [3, 3, 3, 4, 4, 4]
    assert "**1** reproduced, **1** reproduced as read. Not decided: " in page.glance()
    missed, _, reproduced = page.claims().data.partition("<details><summary>1 reproduced statement</summary>")
    assert "SA-v-high" in missed and "SA-v-high" not in reproduced and reproduced.endswith("</details>")
    assert page.findings() == (
        "- **SA-v**: It is the queue. Shown by `bbrlab run scenarios/sarpkaya2025/fig2a.yaml --out x`."
    )


def test_claims_in_a_file_of_another_name_are_refused():
    assert statements_beside(Path("a/tang.claims.parquet")) == Path("a/tang.statements.parquet")
    with pytest.raises(UserError, match=r"x.parquet: claims stand in a file \[NAME.\]claims.parquet"):
        statements_beside(Path("x.parquet"))
