"""Captures become flows: whatever the file, link and IP headers are, the same flows; what is left out is counted and named."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import socket
import struct
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.workload.chunks import MIN_BYTES, read_chunks, write_chunks
from bbrlab.workload.workload import workload_of
from bbrlab_apps.traffic.capture import from_capture

NS = 10**9
ETHERNET, RAW = 1, 101


@dataclass(frozen=True)
class Sent:
    """A TCP segment of a client (port ``port``) or, ``back``, of its server."""

    time_ns: int
    port: int
    payload: int
    number: int
    flags: int = 16
    back: bool = False


def tcp(sent: Sent) -> bytes:
    ports = (80, sent.port) if sent.back else (sent.port, 80)
    return struct.pack(">HHIIBBHHH", *ports, sent.number % 2**32, 0, 8 << 4, sent.flags, 1000, 0, 0) + b"\1" * 12


def ends(sent: Sent, family: int) -> bytes:
    names = ("10.0.0.1", "10.0.0.2") if family == socket.AF_INET else ("fd00::1", "fd00::2")
    packed = [socket.inet_pton(family, name) for name in names]
    return b"".join(reversed(packed) if sent.back else packed)


def ipv4(sent: Sent, options: bytes = b"", zero: bool = False) -> list[bytes]:
    segment = tcp(sent) + bytes(sent.payload)
    length = 0 if zero else 20 + len(options) + len(segment)
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, length, 0, 0, 64, 6, 0)
    return [head + ends(sent, socket.AF_INET) + options + segment]


def ipv4_fragments(sent: Sent) -> list[bytes]:
    """In pieces of 48 bytes, the first of which has the TCP header."""
    segment = tcp(sent) + bytes(sent.payload)
    out = []
    for at in range(0, len(segment), 48):
        piece, more = segment[at : at + 48], at + 48 < len(segment)
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(piece), sent.time_ns % 65536, at // 8 | more << 13, 64, 6, 0)
        out.append(head + ends(sent, socket.AF_INET) + piece)
    return out


def ipv6(sent: Sent, headers: tuple[tuple[int, bytes], ...] = (), length: int | None = None) -> list[bytes]:
    """With extension headers: (number, the header without its first byte)."""
    kinds = [number for number, _ in headers] + [6]
    extensions = b"".join(bytes([kinds[i + 1]]) + rest for i, (_, rest) in enumerate(headers))
    rest = extensions + tcp(sent) + bytes(sent.payload)
    head = struct.pack(">IHBB", 6 << 28, len(rest) if length is None else length, kinds[0], 64)
    return [head + ends(sent, socket.AF_INET6) + rest]


def ipv6_fragments(sent: Sent) -> list[bytes]:
    segment = tcp(sent) + bytes(sent.payload)
    out = []
    for at in range(0, len(segment), 48):
        more = at + 48 < len(segment)
        fragment = struct.pack(">BBHI", 6, 0, at | more, sent.time_ns % 2**32) + segment[at : at + 48]
        out.append(struct.pack(">IHBB", 6 << 28, len(fragment), 44, 64) + ends(sent, socket.AF_INET6) + fragment)
    return out


def jumbogram(sent: Sent) -> list[bytes]:
    jumbo = bytes([0, 0xC2, 4]) + struct.pack(">I", 8 + 32 + sent.payload)
    return ipv6(sent, ((0, jumbo),), 0)


HOP_BY_HOP, ROUTING, DESTINATION = (0, bytes(7)), (43, bytes([1]) + bytes(14)), (60, bytes([1, 1, 12]) + bytes(12))
ATOMIC_FRAGMENT, AUTHENTICATION = (44, bytes(7)), (51, bytes([4]) + bytes(22))
IPS = {
    "ipv4": ipv4,
    "ipv4 with options": lambda sent: ipv4(sent, b"\7\x0b\4" + bytes(9)),
    "ipv4 of length 0 (TSO)": lambda sent: ipv4(sent, zero=True),
    "ipv4 fragments": ipv4_fragments,
    "ipv6": ipv6,
    "ipv6 hop-by-hop": lambda sent: ipv6(sent, (HOP_BY_HOP,)),
    "ipv6 of many headers": lambda sent: ipv6(sent, (HOP_BY_HOP, DESTINATION, ROUTING, ATOMIC_FRAGMENT, AUTHENTICATION, DESTINATION)),
    "ipv6 of length 0 (BIG TCP)": lambda sent: ipv6(sent, length=0),
    "ipv6 fragments": ipv6_fragments,
    "ipv6 jumbogram": jumbogram,
}  # fmt: skip


def ethertype(packet: bytes) -> bytes:
    return b"\x08\0" if packet[0] >> 4 == 4 else b"\x86\xdd"


def ethernet(packet: bytes, tags: bytes = b"") -> bytes:
    return b"\2" * 12 + tags + ethertype(packet) + packet


def family(packet: bytes, order: str, of_ipv6: int) -> bytes:
    return struct.pack(f"{order}I", 2 if packet[0] >> 4 == 4 else of_ipv6) + packet


def pppoe(packet: bytes) -> bytes:
    inner = b"\0\x21" if packet[0] >> 4 == 4 else b"\0\x57"
    return b"\2" * 12 + b"\x88\x64\x11\0\0\1" + struct.pack(">H", len(packet) + 2) + inner + packet


LINKS = {
    "ethernet": (1, ethernet),
    "vlan": (1, lambda p: ethernet(p, b"\x81\0\0\5")),
    "qinq": (1, lambda p: ethernet(p, b"\x88\xa8\0\5\x81\0\0\7")),
    "mpls": (1, lambda p: b"\2" * 12 + b"\x88\x47\0\1\0\x40\0\2\1\x40" + p),
    "pppoe": (1, pppoe),
    "sll": (113, lambda p: b"\0\4\3\4\0\6" + bytes(8) + ethertype(p) + p),
    "sll2": (276, lambda p: ethertype(p) + bytes(18) + p),
    "sll2 with vlan": (276, lambda p: b"\x81\0" + bytes(18) + b"\0\5" + ethertype(p) + p),
    "null": (0, lambda p: family(p, "<", 30)),
    "null of another machine": (0, lambda p: family(p, ">", 24)),
    "loop": (108, lambda p: family(p, ">", 28)),
    **{f"raw {n}": (n, lambda p: p) for n in (12, 14, 101)},
}


@dataclass(frozen=True)
class Recorded:
    """A packet as a file has it."""

    time_ns: int
    link: int
    data: bytes


def pcap(packets: Iterable[Recorded], *, order: str = "<", magic: int = 0xA1B2C3D4, snap: int = 65536) -> bytes:
    packets = list(packets)
    unit_ns, more = {0xA1B2C3D4: (1000, 0), 0xA1B23C4D: (1, 0), 0xA1B2CD34: (1000, 8)}[magic]
    out = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap, packets[0].link if packets else ETHERNET)
    for p in packets:
        cut = p.data[:snap]
        sizes = (p.time_ns // NS, p.time_ns % NS // unit_ns, len(cut), len(p.data))
        out += struct.pack(f"{order}IIII", *sizes) + bytes(more) + cut
    return out


def block(kind: int, body: bytes, order: str) -> bytes:
    length = 12 + len(body) + -len(body) % 4
    return struct.pack(f"{order}II", kind, length) + body + bytes(-len(body) % 4) + struct.pack(f"{order}I", length)


def section(order: str) -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def option(code: int, value: bytes, order: str) -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(link: int, order: str, resolution: int | None = None, offset_s: int = 0, snap: int = 0) -> bytes:
    options = option(2, b"eth0", order)
    if resolution is not None:
        options += option(9, bytes([resolution]), order)
    if offset_s:
        options += option(14, struct.pack(f"{order}q", offset_s), order)
    return block(1, struct.pack(f"{order}HHI", link, 0, snap) + options + option(0, b"", order), order)


def enhanced(
    p: Recorded, which: int, order: str, ticks_per_s: int = 10**6, offset_s: int = 0, snap: int = 65536
) -> bytes:
    ticks = (p.time_ns - offset_s * NS) * ticks_per_s // NS
    cut = p.data[:snap]
    head = struct.pack(f"{order}IIIII", which, ticks >> 32, ticks & 0xFFFFFFFF, len(cut), len(p.data))
    return block(6, head + cut + bytes(-len(cut) % 4) + option(1, b"a comment", order), order)


def obsolete(p: Recorded, which: int, order: str) -> bytes:
    ticks = p.time_ns // 1000
    head = struct.pack(f"{order}HHIIII", which, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(p.data), len(p.data))
    return block(2, head + p.data, order)


def pcapng(packets: Iterable[Recorded], order: str = "<", of=enhanced, **cut: int) -> bytes:
    """A section of one interface; a block that nobody knows and statistics among the packets."""
    packets = list(packets)
    out = section(order) + interface(packets[0].link, order) + block(0x0BAD, b"abc", order)
    return out + b"".join(of(p, 0, order, **cut) for p in packets) + block(5, bytes(12), order)


def several_interfaces(packets: Iterable[Recorded], order: str = ">") -> bytes:
    """Each packet by another interface, of other resolution and offset, and of another link: a raw one."""
    out, raw = section(order), {1: 14, 113: 16, 276: 20, 0: 4, 108: 4}
    packets = list(packets)
    link = packets[0].link
    units = [(None, 10**6, 0), (9, 10**9, 0), (6, 10**6, -7), (0x80 | 30, 2**30, 0), (9, 10**9, 1_000_000)]
    for resolution, _, offset_s in units:
        out += interface(link, order, resolution, offset_s)
    out += interface(RAW, order)
    for i, p in enumerate(packets):
        if (
            i % 6 == 5
            and link in raw
            and p.data[raw[link]] >> 4 in (4, 6)
            and p.data[12:14] in (b"\x08\0", b"\x86\xdd")
        ):
            out += enhanced(Recorded(p.time_ns, RAW, p.data[raw[link] :]), 5, order)
        else:
            which = i % 5
            # 2**-30 s is finer than a nanosecond, which is no multiple of it: rounded up, so that the time comes back.
            _, ticks_per_s, offset_s = units[which]
            time_ns = p.time_ns + (ticks_per_s == 2**30)
            out += enhanced(Recorded(time_ns, p.link, p.data), which, order, ticks_per_s, offset_s)
    return out


def several_sections(packets: Iterable[Recorded]) -> bytes:
    """A section for every ten packets, in turn of either byte order; its interface 0 is another one in each."""
    packets, out = list(packets), b""
    for n, at in enumerate(range(0, len(packets), 10)):
        order = "<>"[n % 2]
        resolution, ticks = ((6, 10**6), (9, 10**9))[n // 2 % 2]
        out += section(order) + interface(packets[0].link, order, resolution)
        out += b"".join(enhanced(p, 0, order, ticks) for p in packets[at : at + 10])
    return out


FORMATS = {
    "pcap": pcap,
    "pcap, big-endian": lambda p: pcap(p, order=">"),
    "pcap, nanoseconds": lambda p: pcap(p, magic=0xA1B23C4D),
    "pcap, nanoseconds, big-endian": lambda p: pcap(p, order=">", magic=0xA1B23C4D),
    "pcap, modified": lambda p: pcap(p, magic=0xA1B2CD34),
    "pcap, headers only": lambda p: pcap(p, snap=200),
    "pcapng": pcapng,
    "pcapng, big-endian": lambda p: pcapng(p, ">"),
    "pcapng, headers only": lambda p: pcapng(p, snap=200),
    "pcapng, obsolete packets": lambda p: pcapng(p, of=obsolete),
    "pcapng, several interfaces": several_interfaces,
    "pcapng, several sections": several_sections,
    "pcap.gz": lambda p: gzip.compress(pcap(p), mtime=0),
    "pcapng.xz": lambda p: lzma.compress(pcapng(p)),
    "pcap.bz2": lambda p: bz2.compress(pcap(p)),
}


def stream(seed: int = 1) -> list[Sent]:
    """Flows of both directions with pauses, a retransmission, SYN and FIN, and ports that are used again."""
    rng, sent, begins = random.Random(seed), [], {}
    time_ns = 1_700_000_000 * NS
    for port in (1000, 1001, 1000):
        number = begins[port] = rng.randrange(2**32)
        sent.append(Sent(time_ns, port, 0, number, 2))
        number += 1
        for _ in range(12):
            time_ns += rng.choice((1000, 20_000_000, 137_123_000))
            payload = rng.choice((1, 700, 1448))
            sent.append(Sent(time_ns, port, payload, number))
            if rng.random() < 0.3:
                sent.append(Sent(time_ns + 1000, port, payload, number))
            number += payload
            time_ns += 5000
            sent.append(Sent(time_ns, port, rng.choice((0, 0, 60)), 7 + time_ns // 1000, back=True))
        sent.append(Sent(time_ns, port, 0, number, 17))
        time_ns += 3_000_000
    return sent


def recorded(sent: Iterable[Sent], ip: str, link: str) -> list[Recorded]:
    number, wrap = LINKS[link]
    return [Recorded(s.time_ns, number, wrap(packet)) for s in sent for packet in IPS[ip](s)]


def read(tmp_path: Path, content: bytes):
    file = tmp_path / "a.capture"
    file.write_bytes(content)
    return from_capture(file)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> pd.DataFrame:
    """What the stream is, from the simplest capture of it."""
    return read(tmp_path_factory.mktemp("simple"), pcap(recorded(stream(), "ipv4", "ethernet"))).chunks


def test_the_table_by_hand(table):
    """As the sender saw it: new bytes of each connection and direction, a pause of 0.1 s begins a chunk."""
    flows: dict[object, list[list[int]]] = {}
    connection, last, high = 0, {}, {}
    for s in stream():
        connection += s.flags == 2
        key = (s.port, s.back, 0 if s.back else connection)  # the servers send no SYN here
        if not s.payload:
            continue
        fresh = s.number + s.payload - high.get(key, s.number)
        if fresh > 0:
            if key not in flows or s.time_ns - last[key] >= NS // 10:
                flows.setdefault(key, []).append([s.time_ns - last.get(key, s.time_ns), 0])
            flows[key][-1][1] += fresh
            high[key] = s.number + s.payload
        last[key] = s.time_ns
    forward = [flow for key, flow in flows.items() if not key[1]]
    expected = sorted(
        (len(flow), sum(max(MIN_BYTES, size) for _, size in flow), max(pause for pause, _ in flow) / NS)
        for flow in forward
    )
    found = table.groupby("flow").agg(n=("chunk", "size"), size=("bytes", "sum"), pause=("pause_s", "max"))
    assert set(expected) <= set(found.itertuples(index=False, name=None))
    assert len(expected) == 3


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("link", ["ethernet", "sll2", "null"])
def test_every_format(tmp_path, table, name, link):
    found = read(tmp_path, FORMATS[name](recorded(stream(), "ipv4", link)))
    pd.testing.assert_frame_equal(found.chunks, table, check_exact=True)
    assert found.notes == []


@pytest.mark.parametrize("ip", IPS)
@pytest.mark.parametrize("link", LINKS)
def test_every_link_and_ip(tmp_path, table, ip, link):
    found = read(tmp_path, pcap(recorded(stream(), ip, link)))
    pd.testing.assert_frame_equal(found.chunks, table, check_exact=True)
    assert found.notes == []


@pytest.mark.parametrize(("number", "ip"), [(228, "ipv4"), (229, "ipv6")])
def test_raw_links_of_one_version(tmp_path, table, number, ip):
    packets = [Recorded(p.time_ns, number, p.data) for p in recorded(stream(), ip, "raw 101")]
    pd.testing.assert_frame_equal(read(tmp_path, pcap(packets)).chunks, table)


def ip_of(protocol: int, payload: bytes = bytes(40)) -> bytes:
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0) + bytes(8) + payload


@pytest.mark.parametrize(
    ("packet", "link", "words"),
    [
        (ethernet(ip_of(17)), 1, "3 packets of IP protocol 17 (UDP)"),
        (ethernet(ip_of(47)), 1, "3 packets of IP protocol 47 (GRE)"),
        (ethernet(ip_of(253)), 1, "3 packets of IP protocol 253"),
        (b"\2" * 12 + b"\x08\x06" + bytes(46), 1, "3 packets of ethertype 0x0806 (ARP)"),
        (b"\2" * 12 + b"\0\x2e" + bytes(46), 1, "3 packets of IEEE 802.3 with LLC"),
        (b"\2" * 12 + b"\x88\x47\0\1\1\x40" + bytes(46), 1, "3 packets of MPLS that carries no IP"),
        (b"\2" * 12 + b"\x88\x64\x11\0\0\1\0\x10\xc0\x21" + bytes(46), 1, "3 packets of PPP protocol 0xc021 in PPPoE"),
        (b"\x40" + bytes(40), 101, "3 packets whose IPv4 header is longer or shorter than there is room for"),
        (b"\x90" + bytes(40), 101, "3 packets of IP version 9"),
        (ethernet(ip_of(6, bytes(20))), 1, "3 packets whose TCP header is longer or shorter than there is room for"),
        (ethernet(ip_of(6, bytes(10))), 1, "3 packets shorter than their headers say"),
        (b"\0\0\0\7" + bytes(40), 0, "3 packets of address family 7 of the loopback interface"),
        (bytes(60), 127, "3 packets of link type 127 (IEEE 802.11 with radiotap), which is not read"),
        (bytes(60), 147, "3 packets of link type 147, which is not read"),
        (b"", 1, "3 packets shorter than their headers say"),
        (ipv4_fragments(Sent(0, 1, 500, 0))[1], 101, "3 packets which are fragments of IP packets whose first one is not before them, or has no TCP"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_named(tmp_path, table, packet, link, words):
    file = tmp_path / "a.capture"
    file.write_bytes(pcap([Recorded(NS, link, packet)] * 3))
    with pytest.raises(UserError) as error:
        from_capture(file)
    assert str(error.value) == f"{file}: has no TCP packet with data, so no flow can be made of it; left out: {words}"
    known, other = recorded(stream(), "ipv4", "ethernet"), Recorded(NS, link, packet)
    found = read(tmp_path, section("<") + interface(1, "<") + interface(link, "<") + b"".join(enhanced(p, 0, "<") for p in known)
                 + enhanced(other, 1, "<") * 3)  # fmt: skip
    pd.testing.assert_frame_equal(found.chunks, table)
    assert found.notes == [f"left out: {words}"]


def test_packets_that_are_cut_before_their_ports(tmp_path):
    packets = recorded(stream(), "ipv4", "ethernet")
    with pytest.raises(UserError, match=f"left out: {len(packets)} packets cut before the end of their TCP header"):
        read(tmp_path, pcap(packets, snap=40))


def test_packets_without_a_time_or_an_interface(tmp_path, table):
    packets = recorded(stream(), "ipv4", "ethernet")
    simple = block(3, struct.pack("<I", len(packets[1].data)) + packets[1].data, "<")
    found = read(tmp_path, pcapng(packets) + simple * 2 + enhanced(packets[1], 1, "<"))
    pd.testing.assert_frame_equal(found.chunks, table)
    assert found.notes == [
        "left out: 2 packets in simple packet blocks, which have no time",
        "left out: 1 packet of an interface that the file does not describe",
    ]
    with pytest.raises(UserError, match="left out: 1 packet in simple packet blocks, which have no time"):
        read(tmp_path, section("<") + interface(1, "<") + simple)


@pytest.mark.parametrize(
    "name", sorted(FORMATS.keys() - {"pcap.bz2"})
)  # bzip2 packs blocks of 900 kB, whole or not at all
@settings(max_examples=15, deadline=None)
@given(part=st.floats(0.3, 0.99))
def test_a_file_that_is_cut_says_so(tmp_path_factory, table, name, part):
    """What stands before the cut is read: no flow of it is another one than in the whole file."""
    whole = FORMATS[name](recorded(stream(), "ipv4", "ethernet"))
    found = read(tmp_path_factory.mktemp("cut"), whole[: int(len(whole) * part)])
    assert found.chunks["bytes"].sum() <= table["bytes"].sum()
    assert found.notes == [] or (len(found.notes) == 1 and "cut" in found.notes[0])
    first = found.chunks.iloc[0].to_dict()
    assert {k: first[k] for k in ("flow", "chunk", "start_s", "pause_s")} == {
        "flow": 0,
        "chunk": 0,
        "start_s": 0,
        "pause_s": 0,
    }


def test_a_cut_in_a_packet_is_told_with_its_number(tmp_path):
    packets = recorded(stream(), "ipv4", "ethernet")
    found = read(tmp_path, pcap(packets)[:-1])
    assert found.notes == [
        f"the file is cut: it ends in the middle of what follows packet {len(packets) - 1}; what stands before that was read"
    ]
    assert "a block" not in read(tmp_path, pcapng(packets)[:-40]).notes[0]


@pytest.mark.parametrize("at", [0x10, 0x14])
def test_a_damaged_record_ends_the_reading(tmp_path, at):
    """A length or a fraction of a second that cannot be: what follows would be read at wrong places."""
    packets = recorded(stream(), "ipv4", "ethernet")
    head, rest = pcap(packets), pcap(packets)[24:]
    damaged = bytearray(head + rest)
    damaged[len(head) + at - 12 : len(head) + at - 8] = b"\xff\xff\xff\xf0"
    assert "the file is damaged after packet" in read(tmp_path, bytes(damaged)).notes[0]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), name=st.sampled_from(list(FORMATS)))
def test_damaged_files_never_crash(tmp_path_factory, data, name):
    whole = bytearray(FORMATS[name](recorded(stream()[:8], data.draw(st.sampled_from(list(IPS))), "ethernet")))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(tmp_path_factory.getbasetemp(), bytes(whole))
    except UserError as error:
        assert "a.capture: " in str(error)


@settings(max_examples=100, deadline=None)
@given(
    packets=st.lists(st.tuples(st.sampled_from([0, 1, 12, 108, 113, 228, 276]), st.binary(max_size=120)), max_size=8)
)
def test_strange_packets_never_crash(tmp_path_factory, packets):
    content = section("<") + b"".join(
        interface(link, "<") + enhanced(Recorded(NS, link, data), i, "<") for i, (link, data) in enumerate(packets)
    )
    try:
        read(tmp_path_factory.getbasetemp(), content)
    except UserError as error:
        assert "no flow can be made of it" in str(error)


def capture(path: Path, packets: list[tuple]) -> Path:
    """A capture of headers: (time in s, source port, destination port, payload bytes), and for packets out of turn their place in
    the flow's bytes; "SYN" as that begins another connection."""
    out, first = [], {}
    for time_s, source, destination, payload, *place in packets:
        syn = place == ["SYN"]
        begin, after = (2**32 - 700, 0) if syn or (source, destination) not in first else first[source, destination]
        at = place[0] if place and not syn else after
        first[source, destination] = (begin, max(after, at + payload))
        ports = (source, destination, (begin - syn + at) % 2**32)
        segment = struct.pack(">HHIIBBHHH", *ports, 0, 5 << 4, 18 if syn else 16, 1000, 0, 0) + bytes(payload)
        out.append(Recorded(round(time_s * 1e6) * 1000, ETHERNET, ethernet(ip_of(6, segment))))
    path.write_bytes(pcap(out, snap=54))
    return path


