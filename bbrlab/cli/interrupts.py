"""Ctrl-C and SIGTERM: one message and one exit code, whenever they come. Imports nothing that takes time."""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)
AGAIN_S = 0.02
EXIT_INTERRUPTED = 130


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM. (Typer would swallow a KeyboardInterrupt.)"""


def make_interruptible() -> None:
    """Raise Interrupted at the first Ctrl-C or SIGTERM. Further ones do nothing: they would break what is being cleaned up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        _handle(_nothing)
        raise Interrupted

    def unraisable(event: Any) -> None:
        """A signal that comes while Python calls a finalizer is told there and forgotten: let it come again."""
        if event.exc_type is not Interrupted:
            told(event)
            return
        import os
        import threading

        _handle(interrupt)
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGTERM)).start()

    told = sys.unraisablehook
    sys.unraisablehook = unraisable
    _handle(interrupt)


def ignore_interrupts() -> None:
    """From here to the end of the process, when Python takes its own handlers away, nothing is left that could be interrupted."""
    _handle(_nothing)
    # Blocked before they are ignored: of a signal that is on its way Python would say that it ignored it.
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    _handle(signal.SIG_IGN)


def _nothing(number: int, frame: FrameType | None) -> None:
    pass


def _handle(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in NUMBERS:
        signal.signal(number, handler)
