"""What of a scenario has no effect without something else: one table, and what it says of a scenario's points.

A field that has no effect at any point at which it is given is refused; one that has none at some of a sweep's points is
noted. A default that is written down is not given. The table is no part of the schema's own validation, so that what has run
can be read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from bbrlab.base.algorithms import KNOWN
from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict
from bbrlab.scenario.point import Point
from bbrlab.scenario.rates import highest_mbit
from bbrlab.scenario.schema import (
    OFFERED_MBIT,
    PARAMETER_SETS,
    Change,
    DataJitter,
    Flow,
    Noise,
    Qdisc,
    Reordering,
    Scenario,
)

Place = list[int]  # the indices in a path, of flows or of changes


class Need(NamedTuple):
    """A field, what it needs, and whether it is there."""

    field: str  # dotted path; ``*`` stands for an index
    needs: str  # the partner, in words
    given: Callable[[Scenario, Place], Any]  # whether the scenario has the field, other than its default
    without: Callable[[Scenario, Place], str]  # why it would have no effect, and what to do; empty if it has one
    only_noted: bool = False  # it has some effect all the same
    # Every scenario has to have it, so that it counts as given only where the points differ in it
    if_varied: bool = False


def _sends_ect(flow: Flow) -> bool:
    """Whether a group's packets may be marked, if the hosts negotiate it. A profile may say so, too."""
    return flow.cca not in PARAMETER_SETS or "profile" in flow.params or flow.params.get("ecn", "off") != "off"


def _acks_may_be_marked(flow: Flow, s: Scenario) -> bool:
    """Linux's DCTCP, which iperf3 has at both ends, sends ECT on all packets; with AccECN and of one's own algorithms they may have it."""
    dctcp = flow.cca == "dctcp" and flow.traffic is None
    return dctcp or flow.cca not in KNOWN or (flow.ecn or s.hosts.ecn) == "accurate"


TURNED: dict[str, Literal["forward", "reverse"]] = {"forward": "reverse", "reverse": "forward"}


def _queues(s: Scenario) -> list[Scenario]:
    """The scenario as each queue meets it: its link is the only one, and has the flows whose data crosses it, as those that go
    forward, and those whose ACKs do, as those that go in reverse."""
    if s.network.links is not None:
        return [_of_one(s, i) for i in range(len(s.network.links))]
    forward = [s] if _goes_forward(s) else []
    return forward + ([_turned(s)] if s.network.reverse or any(f.direction == "reverse" for f in s.flows) else [])


def _goes_forward(s: Scenario) -> bool:
    return any(flow.direction == "forward" for flow in s.flows)


def _of_one(s: Scenario, number: int) -> Scenario:
    crossing = [flow for flow in s.flows if number in s.path_of(flow)]
    return s.of_link(number).model_copy(update={"flows": crossing})


def _turned(s: Scenario) -> Scenario:
    turned = [flow.model_copy(update={"direction": TURNED[flow.direction]}) for flow in s.flows]
    return s.towards("reverse").model_copy(update={"flows": turned})


def _no_ect(s: Scenario, place: Place) -> str:
    """Of one queue, as _queues() has it."""
    if s.hosts.ecn == "off":
        return "the hosts do not negotiate ECN (set hosts.ecn: on)"
    able = [flow for flow in s.flows if _sends_ect(flow)]
    asking = [flow for flow in able if flow.ecn != "off"]
    if able and not asking:
        return "no group asks for ECN (leave out flows.0.ecn: off)"
    if s.flows and not able:
        return "no flow's packets may be marked: bbr2 and bbr3 use ECN only with their parameter ecn (set params.ecn: on of a group that crosses the queue)"
    if not s.flows:
        return "no flow crosses the queue (leave it out)"
    if not any(flow.direction == "forward" or _acks_may_be_marked(flow, s) for flow in asking):
        return (
            "only ACKs cross the queue, which may be marked of dctcp or with hosts.ecn: accurate alone (leave it out)"
        )
    return ""


def _no_acks(s: Scenario, place: Place) -> str:
    if any(flow.direction == "reverse" for flow in s.flows):
        return ""
    return "only data crosses the queue (set it in network.reverse.qdisc, or leave it out)"


