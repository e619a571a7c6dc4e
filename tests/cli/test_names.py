"""Spaces, quotes and letters beyond ASCII in the names that are the user's to choose: checkout, results, home, user, scenario."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.results import figures
from bbrlab.scenario.messages import validate
from tests.campaign.test_stages import PARTS, STAND_IN
from tests.conftest import scenario_dict

NAME = "Jörg's 実験 & co (2)"
FIGURE = "tang/fig2"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the checkout with such a name."""
    copy = tmp_path_factory.mktemp("names") / NAME
    copy.mkdir()
    for name in PARTS:
        source = paths.ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copy / name)
    (copy / "bin").mkdir()
    (copy / "bin" / "bbrlab").write_text(STAND_IN)
    (copy / "bin" / "bbrlab").chmod(0o755)
    return copy


@pytest.mark.parametrize("results", ["", NAME], ids=["in the checkout", "elsewhere"])
def test_a_campaign(checkout, tmp_path, results):
    home = tmp_path / "Ærøskøbing home"
    home.mkdir()
    environment = {
        **os.environ, "PYTHONPATH": str(checkout), "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "HOME": str(home),
        "USER": "Ünal Ş", "LOGNAME": "Ünal Ş", "BBRLAB_RESULTS": str(tmp_path / results) if results else "",
    }  # fmt: skip

    def snakemake(*targets: str) -> str:
        command = ["snakemake", "--cores", "2", "--config", "scale=smoke", f"figures=[{FIGURE}]", "--"]
        done = subprocess.run(
            [*command, *targets], cwd=checkout, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    snakemake("all", "fig2", "tang")
    assert "Nothing to be done" in snakemake("all", "fig2", "tang")
    made = (tmp_path / results) if results else checkout / "results"
    assert len(list((made / "runs" / FIGURE).glob("*/seed-*/summary.json"))) == 2 * 2
    assert all((made / "smoke" / name).exists() for name in ("tang.ipynb", "site", "tang/fig2.claims.txt"))


LETTERS, OWN = "names of the letters A to Z", "is a name of the workflow's own"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        *((name, LETTERS) for name in ("müller2026/fig1", "a b/fig1", "p/fig 1", "p/fig.1", "p/größe")),
        *((name, OWN) for name in ("mypaper/points", "models/fig1")),
    ],
)
def test_names_that_the_workflow_cannot_have(tmp_path, monkeypatch, name, says):
    """Papers and figures are targets of Snakemake and parts of its patterns."""
    path = tmp_path / f"{name}.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(scenario_dict()))
    monkeypatch.setattr(paths, "SCENARIOS", tmp_path)
    with pytest.raises(UserError, match=says):
        figures.figures_at("smoke", [name])


def test_names_that_the_workflow_has_are_known():
    """Each rule's name, and what lies beside the papers' folders and pages in the results of a scale, one's own and shipped ones."""
    rules = [paths.ROOT / "Snakefile", *(paths.ROOT / "rules").glob("*.smk")]
    named = {
        n
        for file in rules
        for n in re.findall(
            r"^\s*(?:rule|checkpoint|use rule \w+ as) (\w+)(?: with)?:", file.read_text(encoding="utf-8"), re.M
        )
    }
    beside = {n for file in rules for n in re.findall(r"\{AT_SCALE\}/(\w+)", file.read_text(encoding="utf-8"))}
    pages = set(
        re.findall(r"PAGES = \[\*PAPERS, (.*)\]", (paths.ROOT / "rules/common.smk").read_text(encoding="utf-8"))[0]
        .replace('"', "")
        .split(", ")
    )
    assert len(named) >= 20
    assert named | beside | pages | {"ns3"} == set(figures.TAKEN)


def test_a_message_shows_what_was_typed():
    with pytest.raises(UserError, match='name = "größer": '):
        validate(scenario_dict(name="größer"), "s")
