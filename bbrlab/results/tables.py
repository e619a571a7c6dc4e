"""Makes the tables of a figure's runs, and of all figures' points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.tables import write_csv
from bbrlab.measure import metrics
from bbrlab.measure.summary import GroupEntry, Summary
from bbrlab.results.figures import Figure, Run, runs_of
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.schema import read_with
from bbrlab.results.statistics import over_seeds

# Columns of a figure's table, beside conditions, swept values and metrics.
IDENTITY = ("point", "seed", "ok", "group", "cca", "count", "kernel", "kernel_key", "virtual_s", "wall_s")


def run_rows(run: Run, summary: Summary | None = None) -> list[dict[str, Any]]:
    """One row per flow group of a finished run: its identity, conditions, and every metric of bbrlab/measure/metrics.py.
    DamagedFile if its summary.json lacks a field or a metric, since another version of this package made it."""
    summary = summary or RunFolder(run.folder).summary
    shared = {
        "figure": run.figure,
        "point": run.point.label,
        "seed": run.seed,
        "ok": summary["ok"],
        **run.point.values,
        **run.point.conditions,
    }
    values = ((name, metric, metric.of_run(summary)) for name, metric in metrics.RUN.items())
    outcome = {name: value for name, metric, value in values if value is not None or not metric.sometimes}
    groups = [_group_columns(group) for group in summary["groups"]]
    made = {
        "kernel": f"{summary['kernel']['name']} ({summary['kernel']['release']})",
        "kernel_key": summary["kernel"]["key"],
        "virtual_s": summary["virtual_s"],
        "wall_s": summary["wall_s"],
    }
    return [shared | {"group": index} | group | outcome | made for index, group in enumerate(groups)]


def _group_columns(group: GroupEntry) -> dict[str, Any]:
    """A flow group's identity and metrics."""
    identity = {"cca": group["cca"], "count": group["count"], "direction": group["direction"]}
    return identity | {name: metric.of_group(group) for name, metric in metrics.GROUP.items()}


def figure_table(figure: Figure, seeds: Mapping[str, int] | None = None) -> pd.DataFrame:
    """One row per run and flow group (columns: docs/reference/results.md), also of runs that failed their checks (``ok`` False).

    UserError if runs are of several kernels, which must not be averaged.

    Args:
        seeds: {point label: number of seeds}; default: the figure's trials.
    """
    runs = runs_of(figure, seeds)
    table = table_of_rows([row for run in runs for row in run_rows(run)])
    _check_kernels(table, runs)
    return table


