"""What somebody wrote of a testbed in names and titles, and what algorithms are called."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bbrlab_apps.testbed.recording import Recording

PARTS = 3  # of a file's path that may say something
# Linux's module of BBRv1 is called bbr, and so is that of Google's kernel of BBRv3: a name, and no proof.
CALLED = {
    "bbr": "bbr1", "bbr1": "bbr1", "bbrv1": "bbr1", "bbr2": "bbr2", "bbrv2": "bbr2", "bbr3": "bbr3", "bbrv3": "bbr3", "cubic": "cubic",
    "reno": "reno", "newreno": "reno", "dctcp": "dctcp",
}  # fmt: skip
EDGE = r"(?:^|(?<=[^A-Za-z0-9.]))"
MS = re.compile(EDGE + r"(?:rtt[_=-]?)?(\d{1,5}(?:\.\d+)?) ?ms(?![A-Za-z0-9])", re.IGNORECASE)
MBIT = re.compile(EDGE + r"(\d{1,6}(?:\.\d+)?) ?(k|m|g)(?:bit|bps|b)(?:/?s|ps)?(?![A-Za-z0-9])", re.IGNORECASE)
NAMES = re.compile(r"(?:^|(?<=[^A-Za-z]))(bbrv?[123]|bbr|cubic|newreno|reno|dctcp)(?![A-Za-z0-9])", re.IGNORECASE)


@dataclass(frozen=True)
class Stated:
    """What names and titles say of a recording."""

    # rtts_ms, rates_mbit: (value, place and words of it); any of them may be of something else than the path
    rtts_ms: list[tuple[float, str]]
    rates_mbit: list[tuple[float, str]]
    ccas: dict[str, str]  # {algorithm of the lab: place and words}


def stated_in(recording: Recording) -> Stated:
    """What the path and the titles of a recording say."""
    path = "/".join(recording.file.parts[-PARTS:])
    stated = Stated([], [], {})
    for place, text in [("its name", path), *recording.says]:
        for match in MS.finditer(text):
            stated.rtts_ms.append((float(match[1]), f"{place} says {match[0]}"))
        for match in MBIT.finditer(text):
            stated.rates_mbit.append(
                (float(match[1]) * {"k": 1e-3, "m": 1.0, "g": 1e3}[match[2].lower()], f"{place} says {match[0]}")
            )
    for place, text in [
        ("its name", recording.file.name),
        *recording.says,
        ("its folder's name", path.rpartition("/")[0]),
    ]:
        if not stated.ccas:  # what stands closest to the flows
            for match in NAMES.finditer(text):
                stated.ccas.setdefault(CALLED[match[1].lower()], f"{place} says {match[1]}")
    return stated
