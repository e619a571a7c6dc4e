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
from bbrlab.measure import schema
from bbrlab.measure.checks.check import failed_of
from bbrlab.publish.expected_runs import ExpectedRun, Problem
from bbrlab.results.digest import CHECKS, NOT_RESULT, fields_of, restricted, summary_digest
from bbrlab.results.figures import Run
from bbrlab.results.nested import differences, in_words
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.tables import run_rows
from bbrlab.run.guest_code import always_loaded
from bbrlab.run.output import MANIFEST, SUMMARY

# Of a run's manifest.json: what the same run writes again. The rest is of the machine, or has its own line (kernel).
REPEATABLE = (
    "scenario",
    "values",
    "fingerprint",
    "seed",
    "backend",
    "plan_sha256",
    "guest_code_sha256",
    "outputs_sha256",
    "report",
    "iperf3",
)
SHOWN = 3  # of the fields that differ, for each file
LATER = {
    field for m in schema.METRICS.values() if m.since for field in (m.field, f"flows.{m.name}")
}  # not in all results


def compare(expected: ExpectedRun, folder: Path, libraries: Mapping[str, str]) -> list[Problem]:
    """What a run that was made again, in ``folder``, has otherwise than its expected."""
    wrong = []
    again = RunFolder(folder)
    whole, now = again.raw_summary, again.table_hashes
    summary = restricted(whole, _comparable(expected, whole))
    if failed := [check for check in failed_of(whole["checks"]) if check not in summary["checks"]]:
        text = "; ".join(f"{check['name']} ({check['detail']})" for check in failed[:SHOWN])
        wrong.append(Problem(SUMMARY, f"fails self-checks that its version did not have: {text}"))
    if summary_digest(summary) != expected.summary_sha256:
        fields = _unequal(expected.summary, summary) if expected.summary else _unequal_rows(expected, folder, summary)
        text = "; ".join(fields[:SHOWN]) or "a field that the figure's table does not have"
        more = f"; and {len(fields) - SHOWN} more" if len(fields) > SHOWN else ""
        wrong.append(Problem(SUMMARY, f"another result: {text}{more}"))
    elif expected.rows and (fields := _unequal_rows(expected, folder, summary)):
        wrong.append(Problem(f"{expected.run.figure}.parquet", f"is not of its run: {'; '.join(fields[:SHOWN])}"))
    for name in sorted(expected.tables.keys() | now.keys()):
        old, new = expected.tables.get(name), now.get(name)
        if old == new or any(one.file == name for one in expected.problems):
            continue
        if old is None or new is None:
            wrong.append(Problem(name, "is missing" if old is None else "is not made any more"))
            continue
        text = _first_cell(expected.run.folder / name, folder / name)
        version = importlib.metadata.version("pyarrow")
        if libraries and libraries.get("pyarrow") != version:
            text += (
                f" (written by pyarrow {libraries.get('pyarrow')}, here by {version}: the bytes may differ for that)"
            )
        wrong.append(Problem(name, f"has hash {old[:12]}, again {new[:12]}{text}"))
    if isinstance(expected.manifest, dict):
        there, here = (_repeatable(manifest) for manifest in (expected.manifest, again.manifest))
        if fields := _unequal(there, here):
            wrong.append(
                Problem(
                    MANIFEST,
                    "; ".join(fields[:SHOWN]) + (f"; and {len(fields) - SHOWN} more" if len(fields) > SHOWN else ""),
                )
            )
        if expected.summary and expected.manifest.get("kernel") != expected.summary.get("kernel"):
            wrong.append(Problem(MANIFEST, "kernel: is another one than in summary.json"))
    return wrong


def _repeatable(manifest: dict[str, Any]) -> dict[str, Any]:
    """What of a run's manifest must be the same again; without files that no campaign's guest loads, which older versions named."""
    found = {key: manifest.get(key) for key in REPEATABLE}
    if isinstance(guest := found["guest_code_sha256"], dict):
        found["guest_code_sha256"] = always_loaded(guest)
    return found


def _unequal(there: Any, here: Any) -> list[str]:
    """Where two contents of JSON files differ, in words; not in what is no result (digest.NOT_RESULT).

    A version that measures more, or less, has other fields; a field without a value is another thing.
    """
    there, here = ({k: v for k, v in one.items() if k not in NOT_RESULT} for one in (there, here))
    return [f"{d.place} {in_words(d.one)}, again {in_words(d.two)}" for d in differences(there, here)]


def _comparable(expected: ExpectedRun, summary: Mapping[str, Any]) -> frozenset[str]:
    """The fields of a run that was made again that its expected has, too; and of one's own folder, where nobody says what its version had,
    all but those of later versions."""
    if expected.summary is None:
        return expected.fields
    return expected.fields | {f for f in fields_of(summary) if f not in LATER and not f.startswith(f"{CHECKS}.")}


def _unequal_rows(expected: ExpectedRun, folder: Path, summary: Mapping[str, Any]) -> list[str]:
    """Which metrics of a figure's table differ from the run that was made again, whose ``summary`` has the fields that count."""
    found, fields = [], fields_of(summary)
    rows = run_rows(Run(expected.run.figure, expected.run.point, expected.run.seed, folder))
    if len(rows) != len(expected.rows):
        return [f"{len(expected.rows)} flow groups, again {len(rows)}"]
    for there, here in zip(sorted(expected.rows, key=lambda row: row["group"]), rows, strict=True):
        here["ok"] = summary["ok"]
        for name in ("ok", "count", *schema.METRICS):
            if name not in there or (name in schema.RUN and here["group"]):
                continue
            if name in schema.METRICS and schema.METRICS[name].field not in fields:
                continue
            one, two = (np.nan if v is None else v for v in (there[name], here.get(name)))
            if not (one == two or (pd.isna(one) and pd.isna(two))):
                of = "" if name in schema.RUN else f" of group {here['group']}"
                found.append(f"{name}{of} {one!r}, again {two!r}")
    return found


def _first_cell(there: Path, here: Path) -> str:
    """The first cell of two tables that differs, in words; "" where one cannot be read, or all cells are equal."""
    try:
        one, two = read_table(there), read_table(here)
    except UserError:
        return ""
    if one.shape != two.shape:
        return f": {len(one)} rows of {one.shape[1]} columns, again {len(two)} of {two.shape[1]}"
    if lost := [column for column in one if column not in two]:
        return f": has a column {lost[0]}, again none of this name"
    for column in one:
        differ = unequal(one[column], two[column]).to_numpy()
        if differ.any():
            row = int(differ.argmax())
            there, here = (table[column].iloc[[row]].tolist()[0] for table in (one, two))
            return f": {column}, row {row}: {there!r}, again {here!r}"
    return ""
