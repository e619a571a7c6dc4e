# Stage 5: the scorecard, on the terminal and as a file.


rule scorecard:
    input:
        tables=[f"results/{SCALE}/{id}.parquet" for id in FIGURES],
        code=["bbrlab/compare.py", "bbrlab/scorecard.py"],
    output:
        f"results/{SCALE}/scorecard.json",
    log:
        f"results/logs/{SCALE}/scorecard.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab report {input.tables} --scale {params.scale} --out {output} 2>&1 | tee {log} >&2"