def test_a_capture_becomes_flows(tmp_path):
    file = capture(tmp_path / "a.pcap", [
        (100.0, 1000, 80, 1000), (100.05, 1000, 80, 500),  # one chunk: a pause of 50 ms
        (100.02, 80, 1000, 200),                             # the other direction is another flow
        (100.15, 1000, 80, 0),                               # an acknowledgement carries nothing
        (100.30, 1000, 80, 700),                             # a pause of 250 ms: a new chunk
    ])  # fmt: skip
    chunks = from_capture(file).chunks
    assert chunks.to_dict("records") == [
        {"flow": 0, "chunk": 0, "start_s": 0.0, "pause_s": 0.0, "bytes": 1500},
        {"flow": 0, "chunk": 1, "start_s": 0.0, "pause_s": pytest.approx(0.25), "bytes": 700},
        {"flow": 1, "chunk": 0, "start_s": pytest.approx(0.02), "pause_s": 0.0, "bytes": 200},
    ]
    write_chunks(chunks, tmp_path / "a.csv")
    assert read_chunks(tmp_path / "a.csv").equals(chunks)
    assert len(workload_of("collapsed", str(tmp_path / "a.csv"), 1, 10, 1)) == 2


def test_a_retransmission_is_no_data_and_no_pause(tmp_path):
    file = capture(tmp_path / "a.pcap", [
        (1.00, 1000, 80, 1000), (1.01, 1000, 80, 500, 2000),  # 1000 bytes between them are lost before the capture
        (1.25, 1000, 80, 1000, 1000),                            # and come again after a timeout
        (1.26, 1000, 80, 500, 2000),                             # this is sent twice
        (1.30, 1000, 80, 100, 2500),                             # new data: the sender had not paused
        (1.50, 1000, 80, 100, 2600),                             # now it had
    ])  # fmt: skip
    chunks = from_capture(file).chunks
    assert list(chunks["bytes"]) == [2600, 100]
    assert list(chunks["pause_s"]) == pytest.approx([0, 0.2])


