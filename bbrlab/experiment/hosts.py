"""The hosts of a dumbbell, one for each path, and the kernel settings of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bbrlab.base.errors import UserError
from bbrlab.experiment.plan_types import Direction, HostPlan, Side
from bbrlab.scenario.rates import highest_mbit
from bbrlab.scenario.schema import Flow, Scenario

# Random loss before the bottleneck stands between a switch of the senders' own and the one with the bottleneck.
OUTER_SWITCH: dict[Side, str] = {"s1": "s3", "s2": "s4"}
# Packets that come late stand between the bottleneck's switch and one of the receivers' own.
RECEIVERS_SWITCH: dict[Side, str] = {"s1": "s5", "s2": "s6"}
# "Never the limit": room for this many times the largest possible flight (BDP + buffer) in the receiver's and sender's
# buffer, each byte of payload taking up to about twice its size in kernel memory.
WINDOW_FLIGHTS = 4
MIN_WINDOW_BYTES = 64 << 20
# A sender whose buffer starts large is woken seldom; shared among flows so that a guest's memory stays bounded.
SEND_BUFFER_TOTAL_BYTES = 8 << 20
TCP_ECN = {"off": 0, "on": 1, "accurate": 3}


def has_loss(scenario: Scenario) -> bool:
    """Whether packets are lost at random at any time of the run."""
    return scenario.network.loss > 0 or any(c.loss is not None for c in scenario.network.changes)


def loss_devices(scenario: Scenario, specs: list[HostPlan]) -> list[str]:
    """The switch ports on whose egress packets are lost at random: towards receivers, or towards the bottleneck."""
    if not has_loss(scenario):
        return []
    if scenario.network.loss_place == "before":
        return sorted({f"{h['switch']}-{h['side']}" for h in specs if h["sends"]})
    return [f"{h['switch']}-{h['name']}" for h in specs if h["receives"]]


def switch_of(number: int) -> str:
    """The name of the switch before a link; with the next number, that of the switch behind it."""
    return f"s{number + 1}"


def link_switches(links: int) -> list[tuple[str, str]]:
    """The switches before and behind each link of a row."""
    return [(switch_of(number), switch_of(number + 1)) for number in range(links)]


def switch_links(scenario: Scenario, specs: list[HostPlan]) -> list[tuple[str, str]]:
    """The cables between switches; the bottlenecks' are the first."""
    inner = link_switches(len(scenario.network.bottlenecks))
    if len(inner) > 1:
        return inner
    used = {h["switch"] for h in specs}
    return [*inner, *((o, i) for outer in (OUTER_SWITCH, RECEIVERS_SWITCH) for i, o in outer.items() if o in used)]


