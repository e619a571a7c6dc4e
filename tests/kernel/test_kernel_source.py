"""Kernel sources: Debian packages, and Git repositories pinned by what the first fetch found."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError

from bbrlab.base.errors import UserError
from bbrlab.base.files import sha256
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
    locked = json.loads(sources.lock_of(source).read_text())[source.name]
    assert locked == {"commit": first, "tree": git(repository, "rev-parse", f"{first}^{{tree}}")}
    assert sources.LOCK.exists() == (how != "full commit"), (
        "a commit of this machine's folder is no part of the checkout"
    )
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
    assert sources.read_lock(sources.LOCK).keys() == {source.name for source in wanted}


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
    locked = sources.read_lock(sources.LOCK)
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


STARTED = ["core.fsmonitor", "filter.x.clean", "filter.x.process", "remote.x.uploadpack", "uploadpack.packObjectsHook",
           "core.alternateRefsCommand", "core.sshCommand", "core.pager", "diff.external", "core.gitProxy"]  # fmt: skip


@pytest.mark.parametrize("start", ["elsewhere", "in it"])
def test_a_strangers_repository_starts_nothing(repository, tmp_path, monkeypatch, start):
    """Its configuration names programs for all that Git does in it; nor is it the one that a command is started in."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/started\n")
    program.chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=x diff=x\n")
    head = commit(repository, "three")
    settings = {name: f"{program} {name}" for name in STARTED} | {
        "url.ext::" + str(program) + " %S .insteadOf": "/",
        "protocol.ext.allow": "always",
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "x",
        "remote.x.promisor": "true",
    }
    for name, value in settings.items():
        git(repository, "config", name, value)
    monkeypatch.chdir(repository if start == "in it" else tmp_path)
    assert sources.head_of(repository) == Source(git=str(repository), commit=head)
    (repository / "Makefile").write_text("four")
    with pytest.raises(UserError, match="Makefile differs from the commit that is checked out"):
        sources.head_of(repository)
    assert unpack(Source(git=str(repository), commit=head), tmp_path / "tree") == "three"
    assert not (tmp_path / "started").exists()


def test_the_present_commit_of_a_folder(repository, tmp_path):
    """Of a working tree of its own, and of a repository without any files."""
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "apart"))
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(tmp_path / "bare"))
    for folder in ("apart", "bare"):
        assert sources.head_of(tmp_path / folder).commit == head
    (tmp_path / "apart/Makefile").chmod(0o755)  # as every file on a disk of Windows
    sources.head_of(tmp_path / "apart")
    (tmp_path / "apart/Makefile").unlink()
    with pytest.raises(UserError, match="apart: Makefile differs"):
        sources.head_of(tmp_path / "apart")


def test_a_folder_beside_a_repository_is_none(repository, tmp_path):
    """Git itself would take upstream.git for it, and compare nothing."""
    repository.rename(tmp_path / "linux.git")
    (tmp_path / "linux").mkdir()
    with pytest.raises(UserError, match="linux: is no Git repository with a commit .*git init"):
        sources.head_of(tmp_path / "linux")
    with pytest.raises(UserError, match="none: is no folder"):
        sources.head_of(tmp_path / "none")


def test_the_present_commit_is_heads_alone(repository):
    """A repository that has no commit checked out, but a branch of another's with one."""
    git(repository, "update-ref", "refs/remotes/origin/HEAD", "HEAD")
    git(repository, "symbolic-ref", "HEAD", "refs/heads/none")
    with pytest.raises(UserError, match="is no Git repository with a commit"):
        sources.head_of(repository)


@pytest.mark.parametrize("place", [".git/HEAD", ".gitattributes"])
def test_git_that_waits_for_ever_is_ended_with_a_message(repository, monkeypatch, place):
    (repository / place).unlink(missing_ok=True)
    os.mkfifo(repository / place)
    monkeypatch.setattr(sources, "LOOK_S", 1.0)
    monkeypatch.setattr(sources, "COMPARE_S", 1.0)
    with pytest.raises(UserError, match="was not done after 1 s"):
        sources.head_of(repository)
    assert str(repository) not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


def test_a_folder_that_cannot_be_compared_is_not_taken_for_unchanged(repository, monkeypatch):
    asked = sources._git_call

    def failing(*arguments, **how):
        return asked(*("no-such-call" if a == "diff-files" else a for a in arguments), **how)

    monkeypatch.setattr(sources, "_git_call", failing)
    with pytest.raises(
        UserError, match="cannot be compared .* git diff-files: git: 'no-such-call' is not a git command"
    ):
        sources.head_of(repository)


