"""What is said of finished runs, and how a run that was made again differs from it: what somebody edited or left out is named."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.git import git
from bbrlab.cli.commands import app
from bbrlab.comparison import expected_runs as records
from bbrlab.comparison import verify
from bbrlab.comparison.differences import compare
from bbrlab.comparison.expected_runs import ExpectedRun, Problem, ResultsFolder, ShippedResults, results_at, shipped_by
from bbrlab.results import shipped
from bbrlab.results.figures import figures_at, runs_of
from bbrlab.results.run_folder import RunFolder
from tests.made_up import nothing_measured, of_this_version, whole_summary

REAL = paths.ROOT / "shipped"
FIGURE = "tang/fig2"


@pytest.fixture
def folder(tmp_path) -> Path:
    """Somebody's results: a figure's table."""
    target = tmp_path / "theirs" / "quick" / f"{FIGURE}.parquet"
    target.parent.mkdir(parents=True)
    shutil.copy(REAL / "quick" / f"{FIGURE}.parquet", target)
    return tmp_path / "theirs"


def with_files(folder: Path) -> None:
    """Put a run's files, empty, to each run that the table has."""
    table = pd.read_parquet(folder / "quick" / f"{FIGURE}.parquet")
    for point, seed in table[["point", "seed"]].drop_duplicates().itertuples(index=False):
        place = folder / "runs" / FIGURE / point / f"seed-{seed}"
        place.mkdir(parents=True)
        for name in ("summary.json", "manifest.json", "samples.parquet"):
            (place / name).touch()


# --- what was asked for --------------------------------------------------------------------------------------------------


def asked(folder: Path, scale: str, *names: str) -> ShippedResults | ResultsFolder:
    return results_at(folder, scale, figures_at(scale, list(names)), names)


def test_what_was_asked_for_by_name_and_was_not_run_is_no_pass(folder):
    with pytest.raises(UserError, match=r"has no run of bless2025/fig14 at scale quick .*; leave it out"):
        asked(folder, "quick", "tang", "bless2025/fig14")
    with pytest.raises(UserError, match=r"has no run of cao2019 at scale quick"):
        asked(folder, "quick", "cao2019", "fig2")
    found = asked(folder, "quick", "tang")
    others = [figure.id for figure in figures_at("quick", ["tang"]) if figure.id != FIGURE]
    assert found.left_out == others and {key[0] for key in found.keys} == {FIGURE}
    assert results_at(folder, "quick", figures_at("quick", [])).left_out == [], "all that there is"


def test_figures_that_do_not_ship_are_named(tmp_path):
    shutil.copytree(REAL / "full", tmp_path / "full")
    manifest = files.read_json(tmp_path / "full" / "manifest.json")
    del manifest["figures"][FIGURE]
    files.write_json(tmp_path / "full" / "manifest.json", manifest)
    of_this_version(tmp_path, "full")
    with pytest.raises(UserError, match=f"has no run of {FIGURE} at scale full"):
        asked(tmp_path, "full", "tang", FIGURE)
    assert FIGURE in asked(tmp_path, "full", "tang").left_out


def test_the_command_names_what_it_leaves_out(folder, monkeypatch):
    with_files(folder)
    monkeypatch.setattr(verify, "run_again", lambda found, records, *more: [verify.Outcome(r, []) for r in records])
    argv = ["verify", "--results", str(folder), "--scale", "quick"]
    done = CliRunner().invoke(app, [*argv, "tang"])
    assert done.exit_code == 0 and "without a run there, and left out: tang/fig3, " in done.output
    assert "left out" not in CliRunner().invoke(app, argv).output
    done = CliRunner().invoke(app, [*argv, "tang", "bless2025/fig14"])
    assert isinstance(done.exception, UserError), "nothing is run"


