"""One comparison, its three outcomes, and how far a measurement may be from what was asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import cast

from typing_extensions import TypedDict

from bbrlab.measure.lateness import EDGE_TOLERANCE_S, REAL_TIME_LATENESS_OUTSIDE_S, REAL_TIME_LATENESS_S

OF_A_BOTTLENECK = re.compile(r"_(reverse|link\d+)$")  # the end of a check's name (suffix_of())


@dataclass(frozen=True)
class Tolerance:
    """How far from what was asked a measurement may be: ``rate`` as a fraction, RTT, lateness of a sample in the measuring
    window and outside of it, how long the link may carry packets of a burst away before they are counted, and how long it
    may rest although packets wait."""

    rate: float
    rtt_ms: float
    sample_s: float
    sample_outside_s: float
    burst_s: float
    rest_s: float


# Why these tolerances: the rate is measured between departures that are polled 50 times a frame, over 26 frames or
# more, so it is right to .1 %; ping prints microseconds and crosses two veth pairs in no time.
# A burst takes no virtual time.
VIRTUAL_TIME = Tolerance(
    rate=0.002, rtt_ms=0.02, sample_s=EDGE_TOLERANCE_S, sample_outside_s=EDGE_TOLERANCE_S, burst_s=0.0, rest_s=0.0
)
# In real time the poller, ping and the sampler compete with everything else for a processor. ``burst_s`` (2 ms, as for ping)
# was chosen after plays at 10 Mbit/s had counted one packet too few; a buffer that drains within it has no lower bound.
REAL_TIME = Tolerance(
    rate=0.03,
    rtt_ms=2.0,
    sample_s=REAL_TIME_LATENESS_S,
    sample_outside_s=REAL_TIME_LATENESS_OUTSIDE_S,
    burst_s=2e-3,
    rest_s=REAL_TIME_LATENESS_OUTSIDE_S,  # the link needs the processor as the sampler does
)


@dataclass(frozen=True)
class Check:
    """One comparison."""

    name: str  # what is compared; it implies the unit of ``asked`` and ``measured``
    # asked, measured: by the scenario and by the guest; None if there is no number
    asked: float | None
    measured: float | None
    ok: bool | None  # True passed, False failed, None not checked, with the reason in ``detail``
    detail: str = ""


class CheckEntry(TypedDict):
    """A Check as summary.json has it."""

    name: str
    asked: float | None
    measured: float | None
    ok: bool | None
    detail: str


def entry_of(check: Check) -> CheckEntry:
    """A check for summary.json."""
    return cast(CheckEntry, asdict(check))


def not_checked(name: str, asked: float | None, why: str, measured: float | None = None) -> Check:
    """A comparison that this run could not make."""
    return Check(name, asked, measured, None, f"not checked: {why}")


def suffix_of(bottleneck: str) -> str:
    """The suffix of the names of a bottleneck's checks; empty for the forward one."""
    return "" if bottleneck == "forward" else f"_{bottleneck}"


def kind_of(name: str) -> str:
    """The kind of a check: its name without the bottleneck or the module parameter."""
    return OF_A_BOTTLENECK.sub("", name.partition(" ")[0])


def failed_of(checks: Iterable[CheckEntry]) -> list[CheckEntry]:
    """The checks of a summary.json that failed; a run without one is sound."""
    return [c for c in checks if c["ok"] is False]


def failure_words(checks: Iterable[CheckEntry]) -> str:
    """Which self-checks failed, and what comes of it; empty if none did."""
    failed = ", ".join(c["name"] for c in failed_of(checks))
    return failed and f"self-checks failed: {failed}; the run is marked and left out of averages"


def left_out_of(checks: Iterable[CheckEntry]) -> list[CheckEntry]:
    """The checks of a summary.json that the run could not make."""
    return [c for c in checks if c["ok"] is None]
