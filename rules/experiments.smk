# Stage 2: one guest per point and seed, and a table of each figure's runs.
# `exec` makes bbrlab a child of snakemake itself, so that a killed campaign takes its guests with it.


rule run:
    input:
        kernel=kernel_of,
        # Jobs without this file system write their own (see params).
        point=[] if COPIES else POINT,
        code=[] if COPIES else CODE["runs"],
    output:
        summary=f"{RESULTS}/runs/{{paper}}/{{figure}}/{{label}}/seed-{{seed}}/summary.json",
        samples=f"{RESULTS}/runs/{{paper}}/{{figure}}/{{label}}/seed-{{seed}}/samples.parquet",
        manifest=f"{RESULTS}/runs/{{paper}}/{{figure}}/{{label}}/seed-{{seed}}/manifest.json",
    log:
        f"{LOGS}/runs/{{paper}}/{{figure}}/{{label}}/seed-{{seed}}.log",
    # With --cache: runs are taken from there, and go there (docs/howto/shipped_results.md). Said only then, for Snakemake warns of
    # every rule that could be cached and is not.
    cache: workflow.enable_cache
    # Before the short jobs that look at them: a campaign's time is its runs'.
    priority: 2
    # What a scheduler is told, and what may share a job there; on this machine neither counts.
    group:
        lambda wildcards: point_of(wildcards).group
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: point_of(wildcards).memory_mb * attempt,
        runtime=lambda wildcards, attempt: point_of(wildcards).runtime_min * attempt,
    # All that decides a run and stands in no input file must stand here: Snakemake's key of a cached run has no wildcards.
    params:
        point=lambda wildcards: POINT.format(**wildcards) if COPIES else "",
        code=code_of(CODE["runs"]) if COPIES else "",
        seed=lambda wildcards: wildcards.seed,
        label=lambda wildcards: wildcards.label,
        kernel=f"--kernel {KERNEL}" if KERNEL else "",
        own=lambda wildcards: with_own(figure_of(wildcards).own.values()),
        # A function of the input is no reason to run again what is there.
        packages=lambda wildcards, input: PLAN.packages,
    shell:
        f"exec bbrlab point {{{'params' if COPIES else 'input'}.point:q}} "
        '--seed {params.seed} --out "$(dirname {output.summary:q})" {params.kernel} {params.own} > {log:q} 2>&1'


# As many seeds as it takes: after a round of runs, how many each point needs for its claims.
checkpoint seeds:
    input:
        runs=summaries_of,
        seed_request=seed_request_of,
        code=CODE["seeds"],
    output:
        f"{AT_SCALE}/seeds/{{paper}}/{{figure}}.{{round}}.json",
    log:
        f"{LOGS}/{SCALE}/{{paper}}/{{figure}}.{{round}}.seeds.log",
    priority: 1
    params:
        scale=SCALE,
        before=option("before", seeds_of),
    shell:
        "bbrlab seeds {wildcards.paper:q}/{wildcards.figure:q} --scale {params.scale} {params.before} --out {output:q} > {log:q} 2>&1"


rule collect:
    input:
        runs=summaries_of,
        code=CODE["tables"],
    output:
        table=f"{AT_SCALE}/{{paper}}/{{figure}}.parquet",
        csv=f"{AT_SCALE}/{{paper}}/{{figure}}.csv",
    log:
        f"{LOGS}/{SCALE}/{{paper}}/{{figure}}.collect.log",
    params:
        scale=SCALE,
        seeds=option("seeds", seeds_of),
    shell:
        "bbrlab collect {wildcards.paper:q}/{wildcards.figure:q} --scale {params.scale} {params.seeds} --out {output.table:q} > {log:q} 2>&1"


rule points:
    input:
        tables=TABLES.values(),
        code=CODE["tables"],
    output:
        table=f"{AT_SCALE}/points.parquet",
        csv=f"{AT_SCALE}/points.csv",
    log:
        f"{LOGS}/{SCALE}/points.log",
    shell:
        "bbrlab points {input.tables:q} --out {output.table:q} > {log:q} 2>&1"