def _no_marks(s: Scenario, place: Place) -> str:
    marking = [queue for queue in _queues(s) if _marks_packets(queue.network.qdisc)]
    if not marking:
        ways = {
            "red": "set network.qdisc.ecn: true",
            "codel": "set network.qdisc.ecn: true",
            "pie": "set network.qdisc.ecn: true",
            "fq_codel": "leave network.qdisc.ecn out",
            "fq": "set network.qdisc.ce_threshold_ms",
        }
        how = ways.get(s.network.qdisc.kind, "choose another network.qdisc.kind, such as codel with ecn: true")
        return f"the queue marks no packets: it is {s.network.qdisc.kind} ({how}, or leave hosts.ecn out)"
    whys = [_no_ect(queue, place) for queue in marking]
    return "" if "" in whys else whys[0]


def _marks_packets(qdisc: Qdisc) -> Any:
    return qdisc.kind in ("cake", "dualpi2") or qdisc.ce_threshold_ms is not None or (
        (qdisc.kind == "fq_codel") if qdisc.ecn is None else qdisc.ecn
    )  # fmt: skip


def _no_harddrop(s: Scenario, place: Place) -> str:
    qdisc = s.network.qdisc
    if not qdisc.ecn:
        return "without ecn RED drops above max_bytes in any case (set network.qdisc.ecn: true)"
    high = qdisc.thresholds(s.network.buffer_bytes, s.network.frame_bytes).max_bytes
    if high >= s.network.buffer_bytes:
        return f"the mean queue never passes max_bytes, {high}: the buffer has {s.network.buffer_bytes} bytes"
    return _no_ect(s, place)


def _beyond_buffer(name: str) -> Callable[[Scenario, Place], str]:
    def without(s: Scenario, place: Place) -> str:
        value, size = getattr(s.network.qdisc, name), s.network.buffer_bytes
        return f"the buffer has {size} bytes, which the mean queue never passes (set it below)" if value >= size else ""

    return without


def _full_ms(s: Scenario) -> float:
    """How long a packet waits at most in the only queue of a bottleneck: behind a full buffer, at the lowest rate of the run. A trace
    may pause."""
    if s.network.trace is not None:
        return math.inf
    rates = [s.network.rate_mbit, *(c.rate_mbit for c in s.network.changes if c.rate_mbit)]
    return (s.network.buffer_bytes + s.network.frame_bytes) * 8e-3 / min(rates) + s.network.grants_ms


def _waits_less(name: str) -> Callable[[Scenario, Place], str]:
    def without(s: Scenario, place: Place) -> str:
        full_ms = _full_ms(s)
        return (
            f"with a full buffer a packet waits {full_ms:.4g} ms (set it below)"
            if getattr(s.network.qdisc, name) > full_ms
            else ""
        )

    return without


def _target(s: Scenario, place: Place) -> Any:
    """Of CoDel that only marks above ce_threshold_ms, a target that no packet reaches is how to have no drops."""
    qdisc = s.network.qdisc
    return qdisc.kind in ("codel", "pie") and qdisc.target_ms is not None and qdisc.ce_threshold_ms is None


def _ce_threshold(s: Scenario, place: Place) -> str:
    qdisc = s.network.qdisc
    beyond = (
        _waits_less("ce_threshold_ms")(s, place) if qdisc.kind == "codel" else ""
    )  # in the others flows wait for each other
    return beyond or _no_ect(s, place)


def _nobodys_packets(s: Scenario, place: Place) -> str:
    if s.network.qdisc.ce_threshold_ms is not None:
        if s.network.qdisc.l4s_of == "ect1" and all(flow.cca in KNOWN for flow in s.flows):
            return "no flow that crosses the queue sends ECT(1) (leave it out, or see docs/howto/l4s.md for a flow that does)"
        return ""
    return "fq_codel tells packets of scalable flows apart by its threshold only (set network.qdisc.ce_threshold_ms)"


SEGMENT_BYTES = 1 << 16  # the largest that TCP builds


