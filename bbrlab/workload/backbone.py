"""Short flows: a traffic model with the published facts of a backbone trace.

Bless et al. 2025, section VI, replay a backbone trace in three ways. A flow is a sequence of *chunks*, stretches of
data without a pause of 100 ms or more:

- **replay**: each chunk starts when the one before it has been sent and its pause has gone by;
- **collapsed**: each flow is one transmission of all its chunks, without pauses;
- **synthetic**: sizes and interarrival times of the collapsed flows, drawn independently of each other, which takes
  the bursts out.

The model (``trace: model``) has the trace's published sizes: 10 % of the flows are larger than 18.2 kB, 90 % of the bytes
lie in flows of more than 6.4 MB and half of them in flows of more than 280.7 MB. A log-normal tail has exactly the
second and third property, and the share of flows that come from it gives the first; the others are mice below 18.2 kB.
How flows arrive and pause is not published. Here they arrive at a rate that changes every half second; and a flow pauses after
2 MB on average, wherever it is (a Poisson process over its bytes), for a second on average. The pauses of a flow must fit into
half of what is left of the trace when it starts: those of the largest flows are shorter for it, and in a trace of seconds fewer.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import optimize, stats

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.workload.chunks import COLUMNS, MIN_BYTES, PAUSE_S

# Published facts of MAWI 2020/06/10 (Bless et al. 2025, section VI).
LARGE_BYTES, LARGE_SHARE = 18.2e3, 0.10
BYTES_10TH, BYTES_50TH = 6.4e6, 280.7e6
MODEL_OFFERED_MBIT = 1250.0
LARGEST_BYTES = (
    7e9  # a twentieth of the 15 minutes' bytes; without a bound the largest flow would be larger than the trace
)
MOUSE_BYTES = (64.0, LARGE_BYTES)  # mice are uniform in the logarithm between these
BURST_S = 0.5  # so long the rate of arrivals stays as it is; then it is drawn anew, from a gamma distribution:
BURST_SHAPE = 2.0  # smaller: more bursts
CHUNK_BYTES = 2e6  # bytes between two pauses, on average
MEAN_PAUSE_S = 1.0  # where that many fit
PAUSING_PART = 0.5  # of what is left of the trace: so long a flow may pause altogether


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


FLOWS_MAX = 2_000_000  # seven times as many as the trace of 15 minutes
MEAN_OF = 200_000  # flows over which the model's mean size is taken
LOAD_TOLERANCE = 0.01  # of the asked load
ENOUGH_MBIT = 100.0  # Mbit in all, of which some flow is large with every seed


def _with_load(sizes: Array, target: float) -> Array:
    """The sizes with the mice left as they are and the others scaled so that all add up to ``target``."""
    large = sizes > LARGE_BYTES
    rest = target - float(sizes[~large].sum())
    if not large.any() or rest <= 0:
        return sizes
    scaled = np.where(large, np.maximum(LARGE_BYTES + 1, sizes * (rest / float(sizes[large].sum()))), sizes)
    return scaled.astype(np.int64)


def backbone_chunks(seed: int, duration_s: float, offered_mbit: float = MODEL_OFFERED_MBIT) -> pd.DataFrame:
    """Chunks of the model. UserError for more flows than a guest can hold, or so few that none is large enough to make up the load.

    Args:
        duration_s: within which all flows start.
        offered_mbit: mean load. The tail is so heavy that few flows make it up: its sizes are scaled a little, so that
            every seed offers the same load. In a short trace the largest flows of a long one have no room.

    Returns:
        Columns COLUMNS, a row per chunk, by start: ``start_s`` of the flow (its first chunk), ``pause_s`` before the chunk.
    """
    rng = np.random.default_rng(seed)
    target = offered_mbit * 1e6 / 8 * duration_s
    count = max(1, round(target / float(np.mean(flow_sizes(MEAN_OF, np.random.default_rng(0))))))
    if count > FLOWS_MAX:
        raise UserError(
            f"flows: traffic: offered_mbit {offered_mbit:g} for {duration_s:g} s are {count} flows; at most {FLOWS_MAX} are "
            "possible (a guest has them all in its memory)"
        )
    sizes = flow_sizes(count, rng)
    sizes = _with_load(sizes[sizes <= target], target)
    if abs((load := float(sizes.sum())) - target) > LOAD_TOLERANCE * target:
        raise UserError(
            f"flows: traffic: offered_mbit {offered_mbit:g} for {duration_s:g} s: the flows that seed {seed} draws for it offer "
            f"{load * 8e-6 / duration_s:.3g} Mbit/s; choose a longer run or a higher offered_mbit ({ENOUGH_MBIT / duration_s:.3g} is enough)"
        )
    periods = max(1, math.ceil(duration_s / BURST_S))
    rates = rng.gamma(BURST_SHAPE, size=periods)
    drawn = rng.choice(periods, len(sizes), p=rates / rates.sum())
    starts = np.sort((drawn + rng.random(len(sizes))) / periods * duration_s)
    rows = []
    for flow, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        room_s = PAUSING_PART * (duration_s - start)
        pauses = min(int(rng.poisson(size / CHUNK_BYTES)), int(room_s / PAUSE_S))
        mean_s = min(MEAN_PAUSE_S, room_s / pauses) if pauses else MEAN_PAUSE_S
        cuts = np.sort(rng.uniform(0, 1, pauses))
        edges = np.concatenate([[0.0], cuts, [1.0]]) * size
        pieces = np.diff(np.round(edges)).astype(np.int64)
        pieces = pieces[pieces >= MIN_BYTES] if (pieces >= MIN_BYTES).any() else np.zeros(1, np.int64)
        pieces[-1] += size - int(pieces.sum())
        for chunk, piece in enumerate(pieces):
            pause = 0.0 if chunk == 0 else PAUSE_S + float(rng.exponential(mean_s - PAUSE_S))
            rows.append((flow, chunk, start, pause, int(piece)))
    return pd.DataFrame(rows, columns=list(COLUMNS))
