"""Requests of claims for more seeds of a figure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from bbrlab.base import files, paths
from bbrlab.claims.schema import Claim
from bbrlab.claims.wanted_seeds import may_ask
from bbrlab.results.figures import Figure


def claims_requesting_seeds(figure: Figure, claims: Iterable[Claim]) -> list[Claim]:
    """The claims that may ask for more seeds of a figure; none where the figure's trials are all that it may have."""
    if max(figure.caps.values()) <= figure.trials:
        return []
    return [claim for claim in claims if may_ask(claim, figure)]


def seed_request_text(figure: Figure, own: list[Claim]) -> str | None:
    """What decides how many seeds a figure gets, as a file's content, so that a claim that is corrected has the seeds of its own
    figure counted again, and no other's.

    Args:
        own: the claims that may ask for more (claims_requesting_seeds()).

    Returns:
        None for a figure whose points keep what they begin with.
    """
    begin = {figure.trials_of(point) for point in figure.points}
    if not own and begin <= {figure.trials}:
        return None
    tables = sorted({t.published.split(":")[0] for c in own for t in c.at.values() if t.published})
    content = {
        "caps": figure.caps,
        "trials": figure.trials,
        "claims": [c.model_dump(mode="json", include={"id", "at", "metric", "expect", "shortest_s"}) for c in own],
        "tables": {name: files.sha256(paths.DATA / f"{name}.csv") for name in tables},
    }
    return json.dumps(content, indent=1) + "\n"
