"""The tables of docs/explanation/models.md: how close the models are to published panels, and what the burst model's parts do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from bbrlab.base import paths
from bbrlab.models.burst_versions import KERNEL_READINGS
from docs._make.marks import page
from studies import burst_panels, burst_tables

PAGE = paths.ROOT / "docs/explanation/models.md"
RIVALS = {"cubic": "CUBIC", "reno": "Reno"}


def errors_table() -> str:
    """Root mean square differences to the published shares: a row per panel, a column per model and range of buffers."""
    errors = burst_panels.errors(burst_tables.read("panels")).set_index(["figure", "up_to_bdp"]).to_dict("index")
    lines = [
        "| panel | `kernel` to 16 BDP | to 32 | all | `draft` to 16 | to 32 | all | Ware to 16 | all | fluid to 16 | all |",
        "|---" * 11 + "|",
    ]
    for figure, panel in burst_panels.PANELS.items():
        kernel = KERNEL_READINGS[panel.cca]
        columns = [(kernel, 16), (kernel, 32), (kernel, 64), ("draft", 16), ("draft", 32), ("draft", 64)]
        columns += [("ware", 16), ("ware", 64), ("fluid_9s", 16), ("fluid_9s", 64)]
        values = [float(errors[figure, up_to_bdp][model]) for model, up_to_bdp in columns]
        cells = ["" if np.isnan(value) else f"{value:.3f}" for value in values]
        name = f"{figure.removeprefix('fig')} BBRv{panel.cca[-1]} v {RIVALS[panel.rival]}, {panel.rate_mbit:g} Mbit/s"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parts_table() -> str:
    """What happens to the share when a part of BBRv3 is left out, the most first."""
    parts = burst_tables.read("parts").sort_values("change", ascending=False)
    lines = ["| left out | change | error then |", "|---|---|---|"]
    lines += [
        f"| {re.sub(r'(?<=[ (])[.]', '0.', row['part'])} | {row['change']:.3f} | {row['rmse']:.3f} |"
        for row in parts.to_dict("records")
    ]
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """{page: its text} as it should be."""
    return {PAGE: page(PAGE, {"errors": errors_table(), "parts": parts_table()})}
