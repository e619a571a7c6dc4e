"""This lab's BBRv2 and BBRv3 in every setting in which Google's code was run (docs/explanation/beside_google.md).

``python -m studies.beside_google FOLDER`` runs what is not there yet in FOLDER, one guest at a time, and writes data/google/ours*.csv:
random loss, queues, traces, shares. Of shares it begins with the runs that ours.csv lacks of today's kernel; rows that were not run
again stay. Ctrl-C writes what is there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from bbrlab.base import files, paths
from bbrlab.base.tables import published_table, read_table, write_csv
from bbrlab.base.yaml_files import dump_yaml, read_yaml
from bbrlab.cli.interrupts import EXIT_INTERRUPTED, Interrupted, make_interruptible
from bbrlab.cli.status_line import status_line
from bbrlab.results.figures import PANEL_KEYS, Run
from bbrlab_apps.study.plan import Study, is_kept, plan_study, write_scenario
from bbrlab_apps.study.run import kernel_of, run_study
from bbrlab_apps.study.table import study_table
from studies import google_traces

SEEDS = 3
DATA = paths.DATA / "google"
CELL = ["figure", *PANEL_KEYS.values()]
LOSS_CELL = ["cca", "loss_percent"]
QUEUE_CELL = ["figure", "rtt_ms", "buffer_bdp", "second_starts_s"]
SOURCE = ["source", "exactness"]
EVERY_S = 60  # between two lines of progress


def compared() -> pd.DataFrame:
    """Every cell in which Google's code was run.

    Returns:
        CELL; share of capacity of the BBR flows, means over seeds: published, google, before (this lab's default until November
        2026), ours (data/google/ours.csv), each of the last three with SIDE_sd and SIDE_seeds.
    """
    ours = published_table("google/ours").groupby(CELL)["share_of_capacity"].agg(["mean", "std", "count"])
    return published_table("google/shares").join(ours.set_axis(["ours", "ours_sd", "ours_seeds"], axis=1), on=CELL)


def exact(name: str, sweep: dict[str, list[Any]], trials: int) -> dict[str, Any]:
    """A scenario file as Google's code was run, with another sweep: today's algorithms, the exact RTT, hosts without noise.

    Args:
        name: PAPER/FIGURE.
    """
    content: dict[str, Any] = read_yaml(paths.SCENARIOS / f"{name}.yaml")
    changed = {"hosts": content["hosts"] | {"noise": "off"}, "sweep": sweep, "trials": trials}
    return {key: value for key, value in content.items() if key not in ("scales", "cases")} | changed


def values(column: pd.Series) -> list[Any]:
    """The values of a column, in order."""
    return sorted(column.unique().tolist())


def share_scenario(figure: str, cells: pd.DataFrame) -> dict[str, Any]:
    """A panel of these cells (rows with the columns CELL; every number of flows has every buffer)."""
    return exact(figure, {field: values(cells[column]) for field, column in PANEL_KEYS.items()}, SEEDS)


def loss_scenario() -> dict[str, Any]:
    """One flow with random loss."""
    runs = published_table("google/loss").query("code == 'google'")
    sweep = {"flows.0.cca": values(runs["cca"]), "network.loss": values(runs["loss_percent"] / 100)}
    return exact("questions/readings_loss", sweep, int(runs["seed"].max()))


def queue_scenario(figure: str, cells: pd.DataFrame) -> dict[str, Any]:
    """Two flows of BBRv3 in these cells (rows of data/google/queues.csv)."""
    sweep = {"network.rtt_ms": values(cells["rtt_ms"]), "network.buffer.bdp": values(cells["buffer_bdp"])}
    if cells["second_starts_s"].any():
        sweep["flows.1.start_s"] = values(cells["second_starts_s"])
    return exact(figure, sweep, int(cells["google_seeds"].max()))


def plan(folder: Path, content: dict[str, Any]) -> Study:
    """The study of a scenario, in a file and a folder of its name."""
    path = folder / f"{content['name']}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_if_changed(path, dump_yaml(content))
    return plan_study(path, path.with_suffix(""), {}, None)


def make(study: Study, runs: list[Run], write: Callable[[], None]) -> None:
    """Run those of a study's runs that are not there, in their order, one guest at a time; write what there is then, however it ends."""
    kernel = kernel_of(study, None, (), typer.echo)
    write_scenario(study)
    left = [run for run in runs if not is_kept(run, kernel.key)]
    typer.echo(f"{study.name}: {len(left)} of {len(runs)} runs are left")
    try:
        with status_line(EVERY_S) as line:
            run_study(study, left, 1, None, (), lambda progress, waits: line.show(progress.words()))
    finally:
        if study.finished:
            write()


