"""A campaign's provenance as an RO-Crate (Provenance Run Crate 0.5: https://w3id.org/ro/wfrun/provenance).

The crate's root is an archive's folder (pack.py): ``source/`` and ``results/`` lie in it. Every guest run is an action of its
own with its point, seed, times and result; the other stages have an action for each figure, prediction or page.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from rocrate.model import ComputationalWorkflow, ContextEntity, SoftwareApplication
from rocrate.rocrate import ROCrate

from bbrlab.publish.citation import name_of

METADATA = "ro-crate-metadata.json"
# The newest RO-Crate that the profiles of workflow runs are made for.
RO_CRATE = "1.1"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
BIOSCHEMAS = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
COMPLETED = "http://schema.org/CompletedActionStatus"
FORMATS = {
    ".parquet": "application/vnd.apache.parquet", ".json": "application/json", ".html": "text/html", ".csv": "text/csv", ".yaml": "application/yaml",
    ".md": "text/markdown", ".ipynb": "application/x-ipynb+json",
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A rule of the workflow.

    Attributes:
        rule: its name in rules/.
        command: of ``bbrlab``, which it calls.
        what: in a sentence.
    """

    rule: str
    command: str
    what: str


STEPS = (
    Step("kernel", "kernel build", "Builds the guest kernel from its source package, options and patches."),
    Step("run", "point", "Runs one point with one seed in a guest in virtual time."),
    Step("collect", "collect", "Makes one table of a figure's runs."),
    Step("points", "points", "Makes one table of every point of every figure."),
    Step("fluid_prediction", "predict", "Computes what the fluid model says of a point."),
    Step("burst_prediction", "predict", "Computes what the burst model says of a point."),
    Step("claims", "judge", "Judges what the papers say by the tables."),
    Step("scorecard", "report", "Counts verdicts."),
    Step("notebook", "render", "Executes a notebook and writes it as a page."),
)

STEP = {step.rule: step for step in STEPS}
PLAIN = "text/plain"


@dataclass(frozen=True)
class GuestRun:
    """One run of a guest.

    Attributes:
        place: its folder in the archive, without a slash at its end.
        point: the point's file in the archive.
        kernel: the file in the archive that says which kernel it had.
        seed: its seed.
        finished: when it ended (UTC, "2026-11-23T04:12:29Z"), and how many seconds it took.
        commit: of the code that ran it.
        figure: paper/name.
    """

    place: str
    point: str
    kernel: str
    seed: int
    finished: str
    took_s: float
    commit: str
    figure: str


@dataclass(frozen=True)
class Campaign:
    """What a crate tells of.

    Attributes:
        citation: content of CITATION.cff.
        version, commit: of the package.
        published: the commit's date.
        scale: of the campaign.
        snakemake: its version.
        runs: all of it.
        names: every file in the archive.
    """

    citation: Mapping[str, Any]
    version: str
    commit: str
    published: str
    scale: str
    snakemake: str
    runs: Sequence[GuestRun]
    names: Sequence[str]


