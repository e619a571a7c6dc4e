"""Pages of what was run and no statement reads: one for each study, and the list of them."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import paths
from bbrlab.claims.load import claims_of
from bbrlab.results.figures import Figure, scenario_files
from bbrlab.show.findings import Findings
from bbrlab_apps.site.documents import title_of

QUESTIONS = "questions"  # no paper: where papers contradict each other
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9`\"(])")
_SHORT = re.compile(r"\b(Figs?|al|e\.g|i\.e|vs|Mr|sec|No)\.$")  # what a sentence does not end with


_SWEEP = re.compile(r"bbrlab sweep [\w/.-]+(?: --[\w-]+ [\w.-]*\w)*")


@dataclass(frozen=True)
class Study:
    """What a scenario file is about, for people."""

    name: str  # of its page, or of the file
    title: str
    question: str  # the first sentence of the file's comment; empty without one
    document: Path | None  # a page of the documentation that the comment names; None: it names none
    command: str


def studies_of(findings: Findings) -> list[Figure]:
    """The figures that are shown and stand on no paper's page: no statement reads them, and they are of no paper with statements."""
    read = {figure for claim in claims_of(findings.defined) for figure in claim.figures}
    papers = {*findings.papers} - {QUESTIONS}
    return [f for id, f in findings.figures.items() if id not in read and id.split("/")[0] not in papers]


def study_of(findings: Findings, figure: Figure) -> Study:
    """What a figure is about, by its scenario file."""
    title = figure.scenario.figure or figure.scenario.name
    question, document = _comment(scenario_files()[figure.id])
    paper, name = figure.id.split("/")
    page = name if paper == QUESTIONS else f"{paper}-{name}"
    return Study(page, title[:1].upper() + title[1:], question, document, findings.command(figure.id))


def sweeps() -> list[Study]:
    """The scenario files that belong to no paper and no campaign, and whose outcome is a page of the documentation."""
    found = []
    for path in sorted(paths.SCENARIOS.glob("*.yaml")):
        question, document = _comment(path)
        command = _SWEEP.search(_comment_text(path))
        if document is not None and command is not None:
            found.append(Study(path.stem, title_of(document), question, document, command[0]))
    return found


def _comment(file: Path) -> tuple[str, Path | None]:
    """The first sentence of the comment that a scenario file begins with, and the document below docs/ that the comment names."""
    text = _comment_text(file)
    parts = _SENTENCE.split(text)
    while len(parts) > 1 and _SHORT.search(parts[0]):
        parts[:2] = [f"{parts[0]} {parts[1]}"]
    sentence = re.sub(r"\s*\(docs/[\w/.-]+\)", "", parts[0])
    named = [Path(name) for name in re.findall(r"\bdocs/[\w/-]+\.md", text)]
    return sentence, next((name for name in named if (paths.ROOT / name).is_file()), None)


def _comment_text(file: Path) -> str:
    lines = itertools.takewhile(lambda line: line.startswith("#"), file.read_text(encoding="utf-8").splitlines())
    return " ".join(line.lstrip("# ").strip() for line in lines)
