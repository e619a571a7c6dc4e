"""What a forge does with a push (.github/): that its files are right, as far as this can be said without one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bbrlab.base import paths

WORKFLOWS = sorted((paths.ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((paths.ROOT / ".github" / "actions").glob("*/action.yml"))
PIN = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (paths.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def steps(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Of all jobs of a workflow, or of an action."""
    jobs = content["jobs"].values() if "jobs" in content else [content["runs"]]
    return [step for job in jobs for step in job["steps"]]


def wrong(text: str) -> list[str]:
    """What a workflow or an action names that is not there, or can change under its name."""
    found = []
    for uses in re.findall(r"uses: (.+)", text):
        if uses.startswith("./"):
            found += [uses] * (not (paths.ROOT / uses / "action.yml").is_file())
        elif not PIN.fullmatch(uses):
            found.append(uses)
    runs = "\n".join(step.get("run", "") for step in steps(yaml.safe_load(text)))
    found += [f"make {word}" for word in re.findall(r"\bmake +([a-z][\w-]*)(?=\s|$)", re.sub(r"install .*", "", runs)) if word not in TARGETS]  # fmt: skip
    found += [word for word in re.findall(r"envs/\S+\.sh", runs) if not (paths.ROOT / word).is_file()]
    return found


@pytest.mark.parametrize("file", [*WORKFLOWS, *ACTIONS], ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_a_workflow_names_is_there_and_stays_the_same(file):
    assert wrong(file.read_text(encoding="utf-8")) == []


def test_what_is_wrong_is_found():
    text = """
jobs:
  one:
    steps:
      - uses: actions/checkout@v6
      - uses: actions/checkout@main # v6.0.2
      - uses: ./.github/actions/none
      - run: make setup && make tests
      - run: envs/none.sh
"""
    assert wrong(text) == ["actions/checkout@v6", "actions/checkout@main # v6.0.2", "./.github/actions/none", "make tests", "envs/none.sh"]  # fmt: skip


def test_an_action_has_one_commit():
    """And a commit one version, in all files."""
    pins = {pin for file in [*WORKFLOWS, *ACTIONS] for pin in PIN.findall(file.read_text(encoding="utf-8"))}
    assert len(pins) == 3, sorted(pins)
    assert len({pin.split("@")[0] for pin in pins}) == 3


@pytest.mark.parametrize("kind, files", [("workflows", WORKFLOWS), ("actions", ACTIONS)])
def test_the_forge_s_schema_takes_them(kind: str, files: list[Path]):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.github-{kind}", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_jobs_end_and_may_write_nothing(file):
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert content["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 350 for job in content["jobs"].values())


def test_a_push_is_tested_in_full_on_both_debians():
    jobs = yaml.safe_load((paths.ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["full"]["strategy"]["matrix"]["debian"] == [12, 13]
    assert {"run": "make test"} in jobs["full"]["steps"]