def _no_scalable_flow(s: Scenario, place: Place) -> str:
    """Of DualPI2's queue of scalable flows."""
    if s.network.qdisc.l4s_of != "ect" and all(flow.cca in KNOWN for flow in s.flows):
        return "no flow that crosses the queue sends ECT(1) (set network.qdisc.l4s_of: ect, or see docs/howto/l4s.md for a flow that does)"
    return _no_ect(s, place)


ECN_LEVELS = ("off", "on", "accurate")  # each has what those before it have


def _group_ecn(s: Scenario, place: Place) -> str:
    flow, hosts = s.flows[place[0]], s.hosts.ecn
    if flow.ecn is None or ECN_LEVELS.index(flow.ecn) < ECN_LEVELS.index(hosts):
        if flow.cca == "dctcp" and flow.ecn == "off":
            return "dctcp asks for ECN whatever its host does (choose another cca, or leave ecn out)"
        return "" if _sends_ect(flow) else "the group's packets are never marked (set params.ecn: on, or leave ecn out)"
    return f"receivers have hosts.ecn: {hosts} (set hosts.ecn to more, or leave the group's out)"


def _less_than_a_frame(s: Scenario, place: Place) -> str:
    asked = (s.network.buffer.bdp or 0) * s.network.bdp_bytes
    if round(asked) >= s.network.frame_bytes:
        return ""
    return f"a buffer has a frame of {s.network.frame_bytes} bytes in any case, and these are {asked:.4g} (network.buffer.packets: 1 says so)"


def _nobodys_rtt(s: Scenario, place: Place) -> str:
    if any(queue.network.buffer.bdp is not None for queue in _queues(s)) or any(
        flow.has_networks_rtt for flow in s.flows
    ):
        return ""
    return "every flow has an RTT of its own (flows[].rtt_ms or rtts_ms), and the buffer is not in BDP"


def _flow_limit(s: Scenario, place: Place) -> str:
    packets = s.network.buffer_bytes // s.network.frame_bytes
    limit = s.network.qdisc.flow_limit_packets or 0
    return f"the whole buffer has {packets} packets (set it below)" if limit >= packets else ""


def _no_loss(s: Scenario, place: Place) -> str:
    lost = s.network.loss or any(c.loss for c in s.network.changes)
    return "" if lost else "nothing is lost at random (set network.loss, or the loss of a change)"


def _highest_mbit(s: Scenario) -> float:
    """Of all bottlenecks that data crosses; what a trace or a grant lets through may leave at once."""
    crossed = [queue.network for queue in _queues(s) if _goes_forward(queue)]
    return max(math.inf if network.opportunities else highest_mbit(network) for network in crossed)


def _never_policed(s: Scenario, place: Place) -> str:
    """Behind the bottleneck no more comes than its rate, but for a packet, or a segment that router cuts (_never_empty()); before it
    senders may send bursts at any rate."""
    policer = s.network.policer
    if policer is None or policer.place == "before" or s.hosts.segmentation == "router":
        return ""
    most = _highest_mbit(s)
    if policer.rate_mbit < most:
        return ""
    return f"the bottleneck before it carries {most:g} Mbit/s at most (set it below, or network.policer.place: before)"


def _never_empty(s: Scenario, place: Place) -> str:
    """Behind the bottleneck a bucket loses at most what the bottleneck carries beyond its rate; a segment that router cuts comes at once,
    and of an idle limiter two frames more."""
    policer = s.network.policer
    if policer is None or policer.place == "before" or _never_policed(s, place):
        return ""  # a line of its own
    beyond_mbit = max(0.0, _highest_mbit(s) - policer.rate_mbit)
    at_once_bytes = (SEGMENT_BYTES / s.network.payload_bytes + 2) * s.network.frame_bytes
    beyond_bytes = beyond_mbit * s.duration_s * 1e6 / 8 + at_once_bytes
    if policer.burst_bytes < beyond_bytes:
        return ""
    return (
        f"the bottleneck before it carries at most {beyond_bytes:.4g} bytes in {s.duration_s:g} s that exceed the policer's rate, so that "
        "the bucket is never empty (set it below, or network.policer.place: before)"
    )


