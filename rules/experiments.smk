# Stage 2: one guest per point and seed.
# `exec` makes bbrlab a child of snakemake itself, so that a killed campaign takes its guests with it.


# One file for all code that decides a run's outcome: snakemake looks at each input of each job many times.
rule code:
    input:
        GUEST_CODE,
        RUN_CODE,
    output:
        "results/code.sha256",
    log:
        "results/logs/code.log",
    shell:
        "sha256sum {input} > {output} 2> {log}"


rule run:
    input:
        kernel="results/kernel.json",
        point="results/points/{paper}/{figure}/{label}.yaml",
        code="results/code.sha256",
    output:
        summary="results/runs/{paper}/{figure}/{label}/seed-{seed}/summary.json",
        samples="results/runs/{paper}/{figure}/{label}/seed-{seed}/samples.parquet",
        manifest="results/runs/{paper}/{figure}/{label}/seed-{seed}/manifest.json",
    log:
        "results/logs/runs/{paper}/{figure}/{label}/seed-{seed}.log",
    wildcard_constraints:
        paper="[^/]+",
        figure="[^/]+",
        label="[^/]+",
        seed=r"\d+",
    threads: 1
    params:
        folder=subpath(output.summary, parent=True),
        kernel=f"--kernel {KERNEL}" if KERNEL else "",
    shell:
        "exec bbrlab point {input.point} --seed {wildcards.seed} --out {params.folder} {params.kernel} > {log} 2>&1"
