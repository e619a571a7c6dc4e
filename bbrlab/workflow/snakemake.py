"""What bbrlab changes in Snakemake's own behaviour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bbrlab.base import paths


def lift_job_rate_limit(workflow: Any) -> None:
    """Take snakemake's default limit of 100 jobs a second off a campaign on this machine.

    With a limit, snakemake 9.27 looks for ready jobs once a second *for every job that has ended*, until none is left:
    after some hundred jobs its main thread does nothing else, on a core that guests wait for. A limit that the user chose
    stays, and so does that of remote executors. Without the parts that this looks for nothing is changed.

    Args:
        workflow: snakemake's, once its scheduler exists (``onstart``).
    """
    scheduler: Any = getattr(workflow, "scheduler", None)
    limit = getattr(getattr(workflow, "scheduling_settings", None), "max_jobs_per_timespan", None)
    chosen = (getattr(limit, "max_jobs", None), getattr(limit, "timespan", None)) != (100, 1)
    if getattr(scheduler, "job_rate_limiter", None) is not None and not chosen and not workflow.remote_exec:
        scheduler.job_rate_limiter = None


def name_of(path: Path) -> str:
    """A file as the rules call it: relative to Snakemake's working folder where it is below that, so that it can be asked
    for by the name that a person would type (results/full/tang/fig2.csv); else absolute."""
    path = paths.ROOT / path
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
