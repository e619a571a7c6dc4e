"""Spaces, quotes and letters beyond ASCII in the names that are the user's to choose: checkout, results, home, user, scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.results import figures
from bbrlab.scenario.messages import validate
from tests.campaign.checkout import copy_checkout, run_snakemake
from tests.conftest import scenario_dict

NAME = "Jörg's 実験 & co (2)"
FIGURE = "tang/fig2"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the checkout with such a name."""
    return copy_checkout(tmp_path_factory.mktemp("names") / NAME)


@pytest.mark.parametrize(
    "results", [pytest.param("", marks=pytest.mark.slow, id="in the checkout"), pytest.param(NAME, id="elsewhere")]
)
def test_a_campaign(checkout, tmp_path, results):
    home = tmp_path / "Ærøskøbing home"
    home.mkdir()
    given = {
        "HOME": str(home), "USER": "Ünal Ş", "LOGNAME": "Ünal Ş", "BBRLAB_RESULTS": str(tmp_path / results) if results else "",
    }  # fmt: skip
    targets = ("all", "fig2", "tang")
    run_snakemake(checkout, targets, figures=[FIGURE], **given)
    assert "Nothing to be done" in run_snakemake(checkout, targets, figures=[FIGURE], **given)
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
