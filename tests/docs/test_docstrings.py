"""Words that point somewhere: what docstrings and comments call ``name()``, ``module.name()``, ``module.NAME`` or ``module.py`` is there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.campaign.stages import PACKAGES

POINTER = re.compile(r"(?<![\w./-])((?:\w+\.)*)(\w+)\(\)")
CONSTANT = re.compile(r"(?<![\w./-])([a-z]\w*)\.([A-Z][A-Z_\d]+)\b(?!\()")
FILE = re.compile(r"(?<![\w./*-])((?:[\w-]+/)*\w+\.py)\b")
MODULES = sorted(p for name in PACKAGES for p in (paths.ROOT / name).rglob("*.py"))
GUEST = sorted(paths.GUEST_CODE.glob("*.py"))
NO_FILES_HERE = {"yaml.py"}  # somebody's
LINUX = {"fq_fastpath_check", "codel_dequeue", "INET_ECN_set_ce"}


def names_of(path: Path) -> dict[str, set[str]]:
    """{name of the module or of a class in it: what it defines at its top level}."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {path.stem: defined(tree.body)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = defined(node.body)
    return found


def defined(body: list[ast.stmt]) -> set[str]:
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def constants(path: Path) -> set[str]:
    """What a module assigns anywhere."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def words_of(path: Path) -> str:
    """The docstrings and comments of a file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    places = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, places)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join([*found, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"Linux": LINUX}
    for path in [*MODULES, *GUEST]:
        for name, inside in names_of(path).items():
            found.setdefault(name, set()).update(inside)
        found[path.stem] |= constants(path)
    return found


def is_there(file: str) -> bool:
    """Whether a module has this name, or a path that ends so; or a file of the checkout has this path."""
    ends = any(f"/{path.relative_to(paths.ROOT)}".endswith(f"/{file}") for path in [*MODULES, *GUEST])
    return ends or file in NO_FILES_HERE or ("/" in file and (paths.ROOT / file).is_file())


def broken(words: str, known: dict[str, set[str]]) -> list[str]:
    """What is pointed to and is not there."""
    found = []
    for prefix, name in POINTER.findall(words):
        places = [known.get(prefix.split(".")[-2], set())] if prefix else known.values()
        if not any(name in inside for inside in places):
            found.append(f"{prefix}{name}()")
    found += [f"{module}.{name}" for module, name in CONSTANT.findall(words) if name not in known.get(module, set())]
    return found + [file for file in FILE.findall(words) if not is_there(file)]


def test_the_tests_that_the_reviews_page_names_are_there():
    """FILE::TEST, or ::TEST of the file named last."""
    text = (paths.ROOT / "docs" / "development" / "reviews.md").read_text(encoding="utf-8")
    tests = {
        path.stem: defined(ast.parse(path.read_text(encoding="utf-8")).body)
        for path in (paths.ROOT / "tests").rglob("test_*.py")
    }
    file, lost, count = "", [], 0
    for module, name, same in re.findall(r"(?<![\w:])(test_\w+)(?:::(test_\w+))?|::(test_\w+)", text):
        file, test = module or file, name or same
        if file not in tests or (test and test not in tests[file]):
            lost.append(f"{file}::{test}")
        count += bool(test)
    assert lost == []
    assert count > 12


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(paths.ROOT)))
def test_what_words_point_to_is_there(path, known):
    assert broken(words_of(path), known) == []


def test_a_broken_pointer_is_found(known):
    assert broken("see panel.panel_of() and Page.claims(), or rms()", known) == []
    assert broken("verdict_counts.STEPS of verdict_counts.py, or show/verdict_counts.py", known) == []
    assert broken("outcomes.STEPS of outcomes.py, or show/outcomes.py", known) == [
        "outcomes.STEPS", "outcomes.py", "show/outcomes.py",
    ]  # fmt: skip
    assert broken("see compare.panel_of(), panel.table() and no_such_thing()", known) == [
        "compare.panel_of()", "panel.table()", "no_such_thing()",
    ]  # fmt: skip
