"""Figures of several versions that ship at one scale: every page says which are not of the newest one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import escape

from bbrlab.base import files, paths
from bbrlab.results.best_scale import results_shown
from bbrlab.results.shipped import content_hash, results_to_show
from bbrlab.run.conditions import CONDITIONS
from bbrlab.scenario.schema import Hosts, Noise
from bbrlab.show.findings import load_findings
from bbrlab_apps.site.pages import paper_page
from docs._make import measured as measured_page
from docs._make import outcomes as outcomes_page
from studies.page import load_page

OLD = "tang/fig2"
COMMIT, TIME = "0123456789" * 4, "2020-01-02T03:04:05Z"
WORDS = f"kernel 0123456789abcdef, commit 0123456789 (2020-01-02): {CONDITIONS[0]}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What ships at quick and full, with a figure that an older version made."""
    folder = tmp_path_factory.mktemp("shipped")
    for scale in ("quick", "full"):
        place = shutil.copytree(paths.ROOT / "shipped" / scale, folder / scale)
        runs = pd.read_parquet(place / "runs.parquet")
        runs.loc[runs["figure"] == OLD, "commit"] = COMMIT
        runs.to_parquet(place / "runs.parquet", index=False)
        manifest = files.read_json(place / "manifest.json")
        first = manifest["versions"][0]
        other = {
            "commits": {COMMIT: TIME},
            "kernel": first["kernel"] | {"key": "0123456789abcdef"},
            "conditions": CONDITIONS[0],
        }
        manifest["versions"].append(first | other)
        manifest["commits"][COMMIT] = int((runs["figure"] == OLD).sum())
        files.write_json(place / "manifest.json", manifest | {"sha256": content_hash(manifest)})
    return folder


@pytest.fixture(autouse=True)
def ships(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "SHIPPED", folder)
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "nothing"))


def test_a_papers_page_says_it_at_the_figure_and_no_other():
    content = load_findings("quick")
    assert content.older[OLD] == WORDS
    page = paper_page(content, "tang", "Tang", "", None)
    assert page.count(f"Its runs are of an older version of bbrlab ({escape(WORDS)}).") == 1


def test_a_notebooks_first_lines_and_the_terminal_say_it():
    sentence = f"Made by an older version of bbrlab ({WORDS}): {OLD}."
    assert sentence in results_shown(results_to_show("quick", "tang"), "tang")
    assert sentence in load_page("quick", "tang").glance()
    assert OLD not in results_shown(results_to_show("quick", "cao2019"), "cao2019")


def test_the_pages_of_outcomes_and_of_what_ships_say_it(folder):
    assert f"At scale full of an older version of bbrlab ({WORDS}): {OLD}." in outcomes_page.outcomes(folder)
    assert f"Made by an older version of bbrlab ({WORDS}): {OLD}." in measured_page.shipped_list(folder)


def test_conditions_say_what_hosts_do_by_default():
    """A field of hosts that is new, or has another default, changes every run whose scenario does not say it."""
    known = {
        "pacing": "internal", "segmentation": "off", "receive_offload": "off", "receive_offload_us": None, "ecn": "off",
        "noise": Noise(rtt_offset_us=600.0, processing_us=50.0),
        "rmem_max_bytes": None, "wmem_max_bytes": None,
    }  # fmt: skip
    assert {name: field.default for name, field in Hosts.model_fields.items()} == known, (
        "say what is different in the last line of run/conditions.py, and here"
    )
