"""Which claims are of one measurement: they read the same columns of the same runs, whatever they compare them with.

Two points may have the same runs, bit for bit: a buffer in which nothing is ever lost, and a deeper one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pandas as pd

from bbrlab.claims.resolution import OF_THE_BUFFER, WITHOUT_CHANCE
from bbrlab.claims.schema import Claim
from bbrlab.claims.select import select
from bbrlab.measure.metrics import METRICS
from bbrlab.results.figures import Figure

FIRST_SEEDS = 2  # by which runs are told to be the same: others may have more


def fingerprints(table: pd.DataFrame) -> dict[str, str]:
    """{point label: the same for points with the same runs} of a figure's table."""
    columns = [c for c in METRICS if c in table and c not in OF_THE_BUFFER]
    rows = table[["point", "seed", "group", *columns]].sort_values(["point", "seed", "group"])
    rows = rows[rows.groupby("point")["seed"].rank("dense") <= FIRST_SEEDS]
    values = rows.drop(columns="point").to_numpy(dtype=float)
    named = ",".join(columns).encode()
    places = rows.groupby("point").indices
    return {str(label): hashlib.sha256(named + values[at].tobytes()).hexdigest() for label, at in places.items()}


def measurement(claim: Claim, figures: Mapping[str, Figure], prints: Mapping[str, Mapping[str, str]]) -> str:
    """What a claim reads of the runs: equal for claims that read the same.

    Args:
        claim: of which at least a part was run.
        figures: the figures of the scale.
        prints: fingerprints() of each of their tables.
    """
    read = set()
    for name in claim.columns:
        term_name, _, column = name.rpartition(".")
        term = claim.at[term_name]
        if column in WITHOUT_CHANCE or term.figure not in prints:
            continue
        for point in select(term, figures[term.figure].points):
            alike = prints[term.figure].get(point.label, "")
            own = f"{point.scenario.network.buffer_bytes}" if column in OF_THE_BUFFER else ""
            read.add(f"{alike} {term.group} {column} {own}")
    if not read:  # models and published values alone
        read = {f"{claim.at} {sorted(claim.columns)}"}
    return hashlib.sha256("\n".join(sorted(read)).encode()).hexdigest()[:16]
