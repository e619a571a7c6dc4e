"""Hashes of a run's results, by which two runs of one point and seed are compared.

Later versions measure and check more. A hash of a summary covers the fields of the version that made it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from bbrlab.measure.checks.check import failed_of, kind_of

# Fields of summary.json that depend on the machine; the kernel is compared apart from the hash, since a build of the same source by
# another compiler may give the same result.
NOT_RESULT = ("wall_s", "kernel")
CHECKS = "checks"
MEASURED = (
    "groups",
    "flows",
    "bottleneck",
    "links",
)  # parts of a summary whose fields are listed one by one, as its self-checks are
REVERSE = "bottleneck_reverse"  # has the fields of the other bottleneck


def summary_digest(summary: Mapping[str, Any]) -> str:
    """SHA-256 of a summary's results, independent of the order of fields."""
    rest = {key: value for key, value in summary.items() if key not in NOT_RESULT}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def fields_of(summary: Mapping[str, Any]) -> frozenset[str]:
    """The fields of a summary that its hash covers: ``ok``, ``groups.goodput_mbit``, ``bottleneck.queue_ms.p95``, ``checks.rate``.

    Self-checks are listed by kind (check.kind_of()), and the fields of a list's entries once.
    """
    fields: set[str] = set()
    for key, value in summary.items():
        if key == CHECKS:
            fields |= {_place_of(check) for check in value}
        elif _part(key) in MEASURED:
            fields |= _places(value, _part(key))
        elif key not in NOT_RESULT:
            fields.add(key)
    return frozenset(fields)


def restricted(summary: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """A summary with only some fields and self-checks (fields_of()); ``ok`` by the remaining checks."""
    kept: dict[str, Any] = {}
    for key, value in summary.items():
        if key == CHECKS:
            kept[key] = [check for check in value if _place_of(check) in fields]
        elif _part(key) in MEASURED:
            kept[key] = _only(value, _part(key), fields)
        elif key in fields or key in NOT_RESULT:
            kept[key] = value
    if "ok" in kept and len(kept[CHECKS]) < len(summary[CHECKS]):
        kept["ok"] = not failed_of(kept[CHECKS])
    return kept


def _part(key: str) -> str:
    return "bottleneck" if key == REVERSE else key


def _place_of(check: Mapping[str, Any]) -> str:
    return f"{CHECKS}.{kind_of(check['name'])}"


def _places(content: Any, place: str) -> set[str]:
    """The places of the values in the entries of a list, or in an entry and what is nested in it."""
    if isinstance(content, list):
        return {name for entry in content for name in _places(entry, place)}
    if isinstance(content, dict):
        return {name for key, value in content.items() for name in _places(value, f"{place}.{key}")}
    return {place}


def _only(content: Any, place: str, fields: Collection[str]) -> Any:
    """The content with only the values whose places are among the fields."""
    if isinstance(content, list):
        return [_only(entry, place, fields) for entry in content]
    if not isinstance(content, dict):
        return content
    inner = {key: (f"{place}.{key}", value) for key, value in content.items()}
    return {
        key: _only(value, at, fields)
        for key, (at, value) in inner.items()
        if at in fields or (isinstance(value, dict) and _places(value, at) & set(fields))
    }


def column_of(table: str) -> str:
    """The column of runs.parquet with the hash of a table."""
    return table.replace(".parquet", "_sha256")
