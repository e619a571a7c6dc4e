"""The archive of a campaign: the same bytes for the same input, whole, nothing in it that must not be, refused with one message."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pandas as pd
import pytest

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.kernel import sources
from bbrlab.results.figures import runs_of
from bbrlab_apps.archive import checkout, pack
from bbrlab_apps.archive.verdicts import check_judged
from bbrlab_apps.shipping.commands import warn_of_changed_code
from bbrlab_apps.shipping.pack import Finished
from tests.finished import FIGURE, figure

SOURCES = ("LICENSE", "LICENSES", "Snakefile", "CITATION.cff", "pyproject.toml", "config", "envs/requirements.lock", "envs/setup.sh",
           "kernels/options")  # fmt: skip
VALIDATOR = paths.ROOT / ".venv-citing/bin/python"
WHEN = {"GIT_AUTHOR_DATE": "2026-11-23T01:00:00Z", "GIT_COMMITTER_DATE": "2026-11-23T01:00:00Z"}


def git(folder: Path, *words: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=somebody", "-c", "user.email=somebody@example.org", *words]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **WHEN})


def commit_all(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A checkout of some of this package's files, with a link among them."""
    folder = tmp_path_factory.mktemp("package")
    for name in SOURCES:
        place, target = paths.ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if place.is_dir() else shutil.copy2)(place, target)
    (folder / "kernels" / "link.patch").symlink_to("options")
    git(folder, "init", "--quiet")
    commit_all(folder)
    return folder


@pytest.fixture
def mine_to_change(package, tmp_path) -> Path:
    return shutil.copytree(package, tmp_path / "package", symlinks=True)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory, finished_campaign) -> Path:
    """A finished campaign with what is in the folder of one beside its runs and tables."""
    results = shutil.copytree(finished_campaign, tmp_path_factory.mktemp("campaign") / "results")
    for run in runs_of(figure(), results=results):
        point = results / "points" / FIGURE / f"{run.point.label}.yaml"
        point.parent.mkdir(parents=True, exist_ok=True)
        point.write_text("scenario: {}\n")
    files.write_json(results / "kernel.json", {"name": "lab-6.12"})
    (results / "smoke" / "tang.ipynb").write_text("{}")
    (results / "smoke" / ".tang.ipynb.partial").write_text("half a notebook")
    files.write_json(results / "models" / FIGURE / "other.json", {})
    return results


@pytest.fixture
def results(campaign, tmp_path) -> Path:
    """A copy that may be changed, with other times of its files."""
    return shutil.copytree(campaign, tmp_path / "results", copy_function=shutil.copyfile)


def archive(results: Path, out: Path, package: Path, whole: bool = False) -> pack.Packed:
    return pack.pack(Finished("smoke", [figure()], results), out, whole=whole, checkout=package)


@pytest.fixture(scope="module")
def packed(campaign, package, tmp_path_factory) -> pack.Packed:
    return archive(campaign, tmp_path_factory.mktemp("packed"), package)


def unpack(made: pack.Packed, tmp_path: Path) -> Path:
    """As a reader does it."""
    subprocess.run(["tar", "-C", str(tmp_path), "-xzf", str(made.path)], check=True)
    return tmp_path / made.path.name.removesuffix(".tar.gz")


@pytest.fixture
def unpacked(packed, tmp_path) -> Path:
    return unpack(packed, tmp_path)


def check_sums(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sha256sum", "--quiet", "-c", pack.SUMS], cwd=folder, capture_output=True, text=True, check=False
    )


pytestmark = pytest.mark.guest


def test_the_same_input_is_the_same_bytes(packed, results, package, tmp_path):
    again = archive(results, tmp_path / "again", package)
    assert again.path.name == packed.path.name
    assert again.sha256 == packed.sha256 == files.sha256(packed.path)
    assert [p.name for p in (tmp_path / "again").iterdir()] == [packed.path.name], "nothing aside is left"
    with tarfile.open(packed.path) as tar:
        entries = tar.getmembers()
    assert [e.name for e in entries] == sorted((e.name for e in entries if not e.name.endswith(pack.SUMS)), key=str) + [
        entries[-1].name
    ]
    assert {e.mtime for e in entries} == {1795395600}
    assert {(e.uid, e.gid, e.uname, e.gname) for e in entries} == {(0, 0, "", "")}


