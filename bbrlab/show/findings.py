"""What is shown of results: figures with their tables, and what came of the statements. The terminal, notebooks and the site read it here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.claims.load import load_statements
from bbrlab.claims.schema import Statement
from bbrlab.results.best_scale import (
    best_verdicts,
    figures_at_best_scale,
    scale_words,
    table_file,
)
from bbrlab.results.config import FULL, command_for, command_in, in_checkout
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.judged import CLAIMS
from bbrlab.results.shipped import ShownResults, figures_without_noise, older_versions, own_results, results_to_show
from bbrlab.results.tables import read_figure
from bbrlab.results.verdicts import NOT_RUN
from bbrlab.show.verdict_counts import step

Row = Mapping[str, Any]
_CLAIMS_OF = ("reproduced", "not_reproduced", "inconclusive")  # of a statement: how many of its claims


@dataclass(frozen=True)
class Totals:
    """Runs of some figures: how many, how many of them failed a self-check, hours of testbed time and of cores, kernels."""

    runs: int
    failed: int
    virtual_h: float
    core_h: float
    kernels: list[str]


@dataclass(frozen=True)
class Findings:
    """All that is shown of results: one's own of a scale, or those that ship, each figure at the largest scale at which it does."""

    shown: ShownResults  # whose results, and of which scale
    figures: Mapping[str, Figure]  # {id: figure}, of those with a table
    tables: Mapping[str, pd.DataFrame]  # {id: tables.figure_table()}
    scales: Mapping[str, str]  # {id of a figure: the scale that it is shown at}
    # Rows of statements.parquet with their ``scale``, of those that were judged (best_scale.best_statements())
    statements: pd.DataFrame
    claims: pd.DataFrame  # rows of claims.parquet with their ``scale`` (best_scale.best_claims())
    # {id of a figure: which version its runs are of}, of those that ship and are not of the newest of their scale
    older: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def defined(self) -> tuple[Statement, ...]:
        """Every statement of data/, run or not, in the files' order."""
        return tuple(load_statements(known_good=True))

    @cached_property
    def papers(self) -> list[str]:
        """The papers with statements, in the files' order."""
        return list(dict.fromkeys(s.paper for s in self.defined))

    @cached_property
    def every(self) -> pd.DataFrame:
        """A row for each defined statement, as verdict_counts.py counts them: those that were not judged are not run."""
        names = ["id", "paper", "own", "exactness"]
        table = pd.DataFrame([[getattr(s, name) for name in names] for s in self.defined], columns=names)
        of_results = self.statements[["id", "verdict", "code", "cause", "chosen_after", *_CLAIMS_OF]]
        joined = table.merge(of_results, on="id", how="left")
        whole = joined.fillna(
            {"verdict": NOT_RUN, "code": "", "cause": "", "chosen_after": "", **dict.fromkeys(_CLAIMS_OF, 0)}
        )
        judged = whole[list(_CLAIMS_OF)].sum(axis=1)
        return whole.assign(step=list(map(step, whole["verdict"], whole["reproduced"], judged)))

    @cached_property
    def without_noise(self) -> dict[str, set[str]]:
        """{scale: the figures that ship with runs of a version without noise of hosts}; of one's own results none."""
        which = self.shown
        return {scale: figures_without_noise(which.results, scale) for scale in which.scales} if which.shipped else {}

    @cached_property
    def step_of(self) -> dict[str, str]:
        """{id of a statement: one of verdict_counts.STEPS}."""
        return dict(zip(self.every["id"], self.every["step"], strict=True))

    @cached_property
    def of_statement(self) -> dict[str, Row]:
        """{id: its row of ``statements``}."""
        return _by_id(self.statements)

    @cached_property
    def of_claim(self) -> dict[str, Row]:
        """{id: its row of ``claims``}."""
        return _by_id(self.claims)

    @cached_property
    def _of_scale(self) -> frozenset[str]:
        return frozenset(f.id for f in figures_at(self.shown.scale, []))

    def command(self, figure: str) -> str:
        """What runs a figure (PAPER/FIGURE) and no other: at the scale that it is shown at, or, where that leaves the figure out, whole."""
        return command_for(figure, self.scales.get(figure, self.shown.scale if figure in self._of_scale else FULL))

    def scale_words(self, figures: Iterable[str]) -> str:
        """The scales of some figures (scale_words()); of none that of the results."""
        return scale_words({id: self.scales[id] for id in figures}) or f"**{self.shown.scale}**"

    def totals(self, figures: Iterable[str]) -> Totals:
        """Of the runs of some figures."""
        tables = [self.tables[id] for id in figures]
        runs = [t.drop_duplicates(["point", "seed"])[["ok", "virtual_s", "wall_s", "kernel"]] for t in tables]
        every = pd.concat(runs) if runs else pd.DataFrame(columns=["ok", "virtual_s", "wall_s", "kernel"])
        return Totals(
            len(every),
            int((~every["ok"].astype(bool)).sum()),
            float(every["virtual_s"].sum()) / 3600,
            float(every["wall_s"].sum()) / 3600,
            list(dict.fromkeys(every["kernel"])),
        )


def load_findings(scale: str, paper: str | None = None, results: Path | None = None) -> Findings:
    """What there is to show of a scale: one's own results, else those that ship.

    UserError if there is nothing, or naming the file and column that is not as it must be.

    Args:
        paper: only what is on its figures, whoever made the statements.
        results: a folder to take it from and no other.
    """
    which = own_results(results, scale, paper) if results else shown_results(scale, paper)
    figures_here = figures_at_best_scale(which, paper)
    if not figures_here:
        raise UserError(
            f"{which.results / which.scale}: nothing of {paper or 'any paper'} has been run at this scale, nor ships; run: "
            f"{in_checkout(command_in(which.results, paper or 'all', which.scale))}"
        )
    scales = {id: at for id, (at, _) in figures_here.items()}
    tables = {id: read_figure(table_file(which, at, id)) for id, at in scales.items()}
    statements, claims = best_verdicts(which, paper)
    return Findings(
        which,
        {id: figure for id, (_, figure) in figures_here.items()},
        tables,
        scales,
        statements,
        claims,
        _older(which, scales),
    )


def shown_results(scale: str, paper: str | None = None) -> ShownResults:
    """Whose results are shown: one's own as a campaign, of a paper as all of it was judged, if no table changed since; else those that
    ship."""
    return results_to_show(scale, paper, needs=None if paper else CLAIMS)


def _older(which: ShownResults, scales: Mapping[str, str]) -> dict[str, str]:
    """Findings.older."""
    if not which.shipped:
        return {}
    versions: dict[str, list[str]] = {}
    for scale in which.scales:
        here = [id for id, at in scales.items() if at == scale]
        for words, ids in older_versions(which.results, scale, here).items():
            for id in ids:
                versions.setdefault(id, []).append(words)
    return {id: "; ".join(words) for id, words in versions.items()}


def _by_id(table: pd.DataFrame) -> dict[str, Row]:
    return {str(row["id"]): {str(k): v for k, v in row.items()} for row in table.to_dict(orient="records")}