class _Crate:
    """The crate while it is made: entities by their place, actions by their rule."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.crate = ROCrate(version=RO_CRATE)
        self.actions: dict[str, list[ContextEntity]] = {step.rule: [] for step in STEPS}
        self.tools: dict[str, SoftwareApplication] = {}
        self.known: dict[str, Any] = {}

    def add(self, identifier: str, **properties: Any) -> ContextEntity:
        """A contextual entity; ``type_`` is its type."""
        properties["@type"] = properties.pop("type_")
        return self.crate.add(ContextEntity(self.crate, identifier, properties=properties))

    def file(self, place: str, name: str = "", **properties: Any) -> Any:
        """The entity of a file, or of a folder if ``place`` ends with a slash."""
        if place not in self.known:
            if place.endswith("/"):
                made = self.crate.add_dataset(
                    dest_path=place, properties={"name": name or place.rstrip("/"), **properties}
                )
            else:
                told = {
                    "name": name or PurePosixPath(place).name,
                    "encodingFormat": FORMATS.get(PurePosixPath(place).suffix, PLAIN),
                }
                made = self.crate.add_file(dest_path=place, properties=told | properties)
            self.known[place] = made
        return self.known[place]

    def tool(self, rule: str) -> SoftwareApplication:
        """The program that a rule calls."""
        step = STEP[rule]
        if step.command not in self.tools:
            told = {
                "name": f"bbrlab {step.command}",
                "description": step.what,
                "softwareVersion": self.campaign.version,
            }
            made = SoftwareApplication(self.crate, f"#bbrlab-{step.command.replace(' ', '-')}", properties=told)
            self.tools[step.command] = self.crate.add(made)
        return self.tools[step.command]

    def action(
        self, rule: str, subject: str, name: str, objects: Sequence[Any], results: Sequence[Any], **more: Any
    ) -> None:
        """An execution of a rule's tool."""
        properties = {"name": name, "description": STEP[rule].what, "actionStatus": COMPLETED, **more}
        made = self.crate.add_action(self.tool(rule), f"#{quote(f'{rule}/{subject}')}", list(objects), list(results), properties)  # fmt: skip
        self.actions[rule].append(made)


def metadata(campaign: Campaign) -> dict[str, Any]:
    """The content of ro-crate-metadata.json: the same for the same campaign, in the same order."""
    made = _Crate(campaign)
    authors = _root(made)
    workflow = _workflow(made, authors)
    parameters = _parameters(made, workflow)
    _runs(made, parameters)
    _tables(made)
    _execution(made, workflow, parameters)
    content: dict[str, Any] = made.crate.metadata.generate()
    content["@graph"].sort(key=lambda entity: (entity["@id"] != METADATA, entity["@id"] != "./"))
    content["@graph"] = [{key: _single(value) for key, value in entity.items()} for entity in content["@graph"]]
    return content


