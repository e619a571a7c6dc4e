"""Decodes the records of ACKs and retransmission timeouts of the guest's kernel (kernels/acks/tcp_ack_records.c)."""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.measure import bbr_record
from bbrlab.measure.sample_schema import ACK_FIELDS, BBR_COLUMNS

INFO_BYTES = 96
RECORD = np.dtype([
    ("number", "<u8"), ("time_ns", "<u8"), ("source_address", "u1", 16), ("destination_address", "u1", 16),
    ("source_port", "<u2"), ("destination_port", "<u2"), ("event", "u1"), ("ca_state", "u1"), ("flags", "u1"),
    ("info_kind", "u1"), ("info_bytes", "<u4"), ("cwnd", "<u4"), ("ssthresh", "<u4"), ("in_flight", "<u4"),
    ("prior_in_flight", "<u4"), ("acked", "<u4"), ("losses", "<i4"), ("delivered", "<u4"), ("delivered_ce", "<u4"),
    ("lost", "<u4"), ("lost_out", "<u4"), ("sacked", "<u4"), ("retrans", "<u4"), ("total_retrans", "<u4"),
    ("rate_delivered", "<i4"), ("rate_interval_us", "<i4"), ("rtt_us", "<i4"), ("srtt_us", "<u4"), ("rttvar_us", "<u4"),
    ("min_rtt_us", "<u4"), ("rto_us", "<u4"), ("snd_mss", "<u4"), ("snd_wnd", "<u4"), ("notsent_bytes", "<u4"),
    ("pacing_rate", "<u8"), ("bytes_sent", "<u8"), ("bytes_retrans", "<u8"), ("bytes_acked", "<u8"),
    ("info", "u1", INFO_BYTES),
])  # fmt: skip
FLAGS = ("app_limited", "sample_retransmitted", "ack_delayed", "cwnd_limited", "slow_start")
KIND_DCTCP, KIND_BBR = 9, 16  # INET_DIAG_DCTCPINFO, INET_DIAG_BBRINFO
DCTCP_INFO = np.dtype([("enabled", "<u2"), ("ce_state", "<u2"), ("alpha", "<u4"), ("ab_ecn", "<u4"), ("ab_tot", "<u4")])
DCTCP_ALPHA_UNIT = 1024


def columns(records: Array) -> dict[str, Array]:
    """The columns of acks.parquet (sample_schema.ACKS) but for time and flow, of records of dtype RECORD."""
    values: dict[str, Array] = {name: records[name].copy() for name in ACK_FIELDS}
    has_rate = (records["rate_delivered"] >= 0) & (records["rate_interval_us"] > 0)
    values["delivery_rate"] = np.full(len(records), np.nan)
    sampled = records[has_rate]
    values["delivery_rate"][has_rate] = (
        sampled["rate_delivered"] * sampled["snd_mss"].astype(float) / sampled["rate_interval_us"] * 1e6
    )
    for bit, name in enumerate(FLAGS):
        values[name] = (records["flags"] >> bit & 1).astype("u1")
    return values | _of_algorithms(records)


def _of_algorithms(records: Array) -> dict[str, Array]:
    """The algorithms' own values; NaN where there are none."""
    values = {name: np.full(len(records), np.nan) for name in ("dctcp_alpha", *BBR_COLUMNS)}
    kinds = np.stack([records["info_kind"].astype("<u4"), records["info_bytes"]], axis=1)
    for kind, size in np.unique(kinds, axis=0):
        rows = np.flatnonzero((kinds == (kind, size)).all(axis=1))
        block = np.ascontiguousarray(records["info"][rows, :size])
        if kind == KIND_BBR:
            for name, block_values in bbr_record.columns(block).items():
                values[name][rows] = block_values
        elif kind == KIND_DCTCP and size >= DCTCP_INFO.itemsize:
            info = np.ascontiguousarray(block[:, : DCTCP_INFO.itemsize]).view(DCTCP_INFO)[:, 0]
            values["dctcp_alpha"][rows] = info["alpha"] / DCTCP_ALPHA_UNIT
    return values
