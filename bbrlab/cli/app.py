"""The Typer application: groups of commands, common options, exit codes, JSON."""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli.interrupts import EXIT_INTERRUPTED

# How ``bbrlab --help`` lists the commands: what they are for, the most needed first.
SECTIONS = {
    "One experiment": ("run", "show", "play", "check", "crosscheck", "traffic", "qlog"),
    "A question of your own": ("sweep", "plot", "beside", "compare", "list"),
    "Campaigns (snakemake runs them) and their results": ("forecast", "site", "verify", "ns3", "cache"),
    "Models": ("model",),
    "This machine": ("doctor", "kernel", "container", "schema"),
    "Courses": ("assign", "assignment", "grade", "course"),
    "Packing results": ("ship", "rejudge", "artifact"),
}  # fmt: skip


# What people call a command that has another name here.
OTHER_NAMES = {
    "report": "site",
    "draw": "plot",
    "chart": "plot",
    "graph": "plot",
    "ls": "list",
    "diff": "compare",
    "study": "sweep",
}


EMPTY_OPTION = re.compile("--[a-z-]+=")


class Commands(TyperGroup):
    """Commands, listed each with its whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list."""
        self._write(formatter, "Commands", [name for name in self.list_commands(ctx) if not self.commands[name].hidden])

    def _write(self, formatter: Any, title: str, names: Iterable[str]) -> None:
        with formatter.section(title):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=200)) for name in names])


