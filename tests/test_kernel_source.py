"""Kernel sources: Debian packages, and Git repositories pinned by what the first fetch found."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError

from bbrlab.base.errors import UserError
from bbrlab.kernel import sources
from bbrlab.kernel.sources import Source, locate, name_version


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    (folder / "Makefile").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with branch v3 of two commits, and a lock file and build folder of the test's own."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "v3")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    commit(folder, "one")
    commit(folder, "two")
    monkeypatch.setattr(sources, "LOCK", tmp_path / "sources.lock.json")
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "build"))
    return folder


def unpack(source: Source, folder: Path) -> str:
    folder.mkdir(parents=True)

    def run(step: str, argv: list[str]) -> None:
        subprocess.run(argv, check=True)

    locate(source, fetch=True).unpack(folder, run)
    return (folder / "Makefile").read_text()


@pytest.mark.parametrize("how", ["full commit", "abbreviated", "branch"])
def test_first_fetch_is_recorded_and_held_to(repository, tmp_path, how):
    first = git(repository, "rev-parse", "HEAD~1" if how != "branch" else "HEAD")
    source = {
        "full commit": Source(git=str(repository), commit=first),
        "abbreviated": Source(git=str(repository), commit=first[:8], branch="v3"),
        "branch": Source(git=str(repository), branch="v3"),
    }[how]
    with pytest.raises(UserError, match="not been fetched yet"):
        locate(source, fetch=False)
    wanted = "two" if how == "branch" else "one"
    assert unpack(source, tmp_path / "tree" / "a") == wanted
    locked = json.loads(sources.LOCK.read_text())[source.name]
    assert locked == {"commit": first, "tree": git(repository, "rev-parse", f"{first}^{{tree}}")}
    commit(repository, "three")  # a branch may move, the source may not
    assert unpack(source, tmp_path / "tree2" / "a") == wanted
    assert first in locate(source, fetch=False).identity


def test_fetches_at_once_wait_for_each_other(repository):
    """Several processes that need sources of one repository: all get theirs, and all are recorded."""
    git(repository, "branch", "other", "HEAD~1")
    wanted = [Source(git=str(repository), branch=name) for name in ("v3", "other")]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda source: locate(source, fetch=True).identity, wanted * 2))
    heads = [git(repository, "rev-parse", name) for name in ("v3", "other")]
    assert [head in identity for head, identity in zip(heads * 2, found, strict=True)] == [True] * 4
    assert sources.read_lock().keys() == {source.name for source in wanted}


def test_what_names_a_version_is_the_same_before_and_after_the_first_fetch(repository):
    """Else the workflow would make all runs anew after it."""
    source = Source(git=str(repository), branch="v3")
    before = name_version(source)
    locate(source, fetch=True)
    assert name_version(source) == before != ""
    assert name_version(Source(debian="linux-source-0.1")) == ""


def test_another_tree_is_refused(repository):
    source = Source(git=str(repository), branch="v3")
    locate(source, fetch=True)
    locked = sources.read_lock()
    locked[source.name]["tree"] = "0" * 40
    sources.LOCK.write_text(json.dumps(locked))
    subprocess.run(["rm", "-rf", str(Path(str(repository)).parent / "build")], check=True)
    with pytest.raises(UserError, match="not the source that was fetched before"):
        locate(source, fetch=True)


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LOCK", tmp_path / "sources.lock.json")
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "build"))
    with pytest.raises(
        UserError, match=r"cannot fetch .*: .*needs a network that reaches it.*copy of the repository"
    ) as caught:
        locate(Source(git="https://example.invalid/bbr.git", branch="v3"), fetch=True)
    assert "\n" not in str(caught.value)
    assert not sources.LOCK.exists()


def test_commit_that_is_not_there(repository):
    with pytest.raises(UserError, match="branch v3 has no commit deadbeef"):
        locate(Source(git=str(repository), branch="v3", commit="deadbeef"), fetch=True)


def test_package_that_is_not_there():
    with pytest.raises(UserError, match="apt-get install linux-source-0.1"):
        locate(Source(debian="linux-source-0.1"), fetch=True)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "either debian"),
        ({"debian": "x", "git": "y"}, "either debian"),
        ({"git": "x", "commit": "main"}, "hexadecimal"),
        ({"git": "x", "commit": "abcdef12"}, "branch, or a commit of 40"),
        ({"debian": "x", "branch": "v3"}, "belong to git"),
    ],
)
def test_bad_sources(fields, words):
    with pytest.raises(ValidationError, match=words):
        Source(**fields)