def _traced(s: Scenario, place: Place) -> str:
    """RED's averages follow the nominal rate, too."""
    if s.network.trace is None or s.network.qdisc.kind == "red" or s.network.buffer.bdp is not None:
        return ""
    return "the bottleneck sends when its trace says (network.trace), and the buffer is not in BDP"


def _jitter_group(s: Scenario, place: Place) -> str:
    group = s.network.jitter.group if s.network.jitter else None
    if group is None or group < len(s.flows):
        return ""
    return f"group {group} does not exist (groups 0 to {len(s.flows) - 1})"


def _overtakes_nobody(within_ms: Callable[[Scenario], float]) -> Callable[[Scenario, Place], str]:
    """Behind the bottleneck full packets follow each other by a packet's time or more."""

    def without(s: Scenario, place: Place) -> str:
        mbit = _highest_mbit(s)
        packet_ms = s.network.frame_bytes * 8e-3 / mbit
        if within_ms(s) > packet_ms or s.hosts.segmentation == "router":  # which sends those of a segment together
            return ""
        return f"at {mbit:g} Mbit/s packets follow each other by {packet_ms:.4g} ms, so that none overtakes another (set it above)"

    return without


def _data_jitter(s: Scenario) -> DataJitter | None:
    return s.network.data_path.jitter if s.network.data_path else None


def _reordering(s: Scenario) -> Reordering | None:
    return s.network.data_path.reordering if s.network.data_path else None


def _in_order(s: Scenario) -> list[tuple[int, Change]]:
    return sorted(enumerate(s.network.changes), key=lambda item: item[1].at_s)


def _late_change(s: Scenario, place: Place) -> str:
    if s.network.changes[place[0]].at_s < s.duration_s:
        return ""
    return f"it is at or after the end of the run ({s.duration_s:g} s)"


def _changes_nothing(name: str) -> Callable[[Scenario, Place], str]:
    """Of a change's field: it has that value already, or another change at the same time puts another in its place."""

    def without(s: Scenario, place: Place) -> str:
        (own,) = place
        if name == "rtt_ms" and not any(flow.has_networks_rtt for flow in s.flows):
            return "every flow has an RTT of its own (flows[].rtt_ms or rtts_ms), which stays; leave those out, or the change"
        if name == "rate_mbit" and s.network.reverse and (why := _nothing_forward(s, place)):
            return why
        before = getattr(s.network, name)
        for i, change in _in_order(s):
            value = getattr(change, name)
            if i == own:
                if value == before:
                    return f"it is {value:g} already"
            elif value is not None and change.at_s <= s.network.changes[own].at_s:
                if change.at_s == s.network.changes[own].at_s and i > own:
                    return f"network.changes.{i} puts {value:g} in its place at the same time"
                before = value
        return ""

    return without


def _start_together(s: Scenario, place: Place) -> str:
    flow = s.flows[place[0]]
    if flow.traffic is not None:
        return "short flows (traffic) begin when their trace says"
    if flow.count == 1:
        return "the group has one flow, which waits for no other (set count)"
    if flow.bytes is not None:
        return "flows of a given number of bytes begin on their own in any case"
    if flow.rtts_ms is not None and len(set(flow.rtts_ms)) == flow.count:
        return "flows with RTTs of their own begin on their own in any case"
    if s.draws_rtt(flow):
        return "flows with drawn RTTs begin on their own in any case"
    return ""


def _never_runs(s: Scenario, place: Place) -> str:
    start_s = s.flows[place[0]].start_s
    return "" if start_s < s.duration_s else f"it is at or after the end of the run ({s.duration_s:g} s)"


def _trace_has_its_load(s: Scenario, place: Place) -> str:
    traffic = s.flows[place[0]].traffic
    if traffic is None or traffic.trace == "model":
        return ""
    return f"the load is that of the trace {traffic.trace} (leave it out or at {OFFERED_MBIT:g}, or give trace: model)"


def _no_response_to_marks(s: Scenario, place: Place) -> str:
    if "profile" in s.flows[place[0]].params or s.flows[place[0]].params.get("ecn") == "on":
        return ""
    return "the group does not respond to marks (set params.ecn: on)"


