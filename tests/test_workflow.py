"""The campaign as users run it: snakemake at scale smoke, twice, and after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bbrlab import campaign, paths
from bbrlab.errors import UserError

RESULTS = paths.ROOT / "results"


def snakemake(*argv: str, **options) -> subprocess.CompletedProcess[str]:
    command = ["snakemake", "--cores", "2", "--config", "scale=smoke", "--", *argv]
    return subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, timeout=900, **options)


def test_scales():
    for scale, runs in (("smoke", 24), ("quick", 216), ("full", 756)):
        figures = campaign.figures(scale)
        assert sum(len(campaign.runs(f)) for f in figures) == runs
    with pytest.raises(UserError, match="scale tiny"):
        campaign.figures("tiny")


def test_a_point_has_one_folder_at_every_scale():
    """What quick has run, full does not run again."""
    folders = {
        scale: {r.folder for f in campaign.figures(scale) for r in campaign.runs(f)}
        for scale in ("quick", "full", "smoke")
    }
    assert folders["quick"] < folders["full"]
    assert not folders["smoke"] & folders["full"]


def test_one_campaign_at_a_time(tmp_path):
    script = "from bbrlab import campaign; from pathlib import Path; campaign.hold_lock(Path({!r})); print('held', flush=True); input()"
    first = subprocess.Popen(
        [sys.executable, "-c", script.format(str(tmp_path))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout and first.stdout.readline() == "held\n"
    with pytest.raises(UserError, match="another campaign"):
        campaign.hold_lock(tmp_path)
    first.kill()
    first.communicate()
    campaign.hold_lock(tmp_path)  # the lock went with its owner


def test_a_part_of_the_campaign():
    done = subprocess.run(
        ["snakemake", "-n", "--cores", "2", "--config", "scale=smoke", "figures=[sarpkaya2025/fig2a]", "--", "all"],
        cwd=paths.ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "fig2c" not in done.stdout + done.stderr


@pytest.fixture(scope="module")
def campaign_done():
    shutil.rmtree(RESULTS / "smoke", ignore_errors=True)  # what an earlier test left may lack its runs
    done = snakemake("all")
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.guest
def test_smoke_campaign(campaign_done):
    card = json.loads((RESULTS / "smoke" / "scorecard.json").read_text())
    assert {f["figure"] for f in card["figures"]} == {
        f"sarpkaya2025/fig{p}" for p in ("2a", "2c", "3a", "3c", "5a", "5c")
    }
    assert all(f["runs_failed"] == 0 for f in card["figures"])
    page = (RESULTS / "smoke" / "sarpkaya2025.html").read_text()
    assert "At a glance" in page
    assert "data:image/png" in page or "image/png" in page
    models = (RESULTS / "smoke" / "models.html").read_text()
    assert "The published fluid curve, taken apart" in models
    assert "0.6758" in models
    assert len(list((RESULTS / "models").glob("*/*/*/*.parquet"))) >= 20
    table = (RESULTS / "smoke" / "sarpkaya2025" / "fig2a.csv").read_text().splitlines()
    assert len(table) == 1 + 4 * 2 * 2  # points x seeds x groups


@pytest.mark.guest
def test_nothing_is_run_twice(campaign_done):
    again = snakemake("all")
    assert again.returncode == 0
    assert "Nothing to be done" in again.stderr + again.stdout


@pytest.mark.guest
def test_a_killed_campaign_goes_on_where_it_stopped(campaign_done):
    victims = sorted((RESULTS / "runs" / "sarpkaya2025" / "fig2c").glob("buffer.bdp=4*/seed-*/summary.json"))
    chosen = [v for v in victims if json.loads(v.read_text())["virtual_s"] == 60][:3]
    assert len(chosen) == 3
    for path in chosen:
        path.unlink()
    shutil.rmtree(RESULTS / "smoke")  # or nobody would miss them
    others = {p: p.stat().st_mtime_ns for p in RESULTS.glob("runs/*/*/*/*/summary.json")}
    process = subprocess.Popen(
        ["snakemake", "--cores", "2", "--config", "scale=smoke", "--", "all"],
        cwd=paths.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    time.sleep(6)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(3)
    assert not _guests(), "guests survive their campaign"
    done = snakemake("all")
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(path.exists() for path in chosen)
    assert {p: p.stat().st_mtime_ns for p in others} == others


def _guests() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"time-travel=inf-cpu" in words and os.readlink(entry / "cwd").startswith("/dev/shm"):
            found.append(entry.name)
    return found
