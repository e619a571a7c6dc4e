"""The chunks that a scenario's group of short flows sends."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd

from bbrlab.workload.backbone import backbone_chunks
from bbrlab.workload.chunks import collapsed_chunks, read_chunks, synthetic_chunks


def workload_of(mode: str, trace: str, seed: int, duration_s: float, offered_mbit: float) -> pd.DataFrame:
    """The chunks that a scenario's group of short flows sends.

    Args:
        mode: "replay", "collapsed" or "synthetic".
        trace: "model", or a file that write_chunks() made.
        seed: the run's; of a file it decides the shuffling of "synthetic" only.
        duration_s: flows that start later are left out.
        offered_mbit: mean load of the model, in Mbit/s; a file has its own (scenario/schema.py refuses another one).

    Returns:
        Columns COLUMNS, flows numbered from 0, each one's chunks together and in order.
    """
    chunks = backbone_chunks(seed, duration_s, offered_mbit) if trace == "model" else read_chunks(Path(trace))
    chunks = chunks[chunks["start_s"] < duration_s].sort_values(["flow", "chunk"], kind="stable", ignore_index=True)
    chunks["flow"] = pd.factorize(chunks["flow"])[0]
    if mode == "collapsed":
        return collapsed_chunks(chunks)
    return (
        synthetic_chunks(chunks, random.Random(f"synthetic:{seed}").getrandbits(63)) if mode == "synthetic" else chunks
    )
