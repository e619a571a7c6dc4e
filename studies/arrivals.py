"""When packets come to a full queue: where in a packet's time, and how many are lost (docs/explanation/phase.md)."""

from __future__ import annotations

import argparse
import bisect
from collections import defaultdict
from pathlib import Path

import pandas as pd

from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab_apps.traffic.records import Records
from bbrlab_apps.traffic.segments import Segments

FULL_BYTES = 1000  # of data: what has less is no packet of a flow with much to send
SETTLED_S = 20.0  # left out at the start, for slow start


def arrivals(run: Path, rate_mbit: float, buffer_packets: int) -> pd.DataFrame:
    """Each data packet that a sender sent, by when it left: the path to the queue delays nothing.

    Args:
        run: a run's folder, with senders.pcapng and bottleneck.pcapng (--pcap hosts --pcap bottleneck).
        rate_mbit, buffer_packets: of the bottleneck.

    Returns:
        A row for each packet after SETTLED_S, but for the last second's; columns ``port`` (of the sender), ``fraction`` (of a packet's time, since the
        last departure from the queue) and ``lost``: it did not leave the queue within the time that a full one takes.
    """
    packet_ns = FRAME_BYTES * 8 * 1e3 / rate_mbit
    wait_ns = (buffer_packets + 2) * packet_ns
    departures: list[int] = []
    left: dict[tuple[int, int], list[int]] = defaultdict(list)
    segments = Segments()
    for packet in Records(run / "bottleneck.pcapng"):
        key, _, number, payload = segments.of(packet)
        if payload > FULL_BYTES:
            departures.append(packet.time_ns)
            left[key[2], number].append(packet.time_ns)
    rows, segments = [], Segments()
    for packet in Records(run / "senders.pcapng"):
        key, _, number, payload = segments.of(packet)
        sent_ns = packet.time_ns
        if payload <= FULL_BYTES or sent_ns < departures[0] + SETTLED_S * 1e9 or sent_ns > departures[-1] - 1e9:
            continue
        last = departures[bisect.bisect_right(departures, sent_ns) - 1]
        lost = not any(sent_ns <= at < sent_ns + wait_ns for at in left[key[2], number])
        rows.append((key[2], (sent_ns - last) / packet_ns % 1, lost))
    return pd.DataFrame(rows, columns=["port", "fraction", "lost"])


def by_port(table: pd.DataFrame) -> pd.DataFrame:
    """Of each sender's port: packets, the part that is lost, and the part that came in each tenth of a packet's time."""
    tenth = (table["fraction"] * 10).astype(int).rename("tenth")
    parts = pd.crosstab(table["port"], tenth, normalize="index").add_prefix("tenth ")
    lost = table.groupby("port")["lost"]
    return pd.DataFrame({"packets": lost.size(), "lost": lost.mean()}).join(parts)


def main() -> None:
    """Print by_port() of a run."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("run", type=Path, help="a run's folder, made with --pcap hosts --pcap bottleneck")
    parser.add_argument("--rate-mbit", type=float, default=10, help="of the bottleneck")
    parser.add_argument("--buffer-packets", type=int, default=33, help="of the bottleneck")
    given = parser.parse_args()
    print(by_port(arrivals(given.run, given.rate_mbit, given.buffer_packets)).round(3).to_string())


if __name__ == "__main__":
    main()
