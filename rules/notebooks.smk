# Stage 4: notebooks, executed and written as HTML pages.


rule collect:
    input:
        runs=lambda wildcards: summaries_of(f"{wildcards.paper}/{wildcards.figure}"),
        code="bbrlab/collect.py",
    output:
        table=f"results/{SCALE}/{{paper}}/{{figure}}.parquet",
        csv=f"results/{SCALE}/{{paper}}/{{figure}}.csv",
    params:
        scale=SCALE,
    wildcard_constraints:
        paper="[^/]+",
        figure="[^/]+",
    shell:
        "bbrlab collect {wildcards.paper}/{wildcards.figure} --scale {params.scale} --out {output.table}"


def tables_of(paper):
    return [f"results/{SCALE}/{id}.parquet" for id in FIGURES if id.split("/")[0] == paper]


rule notebook:
    input:
        notebook="notebooks/{paper}.ipynb",
        tables=lambda wildcards: tables_of(wildcards.paper),
        data=lambda wildcards: sorted(str(p.relative_to(paths.ROOT)) for p in (paths.DATA / wildcards.paper).glob("*.csv")),
        code=["bbrlab/compare.py", "bbrlab/figures.py", "bbrlab/models/ware.py"],
    output:
        page=f"results/{SCALE}/{{paper}}.html",
        notebook=f"results/{SCALE}/{{paper}}.ipynb",
    log:
        f"results/logs/{SCALE}/{{paper}}.notebook.log",
    params:
        scale=SCALE,
    wildcard_constraints:
        paper="[^/]+",
    shell:
        "bbrlab render {input.notebook} --out {output.page} -p scale={params.scale} > {log} 2>&1 || (cat {log} >&2; exit 1)"
