"""Reads data/PAPER/claims.yaml: statements with their claims, each checked in itself and against the scenarios.

A claim says where it holds (``at``: points of a figure), what is measured there (``metric``: an expression over the
columns of the figure tables, docs/reference/results.md) and what is expected of it. bbrlab.claims.judge compares it with the runs.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.problems import OTHER_WORDS, fields_at, found, problem_of, unknown_key
from bbrlab.base.yaml_files import Lines, read_yaml
from bbrlab.claims.check import problems_in_itself, problems_of
from bbrlab.claims.code import LAB, code_of
from bbrlab.claims.expand import ONLY_HERE, PLACEHOLDER, expand, with_paper
from bbrlab.claims.schema import INHERITED, Claim, Statement, Wording
from bbrlab.claims.select import full_figures
from bbrlab.results.figures import scenario_files

FILE_NAME = "claims.yaml"
SECOND = "there is another with this id already; choose another name"
Place = tuple[Any, ...]  # where in the file: keys and places in lists, from the outermost


class _File:
    """One claims.yaml, for messages: file, line, statement, claim, field."""

    def __init__(self, path: Path):
        self.path = path
        self.paper = path.absolute().parent.name
        self.content = read_yaml(path)

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.path)

    def error(self, place: Place, problem: str) -> UserError:
        """The UserError for what is wrong at ``place``."""
        names: list[str] = []
        node = self.content
        for part in place[:3:2] if len(place) > 2 and place[1] == "claims" else place[:1]:
            node = node[part] if isinstance(node, list) and isinstance(part, int) else None
            if isinstance(node, dict):
                names.append(str(node.get("id", "statement" if not names else f"claim {part + 1}"))[:80])
                node = node.get("claims")
        head = f"{self.path}:{self.lines.of(place)}"
        return UserError(": ".join([head, *dict.fromkeys(names), problem]))


def load_statements(
    files: Sequence[Path] | None = None, *, known_good: bool = False, figures: Collection[str] | None = None
) -> list[Statement]:
    """All statements with their claims.

    UserError naming file, line, statement, claim and field, for whatever is wrong: a missing source, an unknown figure, column or
    group, a selector that matches no point, or several where one is meant.

    Args:
        files: claims files, each in the folder named as its paper; default: all of data/.
        known_good: do not compare them with the scenarios and published tables, which takes more than half of the time: for
            the jobs of a campaign, which compared those of its figures when it began.
        figures: compare only the claims that speak of one of these (by id); default: all.
    """
    if files is None:
        if not known_good:
            check_published()
        files = claims_files()
    loaded: list[Statement] = []
    statement_ids: set[str] = set()
    claim_ids: set[str] = set()
    for path in files:
        file = _File(path)
        try:
            for place, statement in _statements(file, () if known_good else figures):
                if statement.id in statement_ids:
                    raise file.error((*place, "id"), f"id: {statement.id}: {SECOND}")
                for claim in statement.claims:
                    if claim.id in claim_ids:
                        raise file.error((*place, "claims"), f"id: {claim.id}: {SECOND}")
                    claim_ids.add(claim.id)
                statement_ids.add(statement.id)
                loaded.append(statement)
        except RecursionError:
            raise UserError(f"{path}: is nested too deeply; write it flat") from None
    return loaded


def claims_of(statements: Iterable[Statement]) -> list[Claim]:
    """Every claim of some statements."""
    return [claim for statement in statements for claim in statement.claims]


def claims_files() -> list[Path]:
    """Every paper's claims."""
    return sorted(paths.DATA.glob(f"*/{FILE_NAME}"))


def _statements(file: _File, figures: Collection[str] | None) -> Iterator[tuple[Place, Statement]]:
    """The statements of one file, each with its place.

    Args:
        figures: compare the claims that speak of one of these with the scenarios; None: all.
    """
    papers = sorted({name.split("/")[0] for name in scenario_files()})
    if file.paper not in papers:
        raise UserError(f"{file.path}: its folder must be named as one of scenarios/ ({', '.join(papers)})")
    if not isinstance(file.content, list):
        raise UserError(f"{file.path}: must be a list of statements; see docs/reference/claims.md")
    for index, entry in enumerate(file.content):
        place: Place = (index,)
        if not isinstance(entry, dict):
            raise file.error(place, "a statement is a mapping of keys to values; see docs/reference/claims.md")
        entries = entry.get("claims")
        if not isinstance(entries, list) or not entries:
            raise file.error((*place, "claims"), "claims: a list of at least one claim is needed")
        content = {k: v for k, v in entry.items() if k not in ("claims", "paper")} | {"paper": file.paper}
        if "paper" in entry:
            raise file.error((*place, "paper"), "paper: is the file's folder; remove it here")
        _model(Wording, content, file, place)
        if PLACEHOLDER.search(content["says"]):
            raise file.error(
                (*place, "says"), "says: only a claim has a table's row; a statement speaks of all of them"
            )
        claims: list[Claim] = []
        for number, claim_entry in enumerate(entries):
            claims += _claims(claim_entry, content, file, (*place, "claims", number), len(entries), figures)
        statement = _model(Statement, content | {"claims": claims}, file, place)
        compared = any(_is_of(claim, figures) for claim in claims)
        if compared and statement.cause and statement.cause.kind == "algorithm" and code_of(statement) != LAB:
            raise file.error(
                (*place, "cause"),
                "cause.kind: algorithm: no BBRv2 or BBRv3 is in the runs that its claims read; give another",
            )
        yield place, statement


