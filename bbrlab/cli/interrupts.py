"""Ctrl-C, SIGTERM and SIGHUP: one message and one exit code, whenever they come. Imports nothing that takes time."""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

# A terminal that is closed sends SIGHUP; who starts a program with nohup wants it to go on, and has it ignored.
_IS_HUNG_UP = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
NUMBERS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if _IS_HUNG_UP else []))
AGAIN_S = 0.02
EXIT_INTERRUPTED = 130


class Interrupted(BaseException):
    """Ctrl-C, SIGTERM or SIGHUP. (Typer would swallow a KeyboardInterrupt.)"""


def make_interruptible() -> None:
    """Raise Interrupted at the first of these signals. Further ones do nothing: they would break what is being cleaned up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        _handle(_nothing)
        raise Interrupted

    raise_again(lambda: _handle(interrupt))
    _handle(interrupt)


def raise_again(handle: Callable[[], object]) -> None:
    """Let a signal come again whose Interrupted Python tells and forgets: one that comes in a finalizer, or while it forks.

    Args:
        handle: sets the signals' handlers as they were before the first came.
    """

    def unraisable(event: Any) -> None:
        if event.exc_type is not Interrupted:
            default_hook(event)
            return
        import os
        import threading
        import time

        # A thread starts when a busy machine lets it: in here the signal must not come, for whom would it interrupt?
        returns = threading.Event()

        def again() -> None:
            returns.wait()
            time.sleep(AGAIN_S)
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=again).start()
        handle()
        returns.set()

    default_hook = sys.unraisablehook
    sys.unraisablehook = unraisable


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
