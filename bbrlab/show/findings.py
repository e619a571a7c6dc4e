"""What the papers' notebooks share: their figures and tables, what came of their statements, their runs' samples and
self-checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.claims.judge import OWN, SECOND_HAND, apart
from bbrlab.results.best_scale import best_verdicts, figures_at_best_scale, in_scales, stand_among, table_file, whose
from bbrlab.results.config import command_for
from bbrlab.results.figures import Figure, Run, runs_of
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.schema import RUN_AGAIN, read_with
from bbrlab.results.shipped import CHECKS, Shown, shown
from bbrlab.results.tables import read_figure
from bbrlab.results.verdicts import FINAL, NOT_REPRODUCED, REPRODUCED, STATEMENT_VERDICTS
from bbrlab.run.output import SAMPLES
from bbrlab.scenario.point import Point
from bbrlab.show.statement_table import statement_table


@dataclass(frozen=True)
class Page:
    """One paper at one scale; of results that ship, each figure at the largest scale at which it ships.

    Attributes:
        shown: whose results, and of which scale.
        paper: which.
        figures: {name: figure}, of those that have been run.
        tables: {name: collect.figure_table()}.
        scales: {name of a figure: its scale}.
    """

    shown: Shown
    paper: str
    figures: dict[str, Figure]
    tables: dict[str, pd.DataFrame]
    scales: dict[str, str]

    @property
    def scale(self) -> str:
        """What was asked for, or what ships instead."""
        return self.shown.scale

    @property
    def results(self) -> Path:
        """The folder of results."""
        return self.shown.results

    @property
    def shipped(self) -> bool:
        """Whether these are results that ship, which have no samples."""
        return self.shown.shipped

    @cached_property
    def _judged(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        return best_verdicts(self.shown, self.paper)

    @property
    def statements(self) -> pd.DataFrame:
        """The statements on this paper's figures, whoever made them (known.best_statements())."""
        return self._judged[0]

    @property
    def verdicts(self) -> pd.DataFrame:
        """Their claims (known.best_claims())."""
        return self._judged[1]

    def glance(self) -> str:
        """What was run, in a sentence, and how its statements came out (Markdown)."""
        rows = [t.groupby(["point", "seed"])[["ok", "virtual_s", "wall_s"]].first() for t in self.tables.values()]
        runs = pd.concat(rows)
        kernel = ", ".join(dict.fromkeys(k for t in self.tables.values() for k in t["kernel"].unique()))
        failed = int((~runs["ok"]).sum())
        took = "" if self.shipped else f" in {runs['wall_s'].sum() / 60:.0f} core minutes"
        words = whose(self.shown, self.paper)
        which = f"{words}\n\n" if words else ""
        return (
            f"{which}Scale {in_scales(self.scales)}, kernel {kernel}: {len(runs)} runs, {runs['virtual_s'].sum() / 3600:.1f} hours of testbed "
            f"time{took}; {failed or 'none'} of them failed its self-checks.\n\n"
            f"Statements on these figures, whoever made them: {statement_words(self.statements)}. {claim_words(self.verdicts, stand_among(self.shown, self.paper))}"
        )

    def claims(self, figure: str | None = None) -> Any:
        """The statements with their claims as a table, of one figure or of all."""
        claims = self.verdicts
        if figure is not None:
            of_figure = claims["figures"].str.split(", ").map(lambda names: f"{self.paper}/{figure}" in names)
            claims = claims[claims["statement"].isin(claims["statement"][of_figure])]
        return verdict_table(self.statements[self.statements["id"].isin(claims["statement"])], claims)

    def findings(self) -> str:
        """What investigations of statements that do not reproduce found, each with the command that shows it (Markdown)."""
        return findings_text(self.statements, self.verdicts) or "None of the claims that have a finding missed."

    def runs(self, figure: str) -> list[Run]:
        """Every run of a figure: the seeds that its table has of each point."""
        seeds = {str(point): int(n) for point, n in self.tables[figure].groupby("point")["seed"].nunique().items()}
        return runs_of(self.figures[figure], seeds, self.results)

    def run(self, figure: str, seed: int = 1, **values: Any) -> Run:
        """The run of one point, chosen by its traits ("." written as "__"). UserError if there is not exactly one."""
        wanted = {k.replace("__", "."): v for k, v in values.items()}
        found = [
            r for r in self.runs(figure) if r.seed == seed and all(_same(r.point, k, v) for k, v in wanted.items())
        ]
        if len(found) != 1:
            raise UserError(f"{self.paper}/{figure}: {len(found)} points have {wanted}, one is needed")
        return found[0]

    def samples(self, figure: str, columns: list[str], seed: int = 1, **values: Any) -> pd.DataFrame:
        """Columns of a run's samples.parquet (docs/reference/results.md). UserError for results that ship."""
        if self.shipped:
            raise UserError(
                f"{self.paper}/{figure}: samples do not ship; run: {command_for(f'{self.paper}/{figure}', self.scales.get(figure, self.scale))}"
            )
        path = self.run(figure, seed, **values).folder / SAMPLES
        return read_with(path, columns, columns, RUN_AGAIN)

    def checks(self) -> pd.DataFrame:
        """Every self-check of every run: how many passed, failed, could not be made; lowest and highest measurement."""
        found = self._shipped_checks() if self.shipped else self._checks_of_runs()
        ok = found["ok"].astype("boolean")
        states = {"passed": ok.fillna(False), "failed": (~ok).fillna(False), "not checked": ok.isna()}
        grouped = found.assign(**states).astype({"measured": float}).groupby(["figure", "check"])
        counts = grouped[list(states)].sum()
        return counts.assign(lowest=grouped["measured"].min(), highest=grouped["measured"].max())

    def _checks_of_runs(self) -> pd.DataFrame:
        rows = []
        for name in self.figures:
            for run in self.runs(name):
                summary = RunFolder(run.folder).summary
                rows += [
                    {"figure": name, "check": c["name"], "measured": c["measured"], "ok": c["ok"]}
                    for c in summary["checks"]
                ]
        return pd.DataFrame(rows)

    def _shipped_checks(self) -> pd.DataFrame:
        parts = []
        for scale in dict.fromkeys(self.scales.values()):
            table = read_with(self.results / scale / CHECKS, ("figure", "check", "measured", "ok"))
            here = [f"{self.paper}/{name}" for name, of in self.scales.items() if of == scale]
            parts.append(table[table["figure"].isin(here)])
        own = pd.concat(parts, ignore_index=True)
        return own.assign(figure=own["figure"].str.split("/").str[1])