def _of_cubic(name: str) -> Callable[[Scenario, Place], bool]:
    return lambda s, place: s.flows[place[0]].cca == "cubic" and name in s.flows[place[0]].params


def _no_hystart(name: str) -> Callable[[Scenario, Place], str]:
    """Of CUBIC's parameters. It looks at trains of ACKs (1 of hystart_detect) and at delay (2), both by default."""

    def without(s: Scenario, place: Place) -> str:
        params = s.flows[place[0]].params
        if not params.get("hystart", 1):
            return "hystart is off (leave either out)"
        if name == "hystart_low_window" and params.get("hystart_detect", 3) == 0:
            return "hystart_detect 0 looks at nothing (set it to 1, 2 or 3, or leave either out)"
        if name == "hystart_ack_delta_us" and params.get("hystart_detect", 3) in (0, 2):
            return "HyStart does not look at trains of ACKs (set hystart_detect to 1 or 3)"
        return ""

    return without


def _ecn_given(s: Scenario, place: Place) -> bool:
    """False is the default of all but fq_codel."""
    qdisc = s.network.qdisc
    return qdisc.ecn is True or (qdisc.ecn is False and qdisc.kind == "fq_codel")


def _every_link_has(name: str) -> Callable[[Scenario, Place], bool]:
    """Whether each of several links has a field of the network itself."""
    return lambda s, place: (
        bool(s.network.links) and all(getattr(link, name) is not None for link in s.network.links or [])
    )


def _links_own(name: str) -> Callable[[Scenario, Place], str]:
    return lambda s, place: (
        f"each of network.links has a {name} of its own (give network.{name} that of one of them, and leave it out there)"
        if s.network.links
        else ""
    )


def _nothing_forward(s: Scenario, place: Place) -> str:
    """With a link of its own against the flows the bottleneck itself is there for flows that go forward."""
    how = "leave it out, or give network.reverse what you mean"
    return "" if _goes_forward(s) else f"no flow goes forward through the bottleneck ({how})"


def _not_crossed(s: Scenario, place: Place) -> str:
    crossed = any(place[0] in s.path_of(flow) for flow in s.flows)
    return "" if crossed else "no flow crosses it (leave it out, or set flows.0.links so that it does)"


def _no_offset(s: Scenario, place: Place) -> str:
    drawn = all(s.draws_rtt(flow) for flow in s.flows)
    return "every flow's RTT is drawn from a range, and has no offset (leave it out)" if drawn else ""


def _qdisc(name: str) -> Callable[[Scenario, Place], Any]:
    return lambda s, place: getattr(s.network.qdisc, name)


def _change(name: str) -> Callable[[Scenario, Place], Any]:
    return lambda s, place: getattr(s.network.changes[place[0]], name) is not None


