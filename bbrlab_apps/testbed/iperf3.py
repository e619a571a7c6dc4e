"""Reads what iperf3 writes with ``--json`` or ``--json-stream``, whole or cut off, of a client or of a server."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bbrlab.base.words import number_of
from bbrlab_apps.testbed import recording as r
from bbrlab_apps.testbed.recording import Flow, NotReadError, Recording, is_there, number, words

Rows = dict[int, list[dict[str, float]]]  # of each stream, by its socket
PARTS = re.compile(r'"(start|intervals|end)"\s*:\s*')


def recognises(text: str) -> bool:
    """Whether a text begins like iperf3's JSON."""
    head = text.lstrip()[:4096]
    return head.startswith("{") and bool(re.match(r'\{\s*("start"|"title"|"extra_data"|"error"|"event")\s*:', head))


def read(file: Path, text: str) -> list[Recording]:
    """The tests of a file, one after another. NotReadError if none can be read."""
    recordings, problems = [], []
    for number_, (content, cut) in enumerate(_tests(text), 1):
        try:
            recordings.append(_test(file, content, cut))
        except NotReadError as error:
            problems.append(f"test {number_}: {error}")
    if not recordings:
        raise NotReadError("; ".join(problems).removeprefix("test 1: ") or "has no test of iperf3 in it")
    recordings[0].not_read.extend(problems)
    return recordings


