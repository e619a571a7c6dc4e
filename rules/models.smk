# Stage 3: the models at every point that they can describe, one job per point and kind (bbrlab/models/predictions.py).


rule prediction:
    input:
        point=local(POINT),
        code=CODE["models"],
    output:
        f"{RESULTS}/models/{{paper}}/{{figure}}/{{label}}/{{kind}}.parquet",
    log:
        f"{LOGS}/models/{{paper}}/{{figure}}/{{label}}/{{kind}}.log",
    wildcard_constraints:
        kind="|".join(KINDS),
    group:
        MODELS
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 20 * attempt,
    shell:
        "bbrlab predict {input.point} --kind {wildcards.kind} --out {output} > {log} 2>&1"
