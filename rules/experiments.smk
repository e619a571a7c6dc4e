# Stage 2: one guest per point and seed.
# `exec` makes bbrlab a child of snakemake itself, so that a killed campaign takes its guests with it.


rule run:
    input:
        kernel="results/kernel.json",
        point="results/points/{paper}/{figure}/{label}.yaml",
        guest=GUEST_CODE,
        code=RUN_CODE,
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
