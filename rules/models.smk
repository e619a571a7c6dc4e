# Stage 3: the models at every point that they can describe, one job per point and model (bbrlab/models/predictions.py).


rule fluid_prediction:
    input:
        point=local(POINT),
        code=CODE["models"],
    output:
        short=f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/{FLUID_SHORT}.parquet",
        own=f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/{FLUID_OWN}.parquet",
    log:
        f"{LOGS}/models/{{paper}}/{{figure}}/{{label}}/fluid.log",
    group:
        MODELS
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 20 * attempt,
    params:
        kinds=(FLUID_SHORT, FLUID_OWN),
    shell:
        "bbrlab predict {input.point:q} {params.kinds[0]}={output.short:q} {params.kinds[1]}={output.own:q} > {log:q} 2>&1"


rule burst_prediction:
    input:
        point=local(POINT),
        code=CODE["models"],
    output:
        f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/{BURST}.parquet",
    log:
        f"{LOGS}/models/{{paper}}/{{figure}}/{{label}}/burst.log",
    group:
        MODELS
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 20 * attempt,
    params:
        kind=BURST,
    shell:
        "bbrlab predict {input.point:q} {params.kind}={output:q} > {log:q} 2>&1"
