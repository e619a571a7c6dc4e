"""BBR's own estimate of the jitter."""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array


def jitter_ms(extra_acked_bytes: Array, goodput_mbit: Array) -> Array:
    """How long the goodput takes for what BBR saw acknowledged at once beyond its bandwidth (Bless et al. 2025, Fig. 12).

    Args:
        extra_acked_bytes: BBR's extra_acked times the segment size, mean over some time; any shape.
        goodput_mbit: over the same time, the same shape.

    Returns:
        ms; NaN where nothing was delivered.
    """
    goodput = np.asarray(goodput_mbit, dtype=float)
    found: Array = np.asarray(extra_acked_bytes) * 8e-3 / np.where(goodput > 0, goodput, np.nan)
    return found
