"""docs/reference/measured.md: what ships at ``full``, and how near its panels are to the published ones.

The table of docs/explanation/bbr_defaults.md (what was aimed at) is made here, too.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.tables import published_table
from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.config import FULL, load_config
from bbrlab.results.figures import PANEL_KEYS, Figure, figures_at, has_panel
from bbrlab.results.shipped import RUNS, Failed, is_shipped, left_out, older_versions, read_manifest
from bbrlab.results.statistics import rms
from bbrlab.results.tables import read_figure
from bbrlab.results.verdicts import read_claims
from docs._make.marks import page, table

SCALE, SHIPPED = FULL, paths.ROOT / "shipped"
BOUNDS_BDP = (16, 32, np.inf)  # of buffers: how far a column of the table goes
MEASURED = paths.ROOT / "docs/reference/measured.md"
AIMED = paths.ROOT / "docs/explanation/bbr_defaults.md"
# What was aimed at before the runs, for all numbers of flows: (figure, buffers up to so many BDP, RMSE).
AIMS = (
    ("sarpkaya2025/fig5a", 32, 0.03),
    ("sarpkaya2025/fig3a", 32, 0.045),
    ("sarpkaya2025/fig5c", 16, 0.025),
    ("sarpkaya2025/fig3c", 16, 0.06),
)


@dataclass(frozen=True)
class Errors:
    """How far a panel's shares are from the means of the published trials."""

    figure: Figure
    # One row per point and seed: buffer_bdp, bbr_flows, seed, difference (measured - published). Of the seeds only the paper's
    # number of trials is taken: more are run where a claim was undecided, and not at every point
    points: pd.DataFrame

    def rmse(self, up_to_bdp: float) -> float:
        """Root mean square over all points with at most that buffer for each seed, then the mean over the seeds."""
        part = self.points[self.points["buffer_bdp"] <= up_to_bdp]
        return float(np.mean([rms(seed.to_numpy(dtype=float)) for _, seed in part.groupby("seed")["difference"]]))

    def rmse_of_means(self, up_to_bdp: float) -> float:
        """The same of each point's mean over the seeds: without their scatter."""
        part = self.points[self.points["buffer_bdp"] <= up_to_bdp]
        return float(rms(part.groupby(list(PANEL_KEYS.values()))["difference"].mean().to_numpy(dtype=float)))

    def largest(self, count: int = 3) -> pd.Series:
        """The differences of means that are largest in size, by (buffer_bdp, bbr_flows)."""
        means = self.points.groupby(list(PANEL_KEYS.values()))["difference"].mean()
        return means.reindex(means.abs().sort_values(ascending=False).index)[:count]

    @property
    def words(self) -> str:
        """Who competes with whom."""
        first, second = self.figure.scenario.flows[:2]
        return f"{label_of_cca(first.cca)} against {label_of_cca(second.cca)}"


def errors_of(figure: Figure, table: pd.DataFrame) -> Errors:
    """A panel's runs (tables.figure_table()) beside the published means; runs that failed their checks are left out."""
    good = table[(table["group"] == 0) & table["ok"] & (table["seed"] <= figure.trials)]
    runs = good.drop(columns="buffer_bdp").rename(columns=PANEL_KEYS)
    both = runs.merge(
        published_table(figure.id),
        on=list(PANEL_KEYS.values()),
        suffixes=("", "_published"),
        validate="many_to_one",
        how="left",
    )
    if (without := both["share_of_capacity_published"].isna()).any():
        raise UserError(
            f"data/{figure.id}.csv: has no share_of_capacity for {both.loc[without, list(PANEL_KEYS.values())].iloc[0].to_dict()}"
        )
    both["difference"] = both["share_of_capacity"] - both["share_of_capacity_published"]
    return Errors(figure, both[[*PANEL_KEYS.values(), "seed", "difference"]])


def shipped_errors(folder: Path = SHIPPED) -> dict[str, Errors]:
    """{figure: its errors} of every panel that ships at SCALE."""
    names = read_manifest(folder, SCALE).figures
    panels = [figure for figure in figures_at(SCALE, list(names)) if has_panel(figure)]
    return {f.id: errors_of(f, read_figure(folder / SCALE / f"{f.id}.parquet")) for f in panels}


def short(value: float) -> str:
    """A share's error as the pages print it: 0.044."""
    return f"{value:.3f}"


def measured_table(folder: Path = SHIPPED) -> str:
    """Every panel that ships, in Markdown."""
    claims = read_claims(folder / SCALE / "claims.parquet")
    rows = []
    for id, errors in sorted(shipped_errors(folder).items()):
        own = claims[(claims["figures"].astype(str) == id) & (claims["exactness"] == "raw data")]
        numbers = [short(errors.rmse(bound)) for bound in BOUNDS_BDP]
        largest = errors.largest().reset_index().to_dict("records")
        worst = "; ".join(f"{x['difference']:+.2f} ({x['bbr_flows']:.0f}, {x['buffer_bdp']:.0f})" for x in largest)
        reproduced = f"{int((own['verdict'] == 'reproduced').sum())} of {len(own)}"
        cells = (
            errors.words,
            errors.figure.scenario.figure,
            *numbers,
            short(errors.rmse_of_means(np.inf)),
            worst,
            reproduced,
        )
        rows.append(cells)
    heads = (
        "", "figure", "RMSE to 16 BDP", "to 32 BDP", "all points", "of the means, all points", "largest differences (flows, BDP)",
        "claims by raw data that reproduce",
    )  # fmt: skip
    return "\n".join(table(heads, rows)) + "\n"


