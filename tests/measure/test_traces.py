"""The decoder, on messages built from the kernel's structures where the compiler puts their fields (kernel_layout.py)."""

from __future__ import annotations

import re
import struct
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbrlab.base import paths
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.transfers import FlowPlan
from bbrlab.measure import ack_records, bbr_record
from bbrlab.measure.checks.guest import states_check
from bbrlab.measure.flow_counters import EDGE_TOLERANCE_S, FlowCounters
from bbrlab.measure.netlink import HEAD, records
from bbrlab.measure.queues import TWO_QUEUES, queue_counters, queue_of
from bbrlab.measure.sample_schema import ACKS, BBR_COLUMNS, TCP_INFO
from bbrlab.measure.sockets import Sockets
from bbrlab.measure.tables import acks_table
from bbrlab.measure.traces import decode
from tests.measure import kernel_layout

pytestmark = pytest.mark.skipif(kernel_layout.COMPILER is None, reason="there is no C compiler")

HOSTS = [{"name": "h1", "ip": "10.0.16.2", "sends": True}, {"name": "r1", "ip": "10.0.32.2", "sends": False}]
LINKS = [{"direction": "forward", "device": "s1-s2"}]


# tcp_info's names of the fields whose own are others in the table
KERNEL_NAMES = {
    "rto_us": "rto", "srtt_us": "rtt", "rttvar_us": "rttvar", "ssthresh": "snd_ssthresh", "cwnd": "snd_cwnd",
    "min_rtt_us": "min_rtt", "busy_us": "busy_time", "rwnd_limited_us": "rwnd_limited", "sndbuf_limited_us": "sndbuf_limited",
}  # fmt: skip
FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
NUMBERS = (
    "INET_DIAG_INFO", "INET_DIAG_BBRINFO", "INET_DIAG_DCTCPINFO", "TCA_KIND", "TCA_STATS2", "TCA_STATS_BASIC", "TCA_STATS_QUEUE", "TCA_STATS_APP",
    "TCA_STATS_PKT64", "TCA_CAKE_STATS_TIN_STATS", "TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS", "sizeof(struct nlmsghdr)",
    "sizeof(struct inet_diag_msg)", "sizeof(struct tcmsg)", "sizeof(struct tcp_info)",
)  # fmt: skip


def numbers() -> dict[str, int]:
    return kernel_layout.constants(NUMBERS)