def table_of_rows(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The table of run_rows() of a figure's runs; their kernels are not checked."""
    table = pd.DataFrame(rows)
    for column in metrics.METRICS.keys() & set(table):  # a column of None only must be numeric, too
        table[column] = table[column].astype(float)
    for name, values in table.loc[:, table.dtypes == "object"].items():
        texts = values.dropna().map(lambda value: isinstance(value, str))
        if texts.any() and not texts.all():  # such as flows.0.links of 0 and 0-1: no column of a file holds both
            table[name] = values.map(str, na_action="ignore")
    return table


def _check_kernels(table: pd.DataFrame, runs: list[Run]) -> None:
    """UserError if runs are of several kernels: builds of one source by two compilers may differ."""
    places = table.drop_duplicates("kernel_key").set_index("kernel_key")[["point", "seed"]]
    if len(places) < 2:
        return
    folders = {(run.point.label, run.seed): run.folder for run in runs}
    first, second = (f"{key} ({folders[point, seed]})" for key, point, seed in places.head(2).itertuples())
    raise UserError(
        f"{runs[0].figure}: has runs of {len(places)} kernels: {first}, {second}; remove the folders of the runs of one of "
        "them (summary.json says kernel.key) and start the campaign again"
    )


def point_means(runs_table: pd.DataFrame, keys: list[str], value: str = "share_of_capacity") -> pd.DataFrame:
    """For each point the mean, the half-width of its 95 % interval, and the number of good runs with a value.

    Args:
        runs_table: a figure_table(), one group only.
        keys: the columns that identify a point.
        value: the column to average.

    Returns:
        Columns: keys, ``mean``, ``ci95``, ``runs``, ``failed`` (runs left out because they failed their checks).
    """
    means = over_seeds(runs_table[runs_table["ok"]].groupby(keys)[value])
    result = means.rename(columns={"half": "ci95", "seeds": "runs"}).drop(columns="standard_deviation").reset_index()
    failed = runs_table.groupby(keys)["ok"].agg(failed=lambda ok: int((~ok).sum())).reset_index()
    return failed.merge(result, on=keys, how="left")


# Of a point (Point.conditions).
CONDITIONS = (
    "rate_mbit", "base_rtt_ms", "buffer_bytes", "buffer_bdp", "qdisc", "random_loss", "duration_s", "window_start_s",
    "window_end_s",
)  # fmt: skip
TIDY = (
    "paper", "figure", "point", "case", "group", "cca", "flows", *CONDITIONS, "metric", "unit", "mean", "ci95_low",
    "ci95_high", "standard_deviation", "seeds", "failed", "without",
)  # fmt: skip


def _flows(content: pd.DataFrame) -> pd.Series:
    """The number of flows of each row's group, the same for all seeds: the mean for short flows, whose number is drawn."""
    return content.groupby(["point", "group"])["count"].transform("mean").round().astype(int)


def tidy(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Every point of every figure in one long table: one row per point, group and metric (docs/reference/results.md).

    Args:
        tables: figure_table() of each figure, by id.

    Returns:
        Columns TIDY. Metrics of the whole run have ``group`` -1, once per point. Runs that failed their checks are counted in ``failed``
        and not averaged, good ones without a value in ``without``. A point whose runs all failed has no mean, and 0 ``seeds``.
    """
    parts = []
    for figure, content in tables.items():
        shared = content.assign(paper=figure.split("/")[0], case=content.get("case", ""), flows=_flows(content))
        of_run = shared[shared["group"] == 0].assign(group=-1, cca="", flows=0)
        for frame, names in ((shared, metrics.GROUP), (of_run, metrics.RUN)):
            keys = [c for c in TIDY[: TIDY.index("metric")] if c in frame]
            present = [m for m in names if m in frame]
            long = frame.melt([*keys, "seed", "ok"], present, "metric", "value")
            every = long.groupby([*keys, "metric"], sort=False)
            counts = every.agg(runs=("ok", "size"), good=("ok", "sum"), values=("value", "count"))
            counts["failed"] = counts["runs"] - counts["good"]
            good = over_seeds(long[long["ok"]].groupby([*keys, "metric"], sort=False)["value"])
            joined = counts.loc[counts["values"] > 0, ["failed", "good"]].join(good)
            rows = joined.reset_index()
            parts.append(rows.assign(unit=rows["metric"].map(lambda name: metrics.METRICS[name].unit)))
    result: pd.DataFrame = pd.concat(parts, ignore_index=True)
    result["seeds"] = result["seeds"].fillna(0).astype(int)
    result["without"] = result["good"] - result["seeds"]
    result["ci95_low"], result["ci95_high"] = result["mean"] - result["half"], result["mean"] + result["half"]
    return result.loc[:, list(TIDY)]


def read_tables(tables: Iterable[Path]) -> dict[str, pd.DataFrame]:
    """{figure: its table} of SCALE/PAPER/FIGURE.parquet files (read_figure())."""
    return {f"{p.parent.name}/{p.stem}": read_figure(p) for p in tables}


def read_figure(path: Path) -> pd.DataFrame:
    """A figure's table, SCALE/PAPER/FIGURE.parquet, of figure_table(); an older one may lack metrics of later versions. UserError
    naming file and column, if a column is missing or has invalid values, or a row is duplicated."""
    return read_with(path, (*IDENTITY, *CONDITIONS, *metrics.ALWAYS))


def read_points(path: Path) -> pd.DataFrame:
    """SCALE/points.parquet, of tidy(). UserError naming file and column if a column is missing."""
    return read_with(path, TIDY)


def write_table(content: pd.DataFrame, out: Path) -> None:
    """Write a table as Parquet to ``out`` and as CSV beside it."""
    write_csv(content, out.with_suffix(".csv"))
    with files.aside(out) as temporary, open(temporary, "wb") as file:
        content.to_parquet(file, index=False)