def aims_table(folder: Path = SHIPPED) -> str:
    """What was aimed at, and what came out, in Markdown."""
    found = shipped_errors(folder)
    rows = []
    for id, up_to_bdp, aim in AIMS:
        if id not in found:
            rows.append((f"{id}, up to {up_to_bdp} BDP", short(aim), "does not ship"))
            continue
        errors = found[id]
        value = errors.rmse(up_to_bdp)
        missed = "" if value <= aim else ", **missed**"
        what = f"{errors.words} ({errors.figure.scenario.figure}), up to {up_to_bdp} BDP"
        rows.append((what, short(aim), short(value) + missed))
    return "\n".join(table(("", "aim", "measured"), rows)) + "\n"


def shipped_list(folder: Path = SHIPPED) -> str:
    """The figures that ship and of which versions, those that do not, and what the runs came from, in Markdown."""
    manifest = read_manifest(folder, SCALE)
    known = {figure.id: figure for figure in figures_at(SCALE, list(manifest.figures))}
    older = dict(zip(string.ascii_uppercase, older_versions(folder, SCALE).items(), strict=False))
    made = pd.read_parquet(folder / SCALE / RUNS, columns=["figure", "commit"])
    rows = []
    for id, runs in manifest.figures.items():
        commits = made.loc[made["figure"] == id, "commit"].str[:10]
        of_version = {m: sum(c in words for c in commits) for m, (words, ids) in older.items() if id in ids}
        marks = ", ".join(f"{m} ({n:,} of its runs)" if n < runs else m for m, n in of_version.items())
        rows.append((id, known[id].scenario.figure or id.split("/")[1], f"{runs:,}", marks))
    lines = table(("figure", "what", "runs", "older version"), rows)
    keys = ", ".join(manifest.kernels)
    failed = f"{len(manifest.failed)} of them failed a self-check and are left out of their points' means:"
    lines += [
        "",
        f"{manifest.runs:,} runs in all, of kernel {' and '.join(sorted(set(manifest.kernels.values())))}, keys {keys} (commits: `shipped/{SCALE}/manifest.json`); "
        f"{failed if manifest.failed else 'every one passed its self-checks.'}",
        *_failed_list(manifest.failed),
    ]
    if older:
        lines += ["", "Older versions of bbrlab, of which the figures have all or some of their runs:"]
    for mark, (words, _) in older.items():
        version, _, conditions = words.partition(": ")
        lines.append(f"- **{mark}**: {conditions} ({version})")
    if missing := left_out(folder, SCALE):
        lines += [
            "",
            f"{len(missing)} of the {len(figures_at(SCALE, []))} figures {'does' if len(missing) == 1 else 'do'} not ship at `{SCALE}`: {', '.join(missing)}.",
        ]
    lines += _at_other_scales(folder)
    return "\n".join(lines) + "\n"


def _at_other_scales(folder: Path) -> list[str]:
    """Which figures of the other scales that ship have runs of older versions: by name where the conditions were others."""
    lines = []
    for scale in load_config().scales:
        if scale == SCALE or not is_shipped(folder, scale):
            continue
        manifest, older = read_manifest(folder, scale), older_versions(folder, scale)
        if missing := left_out(folder, scale):
            lines += [
                "",
                f"`{scale}` has {len(figures_at(scale, []))} figures, of which {len(manifest.figures)} ship (not {', '.join(missing)}).",
            ]
        for words, ids in older.items():
            same = words.endswith(f": {manifest.newest.conditions}")
            which = "under the conditions of its newest runs" if same else f"under other conditions: {', '.join(ids)}"
            version = words.partition(": ")[0] if same else words
            lines += [
                "",
                f"At `{scale}` {len(ids)} of {len(manifest.figures)} figures {'has' if len(ids) == 1 else 'have'} runs of an older version ({version}), {which}.",
            ]
    return lines


def _failed_list(failed: Sequence[Failed]) -> list[str]:
    """One line for each reason, with its points and their seeds."""
    seeds: dict[tuple[str, str], dict[tuple[str, str], list[str]]] = {}
    for one in failed:
        of_reason = seeds.setdefault((", ".join(one.checks), one.why), {})
        of_reason.setdefault((one.figure, one.point), []).append(str(one.seed))
    lines = []
    for (checks, why), points in seeds.items():
        listed = "; ".join(
            f"{figure}, `{point}`, seed{'s' * (len(of) > 1)} {', '.join(of)}" for (figure, point), of in points.items()
        )
        lines.append(f"- {listed} ({checks}): {why}")
    return lines


def pages() -> dict[Path, str]:
    """{page: its text} as they should be."""
    return {
        MEASURED: page(MEASURED, {"what ships": shipped_list(), "panels": measured_table()}),
        AIMED: page(AIMED, {"aims": aims_table()}),
    }
