"""Runs by content: checkouts that share Snakemake's cache take each other's runs, and never one of another code, kernel or seed."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign import cache
from bbrlab.campaign.snakemake import pass_cache_on
from bbrlab.cli.commands import app
from bbrlab.results.config import Config
from bbrlab.results.figures import figures_at
from tests.campaign.checkout import STAND_IN, copy_checkout, put_program, run_snakemake

FIGURE = "tang/fig2"
# In bbrlab's place: writes down its command, and what a run has to leave: at once, and another thing for each request.
PROGRAM = STAND_IN.replace(
    "#!/bin/bash\n", '#!/bin/bash\ncommand="$*"; [ "$1" = point ] && echo "$command" >> "$RUN_LOG"\n'
).replace("echo '{}'", r'echo "{\"command\": \"$command\"}"')


class Checkout:
    """A copy of this checkout with results of its own, and the cache that it shares."""

    def __init__(self, folder: Path, shared: Path):
        self.folder, self.shared, self.log = folder, shared, folder / "runs.log"
        copy_checkout(folder, PROGRAM)

    def program(self, name: str, text: str) -> Path:
        """A program that goes before others of its name."""
        return put_program(self.folder, name, text)

    def make(self, *runs: tuple[int, int], options: tuple[str, ...] = ("--cache",)) -> int:
        """Have runs made: (point of the figure, seed). Returns how many were really run."""
        self.snakemake(*runs, options=options)
        return len(self.log.read_text().splitlines())

    def snakemake(self, *runs: tuple[int, int], options: tuple[str, ...], ends_with: int = 0, **config: object) -> str:
        """What Snakemake says of runs."""
        self.log.write_text("")
        targets = [str(self.run(*run).relative_to(self.folder) / "summary.json") for run in runs]
        settings = [f"{key}={value}" for key, value in config.items()]
        given = {"RUN_LOG": str(self.log), "SNAKEMAKE_OUTPUT_CACHE": str(self.shared)}
        return run_snakemake(self.folder, targets, *options, figures=[FIGURE], config=settings, ends_with=ends_with, **given)  # fmt: skip

    def forget(self) -> None:
        """Remove its results."""
        shutil.rmtree(self.folder / "results")

    def run(self, point: int, seed: int) -> Path:
        (figure,) = figures_at("smoke", [FIGURE])
        return self.folder / "results/runs" / FIGURE / figure.points[point].label / f"seed-{seed}"

    def command_of(self, point: int, seed: int) -> str:
        return json.loads((self.run(point, seed) / "summary.json").read_text())["command"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def first(tmp_path_factory, shared) -> Checkout:
    """A checkout that has made both seeds of one point, and one of the other."""
    made = Checkout(tmp_path_factory.mktemp("one") / "checkout", shared)
    assert made.make((0, 1), (0, 2), (1, 1)) == 3
    return made


@pytest.fixture(scope="module")
def second(tmp_path_factory, shared, first) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("two") / "a longer name", shared)


def test_another_checkout_takes_the_runs_that_are_there(first, second, shared):
    """And no other seed's of the same point."""
    made = ((0, 1), (0, 2), (1, 1))
    assert second.make(*made, (1, 2)) == 1
    assert "--seed 2 " in second.log.read_text()
    for run in made:
        assert second.command_of(*run) == first.command_of(*run)
        assert f"--seed {run[1]} " in second.command_of(*run)
        for name in ("summary.json", "samples.parquet", "manifest.json"):
            assert (second.run(*run) / name).resolve().parent == shared
    assert len({second.command_of(*run) for run in made}) == 3, "each its own"
    assert len(cache.entries(shared)) == 4


def test_other_code_misses(second):
    file = second.folder / "mininet/dumbbell.py"
    before = file.read_bytes()
    file.write_bytes(before + b"ANOTHER = 1\n")
    try:
        assert second.make((0, 1)) == 1
    finally:
        file.write_bytes(before)
    assert second.make((0, 1)) == 0, "back again: from the cache"


