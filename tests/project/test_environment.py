"""The Python environment is the one that is locked: what else is installed into it moves no version."""

from __future__ import annotations

import re
import sysconfig
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bbrlab.base import paths

LOCK = paths.ROOT / "envs" / "requirements.lock"
# The image does without these (envs/image.sh).
ONLY_LINT = {
    canonicalize_name(line)
    for line in (paths.ROOT / "envs" / "lint-requirements.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}


def locked(file: Path) -> dict[str, str]:
    """{package: version} of a file of requirements, as far as they are for this machine."""
    text = file.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [re.sub(r"\s+--hash=\S+", "", line).strip() for line in text.splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {
        canonicalize_name(r.name): next(iter(r.specifier)).version
        for r in found
        if r.marker is None or r.marker.evaluate()
    }


def moved(here: dict[str, str], lock: dict[str, str]) -> dict[str, tuple[str, str]]:
    """{package: (version here, locked version)} where they differ."""
    return {name: (here[name], lock[name]) for name in here.keys() & lock.keys() if here[name] != lock[name]}


def into_the_environment(text: str) -> set[str]:
    """Files of requirements that a text has installed into .venv."""
    text = text.replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.search(r"(?<![\w-])\.venv/bin/pip install", line)]
    return {name for line in lines for name in re.findall(r"-r (envs/\S+\.(?:txt|lock))", line)}


def test_the_environment_is_the_lock():
    site = sysconfig.get_path("purelib")
    here = {canonicalize_name(d.metadata["Name"]): d.version for d in distributions(path=[site])}
    lock = locked(LOCK)
    assert len(lock) > 100
    assert not moved(here, lock), "make setup after removing .venv brings the locked versions back"
    assert lock.keys() - here.keys() <= ONLY_LINT, "locked, and not installed"


def test_what_is_installed_besides_moves_nothing():
    """The Makefile and the documentation: what conflicts with the lock has an environment of its own."""
    texts = [paths.ROOT / "Makefile", *sorted((paths.ROOT / "envs").iterdir()), *sorted((paths.ROOT / "docs").rglob("*.md"))]  # fmt: skip
    files = {name for text in texts for name in into_the_environment(text.read_text(encoding="utf-8"))}
    assert {"envs/slurm.txt", "envs/browser.txt"} <= files
    lock = locked(LOCK)
    for name in sorted(files - {"envs/requirements.lock"}):
        assert not moved(locked(paths.ROOT / name), lock), f"{name}: give it an environment of its own"


@pytest.mark.parametrize("name", ["kubernetes.txt", "citing.txt"])
def test_what_has_an_environment_of_its_own_needs_it(name):
    """And that the test above can fail."""
    assert moved(locked(paths.ROOT / "envs" / name), locked(LOCK))
    assert into_the_environment(f"\t.venv/bin/pip install -q \\\n\t-r envs/x.txt -r envs/{name}\n") == {"envs/x.txt", f"envs/{name}"}  # fmt: skip


def test_one_environment_beside_the_other_has_what_both_have():
    """.venv-kubernetes: what stands in .venv, but for what it has itself."""
    theirs, lock = locked(paths.ROOT / "envs" / "kubernetes.txt"), locked(LOCK)
    assert set(moved(theirs, lock)) == {"python-dateutil"}
    assert not moved(locked(paths.ROOT / "envs" / "kubernetes-test.txt"), theirs)
