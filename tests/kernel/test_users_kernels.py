"""A kernel tree of one's own: patches, options and names as a user gives them, what is wrong with them, and builds that go on."""

from __future__ import annotations

import gzip
import os
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.experiment.machine import uml
from bbrlab.kernel import build, compile, source_tree
from bbrlab.kernel.build import build_kernel
from bbrlab.kernel.built import Kernel, boot_options, kernel_identity
from bbrlab.kernel.compile import absent_ccas, check_promised_ccas, objects_of, switched_off
from bbrlab.kernel.key import build_key
from bbrlab.kernel.options import check_config, fragment_of
from bbrlab.kernel.patch_files import parts_of
from bbrlab.kernel.series import apply_series
from bbrlab.kernel.source_tree import TREES_MAX, SourceTree
from bbrlab.kernel.sources import Located
from bbrlab.kernel.specs import Recipe, find_spec, load_specs, recipe
from bbrlab.kernel.steps import Steps
from bbrlab.kernel.users import UsersKernel, checked_entry
from bbrlab.measure.bbr_record import STATES
from bbrlab_apps.crosscheck.runs import check_options
from tests.kernel.test_kernel_source import commit, git
from tests.kernel.users_series import NAMES, OPTION, write_series

PATCH = """From 1 Mon Sep 17 00:00:00 2001
Subject: [PATCH] my BBR

---
diff --git a/net/ipv4/tcp_bbr.c b/net/ipv4/tcp_bbr.c
index 1..2 100644
--- a/net/ipv4/tcp_bbr.c
+++ b/net/ipv4/tcp_bbr.c
@@ -2,7 +2,7 @@
 two
 three
 four
-five
+-- five
 six
 seven
 eight
--\x20
2.39.2
"""
TEN = "one two three four five six seven eight nine ten".replace(" ", "\n") + "\n"


# --- what is a patch -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty, and no patch"),
        (b" \n\n", "is empty, and no patch"),
        (b"\x7fELF\0\0\1", "is a binary file, and no patch"),
        (gzip.compress(PATCH.encode(), mtime=0), r"is compressed \(gzip\); unpack it"),
        (b"\n<!DOCTYPE html>\n<title>Pull request</title>", "is a web page, and no patch; save the patch itself"),
        (b"<html><body>diff --git", "is a web page"),
        (b"From: a@b\nSubject: [PATCH 0/3] my BBR\n\n net/ipv4/tcp_bbr.c | 3 +\n", "has no diff in it: it is a mail without one, such as a cover"),
        (b"int main(void) { return 0; }\n", "has no diff in it, and is no patch; it must be a unified diff"),
        (b"*** a/net/x.c\n--- b/net/x.c\n***************\n*** 1,2 ****\n", ":1: is a context diff"),
        (b"--- net.c\n+++ net.c\n@@ -1 +1 @@\n-a\n+b\n", ":1: names 'net.c' without 'a/' or 'b/' before it"),
        (b"--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", ":1: names .* leads out of the source tree"),
        (b"--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", ":1: names '/etc/passwd', which leads out"),
        (b"diff --git a/x/y b/x/y\nnew file mode 120000\n", ":2: makes or changes a symbolic link"),
        (b"diff --git a/x/y.bin b/x/y.bin\nGIT binary patch\n", ":2: changes a binary file"),
        (b'--- "a/x/\\303\\244"\n+++ "b/x/\\303\\244"\n@@ -1 +1 @@\n-a\n+b\n', ":1: names a file in quotation marks"),
        (PATCH.partition(" seven")[0].encode(), "the file ends within this hunk: it is cut off"),
        (PATCH.replace("@@ -", f"@@ -1,{'9' * 5000} +1 @@\n@@ -", 1).encode(), "the file ends within this hunk: it is cut off"),
        (PATCH.replace(" four\n", "four\n").encode(), ":12: is no line of a hunk: the patch is damaged"),
        (b"@@ -1 +1 @@\n-a\n+b\n", ":1: a hunk .* before any file is named"),
    ],
)  # fmt: skip
def test_what_is_no_patch_is_told_in_one_message(content, said, tmp_path):
    path = tmp_path / "my.patch"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said) as caught:
        parts_of(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_a_patch_that_is_not_there(tmp_path):
    os.mkfifo(tmp_path / "pipe.patch")
    for path in (tmp_path / "none.patch", tmp_path, tmp_path / "pipe.patch", Path("/dev/zero")):
        with pytest.raises(UserError, match=str(path)):
            parts_of(path)


def test_the_files_and_hunks_of_a_patch(tmp_path):
    """Lines within a hunk are no headers, whatever they look like."""
    path = tmp_path / "my.patch"
    text = PATCH.replace("+-- five", "+++ five").replace("-five", "--- five")
    new = (
        "diff --git a/net/new.h b/net/new.h\nnew file mode 100644\n--- /dev/null\n+++ b/net/new.h\n@@ -0,0 +1 @@\n+x\n"
    )
    moved = "diff --git a/net/a.c b/net/b.c\nsimilarity index 100%\nrename from net/a.c\nrename to net/b.c\n"
    path.write_text(text + new + moved)
    assert [(part.files, part.hunks) for part in parts_of(path)] == [
        (["net/ipv4/tcp_bbr.c"], [9]),
        (["net/new.h"], [24]),
        (["net/a.c", "net/b.c"], []),
    ]


@pytest.mark.parametrize(
    "path", sorted((paths.KERNELS / "patches").glob("*/*.patch")), ids=lambda p: f"{p.parent.name}-{p.name[:4]}"
)
def test_the_labs_own_patches_are_patches(path):
    assert all(part.files and part.hunks for part in parts_of(path))


# --- applying them -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path) -> SourceTree:
    """A source tree of two files."""
    found = SourceTree(tmp_path / "tree", reused=False)
    (found.source / "net/ipv4").mkdir(parents=True)
    for name in ("tcp_bbr.c", "tcp_cubic.c"):
        (found.source / "net/ipv4" / name).write_text(TEN)
    return found


class Told:
    """What a build says."""

    def __init__(self, tmp_path: Path):
        self.said: list[str] = []
        self.log = tmp_path / "build.log"
        self.file = open(self.log, "w", encoding="utf-8")  # noqa: SIM115

    def steps(self, tree: SourceTree) -> Steps:
        return Steps("my-bbr3", tree.source, self.log, self.file, self.said.append)

    def apply(self, tree: SourceTree, *series: Path) -> list[str]:
        return apply_series(self.steps(tree), tree, Recipe([], [], [], [], list(series), {}), "linux 6.12")


@pytest.fixture
def told(tmp_path) -> Told:
    return Told(tmp_path)


def patch(tmp_path: Path, text: str = PATCH, name: str = "my.patch") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_only_what_differs_is_put_into_the_tree(tree, told, tmp_path):
    """So make compiles nothing else; what a series before this one did is undone."""
    bbr, cubic = (tree.source / "net/ipv4" / name for name in ("tcp_bbr.c", "tcp_cubic.c"))
    assert told.apply(tree, patch(tmp_path)) == ["net/ipv4/tcp_bbr.c"]
    assert bbr.read_text() == TEN.replace("five", "-- five")
    os.utime(bbr, (1, 1))
    new = (
        "diff --git a/net/new.h b/net/new.h\nnew file mode 100644\n--- /dev/null\n+++ b/net/new.h\n@@ -0,0 +1 @@\n+x\n"
    )
    second = patch(tmp_path, PATCH.replace("tcp_bbr", "tcp_cubic") + new, "second.patch")
    told.apply(tree, patch(tmp_path), second)
    assert bbr.stat().st_mtime == 1, "as it was, and so is its time"
    assert cubic.read_text() != TEN and (tree.source / "net/new.h").read_text() == "x\n"
    told.apply(tree, second)
    assert bbr.read_text() == TEN and cubic.read_text() != TEN
    told.apply(tree)
    assert cubic.read_text() == TEN and not (tree.source / "net/new.h").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PATCH.replace("-five\n", "-5\n"), r"my\.patch does not apply to linux 6\.12: net/ipv4/tcp_bbr\.c:2: my\.patch:9, hunk 1 FAILED; net/ipv4/tcp_bbr\.c: 1 out of 1 hunk FAILED; it may be for another version"),
        (PATCH.replace("-five\n+-- five", "+five\n--- five"), r"this source has it already, or it undoes"),
        (PATCH.replace("tcp_bbr.c", "tcp_bbr2.c"), r"my\.patch:5: this source has no net/ipv4/tcp_bbr2\.c"),
    ],
)  # fmt: skip
def test_a_patch_that_does_not_apply_is_told_with_its_places(tree, told, tmp_path, text, said):
    with pytest.raises(UserError, match=said) as caught:
        told.apply(tree, patch(tmp_path, text))
    assert "\n" not in str(caught.value) and str(told.log) in str(caught.value)
    assert (tree.source / "net/ipv4/tcp_bbr.c").read_text() == TEN, "nothing half-done"
    assert not list(tree.folder.glob("patched-*"))


