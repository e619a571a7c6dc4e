"""Short flows from a packet capture of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.workload.chunks import COLUMNS, MIN_BYTES, PAUSE_S


def from_capture(path: Path) -> pd.DataFrame:
    """Chunks of the TCP flows of a capture (pcap or pcapng): unidirectional, by addresses and ports.

    Raises:
        UserError: if the file is not a capture, is cut off, or has no TCP with data.
    """
    import dpkt

    flows: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
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
                # The IP header's length, not what was captured: backbone captures keep headers only.
                length = packet.len - packet.hl * 4 if isinstance(packet, dpkt.ip.IP) else packet.plen
                payload = length - packet.data.off * 4
                if payload > 0:
                    key = (packet.src, packet.dst, packet.data.sport, packet.data.dport)
                    flows.setdefault(key, []).append((float(time_s), payload))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (dpkt.dpkt.Error, ValueError, EOFError) as error:
        raise UserError(f"{path}: is not a capture (pcap or pcapng), or is cut off ({error})") from None
    if not flows:
        raise UserError(f"{path}: has no TCP packet with data, so no flow can be made of it")
    first = min(packets[0][0] for packets in flows.values())
    rows = []
    for flow, packets in enumerate(sorted(flows.values(), key=lambda p: p[0][0])):
        times = np.array([t for t, _ in packets]) - first
        sizes = np.array([n for _, n in packets])
        breaks = np.flatnonzero(np.diff(times) >= PAUSE_S) + 1
        edges = [0, *breaks.tolist(), len(times)]
        for chunk, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
            pause = 0.0 if chunk == 0 else float(times[low] - times[low - 1])
            rows.append((flow, chunk, float(times[0]), pause, max(MIN_BYTES, int(sizes[low:high].sum()))))
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
