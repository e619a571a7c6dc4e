"""What the papers claim: data/claims.yaml, checked against the scenarios before anything runs.

A claim says where it holds (``at``: points of a figure), what is measured there (``metric``: an expression over the
columns of the figure tables, docs/results.md) and what is expected of it. bbrlab.claims.judge compares it with the runs.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import ValidationError

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import SafeLoader, read_yaml
from bbrlab.campaign.collect import UNITS
from bbrlab.campaign.figures import Figure
from bbrlab.claims import expressions
from bbrlab.claims.schema import CONDITIONS, PUBLISHED, WARE, Claim
from bbrlab.claims.select import full_figures, select


def _lines(path: Path) -> list[int]:
    """The line of each entry of a YAML list."""
    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=SafeLoader)
    return [node.start_mark.line + 1 for node in root.value] if isinstance(root, yaml.SequenceNode) else []


def load_claims(path: Path | None = None) -> list[Claim]:
    """All claims, each checked in itself and against the scenarios at their full size.

    Raises:
        UserError: naming file, line and claim, for whatever is wrong: a missing source, an unknown figure, column or
            group, a selector that matches no point, or several where one is meant.
    """
    path = path or paths.DATA / "claims.yaml"
    content = read_yaml(path)
    if not isinstance(content, list):
        raise UserError(f"{path}: must be a list of claims; see data/README.md")
    check_published()
    figures = full_figures()
    found: list[Claim] = []
    for entry, line in zip(content, _lines(path), strict=True):
        where = f"{path}:{line}: {entry.get('id', 'claim') if isinstance(entry, dict) else 'claim'}"
        try:
            claim = Claim.model_validate({**entry, "line": line} if isinstance(entry, dict) else entry)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(p) for p in first["loc"])
            raise UserError(
                f"{where}: {field + ': ' if field else ''}{first['msg'].removeprefix('Value error, ')}"
            ) from None
        for other in found:
            if other.id == claim.id:
                raise UserError(f"{where}: line {other.line} has this id already")
        try:
            for problem in _problems(claim, figures):
                raise UserError(problem)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        found.append(claim)
    return found


def check_published() -> None:
    """UserError, naming file and line, for a published value without its source."""
    for path in sorted(paths.DATA.glob("*/*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            for row in reader:
                if not (row.get("source") or "").strip():
                    raise UserError(f"{path}:{reader.line_num}: this published value has no source")


def _problems(claim: Claim, figures: dict[str, Figure]) -> Iterator[str]:
    known: set[str] = set()
    papers = {name.split("/")[0] for name in figures}
    if claim.paper not in papers:
        yield f"paper: there is no '{claim.paper}' (there are {', '.join(sorted(papers))})"
    for name, term in claim.at.items():
        prefix = f"at.{name}: " if name else "at: "
        if term.figure not in figures:
            yield f"{prefix}there is no figure '{term.figure}' (there are {', '.join(figures)})"
        figure = figures[term.figure]
        choices = set().union(*(p.traits for p in figure.points))
        for key in [*term.where, *term.keys]:
            if key not in choices:
                yield f"{prefix}'{key}' tells no points of {term.figure} apart (these do: {', '.join(sorted(choices))})"
        chosen = select(term, figure.points).points
        if not chosen:
            yield f"{prefix}no point of {term.figure} matches {term.where}"
        if not term.along and len(chosen) > 1:
            labels = "; ".join(p.label for p in chosen[:3])
            yield f"{prefix}{len(chosen)} points of {term.figure} match {term.where}, one is meant (or give along): {labels}"
        if term.along and len(chosen) < 2:
            yield f"{prefix}one point of {term.figure} matches {term.where}, but along needs several"
        for point in chosen:
            if term.group >= len(point.scenario.flows):
                yield f"{prefix}group {term.group} does not exist (groups 0 to {len(point.scenario.flows) - 1})"
        if term.published:
            table, column = term.published.split(":")
            file = paths.DATA / f"{table}.csv"
            if not file.exists() or column not in file.read_text(encoding="utf-8").split("\n", 1)[0].split(","):
                yield f"{prefix}published: data/{table}.csv has no column {column}"
        available = {*UNITS, *CONDITIONS, *([PUBLISHED] if term.published else [])}
        if len(figure.scenario.flows) > 1 and term.group == 0:
            available.add(WARE)
        known |= {f"{name}.{column}" if name else column for column in available}
    for column in sorted(claim.columns - known):
        yield f"metric: there is no column '{column}' (docs/results.md lists them; terms: {', '.join(claim.at) or 'none'})"
    if claim.expect.value is not None or claim.expect.range or claim.expect.order:
        # What no function has made one number of would leave open which of its values is meant.
        series = {c for c in claim.columns if claim.at[c.rpartition(".")[0]].along}
        for tree in claim.trees:
            if not expressions.is_scalar(tree, series):
                yield f"metric: '{ast.unparse(tree)}' has a value for each point; take the mean, max or another function of it"
