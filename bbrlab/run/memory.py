"""How much memory a guest needs."""

from __future__ import annotations

from bbrlab.experiment.plan import Plan
from bbrlab.scenario.point import Point

WORKLOAD_BYTES = 100  # of a process for each row of its workload, with room to spare
FQ_FLOW_BYTES = 192  # struct fq_flow, with room to spare


def flight_bytes(point: Point) -> float:
    """Bytes that can be in flight and queued at once, with what each flow needs besides."""
    network = point.scenario.network
    rtts = [network.mean_rtt_ms] + [
        max(f.rtt_ms) if isinstance(f.rtt_ms, list) else f.rtt_ms or 0 for f in point.scenario.flows
    ]
    rates = [network.rate_mbit] + [c.rate_mbit or 0 for c in network.changes]
    rtts += [c.rtt_ms or 0 for c in network.changes]
    rtts += [rtt_ms for f in point.scenario.flows for rtt_ms in f.rtts_ms or ()]
    flows = sum(f.count for f in point.scenario.flows)
    return max(rates) * 1e6 / 8 * max(rtts) * 1e-3 + network.buffer_bytes + (16 << 20) + flows * (1 << 18)


def workload_bytes(plan: Plan) -> float:
    """What the guest's processes of short flows hold: each has the whole workload (mininet/short_flows.py). And what fq
    remembers of each connection at its two ends."""
    return sum(
        len(plan.workloads[entry["group"]]) * (WORKLOAD_BYTES * (1 + len(entry["clients"])) + 2 * FQ_FLOW_BYTES)
        for entry in plan.content["short_flows"]
    )
