"""What is to be said of a scenario's points before they run: what they have is possible, but may not be what is meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bbrlab.scenario.frames import IP_HEADER_BYTES, IP_VERSION
from bbrlab.scenario.needs import without_effect
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import ACK_BYTES, COUNTS_BYTES, Network, Scenario
from bbrlab.scenario.windows import partly_there

FQ_BEYOND_PACKETS = 8  # that fq holds beside its limit (net/sched/sch_fq.c, fq_fastpath_check())
LARGE_PART = 0.1  # of a buffer


def notes_of(points: Sequence[Point]) -> list[str]:
    """All notes, in words, each once."""
    held = (note for point in points for note in _held(point.scenario))
    return [*without_effect(points), *partly_there(points), *dict.fromkeys(held)]


def _held(scenario: Scenario) -> Iterator[str]:
    """Of the queues that do not hold what their buffer seems to say."""
    network = scenario.network
    queues = {"network": network}
    if network.links is not None:
        queues = {f"network.links.{i}": link for i, link in enumerate(network.bottlenecks)}
    elif network.reverse is not None:
        queues["network.reverse"] = network.towards("reverse")
        if all(flow.direction == "forward" for flow in scenario.flows):
            yield from _acks_held(queues["network.reverse"])
    for at, queue in queues.items():
        packets = queue.buffer_bytes // queue.frame_bytes
        if queue.qdisc.kind == "fq" and packets * LARGE_PART < FQ_BEYOND_PACKETS:
            yield (
                f"{at}.buffer: fq holds up to {FQ_BEYOND_PACKETS} packets more than it is told, which is much beside the {packets} of this buffer "
                "(choose a larger buffer or another qdisc, if that is not meant)"
            )


def _acks_held(reverse: Network) -> Iterator[str]:
    kind, buffer = reverse.qdisc.kind, reverse.buffer
    if kind in COUNTS_BYTES or buffer.packets is not None:
        return
    packets = reverse.buffer_bytes // reverse.frame_bytes
    acks = packets * (ACK_BYTES + IP_HEADER_BYTES[reverse.ip_version] - IP_HEADER_BYTES[IP_VERSION])
    holds = f"{kind} counts packets, and holds {packets} ACKs ({acks} bytes)"
    if kind == "cake":
        holds = f"cake counts memory, that of {packets} full packets, in which ACKs of fewer bytes have room"
    value = f"bdp {buffer.bdp:g}" if buffer.bytes is None else f"bytes {buffer.bytes}"
    yield f"network.reverse.buffer.{value}: only ACKs cross this queue: {holds} (give buffer.packets, or a queue that counts bytes: {', '.join(COUNTS_BYTES)})"
