"""After code of others ran in a source tree, nothing of this program's is led out of it, or stopped in it."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from bbrlab.base.errors import UserError
from bbrlab.base.files import put_folder
from bbrlab.kernel import beneath, own_build
from bbrlab.kernel.own import own_of
from bbrlab.kernel.own_build import compile_with_own
from bbrlab.kernel.source_tree import SourceTree
from bbrlab.kernel.sources import Located
from bbrlab.kernel.specs import find_spec
from bbrlab.kernel.trees import prune

MINE = "the user's own\n"


@pytest.fixture
def home(tmp_path) -> Path:
    """The user's files."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in (".bashrc", "thesis.c"):
        (folder / name).write_text(MINE)
    return folder


@pytest.fixture
def tree(tmp_path) -> Path:
    """A source tree."""
    folder = tmp_path / "hash" / "source"
    (folder / "net/ipv4").mkdir(parents=True)
    (folder / "net/ipv4/tcp.c").write_text("int a;\n")
    return folder


def untouched(home: Path) -> bool:
    return {p.name: p.read_text() for p in home.iterdir()} == {".bashrc": MINE, "thesis.c": MINE}


def test_nothing_leads_out_of_a_tree(tree, home):
    (tree / "link.c").symlink_to(home / ".bashrc")
    (tree / "dangling.c").symlink_to(home / "new")
    (tree / "folder").symlink_to(home)
    for name in ("link.c", "dangling.c", "folder/.bashrc", "../../home/.bashrc", str(home / ".bashrc")):
        for use in (beneath.is_file, beneath.read_text, lambda *a: beneath.copy(*a, tree.parent / "out")):
            with pytest.raises(UserError, match="this source has a symbolic link there"):
                use(tree, name)
    for name in ("folder/new.c", "folder/.bashrc"):
        with pytest.raises(UserError, match=f"{name}: this source has a symbolic link there"):
            beneath.write(tree, name, b"theirs")
        with pytest.raises(UserError, match=f"remove {tree.parent}"):
            beneath.remove(tree, name)
    beneath.write(tree, "link.c", b"theirs", 0o755)
    assert (tree / "link.c").read_text() == "theirs" and (tree / "link.c").stat().st_mode & 0o777 == 0o755
    beneath.remove(tree, "dangling.c")
    beneath.write(tree, "new/folder/a.c", b"b")
    assert sorted(beneath.files(tree)) == ["link.c", "net/ipv4/tcp.c", "new/folder/a.c"]
    assert list(beneath.files(tree, "folder")) == list(beneath.files(tree, "none")) == []
    assert untouched(home) and list(tree.parent.iterdir()) == [tree]


def test_a_folder_in_the_place_of_a_file_is_told_with_what_to_do(tree):
    """And the other way round; a build would fail in the same way for ever."""
    (tree / ".version/x").mkdir(parents=True)
    for use in (lambda: beneath.write(tree, ".version", b"1"), lambda: beneath.remove(tree, ".version")):
        with pytest.raises(UserError, match=f"^.version: this source .* what is no file, .*remove {tree.parent}"):
            use()
    with pytest.raises(UserError, match=f"^net/ipv4/tcp.c/x: .*remove {tree.parent}"):
        beneath.write(tree, "net/ipv4/tcp.c/x", b"1")
    assert list(tree.parent.iterdir()) == [tree]


def test_nothing_stops_at_what_is_no_file(tree):
    os.mkfifo(tree / "Makefile")
    (tree / "zero").symlink_to("/dev/zero")
    (tree / ".config").mkdir()
    for name in ("Makefile", "zero", ".config"):
        with pytest.raises(UserError, match="or what is no file"):
            beneath.read_bytes(tree, name)
    with open(tree / "large", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match="more than 64 MB"):
        beneath.read_bytes(tree, "large")
    with pytest.raises(UserError, match="more than 1024 MB"):
        beneath.copy(tree, "large", tree.parent / "out")
    beneath.write(tree, "Makefile", b"all:\n")
    assert beneath.read_text(tree, "Makefile") == "all:\n"
    assert not beneath.exists(tree, "none/at/all") and not beneath.is_file(tree, "net/ipv4/tcp.c/below")


def test_a_patched_file_is_put_where_it_belongs(tree, home):
    """Whatever a Makefile has put beside it."""
    (tree / "net/ipv4/tcp.c.new").symlink_to(home / ".bashrc")
    new = tree.parent / "new"
    (new / "net/ipv4").mkdir(parents=True)
    (new / "net/ipv4/tcp.c").write_text("int b;\n")
    SourceTree(tree.parent, True).put(new, ["net/ipv4/tcp.c"])
    assert (tree / "net/ipv4/tcp.c").read_text() == "int b;\n" and untouched(home)


def test_what_a_tree_does_not_need_is_removed_from_the_tree_alone(tree, home):
    (tree / "samples").symlink_to(home)
    (tree / "drivers/a").mkdir(parents=True)
    (tree / "drivers/a/b").symlink_to(home)
    (tree / "drivers/a/x.c").touch()
    os.mkfifo(tree / "drivers/.x.o.cmd")
    prune(tree)
    assert untouched(home) and not (tree / "drivers/a/x.c").exists()


def test_a_tree_of_any_depth_can_be_replaced(tree):
    """As a Makefile may leave it: deeper than Python goes, and closed."""
    done = subprocess.run(
        ["sh", "-c", "for i in $(seq 1100); do mkdir d && cd d; done; chmod 0 ."], cwd=tree, check=False
    )
    assert done.returncode == 0 and len(list(beneath.files(tree))) == 1
    (tree.parent / "new").mkdir()
    put_folder(tree.parent / "new", tree)
    assert list(tree.iterdir()) == [] and list(tree.parent.iterdir()) == [tree]


@pytest.mark.compiles
@pytest.mark.parametrize("place", ["Makefile", "tcp_mine.c"])
def test_an_algorithm_is_put_into_the_tree_alone(tree, home, tmp_path, monkeypatch, place):
    """A kept tree is one that its own make has left."""

    @contextmanager
    def built(*_):
        yield tree, []

    spec = find_spec("mainline-6.12")[1]
    (tree / "Makefile").write_text("%.o:\n\ttouch $@\n")
    (tree / "net/ipv4" / place).symlink_to(home / (".bashrc" if place == "Makefile" else "new"))
    monkeypatch.setattr(own_build, "built_tree", built)
    (tmp_path / "mine.c").write_text('struct tcp_congestion_ops mine = { .name = "mine" };\n')
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    cca = own_of([], None, [tmp_path / "mine.c"])
    with pytest.raises(
        UserError, match=r"Makefile: this source has a symbolic link|source has net/ipv4/tcp_mine\.c already"
    ):
        compile_with_own("k", spec, Located("a source", lambda *_: None), "base", "key", cca, scratch, 1, print)
    assert untouched(home)