ECN = "hosts.ecn: on, and a flow whose packets may be marked, and cross the queue"
NEEDS = (
    Need("network.rate_mbit", "with links: one without a rate of its own", _every_link_has("rate_mbit"), _links_own("rate_mbit")),
    Need("network.rate_mbit", "where points differ in it: no trace, or a buffer in BDP", lambda s, p: s.network.trace is not None, _traced, if_varied=True),
    Need("network.buffer", "with links: one without a buffer of its own", _every_link_has("buffer"), _links_own("buffer")),
    Need("network.qdisc", "with links: one without a qdisc of its own",
         lambda s, p: s.network.qdisc != Qdisc() and _every_link_has("qdisc")(s, p), _links_own("qdisc")),
    Need("network.qdisc", "with reverse: a flow that goes forward", lambda s, p: s.network.qdisc != Qdisc() and s.network.reverse, _nothing_forward),
    Need("network.trace", "with reverse: a flow that goes forward", lambda s, p: s.network.trace and s.network.reverse, _nothing_forward),
    Need("network.links.*", "a flow that crosses it", lambda s, p: True, _not_crossed),
    Need("network.rtt_ms", "where points differ in it: a flow with the network's RTT, or a buffer in BDP", lambda s, p: True, _nobodys_rtt, if_varied=True),
    Need("network.buffer.bdp", "a path of which it is a frame or more", lambda s, p: s.network.buffer.bdp is not None, _less_than_a_frame, only_noted=True),
    Need("network.qdisc.target_ms", "codel, pie: a full buffer in which packets wait longer", _target, _waits_less("target_ms"), only_noted=True),
    Need("network.qdisc.ecn", ECN, _ecn_given, _no_ect),
    Need("network.qdisc.l4s_of", "fq_codel: network.qdisc.ce_threshold_ms; ect1: a flow that sends ECT(1)", lambda s, p: s.network.qdisc.kind == "fq_codel" and s.network.qdisc.l4s_of, _nobodys_packets),
    Need("network.qdisc.l4s_of", f"dualpi2: {ECN}", lambda s, p: s.network.qdisc.kind == "dualpi2" and s.network.qdisc.l4s_of == "ect", _no_ect),
    Need("network.qdisc.step_threshold_ms", f"a flow that sends what l4s_of says, {ECN}", _qdisc("step_threshold_ms"), _no_scalable_flow),
    Need("network.qdisc.coupling", ECN, _qdisc("coupling"), _no_ect),
    Need("network.qdisc.ack_filter", "ACKs that cross the queue", lambda s, p: s.network.qdisc.ack_filter not in (None, "off"), _no_acks),
    Need("network.qdisc.ce_threshold_ms", f"{ECN}; codel: a full buffer in which packets wait longer", _qdisc("ce_threshold_ms"), _ce_threshold),
    Need("network.qdisc.harddrop", f"network.qdisc.ecn: true, max_bytes within the buffer, {ECN}", _qdisc("harddrop"), _no_harddrop),
    Need(
        "network.qdisc.adaptive",
        "a tc before iproute2 5.7; with any later one it has no effect",
        _qdisc("adaptive"),
        lambda s, p: "tc since iproute2 5.7 hands it over where Linux does not look for it, and RED's probability stays (leave it out)",
    ),
    Need("network.qdisc.min_bytes", "a buffer that is larger", _qdisc("min_bytes"), _beyond_buffer("min_bytes")),
    Need("network.qdisc.max_bytes", "a buffer that is larger", _qdisc("max_bytes"), _beyond_buffer("max_bytes"), only_noted=True),
    Need("network.qdisc.flow_limit_packets", "a buffer that is larger", _qdisc("flow_limit_packets"), _flow_limit),
    Need("network.loss_place", "network.loss, or the loss of a change", lambda s, p: s.network.loss_place != "behind", _no_loss),
    Need("network.loss_burst_packets", "network.loss, or the loss of a change", lambda s, p: s.network.loss_burst_packets is not None, _no_loss),
    Need("network.policer.rate_mbit", "behind the bottleneck: a bottleneck that is faster", lambda s, p: s.network.policer is not None, _never_policed),
    Need("network.policer.burst_bytes", "behind the bottleneck: less than what exceeds the policer's rate in the run", lambda s, p: s.network.policer is not None, _never_empty),
    Need(
        "network.jitter.group",
        "a group of that number",
        lambda s, p: s.network.jitter is not None and s.network.jitter.group is not None,
        _jitter_group,
    ),
    Need(
        "network.data_path.jitter.order",
        "more jitter than a packet's time at the bottleneck",
        lambda s, p: (j := _data_jitter(s)) is not None and j.order == "free",
        _overtakes_nobody(lambda s: j.ms if (j := _data_jitter(s)) else 0.0),
    ),
    Need(
        "network.data_path.reordering.late_ms",
        "more than a packet's time at the bottleneck",
        lambda s, p: _reordering(s) is not None,
        _overtakes_nobody(lambda s: r.late_ms if (r := _reordering(s)) else 0.0),
    ),
    Need("network.changes.*.at_s", "a run that is longer", lambda s, p: True, _late_change),
    Need("network.changes.*.rate_mbit", "another rate before", _change("rate_mbit"), _changes_nothing("rate_mbit")),
    Need("network.changes.*.rtt_ms", "another RTT before, and a flow with the network's", _change("rtt_ms"), _changes_nothing("rtt_ms")),
    Need("network.changes.*.loss", "another loss before", _change("loss"), _changes_nothing("loss")),
    Need("hosts.noise.rtt_offset_us", "a flow whose RTT is not drawn from a range", lambda s, p: s.hosts.noise.rtt_offset_us not in (0, Noise().rtt_offset_us), _no_offset),
    Need(
        "hosts.receive_offload_us",
        "hosts.receive_offload: gro or gro-timer",
        lambda s, p: s.hosts.receive_offload_us is not None,
        lambda s, p: "" if s.hosts.receive_offload != "off" else "receive_offload is off (set it to gro or gro-timer)",
    ),
    Need("hosts.ecn", "a queue that marks, and a flow whose packets may be marked", lambda s, p: s.hosts.ecn != "off", _no_marks),
    Need("flows.*.ecn", "hosts.ecn with more than it, and a group whose packets may be marked", lambda s, p: s.flows[p[0]].ecn is not None, _group_ecn),
    Need("flows.*.cca", "for dctcp: hosts.ecn: on", lambda s, p: s.flows[p[0]].cca == "dctcp",
         lambda s, p: "" if s.hosts.ecn != "off" else "without ECN Linux runs reno in its place (set hosts.ecn: on, or cca: reno)"),
    Need("flows.*.start", "a count, no bytes, one RTT", lambda s, p: s.flows[p[0]].start != "in-turn", _start_together),
    Need("flows.*.start_s", "a run that is longer", lambda s, p: s.flows[p[0]].start_s > 0, _never_runs),
    Need("flows.*.params.ecn", "hosts.ecn: on", lambda s, p: s.flows[p[0]].params.get("ecn", "off") != "off",
         lambda s, p: "" if s.hosts.ecn != "off" else "the hosts do not negotiate ECN (set hosts.ecn: on)"),
    Need("flows.*.params.ecn_max_rtt_us", "flows.*.params.ecn: on", lambda s, p: "ecn_max_rtt_us" in s.flows[p[0]].params, _no_response_to_marks),
    *(
        Need(f"flows.*.params.{name}", f"flows.*.params.hystart: on{also}", _of_cubic(name), _no_hystart(name))
        for name, also in (("hystart_detect", ""), ("hystart_low_window", ", and hystart_detect 1, 2 or 3"), ("hystart_ack_delta_us", ", and hystart_detect 1 or 3"))
    ),
    Need("flows.*.traffic.offered_mbit", "trace: model",
         lambda s, p: (t := s.flows[p[0]].traffic) is not None and t.offered_mbit != OFFERED_MBIT, _trace_has_its_load),
)  # fmt: skip


