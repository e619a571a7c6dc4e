# The whole campaign: `snakemake --cores <n> all`, or one paper or figure of it: `snakemake --cores <n> fig2a`.
# Configuration: config/config.yaml; rules by stage: rules/.
import sys

from bbrlab import campaign, claims, compare, kernel as kernels, paths, planning
from bbrlab.models import predict


configfile: "config/config.yaml"


# Only used with --software-deployment-method apptainer; `docker build -t bbrlab:0.1.0 .` makes it.
container: "docker-daemon://bbrlab:0.1.0"


SCALE = config["scale"]
KERNEL = config.get("kernel") or ""
FIGURES = {f.id: f for f in campaign.figures(SCALE, config.get("figures"))}
# What is wrong is told before anything runs.
claims.load()
campaign.check_ccas(FIGURES.values(), KERNEL or None)


include: "rules/common.smk"
include: "rules/kernels.smk"
include: "rules/experiments.smk"
include: "rules/models.smk"
include: "rules/notebooks.smk"
include: "rules/report.smk"
include: "rules/targets.smk"


if workflow.output_settings.dryrun:
    asked_for = campaign.asked_for(FIGURES, sys.argv[1:])
    planning.show([FIGURES[id] for id in asked_for], planning.to_stderr())


onstart:
    campaign.hold_lock()
    campaign.lift_job_rate_limit(workflow)


rule all:
    default_target: True
    input:
        scorecard=f"results/{SCALE}/scorecard.json",
        points=f"results/{SCALE}/points.parquet",
        notebooks=notebook_pages(),