def test_nothing_is_written_through_a_link_of_the_source(tree, told, tmp_path):
    """A repository may have links, and what is behind them is not the tree's."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "tcp_bbr.c").write_text(TEN)
    (tree.source / "net/mine").symlink_to(outside)
    (tree.source / "net/ipv4/link.c").symlink_to(outside / "tcp_bbr.c")
    for name in ("net/mine/tcp_bbr.c", "net/ipv4/link.c"):
        with pytest.raises(UserError, match=f"{name}: this source has a symbolic link there"):
            told.apply(tree, patch(tmp_path, PATCH.replace("net/ipv4/tcp_bbr.c", name)))
    assert (outside / "tcp_bbr.c").read_text() == TEN


def test_a_series_may_change_what_the_lab_adds(tree, told, tmp_path):
    """On lab-6.12: the lab's own algorithm is a file that is added, before the user's patches."""
    (tmp_path / "tcp_mine.c").write_text(TEN)
    series = patch(tmp_path, PATCH.replace("tcp_bbr", "tcp_mine"))
    apply_series(
        told.steps(tree), tree, Recipe([], [], [], [(tmp_path / "tcp_mine.c", "net/ipv4")], [series], {}), "linux 6.12"
    )
    assert (tree.source / "net/ipv4/tcp_mine.c").read_text() == TEN.replace("five", "-- five")


def test_a_patch_without_a_and_b_is_told(tree, told, tmp_path):
    """As git diff --no-prefix makes it; without the first part of its paths it would be of files that there are not."""
    with pytest.raises(UserError, match=r"my\.patch:5: names 'net/ipv4/tcp_bbr\.c' without 'a/' or 'b/' before it"):
        told.apply(tree, patch(tmp_path, PATCH.replace("a/net", "net").replace("b/net", "net")))


def test_fuzz_and_offset_are_told(tree, told, tmp_path):
    told.apply(tree, patch(tmp_path, PATCH.replace(" two", " 2")))
    warning = next(line for line in told.said if "warning" in line)
    assert "my.patch: net/ipv4/tcp_bbr.c:2: hunk 1 applies only if 1 lines of its context are left out" in warning
    told.said.clear()
    (tree.source / "net/ipv4/tcp_cubic.c").write_text("zero\nzero\n" + TEN)
    told.apply(tree, patch(tmp_path, PATCH.replace("tcp_bbr", "tcp_cubic")))
    assert any("net/ipv4/tcp_cubic.c: applies 2 lines from where it says" in line for line in told.said)
    told.said.clear()
    told.apply(tree, patch(tmp_path))
    assert not [line for line in told.said if "warning" in line or "applies" in line]


def test_patches_of_the_labs_own_apply_without_fuzz(tree, told, tmp_path):
    ours = patch(tmp_path, PATCH.replace(" two", " 2"))
    with pytest.raises(UserError, match="hunk 1 FAILED"):
        apply_series(told.steps(tree), tree, Recipe([], [ours], [], [], [], {}), "linux 6.12")


def test_a_file_that_is_not_unpacked_is_left_out(tree, told, tmp_path):
    """Series touch documentation, of which nothing is compiled."""
    text = "--- a/Documentation/networking/ip-sysctl.rst\n+++ b/Documentation/networking/ip-sysctl.rst\n@@ -1 +1 @@\n-a\n+b\n"
    assert told.apply(tree, patch(tmp_path, text + PATCH)) == ["net/ipv4/tcp_bbr.c"]
    assert any("Documentation/networking/ip-sysctl.rst is not unpacked" in line for line in told.said)


# --- options and names ---------------------------------------------------------------------------------------------------

KCONFIG = """config TCP_CONG_BBR
\ttristate "BBR"
\thelp
\t  Text.

