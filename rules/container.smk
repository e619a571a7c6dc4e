# The image with all of bbrlab: `snakemake --cores N container`. Whether it is there, and as the checkout has it, is asked of what builds it.
# `run`, since what makes the container cannot run in it.
from bbrlab_apps.container.context import context_files


rule container:
    log:
        f"{LOGS}/container.log",
    localrule: True
    threads: workflow.cores
    run:
        shell("bbrlab container build 2>&1 | tee {log:q}")


# The same as apptainer runs it, for `snakemake --software-deployment-method apptainer`.
rule sif:
    input:
        lambda wildcards: [name_of(path) for path in context_files()],
        name_of(paths.CONFIG / "container.yaml"),
    output:
        f"{RESULTS}/container/bbrlab.sif",
    log:
        f"{LOGS}/sif.log",
    localrule: True
    threads: workflow.cores
    run:
        shell("bbrlab container build --sif {output:q} > {log:q} 2>&1")
