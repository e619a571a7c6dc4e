"""Which files of mininet/ a run may load, as its manifest has them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from bbrlab.base import paths
from bbrlab.run.manifest import ON_DEMAND, always_loaded, guest_code
from tests.workload.test_short_flows import guest_module


def outside_of_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """All that is executed when a module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from outside_of_functions(node)


def loaded_at_once(name: str, found: set[str]) -> set[str]:
    """A file and all that it imports outside of functions, and so on."""
    if name not in found:
        found.add(name)
        for node in outside_of_functions(ast.parse((paths.GUEST_CODE / name).read_text(encoding="utf-8"))):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "")]
            for module in modules:
                if module and (paths.GUEST_CODE / f"{module}.py").exists():
                    loaded_at_once(f"{module}.py", found)
    return found


def test_what_is_loaded_on_demand_is_loaded_nowhere_else():
    assert not loaded_at_once("guest.py", set()) & set(ON_DEMAND)
    assert not loaded_at_once("machine.py", set()) & set(ON_DEMAND)


def test_guest_py_loads_them_for_an_entry_of_the_plan():
    """Each once, under the condition that ON_DEMAND names; prompt.py is play.py's."""
    tree = ast.parse((paths.GUEST_CODE / "guest.py").read_text(encoding="utf-8"))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and isinstance(node.test.left, ast.Constant):
            for inner in filter(lambda one: isinstance(one, ast.Import), node.body):
                found |= {f"{alias.name}.py": node.test.left.value for alias in inner.names}
    assert found == {file: entry for file, entry in ON_DEMAND.items() if file != "prompt.py"}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in imports for alias in node.names] + [getattr(node, "module", "") for node in imports]
    assert sorted(name for name in names if f"{name}.py" in ON_DEMAND) == [
        "capture",
        "data_path",
        "opportunities",
        "play",
        "policer",
        "several",
    ]
    for other in {path.name for path in paths.GUEST_CODE.glob("*.py")} - {"guest.py", *ON_DEMAND}:
        text = (paths.GUEST_CODE / other).read_text(encoding="utf-8")
        assert not any(f"import {file[:-3]}" in text or f"from {file[:-3]} " in text for file in ON_DEMAND), other


TC_LINES = [
    "qdisc add dev s1-s2 root handle 1: htb default 3",
    "class add dev s1-s2 parent 1: classid 1:3 htb rate 0bit",
    "qdisc add dev s1-s2 parent 1:3 handle 30: fq_codel limit 5 quantum 3000000",
    "qdisc add dev s1-h1 root handle 2: netem limit 10000000 delay 1.000us",
    "qdisc add dev s1-h1 parent 2: handle 3: netem slot 1us 1us",
]


@pytest.mark.parametrize(
    ("number", "field"),
    [(2, "network.rate_mbit"), (3, "network.qdisc or network.buffer"), (4, "rtt_ms, network.jitter, network.data_path or network.loss"),
     (5, "hosts.receive_offload_us")],
)  # fmt: skip
def test_what_tc_refuses_is_told_as_the_scenario_has_it(number, field):
    """One line, which begins with the field, and has the line that was refused and tc's own reason."""
    told = guest_module("refusal").refusal(
        TC_LINES, f"Error: Invalid quantum.\nWe have an error talking to the kernel\nCommand failed -:{number}\n"
    )
    assert told.startswith(f"{field}: ") and "\n" not in told
    assert f"`tc {TC_LINES[number - 1]}`" in told and "(Error: Invalid quantum.)" in told


def test_a_run_names_the_files_that_it_may_load():
    every = {path.name for path in paths.GUEST_CODE.iterdir() if path.is_file()}
    assert guest_code({}).keys() == every - set(ON_DEMAND)
    for entry in ("prompt", "several", "policers", "capture"):
        others = {file for file, needs in ON_DEMAND.items() if needs != entry}
        assert guest_code({entry: {}}).keys() == every - others
    assert always_loaded(guest_code({"prompt": {}, "several": {}})) == guest_code({})