def _of_network(need: Need) -> Need:
    """The same of the network's own queue: that of either direction, or of some of several links. It has an effect if it has one on any."""

    def without(s: Scenario, place: Place) -> str:
        links, part = s.network.links, need.field.split(".")[1]
        users = _queues(s)
        if links is not None:
            users = [queue for queue, link in zip(users, links, strict=True) if getattr(link, part) is None]
        elif s.network.reverse is not None:
            users = [s] if _goes_forward(s) else []
        whys = [need.without(queue, place) for queue in users]
        return "" if "" in whys else next(iter(whys), "")  # a queue that is not there has a line of its own

    return need._replace(without=without)


def _of_one_link(need: Need) -> Need:
    """The same of a link's own queue."""
    part = need.field.split(".")[1]

    def given(s: Scenario, place: Place) -> Any:
        return getattr((s.network.links or [])[place[0]], part) is not None and need.given(s.of_link(place[0]), [])

    def without(s: Scenario, place: Place) -> str:
        return need.without(_of_one(s, place[0]), [])

    return need._replace(field=need.field.replace("network.", "network.links.*.", 1), given=given, without=without)


def _of_reverse(need: Need) -> Need:
    """The same of the other direction's queue, where it has one of its own."""

    def given(s: Scenario, place: Place) -> Any:
        return s.network.reverse is not None and need.given(s.towards("reverse"), place)

    def without(s: Scenario, place: Place) -> str:
        return need.without(_turned(s), place)

    field = need.field.replace("network.", "network.reverse.", 1)
    return need._replace(field=field, given=given, without=without)


