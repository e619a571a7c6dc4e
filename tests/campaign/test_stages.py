"""What a change makes anew: exactly what stands behind it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign import stages
from bbrlab.campaign.stages import PACKAGES, STAGES, data_of, modules_of
from bbrlab.results.figures import figures_at
from bbrlab.results.seeds import write_seeds
from tests.campaign.checkout import copy_checkout, put_program, run_snakemake


@pytest.mark.parametrize("stage", ["kernel", "runs", "models", "tables", "claims"])
def test_a_stage_has_every_module_that_its_command_loads(stage):
    """Asked of Python itself, which imports all of the stage's modules."""
    modules = {str(p.relative_to(paths.ROOT)) for p in modules_of(stage)}
    assert len(modules) > 5
    names = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in modules]
    code = (
        "import importlib, sys\n"
        f"for name in {[name for name in names if not name.endswith('confine.start')]}: importlib.import_module(name)\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] in ('bbrlab', 'bbrlab_apps', 'studies')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True, check=True)
    loaded = {str(Path(file).relative_to(paths.ROOT)) for file in done.stdout.split()}
    frame = {p for p in loaded if p in ("bbrlab/cli/app.py", "bbrlab/cli/interrupts.py") or p.endswith("__init__.py")}
    assert loaded - modules <= frame


def test_a_stage_has_what_its_modules_start():
    assert paths.ROOT / "bbrlab/kernel/confine/start.py" in modules_of("runs")


def test_a_stage_whose_command_or_folder_is_gone(tmp_path):
    with pytest.raises(UserError, match=r"runs: is not there, but stage runs"):
        modules_of("runs", tmp_path)
    with pytest.raises(UserError, match=r"mininet: is not there, but stage runs"):
        data_of("runs", tmp_path)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the checkout that may be changed."""
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture
def hashes(checkout) -> Callable[[], dict[str, str]]:
    """The hash of each stage as the copy of the checkout is then, in a process of its own, as a campaign has it."""

    def hashes() -> dict[str, str]:
        code = "import json; from bbrlab.campaign.stages import STAGES, stage_hash; print(json.dumps({s: stage_hash(s) for s in STAGES}))"
        done = subprocess.run([sys.executable, "-c", code], check=True, cwd=checkout, capture_output=True, text=True)
        return json.loads(done.stdout)

    return hashes


FUNCTION = """
LIMIT = 3

def total(values):
    found = 0
    for one in values:
        found += min(one, LIMIT)
    return found
"""


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        (r"return found", "return one", False),
        (r"\bfound = 0\b", "found = 1", False),
        (r"\bLIMIT\)", "one)", False),
        (r"\bone\b", "LIMIT", False),
        (r"def total", "def result", False),
        (r"    found = 0", '    """Their sum."""\n    found = 0  # so far', True),
        (r"LIMIT = 3", "LIMIT = 3\nANOTHER = 1", False),
    ],
)
def test_a_hash_is_of_what_code_does_not_of_its_words(tmp_path, old, new, is_same):
    paths_of = [tmp_path / "first.py", tmp_path / "second.py"]
    for path, text in zip(paths_of, (FUNCTION, re.sub(old, new, FUNCTION)), strict=True):
        path.write_text(text)
    first, second = (stages._parsed(path).sha256 for path in paths_of)
    assert (first == second) == is_same


@pytest.mark.parametrize(
    ("call", "old", "new", "is_same"),
    [
        ("Field", "'of the buffer'", "'what the buffer holds'", True),
        ("pydantic.Field", "'of the buffer'", "f'at most {LIMIT}'", True),
        ("Field", "'of the buffer'", "words()", False),
        ("Field", "ge=1", "ge=2", False),
        ("Page", "'of the buffer'", "'what the buffer holds'", False),  # its text is a result
    ],
)
def test_what_a_field_says_to_its_readers_is_no_part_of_a_hash(tmp_path, call, old, new, is_same):
    text = f"packets: int = {call}(1, ge=1, description='of the buffer')\n"
    paths_of = [tmp_path / "first.py", tmp_path / "second.py"]
    for path, content in zip(paths_of, (text, text.replace(old, new)), strict=True):
        path.write_text(content)
    first, second = (stages._parsed(path).sha256 for path in paths_of)
    assert (first == second) == is_same


def test_a_mere_move_changes_no_hash(checkout, hashes):
    """Modules that runs, tables, claims and pages have, moved to another room, with the imports of all others."""
    before = hashes()
    moves = {
        "measure.checks.drops": "guest.lost",
        "results.statistics": "guest.statistics",
        "base.arrays": "guest.arrays",
    }
    moved = [checkout / f"bbrlab/{name.replace('.', '/')}.py" for name in moves]
    modules = sorted(p for name in PACKAGES for p in (checkout / name).rglob("*.py"))
    with put_back(*modules):
        texts = {path: path.read_text() for path in modules}
        for path, (old, new) in zip(moved, moves.items(), strict=True):
            place = checkout / f"bbrlab/{new.replace('.', '/')}.py"
            place.parent.mkdir(exist_ok=True)
            path.rename(place)
            texts[place] = texts.pop(path)
            for file, text in texts.items():
                room, _, name = old.rpartition(".")
                other, _, new_name = new.rpartition(".")
                alias = f"{new_name} as {name}" if name != new_name else name
                changed_text = text.replace(f"from bbrlab.{old} import", f"from bbrlab.{new} import")
                texts[file] = changed_text.replace(
                    f"from bbrlab.{room} import {name}\n", f"from bbrlab.{other} import {alias}\n"
                )
        for file, text in texts.items():
            file.write_text(text)
        try:
            assert not any((checkout / f"bbrlab/{old.replace('.', '/')}.py").exists() for old in moves)
            assert hashes() == before
        finally:
            shutil.rmtree(checkout / "bbrlab" / "guest")


def test_the_same_name_of_another_module_changes_the_hash(tmp_path):
    """Nothing but an import statement differs; it does not count where the two modules do the same."""
    room = tmp_path / "bbrlab"
    room.mkdir()
    for module, text in {"one": FUNCTION, "same": FUNCTION, "other": FUNCTION + "ANOTHER = 1\n"}.items():
        (room / f"{module}.py").write_text(text)
        (room / f"uses_{module}.py").write_text(f"from bbrlab.{module} import total\nUSED = total\n")
    one, same, other = (stages._with_imports(room / f"uses_{name}.py", tmp_path) for name in ("one", "same", "other"))
    assert one == same != other


SITE = {"site", "all"}
PREDICTIONS = {"fluid_prediction", "burst_prediction"}
SCORED = {"scorecard"} | SITE
PAGES = {"notebook", "models_notebook", "burst_notebook", "overview_notebook"} | SCORED
CLAIMS = {"claims", "paper_claims"} | PAGES
TABLES = {"collect", "points"} | CLAIMS
RUNS = {"run"} | TABLES
KERNEL = (RUNS | {"kernel"}) - {"burst_notebook"}  # that page has no runs, only code and kept tables


@pytest.fixture(scope="module")
def finished(checkout):
    """A campaign of two papers, finished in no time; returns what a dry run of the same says is to be done."""
    figures = ("tang", "sarpkaya2025/fig2c")

    def planned(target: str = "all") -> set[str]:
        plan = run_snakemake(checkout, [target], "-n", figures=figures)
        return {rule for rule, _ in re.findall(r"^(\w+) +(\d+)$", plan, re.MULTILINE)} - {"total"}

    run_snakemake(checkout, ["all"], figures=figures)
    assert planned() == set(), "nothing is left to be done"
    return planned


JUDGED = {"seeds", "claims", "pages", "site"}
STAGES_OF = {
    "mininet/dumbbell.py": {"runs"},
    "bbrlab/experiment/qdisc.py": {"runs", "tables"} | JUDGED,
    "bbrlab/scenario/schema.py": {"runs", "tables", "models"} | JUDGED,
    "bbrlab/base/files.py": set(STAGES),
    "bbrlab/kernel/specs.py": {"kernel", "runs", "tables"} | JUDGED,
    "bbrlab/measure/jitter.py": {"runs", "pages", "site"},
    "bbrlab/results/statistics.py": {"tables"} | JUDGED,
    "bbrlab/models/ware.py": JUDGED,
    "envs/requirements.lock": {"tables", "models"} | JUDGED,
    "data/sarpkaya2025/models.yaml": {"models", "claims", "pages", "site"},
    "bbrlab/claims/judge.py": JUDGED,
    "data/tang/table2.csv": {"claims", "pages", "site"},
    "bbrlab/show/plots/style.py": {"pages"},
    "bbrlab_apps/site/charts.py": {"pages", "site"},
    "bbrlab_apps/site/pages.py": {"site"},
    "bbrlab_apps/site/static/site.css": {"site"},
    "bbrlab/campaign/forecast.py": set(),
    "bbrlab/cli/checks.py": set(),
    "envs/slurm.txt": set(),
    "data/README.md": set(),
}


def test_the_stages_that_a_file_decides():
    """What is behind each of them is looked at below, by a file of every kind."""
    files = {stage: modules_of(stage) | set(data_of(stage)) for stage in STAGES}
    assert all((paths.ROOT / path).is_file() for path in STAGES_OF)
    assert {path: {s for s in STAGES if paths.ROOT / path in files[s]} for path in STAGES_OF} == STAGES_OF


@pytest.mark.parametrize(
    ("path", "anew"),
    [
        ("mininet/dumbbell.py", RUNS - {"burst_notebook"}),  # runs alone
        pytest.param(
            "bbrlab/kernel/specs.py", RUNS | {"kernel"}, marks=pytest.mark.slow
        ),  # kernel, runs, and what is behind them
        pytest.param("kernels/options/um.config", KERNEL, marks=pytest.mark.slow),  # no stage: an input of the kernel
        pytest.param("bbrlab/results/statistics.py", TABLES, marks=pytest.mark.slow),
        pytest.param("data/sarpkaya2025/models.yaml", CLAIMS | PREDICTIONS, marks=pytest.mark.slow),
        pytest.param("data/tang/table2.csv", CLAIMS, marks=pytest.mark.slow),
        pytest.param("bbrlab/show/plots/style.py", PAGES, marks=pytest.mark.slow),
        ("notebooks/tang.ipynb", {"notebook"} | SITE),
        pytest.param("bbrlab_apps/site/static/site.css", SITE, marks=pytest.mark.slow),
        pytest.param("data/README.md", SITE, marks=pytest.mark.slow),  # an input of the site
    ],
)
def test_exactly_what_stands_behind_a_change_is_made_anew(checkout, finished, path, anew):
    file = checkout / path
    before = file.read_bytes()
    with put_back(file, *(checkout / "results" / "code").iterdir()):
        file.write_bytes(before + (b"ANOTHER = 1\n" if file.suffix == ".py" else b"\n"))
        assert finished() == anew


@contextlib.contextmanager
def put_back(*files: Path) -> Iterator[None]:
    """These files have their content again after the block, and their times: where Snakemake's records are gone, times tell."""
    before = {path: (path.read_bytes(), path.stat()) if path.exists() else None for path in files}
    try:
        yield
    finally:
        for path, was in before.items():
            if was is None:
                path.unlink(missing_ok=True)
                continue
            content, times = was
            path.write_bytes(content)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_results_that_an_older_version_left_are_made_anew(checkout, finished):
    """As they are copied from elsewhere: without what Snakemake keeps of them, with that version's hashes of its code."""
    metadata, aside = checkout / ".snakemake", checkout / "snakemake-aside"
    stamp = checkout / "results" / "code" / "runs.sha256"
    before = stamp.stat()
    with put_back(stamp):
        metadata.rename(aside)
        try:
            assert finished() == set(), "of this version they are taken as they are"
            stamp.write_text(f"{'0' * 64}  bbrlab/run/older.py\n")
            os.utime(stamp, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert finished() == RUNS - {"burst_notebook"}, "that page has no runs"
        finally:
            shutil.rmtree(metadata, ignore_errors=True)
            aside.rename(metadata)


def test_another_compiler_makes_another_kernel(checkout, finished):
    """No file of the checkout changes with an upgrade of gcc or of the source package."""
    other = put_program(checkout, "gcc", "#!/bin/sh\necho gcc 99\n")
    try:
        assert finished() == KERNEL
    finally:
        other.unlink()


FLUID_CLAIM = """
- id: SA-t
  says: The fluid model has the share of one flow.
  source: made up for a test
  exactness: qualitative
  because: made up for a test
  claims:
    - at: {figure: fig2c, along: network.buffer.bdp}
      metric: max(share_of_capacity - fluid)
      expect: {below: 1}
"""


def test_claims_wait_for_the_predictions_that_they_read(checkout, finished):
    """A prediction that is missing is made before the claim is judged, in whatever order jobs are started."""
    table = "results/smoke/claims.parquet"
    claims = checkout / "data/sarpkaya2025/claims.yaml"
    before = claims.read_text(encoding="utf-8")
    prediction = next((checkout / "results/models/sarpkaya2025/fig2c").glob("*/own.parquet"))
    try:
        prediction.rename(prediction.with_suffix(".away"))
        assert not PREDICTIONS & finished(table), "no claim reads one"
        claims.write_text(before + FLUID_CLAIM, encoding="utf-8")
        assert finished(table) == {"fluid_prediction", "claims"}
    finally:
        claims.write_text(before, encoding="utf-8")
        prediction.with_suffix(".away").rename(prediction)


def test_what_decides_nothing_makes_nothing_anew(checkout, finished):
    """Besides: the changes above were taken back."""
    for path in ("bbrlab/campaign/forecast.py", "bbrlab/cli/checks.py", "envs/slurm.txt"):
        with open(checkout / path, "a", encoding="utf-8") as file:
            file.write("\n")
    assert finished() == set()


def test_points_get_more_seeds_in_rounds(checkout, tmp_path):
    """The first look has one point run more, the second another; nothing is run twice, and a second campaign does nothing."""
    config = checkout / "config" / "config.yaml"
    before = config.read_text()
    content = yaml.safe_load(before)
    content["scales"]["quick"] |= {"trials": 3, "seeds_cap": 5, "seeds_packets": None}
    config.write_text(yaml.safe_dump(content))
    labels = [point.label for point in figures_at("quick", ["sarpkaya2025/fig2c"])[0].points]
    few = dict.fromkeys(labels, 3)
    write_seeds(tmp_path / "fig2c.2.json", few | {labels[0]: 5})
    write_seeds(tmp_path / "fig2c.3.json", few | {labels[0]: 5, labels[1]: 4})
    given = {"BBRLAB_RESULTS": str(tmp_path / "results"), "ASKED": str(tmp_path)}

    def snakemake(*options: str) -> str:
        return run_snakemake(checkout, ["fig2c"], *options, scale="quick", **given)

    def written() -> dict[str, int]:
        folder = tmp_path / "results" / "runs" / "sarpkaya2025" / "fig2c"
        return {f"{p.parts[-3]} {p.parts[-2]}": p.stat().st_mtime_ns for p in folder.glob("*/seed-*/summary.json")}

    try:
        assert f"at most {2 * len(labels)} more runs" in snakemake("-n")
        snakemake()
        first = written()
        extra = {f"{labels[0]} seed-4", f"{labels[0]} seed-5", f"{labels[1]} seed-4"}
        assert set(first) == {f"{label} seed-{n}" for label in labels for n in (1, 2, 3)} | extra
        looks = (tmp_path / "results" / "looks").read_text().splitlines()
        assert ["--before" in look for look in looks] == [False, True]
        assert "Nothing to be done" in snakemake()
        for name in ("2", "3"):  # as after a kill before the second look
            (tmp_path / "results" / "quick" / "seeds" / "sarpkaya2025" / f"fig2c.{name}.json").unlink()
        (tmp_path / "results" / "quick" / "sarpkaya2025" / "fig2c.parquet").unlink()
        snakemake()
        assert written() == first, "nothing was run twice"
    finally:
        config.write_text(before)


DAY_S = 86400


def date(folder: Path, when_s: float) -> None:
    """Let everything in a folder of results be of that time, in the order in which it was made."""
    files = sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_mtime_ns)
    for number, path in enumerate(files):
        os.utime(path, (when_s + number / 1000,) * 2)


@pytest.mark.slow
@pytest.mark.parametrize("days", [pytest.param(-400, id="behind"), pytest.param(2, id="ahead")])
def test_results_of_a_clock_that_was_wrong(checkout, finished, days):
    """Nothing is made anew for the date alone, and no change is missed."""
    date(checkout / "results", time.time() + days * DAY_S)
    assert finished() == set()
    file = checkout / "mininet/dumbbell.py"
    before = file.read_bytes()
    file.write_bytes(before + b"ANOTHER = 1\n")
    try:
        assert finished() == RUNS - {"burst_notebook"}
    finally:
        file.write_bytes(before)
    assert finished() == set()
