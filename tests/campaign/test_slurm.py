"""A campaign on Slurm: real daemons on this machine, one figure at scale smoke, and what goes wrong there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.files import read_json
from bbrlab.campaign import slurm as look
from bbrlab.campaign.lock import hold_lock
from bbrlab.campaign.plan import GROUPS
from bbrlab.campaign.planning import planned_figure
from bbrlab.campaign.resources import group_of, guest_mb, memory_mb, runtime_min
from bbrlab.campaign.slurm import check_slurm, keep_to_allocation, largest_node_mb
from bbrlab.campaign.snakemake import explain_group_failures
from bbrlab.experiment.machine.cores import one_core
from bbrlab.experiment.plan import make_plan
from bbrlab.results.figures import figures_at
from bbrlab.results.run_estimate import estimate_s
from bbrlab.run.memory import guest_bytes, workload_bytes
from tests.campaign.slurm import MEMORY_MB, Slurm, slurm, why_not
from tests.conftest import processes_of, wait_for

PROFILE = paths.ROOT / "profiles" / "slurm"
FIGURE = "fig3a"  # of Sarpkaya et al.: one point, two seeds
PATIENCE_S = 1500  # on a machine that does other things, too


def points_at(scale: str):
    return [(f.id, p) for f in figures_at(scale) for p in f.points]


# What is declared.


def test_every_run_declares_time_memory_and_one_core():
    for figure, point in points_at("full"):
        assert memory_mb(point) > guest_mb(point) >= 384, figure
        assert runtime_min(point) * 60 >= 3 * estimate_s(point), figure
    rules = (paths.ROOT / "rules" / "experiments.smk").read_text(encoding="utf-8")
    assert "threads: 1" in rules
    assert "point_of(wildcards).memory_mb * attempt" in rules and "point_of(wildcards).runtime_min * attempt" in rules


def test_short_runs_share_jobs_and_long_ones_do_not():
    found = {group_of(point): estimate_s(point) for _, point in points_at("full")}
    assert set(found) == {*GROUPS, None}
    profile = yaml.safe_load((PROFILE / "config.yaml").read_text(encoding="utf-8"))
    sizes = dict(pair.split("=") for pair in profile["group-components"])
    assert set(sizes) == {*GROUPS, "models"}
    for figure in figures_at("full"):
        for point in figure.points:
            name = group_of(point)
            if name:
                assert estimate_s(point) <= GROUPS[name]
                assert runtime_min(point) * int(sizes[name]) <= 24 * 60, f"{figure.id}: a job of more than a day"


def test_the_memory_declared_suffices_for_the_guest():
    """Also of short flows, whose number the seed draws."""
    short = [p for id, p in points_at("smoke") if any(f.traffic for f in p.scenario.flows)]
    assert short
    for point in [*short, *[p for _, p in points_at("smoke")][:3]]:
        cca = {f.cca: f.cca for f in point.scenario.flows}
        plan = make_plan(point, 1, cca, virtual=True, own_machine=True, preload=None, modules={})
        assert guest_mb(point) * 1e6 >= guest_bytes(point, workload_bytes(plan))
    assert guest_mb(short[0]) > guest_mb(next(p for id, p in points_at("smoke") if id == "sarpkaya2025/fig2a"))


# What is looked at before anything is submitted.


def workflow(mem_mb: int, name: str = "slurm") -> SimpleNamespace:
    """Snakemake's workflow with one run to do, as far as check_slurm() looks at it."""
    job = SimpleNamespace(
        rule=SimpleNamespace(name="run"),
        wildcards=SimpleNamespace(paper="p", figure="f", label="x=1"),
        resources={"mem_mb": mem_mb},
    )
    return SimpleNamespace(executor_plugin=SimpleNamespace(name=name), dag=SimpleNamespace(needrun_jobs=lambda: [job]))


def a_point(wildcards):
    return next(iter(planned_figure(figures_at("smoke")[0], []).points.values()))


def test_slurm_is_not_looked_at_by_others(monkeypatch):
    monkeypatch.setattr(look, "largest_node_mb", lambda: pytest.fail("asked Slurm"))
    check_slurm(workflow(1, name="local"), a_point)
    check_slurm(SimpleNamespace(), a_point)


