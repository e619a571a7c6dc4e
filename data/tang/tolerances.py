"""Tolerances of the claims on Tang's Table II, from the paper's own numbers: ``python data/tang/tolerances.py``.

HEADERS: how much goodput a full link carries in the simulation is not said. It is at least the 9.31 of 10 Mbit/s that its
CUBIC reaches, and at most 9.64 (1448 bytes in a frame of 1502, the largest that ns-3's point-to-point link has).
A CUBIC flow below that lives from loss to loss: one run of 100 s has N = p x packets of them, N scatters by sqrt(N), and
CUBIC's rate goes with p^(-3/4) (RFC 9438, section 5.1): 1.96 x .75 / sqrt(N) of it, besides the headers' part.
"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
FULL_LINK_MBIT, HEADERS_MBIT = 9.64, 0.33
SECONDS, PAYLOAD_BYTES = 100, 1448


def tolerance(case: str, goodput_mbit: float, random_loss: float) -> float:
    """The tolerance of one goodput, Mbit/s."""
    if case != "cubic" or goodput_mbit > FULL_LINK_MBIT - 2 * HEADERS_MBIT:
        return HEADERS_MBIT
    losses = random_loss * goodput_mbit * 1e6 * SECONDS / 8 / PAYLOAD_BYTES
    return round(goodput_mbit * (HEADERS_MBIT / FULL_LINK_MBIT + 1.96 * 0.75 / math.sqrt(losses)), 2)


def tables() -> dict[str, pd.DataFrame]:
    """table2.csv with ``tolerance_mbit``."""
    table = pd.read_csv(HERE / "table2.csv")
    table["tolerance_mbit"] = [tolerance(r.case, r.goodput_mbit, r.random_loss) for r in table.itertuples()]
    return {"table2": table[[c for c in table if c not in ("source", "exactness")] + ["source", "exactness"]]}


def main() -> None:
    """Write the table."""
    for name, table in tables().items():
        table.to_csv(HERE / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