config TCP_CONG_BBR2
\ttristate "BBR2"
\tdepends on IPV6
\tdefault n

config IPV6
\tbool "v6"
"""


@pytest.fixture
def configured(tree) -> Path:
    (tree.source / "net/ipv4/Kconfig").write_text(KCONFIG)
    (tree.source / ".config").write_text(
        "CONFIG_TCP_CONG_BBR=y\n# CONFIG_TCP_CONG_BBR2 is not set\n# CONFIG_IPV6 is not set\n"
    )
    return tree.source


def spec_with(**fields: Any) -> Any:
    return find_spec("mainline-6.12")[1].model_copy(update=fields)


def test_names_switch_the_options_on_that_are_called_by_them(configured):
    """As in Google's v2alpha, whose BBRv2 was not built, and nothing said so."""
    spec = spec_with(names={"bbr1": "bbr", "bbr2": "bbr2", "reno": "reno"})
    lines = fragment_of(spec, recipe(spec), configured).splitlines()
    assert lines[-1] == "CONFIG_TCP_CONG_BBR2=y"
    assert lines.count("CONFIG_TCP_CONG_BBR=y") == 1, "which guest.config has"
    own = Recipe(
        [], [], [], [], [], {"CONFIG_IPV6": "y", "CONFIG_TCP_CONG_BBR2": "n", "CONFIG_X": "a b", "CONFIG_HZ": "1000"}
    )
    assert fragment_of(spec, own, configured).splitlines()[-4:] == [
        "CONFIG_IPV6=y", "# CONFIG_TCP_CONG_BBR2 is not set", 'CONFIG_X="a b"', "CONFIG_HZ=1000",
    ]  # fmt: skip


def test_the_entry_of_googles_bbr2_asks_for_what_it_needs():
    spec = load_specs().kernels["google-v2alpha"]
    fragments = "".join(path.read_text() for path in recipe(spec).options)
    assert fragments.rindex("CONFIG_IPV6=y") > fragments.rindex("# CONFIG_IPV6 is not set"), "the later line counts"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("CONFIG_TCP_CONG_BBR2=y", r"CONFIG_TCP_CONG_BBR2=y: did not survive \(it depends on IPV6; net/ipv4/Kconfig\); give with --option"),
        ("CONFIG_IPV6=1", r"CONFIG_IPV6=1: takes y or n \(net/ipv4/Kconfig\)"),
        ('CONFIG_IPV6="yes"', 'CONFIG_IPV6="yes": takes y or n'),
        ("CONFIG_TCP_CONG_BBR9=y", "CONFIG_TCP_CONG_BBR9=y: a source has no option CONFIG_TCP_CONG_BBR9"),
    ],
)  # fmt: skip
def test_an_option_that_is_lost_is_named_with_the_reason(configured, line, said):
    option = line.partition("=")[0]
    with pytest.raises(UserError, match=said):
        check_config("my-bbr3", line + "\n", [option], configured, "a source")
    check_config("my-bbr3", "CONFIG_TCP_CONG_BBR=y\n", [], configured, "a source")


def test_a_name_that_is_promised_and_missing_is_an_error_with_the_option_that_may_be_off(configured):
    probe = {"ccas": ["reno", "bbr"]}
    with pytest.raises(UserError, match=r"has no bbr2, which its names promise \(bbr3=bbr2\); it has reno, bbr; an option may be off: CONFIG_TCP_CONG_BBR2 \(--option CONFIG_TCP_CONG_BBR2=y"):  # fmt: skip
        check_promised_ccas("my-bbr3", spec_with(names={"bbr3": "bbr2", "bbr1": "bbr"}), probe, configured)
    check_promised_ccas("my-bbr3", spec_with(names={"bbr1": "bbr"}), probe, configured)
    (configured / "net/ipv4/tcp_bbr.c").write_text('.name = "bbr",')
    assert absent_ccas(spec_with(names={"bbr1": "bbr", "bbr3": "mybbr"}), configured) == ["mybbr"]