def test_sums_hold_and_find_a_changed_and_a_missing_file(unpacked):
    assert check_sums(unpacked).returncode == 0
    named = {line.split("  ")[1] for line in (unpacked / pack.SUMS).read_text().splitlines()}
    there = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file() and not p.is_symlink()}
    assert named == there - {pack.SUMS}, "every file has a sum"
    table = unpacked / "results" / "smoke" / f"{FIGURE}.csv"
    table.write_text(table.read_text().replace("cubic", "reno"))
    assert f"{FIGURE}.csv: FAILED" in check_sums(unpacked).stdout
    table.unlink()
    assert check_sums(unpacked).returncode == 1


def test_what_is_in_it_and_what_is_not(unpacked, packed, package):
    there = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file()}
    for name in ("README.md", "MANIFEST.json", "ro-crate-metadata.json", "LICENSE", "LICENSES/GPL-2.0-only.txt", "source/Snakefile",
                 "results/smoke/tang.ipynb", "results/kernel.json"):  # fmt: skip
        assert name in there
    runs = [name for name in there if name.startswith("results/runs/")]
    assert {Path(name).name for name in runs} == {"summary.json", "samples.parquet", "manifest.json"}, "no logs"
    assert len(runs) == 12
    assert not [name for name in there if "partial" in name or name.endswith("other.json")]
    assert not [p for p in unpacked.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"], "no binary"
    assert (unpacked / "source/kernels/link.patch").readlink() == Path("options")
    assert os.access(unpacked / "source/envs/setup.sh", os.X_OK)
    for name in ("README.md", "MANIFEST.json", "ro-crate-metadata.json"):
        text = (unpacked / name).read_text()
        # In the image ROOT is /bbrlab, which the end of other paths is.
        assert not re.search(rf"(?<!\w){re.escape(str(paths.ROOT))}\b", text) and str(package) not in text
        assert os.uname().nodename not in text


def test_files_are_counted_as_they_are(packed, unpacked):
    """All that are in the archive; in MANIFEST.json, which cannot count what is made of it, all but the files about the others."""
    with tarfile.open(packed.path) as tar:
        entries = tar.getmembers()
    assert packed.files == len(entries) and any(entry.issym() for entry in entries)
    said = files.read_json(unpacked / "MANIFEST.json")["content"]
    assert all((unpacked / name).is_file() for name in said["besides"])
    others = [e for e in entries if e.name.split("/", 1)[1] not in said["besides"]]
    assert (said["files"], said["bytes"]) == (len(others), sum(e.size for e in others))
    assert len(entries) == len(others) + len(said["besides"])


@pytest.mark.compiles
def test_the_manifest_says_what_it_came_from(unpacked, packed):
    told = files.read_json(unpacked / "MANIFEST.json")
    assert told == packed.manifest
    assert told["figures"] == {FIGURE: 4}
    assert (told["scale"], told["commit_date"], len(told["commit"])) == ("smoke", "2026-11-23", 40)
    hashes = told["kernel"]["source_hashes"]
    assert hashes["sha256"] == files.sha256(Path("/usr/src") / hashes["file"])
    readme = (unpacked / "README.md").read_text()
    assert told["kernel"]["source"] in readme and hashes["sha256"] in readme and told["commit"] in readme
    assert not told["site"] and "the site" not in readme


def test_the_crate_describes_files_that_are_there(unpacked):
    graph = json.loads((unpacked / "ro-crate-metadata.json").read_text())["@graph"]
    parts = [
        e["@id"]
        for e in graph
        if {"File", "Dataset"} & set([e["@type"]] if isinstance(e["@type"], str) else e["@type"])
    ]
    from urllib.parse import unquote

    lacking = [id for id in parts if not (unpacked / unquote(id)).exists()]
    # Of the package only some files are in this checkout.
    assert lacking == [id for id in lacking if id.startswith("source/")]
    assert len([e for e in graph if str(e["@id"]).startswith("#run/")]) == 4


def test_a_site_is_in_it_where_there_is_one(results, package, tmp_path):
    (results / "smoke" / "site").mkdir()
    (results / "smoke" / "site" / "index.html").write_text("the site")
    made = archive(results, tmp_path / "out", package)
    assert made.manifest["site"]
    with tarfile.open(made.path) as tar:
        readme = tar.extractfile(f"{made.path.name.removesuffix('.tar.gz')}/README.md")
        assert readme and b"results/smoke/site/index.html" in readme.read()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda r: shutil.rmtree(next((r / "runs" / FIGURE).iterdir())), "are missing, such as .*; run: BBRLAB_RESULTS="),
        (lambda r: (r / "kernel.json").unlink(), "kernel.json: is missing: the campaign is not finished"),
        (lambda r: (r / "smoke" / f"{FIGURE}.parquet").unlink(), f"{FIGURE}.parquet: is missing: the campaign"),
    ],
)  # fmt: skip
def test_a_campaign_that_is_not_finished_is_not_packed(results, package, tmp_path, broken, said):
    broken(results)
    with pytest.raises(UserError, match=said):
        archive(results, tmp_path / "out", package)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["points"], marks=pytest.mark.slow),
        pytest.param(["claims", "statements"], marks=pytest.mark.slow),
        ["tang.claims", "tang.statements"],
    ],
)
def test_a_part_is_packed_with_the_verdicts_that_there_are_the_whole_needs_all(results, names):
    part = Finished("smoke", [figure()], results)
    for name in names:
        (results / "smoke" / f"{name}.parquet").unlink()
    check_judged(part, whole=False)
    with pytest.raises(UserError, match=rf"{names[0]}\.parquet: is missing: the campaign is not finished"):
        check_judged(part, whole=True)


