"""Signals at moments that must not be cut in two."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """A Ctrl-C, SIGTERM or SIGHUP that comes in the block comes at its end.

    For the start of a process: one that an exception leaves before its name is known would never be ended. The mask of
    signals stays as it is, and what is ignored stays ignored, for the process inherits both. In another thread than the main one
    there is nothing to do: Python's handlers run in that one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handled = [number for number in INTERRUPTS if callable(signal.getsignal(number))]
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
