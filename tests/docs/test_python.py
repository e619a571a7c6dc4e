"""Python that pages show runs as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from bbrlab.base import paths
from bbrlab_apps.study.plan import plan_study
from bbrlab_apps.study.table import study_table, write_tables
from tests.made_up_runs import made_up_run

HOWTO = paths.ROOT / "docs" / "howto"


def blocks_of(page: str, kind: str) -> list[str]:
    """What stands on a page in each of its blocks of a kind."""
    text = (HOWTO / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_results_are_read_as_the_pages_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("fair.yaml").write_text(blocks_of("ask.md", "yaml")[0], encoding="utf-8")
    study = plan_study(Path("fair.yaml"), Path("fair"), {}, 2)
    for run in study.runs:
        made_up_run(run.point, run.seed, run.folder)
    write_tables(study, study_table(study))
    Path("measured.csv").write_text("network.rtt_ms,network.qdisc.kind,cca,measured\n80,fifo,bbr3,0.31\n")
    told = {}
    for page in ("python.md", "beside.md"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", "\n".join(blocks_of(page, "python"))],
            env=os.environ | {"MPLBACKEND": "Agg", "COLUMNS": "200"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        told[page] = done.stdout
    assert Path("cwnd.png").stat().st_size > 10_000 and Path("share.png").stat().st_size > 10_000
    assert len(told["beside.md"].splitlines()) == 2, "the one point that both have"