def _single(value: Any) -> Any:
    """A list of one as that one, which RO-Crate recommends."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _root(made: _Crate) -> list[ContextEntity]:
    """The root: what this is, whose it is, and under which licences."""
    told, root = made.campaign, made.crate.root_dataset
    root["name"] = f"{told.citation['title']}: results at scale {told.scale}"
    root["description"] = (
        f"{' '.join(told.citation['abstract'].split())} This archive: a campaign at scale {told.scale} with "
        f"{len(told.runs)} runs, and the sources at commit {told.commit}."
    )
    root["datePublished"] = told.published
    root["version"] = told.version
    root["keywords"] = ", ".join(told.citation["keywords"])
    authors = [made.add(f"#author-{number}", type_="Organization" if "name" in author else "Person", name=name_of(author))
               for number, author in enumerate(told.citation["authors"], 1)]  # fmt: skip
    root["author"] = authors
    root["license"] = made.file("LICENSE", "Which licence holds for which folder")
    root["conformsTo"] = [
        made.add(id, type_="CreativeWork", name=name, version=version) for id, (name, version) in PROFILES.items()
    ]
    made.file("README.md")["about"] = root
    made.file("MANIFEST.json", "Versions and hashes")
    for name in told.names:
        if name.startswith("LICENSES/"):
            made.file(name, f"Text of the licence {PurePosixPath(name).stem}")
    return authors


def _workflow(made: _Crate, authors: list[ContextEntity]) -> Any:
    """The workflow; its steps follow from what was done (_execution())."""
    told = made.campaign
    workflow = made.crate.add_workflow(
        dest_path="source/Snakefile", main=True, lang="snakemake", lang_version=told.snakemake, cls=ComputationalWorkflow,
        properties={"name": "bbrlab's campaign", "version": told.version, "author": authors, "encodingFormat": PLAIN, "conformsTo": {"@id": BIOSCHEMAS},
                    "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]},
    )  # fmt: skip
    workflow["license"] = made.crate.dereference("LICENSE")
    made.known["source/Snakefile"] = workflow
    return workflow


def _parameters(made: _Crate, workflow: Any) -> dict[str, Any]:
    """{name: the value that an input or output had}, each with the formal parameter that it is an example of."""
    told = made.campaign
    values = {
        "scale": made.add("#scale", type_="PropertyValue", name="scale", value=told.scale),
        "config": made.file("source/config/config.yaml", "What the scales are"),
        "scenarios": made.file("source/scenarios/", "The experiments", description="One YAML file for each figure of a paper."),
        "published": made.file("source/data/", "Published values and claims"),
        "results": made.file(f"results/{told.scale}/", "Tables, verdicts and pages",
                             description="One table for each figure, verdicts on claims and statements, a page for each paper."),
        "runs": made.file("results/runs/", "Runs", description="A folder for each run: summary.json, samples.parquet, manifest.json."),
    }  # fmt: skip
    kinds = {
        "scale": "Text",
        "config": "File",
        **dict.fromkeys(("scenarios", "published", "results", "runs"), "Dataset"),
    }
    formal = {name: _formal(made, name, kinds[name], [value]) for name, value in values.items()}
    workflow["input"] = [formal[name] for name in ("scale", "config", "scenarios", "published")]
    workflow["output"] = [formal[name] for name in ("results", "runs")]
    return values


def _formal(made: _Crate, name: str, kind: str, values: Sequence[Any]) -> ContextEntity:
    parameter: ContextEntity = made.crate.add_formal_parameter(name, kind, identifier=f"#parameter-{name}")
    parameter["workExample"] = list(values)
    for value in values:
        value["exampleOfWork"] = parameter
    return parameter


def _runs(made: _Crate, parameters: Mapping[str, Any]) -> None:
    """The kernel, and an action for every run of a guest."""
    told = made.campaign
    seeds = {seed: made.add(f"#seed-{seed}", type_="PropertyValue", name="seed", value=seed)
             for seed in sorted({run.seed for run in told.runs})}  # fmt: skip
    points = {run.point: made.file(run.point, f"{PurePosixPath(run.point).stem} of {run.figure}") for run in told.runs}
    made.tool("run")["input"] = [
        _formal(made, "seed", "Integer", list(seeds.values())),
        _formal(made, "point", "File", list(points.values())),
    ]
    kernels = {place: made.file(place, "The guest kernel: source, compiler, build ID") for place in sorted({run.kernel for run in told.runs})}  # fmt: skip
    recipes = [made.file("source/config/kernels.yaml", "Sources, options and patches of the kernels"), made.file("source/kernels/", "Patches and code of the guest kernels (GPL-2.0-only)")]  # fmt: skip
    for place, entity in kernels.items():
        made.action("kernel", PurePosixPath(place).stem, f"Kernel of {place}", recipes, [entity])
    for run in told.runs:
        subject = run.place.removeprefix("results/runs/")
        start, end = _times(run)
        result = made.file(f"{run.place}/", subject)
        made.action(
            "run", subject, f"Run {subject}", [points[run.point], seeds[run.seed], kernels[run.kernel]], [result],
            description=f"One guest in virtual time, by the code of commit {run.commit}.", startTime=_iso(start), endTime=_iso(end),
        )  # fmt: skip


def _times(run: GuestRun) -> tuple[datetime.datetime, datetime.datetime]:
    end = datetime.datetime.fromisoformat(run.finished.replace("Z", "+00:00"))
    return end - datetime.timedelta(seconds=round(run.took_s)), end


def _iso(moment: datetime.datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _tables(made: _Crate) -> None:
    """Actions of the other stages, by what they wrote."""
    told = made.campaign
    at_scale, there = f"results/{told.scale}", set(told.names)
    of_figure: dict[str, list[GuestRun]] = {}
    for run in told.runs:
        of_figure.setdefault(run.figure, []).append(run)
    tables = []
    for figure, runs in of_figure.items():
        table = made.file(f"{at_scale}/{figure}.parquet", f"Table of {figure}")
        tables.append(table)
        made.action("collect", figure, f"Table of {figure}", [made.known[f"{run.place}/"] for run in runs], [table])
    if f"{at_scale}/points.parquet" in there:
        made.action("points", "all", "Table of all points", tables, [made.file(f"{at_scale}/points.parquet")])
    predictions = []
    for name in _matching(told.names, r"results/models/.+\.parquet"):
        place = PurePosixPath(name)
        point = f"results/points/{place.parent.relative_to('results/models')}.yaml"
        if point in there:
            predictions.append(made.file(name, f"{place.stem} model at {place.parent.name}"))
            rule = "burst_prediction" if place.stem == "burst" else "fluid_prediction"
            made.action(rule, str(place.relative_to("results/models").with_suffix("")), f"Prediction {name}",
                        [made.file(point)], [predictions[-1]])  # fmt: skip
    verdicts = [made.file(f"{at_scale}/{part}.parquet") for part in ("claims", "statements")]
    made.action("claims", "all", "Verdicts", [*tables, *predictions, made.known["source/data/"]], verdicts)
    if f"{at_scale}/scorecard.json" in there:
        made.action("scorecard", "all", "Scorecard", [*tables, verdicts[0]], [made.file(f"{at_scale}/scorecard.json")])
    for name in _matching(told.names, rf"{re.escape(at_scale)}/[^/]+\.html"):
        page, notebook = (
            made.file(name, f"Page {PurePosixPath(name).stem}"),
            f"source/notebooks/{PurePosixPath(name).stem}.ipynb",
        )
        objects = [*([made.file(notebook)] if notebook in there else []), *tables, verdicts[0]]
        made.action("notebook", PurePosixPath(name).stem, f"Page {PurePosixPath(name).stem}", objects, [page])


def _matching(names: Iterable[str], pattern: str) -> list[str]:
    return [name for name in names if re.fullmatch(pattern, name)]


def _execution(made: _Crate, workflow: Any, parameters: Mapping[str, Any]) -> None:
    """The steps of which there are actions, the campaign as a whole, and the engine that ran it."""
    told = made.campaign
    done = [step for step in STEPS if made.actions[step.rule]]
    workflow["step"] = [
        made.add(
            f"source/Snakefile#{step.rule}", type_="HowToStep", name=step.rule, description=step.what, position=str(position),
            workExample=made.tool(step.rule),
        )
        for position, step in enumerate(done, 1)
    ]  # fmt: skip
    workflow["hasPart"] = [made.tool(rule) for rule in {step.command: step.rule for step in done}.values()]
    spans = [_times(run) for run in told.runs]
    between = {"startTime": _iso(min(start for start, _ in spans)), "endTime": _iso(max(end for _, end in spans))}
    campaign = made.crate.add_action(
        workflow, "#campaign", [parameters[name] for name in ("scale", "config", "scenarios", "published")],
        [parameters[name] for name in ("results", "runs")],
        {"name": f"Campaign at scale {told.scale}", "actionStatus": COMPLETED, **between,
         "description": "From the begin of its first run to the end of its last; runs may come from several campaigns in one folder of results."},
    )  # fmt: skip
    engine = made.crate.add(SoftwareApplication(made.crate, "https://snakemake.readthedocs.io", properties={
        "name": "Snakemake", "url": {"@id": "https://snakemake.readthedocs.io"}, "softwareVersion": told.snakemake}))  # fmt: skip
    controls = [
        made.add(f"#step-{rule}", type_="ControlAction", name=f"Jobs of rule {rule}",
                 instrument=made.crate.dereference(f"source/Snakefile#{rule}"), object=actions)
        for rule, actions in made.actions.items() if actions
    ]  # fmt: skip
    organize = made.add("#snakemake", type_="OrganizeAction", name="Snakemake", instrument=engine, object=controls, result=campaign, **between)  # fmt: skip
    made.crate.root_dataset["mentions"] = [
        campaign,
        organize,
        *(a for actions in made.actions.values() for a in actions),
    ]
