"""How bbrlab is cited, the table of an artifact's statements, the appendix's commands, a crate's structure."""

from __future__ import annotations

import copy
import json
import re
import shlex
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
import typer
from check_jsonschema.builtin_schemas import get_builtin_schema

from bbrlab.base import paths
from bbrlab.campaign.targets import targets_of
from bbrlab.cli.commands import app
from bbrlab.results.figures import figures_at
from bbrlab_apps.archive import citation, crate
from docs._make import artifact_statements as statements
from docs._make import citation as made_citation
from tests.recorded import skip_for_another_guest

APPENDIX = (paths.ROOT / "docs/howto/artifact.md").read_text(encoding="utf-8")
CFF = get_builtin_schema("vendor.citation-file-format")
# What Zenodo documents of a deposit's metadata (https://developers.zenodo.org), as far as software needs it.
TEXT = {"type": "string", "minLength": 3}
ZENODO: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["title", "upload_type", "description", "creators", "access_right", "license"],
    "properties": {
        "title": TEXT,
        "upload_type": {"const": "software"},
        "version": TEXT,
        "description": TEXT,
        "notes": TEXT,
        "creators": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name"],
                "additionalProperties": False,
                "properties": {
                    "name": TEXT,
                    "affiliation": TEXT,
                    "orcid": {"type": "string", "pattern": r"^(\d{4}-){3}\d{3}[\dX]$"},
                },
            },
        },
        "access_right": {"enum": ["open", "embargoed", "restricted", "closed"]},
        "license": {"enum": ["other-open", "mit", "gpl-2.0-only", "cc0-1.0"]},  # of Zenodo's vocabulary, those that can be ours
        "language": {"type": "string", "pattern": "^[a-z]{3}$"},
        "keywords": {"type": "array", "items": TEXT, "uniqueItems": True},
        "references": {"type": "array", "items": TEXT, "uniqueItems": True},
    },
}  # fmt: skip


