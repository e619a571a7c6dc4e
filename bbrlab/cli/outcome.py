"""What a run came to, on the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from bbrlab.base.console import Console
from bbrlab.measure.checks.check import failed_of, left_out_of
from bbrlab.measure.schema import GROUP, RUN, label_of
from bbrlab.measure.summary import GroupEntry, Summary

FAIRNESS = "jain_index"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _is_one_flows(name: str, group: GroupEntry) -> bool:
    """Whether it would be the fairness of one flow to itself."""
    return name == FAIRNESS and group["count"] == 1


def _of_group(name: str, group: GroupEntry) -> float | None:
    return None if _is_one_flows(name, group) else GROUP[name].of_group(group)


def show_outcome(summary: Summary, out: Path) -> None:
    """Print groups, bottleneck and self-checks of a run, and where its results are."""
    console = Console()
    wall_s = summary["wall_s"] or 0.0
    speed = summary["virtual_s"] / wall_s if wall_s else 0.0
    how = f"in {wall_s:.1f} s ({speed:.0f} x real time)" if summary["backend"] == "uml" else "of real time"
    console.print(Text.assemble((summary["scenario"], "bold"), f" seed {summary['seed']}: {summary['virtual_s']:g} s {how}, "
                                f"Linux {summary['kernel']['release']}"))  # fmt: skip
    digits = {"goodput_mbit": 3, "share_of_capacity": 3, "retransmits": 0, "rtt_ms_mean": 1, "jain_index": 3, "completion_s": 3,
              "slowdown_mean": 2, "unfinished": 0}  # fmt: skip
    shown = [k for k in digits if any(_of_group(k, g) is not None for g in summary["groups"])]
    table = Table(box=None, pad_edge=False)
    table.add_column("flows")
    for name in shown:
        table.add_column(label_of(name), justify="right")
    for group in summary["groups"]:
        cells = ["" if _is_one_flows(k, group) else _number(_of_group(k, group), digits[k]) for k in shown]
        table.add_row(f"{group['count']} {group['cca']}", *cells)
    console.print(table)

    def told(name: str, digits: int) -> str:
        return _number(RUN[name].of_run(summary), digits)

    several = len(summary["flows"]) > 1 and RUN["jain_index_all"].of_run(summary) is not None
    console.print(f"bottleneck: utilisation {told('utilisation', 3)}, loss {told('loss', 4)}, "
                  f"occupancy {told('occupancy', 2)}, queue {told('queue_ms_mean', 1)} ms (p95 {told('queue_ms_p95', 1)})"
                  + (f", Jain's index of all flows {told('jain_index_all', 3)}" if several else ""),
                  highlight=False, soft_wrap=True)  # fmt: skip
    failed, left_out = failed_of(summary["checks"]), left_out_of(summary["checks"])
    if failed:
        console.print(Text.assemble((f"{len(failed)} of {len(summary['checks'])} self-checks failed", "bold red"),
                                    "; this run is marked and left out of averages:"))  # fmt: skip
        for c in failed:
            console.print(
                f"  {c['name']}: asked {c['asked']}, measured {c['measured']} ({c['detail']})", highlight=False
            )
    else:
        console.print(Text(f"all {len(summary['checks']) - len(left_out)} self-checks passed", "green"))
    for c in left_out:
        console.print(f"  {c['name']}: {c['detail']}", highlight=False)
    console.print(f"results: {out}", highlight=False, soft_wrap=True)