# --- runs of other versions ----------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path) -> Path:
    """What ships of tang, a figure of which another version made: its kernel has another key, or its conditions were others."""
    shutil.copytree(REAL / "quick", tmp_path / "quick")
    of_this_version(tmp_path)
    path = tmp_path / "quick" / "manifest.json"
    manifest, runs = files.read_json(path), pd.read_parquet(tmp_path / "quick" / "runs.parquet")
    runs.loc[runs["figure"] == FIGURE, "commit"] = "0" * 40
    runs.to_parquet(tmp_path / "quick" / "runs.parquet", index=False)
    other = dict(manifest["versions"][0], commits={"0" * 40: "2026-01-02T03:04:05Z"})
    manifest["commits"]["0" * 40] = int((runs["figure"] == FIGURE).sum())
    manifest["versions"].append(other)
    manifest["files"]["runs.parquet"] = files.sha256(tmp_path / "quick" / "runs.parquet")
    files.write_json(path, manifest)
    return tmp_path


def of_another(folder: Path, what: str) -> None:
    path = folder / "quick" / "manifest.json"
    manifest = files.read_json(path)
    other = manifest["versions"][-1]
    if what == "kernel":
        other["kernel"]["key"] = "0123456789abcdef"
    else:
        other["conditions"] = "the queue was a sieve"
    files.write_json(path, manifest | {"sha256": shipped.content_hash(manifest)})


@pytest.mark.parametrize(
    ("what", "said"), [("kernel", "kernel 0123456789abcdef"), ("conditions", "the queue was a sieve")]
)
def test_runs_of_another_version_are_not_chosen_and_it_is_said_what_makes_them_again(mixed, monkeypatch, what, said):
    of_another(mixed, what)
    found = asked(mixed, "quick", "tang")
    assert FIGURE not in {key[0] for key in found.keys}
    assert not any(FIGURE in f"{one.file} {one.what}" for one in found.problems), "it is no fault of theirs"
    (older,) = found.older
    assert older.figures == {FIGURE} and older.words.startswith(f"{older.runs} runs are of another version of bbrlab")
    assert said in older.words and FIGURE not in found.left_out
    with pytest.raises(
        UserError, match=rf"{FIGURE} cannot be verified at scale quick with this version: [0-9,]+ runs are of .*{said}"
    ):
        asked(mixed, "quick", "tang", FIGURE)
    with pytest.raises(
        UserError, match=rf"cannot be verified .*; get the version of bbrlab .*: bbrlab verify --scale quick {FIGURE}"
    ):
        asked(mixed, "quick", FIGURE)
    monkeypatch.setattr(verify, "run_again", lambda found, records, *more: [verify.Outcome(r, []) for r in records])
    done = CliRunner().invoke(app, ["verify", "tang", "--results", str(mixed), "--scale", "quick", "--json"])
    assert f"{older.words}, and cannot be chosen; {older.remedy}" in done.stderr
    told = json.loads(done.stdout)["of_another_version"]
    assert told == [{"runs": older.runs, "words": older.words, "remedy": older.remedy}]


def test_the_commit_to_check_out_is_the_one_that_brought_the_figures_table(monkeypatch):
    brought = git("log", "-1", "--format=%H", "--", f"shipped/full/{FIGURE}.parquet")
    if not brought or git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("no Git, or none of this package's history")
    assert shipped_by(REAL, "full", [FIGURE]) == brought
    monkeypatch.setattr(records, "git", lambda *argv: "true" if "--is-shallow-repository" in argv else "c" * 40)
    assert shipped_by(REAL, "full", [FIGURE]) == "", (
        "of a shallow clone the oldest commit seems to have brought everything"
    )


def test_where_nothing_can_be_made_again_it_is_an_error(tmp_path):
    shutil.copytree(REAL / "quick", tmp_path / "quick")
    path = tmp_path / "quick" / "manifest.json"
    manifest = files.read_json(path)
    for version in manifest["versions"]:
        version["kernel"]["key"] = "0" * 16
    files.write_json(path, manifest | {"sha256": shipped.content_hash(manifest)})
    with pytest.raises(
        UserError, match=r"nothing of scale quick can be verified with this version: [0-9,]+ runs are of another"
    ):
        asked(tmp_path, "quick")


