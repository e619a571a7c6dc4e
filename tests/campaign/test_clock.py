"""A clock that jumps: results of a time when it was ahead or behind, and a run in the middle of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.campaign.test_stages import RUNS, checkout, finished  # noqa: F401

DAY_S = 86400


def date(folder: Path, when_s: float) -> None:
    """Let everything in a folder of results be of that time, in the order in which it was made."""
    files = sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_mtime_ns)
    for number, path in enumerate(files):
        os.utime(path, (when_s + number / 1000,) * 2)


@pytest.mark.parametrize("days", [pytest.param(-400, marks=pytest.mark.slow, id="behind"), pytest.param(2, id="ahead")])
def test_results_of_a_clock_that_was_wrong(checkout, finished, days):  # noqa: F811
    """Nothing is made anew for the date alone, and no change is missed."""
    date(checkout / "results", time.time() + days * DAY_S)
    assert finished() == set()
    file = checkout / "mininet/dumbbell.py"
    before = file.read_bytes()
    file.write_bytes(before + b"ANOTHER = 1\n")
    try:
        assert finished() == RUNS - {"burst_notebook"}
    finally:
        file.write_bytes(before)
    assert finished() == set()
