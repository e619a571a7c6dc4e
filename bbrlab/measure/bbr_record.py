"""Decodes BBR's own record, INET_DIAG_BBRINFO.

Mainline's BBRv1 sends five u32 (``struct tcp_bbr_info``, uapi/linux/inet_diag.h), and every other record begins with them. The
lab's modules append theirs (``struct tcp_bbr_model_info``, kernels/patches/bbr/0007), Google's released BBRv2 and BBRv3 append
two bounds of bandwidth, four bytes and three u32, which the ``ss`` of their iproute2 prints. Of any other record only the common
fields are read, and the state is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

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
MODEL_NUMBERS = (  # columns as they are
    "state", "ack_phase", "flags", "round_count", "max_bw", "extra_acked", "losses_seen", "undos", "probe_wait_us", "tx_in_flight",
)  # fmt: skip
RELEASED_INFO = np.dtype([
    *INFO.descr, ("bw_hi", "<u8"), ("bw_lo", "<u8"), ("mode", "u1"), ("phase", "u1"), ("unused", "u1"), ("version", "u1"),
    ("inflight_lo", "<u4"), ("inflight_hi", "<u4"), ("extra_acked", "<u4"),
])  # fmt: skip
# {mode: state}, and {phase: state} of ProbeBW. Google's phases below 4 belong to the other modes.
RELEASED_MODES = {0: "Startup", 1: "Drain", 3: "ProbeRTT"}
RELEASED_PROBE_BW = 2
RELEASED_PHASES = {4: "UP", 5: "DOWN", 6: "CRUISE", 7: "REFILL"}


def _bound(values: Array) -> Array:
    return np.where(values == np.iinfo(values.dtype).max, np.inf, values.astype(float))


def _states_of_v1(pacing_gain: Array, cwnd_gain: Array) -> Array:
    """BBRv1's states by its gains; UP and DOWN are the first two of its eight phases. Without gains, before the first ACK, NaN."""
    drain_or_startup = np.where(pacing_gain > 1, STATES.index("Startup"), STATES.index("Drain"))
    up_or_down = np.where(pacing_gain > 1, STATES.index("UP"), STATES.index("DOWN"))
    probe_bw = np.where(pacing_gain == 1, STATES.index("CRUISE"), up_or_down)
    state = np.select([cwnd_gain == 1, cwnd_gain == 2], [np.full(len(cwnd_gain), STATES.index("ProbeRTT")), probe_bw],
                      drain_or_startup).astype(float)  # fmt: skip
    state[pacing_gain == 0] = np.nan
    return state


def _model_columns(info: Array) -> dict[str, Array]:
    """Columns of records of the lab's modules (dtype MODEL_INFO): sample_schema.BBR_COLUMNS."""
    columns = _common_columns(info)
    columns |= {f"bbr_{name}": info[name].astype(float) for name in MODEL_NUMBERS}
    columns |= {f"bbr_{name}": _bound(info[name]) for name in ("bw_lo", "inflight_hi", "inflight_lo")}
    return columns | {"bbr_ecn_alpha": info["ecn_alpha"] / ECN_UNIT, "bbr_sample_lost": info["lost"].astype(float)}


def _released_columns(info: Array) -> dict[str, Array]:
    """Columns of records of Google's released modules (dtype RELEASED_INFO)."""
    state = np.full(len(info), np.nan)
    for mode, name in RELEASED_MODES.items():
        state[info["mode"] == mode] = STATES.index(name)
    for phase, name in RELEASED_PHASES.items():
        state[(info["mode"] == RELEASED_PROBE_BW) & (info["phase"] == phase)] = STATES.index(name)
    state[info["pacing_gain"] == 0] = np.nan  # before the first ACK there are no gains, and no state
    return _common_columns(info) | {
        "bbr_state": state,
        "bbr_max_bw": info["bw_hi"].astype(float),
        # "None" is said in 32 bits, whatever the upper ones are.
        "bbr_bw_lo": np.where(info["bw_lo"] % 2**32 == 2**32 - 1, np.inf, info["bw_lo"].astype(float)),
        "bbr_inflight_hi": _bound(info["inflight_hi"]),
        "bbr_inflight_lo": _bound(info["inflight_lo"]),
        "bbr_extra_acked": info["extra_acked"].astype(float),
    }


def _common_columns(info: Array) -> dict[str, Array]:
    """The columns that every record has (dtype INFO)."""
    return {
        "bbr_bw": info["bw"].astype(float),
        "bbr_min_rtt_us": info["min_rtt_us"].astype(float),
        "bbr_pacing_gain": info["pacing_gain"] / GAIN_UNIT,
        "bbr_cwnd_gain": info["cwnd_gain"] / GAIN_UNIT,
    }


def columns(block: Array) -> dict[str, Array]:
    """Columns from a matrix of bytes, one record of INET_DIAG_BBRINFO per row; {} if they are too short.

    ``bbr_state`` is an index into STATES (NaN: not known), ``bbr_ack_phase`` one into ACK_PHASES, ``bbr_flags`` a sum of
    2^(index in FLAGS). A record without a version is read as BBRv1's: forget_states() is for flows of others.
    """
    rows, width = block.shape
    if width < INFO.itemsize:
        return {}
    if width == MODEL_INFO.itemsize:
        info = np.ascontiguousarray(block).view(MODEL_INFO)[:, 0]
        is_valid = (
            np.isin(info["version"], VERSIONS) & (info["state"] < len(STATES)) & (info["ack_phase"] < len(ACK_PHASES))
        )
        if is_valid.all():
            return _model_columns(info)
    if width == RELEASED_INFO.itemsize:
        info = np.ascontiguousarray(block).view(RELEASED_INFO)[:, 0]
        if np.isin(info["version"], VERSIONS).all():
            return _released_columns(info)
    info = np.ascontiguousarray(block[:, : INFO.itemsize]).view(INFO)[:, 0]
    by_name = _common_columns(info)
    if width == INFO.itemsize:
        by_name["bbr_state"] = _states_of_v1(by_name["bbr_pacing_gain"], by_name["bbr_cwnd_gain"])
    return by_name


def forget_states(table: dict[str, Array], flows: Iterable[int]) -> None:
    """Remove states that were derived from gains, of flows whose algorithm has other gains than BBRv1.

    Args:
        table: ``flow`` and columns of sample_schema.BBR_COLUMNS, changed in place.
    """
    by_gains = np.isnan(table["bbr_max_bw"])  # which only BBRv1's record lacks
    table["bbr_state"][by_gains & np.isin(table["flow"], list(flows))] = np.nan
