"""The command line: ``bbrlab --help``."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import typer

# Each adds its commands.
import bbrlab.cli.stages.claims
import bbrlab.cli.stages.models
import bbrlab.cli.stages.pages
import bbrlab.cli.stages.runs
import bbrlab.cli.stages.site
import bbrlab.cli.stages.tables  # noqa: F401
from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.cli import archive, cache, compare, container, grade, kernels, look, models, play, run, shipped, tools  # noqa: F401
from bbrlab.cli.app import (
    EXIT_BUG,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    Interrupted,
    app,
    cache_app,
    container_app,
    kernel_app,
    model_app,
)

app.add_typer(cache_app, name="cache")
app.add_typer(container_app, name="container")
app.add_typer(kernel_app, name="kernel")
app.add_typer(model_app, name="model")


def main() -> None:
    """Entry point: one clear line for what the user can put right, no traceback."""
    try:
        status = app(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)  # typer returns the code of an Exit
    except UserError as error:
        typer.echo(f"bbrlab: {error}", err=True)
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:  # who read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except OSError as error:
        place = [Path(os.fsdecode(name)) for name in (error.filename,) if isinstance(name, (str, bytes, os.PathLike))]
        told = files.explain(error, place[0]) if place else error.strerror or error
        typer.echo(f"bbrlab: {told}", err=True)
        sys.exit(EXIT_FAILED)
    except (Interrupted, KeyboardInterrupt):
        typer.echo("bbrlab: interrupted; nothing half-done was kept", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:  # click's own usage errors, or a fault of ours
        if hasattr(error, "format_message"):
            context = getattr(error, "ctx", None)
            hint = f" (see '{context.command_path} --help')" if context else ""
            typer.echo(f"bbrlab: {error.format_message()}{hint}", err=True)
            sys.exit(EXIT_FAILED)
        traceback.print_exc()
        sys.exit(EXIT_BUG)


if __name__ == "__main__":
    main()
