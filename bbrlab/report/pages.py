"""What the papers' notebooks share: their figures and tables, their claims judged, their runs' samples and self-checks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.figures import Figure, Run, figures_at, runs_of
from bbrlab.claims.judge import INCONCLUSIVE, NOT_REPRODUCED, VERDICTS
from bbrlab.claims.schema import rounded
from bbrlab.scenario.point import Point

COLOURS = dict(zip(VERDICTS, ("#1b7837", "#b2182b", "#8a6d00", "#777777"), strict=True))
NAMES = {"bbr1": "BBRv1", "bbr2": "BBRv2", "bbr3": "BBRv3", "cubic": "CUBIC", "reno": "Reno", "dctcp": "DCTCP"}


@dataclass(frozen=True)
class Page:
    """One paper at one scale.

    Attributes:
        scale, paper: which.
        figures: {name: figure}, of those that have been run.
        tables: {name: collect.table()}.
        results: the folder ``results``.
    """

    scale: str
    paper: str
    figures: dict[str, Figure]
    tables: dict[str, pd.DataFrame]
    results: Path

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """Those of SCALE/PAPER.claims.parquet: the claims that this paper's figures alone can judge, whoever made them."""
        return pd.read_parquet(self.results / self.scale / f"{self.paper}.claims.parquet")

    def glance(self) -> str:
        """What was run, in a sentence, and how its claims came out (Markdown)."""
        rows = [t.groupby(["point", "seed"])[["ok", "virtual_s", "wall_s"]].first() for t in self.tables.values()]
        runs = pd.concat(rows)
        kernel = next(iter(self.tables.values()))["kernel"].iloc[0]
        counts = self.verdicts["verdict"].value_counts()
        words = ", ".join(f"**{counts.get(v, 0)}** {v}" for v in VERDICTS)
        failed = int((~runs["ok"]).sum())
        return (
            f"Scale **{self.scale}**, kernel {kernel}: {len(runs)} runs, {runs['virtual_s'].sum() / 3600:.1f} hours of testbed time in "
            f"{runs['wall_s'].sum() / 60:.0f} core minutes; {failed or 'none'} of them failed its self-checks.\n\n"
            f"Claims on these figures, whoever made them: {words}."
        )

    def claims(self, figure: str | None = None) -> Any:
        """The claims as a table, of one figure or of all."""
        table = self.verdicts
        if figure is not None:
            table = table[table["figures"].str.split(", ").map(lambda names: f"{self.paper}/{figure}" in names)]
        return verdict_table(table)

    def findings(self) -> str:
        """What investigations of claims that do not reproduce found (Markdown)."""
        table = self.verdicts
        missed = table[table["verdict"].isin([NOT_REPRODUCED, INCONCLUSIVE]) & (table["finding"] != "")]
        if missed.empty:
            return "None of the claims that have a finding missed at this scale."
        grouped = missed.groupby("finding", sort=False)["id"].agg(", ".join)
        return "\n\n".join(f"- **{ids}**: {finding}" for finding, ids in grouped.items())

    def run(self, figure: str, seed: int = 1, **values: Any) -> Run:
        """The run of one point, chosen by its traits ("." written as "__"). UserError if there is not exactly one."""
        wanted = {k.replace("__", "."): v for k, v in values.items()}
        found = [
            r
            for r in runs_of(self.figures[figure], results=self.results)
            if r.seed == seed and all(_same(r.point, k, v) for k, v in wanted.items())
        ]
        if len(found) != 1:
            raise UserError(f"{self.paper}/{figure}: {len(found)} points have {wanted}, one is needed")
        return found[0]

    def samples(self, figure: str, columns: list[str], seed: int = 1, **values: Any) -> pd.DataFrame:
        """Columns of a run's samples.parquet (docs/results.md)."""
        return pd.read_parquet(self.run(figure, seed, **values).folder / "samples.parquet", columns=columns)

    def checks(self) -> pd.DataFrame:
        """Every self-check of every run: how many passed, failed, could not be made; lowest and highest measurement."""
        rows = []
        for name, figure in self.figures.items():
            for run in runs_of(figure, results=self.results):
                summary = json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))
                rows += [
                    {"figure": name, "check": c["name"], "measured": c["measured"], "passed": c["ok"] is True,
                     "failed": c["ok"] is False, "not checked": c["ok"] is None}
                    for c in summary["checks"]
                ]  # fmt: skip
        grouped = pd.DataFrame(rows).astype({"measured": float}).groupby(["figure", "check"])
        counts = grouped[["passed", "failed", "not checked"]].sum()
        return counts.assign(lowest=grouped["measured"].min(), highest=grouped["measured"].max())


def _same(point: Point, key: str, value: Any) -> bool:
    return bool(point.traits.get(key) == value)


def load_page(scale: str, paper: str, results: Path | None = None) -> Page:
    """A paper's page from results/SCALE/PAPER. UserError if nothing of it has been run."""
    results = results or paths.results_folder()
    figures = {
        f.id.split("/")[1]: f
        for f in figures_at(scale, [])
        if f.id.startswith(f"{paper}/") and (results / scale / f"{f.id}.parquet").exists()
    }
    if not figures:
        raise UserError(
            f"{results / scale}: nothing of {paper} has been run at this scale; run: snakemake --cores 2 {paper}"
        )
    tables = {name: pd.read_parquet(results / scale / f"{f.id}.parquet") for name, f in figures.items()}
    return Page(scale, paper, figures, tables, results)


def verdict_table(verdicts: pd.DataFrame) -> Any:
    """Claims as a coloured table: what is said, expected, measured (mean and 95 % interval), and the verdict."""
    shown = pd.DataFrame({
        "claim": verdicts["id"],
        "says": verdicts["says"],
        "expected": verdicts["expected"],
        "measured": [_measured(r) for r in verdicts.to_dict(orient="records")],
        "verdict": verdicts["verdict"],
        "source": verdicts["source"] + " (" + verdicts["exactness"] + ")",
    })  # fmt: skip
    return (
        shown.style.hide(axis="index")
        .map(lambda v: f"color: {COLOURS[v]}; font-weight: bold", subset=["verdict"])
        .set_table_styles([{"selector": "th, td", "props": "text-align: left; vertical-align: top"}])
    )


def _measured(row: Any) -> str:
    if pd.isna(row["mean"]):
        return str(row["why"])
    half = (row["ci95_high"] - row["ci95_low"]) / 2
    return f"{rounded(row['mean'], 4)} ± {rounded(half, 2)}"
