"""network.ip_version: IPv6 in all that has addresses or headers, what comes out, and what is refused."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bbrlab.base.errors import UserError
from bbrlab.kernel.built import Kernel
from bbrlab.measure.checks.flows import _segment_size
from bbrlab.measure.checks.reception import ip_version_check
from bbrlab.models.burst_scenario import WORLD as BURST
from bbrlab.run.capture import Capture
from bbrlab.run.compatibility import check_parameters
from bbrlab.run.several import plan_several
from bbrlab.scenario.load import base_point, points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab_apps.grading.submitted_samples import _beyond_the_link
from bbrlab_apps.ns3.runs import lacks
from bbrlab_apps.play.playable import playable
from bbrlab_apps.traffic.records import Records
from tests.conftest import scenario_dict
from tests.experiment.test_plan import plan_of
from tests.workload.test_short_flows import guest_module

IPV6 = {"network__ip_version": 6}
ACK_BYTES = 14 + 40 + 32  # TCP with timestamps


def point(**changes: Any) -> Point:
    return base_point(validate(scenario_dict(**(IPV6 | changes)), "test"))


def test_every_host_has_an_address_of_its_own():
    """Of fd00::/64, by its number in its net; all that names one has it."""
    plan = plan_of(**IPV6, network__reverse={"rate_mbit": 1, "buffer": {"packets": 9}}, flows=[{"cca": "cubic", "count": 600, "rtts_ms": [10 + i / 10 for i in range(600)]}]).content  # fmt: skip
    addresses = [ipaddress.ip_address(host["ip"]) for host in plan["hosts"]]
    assert len(set(addresses)) == 601 and all(a in ipaddress.ip_network("fd00::/64") for a in addresses)
    # What a host is asked by, before its address is known: of the last 24 bits (RFC 4291, section 2.7.1).
    assert len({int(a) & 0xFFFFFF for a in addresses}) == 601
    named = {t["server_ip"] for t in plan["transfers"]} | {p["address"] for p in plan["pings"]}
    assert named | {link["burst_to_ip"] for link in plan["bottlenecks"]} <= {host["ip"] for host in plan["hosts"]}
    assert plan["ip_version"] == 6


def test_without_the_field_nothing_is_another():
    plain, four = base_point(validate(scenario_dict(), "s")), point(network__ip_version=4)
    assert plain.fingerprint == four.fingerprint != point().fingerprint
    assert "ip_version" not in plan_of(network__ip_version=4).content
    assert [h["ip"] for h in plan_of().content["hosts"]] == ["10.0.16.2", "10.0.32.2"]


def test_a_packet_of_tcp_has_20_bytes_less_in_it():
    """So it takes less of CAKE's memory, while buffers keep their bytes and packets."""
    queues = {version: plan_of(network__ip_version=version, network__buffer={"packets": 50}, network__qdisc={"kind": "cake"}).content["bottlenecks"][0] for version in (4, 6)}  # fmt: skip
    assert [queues[v]["buffer_bytes"] for v in (4, 6)] == [50 * 1514, 50 * 1514]
    assert [queues[v]["qdisc"][3] for v in (4, 6)] == [f"{50 * 2280}b", f"{50 * 2260}b"]
    assert [point(network__mtu_bytes=mtu).scenario.network.payload_bytes for mtu in (1280, 1500, 9000)] == [1208, 1428, 8928]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"network__ip_version": 5}, ["network.ip_version", "4 or 6"]),
     ({"network__ip_version": "six"}, ["network.ip_version", "4 or 6"]),
     ({"network__ip_version": None}, ["network.ip_version"]),
     (IPV6 | {"network__mtu_bytes": 1279}, ["mtu_bytes 1279 is not possible with ip_version 6", "1280"])],
)  # fmt: skip
def test_what_cannot_be_is_refused(changes, words):
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(**changes), "s"))
    assert all(word in str(told.value) for word in words), told.value


def kernel_with(folder: Path, config: str, name: str = "mainline-6.12") -> Kernel:
    (folder / "config").write_text(config)
    return Kernel(name, "6.12", "b", "k", str(folder / "linux"), {"cubic": "cubic"}, {}, "s", "c", 1.0)


