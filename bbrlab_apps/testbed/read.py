"""Reads files of a testbed, whatever tool wrote them."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab_apps.testbed import flent, iperf3, ss
from bbrlab_apps.testbed.recording import Ends, Flow, NotReadError, Recording, Way
from bbrlab_apps.traffic.records import PCAP, SECTION_MAGIC

FILES_MAX = 32
BYTES_MAX = 64_000_000  # of a file, unpacked
FLOWS_MAX = 1000  # of all files, as of a scenario
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # what such a text begins with, as PowerShell's > writes it
READERS: tuple[Any, ...] = (flent, ss, iperf3)
SAME = "is of the same test as {}, which is used: leave one of them out"
CAPTURES = (SECTION_MAGIC, *(magic.to_bytes(4, order) for magic in PCAP for order in ("little", "big")))
CAPTURED = "is a capture of packets, which has no window and no algorithm; record with iperf3 -J or ss -tin (bbrlab traffic makes short flows of a capture)"
OTHERS = {
    r"Interval\s+Transfer\s+B": "is iperf3's text, which has no RTT; record with iperf3 -J -i 0.1",
    r'"qlog_(version|format)"|urn:ietf:params:qlog': "is qlog, which is QUIC's; TCP's flows only are compared",
    r"^qdisc \w+ \w*: ": "is what tc says of a queue, not of flows; give flows, and what you know of the queue with --set (network.buffer, network.qdisc)",
}  # {what is in the first lines of a file that is not taken: why, and what to do}
KINDS = "iperf3's JSON (iperf3 -J -i 0.1, or --json-stream), what ss -tin printed again and again, or flent's .flent.gz"


def read_files(paths: Sequence[Path]) -> tuple[list[Recording], list[str]]:
    """Recordings of files, and of each file that is not read why (``FILE: ...``). UserError if there are too many, or nothing
    could be read of any."""
    if len(paths) > FILES_MAX:
        raise UserError(f"{len(paths)} files: at most {FILES_MAX} are taken together")
    recordings: list[Recording] = []
    problems: list[str] = []
    for i, path in enumerate(paths):
        try:
            if path in paths[:i]:
                raise NotReadError("is given twice, and read once")
            recordings += _read(path)
        except NotReadError as error:
            problems.append(f"{path}: {error}")
    for each_once in (_tests_once, _connections_once):
        recordings, twice = each_once(recordings)
        problems += twice
    recordings = _one_direction(recordings)
    if not recordings:
        raise UserError("nothing could be read:\n  " + "\n  ".join(problems))
    if (count := sum(len(one.flows) for one in recordings)) > FLOWS_MAX:
        raise UserError(f"{count} flows: at most {FLOWS_MAX} are compared")
    return recordings, problems


def _tests_once(recordings: Sequence[Recording]) -> tuple[list[Recording], list[str]]:
    """Recordings without those of which another one is the other end's and says more or as much, and of each that is left out why.

    Where their connections can be told by their ends, which a translated address does not allow, both stay: of a test in both
    directions each end says more of what it sends. Both have one clock.
    """
    kept: list[Recording] = []
    problems: list[str] = []
    for one in recordings:
        at, other = next(((i, o) for i, o in enumerate(kept) if one.identity and o.identity == one.identity), (0, None))
        if other is None:
            kept.append(one)
        elif _ends_of(one) & _ends_of(other):
            kept.append(replace(one, epoch_s=other.epoch_s))
        else:
            kept[at] = max(other, one, key=lambda recording: _says(recording.flows))
            problems.append(f"{(one if kept[at] is other else other).file}: {SAME.format(kept[at].file)}")
    return kept, problems


def _ends_of(recording: Recording) -> set[Ends]:
    return {flow.ends for flow in recording.flows if flow.ends}


def _says(flows: Sequence[Flow]) -> tuple[int, int]:
    """How much a file says of flows: of how many it has RTTs, as a sender's does, and how many values; that of ss has the kernel's own
    minimum of the RTT, too."""
    with_rtts = sum(flow.samples["rtt_ms"].notna().any() for flow in flows)
    return int(with_rtts), sum(int(flow.samples.notna().sum().sum()) for flow in flows)


def _connections_once(recordings: Sequence[Recording]) -> tuple[list[Recording], list[str]]:
    """Recordings without the connections that another file has, too, and of each that has no others why it is left out.

    Of two flows that are one connection's, that of which its file says more stays, else that of the file that was given first.
    """
    used: dict[Ends, tuple[Flow, Recording]] = {}
    for one in recordings:
        for flow in one.flows:
            if flow.ends not in used or _says([flow]) > _says([used[flow.ends][0]]):
                used[flow.ends] = flow, one
    kept: list[Recording] = []
    problems: list[str] = []
    for one in recordings:
        twice = [flow for flow in one.flows if flow.ends and _is_beside(used[flow.ends][1], one)]
        where = ", ".join(dict.fromkeys(str(used[flow.ends][1].file) for flow in twice))
        left = [flow for flow in one.flows if all(flow is not other for other in twice)]
        if not twice:
            kept.append(one)
        elif left:
            words = f"{number_of(len(twice), 'flow')} of a connection that {where} has, too"
            kept.append(replace(one, flows=left, not_read=[*one.not_read, words]))
        else:
            problems.append(f"{one.file}: {SAME.format(where)}")
    return kept, problems


def _one_direction(recordings: Sequence[Recording]) -> list[Recording]:
    """Recordings whose flows go forward or back as the first one does, by the hosts that data go between: a file's own view is of who
    made it, such as a client at either end of the path."""
    forward: set[Way] = set()
    turned = []
    for one in recordings:
        flows = []
        for flow in one.flows:
            way, back = flow.way, flow.reverse
            if way:
                back = way[::-1] in forward or (way not in forward and back)
                forward.add(way[::-1] if back else way)
            flows.append(replace(flow, reverse=back))
        turned.append(replace(one, flows=flows))
    return turned


def _is_beside(one: Recording, two: Recording) -> bool:
    """Whether two recordings are of two files and may be of one time: ports are used again, as by iperf3 --cport."""
    if one.file == two.file or one.epoch_s is None or two.epoch_s is None:
        return one.file != two.file
    return one.epoch_s + one.start_s < two.epoch_s + two.end_s and two.epoch_s + two.start_s < one.epoch_s + one.end_s


def _read(path: Path) -> list[Recording]:
    text = _text(path)
    if not text.strip():
        raise NotReadError("is empty")
    for reader in READERS:
        if reader.recognises(text):
            recordings: list[Recording] = reader.read(path, text)
            return recordings
    for pattern, words in OTHERS.items():
        if re.search(pattern, text[:4096], re.MULTILINE):
            raise NotReadError(words)
    raise NotReadError(f"is none of {KINDS}; for a table of numbers: docs/howto/beside.md#a-table-of-numbers")


def _text(path: Path) -> str:
    """The text of a file, unpacked if it is packed, at most BYTES_MAX of it."""
    try:
        if path.is_dir():
            raise NotReadError("is a folder; give the files in it")
        with open(path, "rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"  # a pipe cannot go back
            content = (gzip.GzipFile(fileobj=file) if packed else file).read(BYTES_MAX + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise NotReadError("is packed with gzip, and cut off or damaged") from None
    except OSError as error:
        raise NotReadError(str(files.explain(error, path)).removeprefix(f"{path}: ")) from None
    if len(content) > BYTES_MAX:
        raise NotReadError(f"has more than {BYTES_MAX // 1_000_000} MB; give a part of it")
    if content.startswith(CAPTURES):
        raise NotReadError(CAPTURED)
    try:
        return content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        raise NotReadError("is no text in UTF-8 or UTF-16") from None
