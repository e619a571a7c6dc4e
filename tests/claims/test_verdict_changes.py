"""The page of verdicts before and after."""

from __future__ import annotations

import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.claims.load import load_statements
from bbrlab.results.best_scale import shipped_statements
from docs._make.verdict_changes import PAGE, Changes, changed, page, read_changes, verdict_of


def test_the_page_is_of_what_ships():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make format"


def test_every_changed_verdict_has_a_reason():
    rows = changed(read_changes(), shipped_statements(paths.ROOT / "shipped"))
    assert list(rows.loc[rows["why"] == "", "id"]) == [], "say why in data/verdict_changes.yaml"


def test_reasons_name_statements_that_there_are():
    changes = read_changes()
    known = {s.id for s in load_statements(known_good=True)} | set(changes.before)
    assert not {id for r in changes.reasons for id in r.statements} - known


def test_what_got_worse_and_better_with_its_reasons():
    reason = {"kind": "rules", "reason": "a trend has a least tau", "statements": ["A", "B"]}
    before = {
        "A": "reproduced",
        "B": "partly reproduced: 1 of 2",
        "C": "inconclusive",
        "D": "partly run: 1 of 2 judged",
        "E": "reproduced",
        "G": "partly reproduced: 1 of 4",
        "H": "partly reproduced: 1 of 4",
    }
    claims = {"kind": "claims", "reason": "each printed number counts", "statements": ["G"]}
    changes = Changes(commit="x", scale="full", before=before, reasons=[reason, claims])
    now = pd.DataFrame([
        ("A", "not reproduced", "not reproduced"), ("B", "reproduced as read", "reproduced as read: one way"),
        ("C", "inconclusive", "inconclusive"), ("D", "reproduced", "reproduced"), ("F", "reproduced", "reproduced"),
        ("G", "partly reproduced", "partly reproduced: 3 of 4 claims"), ("H", "partly reproduced", "partly reproduced: 3 of 4 claims"),
    ], columns=["id", "verdict", "in_words"]).assign(scale="quick")  # fmt: skip
    found = changed(changes, now).set_index("id")
    assert found["better"].to_dict() == {"A": -1, "B": 1, "D": 0, "E": 0, "G": 0, "F": 0}
    assert found.index[found["same"]].to_list() == ["G"], "H has no reason"
    assert found.loc["A", "why"] == "**rules**: a trend has a least tau"
    assert (found.loc["B", "now"], found.loc["E", "now"], found.loc["F", "before"]) == (
        "reproduced as read: one way (quick)", "is gone", "is new",
    )  # fmt: skip
    assert verdict_of("partly run: 3 of 4 judged") == "partly run"


def test_a_kind_that_there_is_not_is_named(tmp_path):
    file = tmp_path / "changes.yaml"
    file.write_text(
        "commit: x\nscale: full\nbefore: {}\nreasons:\n  - {kind: mood, reason: it was a Friday, statements: [A]}\n"
    )
    with pytest.raises(UserError, match=r"changes.yaml: reasons.0.kind"):
        read_changes(file)
