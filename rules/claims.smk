# Stage 4: the claims judged by the tables, and the statements by their claims.


rule claims:
    input:
        tables=TABLES.values(),
        predictions=predictions_of(FIGURES.values()),
        code=CODE["claims"],
    output:
        table=f"{AT_SCALE}/claims.parquet",
        csv=f"{AT_SCALE}/claims.csv",
        statements=f"{AT_SCALE}/statements.parquet",
        statements_csv=f"{AT_SCALE}/statements.csv",
    log:
        f"{LOGS}/{SCALE}/claims.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab judge {input.tables:q} --scale {params.scale} --out {output.table:q} > {log:q} 2>&1"


# Statements of which one figure alone, or one paper's figures, can judge a claim: no other paper need be run.
rule figure_claims:
    input:
        tables=f"{AT_SCALE}/{{paper}}/{{figure}}.parquet",
        predictions=lambda wildcards: predictions_of(
            [FIGURES[f"{wildcards.paper}/{wildcards.figure}"]]
        ),
        code=CODE["claims"],
    output:
        table=f"{AT_SCALE}/{{paper}}/{{figure}}.claims.parquet",
        csv=f"{AT_SCALE}/{{paper}}/{{figure}}.claims.csv",
        statements=f"{AT_SCALE}/{{paper}}/{{figure}}.statements.parquet",
        statements_csv=f"{AT_SCALE}/{{paper}}/{{figure}}.statements.csv",
    log:
        f"{LOGS}/{SCALE}/{{paper}}/{{figure}}.claims.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab judge {input.tables:q} --only --scale {params.scale} --out {output.table:q} > {log:q} 2>&1"


use rule figure_claims as paper_claims with:
    input:
        tables=tables_of,
        predictions=lambda wildcards: predictions_of(
            f for id, f in FIGURES.items() if id.split("/")[0] == wildcards.paper
        ),
        code=CODE["claims"],
    output:
        table=f"{AT_SCALE}/{{paper}}.claims.parquet",
        csv=f"{AT_SCALE}/{{paper}}.claims.csv",
        statements=f"{AT_SCALE}/{{paper}}.statements.parquet",
        statements_csv=f"{AT_SCALE}/{{paper}}.statements.csv",
    log:
        f"{LOGS}/{SCALE}/{{paper}}.claims.log",
