"""The command line: ``bbrlab --help``."""

from __future__ import annotations

import sys

from bbrlab.base.python import forget_working_folder

forget_working_folder()

from bbrlab.cli.interrupts import EXIT_INTERRUPTED, Interrupted, ignore_interrupts, make_interruptible  # noqa: E402


def main() -> None:
    """Entry point: one clear line for what the user can put right or has interrupted, no traceback."""
    try:
        make_interruptible()
        _set_encodings()
        status = _run()
        ignore_interrupts()
    except Interrupted:
        print("bbrlab: interrupted; nothing half-done was kept", file=sys.stderr)
        status = EXIT_INTERRUPTED
        ignore_interrupts()
    sys.exit(status)


def _set_encodings() -> None:
    """Files and pipes get UTF-8, whatever the locale; a terminal that cannot show a letter gets its number."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def _run() -> int:
    """Do what the command line says. Returns the exit code."""
    # After the signals are caught: these take the time in which a person who mistyped presses Ctrl-C.
    import os
    import traceback
    from pathlib import Path

    import typer

    from bbrlab.base import files
    from bbrlab.base.errors import UserError
    from bbrlab.cli.app import EXIT_BUG, EXIT_FAILED
    from bbrlab.cli.commands import app

    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0  # typer returns the code of an Exit
    except UserError as error:
        typer.echo(f"bbrlab: {error}", err=True)
        return EXIT_FAILED
    except BrokenPipeError:  # who read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except OSError as error:
        place = [Path(os.fsdecode(name)) for name in (error.filename,) if isinstance(name, (str, bytes, os.PathLike))]
        told = files.explain(error, place[0]) if place else error.strerror or error
        typer.echo(f"bbrlab: {told}", err=True)
        return EXIT_FAILED
    except Exception as error:  # click's own usage errors, or a fault of ours
        if hasattr(error, "format_message"):
            context = getattr(error, "ctx", None)
            hint = f" (see '{context.command_path} --help')" if context else ""
            typer.echo(f"bbrlab: {error.format_message()}{hint}", err=True)
            return EXIT_FAILED
        traceback.print_exc()
        return EXIT_BUG


if __name__ == "__main__":
    main()
