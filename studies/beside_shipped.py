"""One's own verdicts beside those that ship. Points are compared by ``bbrlab compare``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.comparison.compare import moved_verdicts
from bbrlab.results.schema import read_with
from bbrlab.results.shipped import is_shipped

KINDS = ("statements", "claims")


def other_verdicts(
    scale: str, results: Path | None = None, shipped: Path | None = None
) -> dict[str, pd.DataFrame] | None:
    """The statements and claims with another verdict than what ships, or that only one of the two has.

    Returns:
        {one of KINDS: table with the columns ``id``, ``says``, ``shipped``, ``own``}; None if either has no verdicts at this scale.
    """
    folder = shipped or paths.SHIPPED
    own = (results or paths.results_folder()) / scale
    if not is_shipped(folder, scale) or not all((own / f"{kind}.parquet").exists() for kind in KINDS):
        return None
    labels = {"shipped": "not there", "own": "not there"}
    tables = {}
    for kind in KINDS:
        first, second = (
            read_with(place / f"{kind}.parquet", ("id", "says", "verdict")) for place in (folder / scale, own)
        )
        tables[kind] = moved_verdicts(first, second, labels)
    return tables
