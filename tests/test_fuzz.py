"""Some hundred mutated scenario files (tests/fuzz_scenarios.py): understood or refused in words, never a traceback."""

from __future__ import annotations

import pytest

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
