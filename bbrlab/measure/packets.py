"""Capture files (pcapng) of the packets that a guest kept (mininet/capture.py).

Format: draft-ietf-opsawg-pcapng. Times are those of the experiment: 0 is its start, so that the same run has the same bytes.
Kernel structures: ``struct tpacket2_hdr``, ``struct sockaddr_ll`` (uapi/linux/if_packet.h).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from bbrlab.base.arrays import Array

NS = 1_000_000_000
HEADER = np.dtype([
    ("status", "<u4"), ("wire_bytes", "<u4"), ("captured_bytes", "<u4"), ("at", "<u2"), ("network_at", "<u2"), ("time_s", "<u4"),
    ("time_ns", "<u4"), ("vlan", "<u2", 2), ("padding", "<u4"),
    ("family", "<u2"), ("protocol", ">u2"), ("interface", "<i4"), ("hardware", "<u2"), ("kind", "u1"), ("address", "u1", 9),
])  # fmt: skip
OUTGOING = 4  # PACKET_OUTGOING
DATA_AT = 80 - 14  # where an Ethernet packet begins in a frame: its IP header is at TPACKET_ALIGN(TPACKET2_HDRLEN + 16)
ETHERNET = 1  # LINKTYPE_ETHERNET
SECTION, INTERFACE, STATISTICS, ENHANCED = 0x0A0D0D0A, 1, 5, 6
APPLICATION, COMMENT, NAME, RESOLUTION, FLAGS = 4, 1, 2, 9, 2  # options of blocks
RECEIVED, DROPPED = 4, 5
INBOUND, OUTBOUND = 1, 2
NANOSECONDS = b"\x09"
WHAT = b"Times are seconds since the start of the experiment."
CHUNK_PACKETS = 1 << 15


@dataclass(frozen=True)
class Tap:
    """The packets that the guest kept of an interface."""

    device: str
    path: Path
    # packets, dropped: the number that passed, and of these that were not kept
    packets: int
    dropped: int


def write_capture(
    file: IO[bytes], taps: Sequence[Tap], frame_bytes: int, snaplen: int, zero_ns: int, end_ns: int
) -> None:
    """Write a capture file of the packets of some interfaces, by time. ValueError if a guest's file is cut off.

    Args:
        taps: of the interfaces, each of which the file describes.
        frame_bytes: of a packet's frame in the guest's files.
        zero_ns: the start of the experiment by the packets' clock; earlier packets are left out.
        end_ns: of the experiment, since its start.
    """
    frames = [_frames(tap.path, frame_bytes) for tap in taps]
    times_ns, taps_of, row = [], [], []
    for number, mapped in enumerate(frames):
        head = mapped[:, : HEADER.itemsize].copy().view(HEADER)[:, 0]
        since_ns = head["time_s"].astype("<i8") * NS + head["time_ns"] - zero_ns
        rows = np.flatnonzero((since_ns >= 0) & (since_ns <= end_ns))
        times_ns.append(since_ns[rows])
        taps_of.append(np.full(len(rows), number, "<u4"))
        row.append(rows)
    all_ns, interfaces, places = (np.concatenate(parts) for parts in (times_ns, taps_of, row))
    order = np.argsort(all_ns, kind="stable")
    file.write(_block(SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1), {COMMENT: WHAT, APPLICATION: b"bbrlab"}))
    for tap in taps:
        options = {NAME: tap.device.encode(), RESOLUTION: NANOSECONDS}
        file.write(_block(INTERFACE, struct.pack("<HHI", ETHERNET, 0, snaplen), options))
    for begin in range(0, len(order), CHUNK_PACKETS):
        chosen = order[begin : begin + CHUNK_PACKETS]
        block = np.empty((len(chosen), frame_bytes), "u1")
        for number, mapped in enumerate(frames):
            rows_of_tap = np.flatnonzero(interfaces[chosen] == number)
            block[rows_of_tap] = mapped[places[chosen[rows_of_tap]]]
        file.write(_packets(block, all_ns[chosen], interfaces[chosen], snaplen).tobytes())
    for number, tap in enumerate(taps):
        body = struct.pack("<III", number, end_ns >> 32, end_ns & 0xFFFFFFFF)
        counts = {RECEIVED: struct.pack("<Q", tap.packets), DROPPED: struct.pack("<Q", tap.dropped)}
        file.write(_block(STATISTICS, body, counts))


def _frames(path: Path, frame_bytes: int) -> Array:
    """The frames of a guest's file, a row each."""
    size = path.stat().st_size
    if size % frame_bytes:
        raise ValueError(f"{path.name}: {size} bytes are no whole number of packets")
    if not size:
        return np.empty((0, frame_bytes), "u1")
    return np.memmap(path, "u1", "r").reshape(-1, frame_bytes)


def _block(kind: int, body: bytes, options: dict[int, bytes]) -> bytes:
    """A block of a pcapng file, other than a packet's."""
    for code, value in options.items():
        body += struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
    body += bytes(4)  # the end of the options
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _packets(frames: Array, times_ns: Array, interfaces: Array, snaplen: int) -> Array:
    """The bytes of the packets' blocks, one after the other."""
    head = frames[:, : HEADER.itemsize].copy().view(HEADER)[:, 0]
    kept = np.minimum(head["captured_bytes"], snaplen).astype(np.int64)
    padded = -(-kept // 4) * 4
    sizes = 28 + padded + 12 + 4
    ends = np.cumsum(sizes)
    blocks = np.zeros(int(ends[-1]), "u1")
    flags = np.where(head["kind"] == OUTGOING, OUTBOUND, INBOUND)
    fields = np.stack([
        np.full(len(frames), ENHANCED), sizes, interfaces, times_ns >> 32, times_ns & 0xFFFFFFFF, kept, head["wire_bytes"],
    ], axis=1).astype("<u4").view("u1")  # fmt: skip
    tail = np.stack([np.full(len(frames), FLAGS | 4 << 16), flags, np.zeros(len(frames)), sizes], axis=1)
    tail = tail.astype("<u4").view("u1")
    for size, at in np.unique(np.stack([kept, head["at"]], axis=1), axis=0):  # few: of ACKs, and of data
        rows = np.flatnonzero((kept == size) & (head["at"] == at))
        begins = (ends - sizes)[rows][:, None]
        blocks[begins + np.arange(28)] = fields[rows]
        blocks[begins + 28 + np.arange(size)] = frames[rows, at : at + size]
        blocks[begins + 28 + (-(-size // 4) * 4) + np.arange(16)] = tail[rows]
    return blocks
