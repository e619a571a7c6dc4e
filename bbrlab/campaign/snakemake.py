"""What bbrlab changes in Snakemake's own behaviour."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from snakemake_interface_executor_plugins.executors import real
from snakemake_interface_executor_plugins.utils import TargetSpec

from bbrlab.base.errors import UserError
from bbrlab.campaign.cache import VARIABLE


def lift_job_rate_limit(workflow: Any) -> None:
    """Take snakemake's default limit of 100 jobs a second off a campaign on this machine.

    With a limit, snakemake 9.27 looks for ready jobs once a second *for every job that has ended*, until none is left:
    after some hundred jobs its main thread does nothing else, on a core that guests wait for. A limit that the user chose
    stays, and so does that of remote executors.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    is_default = limit is not None and (limit.max_jobs, limit.timespan) == (100, 1)
    if is_default and not workflow.remote_exec:
        workflow.scheduler.job_rate_limiter = None  # which is there from ``onstart`` on


def end_at_hangup() -> None:
    """Let a campaign whose terminal is closed end as at SIGTERM: it starts no more jobs, and ends with those that run. One that was
    started with nohup goes on."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda number, frame: os.kill(os.getpid(), signal.SIGTERM))


COMMA = "%2C"  # on its way to a job


def pass_commas() -> None:
    """Let a scheduler's jobs have wildcards with commas, as the names of points have them.

    Snakemake 9.27 gives a job its wildcards as NAME=VALUE,NAME=VALUE and reads a value with a comma as two; so commas are
    written otherwise on their way, here where jobs are made, and read where a job's own Snakemake begins its plan.
    """

    def decode(workflow: Any) -> None:
        settings = workflow.dag_settings
        settings.target_jobs = [
            TargetSpec(job.rulename, {k: v.replace(COMMA, ",") for k, v in job.wildcards_dict.items()})
            for job in settings.target_jobs
        ]

    real.encode_target_jobs_cli_args = _encode
    _before_planning(decode)


def _encode(jobs: list[TargetSpec]) -> list[str]:
    return [
        f"{job.rulename}:" + ",".join(f"{k}={v.replace(',', COMMA)}" for k, v in job.wildcards_dict.items())
        for job in jobs
    ]


def join_groups(components: Mapping[str, int]) -> None:
    """Let a scheduler's job plan its groups with so many components each, as --group-components would say.

    Snakemake 9.27 does not pass that option on to its jobs, and what a Snakefile sets is overwritten before the plan is made.

    Args:
        components: {group: how many of its jobs belong together at most}.
    """

    def join(workflow: Any) -> None:
        workflow.group_settings.group_components = dict(components)

    _before_planning(join)


def _before_planning(change: Callable[[Any], None]) -> None:
    """Change the settings of a workflow right before Snakemake plans by them."""
    from snakemake.dag import DAG  # of itself it cannot be imported before Snakemake's workflow

    begin = DAG.__init__

    def begin_changed(self: Any, workflow: Any, *arguments: Any, **options: Any) -> None:
        change(workflow)
        begin(self, workflow, *arguments, **options)

    DAG.__init__ = begin_changed


def pass_cache_on(workflow: Any, rules: Sequence[str], copies: bool) -> None:
    """Let a scheduler's jobs use the cache that ``--cache`` asks for without naming rules.

    Snakemake 9.27 passes the names of rules on to its jobs, and drops the option where there is none. UserError if a cache is
    asked for that there cannot be: no folder is named, or jobs see none.

    Args:
        copies: whether jobs have copies of the files only, and so no folder in common.
    """
    settings = workflow.workflow_settings
    if settings is None or settings.cache is None:
        return
    if copies:
        raise UserError("--cache: jobs have no folder in common here, only a storage; leave the option out")
    if not os.environ.get(VARIABLE):
        raise UserError(f"--cache: {VARIABLE} names no folder; set it to one that is there, or leave the option out")
    if not settings.cache:
        settings.cache = list(rules)


def explain_group_failures() -> None:
    """Let the log have the reason for which a group of jobs failed: a scheduler's words when it takes no job.

    Snakemake 9.27 says the reason of a single job, and drops that of a group.
    """
    from snakemake.jobs import GroupJob
    from snakemake.logging import logger

    log = GroupJob.log_error

    def log_with_reason(self: Any, msg: str | None = None, *arguments: Any, **options: Any) -> None:
        if msg:
            logger.error(msg)
        log(self, msg, *arguments, **options)

    GroupJob.log_error = log_with_reason


def words_of(argv: Sequence[str]) -> list[str]:
    """The targets on a command line of snakemake's, read as Snakemake 9.27 reads it; a Snakefile is not told them."""
    from snakemake.cli import get_argument_parser

    given = list(argv[1:])
    end = given.index("--") if "--" in given else len(given)
    options, _ = get_argument_parser().parse_known_args(given[:end])
    return [*map(str, options.targets), *given[end + 1 :]]
