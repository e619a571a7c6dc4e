"""How a run that was made again differs from what is said of it, in words."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.tables import read_table
from bbrlab.measure import schema
from bbrlab.measure.checks.check import failed_of
from bbrlab.publish.expected_runs import MANIFEST, Record, Wrong
from bbrlab.results.digest import CHECKS, SUMMARY, fields_of, restricted, summary_digest, table_digests
from bbrlab.results.figures import Run
from bbrlab.results.tables import run_rows
from bbrlab.run.guest_code import always_loaded

# Of a run's manifest.json: what the same run writes again. The rest is of the machine, or has its own line (kernel).
REPEATABLE = ("scenario", "values", "fingerprint", "seed", "backend", "plan_sha256", "guest_code_sha256", "outputs_sha256", "report", "iperf3")  # fmt: skip
MISSING = object()  # a field that is not there
SHOWN = 3  # of the fields that differ, for each file
LATER = {
    field for m in schema.METRICS.values() if m.since for field in (m.field, f"flows.{m.name}")
}  # not in all results


def compare(record: Record, folder: Path, libraries: Mapping[str, str]) -> list[Wrong]:
    """What a run that was made again, in ``folder``, has otherwise than its record."""
    wrong = []
    whole, now = files.read_json(folder / SUMMARY), table_digests(folder)
    summary = restricted(whole, _comparable(record, whole))
    if failed := [check for check in failed_of(whole["checks"]) if check not in summary["checks"]]:
        told = "; ".join(f"{check['name']} ({check['detail']})" for check in failed[:SHOWN])
        wrong.append(Wrong(SUMMARY, f"fails self-checks that its version did not have: {told}"))
    if summary_digest(summary) != record.summary_sha256:
        fields = _unequal(record.summary, summary) if record.summary else _unequal_rows(record, folder, summary)
        told = "; ".join(fields[:SHOWN]) or "a field that the figure's table does not have"
        more = f"; and {len(fields) - SHOWN} more" if len(fields) > SHOWN else ""
        wrong.append(Wrong(SUMMARY, f"another result: {told}{more}"))
    elif record.rows and (fields := _unequal_rows(record, folder, summary)):
        wrong.append(Wrong(f"{record.run.figure}.parquet", f"is not of its run: {'; '.join(fields[:SHOWN])}"))
    for name in sorted(record.tables.keys() | now.keys()):
        old, new = record.tables.get(name), now.get(name)
        if old == new or any(w.file == name for w in record.wrong):
            continue
        if old is None or new is None:
            wrong.append(Wrong(name, "is missing" if old is None else "is not made any more"))
            continue
        told = _first_cell(record.run.folder / name, folder / name)
        mine = importlib.metadata.version("pyarrow")
        if libraries and libraries.get("pyarrow") != mine:
            told += f" (written by pyarrow {libraries.get('pyarrow')}, here by {mine}: the bytes may differ for that)"
        wrong.append(Wrong(name, f"has hash {old[:12]}, again {new[:12]}{told}"))
    if isinstance(record.manifest, dict):
        manifest = files.read_json(folder / MANIFEST)
        there, here = (_repeatable(m) for m in (record.manifest, manifest))
        if fields := _unequal(there, here):
            wrong.append(
                Wrong(
                    MANIFEST,
                    "; ".join(fields[:SHOWN]) + (f"; and {len(fields) - SHOWN} more" if len(fields) > SHOWN else ""),
                )
            )
        if record.summary and record.manifest.get("kernel") != record.summary.get("kernel"):
            wrong.append(Wrong(MANIFEST, "kernel: is another one than in summary.json"))
    return wrong


def _repeatable(manifest: dict[str, Any]) -> dict[str, Any]:
    """What of a run's manifest must be the same again; without files that no campaign's guest loads, which older versions named."""
    found = {key: manifest.get(key) for key in REPEATABLE}
    if isinstance(guest := found["guest_code_sha256"], dict):
        found["guest_code_sha256"] = always_loaded(guest)
    return found


def _unequal(there: Any, here: Any, place: str = "") -> list[str]:
    """Where two contents of JSON files differ, in words; not in what is no result (digest.py)."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = [k for k in dict.fromkeys([*there, *here]) if place or k not in ("wall_s", "kernel")]
        # A version that measures more, or less, has other fields; a field without a value is another thing.
        return [
            w
            for k in keys
            for w in _unequal(there.get(k, MISSING), here.get(k, MISSING), f"{place}.{k}" if place else str(k))
        ]
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        return [w for i, pair in enumerate(zip(there, here, strict=True)) for w in _unequal(*pair, f"{place}.{i}")]
    # As JSON has them: 10 and 10.0 are one number to Python, but other bytes.
    one, two = _words(there), _words(here)
    return [] if one == two else [f"{place} {_short(one)}, again {_short(two)}"]


def _words(value: Any) -> str:
    return "is not there" if value is MISSING else json.dumps(value, sort_keys=True)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _comparable(record: Record, summary: Mapping[str, Any]) -> frozenset[str]:
    """The fields of a run that was made again that its record has, too; and of one's own folder, where nobody says what its version had,
    all but those of later versions."""
    if record.summary is None:
        return record.fields
    return record.fields | {f for f in fields_of(summary) if f not in LATER and not f.startswith(f"{CHECKS}.")}


def _unequal_rows(record: Record, folder: Path, summary: Mapping[str, Any]) -> list[str]:
    """Which metrics of a figure's table differ from the run that was made again, whose ``summary`` has the fields that count."""
    found, fields = [], fields_of(summary)
    rows = run_rows(Run(record.run.figure, record.run.point, record.run.seed, folder))
    if len(rows) != len(record.rows):
        return [f"{len(record.rows)} flow groups, again {len(rows)}"]
    for there, here in zip(sorted(record.rows, key=lambda row: row["group"]), rows, strict=True):
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
        differ = ~((one[column] == two[column]) | (one[column].isna() & two[column].isna())).to_numpy()
        if differ.any():
            row = int(differ.argmax())
            there, here = (table[column].iloc[[row]].tolist()[0] for table in (one, two))
            return f": {column}, row {row}: {there!r}, again {here!r}"
    return ""
