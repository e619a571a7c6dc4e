"""Results that ship: packed whole or not at all, the same bytes for the same results; shown, compared, and run again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.campaign import forecast, plan
from bbrlab.campaign.planning import planned_figure
from bbrlab.campaign.resources import guest_mb
from bbrlab.comparison import differences, verify
from bbrlab.comparison import expected_runs as records
from bbrlab.models.predictions import PACKED, prediction_file, read_prediction
from bbrlab.results import shipped
from bbrlab.results.figures import figures_at, runs_of
from bbrlab.results.run_folder import RunFolder
from bbrlab.run import processes
from bbrlab_apps.shipping import pack as ship
from bbrlab_apps.shipping.accepted_failures import AcceptedFailure, read_accepted_failures
from studies import beside_shipped
from studies.notebook import between_cuts
from studies.page import load_page
from tests.conftest import state_of
from tests.finished import FIGURE, figure, make_tables

CASE = "case=cubic"


def pack(results: Path, out: Path, explained: Sequence[AcceptedFailure] = ()) -> shipped.Manifest:
    return ship.pack(ship.Finished("smoke", [figure()], results, explained), out)


@pytest.fixture
def copy_to_change(finished_campaign, tmp_path) -> Path:
    """A copy of the campaign that may be changed."""
    return shutil.copytree(finished_campaign, tmp_path / "mine")


@pytest.fixture(scope="module")
def packed(finished_campaign, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("packed")
    pack(finished_campaign, out)
    return out


@pytest.fixture
def theirs(packed, tmp_path) -> Path:
    """A copy of what ships that may be changed."""
    return shutil.copytree(packed, tmp_path / "theirs")


def run_of(results: Path, case: str = CASE, seed: int = 1) -> Path:
    return next((results / "runs" / FIGURE).glob(f"{case}*")) / f"seed-{seed}"


def change(path: Path, **fields: object) -> None:
    files.write_json(path, files.read_json(path) | fields)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.name.endswith(".lock")
    }


pytestmark = pytest.mark.guest


def test_the_same_results_are_the_same_bytes_however_long_they_took(packed, copy_to_change, tmp_path):
    for run in runs_of(figure(), results=copy_to_change):
        change(run.folder / "summary.json", wall_s=99.5)
    make_tables(copy_to_change)
    found = pack(copy_to_change, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(packed)
    assert found.figures == {FIGURE: 4}
    assert shipped.tampered(packed, "smoke") == []
    assert {p.name for p in (tmp_path / "again").iterdir()} == {"smoke", ".smoke.lock"}, "nothing aside is left"


def test_what_was_there_is_replaced_as_a_whole(theirs, finished_campaign, packed):
    (theirs / "smoke" / f"{FIGURE}.parquet").write_text("of an older version")
    pack(finished_campaign, theirs)
    assert contents(theirs) == contents(packed)
    (theirs / "smoke" / "mine.parquet").write_text("of the user's")
    with pytest.raises(UserError, match="has mine.parquet, which is not among what bbrlab made there"):
        pack(finished_campaign, theirs)
    assert (theirs / "smoke" / "mine.parquet").read_text() == "of the user's"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda r: (r / "smoke" / f"{FIGURE}.parquet").unlink(), f"{FIGURE}.parquet: is missing: the campaign is not finished"),
        (lambda r: (run_of(r) / "samples.parquet").unlink(), "samples.parquet: is missing"),
        (lambda r: shutil.rmtree(run_of(r, seed=2)), rf"1 of 4 runs is missing, such as .*; run: BBRLAB_RESULTS=.* snakemake .*{FIGURE}"),
        (lambda r: change(run_of(r) / "summary.json", jain_index=0.5), r"is not the table of the runs that are there"),
        (lambda r: change(run_of(r) / "manifest.json", seed=7), "is of another run than summary.json"),
        (lambda r: change(run_of(r) / "manifest.json", outputs_sha256={}), "manifest.json: has no hash of samples.parquet"),
        (lambda r: change(run_of(r) / "manifest.json", guest_code_sha256={"init": "0"}), "its guest_code_sha256 is another"),
    ],
)  # fmt: skip
def test_what_is_not_whole_is_not_packed(copy_to_change, tmp_path, broken, said):
    broken(copy_to_change)
    with pytest.raises(UserError, match=said):
        pack(copy_to_change, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_figure_of_which_a_point_was_not_run_is_not_packed(copy_to_change, tmp_path):
    path = copy_to_change / "smoke" / f"{FIGURE}.parquet"
    table = pd.read_parquet(path)
    table[table["case"] == "bbr1"].to_parquet(path, index=False)
    with pytest.raises(UserError, match="the table lacks 1 points"):
        pack(copy_to_change, tmp_path / "out")


def test_a_failed_self_check_needs_a_reason(copy_to_change, tmp_path):
    file = run_of(copy_to_change) / "summary.json"
    summary = files.read_json(file)
    summary["checks"][0]["ok"], summary["ok"] = False, False
    files.write_json(file, summary)
    make_tables(copy_to_change)
    name = summary["checks"][0]["name"]
    with pytest.raises(UserError, match=f"failed {name}, unexplained"):
        pack(copy_to_change, tmp_path / "out")
    reasons = tmp_path / "explained.yaml"
    reasons.write_text(
        f"- {{figure: {FIGURE}, seed: 1, check: {name}, why: the rate is not reached in so short a run}}\n"
    )
    found = pack(copy_to_change, tmp_path / "out", read_accepted_failures(reasons))
    assert [(f.seed, f.checks) for f in found.failed] == [(1, [name])]
    assert shipped.read_manifest(tmp_path / "out", "smoke").failed[0].why.startswith("the rate")
    reasons.write_text(reasons.read_text() + f"- {{figure: {FIGURE}, seed: 2, why: no such thing}}\n")
    with pytest.raises(UserError, match="no run of tang/fig2 failed as one entry says"):
        pack(copy_to_change, tmp_path / "out", read_accepted_failures(reasons))
    reasons.write_text("- {figure: tang/fig2}\n")
    with pytest.raises(UserError, match=r"explained.yaml: 0\.why"):
        read_accepted_failures(reasons)


def test_files_that_were_changed_are_named(theirs):
    place = theirs / "smoke"
    (place / "points.parquet").write_bytes(b"other")
    (place / "claims.parquet").unlink()
    (place / "more.parquet").write_bytes(b"")
    change(place / "manifest.json", commits={"f" * 40: 4})
    found = dict(shipped.tampered(theirs, "smoke"))
    assert found.keys() == {"manifest.json", "points.parquet", "claims.parquet", "more.parquet"}
    assert "was edited" in found["manifest.json"]
    assert "has hash d9298a10d1b0" in found["points.parquet"]
    assert found["claims.parquet"] == "is missing"
    change(place / "manifest.json", scale=7)
    with pytest.raises(UserError, match="scale: must be a text"):
        shipped.read_manifest(theirs, "smoke")


def test_pages_show_ones_own_and_else_what_ships(finished_campaign, packed, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "SHIPPED", packed)
    monkeypatch.setattr(paths, "results_folder", lambda: tmp_path)
    page = load_page("quick", "tang")
    assert (page.shipped, page.scale) == (True, "smoke"), "the scale that there is"
    assert "4 runs at scale smoke (of commit " in page.glance()
    assert "`snakemake --cores 2 tang` computes them" in page.glance()
    assert "core minutes" not in page.glance()
    curves = page.curves("fig2")
    assert curves is not None and set(curves.table["point"]) == {p.label for p in figure().points}
    assert page.curves("fig6") is None
    assert len(between_cuts(page, "fig2")) == 0
    with pytest.raises(UserError, match="samples do not ship"):
        page.samples("fig2", ["time_s"], case="bbr1")
    checks = page.checks()
    monkeypatch.setattr(paths, "results_folder", lambda: finished_campaign)
    own = load_page("smoke", "tang")
    assert not own.shipped
    assert "Your own results" in own.glance()
    pd.testing.assert_frame_equal(checks, own.checks(), check_dtype=False)
    pd.testing.assert_frame_equal(page.all.claims, own.all.claims)
    with pytest.raises(UserError, match="nothing of ware2019 has been run"):
        load_page("smoke", "ware2019")


def test_other_verdicts_than_what_ships(packed, copy_to_change):
    assert {kind: len(table) for kind, table in beside_shipped.other_verdicts("smoke", copy_to_change, packed).items()} == {
        "statements": 0, "claims": 0,
    }  # fmt: skip
    for name in ("claims", "statements"):
        verdicts = pd.read_parquet(copy_to_change / "smoke" / f"{name}.parquet")
        verdicts.loc[0, "verdict"] = "reproduced"
        verdicts.drop(index=len(verdicts) - 1).to_parquet(copy_to_change / "smoke" / f"{name}.parquet", index=False)
    found = beside_shipped.other_verdicts("smoke", copy_to_change, packed)
    assert [len(table) for table in found.values()] == [2, 2]
    assert set(found["claims"]["own"]) == {"reproduced", "not there"}
    assert beside_shipped.other_verdicts("smoke", copy_to_change, copy_to_change) is None, "nothing ships"
    assert beside_shipped.other_verdicts("smoke", copy_to_change / "no", packed) is None, "nothing of one's own"


def test_predictions_are_read_from_one_file(tmp_path):
    point = figure().points[0]
    rows = pd.DataFrame(
        {"figure": FIGURE, "point": point.label, "kind": ["own", "burst"], "share_of_capacity": [0.25, 0.5]}
    )
    (tmp_path / "smoke").mkdir()
    rows.to_parquet(tmp_path / "smoke" / PACKED, index=False)
    found = read_prediction(prediction_file("burst", FIGURE, point, tmp_path))
    assert list(found["share_of_capacity"]) == [0.5]
    assert read_prediction(prediction_file("9s", FIGURE, point, tmp_path)) is None


def said_of(results: Path, again: Path) -> dict[str, str]:
    """What is wrong with the first cubic run of some results, beside a folder that has it again: {file: words}."""
    found = records.results_at(results, "smoke", [figure()])
    record = found.expected(next(k for k in found.keys if k[1].startswith(CASE) and k[2] == 1))
    told = [*record.problems, *differences.compare(record, run_of(again), found.libraries)]
    assert len({w.file for w in told}) == len(told)
    return {w.file: w.what for w in told}


def test_a_changed_digit_is_named_by_run_file_and_field(finished_campaign, copy_to_change):
    assert said_of(copy_to_change, finished_campaign) == {}
    summary = files.read_json(run_of(copy_to_change) / "summary.json")
    summary["groups"][0]["goodput_mbit"] += 1e-9
    files.write_json(run_of(copy_to_change) / "summary.json", summary)
    path = run_of(copy_to_change) / "samples.parquet"
    table = pd.read_parquet(path)
    table.loc[17, "cwnd"] += 1
    table.to_parquet(path, index=False)
    change(run_of(copy_to_change) / "manifest.json", seed=3)
    found = said_of(copy_to_change, finished_campaign)
    assert found.keys() == {"summary.json", "samples.parquet", "manifest.json"}
    assert "another result: groups.0.goodput_mbit" in found["summary.json"]
    assert "its manifest says" in found["samples.parquet"]
    assert found["manifest.json"] == "seed 3, again 1"
    digests = RunFolder(run_of(copy_to_change)).table_hashes
    change(run_of(copy_to_change) / "manifest.json", seed=1, outputs_sha256=digests)  # who hides it
    found = said_of(copy_to_change, finished_campaign)
    assert ": cwnd, row 17: " in found["samples.parquet"]
    assert found["manifest.json"].startswith("outputs_sha256.samples.parquet")


def test_missing_and_broken_files_are_named(finished_campaign, copy_to_change):
    (run_of(copy_to_change) / "samples.parquet").unlink()
    (run_of(copy_to_change) / "manifest.json").write_text("{")
    found = records.results_at(copy_to_change, "smoke", [figure()])
    record = found.expected(next(k for k in found.keys if k[1].startswith(CASE)))
    told = {w.file: w.what for w in record.problems}
    assert told["samples.parquet"] == "is missing"
    assert "is damaged" in told["manifest.json"]
    shutil.rmtree(run_of(copy_to_change))
    found = records.results_at(copy_to_change, "smoke", [figure()])
    assert len(found.keys) == 4, "the table has it"
    record = found.expected(next(k for k in found.keys if k[1].startswith(CASE)))
    assert {w.file for w in record.problems} == {"summary.json", "manifest.json", "samples.parquet"}
    with pytest.raises(UserError, match="has no run of these figures"):
        records.results_at(copy_to_change / "none", "smoke", [figure()])


def test_of_what_ships_changed_hashes_and_rows_are_named(finished_campaign, theirs):
    assert said_of(theirs, finished_campaign) == {}
    place = theirs / "smoke"
    table = pd.read_parquet(place / f"{FIGURE}.parquet")
    table["utilisation"] *= 1.001
    table.to_parquet(place / f"{FIGURE}.parquet", index=False)
    assert "utilisation" in said_of(theirs, finished_campaign)[f"{FIGURE}.parquet"]
    runs = pd.read_parquet(place / "runs.parquet").assign(summary_sha256="0" * 64, samples_sha256="1" * 64)
    runs.drop(index=3).to_parquet(place / "runs.parquet", index=False)
    found = said_of(theirs, finished_campaign)
    assert "utilisation" in found["summary.json"]
    assert found["samples.parquet"].startswith("has hash 111111111111, again ")
    wrong = {w.file: w.what for w in records.results_at(theirs, "smoke", [figure()]).problems if "hash" not in w.what}
    assert wrong == {"runs.parquet": f"has 3 runs of {FIGURE}, the manifest says 4"}


def test_the_choice_is_by_the_seed():
    keys = [("f", f"p{i}", s) for i in range(50) for s in (1, 2)]
    assert verify.choose(keys, 20, 1) == verify.choose(keys, 20, 1)
    assert verify.choose(keys, 20, 1) != verify.choose(keys, 20, 2)
    assert len(set(verify.choose(keys, 20, 1))) == 20
    assert verify.choose(keys, 1000, 1) == sorted(keys)


def bbrlab(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bbrlab.cli.main", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=paths.ROOT)


def test_verify_runs_again_and_its_exit_code_tells(copy_to_change):
    """One of the two runs has a digit changed, and is said to be of another kernel."""
    summary = files.read_json(run_of(copy_to_change) / "summary.json")
    summary["groups"][0]["rtt_ms_mean"] *= 1.0001
    summary["kernel"]["key"] = "f" * 16
    files.write_json(run_of(copy_to_change) / "summary.json", summary)
    before = state_of(copy_to_change)
    argv = ("verify", FIGURE, "--results", str(copy_to_change), "--scale", "smoke", "--seed", "1")
    done = bbrlab(*argv, "--sample", "4")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 of 4 runs are equal in every hash" in done.stdout
    place = f"{FIGURE} {run_of(copy_to_change).parent.name} seed 1: summary.json: "
    assert f"{place}kernel build differs: lab-6.12 ffffffffffffffff there, lab-6.12 " in done.stdout
    assert f"{place}another result: groups.0.rtt_ms_mean" in done.stdout
    assert state_of(copy_to_change) == before, "verifying changes nothing"


def test_verify_of_what_ships(packed):
    done = bbrlab("verify", "--results", str(packed), "--scale", "smoke", "--sample", "1", "--seed", "3", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] and found["seed"] == 3 and [run["equal"] for run in found["runs"]] == [True]
    assert "1 of 4 runs, chosen with --seed 3" in done.stderr


def test_a_run_by_another_build_of_the_kernel_that_is_equal_is_told_and_no_fault(finished_campaign, monkeypatch):
    found = records.results_at(finished_campaign, "smoke", [figure()])
    record = found.expected(found.keys[0])
    other = replace(record, kernel=(record.kernel[0], "e" * 16))

    class Done:
        returncode = 0

        def communicate(self):
            return None, b""

    monkeypatch.setattr(processes.subprocess, "Popen", lambda *a, **k: Done())
    outcome = verify._again(other, {}, Path("point"), record.run.folder, found, [])
    assert outcome.problems == []
    assert "kernel build differs" in outcome.note
    changed = replace(other, summary_sha256="0" * 64)
    outcome = verify._again(changed, {}, Path("point"), record.run.folder, found, [])
    assert "kernel build differs" in outcome.problems[0].what
    older = replace(changed, manifest={key: value for key, value in record.manifest.items() if key != "conditions"})
    outcome = verify._again(older, {}, Path("point"), record.run.folder, found, [])
    assert outcome.problems[0].what.startswith("had other conditions: no noise")


def test_a_run_of_a_kernel_that_is_not_here_stops_no_other(copy_to_change):
    """It is named with the command that helps; if no kernel of any run is here, nothing can be run."""
    summary = files.read_json(run_of(copy_to_change) / "summary.json")
    summary["kernel"]["name"] = "lab-1.0"
    files.write_json(run_of(copy_to_change) / "summary.json", summary)
    found = records.results_at(copy_to_change, "smoke", [figure()])
    mark = next(k for k in found.keys if k[1].startswith(CASE) and k[2] == 1)
    one, other = found.expected(mark), found.expected(next(k for k in found.keys if k != mark))
    missing = verify.missing_kernels([one, other])
    assert missing.keys() == {"lab-1.0"}
    outcome = verify._again(one, missing, Path("point"), copy_to_change, found, [])
    assert (
        "was not run again, its kernel is not here: lab-1.0: no such kernel" in outcome.problems[0].what
        and "lab-1.0" in outcome.problems[0].what
    )
    assert outcome.wall_s is None
    with pytest.raises(UserError, match=r"^lab-1\.0: no such kernel"):
        verify.missing_kernels([one])
    own = replace(other, kernel=("lab-6.12+mine", "0" * 16))
    assert not verify.missing_kernels([own]), "built for the run, with the algorithm that its point names"


def test_of_all_runs_of_a_folder_missing_files_are_told(copy_to_change):
    """Of those, too, that chance does not choose."""
    assert not records.results_at(copy_to_change, "smoke", [figure()]).problems
    (run_of(copy_to_change) / "samples.parquet").unlink()
    shutil.rmtree(run_of(copy_to_change, seed=2))
    found = records.results_at(copy_to_change, "smoke", [figure()])
    told = {w.file: w.what for w in found.problems}
    assert told.keys() == {"samples.parquet", "summary.json", "manifest.json"}
    assert told["samples.parquet"].startswith(f"2 runs of {FIGURE} are without it, such as {CASE}")
    assert told["summary.json"].startswith("1 run of")


def test_memory_and_disk_are_planned(tmp_path, monkeypatch):
    monkeypatch.delenv("SNAKEMAKE_OUTPUT_CACHE", raising=False)
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    fig8, fig12 = figures_at("full", ["bless2025/fig8", "bless2025/fig12"])
    small, large, short = (list(plan.runs_of(planned_figure(f, []))) for f in (figure(), fig8, fig12))
    told = max(guest_mb(point) for point in fig12.points) / 1e3
    assert f"may grow to {told:.1f} GB" in forecast.memory_words(short, 2, available=8e9), "what a scheduler is told"
    assert "too much" not in forecast.memory_words(small, 2, available=8e9)
    assert "(bless2025/fig8)" in forecast.memory_words([*small, *large], 2, available=8e9)
    assert "too much: use fewer --cores" in forecast.memory_words(large, 64, available=8e9)
    assert 1e8 < forecast.available_bytes() < 1e14


@pytest.mark.slow
def test_the_whole_site_with_every_notebook_from_what_ships(tmp_path):
    """As in a fresh clone in which nothing has been run: ``make report``."""
    environment = {**os.environ, "BBRLAB_RESULTS": str(tmp_path / "results"), "BBRLAB_SHIPPED": str(paths.ROOT / "shipped")}  # fmt: skip
    made = subprocess.run([sys.executable, "-m", "bbrlab.cli.main", "site", "--execute", "--out", tmp_path / "site"], env=environment, capture_output=True, text=True)  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    names = {p.stem for p in (paths.ROOT / "notebooks").glob("*.ipynb")} - {"00_start"}
    pages = {p.stem for p in (tmp_path / "site" / "notebooks").glob("*.html")}
    assert names <= pages