def info_fields() -> dict[str, tuple[int, int]]:
    """{name in the table: (offset, size) in struct tcp_info}."""
    kernel = tuple(f"tcpi_{KERNEL_NAMES.get(name, name)}" for name in TCP_INFO)
    found = kernel_layout.fields("tcp_info", kernel[2:])  # the first two are bytes before the bit fields
    first = kernel_layout.fields("tcp_info", kernel[:2])
    return dict(zip(TCP_INFO, [*first.values(), *found.values()], strict=True))


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("<HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def structure(name: str, size: int, **values: int) -> bytes:
    """A structure of the kernel's with these fields, all else 0."""
    raw = bytearray(size)
    for field, (offset, width) in kernel_layout.fields(name, tuple(values)).items():
        struct.pack_into("<" + FORMATS[width], raw, offset, values[field])
    return bytes(raw)


def socket_message(sport: int, dport: int, inode: int, bbr: tuple[int, ...] | None = None, **given: int) -> bytes:
    known = numbers()
    info = bytearray(known["sizeof(struct tcp_info)"])
    for name, value in given.items():
        offset, width = info_fields()[name]
        struct.pack_into("<" + FORMATS[width], info, offset, value)
    body = bytearray(known["sizeof(struct inet_diag_msg)"])
    places = kernel_layout.fields("inet_diag_msg", ("id.idiag_sport", "id.idiag_dport", "idiag_inode"))
    struct.pack_into(">H", body, places["id.idiag_sport"][0], sport)
    struct.pack_into(">H", body, places["id.idiag_dport"][0], dport)
    struct.pack_into("<I", body, places["idiag_inode"][0], inode)
    payload = bytes(body) + attribute(known["INET_DIAG_INFO"], bytes(info))
    if bbr:
        names = ("bbr_bw_lo", "bbr_bw_hi", "bbr_min_rtt", "bbr_pacing_gain", "bbr_cwnd_gain")
        payload += attribute(
            known["INET_DIAG_BBRINFO"], structure("tcp_bbr_info", 20, **dict(zip(names, bbr, strict=True)))
        )
    return struct.pack("<IHHII", known["sizeof(struct nlmsghdr)"] + len(payload), 20, 2, 1, 0) + payload


def qdisc_message(kind: bytes, sent: int, packets: int, backlog: int, drops: int, app: bytes = b"") -> bytes:
    known = numbers()
    basic = structure("gnet_stats_basic", 16, bytes=sent, packets=packets)
    queue = structure("gnet_stats_queue", 20, qlen=backlog // 1514, backlog=backlog, drops=drops)
    stats = attribute(known["TCA_STATS_BASIC"], basic) + attribute(known["TCA_STATS_QUEUE"], queue)
    stats += attribute(known["TCA_STATS_APP"], app) if app else b""
    payload = bytes(known["sizeof(struct tcmsg)"]) + attribute(known["TCA_KIND"], kind + b"\0")
    payload += attribute(known["TCA_STATS2"], stats)
    return struct.pack("<IHHII", known["sizeof(struct nlmsghdr)"] + len(payload), 36, 0, 1, 0) + payload


def record(time_ns: int, source: int, kind: int, data: bytes) -> bytes:
    return HEAD.pack(time_ns, source, kind, len(data)) + data


def plan(*, trace_acks: bool = False) -> Plan:
    transfers = [{"id": 0, "client": "h1", "port": 5201}, {"id": 1, "client": "h1", "port": 5202}]
    content = {"hosts": HOSTS, "bottlenecks": LINKS, "transfers": transfers, "trace_acks": trace_acks}
    return Plan(content, [FlowPlan(0, 0, 0, 0, 40.0), FlowPlan(1, 0, 0, 1, 40.0), FlowPlan(2, 1, 1, 0, 40.0)], [])


@pytest.fixture
def decoded(tmp_path):
    def sockets(acked: int) -> bytes:
        return (
            socket_message(1000, 5201, 50, bytes_acked=400, bytes_received=5)  # control connection of transfer 0
            + socket_message(1004, 5201, 52, bytes_acked=2 * acked, cwnd=20)  # its second stream
            + socket_message(1002, 5201, 51, bbr=(7, 0, 40_000, 320, 512), bytes_acked=acked, srtt_us=41_000, cwnd=10)
            + socket_message(2000, 5202, 60, bytes_acked=400, bytes_received=9)
            + socket_message(2002, 5202, 61, bytes_acked=3 * acked)
            + socket_message(9, 22, 99, bytes_acked=1)  # somebody else's
        )

    data = b""
    for k in range(1, 4):
        data += record(k * 10**8, 0, 0, sockets(1000 * k)) + record(
            k * 10**8, 0, 2, qdisc_message(b"bfifo", 1514 * k, k, 3028, k)
        )
    data += record(4 * 10**8, 0, 1, socket_message(2002, 5202, 0, bytes_acked=9999, busy_us=77))
    path = tmp_path / "samples.raw"
    path.write_bytes(data)
    flows, queues = decode(path, plan())
    return SimpleNamespace(flows=flows, queue=queues["forward"], path=path)


def test_streams_are_told_apart_by_order_of_creation(decoded):
    columns = decoded.flows.columns
    assert list(columns["flow"]) == [0, 1, 2] * 3
    assert list(columns["time_s"]) == pytest.approx([0.1] * 3 + [0.2] * 3 + [0.3] * 3)
    assert list(columns["bytes_acked"]) == [1000, 2000, 3000, 2000, 4000, 6000, 3000, 6000, 9000]
    assert list(columns["cwnd"])[:3] == [10, 20, 0]


def test_bbr_internals(decoded):
    columns = decoded.flows.columns
    bbr = columns["flow"] == 0
    assert set(columns["bbr_pacing_gain"][bbr]) == {320 / 256}
    assert set(columns["bbr_bw"][bbr]) == {7.0}
    assert {bbr_record.STATES[int(s)] for s in columns["bbr_state"][bbr]} == {"UP"}
    assert np.isnan(columns["bbr_pacing_gain"][~bbr]).all()


@pytest.mark.parametrize(
    ("gains", "state"),
    [((739, 739), "Startup"), ((88, 739), "Drain"), ((320, 512), "UP"), ((192, 512), "DOWN"), ((256, 512), "CRUISE"),
     ((256, 256), "ProbeRTT"), ((0, 0), None)],
)  # fmt: skip
def test_states_of_bbr1_follow_from_its_gains(gains, state):
    """Before its first ACK it has none: no state, where it was once called Drain."""
    block = np.frombuffer(struct.pack("<QIII", 10**6, 40_000, *gains), np.uint8).reshape(1, -1)
    found = bbr_record.columns(block)["bbr_state"][0]
    assert (None if np.isnan(found) else bbr_record.STATES[int(found)]) == state


def lab_info(**fields: int) -> np.ndarray:
    info = np.zeros(1, bbr_record.MODEL_INFO)
    info["version"] = 3
    info["bw_lo"], info["inflight_hi"], info["inflight_lo"] = 2**64 - 1, 2**32 - 1, 2**32 - 1
    for name, value in fields.items():
        info[name] = value
    return info


def test_record_of_the_lab_and_of_strangers():
    info = lab_info(state=5, bw=10**6, pacing_gain=320, cwnd_gain=576, inflight_hi=70, ecn_alpha=32768)
    columns = bbr_record.columns(info.view(np.uint8).reshape(1, -1))
    assert set(columns) == set(BBR_COLUMNS)
    assert (columns["bbr_cwnd_gain"][0], columns["bbr_inflight_hi"][0], columns["bbr_ecn_alpha"][0]) == (2.25, 70, 0.5)
    assert np.isinf([columns["bbr_bw_lo"][0], columns["bbr_inflight_lo"][0]]).all()
    info["version"] = 0  # as long, but not ours: only what all kernels have
    assert sorted(bbr_record.columns(info.view(np.uint8).reshape(1, -1))) == COMMON
    assert bbr_record.columns(np.zeros((1, 19), np.uint8)) == {}


COMMON = ["bbr_bw", "bbr_cwnd_gain", "bbr_min_rtt_us", "bbr_pacing_gain"]


def released_info(version: int = 3, **fields: int) -> np.ndarray:
    """A record as Google's released modules send it: 52 bytes."""
    info = np.zeros(1, bbr_record.RELEASED_INFO)
    info["bw"], info["min_rtt_us"], info["pacing_gain"], info["cwnd_gain"], info["version"] = (
        10**6,
        40_000,
        256,
        512,
        version,
    )
    info["bw_hi"], info["bw_lo"], info["inflight_hi"], info["inflight_lo"] = 2 * 10**6, 2**32 - 1, 2**32 - 1, 70
    for name, value in fields.items():
        info[name] = value
    return info.view(np.uint8).reshape(1, -1)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("fields", "state"),
    [({"mode": 0, "phase": 1, "pacing_gain": 709, "cwnd_gain": 512}, "Startup"), ({"mode": 1, "phase": 2, "pacing_gain": 88}, "Drain"),
     ({"mode": 2, "phase": 4, "pacing_gain": 320, "cwnd_gain": 576}, "UP"), ({"mode": 2, "phase": 5, "pacing_gain": 232}, "DOWN"),
     ({"mode": 2, "phase": 6}, "CRUISE"), ({"mode": 2, "phase": 7}, "REFILL"), ({"mode": 3, "phase": 3, "cwnd_gain": 256}, "ProbeRTT"),
     ({"mode": 0, "phase": 1, "pacing_gain": 0, "cwnd_gain": 0, "bw": 1}, None), ({"mode": 2, "phase": 3}, None), ({"mode": 9}, None)],
)  # fmt: skip
def test_a_record_of_52_bytes_says_its_state_itself(version, fields, state):
    """By BBRv1's rules UP was Startup and Startup UP; before the first ACK, and where mode and phase say nothing, it is not known."""
    block = released_info(version, **fields)
    assert block.shape[1] == 52
    found = bbr_record.columns(block)
    assert (None if np.isnan(found["bbr_state"][0]) else bbr_record.STATES[int(found["bbr_state"][0])]) == state
    assert (found["bbr_max_bw"][0], found["bbr_inflight_lo"][0]) == (2e6, 70)
    assert np.isinf([found["bbr_bw_lo"][0], found["bbr_inflight_hi"][0]]).all()


@pytest.mark.parametrize(
    "block",
    [released_info(version=7, mode=2, phase=4), np.zeros((3, 24), np.uint8), np.full((3, 40), 2, np.uint8), np.full((2, 200), 3, np.uint8)],
)  # fmt: skip
def test_of_a_record_that_nobody_knows_the_state_is_not_known(block):
    found = bbr_record.columns(block)
    assert sorted(found) == COMMON
    assert {len(values) for values in found.values()} == {len(block)}


def test_a_run_says_that_states_are_not_known(tmp_path):
    """A record of a length that nobody knows: a check that could not be made, once for the run."""
    messages = [
        socket_message(1000, 5201, 50, bytes_received=5),
        socket_message(1002, 5201, 51, bbr=(7, 0, 40_000, 320, 512), bytes_acked=9),
    ]
    path = tmp_path / "samples.raw"
    path.write_bytes(
        b"".join(
            record(k * 10**8, 0, 0, b"".join(messages)) + record(k * 10**8, 0, 2, qdisc_message(b"bfifo", 0, 0, 0, 0))
            for k in (1, 2)
        )
    )
    flows, _ = decode(path, plan())
    assert flows.record_bytes == {0: [20]} and states_check(flows) is None
    flows.columns["bbr_state"][:] = np.nan
    found = states_check(flows)
    assert (found.name, found.ok) == ("bbr_states", None)
    assert "the kernel's records of flow 0 have 20 bytes, from which no states can be read" in found.detail


def test_a_newer_algorithm_in_bbr1s_record_has_no_states():
    """BBRv3's gains mean other states than BBRv1's: its UP would be Startup."""
    table = {
        "flow": np.array([0, 1, 2]),
        "bbr_state": np.array([0.0, 0.0, 5.0]),
        "bbr_max_bw": np.array([np.nan, np.nan, 1e6]),
    }
    bbr_record.forget_states(table, [1, 2])
    assert np.isnan(table["bbr_state"]).tolist() == [False, True, False]


def ack_table(tmp_path: Path, count: int, **fields: object) -> SimpleNamespace:
    """What is read of records of ACKs of flow 0 (and others by ``source_port``) that have these fields."""
    acks = np.zeros(count, ack_records.RECORD)
    acks["number"] = acks["time_ns"] = np.arange(count)
    acks["source_address"] = [*bytes(10), 255, 255, 10, 0, 16, 2]
    acks["source_port"], acks["destination_port"] = 1002, 5201
    for name, values in fields.items():
        acks[name] = values
    sockets = b"".join(socket_message(port, 5201, inode, bytes_received=5 * (inode == 50)) for port, inode in ((1000, 50), (1002, 51), (1004, 52)))  # fmt: skip
    path = tmp_path / "samples.raw"
    # In two parts: what is read at one sample ends anywhere in a record's neighbour.
    half = acks[: count // 2].tobytes()
    path.write_bytes(record(50, 0, 0, sockets) + record(50, 0, 3, half) + record(60, 0, 3, acks.tobytes()[len(half) :]))
    flows, _ = decode(path, plan(trace_acks=True))
    return flows


def filled(*infos: bytes) -> np.ndarray:
    """What algorithms say of themselves, in the place that a record has for it."""
    return np.array([list(info.ljust(ack_records.INFO_BYTES, b"\0")) for info in infos], np.uint8)


def test_acks_find_their_flows_and_gaps_are_counted(tmp_path):
    flows = ack_table(
        tmp_path,
        4,
        number=[0, 1, 4, 5],
        time_ns=[10, 20, 30, 40],
        source_port=[1002, 1000, 1002, 1004],
        cwnd=[4, 5, 6, 7],
    )  # two came too fast
    assert list(flows.acks["flow"]) == [0, 0, 1]  # the control connection's is left out
    assert list(flows.acks["time_ns"]) == [10, 30, 40]
    assert list(flows.acks["cwnd"]) == [4, 6, 7]
    assert flows.acks_missing == 2
    assert acks_table(flows, 0).column_names == list(ACKS)


def test_acks_of_another_host_or_family_are_not_a_flows(tmp_path):
    addresses = np.array(
        [[*bytes(10), 255, 255, 10, 0, 16, 2], [*bytes(10), 255, 255, 10, 0, 16, 3], [*bytes(12), 10, 0, 16, 2]]
    )
    flows = ack_table(tmp_path, 3, source_address=addresses, cwnd=[4, 5, 6])
    assert list(flows.acks["cwnd"]) == [4]


def test_a_run_without_an_ack_has_all_columns(tmp_path):
    flows = ack_table(tmp_path, 0)
    assert acks_table(flows, 0).column_names == list(ACKS)
    assert acks_table(flows, 0).num_rows == flows.acks_missing == 0


def test_flags_and_rates_of_acks(tmp_path):
    """Each flag is a column; a timeout has no sample, and so no rate."""
    none = -1
    flows = ack_table(
        tmp_path, 6, event=[0, 0, 0, 0, 0, 1], flags=[1, 2, 4, 8, 16, 0], snd_mss=1000, rtt_us=[5, 5, 5, 5, 5, none],
        rate_delivered=[4, none, 4, 4, 4, none], rate_interval_us=[2000, none, 0, 1000, 4000, none],
    )  # fmt: skip
    acks = flows.acks
    for i, name in enumerate(ack_records.FLAGS):
        assert list(np.flatnonzero(acks[name])) == [i]
    assert acks["delivery_rate"].tolist() == pytest.approx([2e6, np.nan, np.nan, 4e6, 1e6, np.nan], nan_ok=True)
    assert list(acks["event"]) == [0, 0, 0, 0, 0, 1]
    assert list(acks["rtt_us"]) == [5, 5, 5, 5, 5, -1]


def test_what_each_algorithm_says_of_itself_is_in_its_rows_only(tmp_path):
    known = numbers()
    lab = lab_info(state=3).tobytes()
    bbr1 = structure("tcp_bbr_info", 20, bbr_bw_lo=7, bbr_pacing_gain=320, bbr_cwnd_gain=512)
    dctcp = structure("tcp_dctcp_info", 16, dctcp_enabled=1, dctcp_alpha=512)
    kinds = [known["INET_DIAG_BBRINFO"], 0, known["INET_DIAG_BBRINFO"], known["INET_DIAG_DCTCPINFO"], 5]
    infos = (lab, b"", bbr1, dctcp, b"\1" * 16)  # the last: somebody's own, which nobody can read
    flows = ack_table(tmp_path, 5, info_kind=kinds, info_bytes=[len(i) for i in infos], info=filled(*infos))
    nan = np.nan
    for name, wanted in {
        "bbr_state": [3, nan, bbr_record.STATES.index("UP"), nan, nan],
        "bbr_pacing_gain": [0, nan, 1.25, nan, nan],
        "dctcp_alpha": [nan, nan, nan, 0.5, nan],
    }.items():
        assert flows.acks[name].tolist() == pytest.approx(wanted, nan_ok=True), name
    assert np.isnan(flows.acks["bbr_max_bw"][1:]).all() and not np.isnan(flows.acks["bbr_max_bw"][0])


def test_last_words_of_a_destroyed_socket(decoded):
    assert decoded.flows.final[2]["bytes_acked"] == 9999
    assert decoded.flows.final[2]["busy_us"] == 77


def test_queue_counters(decoded):
    columns = decoded.queue.columns
    assert list(columns["sent_bytes"]) == [1514, 3028, 4542]
    assert list(columns["drops"]) == [1, 2, 3]
    assert set(columns["bytes"]) == {3028}


FQ_CODEL = "qdisc_stats."  # the union's part for the qdisc as a whole


def marked(kind: str, **counts: int) -> bytes:
    """The qdisc's own statistics with marks where the kernel has them."""
    if kind == "cake":
        per_tin = [attribute(i, attribute(numbers()["TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS"], struct.pack("<I", n)))
                   for i, n in enumerate(counts.values(), 1)]  # fmt: skip
        return attribute(numbers()["TCA_CAKE_STATS_TIN_STATS"], b"".join(per_tin))
    return structure("tc_fq_qd_stats" if kind == "fq" else f"tc_{kind}_xstats", 128, **counts)


@pytest.mark.parametrize(
    ("kind", "counts", "marks"),
    [
        ("red", {"early": 1, "pdrop": 2, "other": 3, "marked": 4}, 4),
        ("codel", {"count": 9, "ecn_mark": 6, "drop_overlimit": 9, "ce_mark": 8}, 8),
        ("codel", {"ecn_mark": 6}, 6),
        ("fq_codel", {FQ_CODEL + "ecn_mark": 3, FQ_CODEL + "new_flow_count": 9, FQ_CODEL + "ce_mark": 7}, 7),
        ("pie", {"prob": 9, "dropped": 9, "maxq": 9, "ecn_mark": 7}, 7),
        ("fq", {"gc_flows": 9, "flows": 9, "unthrottle_latency_ns": 9, "ce_mark": 5}, 5),
        ("cake", {"first": 2, "second": 3}, 5),
        ("bfifo", None, 0),
    ],
)
def test_ecn_marks_of_each_kind(kind, counts, marks):
    message = qdisc_message(kind.encode(), 1, 1, 0, 0, marked(kind, **counts) if counts else b"")
    assert queue_counters(message, 0, len(message))[5] == marks


def test_both_queues_of_dualpi2():
    """Of no other qdisc there are such columns, so that their runs have what they had."""
    # tc_dualpi2_xstats, which Debian 12's headers do not have: prob, delay_c, delay_l, packets_in_c, packets_in_l, maxq, ecn_mark
    own = struct.pack("<12I", 2**31, 15_000, 900, 7, 9, 1, 3, 0, 0, 0, 0, 0)
    message = qdisc_message(b"dualpi2", 1, 1, 0, 0, own)
    queue = queue_of(message, [(0, 0, len(message))])
    assert {name: int(queue.columns[name][0]) for name in TWO_QUEUES} == {
        "probability": 2**31, "classic_us": 15_000, "l4s_us": 900, "classic_packets": 7, "l4s_packets": 9,
    }  # fmt: skip
    assert queue.columns["marks"][0] == 3
    message = qdisc_message(b"codel", 1, 1, 0, 0, marked("codel", ecn_mark=1))
    assert not {*TWO_QUEUES} & queue_of(message, [(0, 0, len(message))]).columns.keys()


def test_a_packet_count_of_64_bits_goes_before_the_one_of_32(decoded):
    known = numbers()
    stats = attribute(known["TCA_STATS_BASIC"], structure("gnet_stats_basic", 16, bytes=2**40, packets=7))
    stats += attribute(known["TCA_STATS_PKT64"], struct.pack("<Q", 2**33 + 7))
    stats += attribute(known["TCA_STATS_QUEUE"], structure("gnet_stats_queue", 20))
    payload = bytes(20) + attribute(known["TCA_KIND"], b"bfifo\0") + attribute(known["TCA_STATS2"], stats)
    message = struct.pack("<IHHII", 16 + len(payload), 36, 0, 1, 0) + payload
    assert queue_counters(message, 0, len(message))[2:4] == (2**40, 2**33 + 7)


def lines_of(path: str, begin: str) -> str:
    """A C structure's declaration as a source file or a patch has it."""
    text = re.sub(r"(?m)^\+", "", (paths.ROOT / path).read_text(encoding="utf-8"))
    return begin + text.split(begin, 1)[1].split("};", 1)[0] + "};"


def test_records_of_the_lab_are_where_its_kernels_have_them():
    (patch,) = (paths.KERNELS / "patches" / "bbr").glob("0007-*.patch")
    info = lines_of(f"kernels/patches/bbr/{patch.name}", "struct tcp_bbr_model_info {")
    ack = "\n#include <linux/in6.h>\n" + lines_of("kernels/acks/tcp_ack_records.c", "struct tcp_ack_record {")
    for struct_name, dtype, others in (
        ("tcp_bbr_model_info", bbr_record.MODEL_INFO, {
            "bw": "bbr.bbr_bw_lo", "min_rtt_us": "bbr.bbr_min_rtt", "pacing_gain": "bbr.bbr_pacing_gain",
            "cwnd_gain": "bbr.bbr_cwnd_gain", "max_bw": "max_bw_low", "bw_lo": "bw_lo_low"}),
        ("tcp_ack_record", ack_records.RECORD, {
            "pacing_rate": "pacing_rate_bytes", "sacked": "sacked_out", "retrans": "retrans_out", "snd_mss": "snd_mss_bytes",
            "snd_wnd": "snd_wnd_bytes"}),
    ):  # fmt: skip
        names = {n: others.get(n, n) for n in dtype.names}
        found = kernel_layout.fields(struct_name, tuple(names.values()), info + ack)
        ours = {n: dtype.fields[n][1] for n in names}
        assert ours == {n: found[c][0] for n, c in names.items()}
        (size,) = kernel_layout.constants((f"sizeof(struct {struct_name})",), info + ack).values()
        assert dtype.itemsize == size


FIELD_VALUES = st.fixed_dictionaries(
    {name: st.integers(0, 2 ** (8 * np.dtype(kind).itemsize) - 1) for name, (_, kind) in TCP_INFO.items()}
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(FIELD_VALUES, min_size=3, max_size=3), min_size=1, max_size=4), st.randoms())
def test_what_the_kernel_says_is_what_the_table_has(samples, random):
    """Any value of any field, in any order of the sockets, also if replies are of unlike length."""
    ports = ((1002, 5201, 51), (1004, 5201, 52), (2002, 5202, 61))
    data = b""
    for k, values in enumerate(samples):
        controls = [
            socket_message(1000, 5201, 50, bytes_received=2**64 - 1),
            socket_message(2000, 5202, 60, bytes_received=2**64 - 1),
        ]
        bbr = (1, 2, 3, 256, 512) if random.random() < 0.5 else None
        flows = [socket_message(*port, bbr, **v) for port, v in zip(ports, values, strict=True)]
        reply = [*controls, *flows]
        random.shuffle(reply)
        data += record(k * 10**8, 0, 0, b"".join(reply)) + record(k * 10**8, 0, 2, qdisc_message(b"bfifo", k, k, k, k))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "samples.raw"
        path.write_bytes(data)
        found, queues = decode(path, plan())
    assert list(found.columns["flow"]) == [0, 1, 2] * len(samples)
    for field in TCP_INFO:
        assert found.columns[field].tolist() == [v[field] for values in samples for v in values]
    assert queues["forward"].columns["sent_packets"].tolist() == list(range(len(samples)))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9000), st.integers(0, 10**9)), max_size=8, unique_by=lambda s: s[0]),
    st.integers(9001, 9999) | st.none(),
    st.floats(-1, 11),
)
def test_a_counter_is_its_latest_sample(samples, ended_ms, at_s):
    samples = sorted(samples)
    final = None if ended_ms is None else {"time_ns": ended_ms * 10**6, "delivered": 777}
    counters = FlowCounters(
        np.array([t / 1e3 for t, _ in samples]), {"delivered": np.array([v for _, v in samples], int)}, final
    )
    latest = [v for t, v in samples if t / 1e3 <= at_s + EDGE_TOLERANCE_S]
    expected = latest[-1] if latest else 0
    if ended_ms is not None and ended_ms / 1e3 <= at_s + EDGE_TOLERANCE_S:
        expected = 777
    assert counters.at(at_s, "delivered") == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.randoms(), st.booleans())
