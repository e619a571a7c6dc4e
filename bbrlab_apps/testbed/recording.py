"""What a file of a testbed says of its flows, whatever tool wrote it; its numbers are bounded, and nothing of it is run."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from bbrlab.base.words import shown
from bbrlab.scenario.frames import IP_VERSION

WORDS_MAX = 120  # letters of a text of a file that are shown
SECONDS_MAX = 86_000.0  # of a scenario
MBIT_MAX = 1e6
RTT_MS_MIN, RTT_MS_MAX = 0.001, 60_000.0
PACKETS_MAX = 1e9
BYTES_MAX = 1e16
EPOCH_MAX = 1e11
COLUMNS = ("time_s", "seconds", "goodput_mbit", "rtt_ms", "min_rtt_ms", "cwnd_packets", "retransmits", "pacing_gain")
Way = tuple[str, str]
Ends = frozenset[str]  # the address and the port of both hosts of a connection


class NotReadError(Exception):
    """A file, or a part of it, is not what its reader takes; the message is the end of ``FILE: ...``."""


@dataclass(frozen=True)
class Flow:
    """A flow of a recording."""

    name: str  # what tells it from others in its file
    # COLUMNS; NaN where the file does not say. time_s is the end of the interval of ``seconds`` that the row is of, on the
    # recording's clock; retransmits are of that interval
    samples: pd.DataFrame
    mss_bytes: float | None = None  # of a segment's payload; None if the file does not say
    cca: str = ""  # the algorithm that the file names; empty if it names none
    reverse: bool = (
        False  # whether data goes to iperf3's or flent's client; of a file's own view, where no ``way`` tells more
    )
    # Whether goodput is what a receiver read; else what a sender wrote or what was acknowledged
    of_receiver: bool = False
    ip_version: Literal[4, 6] = IP_VERSION  # by the address that it goes to; 4 where the file has none
    ends: Ends = frozenset()  # what tells its connection from all others; empty if the file does not say
    way: Way | None = None  # the addresses that its data go from and to; None if the file does not say

    @property
    def start_s(self) -> float:
        """When its first interval began, on the recording's clock."""
        first = self.samples.iloc[0]
        return float(first["time_s"] - first["seconds"])

    @property
    def end_s(self) -> float:
        """When its last interval ended."""
        return float(self.samples["time_s"].iloc[-1])


@dataclass(frozen=True)
class Recording:
    """What was read of one file."""

    file: Path
    kind: str  # what it is, in words
    flows: list[Flow]  # at least one
    epoch_s: float | None = None  # when its clock was 0, in seconds of the world's; None if the file does not say
    ping_ms: Sequence[float] = ()  # RTTs of pings beside the flows; empty if there are none
    # Names and titles in which somebody may have written what it is, as (place, text)
    says: list[tuple[str, str]] = field(default_factory=list)
    identity: str = ""  # that of a test, which both its ends write; empty if there is none
    not_read: list[str] = field(default_factory=list)  # what is in the file and was left out, in words
    system: str = ""  # of the machine that made it, in words; empty if the file does not say
    asked_mbit: float | None = None  # the rate that the sender of each flow was told to keep to; None if to none
    omitted_s: float = 0.0  # what is not to be counted, from the clock's 0 on

    @property
    def start_s(self) -> float:
        """When its first flow began, on its clock."""
        return min(flow.start_s for flow in self.flows)

    @property
    def end_s(self) -> float:
        """When its last flow ended."""
        return max(flow.end_s for flow in self.flows)


def number(value: Any, most: float, least: float = 0.0) -> float:
    """A number of a file, or NaN for what is none or cannot be one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        as_float = float(value)
    except OverflowError:
        return math.nan
    return as_float if math.isfinite(as_float) and least <= as_float <= most else math.nan


def is_there(value: float) -> bool:
    """Whether a number is one: NaN stands for what a file does not say."""
    return not math.isnan(value)


def ip_version_of(address: Any) -> Literal[4, 6]:
    """Of which version of IP the packets to an address are; one of IPv4 may be written into IPv6's (::ffff:a.b.c.d)."""
    try:
        return _address(address).version
    except ValueError:
        return IP_VERSION


def ends_of(*ends: tuple[Any, Any]) -> Ends:
    """The two ends of a connection, each given as its address and its port; empty if one of them is none.

    They are the same whichever host wrote them, and by whichever tool.
    """
    try:
        known = frozenset(f"{_address(host)} {port}" for host, port in ends if re.fullmatch(r"[0-9]{1,5}", str(port)))
    except ValueError:
        return frozenset()
    return known if len(known) == 2 else frozenset()


def way_of(sender: Any, receiver: Any) -> Way | None:
    """The way of data from one host to another, each given by its address; None if one of them is none, or both are one."""
    try:
        way = str(_address(sender)), str(_address(receiver))
    except ValueError:
        return None
    return way if way[0] != way[1] else None


def _address(text: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address of a file, without its interface; of one of IPv4 that is written into IPv6's, that of IPv4. ValueError for none."""
    parsed = ipaddress.ip_address(str(text).partition("%")[0])
    return (parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None) or parsed


def words(value: Any) -> str:
    """A text of a file as it may be shown; empty for what is none."""
    return shown(value)[:WORDS_MAX].replace("\n", " ").strip() if isinstance(value, str) else ""


def table_of(rows: Sequence[dict[str, float]]) -> pd.DataFrame:
    """Samples of rows that have some of COLUMNS, as complete() has them."""
    return complete(pd.DataFrame(list(rows), columns=list(COLUMNS), dtype=float))


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Samples with all COLUMNS, in the order of their times; rows without a time or a length are left out."""
    table = table.reindex(columns=list(COLUMNS))
    ordered: pd.DataFrame = table[np.isfinite(table["time_s"]) & (table["seconds"] > 0)].sort_values(
        "time_s", ignore_index=True
    )
    return ordered