def add(rows: pd.DataFrame, name: str, keys: list[str], columns: list[str]) -> None:
    """Put rows into a table of data/google, in place of those of the same keys."""
    path = DATA / f"{name}.csv"
    both = [pd.read_csv(path)] if path.exists() else []
    table = pd.concat([*both, rows[[*keys, *columns]]]).drop_duplicates(keys, keep="last")
    write_csv(table.sort_values(keys, ignore_index=True), path)


def first_groups(study: Study) -> pd.DataFrame:
    """The rows of the first flow group of a study's runs that are there and passed their self-checks, with SOURCE."""
    runs = study_table(study)
    table = runs[(runs["group"] == 0) & runs["ok"]].drop(columns="buffer_bdp", errors="ignore")
    name, key = study.figure.id, table["kernel_key"].astype(str)
    source = f"this lab, scenarios/{name}.yaml, kernel lab-6.12 of key " + key + ", hosts without noise"
    return table.assign(figure=name, source=source, exactness="own runs")


def make_loss(folder: Path) -> None:
    """One flow with random loss, with the seeds that Google's has."""
    study = plan(folder, loss_scenario())
    google = published_table("google/loss").query("code == 'google'")

    def write() -> None:
        rows = first_groups(study)
        rows["loss_percent"], rows["goodput_mbit"] = (
            (rows["network.loss"] * 100).round(3),
            rows["goodput_mbit"].round(1),
        )
        add(rows, "ours_loss", [*LOSS_CELL, "seed"], ["goodput_mbit", *SOURCE])

    there = {(loss / 100, seed) for loss, seed in zip(google["loss_percent"], google["seed"], strict=True)}
    make(study, [run for run in study.runs if (run.point.values["network.loss"], run.seed) in there], write)


def make_queues(folder: Path) -> None:
    """Two flows of BBRv3: their queue."""
    for figure, cells in published_table("google/queues").groupby("figure", sort=False):
        study = plan(folder, queue_scenario(str(figure), cells))

        def write(study: Study = study) -> None:
            rows = first_groups(study).rename(columns={"network.rtt_ms": "rtt_ms", "network.buffer.bdp": "buffer_bdp"})
            rows["second_starts_s"] = rows.get("flows.1.start_s", 0)
            rows["median_rtts"] = (rows["queue_ms_p50"] / rows["rtt_ms"]).round(3)
            rows["lost_percent"] = (rows["loss"] * 100).round(3)
            add(rows, "ours_queues", [*QUEUE_CELL, "seed"], ["median_rtts", "lost_percent", *SOURCE])

        make(study, study.runs, write)


def make_traces(folder: Path) -> None:
    """Each trace's scenario, with its seed: what states last, and where it parts from Google's."""
    for trace, row in google_traces.index().items():
        study = plan(folder, google_traces.scenario_of(trace))
        run = next(run for run in study.runs if run.seed == row["seed"])
        key = kernel_of(study, None, (), typer.echo).key

        def write(run: Run = run, trace: str = trace, key: str = key) -> None:
            rows = google_traces.beside(trace, read_table(run.folder / "samples.parquet"), key)
            add(rows, "states", ["trace", "code"], list(rows.columns[2:]))

        make(study, [run], write)


def make_shares(folder: Path) -> None:
    """Shares of capacity in Google's cells."""
    for figure, cells in published_table("google/shares").groupby("figure"):
        study = plan(folder, share_scenario(str(figure), cells))
        key = kernel_of(study, None, (), typer.echo).key
        of_this_kernel = published_table("google/ours").set_index([*CELL, "seed"])["source"].str.contains(key)

        def has_row(run: Run, rows: pd.Series = of_this_kernel) -> bool:
            return bool(rows.get((run.figure, *(run.point.values[field] for field in PANEL_KEYS), run.seed), False))

        def write(study: Study = study) -> None:
            rows = first_groups(study).rename(columns=PANEL_KEYS)
            add(rows.round({"share_of_capacity": 4}), "ours", [*CELL, "seed"], ["share_of_capacity", *SOURCE])

        make(study, sorted(study.runs, key=has_row), write)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    make_interruptible()
    try:
        for part in (make_loss, make_queues, make_traces, make_shares):
            part(folder)
    except Interrupted:
        raise SystemExit(EXIT_INTERRUPTED) from None


if __name__ == "__main__":
    main()
