"""A paper's results as its notebook uses them: figures by their short names, runs and their samples, self-checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.results.best_scale import judged_among, results_shown
from bbrlab.results.config import command_for, in_checkout
from bbrlab.results.figures import Figure, Run, runs_of
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.schema import RUN_AGAIN, read_with
from bbrlab.results.shipped import CHECKS
from bbrlab.results.verdicts import FINAL, NOT_REPRODUCED, REPRODUCED
from bbrlab.run.output import SAMPLES
from bbrlab.scenario.point import Point
from bbrlab.show.findings import Findings, load_findings
from bbrlab.show.verdict_counts import CAUSES, outcome_words
from bbrlab_apps.site.curve_pictures import Curves, curves_shown
from bbrlab_apps.site.html import render

MANY = 20  # of more, the rows of a table and the claims of a statement are folded


@dataclass(frozen=True)
class Page:
    """A notebook's paper."""

    all: Findings
    paper: str

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """{name: figure}, of those that have been run."""
        return {id.split("/")[1]: figure for id, figure in self.all.figures.items()}

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """{name of a figure: tables.figure_table()}."""
        return {id.split("/")[1]: table for id, table in self.all.tables.items()}

    @cached_property
    def scales(self) -> dict[str, str]:
        """{name of a figure: the scale that it is shown at}."""
        return {id.split("/")[1]: scale for id, scale in self.all.scales.items()}

    @property
    def scale(self) -> str:
        """What was asked for, or what ships instead."""
        return self.all.shown.scale

    @property
    def results(self) -> Path:
        """The folder of results."""
        return self.all.shown.results

    @property
    def shipped(self) -> bool:
        """Whether these are results that ship, which have no samples."""
        return self.all.shown.shipped

    def glance(self) -> str:
        """What was run, in a sentence, and how its statements came out (Markdown)."""
        totals = self.all.totals(self.all.tables)
        took = "" if self.shipped else f" in {totals.core_h * 60:.0f} core minutes"
        words = results_shown(self.all.shown, self.paper)
        which = (
            f"\n\n<details><summary>Where these numbers come from</summary>\n\n{words}\n\n</details>" if words else ""
        )
        return (
            f"Statements about these figures, from any paper: {outcome_words(self.all.statements)} "
            f"{claim_words(self.all.claims, judged_among(self.all.shown, self.paper))}\n\n"
            f"Scale {self.all.scale_words(self.all.figures)}, kernel {', '.join(totals.kernels)}: {totals.runs} runs, {totals.virtual_h:.1f} hours of testbed "
            f"time{took}; {totals.failed or 'none'} of them failed their self-checks.{which}"
        )

    def claims(self) -> HTML:
        """The statements with their claims: those that are reproduced are folded below the others."""
        statements, claims = self.all.statements, self.all.claims
        reproduced = statements["verdict"] == REPRODUCED
        table = statement_table(statements[~reproduced], claims)
        if reproduced.any():
            words = number_of(int(reproduced.sum()), "reproduced statement")
            table += folded(statement_table(statements[reproduced], claims), words)
        return HTML(table)  # type: ignore[no-untyped-call]

    def findings(self) -> str:
        """What investigations of statements that do not reproduce found, each with the command that shows it (Markdown)."""
        return findings_text(self.all.statements, self.all.claims) or "No claim with a documented explanation failed."

    def runs(self, figure: str) -> list[Run]:
        """Every run of a figure: the seeds that its table has of each point."""
        seeds = {str(point): int(n) for point, n in self.tables[figure].groupby("point")["seed"].nunique().items()}
        return runs_of(self.figures[figure], seeds, self.results)

    def run(self, figure: str, seed: int = 1, **values: Any) -> Run:
        """The run of one point, chosen by its traits ("." written as "__"). UserError if there is not exactly one."""
        wanted = {k.replace("__", "."): v for k, v in values.items()}
        runs = [r for r in self.runs(figure) if r.seed == seed and all(_same(r.point, k, v) for k, v in wanted.items())]
        if len(runs) != 1:
            raise UserError(f"{self.paper}/{figure}: {len(runs)} points have {wanted}, one is needed")
        return runs[0]

    def curves(self, figure: str) -> Curves | None:
        """The curves of a figure's chosen runs; None if it has none, or they were not run."""
        if figure not in self.figures:
            return None
        return curves_shown(self.all.shown, f"{self.paper}/{figure}", self.scales[figure])

    def samples(self, figure: str, columns: list[str], seed: int = 1, **values: Any) -> pd.DataFrame:
        """Columns of a run's samples.parquet (docs/reference/results.md). UserError for results that ship."""
        if self.shipped:
            id = f"{self.paper}/{figure}"
            raise UserError(
                f"{id}: samples do not ship; run: {in_checkout(command_for(id, self.all.scales.get(id, self.scale)))}"
            )
        path = self.run(figure, seed, **values).folder / SAMPLES
        return read_with(path, columns, columns, RUN_AGAIN)

    def checks(self) -> pd.DataFrame:
        """Every self-check of every run: how many passed, failed, could not be made; lowest and highest measurement."""
        checks = self._shipped_checks() if self.shipped else self._checks_of_runs()
        ok = checks["ok"].astype("boolean")
        states = {"passed": ok.fillna(False), "failed": (~ok).fillna(False), "not checked": ok.isna()}
        grouped = checks.assign(**states).astype({"measured": float}).groupby(["figure", "check"])
        counts = grouped[list(states)].sum()
        return counts.assign(lowest=grouped["measured"].min(), highest=grouped["measured"].max())

    def _checks_of_runs(self) -> pd.DataFrame:
        return pd.DataFrame([
            {"figure": name, "check": c["name"], "measured": c["measured"], "ok": c["ok"]}
            for name in self.figures for run in self.runs(name) for c in RunFolder(run.folder).summary["checks"]
        ])  # fmt: skip

    def _shipped_checks(self) -> pd.DataFrame:
        parts = []
        for scale in dict.fromkeys(self.all.scales.values()):
            table = read_with(self.results / scale / CHECKS, ("figure", "check", "measured", "ok"))
            parts.append(table[table["figure"].isin([id for id, at in self.all.scales.items() if at == scale])])
        checks = pd.concat(parts, ignore_index=True)
        return checks.assign(figure=checks["figure"].str.split("/").str[1])


