"""Nothing of a submission, or of the folder in which somebody works, is executed or read as settings by the commands."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bbrlab.base import paths, python
from tests.graded import RUBRIC, copied, make_submission, write_rubric

BBRLAB = Path(sys.executable).with_name("bbrlab")
PROOF = "proof-of-execution"
# What Python, its starter, or a library of ours would import from a folder that is on its path.
MODULES = (
    "yaml.py", "json.py", "types.py", "random.py", "multiprocessing.py", "re.py", "encodings.py", "runpy.py", "pkgutil.py", "typing.py",
    "numpy.py", "pandas.py", "pyarrow.py", "pydantic.py", "typer.py", "numba.py", "jinja2.py", "conftest.py", "sitecustomize.py",
    "usercustomize.py", "snakemake_logger_plugin_bbrlab.py", "snakemake_executor_plugin_x.py", "bbrlab/__init__.py",
    "multiprocessing/__init__.py", "jupyter_config.py", "jupyter_notebook_config.py", "ipython_config.py",
)  # fmt: skip
SETTINGS = {
    "evil.pth": "import yaml\n", ".numba_config.yaml": "cache_dir: pickles\ncpu_name: i386\n", "matplotlibrc": "backend: module://yaml\n",
    ".env": "PYTHONPATH=.\n", "pyproject.toml": "[tool.x]\n", "Makefile": "all: ; touch ../x\n", "Snakefile": "open('x', 'w')\n",
    "base/index.html.j2": "{{ 1 // 0 }}", "lab/index.html.j2": "{{ 1 // 0 }}",
}  # fmt: skip


def make_hostile(folder: Path, proof: Path) -> Path:
    """Put files into a folder that write ``proof`` if anybody executes them."""
    for name in MODULES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(proof)!r}, 'a').write(__file__ + chr(10))\nraise SystemExit(3)\n")
    for name, text in SETTINGS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def executed(proof: Path) -> str:
    return proof.read_text() if proof.exists() else ""


def test_one_place_starts_pythons_of_ours():
    """It starts them without the working folder on their path; another place would have to remember that."""
    folders = ("bbrlab", "bbrlab_apps", "rules", "workflow", "snakemake_logger_plugin_bbrlab")
    sources = [p for f in folders for p in (paths.ROOT / f).rglob("*") if p.suffix in (".py", ".smk") or p.name == "Snakefile"]  # fmt: skip
    assert len(sources) > 300
    text = {p.relative_to(paths.ROOT).as_posix(): p.read_text(encoding="utf-8") for p in sources}
    assert [name for name, t in text.items() if "sys.executable" in t] == ["bbrlab/base/python.py"]
    assert [name for name, t in text.items() if re.search(r"""["']-m["'], *["'][a-z]""", t)] == []
    assert [name for name, t in text.items() if re.search("^ *(from|import) numba", t, re.MULTILINE)] == [
        "bbrlab/models/jit.py"
    ]
    assert [name for name, t in text.items() if "ProcessPoolExecutor(" in t or "Pool(" in t] == [
        "bbrlab/base/workers.py"
    ]


@pytest.mark.parametrize("start", [[str(BBRLAB)], [sys.executable, "-m", "bbrlab.cli.main"]], ids=["bbrlab", "-m"])
def test_commands_in_a_strangers_folder_run_nothing_of_it(start, tmp_path):
    """Of ``python -m`` what Python itself imports before any line of ours is left out, bbrlab/ first of all: `bbrlab` is the way."""
    proof = tmp_path / PROOF
    folder = make_hostile(tmp_path / "in", proof)
    if start[0] == sys.executable:
        for name in ("bbrlab/__init__.py", "runpy.py", "types.py", "pkgutil.py", "re.py", "encodings.py", "typing.py"):
            (folder / name).unlink()
        (folder / "bbrlab").rmdir()
    scenario = {k: v for k, v in RUBRIC["scenario"].items()} | {"network": {"rate_mbit": 10, "rtt_ms": 20, "buffer": {"bdp": 2}}}  # fmt: skip
    (folder / "s.yaml").write_text(json.dumps(scenario))
    (folder / "rubric.yaml").write_text(json.dumps(RUBRIC))
    for argv in (["check", "s.yaml"], ["model", "fluid", "s.yaml"], ["assign", "--rubric", "rubric.yaml", "--student", "a"]):  # fmt: skip
        done = subprocess.run([*start, *argv], cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert executed(proof) == ""


def test_programs_of_the_working_folder_are_not_started(tmp_path):
    """Where somebody's PATH has it: by an empty entry, a dot, or another name that depends on where he is."""
    proof = tmp_path / PROOF
    folder = make_hostile(tmp_path / "in", proof)
    for name in (
        "git",
        "dpkg-query",
        "gcc",
        "taskset",
        "setpriv",
        "qemu-system-x86_64",
        "systemd-detect-virt",
        "podman",
        "docker",
    ):
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho $0 >>{proof}\n")
        program.chmod(0o755)
        (folder / name).symlink_to(program)
    done = subprocess.run(
        [BBRLAB, "doctor"], cwd=folder, env={"PATH": ":.:bin:/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0 and executed(proof) == "", done.stderr


def test_settings_of_the_working_folder_are_not_read(tmp_path):
    """numba's name a folder of pickles, matplotlib's a module; both would be read at the import, numba's at each compilation, too."""
    folder = make_hostile(tmp_path / "in", tmp_path / PROOF)
    code = (
        "import bbrlab.models.fluid, bbrlab.show.plots.style, matplotlib, os\n"
        "from numba.core import config; config.reload_config()\n"
        "print(repr(config.CACHE_DIR), repr(config.CPU_NAME), matplotlib.matplotlib_fname(), os.getcwd())"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cache, cpu, settings, here = done.stdout.split()
    assert cache == "''" and cpu == "None" and here == str(folder)
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import bbrlab.show.plots.style, matplotlib; print(matplotlib.rcParams['backend'])"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "yaml" not in done.stdout, done.stderr


def test_a_python_of_ours_has_the_checkout_and_nothing_else(tmp_path, monkeypatch):
    folder = make_hostile(tmp_path / "in", tmp_path / PROOF)
    monkeypatch.chdir(folder)
    child = python.start("json.tool", str(folder / "none"), stderr=subprocess.PIPE, text=True)
    assert "No such file" in child.communicate()[1]
    assert executed(tmp_path / PROOF) == ""
    with python.safe_path():
        done = subprocess.run([sys.executable, "-c", "import json, sys; print(sys.flags.safe_path)"], capture_output=True, text=True)  # fmt: skip
    assert done.stdout == "True\n" and executed(tmp_path / PROOF) == ""
    assert python.SAFE_PATH not in __import__("os").environ


@pytest.fixture(scope="module")
def hostile_class(tmp_path_factory):
    """A class of one, whose submission has all these files, and the rubric by which its runs are made again."""
    folder = tmp_path_factory.mktemp("hostile")
    rubric = write_rubric(folder, rerun=2, points=RUBRIC["points"] | {"rerun": 30})
    return rubric, make_submission(folder / "class" / "ada", rubric)


@pytest.mark.guest
@pytest.mark.parametrize(
    "whole_class", [pytest.param(False, marks=pytest.mark.slow, id="one"), pytest.param(True, id="class")]
)
def test_grading_from_inside_a_submission_runs_nothing_of_it(whole_class, hostile_class, tmp_path):
    rubric, good = hostile_class
    proof = tmp_path / PROOF
    submission = make_hostile(copied(good, tmp_path / "class" / "ada"), proof)
    what = ["--class", ".."] if whole_class else [".", "--student", "ada"]
    done = subprocess.run(
        [BBRLAB, "grade", *what, "--rubric", rubric, "--out", tmp_path / "out"], cwd=submission, capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert executed(proof) == ""
    grade = json.loads((tmp_path / "out" / "ada" / "grade.json").read_text())
    assert grade["score"] == grade["of"] == 130 and not grade["flags"], grade
    assert [r["outcome"] for r in grade["reruns"]] == ["the same", "the same"]
    if whole_class:
        rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "class.csv").read_text())))
        assert [(r["student"], r["score"]) for r in rows] == [("ada", "130")]
