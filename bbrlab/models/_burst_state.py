"""What the burst model's compiled parts share: constants, and the records of a flow, a burst, an ACK and a version of BBR.

Units everywhere: seconds, packets of one frame, packets per second. Truth values are kept as int64, 0 or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Record = Any  # a numba record: attributes are the fields of the dtypes below

RENO, CUBIC, BBR1, BBR2, BBR3 = range(5)
# States of BBR; BBRv1's ProbeBW is CRUISE with a place in its cycle of eight.
STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT = range(7)
STATES = ("Startup", "Drain", "DOWN", "CRUISE", "REFILL", "UP", "ProbeRTT")
INIT, REFILLING, PROBE_STARTING, PROBE_FEEDBACK, PROBE_STOPPING = range(5)

NONE = -1  # no such burst
INFINITE = np.inf
INITIAL_CWND = 10.0
MIN_CWND = 4.0
QUANTUM_S = 1e-3  # a send quantum is what the pacing rate gives in 1 ms ...
QUANTUM_MAX = 45.0  # ... and at most 64 KiB of payload
QUANTA_IN_FLIGHT = 3.0
PACING_MARGIN = 0.99
FULL_BW_GROWTH, FULL_BW_ROUNDS = 1.25, 3
MIN_RTT_WINDOW_S = 10.0
PROBE_RTT_S = 0.2
DELAYED_ACK_S = 0.04  # how long Linux's receiver waits for a second packet (TCP_DELACK_MIN)
BUCKET_BYTES = 1600  # what tc-htb(8) saves up while the link is idle, by default
SRTT_GAIN = 0.125
BW_ROUNDS = 11  # BBRv1's max filter: Linux drops a sample that is more than ten rounds old

FLOW = np.dtype(
    [
        ("kind", "i8"),
        ("rtt", "f8"),
        # the transport (Linux: tcp_sock)
        *((name, "f8") for name in (
            "cwnd", "inflight", "delivered", "delivered_time", "first_send_time", "lost", "app_limited", "srtt", "rate",
            "quantum", "departure", "limited_at", "timer", "prior_cwnd",
            # Packets: sent, sent before recovery began, lost and not yet sent again, those of them that recovery waits for, all
            # that recovery waits for, taken for lost and not yet delivered.
            "packets", "recovery_mark", "to_repair", "to_repair_below", "below", "lost_out",
        )),
        *((name, "i8") for name in ("recovery", "first", "live", "last")),
        # its receiver: packets that are missing, until when the one that waits for another is not acknowledged, where it is
        *((name, "f8") for name in ("holes", "waits_until")),
        ("waiting", "i8"),
        # over the window
        *((name, "f8") for name in ("window_sent", "window_lost", "window_delivered")),
        # every BBR
        *((name, "i8") for name in (
            "state", "round_count", "round_start", "full_bw_count", "full_bw_now", "full_bw_reached",
            "probe_rtt_round_done",
        )),
        *((name, "f8") for name in (
            "next_round_delivered", "max_bw", "full_bw", "min_rtt", "min_rtt_stamp", "probe_rtt_done_stamp", "cycle_stamp",
            "extra_start", "extra_delivered",
        )),
        # BBRv1
        *((name, "i8") for name in ("cycle", "conservation", "recovery_entered", "extra_rounds", "bw_round")),
        *((name, "f8") for name in ("extra_now", "extra_before")),
        ("bw_rounds", "f8", (BW_ROUNDS,)),
        # BBRv2 and BBRv3
        *((name, "i8") for name in (
            "ack_phase", "rounds_since_probe", "loss_round_start", "loss_in_round", "loss_events", "is_probe_sample",
            "up_rounds", "prev_too_high", "prev_precautionary", "probe_rtt_expired", "turn_after_probe_rtt",
        )),
        *((name, "f8") for name in (
            "bw_before", "bw_now", "bw_lo", "bw_latest", "inflight_hi", "inflight_lo", "inflight_latest",
            "loss_round_delivered", "probe_wait", "up_acked", "up_acked_per_inc", "probe_rtt_min", "probe_rtt_min_stamp",
            "min_rtt_before",
        )),
        ("extra_most", "f8", (3,)),
        ("extra_round", "i8", (3,)),
        # CUBIC and Reno
        *((name, "f8") for name in (
            "ssthresh", "cwnd_count", "prr_delivered", "prr_out", "last_max", "origin", "k", "epoch_start", "ack_count",
            "reno_cwnd", "count", "last_update", "last_cwnd", "delay_min", "slow_start_round", "round_rtt",
        )),
        *((name, "i8") for name in ("round_samples", "left_slow_start")),
    ]
)  # fmt: skip

# Packets of a burst that one ACK answers, or (``arrives`` 0) those that were lost, and what they remember of the moment they were
# sent. ``repairs`` of them were lost before, and recovery waits for ``below`` of these. ``next``: the flow's next ones, or the next
# free place. ``number``: of packets that the flow has sent, with these.
BURST = np.dtype(
    [
        *((name, "f8") for name in (
            "sent", "number", "acked_at", "size", "repairs", "below", "delivered", "delivered_time", "first_send_time", "tx_in_flight",
            "lost",
        )),
        *((name, "i8") for name in ("arrives", "app_limited", "next")),
    ]
)  # fmt: skip

# What one ACK says (Linux: rate_sample). ``lost_since_sent``: noticed since the burst was sent; ``repaired``: of ``acked``, those
# that were lost before; ``recovery_ended``: with this ACK.
ACK = np.dtype(
    [
        *((name, "f8") for name in (
            "now", "sent", "acked", "prior_inflight", "newly_lost", "rate", "rtt", "delivered", "prior_delivered",
            "tx_in_flight", "lost_since_sent", "repaired",
        )),
        *((name, "i8") for name in ("app_limited", "recovery_ended")),
    ]
)  # fmt: skip

# Values of burst_versions.Reading, by their numbers in a version's record.
LOWER_BOUNDS = ("outside-probes", "lossy-refill", "probes-too")
FILTER_AFTER_PROBE_RTT = ("kept", "after-cut-up", "always")
LOSSY_REFILL, PROBES_TOO = 1, 2
AFTER_CUT_UP, ALWAYS = 1, 2

# A version of BBR: gains by state, and what it does and does not. burst_versions.Version has the fields' meaning.
SWITCHES = (
    "plateau_of_samples", "plateau_ends_up", "min_rtt_ends_down", "loss_exit_looks_at_latest", "loss_anchors_round",
    "precautionary", "single_packets",
)  # fmt: skip
NUMBERS = (
    "probe_rtt_interval_s", "probe_rtt_gain", "full_loss_count", "beta", "loss_threshold", "headroom", "reno_rounds",
    "growth", "extra_acked",
)  # fmt: skip
VERSION = np.dtype(
    [
        ("pacing_gain", "f8", (len(STATES),)),
        ("cwnd_gain", "f8", (len(STATES),)),
        *((name, "f8") for name in NUMBERS),
        *((name, "i8") for name in (*SWITCHES, "lower_bounds", "filter_after_probe_rtt")),
    ]
)
