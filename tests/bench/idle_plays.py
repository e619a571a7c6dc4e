"""``python -m tests.bench.idle_plays``: does ``bbrlab play`` keep real time on this machine? Plays at 10, 100 and 200 Mbit/s, and what their self-checks say.

Each play has one BBRv1 flow and one CUBIC flow over 40 ms, without and with the live view, left alone or steered. What other programs took of
the processor is measured, too: only with next to nothing of that do the plays speak of the machine alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pexpect
from rich.console import Console
from rich.table import Table

from bbrlab.base import files, paths
from bbrlab.measure.checks.check import failed_of, left_out_of

SCENARIO = paths.SCENARIOS / "sarpkaya2025" / "fig2a.yaml"
RATES_MBIT = (10, 100, 200)
PLAY = ["-m", "bbrlab.cli.main", "play", str(SCENARIO), "--set", "sample_hz=10"]
ENDS_S = 120.0
COLUMNS = (
    "rate (Mbit/s)",
    "view",
    "steered",
    "carried",
    "share of link",
    "CPU of one core",
    "others' CPU",
    "self-checks",
)


def commands(rate_mbit: int, seconds: float, steered: bool) -> list[str]:
    """What is typed: nothing, or the rate halved after a third and CUBIC's place given to Reno after another."""
    if not steered:
        return [f"sleep {seconds:g}"]
    third = f"sleep {seconds / 3:g}"
    return [third, f"rate {rate_mbit / 2:g}", third, "algorithm f2 reno", third]


def busy_s() -> float:
    """How long this machine's processors have worked since it was started, in s of one processor."""
    told = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, *_ = map(int, told)
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def children_s() -> float:
    """How long the children that have ended worked, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def played(rate_mbit: int, seconds: float, view: bool, steered: bool, out: Path) -> dict[str, Any]:
    """Play once; what came of it."""
    argv = [*PLAY, "--set", f"network.rate_mbit={rate_mbit}", "--out", str(out)]
    lines = commands(rate_mbit, seconds, steered)
    begin, busy, used = time.monotonic(), busy_s(), children_s()
    said = _in_view(argv, lines, seconds) if view else _from_a_script(argv, lines, seconds)
    passed_s, used_s = time.monotonic() - begin, children_s() - used
    found: dict[str, Any] = {
        "rate_mbit": rate_mbit, "view": view, "steered": steered,
        "cpu": used_s / passed_s, "others_cpu": max(busy_s() - busy - used_s, 0.0) / passed_s,
    }  # fmt: skip
    if not (out / "summary.json").exists():
        return found | {"failed": [f"no result: {said.strip().splitlines()[-1:] or 'no word'}"]}
    summary = files.read_json(out / "summary.json")
    goodput = sum(g["goodput_mbit"] for g in summary["groups"])
    failed = failed_of(summary["checks"])
    return found | {
        "goodput_mbit": goodput, "utilisation": summary["bottleneck"]["utilisation"], "checks": len(summary["checks"]),
        "not_checked": [c["name"] for c in left_out_of(summary["checks"])],
        "failed": [f"{c['name']}: asked {c['asked']}, measured {c['measured']}" for c in failed],
    }  # fmt: skip


def _from_a_script(argv: list[str], lines: list[str], seconds: float) -> str:
    done = subprocess.run([sys.executable, *argv], input="\n".join(lines) + "\n", capture_output=True, text=True, cwd=paths.ROOT,
                          timeout=seconds + ENDS_S, check=False)  # fmt: skip
    return done.stderr + done.stdout


def _in_view(argv: list[str], lines: list[str], seconds: float) -> str:
    environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    child = pexpect.spawn(sys.executable, argv, dimensions=(40, 120), env=environment, cwd=str(paths.ROOT), timeout=seconds + ENDS_S,
                          encoding="utf-8", codec_errors="replace")  # fmt: skip
    try:
        child.expect("help lists them")
        for line in [*lines, "exit"]:
            child.send(line + "\r")
            words = line.split()
            child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=float(words[1]) + 1 if words[0] == "sleep" else 1)
        child.expect([pexpect.EOF, pexpect.TIMEOUT])
        return str(child.before)
    finally:
        child.close(force=True)


def main() -> int:
    """Play all, and print a table. Returns 1 if a self-check failed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--out", type=Path, required=True, help="folder for the plays' results and plays.json; must not be there"
    )
    options.add_argument("--seconds", type=float, default=30, help="length of a play")
    options.add_argument("--rates", type=int, nargs="+", default=RATES_MBIT, help="in Mbit/s")
    asked = options.parse_args()
    asked.out.mkdir(parents=True)
    found, table = [], Table(*COLUMNS, box=None, pad_edge=False)
    for rate in asked.rates:
        for view in (False, True):
            for steered in (False, True):
                name = f"{rate}-{'view' if view else 'plain'}-{'steered' if steered else 'alone'}"
                one = played(rate, asked.seconds, view, steered, asked.out / name)
                found.append(one)
                table.add_row(*_cells(one))
                print(f"{name}: {'; '.join(one['failed']) or 'no self-check failed'}", flush=True)
    Console(width=140).print(table)
    machine = {"processors": os.cpu_count(), "kernel": platform.release(), "processor": _processor()}
    print(
        f"{machine['processors']} processors ({machine['processor']}), Linux {machine['kernel']}; {asked.seconds:g} s each; all: {asked.out / 'plays.json'}"
    )
    files.write_text(
        asked.out / "plays.json",
        json.dumps({"machine": machine, "seconds": asked.seconds, "plays": found}, indent=1) + "\n",
    )
    return int(any(one["failed"] for one in found))


def _cells(one: dict[str, Any]) -> list[str]:
    left_out = len(one.get("not_checked", []))
    result = f"{len(one['failed'])} failed" if one["failed"] else f"{one['checks'] - left_out} passed"
    result += f", {left_out} not checked" if left_out else ""
    carried = (
        [f"{one['goodput_mbit']:.1f} Mbit/s", f"{one['utilisation']:.3f}"] if "goodput_mbit" in one else ["-", "-"]
    )
    yes = {True: "yes", False: "no"}
    return [
        str(one["rate_mbit"]),
        yes[one["view"]],
        yes[one["steered"]],
        *carried,
        f"{one['cpu']:.2f}",
        f"{one['others_cpu']:.2f}",
        result,
    ]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
