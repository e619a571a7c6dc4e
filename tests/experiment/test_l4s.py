"""The queue and the feedback of L4S: what the guest is told, what is read back, what is refused. No guest is started."""

from __future__ import annotations

import struct

import pytest

from bbrlab.base.errors import UserError
from bbrlab.experiment.plan import make_plan
from bbrlab.experiment.qdisc import qdisc_options, qdisc_words
from bbrlab.kernel.built import Kernel
from bbrlab.measure.kernel_options import options_of
from bbrlab.measure.queues import MARKS
from bbrlab.run.compatibility import check_parameters
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab.scenario.needs import refuse_without_effect
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Network, Qdisc
from tests.conftest import scenario_dict

DUALPI2 = {
    "kind": "dualpi2",
    "target_ms": 20,
    "tupdate_ms": 8,
    "step_threshold_ms": 0.5,
    "coupling": 3,
    "l4s_of": "ect",
}
ASKED = {"limit_packets": 20, "target_us": 20_000, "tupdate_us": 8_000, "step_threshold_us": 500,
         "coupling": 3, "l4s_of": 3}  # fmt: skip


def point(**changes: object) -> Point:
    return base_point(validate(scenario_dict(**changes), "test"))


def link_with(qdisc: Qdisc) -> Network:
    """A bottleneck of 20 packets with this queue."""
    return Network(rate_mbit=10, rtt_ms=40, buffer={"packets": 20}, qdisc=qdisc)


def test_the_guest_is_told_what_tc_cannot_say():
    """Attributes as linux/pkt_sched.h has them: read back as the kernel's own dump is."""
    qdisc = Qdisc(**DUALPI2)
    assert qdisc_words(link_with(qdisc)) == ["dualpi2"]
    assert options_of("dualpi2", qdisc_options(link_with(qdisc)).hex()) == ASKED
    (link,) = make_plan(point(network__qdisc=DUALPI2), 1, {"cubic": "cubic"}).content["bottlenecks"]
    assert bytes.fromhex(link["qdisc_options"])[:4] == struct.pack("<HH", 8, 1)


def test_what_is_not_given_stays_the_kernels_default():
    """The buffer is always the limit, in packets."""
    found = options_of("dualpi2", qdisc_options(link_with(Qdisc(kind="dualpi2"))).hex())
    assert found == {"limit_packets": 20}


@pytest.mark.parametrize("kind", ["fifo", "red", "codel", "fq_codel", "pie", "cake", "fq"])
def test_plans_of_other_queues_are_as_they_were(kind):
    """Their bytes are those of before: no new key in the plan, none in what a point is named by."""
    (link,) = make_plan(point(network__qdisc={"kind": kind}), 1, {"cubic": "cubic"}).content["bottlenecks"]
    assert "qdisc_options" not in link
    assert not {"step_threshold_ms", "coupling", "l4s_of"} & Qdisc(kind=kind).model_dump().keys()


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"network__qdisc__kind": "dualpi2"}, "network.qdisc.kind dualpi2"),
     ({"network__links": [{}, {"qdisc": {"kind": "dualpi2"}}]}, "network.links.1.qdisc.kind dualpi2"),
     ({"network__links": [{"qdisc": {"kind": "fq_codel", "l4s_of": "ect1"}}, {}]}, "network.links.0.qdisc.l4s_of ect1"),
     ({"network__reverse": {"rate_mbit": 1, "buffer": {"packets": 9}, "qdisc": {"kind": "dualpi2"}}}, "network.reverse.qdisc.kind dualpi2"),
     ({"network__reverse": {"rate_mbit": 1, "buffer": {"packets": 9}, "qdisc": {"kind": "fq_codel", "l4s_of": "ect1"}}}, "network.reverse.qdisc.l4s_of ect1"),
     ({"hosts__ecn": "accurate", "network__qdisc": {"kind": "codel", "ecn": True}}, "hosts.ecn accurate")],
)  # fmt: skip
def test_a_kernel_without_it_is_refused_before_the_run(changes, field):
    """The message names the field and the kernel that has it; a kernel of one's own file may have it."""
    for name in ("lab-6.12", "lab-6.12+mine", "lab-6.1"):
        with pytest.raises(
            UserError, match=rf"test: {field}: kernel {name.replace('+', '.')} has none; give --kernel lab-7.3"
        ):
            check_parameters(point(**changes), Kernel(name, "", "", "", "", {"cubic": "cubic"}, {}, "", "", 0))
    for name in ("lab-7.3", "lab-7.3+mine", "mine"):
        check_parameters(point(**changes), Kernel(name, "", "", "", "", {"cubic": "cubic"}, {}, "", "", 0))


