"""The line between a prompt in a guest and whoever types at it: one of the guest's consoles, which is a socket here.

What the guest sends is text of programs that nobody vouches for. It comes out of here as printable characters, tabs and ends
of lines only, so that nothing of it can command a terminal.
"""

from __future__ import annotations

import codecs
import contextlib
import socket

READY = "mininet> "  # what the guest's prompt ends its output with (Mininet's own)
LINE_BYTES = 4000  # a terminal's line discipline takes 4095
CTRL_C, CTRL_D = b"\x03", b"\x04"
CHUNK_BYTES = 1 << 16
_TEXT, _RETURN, _ESCAPE, _SEQUENCE, _STRING, _STRING_ESCAPE = range(6)
_STRINGS = "]PX^_"  # what follows an escape that begins a string: to a program, a title, a macro
_STRINGS_8BIT = "\x90\x98\x9d\x9e\x9f"


class Plain:
    """Takes the control characters and escape sequences (ECMA-48) out of a stream of bytes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._state = _TEXT

    def feed(self, data: bytes) -> str:
        """The text of ``data``, which may begin and end anywhere."""
        return "".join(self._take(c) for c in self._decoder.decode(data))

    def _take(self, c: str) -> str:
        state, self._state = self._state, _TEXT
        if state == _RETURN and c != "\n":
            return "\n" + self._take(c)  # a line that would be written over
        if c == "\n":  # whatever was begun ends with its line
            return c
        if state == _ESCAPE:
            if c == "[":
                self._state = _SEQUENCE
            elif c in _STRINGS:
                self._state = _STRING
            elif " " <= c <= "/":
                self._state = _ESCAPE
            return ""
        if state == _SEQUENCE:
            self._state = _TEXT if "@" <= c <= "~" else _SEQUENCE
            return ""
        if state == _STRING:
            if c not in "\x07\x9c":
                self._state = _STRING_ESCAPE if c == "\x1b" else _STRING
            return ""
        if state == _STRING_ESCAPE:
            return ""
        return self._take_text(c)

    def _take_text(self, c: str) -> str:
        if c == "\x1b":
            self._state = _ESCAPE
        elif c == "\x9b":
            self._state = _SEQUENCE
        elif c in _STRINGS_8BIT:
            self._state = _STRING
        elif c == "\r":
            self._state = _RETURN
        return c if c == "\t" or c.isprintable() else ""


class PromptLink:
    """Both ends of the line. One thread reads, any may send."""

    def __init__(self) -> None:
        self._own, self._guests = socket.socketpair()
        self._plain = Plain()

    @property
    def guest_end(self) -> int:
        """The descriptor that the guest gets."""
        return self._guests.fileno()

    def hand_over(self) -> None:
        """The guest has its end; with it the line ends."""
        self._guests.close()

    def read(self) -> str | None:
        """Wait for text of the guest. None at its end."""
        try:
            data = self._own.recv(CHUNK_BYTES)
        except OSError:
            data = b""
        return self._plain.feed(data) if data else None

    def send_line(self, line: str) -> bool:
        """Give the guest a line; False if it is too long for one. What is not printable is left out."""
        data = "".join(c for c in line if c.isprintable()).encode()
        if len(data) > LINE_BYTES:
            return False
        self._send(data + b"\n")
        return True

    def interrupt(self) -> None:
        """Ctrl-C: end the command that runs."""
        self._send(CTRL_C)

    def end(self) -> None:
        """Ctrl-D: there is nothing more to come."""
        self._send(CTRL_D)

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the guest is gone, and whoever waits for it will say so
            self._own.sendall(data)

    def close(self) -> None:
        """Close both ends; whoever reads comes to the end."""
        for end in (self._own, self._guests):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
