# Stage 3: the models at every point that they can describe, one job per point and model (bbrlab/models/predictions.py).


rule fluid_prediction:
    input:
        point=local(POINT),
        code=CODE["models"],
    output:
        short=f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/9s.parquet",
        own=f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/own.parquet",
    log:
        f"{LOGS}/models/{{paper}}/{{figure}}/{{label}}/fluid.log",
    group:
        MODELS
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 20 * attempt,
    shell:
        "bbrlab predict {input.point:q} 9s={output.short:q} own={output.own:q} > {log:q} 2>&1"


rule burst_prediction:
    input:
        point=local(POINT),
        code=CODE["models"],
    output:
        f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/burst.parquet",
    log:
        f"{LOGS}/models/{{paper}}/{{figure}}/{{label}}/burst.log",
    group:
        MODELS
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 20 * attempt,
    shell:
        "bbrlab predict {input.point:q} burst={output:q} > {log:q} 2>&1"
