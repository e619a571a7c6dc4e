# What the rules share: where things are and which files a figure has. Looked up here, decided in bbrlab.
RESULTS = name_of(paths.results_folder())
AT_SCALE = f"{RESULTS}/{SCALE}"
LOGS = f"{RESULTS}/logs"
# With --default-storage-provider (profiles/kubernetes) results are elsewhere, and these are Snakemake's copies of them. What is
# local() stays out of the storage, and rules that read it run where snakemake does; otherwise the word says nothing.
COPIES = copies_of(workflow, RESULTS)
# One small file for each stage stands for all code and data that decides its results.
CODE = {stage: local(name_of(file)) for stage, file in write_stages(KERNEL or None).items()}
POINT = f"{RESULTS}/points/{{paper}}/{{figure}}/{{label}}.yaml"
# Papers with a page: whose figures have a notebook. Others, such as a study of one's own, have runs, tables and claims.
PAPERS = [
    paper
    for paper in sorted({id.split("/")[0] for id in FIGURES})
    if (paths.ROOT / "notebooks" / f"{paper}.ipynb").exists()
]
PAGES = [*PAPERS, "models", "burst", "overview"]
TABLES = {id: f"{AT_SCALE}/{id}.parquet" for id in FIGURES}
PANELS = {id: figure for id, figure in FIGURES.items() if has_panel(figure)}
# What the models say of the panels that they can describe.
PREDICTIONS = [
    name_of(path)
    for id, figure in PANELS.items()
    for path in files_of(id, figure.scenario, figure.points)
]
# Versions of the Debian packages that the guest uses.
GUEST_PACKAGES = ", ".join(f"{k} {v}" for k, v in package_versions().items())
# The results that ship stand on the overview, too.
SHIPPED = [
    local(name_of(path)) for path in sorted(paths.SHIPPED.glob("[!.]*/manifest.json"))
]
# What the site has of the documentation, with the files that it links to.
DOCUMENTS = [local(name_of(paths.ROOT / path)) for path in [*sources(), *linked()]]
if (
    workflow.is_main_process or COPIES
):  # a job of a scheduler finds them there, if it can
    for figure in FIGURES.values():
        write_points(figure)


# {figure: C files of the algorithms of one's own that its flows have}.
OWN = {
    id: {cca.name: name_of(cca.path) for cca in own_of_figure(figure, KERNEL or None)}
    for id, figure in FIGURES.items()
}


# {figure: file} of those that claims may ask more seeds of.
ASKING = {
    id: local(name_of(file))
    for id, file in write_asking(FIGURES.values(), claims_of(STATEMENTS)).items()
}


wildcard_constraints:
    own="[a-z0-9_+]+",
    round=r"\d+",
    paper="|".join(sorted({re.escape(id.split("/")[0]) for id in FIGURES})),
    figure="[^/.]+",
    label="[^/]+",
    seed=r"\d+",


def kernel_of(wildcards):
    """What says which kernel a figure's runs have, once it is built."""
    own = OWN[f"{wildcards.paper}/{wildcards.figure}"]
    return f"{RESULTS}/{'+'.join(['kernel', *own])}.json"


def with_own(sources):
    """A command's options for algorithms of one's own."""
    return " ".join(f"--cca-source {quote(path)}" for path in sources)


def rounds_before(wildcards):
    """A look is at the runs of the rounds before it; a table has those of all."""
    return int(getattr(wildcards, "round", ROUNDS + 1)) - 1


def seeds_of(wildcards):
    """The file that says how many seeds each point has by then; none: the figure's trials."""
    id = f"{wildcards.paper}/{wildcards.figure}"
    place = dict(paper=wildcards.paper, figure=wildcards.figure)
    return settled(
        FIGURES[id],
        rounds_before(wildcards) if id in ASKING else 1,
        lambda round: Path(checkpoints.seeds.get(**place, round=round).output[0]),
    )


def summaries_of(wildcards):
    seeds = seeds_of(wildcards)
    runs = runs_of(
        FIGURES[f"{wildcards.paper}/{wildcards.figure}"],
        read_seeds(seeds) if seeds else None,
    )
    return [name_of(run.folder / "summary.json") for run in runs]


POINTS = {(id, p.label): p for id, figure in FIGURES.items() for p in figure.points}


def point_of(wildcards):
    return POINTS[f"{wildcards.paper}/{wildcards.figure}", wildcards.label]


def option(name, function):
    """A command's option whose value the function finds, or nothing."""

    def found(wildcards):
        value = function(wildcards)
        return f"--{name} {quote(str(value))}" if value else ""

    return found


def tables_of(wildcards):
    return [t for id, t in TABLES.items() if id.split("/")[0] == wildcards.paper]


def predictions_of(figures):
    """The models' predictions that claims read at the figures' points."""
    return [name_of(path) for path in prediction_files(claims_of(STATEMENTS), figures)]


def other_engine_of(wildcards):
    """What `make ns3` wrote, where it has."""
    table = paths.results_folder() / SCALE / "ns3" / f"{wildcards.paper}.parquet"
    return [name_of(table)] if table.exists() else []
