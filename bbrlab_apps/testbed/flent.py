"""Reads flent's data files (``.flent``, ``.flent.gz``, or of older versions ``.json.gz``)."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from bbrlab.base.words import in_short
from bbrlab_apps.testbed import recording as r
from bbrlab_apps.testbed.recording import Flow, NotReadError, Recording, is_there, number, words

SUMS = re.compile(r"(^|[\s:])(sum|avg|totals?|average)$", re.IGNORECASE)
PING = re.compile(r"^Ping \(ms\)", re.IGNORECASE)
# flent's names of what it reads of sockets (its option --socket-stats): the column, and what a unit of it is of ours.
SOCKET = {"tcp_rtt": "rtt_ms", "tcp_cwnd": "cwnd_packets", "tcp_bbr_pacing_gain": "pacing_gain"}


def recognises(text: str) -> bool:
    """Whether a text is of flent."""
    return text.lstrip().startswith("{") and '"x_values"' in text and '"results"' in text


def read(file: Path, text: str) -> list[Recording]:
    """The recording of a file. NotReadError if it has no flows."""
    try:
        content = json.loads(text, parse_constant=lambda _: None)
        times, results = content["x_values"], content["results"]
        metadata = content.get("metadata")
        names = [name for name in results if isinstance(results[name], list)]
        clock = np.array([number(t, r.SECONDS_MAX) for t in times])
    except (ValueError, RecursionError):
        raise NotReadError("is flent's, but its JSON is cut off or damaged") from None
    except (KeyError, TypeError, AttributeError):
        raise NotReadError("is flent's, but its x_values or results are not as flent writes them") from None
    metadata = metadata if isinstance(metadata, dict) else {}
    meta = metadata.get("SERIES_META")
    flows, used, pings = [], set(), []
    for name in names:
        if PING.match(name) and not SUMS.search(name):
            used.add(name)
            pings += [v for v in (number(value, r.RTT_MS_MAX, r.RTT_MS_MIN) for value in results[name]) if is_there(v)]
        if not re.match(r"^TCP (upload|download|totals|\d)", name) or "::" in name or SUMS.search(name):
            continue
        table = r.table_of(_rows(name, clock, results))
        used |= {name, *(f"{name}::{key}" for key in SOCKET)}
        if len(table) >= 2:
            flows.append(Flow(name, table, None, _cca(name, meta), "download" in name))
    if not flows:
        raise NotReadError(
            f"is flent's, and has no series of a TCP flow (it has {in_short([words(n) for n in names]) or 'none'})"
        )
    left = [words(name) for name in names if name not in used and not SUMS.search(name)]
    wanted = [(f"flent's {key}", words(metadata.get(key))) for key in ("TITLE", "NOTE", "NAME")]
    return [
        Recording(
            file,
            "flent's data",
            flows,
            _epoch_s(metadata.get("T0")),
            ping_ms=pings,
            says=wanted,
            not_read=[f"the series {in_short(left)}"] if left else [],
            system=words(metadata.get("KERNEL_RELEASE")),
        )
    ]


def _epoch_s(t0: Any) -> float | None:
    """When flent's times are 0, in seconds since 1970; None if the file does not say, or in no time zone, as old versions."""
    try:
        begin = datetime.fromisoformat(t0)
        epoch_s = begin.timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return epoch_s if begin.tzinfo and 0 < epoch_s <= r.EPOCH_MAX else None


def _rows(name: str, clock: np.ndarray[Any, Any], results: dict[str, Any]) -> list[dict[str, float]]:
    """A row for each time at which the flow's rate is there."""
    beside = {column: results.get(f"{name}::{key}") for key, column in SOCKET.items()}
    rows, last = [], math.nan
    for i, (time_s, value) in enumerate(zip(clock, results[name], strict=False)):
        rate = number(value, r.MBIT_MAX)
        if not (math.isfinite(time_s) and math.isfinite(rate)):
            continue
        row = {"time_s": float(time_s), "seconds": time_s - last if time_s > last else 0.2, "goodput_mbit": rate}
        for column, values in beside.items():
            if isinstance(values, list) and i < len(values):
                row[column] = number(values[i], r.PACKETS_MAX, r.RTT_MS_MIN if column == "rtt_ms" else 1e-6)
        rows.append(row)
        last = float(time_s)
    return rows


def _cca(name: str, meta: Any) -> str:
    """The algorithm that the file names for a series: in its metadata, else in its name."""
    of = meta.get(name) if isinstance(meta, dict) else None
    text = words(of.get("CONG_CONTROL")) if isinstance(of, dict) else ""
    in_name = re.search(r"\b(bbr\w*|cubic|reno|dctcp|vegas|westwood|cdg|ledbat|prague)\b", name, re.IGNORECASE)
    return text.partition(",")[0].lower() or (in_name.group(1).lower() if in_name else "")
