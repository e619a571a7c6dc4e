"""A rubric and a submission that gets full marks, whose guests run once for all tests that copy it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.graded import make_submission, write_rubric


@pytest.fixture(scope="session")
def rubric(tmp_path_factory) -> Path:
    return write_rubric(tmp_path_factory.mktemp("rubric"))


@pytest.fixture(scope="session")
def good(tmp_path_factory, rubric) -> Path:
    return make_submission(tmp_path_factory.mktemp("good") / "ada", rubric)
