"""The decoder, on messages built byte by byte from the kernel's structures."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import numpy as np
import pytest

from bbrlab.experiment.plan import FlowPlan, Plan
from bbrlab.measure import bbr_record
from bbrlab.measure.netlink import HEAD, records
from bbrlab.measure.queues import queue_counters
from bbrlab.measure.sockets import TCP_INFO
from bbrlab.measure.traces import decode

HOSTS = [{"name": "h1", "ip": "10.0.16.2", "sends": True}, {"name": "r1", "ip": "10.0.32.2", "sends": False}]
LINKS = [{"direction": "forward", "device": "s1-s2"}]


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("<HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def socket_message(sport: int, dport: int, inode: int, bbr: tuple[int, ...] | None = None, **fields: int) -> bytes:
    info = bytearray(248)
    for name, value in fields.items():
        offset, kind = TCP_INFO[name]
        struct.pack_into({"u1": "B", "<u4": "<I", "<u8": "<Q"}[kind], info, offset, value)
    body = bytearray(72)
    struct.pack_into(">HH", body, 4, sport, dport)
    struct.pack_into("<I", body, 68, inode)
    payload = bytes(body) + attribute(2, bytes(info)) + (attribute(16, struct.pack("<5I", *bbr)) if bbr else b"")
    return struct.pack("<IHHII", 16 + len(payload), 20, 2, 1, 0) + payload


def qdisc_message(kind: bytes, sent: int, packets: int, backlog: int, drops: int, app: bytes = b"") -> bytes:
    stats = attribute(1, struct.pack("<QII", sent, packets, 0)) + attribute(
        3, struct.pack("<5I", backlog // 1514, backlog, drops, 0, 0)
    )
    stats += attribute(4, app) if app else b""
    payload = b"\0" * 20 + attribute(1, kind + b"\0") + attribute(7, stats)
    return struct.pack("<IHHII", 16 + len(payload), 36, 0, 1, 0) + payload


def record(time_ns: int, source: int, kind: int, data: bytes) -> bytes:
    return HEAD.pack(time_ns, source, kind, len(data)) + data


def plan(trace_acks: tuple[str, ...] = ()) -> Plan:
    transfers = [{"id": 0, "client": "h1", "port": 5201}, {"id": 1, "client": "h1", "port": 5202}]
    content = {"hosts": HOSTS, "bottlenecks": LINKS, "transfers": transfers, "trace_acks": list(trace_acks)}
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
     ((256, 256), "ProbeRTT")],
)  # fmt: skip
def test_states_of_bbr1_follow_from_its_gains(gains, state):
    block = np.frombuffer(struct.pack("<QIII", 10**6, 40_000, *gains), np.uint8).reshape(1, -1)
    assert bbr_record.STATES[int(bbr_record.columns(block)["bbr_state"][0])] == state


def lab_info(**fields: int) -> np.ndarray:
    info = np.zeros(1, bbr_record.LAB_INFO)
    info["magic"] = bbr_record.MAGIC
    info["bw_lo"], info["inflight_hi"], info["inflight_lo"] = 2**64 - 1, 2**32 - 1, 2**32 - 1
    for name, value in fields.items():
        info[name] = value
    return info


def test_record_of_the_lab_and_of_strangers():
    info = lab_info(state=5, bw=10**6, pacing_gain=320, cwnd_gain=576, inflight_hi=70, ecn_alpha=32768)
    columns = bbr_record.columns(info.view(np.uint8).reshape(1, -1))
    assert set(columns) == set(bbr_record.COLUMNS)
    assert (columns["bbr_cwnd_gain"][0], columns["bbr_inflight_hi"][0], columns["bbr_ecn_alpha"][0]) == (2.25, 70, 0.5)
    assert np.isinf([columns["bbr_bw_lo"][0], columns["bbr_inflight_lo"][0]]).all()
    info["magic"] = 0  # as long, but not ours: only what all kernels have
    assert "bbr_inflight_hi" not in bbr_record.columns(info.view(np.uint8).reshape(1, -1))
    assert bbr_record.columns(np.zeros((1, 19), np.uint8)) == {}


def test_acks_find_their_flows_and_gaps_are_counted(tmp_path):
    acks = np.zeros(4, bbr_record.ACK_RECORD)
    acks["number"] = [0, 1, 4, 5]  # two came too fast
    acks["time_ns"] = [10, 20, 30, 40]
    acks["source_address"] = 10 << 24 | 16 << 8 | 2
    acks["source_port"], acks["destination_port"] = [1002, 1000, 1002, 1004], 5201
    acks["cwnd"] = [4, 5, 6, 7]
    acks["info"] = lab_info(state=3)
    sockets = (
        socket_message(1000, 5201, 50, bytes_received=5)
        + socket_message(1002, 5201, 51)
        + socket_message(1004, 5201, 52)
    )
    path = tmp_path / "samples.raw"
    path.write_bytes(record(50, 0, 0, sockets) + record(50, 0, 3, acks.tobytes()))
    flows, _ = decode(path, plan(("bbr3",)))
    assert list(flows.acks["flow"]) == [0, 0, 1]  # the control connection's is left out
    assert list(flows.acks["time_ns"]) == [10, 30, 40]
    assert list(flows.acks["cwnd"]) == [4, 6, 7]
    assert set(flows.acks["bbr_state"]) == {3.0}
    assert flows.acks_missing == 2


def test_last_words_of_a_destroyed_socket(decoded):
    assert decoded.flows.final[2]["bytes_acked"] == 9999
    assert decoded.flows.final[2]["busy_us"] == 77


def test_queue_counters(decoded):
    columns = decoded.queue.columns
    assert list(columns["sent_bytes"]) == [1514, 3028, 4542]
    assert list(columns["drops"]) == [1, 2, 3]
    assert set(columns["bytes"]) == {3028}


@pytest.mark.parametrize(
    ("kind", "app", "marks"),
    [
        (b"red", struct.pack("<4I", 1, 2, 3, 4), 4),
        (b"codel", struct.pack("<9I", *range(9)), 8),
        (b"fq_codel", struct.pack("<10I", *range(10)), 7),
        (b"pie", struct.pack("<Q8I", 0, *range(8)), 7),
        (b"bfifo", b"", 0),
    ],
)
def test_ecn_marks_of_each_kind(kind, app, marks):
    message = qdisc_message(kind, 1, 1, 0, 0, app)
    assert queue_counters(message, 0, len(message))[5] == marks


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
