"""What a run's summary.json holds (docs/reference/results.md describes its fields; results/run_folder.py reads it)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from bbrlab.kernel.built import KernelEntry
from bbrlab.measure.checks.check import CheckEntry
from bbrlab.measure.real_time import RealTimeEntry

Spread = dict[str, float | None]


class GroupEntry(TypedDict):
    """A flow group: who it is. Its metrics (schema.GROUP) stand beside that; Metric.of_group() reads them.

    Attributes:
        count: its flows; of short ones those that began a transmission in the window.
    """

    cca: str
    count: int
    direction: Literal["forward", "reverse"]


class _FiniteFlow(TypedDict, total=False):
    completion_s: float | None


class FlowEntry(_FiniteFlow):
    """A long flow. What BBR tells of itself (long_flows.LongFlow.bbr) stands beside that.

    Attributes:
        flow, group: its index, and that of its group.
        base_rtt_ms: as the run had it, with its group's offset (hosts.noise), without what hosts take.
        delivered_bytes: over the whole run; of a flow with a size data alone, else with SYN and iperf3's cookie (38 bytes).
        rtt_ms: ``min``, and numbers.spread_of() the smoothed RTT; as the window and packets in flight None if nothing of it was
            delivered in the window.
        first_sample_s: when it was first seen; None if never.
        first_data_s: when its first byte of data was sent (flow_counters.FlowCounters.first_data_s).
        completion_s: of a flow with a size only.
    """

    flow: int
    group: int
    cca: str
    base_rtt_ms: float
    goodput_mbit: float
    delivered_bytes: int
    retransmits: int
    loss: float | None
    loss_over_delivered: float | None
    ecn_marked: float | None
    rtt_ms: Spread
    cwnd_packets: float | None
    in_flight_packets: float | None
    first_sample_s: float | None
    first_data_s: float | None


class BottleneckEntry(TypedDict):
    """A bottleneck. The metrics of the run (schema.RUN) stand beside its size; Metric.of_run() reads them."""

    buffer_bytes: int


class LinkEntry(BottleneckEntry):
    """One of several bottlenecks in a row.

    Attributes:
        link: its number in network.links.
        groups: the flow groups that cross it, of whose goodput its utilisation is.
    """

    link: int
    rate_mbit: float
    groups: list[int]


class _Sometimes(TypedDict, total=False):
    bottleneck_reverse: BottleneckEntry
    links: list[LinkEntry]
    real_time: RealTimeEntry
    sender_kernels: dict[str, KernelEntry]


class Measured(_Sometimes):
    """What was measured of a run (metrics.summarise()).

    Attributes:
        groups: an entry for each flow group.
        flows: an entry for each long flow.
        bottleneck: the one that the first group crosses; of several links the first of them.
        bottleneck_reverse: the other one, if flows run in both directions or ``network.reverse`` is given.
        links: of ``network.links``, an entry for each.
        real_time: of a backend in real time (qemu, host), how honest its time was.
        sender_kernels: {index of a group: the kernel of its senders}, of those that have one of their own.
        jain_index: of all long flows.
    """

    groups: list[GroupEntry]
    flows: list[FlowEntry]
    bottleneck: BottleneckEntry
    jain_index: float | None


class Summary(Measured):
    """summary.json.

    Attributes:
        scenario, paper, figure, values, seed, backend: what was run, where.
        virtual_s, window_s: length of the run and the window of its metrics, in s of virtual time (of real time where the
            backend has no other).
        wall_s: real seconds that it took, in virtual time without those that it waited for a core; None until it is over.
        kernel: what it ran on.
        checks: the self-checks (checks.suite.run_checks()).
        ok: whether none of them failed.
    """

    scenario: str
    paper: str
    figure: str
    values: dict[str, Any]
    seed: int
    backend: str
    virtual_s: Annotated[float, Field(gt=0)]
    window_s: Annotated[list[float], Field(min_length=2, max_length=2)]
    wall_s: float | None
    kernel: KernelEntry
    checks: list[CheckEntry]
    ok: bool


def path_words(summary: Measured, group: int) -> str:
    """Which of several links in a row a group crosses, to go behind its name: ", links 0-2"; empty where there is one bottleneck."""
    crossed = [link["link"] for link in summary.get("links", []) if group in link["groups"]]
    if not crossed:
        return ""
    return f", link {crossed[0]}" if len(crossed) == 1 else f", links {crossed[0]}-{crossed[-1]}"


class EventEntry(TypedDict, total=False):
    """Something that changed in a play.

    Attributes:
        at_s, took_s: when it began, and how long it took.
        command: the line at the prompt; None: it was planned in the scenario, or happened by itself.
        what: "start", "stop", "end" (by itself), "change", or "other": a command that may have done anything.
        flow, group: whose, as the prompt calls it, and the index of its group in the result.
        cca: with which it started.
        rate_mbit, rtt_ms, loss: what they were set to.
    """

    at_s: float
    took_s: float
    command: str | None
    what: str
    flow: str
    group: int
    cca: str
    rate_mbit: float
    rtt_ms: float
    loss: float


class PlaySummary(Summary):
    """Of a play (backend "play").

    Attributes:
        events: what was changed when.
    """

    events: list[EventEntry]
