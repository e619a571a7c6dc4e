"""The command line: ``bbrlab --help``."""

from __future__ import annotations

import sys

from bbrlab.base.python import forget_working_folder

forget_working_folder()

from bbrlab.cli.interrupts import EXIT_INTERRUPTED, Interrupted, ignore_interrupts, make_interruptible  # noqa: E402
from bbrlab.cli.streams import take_over, why_unwritten  # noqa: E402


def main() -> None:
    """Entry point: one clear line for what the user can put right or has interrupted, no traceback."""
    try:
        make_interruptible()
        take_over()
        status = _run()
        ignore_interrupts()
    except Interrupted:
        print("bbrlab: interrupted; nothing half-done was kept", file=sys.stderr)
        status = EXIT_INTERRUPTED
        ignore_interrupts()
    sys.exit(status)


def _run() -> int:
    """Do what the command line says. Returns the exit code."""
    # After the signals are caught: these take the time in which a person who mistyped presses Ctrl-C.
    import os
    import traceback
    from pathlib import Path

    import typer

    from bbrlab.base import files
    from bbrlab.base.errors import UserError
    from bbrlab.base.limits import limits_in_words
    from bbrlab.cli.app import EXIT_BUG, EXIT_FAILED
    from bbrlab.cli.commands import app
    from bbrlab.cli.extras import why_not_imported

    try:
        status = app(standalone_mode=False)
        status = status if isinstance(status, int) else 0  # typer returns the code of an Exit
        if why := why_unwritten():
            typer.echo(
                f"bbrlab: standard output could not be written ({why}); the command itself ended with {status}",
                err=True,
            )
            return EXIT_FAILED
        return status
    except UserError as error:
        typer.echo(f"bbrlab: {error}", err=True)
        return EXIT_FAILED
    except OSError as error:
        place = [Path(os.fsdecode(name)) for name in (error.filename,) if isinstance(name, (str, bytes, os.PathLike))]
        text = files.explain(error, place[0]) if place else f"{error.strerror or error}{limits_in_words()}"
        typer.echo(f"bbrlab: {text}", err=True)
        return EXIT_FAILED
    except ModuleNotFoundError as error:
        message = why_not_imported(error, " ".join(["bbrlab", *sys.argv[1:2]]))
        if message is None:
            traceback.print_exc()
            return EXIT_BUG
        typer.echo(f"bbrlab: {message}", err=True)
        return EXIT_FAILED
    except Exception as error:  # click's own usage errors, or a fault of ours
        if hasattr(error, "format_message"):
            context, message = getattr(error, "ctx", None), error.format_message()
            hint = f" (see '{context.command_path} --help')" if context else ""
            is_help = context is not None and message == context.get_help()  # a group of commands was given none
            typer.echo(message if is_help else f"bbrlab: {message}{hint}", err=True)
            return EXIT_FAILED
        traceback.print_exc()
        return EXIT_BUG


if __name__ == "__main__":
    main()
