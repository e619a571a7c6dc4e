"""What flows over several bottlenecks have beside flows over one each (scenarios/questions/parking_lot*.yaml, docs/howto/parking_lot.md).

``python -m studies.parking_lot FOLDER... --out PICTURE.png`` draws the folders of ``bbrlab sweep`` and prints their table.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bbrlab.results.algorithm_table import colour_of_cca, label_of_cca
from bbrlab.results.statistics import over_seeds

RUNS = "runs/*/seed-*/summary.json"
TITLES = {"parking_lot": "one base RTT, 40 ms", "parking_lot_hops": "base RTT 20 ms and 20 ms for each link"}
DODGE = 0.05  # links, between algorithms whose intervals would lie on each other
FAIR: dict[str, Callable[[Any], Any]] = {  # {name: share of the link of a flow over n links, all RTTs equal}
    "max-min": lambda n: np.full(len(n), 0.5),
    "least potential delay": lambda n: 1 / (1 + np.sqrt(n)),
    "proportional": lambda n: 1 / (1 + n),
}


def square_root_share(rtt_ratio: float, loss_ratio: float) -> float:
    """The share of a link that a flow has beside one that has the rest, if rates are as 1 over RTT and square root of loss.

    Args:
        rtt_ratio, loss_ratio: the flow's RTT and loss over the other's.
    """
    return 1 / (1 + rtt_ratio * math.sqrt(loss_ratio))


def point_of(summary: dict[str, Any]) -> dict[str, Any]:
    """A row of the table: how many links the first group crosses, its share beside the cross flows of these, and what the law says of their RTTs
    and losses (NaN where nothing was lost)."""
    groups, flows = summary["groups"], summary["flows"]
    links = [link["link"] for link in summary["links"] if 0 in link["groups"]]
    cross = [1 + link for link in links]

    def mean(key: str, members: list[int]) -> float:
        return float(np.mean([groups[g][key] for g in members]))

    def loss(members: list[int]) -> float:
        return float(np.mean([f["loss"] for f in flows if f["group"] in members]))

    lost = loss([0]), loss(cross)
    rtt_ratio = mean("rtt_ms_mean", [0]) / mean("rtt_ms_mean", cross)
    goodput = mean("goodput_mbit", [0]), mean("goodput_mbit", cross)
    return {
        "study": summary["scenario"], "cca": groups[0]["cca"], "links": len(links), "share": goodput[0] / sum(goodput),
        "law": square_root_share(rtt_ratio, lost[0] / lost[1]) if min(lost) > 0 else math.nan, "rtt_ratio": rtt_ratio,
        "loss": lost[0], "cross_loss": lost[1],
    }  # fmt: skip


def table_of(folders: list[Path]) -> pd.DataFrame:
    """The points of studies, means over their seeds; runs that failed a self-check are left out.

    ``half`` is half the width of the share's 95 % interval (NaN for one seed).
    """
    files = [file for folder in folders for file in sorted(folder.glob(RUNS))]
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    rows = pd.DataFrame([point_of(summary) for summary in runs if summary["ok"]])
    of_points = rows.groupby(["study", "cca", "links"], sort=True)
    return of_points.mean().assign(half=over_seeds(of_points["share"])["half"]).reset_index()


def draw(table: pd.DataFrame) -> Any:
    """A picture: shares over links, a panel for each study; dots are the law's for Reno."""
    studies = [name for name in TITLES if name in set(table["study"])]
    figure, axes = plt.subplots(1, len(studies), figsize=(5.2 * len(studies), 4.2), sharey=True, squeeze=False, layout="constrained")  # fmt: skip
    for place, study in zip(axes.flat, studies, strict=True):
        rows = table[table["study"] == study]
        for number, (cca, of) in enumerate(rows.groupby("cca")):
            beside = of["links"] + DODGE * (number - 2)
            place.errorbar(beside, of["share"], of["half"], fmt="o-", capsize=3, color=colour_of_cca(str(cca)), label=label_of_cca(str(cca)))  # fmt: skip
        reno = rows[rows["cca"] == "reno"]
        place.plot(
            reno["links"], reno["law"], "D", color="black", ms=4, mfc="none", label="Reno by the square-root law"
        )
        n = np.linspace(1, 4, 50)
        for (name, fair), dash in zip(FAIR.items(), (":", "--", "-."), strict=True):
            if study == studies[0]:
                place.plot(n, fair(n), dash, color="0.6", lw=1, label=name)
        place.set(title=TITLES[study], xlabel="links that it crosses", xticks=range(1, 5), ylim=(0, 0.85))
    axes[0, 0].set_ylabel("share beside a cross flow")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    return figure


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if empty := [folder for folder in options.folders if not any(folder.glob(RUNS))]:
        parser.error(f"{empty[0]}: has no run; give the folder that bbrlab sweep wrote")
    table = table_of(options.folders)
    draw(table).savefig(options.out, dpi=110)
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
