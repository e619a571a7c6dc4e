"""An algorithm's file is tried beside the kept tree before anything is copied: a mistake is told at once, and the tree stays as it is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bbrlab.base.errors import UserError
from bbrlab.kernel import compile
from bbrlab.kernel.own import own_of
from bbrlab.kernel.own_build import PLACE, _command_like, _try
from bbrlab.kernel.source_tree import SourceTree
from bbrlab.kernel.specs import find_spec
from bbrlab.kernel.steps import Steps

NAME = 'struct tcp_congestion_ops { const char *name; } mine_ops = { .name = "mine" };\n'
COMMAND = "gcc -Wp,-MMD,{p}/.tcp_x.o.d -I./include -include ./include/all.h -Wall -DKBUILD_BASENAME='\"tcp_x\"' -c -o {p}/tcp_x.o {p}/tcp_x.c"


@pytest.fixture
def tree(tmp_path) -> Path:
    """A kept tree in which one file was compiled."""
    built = tmp_path / "kept"
    (built / PLACE).mkdir(parents=True)
    (built / "include").mkdir()
    (built / "include/all.h").write_text("extern int from_the_tree;\n")
    (built / PLACE / ".tcp_x.o.cmd").write_text(
        f"savedcmd_{PLACE}/tcp_x.o := {COMMAND.format(p=PLACE)} ; ./objtool\n\nsource_x := x\n"
    )
    return built


def tried(tmp_path: Path, built: Path, text: str) -> None:
    path = tmp_path / "mine.c"
    path.write_text(text)
    (tmp_path / "scratch/source").mkdir(parents=True)
    with open(tmp_path / "log", "w") as file:
        (cca,) = own_of([], None, [path])
        _try(Steps("k", tmp_path / "scratch/source", tmp_path / "log", file, lambda text: None), cca, built)


def test_a_record_gives_the_command_without_the_file(tree):
    stem, words = _command_like(tree) or ("", [])
    assert stem == "tcp_x"
    assert words == ["gcc", "-I./include", "-include", "./include/all.h", "-Wall", '-DKBUILD_BASENAME="tcp_x"']
    (tree / PLACE / ".tcp_x.o.cmd").write_text("cmd := 'odd")
    assert _command_like(tree) is None


@pytest.mark.compiles
def test_what_compiles_leaves_the_tree_as_it_is(tmp_path, tree):
    before = {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()}
    tried(
        tmp_path,
        tree,
        NAME + "int f(void) { return from_the_tree; }\nconst char *g(void) { return KBUILD_BASENAME; }\n",
    )
    assert {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()} == before
    assert list((tmp_path / "scratch/source").iterdir()) == [], "what is copied there later is alone"


@pytest.mark.compiles
def test_a_mistake_has_the_users_file_and_line(tmp_path, tree):
    with pytest.raises(UserError) as caught:
        tried(tmp_path, tree, NAME + "int f(void) { return oops; }\n")
    first, *rest = str(caught.value).splitlines()
    assert first == f"{tmp_path / 'mine.c'}: does not compile:"
    assert any(line.startswith(f"{tmp_path / 'mine.c'}:2:") and "oops" in line for line in rest), rest


def test_a_name_that_the_source_has_is_a_mistake_too(tmp_path, tree):
    (tree / PLACE / "tcp_mine.c").write_text("\n")
    with pytest.raises(UserError, match=rf"mine\.c: the kernel's source has {PLACE}/tcp_mine\.c already"):
        tried(tmp_path, tree, NAME)


def test_a_mistake_is_told_before_the_tree_is_compiled(tmp_path, monkeypatch):
    """The first time there is no tree yet, whose build takes minutes: the file comes after the first objects."""
    done: list[str] = []
    for name in ("apply_series", "check_config", "switched_off"):
        monkeypatch.setattr(compile, name, lambda *_: {})
    monkeypatch.setattr(compile, "fragment_of", lambda *_: "")
    monkeypatch.setattr(compile, "objects_of", lambda *_: [])
    (tmp_path / "source").mkdir()
    steps = SimpleNamespace(name="k", run=lambda step, argv: done.append(f"{step}: {argv[-1]}"))
    given: Any = (steps, find_spec(None)[1], SimpleNamespace(identity="x"), SourceTree(tmp_path, False), 1)

    def mistake(tree: Path) -> None:
        assert tree == tmp_path / "source"
        raise UserError("mine.c:2: oops")

    with pytest.raises(UserError, match="oops"):
        compile.compile_kernel(*given, mistake)
    assert done == ["configure: allnoconfig", "compile: first: net/ipv4/tcp_cong.o"]
    compile.compile_kernel(*given)
    assert done[2:] == ["configure: allnoconfig", "compile: linux"]


def test_a_tree_that_says_nothing_is_left_to_the_copy(tmp_path, tree):
    (tree / PLACE / ".tcp_x.o.cmd").unlink()
    tried(tmp_path, tree, NAME + "int f(void) { return oops; }\n")
