"""Reads what ``ss -ti`` printed again and again, with or without the times of a script around it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from bbrlab.base.words import number_of
from bbrlab_apps.testbed import recording as r
from bbrlab_apps.testbed.recording import Flow, NotReadError, Recording, is_there, number

SOCKET = re.compile(r"^(?:[\w.:\[\]-]+\s+)*?\d+\s+\d+\s+(?P<from>\S+:\S+)\s+(?P<to>\S+:\d+)(?:\s|$)")
STATE = re.compile(r"(?P<cca>[a-z][a-z0-9_]*) wscale:|(?:^|\s)(?P<bare>[a-z][a-z0-9_]*) rto:")
TIMES = re.compile(r"^(?:Time:\s*|#\s*)?(?P<epoch>(?P<whole>\d{9,20})(?:\.\d+)?)(?=\s|$)")
VALUE = re.compile(r"(?<![\w.])(?P<key>rtt|mss|cwnd|bytes_acked|bytes_retrans|bytes_sent|data_segs_out|retrans|minrtt|busy):(?P<value>[0-9./]+)")  # fmt: skip
BBR = re.compile(r"\bbbr:\((?P<fields>[^()]*)\)")
SECONDS_DIGITS = 11  # of a time in s, at most; one in ms has three more, and so on
ACKED_MIN = 100_000  # bytes of a socket that carries data; less is a control connection
Values = dict[str, float]


def recognises(text: str) -> bool:
    """Whether a text has a line of ss about a TCP socket."""
    return bool(re.search(r"\brtt:[0-9.]+/[0-9.]+ .*\bcwnd:\d+", text))


def read(file: Path, text: str) -> list[Recording]:
    """The recording of a file. NotReadError if there is no socket that carried data, or no time."""
    of: dict[tuple[str, str], list[Values]] = defaultdict(list)
    ccas: dict[tuple[str, str], str] = {}
    epoch, place = math.nan, None
    for printed in text.splitlines():
        line = printed
        if stamp := TIMES.match(
            line
        ):  # flent's script prints the time behind what it is of, others before: a constant shift
            epoch, line = _seconds(stamp), line[stamp.end() :].strip()
        if head := SOCKET.match(line):
            place = (head["from"], head["to"])
        if place is None or " rtt:" not in f" {line}":
            continue
        name = STATE.search(line)
        if name:
            ccas[place] = name["cca"] or name["bare"]
        of[place].append({**_values(line), "epoch": epoch})
        place = None
    if not of:
        raise NotReadError("has no socket of TCP; record with ss -tin")
    flows, short = [], 0
    clock = _clock(of)
    everything = [row for rows in of.values() for row in rows]
    # Stamps are one clock of all sockets. A lone one is none, but before all sockets it says when the file began.
    begin_s = _first(everything, "epoch") if clock == "epoch" else everything[0]["epoch"]
    for place, rows in sorted(of.items()):
        if max((row.get("bytes_acked", 0.0) for row in rows), default=0.0) < ACKED_MIN or len(rows) < 3:
            short += 1
            continue
        table = r.table_of(_intervals(rows, clock, begin_s if clock == "epoch" else _first(rows, clock)))
        if len(table) >= 2:
            mss = rows[-1].get("mss")
            here, peer = map(_end, place)
            flows.append(
                Flow(
                    f"{place[0]} to {place[1]}",
                    table,
                    mss,
                    ccas.get(place, ""),
                    ip_version=r.ip_version_of(peer[0]),
                    ends=r.ends_of(here, peer),
                    way=r.way_of(here[0], peer[0]),
                )
            )
    if not flows:
        raise NotReadError(
            f"has {number_of(len(of), 'socket')}, but none with bytes_acked, {ACKED_MIN // 1000} kB of them at least, at three times that differ"
        )
    not_read = [f"{number_of(short, 'socket')} with less than {ACKED_MIN // 1000} kB or three lines"] if short else []
    if clock == "busy":
        not_read.append(
            "the times of the prints: fewer than three can be read, so that each socket's clock is its own 'busy'; record date +%s.%N before each ss"
        )
    return [Recording(file, "ss output", flows, begin_s if is_there(begin_s) else None, not_read=not_read)]


def _end(printed: str) -> tuple[str, str]:
    """The address and the port of an end as ss prints it: ``10.0.0.1:5201``, ``[::1]:5201``."""
    host, _, port = printed.rpartition(":")
    return host.strip("[]"), port


def _seconds(stamp: re.Match[str]) -> float:
    """A time in s, whether it is written in s, ms, us or ns since 1970, which its digits tell."""
    thousands = max(0, math.ceil((len(stamp["whole"]) - SECONDS_DIGITS) / 3))
    return float(stamp["epoch"]) / 1e3**thousands


def _clock(of: Mapping[tuple[str, str], list[Values]]) -> str:
    """What tells the time: a stamp beside each print, else for how long a socket was busy."""
    stamps = {row["epoch"] for rows in of.values() for row in rows if is_there(row["epoch"])}
    return "epoch" if len(stamps) >= 3 else "busy"


def _first(rows: Sequence[Values], clock: str) -> float:
    """The first time of a clock, in its unit; NaN if there is none.

    Prints before it may have none: ss omits ``busy`` before the first data, and a stamp may stand behind its sockets.
    """
    return min((row[clock] for row in rows if is_there(row.get(clock, math.nan))), default=math.nan)


def _values(line: str) -> Values:
    values: Values = {}
    for match in VALUE.finditer(line):
        key, text = match["key"], match["value"]
        if key == "retrans":
            text = text.rpartition("/")[2]
        elif key == "rtt":
            text = text.partition("/")[0]
        try:
            values[key] = number(float(text), r.BYTES_MAX)
        except ValueError:
            continue
    if bbr := BBR.search(line):
        for item in bbr["fields"].split(",")[:32]:
            key, _, text = item.partition(":")
            if key in ("pacing_gain", "mrtt", "version") and re.fullmatch(r"[0-9.]{1,12}", text):
                try:
                    values[f"bbr_{key}"] = number(float(text), r.RTT_MS_MAX)
                except ValueError:
                    continue
    return values


def _intervals(rows: Sequence[Values], clock: str, zero: float) -> list[dict[str, float]]:
    """Differences of what a socket counts between two prints of it.

    Args:
        clock: ``epoch`` (s) or ``busy`` (ms).
        zero: what the clock showed at 0 s of the intervals, in its unit.
    """
    unit = 1e-3 if clock == "busy" else 1.0
    intervals: list[dict[str, float]] = []
    for before, row in zip(rows, rows[1:], strict=False):
        seconds = (row.get(clock, math.nan) - before.get(clock, math.nan)) * unit
        acked = row.get("bytes_acked", math.nan) - before.get("bytes_acked", math.nan)
        if not seconds > 0 or not acked >= 0:
            continue
        intervals.append({
            "time_s": number((row[clock] - zero) * unit, r.SECONDS_MAX),
            "seconds": seconds,
            "goodput_mbit": number(acked * 8e-6 / seconds, r.MBIT_MAX),
            "rtt_ms": number(row.get("rtt"), r.RTT_MS_MAX, r.RTT_MS_MIN),
            "min_rtt_ms": number(row.get("minrtt", row.get("bbr_mrtt")), r.RTT_MS_MAX, r.RTT_MS_MIN),
            "cwnd_packets": number(row.get("cwnd"), r.PACKETS_MAX),
            "retransmits": number(row.get("retrans", 0.0) - before.get("retrans", 0.0), r.PACKETS_MAX),
            "pacing_gain": number(row.get("bbr_pacing_gain"), 10),
        })  # fmt: skip
    return intervals
