"""The types of the guest's report.json (written by mininet/guest.py)."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Reception(TypedDict):
    """A host's interface."""

    # tso, gso, gro: whether these offloads are on
    tso: bool
    gso: bool
    gro: bool
    gro_timer_ns: int  # its gro_flush_timeout
    # packets, drops: packets that arrived, and those that it dropped before any protocol
    packets: int
    drops: int
    tcp_segments: int  # received by the host's TCP, merged packets counted as one
    # ipv4_packets, ipv6_packets: what the host's IP received of each version, where hosts have IPv6; merged packets counted as one
    ipv4_packets: NotRequired[int]
    ipv6_packets: NotRequired[int]


class Burst(TypedDict):
    """The result of a burst through a bottleneck."""

    rate_bps: float | None  # at which it left; None if its departures could not be timed
    buffer_bytes: int  # the largest backlog; the buffer's size only if it was ``filled``
    # Whether it overflowed. If it should have and did not, the link carried packets away meanwhile (real time), or the buffer is
    # larger than planned
    filled: bool
    packets: int


class Qdisc(TypedDict):
    """A qdisc's counters: packets that left it, and that it dropped."""

    device: str
    kind: str
    handle: str
    packets: int
    drops: int


class Policer(TypedDict):
    """A policer: packets and bytes of frames that arrived and passed."""

    device: str
    options: str  # its attribute TCA_ACT_OPTIONS in hex
    offered_packets: int
    offered_bytes: int
    passed_packets: int
    passed_bytes: int
    drops: int


class Late(TypedDict):
    """A port at which some packets are held back: the number of all packets, and of late ones."""

    packets: int
    late: int


class Setting(TypedDict):
    """A qdisc or class in the kernel: ``options`` is the attribute TCA_OPTIONS in hex."""

    device: str
    kind: str
    handle: str
    parent: str
    options: str


class HostSettings(TypedDict):
    """A host's settings in the kernel."""

    qdiscs: list[Setting]
    sysctls: dict[str, str]
    # gso_max_segs, deferred_interrupts: of its interface (the latter is napi_defer_hard_irqs)
    gso_max_segs: int
    deferred_interrupts: int


class Settings(TypedDict):
    """The settings in the kernel after the experiment."""

    ports: list[Setting]  # qdiscs, and the bottlenecks' classes, of the switches' side
    tcp_mem: str
    pacing_late_ns: int | None  # how late a paced packet may leave; None: this kernel has no such setting
    hosts: dict[str, HostSettings]


class LossCounts(TypedDict):
    """Of all ports where packets are lost at random, since they were made: how many packets came, and how many were lost."""

    came: int
    lost: int


class PathStep(TypedDict):
    """A change of the path's delay or loss, or the end of the run."""

    ports: list[Setting]  # what the kernel then had: of a port whose delay it changes, and of one whose loss it changes
    losses: LossCounts | None  # until then; None: it does not change the loss


class TapReport(TypedDict):
    """An interface whose packets were kept: the number of packets, and of those for which the ring had no room."""

    packets: int
    dropped: int


class CaptureReport(TypedDict):
    """The capture of packets."""

    real_ahead_ns: int  # by how much the clock of the packets' stamps is ahead of the monotonic one
    interfaces: list[TapReport]  # as the plan has them


class Report(TypedDict):
    """report.json."""

    # kernel, kernel_version: what ``uname -r`` and ``uname -v`` print in the guest
    kernel: str
    kernel_version: str
    ping_ms: list[float]  # RTT of the idle path of each of the plan's pings, in ms
    burst: list[Burst | None]  # for each bottleneck the result of calibration.burst(); None where it cannot measure
    start_ns: int  # of the experiment, on the guest's monotonic clock
    duration_ns: NotRequired[int]  # of a play, which somebody ended
    # qdiscs_before, qdiscs: every qdisc and its drops before and after the experiment
    qdiscs_before: list[Qdisc]
    qdiscs: list[Qdisc]
    # Of each change of the path's delay or loss what came of it, and the run's end
    path_steps: NotRequired[list[PathStep]]
    policers: NotRequired[list[Policer]]  # those of the path, at the end of the experiment
    # Of each of the plan's probes the delays of its packets, before the experiment
    data_delays_us: NotRequired[list[list[float]]]
    late: NotRequired[dict[str, Late]]  # {device: Late} at the end of the experiment
    host_drops: dict[str, dict[str, int]]  # {host: {counter: packets that it dropped}}
    # received_before, received: {host: Reception} before and after the experiment
    received_before: dict[str, Reception]
    received: dict[str, Reception]
    settings: Settings
    switch_misses: int  # packets for which Open vSwitch had no flow
    parameters: dict[str, dict[str, str]]  # {kernel's name of a CCA: {module parameter: value}}
    congestion_control: list[str]  # the kernel's names of its CCAs
    traffic_failures: list[tuple[int | str, str]]  # (number of a transfer, or which short flows; what its program said)
    capture: NotRequired[CaptureReport]  # of packets, if they were kept
