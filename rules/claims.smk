# Stage 4: the claims judged by the tables.


rule claims:
    input:
        tables=TABLES.values(),
        code=CODE["claims"],
    output:
        table=f"{AT_SCALE}/claims.parquet",
        csv=f"{AT_SCALE}/claims.csv",
    log:
        f"{LOGS}/{SCALE}/claims.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab judge {input.tables} --scale {params.scale} --out {output.table} > {log} 2>&1"


# What one figure alone can judge, and what one paper's figures can: no other paper need be run.
rule figure_claims:
    input:
        tables=f"{AT_SCALE}/{{paper}}/{{figure}}.parquet",
        code=CODE["claims"],
    output:
        table=f"{AT_SCALE}/{{paper}}/{{figure}}.claims.parquet",
        csv=f"{AT_SCALE}/{{paper}}/{{figure}}.claims.csv",
    log:
        f"{LOGS}/{SCALE}/{{paper}}/{{figure}}.claims.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab judge {input.tables} --only --scale {params.scale} --out {output.table} > {log} 2>&1"


use rule figure_claims as paper_claims with:
    input:
        tables=tables_of,
        code=CODE["claims"],
    output:
        table=f"{AT_SCALE}/{{paper}}.claims.parquet",
        csv=f"{AT_SCALE}/{{paper}}.claims.csv",
    log:
        f"{LOGS}/{SCALE}/{{paper}}.claims.log",
    wildcard_constraints:
        paper="|".join(PAPERS),
