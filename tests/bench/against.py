"""`make bench AGAINST=COMMIT`: runs of this checkout and of another commit in turn, and the ratio of their times.

Two commits are compared on one machine, pair by pair, so that a machine that is slow today is slow for both.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError

# What is run: short and long, few and many packets, few and many hosts. Options that both commits must know.
RUNS: dict[str, list[str]] = {
    "1 BBRv1 v 1 CUBIC, 10 Mbit/s, 1000 s": ["sarpkaya2025/fig2a", "--set", "network.buffer.bdp=1"],
    "16 BBRv1 v 1 CUBIC, 10 Mbit/s, 1000 s": ["sarpkaya2025/fig2a", "--set", "network.buffer.bdp=8", "--set", "flows.0.count=16"],
    "2 BBRv3, 100 Mbit/s, 60 s": ["bless2025/fig8", "--set", "network.rtt_ms=10", "--set", "network.buffer.bdp=1"],
    "1 BBRv1, 500 Mbit/s, 10 MB": ["cao2019/fig6", "--case", "bbr1", "--set", "network.rate_mbit=500", "--set", "network.rtt_ms=10"],
    "1 CUBIC, 1 % loss, 60 s": ["cao2019/fig7", "--case", "cubic", "--set", "network.loss=0.01"],
    "10 flows, 9 s": ["scherrer2022/droptail"],
    # Hardly more than set-up and tear-down: 1 s of few packets.
    "set-up: 2 hosts, 1 s": ["sarpkaya2025/fig2a", "--set", "duration_s=1", "--set", "window_s=[0, 1]"],
    "set-up: 17 hosts, 1 s": ["sarpkaya2025/fig2a", "--set", "duration_s=1", "--set", "window_s=[0, 1]", "--set", "flows.0.count=15", "--set", "network.rtt_ms=[30, 40]"],
}  # fmt: skip


@dataclass(frozen=True)
class Spent:
    """What one run took, of its process and of all that it started, in s."""

    wall: float
    cpu: float


def checkout_of(commit: str, console: Console) -> Path:
    """A checkout of a commit, set up, below build/. UserError if there is no such commit, or its set-up fails."""
    found = subprocess.run(
        ["git", "-C", paths.ROOT, "rev-parse", "--verify", "-q", f"{commit}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise UserError(f"AGAINST={commit}: there is no such commit in this checkout")
    whole = found.stdout.strip()
    place = paths.ROOT / "build" / "against" / whole[:12]
    if not place.exists():
        aside = place.with_name(place.name + ".part")
        shutil.rmtree(aside, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", paths.ROOT, aside], check=True)
        subprocess.run(["git", "-C", aside, "checkout", "-q", whole], check=True)
        aside.rename(place)
    console.print(f"setting up {whole[:10]} (its environment and its kernel; minutes the first time) ...")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BBRLAB_", "VIRTUAL_ENV"))}
    if subprocess.run([place / "envs" / "setup.sh"], env=environment, stdout=sys.stderr, check=False).returncode:
        raise UserError(f"{place}: its set-up failed; envs/setup.sh there says why")
    return place


def spent(checkout: Path, arguments: list[str]) -> Spent:
    """Run a scenario of a checkout by its own command."""
    scenario, *rest = arguments
    with tempfile.TemporaryDirectory() as folder:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(
            [
                checkout / ".venv" / "bin" / "bbrlab",
                "run",
                f"scenarios/{scenario}.yaml",
                *rest,
                "--out",
                f"{folder}/run",
            ],
            cwd=checkout,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> int:
    """Compare, print a table, write bench-against.json to the results folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--pairs", type=int, default=5, help="how often each is run by either, in turn")
    options = parser.parse_args()
    console = Console(width=110)
    try:
        other = checkout_of(options.commit, console)
    except UserError as error:
        console.print(f"bench: {error}", highlight=False)
        return 2
    table = Table(box=None, pad_edge=False)
    for name in (
        "run",
        "wall (s)",
        f"of {options.commit[:10]}",
        "ratio",
        "CPU (s)",
        f"of {options.commit[:10]}",
        "ratio",
    ):
        table.add_column(name, justify="left" if name == "run" else "right")
    rows = []
    for name, arguments in RUNS.items():
        console.print(f"{name} ...")
        for checkout in (paths.ROOT, other):  # not counted: what is compiled and read for the first time
            spent(checkout, arguments)
        pairs = [(spent(paths.ROOT, arguments), spent(other, arguments)) for _ in range(options.pairs)]
        row: dict[str, object] = {"run": name}
        for what in ("wall", "cpu"):
            mine, theirs = [getattr(a, what) for a, _ in pairs], [getattr(b, what) for _, b in pairs]
            row |= {f"{what}_s": round(median(mine), 2), f"{what}_s_of_other": round(median(theirs), 2),
                    f"{what}_ratio": round(median(a / b for a, b in zip(mine, theirs, strict=True)), 3)}  # fmt: skip
        rows.append(row)
        table.add_row(name, *(str(value) for key, value in row.items() if key != "run"))
    console.print(table)
    console.print(f"medians of {options.pairs} pairs, in turn")
    content = {"date": time.strftime("%Y-%m-%d"), "against": options.commit, "pairs": options.pairs, "runs": rows}
    files.write_json(paths.results_folder() / "bench-against.json", content)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
