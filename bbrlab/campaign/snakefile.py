"""What the Snakefile does beside its rules: checks what was asked for, has the plan, prepares Snakemake (``workflow``)."""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.base.locks import remove_partials
from bbrlab.campaign.plan import (
    Plan,
    PlannedFigure,
    PlannedPoint,
    PlannedRun,
    plan_file,
    read_plan,
    runs_of,
    signature_of,
    text_of,
)
from bbrlab.campaign.slurm import check_slurm, keep_to_allocation
from bbrlab.campaign.snakemake import (
    end_at_hangup,
    explain_group_failures,
    lift_job_rate_limit,
    pass_cache_on,
    pass_commas,
    words_of,
)


def config_file(workflow: Any) -> Path:
    """config/config.yaml, once it is sure that it is right, and what a campaign that a person starts needs before its plan.
    UserError naming field and value of what is wrong in it."""
    if workflow.is_main_process:
        from bbrlab.campaign.clock import date_back
        from bbrlab.results.config import load_config

        load_config()
        date_back(paths.results_folder())
        end_at_hangup()
    return paths.CONFIG / "config.yaml"


def plan_of(workflow: Any, config: Mapping[str, Any]) -> Plan:
    """The campaign's plan, for a job as the process that started it has written it.

    UserError for what is wrong with the configuration, with scenarios or claims, or with the kernel's algorithms.
    """
    if workflow.is_main_process:
        from bbrlab.campaign.targets import check_config_keys

        check_config_keys(config)
    if "replace" in config:
        from bbrlab.results.replacement import begin_replacement

        begin_replacement(config["replace"])
    if workflow.is_main_process:
        return current_plan(config)
    plan = read_plan(_place_of(config))
    if plan is None:  # a job that does not see the results of who started it (profiles/kubernetes)
        from bbrlab.campaign.planning import make_plan

        plan = make_plan(config, figures_of_jobs(sys.argv))
        _write_code(plan)
    return plan


def _place_of(config: Mapping[str, Any]) -> Path:
    return plan_file(config["scale"], config.get("kernel"), config.get("figures"))


def current_plan(config: Mapping[str, Any]) -> Plan:
    """The plan that is written, if nothing that it was worked out from has changed, else a new one; with its files for the rules.
    UserError for what is wrong with scenarios, claims or the kernel's name."""
    from bbrlab.campaign.resources import machine_facts

    place = _place_of(config)
    plan = read_plan(place)
    if plan is None or plan.signature != signature_of(config, plan.others) or not _has_points(plan):
        from bbrlab.campaign.planning import make_plan

        plan = make_plan(config)
    plan = dataclasses.replace(plan, **machine_facts(plan.kernel))
    files.write_if_changed(place, text_of(plan))
    _write_code(plan)
    for figure in plan.figures.values():
        if figure.seed_request is not None:
            files.write_if_changed(seed_request_file(figure.id), figure.seed_request)
    return plan


def _has_points(plan: Plan) -> bool:
    folder = paths.results_folder() / "points"
    return all((folder / id / f"{label}.yaml").exists() for id, f in plan.figures.items() for label in f.points)


def _write_code(plan: Plan) -> None:
    """Write code/STAGE.sha256: a small file for each stage stands for all code and data that decides its results."""
    for stage, digest in plan.code.items():
        identity = f"{plan.identity}\n" if stage == "kernel" else ""
        files.write_if_changed(code_file(stage), f"{digest}\n{identity}")


def code_file(stage: str) -> Path:
    """What changes with the code of a stage."""
    return paths.results_folder() / "code" / f"{stage}.sha256"


def seed_request_file(figure: str) -> Path:
    """What changes with the claims that may ask for seeds of a figure."""
    return paths.results_folder() / "seed_requests" / f"{figure}.json"


def seeds_file(figure: PlannedFigure, look: int | None, file_of: Callable[[int], Any]) -> Path | None:
    """The file that says how many seeds each point of a figure has by then; None: what each begins with.

    Args:
        look: a look is at the runs of the rounds before it; None: all rounds.
        file_of: the file of a round from 2 on; may raise what makes the workflow come back when it has it.
    """
    if figure.seed_request is None:
        return None
    from bbrlab.results.seeds import ROUNDS, seeds_after

    trials = {label: point.trials for label, point in figure.points.items()}
    return seeds_after(trials, (ROUNDS if look is None else look - 1), lambda round: Path(file_of(round)))


