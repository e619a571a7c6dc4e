"""Checks of a Slurm set-up before the first job of a campaign."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.campaign.plan import GROUPS, MODELS, PlannedPoint
from bbrlab.campaign.snakemake import join_groups

TIMEOUT_S = 30
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
ONE_JOB = 1_000_000  # runs; more than any job has
HOW = "docs/howto/clusters.md says how to set it up; without --profile profiles/slurm the campaign runs on this machine"


def largest_node_mb() -> int:
    """Memory of the largest node, in MB, as Slurm has it, in whatever state it is now. UserError if Slurm's programs are not here, its
    controller does not answer, or there is no node."""
    argv = ["sinfo", "--noheader", "--Node", "--format=%m"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S)
    except FileNotFoundError:
        raise UserError(
            f"Slurm: there is no `sinfo` here; start the campaign where jobs are submitted (a login node), or install slurm-client. {HOW}"
        ) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"Slurm: `sinfo` did not answer in {TIMEOUT_S} s; {_remedy()}") from None
    if done.returncode:
        raise UserError(f"Slurm does not answer ({(done.stderr or done.stdout).strip()}); {_remedy()}")
    if not (nodes_mb := done.stdout.split()):
        raise UserError("Slurm: no partition of yours has a node (`sinfo` is empty); ask its administrator")
    return max(int(memory_mb.rstrip("+")) for memory_mb in nodes_mb)


def _remedy() -> str:
    where = os.environ.get("SLURM_CONF") or "its default place"
    return f"see that `scontrol ping` answers, that munged runs here and that slurm.conf ({where}) names the controller. {HOW}"


def check_slurm(workflow: Any, point_of: Callable[[Any], PlannedPoint]) -> None:
    """Look at Slurm, if that is the executor, and at what was declared before anything is submitted (``onstart``).

    UserError if Slurm is not reachable, a run was declared less memory than its guest needs (``--set-resources``), or no node has
    as much as was declared.
    """
    if getattr(getattr(workflow, "executor_plugin", None), "name", None) != "slurm":
        return
    have_mb = largest_node_mb()
    for job in workflow.dag.needrun_jobs():
        if job.rule.name != "run":
            continue
        place, declared_mb = job.wildcards, int(job.resources["mem_mb"])
        needed_mb = point_of(place).guest_mb
        words = f"Slurm: {place.paper}/{place.figure}, {place.label}"
        if declared_mb < needed_mb:
            raise UserError(
                f"{words}: {declared_mb} MB of memory are declared, but its guest alone may grow to {needed_mb} MB and would be "
                f"killed; leave `--set-resources run:mem_mb=...` out (then {point_of(place).memory_mb} MB are declared)"
            )
        if declared_mb > have_mb:
            raise UserError(
                f"{words}: needs {declared_mb} MB of memory, but the largest node has {have_mb} MB (sinfo), so the job could never "
                f"start; run the other figures by name, or declare less at your own risk: --set-resources run:mem_mb={have_mb}"
            )


def keep_to_allocation(workflow: Any) -> None:
    """In a job of Slurm's: run what was submitted together in one step, no more at once than the job has cores, and end with it.

    Snakemake starts itself twice there, once to accept the job and once in its step, and tells neither how many cores the job
    has nor that its runs are one group: a step would be started for each run, or as many guests as the node has cores where
    Slurm does not confine a job to its own (TaskPlugin=task/none).
    """
    cores = os.environ.get("SLURM_CPUS_PER_TASK")
    if not workflow.remote_exec or not cores:
        return
    workflow.register_resource("_cores", min(int(cores), workflow.cores))
    join_groups(dict.fromkeys((*GROUPS, MODELS), ONE_JOB))
    if "SLURM_STEP_ID" not in os.environ:
        _end_with_the_job()


def _end_with_the_job() -> None:
    """End this process as soon as the job's shell, which started it, has ended.

    When a job is cancelled, its shell ends, and this process, told to end by the same signal, may wait for ever (the signal's
    handler in Snakemake 9.27 takes a lock that may be held). Where Slurm finds a job's processes by their parents
    (proctrack/linuxproc) it would not find this one any more.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
