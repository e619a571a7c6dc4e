"""One experiment by hand, in a notebook: run a scenario with some of its numbers changed, see it over time, compare.

What is run here is a run like any other, with the same self-checks and files; only where it is kept differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.measure.checks.check import failed_of
from bbrlab.measure.metrics import label_of
from bbrlab.measure.summary import Summary
from bbrlab.results.run_folder import RunFolder
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point, load_scenario
from bbrlab_apps.study import draw_runs
from bbrlab_apps.study.sources import RunSource

FOLDER = "by_hand"  # in the results folder
SHOWN = ("goodput_mbit", "share_of_capacity", "retransmits", "rtt_ms_mean")


@dataclass(frozen=True)
class Tried:
    """A run by hand."""

    changes: Mapping[str, Any]  # {dotted path: value} that differ from the scenario's file
    summary: Summary
    folder: Path  # has summary.json, samples.parquet, manifest.json and guest.log


def run_by_hand(
    scenario: str,
    changes: Mapping[str, Any] | None = None,
    *,
    name: str = "run",
    seed: int = 1,
    kernel_name: str | None = None,
) -> Tried:
    """Run a scenario once, in virtual time, and say how long it took. UserError with what is wrong, as ``bbrlab run`` says it.

    Args:
        scenario: PAPER/FIGURE of scenarios/, or the path of a scenario file.
        changes: {dotted path: value}, as ``bbrlab run --set`` has them.
        name: of the run's folder, in ``by_hand`` of the results folder; an older run of this name is replaced.
        kernel_name: entry of config/kernels.yaml; default: the file's default.
    """
    if Path(name).name != name or name in ("", ".", ".."):
        raise UserError(f"name {name!r}: is the name of one folder, without '/'")
    path = Path(scenario) if scenario.endswith(".yaml") else paths.SCENARIOS / f"{scenario}.yaml"
    if not path.exists():
        raise UserError(f"there is no scenario {path}; give PAPER/FIGURE of scenarios/, or a file's path")
    point = base_point(load_scenario(path, dict(changes or {})))
    folder = paths.results_folder() / FOLDER / name
    summary = run_point(point, seed, folder, kernel_name=kernel_name)
    failed = [check["name"] for check in failed_of(summary["checks"])]
    wall_s = summary["wall_s"] or float("nan")
    print(
        f"{name}: {summary['virtual_s']:g} s in {wall_s:.1f} s ({summary['virtual_s'] / wall_s:.0f} x real time), "
        + (f"SELF-CHECKS FAILED: {', '.join(failed)}" if failed else f"all {len(summary['checks'])} self-checks passed")
    )
    return Tried(dict(changes or {}), summary, folder)


def over_time(tried: Tried) -> Figure:
    """Goodput of each flow group and the bottleneck's queue over time, as ``bbrlab plot`` draws a run."""
    return draw_runs.over_time([RunSource(tried.folder.name, RunFolder(tried.folder))], ["goodput", "queue"])


def side_by_side(runs: Sequence[Tried]) -> pd.DataFrame:
    """What each flow group got in each run.

    Returns:
        One row per run and flow group: the run's name, the changes in which the runs differ, ``flows``, and SHOWN under the
        names of their axes.
    """
    paths_set = {path for tried in runs for path in tried.changes}
    differ = sorted(p for p in paths_set if len({repr(tried.changes.get(p)) for tried in runs}) > 1)
    rows = []
    for tried in runs:
        for group in tried.summary["groups"]:
            row = {
                "run": tried.folder.name,
                **{p: tried.changes.get(p) for p in differ},
                "flows": f"{group['count']} {group['cca']}",
            }
            rows.append(row | {label_of(metric): group.get(metric) for metric in SHOWN})
    return pd.DataFrame(rows)
