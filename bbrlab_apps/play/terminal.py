"""A terminal that may vanish or stand still while something is drawn on it."""

from __future__ import annotations

import contextlib
import os
import select
import threading

VIEW_COLUMNS, VIEW_LINES = 80, 24  # the least that the view needs
WAIT_MS = 100
GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Terminal:
    """What Textual writes to: a file whose writes end, whatever becomes of the terminal.

    Args:
        reads, writes: descriptors of the terminal.
    """

    def __init__(self, reads: int, writes: int):
        self._reads, self._writes, self._given_up, self._dead = reads, writes, threading.Event(), False
        # Opened anew, for what is set of the given descriptor is set for the shell, too.
        with contextlib.suppress(OSError):
            self._writes = os.open(os.ttyname(writes), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._own = self._writes != writes

    def is_gone(self) -> bool:
        """Whether nobody is at its other end any more."""
        return bool(_poll(self._reads, 0) & GONE)

    def give_up(self) -> None:
        """Wait no more where nobody reads: drop what finds no room."""
        self._given_up.set()

    def write(self, text: str) -> int:
        """Write, or drop, all of it."""
        data = text.encode(errors="replace")
        while data and not self._dead:
            events = _poll(self._writes, select.POLLOUT, WAIT_MS)
            try:
                if events & select.POLLOUT:
                    data = data[os.write(self._writes, data) :]
                self._dead = bool(events & GONE) or (not events and self._given_up.is_set())
            except BlockingIOError:
                continue
            except OSError:
                self._dead = True
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""

    def fileno(self) -> int:
        """The descriptor."""
        return self._writes

    def close(self) -> None:
        """Close what was opened here."""
        if self._own:
            os.close(self._writes)


def stop_printing() -> None:
    """Drop what is printed from here on, where the terminal is gone or nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        events = _poll(descriptor, select.POLLOUT, WAIT_MS)
        if events & GONE or (not events and os.isatty(descriptor)):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _poll(descriptor: int, events: int, wait_ms: int = 0) -> int:
    """Events of a descriptor: some of those given, or GONE."""
    waiting = select.poll()
    waiting.register(descriptor, events)
    return next((happened for _, happened in waiting.poll(wait_ms)), 0)
