"""Differences between a repeated run and the expected one, as text."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.tables import read_table, unequal
from bbrlab.comparison.expected_runs import ExpectedRun, Problem
from bbrlab.measure import metrics
from bbrlab.measure.checks.check import failed_of
from bbrlab.results.curves import choices, curves_of_point, file_of
from bbrlab.results.digest import CHECKS, NOT_RESULT, fields_of, restricted, summary_digest
from bbrlab.results.figures import Run
from bbrlab.results.nested import differences, in_words
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.tables import run_rows
from bbrlab.run.manifest import always_loaded
from bbrlab.run.output import MANIFEST, SAMPLES, SUMMARY

# Fields of a run's manifest.json that a repeated run has, too. The others depend on the machine, or are compared separately (kernel).
REPEATABLE = (
    "scenario", "values", "fingerprint", "seed", "backend", "plan_sha256", "guest_code_sha256", "outputs_sha256",
    "report", "iperf3",
)  # fmt: skip
SHOWN = 3  # of differing fields, for each file
LATER = {
    field for m in metrics.METRICS.values() if m.since for field in (m.field, f"flows.{m.name}")
}  # not in all results


def compare(expected: ExpectedRun, folder: Path, libraries: Mapping[str, str]) -> list[Problem]:
    """How a repeated run, in ``folder``, differs from the expected one."""
    problems = []
    again = RunFolder(folder)
    raw_summary, hashes = again.raw_summary, again.table_hashes
    summary = restricted(raw_summary, _comparable(expected, raw_summary))
    if failed := [check for check in failed_of(raw_summary["checks"]) if check not in summary["checks"]]:
        text = "; ".join(f"{check['name']} ({check['detail']})" for check in failed[:SHOWN])
        problems.append(Problem(SUMMARY, f"fails self-checks that its version did not have: {text}"))
    if summary_digest(summary) != expected.summary_sha256:
        fields = _unequal(expected.summary, summary) if expected.summary else _unequal_rows(expected, folder, summary)
        text = _first_of(fields) or "a field that the figure's table does not have"
        problems.append(Problem(SUMMARY, f"another result: {text}"))
    elif expected.rows and (fields := _unequal_rows(expected, folder, summary)):
        problems.append(Problem(f"{expected.run.figure}.parquet", f"is not of its run: {'; '.join(fields[:SHOWN])}"))
    for name in sorted(expected.tables.keys() | hashes.keys()):
        old, new = expected.tables.get(name), hashes.get(name)
        if old == new or any(one.file == name for one in expected.problems):
            continue
        if old is None or new is None:
            problems.append(Problem(name, "is missing" if old is None else "is not made any more"))
            continue
        text = _first_cell(expected.run.folder / name, folder / name)
        version = importlib.metadata.version("pyarrow")
        if libraries and libraries.get("pyarrow") != version:
            text += (
                f" (written by pyarrow {libraries.get('pyarrow')}, here by {version}: the bytes may differ for that)"
            )
        problems.append(Problem(name, f"has hash {old[:12]}, again {new[:12]}{text}"))
    problems += _unequal_curves(expected, folder)
    if isinstance(expected.manifest, dict):
        before, after = (_repeatable(manifest) for manifest in (expected.manifest, again.manifest))
        if fields := _unequal(before, after):
            problems.append(Problem(MANIFEST, _first_of(fields)))
        if expected.summary and expected.manifest.get("kernel") != expected.summary.get("kernel"):
            problems.append(Problem(MANIFEST, "kernel: is another one than in summary.json"))
    return problems


def _first_of(differing: list[str]) -> str:
    more = f"; and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
    return "; ".join(differing[:SHOWN]) + more


def _unequal_curves(expected: ExpectedRun, folder: Path) -> list[Problem]:
    """Whether the curves that ship of a run are not those of its samples."""
    run, curves = expected.run, expected.curves
    if curves is None:
        return []
    choice = choices().get(run.figure)
    again = None if choice is None else curves_of_point(choice, run.point, folder / SAMPLES)
    if again is not None and curves.reset_index(drop=True).equals(again.astype(curves.dtypes)):
        return []
    what = f"its curves of {run.point.label} are not of its run; bbrlab ship --add {run.figure} packs them anew"
    return [Problem(file_of(run.figure), what)]


def _repeatable(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest's REPEATABLE fields, without guest files that campaigns do not load, which older versions listed."""
    fields = {key: manifest.get(key) for key in REPEATABLE}
    if isinstance(guest := fields["guest_code_sha256"], dict):
        fields["guest_code_sha256"] = always_loaded(guest)
    return fields


def _unequal(expected: Any, repeated: Any) -> list[str]:
    """The differences of two JSON contents, in words, without fields that are no results (digest.NOT_RESULT)."""
    expected, repeated = ({k: v for k, v in content.items() if k not in NOT_RESULT} for content in (expected, repeated))
    return [f"{d.place} {in_words(d.first)}, again {in_words(d.second)}" for d in differences(expected, repeated)]


def _comparable(expected: ExpectedRun, summary: Mapping[str, Any]) -> frozenset[str]:
    """The fields of a repeated run to compare: those of the expected one. In a user's own folder, whose version is not recorded, also
    all others that no later version added."""
    if expected.summary is None:
        return expected.fields
    return expected.fields | {f for f in fields_of(summary) if f not in LATER and not f.startswith(f"{CHECKS}.")}


def _unequal_rows(expected: ExpectedRun, folder: Path, summary: Mapping[str, Any]) -> list[str]:
    """The metrics of a figure's table that differ from the repeated run, whose ``summary`` has the fields to compare."""
    differing, fields = [], fields_of(summary)
    rows = run_rows(Run(expected.run.figure, expected.run.point, expected.run.seed, folder))
    if len(rows) != len(expected.rows):
        return [f"{len(expected.rows)} flow groups, again {len(rows)}"]
    for expected_row, repeated in zip(sorted(expected.rows, key=lambda row: row["group"]), rows, strict=True):
        repeated["ok"] = summary["ok"]
        for name in ("ok", "count", *metrics.METRICS):
            if name not in expected_row or (name in metrics.RUN and repeated["group"]):
                continue
            if name in metrics.METRICS and metrics.METRICS[name].field not in fields:
                continue
            one, two = (np.nan if v is None else v for v in (expected_row[name], repeated.get(name)))
            if not (one == two or (pd.isna(one) and pd.isna(two))):
                of = "" if name in metrics.RUN else f" of group {repeated['group']}"
                differing.append(f"{name}{of} {one!r}, again {two!r}")
    return differing


def _first_cell(expected: Path, repeated: Path) -> str:
    """The first differing cell of two tables, in words; empty if one cannot be read, or all cells are equal."""
    try:
        first, second = read_table(expected), read_table(repeated)
    except UserError:
        return ""
    if first.shape != second.shape:
        return f": {len(first)} rows of {first.shape[1]} columns, again {len(second)} of {second.shape[1]}"
    if lost := [column for column in first if column not in second]:
        return f": has a column {lost[0]}, again none of this name"
    for column in first:
        unequal_rows = unequal(first[column], second[column]).to_numpy()
        if unequal_rows.any():
            row = int(unequal_rows.argmax())
            expected, repeated = (table[column].iloc[[row]].tolist()[0] for table in (first, second))
            return f": {column}, row {row}: {expected!r}, again {repeated!r}"
    return ""
