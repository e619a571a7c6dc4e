# The whole campaign: `snakemake --cores <n> all`. Configuration: config/config.yaml; rules by stage: rules/.
from bbrlab import campaign, kernel as kernels, paths
from bbrlab.models import predict


configfile: "config/config.yaml"


# Only used with --software-deployment-method apptainer; `docker build -t bbrlab:0.1.0 .` makes it.
container: "docker-daemon://bbrlab:0.1.0"


SCALE = config["scale"]
KERNEL = config.get("kernel") or ""
FIGURES = {f.id: f for f in campaign.figures(SCALE, config.get("figures"))}


include: "rules/common.smk"
include: "rules/kernels.smk"
include: "rules/experiments.smk"
include: "rules/models.smk"
include: "rules/notebooks.smk"
include: "rules/report.smk"


onstart:
    campaign.hold_lock()


rule all:
    default_target: True
    input:
        scorecard=f"results/{SCALE}/scorecard.json",
        notebooks=notebook_pages(),