def _claims(
    entry: Any, statement: dict[str, Any], file: _File, place: Place, siblings: int, figures: Collection[str] | None
) -> Iterator[Claim]:
    """The claims that one entry stands for."""
    if not isinstance(entry, dict):
        raise file.error(place, "a claim is a mapping of keys to values; see docs/reference/claims.md")
    if "id" not in entry and siblings > 1:
        raise file.error(place, "id: is missing (only the one claim of a statement may go without)")
    whole = {k: statement[k] for k in ("id", *INHERITED) if k in statement} | entry
    try:
        expanded = expand(whole, file.paper)
    except UserError as error:
        raise file.error(place, str(error)) from None
    for key in ("paper", "statement", "own"):
        if key in entry:
            raise file.error(
                (*place, key), f"{key}: {'belongs to the statement' if key == 'own' else 'unknown key'}; remove it"
            )
    for content in expanded:
        whole_names = _names_with_paper(content, file.paper)
        claim = _model(Claim, whole_names | {"paper": file.paper, "statement": statement["id"]}, file, place)
        problems = problems_of(claim, full_figures()) if _is_of(claim, figures) else problems_in_itself(claim)
        for field, problem in problems:
            raise file.error((*place, *field), f"{'.'.join(filter(None, field))}: {problem}")
        yield claim


def _is_of(claim: Claim, figures: Collection[str] | None) -> bool:
    """Whether a claim speaks of one of some figures, or of one that there is not; None: of any."""
    if not figures:
        return figures is None
    return any(id in figures or id not in full_figures() for id in claim.figures)


def _names_with_paper(content: dict[str, Any], paper: str) -> dict[str, Any]:
    """The claim with PAPER/ before each figure and table that is named without."""
    at = content.get("at")
    if not isinstance(at, dict):
        return content
    terms = {"": at} if "figure" in at else at

    def whole(term: Any) -> Any:
        return term | {k: with_paper(term[k], paper) for k in ("figure", "published") if isinstance(term.get(k), str)} if isinstance(term, dict) else term  # fmt: skip

    return content | {"at": {name: whole(term) for name, term in terms.items()}}


Model = TypeVar("Model", bound=BaseModel)
# pydantic puts the kinds of a union into the place of an error.
NOT_FIELDS = ("str", "list[str]", "dict[str,any]", "")


def _model(kind: type[Model], content: dict[str, Any], file: _File, place: Place) -> Model:
    """The content as a model; UserError for the first thing that is wrong with it."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
    field = [p for p in first["loc"] if p not in NOT_FIELDS and not str(p).startswith("[")]
    name = ".".join(str(p) for p in field)
    message = problem_of(first)
    if first["type"] == "extra_forbidden":
        message = unknown_key(str(field[-1]), _keys_at(kind, field[:-1]))
    elif first["type"] not in OTHER_WORDS and first["type"] != "value_error":
        message = f"{message} ({found(first['input'])})"
    raise file.error((*place, *field), f"{name + ': ' if name else ''}{message}")


def _keys_at(kind: type[BaseModel], place: Sequence[Any]) -> list[str]:
    """The keys that a part of a statement or claim may have, as it is written."""
    own = {Claim: ONLY_HERE, Wording: ("claims",)}.get(kind, ()) if not place else ()
    return [key for key in (*fields_at(kind, place), *own) if key not in ("paper", "statement")]


def check_published() -> None:
    """UserError, naming file and line, for a published value without its source."""
    for path in sorted(paths.DATA.glob("*/*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            for row in reader:
                if not (row.get("source") or "").strip():
                    raise UserError(f"{path}:{reader.line_num}: this published value has no source")
