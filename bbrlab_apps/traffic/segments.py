"""Finds the TCP segments in captured packets behind the headers of links, IPv4 and IPv6; reports packets without TCP.

Sources: the LINKTYPE registry of tcpdump.org, IEEE 802.1Q, RFC 791, 2516, 2675 (jumbograms), 3032 (MPLS), 8200 (IPv6), 9293 (TCP).
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import NamedTuple

from bbrlab_apps.traffic.records import Packet

SEQUENCE_NUMBERS = 1 << 32
SYN = 2
IPV4, IPV6, PPPOE = 0x0800, 0x86DD, 0x8864
VLANS, MPLS = (0x8100, 0x88A8, 0x9100, 0x9200), (0x8847, 0x8848)
ETHERTYPES = {0x0806: "ARP", 0x88CC: "LLDP", 0x8863: "PPPoE discovery", 0x88E5: "MACsec", 0x888E: "EAPOL"}
ETHERNET, NULL, LOOP, SLL, SLL2 = 1, 0, 108, 113, 276
RAW = (12, 14, 101, 228, 229)
LINKS = {
    6: "token ring", 7: "ARCNET", 8: "SLIP", 9: "PPP", 10: "FDDI", 50: "PPP in HDLC", 51: "PPPoE", 104: "Cisco HDLC", 105: "IEEE 802.11",
    107: "frame relay", 109: "OpenBSD enc", 117: "OpenBSD pflog", 119: "IEEE 802.11 with Prism's header", 122: "IP over Fibre Channel",
    127: "IEEE 802.11 with radiotap", 163: "IEEE 802.11 with AVS", 189: "USB", 192: "PPI", 195: "IEEE 802.15.4", 197: "ERF",
    201: "Bluetooth", 220: "USB", 227: "CAN", 242: "IP over InfiniBand", 247: "InfiniBand", 249: "USB", 252: "exported PDU",
    239: "NFLOG", 253: "netlink", 258: "PKTAP",
}  # fmt: skip
# {address family of a BSD loopback header: ethertype}; IPv6 has a number of its own in each system.
FAMILIES = {2: IPV4, 10: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}
PPP = {0x0021: IPV4, 0x0057: IPV6}
TCP, HOP_BY_HOP, FRAGMENT, AUTHENTICATION = 6, 0, 44, 51
EXTENSIONS = (HOP_BY_HOP, 43, 60, 135, 139, 140)  # headers of IPv6 that say their length in 8 bytes
PROTOCOLS = {
    1: "ICMP", 2: "IGMP", 4: "IPv4 in IP", 17: "UDP", 33: "DCCP", 41: "IPv6 in IP", 47: "GRE", 50: "ESP", 58: "ICMPv6", 59: "no header follows",
    89: "OSPF", 132: "SCTP", 137: "MPLS in IP",
}  # fmt: skip
JUMBO = 0xC2
REMEMBERED = 4096  # IP packets of which not all fragments have come
CUT = "cut before the end of their TCP header"

Key = tuple[bytes, bytes, int, int]


class LeftOut(Exception):
    """A packet without usable TCP data; the text completes "packets left out: 3 ..."."""


class Segment(NamedTuple):
    """A TCP segment, or the part of one that a fragment carries."""

    key: Key
    syn: bool
    number: int  # sequence number of its first byte of data
    payload: int  # bytes of its data, on the wire


class _Part(NamedTuple):
    """The payload of an IP packet: its begin and end in the packet on the wire, and its place in a fragmented one."""

    begin: int
    end: int
    protocol: int
    whose: tuple[bytes, bytes]
    offset: int = 0
    more: bool = False
    id: int = 0


class Segments:
    """Reads segments; it keeps the first fragments of IP packets, since the others have no TCP header."""

    def __init__(self) -> None:
        # {addresses and number of a packet: whose it is, and the sequence number that its byte 0 would have}
        self._first: OrderedDict[tuple[tuple[bytes, bytes], int], tuple[Key, int]] = OrderedDict()

    def of(self, packet: Packet) -> Segment:
        """The segment in a packet. LeftOut if there is none that can be read."""
        try:
            return self._of(packet)
        except (struct.error, IndexError):
            raise LeftOut(CUT if len(packet.data) < packet.wire_bytes else "shorter than their headers say") from None

    def _of(self, packet: Packet) -> Segment:
        data = packet.data
        at = _ip_at(packet)
        version = data[at] >> 4
        if version == 4:
            part = _ipv4(data, at, packet.wire_bytes)
        elif version == 6:
            part = _ipv6(data, at, packet.wire_bytes)
        else:
            raise LeftOut(f"of IP version {version}")
        if part.offset:
            return self._later(part)
        if part.protocol != TCP:
            raise LeftOut(f"of IP protocol {part.protocol}{_named(PROTOCOLS, part.protocol)}")
        source, destination, number, header, flags = struct.unpack_from(">HHI4xBB", data, part.begin)
        begin = part.begin + (header >> 4) * 4
        if header >> 4 < 5 or begin > part.end:
            raise LeftOut("whose TCP header is longer or shorter than there is room for")
        if flags & SYN:
            number += 1
        key = (*part.whose, source, destination)
        if part.more:
            self._first[part.whose, part.id] = (key, number - (begin - part.begin))
            if len(self._first) > REMEMBERED:
                self._first.popitem(last=False)
        return Segment(key, bool(flags & SYN), number % SEQUENCE_NUMBERS, part.end - begin)

    def _later(self, part: _Part) -> Segment:
        """The data of a fragment after the first."""
        first = self._first.get((part.whose, part.id)) if part.more else self._first.pop((part.whose, part.id), None)
        if first is None:
            raise LeftOut("which are fragments of IP packets whose first one is not before them, or has no TCP")
        key, number = first
        return Segment(key, False, (number + part.offset) % SEQUENCE_NUMBERS, part.end - part.begin)


def _named(names: dict[int, str], number: int) -> str:
    return f" ({names[number]})" if number in names else ""


def _ip_at(packet: Packet) -> int:
    """Where the IP header of a packet begins. LeftOut if it has none."""
    data, link = packet.data, packet.link
    if link == ETHERNET:
        return _after_type(data, 12)
    if link in RAW:
        return 0
    if link == SLL:
        return _after_type(data, 14)
    if link == SLL2:
        return _after_type(data, 0, 20)
    if link in (NULL, LOOP):  # NULL: in the byte order of the machine that captured
        families = struct.unpack_from(">I", data)[0], struct.unpack_from("<I", data)[0]
        if not any(family in FAMILIES for family in families):
            raise LeftOut(f"of address family {min(families)} of the loopback interface")
        return 4
    raise LeftOut(f"of link type {link}{_named(LINKS, link)}, which is not read")


def _after_type(data: bytes, type_at: int, after: int = 0) -> int:
    """Where the IP header begins behind an ethertype at ``type_at``, what follows which begins at ``after``. LeftOut if none does."""
    kind, at = struct.unpack_from(">H", data, type_at)[0], after or type_at + 2
    while kind in VLANS:
        kind = struct.unpack_from(">H", data, at + 2)[0]
        at += 4
    if kind in MPLS:
        while not data[at + 2] & 1:
            at += 4
        at += 4
        if data[at] >> 4 not in (4, 6):
            raise LeftOut("of MPLS that carries no IP")
    elif kind == PPPOE:
        inner = struct.unpack_from(">H", data, at + 6)[0]
        at += 8
        if inner not in PPP:
            raise LeftOut(f"of PPP protocol 0x{inner:04x} in PPPoE")
    elif kind < 1536:
        raise LeftOut("of IEEE 802.3 with LLC")
    elif kind not in (IPV4, IPV6):
        raise LeftOut(f"of ethertype 0x{kind:04x}{_named(ETHERTYPES, kind)}")
    return at


def _ipv4(data: bytes, at: int, wire_bytes: int) -> _Part:
    first, length, id, fragment, protocol, source, destination = struct.unpack_from(">BxHHHxB2x4s4s", data, at)
    header = (first & 15) * 4
    # A card that cuts segments itself (TSO) or BIG TCP is handed more than 16 bits can say: 0, as tcpdump takes it.
    end = at + length if length else wire_bytes
    if header < 20 or end < at + header:
        raise LeftOut("whose IPv4 header is longer or shorter than there is room for")
    return _Part(
        at + header, end, protocol, (source, destination), (fragment & 0x1FFF) * 8, bool(fragment & 0x2000), id
    )


def _ipv6(data: bytes, at: int, wire_bytes: int) -> _Part:
    length, kind, source, destination = struct.unpack_from(">4xHBx16s16s", data, at)
    begin = at + 40
    end = begin + length if length else wire_bytes
    offset, more, id = 0, False, 0
    while True:
        if kind in EXTENSIONS:
            following, size = data[begin], data[begin + 1] * 8 + 8
            if kind == HOP_BY_HOP and not length and (jumbo := _jumbo(data[begin + 2 : begin + size])):
                end = at + 40 + jumbo
        elif kind == AUTHENTICATION:
            following, size = data[begin], data[begin + 1] * 4 + 8
        elif kind == FRAGMENT:
            following, offset, id = struct.unpack_from(">BxHI", data, begin)
            offset, more, size = offset & 0xFFF8, bool(offset & 1), 8
        else:
            break
        begin += size
        if begin > end:
            raise LeftOut("whose IPv6 headers are longer than there is room for")
        kind = following
        if offset:
            break
    return _Part(begin, end, kind, (source, destination), offset, more, id)


def _jumbo(options: bytes) -> int:
    """The length that a hop-by-hop header's jumbo option says, in bytes after the IPv6 header; 0 without one."""
    at = 0
    while at + 1 < len(options):
        if options[at] == 0:
            at += 1
            continue
        if options[at] == JUMBO:
            return int.from_bytes(options[at + 2 : at + 6], "big")
        at += 2 + options[at + 1]
    return 0
