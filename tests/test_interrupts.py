"""Ctrl-C and SIGTERM at bad moments: one line, exit code 130, what was begun is cleaned up."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest

from bbrlab.base import paths
from bbrlab.cli.interrupts import EXIT_INTERRUPTED

# A program with a command of its own in bbrlab's frame; BODY is what it does.
PROGRAM = """
import os, signal, sys, time
from bbrlab.cli.main import main
import bbrlab.cli.app

@bbrlab.cli.app.app.command("try-out")
def try_out():
    def hit(number=signal.SIGTERM):
        os.kill(os.getpid(), number)
BODY
sys.argv = ["bbrlab", "try-out"]
main()
"""
MESSAGE = "bbrlab: interrupted; nothing half-done was kept\n"


def started(body: str) -> subprocess.Popen[str]:
    indented = "".join(f"    {line}\n" for line in body.strip().splitlines())
    argv = [sys.executable, "-c", PROGRAM.replace("BODY\n", indented)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=paths.ROOT)


def ended(process: subprocess.Popen[str]) -> str:
    """What it printed, having said that it was interrupted and nothing else."""
    said, errors = process.communicate(timeout=30)
    assert errors == MESSAGE
    assert process.returncode == EXIT_INTERRUPTED
    return said


def test_while_it_starts():
    """A person who mistyped presses Ctrl-C before the libraries are there."""
    code = """
import os, signal, sys
class Hit:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Hit())
from bbrlab.cli.main import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=paths.ROOT, timeout=30)
    assert (done.returncode, done.stderr) == (EXIT_INTERRUPTED, MESSAGE)


def test_a_second_one_does_not_break_what_the_first_one_ends():
    said = ended(started("""
try:
    hit(signal.SIGINT)
    time.sleep(9)
finally:
    hit(signal.SIGINT); hit()
    time.sleep(.1)
    print("all is cleaned up")
"""))  # fmt: skip
    assert said == "all is cleaned up\n"


def test_in_a_finalizer_where_python_would_forget_it():
    said = ended(started("""
class Thing:
    def __del__(self):
        hit()
        time.sleep(.01)
Thing()
print("and on", flush=True)
time.sleep(9)
print("never")
"""))  # fmt: skip
    assert said == "and on\n"


@pytest.mark.parametrize("seed", range(4))
def test_while_it_prints(seed):
    """One signal or several, at any moment of printing a table as ``bbrlab run`` does."""
    process = started("""
from rich.console import Console
from rich.table import Table
console = Console(file=sys.stdout)
print("now", flush=True)
while True:
    table = Table(box=None)
    for name in "abcdef":
        table.add_column(name)
    for _ in range(20):
        table.add_row(*"abcdef")
    console.print(table)
""")
    rng = random.Random(seed)
    assert process.stdout and process.stdout.readline() == "now\n"
    for _ in range(1 + seed):
        process.send_signal(rng.choice((signal.SIGINT, signal.SIGTERM)))
        time.sleep(0.02 * rng.random())
    ended(process)
