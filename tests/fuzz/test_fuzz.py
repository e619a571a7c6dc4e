"""Some hundred mutated files of each kind that a user writes (beside this file): understood or refused in words, never a traceback."""

from __future__ import annotations

import pytest

from tests.fuzz import claims as fuzz_claims
from tests.fuzz import files as fuzz_files
from tests.fuzz import submissions as fuzz_submissions
from tests.fuzz.scenarios import fuzz
from tests.graded import STUDENT, make_submission, write_rubric


def test_mutated_scenarios_are_understood_or_refused():
    outcomes, crashes = fuzz(300, seed=1)
    assert not crashes, crashes[0]
    assert outcomes["accepted"] > 20, "mutants that are refused at once try nothing"
    assert outcomes["refused"] > 100


@pytest.mark.slow
def test_many_mutated_scenarios():
    _, crashes = fuzz(3000, seed=2)
    assert not crashes, crashes[0]


def test_no_mutated_claims_file_ends_in_a_traceback():
    found, failures = fuzz_claims.try_all(20, seed=17)
    assert not failures, failures[0]
    assert min(found["understood"], found["refused"]) > 2, "both ways are tried"


@pytest.mark.slow
def test_many_mutated_claims_files():
    _, failures = fuzz_claims.try_all(2000, seed=18)
    assert not failures, failures[0]


@pytest.mark.parametrize("kind", fuzz_files.USES)
def test_mutated_files_are_understood_or_refused(kind):
    outcomes, crashes = fuzz_files.fuzz(kind, 100, seed=1)
    assert not crashes, crashes[0]
    assert outcomes["understood"] > 3, "mutants that are refused at once try nothing"
    assert outcomes["refused"] > 30


@pytest.mark.slow
@pytest.mark.parametrize("kind", fuzz_files.USES)
def test_many_mutated_files(kind):
    _, crashes = fuzz_files.fuzz(kind, 2000, seed=22)
    assert not crashes, crashes[0]


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    """A submission that gets full marks, and its rubric."""
    folder = tmp_path_factory.mktemp("assignment")
    rubric = write_rubric(folder)
    return make_submission(folder / STUDENT, rubric), rubric


@pytest.mark.guest
def test_mutated_submissions_are_graded(assignment):
    found, crashes = fuzz_submissions.fuzz(*assignment, 30, seed=1)
    assert not crashes, crashes[0]
    assert found["fewer"] > 10
    assert found["full marks"] > 1, "what is broken beyond reading tries nothing"


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(3600)
def test_many_mutated_submissions(assignment):
    _, crashes = fuzz_submissions.fuzz(*assignment, 2000, seed=22)
    assert not crashes, crashes[0]