def runs_by(plan: Plan, figure: str, seeds: Path | None) -> list[PlannedRun]:
    """The runs of a figure with the seeds that a file of seeds_file() says."""
    if seeds is None:
        return list(runs_of(plan.figures[figure]))
    from bbrlab.results.seeds import read_seeds

    return list(runs_of(plan.figures[figure], read_seeds(seeds)))


_JOB = re.compile(r"\w+:paper=([^,]+),figure=([^,]+)(?:,|$)")  # as --target-jobs names one


def figures_of_jobs(argv: Sequence[str]) -> list[str]:
    """The figures of the jobs that a Snakemake was started for, by its command line; none: of all."""
    rules = [word for word in argv if re.match(r"\w+:\w+=", word)]
    places = [_JOB.match(word) for word in rules]
    return list(dict.fromkeys(f"{place[1]}/{place[2]}" for place in places if place)) if all(places) else []


def code_of(file: str) -> str:
    """What a stage's file of hashes says, for a job that has none of it as an input."""
    return (paths.ROOT / file).read_text(encoding="utf-8")


def copies_of(workflow: Any, results: str) -> Path | None:
    """Where Snakemake keeps its copies of the results that are in a storage; None without --default-storage-provider.

    Args:
        results: the results folder as the rules call it, relative to Snakemake's working folder.
    """
    settings = workflow.storage_settings
    if settings is None or not settings.default_storage_provider:
        return None
    # s3://bucket/folder and others alike: the copies' folders are named by what follows the scheme.
    place = str(settings.default_storage_prefix or "").rpartition("://")[2]
    copies: Path = Path(settings.local_storage_prefix).absolute() / settings.default_storage_provider / place / results
    return copies


def prepare(workflow: Any, results: str) -> Path | None:
    """Change what bbrlab needs otherwise in Snakemake (snakemake.py), before the rules are read. Returns copies_of()."""
    copies = copies_of(workflow, results)
    pass_commas()
    pass_cache_on(workflow, ["run"], bool(copies))
    explain_group_failures()
    keep_to_allocation(workflow)
    if copies and workflow.is_main_process:
        from snakemake.shell import shell

        # The commands of rules find the results in these copies; the rules keep their own names.
        shell.prefix(f"export BBRLAB_RESULTS={shlex.quote(str(copies))}; ")
    return copies


def check_targets(workflow: Any, plan: Plan, config: Mapping[str, Any]) -> None:
    """Look at what a person asks for, once all rules are there; of a dry run, say what it will take. UserError for a name that is
    none, or a figure whose algorithms the kernel lacks."""
    if not workflow.is_main_process:
        return
    from bbrlab.campaign.targets import checked_targets

    rules = [rule.name for rule in workflow.rules if not rule.has_wildcards()]
    chosen = checked_targets(words_of(sys.argv), plan, rules)
    if workflow.output_settings.dryrun:
        from bbrlab.base.console import Console
        from bbrlab.campaign.forecast import show_forecast

        show_forecast(chosen, Console(stderr=True), workflow.cores, config.get("cache_gb"))


def start(workflow: Any, plan: Plan, point_of: Callable[[Any], PlannedPoint]) -> None:
    """A campaign begins to run (``onstart``). UserError if another campaign runs, or cache, kernel or Slurm are not there."""
    from bbrlab.base.console import Console
    from bbrlab.campaign.cache import check_cache
    from bbrlab.campaign.lock import hold_lock
    from bbrlab.campaign.progress import begin
    from bbrlab.kernel.build import renew_kernel

    check_cache(workflow)
    hold_lock()
    renew_kernel(plan.kernel, Console(stderr=True).print)
    remove_partials(paths.results_folder())
    check_slurm(workflow, point_of)
    lift_job_rate_limit(workflow)
    begin(plan, workflow)
