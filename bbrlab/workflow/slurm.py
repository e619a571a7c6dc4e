"""What a campaign on Slurm needs, looked at before its first job."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.workflow.resources import GROUPS, MODELS

TIMEOUT_S = 30
ONE_JOB = 1_000_000  # runs; more than any job has
HOW = "docs/clusters.md says how to set it up; without --profile profiles/slurm the campaign runs on this machine"


def is_slurm(workflow: Any) -> bool:
    """Whether Snakemake submits to Slurm."""
    plugin = getattr(workflow, "executor_plugin", None)
    return getattr(plugin, "name", None) == "slurm"


def largest_node_mb() -> int:
    """Memory of the largest node that takes jobs, in MB, as Slurm has it.

    Raises:
        UserError: if Slurm's programs are not here, its controller does not answer, or no node can take jobs.
    """
    argv = ["sinfo", "--noheader", "--Node", "--format=%m %T"]
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
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
    if not rows:
        raise UserError("Slurm: no partition of yours has a node (`sinfo` is empty); ask its administrator")
    return max(int(memory.rstrip("+")) for memory, _ in rows)


def _remedy() -> str:
    where = os.environ.get("SLURM_CONF") or "its default place"
    return f"see that `scontrol ping` answers, that munged runs here and that slurm.conf ({where}) names the controller. {HOW}"


def check_slurm(workflow: Any) -> None:
    """UserError, before anything is submitted, if Slurm is not reachable or no node has the memory that a run needs.

    Args:
        workflow: Snakemake's, once its DAG exists (``onstart``). Of another executor nothing is looked at.
    """
    if not is_slurm(workflow):
        return
    have_mb = largest_node_mb()
    runs = [job for job in workflow.dag.needrun_jobs() if job.rule.name == "run"]
    if not runs:
        return
    worst = max(runs, key=lambda job: job.resources["mem_mb"])
    need_mb = worst.resources["mem_mb"]
    if need_mb > have_mb:
        place = worst.wildcards
        raise UserError(
            f"Slurm: {place.paper}/{place.figure}/{place.label} needs {need_mb} MB of memory, but the largest node has {have_mb} MB "
            f"(sinfo); run the other figures by name, or, if you know that less will do, say so: --set-resources run:mem_mb={have_mb}"
        )


def keep_to_allocation(workflow: Any) -> None:
    """In a job of Slurm's: run what was submitted together in one step, and no more at once than the job has cores.

    Snakemake starts itself twice there, once to accept the job and once in its step, and tells neither how many cores the job
    has nor that its runs are one group: a step would be started for each run, or as many guests as the node has cores where
    Slurm does not confine a job to its own (TaskPlugin=task/none).

    Args:
        workflow: Snakemake's, while it reads the Snakefile.
    """
    cores = os.environ.get("SLURM_CPUS_PER_TASK")
    if not workflow.remote_exec or not cores:
        return
    workflow.register_resource("_cores", min(int(cores), workflow.cores))
    workflow.group_settings.group_components = dict.fromkeys((*GROUPS, MODELS), ONE_JOB)