class Sections(Commands):
    """The commands by SECTIONS."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The words of the command line. UserError for an empty one: no option means anything by it, and most would have their default."""
        before = ""
        for word in () if ctx.resilient_parsing else args:
            if not word or EMPTY_OPTION.fullmatch(word):
                after = word.rstrip("=") or before or "bbrlab"
                raise UserError(f"{after}: what follows is empty; give a value (is a variable of the shell not set?)")
            before = word
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called so. For one that there is not, those that are listed may have been meant, never a hidden one."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if hasattr(error, "message") and args:
                listed = [name for name, command in self.commands.items() if not command.hidden]
                meant = [OTHER_NAMES[args[0]]] if args[0] in OTHER_NAMES else difflib.get_close_matches(args[0], listed)
                if meant:
                    error.message = f"{error.message.rstrip('.')}, did you mean {' or '.join(meant)}?"
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the lists."""
        for title, names in SECTIONS.items():
            self._write(formatter, title, names)


app = typer.Typer(cls=Sections, suggest_commands=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
                  help="TCP BBR experiments on a real Linux kernel in virtual time.")  # fmt: skip
kernel_app = typer.Typer(cls=Commands, no_args_is_help=True, help="Build and list guest kernels.")
cache_app = typer.Typer(
    cls=Commands, no_args_is_help=True, help="Look at and prune the cache of runs that campaigns share."
)
model_app = typer.Typer(cls=Commands, no_args_is_help=True, help="What the models predict for a scenario.")
EXIT_MOVED, EXIT_FAILED, EXIT_CHECKS, EXIT_BUG = 1, 2, 4, 70
# Every code that ``bbrlab`` ends with, for docs/reference/command_line.md.
EXITS = {
    0: "done; of commands that look or compare: nothing is wrong, nothing differs",
    EXIT_MOVED: "completed; a difference or a problem was found: `compare`, `crosscheck`: something moved; `verify`: a run differs or is missing; `doctor`: this machine lacks something",
    EXIT_FAILED: "not done: what was asked is not possible, or something failed; the message says what, where and what to do",
    EXIT_CHECKS: "`run --strict`: the run is there, but a self-check failed",
    EXIT_BUG: "a fault of bbrlab itself; the traceback says where: please report it (CONTRIBUTING.md)",
    EXIT_INTERRUPTED: "interrupted by Ctrl-C, SIGTERM or SIGHUP (a terminal that is closed); nothing half-done was kept",
}
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the result as JSON, alone on standard output; messages go to standard error."),
]


def _kernels(incomplete: str) -> list[str]:
    from bbrlab.kernel.specs import load_specs

    return _beginning(load_specs().kernels, incomplete)


def _scales(incomplete: str) -> list[str]:
    from bbrlab.results.config import load_config

    return _beginning(load_config().scales, incomplete)


def _figures(incomplete: str) -> list[str]:
    from bbrlab.results.figures import scenario_files

    names = list(scenario_files())
    return _beginning([*dict.fromkeys(name.split("/")[0] for name in names), *names], incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """What the shell offers for a word that begins so."""
    return [name for name in names if name.startswith(incomplete)]


# What the shell completes, wherever these are asked for.
KernelName = Annotated[
    str | None, typer.Option("--kernel", help="A kernel (bbrlab kernel list).", autocompletion=_kernels)
]
ScaleName = Annotated[
    str | None, typer.Option("--scale", help="smoke, quick or full; default: config.yaml's.", autocompletion=_scales)
]


def _named(figures: list[str] | None) -> list[str]:
    """Names for figures_at(), which has no word for all. UserError for all and others."""
    if figures and "all" in figures and len(figures) > 1:
        raise UserError(f"{' '.join(figures)}: all are all figures; give all alone, or leave it out")
    return [] if figures in (None, ["all"]) else list(figures)


# They come to a command as its names, and none for all.
Figures = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAPER|FIGURE|all]...",
        help="Default: all.",
        show_default=False,
        autocompletion=_figures,
        callback=_named,
    ),
]
ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO.yaml", help="Scenario file.", show_default=False)]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a value, e.g. network.buffer.bdp=4.")
]

CcaSources = Annotated[
    list[Path] | None,
    typer.Option(
        "--cca-source",
        metavar="FILE.c",
        help="Build your own algorithm, this C file, into the kernel, for flows with its name as cca. Its code runs "
        "as a process of yours, held back as far as `bbrlab doctor` says (docs/howto/own_algorithm.md).",
    ),
]

Captured = Annotated[
    list[str] | None,
    typer.Option(
        "--pcap",
        metavar="bottleneck|hosts",
        help="Also keep the packets that pass the bottleneck's interface, or the hosts' (both: give it twice), as files for Wireshark.",
    ),
]
Snaplen = Annotated[int, typer.Option(help="With --pcap: bytes to keep of each packet.")]


def at_once(what: str) -> Any:
    """The option that says how much runs at once; without it all_cores() do."""
    return typer.Option("--cores", min=1, help=f"{what}; default: all cores.")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bbrlab {importlib.metadata.version('bbrlab')}")
        raise typer.Exit


def _check_checkout() -> None:
    """UserError if this package lies outside of its checkout, as a wheel that was installed does."""
    if not ((paths.CONFIG / "kernels.yaml").is_file() and paths.KERNELS.is_dir()):
        raise UserError(
            f"{paths.ROOT} is not bbrlab's checkout, and bbrlab runs from there only, with its scenarios, kernels and settings: "
            "get the repository, run make setup in it, and use its .venv/bin/bbrlab"
        )


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    _check_checkout()
    # No matrix here is worth a second core, and NumPy's idle threads spin on the one that another guest has.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def settings_of(items: list[str] | None, *, trials: bool = False) -> dict[str, Any]:
    """overrides_of() for a command that has scales from nowhere, and its seeds, unless it takes ``trials``, from an option of its own."""
    overrides = overrides_of(items)
    for path in overrides:
        if path.split(".")[0] == "scales":
            raise UserError(
                f"--set {path}: would have no effect: scales are of campaigns (snakemake --config scale=NAME)"
            )
        if path == "trials" and not trials:
            raise UserError(
                "--set trials: would have no effect: the command's own option says which seeds are run (--help)"
            )
    return overrides


def words_of(texts: list[str] | None) -> list[str]:
    """The words of an option that may be given several times, or once with commas."""
    return [word.strip() for text in texts or () for word in text.split(",")]


def overrides_of(
    items: list[str] | None, option: str = "--set", example: str = "network.buffer.bdp=4"
) -> dict[str, Any]:
    """{dotted path: value} of ``--set`` options, or of others like it. UserError for one without a path or a value."""
    from bbrlab.scenario.load import parse_value

    overrides = {}
    for item in items or []:
        path, equals, text = item.partition("=")
        if not equals or not path:
            raise UserError(f"{option} {item}: give PATH=VALUE, for example {option} {example}")
        if path in overrides:
            raise UserError(f"{option} {path} is given twice; keep one")
        try:
            overrides[path] = parse_value(text)
        except UserError as error:
            raise UserError(f"{option} {path}={error}") from None
    return overrides


def print_json(content: object) -> None:
    """Print JSON, alone on standard output: paths as text, a number that there is not (NaN, infinite) as null."""
    from pydantic import TypeAdapter

    # What pydantic does not know is NumPy's: numbers and arrays.
    plain = TypeAdapter(Any).dump_python(content, mode="json", fallback=lambda value: value.tolist())
    typer.echo(json.dumps(plain, indent=1, allow_nan=False))
