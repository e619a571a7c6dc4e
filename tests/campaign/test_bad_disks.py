"""Every stage where it cannot write: one message that names the place, and nothing half-written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bbrlab.base import files, paths
from bbrlab.results.figures import runs_of, write_points
from tests.campaign.bad_disks import KINDS
from tests.finished import FIGURE, figure
from tests.graded import STUDENT, make_submission, write_rubric
from tests.run.test_bad_days import own_mounts

pytestmark = [pytest.mark.guest, pytest.mark.slow]
NOTEBOOK = {
    "cells": [{"cell_type": "code", "id": "a", "execution_count": None, "metadata": {}, "outputs": [], "source": "1 + 1"}],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}, "nbformat": 4, "nbformat_minor": 5,
}  # fmt: skip
WORDS = {"full": "no space or no inodes", "read-only": "no permission", "no permission": "no permission"}
COMMANDS = {
    "kernel": ["kernel", "build"],
    "run": ["run", "{scenario}", "--out", "{out}/run", "--quiet"],
    "point": ["point", "{point}", "--seed", "1", "--out", "{out}/run"],
    "seeds": ["seeds", FIGURE, "--scale", "smoke", "--out", "{out}/s/seeds.json"],
    "collect": ["collect", FIGURE, "--scale", "smoke", "--out", "{out}/t/fig2.parquet"],
    "points": ["points", "{tables}/tang/fig2.parquet", "--out", "{out}/points.parquet"],
    "judge": ["judge", "{tables}/tang/fig2.parquet", "--only", "--scale", "smoke", "--out", "{out}/claims.parquet"],
    "predict": ["predict", "{point}", "burst={out}/burst.parquet"],
    "execute": ["execute", "{notebook}", "--out", "{out}/n.ipynb", "--figures", "{out}/figures"],
    "scorecard": ["scorecard", "{tables}/tang/fig2.parquet", "--claims", "{tables}/claims.parquet", "--scale", "smoke", "--out", "{out}/card.json"],
    "show": ["show", "{run}", "--out", "{out}/run.html"],
    "ship": ["ship", "tang/fig2", "--scale", "smoke", "--out", "{out}"],
    "artifact": ["artifact", "tang/fig2", "--scale", "smoke", "--out", "{out}"],
    "assign": ["assign", "--rubric", "{rubric}", "--student", STUDENT, "--csv", "{out}/students.csv"],
    "grade": ["grade", "{submission}", "--rubric", "{rubric}", "--out", "{out}/grades"],
    "site": ["site", "--scale", "smoke", "--out", "{out}/site"],
}  # fmt: skip


Told = tuple[Path, dict[str, dict[str, dict[str, Any]]]]
FAST = ("run", "seeds", "collect", "judge", "scorecard", "show", "assign")


def try_out(folder: Path, results: Path, names: Iterable[str], kinds: Sequence[str]) -> Told:
    """What commands say on such disks: where they were to write to, and what bad_disks.py wrote."""
    enter = own_mounts()
    if enter is None:
        pytest.skip("neither `unshare -m` nor `unshare -Urm` may mount a tmpfs here (no user namespaces?)")
    (folder / "n.ipynb").write_text(json.dumps(NOTEBOOK))
    rubric = write_rubric(folder)
    before, paths.results_folder = paths.results_folder, lambda: results
    try:
        write_points(figure())
    finally:
        paths.results_folder = before
    point = next((results / "points" / FIGURE).iterdir())
    places = {
        "point": point, "scenario": paths.SCENARIOS / "tang/fig2.yaml", "tables": results / "smoke", "notebook": folder / "n.ipynb",
        "run": runs_of(figure(), results=results)[0].folder, "rubric": rubric,
        "submission": make_submission(folder / STUDENT, rubric),
    }  # fmt: skip
    commands = {name: [word.replace("{out}", "\0").format(**places).replace("\0", "{out}") for word in COMMANDS[name]] for name in names}  # fmt: skip
    (folder / "commands.json").write_text(json.dumps(commands))
    environment = os.environ | {"BBRLAB_RESULTS": str(results), "BBRLAB_BUILD": str(paths.build_folder())}
    done = subprocess.run(
        [*enter, sys.executable, "-m", "tests.campaign.bad_disks", folder, *kinds], cwd=paths.ROOT, env=environment, capture_output=True,
        text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out", files.read_json(folder / "told.json")


@pytest.fixture(scope="module")
def results(tmp_path_factory, finished_campaign) -> Path:
    return shutil.copytree(finished_campaign, tmp_path_factory.mktemp("campaign") / "results")


@pytest.fixture(scope="module")
def full(tmp_path_factory, results) -> Told:
    return try_out(tmp_path_factory.mktemp("full"), results, FAST, ["full"])


@pytest.fixture(scope="module")
def every(tmp_path_factory, results) -> Told:
    return try_out(tmp_path_factory.mktemp("every"), results, COMMANDS, KINDS)


def check(told: Told, command: str, kind: str) -> None:
    """One message, which names the place, and nothing half-written."""
    out, found = told
    said = found[command][kind]
    assert said["status"] == 2, said
    if command != "artifact" or "not as in a commit" not in said["errors"]:  # which comes first
        assert said["errors"].count(f"bbrlab: {out}") == 1, said["errors"]
        assert WORDS[kind] in said["errors"], said["errors"]
    assert "Traceback" not in said["errors"], said["errors"]
    left = [
        name for name in said["left"] if "partial" in name or name.endswith((".json", ".parquet", ".csv", ".ipynb"))
    ]
    assert left == []


@pytest.mark.parametrize("command", FAST)
def test_a_command_on_a_full_disk(full, command):
    check(full, command, "full")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_cannot_write(every, command, kind):
    check(every, command, kind)