@pytest.mark.parametrize("name", ["statements", pytest.param("tang.claims", marks=pytest.mark.slow), "points"])
def test_verdicts_that_are_not_of_the_tables_are_not_packed(results, package, tmp_path, name):
    """As a campaign leaves them of which a part was run again, or a claim was corrected."""
    path = results / "smoke" / f"{name}.parquet"
    table = pd.read_parquet(path)
    column = "mean" if name == "points" else "verdict"
    table.assign(**{column: 7.0 if name == "points" else "reproduced"}).to_parquet(path, index=False)
    with pytest.raises(UserError, match=rf"{name}.parquet: is not what the tables beside it .* -- all$"):
        archive(results, tmp_path / "out", package)
    table.iloc[1:].to_parquet(path, index=False)
    with pytest.raises(UserError, match=rf"{name}.parquet: is not what the tables beside it"):
        check_judged(Finished("smoke", [figure()], results))


def test_a_whole_campaign_has_its_scorecard(results, package, tmp_path):
    with pytest.raises(UserError, match="scorecard.json: is missing: the campaign is not finished"):
        archive(results, tmp_path / "out", package, whole=True)
    for name in ("scorecard.json", "overview.ipynb"):
        (results / "smoke" / name).write_text("{}")
    assert archive(results, tmp_path / "out", package, whole=True).path.exists()


def test_sources_are_those_of_a_commit(mine_to_change, tmp_path):
    first = checkout.commit_of(mine_to_change)
    assert (first.day, first.time_s) == ("2026-11-23", 1795395600)
    (mine_to_change / "new.c").write_text("int x;")
    with pytest.raises(UserError, match=r"new.c: not as in a commit, so that nobody could get these sources"):
        checkout.commit_of(mine_to_change)
    assert checkout.commit_of(mine_to_change, [mine_to_change]) == first, "a folder of results may lie there"
    (mine_to_change / "LICENSE").write_text("mine")
    with pytest.raises(UserError, match=r"LICENSE: not as in a commit"):
        checkout.commit_of(mine_to_change, [mine_to_change])
    with pytest.raises(UserError, match=r"LICENSE and 1 more: "):
        checkout.commit_of(mine_to_change)
    commit_all(mine_to_change)
    assert checkout.commit_of(mine_to_change).name != first.name


def test_runs_of_a_commit_that_nobody_can_get_are_told(mine_to_change, monkeypatch, capsys):
    """One of a branch that was not kept, and files that no commit has; not one before what is checked out."""
    first = checkout.commit_of(mine_to_change).name
    git(mine_to_change, "checkout", "--quiet", "-b", "mine")
    (mine_to_change / "LICENSE").write_text("mine")
    commit_all(mine_to_change)
    gone = checkout.commit_of(mine_to_change).name
    git(mine_to_change, "checkout", "--quiet", "-")
    (mine_to_change / "LICENSE").write_text("ours")
    commit_all(mine_to_change)
    monkeypatch.setattr(paths, "ROOT", mine_to_change)
    warn_of_changed_code({first: 2})
    assert capsys.readouterr().err == ""
    warn_of_changed_code({first + "+": 3})
    assert f"(3 of {first}+): no commit has their code" in capsys.readouterr().err
    warn_of_changed_code({first: 1, gone: 7})
    said = capsys.readouterr().err
    assert f"(7 of {gone}): not in the history" in said and said.count("\n") == 1
    monkeypatch.setattr(paths, "ROOT", mine_to_change / "config")
    warn_of_changed_code({gone: 7})
    assert capsys.readouterr().err == "", "a folder of somebody's repository"
    monkeypatch.setattr(paths, "ROOT", mine_to_change)
    monkeypatch.setenv("PATH", "")
    warn_of_changed_code({gone: 7})
    assert capsys.readouterr().err == "", "without Git nothing can be said"


