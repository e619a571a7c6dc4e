"""Judges claims by the runs: a confidence interval over the seeds against what is expected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.figures import Figure
from bbrlab.campaign.interval import half_width
from bbrlab.claims import expressions, series
from bbrlab.claims.schema import PUBLISHED, WARE, Claim, Term
from bbrlab.claims.select import full_figures, select
from bbrlab.models import ware
from bbrlab.scenario.point import Point

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE, NOT_RUN = (
    "reproduced",
    "not reproduced",
    "inconclusive",
    "not run at this scale",
)
VERDICTS = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE, NOT_RUN)
SEEDS_MIN = 2  # fewer give no interval


@dataclass(frozen=True)
class Verdict:
    """What came of a claim.

    Attributes:
        mean, low, high: the judged number over the seeds and its 95 % interval; NaN if it was not run. Of an order it is
            the smallest step from one expression to the next, of a trend Kendall's tau.
        seeds: how many there were.
        why: of a claim that is inconclusive or was not run, why.
    """

    claim: Claim
    verdict: str
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seeds: int = 0
    why: str = ""

    def row(self) -> dict[str, Any]:
        """One row of claims.parquet (docs/results.md)."""
        return {
            "id": self.claim.id,
            "statement": self.claim.statement,
            "paper": self.claim.paper,
            "says": self.claim.says,
            "figures": ", ".join(dict.fromkeys(t.figure for t in self.claim.at.values())),
            "metric": self.claim.metric or "order",
            "expected": str(self.claim.expect),
            "verdict": self.verdict,
            "mean": self.mean,
            "ci95_low": self.low,
            "ci95_high": self.high,
            "seeds": self.seeds,
            "why": self.why,
            "finding": self.claim.finding.text if self.claim.finding else "",
            "because": self.claim.because,
            "source": self.claim.source,
            "exactness": self.claim.exactness,
        }


def judge_claim(claim: Claim, figures: dict[str, Figure], tables: dict[str, pd.DataFrame]) -> Verdict:
    """Judge one claim.

    Args:
        claim: what to judge.
        figures: the figures of the scale, by id.
        tables: their tables (collect.table()), by id; a figure that is missing was not run.
    """
    columns: dict[str, pd.DataFrame] = {}
    for name, term in claim.at.items():
        if term.figure not in figures or term.figure not in tables:
            return Verdict(claim, NOT_RUN, why=f"{term.figure} was not run")
        chosen = select(term, figures[term.figure].points)
        whole = select(term, full_figures()[term.figure].points)
        if len(chosen) < (len(whole)):
            return Verdict(claim, NOT_RUN, why=f"this scale has {len(chosen)} of its {len(whole)} points")
        short = [p for p in chosen if _too_short(claim, term, p)]
        if short:
            return Verdict(claim, NOT_RUN, why=f"runs of {short[0].scenario.duration_s:g} s are too short for it")
        columns[name] = _columns(term, chosen, tables[term.figure])
    seeds = sorted(set.intersection(*(set(c.index.get_level_values("seed")) for c in columns.values())))
    values = np.array([_value(claim, columns, seed) for seed in seeds], dtype=float)
    values = values[~np.isnan(values)]
    if len(values) < SEEDS_MIN:
        return Verdict(claim, INCONCLUSIVE, seeds=len(values), why=f"{len(values)} seeds with a value: no interval")
    mean, half = float(values.mean()), half_width(pd.Series(values))
    low, high = mean - half, mean + half
    lowest, highest = claim.expect.bounds
    if lowest <= low and high <= highest:
        return Verdict(claim, REPRODUCED, mean, low, high, len(values))
    if high < lowest or low > highest:
        return Verdict(claim, NOT_REPRODUCED, mean, low, high, len(values))
    return Verdict(claim, INCONCLUSIVE, mean, low, high, len(values), "the interval straddles what is expected")


def _too_short(claim: Claim, term: Term, point: Point) -> bool:
    """Whether a run is shorter than the scenario's own, or than the claim allows."""
    whole = next((p for p in full_figures()[term.figure].points if p.values == point.values), None)
    full_s = whole.scenario.duration_s if whole else math.inf
    return point.scenario.duration_s < min(full_s, claim.shortest_s or math.inf)


