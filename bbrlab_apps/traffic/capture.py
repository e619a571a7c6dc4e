"""Short flows from a user's packet capture."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.workload.chunks import COLUMNS, MIN_BYTES, PAUSE_S
from bbrlab_apps.traffic.records import NS, Records
from bbrlab_apps.traffic.segments import SEQUENCE_NUMBERS, Key, LeftOut, Segments

LARGEST_STEP = 1 << 30  # the largest window (RFC 7323, 2.2): no connection's next data is farther ahead
PAUSE_NS = round(PAUSE_S * NS)


@dataclass(slots=True)
class _Flow:
    """A flow while its packets are read: its memory does not grow with their number."""

    begin_ns: int
    last_ns: int
    next_number: int
    pauses_ns: list[int] = field(default_factory=lambda: [0])
    sizes: list[int] = field(default_factory=lambda: [0])

    def take(self, time_ns: int, number: int, payload: int) -> None:
        """Count a packet's new bytes; a pause of PAUSE_S before them begins a new chunk."""
        end = (number + payload) % SEQUENCE_NUMBERS
        ahead = (end - self.next_number) % SEQUENCE_NUMBERS
        if ahead and ahead <= LARGEST_STEP:  # bytes in a gap were lost before the capture or come later, as old ones
            if time_ns - self.last_ns >= PAUSE_NS:
                self.pauses_ns.append(time_ns - self.last_ns)
                self.sizes.append(0)
            self.sizes[-1] += ahead
            self.next_number = end
        self.last_ns = max(self.last_ns, time_ns)  # a retransmission is nothing new, but its sender does not rest


@dataclass(frozen=True)
class Capture:
    """The flows of a capture."""

    chunks: pd.DataFrame  # columns COLUMNS, a row per chunk; times in s since the first data
    notes: list[str]  # what was left out, by reason, and how the file ends if not as it should


def from_capture(path: Path) -> Capture:
    """Chunks of the TCP flows of a capture (pcap or pcapng): unidirectional, by addresses and ports, from SYN to SYN.

    Bytes are counted by their sequence numbers, so that what is sent again counts once, and by the lengths that the headers say,
    for backbone captures keep headers only. A truncated file is read as far as it goes. Packets are read one by one: memory grows
    with the number of flows and chunks, not of packets. UserError if the file is not a capture, or has no TCP with data; it says
    what was left out.
    """
    records, segments = Records(path), Segments()
    open_flows: dict[Key, _Flow] = {}
    flows: list[_Flow] = []
    left_out: Counter[str] = Counter()
    for packet in records:
        try:
            key, syn, number, payload = segments.of(packet)
        except LeftOut as why:
            left_out[str(why)] += 1
            continue
        if syn:  # another connection of the same ports, if there was one
            open_flows.pop(key, None)
        if payload <= 0:
            continue
        if key not in open_flows:
            open_flows[key] = _Flow(packet.time_ns, packet.time_ns, number)
            flows.append(open_flows[key])
        open_flows[key].take(packet.time_ns, number, payload)
    notes = [f"left out: {number_of(n, 'packet')} {why}" for why, n in (records.left_out + left_out).most_common()]
    if records.end:
        notes.append(f"{records.end}; what stands before that was read")
    if not flows:
        has = "has no TCP packet with data" if records.packets else "has no packet"
        raise UserError("; ".join((f"{path}: {has}, so no flow can be made of it", *notes)))
    flows.sort(key=lambda f: f.begin_ns)
    first_ns = flows[0].begin_ns
    rows = [
        (number, chunk, (flow.begin_ns - first_ns) / NS, pause_ns / NS, max(MIN_BYTES, size))
        for number, flow in enumerate(flows)
        for chunk, (pause_ns, size) in enumerate(zip(flow.pauses_ns, flow.sizes, strict=True))
    ]
    return Capture(pd.DataFrame(rows, columns=list(COLUMNS)), notes)
