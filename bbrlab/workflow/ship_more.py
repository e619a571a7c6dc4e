"""Adds figures to results that ship: a scale of which a machine has not the time to run the whole is shipped part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.campaign.collect import tidy
from bbrlab.campaign.figures import figures_at
from bbrlab.models.predictions import PACKED
from bbrlab.report.shipped import CHECKS, RUNS, Manifest, is_shipped
from bbrlab.run.guest_code import always_loaded
from bbrlab.workflow.rejudge import Asked, Say, read_shipped, renew
from bbrlab.workflow.ship import (
    Finished,
    in_order,
    look_through,
    manifest_of_runs,
    predictions_of_campaign,
    replace_shipped,
)


def add(campaign: Finished, folder: Path, jobs: int = 1, say: Say = lambda text: None) -> Manifest:
    """Put a campaign's figures beside those that ship at its scale, and judge all of them together.

    Only the figures' tables and runs are needed of the campaign. Predictions that claims read, and curves of its panels, are taken
    from it where they are there, else computed.

    Args:
        campaign: its figures, none of which ships.
        folder: for shipped results.
        jobs: predictions at once.
        say: told now and then, in words, how far it is.

    Returns:
        The new manifest.

    Raises:
        UserError: if nothing ships at the scale, a figure ships already, its runs are of another kernel or version of the guest's code
            than those that ship, or as ship.pack() has it.
    """
    scale = campaign.scale
    if not is_shipped(folder, scale):
        raise UserError(f"{folder}: nothing ships at scale {scale}; leave --add out")
    manifest, content = read_shipped(folder, scale)
    if twice := [f.id for f in campaign.figures if f.id in manifest.figures]:
        raise UserError(f"{twice[0]}: ships already at scale {scale}; without --add all of the scale is packed anew")
    runs = look_through(campaign, say)
    more = manifest_of_runs(scale, campaign.figures, runs)
    said = joined_manifests(manifest, more)
    for name, table in runs.content().items():
        content[name] = _both(content[name], table, list(said["figures"])) if name in (RUNS, CHECKS) else table
    figures = figures_at(scale, list(said["figures"]))
    tables = {figure.id: content[f"{figure.id}.parquet"] for figure in figures}
    content["points.parquet"] = tidy(tables)
    content[PACKED] = pd.concat([content[PACKED], predictions_of_campaign(campaign, whole=False)], ignore_index=True)
    renew(content, Asked(scale, figures, jobs=jobs, curves=not campaign.without_curves), tables, say)
    say("writing")
    return Manifest.model_validate(replace_shipped(folder / scale, content, said))


def _both(there: pd.DataFrame, more: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """Rows of both tables, figure by figure."""
    together = pd.concat([there, more], ignore_index=True)
    return together.sort_values("figure", key=lambda column: column.map(order.index), kind="stable", ignore_index=True)


def joined_manifests(there: Manifest, more: Mapping[str, Any]) -> dict[str, Any]:
    """One manifest for the runs of both, without the hashes of files.

    Args:
        there: of what ships.
        more: ship.manifest_of_runs() of what is added.

    Raises:
        UserError: if the runs are of different kernels or versions of the guest's code.
    """
    old = there.model_dump(mode="json", exclude={"files", "sha256"})
    guest = always_loaded(old["guest_code_sha256"])
    for what, mine, theirs in (
        ("kernel", more["kernel"], old["kernel"]),
        ("guest_code_sha256", more["guest_code_sha256"], guest),
    ):
        if mine != theirs:
            wrong = min(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key))
            raise UserError(
                f"the runs' {what} is not that of what ships: {wrong} is {mine.get(wrong)} and not {theirs.get(wrong)}; "
                "run all figures of the scale with one version, and pack them without --add"
            )
    together = old["figures"] | more["figures"]
    order = [figure.id for figure in in_order(figures_at(there.scale, list(together)))]
    sums = {key: dict(sorted((Counter(old[key]) + Counter(more[key])).items())) for key in ("commits", "packages")}
    return {
        **more, **sums, "figures": {id: together[id] for id in order}, "failed": [*old["failed"], *more["failed"]],
    }  # fmt: skip