def test_ports_that_are_used_again_are_another_flow(tmp_path):
    file = capture(
        tmp_path / "a.pcap", [(1.0, 1, 2, 0, "SYN"), (1.1, 1, 2, 50), (5.0, 1, 2, 0, "SYN"), (5.1, 1, 2, 70)]
    )
    assert list(from_capture(file).chunks[["flow", "bytes"]].itertuples(index=False, name=None)) == [(0, 50), (1, 70)]


def test_a_long_capture_takes_memory_by_its_flows(tmp_path):
    """Ten times as many packets of the same flows: the same memory."""

    def peak(packets: int) -> int:
        times = 100 + np.arange(packets) * 1e-3
        file = capture(tmp_path / f"{packets}.pcap", [(t, 1000 + i % 5, 80, 100) for i, t in enumerate(times)])
        tracemalloc.start()
        assert from_capture(file).chunks["bytes"].sum() == 100 * packets
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)  # what is imported at first use
    assert peak(20_000) < peak(2000) + 100_000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not a capture at all, but long enough to look at", "is not a capture"),
        (None, "no TCP packet with data"),
    ],
)
def test_what_is_no_capture(tmp_path, content, words):
    file = tmp_path / "bad.pcap"
    if content is None:
        capture(file, [(1.0, 1, 2, 0)])
    else:
        file.write_bytes(content)
    with pytest.raises(UserError, match=words):
        from_capture(file)
    with pytest.raises(UserError, match="cannot be read"):
        from_capture(tmp_path / "missing.pcap")


