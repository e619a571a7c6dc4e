"""The packets of a capture file: pcap and pcapng, of either byte order, as they are or compressed with gzip, bzip2 or xz.

Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. No library is used: maintained ones read a pcapng as if it had one
interface, and silently end where a file is truncated.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from bbrlab.base.errors import UserError

NS = 1_000_000_000
LARGEST_BYTES = 1 << 26  # of a block or packet; what says more is damaged
# {magic number: (ns that a unit of its fractions has, bytes of a packet's header)}; the last is that of the "modified" pcap.
PCAP = {0xA1B2C3D4: (1000, 16), 0xA1B23C4D: (1, 16), 0xA1B2CD34: (1000, 24)}
SECTION, INTERFACE, OBSOLETE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6  # types of a pcapng's blocks
SECTION_MAGIC, ORDER_MAGIC = b"\x0a\x0d\x0d\x0a", 0x1A2B3C4D
OPTION_RESOLUTION, OPTION_FCS, OPTION_OFFSET = 9, 13, 14
COMPRESSED: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
NOT_READ = {
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first (unzstd FILE)",
    b"\x04\x22\x4d\x18": "compressed with lz4: unpack it first (unlz4 FILE)",
    b"PK\x03\x04": "a zip: unpack it first (unzip FILE)",
    b"snoop\0": "of the format snoop: convert it first (editcap -F pcap FILE NEW.pcap)",
    b"btsnoop\0": "of the format btsnoop, which has no TCP",
    b"GMBU": "of Microsoft's Network Monitor: convert it first (editcap -F pcap FILE NEW.pcap)",
    b"RTSS": "of Microsoft's Network Monitor: convert it first (editcap -F pcap FILE NEW.pcap)",
}  # fmt: skip
DAMAGED = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)  # of a compressed file that is cut or damaged


class Packet(NamedTuple):
    """A packet, or what was captured of it."""

    time_ns: int  # since 1970
    link: int  # its LINKTYPE number
    data: bytes  # from the first byte of its link's header
    wire_bytes: int  # its size on the wire, without a frame check sequence


@dataclass
class Records:
    """The packets of a capture, one by one, and remarks on the file after they are read."""

    path: Path
    packets: int = 0
    # {reason: how many packets have no place in time or no interface}
    left_out: Counter[str] = field(default_factory=Counter)
    end: str = ""  # how the file ends, if not as it should

    def __iter__(self) -> Iterator[Packet]:
        """Read the file. UserError if it cannot be read or is not a capture."""
        try:
            with open(self.path, "rb") as file:
                start = file.peek(8)
                opened = next((open_ for magic, open_ in COMPRESSED.items() if start.startswith(magic)), None)
                if opened is None:
                    yield from self._packets(file, start)
                else:
                    with opened(file) as unpacked:
                        yield from self._packets(unpacked, self._start_of(unpacked))
        except DAMAGED as error:  # gzip.BadGzipFile is an OSError
            self.end = f"its compressed data is cut or damaged after packet {self.packets} ({error})"
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read ({error.strerror or error})") from None

    def _start_of(self, unpacked: Any) -> bytes:
        try:
            start: bytes = unpacked.peek(8)
        except DAMAGED as error:
            raise UserError(f"{self.path}: its compressed data is cut or damaged ({error})") from None
        return start

    def _packets(self, file: IO[bytes], start: bytes) -> Iterator[Packet]:
        if start.startswith(SECTION_MAGIC):
            return self._pcapng(file)
        for order in "<>":
            if len(start) >= 4 and (magic := struct.unpack(f"{order}I", start[:4])[0]) in PCAP:
                return self._pcap(file, order, *PCAP[magic])
        if not start:
            raise UserError(f"{self.path}: is empty, not a capture (pcap or pcapng)")
        what = next((f"is {words}" for magic, words in NOT_READ.items() if start.startswith(magic)), "")
        raise UserError(f"{self.path}: {what or 'is not a capture (pcap or pcapng)'}")

    def _cut(self) -> None:
        self.end = f"the file is cut: it ends in the middle of what follows packet {self.packets}"

    def _damaged(self, what: str) -> None:
        self.end = f"the file is damaged after packet {self.packets} ({what}); what follows was not read"

    def _pcap(self, file: IO[bytes], order: str, unit_ns: int, head_bytes: int) -> Iterator[Packet]:
        head = file.read(24)
        if len(head) < 24:
            return self._cut()
        network = struct.unpack(f"{order}20xI", head)[0]
        link = network & 0xFFFF
        fcs_bytes = (network >> 28) * 2 if network & 0x04000000 else 0
        unpack = struct.Struct(f"{order}IIII").unpack_from
        while head := file.read(head_bytes):
            if len(head) < head_bytes:
                return self._cut()
            time_s, fraction, captured, wire = unpack(head)
            if captured > LARGEST_BYTES or fraction * unit_ns >= NS:
                return self._damaged(f"a packet of {captured} bytes, {fraction * unit_ns} ns after a full second")
            data = file.read(captured)
            if len(data) < captured:
                return self._cut()
            self.packets += 1
            yield Packet(time_s * NS + fraction * unit_ns, link, data, max(wire, captured) - fcs_bytes)

    def _pcapng(self, file: IO[bytes]) -> Iterator[Packet]:
        order, interfaces = "<", list[_Interface]()
        while head := file.read(12):
            if len(head) < 12:
                return self._cut()
            if head.startswith(SECTION_MAGIC):
                order = next((o for o in "<>" if struct.unpack(f"{o}I", head[8:])[0] == ORDER_MAGIC), "")
                if not order:
                    return self._damaged("a section without its byte order")
                interfaces = []
            kind, length = struct.unpack(f"{order}II", head[:8])
            if not 12 <= length <= LARGEST_BYTES or length % 4:
                return self._damaged(f"a block of {length} bytes")
            block = head[8:] + file.read(length - 12)
            if len(block) < length - 8:
                return self._cut()
            body = block[:-4]
            if struct.unpack(f"{order}I", block[-4:])[0] != length:
                return self._damaged("a block that ends with another length than it begins with")
            try:
                if kind == SECTION and (version := struct.unpack_from(f"{order}H", body, 4)[0]) != 1:
                    return self._damaged(f"a section of version {version}")
                if kind == INTERFACE:
                    interfaces.append(_Interface.of(body, order))
                elif kind in (ENHANCED, OBSOLETE, SIMPLE):
                    self.packets += 1
                    if packet := self._of_block(kind, body, order, interfaces):
                        yield packet
            except struct.error:
                return self._damaged("a block that is shorter than its content")
        return None

    def _of_block(self, kind: int, body: bytes, order: str, interfaces: list[_Interface]) -> Packet | None:
        if kind == SIMPLE:
            self.left_out["in simple packet blocks, which have no time"] += 1
            return None
        layout = f"{order}IIIII" if kind == ENHANCED else f"{order}HxxIIII"
        which, high, low, captured, wire = struct.unpack_from(layout, body)
        if which >= len(interfaces):
            self.left_out["of an interface that the file does not describe"] += 1
            return None
        data = body[20 : 20 + captured]
        if len(data) < captured:
            self.left_out["longer than the blocks that hold them"] += 1
            return None
        interface = interfaces[which]
        time_ns = (high << 32 | low) * NS // interface.ticks_per_s + interface.offset_s * NS
        return Packet(time_ns, interface.link, data, max(wire, captured) - interface.fcs_bytes)


@dataclass(frozen=True, slots=True)
class _Interface:
    """An interface of a pcapng's section."""

    link: int
    ticks_per_s: int
    offset_s: int
    fcs_bytes: int

    @classmethod
    def of(cls, body: bytes, order: str) -> _Interface:
        """The interface of a block. struct.error for one that is too short."""
        link = struct.unpack_from(f"{order}Hxxxxxx", body)[0]
        options, at = dict[int, bytes](), 8
        while at + 4 <= len(body):
            code, size = struct.unpack_from(f"{order}HH", body, at)
            if code == 0:
                break
            options.setdefault(code, body[at + 4 : at + 4 + size])
            at += 4 + size + -size % 4
        resolution = struct.unpack("B", options.get(OPTION_RESOLUTION, b"\x06"))[0]
        ticks = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
        offset = struct.unpack(f"{order}q", options.get(OPTION_OFFSET, bytes(8)))[0]
        return cls(link, ticks, offset, struct.unpack("B", options.get(OPTION_FCS, b"\0"))[0])