def test_an_algorithm_whose_option_is_off_is_told_before_anything_is_compiled(configured):
    """Only where the Makefile says so plainly."""
    folder = configured / "net/ipv4"
    (folder / "Makefile").write_text(
        "obj-y := tcp_cong.o\nobj-$(CONFIG_TCP_CONG_BBR) += tcp_bbr.o\nobj-$(CONFIG_MINE) += mine.o\nmine-$(CONFIG_TOO) := sets.o\n"
    )
    for file, cca in (("tcp_cong", "reno"), ("tcp_bbr", "bbr"), ("sets", "bbr3"), ("elsewhere", "bbr4")):
        (folder / f"{file}.c").write_text(f'static struct tcp_congestion_ops ops = {{\n\t.name\t\t= "{cca}",\n}};\n')
    spec = spec_with(names={"reno": "reno", "bbr1": "bbr", "bbr3": "bbr3", "bbr4": "bbr4"})
    assert switched_off(spec, configured) == {"bbr3": ["CONFIG_TOO", "CONFIG_MINE"]}
    (configured / ".config").write_text("CONFIG_TCP_CONG_BBR=y\nCONFIG_MINE=y\nCONFIG_TOO=y\n")
    assert switched_off(spec, configured) == {}


def test_what_is_compiled_first(tmp_path):
    """What the patches touch, if this configuration compiles it."""
    (tmp_path / "net").mkdir()
    for name in ("plain", "on", "off", "part", "part_of_off", "unnamed"):
        (tmp_path / "net" / f"{name}.c").touch()
    (tmp_path / "net/Makefile").write_text(
        "obj-y := a.o \\\n  plain.o\nobj-$(CONFIG_ON) += on.o whole.o\nobj-$(CONFIG_OFF) += off.o other.o\n"
        "whole-y := part.o\nother-objs := part_of_off.o\n"
    )
    (tmp_path / ".config").write_text("CONFIG_ON=y\n# CONFIG_OFF is not set\n")
    (tmp_path / "arch/um/os-Linux").mkdir(parents=True)
    (tmp_path / "arch/um/os-Linux/util.c").touch()
    (tmp_path / "arch/um/os-Linux/Makefile").write_text("obj-y := util.o\n")
    names = [
        "arch/um/os-Linux/util.c",
        *(f"net/{name}.c" for name in ("plain", "on", "off", "part", "part_of_off", "unnamed", "gone")),
    ]
    assert objects_of([*names, "net/a.h"], tmp_path) == ["net/plain.o", "net/on.o", "net/part.o"]


# --- the user's file -----------------------------------------------------------------------------------------------------


@pytest.fixture
def users(tmp_path, monkeypatch) -> Path:
    """The user's file, which is not there yet."""
    monkeypatch.setenv("BBRLAB_KERNELS", str(tmp_path / "settings" / "kernels.yaml"))
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "build"))
    return tmp_path / "settings" / "kernels.yaml"


def write_users(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_where_it_stands(monkeypatch, tmp_path):
    monkeypatch.delenv("BBRLAB_KERNELS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "bbrlab").mkdir()
    write_users(tmp_path / "bbrlab" / "kernels.yaml", "kernels: {mine: {base: mainline-6.12}}\n")
    assert find_spec("mine")[1].description == f"mainline-6.12 and other names ({tmp_path}/bbrlab/kernels.yaml)"


def test_an_entry_of_ones_own_is_a_kernel_like_any_other(users):
    write_users(users, "kernels:\n  my-bbr3:\n    base: mainline-6.12\n    patches: [a.patch]\n    options: {CONFIG_IPV6: y, CONFIG_HZ: 1000}\n"
                       "    names: {bbr3: bbr}\n")  # fmt: skip
    (users.parent / "a.patch").write_text(PATCH)
    base, spec = find_spec("mainline-6.12")[1], find_spec("my-bbr3")[1]
    assert spec.names == {"bbr3": "bbr", "cubic": "cubic", "reno": "reno", "dctcp": "dctcp"}, (
        "bbr is BBRv3 now, and BBRv1 no more"
    )
    parts = recipe(spec)
    assert (parts.patches, parts.series) == (recipe(base).patches, [users.parent / "a.patch"])
    key, identity = build_key(spec, "source", "gcc"), kernel_identity("my-bbr3")
    assert key != build_key(base, "source", "gcc")
    (users.parent / "a.patch").write_text(PATCH + "\n")
    assert build_key(spec, "source", "gcc") != key
    assert kernel_identity("my-bbr3") != identity
    (users.parent / "a.patch").write_text(PATCH)
    for changed in ({"settings": {"CONFIG_IPV6": "n"}}, {"names": {"bbr2": "bbr"}}):
        assert build_key(spec.model_copy(update=changed), "source", "gcc") != key
    with pytest.raises(UserError, match=f"config/kernels.yaml has lab-6.12, .*google-v2alpha; {users} has my-bbr3"):
        find_spec("my-bbr4")
    (users.parent / "a.patch").unlink()
    with pytest.raises(UserError, match=r"a\.patch: does not exist, or is no file"):
        recipe(spec)


def test_ours_are_what_they_are_whatever_stands_there(users):
    before = {name: build_key(spec, "source", "gcc") for name, spec in load_specs().kernels.items()}
    write_users(users, "kernels: {mine: {base: mainline-6.12, options: {CONFIG_IPV6: y}}}\n")
    found = load_specs()
    assert list(found.kernels) == [*before, "mine"] and found.default == "lab-6.12"
    assert {name: build_key(found.kernels[name], "source", "gcc") for name in before} == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "kernels: {lab-6.12: {base: mainline-6.12}}",
            "kernels.lab-6.12: the name is taken: config/kernels.yaml has it",
        ),
        (
            "kernels: {mine: {base: linux-2}}",
            r"kernels\.mine\.base: 'linux-2' is not in config/kernels.yaml, which has lab-6\.12",
        ),
        ("kernels: {mine: {}}", r"kernels\.mine\.base: is missing"),
        ("kernels: {mine: {base: mainline-6.12, option: {}}}", r"kernels\.mine\.option: "),
        ("kernels: {a+b: {base: mainline-6.12}}", r"kernels\.a\+b"),
        ("kernels: {mine: {base: mainline-6.12, options: {IPV6: y}}}", "'IPV6' is no name of an option"),
        ("kernels: {mine: {base: mainline-6.12, options: {CONFIG_IPV6: m}}}", "m is not possible"),
        ("default: mine", "default"),
        ("[]", "kernels.yaml"),
    ],
)
def test_what_is_wrong_in_it_is_told_with_its_place(users, text, said):
    write_users(users, text + "\n")
    with pytest.raises(UserError, match=said) as caught:
        load_specs()
    assert str(users) in str(caught.value) and "\n" not in str(caught.value)