def test_the_command_prints_what_was_left_out(tmp_path):
    file = tmp_path / "a.pcap"
    packets = recorded(stream(), "ipv4", "ethernet")
    file.write_bytes(pcap([*packets, Recorded(NS, ETHERNET, ethernet(ip_of(17)))])[:-1])
    done = CliRunner().invoke(app, ["traffic", str(file), "--out", str(tmp_path / "t.csv")])
    assert done.exit_code == 0
    assert (
        f"bbrlab: {file}: the file is cut: it ends in the middle of what follows packet {len(packets)}" in done.stderr
    )
    assert read_chunks(tmp_path / "t.csv")["bytes"].sum() > 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x28\xb5\x2f\xfd" + bytes(40), "is compressed with zstd: unpack it first"),
        (b"snoop\0\0\0" + bytes(40), "is of the format snoop: convert it first"),
        (gzip.compress(b"no capture", mtime=0), "is not a capture"),
        (gzip.compress(pcap([]), mtime=0)[:10], "its compressed data is cut or damaged"),
        (pcap([]), "has no packet, so no flow can be made of it"),
        (pcap([])[:20], "the file is cut"),
        (section("<"), "has no packet"),
        (b"\x0a\x0d\x0d\x0a" + bytes(30), "a section without its byte order"),
    ],
)
def test_what_holds_nothing_is_told(tmp_path, content, words):
    with pytest.raises(UserError, match=words):
        read(tmp_path, content)


def test_an_empty_file_and_a_folder(tmp_path):
    with pytest.raises(UserError, match="is empty"):
        read(tmp_path, b"")
    with pytest.raises(UserError, match="cannot be read"):
        from_capture(tmp_path)
