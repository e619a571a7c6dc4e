"""The plan's bottlenecks, changes of them and of the path, and the paths that are pinged."""

from __future__ import annotations

from bbrlab.experiment.hosts import Hosts, link_switches
from bbrlab.experiment.plan_types import (
    ChangePlan,
    Direction,
    HostPlan,
    LatePlan,
    LinkPlan,
    OpportunitiesPlan,
    PingPlan,
    PolicerPlan,
    ProbePlan,
    Side,
)
from bbrlab.experiment.qdisc import qdisc_options, qdisc_words
from bbrlab.scenario.schema import Flow, Network, Scenario

NS = 1_000_000_000
DEVICES: dict[Direction, str] = {"forward": "s1-s2", "reverse": "s2-s1"}
RECEIVED_AT: dict[Side, Direction] = {
    "s1": "reverse",
    "s2": "forward",
}  # of a receiver's side, the direction of its flows
DROPS_EARLY = ("red",)  # a burst does not fill its buffer


def bottlenecks(scenario: Scenario, hosts: Hosts) -> list[LinkPlan]:
    """The bottlenecks: one for each direction with flows or with its own link in the scenario; or each of several links."""
    if scenario.network.links is not None:
        return _in_a_row(scenario, hosts)
    directions = [d for d in DEVICES if d in hosts.receivers or (d == "reverse" and scenario.network.reverse)]
    return [_bottleneck(scenario, hosts, direction) for direction in directions]


def _bottleneck(scenario: Scenario, hosts: Hosts, direction: Direction) -> LinkPlan:
    network = scenario.network.towards(direction)
    if direction in hosts.receivers:
        burst_from, burst_to = hosts.first_sender(direction), hosts.receivers[direction]
    else:  # ACKs alone
        burst_from, burst_to = hosts.receivers["forward"], hosts.first_sender("forward")
    link = _link(network, direction, DEVICES[direction], burst_from, burst_to)
    if network is not scenario.network:
        link["constant"] = True
    return link


def _in_a_row(scenario: Scenario, hosts: Hosts) -> list[LinkPlan]:
    links = scenario.network.bottlenecks
    ends = hosts.add_burst_hosts(len(links))
    plans = []
    for number, (network, switches) in enumerate(zip(links, link_switches(len(links)), strict=True)):
        link = _link(network, "forward", "-".join(switches), ends[number], ends[number + 1])
        plans.append(link | {"link": number})
    return plans


def _link(network: Network, direction: Direction, device: str, burst_from: HostPlan, burst_to: HostPlan) -> LinkPlan:
    """A bottleneck, by the network as it is."""
    link: LinkPlan = {
        "direction": direction,
        "device": device,
        "rate_bps": round(network.rate_mbit * 1e6),
        "buffer_bytes": network.buffer_bytes,
        "qdisc": qdisc_words(network),
        "burst": network.qdisc.kind not in DROPS_EARLY,
        "burst_from": burst_from["name"],
        "burst_to_ip": burst_to["ip"],
    }
    if options := qdisc_options(network):
        link["qdisc_options"] = options.hex()
    return link


def name_of(link: LinkPlan) -> str:
    """A bottleneck's name: its direction, or ``link0``, ``link1`` ... of several in a row."""
    return f"link{link['link']}" if "link" in link else link["direction"]


def crossed_by(scenario: Scenario, flow: Flow) -> list[tuple[str, Scenario]]:
    """(name_of(), scenario_of()) of each bottleneck that a group crosses, in their order."""
    if scenario.network.links is None:
        return [(flow.direction, scenario.towards(flow.direction))]
    return [(f"link{number}", scenario.of_link(number)) for number in scenario.path_of(flow)]


def scenario_of(scenario: Scenario, link: LinkPlan) -> Scenario:
    """The scenario with a bottleneck as its network."""
    return scenario.of_link(link["link"]) if "link" in link else scenario.towards(link["direction"])


def policers(scenario: Scenario, hosts: list[HostPlan]) -> list[PolicerPlan]:
    """The policers: one for each direction with flows, before the bottleneck's queue or at the port towards the receiver."""
    policer = scenario.network.policer
    if policer is None:
        return []
    return [
        {
            "device": DEVICES[RECEIVED_AT[host["side"]]]
            if policer.place == "before"
            else f"{host['switch']}-{host['name']}",
            "rate_bps": round(policer.rate_mbit * 1e6),
            "burst_bytes": policer.burst_bytes,
        }
        for host in hosts
        if host["receives"]
    ]


def opportunities(scenario: Scenario, links: list[LinkPlan]) -> list[tuple[OpportunitiesPlan, bytes]]:
    """The bottlenecks that send at given times only, and the file with these of each: those of one period within the run."""
    ways = [("network.trace", scenario.network)]
    if scenario.network.reverse:
        ways.append(("network.reverse.grants", scenario.network.towards("reverse")))
    entries: list[tuple[OpportunitiesPlan, bytes]] = []
    for field, network in ways:
        trace = network.opportunities
        devices = [link["device"] for link in links if ("constant" in link) == (network is not scenario.network)]
        if trace is None or not devices:
            continue
        first_ns = int(trace.times_ns[0])
        within = trace.times_ns[trace.times_ns <= max(first_ns, round(scenario.duration_s * NS))] - first_ns
        entry: OpportunitiesPlan = {
            "field": field,
            "devices": devices,
            "file": f"opportunities-{len(entries)}.u64",
            "bytes": trace.bytes,
            "first_ns": first_ns,
            "period_ns": trace.period_ns,
        }
        entries.append((entry, within.astype("<u8").tobytes()))
    return entries


def late_packets(scenario: Scenario, hosts: list[HostPlan]) -> LatePlan:
    """The ports at which data packets are held back: towards the switch of each side's receivers."""
    path = scenario.network.data_path
    assert path is not None and path.reordering is not None
    return {
        "devices": sorted({f"{host['side']}-{host['switch']}" for host in hosts if host["receives"]}),
        "share": path.reordering.share,
        "late_us": path.reordering.late_ms * 1000,
    }


def probes(hosts: Hosts) -> list[ProbePlan]:
    """The probes of the data's delay before the experiment: from one sender in each direction."""
    return [
        {"host": hosts.first_sender(direction)["name"], "receiver": receiver["name"]}
        for direction, receiver in hosts.receivers.items()
    ]


def pings(hosts: Hosts, links: list[LinkPlan]) -> list[PingPlan]:
    """The pings: from each sender to the receiver of its flows, and along the way of each burst of a host without flows."""
    planned: list[PingPlan] = [
        {"host": h["name"], "address": hosts.receiver_of(h)["ip"]} for h in hosts.specs if h["sends"]
    ]
    return planned + [{"host": link["burst_from"], "address": link["burst_to_ip"]} for link in links if "link" in link]


def changes(scenario: Scenario, hosts: Hosts) -> list[ChangePlan]:
    """The changes during the run; a new RTT applies to hosts that have the network's."""
    of_the_network = {h["name"]: h["rtt_offset_us"] for h in hosts.specs if h["sends"] and h["network_rtt"]}
    return [
        {
            "at_ns": round(c.at_s * NS),
            "rate_bps": None if c.rate_mbit is None else round(c.rate_mbit * 1e6),
            "delay_us": None
            if c.rtt_ms is None
            else {name: (c.rtt_ms - hosts.data_delay_ms) * 1000 + us for name, us in of_the_network.items()},
            "loss": c.loss,
        }
        for c in scenario.network.changes
    ]