def test_without_git_or_a_commit(mine_to_change, monkeypatch):
    shutil.rmtree(mine_to_change / ".git")
    with pytest.raises(UserError, match="is no Git checkout"):
        checkout.commit_of(mine_to_change)
    git(mine_to_change, "init", "--quiet")
    with pytest.raises(UserError, match="Git has no commit yet"):
        checkout.commit_of(mine_to_change)
    commit_all(mine_to_change)
    with pytest.raises(UserError, match="is no Git checkout"):  # a folder of somebody's repository
        checkout.commit_of(mine_to_change / "config")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="git is not installed; run: apt-get install git"):
        checkout.commit_of(mine_to_change)


def test_no_room_is_told_before_anything_is_written(results, package, tmp_path, monkeypatch):
    free = shutil._ntuple_diskusage(10**9, 10**9 - 10**4, 10**4)  # type: ignore[attr-defined]
    monkeypatch.setattr(pack.shutil, "disk_usage", lambda place: free)
    with pytest.raises(
        UserError, match=r"the archive may take [\d]+ MB, and 0 MB are free; make room, or choose another"
    ):
        archive(results, tmp_path / "out", package)
    assert not (tmp_path / "out").exists()


def test_a_kernel_of_another_source_is_not_told_by_the_hash_of_this_one(results, package, tmp_path, monkeypatch):
    found = sources.Located("linux-source-6.12 9.9", lambda folder, run: None)
    monkeypatch.setattr(pack, "locate", lambda source, fetch: found)
    with pytest.raises(UserError, match="here is linux-source-6.12 9.9: its hash cannot be told"):
        archive(results, tmp_path / "out", package)


def test_a_file_that_changes_while_it_is_packed_is_found(tmp_path):
    changing = tmp_path / "a"
    changing.write_text("one")
    member = pack.Member("a", changing)
    sums = {"a": member.digest()}
    changing.write_text("two")
    with pytest.raises(UserError, match="changed while it was packed"):
        pack._write(tmp_path / "x.tar.gz", "x", 0, [member], sums)


def test_what_tells_a_kernels_source_from_another(monkeypatch):
    fetched = sources.Source(debian="linux-source-6.1", version="6.1.1-1", sha256="a" * 64)
    assert sources.hashes_of(fetched) == {"file": "linux-source-6.1_6.1.1-1_all.deb", "sha256": "a" * 64}
    repository = sources.Source(git="https://example.org/linux.git", commit="b" * 40)
    locked = {"commit": "b" * 40, "tree": "c" * 40}
    monkeypatch.setattr(sources, "read_lock", lambda file: {repository.name: locked})
    assert sources.hashes_of(repository) == {"git": "https://example.org/linux.git", **locked}
    with pytest.raises(UserError, match="is not installed"):
        sources.hashes_of(sources.Source(debian="linux-source-1.0"))


def test_the_command_tells_what_it_made_or_why_not(tmp_path):
    command = [
        sys.executable,
        "-m",
        "bbrlab.cli.main",
        "artifact",
        "--scale",
        "smoke",
        "--results",
        str(tmp_path / "none"),
    ]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, cwd=paths.ROOT, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("bbrlab: "), done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_crate_is_valid_by_the_profiles_validator(results, tmp_path):
    """All of the package is in this one. What it recommends and is not known (who, URLs) is no failure."""
    assert VALIDATOR.exists(), "run: make test-slow, which makes .venv-citing"
    whole = tmp_path / "whole"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(paths.ROOT), str(whole)], check=True)
    made = archive(results, tmp_path / "out", whole)
    folder = unpack(made, tmp_path)
    command = [str(VALIDATOR), str(paths.ROOT / "tests/archive/validate_crate.py")]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RECOMMENDED: Action agent" in done.stdout, "the profile of runs was looked at"
    path = folder / "ro-crate-metadata.json"
    path.write_text(path.read_text().replace('"instrument"', '"tool"'))
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "REQUIRED: " in done.stdout


@pytest.mark.slow
def test_cffconvert_finds_the_citation_valid():
    done = subprocess.run(
        [str(VALIDATOR.with_name("cffconvert")), "--validate", "-i", str(paths.ROOT / "CITATION.cff")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "valid" in done.stdout, done.stdout + done.stderr
