"""What BBR tells of itself: the record behind INET_DIAG_BBRINFO and, of the lab's bbr2 and bbr3, one record per ACK.

Mainline's BBRv1 sends five u32 (``struct tcp_bbr_info``, uapi/linux/inet_diag.h). The lab's modules append theirs
(``struct tcp_bbr_model_info``, kernels/patches/bbr/0007); other kernels may append something else, which is left alone.
"""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array

STATES = ("Startup", "Drain", "DOWN", "CRUISE", "REFILL", "UP", "ProbeRTT")
ACK_PHASES = ("INIT", "REFILLING", "PROBE_STARTING", "PROBE_FEEDBACK", "PROBE_STOPPING")
FLAGS = (
    "full_bw_reached", "full_bw_now", "is_bw_probe_sample", "prev_probe_too_high", "prev_probe_precautionary",
    "loss_in_round", "idle_restart", "round_start",
)  # fmt: skip
GAIN_UNIT, ECN_UNIT = 256, 65536
VERSIONS = (2, 3)
INFO = np.dtype([
    ("bw", "<u8"), ("min_rtt_us", "<u4"), ("pacing_gain", "<u4"), ("cwnd_gain", "<u4"),
])  # fmt: skip
MODEL_INFO = np.dtype([
    *INFO.descr, ("version", "u1"), ("state", "u1"), ("ack_phase", "u1"), ("full_bw_count", "u1"), ("flags", "<u4"),
    ("round_count", "<u4"), ("rounds_since_probe", "<u4"), ("max_bw", "<u8"), ("bw_lo", "<u8"),
    ("inflight_hi", "<u4"), ("inflight_lo", "<u4"), ("extra_acked", "<u4"), ("ecn_alpha", "<u4"),
    ("losses_seen", "<u4"), ("undos", "<u4"), ("probe_wait_us", "<u4"), ("tx_in_flight", "<u4"), ("lost", "<i4"),
])  # fmt: skip
ACK_RECORD = np.dtype([
    ("number", "<u8"), ("time_ns", "<u8"), ("source_address", ">u4"), ("destination_address", ">u4"),
    ("source_port", "<u2"), ("destination_port", "<u2"), ("cwnd", "<u4"), ("in_flight", "<u4"),
    ("prior_in_flight", "<u4"), ("acked", "<u4"), ("losses", "<i4"), ("delivered", "<u4"), ("lost", "<u4"),
    ("rate_delivered", "<i4"), ("rate_interval_us", "<i4"), ("rtt_us", "<i4"), ("reserved", "<u4"),
    ("pacing_rate", "<u8"), ("info", MODEL_INFO),
])  # fmt: skip


def _bound(values: Array) -> Array:
    return np.where(values == np.iinfo(values.dtype).max, np.inf, values.astype(float))


def _states_of_v1(pacing_gain: Array, cwnd_gain: Array) -> Array:
    """BBRv1's states by its gains; UP and DOWN are the first two of its eight phases."""
    drain_or_startup = np.where(pacing_gain > 1, STATES.index("Startup"), STATES.index("Drain"))
    up_or_down = np.where(pacing_gain > 1, STATES.index("UP"), STATES.index("DOWN"))
    probe_bw = np.where(pacing_gain == 1, STATES.index("CRUISE"), up_or_down)
    return np.select([cwnd_gain == 1, cwnd_gain == 2], [np.full(len(cwnd_gain), STATES.index("ProbeRTT")), probe_bw],
                     drain_or_startup).astype(float)  # fmt: skip


def model_columns(info: Array) -> dict[str, Array]:
    """Columns of records of the lab's modules (dtype MODEL_INFO): sample_schema.BBR_COLUMNS."""
    return {
        "bbr_state": info["state"].astype(float),
        "bbr_bw": info["bw"].astype(float),
        "bbr_min_rtt_us": info["min_rtt_us"].astype(float),
        "bbr_pacing_gain": info["pacing_gain"] / GAIN_UNIT,
        "bbr_cwnd_gain": info["cwnd_gain"] / GAIN_UNIT,
        "bbr_ack_phase": info["ack_phase"].astype(float),
        "bbr_flags": info["flags"].astype(float),
        "bbr_round_count": info["round_count"].astype(float),
        "bbr_max_bw": info["max_bw"].astype(float),
        "bbr_bw_lo": _bound(info["bw_lo"]),
        "bbr_inflight_hi": _bound(info["inflight_hi"]),
        "bbr_inflight_lo": _bound(info["inflight_lo"]),
        "bbr_extra_acked": info["extra_acked"].astype(float),
        "bbr_ecn_alpha": info["ecn_alpha"] / ECN_UNIT,
        "bbr_losses_seen": info["losses_seen"].astype(float),
        "bbr_undos": info["undos"].astype(float),
        "bbr_probe_wait_us": info["probe_wait_us"].astype(float),
        "bbr_tx_in_flight": info["tx_in_flight"].astype(float),
        "bbr_sample_lost": info["lost"].astype(float),
    }


def columns(block: Array) -> dict[str, Array]:
    """Columns from a matrix of bytes, one record of INET_DIAG_BBRINFO per row; {} if they are too short.

    ``bbr_state`` is an index into STATES, ``bbr_ack_phase`` one into ACK_PHASES, ``bbr_flags`` a sum of 2^(index in
    FLAGS).
    """
    rows, width = block.shape
    if width < INFO.itemsize:
        return {}
    if width == MODEL_INFO.itemsize:
        info = np.ascontiguousarray(block).view(MODEL_INFO)[:, 0]
        known = (
            np.isin(info["version"], VERSIONS) & (info["state"] < len(STATES)) & (info["ack_phase"] < len(ACK_PHASES))
        )
        if known.all():
            return model_columns(info)
    info = np.ascontiguousarray(block[:, : INFO.itemsize]).view(INFO)[:, 0]
    pacing, cwnd = info["pacing_gain"] / GAIN_UNIT, info["cwnd_gain"] / GAIN_UNIT
    return {
        "bbr_state": _states_of_v1(pacing, cwnd),
        "bbr_bw": info["bw"].astype(float),
        "bbr_min_rtt_us": info["min_rtt_us"].astype(float),
        "bbr_pacing_gain": pacing,
        "bbr_cwnd_gain": cwnd,
    }