def _columns(term: Term, chosen: list[Point], table: pd.DataFrame) -> pd.DataFrame:
    """The good runs' columns, index (seed, place of the point); seeds that lack a point are left out."""
    place = pd.Series(range(len(chosen)), index=[p.label for p in chosen])
    mine = table[(table["group"] == term.group) & table["point"].isin(place.index) & table["ok"]]
    mine = mine.assign(place=mine["point"].map(place)).set_index(["seed", "place"]).sort_index()
    whole = mine.groupby(level="seed").size()
    mine = mine[mine.index.get_level_values("seed").isin(whole[whole == len(chosen)].index)]
    if term.published:
        values = _published(term, chosen)
        mine = mine.assign(**{PUBLISHED: values[mine.index.get_level_values("place")]})
    if len(chosen[0].scenario.flows) > 1 and term.group == 0:
        mine = mine.assign(**{WARE: _ware(chosen)[mine.index.get_level_values("place")]})
    return mine


# Columns of published tables that have another name among a point's traits.
ALIASES = {"bbr_flows": "flows.0.count", "buffer_packets": "network.buffer.packets"}


def _published(term: Term, chosen: list[Point]) -> Any:
    """The published value of each point: the row of the table that agrees in every column that both have."""
    name, column = (term.published or ":").split(":")
    table = pd.read_csv(paths.DATA / f"{name}.csv")
    values = []
    for point in chosen:
        traits = point.traits
        match = np.ones(len(table), dtype=bool)
        for own in map(str, table.columns):
            key = ALIASES.get(own, own)
            if key in traits:
                same = np.isclose(table[own], traits[key]) if pd.api.types.is_numeric_dtype(table[own]) else table[own] == traits[key]  # fmt: skip
                match &= np.asarray(same)
        if match.sum() != 1:
            raise UserError(f"data/{name}.csv: {match.sum()} rows for point {point.label}, one is needed")
        values.append(float(table[column][match].iloc[0]))
    return np.array(values)


def _ware(chosen: list[Point]) -> Any:
    """The Ware model's share of group 0 at each point."""
    return np.array([
        float(ware.bbr_share(n.rate_mbit, n.mean_rtt_ms, n.buffer_bytes / n.bdp_bytes, p.scenario.flows[0].count))
        for p in chosen
        for n in [p.scenario.network]
    ])  # fmt: skip


def _value(claim: Claim, columns: dict[str, pd.DataFrame], seed: int) -> float:
    """The judged number of one seed."""
    known = {}
    for name in claim.columns:
        term, _, column = name.rpartition(".")
        values = columns[term].loc[seed][column].to_numpy(dtype=float)
        known[name] = values if claim.at[term].along else float(values[0])
    values = [expressions.evaluate(tree, known) for tree in claim.trees]
    if claim.expect.order:
        return float(np.min(np.diff(np.array(values, dtype=float))))
    if claim.expect.trend:
        return series.trend(values[0])
    return float(np.min(values[0])) if claim.expect.kind in ("above", "at_least") else float(np.max(values[0]))


def judge_all(claims: list[Claim], figures: list[Figure], tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """Judge every claim."""
    known = {f.id: f for f in figures}
    return [judge_claim(claim, known, tables) for claim in claims]


def verdict_frame(verdicts: list[Verdict]) -> pd.DataFrame:
    """claims.parquet: one row per claim."""
    return pd.DataFrame([v.row() for v in verdicts])


def verdict_counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each paper came out how; rows: papers and "all", columns: the verdicts."""
    found = pd.crosstab(table["paper"], table["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)
    found.loc["all"] = found.sum()
    return found
