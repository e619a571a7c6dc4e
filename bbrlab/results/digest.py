"""Hashes of a run's outcome, by which two runs of one point and seed are compared.

A later version measures and checks more. A summary's hash is compared over the fields that the version had which made it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from bbrlab.measure.checks.check import failed_of, kind_of

# Of a summary.json: how long it took is of the machine; which kernel it was stands beside the hash, since a build of the
# same source by another compiler may give the same result.
NOT_RESULT = ("wall_s", "kernel")
CHECKS = "checks"
MEASURED = (
    "groups",
    "flows",
    "bottleneck",
    "links",
)  # the parts of a summary whose fields are named one by one, as its self-checks are
REVERSE = "bottleneck_reverse"  # has the fields of the other bottleneck


def summary_digest(summary: Mapping[str, Any], fields: Collection[str] | None = None) -> str:
    """SHA-256 of what a summary says of the run, whatever the order of its fields; of some fields (restricted()) or of all."""
    content = summary if fields is None else restricted(summary, fields)
    rest = {key: value for key, value in content.items() if key not in NOT_RESULT}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def fields_of(summary: Mapping[str, Any]) -> frozenset[str]:
    """The fields of a summary that its hash is over: ``ok``, ``groups.goodput_mbit``, ``bottleneck.queue_ms.p95``, ``checks.rate``.

    The kinds of self-checks are named (check.kind_of()), and the fields of the entries of a list once.
    """
    found: set[str] = set()
    for key, value in summary.items():
        if key == CHECKS:
            found |= {_place_of(check) for check in value}
        elif _part(key) in MEASURED:
            found |= _places(value, _part(key))
        elif key not in NOT_RESULT:
            found.add(key)
    return frozenset(found)


def restricted(summary: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """A summary without the fields and self-checks that are not among some (fields_of()); ``ok`` as those left say."""
    found: dict[str, Any] = {}
    for key, value in summary.items():
        if key == CHECKS:
            found[key] = [check for check in value if _place_of(check) in fields]
        elif _part(key) in MEASURED:
            found[key] = _only(value, _part(key), fields)
        elif key in fields or key in NOT_RESULT:
            found[key] = value
    if "ok" in found and len(found[CHECKS]) < len(summary[CHECKS]):
        found["ok"] = not failed_of(found[CHECKS])
    return found


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
    """The same content without the values whose places are not among the fields."""
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
    """The column of shipped results' runs.parquet that has the hash of a run's table."""
    return table.replace(".parquet", "_sha256")
