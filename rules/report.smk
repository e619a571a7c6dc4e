# Stage 5: the claims judged, one table of all points, the scorecard on the terminal and as a file.
JUDGE_CODE = [
    str(p.relative_to(paths.ROOT))
    for p in sorted((paths.ROOT / "bbrlab" / "claims").glob("*.py"))
]
CLAIMS = [str(p.relative_to(paths.ROOT)) for p in claims_files()]


rule claims:
    input:
        tables=all_tables(),
        claims=CLAIMS,
        code=JUDGE_CODE,
    output:
        table=f"results/{SCALE}/claims.parquet",
        csv=f"results/{SCALE}/claims.csv",
    log:
        f"results/logs/{SCALE}/claims.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab judge {input.tables} --scale {params.scale} --out {output.table} > {log} 2>&1"


rule points:
    input:
        tables=all_tables(),
        code="bbrlab/campaign/collect.py",
    output:
        table=f"results/{SCALE}/points.parquet",
        csv=f"results/{SCALE}/points.csv",
    log:
        f"results/logs/{SCALE}/points.log",
    shell:
        "bbrlab points {input.tables} --out {output.table} > {log} 2>&1"


rule scorecard:
    input:
        tables=all_tables(),
        claims=f"results/{SCALE}/claims.parquet",
        code=["bbrlab/report/panel.py", "bbrlab/report/scorecard.py"],
    output:
        f"results/{SCALE}/scorecard.json",
    log:
        f"results/logs/{SCALE}/scorecard.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab report {input.tables} --claims {input.claims} --scale {params.scale} --out {output} 2>&1 | tee {log} >&2"


# One figure's claims, on the terminal, without the rest of the campaign.
rule figure_claims:
    input:
        table=f"results/{SCALE}/{{paper}}/{{figure}}.parquet",
        claims=CLAIMS,
        code=JUDGE_CODE,
    output:
        table=f"results/{SCALE}/{{paper}}/{{figure}}.claims.parquet",
        csv=f"results/{SCALE}/{{paper}}/{{figure}}.claims.csv",
    log:
        f"results/logs/{SCALE}/{{paper}}/{{figure}}.claims.log",
    wildcard_constraints:
        paper="[^/]+",
        figure="[^/.]+",
    params:
        scale=SCALE,
    shell:
        "bbrlab judge {input.table} --only --scale {params.scale} --out {output.table} 2>&1 | tee {log} >&2"
