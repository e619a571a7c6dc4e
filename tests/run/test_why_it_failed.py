"""What is told of a run that fails in a process of its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bbrlab.base import python
from bbrlab.base.errors import why_it_failed
from bbrlab.comparison import verify
from bbrlab_apps.grading import rerun
from bbrlab_apps.grading.rubric import Limits

TRACEBACK = """Traceback (most recent call last):
  File "x.py", line 1, in <module>
    1 / 0
ZeroDivisionError: division by zero
"""
TOLD = [
    (TRACEBACK, "ZeroDivisionError: division by zero"),
    ("bbrlab: x.yaml:3: no such key\n", "x.yaml:3: no such key"),
    ("a warning of a library\nbbrlab: x.yaml:3: no such key\nx.yaml:4: another\n", "x.yaml:3: no such key"),
    ("", "status 3"),
]


@pytest.mark.parametrize(("errors", "why"), TOLD)
def test_why_a_process_failed(errors, why):
    assert why_it_failed(errors, 3) == why


@pytest.fixture(params=TOLD, ids=[why for _, why in TOLD])
def failing(request, tmp_path, monkeypatch):
    """A program in the place of Python's that says something and fails; what is told of it."""
    errors, why = request.param
    (tmp_path / "errors").write_text(errors)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/errors >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(python, "sys", SimpleNamespace(executable=str(program)))
    return why


def test_a_run_made_again_for_a_grade(failing, tmp_path):
    asked = {"scenario": {}, "name": "x", "seed": 1, "notes": []}
    found = rerun._again(Limits(), asked, 0, None, SimpleNamespace(name="x"), tmp_path / "again")
    assert (found["kind"], found["told"]) == (rerun.FAILED_HERE, failing)


def test_a_run_made_again_to_verify(failing, tmp_path):
    record = SimpleNamespace(kernel=("x", "key"), summary_sha256="0", problems=[], run=SimpleNamespace(seed=1))
    (wrong,) = verify._again(record, {}, Path("point.yaml"), tmp_path, None, []).problems
    assert wrong.what == f"does not run here: {failing}"
