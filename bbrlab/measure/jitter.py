"""BBR's own estimate of the jitter."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.measure.lateness import EDGE_TOLERANCE_S


def jitter_ms(extra_acked_bytes: Array | float, goodput_mbit: Array | float) -> Array:
    """How long the goodput takes for what BBR saw acknowledged at once beyond its bandwidth (Bless et al. 2025, Fig. 12).

    Args:
        extra_acked_bytes: BBR's extra_acked times the segment size, mean over some time; any shape, or one number.
        goodput_mbit: over the same time, the same shape.

    Returns:
        ms; NaN where nothing was delivered.
    """
    goodput = np.asarray(goodput_mbit, dtype=float)
    jitter: Array = np.asarray(extra_acked_bytes) * 8e-3 / np.where(goodput > 0, goodput, np.nan)
    return jitter


def largest_by_second(times_s: Array, extra_acked_bytes: Array, acked_bytes: Array, window_s: list[float]) -> float:
    """The largest of jitter_ms() over the whole seconds of a window.

    Args:
        times_s: of a flow's samples, ascending, s since the experiment's start, shape (samples,).
        extra_acked_bytes, acked_bytes: at these, the same shape; the second is a counter.
        window_s: its edges.

    Returns:
        ms; NaN if in no whole second something was sampled and delivered.
    """
    edges = np.arange(np.ceil(window_s[0]), np.floor(window_s[1]) + 1)
    places = np.searchsorted(times_s, edges - EDGE_TOLERANCE_S)
    largest = float("nan")
    for begin, end in pairwise(places):
        if end >= len(times_s) or end - begin < 1:
            continue
        goodput = (acked_bytes[end] - acked_bytes[begin]) * 8e-6 / (times_s[end] - times_s[begin])
        largest = float(np.fmax(largest, jitter_ms(extra_acked_bytes[begin:end].mean(), goodput)))
    return largest
