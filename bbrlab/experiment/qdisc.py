"""The arguments of tc for a bottleneck's queue; mininet/dumbbell.py, limiter.py and opportunities.py have the commands."""

from __future__ import annotations

import struct

from bbrlab.scenario.frames import frame_memory_bytes
from bbrlab.scenario.schema import Network

FQ_CODEL_MEMORY_LIMIT = str(1 << 31)  # the largest: the buffer is its limit in packets; by default 14,559 fit
CAKE_ACK_FILTER = {"off": (), "on": ("ack-filter",), "aggressive": ("ack-filter-aggressive",)}


def qdisc_words(network: Network) -> list[str]:
    """The tc words of a bottleneck's queue, by the network as it is there."""
    qdisc, buffer_bytes = network.qdisc, network.buffer_bytes
    packets = str(max(1, buffer_bytes // network.frame_bytes))
    ecn = [] if qdisc.ecn is None else ["ecn" if qdisc.ecn else "noecn"]

    def ms(name: str, value: float | None) -> list[str]:
        return [] if value is None else [name, f"{value * 1000:.3f}us"]

    def number(name: str, value: float | None) -> list[str]:
        return [] if value is None else [name, str(value)]

    if qdisc.kind == "fifo":
        return ["bfifo", "limit", str(buffer_bytes)]
    if qdisc.kind == "red":
        red = qdisc.thresholds(buffer_bytes, network.frame_bytes)
        flags = (["ecn"] if qdisc.ecn else []) + (["harddrop"] if qdisc.harddrop else []) + (["adaptive"] if qdisc.adaptive else [])  # fmt: skip
        return ["red", "limit", str(buffer_bytes), "min", str(red.min_bytes), "max", str(red.max_bytes),
                "avpkt", str(red.avpkt_bytes), "burst", str(red.burst_packets), "bandwidth", f"{network.rate_mbit * 1e6:.0f}bit",
                "probability", str(red.probability), *flags]  # fmt: skip
    if qdisc.kind == "codel":
        return ["codel", "limit", packets, *ms("target", qdisc.target_ms), *ms("interval", qdisc.interval_ms),
                *ms("ce_threshold", qdisc.ce_threshold_ms), *ecn]  # fmt: skip
    if qdisc.kind == "fq_codel":
        only = ["ce_threshold_selector", "1/3"] if qdisc.l4s_of == "ect1" else []  # ECT(1) of the two bits of ECN
        return ["fq_codel", "limit", packets, *number("flows", qdisc.flows), *number("quantum", qdisc.quantum_bytes),
                *ms("target", qdisc.target_ms), *ms("interval", qdisc.interval_ms),
                *ms("ce_threshold", qdisc.ce_threshold_ms), *only, "memory_limit", FQ_CODEL_MEMORY_LIMIT, *ecn]  # fmt: skip
    if qdisc.kind == "pie":
        return ["pie", "limit", packets, *ms("target", qdisc.target_ms), *ms("tupdate", qdisc.tupdate_ms),
                *number("alpha", qdisc.alpha), *number("beta", qdisc.beta), *ecn]  # fmt: skip
    if qdisc.kind == "cake":
        memory = int(packets) * frame_memory_bytes(network.payload_bytes)  # CAKE's only limit
        return ["cake", "unlimited", "memlimit", f"{memory}b", qdisc.isolation or "triple-isolate",
                *ms("rtt", qdisc.rtt_ms), *CAKE_ACK_FILTER[qdisc.ack_filter or "off"]]  # fmt: skip
    if qdisc.kind == "dualpi2":
        return ["dualpi2"]  # which Debian 12's tc has never heard of: qdisc_options()
    limit = str(qdisc.flow_limit_packets) if qdisc.flow_limit_packets else packets
    return ["fq", "limit", packets, "flow_limit", limit, *number("quantum", qdisc.quantum_bytes), "nopacing",
            *ms("ce_threshold", qdisc.ce_threshold_ms)]  # fmt: skip


L4S_OF = {"ect1": 1, "ect": 3}  # TC_DUALPI2_ECN_MASK_L4S_ECT, _ANY_ECT
# linux/pkt_sched.h, TCA_DUALPI2_*
LIMIT, TARGET, TUPDATE, STEP_THRESH_US, COUPLING, ECN_MASK = 1, 3, 4, 8, 10, 14


def qdisc_options(network: Network) -> bytes:
    """The netlink attributes of a queue whose kind tc does not know, which are set without tc; empty for other kinds."""
    qdisc = network.qdisc
    if qdisc.kind != "dualpi2":
        return b""
    words = {
        LIMIT: max(1, network.buffer_bytes // network.frame_bytes)
    }  # of which the kernel makes its limit of memory: never the smaller one
    for kind, value_ms in ((TARGET, qdisc.target_ms), (TUPDATE, qdisc.tupdate_ms), (STEP_THRESH_US, qdisc.step_threshold_ms)):  # fmt: skip
        if value_ms is not None:
            words[kind] = round(1000 * value_ms)
    options = b"".join(struct.pack("<HHI", 8, kind, value) for kind, value in words.items())
    for kind, byte in ((COUPLING, qdisc.coupling), (ECN_MASK, qdisc.l4s_of and L4S_OF[qdisc.l4s_of])):
        if byte is not None:
            options += struct.pack("<HHB3x", 5, kind, byte)
    return options
