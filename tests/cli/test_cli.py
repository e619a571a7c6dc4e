"""The command line as programs and shells meet it: JSON, exit codes, completion, version."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli import app as frame
from bbrlab.cli.app import SECTIONS
from bbrlab.cli.commands import app
from bbrlab.kernel import built, sources
from bbrlab.kernel.built import Kernel, get_kernel
from bbrlab.kernel.built_with import compiler
from bbrlab.run import compatibility
from bbrlab.scenario.load import load_scenario
from docs._make import reference

FIG2A = str(paths.ROOT / "scenarios" / "sarpkaya2025" / "fig2a.yaml")
CLAIMS = str(paths.DATA / "tang" / "claims.yaml")
TINY = {
    "name": "tiny", "network": {"rate_mbit": 2, "rtt_ms": 20, "buffer": {"bdp": 2}}, "flows": [{"cca": "cubic"}],
    "duration_s": 3, "window_s": [1, 3],
}  # fmt: skip


def invoke(*argv: object):
    return CliRunner().invoke(app, list(map(str, argv)), catch_exceptions=False)


def json_of(*argv: object, code: int = 0):
    """What a command prints as JSON: all of its standard output."""
    done = invoke(*argv, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def bbrlab(*argv: object, **env: str) -> subprocess.CompletedProcess[str]:
    words = [str(Path(sys.executable).with_name("bbrlab")), *map(str, argv)]
    return subprocess.run(words, capture_output=True, text=True, env=os.environ | env)


def sections() -> dict[str, str]:
    """{command: what the reference says of it}."""
    return {s.splitlines()[0]: s for s in reference.command_line().split("\n## ")[1:] if s.startswith("bbrlab ")}


def test_the_reference_names_every_command_with_json():
    page = (paths.ROOT / "docs" / "reference" / "command_line.md").read_text(encoding="utf-8")
    told = page.split("`--json` prints")[1].split("\n\n")[0]
    with_json = {name.removeprefix("bbrlab ") for name, text in sections().items() if "`--json`" in text}
    assert set(re.findall(r"`([a-z0-9]+(?: [a-z0-9]+)?)`", told)) == with_json and len(with_json) > 10


def test_doctor():
    found = invoke("doctor", "--json")
    content = json.loads(found.stdout)
    assert content["ok"] is (found.exit_code == 0)
    assert {"machine", "packages", "kernel"} <= {f["name"] for f in content["findings"]}
    assert all(f["ok"] or f["remedy"] for f in content["findings"])


def test_doctor_without_debian_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {f["name"]: f for f in json.loads(invoke("doctor", "--json").stdout)["findings"]}
    assert found["packages"]["found"].startswith("this is not a Debian system")
    assert found["kernel"]["remedy"].startswith("this is not a Debian system")


def test_doctor_looks_at_the_folders_that_are_written(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("BBRLAB_BUILD", "kernels of mine")
    found = {f["name"]: f["found"] for f in json.loads(invoke("doctor", "--json").stdout)["findings"]}
    assert f"for {tmp_path / 'results'}" in found["disk"] and f"for {paths.ROOT / 'kernels of mine'}" in found["disk"]


def test_doctor_sends_nobody_to_a_build_that_cannot_help(monkeypatch, tmp_path):
    (tmp_path / "empty.yaml").write_text("")
    monkeypatch.setenv("BBRLAB_KERNELS", str(tmp_path / "empty.yaml"))
    found = {f["name"]: f for f in json.loads(invoke("doctor", "--json").stdout)["findings"]}
    assert found["kernel"]["remedy"] == f"{tmp_path / 'empty.yaml'}: is empty"


def test_forecast():
    (row,) = json_of("forecast", "sarpkaya2025/fig2a", "--scale", "smoke")
    assert (row["figure"], row["points"], row["runs"]) == ("sarpkaya2025/fig2a", 4, 8)


def test_check():
    scenario, claims = sorted(json_of("check", FIG2A, CLAIMS), key=lambda one: one["file"], reverse=True)
    assert (scenario["name"], scenario["points"]) == ("fig2a", 42)
    assert claims["claims"] >= claims["statements"] > 10


def test_check_reads_files_of_short_flows(tmp_path):
    (tmp_path / "flows.csv").write_text("no,such,columns\n")
    (tmp_path / "mine.yaml").write_text(ONE_FLOW % "cubic, traffic: {trace: flows.csv}")
    with pytest.raises(UserError, match="flows.csv:1: the columns must be flow, chunk"):
        invoke("check", tmp_path / "mine.yaml")


ONE_FLOW = """name: mine
network: {rate_mbit: 10, rtt_ms: 20, buffer: {bdp: 1}}
flows: [{cca: bbr1}, {cca: %s}]
duration_s: 100
window_s: [20, 100]
"""


@pytest.mark.parametrize(
    ("flow", "note"),
    [
        ("cubic", None),
        ("cubic, start_s: 20", None),
        ("cubic, start_s: 60, bytes: 1000", None),
        ("cubic, start_s: 60", "flows.1 (cubic) is there for 40 s of the 80 s of window_s [20, 100] (start_s 60): its goodput and share are"),
        ("cubic, start_s: 30, stop_s: 50", "flows.1 (cubic) is there for 20 s of the 80 s of window_s [20, 100] (start_s 30, stop_s 50)"),
        ("cubic, stop_s: 20", "flows.1 (cubic) is not there in the 80 s of window_s [20, 100]"),
    ],
)  # fmt: skip
def test_check_tells_of_flows_that_are_there_for_a_part_of_the_window(flow, note, tmp_path):
    (tmp_path / "mine.yaml").write_text(ONE_FLOW % flow)
    (found,) = json_of("check", tmp_path / "mine.yaml")
    assert [said[: len(note or "")] for said in found["notes"]] == ([note] if note else [])
    assert ("  note: " in invoke("check", tmp_path / "mine.yaml").stdout) == bool(note)


def test_check_knows_the_kernels_parameters(tmp_path, monkeypatch):
    kernel = Kernel(
        "lab-6.12",
        "6",
        "b",
        "k",
        "i",
        {"bbr1": "bbr", "bbr3": "bbr3"},
        {"bbr": ["gain", "counters_start"]},
        "s",
        "c",
        1.0,
    )
    monkeypatch.setattr(built, "get_kernel", lambda: kernel)
    file = tmp_path / "mine.yaml"
    file.write_text(ONE_FLOW % "bbr1" + "trials: 1\n")
    assert json_of("check", file)[0]["notes"] == []
    file.write_text((ONE_FLOW % "bbr3").replace("{cca: bbr1}", "{cca: bbr1, params: {nosuch: 1}}"))
    monkeypatch.setattr(compatibility, "get_kernel", lambda name: kernel)
    with pytest.raises(UserError) as refused:
        invoke("check", file)
    assert str(refused.value) == (
        f"{file}: flows.0.params.nosuch: bbr1 has no parameter 'nosuch' (it has: up_pacing_gain_percent, down_pacing_gain_percent, "
        "policer_detection, gain)"
    )
    monkeypatch.setattr(
        compatibility, "get_kernel", lambda name: dataclasses.replace(kernel, parameters={"bbr": ["nosuch"]})
    )
    (note,) = json_of("check", file)[0]["notes"]
    assert note == (
        "does not run with the default kernel: mine: flows.0.params.nosuch: bbr1 has no parameter 'nosuch' in kernel lab-6.12 (it "
        "has: gain)"
    )
    file.write_text(ONE_FLOW % "aimd, params: {nosuch: 1}")
    assert json_of("check", file)[0]["notes"] == [
        "the flows' params are checked when they run: an algorithm is one of your own"
    ]


def test_kernel_list():
    kernels = json_of("kernel", "list")
    assert [k["name"] for k in kernels if k["default"]] == ["lab-6.12"]
    assert all(k["ccas"] and k["build_id"] for k in kernels if k["built"])
    by_name = {k["name"]: k for k in kernels}
    assert by_name["lab-6.1"]["source"] == "linux-source-6.1 6.1.192-2", "of one that is not built, too"
    text = invoke("kernel", "list").stdout
    assert "source linux-source-6.1 6.1.192-2" in text
    for kernel in kernels:
        assert not kernel["key"] or f"key {kernel['key']}" in text, "by which two machines are compared"
    if by_name["lab-6.12"]["built"]:
        lab = get_kernel("lab-6.12")
        assert [by_name["lab-6.12"][k] for k in ("source", "key", "compiler")] == [
            lab.source,
            lab.key,
            lab.compiler,
        ]


def test_kernel_list_without_the_source(monkeypatch):
    """As before `make setup`: a kernel of an installed package has neither version nor key, one of a fixed version has both."""
    monkeypatch.setattr(sources, "_tarball", lambda package: paths.ROOT / "nowhere")
    monkeypatch.setattr(sources, "recorded_source", lambda package: None)
    by_name = {k["name"]: k for k in json_of("kernel", "list")}
    assert by_name["lab-6.12"] | {"description": ""} == {
        "name": "lab-6.12", "default": True, "description": "", "built": False, "compiler": compiler(), "key": "",
        "source": "linux-source-6.12, which is not installed",
    }  # fmt: skip
    assert by_name["lab-6.1"]["key"]
    assert by_name["google-v2alpha"]["source"] == "https://github.com/google/bbr.git v2alpha"


def test_cache(tmp_path):
    (tmp_path / ("a" * 64)).write_bytes(b"12345")
    assert json_of("cache", "show", "--folder", tmp_path)["size_bytes"] == 5
    found = json_of("cache", "prune", "--folder", tmp_path, "--gb", "0", "--dry-run")
    assert found["dry_run"] and found["removed"] == {"runs": 1, "size_bytes": 5}
    assert (tmp_path / ("a" * 64)).exists()


def test_models(tmp_path):
    shares = json_of("model", "ware", FIG2A)
    assert len(shares) == 42 and all(0 < p["share"] < 1 for p in shares)
    small = tmp_path / "small.yaml"
    content = TINY | {"flows": [{"cca": "bbr1"}, {"cca": "cubic"}], "duration_s": 20, "window_s": [5, 20]}
    small.write_text(json.dumps(content | {"sweep": {"network.buffer.bdp": [1, 2]}}), encoding="utf-8")
    for model, options in (("fluid", ("--no-check-step", "--step-ms", "0.1")), ("burst", ("--seeds", "1"))):
        points = json_of("model", model, small, *options)
        assert [p["point"]["network.buffer.bdp"] for p in points] == [1, 2]
        assert all(len(p["shares"]) == 2 and 0 <= min(p["shares"]) <= sum(p["shares"]) < 1.02 for p in points)
    assert [p["share_deviations"] for p in points] == [[None, None]] * 2  # of one seed there is none: null


@pytest.mark.guest
def test_run(tmp_path):
    scenario = tmp_path / "tiny.yaml"
    scenario.write_text(json.dumps(TINY), encoding="utf-8")
    done = bbrlab("run", scenario, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["summary"] == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert Path(content["results"]) == tmp_path / "run"


def test_a_failure_prints_no_json():
    done = bbrlab("run", "nothing.yaml", "--out", "/nonexistent/x", "--json")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("bbrlab: nothing.yaml")


def test_numbers_that_there_are_not_are_null(capsys):
    frame.print_json({"a": float("nan"), 2: [np.float64("inf"), np.arange(2), Path("/x")], "t": (True, None)})
    assert json.loads(capsys.readouterr().out) == {"a": None, "2": [None, [0, 1], "/x"], "t": [True, None]}


def test_every_exit_code_is_in_the_table():
    """All that the command line's modules end with is one of the names in app.py, and each of those is in EXITS."""
    names = {n for n in vars(frame) if n.startswith("EXIT_")}
    assert {getattr(frame, name) for name in names} | {0} == set(frame.EXITS)
    for path in [*(paths.ROOT / "bbrlab" / "cli").rglob("*.py"), *(paths.ROOT / "bbrlab_apps").rglob("commands.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called in ("typer.Exit", "sys.exit") and node.args:
                told = ast.unparse(node.args[0])
                assert told in names or path.name == "main.py", f"{path.name}: {told}"


def test_a_fault_of_ours_has_a_code_of_its_own():
    code = (
        "import sys; from bbrlab.cli import main, doctor\n"
        "doctor.check_machine = lambda: 1 / 0\nsys.argv = ['bbrlab', 'doctor']; main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == frame.EXIT_BUG and "ZeroDivisionError" in done.stderr


def test_help_lists_every_command_with_its_whole_first_sentence():
    root = typer.main.get_command(app)
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(name for name, command in root.commands.items() if not command.hidden)
    groups = [name for name, command in root.commands.items() if hasattr(command, "commands")]
    for words in ([], *([group] for group in groups)):
        done = CliRunner().invoke(app, [*words, "--help"])
        assert done.exit_code == 0 and "..." not in done.output.replace("COMMAND [ARGS]...", ""), done.output
    done = CliRunner().invoke(app, ["--help"])
    assert done.output.index("run ") < done.output.index("artifact ")


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make, which the image has not")
def test_make_help_lists_every_target_with_words():
    text = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    told = {
        line.split()[0]
        for line in subprocess.run(
            ["make", "-s", "help"], cwd=paths.ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    }
    assert told == set(re.findall(r"^([^\s:=]+):.*##", text, re.MULTILINE)) and "ns3" in told


def test_a_scenario_that_is_not_there(tmp_path, monkeypatch):
    """Its path may be meant by its figure's name."""
    monkeypatch.chdir(paths.ROOT)
    for path, said in (
        ("sarpkaya2025/fig2a", "did you mean scenarios/sarpkaya2025/fig2a.yaml?"),
        ("fig2.yaml", "did you mean scenarios/tang/fig2.yaml or scenarios/zeynali2024/fig2.yaml?"),
        ("nowhere.yaml", "give the path of a scenario file"),
    ):
        with pytest.raises(UserError, match=re.escape(f"{path}: cannot be read (No such file or directory); {said}")):
            load_scenario(Path(path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=re.escape(f"did you mean {paths.SCENARIOS}/tang/fig3.yaml")):
        load_scenario(Path("tang/fig3"))


def test_usage_errors():
    done = bbrlab("run", "--no-such-option")
    assert done.returncode == frame.EXIT_FAILED and "--no-such-option" in done.stderr and "Traceback" not in done.stderr


def commands_of(command: object) -> Iterator[object]:
    """A command, or all that a group has."""
    inner = getattr(command, "commands", None)
    yield from (c for one in inner.values() for c in commands_of(one)) if inner else (command,)


def test_how_much_runs_at_once_is_at_least_one():
    found = {
        f"{command.name} {param.opts[0]}": param.min
        for command in commands_of(typer.main.get_command(app))
        for param in command.params
        if param.opts[0] == "--cores"
    }
    assert {"grade --cores", "compare --cores", "build --cores", "verify --cores"} <= set(found)
    assert {name for name, least in found.items() if least != 1} == set()
    done = bbrlab("compare", "--kernel", "a", "--kernel", "b", "--cores", "0")
    assert done.returncode == 2 and "Invalid value for '--cores'" in done.stderr


def test_version():
    version = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert bbrlab("--version").stdout == f"bbrlab {version}\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("bbrlab mod", {"model"}), ("bbrlab model b", {"burst"}), ("bbrlab run --trace", {"--trace-acks"}),
     ("bbrlab forecast --scale q", {"quick"}), ("bbrlab compare --scale q", {"quick"}), ("bbrlab forecast tang/fig2", {"tang/fig2"}),
     ("bbrlab run x.yaml --kernel lab-6.12-c", {"lab-6.12-checked"})],
)  # fmt: skip
def test_completion(typed, offered):
    """What the bash function asks, and gets, when somebody presses the tab key."""
    words = typed.split(" ")
    done = bbrlab(_BBRLAB_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1))
    assert offered <= set(done.stdout.split()), (done.stdout, done.stderr)
    assert all(word.startswith(words[-1]) for word in done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_for_completion_name_the_command(shell):
    done = bbrlab(_BBRLAB_COMPLETE=f"source_{shell}")
    assert "bbrlab" in done.stdout and "_BBRLAB_COMPLETE" in done.stdout