# --- the command ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def command(users, monkeypatch, tmp_path):
    """`bbrlab kernel build` with nothing built; what it would have built."""
    asked: list[tuple[str, Any]] = []

    def fake(name, jobs, say, own=(), spec=None):
        asked.append((name, spec))
        return SimpleNamespace(name=name, release="6.12", ccas={"bbr3": "bbr"}, build_id="b")

    monkeypatch.setattr(build, "build_kernel", fake)
    monkeypatch.setattr("bbrlab.experiment.iperf3_library.library_folder", lambda: None)
    monkeypatch.chdir(tmp_path)
    return lambda *argv: (CliRunner().invoke(app, ["kernel", "build", *argv]), asked)


MINE = ["--on", "mainline-6.12", "--name", "my-bbr3"]


def test_a_kernel_of_ones_own_is_built_and_then_stands_in_the_file(command, users, tmp_path):
    (tmp_path / "series").mkdir()
    for name in ("0000-cover-letter", "0002-b", "0001-a"):
        patch(tmp_path / "series", "a cover letter" if "cover" in name else PATCH, f"{name}.patch")
    argv = [*MINE, "--patch", "series", "--option", "CONFIG_IPV6=y", "--names", "bbr3=bbr,bbr1=bbr1"]
    done, asked = command(*argv)
    assert done.exit_code == 0, done.output
    assert str(users) in done.output and "--kernel my-bbr3" in done.output
    name, spec = asked[0]
    assert (name, [Path(p).name for p in spec.series]) == ("my-bbr3", ["0001-a.patch", "0002-b.patch"])
    assert find_spec("my-bbr3")[1] == spec
    assert command(*argv)[0].exit_code == 0, "the same again is the same"
    text = users.read_text()
    assert "is taken" in str(command(*argv, "--option", "CONFIG_HZ=100")[0].exception)
    assert users.read_text() == text
    done, asked = command(*MINE[:3], "other", "--patch", "series/0001-a.patch", "series/0002-b.patch")
    assert done.exit_code == 0 and len(asked[-1][1].series) == 2, "as a shell writes series/*.patch"
    assert {"my-bbr3", "other"} <= set(load_specs().kernels)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"bbr9": "bbr"}, "--names bbr9=bbr: there is no algorithm 'bbr9', did you mean bbr3? (there are bbr1, "),
        ({"bbr3": "bbr3", "bbr": "bbr"}, "--names bbr=bbr: there is no algorithm 'bbr'; Linux's own 'bbr' is BBRv1 and is called bbr1 here"),
        ({"other": "bbr"}, "--names other=bbr: there is no algorithm 'other' (there are"),
    ],
)  # fmt: skip
def test_the_fields_name_is_one_that_a_flow_can_have(names, said, tmp_path, monkeypatch):
    with pytest.raises(UserError) as told:
        checked_entry("x", base="lab-6.12", names=names)
    assert str(told.value).startswith(said)
    (tmp_path / "cca").mkdir()
    for name in names:
        (tmp_path / "cca" / f"tcp_{name}.c").write_text("")
    monkeypatch.setattr(paths, "KERNELS", tmp_path)
    assert checked_entry("x", base="lab-6.12", names=names).names == names, "of one's own"


