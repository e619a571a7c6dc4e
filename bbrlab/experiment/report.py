"""What the guest reports (mininet/guest.py writes it as report.json)."""

from __future__ import annotations

from typing import Any, TypedDict


class Report(TypedDict):
    """report.json.

    Attributes:
        kernel, kernel_version: what ``uname -r`` and ``uname -v`` print in the guest.
        ping_ms: RTT of the idle path of each of the plan's pings, in ms.
        burst: for each bottleneck what calibration.burst() measured of its rate; None where it cannot.
        start_ns: of the experiment, on the guest's monotonic clock.
        qdiscs_before, qdiscs: every qdisc and its drops before and after the experiment.
        host_drops: {host: {counter: packets that it dropped}}.
        received_before, received: {host: {counter of its interface: packets}} before and after the experiment.
        switch_misses: packets for which Open vSwitch had no flow.
        parameters: {kernel's name of a CCA: {module parameter: value}}.
        congestion_control: the kernel's names of the CCAs that it has.
        traffic_failures: (transfer or group, what its program said).
    """

    kernel: str
    kernel_version: str
    ping_ms: list[float]
    burst: list[dict[str, Any] | None]
    start_ns: int
    qdiscs_before: list[dict[str, Any]]
    qdiscs: list[dict[str, Any]]
    host_drops: dict[str, dict[str, int]]
    received_before: dict[str, dict[str, int]]
    received: dict[str, dict[str, int]]
    switch_misses: int
    parameters: dict[str, dict[str, str]]
    congestion_control: list[str]
    traffic_failures: list[tuple[Any, str]]
