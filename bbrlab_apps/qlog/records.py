"""Writes the records of a run's ACKs as qlog, the format of QUIC implementers for congestion control.

A file for each flow, in qlog's JSON text sequences (RFC 7464): draft-ietf-quic-qlog-main-schema-13, with the recovery events of
draft-ietf-quic-qlog-quic-events-12. What TCP does not have is left out, and what those events lack is in further fields, which the
draft allows (docs/reference/results.md#qlog).
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base import files, outputs
from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.measure.bbr_record import STATES
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.run_manifest import RunManifest
from bbrlab.results.samples import BOUNDS, read_over_time
from bbrlab.results.schema import RUN_AGAIN
from bbrlab.run.output import ACKS

FILE_SCHEMA, SERIALIZATION = "urn:ietf:params:qlog:file:sequential", "application/qlog+json-seq"
EVENT_SCHEMA = "urn:ietf:params:qlog:events:quic-12"
SUFFIX, PACKED = ".sqlog", ".gz"
PARAMETERS, METRICS, STATE, TIMER = (
    f"quic:{name}"
    for name in ("recovery_parameters_set", "recovery_metrics_updated", "congestion_state_updated", "timer_updated")
)
TICK_MS = 1  # of the lab's kernels, of which their timers are multiples
TIMEOUT = 1  # of the column event
NO_SSTHRESH = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH
RECOVERY_STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")  # TCP_CA_* of linux/tcp.h
# {field: (column, factor to the field's unit, digits)}: the draft's fields, in its units: ms, bytes, bits per second.
_DRAFT = {
    "min_rtt": ("min_rtt_us", 1e-3, 3), "smoothed_rtt": ("srtt_us", 1e-3, 3), "latest_rtt": ("rtt_us", 1e-3, 3),
    "rtt_variance": ("rttvar_us", 1e-3, 3), "packets_in_flight": ("in_flight", 1, 0), "pacing_rate": ("pacing_rate", 8, 0),
}  # fmt: skip
_DRAFT_OF_PACKETS = {"congestion_window": "cwnd", "bytes_in_flight": "in_flight", "ssthresh": "ssthresh"}
# Further fields, in the same units. A bound that no longer exists is null.
_FURTHER = {
    "tcp_packets_lost": ("lost", 1, 0), "tcp_packets_delivered": ("delivered", 1, 0), "tcp_packets_delivered_ce": ("delivered_ce", 1, 0),
    "tcp_delivery_rate": ("delivery_rate", 8, 0), "bbr_bw": ("bbr_bw", 8, 0), "bbr_max_bw": ("bbr_max_bw", 8, 0),
    "bbr_bw_lo": ("bbr_bw_lo", 8, 0), "bbr_min_rtt": ("bbr_min_rtt_us", 1e-3, 3), "bbr_pacing_gain": ("bbr_pacing_gain", 1, 4),
    "bbr_cwnd_gain": ("bbr_cwnd_gain", 1, 4), "bbr_round_count": ("bbr_round_count", 1, 0),
}  # fmt: skip
_FURTHER_OF_PACKETS = {
    "bbr_inflight_hi": "bbr_inflight_hi", "bbr_inflight_lo": "bbr_inflight_lo", "bbr_extra_acked": "bbr_extra_acked",
}  # fmt: skip
_COLUMNS = (
    "time_s", "flow", "event", "ca_state", "slow_start", "snd_mss", "bbr_state", *_DRAFT_OF_PACKETS.values(), *_FURTHER_OF_PACKETS.values(),
    *(column for column, _, _ in [*_DRAFT.values(), *_FURTHER.values()]),
)  # fmt: skip


def write_qlog(folder: Path, out: Path, *, packed: bool = False) -> list[Path]:
    """Write a qlog file for each flow of a run whose ACKs were recorded.

    UserError if the run has no records of ACKs, files that are damaged, or if a file is there that is not bbrlab's.

    Args:
        out: gets flow-N.sqlog, N counting the run's flows.

    Returns:
        The files.
    """
    path = folder / ACKS
    if not path.exists():
        raise UserError(f"{path}: is not there; run it with --trace-acks (or --trace-changes), which records ACKs")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out}: is a file; give a folder")
    run = RunFolder(folder)
    summary, scenario = run.summary, run.manifest_as(RunManifest).scenario
    columns = list(dict.fromkeys(_COLUMNS))
    acks = read_over_time(path, scenario, columns)
    names = {int(f): out / f"flow-{f}{SUFFIX}{PACKED if packed else ''}" for f in sorted(acks["flow"].unique())}
    for name in names.values():
        outputs.check_file("--out", name, outputs.QLOG)
    for flow, rows in acks.groupby("flow", sort=True):
        number = int(str(flow))
        try:
            cca = summary["flows"][number]["cca"]
            title = f"{summary['scenario']} seed {summary['seed']}, flow {number}: {cca}"
            text = "".join(
                f"\x1e{json.dumps(record, separators=(',', ':'), allow_nan=False)}\n"
                for record in records(rows, title, f"flow {number}", summary["kernel"]["release"])
            ).encode()
        except (LookupError, ValueError) as error:  # an edited file
            raise DamagedFile(path, f"flow {number} has values that no run records ({error})", RUN_AGAIN) from None
        with files.aside(names[number]) as temporary:
            temporary.write_bytes(gzip.compress(text, 9, mtime=0) if packed else text)
    return list(names.values())


def records(acks: pd.DataFrame, title: str, group: str, kernel: str) -> Iterator[dict[str, Any]]:
    """The records of one flow's file.

    Args:
        acks: rows of acks.parquet, of this flow.
    """
    yield {
        "file_schema": FILE_SCHEMA,
        "serialization_format": SERIALIZATION,
        "title": title,
        "description": f"TCP of Linux {kernel}, {outputs.QLOG.decode()}",
        "trace": {
            "common_fields": {
                "group_id": group,
                "time_format": "relative_to_epoch",
                "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
            },
            "vantage_point": {"name": "sender", "type": "client"},
            "event_schemas": [EVENT_SCHEMA],
        },
    }
    rows = acks.sort_values("time_s", kind="stable")
    metrics, states = _metrics(rows), _states(rows)
    times_ms = [round(time * 1e3, 6) for time in rows["time_s"].tolist()]
    timeouts = (rows["event"] == TIMEOUT).tolist()
    last: dict[str, Any] = {}
    state: str | None = None
    for number, time_ms in enumerate(times_ms):
        if number == 0:
            size = int(rows["snd_mss"].iloc[0])
            yield _event(time_ms, PARAMETERS, {"timer_granularity": TICK_MS, "max_datagram_size": size})
        if timeouts[number]:
            yield _event(time_ms, TIMER, {"timer_type": "pto", "event_type": "expired"})
        if states[number] is not None and states[number] != state:
            yield _event(time_ms, STATE, ({} if state is None else {"old": state}) | {"new": states[number]})
            state = states[number]
        changed = {
            name: value
            for name, values in metrics.items()
            if (value := values[number]) != last.get(name) and (value is not None or name in BOUNDS)
        }
        last |= changed
        if changed:
            yield _event(time_ms, METRICS, changed)


def _event(time_ms: float, name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"time": time_ms, "name": name, "data": data}


def _metrics(rows: pd.DataFrame) -> dict[str, list[Any]]:
    """{field: its value in each row, or None}, without fields that no row has."""
    size = rows["snd_mss"].to_numpy(dtype=float)
    fields: dict[str, list[Any]] = {}
    for name, (column, unit, digits) in (_DRAFT | _FURTHER).items():
        values = rows[column].to_numpy(dtype=float)
        values = np.where(values < 0, np.nan, values)  # an RTT below 0: this ACK gave none
        fields[name] = _listed(values * unit, digits)
    for name, column in (_DRAFT_OF_PACKETS | _FURTHER_OF_PACKETS).items():
        values = rows[column].to_numpy(dtype=float)
        if name == "ssthresh":
            values = np.where(values >= NO_SSTHRESH, np.nan, values)
        fields[name] = _listed(values * size, 0)
    fields["tcp_recovery_state"] = [RECOVERY_STATES[code] for code in rows["ca_state"].tolist()]
    return {name: values for name, values in fields.items() if any(value is not None for value in values)}


def _listed(values: Any, digits: int) -> list[Any]:
    rounded = [round(value, digits) if math.isfinite(value) else None for value in values.tolist()]
    return rounded if digits else [None if value is None else int(value) for value in rounded]


def _states(rows: pd.DataFrame) -> Sequence[str | None]:
    """The state of the congestion control: BBR's, or recovery, slow start or congestion avoidance."""
    if rows["bbr_bw"].notna().any():
        return [None if math.isnan(code) else STATES[int(code)] for code in rows["bbr_state"].tolist()]
    recovering = rows["ca_state"].isin([RECOVERY_STATES.index(name) for name in ("CWR", "Recovery", "Loss")])
    calm = np.where(rows["slow_start"] == 1, "slow_start", "congestion_avoidance")
    return list(np.where(recovering, "recovery", calm))
