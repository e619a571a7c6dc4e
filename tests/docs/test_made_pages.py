"""What is made of the documentation is as it would be made now."""

from __future__ import annotations

import importlib
import re

import pytest

from bbrlab.base import paths
from docs._make import MODULES
from docs._make.marks import replace_between


@pytest.mark.parametrize("name", MODULES)
def test_made_pages_are_up_to_date(name):
    stale = [
        str(path.relative_to(paths.ROOT))
        for path, text in importlib.import_module(f"docs._make.{name}").pages().items()
        if path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: make format"


def test_every_maker_is_run():
    there = {p.stem for p in (paths.ROOT / "docs" / "_make").glob("*.py")} - {"__init__", "__main__", "marks"}
    assert there == set(MODULES)


def test_what_is_between_its_marks_is_replaced_and_nothing_else():
    text = "before\n<!-- made by make format: a -->\nold\n<!-- end of a -->\nafter\n"
    assert replace_between(text, "a", "new\n") == text.replace("old", "new")
    for wrong in (text.replace("end of a", "end of b"), text + text, "a page without marks"):
        with pytest.raises(ValueError, match=re.escape("'<!-- made by make format: a -->'")):
            replace_between(wrong, "a", "new")
