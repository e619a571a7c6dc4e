"""What an archive is and which runs are in it, as an RO-Crate (Process Run Crate 0.5: https://w3id.org/ro/wfrun/process).

The crate's root is an archive's folder (pack.py). Each guest run is an action with what its own manifest says: its point, seed,
times, kernel and the commit of its code. Tables, verdicts and pages are described as files, without actions: which of them Snakemake
made from what is not recorded by anything that could be read here.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from rocrate.model import ContextEntity, SoftwareApplication
from rocrate.rocrate import ROCrate

from bbrlab_apps.archive.citation import name_of
from bbrlab_apps.shipping.finished_run import FinishedRun

METADATA = "ro-crate-metadata.json"
RO_CRATE = "1.1"  # the newest that the profile is made for
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
COMPLETED = "http://schema.org/CompletedActionStatus"
TEXT = "text/plain"


@dataclass(frozen=True)
class Campaign:
    """What a crate describes."""

    citation: Mapping[str, Any]
    version: str
    commit: str
    published: str
    scale: str
    runs: Sequence[FinishedRun]


def metadata(campaign: Campaign) -> dict[str, Any]:
    """The content of ro-crate-metadata.json: the same for the same campaign, in the same order."""
    crate = ROCrate(version=RO_CRATE)
    _describe_root(crate, campaign)
    _describe_files(crate, campaign.scale)
    crate.root_dataset["mentions"] = _actions(crate, campaign.runs)
    content: dict[str, Any] = crate.metadata.generate()
    content["@graph"].sort(key=lambda entity: (entity["@id"] != METADATA, entity["@id"] != "./"))
    content["@graph"] = [{key: _single(value) for key, value in entity.items()} for entity in content["@graph"]]
    return content


def _single(value: Any) -> Any:
    """A list of one as that one, which RO-Crate recommends."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _entity(crate: ROCrate, identifier: str, type_: str, **properties: Any) -> ContextEntity:
    return crate.add(ContextEntity(crate, identifier, properties={"@type": type_, **properties}))


def _file(crate: ROCrate, place: str, name: str, encoding: str) -> Any:
    return crate.add_file(dest_path=place, properties={"name": name, "encodingFormat": encoding})


def _describe_root(crate: ROCrate, campaign: Campaign) -> None:
    """The root: what this is, whose it is, and under which licences."""
    citation, root = campaign.citation, crate.root_dataset
    root["name"] = f"{citation['title']}: results at scale {campaign.scale}"
    root["description"] = (
        f"{' '.join(citation['abstract'].split())} This archive: a campaign at scale {campaign.scale} with "
        f"{len(campaign.runs)} runs, and the sources at commit {campaign.commit}."
    )
    root["datePublished"] = campaign.published
    root["version"] = campaign.version
    root["keywords"] = ", ".join(citation["keywords"])
    root["author"] = [
        _entity(crate, f"#author-{number}", "Organization" if "name" in author else "Person", name=name_of(author))
        for number, author in enumerate(citation["authors"], 1)
    ]
    root["license"] = _file(crate, "LICENSE", "Which licence holds for which folder", TEXT)
    root["conformsTo"] = _entity(crate, PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")


def _describe_files(crate: ROCrate, scale: str) -> None:
    _file(crate, "README.md", "What is in the archive", "text/markdown")["about"] = crate.root_dataset
    _file(crate, "MANIFEST.json", "Versions and hashes", "application/json")
    for place, name, description in (
        ("LICENSES/", "Texts of the licences", "One file for each licence that LICENSE names."),
        (
            "source/",
            "Sources",
            "The package at the archive's commit: scenarios, published values, claims, code, workflow.",
        ),
        (
            f"results/{scale}/",
            "Tables, verdicts and pages",
            "One table for each figure, verdicts on claims and statements, a page for each paper; made of the runs by source/Snakefile.",
        ),
    ):
        crate.add_dataset(dest_path=place, properties={"name": name, "description": description})


def _actions(crate: ROCrate, runs: Sequence[FinishedRun]) -> list[ContextEntity]:
    """An action for each run."""
    seeds = {
        seed: _entity(crate, f"#seed-{seed}", "PropertyValue", name="seed", value=seed)
        for seed in sorted({one.run.seed for one in runs})
    }
    points: dict[str, Any] = {}
    programs: dict[tuple[str, str], SoftwareApplication] = {}
    actions = []
    for one in runs:
        run, wall = one.run, one.manifest["wall"]
        subject = f"{run.figure}/{run.point.label}/seed-{run.seed}"
        point = f"results/points/{run.figure}/{run.point.label}.yaml"
        if point not in points:
            points[point] = _file(crate, point, f"A point of {run.figure}", "application/yaml")
        program = one.commit, one.manifest["kernel"]["key"]
        if program not in programs:
            programs[program] = _program(crate, one)
        end = datetime.datetime.fromisoformat(wall["finished"].replace("Z", "+00:00"))
        start = end - datetime.timedelta(seconds=round(wall["total_s"]))
        result = crate.add_dataset(dest_path=f"results/runs/{subject}/", properties={"name": subject})
        properties = {
            "name": f"Run {subject}",
            "description": "One guest in virtual time; manifest.json in its folder has what it came from.",
            "startTime": start.isoformat(timespec="seconds"),
            "endTime": end.isoformat(timespec="seconds"),
            "actionStatus": COMPLETED,
        }
        objects = [points[point], seeds[run.seed]]
        actions.append(
            crate.add_action(programs[program], f"#{quote(f'run/{subject}')}", objects, [result], properties)
        )
    return actions


def _program(crate: ROCrate, run: FinishedRun) -> SoftwareApplication:
    """The code of a commit with the kernel that it ran."""
    linux = run.manifest["kernel"]
    key = linux["key"]
    kernel = crate.dereference(f"#kernel-{key}") or crate.add(
        SoftwareApplication(
            crate,
            f"#kernel-{key}",
            properties={
                "name": f"Linux {linux['release']}, guest kernel {key}",
                "softwareVersion": linux["release"],
                "identifier": key,
                "description": f"Built from {linux['source']} by {linux['compiler']}.",
            },
        )
    )
    return crate.add(
        SoftwareApplication(
            crate,
            f"#bbrlab-{quote(run.commit)}-{key}",
            properties={
                "name": "bbrlab",
                "softwareVersion": run.commit,
                "softwareRequirements": kernel,
                "description": f"bbrlab at commit {run.commit}, with guest kernel {key}.",
            },
        )
    )
