# What the rules share: where things are and which files a figure has. Looked up here, decided in bbrlab.
RESULTS = name_of(paths.results_folder())
AT_SCALE = f"{RESULTS}/{SCALE}"
LOGS = f"{RESULTS}/logs"
# One small file for each stage stands for all code and data that decides its results.
CODE = {stage: name_of(file) for stage, file in write_stages().items()}
PAPERS = sorted({id.split("/")[0] for id in FIGURES})
PAGES = [*PAPERS, "models", "overview"]
TABLES = {id: f"{AT_SCALE}/{id}.parquet" for id in FIGURES}
PANELS = {id: figure for id, figure in FIGURES.items() if has_panel(figure)}
for figure in FIGURES.values():
    write_points(figure)


wildcard_constraints:
    paper="[^/]+",
    figure="[^/.]+",
    label="[^/]+",
    seed=r"\d+",


def summaries_of(wildcards):
    figure = FIGURES[f"{wildcards.paper}/{wildcards.figure}"]
    return [name_of(run.folder / "summary.json") for run in runs_of(figure)]


def tables_of(wildcards):
    return [t for id, t in TABLES.items() if id.split("/")[0] == wildcards.paper]


def predictions():
    """What the fluid model says of the panels that it can describe, at 9 s and as long as the experiment."""
    return [
        f"{RESULTS}/models/{id}/{point.label}/{length}.parquet"
        for id, figure in PANELS.items()
        if speaks_of(figure.scenario)
        for point in figure.points
        for length in FLUID_LENGTHS
    ]


def other_engine_of(wildcards):
    """What `make ns3` wrote, where it has."""
    table = paths.results_folder() / SCALE / "ns3" / f"{wildcards.paper}.parquet"
    return [name_of(table)] if table.exists() else []