def _same(point: Point, key: str, value: Any) -> bool:
    return bool(point.traits.get(key) == value)


def load_page(scale: str, paper: str, results: Path | None = None) -> Page:
    """A paper's page, as findings.load_findings() has it. UserError if nothing of it has been run, nor ships."""
    return Page(load_findings(scale, paper, results), paper)


def folded(html: str, words: str) -> str:
    """HTML that a reader opens with a click on ``words``."""
    return f"<details><summary>{words}</summary>{html}</details>"


def verdict_table(statements: pd.DataFrame, claims: pd.DataFrame) -> HTML:
    """Statements with their claims as a table, to display in a notebook.

    Args:
        statements: rows of statements.parquet.
        claims: claims.parquet; those of other statements are left out.
    """
    return HTML(statement_table(statements, claims))  # type: ignore[no-untyped-call]


def statement_table(statements: pd.DataFrame, claims: pd.DataFrame) -> str:
    """The same as HTML."""
    by_statement = {str(id): rows.to_dict(orient="records") for id, rows in claims.groupby("statement", sort=False)}
    pairs = [(s, by_statement.get(s["id"], [])) for s in statements.to_dict(orient="records")]
    return render("statements.html", statements=pairs, CAUSES=CAUSES, many=MANY)


def claim_words(claims: pd.DataFrame, among: str = "of their scale") -> str:
    """How many claims have a verdict, which, and how many of these stand (Markdown)."""
    counts = claims["verdict"].value_counts()
    judged = int(sum(counts.get(v, 0) for v in FINAL))
    return (
        f"Of the {len(claims)} claims that test them {judged} are judged: {counts.get(REPRODUCED, 0)} reproduced, "
        f"{counts.get(NOT_REPRODUCED, 0)} not; {int(claims['stands'].fillna(False).sum())} of these verdicts stand when all "
        f"{among} are judged together. Behind them are {claims['measurement'].replace('', pd.NA).nunique()} measurements: several claims may be of one."
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
    subjects = [s if own.get(s, "") == f else c for s, c, f in missed[["statement", "id", "finding"]].to_numpy()]
    lines = []
    for (finding, shows), of in missed.assign(subject=subjects).groupby(["finding", "shows"], sort=False)["subject"]:
        command = f" Shown by `{shows}`." if shows else ""
        lines.append(f"- **{', '.join(dict.fromkeys(of))}**: {finding}{command}")
    return "\n\n".join(lines)
