"""Some hundred mutated scenario and claims files (tests/fuzz_scenarios.py, tests/fuzz_claims.py): understood or refused in words, never a traceback."""

from __future__ import annotations

import pytest

from tests import fuzz_claims
from tests.fuzz_scenarios import fuzz


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
    found, failures = fuzz_claims.try_all(200, seed=17)
    assert not failures, failures[0]
    assert min(found["understood"], found["refused"]) > 5, "both ways are tried"


@pytest.mark.slow
def test_many_mutated_claims_files():
    _, failures = fuzz_claims.try_all(1000, seed=18)
    assert not failures, failures[0]
