"""The words by which tc makes a bottleneck's queue."""

from __future__ import annotations

from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab.scenario.schema import Qdisc


def qdisc_words(qdisc: Qdisc, buffer_bytes: int, rate_mbit: float) -> list[str]:
    """The tc words of the bottleneck queue with a limit of ``buffer_bytes``."""
    packets = str(max(1, buffer_bytes // FRAME_BYTES))
    ecn = [] if qdisc.ecn is None else ["ecn" if qdisc.ecn else "noecn"]

    def ms(name: str, value: float | None) -> list[str]:
        return [] if value is None else [name, f"{value * 1000:.3f}us"]

    def number(name: str, value: float | None) -> list[str]:
        return [] if value is None else [name, str(value)]

    if qdisc.kind == "fifo":
        return ["bfifo", "limit", str(buffer_bytes)]
    if qdisc.kind == "red":
        low = qdisc.min_bytes or max(FRAME_BYTES, buffer_bytes // 12)
        high = qdisc.max_bytes or max(low + FRAME_BYTES, buffer_bytes // 4)
        average = qdisc.avpkt_bytes or FRAME_BYTES
        burst = qdisc.burst_packets or -(-(2 * low + high) // (3 * average)) + 1  # tc-red(8)'s own advice
        flags = (["ecn"] if qdisc.ecn else []) + (["harddrop"] if qdisc.harddrop else []) + (["adaptive"] if qdisc.adaptive else [])  # fmt: skip
        return ["red", "limit", str(buffer_bytes), "min", str(low), "max", str(high), "avpkt", str(average), "burst",
                str(burst), "bandwidth", f"{rate_mbit * 1e6:.0f}bit",
                "probability", str(qdisc.probability or 0.02), *flags]  # fmt: skip
    if qdisc.kind == "codel":
        return ["codel", "limit", packets, *ms("target", qdisc.target_ms), *ms("interval", qdisc.interval_ms),
                *ms("ce_threshold", qdisc.ce_threshold_ms), *ecn]  # fmt: skip
    if qdisc.kind == "fq_codel":
        return ["fq_codel", "limit", packets, *number("flows", qdisc.flows), *number("quantum", qdisc.quantum_bytes),
                *ms("target", qdisc.target_ms), *ms("interval", qdisc.interval_ms),
                *ms("ce_threshold", qdisc.ce_threshold_ms), *ecn]  # fmt: skip
    if qdisc.kind == "pie":
        return ["pie", "limit", packets, *ms("target", qdisc.target_ms), *ms("tupdate", qdisc.tupdate_ms),
                *number("alpha", qdisc.alpha), *number("beta", qdisc.beta), *ecn]  # fmt: skip
    if qdisc.kind == "cake":
        return ["cake", "unlimited", "memlimit", f"{buffer_bytes}b", qdisc.isolation or "triple-isolate",
                *ms("rtt", qdisc.rtt_ms)]  # fmt: skip
    limit = str(qdisc.flow_limit_packets) if qdisc.flow_limit_packets else packets
    return ["fq", "limit", packets, "flow_limit", limit, *number("quantum", qdisc.quantum_bytes), "nopacing",
            *ms("ce_threshold", qdisc.ce_threshold_ms)]  # fmt: skip
