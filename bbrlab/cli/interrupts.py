"""Ctrl-C, SIGTERM and SIGHUP: one message and one exit code, whenever they come. Imports nothing that takes time."""

from __future__ import annotations

import contextlib
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

# A terminal that is closed sends SIGHUP; who starts a program with nohup wants it to go on, and has it ignored.
_IS_HUNG_UP = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
NUMBERS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if _IS_HUNG_UP else []))
AGAIN_S = 0.02
EXIT_INTERRUPTED = 130
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


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


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """A signal that comes in the block comes at its end: for the start of processes that call die_of_sigterm() first."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_of_sigterm() -> None:
    """In a process that has nothing to clean up: end at SIGTERM at once, and with its parent, which handles the other signals."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in NUMBERS:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)


def _nothing(number: int, frame: FrameType | None) -> None:
    pass


def _handle(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in NUMBERS:
        signal.signal(number, handler)
