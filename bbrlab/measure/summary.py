"""The types of summary.json (fields: docs/reference/results.md; reader: results/run_folder.py)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from bbrlab.kernel.built import KernelEntry
from bbrlab.measure.checks.check import CheckEntry
from bbrlab.measure.checks.real_time import RealTimeEntry

Spread = dict[str, float | None]


class GroupEntry(TypedDict):
    """A flow group's identity. The entry also has its metrics (metrics.GROUP), which Metric.of_group() reads."""

    cca: str
    count: int  # its flows; of short ones those that began a transmission in the window
    direction: Literal["forward", "reverse"]


class _FiniteFlow(TypedDict, total=False):
    completion_s: float | None


class FlowEntry(_FiniteFlow):
    """A long flow. The entry also has BBR's own values (long_flows.LongFlow.bbr)."""

    flow: int
    group: int
    cca: str
    base_rtt_ms: float  # as the run had it, with its group's offset (hosts.noise), without what hosts take
    goodput_mbit: float
    # Over the whole run; of a flow with a size data alone, else with SYN and iperf3's cookie (38 bytes)
    delivered_bytes: int
    retransmits: int
    loss: float | None
    loss_over_delivered: float | None
    ecn_marked: float | None
    # ``min``, and numbers.spread_of() the smoothed RTT; as the window and packets in flight None if nothing of it was delivered in
    # the window
    rtt_ms: Spread
    cwnd_packets: float | None
    in_flight_packets: float | None
    pipe_packets: float | None
    first_sample_s: float | None  # time of its first sample; None without one
    first_data_s: float | None  # when its first byte of data was sent (flow_counters.FlowCounters.first_data_s)


class BottleneckEntry(TypedDict):
    """A bottleneck's size. The entry also has the metrics of the run (metrics.RUN), which Metric.of_run() reads."""

    buffer_bytes: int


class LinkEntry(BottleneckEntry):
    """One of several bottlenecks in a row."""

    link: int  # its number in network.links
    rate_mbit: float
    groups: list[int]  # the flow groups that cross it, of whose goodput its utilisation is


class _Sometimes(TypedDict, total=False):
    bottleneck_reverse: (
        BottleneckEntry  # the other one, if flows run in both directions or ``network.reverse`` is given
    )
    links: list[LinkEntry]
    real_time: RealTimeEntry  # of a backend in real time (qemu, host): the quality of its time
    # {index of a group: the kernel of its senders}, of those that have one of their own
    sender_kernels: dict[str, KernelEntry]


class Measured(_Sometimes):
    """The measured part of a summary (summarise.summarise())."""

    groups: list[GroupEntry]
    flows: list[FlowEntry]
    bottleneck: BottleneckEntry  # the one that the first group crosses; of several links the first of them
    jain_index: float | None  # of all long flows


class Summary(Measured):
    """summary.json."""

    scenario: str
    paper: str
    figure: str
    values: dict[str, Any]
    seed: int
    backend: str
    # virtual_s, window_s: length of the run and the window of its metrics, in s of virtual time (of real time where the backend
    # has no other)
    virtual_s: Annotated[float, Field(gt=0)]
    window_s: Annotated[list[float], Field(min_length=2, max_length=2)]
    # Real seconds that it took, in virtual time without those that it waited for a core; None until it is over
    wall_s: float | None
    kernel: KernelEntry
    checks: list[CheckEntry]  # the self-checks (checks.suite.run_checks())
    ok: bool  # whether none of them failed


def path_words(summary: Measured, group: int) -> str:
    """The links that a group crosses, to follow its name: ", links 0-2"; empty if there is one bottleneck."""
    crossed = [link["link"] for link in summary.get("links", []) if group in link["groups"]]
    if not crossed:
        return ""
    return f", link {crossed[0]}" if len(crossed) == 1 else f", links {crossed[0]}-{crossed[-1]}"


class EventEntry(TypedDict, total=False):
    """Something that changed in a play."""

    # at_s, took_s: when it began, and how long it took
    at_s: float
    took_s: float
    command: str | None  # the line at the prompt; None: it was planned in the scenario, or happened by itself
    what: str  # "start", "stop", "end" (by itself), "change", or "other": a command that may have done anything
    # flow, group: whose, as the prompt calls it, and the index of its group in the result
    flow: str
    group: int
    cca: str
    # rate_mbit, rtt_ms, loss: what they were set to
    rate_mbit: float
    rtt_ms: float
    loss: float


class PlaySummary(Summary):
    """Of a play (backend "play")."""

    events: list[EventEntry]
