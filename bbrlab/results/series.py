"""What a run's samples say over time: goodput, queue, RTT, windows, by flow group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array
from bbrlab.measure.metrics import label_of
from bbrlab.measure.sample_schema import ACKS, COLUMNS, IN_FLIGHT, SAMPLES, of_link, packets_in_flight
from bbrlab.measure.series import goodput_series, jitter_series, whole_bin_s
from bbrlab.results.run_manifest import RunScenario
from bbrlab.scenario.rates import before, queueing_delay_ms
from bbrlab.scenario.schema import Scenario

STATE, ACK_RTT, JITTER = "state", "ack_rtt", "jitter"
BINS = 300  # of a run's goodput, at most
JITTER_BIN_S = 1.0  # over which BBR's estimate of the jitter is averaged
OfRun = Scenario | RunScenario  # as it is asked for, or as a manifest has it


@dataclass(frozen=True)
class Series:
    """What may be drawn over time."""

    label: str
    columns: tuple[str, ...]  # of samples.parquet that it needs
    of_flows: bool  # whether flow groups have it; else the bottleneck
    # Of samples with those columns, in the axis' unit; None: values_of() has its own way
    value: Callable[[pd.DataFrame], Any] | None
    meaning: str
    ack_columns: tuple[str, ...] = ()  # of acks.parquet that it needs; default: columns


def _in_flight(table: pd.DataFrame) -> Any:
    """Of samples, or as records of ACKs have it."""
    return (
        table["in_flight"]
        if "in_flight" in table
        else packets_in_flight(*(table[name].to_numpy() for name in IN_FLIGHT))
    )


SERIES = {
    "goodput": Series("goodput (Mbit/s)", ("bytes_acked",), True, None, "of a flow group, in bins"),
    "queue": Series("queue (ms)", ("queue_bytes",), False, None, "queueing delay of the bottleneck"),
    "rtt": Series("RTT (ms)", ("srtt_us",), True, lambda t: t["srtt_us"] / 1e3, "smoothed RTT, mean over the group's flows"),
    ACK_RTT: Series("RTT of each ACK (ms)", ("rtt_us",), True, lambda t: t["rtt_us"].where(t["rtt_us"] >= 0) / 1e3, "only with --acks"),
    "cwnd": Series("cwnd (packets)", ("cwnd",), True, lambda t: t["cwnd"], "congestion window, mean over the group's flows"),
    "inflight": Series("in flight (packets)", IN_FLIGHT, True, _in_flight, "neither acknowledged nor known to be lost, mean over the group's flows", ("in_flight",)),
    "pacing": Series("pacing rate (Mbit/s)", ("pacing_rate",), True, lambda t: t["pacing_rate"] * 8e-6, "mean over the group's flows"),
    "bw": Series("BBR's bandwidth (Mbit/s)", ("bbr_bw",), True, lambda t: t["bbr_bw"] * 8e-6, "its estimate, mean over the group's flows"),
    "min_rtt": Series("BBR's min_rtt (ms)", ("bbr_min_rtt_us",), True, lambda t: t["bbr_min_rtt_us"] / 1e3, "its estimate, mean over the group's flows"),
    "retransmits": Series("retransmissions (packets)", ("total_retrans",), True, lambda t: t["total_retrans"], "since the start, mean over the group's flows"),
    JITTER: Series("jitter estimate (ms)", ("bytes_acked", "snd_mss", "bbr_extra_acked"), True, None, "BBR's own: extra_acked over goodput, in bins of a second, mean over the group's flows"),
    STATE: Series("BBR's state", ("bbr_state",), True, None, "of the first flow of each group"),
}  # fmt: skip
OF_ACKS = (ACK_RTT, "cwnd", "inflight", "pacing", "bw", "losses", STATE)
DEFAULT = ("goodput", "queue", "rtt", "cwnd", "inflight", STATE)
BELOW = {"queue_bytes", "queue_packets", "queue_drops", "queue_marks", "queue_sent_bytes", "queue_sent_packets"}


def names(*, of_acks: bool = False) -> list[str]:
    """Of all series, and of the columns of samples.parquet, or acks.parquet, that may be drawn as they are."""
    return [
        *(name for name, series in SERIES.items() if (series.of_flows if of_acks else name != ACK_RTT)),
        *(c for c in (ACKS if of_acks else SAMPLES) if c not in ("time_s", "flow", "group", "bbr_state")),
    ]


def series_of(name: str) -> Series:
    """A series by its name (names()); of a column, the column itself."""
    if name in SERIES:
        return SERIES[name]
    return Series(label_of(name), (name,), name not in BELOW, lambda table: table[name], COLUMNS[name].meaning)


def columns_of(run: OfRun, name: str, *, of_acks: bool = False) -> list[str]:
    """The columns of samples.parquet, or of acks.parquet, that a series of a run needs: of several links those of each."""
    series, links = series_of(name), run.network.links
    if of_acks and series.ack_columns:
        return list(series.ack_columns)
    if series.of_flows or links is None:
        return list(series.columns)
    return [of_link(column, number) for number in range(len(links)) for column in series.columns]


def values_of(run: OfRun, name: str, samples: pd.DataFrame, by: str = "group") -> dict[int, tuple[Array, Array]]:
    """Times (s) and values of a series.

    Args:
        name: of a series that is not STATE.
        samples: of the run, with time_s, flow, group and the series' columns.
        by: "group" or "flow": what of the flows has a curve of its own.

    Returns:
        {flow group, or flow: (times, values)}; of the bottleneck {-1: ...}, and of several links in a row {-1: ..., -2: ...} in their
        order. Empty for the queue's delay where the link's rate is not known.
    """
    series = series_of(name)
    if name == "goodput":
        bin_s = whole_bin_s(run.duration_s, run.sample_hz, BINS)
        return {i: (times + bin_s / 2, rate) for i, (times, rate) in goodput_series(samples, bin_s, by).items()}
    if name == "queue" and not run.network.rate_is_known:
        return {}
    if not series.of_flows:
        once = samples.drop_duplicates("time_s")
        return {-1 - number: _of_bottleneck(run, name, once, number) for number in range(len(run.network.bottlenecks))}
    if name == JITTER:
        return _means(_jitter(samples), by)
    assert series.value is not None
    flows = samples[samples["flow"] >= 0]
    return _means(flows.assign(value=series.value(flows)), by)


def _means(flows: pd.DataFrame, by: str) -> dict[int, tuple[Array, Array]]:
    """Means over the flows of each group, or of each flow its own values; none of one that never has a value."""
    means = flows.replace([np.inf], np.nan).groupby([by, "time_s"])["value"].mean()
    return {
        int(str(i)): (rows.index.get_level_values("time_s").to_numpy(), rows.to_numpy(dtype=float))
        for i, rows in means.groupby(by)
        if rows.notna().any()
    }


def _jitter(samples: pd.DataFrame) -> pd.DataFrame:
    """BBR's estimate of the jitter of each flow: columns flow, group, time_s and value."""
    groups = samples.drop_duplicates("flow").set_index("flow")["group"]
    series = jitter_series(samples, JITTER_BIN_S)
    parts = [
        pd.DataFrame({"time_s": begins + JITTER_BIN_S / 2, "value": values}).assign(flow=flow, group=groups[flow])
        for flow, (begins, values) in series.items()
    ]
    return pd.concat(parts) if parts else pd.DataFrame(columns=["time_s", "value", "flow", "group"])


def _of_bottleneck(run: OfRun, name: str, once: pd.DataFrame, number: int) -> tuple[Array, Array]:
    """Times and values of a series of one bottleneck, of samples with a row for each instant."""
    series, network = series_of(name), run.network
    if network.links is not None:
        once = once[["time_s", *(of_link(c, number) for c in series.columns)]].set_axis(
            ["time_s", *series.columns], axis=1
        )
    times = once["time_s"].to_numpy()
    if name == "queue":
        rate = before(network.bottlenecks[number], run.duration_s)
        return times, queueing_delay_ms(rate, times, once["queue_bytes"].to_numpy())
    assert series.value is not None
    return times, np.asarray(series.value(once), dtype=float)
