# What the rules share: where things are and which runs a figure needs. No logic beyond looking up.
RUNS = {
    (run.figure, run.point.label, run.seed): run
    for figure in FIGURES.values()
    for run in runs_of(figure)
}
POINTS = {
    id: write_points(figure, paths.ROOT / "results") for id, figure in FIGURES.items()
}
GUEST_CODE = sorted(
    str(p.relative_to(paths.ROOT)) for p in paths.GUEST_CODE.iterdir() if p.is_file()
)
# A change in how a run is planned, decoded, measured or checked changes its result.
RUN_CODE = sorted(
    str(p.relative_to(paths.ROOT))
    for package in ("scenario", "workload", "experiment", "measure", "run")
    for p in (paths.ROOT / "bbrlab" / package).rglob("*.py")
)


def summaries_of(figure):
    return [
        f"results/runs/{id}/{label}/seed-{seed}/summary.json"
        for id, label, seed in RUNS
        if id == figure
    ]


def papers():
    return sorted({id.split("/")[0] for id in FIGURES})


def notebook_pages():
    return [
        f"results/{SCALE}/{page}.html" for page in [*papers(), "models", "overview"]
    ]


def all_tables():
    return [f"results/{SCALE}/{id}.parquet" for id in FIGURES]


def fluid_predictions():
    """What the fluid model says of the panels that it can describe, at 9 s and as long as the experiment."""
    return [
        f"results/models/{id}/{point.label}/{length}.parquet"
        for id, figure in FIGURES.items()
        if has_panel(figure) and speaks_of(figure.scenario)
        for point in figure.points
        for length in FLUID_LENGTHS
    ]


def tables_of(wildcards):
    return [
        f"results/{SCALE}/{id}.parquet"
        for id in FIGURES
        if id.split("/")[0] == wildcards.paper
    ]


def published_of(wildcards):
    folder = paths.DATA / wildcards.paper
    return sorted(str(p.relative_to(paths.ROOT)) for p in folder.glob("*.csv"))


def other_engine_of(wildcards):
    """What `make ns3` wrote, where it has: only Tang's page shows it."""
    table = f"results/{SCALE}/ns3.parquet"
    shown = wildcards.paper == "tang" and (paths.ROOT / table).exists()
    return [table] if shown else []