def test_too_little_or_too_much_memory_declared(monkeypatch):
    monkeypatch.setattr(look, "largest_node_mb", lambda: 4000)
    check_slurm(workflow(3000), a_point)
    with pytest.raises(
        UserError, match=r"p/f, x=1: 100 MB of memory are declared, .*leave `--set-resources run:mem_mb"
    ):
        check_slurm(workflow(100), a_point)
    with pytest.raises(UserError, match=r"needs 5000 MB of memory, but the largest node has 4000 MB.*run:mem_mb=4000"):
        check_slurm(workflow(5000), a_point)


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_slurm_unreachable(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UserError, match=r"no `sinfo` here; start the campaign where jobs are submitted.*docs/howto/clusters.md"
    ):
        largest_node_mb()
    program(tmp_path, "sinfo", "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(UserError, match=r"does not answer \(slurm_load.*scontrol ping"):
        largest_node_mb()
    program(tmp_path, "sinfo", "exit 0")
    with pytest.raises(UserError, match="no partition of yours has a node"):
        largest_node_mb()
    program(tmp_path, "sinfo", "echo 2000; echo 64000+")
    assert largest_node_mb() == 64000


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(handle, how):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(
        UserError, match=r"\.lock: this file system has no locks \(No locks available\).*BBRLAB_RESULTS"
    ):
        hold_lock(tmp_path)


# Inside a job.


def job_workflow(cores: int, remote: bool = True) -> SimpleNamespace:
    made = SimpleNamespace(remote_exec=remote, cores=cores)
    made.register_resource = lambda name, value: setattr(made, name, value)
    return made


def test_no_more_guests_at_once_than_a_job_has_cores(monkeypatch):
    """Where Slurm does not confine it (TaskPlugin=task/none) Snakemake would use all cores of the node."""
    monkeypatch.setattr(look, "join_groups", lambda components: None)
    monkeypatch.setattr(look, "_end_with_the_job", lambda: None)
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    inside = job_workflow(64)
    keep_to_allocation(inside)
    assert inside._cores == 1
    outside = job_workflow(64, remote=False)
    keep_to_allocation(outside)
    assert not hasattr(outside, "_cores")
    monkeypatch.delenv("SLURM_CPUS_PER_TASK")
    inside = job_workflow(64)
    keep_to_allocation(inside)
    assert not hasattr(inside, "_cores")


JOB = """
from bbrlab.campaign.slurm import keep_to_allocation
from bbrlab.campaign.snakemake import explain_group_failures

rule run:
    output: "{n}"
    group: lambda wildcards: "seconds"
    shell: "touch {output}"

explain_group_failures()
keep_to_allocation(workflow)
"""


@pytest.mark.parametrize(("cores", "steps"), [({}, 3), ({"SLURM_CPUS_PER_TASK": "1"}, 1)])
def test_what_was_submitted_together_is_one_step(tmp_path, cores, steps):
    """As a job's own Snakemake plans it, which is told nothing of groups' sizes."""
    (tmp_path / "Snakefile").write_text(JOB)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
    argv = [sys.executable, "-m", "snakemake", "-n", "--mode", "remote", "--cores", "2", "--", "1", "2", "3"]
    done = subprocess.run(
        argv, cwd=tmp_path, env={**clean, **cores, "PYTHONPATH": str(paths.ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).lower().count("group job seconds") == steps


def test_why_a_group_was_not_taken_is_said(monkeypatch):
    """Snakemake drops a scheduler's words of a group's job."""
    from snakemake.jobs import GroupJob
    from snakemake.logging import logger

    said = []
    monkeypatch.setattr(GroupJob, "log_error", lambda self, msg=None, **options: None)
    monkeypatch.setattr(logger, "error", said.append)
    explain_group_failures()
    GroupJob.log_error(SimpleNamespace(), "sbatch failed: no room")
    GroupJob.log_error(SimpleNamespace())
    assert said == ["sbatch failed: no room"]


def test_a_jobs_snakemake_ends_with_its_shell(tmp_path):
    """Also if it does not end by itself, as Snakemake may not that was told to."""
    script = (
        "import signal, time; from bbrlab.campaign.slurm import _end_with_the_job as end; "
        f"signal.signal(signal.SIGTERM, signal.SIG_IGN); end(); open({str(tmp_path / 'up')!r}, 'w'); time.sleep(600)"
    )
    shell = subprocess.Popen(
        ["sh", "-c", f'"{sys.executable}" -c "{script}" {tmp_path}; true'], cwd=paths.ROOT, start_new_session=True
    )
    try:
        assert wait_for((tmp_path / "up").exists, 60)
        shell.terminate()
        shell.wait(10)
        assert wait_for(lambda: not processes_of(str(tmp_path)), 20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)


def test_a_guest_takes_a_core_of_its_allocation():
    """task/affinity and task/cgroup confine a job by its affinity."""
    before = os.sched_getaffinity(0)
    only = max(before)
    os.sched_setaffinity(0, {only})
    try:
        with one_core() as core:
            assert core == only
    finally:
        os.sched_setaffinity(0, before)


# The real one.


class Campaign:
    """One figure at scale smoke with a results folder of its own."""

    def __init__(self, cluster: Slurm, folder: Path):
        self.cluster, self.folder, self.results = cluster, folder, folder / "results"
        (folder / "work").mkdir(parents=True)
        self.environment = {**cluster.environment, "BBRLAB_RESULTS": str(self.results), "TMPDIR": str(folder)}

    def command(self, *options: str, profile: bool = True) -> list[str]:
        where = ["--profile", str(PROFILE)] if profile else ["--cores", "2"]
        # A busy machine may take long to start what a site's node starts in seconds.
        times = ["--slurm-init-seconds-before-status-checks", "5"]
        if "--set-resources" not in options:
            times += ["--set-resources", "run:runtime=120"]
        quick = times if profile else []
        start = ["snakemake", "--snakefile", str(paths.ROOT / "Snakefile"), "--directory", str(self.folder / "work")]
        return [*start, *where, *quick, *options, "--config", "scale=smoke", "--", FIGURE]

    def run(self, *options: str, profile: bool = True) -> str:
        """Run it to its end; what it said. An assertion if it failed."""
        done = subprocess.run(
            self.command(*options, profile=profile), env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-4000:]
        return said

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start it in a session of its own."""
        with open(self.folder / "said", "wb") as said:
            return subprocess.Popen(
                self.command(*options), env=self.environment, stdout=said, stderr=said, start_new_session=True
            )

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text(encoding="utf-8")

    @property
    def summaries(self) -> dict[str, Path]:
        found = sorted((self.results / "runs").rglob("summary.json"))
        return {str(p.parent.relative_to(self.results)): p for p in found}

    def outcome(self) -> dict[str, object]:
        """{file: content} of what must not depend on the place: each run's, and the figure's table."""
        found: dict[str, object] = {}
        for run, path in self.summaries.items():
            found[run] = json.loads(path.read_text(encoding="utf-8"))
            found[run].pop("wall_s")  # the only wall-clock field
            found[f"{run}/samples"] = (path.parent / "samples.parquet").read_bytes()
        table = pd.read_csv(self.results / "smoke" / "sarpkaya2025" / f"{FIGURE}.csv", dtype=str)
        return found | {FIGURE: table.drop(columns="wall_s", errors="ignore").to_csv()}

    def guests(self) -> list[int]:
        return processes_of(str(self.folder / "bbrlab-run-"))


@pytest.fixture(scope="module")
def cluster():
    reason = why_not()
    if reason:
        pytest.skip(f"no Slurm to test with: {reason}")
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    folder.chmod(0o711)
    try:
        with slurm(folder) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def here(cluster, tmp_path_factory):
    """The campaign on this machine, without Slurm."""
    made = Campaign(cluster, tmp_path_factory.mktemp("here"))
    made.run(profile=False)
    return made.outcome()


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(3 * PATIENCE_S)
def test_a_campaign_on_slurm_has_the_same_bytes(cluster, here, tmp_path):
    made = Campaign(cluster, tmp_path)
    said = made.run()
    assert made.outcome() == here
    assert len(made.summaries) == 2
    assert re.search(r"2 runs, \d+ (s|minutes) of virtual time", said), "the line of progress"
    rows = [row for row in cluster.jobs() if "seconds" in row]
    assert len(rows) == 1, "short runs share a job"
    memory = int(rows[0].split()[2].rstrip("M"))
    figure = next(f for f in figures_at("smoke") if f.id == f"sarpkaya2025/{FIGURE}")
    assert memory == max(memory_mb(p) for p in figure.points), "one after the other: as much as the largest"
    assert "Nothing to be done" in made.run()
    assert not made.guests()


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(3 * PATIENCE_S)
def test_jobs_on_slurm_fill_the_cache_and_read_it(cluster, here, tmp_path):
    """Runs that a job has put there are not made again: neither by this machine's own workflow, nor by another job."""
    store = tmp_path / "cache"
    store.mkdir()
    first = Campaign(cluster, tmp_path / "first")
    first.environment["SNAKEMAKE_OUTPUT_CACHE"] = str(store)
    first.run("--cache")
    assert first.outcome() == here
    kept = {path: path.stat().st_mtime_ns for path in store.iterdir()}
    assert len(kept) == 2 * 3, "of each run three files"
    made = [summary["wall_s"] for summary in map(read_json, first.summaries.values())]
    for name, profile in (("second", False), ("third", True)):
        again = Campaign(cluster, tmp_path / name)
        again.environment["SNAKEMAKE_OUTPUT_CACHE"] = str(store)
        again.run("--cache", profile=profile)
        assert again.outcome() == here
        assert [read_json(path)["wall_s"] for path in again.summaries.values()] == made, "the same runs"
        assert all(path.is_symlink() for path in again.summaries.values())
    assert {path: path.stat().st_mtime_ns for path in store.iterdir()} == kept


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(3 * PATIENCE_S)
def test_a_cancelled_job_and_a_node_that_goes(cluster, here, tmp_path):
    """scancel while a guest runs, then the node is set down and comes back: the campaign submits again by itself."""
    made = Campaign(cluster, tmp_path)
    campaign = made.start()
    try:
        assert wait_for(lambda: bool(made.guests()), PATIENCE_S), made.said
        (number,) = [row.split()[0] for row in cluster.jobs("running")]
        cluster.run("scancel", number)
        assert wait_for(lambda: not made.guests(), 60), "a guest outlives its job"
        assert wait_for(lambda: any(row.split()[0] != number for row in cluster.jobs("running")), PATIENCE_S), made.said
        assert wait_for(lambda: bool(made.guests()), PATIENCE_S), made.said
        cluster.run("scontrol", "update", f"NodeName={cluster.host}", "State=DOWN", "Reason=test")
        assert wait_for(lambda: not made.guests(), 60), "a guest outlives its node's job"
        cluster.run("scontrol", "update", f"NodeName={cluster.host}", "State=RESUME")
        assert campaign.wait(PATIENCE_S) == 0, made.said[-4000:]
    finally:
        if campaign.poll() is None:
            os.killpg(campaign.pid, signal.SIGKILL)
    assert made.outcome() == here
    assert "Trying to restart" in made.said


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(3 * PATIENCE_S)
def test_a_full_queue(here, cluster, tmp_path):
    """A controller that takes no more jobs: the campaign ends, says so, and goes on when started again."""
    limit = ("scontrol", "update", "PartitionName=test")
    cluster.run(*limit, "State=DRAIN")
    made = Campaign(cluster, tmp_path)
    campaign = made.start("--retries", "0")
    try:
        assert campaign.wait(PATIENCE_S) != 0
    finally:
        cluster.run(*limit, "State=UP")
    assert "sbatch failed" in made.said, made.said[-3000:]
    made.run()
    assert made.outcome() == here


@pytest.mark.slow
@pytest.mark.guest
def test_a_controller_that_is_gone(cluster, tmp_path):
    cluster.end("slurmctld")
    try:
        made = Campaign(cluster, tmp_path)
        campaign = made.start()
        assert campaign.wait(PATIENCE_S) != 0
        assert "Slurm does not answer" in made.said or "`sinfo` did not answer" in made.said, made.said[-3000:]
        assert "Traceback" not in made.said
        assert not made.summaries
    finally:
        cluster.start_controller()
        assert wait_for(lambda: cluster.node_is("idle"), 120)


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize(
    ("declared", "says"), [(100, "100 MB of memory are declared"), (MEMORY_MB + 1, f"largest node has {MEMORY_MB} MB")]
)
def test_memory_that_does_not_fit(cluster, tmp_path, declared, says):
    """Too little for a guest, or more than a node has: one message, and nothing was submitted."""
    before = len(cluster.jobs())
    made = Campaign(cluster, tmp_path)
    campaign = made.start("--set-resources", "run:runtime=120", f"run:mem_mb={declared}")
    assert campaign.wait(PATIENCE_S) != 0
    assert made.said.count(says) == 1, made.said[-3000:]
    assert "Traceback" not in made.said
    assert len(cluster.jobs()) == before
    assert not made.summaries


def test_the_profile_names_what_it_submits():
    """A grouped rule that no profile knows, or a limit on local rules that is gone, shows here."""
    profile = yaml.safe_load((PROFILE / "config.yaml").read_text(encoding="utf-8"))
    assert profile["executor"] == "slurm"
    assert profile["cores"] == 1
    assert profile["slurm-status-command"] == "squeue", "there may be no accounting database"
