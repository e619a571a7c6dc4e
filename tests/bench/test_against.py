"""The benchmark against another commit: what it says of a commit that is not there, and how it counts."""

from __future__ import annotations

import pytest
from rich.console import Console

from bbrlab.base.errors import UserError
from tests.bench import against as bench_against


def test_a_commit_that_is_not_there_is_named():
    with pytest.raises(UserError, match="AGAINST=nothing: there is no such commit"):
        bench_against.checkout_of("nothing", Console())


def test_a_run_is_its_checkouts_own_command_with_all_that_it_starts(tmp_path):
    program = tmp_path / ".venv" / "bin" / "bbrlab"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/bash\necho \"$PWD $*\" >>calls\nsh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'\n"
    )
    program.chmod(0o755)
    found = bench_against.spent(tmp_path, ["paper/figure", "--case", "one"])
    assert found.wall >= found.cpu / 2 > 0.02, "the time of what the command starts counts"
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert call.startswith(f"{tmp_path} run scenarios/paper/figure.yaml --case one --out /")


def test_what_it_runs_is_there():
    for scenario, *_ in bench_against.RUNS.values():
        assert (bench_against.paths.SCENARIOS / f"{scenario}.yaml").exists()
