"""Figures of several versions that ship at one scale: every page says which are not of the newest one."""

from __future__ import annotations

import html
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import escape

from bbrlab.base import files, paths
from bbrlab.claims.code import LAB, LINUX
from bbrlab.kernel.specs import find_spec
from bbrlab.results.best_scale import results_shown, shipped_claims, shipped_statements
from bbrlab.results.shipped import WITHOUT_NOISE, _gives_the_same, content_hash, read_manifest, results_to_show
from bbrlab.results.verdicts import DECIDED
from bbrlab.run.conditions import CONDITIONS
from bbrlab.scenario.schema import Hosts, Noise
from bbrlab.show.findings import load_findings
from bbrlab.show.verdict_counts import noise_words
from bbrlab_apps.site.pages import front_page, paper_page
from docs._make import measured as measured_page
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


def test_the_page_of_what_ships_says_it(folder):
    page = measured_page.shipped_list(folder)
    version, _, conditions = WORDS.partition(": ")
    mark = re.search(rf"^- \*\*(\w)\*\*: {re.escape(f'{conditions} ({version})')}$", page, re.MULTILINE)
    assert mark and f"| {OLD} | Fig. 2 | 9 | {mark[1]} |" in page
    assert f" figures has runs of an older version ({WORDS}), under other conditions: {OLD}." in page


def test_runs_of_a_kernel_that_gives_the_same_bytes_are_not_older():
    """config/kernels.yaml lists such kernels; under other conditions a run is another trial all the same."""
    newest = read_manifest(paths.ROOT / "shipped", "full").newest
    (same, *_) = find_spec(newest.kernel["name"])[1].same_results
    before = newest.model_copy(update={"kernel": newest.kernel | {"key": same}})
    other = newest.model_copy(update={"kernel": newest.kernel | {"key": "0123456789abcdef"}})
    assert _gives_the_same(before, newest)
    assert not _gives_the_same(other, newest)
    assert not _gives_the_same(before.model_copy(update={"conditions": WITHOUT_NOISE}), newest)


def test_the_front_page_and_the_readme_count_the_statements_that_rest_on_runs_without_noise(folder):
    """By the figures that their claims read: those that the manifest calls older, and this made-up one."""
    content = load_findings("quick")
    assert OLD in content.without_noise["quick"] & content.without_noise["full"]
    assert "sarpkaya2025/fig2a" not in content.without_noise["full"], "which ships with noise"
    words = noise_words(content.every, content.claims, content.without_noise)
    others = {scale: ids - {OLD} for scale, ids in content.without_noise.items()}
    before = noise_words(content.every, content.claims, others)
    read = {
        s.id for s in content.defined for c in s.claims if OLD in {at.figure for at in c.at.values()} and not c.role
    }
    here = content.every["id"].isin(read) & content.every["verdict"].isin(DECIDED)
    assert here.any() and number(words) - number(before) == here.sum()
    assert words.replace("**", "") in html.unescape(
        re.sub("<[^>]*>", "", front_page(content, defaultdict(str), [], []))
    )
    known = shipped_statements(folder)
    assert words == noise_words(known, shipped_claims(known, folder), content.without_noise)


def number(words: str) -> int:
    """How many statements a sentence speaks of."""
    return int(words.removeprefix("**").split()[0]) if words else 0


def test_statements_that_rest_on_no_older_run_are_not_counted():
    """Nor those of which only a detail reads one, nor what is not decided, nor the lab's own."""
    statements = pd.DataFrame(
        {
            "id": ["A", "B", "C", "D", "E"],
            "verdict": ["reproduced", "partly reproduced", "partly run", "reproduced", "reproduced"],
            "code": [LAB, LINUX, LAB, LINUX, LAB],
            "own": [False, False, False, False, True],
            "exactness": "text",
        }
    )
    claims = pd.DataFrame(
        {
            "statement": ["A", "B", "C", "D", "D", "E"],
            "scale": ["full", "quick", "full", "full", "quick", "full"],
            "figures": ["p/new, p/old", "p/old", "p/old", "p/old", "p/new", "p/old"],
            "role": ["", "", "", "detail", "", ""],
        }
    )
    assert noise_words(statements, claims, {}) == ""
    assert number(noise_words(statements, claims, {"full": {"p/old"}})) == 1
    both = noise_words(statements, claims, {"full": {"p/old"}, "quick": {"p/old"}})
    assert both.startswith("**2 of the 3 decided rest ") and "; 1 of these " in both


def test_conditions_say_what_hosts_do_by_default():
    """A field of hosts that is new, or has another default, changes every run whose scenario does not say it."""
    known = {
        "pacing": "internal", "segmentation": "off", "receive_offload": "off", "receive_offload_us": None, "ecn": "off",
        "noise": Noise(rtt_offset_us=600.0, processing_us=50.0),
        "rmem_max_bytes": None, "wmem_max_bytes": None, "rmem_initial_bytes": None, "wmem_initial_bytes": None,
    }  # fmt: skip
    assert {name: field.default for name, field in Hosts.model_fields.items()} == known, (
        "say what is different in the last line of run/conditions.py, and here"
    )
