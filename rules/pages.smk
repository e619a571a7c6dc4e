# Stage 5: notebooks, executed, to be opened in JupyterLab and shown in the site; verdicts and the scorecard as text, which the terminal
# shows at the end of a campaign.


rule notebook:
    input:
        notebook=local(name_of(paths.ROOT / "notebooks" / "{paper}.ipynb")),
        tables=tables_of,
        claims=f"{AT_SCALE}/{{paper}}.claims.parquet",
        other_engine=other_engine_of,
        code=CODE["pages"],
    output:
        notebook=f"{AT_SCALE}/{{paper}}.ipynb",
        figures=directory(f"{AT_SCALE}/figures/{{paper}}"),
    log:
        f"{LOGS}/{SCALE}/{{paper}}.notebook.log",
    params:
        given=f"-p scale={SCALE}",
    shell:
        "bbrlab execute {input.notebook:q} --out {output.notebook:q} --figures {output.figures:q} {params.given} > {log:q} 2>&1"


use rule notebook as models_notebook with:
    input:
        notebook=local(name_of(paths.ROOT / "notebooks" / "models.ipynb")),
        tables=[TABLES[id] for id in PANELS],
        predictions=PREDICTIONS,
        code=CODE["pages"],
    output:
        notebook=f"{AT_SCALE}/models.ipynb",
        figures=directory(f"{AT_SCALE}/figures/models"),
    log:
        f"{LOGS}/{SCALE}/models.notebook.log",
    params:
        given=f"-p scale={SCALE} -p interactive=no",


use rule notebook as burst_notebook with:
    input:
        notebook=local(name_of(paths.ROOT / "notebooks" / "burst.ipynb")),
        code=CODE["pages"],
    output:
        notebook=f"{AT_SCALE}/burst.ipynb",
        figures=directory(f"{AT_SCALE}/figures/burst"),
    log:
        f"{LOGS}/{SCALE}/burst.notebook.log",
    params:
        given=f"-p scale={SCALE} -p interactive=no",


use rule notebook as overview_notebook with:
    input:
        notebook=local(name_of(paths.ROOT / "notebooks" / "overview.ipynb")),
        tables=TABLES.values(),
        claims=f"{AT_SCALE}/claims.parquet",
        points=f"{AT_SCALE}/points.parquet",
        predictions=PREDICTIONS,
        shipped=SHIPPED,
        code=CODE["pages"],
    output:
        notebook=f"{AT_SCALE}/overview.ipynb",
        figures=directory(f"{AT_SCALE}/figures/overview"),
    log:
        f"{LOGS}/{SCALE}/overview.notebook.log",


rule scorecard:
    input:
        tables=TABLES.values(),
        claims=f"{AT_SCALE}/claims.parquet",
        code=CODE["pages"],
    output:
        json=f"{AT_SCALE}/scorecard.json",
        text=f"{AT_SCALE}/scorecard.txt",
    log:
        f"{LOGS}/{SCALE}/scorecard.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab scorecard {input.tables:q} --claims {input.claims:q} --scale {params.scale} --out {output.json:q} > {output.text:q} 2> {log:q}"


# Stage 6: all of it as one static site.
rule site:
    input:
        notebooks=[f"{AT_SCALE}/{page}.ipynb" for page in PAGES],
        tables=TABLES.values(),
        claims=f"{AT_SCALE}/claims.parquet",
        predictions=PREDICTIONS,
        shipped=SHIPPED,
        documents=DOCUMENTS,
        code=CODE["site"],
    output:
        site=directory(f"{AT_SCALE}/site"),
        text=f"{AT_SCALE}/site.txt",
    log:
        f"{LOGS}/{SCALE}/site.log",
    params:
        scale=SCALE,
    shell:
        "bbrlab site --scale {params.scale} --out {output.site:q} > {output.text:q} 2> {log:q}"


# One figure's claims to read; of a figure that no claim reads, its points.
rule verdicts:
    input:
        table=f"{AT_SCALE}/{{paper}}/{{figure}}.parquet",
        claims=f"{AT_SCALE}/{{paper}}/{{figure}}.claims.parquet",
        code=CODE["pages"],
    output:
        f"{AT_SCALE}/{{paper}}/{{figure}}.claims.txt",
    log:
        f"{LOGS}/{SCALE}/{{paper}}/{{figure}}.verdicts.log",
    shell:
        "bbrlab verdicts {input.claims:q} --table {input.table:q} > {output:q} 2> {log:q}"
