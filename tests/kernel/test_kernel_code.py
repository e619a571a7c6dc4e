"""The lab's kernel code as a kernel maintainer looks at it: checkpatch, patches that git takes, a private state of whole lines."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.kernel.specs import KernelSpec, find_spec, recipe
from tests.kernel.test_kernel_source import git

pytestmark = pytest.mark.guest  # needs the kernel's source

CODE = [path for folder in ("acks", "bbr", "cca", "sched") for path in sorted((paths.KERNELS / folder).glob("*.[ch]"))]
SERIES = [
    path
    for folder in ("acks", "bbr", "before-4.20", "sched", "three-packets")
    for path in sorted((paths.KERNELS / "patches" / folder).glob("*.patch"))
]
PREFIXES = {
    "acks": ("ack_record", "tcp_record_", "__tcp_record_"),
    "bbr": ("bbrm_",),
    "sched": ("opportunity_",),
}  # of the names of functions
CHECKER = ("scripts/checkpatch.pl", "scripts/spelling.txt", "scripts/const_structs.checkpatch")
# One file says how the kernels differ that the lab is built from; mainline has one kernel only.
COMPATIBILITY = "tcp_bbr_compat.h"


def all_patches(spec: KernelSpec) -> list[Path]:
    """A kernel's series, those for the host last."""
    parts = recipe(spec)
    return [*parts.patches, *parts.host_patches]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A repository with the files of the default kernel's source that its patches touch, and with checkpatch."""
    folder = tmp_path_factory.mktemp("source")
    _, spec = find_spec(None)
    touched = {p for f in all_patches(spec) for p in re.findall(r"(?m)^--- a/(\S+)", f.read_text(encoding="utf-8"))}
    archive = f"/usr/src/{spec.source.debian}.tar.xz"
    wanted = [f"*/{name}" for name in sorted(touched | set(CHECKER))]
    subprocess.run(["tar", "-C", folder, "-xf", archive, "--strip-components=1", "--wildcards", *wanted], check=True)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "source")
    return folder


def checkpatch(tree: Path, *arguments: str) -> str:
    argv = ["perl", tree / CHECKER[0], "--no-tree", "--strict", "--terse", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr + (f"status {done.returncode}" if done.returncode else "")


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize("path", CODE, ids=lambda p: p.name)
def test_checkpatch_has_nothing_to_say_of_the_code(tree, path):
    ignored = ["--ignore", "LINUX_VERSION_CODE,CONSTANT_COMPARISON"] if path.name == COMPATIBILITY else []
    if path.parent.name == "sched":
        ignored = ["--ignore", "CAMELCASE"]  # the kernel's own struct Qdisc
    assert checkpatch(tree, *ignored, "-f", str(path)) == ""


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize("path", SERIES, ids=lambda p: f"{p.parent.name}/{p.name[:4]}")
def test_checkpatch_has_nothing_to_say_of_the_patches(tree, path):
    assert checkpatch(tree, str(path)) == ""


@pytest.mark.slow
@pytest.mark.compiles
def test_git_takes_all_patches_in_their_order(tree):
    """``git am`` applies the default kernel's patches, each with an author, a subject and a reason."""
    patches = all_patches(find_spec(None)[1])
    try:
        git(tree, "am", "--quiet", *map(str, patches))
        messages = git(tree, "log", f"-{len(patches)}", "--format=%s%n%b%x00").split("\0")[:-1]
    finally:
        git(tree, "reset", "-q", "--hard", git(tree, "rev-list", "--max-parents=0", "HEAD"))
    assert len(messages) == len(patches)
    for message in messages:
        assert len(message.split()) > 15, message
        assert "Signed-off-by:" in message


def test_the_private_state_grows_by_whole_cache_lines():
    """What stands behind icsk_ca_priv in every TCP socket, whatever its congestion control, stays where it was in its line."""
    (old,), (new,) = (
        {
            int(n)
            for f in SERIES
            for n in re.findall(rf"(?m)^\{sign}.*icsk_ca_priv\[(\d+)", f.read_text(encoding="utf-8"))
        }
        for sign in "-+"
    )
    assert new > old
    assert (new - old) % 64 == 0


def test_names_at_file_scope_have_a_prefix():
    """A name of the lab's modules is met once in a kernel's list of symbols."""
    found = 0
    for path in CODE:
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"(?m)^(?:static |const |inline |unsigned |struct |enum )*\w+[ *]+(\w+)\(.*[,)]$", text)
        for name in names:
            prefix = PREFIXES.get(path.parent.name, (f"{path.stem}_",))
            assert name.startswith(prefix) or name in ("late_param_cb", "module_param_cb"), (path.name, name)
        found += len(names)
    assert found > 20
