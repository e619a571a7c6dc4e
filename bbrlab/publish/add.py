"""Adds figures to results that ship: a scale of which a machine has not the time to run the whole is shipped part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.models.predictions import PACKED, packed
from bbrlab.publish.pack import (
    Finished,
    in_order,
    joined,
    look_through,
    manifest_of_runs,
    predictions_of_campaign,
)
from bbrlab.publish.renew import Asked, renew
from bbrlab.publish.shipped_folder import Say, at_work, read_shipped, replace_shipped
from bbrlab.results.figures import figures_at
from bbrlab.results.shipped import CHECKS, RUNS, Manifest, Version


def add(campaign: Finished, folder: Path, jobs: int = 1, say: Say = lambda text: None) -> Manifest:
    """Put a campaign's figures beside those that ship at its scale, or in their place, and judge all of them together.

    Only the figures' tables and runs are needed of the campaign. Predictions that claims read, and curves of its panels, are taken from the campaign where they are
    there, else computed.

    Args:
        campaign: its figures; one that ships is replaced.
        folder: for shipped results.
        jobs: predictions at once.
        say: told now and then, in words, how far it is.

    Returns:
        The new manifest.

    Raises:
        UserError: if nothing ships at the scale, or as ship.pack() has it.
    """
    scale = campaign.scale
    with at_work(folder, scale, say, "leave --add out"):
        manifest, content = read_shipped(folder, scale)
        runs = look_through(campaign, say)
        manifest, content = without(manifest, content, {f.id for f in campaign.figures})
        more = manifest_of_runs(scale, campaign.figures, runs)
        said = joined_manifests(manifest, more)
        for name, table in runs.content().items():
            content[name] = _both(content[name], table, list(said["figures"])) if name in (RUNS, CHECKS) else table
        content[PACKED] = packed([content[PACKED], predictions_of_campaign(campaign)])
        figures = figures_at(scale, list(said["figures"]))
        renew(content, Asked(scale, figures, jobs=jobs, curves=not campaign.without_curves), say)
        say("writing")
        return replace_shipped(folder / scale, content, said)


def without(
    manifest: Manifest, content: Mapping[str, pd.DataFrame], figures: set[str]
) -> tuple[Manifest, dict[str, pd.DataFrame]]:
    """What ships, without some figures, their runs and checks; predictions stay, they are of points and not of runs.

    Args:
        manifest: of what ships; counts its runs by commit.
        content: {file: table}.
        figures: ids; of which not all need ship.
    """
    gone = manifest.figures.keys() & figures
    if not gone:
        return manifest, dict(content)
    rows = {name: table[~table["figure"].isin(gone)] for name, table in content.items() if name in (RUNS, CHECKS)}
    tables = {name: table for name, table in content.items() if name.removesuffix(".parquet") not in gone} | rows
    commits = {str(commit): int(runs) for commit, runs in rows[RUNS]["commit"].value_counts().sort_index().items()}
    changed = {
        "figures": {id: runs for id, runs in manifest.figures.items() if id not in gone},
        "commits": commits,
        "versions": joined(manifest.versions, commits),
        "failed": [failed for failed in manifest.failed if failed.figure not in gone],
    }
    return manifest.model_copy(update=changed), tables


def _both(there: pd.DataFrame, more: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """Rows of both tables, figure by figure."""
    together = pd.concat([there, more], ignore_index=True)
    return together.sort_values("figure", key=lambda column: column.map(order.index), kind="stable", ignore_index=True)


def joined_manifests(there: Manifest, more: Mapping[str, Any]) -> dict[str, Any]:
    """One manifest for the runs of both, without the hashes of files.

    Runs of several versions of bbrlab, and of several kernels, may ship together, figure by figure.

    Args:
        there: of what ships.
        more: ship.manifest_of_runs() of what is added.

    Raises:
        UserError: if runs of one commit have two versions (ship.joined()).
    """
    old = there.model_dump(mode="json", exclude={"files", "sha256"})
    together = old["figures"] | more["figures"]
    order = [figure.id for figure in in_order(figures_at(there.scale, list(together)))]
    failed = sorted([*old["failed"], *more["failed"]], key=lambda one: order.index(one["figure"]))
    versions = joined([*there.versions, *(Version.model_validate(one) for one in more["versions"])])
    return {
        **more, "commits": dict(sorted((Counter(old["commits"]) + Counter(more["commits"])).items())),
        "versions": [one.model_dump(mode="json") for one in versions],
        "figures": {id: together[id] for id in order}, "failed": failed,
    }  # fmt: skip
