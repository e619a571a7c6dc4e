"""Short flows from a packet capture of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.workload.chunks import COLUMNS, MIN_BYTES, PAUSE_S

SEQUENCE_NUMBERS = 1 << 32
LARGEST_STEP = 1 << 30  # the largest window (RFC 7323, 2.2): no connection's next data is farther ahead


@dataclass(slots=True)
class _Flow:
    """A flow while its packets go by: so much memory it takes, however many they are."""

    begin_s: float
    last_s: float
    next_number: int
    pauses_s: list[float] = field(default_factory=lambda: [0.0])
    sizes: list[int] = field(default_factory=lambda: [0])

    def take(self, time_s: float, number: int, payload: int) -> None:
        """Count a packet's new bytes; a pause of PAUSE_S before them begins a new chunk."""
        end = (number + payload) % SEQUENCE_NUMBERS
        ahead = (end - self.next_number) % SEQUENCE_NUMBERS
        if ahead and ahead <= LARGEST_STEP:  # bytes in a gap were lost before the capture or come later, as old ones
            if time_s - self.last_s >= PAUSE_S:
                self.pauses_s.append(time_s - self.last_s)
                self.sizes.append(0)
            self.sizes[-1] += ahead
            self.next_number = end
        self.last_s = max(self.last_s, time_s)  # a retransmission is nothing new, but its sender does not rest


def from_capture(path: Path) -> pd.DataFrame:
    """Chunks of the TCP flows of a capture (pcap or pcapng): unidirectional, by addresses and ports, from SYN to SYN.

    Bytes are counted by their sequence numbers, so that what is sent again counts once. Packets are read one by one: memory
    goes with the number of flows and chunks, not of packets.

    Returns:
        Columns COLUMNS, a row per chunk; times in s since the first data.

    Raises:
        UserError: if the file is not a capture, is cut off, or has no TCP with data.
    """
    import dpkt

    open_flows: dict[tuple[Any, ...], _Flow] = {}
    flows: list[_Flow] = []
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
            file.seek(0)
            reader: Any = dpkt.pcapng.Reader(file) if magic == b"\x0a\x0d\x0d\x0a" else dpkt.pcap.Reader(file)
            link = reader.datalink()
            for time_s, frame in reader:
                packet = _ip(frame, link)
                if packet is None or not isinstance(packet.data, dpkt.tcp.TCP):
                    continue
                segment = packet.data
                key = (packet.src, packet.dst, segment.sport, segment.dport)
                # The IP header's length, not what was captured: backbone captures keep headers only.
                length = packet.len - packet.hl * 4 if isinstance(packet, dpkt.ip.IP) else packet.plen
                payload, number = length - segment.off * 4, segment.seq
                if segment.flags & dpkt.tcp.TH_SYN:  # another connection of the same ports, if there was one
                    open_flows.pop(key, None)
                    number = (number + 1) % SEQUENCE_NUMBERS
                if payload <= 0:
                    continue
                if key not in open_flows:
                    open_flows[key] = _Flow(float(time_s), float(time_s), number)
                    flows.append(open_flows[key])
                open_flows[key].take(float(time_s), number, payload)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (dpkt.dpkt.Error, ValueError, EOFError) as error:
        raise UserError(f"{path}: is not a capture (pcap or pcapng), or is cut off ({error})") from None
    if not flows:
        raise UserError(f"{path}: has no TCP packet with data, so no flow can be made of it")
    flows.sort(key=lambda f: f.begin_s)
    first_s = flows[0].begin_s
    rows = [
        (number, chunk, flow.begin_s - first_s, pause_s, max(MIN_BYTES, size))
        for number, flow in enumerate(flows)
        for chunk, (pause_s, size) in enumerate(zip(flow.pauses_s, flow.sizes, strict=True))
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _ip(frame: bytes, link: int) -> Any:
    """The IP packet in a frame, or None."""
    import dpkt

    try:
        if link == dpkt.pcap.DLT_EN10MB:
            packet = dpkt.ethernet.Ethernet(frame).data
        elif link in (dpkt.pcap.DLT_RAW, 12, 14, 101):
            packet = dpkt.ip.IP(frame) if frame[:1] and frame[0] >> 4 == 4 else dpkt.ip6.IP6(frame)
        elif link == dpkt.pcap.DLT_LINUX_SLL:
            packet = dpkt.sll.SLL(frame).data
        else:
            return None
    except (dpkt.dpkt.Error, IndexError):
        return None
    return packet if isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6) else None
