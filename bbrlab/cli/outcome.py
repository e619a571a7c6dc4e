"""Summary of a run on the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from bbrlab.base.console import Console
from bbrlab.measure.checks.check import failed_of, left_out_of
from bbrlab.measure.metrics import GROUP, RUN, label_of
from bbrlab.measure.summary import BottleneckEntry, GroupEntry, Summary, path_words

FAIRNESS = "jain_index"
SET_UP_RTTS = 5  # that iperf3 takes before one flow sends (LIMITATIONS.md, start_s)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _is_one_flows(name: str, group: GroupEntry) -> bool:
    """Whether it would be the fairness of one flow to itself."""
    return name == FAIRNESS and group["count"] == 1


def _of_group(name: str, group: GroupEntry) -> float | None:
    return None if _is_one_flows(name, group) else GROUP[name].of_group(group)


def _starts(summary: Summary) -> list[str]:
    """When the flows of each group began to send, where it tells something: further apart than the set-up of one of them takes, or one
    within the window, so that what is measured in it is not of all flows all the time."""
    began = [
        (group, first, GROUP["last_first_data_s"].of_group(group))
        for group in summary["groups"]
        if (first := GROUP["first_data_s"].of_group(group)) is not None
    ]
    if not began:
        return []
    window_start_s = summary["window_s"][0]
    late = any(last is None or last > window_start_s > 0 for _, _, last in began)
    apart_s = max(last or first for _, first, last in began) - min(first for _, first, _ in began)
    if not late and apart_s <= SET_UP_RTTS * max(flow["base_rtt_ms"] for flow in summary["flows"]) / 1000:
        return []
    return [_from_to(group, first, last) for group, first, last in began]


def _from_to(group: GroupEntry, first: float, last: float | None) -> str:
    until = "" if last is None or f"{last:.1f}" == f"{first:.1f}" else f" to {last:.1f}"
    none = ", not all of them" if last is None else ""
    return f"{group['count']} {group['cca']}: data from {first:.1f}{until} s on{none}"


def _bottleneck_words(entry: BottleneckEntry) -> str:
    def rounded(name: str, digits: int) -> str:
        return _number(RUN[name].of_bottleneck(entry), digits)

    return (
        f"utilisation {rounded('utilisation', 3)}, loss {rounded('loss', 4)}, occupancy {rounded('occupancy', 2)}, "
        f"queue {rounded('queue_ms_mean', 1)} ms (p95 {rounded('queue_ms_p95', 1)})"
    )


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
    table.add_column("flows", no_wrap=True)
    for name in shown:
        table.add_column(label_of(name), justify="right")
    for index, group in enumerate(summary["groups"]):
        cells = ["" if _is_one_flows(k, group) else _number(_of_group(k, group), digits[k]) for k in shown]
        table.add_row(f"{group['count']} {group['cca']}{path_words(summary, index)}", *cells)
    console.print(table)
    for words in _starts(summary):
        console.print(f"  {words}", soft_wrap=True)

    links, fairness = summary.get("links", []), RUN["jain_index_all"].of_run(summary)
    lines = [f"link {link['link']} ({link['rate_mbit']:g} Mbit/s): {_bottleneck_words(link)}" for link in links]
    lines = lines or [f"bottleneck: {_bottleneck_words(summary['bottleneck'])}"]
    if len(summary["flows"]) > 1 and fairness is not None:
        lines[-1] += f", Jain's index of all flows {_number(fairness, 3)}"
    for words in lines:
        console.print(words, soft_wrap=True)
    failed, left_out = failed_of(summary["checks"]), left_out_of(summary["checks"])
    if failed:
        console.print(Text.assemble((f"{len(failed)} of {len(summary['checks'])} self-checks failed", "bold red"),
                                    "; this run is marked and left out of averages:"))  # fmt: skip
        for c in failed:
            console.print(f"  {c['name']}: asked {c['asked']}, measured {c['measured']} ({c['detail']})")
    else:
        console.print(Text(f"all {len(summary['checks']) - len(left_out)} self-checks passed", "green"))
    for c in left_out:
        console.print(f"  {c['name']}: {c['detail']}")
    console.print(f"results: {out}", soft_wrap=True)