def test_a_kernel_without_it_is_refused_before_the_run(tmp_path):
    """The message names the kernels of the same kind that have it."""
    without = kernel_with(tmp_path, "# CONFIG_IPV6 is not set\n")
    with pytest.raises(UserError, match=r"test: network.ip_version 6: kernel mainline-6.12 has no IPv6; .*\(lab-6.12, lab-5.10, ") as told:  # fmt: skip
        check_parameters(point(), without)
    assert "qemu" not in str(told.value) and "mainline-6.12," not in str(told.value)
    check_parameters(point(network__ip_version=4), without)
    check_parameters(point(), kernel_with(tmp_path, "CONFIG_IPV6=y\n"))


def test_this_machines_own_kernel_must_have_it(monkeypatch, tmp_path):
    own = Kernel("host", "6.1", "host", "host", "", {"cubic": "cubic"}, {}, "s", "", 0.0)
    monkeypatch.setattr("bbrlab.run.compatibility.IPV6_HERE", tmp_path)
    check_parameters(point(), own)
    monkeypatch.setattr("bbrlab.run.compatibility.IPV6_HERE", tmp_path / "nowhere")
    with pytest.raises(UserError, match="this machine has no IPv6"):
        check_parameters(point(), own)


def test_models_ns3_plays_and_machines_of_senders_refuse_it():
    with pytest.raises(UserError, match=r"burst model does not describe network.ip_version 6"):
        BURST.check(point().scenario)
    assert lacks(point()) == "network.ip_version 6"
    with pytest.raises(UserError, match=r"network.ip_version: a play"):
        playable(point(), 1)
    with pytest.raises(UserError, match=r"--sender-kernel: .*network.ip_version"):
        plan_several(point(), 1, Kernel("k", "6", "b", "k", "i", {"cubic": "cubic"}, {}, "s", "c", 1.0), {})


def test_another_header_or_version_than_asked_for_fails():
    scenario = point().scenario

    def sizes(*found: int) -> list[bool | None]:
        counters: Any = [SimpleNamespace(columns={"snd_mss": np.array(found, "<u4")})]
        return [c.ok for c in _segment_size(scenario, counters)]

    def versions(of_4: int, of_6: int) -> list[tuple[float | None, bool | None]]:
        report: Any = {"received_before": {"h1": {"ipv4_packets": 0, "ipv6_packets": 7}}, "received": {"h1": {"ipv4_packets": of_4, "ipv6_packets": 7 + of_6}}}  # fmt: skip
        return [(c.measured, c.ok) for c in ip_version_check(scenario, report)]

    assert [sizes(1428, 1428), sizes(1428, 1448)] == [[True], [False]]
    assert [versions(0, 9), versions(1, 9), versions(0, 0)] == [[(6, True)], [(4, False)], [(None, None)]]
    assert ip_version_check(validate(scenario_dict(), "s"), {}) == []  # type: ignore[typeddict-item]


@pytest.mark.parametrize(("ip_version", "headers_bytes"), [(4, 66), (6, 86)])
def test_a_students_samples_may_have_headers_of_their_version(ip_version, headers_bytes):
    """A byte more in each packet would be more than the flows sent."""
    scenario, packets = point(network__ip_version=ip_version, network__rate_mbit=12_000).scenario, 1_000_000

    def wrong(extra_bytes: int) -> list[str]:
        flows = {
            name: np.array([0, n])
            for name, n in (("bytes_sent", 1000 * packets), ("bytes_acked", 1000 * packets), ("segs_out", packets))
        }
        queue = dict.fromkeys(("bytes", "packets", "drops", "marks", "sent_packets"), np.array([0, 0]))
        queue["sent_bytes"] = np.array([0, (1000 + headers_bytes + extra_bytes) * packets])
        columns = {f"queue_{name}": values for name, values in queue.items()}
        return list(
            _beyond_the_link(scenario, {"time_s": np.array([0.0, 9.0]), "flow": np.array([0, 0]), **columns}, flows)
        )

    assert [wrong(0), wrong(1)] == [[], ["the bottleneck has sent more than the flows"]]


def test_what_the_guest_asks_of_the_kernel_is_of_the_family():
    """An address is added as the kernel has it, in use at once; sockets are those of the family."""
    netlink, ip_version, sampler = (guest_module(name) for name in ("netlink", "ip_version", "sampler"))
    assert [ip_version.family_of(p) for p in ({}, {"ip_version": 6})] == [socket.AF_INET, socket.AF_INET6]
    assert [sampler.socket_request(family)[16] for family in sampler.TCP_DESTROY] == [2, 10]
    asked: list[bytes] = []
    link = SimpleNamespace(index=lambda device: 5, _link=lambda kind, flags, body, what: asked.append(body))
    netlink.Netlink.add_address(link, "h1-eth0", "fd00::10:2", 64)
    assert asked[0][:8] == bytes([10, 64, 2, 0, 5, 0, 0, 0])
    assert ipaddress.ip_address("fd00::10:2").packed in asked[0]


