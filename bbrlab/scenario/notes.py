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
FAR = 50  # times: no path's RTT changes by so much, and one in s in place of ms would, by 1000


def notes_of(points: Sequence[Point]) -> list[str]:
    """All notes, in words, each once."""
    return [*notes_beside_window(points), *partly_there(points)]


def notes_beside_window(points: Sequence[Point]) -> list[str]:
    """Those that do not depend on the metrics' window, which a play lacks."""
    held = (note for point in points for note in (*_held(point.scenario), *_about_changes(point.scenario.network)))
    return [*without_effect(points), *dict.fromkeys(held)]


def _about_changes(network: Network) -> Iterator[str]:
    """Of an RTT that looks as if it was in other units, and of what never is as the network has it."""
    for i, change in enumerate(network.changes):
        ratio = (change.rtt_ms or network.mean_rtt_ms) / network.mean_rtt_ms
        if not 1 / FAR < ratio < FAR:
            yield (
                f"network.changes.{i}.rtt_ms: {change.rtt_ms:g} ms is {_times(ratio)} network.rtt_ms, {network.mean_rtt_ms:g} ms "
                "(RTTs are in ms, also in a file)"
            )
            break
    in_bdp = any(link.buffer.bdp is not None for link in network.bottlenecks)
    for i, change in enumerate(network.changes):
        for name in ("rate_mbit", "rtt_ms", "loss") if change.at_s == 0 else ():
            if (value := getattr(change, name)) is not None:
                but = ", but the buffer in BDP is of it" if in_bdp and name != "loss" else ""
                yield f"network.changes.{i}.{name}: is {value:g} from the start of the run, so that network.{name} never holds{but}"


def _times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio > 1 else f"1/{1 / ratio:.0f} of"


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
