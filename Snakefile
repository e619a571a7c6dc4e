# The whole campaign: `snakemake --cores <n> all`, or one paper or figure of it: `snakemake --cores <n> fig2a`.
# Configuration: config/config.yaml; rules by stage: rules/.
from bbrlab_apps.container.jobs import image_of_jobs, prepare_jobs
from bbrlab.campaign.snakefile import (
    check_targets,
    config_file,
    plan_of,
    prepare,
    start,
)


configfile: config_file(workflow)


# Only used with --software-deployment-method apptainer; `snakemake --cores N sif` makes it.
container: image_of_jobs()


prepare_jobs(workflow)
PLAN = plan_of(workflow, config)  # figures, points, seeds, and what each run takes


include: "rules/common.smk"
include: "rules/kernels.smk"
include: "rules/experiments.smk"
include: "rules/models.smk"
include: "rules/claims.smk"
include: "rules/pages.smk"
include: "rules/targets.smk"
include: "rules/container.smk"


onstart:
    start(workflow, PLAN, point_of)


# Seconds each, and there where snakemake itself runs.
localrules:
    seeds,
    collect,
    points,
    claims,
    figure_claims,
    paper_claims,
    scorecard,
    verdicts,  # fmt: skip


rule all:
    default_target: True
    input:
        scorecard=f"{AT_SCALE}/scorecard.json",
        points=f"{AT_SCALE}/points.parquet",
        notebooks=[f"{AT_SCALE}/{page}.ipynb" for page in PAGES],
        site=f"{AT_SCALE}/site",


check_targets(workflow, PLAN, config)
