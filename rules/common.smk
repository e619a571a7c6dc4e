# What the rules share: where things are and which files a figure has. Looked up in the plan, decided in bbrlab.
import re
from shlex import quote

from bbrlab.base import paths
from bbrlab.base.paths import name_of
from bbrlab.campaign.plan import MODELS
from bbrlab.campaign.snakefile import (
    code_file,
    code_of,
    runs_by,
    seed_request_file,
    seeds_file,
)

SCALE = PLAN.scale
KERNEL = PLAN.kernel or ""
FIGURES = PLAN.figures
RESULTS = name_of(paths.results_folder())
AT_SCALE = f"{RESULTS}/{SCALE}"
LOGS = f"{RESULTS}/logs"
# With --default-storage-provider (profiles/kubernetes) results are elsewhere, and these are Snakemake's copies of them. What is
# local() stays out of the storage, and rules that read it run where snakemake does; otherwise the word says nothing.
COPIES = prepare(workflow, RESULTS)
# One small file for each stage stands for all code and data that decides its results.
CODE = {stage: local(name_of(code_file(stage))) for stage in PLAN.code}
POINT = f"{RESULTS}/points/{{paper}}/{{figure}}/{{label}}.yaml"
# Papers with a page: whose figures have a notebook. Others, such as a study of one's own, have runs, tables and claims.
PAPERS = [p for p in PLAN.papers if (paths.ROOT / f"notebooks/{p}.ipynb").exists()]
PAGES = [*PAPERS, "models", "burst", "overview"]
TABLES = {id: f"{AT_SCALE}/{id}.parquet" for id in FIGURES}
PANELS = [id for id, figure in FIGURES.items() if figure.is_panel]
# What the models say of the panels that they can describe.
PREDICTIONS = [file for figure in FIGURES.values() for file in figure.predictions]
# The results that ship stand on the overview, too, and the site has the documentation.
SHIPPED = [local(file) for file in PLAN.shipped]
DOCUMENTS = [local(file) for file in PLAN.documents]


wildcard_constraints:
    own="[a-z0-9_+]+",
    round=r"\d+",
    paper="|".join(map(re.escape, PLAN.papers)),
    figure="[^/.]+",
    label="[^/]+",
    seed=r"\d+",


def figure_of(wildcards):
    return FIGURES[f"{wildcards.paper}/{wildcards.figure}"]


def point_of(wildcards):
    return figure_of(wildcards).points[wildcards.label]


def kernel_of(wildcards):
    """What says which kernel a figure's runs have, once it is built."""
    return f"{RESULTS}/{'+'.join(['kernel', *figure_of(wildcards).own])}.json"


def with_own(sources):
    """A command's options for algorithms of one's own."""
    return " ".join(f"--cca-source {quote(path)}" for path in sources)


def seed_request_of(wildcards):
    """What of the claims decides a figure's seeds."""
    return local(name_of(seed_request_file(figure_of(wildcards).id)))


def seeds_of(wildcards):
    """The file that says how many seeds each point has by then; none: the figure's trials. A look is at the rounds before it."""
    look = getattr(wildcards, "round", None)
    return seeds_file(
        figure_of(wildcards),
        look and int(look),
        lambda round: checkpoints.seeds.get(
            paper=wildcards.paper, figure=wildcards.figure, round=round
        ).output[0],
    )


def summaries_of(wildcards):
    runs = runs_by(PLAN, figure_of(wildcards).id, seeds_of(wildcards))
    return [name_of(run.folder / "summary.json") for run in runs]


def option(name, function):
    """A command's option whose value the function finds, or nothing."""

    def value_of(wildcards):
        value = function(wildcards)
        return f"--{name} {quote(str(value))}" if value else ""

    return value_of


def tables_of(wildcards):
    return [t for id, t in TABLES.items() if id.split("/")[0] == wildcards.paper]


def predictions_of(figures):
    """The models' predictions that claims read at the figures' points."""
    return [file for figure in figures for file in figure.judged_by]


def other_engine_of(wildcards):
    """What `make ns3` wrote, where it has."""
    table = paths.results_folder() / SCALE / "ns3" / f"{wildcards.paper}.parquet"
    return [name_of(table)] if table.exists() else []