OF_A_QUEUE = ("network.qdisc.", "network.buffer.")
QUEUE_NEEDS = tuple(need for need in NEEDS if need.field.startswith(OF_A_QUEUE))
ALL_NEEDS = (
    *(_of_network(need) if need in QUEUE_NEEDS else need for need in NEEDS),
    *map(_of_reverse, QUEUE_NEEDS),
    *map(_of_one_link, QUEUE_NEEDS),
)


# Lists in a scenario: a need of NAME.* is looked at for each of their entries.
LISTS: dict[str, Callable[[Scenario], Sequence[Any]]] = {
    "flows": lambda s: s.flows,
    "network.changes": lambda s: s.network.changes,
    "network.links": lambda s: s.network.links or [],
}


def _given(points: Sequence[Point]) -> Iterator[tuple[Need, Place, Point]]:
    """What of the points' scenarios the table has a line for."""
    scenarios = [point.scenario for point in points]
    needs = [
        (n, next((name for name in LISTS if n.field.startswith(f"{name}.*")), ""))
        for n in ALL_NEEDS
        if not n.if_varied or len({str(_value(s, n.field)) for s in scenarios}) > 1
    ]
    for point, scenario in zip(points, scenarios, strict=True):
        places: dict[str, list[Place]] = {name: [[i] for i in range(len(of(scenario)))] for name, of in LISTS.items()}
        places[""] = [[]]
        for need, name in needs:
            for place in places[name]:
                if need.given(scenario, place):
                    yield need, place, point


def _value(scenario: Scenario, path: str) -> Any:
    value: Any = scenario
    for part in path.split("."):
        value = (
            value[int(part)]
            if isinstance(value, list)
            else value[part]
            if isinstance(value, dict)
            else getattr(value, part)
        )
    return value


def _shown(value: Any) -> str:
    if isinstance(value, Strict):
        return ""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


class Setting(NamedTuple):
    """Where a field has its value at a point."""

    line: str  # as it stands behind the file's name; empty if there is none
    by: str  # in words, if not the file's own value


def refuse_without_effect(
    points: Sequence[Point], where: str, setting_of: Callable[[Point, str], Setting] | None = None
) -> None:
    """UserError naming each field that has no effect at any of the points at which it is given.

    Args:
        setting_of: where a field has its value at a point.
    """
    wrong = []
    for field, found, given, noted in _by_field(points):
        if not noted and len(found) == given:
            point, text = found[0]
            line, by = setting_of(point, field) if setting_of else ("", "")
            wrong.append(f"{where}{line}: {text}{by and f' ({by})'}")
    if wrong:
        raise UserError("\n".join(wrong))


def without_effect(points: Sequence[Point]) -> list[str]:
    """In words: each field that has no effect at points at which it is given, or less than it seems.

    At all of them: of a file's own values only, which no point of its sweep has (refuse_without_effect())."""
    return [
        found[0][1] + (f" (at {len(found)} of {given} points)" if given > 1 else "")
        for _, found, given, _ in _by_field(points)
    ]


def _by_field(points: Sequence[Point]) -> list[tuple[str, list[tuple[Point, str]], int, bool]]:
    """Of each field that has no effect somewhere: its path, each such point with what there is to say, at how many it is given,
    and whether it is only noted."""
    found: dict[str, list[tuple[Point, str]]] = {}
    noted: dict[str, bool] = {}
    given: Counter[str] = Counter()
    for need, place, point in _given(points):
        path = need.field.replace("*", str(place[0])) if place else need.field
        given[path] += 1
        if why := need.without(point.scenario, place):
            what = "is beyond what it can have an effect on" if need.only_noted else "would have no effect"
            words = " ".join(filter(None, (path, _shown(_value(point.scenario, path)), f"{what}: {why}")))
            found.setdefault(path, []).append((point, words))
            noted[path] = need.only_noted
    return [(path, said, given[path], noted[path]) for path, said in found.items()]
