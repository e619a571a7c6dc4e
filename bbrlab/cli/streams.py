"""Standard input, output and error, whatever they are: closed, full, without a reader, of another locale. Imports little."""

from __future__ import annotations

import errno
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

NOBODY_LISTENS = (errno.EPIPE, errno.EIO)  # a pipe without a reader, a terminal that is gone


class _Raw(io.FileIO):
    """A descriptor whose writes never fail: what was begun is done, and said at its end is what could not be written."""

    error: OSError | None = None  # the first one; what comes after it is dropped

    def write(self, data: Buffer, /) -> int:
        """Write, or drop it."""
        if self.error is None:
            try:
                return super().write(data) or 0
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


class Stream(io.TextIOWrapper):
    """Standard output or error. A text is written as words.shown() has it; Rich writes its own colours past that."""

    def __init__(self, descriptor: int, before: object):
        raw = _Raw(descriptor, "w", closefd=False)
        # Files and pipes get UTF-8, whatever the locale; a terminal that cannot show a letter gets its number.
        encoding = getattr(before, "encoding", None) if raw.isatty() else None
        super().__init__(io.BufferedWriter(raw), encoding or "utf-8", "backslashreplace",
                         line_buffering=raw.isatty() or descriptor == 2, write_through=True)  # fmt: skip
        self.raw = raw
        self.rich_proxied_file = _Coloured(self)  # Rich asks for it by this name

    def write(self, text: str) -> int:
        """Write a text of which a terminal obeys nothing."""
        from bbrlab.base.words import shown

        return super().write(shown(text))


class _Coloured:
    """The same stream for base.console.Console, which draws with the terminal's own codes and looks after its texts itself."""

    def __init__(self, stream: Stream):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what a Console drew."""
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def take_over() -> None:
    """Have our streams in place of Python's. A descriptor that is closed leads nowhere, so that no file of ours gets its number."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (for all of the process)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    sys.stdout, sys.stderr = Stream(1, sys.stdout), Stream(2, sys.stderr)


def is_lost(stream: object) -> bool:
    """Whether something that was written to a stream did not arrive."""
    return isinstance(stream, Stream) and stream.raw.error is not None


def why_unwritten() -> str:
    """Why standard output did not take all; empty if it did, or nobody was there to read it."""
    sys.stdout.flush()
    error = sys.stdout.raw.error if isinstance(sys.stdout, Stream) else None
    return "" if error is None or error.errno in NOBODY_LISTENS else error.strerror or str(error)