def _tests(text: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """The JSON of each test, and whether it was cut off."""
    if re.match(r'\s*\{\s*"event"\s*:', text):
        yield from _stream(text)
        return
    decoder, at = json.JSONDecoder(parse_constant=lambda _: None), 0
    while at < len(text):
        at = next((i for i in range(at, len(text)) if not text[i].isspace()), len(text))
        if at == len(text):
            return
        try:
            content, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield _salvaged(decoder, text, at), True
            return
        if isinstance(content, dict):
            yield content, False


def _stream(text: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """Tests of ``--json-stream``: an event a line."""
    content: dict[str, Any] = {}
    for line in text.splitlines():
        try:
            event = json.loads(line)
            name, data = event["event"], event.get("data")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # the last line of a file that was cut off, or words between the events
        if name == "start" and "start" in content:
            yield content, "end" not in content
            content = {}
        if name == "interval":
            content.setdefault("intervals", []).append(data)
        elif name in ("start", "end", "error"):
            content[name] = data
    if content:
        yield content, "end" not in content


def _salvaged(decoder: json.JSONDecoder, text: str, at: int) -> dict[str, Any]:
    """What is whole of a test whose JSON ends, or breaks, before its end."""
    content: dict[str, Any] = {}
    for match in PARTS.finditer(text, at):
        name, place = match.group(1), match.end()
        if name in content:
            continue
        try:
            if name != "intervals":
                content[name] = decoder.raw_decode(text, place)[0]
                continue
            content[name] = []
            while (place := text.find("{", place)) >= 0:
                interval, place = decoder.raw_decode(text, place)
                content[name].append(interval)
                if not re.match(r"\s*,\s*\{", text[place : place + 64]):
                    break
        except (ValueError, RecursionError):
            continue
    return content


def _test(file: Path, content: dict[str, Any], cut: bool) -> Recording:
    start, end = _dict(content.get("start")), _dict(content.get("end"))
    settings = _dict(start.get("test_start"))
    error = words(content.get("error"))
    if settings.get("protocol") not in (None, "TCP"):
        raise NotReadError(f"is a test of {words(settings['protocol']) or 'another protocol'}; TCP only is compared")
    mss = number(start.get("tcp_mss", start.get("tcp_mss_default")), 65_535, 64)
    omitted_s = number(settings.get("omit"), r.SECONDS_MAX, 1)
    omitted_s = omitted_s if is_there(omitted_s) else 0.0
    rows, senders, lost = _rows_of(content, mss, omitted_s)
    if not rows:
        raise NotReadError(_nothing(error, content, end))
    not_read = [f"{number_of(lost, 'interval')} of streams without times, bytes or a socket"] if lost else []
    if cut:
        not_read.append("its end: the file is cut off")
    if error:
        not_read.append(f"what came after iperf3's error: {error}")
    stamp = _dict(start.get("timestamp"))
    rate = number(settings.get("target_bitrate", start.get("target_bitrate")), r.MBIT_MAX * 1e6, 1) / 1e6
    epoch_s = number(stamp.get("timemillisecs"), r.EPOCH_MAX * 1e3, 1) / 1e3
    if not is_there(epoch_s):
        epoch_s = number(stamp.get("timesecs"), r.EPOCH_MAX, 1)
    return Recording(
        file,
        "iperf3's JSON",
        _flows(rows, senders, mss, start, end),
        epoch_s if is_there(epoch_s) else None,
        says=[("its title", words(content.get("title"))), ("its extra_data", words(content.get("extra_data")))],
        identity=words(start.get("cookie")),
        not_read=not_read,
        system=words(start.get("system_info")),
        asked_mbit=rate if is_there(rate) else None,
        omitted_s=omitted_s,
    )


def _rows_of(content: dict[str, Any], mss: float, omitted_s: float) -> tuple[Rows, dict[int, bool], int]:
    """The intervals of each stream, whether this end sends it, and how many intervals cannot be read. None of any stream if all
    are of the time that iperf3 omits.

    Args:
        mss: of a segment's payload, in bytes; NaN if the file does not say.
        omitted_s: how long iperf3 omitted at the beginning (``-O``). Data flowed; its times and what it counts begin anew behind that.
    """
    rows: Rows = defaultdict(list)
    senders: dict[int, bool] = {}
    counted: set[int] = set()  # the sockets that have a row behind what is omitted
    lost = 0
    intervals = content.get("intervals")
    for interval in intervals if isinstance(intervals, list) else []:
        streams = _dict(interval).get("streams")
        for stream in map(_dict, streams if isinstance(streams, list) else []):
            row = _row(stream, mss)
            socket = stream.get("socket")
            if row is None or isinstance(socket, bool) or not isinstance(socket, int):
                lost += 1
                continue
            if stream.get("omitted") is not True:
                row["time_s"] += omitted_s
                if omitted_s and socket not in counted:  # what lies before, and was not printed, had the same rate
                    row["seconds"] = row["time_s"] - (rows[socket][-1]["time_s"] if rows[socket] else 0.0)
                counted.add(socket)
            rows[socket].append(row)
            senders[socket] = stream.get("sender") is not False
    return rows if counted else {}, senders, lost


def _flows(rows: Rows, senders: dict[int, bool], mss: float, start: dict[str, Any], end: dict[str, Any]) -> list[Flow]:
    """The flows of streams, with what the test's ``start`` and ``end`` say of all of them."""
    connected = start.get("connected")
    sockets = [_dict(one) for one in connected] if isinstance(connected, list) else []
    peer = sockets[0].get("remote_host") if sockets else None
    ends = {str(one.get("socket")): _ends(one) for one in sockets}
    hosts = {str(one.get("socket")): (one.get("local_host"), one.get("remote_host")) for one in sockets}
    by_server = "accepted_connection" in start
    return [
        Flow(
            f"stream {socket}",
            r.table_of(of),
            mss if is_there(mss) else None,
            words(end.get("sender_tcp_congestion")),
            reverse=senders[socket] == by_server,
            of_receiver=not senders[socket],
            ip_version=r.ip_version_of(peer),
            ends=ends.get(str(socket), frozenset()),
            way=r.way_of(*hosts.get(str(socket), (None, None))[:: 1 if senders[socket] else -1]),
        )
        for socket, of in sorted(rows.items())
    ]


def _ends(connected: dict[str, Any]) -> r.Ends:
    """The ends of a stream, as iperf3 has them."""
    return r.ends_of(*((connected.get(f"{side}_host"), connected.get(f"{side}_port")) for side in ("local", "remote")))


def _row(stream: dict[str, Any], mss: float) -> dict[str, float] | None:
    seconds = number(stream.get("seconds"), r.SECONDS_MAX, 1e-6)
    data = number(stream.get("bytes"), r.BYTES_MAX)
    end = number(stream.get("end"), r.SECONDS_MAX, 1e-6)
    if not (is_there(seconds) and is_there(data) and is_there(end)):
        return None
    cwnd = number(stream.get("snd_cwnd"), r.BYTES_MAX, 1) / mss
    return {
        "time_s": end,
        "seconds": seconds,
        "goodput_mbit": data * 8e-6 / min(seconds, end),
        "rtt_ms": number(stream.get("rtt"), r.RTT_MS_MAX * 1e3, 1) / 1e3,
        "cwnd_packets": cwnd,
        "retransmits": number(stream.get("retransmits"), r.PACKETS_MAX),
    }


def _nothing(error: str, content: dict[str, Any], end: dict[str, Any]) -> str:
    """Why there is no interval to read."""
    if error:
        return f"has no interval; iperf3 says: {error}"
    if end.get("streams"):
        return "has totals only, no intervals (iperf3 -i 0); record with -i 0.1, so that there is something over time"
    return (
        "has no interval that is whole, or omitted ones only (iperf3 -O)" if content else "is no JSON that can be read"
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
