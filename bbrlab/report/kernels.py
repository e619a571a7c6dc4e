"""One figure on several kernels: what ``bbrlab compare`` has run beside the campaign's own kernel."""

from __future__ import annotations

import pandas as pd

from bbrlab.base.tables import read_table
from bbrlab.claims.compare import MOVED, compare_points
from bbrlab.report.pages import Page


def every_kernel(page: Page, name: str) -> pd.DataFrame:
    """A figure's table with the rows of every kernel that it was run on, this campaign's first.

    Points of another version of the scenario are left out, and campaigns of which this one's kernel is part.

    Args:
        page: of the figure's paper.
        name: of the figure.
    """
    own = page.tables[name]
    found, seen = [own], set(own["kernel_key"])
    for path in sorted(page.results.glob(f"compare/kernel=*/{page.scale}/{page.paper}/{name}.parquet")):
        other = read_table(path)
        other = other[other["point"].isin(own["point"])]
        if not set(other["kernel_key"]) & seen:
            seen |= set(other["kernel_key"])
            found.append(other)
    table: pd.DataFrame = pd.concat(found, ignore_index=True)
    return table


def kernel_differences(table: pd.DataFrame, figure: str, metrics: list[str]) -> pd.DataFrame:
    """Each kernel against the first of a table of every_kernel(): compare_points() with the names of both.

    Returns:
        Its rows with ``kernel`` and ``against``; ``outcome`` tells which of them moved, tested for each kernel by itself.
    """
    kernels = list(dict.fromkeys(table["kernel"]))
    sides = {k: {figure: table[table["kernel"] == k].reset_index(drop=True)} for k in kernels}
    parts = [
        compare_points(sides[kernels[0]], sides[k], metrics).assign(kernel=k, against=kernels[0]) for k in kernels[1:]
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["outcome", "kernel", "against"])


def difference_table(found: pd.DataFrame) -> pd.DataFrame:
    """kernel_differences() for reading: means with intervals, and which moved."""
    shown = pd.DataFrame(index=found.index)
    shown["kernel"], shown["point"], shown["flows"] = found["kernel"], found["point"], found["cca"]
    shown["metric"] = found["metric"]
    for letter, title in (("a", "campaign's kernel"), ("b", "this kernel")):
        shown[title] = [
            f"{m:.3f} ± {h:.3f}" for m, h in zip(found[f"{letter}_mean"], found[f"{letter}_half"], strict=True)
        ]
    ends = zip(found["difference"], found["low"], found["high"], strict=True)
    shown["difference (95 %)"] = [f"{d:+.3f} ({low:+.3f} to {high:+.3f})" for d, low, high in ends]
    shown["moved"] = found["outcome"].eq(MOVED).map({True: "yes", False: ""})
    return shown