def test_hosts_ask_for_accurate_ecn():
    """net.ipv4.tcp_ecn is 3; a queue that marks nothing makes it without effect, as with plain ECN."""
    asked = point(hosts__ecn="accurate", network__qdisc={"kind": "dualpi2"})
    assert make_plan(asked, 1, {"cubic": "cubic"}).content["sysctls"]["net.ipv4.tcp_ecn"] == 3
    refuse_without_effect([asked], "test")
    with pytest.raises(UserError, match="hosts.ecn accurate would have no effect: the queue marks no packets"):
        refuse_without_effect([point(hosts__ecn="accurate")], "test")


def test_only_scalable_flows_are_marked_above_fq_codels_threshold():
    """ECT(1) is 1 of the two bits of ECN (sch_fq_codel.c); what is not asked for is not said, so that plans stay."""
    qdisc = Qdisc(kind="fq_codel", ce_threshold_ms=1, l4s_of="ect1")
    words = qdisc_words(link_with(qdisc))
    assert words[words.index("ce_threshold") :][2:4] == ["ce_threshold_selector", "1/3"]
    for plain in (Qdisc(kind="fq_codel", ce_threshold_ms=1), Qdisc(kind="fq_codel", ce_threshold_ms=1, l4s_of="ect")):
        assert "ce_threshold_selector" not in qdisc_words(link_with(plain))
    read = options_of("fq_codel", (struct.pack("<HHB3x", 5, 10, 1) + struct.pack("<HHB3x", 5, 11, 3)).hex())
    assert read == {"ce_threshold_selector": 1, "ce_threshold_mask": 3}
    with pytest.raises(UserError, match=r"network.qdisc.l4s_of ect1 would have no effect: .*ce_threshold_ms"):
        refuse_without_effect(
            [point(network__qdisc={"kind": "fq_codel", "l4s_of": "ect1"}, hosts__ecn="accurate")], "test"
        )


def senders(asked: Point) -> list[dict[str, int] | None]:
    plan = make_plan(asked, 1, {"cubic": "cubic", "reno": "reno"}).content
    return [host.get("sysctls") for host in plan["hosts"] if host["sends"]]


def test_a_group_may_ask_for_less_ecn_than_its_host():
    """Its senders are hosts of their own, with a sysctl of their own; without the field a plan is as it was."""
    flows = [{"cca": "cubic"}, {"cca": "reno"}]
    marking = {"kind": "codel", "ecn": True}
    assert senders(point(flows=flows, hosts__ecn="on", hosts__noise="off", network__qdisc=marking)) == [None]
    flows = [{"cca": "cubic"}, {"cca": "reno", "ecn": "off"}, {"cca": "reno", "ecn": "on"}]
    asked = point(flows=flows, hosts__ecn="accurate", hosts__noise="off", network__qdisc=marking)
    refuse_without_effect([asked], "test")
    assert senders(asked) == [None, {"net.ipv4.tcp_ecn": 0}, {"net.ipv4.tcp_ecn": 1}]


@pytest.mark.parametrize(
    ("hosts", "flow", "says"),
    [
        ("on", {"cca": "cubic", "ecn": "on"}, "receivers have hosts.ecn: on"),
        ("on", {"cca": "cubic", "ecn": "accurate"}, "receivers have hosts.ecn: on"),
        ("on", {"cca": "dctcp", "ecn": "off"}, "dctcp asks for ECN whatever its host does"),
        ("on", {"cca": "bbr3", "ecn": "off"}, "never marked"),
    ],
    ids=str,
)
def test_an_ecn_of_a_group_without_effect_is_refused(hosts, flow, says):
    asked = point(flows=[{"cca": "cubic"}, flow], hosts__ecn=hosts, network__qdisc={"kind": "codel", "ecn": True})
    with pytest.raises(UserError, match=rf"flows.1.ecn.* would have no effect: .*{says}"):
        refuse_without_effect([asked], "test")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("interval_ms", 5),
        ("ecn", True),
        ("step_threshold_ms", 4295),
        ("target_ms", 4295),
        ("coupling", 0),
        ("l4s_of", "ect0"),
    ],
)
def test_what_dualpi2_does_not_have_is_refused(field, value):
    with pytest.raises(UserError, match=field):
        point(network__qdisc={"kind": "dualpi2", field: value})


def test_marks_are_where_the_kernel_counts_them():
    """tc_dualpi2_xstats has six numbers of 32 bits before ecn_mark."""
    assert MARKS["dualpi2"] == (6 * 4,)


@pytest.mark.guest
@pytest.mark.parametrize("cca", ["dctcp", "cubic"])
def test_of_acks_those_of_dctcp_alone_are_marked(run_scenario, cca):
    """Which needs.py takes for granted."""
    codel = {"kind": "codel", "ecn": True}
    reverse = {"rate_mbit": 0.1, "buffer": {"packets": 60}, "qdisc": codel}
    changes = {"network__rate_mbit": 20, "network__qdisc": codel, "network__reverse": reverse, "hosts__ecn": "on"}
    result = run_scenario(flows=[{"cca": cca}], duration_s=4, window_s=[1, 4], **changes)
    assert (result.summary["bottleneck_reverse"]["ecn_marks"] > 0) == (cca == "dctcp")
