"""The burst model's versions of BBR: constants, behaviour, and the readings of the drafts where they leave a choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bbrlab.base.errors import UserError
from bbrlab.models._burst_state import (
    BBR1,
    BBR2,
    BBR3,
    CUBIC,
    DOWN,
    DRAIN,
    FILTER_AFTER_PROBE_RTT,
    LOWER_BOUNDS,
    NUMBERS,
    PROBE_RTT,
    RENO,
    STARTUP,
    SWITCHES,
    UP,
    VERSION,
)  # fmt: skip

CCAS = {"reno": RENO, "cubic": CUBIC, "bbr1": BBR1, "bbr2": BBR2, "bbr3": BBR3}
LOSS_BASED = ("cubic", "reno")


@dataclass(frozen=True)
class Reading:
    """How the drafts of BBRv2 and BBRv3 are read in two places where their letter does not give what was measured with deep
    buffers. The defaults are the letter. Names and values are those of the lab's kernel (docs/explanation/bbr.md)."""

    lower_bounds: Literal["outside-probes", "lossy-refill", "probes-too"] = "outside-probes"
    """When bw_lo and inflight_lo fall at the end of a round with losses: not in Startup, REFILL and UP; in REFILL, too, if more
    than the loss threshold was lost (with a long RTT a round that began in CRUISE ends there, and is otherwise answered by
    nothing); or in REFILL and UP."""
    filter_after_probe_rtt: Literal["kept", "after-cut-up", "always"] = "kept"
    """Whether ProbeRTT turns the max filter: no; if it cut off UP or the round after it (the drafts' prose turns the filter one
    round after UP); or in the first round after it that is not application-limited."""


# All but "draft" were chosen after comparisons with published shares, "narrow" and "cut" with the lab's, too. Lower bounds that
# adapt in all probes break BBR's tolerance of random loss, so "observed" is not what the kernels do.
READINGS = {
    "draft": Reading(),
    "observed": Reading("probes-too", "always"),
    "narrow": Reading("lossy-refill", "after-cut-up"),
    "cut": Reading(filter_after_probe_rtt="after-cut-up"),
}
LETTER = "draft"  # as the lab's bbr2 and bbr3; "cut" is its profile v3-before


@dataclass(frozen=True)
class Version:
    """A version of BBR: its constants, and what it does. Sources: docs/explanation/bbr.md."""

    startup_pacing_gain: float
    startup_cwnd_gain: float
    drain_pacing_gain: float
    drain_cwnd_gain: float
    up_cwnd_gain: float
    down_pacing_gain: float
    up_pacing_gain: float = 1.25
    cwnd_gain: float = 2.0
    probe_rtt_gain: float = 0.5
    """The window in ProbeRTT, in BDP."""
    probe_rtt_interval_s: float = 5.0
    full_loss_count: float = 0.0
    """Loss events of a round that end Startup."""
    beta: float = 0.7
    loss_threshold: float = 0.02
    headroom: float = 0.15
    """What CRUISE leaves free of inflight_hi."""
    reno_rounds: float = 63.0
    """Rounds after which a probe comes at the latest, or as many as the BDP has packets; infinite: only the clock decides."""
    growth: float = 1.0
    """Whether UP raises inflight_hi; 0: not."""
    extra_acked: float = 1.0
    """How much of the ACK aggregation the window allows for."""
    plateau_of_samples: bool = False
    """A plateau is one of the samples' rates, not of the maximum."""
    plateau_ends_up: bool = False
    """UP ends at a plateau, not with 1.25 BDP in flight after one RTprop."""
    min_rtt_ends_down: bool = False
    """DOWN ends after one RTprop if the headroom is free."""
    loss_exit_looks_at_latest: bool = False
    loss_anchors_round: bool = False
    """A loss round begins with its first loss. BBRv2's, too: it is in no list of what BBRv3 changed."""
    precautionary: bool = False
    """The probe after one that was too high ends at inflight_hi."""
    single_packets: bool = False
    """Bursts are single packets below 1.2 Mbit/s."""


VERSIONS = {
    "bbr1": Version(2.885, 2.885, 1 / 2.885, 2.885, 2.0, 0.75, probe_rtt_interval_s=10.0, single_packets=True),
    "bbr2": Version(2.89, 2.89, 1 / 2.885, 2.89, 2.0, 0.75, full_loss_count=8, min_rtt_ends_down=True,
                    loss_anchors_round=True, precautionary=True,
                    single_packets=True),
    "bbr3": Version(2.77, 2.0, 0.35, 2.0, 2.25, 0.9, full_loss_count=6, plateau_of_samples=True, plateau_ends_up=True,
                    loss_exit_looks_at_latest=True, loss_anchors_round=True, precautionary=True),
}  # fmt: skip


def reading_of(reading: str | Reading) -> Reading:
    """How the drafts are read, by its name or as it is. UserError for one that is not known."""
    if isinstance(reading, Reading):
        for field, kind in get_type_hints(Reading).items():
            if getattr(reading, field) not in get_args(kind):
                raise UserError(
                    f"reading: {field} must be one of {', '.join(get_args(kind))}, found '{getattr(reading, field)}'"
                )
        return reading
    if reading not in READINGS:
        raise UserError(f"reading: must be one of {', '.join(READINGS)}, found '{reading}'")
    return READINGS[reading]


def version_table(reading: Reading, changed: Mapping[str, Version]) -> NDArray[Any]:
    """The versions' records for the compiled loop, of shape (algorithms,), in the order of CCAS' numbers.

    UserError for a version that is not known.

    Args:
        reading: of the drafts, which BBRv1 has none of.
        changed: {version: in place of that of VERSIONS}.
    """
    for name in changed:
        if name not in VERSIONS:
            raise UserError(f"versions: must be of {', '.join(VERSIONS)}, found '{name}'")
    table = np.zeros(len(CCAS), dtype=VERSION)
    for name, kind in CCAS.items():
        if name in LOSS_BASED:
            continue
        version = (dict(VERSIONS) | dict(changed))[name]
        row = table[kind]
        row["pacing_gain"] = 1.0
        row["pacing_gain"][[STARTUP, DRAIN, UP, DOWN]] = [
            version.startup_pacing_gain, version.drain_pacing_gain, version.up_pacing_gain, version.down_pacing_gain,
        ]  # fmt: skip
        row["cwnd_gain"] = version.cwnd_gain
        row["cwnd_gain"][[STARTUP, DRAIN, UP, PROBE_RTT]] = [
            version.startup_cwnd_gain, version.drain_cwnd_gain, version.up_cwnd_gain, version.probe_rtt_gain,
        ]  # fmt: skip
        for field in (*NUMBERS, *SWITCHES):
            row[field] = getattr(version, field)
        row["lower_bounds"] = LOWER_BOUNDS.index(reading.lower_bounds)
        row["filter_after_probe_rtt"] = FILTER_AFTER_PROBE_RTT.index(reading.filter_after_probe_rtt)
    return table