def test_another_kernel_misses(second):
    """Of another compiler, which is no file of the checkout."""
    program = second.program("gcc", "#!/bin/sh\necho gcc 99\n")
    try:
        assert second.make((0, 1)) == 1
    finally:
        program.unlink()


@pytest.mark.slow
def test_another_iperf3_misses(second):
    second.make((1, 1))
    program = second.program("dpkg-query", '#!/bin/sh\n/usr/bin/dpkg-query "$@" | sed "s/^iperf3 .*/iperf3 99/"\n')
    try:
        assert second.make((1, 1)) == 0, "of an upgrade nothing is run again that is there"
        second.forget()
        assert second.make((1, 1)) == 1
    finally:
        program.unlink()


@pytest.mark.slow
def test_without_the_option_nothing_is_shared(second, shared):
    second.forget()
    before = cache.entries(shared)
    assert second.make((0, 1), options=()) == 1
    assert cache.entries(shared) == before
    assert not (second.run(0, 1) / "summary.json").is_symlink()


@pytest.mark.slow
def test_the_dry_run_lists_what_the_cache_holds(second):
    """With --quiet host, as docs/howto/shipped_results.md says."""
    second.make((0, 1), (1, 2))
    second.forget()
    output = second.snakemake((0, 1), (1, 2), options=("--cache", "-n", "--quiet", "host"))
    held = [line for line in output.splitlines() if "will be obtained from global between-workflow cache" in line]
    assert sorted(line.rpartition("seed-")[2].split("/")[0] for line in held) == ["1", "2"], output


@pytest.mark.slow
def test_what_is_pruned_is_run_again(second, shared):
    second.forget()
    assert second.make((0, 1)) == 0
    left = cache.prune(shared, older_days=0, keep=[second.folder / "results"], now_s=time.time() + 9).left
    assert left == cache.entries(shared)
    assert len(left) == 1, "what these results link to"
    assert (second.run(0, 1) / "summary.json").exists()
    cache.prune(shared, older_days=0, keep=[], now_s=time.time() + 9)
    assert not (second.run(0, 1) / "summary.json").exists(), "its link leads nowhere"
    assert second.make((0, 1)) == 1


