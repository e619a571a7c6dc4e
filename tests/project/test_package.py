"""The package: what it declares, what commands load, and what its wheel does outside of the checkout."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bbrlab.base import paths
from bbrlab.campaign.stages import PACKAGES
from bbrlab.cli.doctor import missing_packages
from bbrlab.cli.extras import EXTRAS
from bbrlab_apps.archive.citation import name_of, read_citation

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
# What commands must do without, as if none of the extras were installed. IPython comes with ipykernel, docutils with sphinx.
BLOCKED = sorted({module for modules in EXTRAS.values() for module in modules} | {"myst_parser", "jupyterlab", "ipywidgets", "pytest"})  # fmt: skip
WITHOUT = f"""
import sys
class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Lacking())
from bbrlab.cli.main import main
main()
"""


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(text.split("#")[0]).name) for text in requirements}


def without_extras(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What ``bbrlab`` does where only the core is installed."""
    return subprocess.run([sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, cwd=cwd)


def test_what_the_package_declares_is_locked():
    locked = set(re.findall(r"^([a-z0-9-]+)==", (paths.ROOT / "envs" / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))  # fmt: skip
    declared = names([*PROJECT["dependencies"], *(name for extra in OPTIONAL.values() for name in extra)])
    assert len(declared) > 40 and declared <= locked


def test_the_package_and_its_citation_say_the_same():
    """And no address that is not the citation's: the repository has no public one yet."""
    cited = read_citation()
    assert [author["name"] for author in PROJECT["authors"]] == [name_of(author) for author in cited["authors"]]
    assert PROJECT["version"] == cited["version"]
    assert PROJECT.get("urls", {}).get("Repository") == cited.get("repository-code")
    assert set(PROJECT["keywords"]) <= set(cited["keywords"])


def test_what_bbrlab_imports_is_declared():
    """By the core, or by the extra that its message names."""
    core, of_module = names(PROJECT["dependencies"]), packages_distributions()
    extra_of = {module: extra for extra, modules in EXTRAS.items() for module in modules}
    undeclared = set()
    for file in (p for name in PACKAGES for p in (paths.ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                imported = [node.module or ""]
            for module in {name.split(".")[0] for name in imported} - set(sys.stdlib_module_names) - set(PACKAGES):
                allowed = names(OPTIONAL[extra_of[module]]) if module in extra_of else core
                if not {canonicalize_name(name) for name in of_module.get(module, [])} & allowed:
                    undeclared.add((file.name, module))
    assert undeclared == set()


@pytest.mark.parametrize(
    "words", ["run --help", "check scenarios/tang/fig2.yaml", "model ware scenarios/sarpkaya2025/fig2a.yaml", "kernel list", "verify --help", "grade --help"]
)  # fmt: skip
def test_the_core_does_without_the_extras(words):
    done = without_extras(*words.split(), cwd=paths.ROOT)
    assert done.returncode == 0, done.stderr


def test_a_command_says_which_extra_it_lacks(tmp_path):
    notebook = paths.ROOT / "notebooks" / "00_start.ipynb"
    done = without_extras("execute", str(notebook), "--out", str(tmp_path / "x.ipynb"))
    assert (done.returncode, done.stderr) == (
        2,
        'bbrlab: bbrlab execute needs nbformat: pip install "bbrlab[notebooks]"\n',
    )
    code = "from bbrlab.cli.extras import why_not_imported as why; print(why(ModuleNotFoundError(name={!r}), 'bbrlab play'))"
    for module, said in (
        ("textual_plot.x", 'bbrlab play needs textual-plot: pip install "bbrlab[play]"'),
        ("none", "None"),
    ):
        done = subprocess.run([sys.executable, "-c", code.format(module)], capture_output=True, text=True)
        assert done.stdout.strip() == said


def test_a_file_that_is_missing_is_no_other_system(monkeypatch, tmp_path):
    """The doctor said of Debian that it was none, where the list of packages was not there."""
    monkeypatch.setattr(paths, "DEBIAN_PACKAGES", tmp_path / "none.txt")
    with pytest.raises(FileNotFoundError, match="none.txt"):
        missing_packages()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: setuptools writes beside what it builds."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*PACKAGES, "snakemake_logger_plugin_bbrlab", "LICENSES"):
        shutil.copytree(paths.ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(paths.ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(out), str(source)]  # fmt: skip
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("bbrlab-*.whl"))


def test_the_wheel_has_all_files_of_the_package(wheel):
    there = {
        p.relative_to(paths.ROOT).as_posix()
        for name in PACKAGES
        if name != "studies"
        for p in (paths.ROOT / name).rglob("*")
        if p.is_file()
    }
    with zipfile.ZipFile(wheel) as packed:
        content = packed.namelist()
        metadata = packed.read(next(name for name in content if name.endswith("METADATA"))).decode()
    assert {name for name in there if not name.endswith((".pyc", ".nbi", ".nbc"))} <= set(content)
    assert "\nLicense-Expression: MIT\n" in metadata and "\nAuthor: the bbrlab authors\n" in metadata
    assert "\n# bbrlab\n" in metadata, "the README"


@pytest.mark.parametrize("words", ["run x.yaml", "doctor", "check x.yaml", "forecast", "model ware x.yaml", "play x.yaml", "kernel list"])  # fmt: skip
def test_an_installed_wheel_says_that_it_runs_from_its_checkout(installed, words):
    done = subprocess.run([installed / "bin" / "bbrlab", *words.split()], capture_output=True, text=True, cwd=installed)
    assert done.returncode == 2 and done.stdout == ""
    assert re.fullmatch(r"bbrlab: \S+/site-packages is not bbrlab's checkout, and .+\n", done.stderr), done.stderr


def test_an_installed_wheel_has_a_version(installed):
    done = subprocess.run([installed / "bin" / "bbrlab", "--version"], capture_output=True, text=True, cwd=installed)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"bbrlab {PROJECT['version']}\n", "")


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A fresh environment with the wheel, and with this one's libraries beside it."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "-q", "--no-index", "--no-deps", wheel]  # fmt: skip
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    libraries = next(folder.glob("lib/python3*/site-packages")) / "libraries.pth"
    libraries.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder
