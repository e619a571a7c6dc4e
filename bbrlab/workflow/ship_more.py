"""Adds figures to results that ship: a scale of which a machine has not the time to run the whole is shipped part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.campaign.figures import figures_at
from bbrlab.kernel.built import without_build
from bbrlab.models.predictions import PACKED, packed
from bbrlab.report.shipped import CHECKS, RUNS, Manifest, Version
from bbrlab.workflow.renew import Asked, renew
from bbrlab.workflow.ship import (
    Finished,
    in_order,
    look_through,
    manifest_of_runs,
    predictions_of_campaign,
    versions,
)
from bbrlab.workflow.shipped_folder import Say, at_work, read_shipped, replace_shipped


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
        UserError: if nothing ships at the scale, runs are of another kernel than those that stay, or as ship.pack() has it.
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
        manifest: of what ships; counts its runs by commit and by version of each package.
        content: {file: table}.
        figures: ids; of which not all need ship.

    Raises:
        UserError: if the runs that stay cannot be counted, because those that ship had several versions of one package.
    """
    gone = {id: runs for id, runs in manifest.figures.items() if id in figures}
    if not gone:
        return manifest, dict(content)
    if several := [package for package, runs in manifest.packages.items() if runs != manifest.runs]:
        raise UserError(
            f"{min(gone)}: ships already, and cannot be replaced: of what ships, not all runs had {several[0]}, and which had it is not "
            "known; pack all of the scale without --add"
        )
    rows = {name: table[~table["figure"].isin(gone)] for name, table in content.items() if name in (RUNS, CHECKS)}
    tables = {name: table for name, table in content.items() if name.removesuffix(".parquet") not in gone} | rows
    left = sum(manifest.figures.values()) - sum(gone.values())
    changed = {
        "figures": {id: runs for id, runs in manifest.figures.items() if id not in gone},
        "commits": rows[RUNS]["commit"].value_counts().sort_index().to_dict(),
        "versions": [
            Version(**one)
            for one in _versions([one.model_dump() for one in manifest.versions], set(rows[RUNS]["commit"]))
        ],
        "packages": dict.fromkeys(manifest.packages, left) if left else {},
        "failed": [failed for failed in manifest.failed if failed.figure not in gone],
    }
    return manifest.model_copy(update=changed), tables


def _both(there: pd.DataFrame, more: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """Rows of both tables, figure by figure."""
    together = pd.concat([there, more], ignore_index=True)
    return together.sort_values("figure", key=lambda column: column.map(order.index), kind="stable", ignore_index=True)


def joined_manifests(there: Manifest, more: Mapping[str, Any]) -> dict[str, Any]:
    """One manifest for the runs of both, without the hashes of files.

    Runs of two versions of bbrlab may ship together: verify makes a sample of either again with this one.

    Args:
        there: of what ships.
        more: ship.manifest_of_runs() of what is added.

    Raises:
        UserError: if the runs are of different kernels, or a commit has two versions of the guest's code.
    """
    old = there.model_dump(mode="json", exclude={"files", "sha256"})
    mine, theirs = without_build(more["kernel"]), without_build(old["kernel"])
    if mine != theirs:
        wrong = min(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key))
        raise UserError(
            f"the runs' kernel is not that of what ships: {wrong} is {mine.get(wrong)} and not {theirs.get(wrong)}; "
            "run these with that one, or all figures of the scale with this one"
        )
    together = old["figures"] | more["figures"]
    order = [figure.id for figure in in_order(figures_at(there.scale, list(together)))]
    failed = sorted([*old["failed"], *more["failed"]], key=lambda one: order.index(one["figure"]))
    sums = {key: dict(sorted((Counter(old[key]) + Counter(more[key])).items())) for key in ("commits", "packages")}
    return {
        **more, **sums, "versions": _versions([*old["versions"], *more["versions"]], set(sums["commits"])),
        "kernel": old["kernel"], "figures": {id: together[id] for id in order}, "failed": failed,
    }  # fmt: skip


def _versions(there: Sequence[Mapping[str, Any]], commits: set[str]) -> list[dict[str, Any]]:
    """Of versions those of some commits. UserError if one commit has two versions of the guest's code."""
    guests: dict[str, Mapping[str, str]] = {}
    for one in there:
        for commit in one["commits"]:
            if guests.setdefault(commit, one["guest_code_sha256"]) != one["guest_code_sha256"]:
                raise UserError(
                    f"runs of commit {commit} have two versions of the guest's code; commit what was changed in mininet/ and make "
                    "the newer of them again"
                )
    return versions(
        (commit, one["fields"], one["guest_code_sha256"])
        for one in there
        for commit in one["commits"]
        if commit in commits
    )
