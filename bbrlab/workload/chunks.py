"""Short flows as chunks: files of them, and the three ways to send them."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab.base import files
from bbrlab.base.errors import UserError

PAUSE_S = 0.1  # "no data is sent for at least 100 ms"
MIN_BYTES = 8  # what tells a receiver which flow it is
COLUMNS = ("flow", "chunk", "start_s", "pause_s", "bytes")


def collapsed_chunks(chunks: pd.DataFrame) -> pd.DataFrame:
    """Each flow as one chunk."""
    grouped = chunks.groupby("flow", sort=True).agg(start_s=("start_s", "first"), bytes=("bytes", "sum")).reset_index()
    return grouped.assign(chunk=0, pause_s=0.0)[list(COLUMNS)]


def synthetic_chunks(chunks: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Interarrival times and sizes of the collapsed flows, each shuffled on its own; load and duration stay."""
    whole = collapsed_chunks(chunks)
    rng = np.random.default_rng(seed)
    gaps = np.diff(np.sort(whole["start_s"].to_numpy()), prepend=0.0)
    return whole.assign(start_s=np.cumsum(rng.permutation(gaps)), bytes=rng.permutation(whole["bytes"].to_numpy()))


def write_chunks(chunks: pd.DataFrame, path: Path) -> None:
    """Write chunks as CSV."""
    with files.aside(path) as temporary:
        chunks.to_csv(temporary, index=False)


def read_chunks(path: Path) -> pd.DataFrame:
    """Chunks that write_chunks() wrote. UserError naming file, line and what is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{path}: cannot be read; make it with: bbrlab traffic CAPTURE.pcap --out FILE.csv") from None
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or rows[0] != list(COLUMNS):
        raise UserError(f"{path}:1: the columns must be {', '.join(COLUMNS)}")
    lines_read = []
    for line, row in enumerate(rows[1:], 2):
        try:
            flow, chunk, start, pause, size = int(row[0]), int(row[1]), float(row[2]), float(row[3]), int(row[4])
        except (ValueError, IndexError):
            raise UserError(f"{path}:{line}: not a row of numbers: {','.join(row)[:60]}") from None
        if not (0 <= start < math.inf and 0 <= pause < math.inf and size >= MIN_BYTES and flow >= 0 and chunk >= 0):
            raise UserError(f"{path}:{line}: start and pause must be at least 0, bytes at least {MIN_BYTES}")
        lines_read.append((flow, chunk, start, pause, size))
    if not lines_read:
        raise UserError(f"{path}: has no flow")
    chunks = pd.DataFrame(lines_read, columns=list(COLUMNS))
    _check_order(chunks.sort_values(["flow", "chunk"], kind="stable"), path)
    return chunks


def _check_order(chunks: pd.DataFrame, path: Path) -> None:
    """UserError for a flow whose chunks are not 0, 1, 2, ... with one start: the guest counts them in their order, and what it says
    of another number would be lost.

    Args:
        chunks: by flow and chunk; their index counts the lines behind the file's first.
    """
    of_flow = chunks.groupby("flow")
    wrong = (chunks["chunk"] != of_flow.cumcount()) | (chunks["start_s"] != of_flow["start_s"].transform("first"))
    if wrong.any():
        at = int(wrong.to_numpy().argmax())
        line, row = int(chunks.index[at]) + 2, chunks.iloc[at]
        raise UserError(
            f"{path}:{line}: chunk {row['chunk']:g} of flow {row['flow']:g}, start_s {row['start_s']:g}: number each flow's chunks 0, 1, "
            "2, ..., once each, and give all of them the start_s of the first"
        )