def entry(folder: Path, key: int, size: int, age_days: float) -> list[Path]:
    made = [folder / f"{key:064x}_{name}" for name in ("summary.json", "samples.parquet")]
    for path in made:
        path.write_bytes(b"x" * (size // 2))
        os.utime(path, (1e9 - age_days * cache.DAY_S,) * 2)
    return made


def test_pruning_takes_the_oldest_whole_entries_and_nothing_else(tmp_path):
    old, older, young = (entry(tmp_path, i, 100, age) for i, age in enumerate((10, 20, 1)))
    other = tmp_path / "notes.txt"
    other.write_text("a file of somebody's")
    assert [e.files[0] for e in cache.entries(tmp_path)] == [sorted(f)[0] for f in (older, old, young)]
    dry = cache.prune(tmp_path, older_days=15, dry=True, now_s=1e9)
    assert [e.size_bytes for e in dry.removed] == [100]
    assert all(p.exists() for p in [*old, *older, *young])
    cache.prune(tmp_path, older_days=15, now_s=1e9)
    assert not any(p.exists() for p in older)
    assert cache.prune(tmp_path, largest_bytes=200, now_s=1e9).removed == []
    found = cache.prune(tmp_path, largest_bytes=199, now_s=1e9)
    assert len(found.removed) == 1
    assert not any(p.exists() for p in old)
    assert all(p.exists() for p in [*young, other])


def test_what_stand_ins_and_comparisons_link_to_stays(tmp_path):
    shared, results = tmp_path / "shared", tmp_path / "results"
    shared.mkdir()
    held = [entry(shared, i, 100, 30)[0] for i in range(3)]
    entry(shared, 3, 100, 30)
    for file, place in zip(held, ("runs", "replace/bbr3/runs", "compare/a/runs"), strict=True):
        (results / place).mkdir(parents=True)
        (results / place / "summary.json").symlink_to(file)
    found = cache.prune(shared, older_days=1, keep=[results], now_s=1e9)
    assert (len(found.removed), len(found.kept_linked)) == (1, 3)
    assert all(file.exists() for file in held)


def test_a_cache_that_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    assert cache.cache_folder() is None
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(UserError, match="there is no such folder; make it first: mkdir -p"):
        cache.cache_folder()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file: this is not a folder"):
        cache.cache_folder(tmp_path / "file")
    monkeypatch.setenv(cache.VARIABLE, "s3://somewhere")
    with pytest.raises(UserError, match="only a folder"):
        cache.cache_folder()


def test_plans_need_no_cache_that_is_there_and_campaigns_that_use_it_do(tmp_path):
    """With --cache a missing folder is named before the first run; without, nothing changes."""
    checkout = Checkout(tmp_path / "checkout", tmp_path / "none")
    line = f"Cache {tmp_path / 'none'}: not there yet; make it before you use --cache."
    for options in (("-n",), ("-n", "--cache")):
        output = checkout.snakemake((0, 1), options=options)
        assert line in output.splitlines()
        assert "Error" not in output
    output = checkout.snakemake((0, 1), options=("--cache",), ends_with=1)
    assert output.count(f"--cache: {tmp_path / 'none'}: there is no such folder; make it first: mkdir -p ") == 1
    assert checkout.log.read_text() == "", "nothing has run"
    assert checkout.make((0, 1), options=()) == 1
    checkout.shared.mkdir()
    output = checkout.snakemake((0, 2), options=("-n",), cache_gb=7)
    assert "of at most 7 GB (cache_gb of the configuration)" in output
    assert checkout.make((0, 2)) == 1


@pytest.mark.parametrize("others", [0, 1, 2])
def test_what_this_checkouts_results_link_to_always_stays(tmp_path, monkeypatch, others):
    """With --keep, too."""
    shared = tmp_path / "shared"
    shared.mkdir()
    held = [entry(shared, i, 100, 30)[0] for i in range(4)]
    for i, file in enumerate(held[:3]):
        (tmp_path / f"results{i}").mkdir()
        (tmp_path / f"results{i}" / "summary.json").symlink_to(file)
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "results0"))
    keep = [word for i in range(1, 1 + others) for word in ("--keep", str(tmp_path / f"results{i}"))]
    command = ["cache", "prune", "--folder", str(shared), "--days", "1", *keep]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    assert [file.exists() for file in held] == [i <= others for i in range(4)]
    kept = "1 run, 0.00 GB stay" if not others else f"{1 + others} runs, 0.00 GB stay"
    assert kept in done.output
    assert ("removed 1 run, 0.00 GB;" in done.output) == (others == 2)


def test_the_value_for_the_cache_stands_where_it_is_named():
    """In config/config.yaml as the default that it is, and in the table of keys."""
    found = re.search(r"^# cache_gb: (\S+)", (paths.CONFIG / "config.yaml").read_text(), re.MULTILINE)
    assert found is not None
    assert float(found[1]) == Config.model_fields["cache_gb"].default
    readme = (paths.CONFIG / "README.md").read_text()
    keys = set(re.findall(r"^\| `(\w+)` \|", readme.partition("## On the command line")[0], re.MULTILINE))
    assert keys == {*Config.model_fields, "replace"}


@pytest.mark.parametrize(
    ("given", "folder", "copies", "expected"),
    [
        (None, "", True, None),
        ([], "", False, "names no folder"),
        ([], "/shared", True, "no folder in common"),
        ([], "/shared", False, ["run"]),
        (["other"], "/shared", False, ["other"]),
    ],
)
def test_what_a_jobs_snakemake_gets_of_the_cache(monkeypatch, given, folder, copies, expected):
    """The names of rules, for Snakemake drops the option where there are none; and no cache that cannot be."""
    monkeypatch.setenv(cache.VARIABLE, folder)
    workflow = SimpleNamespace(workflow_settings=SimpleNamespace(cache=given))
    if isinstance(expected, str):
        with pytest.raises(UserError, match=f"^--cache: .*{expected}"):
            pass_cache_on(workflow, ["run"], copies)
    else:
        pass_cache_on(workflow, ["run"], copies)
        assert workflow.workflow_settings.cache == expected
