"""Packets of a run: the files that Wireshark opens, what is in them, and that keeping them changes nothing."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.experiment.plan import make_plan
from bbrlab.measure.packets import DATA_AT, HEADER, OUTGOING, Tap, write_capture
from bbrlab.run.capture import RINGS_MOST_BYTES, Capture, add_capture, rings_bytes, write_captures
from bbrlab.run.output import BOTTLENECK, CAPTURES, RECEIVERS, SENDERS, prepare_out
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab_apps.traffic.capture import from_capture
from bbrlab_apps.traffic.records import Records
from bbrlab_apps.traffic.segments import Segments
from tests.conftest import scenario_dict

FRAME_BYTES = 256
ALL = Capture(("bottleneck", "hosts"))
# A short queue that drops, and loss behind it; paced and unpaced flows; samples seldom, so that a ring turns around.
PATH = {
    "flows": [{"cca": "bbr3"}, {"cca": "cubic"}],
    "network__rate_mbit": 20,
    "network__buffer__bdp": 0.5,
    "network__loss": 0.003,
    "duration_s": 10,
    "window_s": [2, 10],
    "sample_hz": 2,
}


# --- the file ------------------------------------------------------------------------------------------------------------


def frames_of(packets):
    """What a guest writes of packets (time in ns, bytes, size on the wire, kind)."""
    found = np.zeros((len(packets), FRAME_BYTES), "u1")
    for row, (time_ns, data, wire, kind) in zip(found, packets, strict=True):
        head = np.zeros(1, HEADER)
        head["time_s"], head["time_ns"] = divmod(time_ns, 10**9)
        head["captured_bytes"], head["wire_bytes"], head["kind"], head["at"] = len(data), wire, kind, DATA_AT
        row[: HEADER.itemsize] = head.view("u1")
        row[DATA_AT : DATA_AT + len(data)] = list(data)
    return found


def written(tmp_path, *interfaces, snaplen=128, zero_ns=0):
    """The capture file of interfaces with these packets."""
    taps = []
    for number, packets in enumerate(interfaces):
        path = tmp_path / f"capture-{number}.raw"
        path.write_bytes(frames_of(packets).tobytes())
        taps.append(Tap(f"h{number}-eth0", path, len(packets) + number, number))
    with open(tmp_path / "x.pcapng", "wb") as file:
        write_capture(file, taps, FRAME_BYTES, snaplen, zero_ns, 10**10)
    return tmp_path / "x.pcapng"


def test_packets_of_all_interfaces_stand_in_the_order_of_time(tmp_path):
    """Of any length, so that each way of filling up is there; those before the start and after the end are left out."""
    zero = 5 * 10**9
    first = [(zero - 1, b"early", 5, 0), *((zero + i * 10, bytes([i] * (60 + i)), 60 + i, OUTGOING) for i in range(9))]
    second = [(zero + 35, b"between" * 10, 1514, 0), (zero + 10**10 + 1, b"late", 4, 0)]
    path = written(tmp_path, first, second, zero_ns=zero)
    records = Records(path)
    found = list(records)
    assert records.end == ""
    assert not records.left_out
    assert [p.time_ns for p in found] == [0, 10, 20, 30, 35, 40, 50, 60, 70, 80]
    assert found[4].data == b"between" * 10
    assert found[4].wire_bytes == 1514
    assert [p.data for p in found[:2]] == [bytes([0] * 60), bytes([1] * 61)]
    assert {p.link for p in found} == {1}


def test_a_packet_is_cut_at_the_snaplen(tmp_path):
    found = list(Records(written(tmp_path, [(0, bytes(range(100)), 1514, 0)], snaplen=60)))
    assert found[0].data == bytes(range(60))
    assert found[0].wire_bytes == 1514


def test_a_file_says_how_many_packets_are_missing(tmp_path):
    """In the statistics of each interface, as Wireshark's file properties show them."""
    data = written(tmp_path, [], [(0, b"x" * 60, 60, 0)]).read_bytes()
    assert data.endswith(struct.pack("<HHQHHQII", 4, 8, 2, 5, 8, 1, 0, 52))


def test_a_guests_file_that_is_cut_is_an_error(tmp_path):
    path = tmp_path / "capture-0.raw"
    path.write_bytes(bytes(FRAME_BYTES + 1))
    with open(tmp_path / "x", "wb") as file, pytest.raises(ValueError, match=r"capture-0\.raw: 257 bytes"):
        write_capture(file, [Tap("h", path, 1, 0)], FRAME_BYTES, 60, 0, 1)


