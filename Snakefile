# The whole campaign: `snakemake --cores <n> all`, or one paper or figure of it: `snakemake --cores <n> fig2a`.
# Configuration: config/config.yaml; rules by stage: rules/.
import sys

from bbrlab.base import paths
from bbrlab.campaign.figures import check_ccas, figures_at, runs_of, write_points
from bbrlab.campaign.forecast import show_forecast, to_stderr
from bbrlab.campaign.lock import hold_lock
from bbrlab.campaign.snakemake import lift_job_rate_limit
from bbrlab.campaign.targets import asked_for, targets_of
from bbrlab.claims.load import claims_files, load_statements
from bbrlab.kernel.specs import ingredients
from bbrlab.models.predict import speaks_of
from bbrlab.report.panel import has_panel


configfile: "config/config.yaml"


# Only used with --software-deployment-method apptainer; `docker build -t bbrlab:0.1.0 .` makes it.
container: "docker-daemon://bbrlab:0.1.0"


SCALE = config["scale"]
KERNEL = config.get("kernel") or ""
FIGURES = {f.id: f for f in figures_at(SCALE, config.get("figures"))}
# What is wrong is told before anything runs.
load_statements()
check_ccas(FIGURES.values(), KERNEL or None)


include: "rules/common.smk"
include: "rules/kernels.smk"
include: "rules/experiments.smk"
include: "rules/models.smk"
include: "rules/notebooks.smk"
include: "rules/report.smk"
include: "rules/targets.smk"


if workflow.output_settings.dryrun:
    show_forecast([FIGURES[id] for id in asked_for(FIGURES, sys.argv[1:])], to_stderr())


onstart:
    hold_lock()
    lift_job_rate_limit(workflow)


rule all:
    default_target: True
    input:
        scorecard=f"results/{SCALE}/scorecard.json",
        points=f"results/{SCALE}/points.parquet",
        notebooks=notebook_pages(),