def _same(point: Point, key: str, value: Any) -> bool:
    return bool(point.traits.get(key) == value)


def load_page(scale: str, paper: str, results: Path | None = None) -> Page:
    """A paper's page from results/SCALE/PAPER, or, where there is nothing of it, from what ships.

    Args:
        results: a folder to take it from and no other; default: as shown() says.

    Raises:
        UserError: if nothing of it has been run, nor ships.
    """
    which = Shown(results, scale, False, "") if results else shown(scale, paper)
    known = {id.split("/")[1]: at for id, at in figures_at_best_scale(which, paper).items()}
    if not known:
        raise UserError(
            f"{which.results / which.scale}: nothing of {paper} has been run at this scale; run: {command_for(paper, which.scale)}"
        )
    return Page(
        which,
        paper,
        {name: figure for name, (_, figure) in known.items()},
        {name: read_figure(table_file(which, at, figure.id)) for name, (at, figure) in known.items()},
        {name: at for name, (at, _) in known.items()},
    )


def statement_words(statements: pd.DataFrame) -> str:
    """How many statements of papers came out how, and behind them those that are counted apart (Markdown)."""
    where = apart(statements)
    found = statements["verdict"][where == ""].value_counts()
    words = ", ".join(f"**{found.get(v, 0)}** {v}" for v in STATEMENT_VERDICTS)
    for name in (SECOND_HAND, OWN):
        mine = statements["verdict"][where == name].value_counts()
        words += f" (and {name}: {', '.join(f'{n} {v}' for v, n in mine.items())})" if len(mine) else ""
    return words


def claim_words(claims: pd.DataFrame, among: str = "of their scale") -> str:
    """How many claims have a verdict, which, and how many of these stand (Markdown).

    Args:
        among: among which (known.stand_among()).
    """
    found = claims["verdict"].value_counts()
    best_verdicts = int(sum(found.get(v, 0) for v in FINAL))
    return (
        f"Of the {len(claims)} claims that test them {best_verdicts} are best_verdicts: {found.get(REPRODUCED, 0)} reproduced, "
        f"{found.get(NOT_REPRODUCED, 0)} not; {int(claims['stands'].fillna(False).sum())} of these verdicts stand when all "
        f"{among} are best_verdicts together. Behind them are {claims['measurement'].replace('', pd.NA).nunique()} measurements: several claims may be of one."
    )


def findings_text(statements: pd.DataFrame, claims: pd.DataFrame) -> str:
    """The findings of claims that missed, finally or so far, grouped by finding (Markdown); empty if there are none."""
    missed = claims[
        (claims["finding"] != "")
        & ~claims["verdict"].isin([REPRODUCED])
        & ~claims["interim"].isin([REPRODUCED])
        & claims["mean"].notna()
    ]
    own = statements.set_index("id")["finding"]
    # A finding of the statement is told of the statement, not of each of its claims.
    told_of = [s if own.get(s, "") == f else c for s, c, f in missed[["statement", "id", "finding"]].to_numpy()]
    lines = []
    for (finding, shows), of in missed.assign(told_of=told_of).groupby(["finding", "shows"], sort=False)["told_of"]:
        command = f" Shown by `{shows}`." if shows else ""
        lines.append(f"- **{', '.join(dict.fromkeys(of))}**: {finding}{command}")
    return "\n\n".join(lines)


def verdict_table(statements: pd.DataFrame, claims: pd.DataFrame) -> Any:
    """Statements with their claims (statement_table()), to display in a notebook."""
    from IPython.display import HTML

    return HTML(statement_table(statements, claims))  # type: ignore[no-untyped-call]