def test_a_kernel_by_another_compiler_is_of_this_version(tmp_path):
    """Its key is another one than here, and still the one that this version's recipe gives with that compiler."""
    shutil.copytree(REAL / "quick", tmp_path / "quick")
    path = tmp_path / "quick" / "manifest.json"
    manifest = files.read_json(path)
    for version in manifest["versions"]:
        version["kernel"]["compiler"] = "cc of another machine"
    files.write_json(path, manifest)
    assert asked(of_this_version(tmp_path), "quick").keys


# --- edited files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edited", [None, 7, ["a"], {}])
def test_a_hash_that_is_none_is_named(folder, edited):
    (run,) = [run for run in runs_of(figures_at("quick", [FIGURE])[0], results=folder) if run.seed == 1][:1]
    run.folder.mkdir(parents=True)
    files.write_json(run.folder / "summary.json", whole_summary(nothing_measured()))
    files.write_json(run.folder / "manifest.json", {"outputs_sha256": {"samples.parquet": edited}})
    pd.DataFrame({"x": [1]}).to_parquet(run.folder / "samples.parquet")
    found = asked(folder, "quick", FIGURE)
    expected = found.expected((FIGURE, run.point.label, 1))
    (wrong,) = expected.problems
    assert wrong == Problem("manifest.json", f"outputs_sha256.samples.parquet: is {edited!r}, and no hash")


@pytest.mark.parametrize("kernel", [{"name": ["lab"], "key": "k"}, {"name": "lab", "key": None}, {"name": "lab"}, "lab", None])  # fmt: skip
def test_a_kernel_that_is_none_is_told_and_nothing_is_run(folder, kernel):
    (run,) = [run for run in runs_of(figures_at("quick", [FIGURE])[0], results=folder) if run.seed == 1][:1]
    run.folder.mkdir(parents=True)
    files.write_json(run.folder / "summary.json", whole_summary(nothing_measured()) | {"kernel": kernel})
    files.write_json(run.folder / "manifest.json", {})
    pd.DataFrame({"x": [1]}).to_parquet(run.folder / "samples.parquet")
    found = asked(folder, "quick", FIGURE)
    (outcome,) = verify.run_again(found, [found.expected((FIGURE, run.point.label, 1))], 1)
    assert "does not say of which kernel it is" in outcome.problems[0].what


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        (lambda t: t.rename(columns={"y": "z"}), ": has a column z, again none of this name"),
        (lambda t: t.assign(y=[3, 5]), ": y, row 1: 5, again 4"),
        (lambda t: t.assign(w=1), ": 2 rows of 3 columns, again 2 of 2"),
        (lambda t: t[["y", "x"]], ""),
    ],
)
def test_how_a_table_differs_from_the_one_made_again(folder, tmp_path, edited, said):
    """Also one of equal shape, in which a column has another name."""
    (run,) = [run for run in runs_of(figures_at("quick", [FIGURE])[0], results=folder) if run.seed == 1][:1]
    again = replace(run, folder=tmp_path / "again")
    table = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
    for place, content in ((run.folder, edited(table)), (again.folder, table)):
        place.mkdir(parents=True)
        files.write_json(place / "summary.json", {"checks": []})
        content.to_parquet(place / "samples.parquet")
    expected = ExpectedRun(run, None, RunFolder(run.folder).table_hashes, None, summary={"a": 1})
    wrong = {one.file: one.what for one in compare(expected, again.folder, {})}
    assert wrong["samples.parquet"].startswith("has hash ")
    assert wrong["samples.parquet"].endswith(RunFolder(again.folder).table_hashes["samples.parquet"][:12] + said)


# --- files that cannot be read, points that there are not any more -------------------------------------------------------------


def test_runs_of_a_scenario_that_has_changed_are_told(folder):
    file = folder / "quick" / f"{FIGURE}.parquet"
    table = pd.read_parquet(file)
    gone = table["point"] == table["point"].iloc[0]
    table.assign(point=table["point"].where(~gone, table["point"] + "0")).to_parquet(file, index=False)
    with_files(folder)
    found = asked(folder, "quick", "tang/fig2")
    assert [one.file for one in found.problems] == [f"{FIGURE}.parquet"]
    assert "not of a point of this checkout's scenarios, such as" in found.problems[0].what
    assert len(found.keys) == len(table.loc[~gone, ["point", "seed"]].drop_duplicates())


