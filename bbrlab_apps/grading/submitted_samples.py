"""samples.parquet of a submission: reading it safely, values that no run can have measured, and the similarity of two tables."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.experiment.plan import Plan
from bbrlab.measure.checks.bottleneck import BUSY_RATE_TOLERANCE, SEGMENT_BYTES
from bbrlab.measure.checks.check import VIRTUAL_TIME
from bbrlab.measure.lateness import EDGE_TOLERANCE_S
from bbrlab.measure.sample_schema import SAMPLES, TCP_INFO
from bbrlab.results.algorithm_table import ALGORITHMS
from bbrlab.run.output import SAMPLES as TABLE
from bbrlab.scenario.point import Point
from bbrlab.scenario.rates import rates_at
from bbrlab.scenario.schema import Scenario
from bbrlab_apps.grading.submission import shown

TYPES = {"time_s": "<f8", "flow": "<i4", "group": "<i2"} | {name: kind for name, (_, kind) in TCP_INFO.items()}
INSTANTS = 64  # of a run, for its fingerprint
# Counters of a socket, and of the bottleneck.
GROWING = (
    "bytes_acked", "bytes_sent", "bytes_retrans", "total_retrans", "segs_out", "data_segs_out", "delivered",
    "delivered_ce",
)  # fmt: skip
QUEUES_GROWING = ("queue_sent_bytes", "queue_sent_packets", "queue_drops", "queue_marks")
SYN_BYTES = FIN_BYTES = 1  # count as acknowledged, and not as sent
LEAST_FRAME_BYTES = 42  # ARP's
LIMITER_SLACK_BYTES = 1600  # that the bottleneck's limiter (htb, tbf) may save, beside room for its largest packet
# What iperf3 says to itself beside the flows (settings, and results in JSON, some hundred bytes for a flow); a bound, no measurement.
CONTROL_BYTES, CONTROL_FLOW_BYTES = 20_000, 2_000
WITHOUT_BBR = [name for name, algorithm in ALGORITHMS.items() if not algorithm.is_bbr]


def type_of(name: str) -> str:
    """The NumPy type of a column of samples.parquet."""
    return TYPES.get(name) or ("<i8" if name.startswith("queue_") else "<f8")


def read_samples(path: Path, point: Point) -> dict[str, Array]:
    """The columns of samples.parquet in the types that bbrlab writes, each of shape (samples,), rows by time and flow. UserError
    if it is no such table, has values that these types have not, or more rows than the run could write."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    scenario = point.scenario
    flows = sum(f.count for f in scenario.flows)
    rows_max = 2 * (scenario.sample_hz * scenario.duration_s + 10) * (flows + 1)
    try:
        with open(path, "rb") as file:
            parquet = pq.ParquetFile(file, pre_buffer=False)
            if parquet.metadata.num_rows > rows_max:
                raise UserError(f"{TABLE}: has {parquet.metadata.num_rows} rows; such a run has at most {rows_max:.0f}")
            fields = {f.name: f.type for f in parquet.schema_arrow}
            repeated = [name for name, count in Counter(parquet.schema_arrow.names).items() if count > 1]
            if repeated:
                raise UserError(f"{TABLE}: has {shown(repeated[0])} twice")
            for name in SAMPLES:
                if name not in fields or not (pa.types.is_integer(fields[name]) or pa.types.is_floating(fields[name])):
                    raise UserError(f"{TABLE}: has no column {name} of numbers")
            table = parquet.read(columns=list(SAMPLES), use_threads=False)
            if table.num_rows != parquet.metadata.num_rows:
                raise UserError(f"{TABLE}: is damaged (rows)")
            columns = {name: _typed(name, table[name]) for name in SAMPLES}
    except (pa.ArrowException, ValueError, OSError, OverflowError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{TABLE}: is no Parquet file of samples ({shown(reason)})") from None
    if not len(columns["flow"]) or columns["flow"].min() < -1 or columns["flow"].max() >= flows:
        raise UserError(f"{TABLE}: has flows that the scenario does not have, or no row")
    times, flow = columns["time_s"], columns["flow"]
    later, same = times[1:] > times[:-1], times[1:] == times[:-1]
    if not np.isfinite(times).all():
        raise UserError(f"{TABLE}: has a time that is no finite number")
    if not (later | (same & (flow[1:] > flow[:-1]))).all():
        raise UserError(f"{TABLE}: its rows are not in the order of time and flow, or one is there twice")
    return columns


def _typed(name: str, column: object) -> Array:
    """A column in its own type. UserError if a value does not fit."""
    if column.null_count:  # type: ignore[attr-defined]
        raise UserError(f"{TABLE}: has empty places in column {name}")
    values: Array = column.to_numpy()  # type: ignore[attr-defined]
    kind = np.dtype(type_of(name))
    with np.errstate(all="ignore"):
        typed = values.astype(kind)
    if kind.kind == "f":
        typed[np.isnan(typed)] = np.nan  # one of the many
        return typed + 0.0  # no negative zero
    limits = np.iinfo(kind)
    if len(values) and (
        not np.isfinite(values.min())
        or not np.isfinite(values.max())
        or int(values.min()) < limits.min
        or int(values.max()) > limits.max
        or not (typed == values).all()
    ):
        raise UserError(f"{TABLE}: has values in column {name} that are no whole numbers, or too large")
    return typed


def table_digest(columns: Mapping[str, Array]) -> str:
    """SHA-256 of a table's values, however the file was written."""
    digest = hashlib.sha256()
    for name in sorted(columns):
        digest.update(f"{name}\0{columns[name].dtype.str}\0".encode() + columns[name].tobytes())
    return digest.hexdigest()


def fingerprint_of(columns: Mapping[str, Array]) -> str:
    """A run's fingerprint: four hexadecimal digits for each of some measures at INSTANTS times.

    Editing single values, or all of one column, changes only a part of it.
    """
    times, first, inverse = np.unique(columns["time_s"], return_index=True, return_inverse=True)
    chosen = np.linspace(0, len(times) - 1, INSTANTS).round().astype(int)
    series = [columns[name][first] for name in ("queue_bytes", "queue_sent_bytes")]
    for name in ("bytes_acked", "srtt_us", "cwnd"):
        series.append(np.bincount(inverse, columns[name].astype(float), len(times)))
    values = [float(measure[i]) for measure in series for i in chosen]
    return "".join(f"{zlib.crc32(np.float64(value).tobytes()) & 0xFFFF:04x}" for value in values)


def similarity(fingerprint: str, others: list[str]) -> Array:
    """The equal part of a fingerprint and each of others, 0 to 1, shape (others,)."""
    if not others:
        return np.zeros(0)
    table = np.array([np.frombuffer(bytes.fromhex(other), ">u2") for other in others])
    return np.asarray((table == np.frombuffer(bytes.fromhex(fingerprint), ">u2")).mean(axis=1))


def impossible(scenario: Scenario, plan: Plan, columns: Mapping[str, Array]) -> Iterator[str]:
    """Values that no run can have measured, in words: falling counters, more than was sent, more than the link carries.

    These hold for every run, so that the only tolerances are those of the self-checks.
    """
    group_of = np.array([f.group for f in plan.flows] + [-1])
    if (group_of[columns["flow"]] != columns["group"]).any():
        yield "column group is not that of the flows"
    of_flow = columns["flow"] >= 0
    flows = {name: values[of_flow] for name, values in columns.items()}
    order = np.lexsort((flows["time_s"], flows["flow"]))
    same = flows["flow"][order][1:] == flows["flow"][order][:-1]
    for name in GROWING:
        counts = flows[name][order]
        if (counts[1:] < counts[:-1])[same].any():
            yield f"{name} of a flow falls"
    # In Python's floats, which hold these counters exactly up to 9e15 bytes.
    count = {name: flows[name].astype(float) for name in (*GROWING, "unacked", "snd_mss")}
    outstanding = count["bytes_sent"] - count["bytes_retrans"] - count["bytes_acked"] + SYN_BYTES
    mss = count["snd_mss"]
    # That is just being sent, and counts as sent before it counts as in flight: two segments or more go at once.
    largest = 2 * scenario.network.frame_bytes if scenario.hosts.segmentation == "off" else SEGMENT_BYTES
    for broken, text in (
        (outstanding < -FIN_BYTES, "more bytes are acknowledged than were sent"),
        (outstanding > count["unacked"] * mss + largest, "bytes were sent that are neither acknowledged nor in flight"),
        (count["bytes_sent"] > count["data_segs_out"] * mss, "more bytes were sent than segments can hold"),
        (count["bytes_retrans"] > count["total_retrans"] * mss, "more bytes were sent again than segments can hold"),
        (
            count["bytes_acked"] > count["delivered"] * mss + SYN_BYTES,
            "more bytes are acknowledged than were delivered",
        ),
        (count["delivered"] > count["data_segs_out"] + 1, "more segments were delivered than were sent"),  # SYN
    ):
        if broken.any():
            yield text
    without = np.isin(flows["group"], [i for i, flow in enumerate(scenario.flows) if flow.cca in WITHOUT_BBR])
    if any(np.isfinite(flows[name][without].astype(float)).any() for name in flows if name.startswith("bbr_")):
        yield "a flow without BBR has BBR's state"
    lowest = _lowest_rtt_us(scenario)
    for name in ("min_rtt_us", "srtt_us"):
        measured = flows[name][flows[name] > 0]
        if len(measured) and measured.min() < lowest - 1000 * VIRTUAL_TIME.rtt_ms:
            yield f"an RTT ({name}) of {measured.min()} us is below the path's {lowest:g} us"
    if all(flow.direction == "forward" for flow in scenario.flows):
        yield from _beyond_the_link(scenario, columns, flows)


def _lowest_rtt_us(scenario: Scenario) -> float:
    """The smallest RTT that any flow may measure without a queue; jitter adds to it.

    Whole milliseconds: where a segment was sent twice, Linux measures by TCP's timestamps, which count these.
    """
    network = scenario.network
    given = [network.rtt_ms, *(f.rtt_ms for f in scenario.flows), *(c.rtt_ms for c in network.changes)]
    given += [entry for f in scenario.flows for entry in f.rtts_ms or ()]
    lowest_ms = min(v for entry in given if entry is not None for v in (entry if isinstance(entry, list) else [entry]))
    return 1000 * math.floor(lowest_ms)


def _allowed_bytes(scenario: Scenario, times: Array) -> tuple[Array, float]:
    """The bytes that a link's rate allows from the first time up to each, and how many more since its changes come late."""
    if trace := scenario.network.opportunities:
        counts = trace.count(times)
        return (counts - counts[0]) * float(trace.bytes), 0.0
    # The rate's integral: constant between samples and changes; a change takes place EDGE_TOLERANCE_S late at most.
    edges = np.unique([*times, *(c.at_s for c in scenario.network.changes if times[0] < c.at_s < times[-1])])
    rates = rates_at(scenario.network, (edges[1:] + edges[:-1]) / 2) * 1e6 / 8
    allowed = np.concatenate([[0.0], np.cumsum(rates * np.diff(edges))])[np.searchsorted(edges, times)]
    return allowed, EDGE_TOLERANCE_S * rates.max(initial=0) if scenario.network.changes else 0.0


def _beyond_the_link(scenario: Scenario, columns: Mapping[str, Array], flows: Mapping[str, Array]) -> Iterator[str]:
    """Impossible values of a bottleneck: in its queue, of what it has sent, and beyond its rate."""
    scenario = scenario.towards(scenario.flows[0].direction)
    times, first, inverse = np.unique(columns["time_s"], return_index=True, return_inverse=True)
    for name in columns:
        if name.startswith("queue_") and (columns[name] != columns[name][first][inverse]).any():
            yield f"{name} has several values at one time"
    queue = {name: values[first].astype(float) for name, values in columns.items() if name.startswith("queue_")}
    yield from (f"{name} is below 0" for name, values in queue.items() if (values < 0).any())
    yield from (f"{name} falls" for name in QUEUES_GROWING if (np.diff(queue[name]) < 0).any())
    # Packets and bytes change one after the other, so that one packet may be in the one and not in the other.
    if (queue["queue_bytes"] < (queue["queue_packets"] - 1) * LEAST_FRAME_BYTES).any():
        yield "the queue has more packets than its bytes make"
    if scenario.hosts.ecn == "off" and queue["queue_marks"].any():
        yield "packets were marked, and no flow has ECN"
    total = {name: np.bincount(inverse[columns["flow"] >= 0], flows[name].astype(float), len(times)) for name in ("bytes_acked", "bytes_sent", "segs_out")}  # fmt: skip
    sent = queue["queue_sent_bytes"]
    if (total["bytes_acked"] > sent - sent[0]).any():
        yield "more bytes are acknowledged than the bottleneck has sent"
    # Flows that had ended are in no sample.
    if all(flow.stop_s is None and flow.bytes is None and flow.traffic is None for flow in scenario.flows):
        control = sum(CONTROL_BYTES + CONTROL_FLOW_BYTES * flow.count for flow in scenario.flows)
        headers_bytes = scenario.network.frame_bytes - scenario.network.payload_bytes
        if (sent - sent[0] > total["bytes_sent"] + headers_bytes * total["segs_out"] + control).any():
            yield "the bottleneck has sent more than the flows"
        if (queue["queue_drops"] - queue["queue_drops"][0] > total["segs_out"] + control / LEAST_FRAME_BYTES).any():
            yield "the bottleneck has dropped more than the flows sent"
    if scenario.hosts.segmentation == "off":
        if (queue["queue_bytes"] > (queue["queue_packets"] + 1) * scenario.network.frame_bytes).any():
            yield "the queue has more bytes than its packets can hold"
        # Random loss takes packets elsewhere, and fq at the hosts holds them.
        came = sent + queue["queue_bytes"] + queue["queue_drops"] * scenario.network.frame_bytes
        if (
            scenario.hosts.pacing == "internal"
            and scenario.network.loss_place == "behind"
            and (scenario.network.policer is None or scenario.network.policer.place == "behind")
            and (total["bytes_sent"] > came).any()
        ):
            yield "the flows sent more than came to the bottleneck"
    allowed, late = _allowed_bytes(scenario, times)
    # A limiter may save room for its largest packet, and the next one counts as sent when it begins to leave.
    packet = SEGMENT_BYTES if scenario.hosts.segmentation == "router" else scenario.network.frame_bytes
    if (sent - sent[0] > (1 + BUSY_RATE_TOLERANCE) * allowed + late + 2 * packet + LIMITER_SLACK_BYTES).any():
        yield "the bottleneck has sent more than its rate allows"