@pytest.mark.guest
@pytest.mark.parametrize("mtu_bytes", [1280, 1500])
def test_goodput_is_what_the_longer_headers_leave(run_scenario, mtu_bytes):
    """Of each frame 86 bytes are headers."""
    run = run_scenario(**IPV6, network__mtu_bytes=mtu_bytes, network__rate_mbit=20, network__buffer={"packets": 60}, duration_s=5, window_s=[2, 4], flows=[{"cca": "bbr1"}])  # fmt: skip
    assert run.failed == []
    assert (run.check("segment_size")["measured"], run.check("ip_version")["measured"]) == (mtu_bytes - 72, 6)
    assert run.check("buffer")["measured"] == 60 * (mtu_bytes + 14)
    goodput = 20 * (mtu_bytes - 72) / (mtu_bytes + 14)
    assert run.summary["flows"][0]["goodput_mbit"] == pytest.approx(goodput, rel=0.005)


@pytest.mark.guest
def test_goodput_is_at_most_what_acks_of_86_bytes_acknowledge(run_scenario):
    """The ACK path is full; what answers the burst of one link does not blur the rate of the other."""
    run = run_scenario(**IPV6, network__rate_mbit=50, network__reverse={"rate_mbit": 0.1, "buffer": {"packets": 60}}, duration_s=12, window_s=[4, 12])  # fmt: skip
    assert run.failed == []
    assert run.check("rate_reverse")["measured"] == pytest.approx(0.1, rel=0.002)
    acks_per_s = 0.1e6 / 8 / ACK_BYTES
    assert run.summary["flows"][0]["goodput_mbit"] == pytest.approx(acks_per_s * 1428 * 8e-6, rel=0.01)


@pytest.mark.guest
def test_cake_holds_as_many_packets_as_were_asked_for(run_scenario):
    """Its only limit is memory, of which a packet's payload is a part."""
    run = run_scenario(**IPV6, network__rate_mbit=20, network__buffer={"packets": 100}, network__qdisc={"kind": "cake", "rtt_ms": 10_000}, duration_s=5, window_s=[2, 5])  # fmt: skip
    assert run.failed == []
    assert run.samples["queue_packets"].max() == 100 and run.samples["queue_drops"].max() > 0


@pytest.mark.guest
def test_records_and_captures_are_of_its_flows_and_change_nothing(run_scenario):
    """Every ACK is found by its address; all packets of a run are IPv6, and none is one of the set-up's."""
    changes = {**IPV6, "network__data_path": {"delay_ms": 5, "reordering": {"share": 0.01, "late_ms": 3}}, "flows": [{"cca": "cubic", "count": 2}, {"cca": "bbr3"}], "duration_s": 4, "window_s": [1, 4]}  # fmt: skip
    plain = run_scenario(**changes)
    run = run_scenario(**changes, trace="acks", capture=Capture(("hosts",)))
    assert run.failed == plain.failed == []
    digests = [r.manifest["outputs_sha256"]["samples.parquet"] for r in (run, plain)]
    assert digests[0] == digests[1]
    assert sorted(run.acks["flow"].unique()) == [0, 1, 2]
    for file in run.folder.glob("*.pcapng"):
        kinds = {bytes(packet.data[12:14]) + bytes(packet.data[20:21]) for packet in Records(file)}
        assert kinds == {b"\x86\xdd\x06"}, file


@pytest.mark.guest
def test_short_flows_and_merged_packets_are_of_it(run_scenario):
    """Beside fq pacing, segments that are cut at the interface, and GRO: within 1 ms some four packets come, if
    they are of one flow; 2.2 a segment in the mean over four seeds (1.9 to 2.5)."""
    flows = [{"cca": "bbr3"}, {"cca": "cubic", "traffic": {"offered_mbit": 10}}]
    run = run_scenario(**IPV6, network__rate_mbit=50, hosts__segmentation="nic", hosts__receive_offload="gro", hosts__receive_offload_us=1000, hosts__pacing="fq", flows=flows, duration_s=5, window_s=[2, 5])  # fmt: skip
    assert run.failed == []
    assert run.check("receive_offload")["measured"] > 1.5
    assert run.check("ip_version")["measured"] == 6
