"""Judges results that ship by today's claims, and asks today's models: no run is made, none changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bbrlab.publish.renew import Asked, renew
from bbrlab.publish.shipped_folder import Say, at_work, read_shipped, replace_shipped
from bbrlab.results.figures import figures_at
from bbrlab.results.shipped import STATEMENTS, Manifest


@dataclass(frozen=True)
class Rejudged:
    """What ships, judged again.

    Attributes:
        manifest: the new one; that of the runs in it is as it was.
        moved: the statements with another verdict: ``id``, ``before``, ``now``.
    """

    manifest: Manifest
    moved: pd.DataFrame


def rejudge(
    folder: Path, scale: str, models: Sequence[str] = (), jobs: int = 1, say: Say = lambda text: None
) -> Rejudged:
    """Put points, verdicts by today's claims, and predictions by today's models, in the place of those that ship.

    Args:
        folder: of shipped results.
        models: kinds of predictions (models.predictions.KINDS) to compute anew; the others stay, and what is missing is computed.
        jobs: predictions at once.
        say: told now and then, in words, how far it is.

    Raises:
        UserError: if nothing ships at the scale, or a file is not as the manifest says.
    """
    with at_work(folder, scale, say, "bbrlab ship packs a campaign"):
        manifest, content = read_shipped(folder, scale)
        before = content[STATEMENTS]
        figures = figures_at(scale, list(manifest.figures))
        renew(content, Asked(scale, figures, models, jobs), say)
        say("writing")
        kept = manifest.model_dump(mode="json", exclude={"files", "sha256"})
        return Rejudged(replace_shipped(folder / scale, content, kept), _moved(before, content[STATEMENTS]))


def _moved(before: pd.DataFrame, now: pd.DataFrame) -> pd.DataFrame:
    """The statements whose verdict differs, in the order of their ids."""
    sides = [table[["id", "verdict"]] for table in (before, now)]
    both = sides[0].merge(sides[1], on="id", how="outer", suffixes=("_before", "_now"))
    both = both.rename(columns={"verdict_before": "before", "verdict_now": "now"})
    both = both.fillna({"before": "is new", "now": "is gone"})
    return both[both["before"] != both["now"]].sort_values("id", ignore_index=True)
