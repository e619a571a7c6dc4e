"""Which files of mininet/ a run may load, as its manifest has them."""

from __future__ import annotations

import ast

import pytest

from bbrlab.base import paths
from bbrlab.run.guest_code import ON_DEMAND, always_loaded, guest_code


def loaded_at_once(name: str, found: set[str]) -> set[str]:
    """A file and all that it imports outside of functions, and so on."""
    if name not in found:
        found.add(name)
        for node in ast.parse((paths.GUEST_CODE / name).read_text(encoding="utf-8")).body:
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "")]
            for module in modules:
                if module and (paths.GUEST_CODE / f"{module}.py").exists():
                    loaded_at_once(f"{module}.py", found)
    return found


def test_what_is_loaded_on_demand_is_loaded_nowhere_else():
    assert not loaded_at_once("guest.py", set()) & set(ON_DEMAND)
    assert not loaded_at_once("machine.py", set()) & set(ON_DEMAND)


@pytest.mark.parametrize("name", sorted(p.stem for p in paths.GUEST_CODE.glob("*.py")))
def test_only_guest_py_asks_the_plan(name):
    """And only under a condition on the entry of the plan that ON_DEMAND names."""
    tree = ast.parse((paths.GUEST_CODE / f"{name}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and f"{node.names[0].name}.py" in ON_DEMAND:
            asked = [
                test.test.left.value
                for test in ast.walk(tree)
                if isinstance(test, ast.If) and node in test.body and isinstance(test.test, ast.Compare)
                and isinstance(test.test.left, ast.Constant)
            ]  # fmt: skip
            assert (name, asked) == ("guest", [ON_DEMAND[f"{node.names[0].name}.py"]])
        if isinstance(node, ast.ImportFrom) and f"{node.module}.py" in ON_DEMAND:
            assert name in {file.removesuffix(".py") for file in ON_DEMAND}


def test_a_run_names_the_files_that_it_may_load():
    every = {path.name for path in paths.GUEST_CODE.iterdir() if path.is_file()}
    assert guest_code({}).keys() == every - set(ON_DEMAND)
    assert guest_code({"prompt": {}}).keys() == every - {"several.py"}
    assert guest_code({"several": {}}).keys() == every - {"play.py", "prompt.py"}
    assert always_loaded(guest_code({"prompt": {}, "several": {}})) == guest_code({})