# --- what is asked for ---------------------------------------------------------------------------------------------------


def planned(capture, **changes):
    point = base_point(validate(scenario_dict(**changes), "test"))
    plan = make_plan(point, 1, {"cubic": "cubic", "bbr3": "bbr3"}).content
    add_capture(plan, point, capture)
    return plan


def test_both_ends_of_a_link_that_is_used_in_both_directions():
    plan = planned(ALL, flows=[{"cca": "cubic"}, {"cca": "cubic", "direction": "reverse"}])
    devices = [tap["device"] for tap in plan["capture"]["interfaces"]]
    assert devices[:2] == ["s1-s2", "s2-s1"]
    assert sorted(devices[2:]) == sorted(f"{h['name']}-eth0" for h in plan["hosts"])


def test_a_plan_without_a_capture_is_as_it_was():
    assert "capture" not in planned(Capture())
    assert rings_bytes(planned(Capture())) == 0


def test_rings_grow_with_what_passes_between_two_samples():
    small, seldom, fast, long = (
        rings_bytes(planned(Capture(("bottleneck",), snaplen), **changes))
        for snaplen, changes in (
            (128, {}), (128, {"sample_hz": 0.1}), (128, {"network__rate_mbit": 1000}), (1514, {}),
        )
    )  # fmt: skip
    assert small < min(seldom, fast, long)
    assert max(seldom, fast, long) < RINGS_MOST_BYTES


def test_rings_are_as_large_as_the_fastest_link_of_either_direction_needs():
    """What a trace says of the rate in place of rate_mbit, too."""
    here = {"network__rate_mbit": 1, "network__buffer": {"packets": 20}}
    one_way = Capture(("bottleneck",))
    reverse = {"rate_mbit": 1000, "buffer": {"packets": 20}}
    flows = [{"cca": "cubic", "direction": "reverse"}]
    needed = planned(one_way, **here | {"network__rate_mbit": 1000})["capture"]["frames"]
    assert planned(one_way, **here, network__reverse=reverse, flows=flows)["capture"]["frames"] >= needed
    slow = planned(one_way, **here, sample_hz=0.2)["capture"]["frames"]
    assert planned(one_way, **here, network__trace="wifi", sample_hz=0.2)["capture"]["frames"] > slow


