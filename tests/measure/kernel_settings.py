"""What the kernel would dump of what a scenario asks for, as report.json has it: for tests without a guest."""

from __future__ import annotations

import struct
from typing import Any

from bbrlab.experiment.plan import Plan
from bbrlab.scenario.schema import Scenario

RED_WLOG, RED_PLOG = 4, 20
NETEM_LIMIT, NETEM_RATE = 10_000_000, 125_000_000_000


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def netem(delay_us: float, loss: float, rate: int = NETEM_RATE, spread_us: float = 0.0) -> str:
    words = struct.pack("<IIIIII", 0, NETEM_LIMIT, round(loss * 2**32), 0, 0, 0)
    half_ns = round(1000 * spread_us / 2)  # netem draws around the delay
    words += attribute(10, struct.pack("<q", round(1000 * delay_us) + half_ns)) + attribute(
        11, struct.pack("<q", half_ns)
    )
    words += attribute(8, struct.pack("<Q", rate)) + attribute(6, struct.pack("<Iiii", 2**32 - 1, 0, 0, 0))
    return words.hex()


def htb(rate_bps: float) -> str:
    spec = struct.pack("<BBHhHI", 0, 1, 0, -1, 0, round(rate_bps) // 8)
    burst = round(1600 * 8e9 / rate_bps / 64)
    return attribute(1, spec + spec + struct.pack("<IIIII", burst, burst, 1000, 0, 0)).hex()


def red(limit: int, low: int, high: int, wlog: int, plog: int, probability: float, flags: int = 0) -> str:
    words = attribute(1, struct.pack("<IIIBBBB", limit, low, high, wlog, plog, 1, flags))
    return (words + attribute(3, struct.pack("<I", round(probability * 2**32)))).hex()


def entry(device: str, kind: str, handle: str, parent: str, options: str = "") -> dict[str, str]:
    return {"device": device, "kind": kind, "handle": handle, "parent": parent, "options": options}


def settings(scenario: Scenario, plan: Plan) -> dict[str, Any]:
    """report.json's ``settings`` of a drop-tail path without jitter, on a machine of its own.

    RED's are of a buffer of 100,000 bytes, by tc's own words on ``tc -d qdisc show``.
    """
    ports = []
    losses = [scenario.network.loss, *(c.loss for c in scenario.network.changes if c.loss is not None)]
    queue = struct.pack("<I", scenario.network.buffer_bytes).hex()
    if scenario.network.qdisc.kind == "red":
        queue = red(100_000, 8333, 25_000, RED_WLOG, RED_PLOG, 0.02)
    for link in plan.content["bottlenecks"]:
        device, kind = link["device"], link["qdisc"][0]
        ports += [entry(device, "htb", "1:", "root"), entry(device, kind, "30:", "1:3", queue),
                  entry(device, "htb", "1:3", "root", htb(1e6 * scenario.network.rate_mbit))]  # fmt: skip
    for host in plan.content["hosts"]:
        port = f"{host['switch']}-{host['name']}"
        loss = losses[-1] if port in plan.content["loss_devices"] else 0.0
        if host["sends"] or port in plan.content["loss_devices"]:
            ports.append(
                entry(port, "netem", "2:", "root", netem(host["delay_us"], loss, spread_us=host["processing_us"]))
            )
    hosts = {
        h["name"]: {
            "qdiscs": [entry(h["name"] + "-eth0", "noqueue", "0:", "root")],
            "sysctls": {key: str(value) for key, value in plan.content["sysctls"].items()}
            | {f"net.ipv4.neigh.{h['name']}-eth0.base_reachable_time_ms": "1000000000"},
            "gso_max_segs": 1,
            "deferred_interrupts": 0,
        }
        for h in plan.content["hosts"]
    }
    late_ns = round(1000 * scenario.hosts.noise.processing_us)
    return {"ports": ports, "tcp_mem": " ".join([str(1 << 28)] * 3), "pacing_late_ns": late_ns, "hosts": hosts}
