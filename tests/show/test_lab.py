"""JupyterLab on the notebooks, and the first of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.show.execute import execute_notebook
from studies.by_hand import run_by_hand, side_by_side

START = paths.ROOT / "notebooks" / "00_start.ipynb"


@pytest.mark.guest
def test_the_first_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "results"))
    execute_notebook(START, tmp_path / "start.ipynb", {}, tmp_path / "figures")
    assert sorted(p.name for p in (tmp_path / "figures").glob("*.png")) == ["change-one-number.png", "see-it-move.png"]
    summaries = {
        name: json.loads((tmp_path / "results" / "by_hand" / name / "summary.json").read_text())
        for name in ("shallow", "deep")
    }
    assert all(s["ok"] for s in summaries.values())
    # What the notebook lets its reader guess: CUBIC takes the deep buffer, BBRv1 loses by it.
    share = {name: s["groups"][0]["share_of_capacity"] for name, s in summaries.items()}
    assert share["shallow"] > share["deep"]
    page = (tmp_path / "start.ipynb").read_text(encoding="utf-8")
    assert "SELF-CHECKS" not in page and "self-checks passed" in page and "1 bbr1" in page


def test_no_notebook_has_outputs():
    done = subprocess.run(
        [sys.executable, "-m", "nbstripout", "--verify", "--keep-id", *map(str, sorted(START.parent.glob("*.ipynb")))],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("scenario", "name", "says"),
    [("nobody/fig1", "run", "there is no scenario .*nobody/fig1.yaml; give PAPER/FIGURE"),
     ("sarpkaya2025/fig2a", "../run", "name '../run': is the name of one folder"),
     ("sarpkaya2025/fig2a", "", "name ''")],
)  # fmt: skip
def test_what_is_wrong_by_hand_is_said(scenario, name, says):
    with pytest.raises(UserError, match=says):
        run_by_hand(scenario, name=name)


def test_side_by_side_of_nothing_is_an_empty_table():
    assert side_by_side([]).empty


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make, which the image has not")
def test_jupyterlab_starts_on_the_notebooks(tmp_path):
    """`make lab`, without a browser: the server answers, and has the notebooks in its folder and this environment's kernel."""
    environment = os.environ | {"JUPYTER_RUNTIME_DIR": str(tmp_path / "run"), "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
                                "JUPYTER_DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path)}  # fmt: skip
    server = subprocess.Popen(
        ["make", "--no-print-directory", "lab", "LAB=--no-browser --port=0 --ServerApp.port_retries=0 --IdentityProvider.token=secret"],
        cwd=paths.ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        seen, address = "", None
        deadline = time.monotonic() + 120
        while address is None and time.monotonic() < deadline and (line := server.stdout.readline()):
            seen += line
            if found := re.search(r"(http://[\w.]+:\d+)/lab\?token=", line):
                address = found[1]
        assert address, seen
        folder = _answer(f"{address}/api/contents", server)
        assert {"00_start.ipynb", "overview.ipynb"} <= {entry["name"] for entry in folder["content"]}
        assert "python3" in _answer(f"{address}/api/kernelspecs", server)["kernelspecs"]
    finally:
        os.killpg(server.pid, 15)
        server.wait(timeout=30)


def _answer(url, server):
    """JSON of the server's interface; waits until it listens."""
    request = urllib.request.Request(url, headers={"Authorization": "token secret"})
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            assert server.poll() is None
            time.sleep(0.2)
    raise AssertionError(f"{url} does not answer")