def test_a_shipped_file_that_is_cut_off_is_told_as_the_manifest_has_it(tmp_path):
    shutil.copytree(REAL / "quick", tmp_path / "quick")
    of_this_version(tmp_path)
    for name, told in ((f"{FIGURE}.parquet", False), ("runs.parquet", True)):
        path = tmp_path / "quick" / name
        path.write_bytes(path.read_bytes()[:500])
        if told:
            with pytest.raises(UserError, match=r"runs\.parquet: cannot be read: has hash .*; get these results anew"):
                asked(tmp_path, "quick", "tang")
        else:
            found = asked(tmp_path, "quick", "tang")
            assert [one.file for one in found.problems] == [name] and found.keys


# --- files --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_what_ships_is_as_its_manifest_says(scale):
    assert shipped.tampered(REAL, scale) == []


@pytest.mark.parametrize("gone", ["manifest.json", "runs.parquet"])
def test_a_missing_file_that_makes_results_shipped_ones_is_named(tmp_path, gone):
    shutil.copytree(REAL / "quick", tmp_path / "quick")
    (tmp_path / "quick" / gone).unlink()
    for look in (lambda: asked(tmp_path, "quick", "tang"), lambda: shipped.shipped_scale("quick", tmp_path)):
        with pytest.raises(UserError, match=f"{gone}: is missing; get these results anew"):
            look()


@pytest.mark.parametrize("name", ["../../victim.parquet", "/victim.parquet", "a/b/c.parquet", "..parquet", "notes.txt"])
def test_a_manifest_names_no_file_elsewhere(tmp_path, name):
    shutil.copytree(REAL / "quick", tmp_path / "quick")
    file = tmp_path / "quick" / "manifest.json"
    content = files.read_json(file)
    content["files"][name] = "0" * 64
    files.write_json(file, content | {"sha256": shipped.content_hash(content)})
    with pytest.raises(UserError, match=r"manifest\.json: files\."):
        shipped.read_manifest(tmp_path, "quick")


def test_a_link_is_no_file_of_what_ships(tmp_path):
    shutil.copytree(REAL / "quick", tmp_path / "quick")
    for name in ("points.parquet", "tang"):
        (tmp_path / "quick" / name).rename(tmp_path / name)
        (tmp_path / "quick" / name).symlink_to(tmp_path / name)
    told = dict(shipped.tampered(tmp_path, "quick"))
    assert told["points.parquet"] == told["tang/fig2.parquet"] == "is a link, which may lead anywhere"


@pytest.mark.parametrize("cached", [True, False])
def test_a_cached_run_has_no_table_of_short_flows_and_the_hash_is_compared(tmp_path, cached):
    """The cache between workflows keeps three files of a run (rules/experiments.smk)."""
    figure = figures_at("quick", ["bless2025/fig14"])[0]
    run = runs_of(figure, results=tmp_path / "results")[0]
    run.folder.mkdir(parents=True)
    kept = tmp_path / "cache" if cached else run.folder
    kept.mkdir(exist_ok=True)
    (kept / "samples.parquet").write_bytes(b"samples")
    said = {**RunFolder(kept).table_hashes, "short_flows.parquet": "a" * 64}
    files.write_json(kept / "manifest.json", {"outputs_sha256": said})
    files.write_json(kept / "summary.json", whole_summary({}))
    for file in kept.iterdir() if cached else ():
        (run.folder / file.name).symlink_to(file)
    expected = ResultsFolder(tmp_path / "results", "quick", {figure.id: figure}).expected(
        (figure.id, run.point.label, run.seed)
    )
    assert expected.problems == (() if cached else (Problem("short_flows.parquet", "is missing"),))
    assert expected.tables.get("short_flows.parquet") == ("a" * 64 if cached else None)
    again = tmp_path / "again"
    shutil.copytree(run.folder, again)
    (again / "short_flows.parquet").write_bytes(b"another")
    told = {w.file: w.what for w in compare(expected, again, {})}
    if cached:
        assert told["short_flows.parquet"].startswith("has hash aaaaaaaaaaaa, again ")
