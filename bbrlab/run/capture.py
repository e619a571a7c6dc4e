"""Captures packets of a run: the interfaces, the memory, and the capture files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.experiment.plan_types import SNAPLEN, GuestPlan, TapPlan
from bbrlab.experiment.report import Report
from bbrlab.measure.packets import DATA_AT, Tap, write_capture
from bbrlab.run.memory import flight_bytes, highest_of_all_mbit
from bbrlab.run.output import BOTTLENECK, RECEIVERS, SENDERS
from bbrlab.scenario.point import Point

PLACES = ("bottleneck", "hosts")
SNAPLEN_LEAST, SNAPLEN_MOST = 54, 65535
# Between two samples an interface may see data at the link's rate, as many ACKs, packets that senders send beyond the rate, and a
# flight at once.
HEADROOM = 4
LEAST_FRAMES = 1 << 12
RINGS_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Capture:
    """The requested capture."""

    places: Sequence[str] = ()  # some of PLACES; empty: no packet is kept
    snaplen: int = SNAPLEN

    def __post_init__(self) -> None:
        for place in self.places:
            if place not in PLACES:
                raise UserError(f"--pcap {place}: no such place; use one of {', '.join(PLACES)}")
        if not SNAPLEN_LEAST <= self.snaplen <= SNAPLEN_MOST:
            raise UserError(f"--snaplen {self.snaplen}: must be from {SNAPLEN_LEAST} to {SNAPLEN_MOST} bytes")
        if self.snaplen != SNAPLEN and not self.places:
            raise UserError(f"--snaplen {self.snaplen}: has no effect without --pcap {' or '.join(PLACES)}")


NO_CAPTURE = Capture()


def add_capture(plan: GuestPlan, point: Point, capture: Capture) -> None:
    """Add the capture to a guest's plan. UserError if that needs too much memory."""
    if not capture.places:
        return
    taps: list[TapPlan] = []
    if "bottleneck" in capture.places:
        taps += [{"host": None, "device": link["device"]} for link in plan["bottlenecks"]]
    if "hosts" in capture.places:
        taps += [{"host": h["name"], "device": f"{h['name']}-eth0"} for h in plan["hosts"]]
    network = point.scenario.network
    frame = network.frame_bytes
    flight = flight_bytes(point) / frame
    packets = HEADROOM * highest_of_all_mbit(network) * 1e6 / 8 / frame / plan["sample_hz"] + flight
    frames = 1 << math.ceil(math.log2(max(LEAST_FRAMES, packets)))
    frame_bytes = 1 << math.ceil(math.log2(DATA_AT + capture.snaplen))
    plan["capture"] = {
        "snaplen": capture.snaplen, "frame_bytes": frame_bytes, "frames": frames, "interfaces": taps,
    }  # fmt: skip
    if rings_bytes(plan) > RINGS_MOST_BYTES:
        raise UserError(
            f"--pcap: what {len(taps)} interfaces may see between two samples needs {rings_bytes(plan) >> 20} MiB of memory, and at most "
            f"{RINGS_MOST_BYTES >> 20} MiB are given; sample more often than sample_hz {plan['sample_hz']:g}, choose --pcap bottleneck, or a smaller "
            "--snaplen"
        )


def rings_bytes(plan: GuestPlan) -> int:
    """The memory that a guest needs for packets between two samples."""
    settings = plan.get("capture")
    return settings["frames"] * settings["frame_bytes"] * len(settings["interfaces"]) if settings else 0


def write_captures(out: Path, folder: Path, plan: GuestPlan, report: Report, duration_ns: int) -> list[str]:
    """Write the capture files of a run to ``out``. Returns their names."""
    if "capture" not in plan:
        return []
    wanted, kept = plan["capture"], report["capture"]
    sends = {h["name"]: h["sends"] for h in plan["hosts"]}
    taps: dict[str, list[Tap]] = {}
    for number, (place, counts) in enumerate(zip(wanted["interfaces"], kept["interfaces"], strict=True)):
        name = BOTTLENECK if place["host"] is None else SENDERS if sends[place["host"]] else RECEIVERS
        tap = Tap(place["device"], folder / f"capture-{number}.raw", counts["packets"], counts["dropped"])
        taps.setdefault(name, []).append(tap)
    for name, chosen in taps.items():
        with files.aside(out / name) as temporary, open(temporary, "wb") as file:
            zero_ns = report["start_ns"] + kept["real_ahead_ns"]
            write_capture(file, chosen, wanted["frame_bytes"], wanted["snaplen"], zero_ns, duration_ns)
    return list(taps)
