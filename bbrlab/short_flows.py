"""Short flows: a traffic model with the published facts of a backbone trace, and the same from a capture of one's own.

Bless et al. 2025, section VI, replay a backbone trace in three ways. A flow is a sequence of *chunks*, stretches of
data without a pause of 100 ms or more:

- **replay**: each chunk starts when the one before it has been sent and its pause has gone by;
- **collapsed**: each flow is one transmission of all its chunks, without pauses;
- **synthetic**: sizes and interarrival times of the collapsed flows, drawn independently of each other, which takes
  the bursts out.

The model (``trace: model``) has the trace's published sizes: 10 % of the flows are larger than 18.2 kB, 90 % of the bytes
lie in flows of more than 6.4 MB and half of them in flows of more than 280.7 MB. A log-normal tail has exactly the
second and third property, and the share of flows that come from it gives the first; the others are mice below 18.2 kB.
How flows arrive and pause is not published: here at a rate that changes every half second, and with pauses in large flows.
"""

from __future__ import annotations

import csv
import functools
import io
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, stats

from bbrlab import files
from bbrlab.errors import UserError

Array = NDArray[Any]

PAUSE_S = 0.1  # "no data is sent for at least 100 ms"
# Published facts of MAWI 2020/06/10 (Bless et al. 2025, section VI).
LARGE_BYTES, LARGE_SHARE = 18.2e3, 0.10
BYTES_10TH, BYTES_50TH = 6.4e6, 280.7e6
MODEL_OFFERED_MBIT = 1250.0
LARGEST_BYTES = (
    7e9  # a twentieth of the 15 minutes' bytes; without a bound the largest flow would be larger than the trace
)
MOUSE_BYTES = (64.0, LARGE_BYTES)  # mice are uniform in the logarithm between these
MIN_BYTES = 8  # what tells a receiver which flow it is
BURST_S = 0.5  # so long the rate of arrivals stays as it is; then it is drawn anew, from a gamma distribution:
BURST_SHAPE = 2.0  # smaller: more bursts
CHUNK_BYTES = 2e6  # bytes between two pauses, on average
MEAN_PAUSE_S = 1.0
COLUMNS = ("flow", "chunk", "start_s", "pause_s", "bytes")


@dataclass(frozen=True)
class Tail:
    """The log-normal tail, cut at LARGEST_BYTES: of the logarithm mean and deviation, and its share of the flows."""

    mu: float
    sigma: float
    share: float


@functools.cache
def tail() -> Tail:
    """The tail whose bytes have the two published quantiles.

    The bytes of a log-normal(mu, sigma) are distributed as log-normal(mu + sigma^2, sigma); cut at the largest flow, their
    distribution function is divided by its value there.
    """
    logs = np.log([BYTES_10TH, BYTES_50TH, LARGEST_BYTES])

    def off(unknown: Array) -> Array:
        below = stats.norm.cdf((logs - unknown[0]) / unknown[1])
        gap: Array = below[:2] / below[2] - np.array([0.1, 0.5])
        return gap

    mean, sigma = optimize.root(off, [logs[1], 3.0]).x
    mu = mean - sigma**2
    large, whole = stats.norm.cdf((np.log([LARGE_BYTES, LARGEST_BYTES]) - mu) / sigma)
    return Tail(float(mu), float(sigma), float(LARGE_SHARE / (1 - large / whole)))


def flow_sizes(count: int, rng: np.random.Generator) -> Array:
    """Sizes in bytes of ``count`` flows of the model, in random order.

    Drawn by strata, one from each of ``count`` equally likely ranges, so that a trace of 15 minutes has the published
    properties with every seed.
    """
    of_tail = tail()
    many = round(count * of_tail.share)
    whole = stats.norm.cdf((math.log(LARGEST_BYTES) - of_tail.mu) / of_tail.sigma)
    strata = (np.arange(many) + rng.random(many)) / max(many, 1)
    large = np.exp(of_tail.mu + of_tail.sigma * stats.norm.ppf(strata * whole))
    low, high = np.log(MOUSE_BYTES)
    mice = np.exp(rng.uniform(low, high, count - many))
    sizes = np.maximum(MIN_BYTES, np.concatenate([large, mice])).astype(np.int64)
    shuffled: Array = rng.permutation(sizes)
    return shuffled