def test_a_kernel_that_there_is_not_is_told_by_what_it_was_given_by(command):
    said = "nope: no such kernel; config/kernels.yaml has lab-6.12, "
    assert str(command("nope")[0].exception).startswith(said)
    with pytest.raises(UserError, match=f"^--virtual-kernel {said}"):
        check_options(2, ["loss"], {"--virtual-kernel": "nope", "--real-kernel": None})
    with pytest.raises(UserError, match=f"^--real-kernel {said}"):
        check_options(2, ["loss"], {"--virtual-kernel": None, "--real-kernel": "nope"})


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--patch", "my.patch", "--name", "x"], "--patch goes with --on"),
        (["--on", "mainline-6.12", "--patch", "my.patch"], "--on: give the new kernel a name"),
        (MINE, "--on: give what your kernel has besides"),
        ([*MINE, "--patch", "none.patch"], "none.patch"),
        ([*MINE, "--patch", "empty"], "--patch empty: has no file that ends in .patch or .diff"),
        (
            ["--on", "linux-2", "--name", "x", "--patch", "my.patch"],
            "--on linux-2: config/kernels.yaml has no such kernel",
        ),
        (
            ["--on", "mainline-6.12", "--name", "lab-6.12", "--patch", "my.patch"],
            "--name lab-6.12: is taken: config/kernels.yaml",
        ),
        (["--on", "mainline-6.12", "--name", "a b", "--patch", "my.patch"], "--name a b: 'a b' is no name of a kernel"),
        ([*MINE, "--patch", "my.patch", "--option", "IPV6=y"], "--option IPV6: 'IPV6' is no name of an option"),
        ([*MINE, "--patch", "my.patch", "--option", "CONFIG_IPV6"], "--option CONFIG_IPV6: give two words with ="),
        (
            [*MINE, "--patch", "my.patch", "--option", "CONFIG_A=y", "--option", "CONFIG_IPV6=m"],
            "--option CONFIG_IPV6=m: m is not possible",
        ),
        ([*MINE, "--patch", "my.patch", "--names", "bbr3"], "--names bbr3: give two words with ="),
        ([*MINE, "--patch", "my.patch", "--names", "bbr3=a,bbr3=b"], "bbr3 was given before, as a"),
        ([*MINE, "--patch", "my.patch", "--names", "bbr3=" + "x" * 16], f"--names bbr3={'x' * 16}: "),
        ([*MINE, "--source", "empty"], "--source empty: is no Git repository with a commit"),
        ([*MINE, "--patch", "my.patch", "--names", "BBR3=bbr"], "--names BBR3: 'BBR3' is no name of an algorithm"),
        (["lab-6.12", "mainline-6.12"], "one kernel at a time"),
    ],
)
def test_what_is_wrong_on_its_command_line_is_told_before_anything_is_built(command, users, tmp_path, argv, said):
    patch(tmp_path)
    (tmp_path / "empty").mkdir()
    done, asked = command(*argv)
    assert isinstance(done.exception, UserError) and said in str(done.exception), done.exception
    assert asked == [] and not users.exists()


def test_what_looks_like_a_number_is_the_same_when_it_is_read(command, tmp_path):
    """YAML reads 1e3 as a number, and 08 as none that the lab takes."""
    patch(tmp_path)
    options = {"CONFIG_LOCALVERSION": "1e3", "CONFIG_A": "08", "CONFIG_B": "yes", "CONFIG_C": "0x10", "CONFIG_D": "ä ~"}
    asked = [f"--option={name}={value}" for name, value in options.items()]
    for name in ("1e3", "08", "no"):
        done, _ = command("--on", "mainline-6.12", "--name", name, "--patch", "my.patch", *asked, "--names", "bbr3=no")
        assert done.exit_code == 0, done.exception
        assert find_spec(name)[1].settings == options and find_spec(name)[1].names["bbr3"] == "no"


def test_what_is_no_text_is_told_before_anything_is_built(command, users, tmp_path):
    patch(tmp_path)
    done, asked = command(*MINE, "--patch", "my.patch", "--option", "CONFIG_A=\udcff")
    assert "cannot have kernel my-bbr3" in str(done.exception) and asked == [] and not users.exists()