class Hosts:
    """Creates hosts: one for each (direction, RTT, jitter, own RTT or the network's, links), which is each delay path, ECN and machine.

    Args:
        scenario: what to run.
        added_ms: of each group, the addition to its RTT (scenario.draws.draw_added_rtts).
        machines: {group: the machine that its senders are in}, of those that are not in the first.
    """

    def __init__(self, scenario: Scenario, added_ms: Sequence[float], machines: Mapping[int, int] | None = None):
        self.scenario, self._added_ms, self._machines = scenario, added_ms, machines or {}
        self.specs: list[HostPlan] = []
        self.receivers: dict[
            Direction, HostPlan
        ] = {}  # who receives all its flows; with several links the first of them
        self._senders: dict[tuple[Direction, float, bool, bool, int, int, str | None, range], HostPlan] = {}
        self._receivers: dict[tuple[Direction, range], HostPlan] = {}
        self._ways: dict[str, tuple[Direction, range]] = {}
        self._of_address: dict[str, str] = {}  # the name of each one's host
        self._loss_first = has_loss(scenario) and scenario.network.loss_place == "before"
        path = scenario.network.data_path
        self.data_delay_ms = path.delay_ms if path else 0.0  # the part of each RTT that delays data

    def _new(self, side: Side, *, sends: bool, path: range) -> HostPlan:
        letter, net = {"s1": ("h", 1), "s2": ("r", 2)}[side]
        number = sum(h["side"] == side for h in self.specs) + 1
        inner = switch_of(path[0] if side == "s1" else path[-1] + 1)
        switch = self._outer_switch(side, sends=sends) or inner
        return self._add(letter, net, number, side, switch, sends=sends, receives=not sends)

    def _add(
        self, letter: str, net: int, number: int, side: Side, switch: str, *, sends: bool, receives: bool
    ) -> HostPlan:
        """UserError if the addresses of a side are all taken."""
        name, ip = f"{letter}{number}", self._address(net * 16 + number // 250, number % 250 + 1)
        if (other := self._of_address.setdefault(ip, name)) != name or net * 16 + number // 250 > 255:
            raise UserError(
                f"{self.scenario.name}: flows: host {name} would have the address {ip}, which is {f'that of {other}' if other != name else 'none'}: at most "
                f"{number - 1} hosts can be on one side, one for each RTT of each group (choose fewer flows with RTTs of their own)"
            )
        spec: HostPlan = {
            "name": name,
            "side": side,
            "switch": switch,
            "ip": ip,
            "sends": sends,
            "receives": receives,
            "delay_us": 0.0,
            "jitter_kind": None,
            "jitter_us": 0.0,
            "processing_us": self.scenario.hosts.noise.processing_us if sends else 0.0,
            "rtt_offset_us": 0.0,
            "pacing": self.scenario.hosts.pacing,
            "network_rtt": False,
        }
        self.specs.append(spec)
        return spec

    def _address(self, net: int, number: int) -> str:
        """Of 10.0.0.0/16, or of fd00::/64 (RFC 4193)."""
        return f"fd00::{net:x}:{number:x}" if self.scenario.network.ip_version == 6 else f"10.0.{net}.{number}"

    def _outer_switch(self, side: Side, *, sends: bool) -> str | None:
        path = self.scenario.network.data_path
        if sends:
            return OUTER_SWITCH[side] if self._loss_first else None
        return RECEIVERS_SWITCH[side] if path and path.reordering else None

    def sender(self, group: int, flow: Flow, rtt_ms: float, copy: int = 0) -> HostPlan:
        """The host that sends a group's flows with one RTT; ``copy`` numbers hosts that share them.

        Args:
            rtt_ms: with the group's offset.
        """
        jitter = self.scenario.network.jitter
        shaken = jitter is not None and jitter.group in (None, group)
        path = self.scenario.path_of(flow)
        key = (
            flow.direction,
            rtt_ms,
            shaken,
            flow.has_networks_rtt,
            copy,
            self._machines.get(group, 0),
            flow.ecn,
            path,
        )
        if key not in self._senders:
            spec = self._new("s1" if flow.direction == "forward" else "s2", sends=True, path=path)
            spec["delay_us"], spec["network_rtt"] = (rtt_ms - self.data_delay_ms) * 1000, flow.has_networks_rtt
            spec["rtt_offset_us"] = self._added_ms[group] * 1000
            if shaken and jitter:
                spec["jitter_kind"], spec["jitter_us"] = jitter.kind, jitter.ms * 1000
            if flow.ecn is not None:
                spec["sysctls"] = {"net.ipv4.tcp_ecn": TCP_ECN[flow.ecn]}
            self._senders[key] = spec
            self._ways[spec["name"]] = flow.direction, path
        return self._senders[key]

    def receiver_of(self, sender: HostPlan) -> HostPlan:
        """The host that receives a sender's flows."""
        return self._receivers[self._ways[sender["name"]]]

    def add_burst_hosts(self, links: int) -> list[HostPlan]:
        """Add a host at each switch of a row of links, for the bursts before the experiment."""
        return [
            self._add("b", 3, number + 1, "s1", switch_of(number), sends=False, receives=False)
            for number in range(links + 1)
        ]

    def first_sender(self, direction: Direction) -> HostPlan:
        """The first sending host of a direction."""
        return next(spec for key, spec in self._senders.items() if key[0] == direction)

    def receiver(self, flow: Flow) -> HostPlan:
        """The host that receives all flows of a direction; with several links, all over the same links."""
        key = flow.direction, self.scenario.path_of(flow)
        if key not in self._receivers:
            spec = self._new("s2" if flow.direction == "forward" else "s1", sends=False, path=key[1])
            spec["delay_us"] = self.data_delay_ms * 1000
            path = self.scenario.network.data_path
            if path and path.jitter:
                spec["jitter_kind"], spec["jitter_us"] = path.jitter.kind, path.jitter.ms * 1000
                if path.jitter.order == "free":
                    spec["overtakes"] = True
            self._receivers[key] = spec
            self.receivers.setdefault(flow.direction, spec)
        return self._receivers[key]


def _traced_mbit(scenario: Scenario) -> list[float]:
    return [highest_mbit(scenario.network)] if scenario.network.opportunities else []


def sysctls(scenario: Scenario, rtt_max_ms: float, flow_count: int) -> dict[str, int | str]:
    """Kernel settings of every end host."""
    links = scenario.network.bottlenecks
    rates = [*(link.rate_mbit for link in links), *_traced_mbit(scenario)] + [
        c.rate_mbit for c in scenario.network.changes if c.rate_mbit
    ]
    rtts = [rtt_max_ms] + [c.rtt_ms + scenario.network.links_rtt_ms for c in scenario.network.changes if c.rtt_ms]
    jitter, path = scenario.network.jitter, scenario.network.data_path
    longest_ms = max(rtts) + (jitter.ms if jitter else 0.0) + (path.varies_ms if path else 0.0)
    flight = max(rates) * 1e6 / 8 * longest_ms * 1e-3 + sum(link.buffer_bytes for link in links)
    if scenario.network.reverse:  # with ACKs that wait for each other; and flows that go that way
        acks = scenario.network.towards("reverse")
        waits_s = (longest_ms + acks.grants_ms) * 1e-3 + acks.buffer_bytes * 8e-6 / acks.rate_mbit
        flight = max(rates + [acks.rate_mbit]) * 1e6 / 8 * waits_s + scenario.network.buffer_bytes + acks.buffer_bytes
    window = min(1 << 30, max(MIN_WINDOW_BYTES, int(WINDOW_FLIGHTS * flight)))
    hosts = scenario.hosts
    rmem = hosts.rmem_max_bytes or max(window, hosts.rmem_initial_bytes or 0)
    wmem = hosts.wmem_max_bytes or max(window, hosts.wmem_initial_bytes or 0)
    rmem_initial = hosts.rmem_initial_bytes or rmem
    wmem_initial = hosts.wmem_initial_bytes or min(max(64 << 10, SEND_BUFFER_TOTAL_BYTES // flow_count), wmem)
    return {
        "net.ipv4.tcp_ecn": TCP_ECN[hosts.ecn],
        "net.ipv4.tcp_no_metrics_save": 1,
        "net.ipv4.tcp_rmem": f"4096 {rmem_initial} {rmem}",
        "net.ipv4.tcp_wmem": f"4096 {wmem_initial} {wmem}",
    }
