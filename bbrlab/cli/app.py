"""The command line's frame: the commands' groups, common options, interrupts."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from bbrlab.base.errors import UserError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
                  help="TCP BBR experiments on a real Linux kernel in virtual time.")  # fmt: skip
kernel_app = typer.Typer(no_args_is_help=True, help="Build and list guest kernels.")
cache_app = typer.Typer(no_args_is_help=True, help="Look at and prune the cache of runs that campaigns share.")
model_app = typer.Typer(no_args_is_help=True, help="What the models predict for a scenario.")
EXIT_MOVED, EXIT_FAILED, EXIT_CHECKS, EXIT_INTERRUPTED = 1, 2, 4, 130
ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO.yaml", help="Scenario file.", show_default=False)]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a value, e.g. network.buffer.bdp=4.")
]

CcaSources = Annotated[
    list[Path] | None,
    typer.Option(
        "--cca-source",
        metavar="FILE.c",
        help="Build this algorithm of one's own into the kernel, for flows with its name as cca (docs/howto/own_algorithm.md).",
    ),
]


@app.callback()
def _main() -> None:
    # No matrix here is worth a second core, and NumPy's idle threads spin on the one that another guest has.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def overrides_of(items: list[str] | None) -> dict[str, Any]:
    """{dotted path: value} of ``--set`` options. UserError for one without a path or a value."""
    from bbrlab.scenario.load import parse_value

    found = {}
    for item in items or []:
        path, equals, text = item.partition("=")
        if not equals or not path:
            raise UserError(f"--set {item}: give PATH=VALUE, for example --set network.buffer.bdp=4")
        found[path] = parse_value(text)
    return found


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM during a run. (Typer would swallow a KeyboardInterrupt.)"""


def make_interruptible() -> None:
    """Turn Ctrl-C and SIGTERM into Interrupted."""

    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