def test_a_build_that_fails_leaves_no_entry(command, users, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise UserError("it does not apply")

    monkeypatch.setattr(build, "build_kernel", fail)
    assert "does not apply" in str(command(*MINE, "--patch", str(patch(tmp_path)))[0].exception)
    assert not users.exists()


def test_a_file_that_cannot_be_written_is_told_before_anything_is_built(command, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "kernels.yaml", "/proc/kernels.yaml"):
        monkeypatch.setenv("BBRLAB_KERNELS", str(place))
        done, asked = command(*MINE, "--patch", str(patch(tmp_path)))
        assert (
            isinstance(done.exception, UserError)
            and re.search("Is a directory|BBRLAB_KERNELS=", str(done.exception))
            and not asked
        )


def test_a_repository_of_ones_own_is_a_source(command, users, tmp_path):
    folder = tmp_path / "linux"
    folder.mkdir()
    git(folder, "init", "-q")
    head = commit(folder, "one")
    done, asked = command(*MINE, "--source", "linux")
    assert done.exit_code == 0, done.output
    assert asked[0][1].source.name == f"{folder} {head}"
    (folder / "Makefile").write_text("two")
    assert "--source linux: Makefile differs from the commit" in str(command(*MINE, "--source", "linux")[0].exception)


# --- builds that go on ---------------------------------------------------------------------------------------------------

MAKEFILE = """
obj := net/ipv4/tcp_bbr.o net/ipv4/tcp_cubic.o
linux: $(obj)
	cat $(obj) > linux
%.o: %.c
	@echo "  CC      $@"; echo $@ >> compiled
	@! grep -n broken $< | sed 's,^,$<:,; s,$$,: error: broken,' | grep .
	@cp $< $@
allnoconfig:
	cp $(KCONFIG_ALLCONFIG) .config
"""


@pytest.fixture
def small_linux(users, monkeypatch, tmp_path):
    """A Linux of two files, and what it was asked to unpack."""
    unpacked = []

    def unpack(folder, run):
        unpacked.append(folder)
        (folder / "net/ipv4").mkdir(parents=True)
        (folder / "Makefile").write_text(MAKEFILE)
        for name in ("tcp_bbr", "tcp_cubic"):
            (folder / f"net/ipv4/{name}.c").write_text(TEN)
        (folder / "net/ipv4/Makefile").write_text("obj-y += tcp_bbr.o tcp_cubic.o\n")
        (folder / "net/ipv4/Kconfig").write_text(KCONFIG)
        (folder / "net/ipv4/tcp.c").write_text('"bbr" "bbr9" "cubic" "reno" "dctcp"')

    monkeypatch.setattr(build, "locate", lambda *_, **__: Located("a source", unpack))
    monkeypatch.setattr("bbrlab.kernel.built.locate", lambda *_, **__: Located("a source", unpack))
    found = {
        "release": "6.12",
        "ccas": ["bbr", "cubic", "reno", "dctcp"],
        "parameters": {},
        "modules": {},
        "profiles": {},
        "acceleration": "",
    }
    monkeypatch.setattr(compile, "probe_kernel", lambda *_, **__: found)
    empty = find_spec("mainline-6.12")[1].model_copy(update={"patches": [], "host_patches": []})
    ours = load_specs(paths.CONFIG / "kernels.yaml")
    monkeypatch.setattr(
        "bbrlab.kernel.specs.load_specs",
        lambda path=None: ours.model_copy(update={"kernels": ours.kernels | {"mainline-6.12": empty}}),
    )
    return unpacked


def own_of(tmp_path: Path, text: str, file: str = "my.patch") -> Any:
    from bbrlab.kernel.specs import own_spec

    specs = load_specs()
    bare = specs.kernels["mainline-6.12"].model_copy(update={"patches": [], "host_patches": []})
    entry = UsersKernel(base="mainline-6.12", patches=[str(patch(tmp_path, text, file))], names={"bbr3": "bbr"})
    return own_spec("my-bbr3", entry, specs.model_copy(update={"kernels": {"mainline-6.12": bare}}))


@pytest.mark.compiles
def test_a_build_that_failed_goes_on_in_its_tree(small_linux, tmp_path):
    """The second try unpacks nothing and compiles only what the patch changes; the first error comes before anything else is compiled."""
    said: list[str] = []
    with pytest.raises(
        UserError, match=r"step 'compile: first' failed.*\n.*net/ipv4/tcp_bbr.c:5:broken: error: broken"
    ):
        build_kernel("my-bbr3", 1, said.append, spec=own_of(tmp_path, PATCH.replace("+-- five", "+broken")))
    (folder,) = source_tree.source_trees().glob("[!.]*")
    compiled = folder / "source" / "compiled"
    assert compiled.read_text().split() == ["net/ipv4/tcp_bbr.o"]
    kernel = build_kernel("my-bbr3", 1, said.append, spec=own_of(tmp_path, PATCH))
    assert compiled.read_text().split() == ["net/ipv4/tcp_bbr.o"] * 2 + ["net/ipv4/tcp_cubic.o"]
    assert len(small_linux) == 1 and any("goes on in" in line for line in said)
    assert Path(kernel.image).read_text() == TEN.replace("five", "-- five") + TEN
    assert (kernel.ccas["bbr3"], kernel.foreign, "bbr1" in kernel.ccas) == ("bbr", True, False)
    build_kernel("my-bbr3", 1, said.append, spec=own_of(tmp_path, PATCH.replace("+-- five", "+5")))
    assert compiled.read_text().split()[3:] == ["net/ipv4/tcp_bbr.o"], "and so does one after a build that did not"


@pytest.mark.compiles
def test_a_kernel_without_what_its_names_promise_is_not_kept(small_linux, tmp_path):
    spec = own_of(tmp_path, PATCH)
    with pytest.raises(UserError, match="has no bbr9, which its names promise"):
        build_kernel("my-bbr3", 1, lambda text: None, spec=spec.model_copy(update={"names": {"bbr3": "bbr9"}}))
    assert not list((tmp_path / "build/kernels").glob("*/linux"))


@pytest.mark.compiles
def test_a_tree_without_the_algorithm_is_told_before_it_is_compiled(small_linux, tmp_path):
    spec = own_of(tmp_path, PATCH)
    with pytest.raises(
        UserError, match=r'no file of net/ has the name "bbr7" of an algorithm, which its names promise \(bbr3=bbr7\)'
    ):
        build_kernel("my-bbr3", 1, lambda text: None, spec=spec.model_copy(update={"names": {"bbr3": "bbr7"}}))
    (folder,) = source_tree.source_trees().glob("[!.]*")
    assert not (folder / "source" / "compiled").exists()


@pytest.mark.compiles
def test_what_others_code_left_in_a_tree_is_in_no_other_kernel(small_linux, tmp_path):
    """Its Makefile may change files that no patch names. The lab's own kernels, and other people's, are made of a tree without them."""
    theirs = "--- a/Makefile\n+++ b/Makefile\n@@ -9,2 +9,3 @@\n allnoconfig:\n+\techo theirs >> net/ipv4/tcp_cubic.c\n \tcp $(KCONFIG_ALLCONFIG) .config\n"
    first = build_kernel("theirs", 1, lambda text: None, spec=own_of(tmp_path, theirs))
    assert Path(first.image).read_text() == TEN + TEN + "theirs\n"
    ours = build_kernel("ours", 1, lambda text: None, spec=own_of(tmp_path, PATCH))
    assert Path(ours.image).read_text() == TEN.replace("five", "-- five") + TEN
    plain = find_spec("mainline-6.12")[1].model_copy(
        update={"patches": [], "host_patches": [], "names": {"bbr1": "bbr"}}
    )
    labs = build_kernel("mainline-6.12", 1, lambda text: None, spec=plain)
    assert Path(labs.image).read_text() == TEN + TEN and not labs.foreign


def makes(line: str) -> str:
    """A patch to the Makefile of the small Linux, which runs a line before it is configured."""
    return f"--- a/Makefile\n+++ b/Makefile\n@@ -9,2 +9,3 @@\n allnoconfig:\n+\t{line}\n \tcp $(KCONFIG_ALLCONFIG) .config\n"


@pytest.mark.compiles
@pytest.mark.parametrize("given", ["another file", "another file behind the same link"])
def test_another_series_by_the_same_name_begins_in_a_tree_of_its_own(small_linux, tmp_path, given):
    """The kernel is found again by its patches alone, so it must be made of them alone."""
    link = tmp_path / "current.patch"
    named = {"another file": ("theirs.patch", "mine.patch")}.get(given, (link.name, link.name))
    link.symlink_to("theirs.patch")
    with pytest.raises(UserError, match="step 'configure' failed"):
        spec = own_of(tmp_path, makes("echo theirs >> net/ipv4/tcp_cubic.c; exit 1"), named[0])
        build_kernel("my-bbr3", 1, lambda text: None, spec=spec)
    link.unlink()
    link.symlink_to("mine.patch")
    mine = build_kernel("my-bbr3", 1, lambda text: None, spec=own_of(tmp_path, PATCH, named[1]))
    assert Path(mine.image).read_text() == TEN.replace("five", "-- five") + TEN


@pytest.mark.compiles
@pytest.mark.parametrize("how", ["", "setsid", "bash -m"])
def test_what_a_build_step_started_ends_with_it(small_linux, tmp_path, how):
    """It could change the tree while it is copied, or what the next build compiles. make itself does not wait for it."""
    work = {"bash -m": "bash -mc '(echo $$BASHPID > begun; exec sleep 60) & true'"}.get(
        how, f"({how} sh -c 'echo $$$$ > begun; exec sleep 60' &)"
    )
    line = f"{work} </dev/null >/dev/null 2>&1; sleep 0.3; true"
    build_kernel("my-bbr3", 1, lambda text: None, spec=own_of(tmp_path, makes(line)))
    (folder,) = source_tree.source_trees().glob("[!.]*")
    begun = folder / "source" / "begun"
    if begun.exists():  # some do not even begin
        time.sleep(0.1)
        status = Path(f"/proc/{begun.read_text().strip()}/stat")
        assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.compiles
def test_trees_are_few(small_linux, tmp_path):
    """Of those that were used least lately the oldest goes; one that somebody uses stays."""
    parent = source_tree.source_trees()
    for number in range(TREES_MAX + 1):
        (parent / f"{number}" / "source").mkdir(parents=True)
        os.utime(parent / f"{number}", (number, number))
    build_kernel("my-bbr3", 1, lambda text: None, spec=own_of(tmp_path, PATCH))
    left = {p.name for p in parent.glob("[!.]*")}
    assert len(left) == TREES_MAX and str(TREES_MAX) in left, left


def test_a_kernel_with_ipv6_sends_nothing_of_its_own(tmp_path):
    """Its hosts would announce themselves; such a run failed a self-check."""
    kernel = Kernel("mine", "6.12", "b", "k", str(tmp_path / "linux"), {}, {}, "s", "c", 1.0)
    for number, (text, words) in enumerate(
        (("# CONFIG_IPV6 is not set\n", []), ("CONFIG_IPV6=y\n", ["ipv6.disable=1"]))
    ):
        (tmp_path / "config").write_text(text)
        scratch = tmp_path / str(number)
        scratch.mkdir()
        job = SimpleNamespace(scratch=scratch, prompt=None, memory_bytes=1 << 27, seed=1, arguments=[], ip_version=4)
        assert boot_options(kernel) == words
        assert boot_options(kernel, 6) == ["ipv6.disable_ipv6=1"][: len(words)]
        assert ("ipv6.disable=1" in uml.command(kernel, job)) == bool(words)


# --- a whole one ---------------------------------------------------------------------------------------------------------


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.timeout(7200)  # a whole kernel is compiled, perhaps beside much else
def test_from_a_patch_file_to_a_run(tmp_path, monkeypatch, run_scenario):
    """Somebody's series: another name, another record, an option that is off and needs IPv6. Its runs are as good as the lab's."""
    monkeypatch.setenv("BBRLAB_KERNELS", str(tmp_path / "kernels.yaml"))
    series = write_series(tmp_path / "my-bbr3.patch")
    names = ",".join(f"{field}={cca}" for field, cca in NAMES.items())
    argv = ["kernel", "build", *MINE, "--patch", str(series), "--names", names]
    for options, said in (
        ([], f"bbr, which its names promise .*, would not be compiled: {OPTION} is off; add --option {OPTION}=y"),
        ([f"{OPTION}=y"], rf"{OPTION}=y: did not survive \(it depends on IPV6"),
    ):
        found = CliRunner().invoke(app, [*argv, *(word for option in options for word in ("--option", option))])
        assert isinstance(found.exception, UserError) and re.search(said, str(found.exception)), found.exception
    found = CliRunner().invoke(app, [*argv, "--option", f"{OPTION}=y", "--option", "CONFIG_IPV6=y"])
    assert found.exit_code == 0, found.exception
    run = run_scenario(
        flows=[{"cca": "bbr3"}, {"cca": "cubic"}], kernel_name="my-bbr3", tamper=lambda plan: None, duration_s=20
    )
    assert run.failed == []
    told = run.samples[run.samples["flow"] == 0]
    assert told["bbr_round_count"].isna().all() and told["bbr_max_bw"].notna().any(), "52 bytes"
    assert {STATES.index("UP"), STATES.index("CRUISE"), STATES.index("ProbeRTT")} <= set(told["bbr_state"].dropna())
    lab = run_scenario(flows=[{"cca": "bbr3"}, {"cca": "cubic"}], tamper=lambda plan: None, duration_s=20)
    assert run.summary["groups"][0]["goodput_mbit"] == pytest.approx(lab.summary["groups"][0]["goodput_mbit"], rel=0.02)
