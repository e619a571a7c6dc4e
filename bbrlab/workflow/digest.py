"""Hashes of what a run came to, by which two runs of one point and seed are compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import files

# Of a summary.json: how long it took is of the machine; which kernel it was stands beside the hash, since a build of the
# same source by another compiler may give the same result.
NOT_RESULT = ("wall_s", "kernel")
SUMMARY, MANIFEST = "summary.json", "manifest.json"
TABLES = ("samples.parquet", "short_flows.parquet")  # the second one only where there are short flows


def summary_digest(summary: Mapping[str, Any]) -> str:
    """SHA-256 of what a summary says of the run, whatever the order of its fields."""
    rest = {key: value for key, value in summary.items() if key not in NOT_RESULT}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def column_of(table: str) -> str:
    """The column of shipped results' runs.parquet that has the hash of a run's table."""
    return table.replace(".parquet", "_sha256")


def table_digests(folder: Path) -> dict[str, str]:
    """{name: SHA-256} of a run's tables that are there."""
    return {name: files.sha256(folder / name) for name in TABLES if (folder / name).is_file()}
