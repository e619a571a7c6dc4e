"""A run over time."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from bbrlab.base.arrays import Array
from bbrlab.measure.lateness import EDGE_TOLERANCE_S
from bbrlab.measure.series import goodput_series
from bbrlab.results.algorithm_table import QUIET, colour_of_cca, label_of_cca
from bbrlab.results.schema import RUN_AGAIN, read_with
from bbrlab.scenario.rates import Rate, before, buffer_full_ms, highest_mbit, queueing_delay_ms
from bbrlab.show.plots.style import ABOVE

BIN_S = 2.0  # over which goodput is averaged


def run_over_time(samples: Path, rate: Rate, buffer_bytes: int, groups: list[str]) -> Figure:
    """One run over time: goodput of each group, and the bottleneck queue.

    Args:
        samples: samples.parquet of the run.
        rate: of the bottleneck: the scenario's network, if the rate changes during the run.
        groups: the CCA of each flow group.
    """
    columns = ["time_s", "flow", "group", "bytes_acked", "queue_bytes"]
    data = read_with(samples, columns, columns, RUN_AGAIN)
    rate = before(rate, data["time_s"].max() - EDGE_TOLERANCE_S)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(10.5, 4.6), sharex=True, layout="constrained", height_ratios=[3, 2]
    )
    for group, goodput in goodput_series(data, BIN_S, "group").items():
        cca = groups[group]
        which = "" if list(groups).count(cca) == 1 else f" (flows.{group})"  # as the scenario's fields are called
        top.plot(*goodput, lw=0.9, color=colour_of_cca(cca), label=f"{label_of_cca(cca)}{which}")
    top.set(ylabel="goodput (Mbit/s)", ylim=(0, highest_mbit(rate) * 1.05))
    top.legend(ncols=len(groups), **ABOVE)
    times, delays_ms = _delays_ms(data, rate)
    bottom.plot(times, delays_ms, lw=0.5, color="0.3")
    if len(times):
        bottom.plot(*buffer_full_ms(rate, times[0], times[-1], buffer_bytes), color=QUIET, lw=0.8, ls="--")
    bottom.set(ylabel="queue (ms)", xlabel="virtual time (s)", ylim=(0, None))
    return figure


def _delays_ms(samples: pd.DataFrame, rate: Rate) -> tuple[Array, Array]:
    """Times (s) and queueing delays (ms), each of shape (times,), of a run's samples."""
    queue = samples.drop_duplicates("time_s")
    times = queue["time_s"].to_numpy()
    return times, queueing_delay_ms(rate, times, queue["queue_bytes"].to_numpy())