def test_too_many_packets_between_samples_are_refused_in_words():
    with pytest.raises(UserError, match=r"--pcap: what 2 interfaces may see .* sample more often than sample_hz 0.1,"):
        planned(Capture(("hosts",)), network__rate_mbit=10000, sample_hz=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pcap", "queue"], "--pcap queue: no such place; use one of bottleneck, hosts"),
        (["--pcap", "hosts", "--snaplen", "10"], "--snaplen 10: must be from 54 to 65535 bytes"),
        (["--snaplen", "1514"], "--snaplen 1514: has no effect without --pcap bottleneck or hosts"),
        (["--pcap", "hosts", "--backend", "qemu", "--sender-kernel", "0=x"], "--pcap: not with --sender-kernel"),
    ],
)
def test_what_cannot_be_is_refused_before_a_guest_starts(options, words, tmp_path):
    (tmp_path / "s.yaml").write_text(str(scenario_dict()))
    done = CliRunner().invoke(app, ["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), *options])
    assert isinstance(done.exception, UserError)
    assert words in str(done.exception)
    assert not (tmp_path / "out").exists()


# --- a run ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def captured(run_scenario):
    return run_scenario(capture=ALL, **PATH)


@pytest.mark.guest
def test_a_capture_changes_no_byte_of_a_run_and_its_own_are_the_same_again(captured, run_scenario, tmp_path):
    plain = run_scenario(**PATH)
    assert files.sha256(plain.folder / "samples.parquet") == files.sha256(captured.folder / "samples.parquet")
    assert not captured.failed
    assert captured.check("packets_captured")["measured"] > 50_000
    run_point(base_point(validate(scenario_dict(**PATH), "test")), 1, tmp_path / "again", capture=ALL)
    for name in CAPTURES:
        digest = files.sha256(captured.folder / name)
        assert digest == files.sha256(tmp_path / "again" / name) == captured.manifest["outputs_sha256"][name], name
    run_point(base_point(validate(scenario_dict(**PATH), "test")), 1, tmp_path / "again")
    assert not any((tmp_path / "again" / name).exists() for name in CAPTURES), "they would be taken for this run's"


def data_packets(path):
    """{(port of the sender's end, sequence number, size): how often} of a file's packets with data, and the number of all."""
    segments, found, count = Segments(), Counter(), 0
    for packet in Records(path):
        count += 1
        key, _, number, payload = segments.of(packet)
        if payload > 1000:
            found[key[2], number, payload] += 1
    return found, count


@pytest.mark.guest
def test_what_is_captured_is_what_the_kernel_counted(captured):
    """Packets that left the queue, what the queue dropped, what random loss took: each is the difference of two places."""
    (sent, at_senders), (left, at_bottleneck), (came, at_receivers) = (
        data_packets(captured.folder / name) for name in (SENDERS, BOTTLENECK, RECEIVERS)
    )
    queue = captured.samples.drop_duplicates("time_s").iloc[-1]
    drops = queue["queue_drops"]
    waits = sum((sent - left).values()) - drops  # in the queue as the run ends
    assert drops > 50
    assert 0 <= waits <= queue["queue_bytes"] / 1514 + 1
    assert not left - sent
    assert not came - left
    lost = sum((left - came).values())
    counted = [q["drops"] for q in captured.manifest["report"]["qdiscs"] if q["device"] == "s2-r1"]
    assert lost == sum(counted) > 10
    out = [packet for packet in Records(captured.folder / BOTTLENECK) if packet.wire_bytes == 1514]
    assert len(out) == sum(left.values())
    assert at_bottleneck < at_senders
    assert at_receivers < at_bottleneck


@pytest.mark.guest
def test_times_are_the_experiments(captured):
    """A flow's first packet leaves at its start; between hosts there is no time but the queue's and the delay of ACKs."""
    first = {name: next(iter(Records(captured.folder / name))).time_ns for name in CAPTURES}
    assert 0 <= first[SENDERS] <= 10**6
    assert 0 <= first[BOTTLENECK] - first[SENDERS] < 10**5
    last = [max(p.time_ns for p in Records(captured.folder / name)) for name in CAPTURES]
    assert all(9.9e9 < time_ns <= 10e9 for time_ns in last)


@pytest.mark.guest
def test_a_capture_of_ours_is_one_that_a_scenario_can_be_made_of(captured):
    """What `bbrlab traffic` reads from the receivers' file is what the flows delivered."""
    chunks = from_capture(captured.folder / RECEIVERS).chunks
    delivered = chunks["bytes"].sum()
    acked = captured.samples.groupby("flow")["bytes_acked"].max().sum()
    assert delivered == pytest.approx(acked, rel=0.01)


@pytest.mark.guest
@pytest.mark.parametrize("program", ["tshark", "tcpdump"])
def test_programs_that_others_wrote_open_it(program, captured):
    """As many packets as ours, none malformed."""
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    for name in CAPTURES:
        count = sum(1 for _ in Records(captured.folder / name))
        command = {
            "tshark": ["tshark", "-r", captured.folder / name, "-T", "fields", "-e", "_ws.malformed", "-e", "frame.interface_name"],
            "tcpdump": ["tcpdump", "-n", "-r", captured.folder / name, "-Z", "root"],
        }[program]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        assert len(lines) == count, done.stderr
        if program == "tshark":
            assert all(line.startswith("\t") for line in lines)
            assert {line.strip() for line in lines} <= {"s1-s2", "h1-eth0", "h2-eth0", "r1-eth0"}


def test_a_file_is_written_for_each_side(tmp_path):
    plan = planned(ALL)
    for number in range(3):
        (tmp_path / f"capture-{number}.raw").write_bytes(b"")
    report = {"start_ns": 0, "capture": {"real_ahead_ns": 0, "interfaces": [{"packets": 0, "dropped": 0}] * 3}}
    assert write_captures(tmp_path / "out", tmp_path, plan, report, 1) == [BOTTLENECK, SENDERS, RECEIVERS]
    assert write_captures(tmp_path / "none", tmp_path, planned(Capture()), report, 1) == []
    assert list(Records(tmp_path / "out" / SENDERS)) == []


def test_somebodys_packets_are_not_replaced(tmp_path):
    """A folder with a capture and no run: tcpdump may have written it."""
    (tmp_path / BOTTLENECK).write_text("mine")
    with pytest.raises(UserError, match=r"has bottleneck\.pcapng, but no manifest\.json of a run"):
        prepare_out(tmp_path)
    assert (tmp_path / BOTTLENECK).read_text() == "mine"
    (tmp_path / "manifest.json").write_text('{"scenario": {}, "seed": 1, "plan_sha256": "0"}')
    prepare_out(tmp_path)