MEAN_OF = 200_000  # flows over which the model's mean size is taken


def _with_load(sizes: Array, target: float) -> Array:
    """The sizes with the mice left as they are and the others scaled so that all add up to ``target``."""
    large = sizes > LARGE_BYTES
    rest = target - float(sizes[~large].sum())
    if not large.any() or rest <= 0:
        return sizes
    scaled = np.where(large, np.maximum(LARGE_BYTES + 1, sizes * (rest / float(sizes[large].sum()))), sizes)
    return scaled.astype(np.int64)


def model(seed: int, duration_s: float, offered_mbit: float = MODEL_OFFERED_MBIT) -> pd.DataFrame:
    """Chunks of the model.

    Args:
        seed: of everything that is drawn.
        duration_s: within which all flows start.
        offered_mbit: mean load. The tail is so heavy that few flows make it up: its sizes are scaled a little, so that
            every seed offers the same load. In a short trace the largest flows of a long one have no room.

    Returns:
        Columns COLUMNS, a row per chunk, by start: ``start_s`` of the flow (its first chunk), ``pause_s`` before the chunk.
    """
    rng = np.random.default_rng(seed)
    target = offered_mbit * 1e6 / 8 * duration_s
    sizes = flow_sizes(max(1, round(target / float(np.mean(flow_sizes(MEAN_OF, np.random.default_rng(0)))))), rng)
    sizes = _with_load(sizes[sizes <= target], target)
    periods = max(1, math.ceil(duration_s / BURST_S))
    rates = rng.gamma(BURST_SHAPE, size=periods)
    drawn = rng.choice(periods, len(sizes), p=rates / rates.sum())
    starts = np.sort((drawn + rng.random(len(sizes))) / periods * duration_s)
    rows = []
    for flow, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        pauses = int(min(rng.poisson(size / CHUNK_BYTES / 10), (duration_s - start) / (2 * MEAN_PAUSE_S)))
        cuts = np.sort(rng.uniform(0, 1, pauses)) if size > CHUNK_BYTES else np.zeros(0)
        edges = np.concatenate([[0.0], cuts, [1.0]]) * size
        pieces = np.diff(np.round(edges)).astype(np.int64)
        pieces = pieces[pieces >= MIN_BYTES]
        pieces[-1] += size - int(pieces.sum())
        for chunk, piece in enumerate(pieces):
            pause = 0.0 if chunk == 0 else PAUSE_S + float(rng.exponential(MEAN_PAUSE_S - PAUSE_S))
            rows.append((flow, chunk, start, pause, int(piece)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def collapsed(chunks: pd.DataFrame) -> pd.DataFrame:
    """Each flow as one chunk."""
    grouped = chunks.groupby("flow", sort=True).agg(start_s=("start_s", "first"), bytes=("bytes", "sum")).reset_index()
    return grouped.assign(chunk=0, pause_s=0.0)[list(COLUMNS)]


def synthetic(chunks: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Interarrival times and sizes of the collapsed flows, each shuffled on its own; load and duration stay."""
    whole = collapsed(chunks)
    rng = np.random.default_rng(seed)
    gaps = np.diff(whole["start_s"].to_numpy(), prepend=0.0)
    return whole.assign(start_s=np.cumsum(rng.permutation(gaps)), bytes=rng.permutation(whole["bytes"].to_numpy()))


def workload(mode: str, trace: str, seed: int, duration_s: float, offered_mbit: float) -> pd.DataFrame:
    """The chunks that a scenario's group of short flows sends.

    Args:
        mode: "replay", "collapsed" or "synthetic".
        trace: "model", or a file that write() made.
        seed: the run's; of a file it decides the shuffling of "synthetic" only.
        duration_s: flows that start later are left out.
        offered_mbit: of the model.

    Returns:
        Columns COLUMNS, flows numbered from 0, each one's chunks together and in order.
    """
    chunks = model(seed, duration_s, offered_mbit) if trace == "model" else read(Path(trace))
    chunks = chunks[chunks["start_s"] < duration_s].sort_values(["flow", "chunk"], kind="stable", ignore_index=True)
    chunks["flow"] = pd.factorize(chunks["flow"])[0]
    if mode == "collapsed":
        return collapsed(chunks)
    return synthetic(chunks, random.Random(f"synthetic:{seed}").getrandbits(63)) if mode == "synthetic" else chunks


def from_capture(path: Path) -> pd.DataFrame:
    """Chunks of the TCP flows of a capture (pcap or pcapng): unidirectional, by addresses and ports.

    Raises:
        UserError: if the file is not a capture, is cut off, or has no TCP with data.
    """
    import dpkt

    flows: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
            file.seek(0)
            reader: Any = dpkt.pcapng.Reader(file) if magic == b"\x0a\x0d\x0d\x0a" else dpkt.pcap.Reader(file)
            link = reader.datalink()
            for time_s, frame in reader:
                packet = _ip(frame, link)
                if packet is None or not isinstance(packet.data, dpkt.tcp.TCP):
                    continue
                # The IP header's length, not what was captured: backbone captures keep headers only.
                length = packet.len - packet.hl * 4 if isinstance(packet, dpkt.ip.IP) else packet.plen
                payload = length - packet.data.off * 4
                if payload > 0:
                    key = (packet.src, packet.dst, packet.data.sport, packet.data.dport)
                    flows.setdefault(key, []).append((float(time_s), payload))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (dpkt.dpkt.Error, ValueError, EOFError) as error:
        raise UserError(f"{path}: is not a capture (pcap or pcapng), or is cut off ({error})") from None
    if not flows:
        raise UserError(f"{path}: has no TCP packet with data, so no flow can be made of it")
    first = min(packets[0][0] for packets in flows.values())
    rows = []
    for flow, packets in enumerate(sorted(flows.values(), key=lambda p: p[0][0])):
        times = np.array([t for t, _ in packets]) - first
        sizes = np.array([n for _, n in packets])
        breaks = np.flatnonzero(np.diff(times) >= PAUSE_S) + 1
        edges = [0, *breaks.tolist(), len(times)]
        for chunk, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
            pause = 0.0 if chunk == 0 else float(times[low] - times[low - 1])
            rows.append((flow, chunk, float(times[0]), pause, max(MIN_BYTES, int(sizes[low:high].sum()))))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _ip(frame: bytes, link: int) -> Any:
    """The IP packet in a frame, or None."""
    import dpkt

    try:
        if link == dpkt.pcap.DLT_EN10MB:
            packet = dpkt.ethernet.Ethernet(frame).data
        elif link in (dpkt.pcap.DLT_RAW, 12, 14, 101):
            packet = dpkt.ip.IP(frame) if frame[:1] and frame[0] >> 4 == 4 else dpkt.ip6.IP6(frame)
        elif link == dpkt.pcap.DLT_LINUX_SLL:
            packet = dpkt.sll.SLL(frame).data
        else:
            return None
    except (dpkt.dpkt.Error, IndexError):
        return None
    return packet if isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6) else None


def write(chunks: pd.DataFrame, path: Path) -> None:
    """Write chunks as CSV."""
    with files.aside(path) as temporary:
        chunks.to_csv(temporary, index=False)


def read(path: Path) -> pd.DataFrame:
    """Chunks that write() wrote. UserError naming file, line and what is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{path}: cannot be read; make it with: bbrlab traffic CAPTURE.pcap --out FILE.csv") from None
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or rows[0] != list(COLUMNS):
        raise UserError(f"{path}:1: the columns must be {', '.join(COLUMNS)}")
    found = []
    for line, row in enumerate(rows[1:], 2):
        try:
            flow, chunk, start, pause, size = int(row[0]), int(row[1]), float(row[2]), float(row[3]), int(row[4])
        except (ValueError, IndexError):
            raise UserError(f"{path}:{line}: not a row of numbers: {','.join(row)}") from None
        if not (0 <= start < math.inf and 0 <= pause < math.inf and size >= MIN_BYTES and flow >= 0 and chunk >= 0):
            raise UserError(f"{path}:{line}: start and pause must be at least 0, bytes at least {MIN_BYTES}")
        found.append((flow, chunk, start, pause, size))
    if not found:
        raise UserError(f"{path}: has no flow")
    return pd.DataFrame(found, columns=list(COLUMNS))


def ideal_s(sizes: Array, rate_mbit: float, rtt_ms: float) -> Array:
    """Completion times in an empty network: one base RTT and the bytes at the bottleneck's rate."""
    ideal: Array = np.asarray(sizes) * 8e-6 / rate_mbit + rtt_ms * 1e-3
    return ideal


def srpt_s(starts: Array, sizes: Array, rate_mbit: float, rtt_ms: float) -> Array:
    """Completion times if the bottleneck always served the transmission with the least bytes left (Schrage 1968).

    No order of service has a lower mean completion time, so this bounds what any congestion control can reach.

    Args:
        starts: s, shape (n,).
        sizes: bytes, shape (n,).
        rate_mbit: the bottleneck's.
        rtt_ms: added to each.

    Returns:
        Seconds from start to end, shape (n,).
    """
    import heapq

    order = np.argsort(starts, kind="stable")
    left: list[tuple[float, int]] = []
    done = np.zeros(len(starts))
    now, position, bytes_per_s = 0.0, 0, rate_mbit * 1e6 / 8
    while position < len(order) or left:
        if not left:
            now = max(now, float(starts[order[position]]))
        while position < len(order) and starts[order[position]] <= now:
            heapq.heappush(left, (float(sizes[order[position]]), int(order[position])))
            position += 1
        size, who = heapq.heappop(left)
        end = now + size / bytes_per_s
        following = float(starts[order[position]]) if position < len(order) else math.inf
        if end <= following:
            done[who], now = end, end
        else:
            heapq.heappush(left, (size - (following - now) * bytes_per_s, who))
            now = following
    taken: Array = done - np.asarray(starts) + rtt_ms * 1e-3
    return taken


def _record(paths: list[Path], name: str) -> pd.DataFrame:
    """The lines "flow chunk nanoseconds" of the guest's records."""
    names = ["flow", "chunk", name]
    parts = [pd.read_csv(p, sep=" ", names=names, dtype="int64") for p in paths if p.stat().st_size]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names, dtype="int64")


def outcome(
    chunks: pd.DataFrame, sent: list[Path], received: list[Path], rate_mbit: float, rtt_ms: float
) -> pd.DataFrame:
    """What became of each chunk.

    Args:
        chunks: what was to be sent.
        sent: the senders' records: lines "flow chunk nanoseconds" at which each chunk was begun (of the first: connect).
        received: the receivers': the same, at which each chunk's last byte was read.
        rate_mbit, rtt_ms: bottleneck and base RTT.

    Returns:
        A row per chunk that was begun: ``flow``, ``chunk``, ``bytes``, ``begin_s``, ``end_s`` (the way back included: NaN if
        the run ended before), ``slowdown`` (completion time over that in an empty network) and ``srpt_slowdown``.
    """
    keys = ["flow", "chunk"]
    begun, ended = _record(sent, "begin_ns"), _record(received, "end_ns")
    table = chunks[[*keys, "bytes"]].merge(begun, on=keys).merge(ended, on=keys, how="left")
    table["begin_s"] = table.pop("begin_ns") / 1e9
    table["end_s"] = table.pop("end_ns") / 1e9 + rtt_ms * 1e-3
    ideal = ideal_s(table["bytes"].to_numpy(), rate_mbit, rtt_ms)
    table["slowdown"] = (table["end_s"] - table["begin_s"]) / ideal
    bound = srpt_s(table["begin_s"].to_numpy(), table["bytes"].to_numpy(), rate_mbit, rtt_ms)
    table["srpt_slowdown"] = bound / ideal
    return table.sort_values(["begin_s", *keys], ignore_index=True)


def concurrent(table: pd.DataFrame, end_s: float) -> int:
    """The largest number of chunks under way at once."""
    ends = table["end_s"].fillna(end_s).to_numpy()
    times = np.concatenate([table["begin_s"].to_numpy(), ends])
    steps = np.concatenate([np.ones(len(table)), -np.ones(len(table))])
    order = np.lexsort((steps, times))
    return int(np.cumsum(steps[order]).max()) if len(table) else 0
