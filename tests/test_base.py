"""What everything stands on: paths, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.campaign.figures import figures_at, runs_of
from bbrlab.campaign.lock import hold_lock


@pytest.mark.parametrize(("given", "meant"), [("", "results"), ("other", "other"), ("/elsewhere", "/elsewhere")])
def test_results_move_with_the_environment(monkeypatch, tmp_path, given, meant):
    monkeypatch.setenv("BBRLAB_RESULTS", given)
    monkeypatch.chdir(tmp_path)  # a notebook runs in its own folder
    assert paths.results_folder() == paths.ROOT / meant
    assert paths.results_folder().is_absolute()


def test_runs_and_lock_are_where_the_results_are(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "mine"))
    (figure,) = figures_at("smoke", ["tang/fig2"])
    assert all(run.folder.is_relative_to(tmp_path / "mine") for run in runs_of(figure))
    hold_lock()
    assert (tmp_path / "mine" / ".lock").exists()


def test_nothing_but_paths_builds_the_results_folder():
    """Every place asks paths.results_folder(), or BBRLAB_RESULTS would move only a part."""
    code = [*(paths.ROOT / "bbrlab").rglob("*.py"), *(paths.ROOT / "notebooks").glob("*.ipynb")]
    literal = [str(p) for p in code if p.name != "paths.py" and _literal(p)]
    assert literal == []


def _literal(path: Path) -> bool:
    text = path.read_text(encoding="utf-8").replace('\\"', '"')
    return '"results"' in text or '"results/' in text
