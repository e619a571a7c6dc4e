# Stage 4: notebooks, executed and written as HTML pages.


rule collect:
    input:
        runs=lambda wildcards: summaries_of(f"{wildcards.paper}/{wildcards.figure}"),
        code="bbrlab/campaign/collect.py",
    output:
        table=f"results/{SCALE}/{{paper}}/{{figure}}.parquet",
        csv=f"results/{SCALE}/{{paper}}/{{figure}}.csv",
    log:
        f"results/logs/{SCALE}/{{paper}}/{{figure}}.collect.log",
    wildcard_constraints:
        paper="[^/]+",
        figure="[^/.]+",
    params:
        scale=SCALE,
    shell:
        "bbrlab collect {wildcards.paper}/{wildcards.figure} --scale {params.scale} --out {output.table} > {log} 2>&1"


NOTEBOOK_CODE = [
    f"bbrlab/{name}.py"
    for name in (
        "report/panel",
        "report/pages",
        "report/render",
        "claims/judge",
        "campaign/collect",
        "models/ware",
    )
]


rule notebook:
    input:
        notebook="notebooks/{paper}.ipynb",
        tables=tables_of,
        claims=f"results/{SCALE}/claims.parquet",
        data=published_of,
        other_engine=other_engine_of,
        code=NOTEBOOK_CODE,
    output:
        page=f"results/{SCALE}/{{paper}}.html",
        notebook=f"results/{SCALE}/{{paper}}.ipynb",
        figures=directory(f"results/{SCALE}/figures/{{paper}}"),
    log:
        f"results/logs/{SCALE}/{{paper}}.notebook.log",
    wildcard_constraints:
        paper="(?!models$|overview$)[^/]+",
    params:
        scale=SCALE,
    shell:
        "bbrlab render {input.notebook} --out {output.page} --figures {output.figures} -p scale={params.scale} > {log} 2>&1"


rule models_notebook:
    input:
        notebook="notebooks/models.ipynb",
        tables=[t for t in all_tables() if "/sarpkaya2025/" in t],
        predictions=fluid_predictions(),
        data=sorted(str(p.relative_to(paths.ROOT)) for p in paths.DATA.glob("*/*.csv")),
        code=[
            "bbrlab/report/panel.py",
            "bbrlab/report/render.py",
            "bbrlab/models/ware.py",
            *FLUID_CODE,
        ],
    output:
        page=f"results/{SCALE}/models.html",
        notebook=f"results/{SCALE}/models.ipynb",
        figures=directory(f"results/{SCALE}/figures/models"),
    log:
        f"results/logs/{SCALE}/models.notebook.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab render {input.notebook} --out {output.page} --figures {output.figures} -p scale={params.scale} -p interactive=no > {log} 2>&1"


rule overview_notebook:
    input:
        notebook="notebooks/overview.ipynb",
        tables=all_tables(),
        claims=f"results/{SCALE}/claims.parquet",
        points=f"results/{SCALE}/points.parquet",
        predictions=fluid_predictions(),
        code=NOTEBOOK_CODE,
    output:
        page=f"results/{SCALE}/overview.html",
        notebook=f"results/{SCALE}/overview.ipynb",
        figures=directory(f"results/{SCALE}/figures/overview"),
    log:
        f"results/logs/{SCALE}/overview.notebook.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab render {input.notebook} --out {output.page} --figures {output.figures} -p scale={params.scale} > {log} 2>&1"
