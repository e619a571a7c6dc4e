"""Goodput and BBR's estimate of the jitter over time, from samples.parquet."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from bbrlab.measure.jitter import jitter_ms
from bbrlab.measure.lateness import EDGE_TOLERANCE_S


def whole_bin_s(duration_s: float, sample_hz: float, most: int) -> float:
    """Width of at most ``most`` bins of a run: a whole number of samples, two or more, so that as many fall into each."""
    return max(2, math.ceil(duration_s * sample_hz / most)) / sample_hz


def goodput_series(samples: pd.DataFrame, bin_s: float, by: str = "flow") -> dict[int, tuple[Any, Any]]:
    """Goodput over time, in bins of ``bin_s``.

    Args:
        samples: time_s, flow, bytes_acked (and group, if that is asked for) of samples.parquet.
        by: "flow", or "group" for the sum over each group's flows.

    Returns:
        {flow or group: (begins of the bins in s, goodput in Mbit/s)}.
    """
    data = samples[samples["flow"] >= 0].assign(bin=lambda d: _bins(d["time_s"], bin_s))
    flows = list(dict.fromkeys([by, "flow"]))
    rates = data.groupby([*flows, "bin"])["bytes_acked"].last().groupby(flows).diff() * 8e-6 / bin_s
    series = {}
    for key, rows in rates.groupby(by):
        rate = rows.groupby("bin").sum(min_count=1).iloc[:-1]  # the last bin is hardly ever whole
        series[int(str(key))] = (rate.index.to_numpy() * bin_s, rate.to_numpy())
    return series


def _bins(times_s: pd.Series, bin_s: float) -> pd.Series:
    """The bin of each sample; one that is stamped a little before its instant is in the bin of that instant."""
    return ((times_s + EDGE_TOLERANCE_S) / bin_s).astype(int)


def jitter_series(samples: pd.DataFrame, bin_s: float) -> dict[int, tuple[Any, Any]]:
    """BBR's own estimate of the jitter over time: extra_acked over the smoothed goodput (Bless et al. 2025, Fig. 12).

    Args:
        samples: time_s, flow, bytes_acked, snd_mss and bbr_extra_acked of samples.parquet.
        bin_s: width of the bins over which both are averaged.

    Returns:
        {flow: (begins of the bins in s, ms)}; NaN where nothing was delivered.
    """
    data = samples[samples["flow"] >= 0].assign(
        bin=lambda d: _bins(d["time_s"], bin_s), extra=lambda d: d["bbr_extra_acked"] * d["snd_mss"]
    )
    extra = data.groupby(["flow", "bin"])["extra"].mean()
    series: dict[int, tuple[Any, Any]] = {}
    for flow, (begins, goodput) in goodput_series(samples, bin_s).items():
        extra_bytes = extra[flow].reindex((begins / bin_s).round().astype(int)).to_numpy()
        series[flow] = (begins, jitter_ms(extra_bytes, goodput))
    return series
