"""How far a second laboratory is from Cao et al.'s numbers: the tolerances of the claims on them.

Reads the published values beside it and second_laboratory.csv (kernel 4.15, Cao et al.'s own), and writes the columns
that follow from both. Nothing that bbrlab measured goes in. ``python data/cao2019/laboratories.py`` makes them anew.

- fig5.csv: ``second_laboratory_percent``, and ``low_percent`` and ``high_percent``: the gain if BBRv1's goodput over CUBIC's
  is ``factor`` times smaller or larger, where ``factor`` is the median over the eight RTTs of a rate and buffer of the factor
  between the two laboratories' ratios. Half of the second laboratory's cells are within it, half are not.
- text.csv, loss.csv: ``second_laboratory`` and ``tolerance``, the distance between the two in that very number
  (half a packet at least: a count is whole).
- table1.csv: ``low_*`` and ``high_*``: FACTOR below and above the count, where the second laboratory has no counterpart;
  FACTOR is the median factor between the two laboratories' mean losses (loss.csv). A small count has at least its own
  95 % Poisson interval.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

HERE = Path(__file__).parent
KERNEL = 4.15
PAYLOAD_BYTES = 1448  # of a full segment
SECONDS = 60
KEYS = ["rate_mbit", "base_rtt_ms", "buffer_bytes"]


def second() -> pd.DataFrame:
    """The second laboratory's goodput, retransmissions and loss (retransmissions over segments sent), indexed by setting and case."""
    table = pd.read_csv(HERE / "second_laboratory.csv", dtype={"kernel": str})
    table = table[table["kernel"] == str(KERNEL)].rename(columns={"cca": "case"})
    table["buffer_bytes"] = table["nominal_buffer_bytes"]  # theirs are tc's kilobytes; by name they are Cao et al.'s
    segments = table["goodput_mbit"] * 1e6 * SECONDS / 8 / PAYLOAD_BYTES
    table["loss"] = table["retransmits"] / (segments + table["retransmits"])
    return table.set_index([*KEYS, "case"])[["goodput_mbit", "retransmits", "loss"]]


def gains(theirs: pd.DataFrame) -> pd.DataFrame:
    """fig5.csv with the second laboratory's gain and the bounds."""
    table = pd.read_csv(HERE / "fig5.csv")
    goodput = theirs["goodput_mbit"].unstack()
    gain = 100 * (goodput["bbr1"] / goodput["cubic"] - 1)
    table["second_laboratory_percent"] = gain.loc[list(zip(*(table[k] for k in KEYS), strict=True))].round(1).to_numpy()
    published, repeated = 1 + table["gain_percent"] / 100, 1 + table["second_laboratory_percent"] / 100
    between = np.maximum(published / repeated, repeated / published)
    table["factor"] = between.groupby([table["buffer_bytes"], table["rate_mbit"]]).transform("median").round(3)
    table["low_percent"] = (100 * (published / table["factor"] - 1)).round(1)
    table["high_percent"] = (100 * (published * table["factor"] - 1)).round(1)
    return table.drop(columns="tolerance_points", errors="ignore")


def numbers(theirs: pd.DataFrame) -> pd.DataFrame:
    """text.csv with the second laboratory's number and the tolerance."""
    table = pd.read_csv(HERE / "text.csv")
    found = [theirs.loc[(r.rate_mbit, r.base_rtt_ms, r.buffer_bytes, r.case), r.quantity] for r in table.itertuples()]
    table["second_laboratory"] = pd.Series(found).round(2)
    table["tolerance"] = (table["value"] - table["second_laboratory"]).abs().clip(lower=0.5).round(2)
    return table


def losses(theirs: pd.DataFrame) -> pd.DataFrame:
    """loss.csv with the second laboratory's mean and the tolerance."""
    table = pd.read_csv(HERE / "loss.csv")
    mean = theirs["loss"].groupby(["buffer_bytes", "case"]).mean()
    table["second_laboratory"] = [round(float(mean[r.buffer_bytes, r.case]), 4) for r in table.itertuples()]
    table["tolerance"] = (table["loss"] - table["second_laboratory"]).abs().round(4)
    return table


def factor(loss: pd.DataFrame) -> float:
    """The median factor between the two laboratories' mean losses."""
    ratios = [max(a, b) / min(a, b) for a, b in zip(loss["loss"], loss["second_laboratory"], strict=True)]
    return round(statistics.median(ratios), 1)


def counts(times: float) -> pd.DataFrame:
    """table1.csv with the bounds of each count."""
    table = pd.read_csv(HERE / "table1.csv")
    for cca in ("bbr1", "cubic"):
        n = table[f"retransmits_{cca}"].to_numpy(dtype=float)
        low = np.nan_to_num(stats.chi2.ppf(0.025, 2 * n) / 2)  # of a count of 0: 0
        high = stats.chi2.ppf(0.975, 2 * n + 2) / 2
        table[f"low_{cca}"] = np.minimum(n / times, low).round(1)
        table[f"high_{cca}"] = np.maximum(n * times, high).round(1)
    return table


def tables() -> dict[str, pd.DataFrame]:
    """Every table that this makes, by its file's name."""
    theirs = second()
    loss = losses(theirs)
    return {"fig5": gains(theirs), "text": numbers(theirs), "loss": loss, "table1": counts(factor(loss))}


def order(table: pd.DataFrame) -> pd.DataFrame:
    """``source`` and ``exactness`` at the end."""
    return table[[c for c in table if c not in ("source", "exactness")] + ["source", "exactness"]]


def main() -> None:
    """Write the tables."""
    for name, table in tables().items():
        order(table).to_csv(HERE / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
