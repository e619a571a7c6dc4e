"""The same points on several kernels: does the kernel's age matter?"""

from __future__ import annotations

import pandas as pd

from bbrlab.base.tables import published_table
from bbrlab.comparison.compare import MOVED, compare_points

OWN = "lab-6.12"  # with which the others are compared


def kernel_age() -> pd.DataFrame:
    """The runs of scenarios/questions/kernel_age.yaml on every kernel, the lab's own first.

    From data/questions/kernel_age.csv, which ``bbrlab compare`` with that scenario gave, kernel by kernel.

    Returns:
        A row per run: kernel, release, cca, rival, buffer_bdp, bbr_flows, seed, and the metrics share_of_capacity,
        utilisation, loss and queue_ms_mean; ``point`` and ``group`` name it as a figure's table does.
    """
    runs = published_table("questions/kernel_age")
    names = "case=" + runs["cca"] + "-" + runs["rival"] + ",buffer.bdp=" + runs["buffer_bdp"].astype(str)
    names += ",N=" + runs["bbr_flows"].astype(str)
    table = runs.assign(point=names, group=0, ok=True)
    return table.sort_values("kernel", key=lambda kernel: kernel != OWN, kind="stable", ignore_index=True)


def kernel_differences(table: pd.DataFrame, figure: str, metrics: list[str]) -> pd.DataFrame:
    """Each kernel against the first of the table: compare_points() with the names of both.

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
    for letter, title in (("a", f"on {OWN}"), ("b", "on this kernel")):
        shown[title] = [
            f"{m:.3f}" + ("" if pd.isna(h) else f" ± {h:.3f}")
            for m, h in zip(found[f"{letter}_mean"], found[f"{letter}_half"], strict=True)
        ]
    ends = zip(found["difference"], found["low"], found["high"], strict=True)
    shown["difference (95 %)"] = [
        f"{d:+.3f}" + ("" if pd.isna(low) else f" ({low:+.3f} to {high:+.3f})") for d, low, high in ends
    ]
    shown["moved"] = found["outcome"].eq(MOVED).map({True: "yes", False: ""})
    return shown