def test_sockets_find_their_flows(streams, random, answered):
    """Of each transfer the first socket is the control connection, the others its streams in order, whatever the ports."""
    hosts = [{"name": f"h{i}"} for i in range(len(streams))]
    transfers = [{"id": i, "client": f"h{i}", "port": 5201 + i} for i in range(len(streams))]
    flows = [(t, k) for t, count in enumerate(streams) for k in range(count)]
    the_plan = Plan(
        {"hosts": hosts, "transfers": transfers}, [FlowPlan(i, 0, t, k, 40.0) for i, (t, k) in enumerate(flows)], []
    )
    seen, expected = {}, {}
    for t, count in enumerate(streams):
        ports = random.sample(range(30_000, 60_000), count + 1)
        inodes = sorted(random.sample(range(1, 10_000), count + 1))
        for k in range(count + 1):
            key = (t, ports[k], 5201 + t)
            seen[key] = (inodes[k], 300 if k == 0 and answered else 0)
            if k:
                expected[key] = flows.index((t, k - 1))
        seen[t, 9, 22] = (5, 9)  # somebody else's
        seen[(t + 1) % (len(streams) + 1), 10, 5201 + t] = (6, 9)  # to the same port, but from another host
    order = list(seen)
    random.shuffle(order)
    assert (
        Sockets(the_plan, [h["name"] for h in hosts] + ["other"]).assign({key: seen[key] for key in order}) == expected
    )


def test_a_file_that_is_cut_off_is_refused(decoded):
    """Anywhere: within a record, and within the head of one; a whole number of records is no cut."""
    data = decoded.path.read_bytes()
    last = len(data) - max(offset for _, _, _, offset, _ in records(data)) + HEAD.size
    for missing in [*range(1, last), last + 1]:
        decoded.path.write_bytes(data[:-missing])
        with pytest.raises(ValueError, match="cut off"):
            decode(decoded.path, plan())
    decoded.path.write_bytes(data[:-last])
    decode(decoded.path, plan())


def test_a_bottleneck_without_a_sample_has_an_empty_table(tmp_path):
    (tmp_path / "samples.raw").write_bytes(b"")
    flows, queues = decode(tmp_path / "samples.raw", plan())
    assert len(flows.columns["time_s"]) == len(queues["forward"].columns["drops"]) == 0
