# Stage 3: the fluid model at every point that it can describe, one job per point and length; the burst model likewise, one
# job per point for all its seeds.
FLUID_LENGTHS = {"9s": "--duration-s 9 --step-ms 0.01", "own": "--step-ms 0.05"}
BURST_SEEDS = 3


rule fluid:
    input:
        point=f"{RESULTS}/points/{{paper}}/{{figure}}/{{label}}.yaml",
        code=CODE["models"],
    output:
        f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/{{length}}.parquet",
    log:
        f"{LOGS}/models/{{paper}}/{{figure}}/{{label}}/{{length}}.log",
    wildcard_constraints:
        length="|".join(FLUID_LENGTHS),
    params:
        options=lambda wildcards: FLUID_LENGTHS[wildcards.length],
    shell:
        "bbrlab predict {input.point} {params.options} --out {output} > {log} 2>&1"


rule burst:
    input:
        point=f"{RESULTS}/points/{{paper}}/{{figure}}/{{label}}.yaml",
        code=CODE["models"],
    output:
        f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/burst.parquet",
    log:
        f"{LOGS}/models/{{paper}}/{{figure}}/{{label}}/burst.log",
    params:
        seeds=BURST_SEEDS,
    shell:
        "bbrlab predict-burst {input.point} --seeds {params.seeds} --out {output} > {log} 2>&1"
