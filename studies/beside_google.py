"""This lab's BBRv2 and BBRv3 in every cell in which Google's code was run (docs/explanation/beside_google.md).

``python -m studies.beside_google FOLDER`` runs what is not there yet in FOLDER, one guest at a time, and writes data/google/ours.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import files, paths
from bbrlab.base.tables import published_table, write_csv
from bbrlab.base.yaml_files import dump_yaml, read_yaml
from bbrlab.results.figures import PANEL_KEYS
from bbrlab_apps.study.commands.sweep import make_runs
from bbrlab_apps.study.plan import Study, plan_study
from bbrlab_apps.study.table import study_table

SEEDS = 3
OURS = paths.DATA / "google" / "ours.csv"
CELL = ["figure", *PANEL_KEYS.values()]


def scenario_of(figure: str, cells: pd.DataFrame) -> dict[str, Any]:
    """A panel's scenario with these cells alone, the exact RTT, and hosts without noise: as Google's code was run.

    Args:
        figure: PAPER/FIGURE.
        cells: rows with the columns CELL; every number of flows has every buffer.
    """
    content: dict[str, Any] = read_yaml(paths.SCENARIOS / f"{figure}.yaml")
    sweep = {field: sorted(cells[column].unique().tolist()) for field, column in PANEL_KEYS.items()}
    content = content | {"hosts": content["hosts"] | {"noise": "off"}, "sweep": sweep, "trials": SEEDS}
    del content["scales"]
    return content


def shares(study: Study, figure: str) -> pd.DataFrame:
    """The rows of data/google/ours.csv of a panel: those of runs that passed their self-checks."""
    runs = study_table(study)
    good = runs[(runs["group"] == 0) & runs["ok"]]
    table = good.drop(columns="buffer_bdp").rename(columns=PANEL_KEYS).assign(figure=figure, exactness="own runs")
    key = table["kernel_key"].astype(str)
    table["source"] = f"this lab, scenarios/{figure}.yaml, kernel lab-6.12 of key " + key + ", hosts without noise"
    table["share_of_capacity"] = table["share_of_capacity"].round(4)
    columns = [*CELL, "seed", "share_of_capacity", "source", "exactness"]
    return table[columns].sort_values([*CELL, "seed"], ignore_index=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    tables = []
    for figure, cells in published_table("google/shares").groupby("figure"):
        path = folder / f"{Path(str(figure)).name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_if_changed(path, dump_yaml(scenario_of(str(figure), cells)))
        study = plan_study(path, path.with_suffix(""), {}, None)
        make_runs(study, None, (), 1)
        tables.append(shares(study, str(figure)))
    write_csv(pd.concat(tables), OURS)


if __name__ == "__main__":
    main()