def test_a_repository_of_another_user_is_told_with_gits_remedy(repository, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(
        UserError, match="dubious ownership .*: git config --global --add safe.directory .*upstream/.git$"
    ):
        sources.head_of(repository)


def test_a_repository_with_names_by_sha256_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "build"))
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q", "--object-format=sha256")
    commit(folder, "one")
    with pytest.raises(UserError, match="names its commits by SHA-256"):
        sources.head_of(folder)


def test_package_that_is_not_there():
    with pytest.raises(UserError, match="apt-get install linux-source-0.1"):
        locate(Source(debian="linux-source-0.1"), fetch=True)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of kernel source on a mirror of Debian; returns its source and the file on the mirror."""
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "build"))
    tree, pool = tmp_path / "tree", tmp_path / "mirror" / "pool" / "updates" / "main" / "l" / "linux"
    (tree / "linux-0.1").mkdir(parents=True)
    (tree / "linux-0.1" / "Makefile").write_text("of a package")
    content = tmp_path / "content"
    for folder in (content / "usr" / "src", content / "DEBIAN", pool):
        folder.mkdir(parents=True)
    (content / "DEBIAN" / "control").write_text(
        "Package: linux-source-0.1\nVersion: 0.1-1~bpo13+1\nArchitecture: all\nMaintainer: t <t@example.org>\nDescription: t\n"
    )
    archive = content / "usr" / "src" / "linux-source-0.1.tar.xz"
    subprocess.run(["tar", "-C", tree, "-cJf", archive, "linux-0.1"], check=True)
    file = pool / "linux-source-0.1_0.1-1~bpo13+1_all.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", content, file], check=True, capture_output=True)
    monkeypatch.setattr(sources, "_mirrors", lambda: [f"copy:{tmp_path}/empty/", f"copy:{tmp_path}/mirror/"])
    (tmp_path / "empty").mkdir()
    return Source(debian="linux-source-0.1", version="0.1-1~bpo13+1", sha256=sha256(file)), file


@pytest.mark.compiles
def test_a_package_of_another_release_is_fetched_once_and_not_installed(package, tmp_path):
    source, file = package
    assert locate(source, fetch=False).identity == name_version(source) == "linux-source-0.1 0.1-1~bpo13+1"
    assert unpack(source, tmp_path / "one" / "a") == "of a package"
    file.unlink()
    assert unpack(source, tmp_path / "two" / "a") == "of a package"
    assert [p.name for p in (tmp_path / "two").iterdir()] == ["a"]


@pytest.mark.compiles
def test_a_package_with_another_checksum_is_refused(package, tmp_path):
    source, file = package
    with pytest.raises(UserError, match="no mirror of Debian that this machine uses has .*put it into"):
        unpack(source.model_copy(update={"sha256": "0" * 64}), tmp_path / "one" / "a")
    assert not list((tmp_path / "build" / "sources").glob("*.deb"))
    unpack(source, tmp_path / "two" / "a")
    (there,) = (tmp_path / "build" / "sources").glob("*.deb")
    there.write_bytes(b"damaged")
    with pytest.raises(UserError, match="but config/kernels.yaml says .*; remove it"):
        unpack(source, tmp_path / "three" / "a")


@pytest.mark.compiles
def test_a_package_that_no_mirror_has_any_more(package, tmp_path):
    source, file = package
    file.unlink()
    with pytest.raises(UserError, match="mirrors drop old versions: get it from an archive") as caught:
        unpack(source, tmp_path / "one" / "a")
    assert source.sha256 in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "either debian"),
        ({"debian": "x", "git": "y"}, "either debian"),
        ({"git": "x", "commit": "main"}, "hexadecimal"),
        ({"git": "x", "commit": "abcdef12"}, "branch, or a commit of 40"),
        ({"debian": "x", "branch": "v3"}, "belong to git"),
        ({"git": "x", "branch": "v3", "version": "1", "sha256": "0" * 64}, "belong to debian"),
        ({"debian": "x", "version": "1"}, "belong together"),
        ({"debian": "x", "version": "1", "sha256": "0" * 63}, "64 hexadecimal"),
        ({"debian": "x", "version": "../1", "sha256": "0" * 64}, "version must be"),
    ],
)
def test_bad_sources(fields, words):
    with pytest.raises(ValidationError, match=words):
        Source(**fields)
