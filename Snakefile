# The whole campaign: `snakemake --cores <n> all`, or one paper or figure of it: `snakemake --cores <n> fig2a`.
# Configuration: config/config.yaml; rules by stage: rules/.
import re
import sys
from pathlib import Path
from shlex import quote

from bbrlab.base import paths
from bbrlab.base.algorithms import own_folder
from bbrlab.base.owned import remove_partials
from bbrlab.results.config import load_config
from bbrlab.results.figures import (
    check_ccas,
    figures_at,
    own_of_figure,
    runs_of,
    write_points,
)
from bbrlab.results.replacement import UNCHANGED, begin_replacement, check_replaced
from bbrlab.results.seeds import ROUNDS, read_seeds, settled
from bbrlab.claims.columns import prediction_files
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.container.context import context_files
from bbrlab.container.jobs import image_of_jobs, prepare_jobs
from bbrlab.kernel.build import renew_kernel
from bbrlab.models.predictions import BURST, FLUID_OWN, FLUID_SHORT, files_of
from bbrlab.results.figures import has_panel
from bbrlab.run.manifest import package_versions
from bbrlab.show.documents import linked, sources
from bbrlab.workflow.asking import write_asking
from bbrlab.workflow.cache import check_cache
from bbrlab.workflow.clock import date_back
from bbrlab.workflow.forecast import show_forecast, to_stderr
from bbrlab.workflow.lock import hold_lock
from bbrlab.workflow.progress import begin
from bbrlab.workflow.resources import (
    MODELS,
    group_of,
    kernel_is_built,
    memory_mb,
    runtime_min,
)
from bbrlab.workflow.slurm import check_slurm, keep_to_allocation
from bbrlab.workflow.snakemake import end_at_hangup, lift_job_rate_limit, pass_cache_on, pass_commas, say_why_groups_fail, words_of
from bbrlab.results.config import name_of
from bbrlab.workflow.stages import write_stages
from bbrlab.workflow.storage import code_of, copies_of, find_results_in
from bbrlab.workflow.targets import asked_for, check_asked, check_given, targets_of

load_config()  # which says where a mistake is
if workflow.is_main_process:
    date_back(paths.results_folder())
    end_at_hangup()


configfile: paths.CONFIG / "config.yaml"


# Only used with --software-deployment-method apptainer; `snakemake --cores N sif` makes it.
container: image_of_jobs()


prepare_jobs(workflow)


check_given(config)
SCALE = config["scale"]
KERNEL = config.get("kernel") or ""
if "replace" in config:
    begin_replacement(config["replace"])
FIGURES = {f.id: f for f in figures_at(SCALE, config.get("figures"))}
# What is wrong is told before anything runs.
STATEMENTS = load_statements()
if workflow.is_main_process:
    ASKED = words_of(sys.argv)
    # Of figures that nobody asks for it does not matter what the kernel has.
    check_ccas([FIGURES[id] for id in asked_for(FIGURES, ASKED)], KERNEL or None)
check_replaced(
    point
    for figure in figures_at(SCALE, config.get("figures"), UNCHANGED)
    for point in figure.points
)


include: "rules/common.smk"
include: "rules/kernels.smk"
include: "rules/experiments.smk"
include: "rules/models.smk"
include: "rules/claims.smk"
include: "rules/pages.smk"
include: "rules/targets.smk"
include: "rules/container.smk"


pass_commas()
pass_cache_on(workflow, ["run"], bool(COPIES))
say_why_groups_fail()
keep_to_allocation(workflow)
if COPIES and workflow.is_main_process:
    shell.prefix(find_results_in(COPIES))


onstart:
    check_cache(workflow)
    hold_lock()
    renew_kernel(KERNEL or None, to_stderr().print)
    remove_partials(paths.results_folder())
    check_slurm(workflow, point_of)
    lift_job_rate_limit(workflow)
    begin(FIGURES, workflow)


# Seconds each, and there where snakemake itself runs.
localrules:
    seeds,
    collect,
    points,
    claims,
    figure_claims,
    paper_claims,
    scorecard,
    verdicts,


rule all:
    default_target: True
    input:
        scorecard=f"{AT_SCALE}/scorecard.json",
        points=f"{AT_SCALE}/points.parquet",
        notebooks=[f"{AT_SCALE}/{page}.ipynb" for page in PAGES],
        site=f"{AT_SCALE}/site",


if workflow.is_main_process:
    RULES = [rule.name for rule in workflow.rules if not rule.has_wildcards()]
    check_asked(ASKED, FIGURES, RULES, SCALE)
    if workflow.output_settings.dryrun:
        show_forecast(
            [FIGURES[id] for id in asked_for(FIGURES, ASKED)],
            to_stderr(),
            workflow.cores,
            config.get("cache_gb"),
            claims=claims_of(STATEMENTS),
        )