def test_the_citation_is_valid_and_the_check_can_fail():
    content = citation.read_citation()
    jsonschema.validate(content, CFF, format_checker=jsonschema.FormatChecker())
    for broken in ({"authors": []}, {"cff-version": "9"}, {"licence": "MIT"}, {"doi": "none"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content | broken, CFF)


def test_every_paper_that_is_repeated_is_cited():
    noted = " ".join(r["notes"] for r in citation.read_citation()["references"])
    named = set(re.findall(r"scenarios/(\w+)", noted))
    assert named == {folder.name for folder in paths.SCENARIOS.iterdir() if folder.is_dir()}


def test_there_is_one_version():
    version = citation.project_version()
    text = citation.CITATION.read_text(encoding="utf-8")
    assert made_citation.renewed(text, version) == text, "run: make format"
    assert made_citation.renewed(text, "9.9.9") != text
    with pytest.raises(ValueError, match="one line"):
        made_citation.renewed("title: x", version)
    for name, pattern in (
        ("Dockerfile", r"bbrlab:([\d.]+\d)"),
        ("docs/howto/artifact.md", r"bbrlab (\d+\.\d+\.\d+)"),
    ):
        assert set(re.findall(pattern, (paths.ROOT / name).read_text(encoding="utf-8"))) == {version}, name
    newest = re.search(r"^## (\S+)(.*)", (paths.ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest and newest[1] == version
    assert ("unreleased" in newest[2]) == ("date-released" not in citation.read_citation()), "a date is of a release"


def test_zenodo_says_what_the_citation_says():
    content = json.loads(made_citation.ZENODO.read_text(encoding="utf-8"))
    cited = citation.read_citation()
    assert content == made_citation.zenodo(cited), "run: make format"
    jsonschema.validate(content, ZENODO)
    for key in ("title", "version", "keywords"):
        assert content[key] == cited[key]
    assert " ".join(cited["abstract"].split()) in content["description"]
    assert len(content["references"]) == len(cited["references"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "creators": []}, ZENODO)
    for licence in (paths.ROOT / "LICENSES").iterdir():
        assert licence.stem in content["notes"]


def test_references_read_as_a_bibliography():
    author = [{"family-names": "Doe", "given-names": "Ann"}, {"name": "the group"}]
    whole = {"authors": author, "title": "Why?", "year": 2020, "journal": "Letters", "doi": "10.1/2"}
    assert made_citation.reference_line(whole) == "Doe, Ann; the group (2020). Why? Letters. https://doi.org/10.1/2."
    assert made_citation.reference_line({"authors": author[:1], "title": "Notes"}) == "Doe, Ann. Notes."


def test_the_statements_table_is_up_to_date():
    page = statements.page()
    assert statements.PAGE.read_text(encoding="utf-8") == page, "run: make format"
    known = [f.id for f in figures_at("full", [])]
    targets = targets_of(known)
    commands = set(re.findall(r"`(snakemake --cores 2 --config scale=full -- [^`P]*)`", page))
    assert len(commands) > 40
    for command in commands:
        for word in command.partition(" -- ")[2].split():
            assert len(targets[word]) == 1, f"{command}: {word} is of several figures"


@pytest.mark.parametrize(
    ("minutes", "said"), [(0.05, "10 s"), (0.4, "20 s"), (12.4, "12 min"), (89, "89 min"), (90, "1.5 h")]
)
def test_spans_of_time(minutes, said):
    assert statements.span(minutes) == said


def commands_of(text: str) -> list[list[str]]:
    """The commands of a page's shell blocks, word by word."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line]


def inline_commands(text: str) -> list[list[str]]:
    found = re.findall(r"`((?:bbrlab|make|pytest|snakemake) [^`]*)`", text)
    return [shlex.split(command) for command in found]


def test_the_appendix_names_commands_that_are_there():
    """Words that a later version has no more are found here; that they do what is said was tried by hand."""
    known = targets_of(f.id for f in figures_at("full", [])) | {"all": []}
    rules = set(re.findall(r"^([a-z0-9-]+):", (paths.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    group = typer.main.get_command(app)
    everything = commands_of(APPENDIX) + inline_commands(APPENDIX)
    assert {words[0] for words in everything} >= {"make", "bbrlab", "snakemake", "pytest", "sha256sum"}
    for words in everything:
        match words[0]:
            case "make":
                assert all(word in rules or "=" in word for word in words[1:]), words
            case "snakemake":
                assert all(word in known for word in words[words.index("--") + 1 :]), words
            case "pytest":
                assert all((paths.ROOT / word).is_file() for word in words[1:]), words
            case "bbrlab":
                command = group.commands[words[1]]  # type: ignore[attr-defined]
                options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
                assert {word for word in words if word.startswith("--")} <= options, words
                for word in words:
                    assert not word.endswith(".yaml") or (paths.ROOT / word).is_file(), words


@pytest.mark.guest
def test_the_appendix_first_run_comes_out_as_it_says(tmp_path):
    """The first command, its numbers and its hash."""
    skip_for_another_guest()
    import subprocess
    import sys

    from bbrlab.base.files import sha256

    first = next(words for words in commands_of(APPENDIX) if words[0] == "bbrlab")
    command = [*first[1 : first.index("--out")], "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "bbrlab.cli.main", *command], capture_output=True, text=True, cwd=paths.ROOT
    )
    assert done.returncode == 0, done.stderr
    said = re.search(r"BBRv1 has (0\.\d+) of the link and CUBIC (0\.\d+)", APPENDIX)
    ends = re.search(r"and ends with `([^`]+)`", APPENDIX)
    assert said and ends
    shares = re.findall(r"^1 (?:bbr1|cubic) +[\d.]+ +(0\.\d+)", done.stdout, re.MULTILINE)
    assert shares == [said[1], said[2]]
    assert ends[1] in done.stdout
    hashes = re.findall(r"\b[0-9a-f]{64}\b", APPENDIX)
    assert hashes == [sha256(tmp_path / "run" / "samples.parquet")]


KERNEL = {
    "key": "fcf05c60ad4ac28a",
    "release": "6.12.117",
    "source": "linux-source-6.12 6.12.117-1",
    "compiler": "gcc 12.2.0",
}


def campaign(commits: tuple[str, ...] = ("c" * 40,) * 6) -> crate.Campaign:
    """A made-up campaign of one figure: a run of each commit."""
    made = [
        SimpleNamespace(
            run=SimpleNamespace(figure="tang/fig2", point=SimpleNamespace(label=f"case=a,x={i // 2}"), seed=i % 2 + 1),
            manifest={"kernel": KERNEL, "wall": {"finished": "2026-11-23T04:12:29Z", "total_s": 1.6}}, commit=commit,
        )
        for i, commit in enumerate(commits)
    ]  # fmt: skip
    return crate.Campaign(citation.read_citation(), "0.1.0", "d" * 40, "2026-11-23", "quick", made)


def entities_of(content: dict) -> dict[str, dict]:
    found = {entity["@id"]: entity for entity in content["@graph"]}
    assert len(found) == len(content["@graph"])
    return found


def test_a_crate_hangs_together():
    content = crate.metadata(campaign())
    assert content == crate.metadata(campaign()), "the same campaign, the same crate"
    entities = entities_of(content)
    assert list(entities)[:2] == ["ro-crate-metadata.json", "./"]
    for entity in content["@graph"]:
        for value in entity.values():
            for one in value if isinstance(value, list) else [value]:
                known = entities.keys() | {"https://w3id.org/ro/crate/1.1"}
                assert not isinstance(one, dict) or one["@id"] in known, (entity["@id"], one)
    assert entities["./"]["conformsTo"]["@id"] == crate.PROFILE


def test_a_crate_says_of_runs_what_their_manifests_say_and_of_nothing_else():
    entities = entities_of(crate.metadata(campaign(("c" * 40,) * 5 + ("e" * 40,))))
    actions = {id: e for id, e in entities.items() if "Action" in str(e["@type"])}
    assert {m["@id"] for m in entities["./"]["mentions"]} == set(actions) and len(actions) == 6
    first = actions["#run/tang/fig2/case%3Da%2Cx%3D0/seed-1"]
    assert (first["startTime"], first["endTime"]) == ("2026-11-23T04:12:27+00:00", "2026-11-23T04:12:29+00:00")
    assert [unquote(o["@id"]) for o in first["object"]] == ["results/points/tang/fig2/case=a,x=0.yaml", "#seed-1"]
    assert unquote(first["result"]["@id"]) == "results/runs/tang/fig2/case=a,x=0/seed-1/"
    by = [entities[action["instrument"]["@id"]] for action in actions.values()]
    assert [program["softwareVersion"] for program in by] == ["c" * 40] * 5 + ["e" * 40]
    assert {program["softwareRequirements"]["@id"] for program in by} == {"#kernel-fcf05c60ad4ac28a"}
    assert KERNEL["source"] in entities["#kernel-fcf05c60ad4ac28a"]["description"]
    assert not [e for e in entities.values() if "snakemake" in str(e).lower()]


def test_authors_may_be_people():
    changed = copy.deepcopy(citation.read_citation())
    changed["authors"].append({"family-names": "Doe", "given-names": "Ann"})
    told = campaign()
    content = crate.metadata(crate.Campaign(**{**vars(told), "citation": changed}))
    kinds = {e["name"]: e["@type"] for e in content["@graph"] if str(e["@id"]).startswith("#author")}
    assert kinds == {"the bbrlab authors": "Organization", "Doe, Ann": "Person"}
