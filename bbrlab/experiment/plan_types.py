"""The guest's plan, field by field; docs/reference/plan.md says what each means."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Direction = Literal["forward", "reverse"]
Side = Literal["s1", "s2"]
SNAPLEN = 128  # bytes to keep of a packet: the headers of Ethernet, IPv6 and TCP with all of its options are 114
Trace = Literal["", "acks", "changes"]  # of what records are kept (bbrlab.run.run.run_point)


class HostPlan(TypedDict):
    """A host, and the delay and loss of packets towards it: ACKs to a sender, data to a receiver."""

    name: str
    side: Side
    switch: str
    ip: str
    sends: bool
    receives: bool
    delay_us: float
    jitter_kind: Literal["slotted", "per-packet", "aggregated"] | None
    jitter_us: float
    processing_us: float
    rtt_offset_us: float
    pacing: Literal["internal", "fq"]
    network_rtt: bool
    sysctls: NotRequired[dict[str, int]]
    overtakes: NotRequired[bool]


class LinkPlan(TypedDict):
    """A bottleneck, its queue, and how calibration fills it."""

    direction: Direction
    device: str
    rate_bps: int
    buffer_bytes: int
    qdisc: list[str]
    burst: bool
    burst_from: str
    burst_to_ip: str
    link: NotRequired[int]
    constant: NotRequired[bool]
    qdisc_options: NotRequired[str]


class PolicerPlan(TypedDict):
    """A token bucket on the egress of a switch port, before its queue."""

    device: str
    rate_bps: int
    burst_bytes: int


class OpportunitiesPlan(TypedDict):
    """Bottlenecks that send at given times only."""

    field: str  # of the scenario, that asks for it
    devices: list[str]
    file: str  # beside the plan: uint64 each, ns since first_ns; ascending
    bytes: int
    first_ns: int  # time of the first, since the start
    period_ns: int


class ChangePlan(TypedDict):
    """A change at one instant; a field that is None stays."""

    at_ns: int
    rate_bps: int | None
    delay_us: dict[str, float] | None
    loss: float | None


class LatePlan(TypedDict):
    """Ports at whose egress packets are held back, each independently with the same probability."""

    devices: list[str]
    share: float
    late_us: float


class ProbePlan(TypedDict):
    """A sender and a receiver of packets that measure the delay of data before the experiment."""

    host: str
    receiver: str


class PingPlan(TypedDict):
    """A path whose base RTT is measured before the experiment."""

    host: str
    address: str


class TransferPlan(TypedDict):
    """An iperf3 client and its server."""

    id: int
    client: str
    server: str
    server_ip: str
    port: int
    cca: str
    streams: int
    start_ns: int
    stop_ns: int
    bytes: int | None
    receive_lowat_bytes: int
    together: NotRequired[str]


class ParameterSetPlan(TypedDict):
    """A congestion control that the guest has a module register under its own name, before anything starts."""

    module: str
    name: str
    base: str
    values: dict[str, str]


class ShortFlowsPlan(TypedDict):
    """A group of short flows, with senders and receiver."""

    group: int
    clients: list[str]
    server: str
    server_ip: str
    port: int
    cca: str
    rtt_ms: float
    workload: str


class PromptPlan(TypedDict):
    """What a user may do at the prompt (mininet/prompt.py)."""

    ccas: dict[str, str]
    rate_mbit_max: float
    rtt_ms_max: float
    network_rtt_hosts: list[str]


class SeveralPlan(TypedDict):
    """The part of one of several machines in an experiment (mininet/several.py)."""

    role: Literal["bottleneck", "senders"]  # whether it has the bottleneck, or senders only
    hosts: list[str]  # those that send from other machines than the bottleneck's; in a senders' machine its own
    nics: list[int]  # for each the last number of its network device's address
    elsewhere: list[str]  # hosts whose clients this machine does not start
    # receiver, meet_at: the host that all machines can reach, and its address
    receiver: str
    meet_at: str
    machines: list[str]  # for each machine of senders the address of its first host


class TapPlan(TypedDict):
    """An interface whose packets are kept."""

    host: str | None
    device: str


class CapturePlan(TypedDict):
    """The interfaces whose packets are kept (mininet/capture.py)."""

    snaplen: int
    frame_bytes: int
    frames: int
    interfaces: list[TapPlan]


class GuestPlan(TypedDict):
    """plan.json."""

    format: int
    virtual: bool
    own_machine: bool
    seed: int
    sample_hz: float
    duration_ns: int
    window_ns: list[int]
    switch_links: list[tuple[str, str]]
    hosts: list[HostPlan]
    bottlenecks: list[LinkPlan]
    segmentation: Literal["off", "nic", "router"]
    interrupt_delay_us: float | None
    pacing_late_ns: int
    gro_timer_us: float | None
    sysctls: dict[str, int | str]
    loss: float
    loss_devices: list[str]
    changes: list[ChangePlan]
    pings: list[PingPlan]
    transfers: list[TransferPlan]
    short_flows: list[ShortFlowsPlan]
    preload: str | None
    trace_acks: bool
    ccas: list[str]
    parameter_sets: list[ParameterSetPlan]
    mtu_bytes: NotRequired[int]
    ip_version: NotRequired[Literal[4, 6]]
    loss_burst_packets: NotRequired[float]
    late: NotRequired[LatePlan]
    probes: NotRequired[list[ProbePlan]]
    opportunities: NotRequired[list[OpportunitiesPlan]]
    policers: NotRequired[list[PolicerPlan]]
    prompt: NotRequired[PromptPlan]
    several: NotRequired[SeveralPlan]
    capture: NotRequired[CapturePlan]
