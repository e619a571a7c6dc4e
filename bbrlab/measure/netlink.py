"""The framing of samples.raw and of netlink messages: records, messages, attributes, and stacks of equal replies."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from bbrlab.base.arrays import Array

HEAD = struct.Struct("<qHHI")  # mininet/sampler.py
KIND_SOCKETS, KIND_DESTROYED, KIND_QDISC, KIND_ACKS = 0, 1, 2, 3
NLMSG_HEADER, DIAG_MESSAGE, TC_MESSAGE = 16, 72, 20


def records(data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """(time_ns, source, kind, offset, length) of each record; offset and length (bytes) of what follows its head. ValueError if
    the data ends within a record, or within a record's head."""
    position, end = 0, len(data)
    while position < end:
        if position + HEAD.size > end:
            raise ValueError(f"samples.raw is cut off at byte {position}, within the head of a record")
        time_ns, source, kind, length = HEAD.unpack_from(data, position)
        position += HEAD.size
        if position + length > end:
            raise ValueError(f"samples.raw is cut off at byte {position}")
        yield time_ns, source, kind, position, length
        position += length


def attributes_of(data: bytes, start: int, end: int) -> dict[int, tuple[int, int]]:
    """{type: (offset, length)} of the netlink attributes in data[start:end]."""
    attributes = {}
    while start + 4 <= end:
        length, kind = struct.unpack_from("<HH", data, start)
        if length < 4:
            break
        attributes[kind & 0x3FFF] = (start + 4, length - 4)
        start += (length + 3) & ~3
    return attributes


def messages_of(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """(offset, length) of each netlink message in data[start:end]."""
    while start + NLMSG_HEADER <= end:
        (length,) = struct.unpack_from("<I", data, start)
        if length < NLMSG_HEADER:
            break
        yield start, length
        start += (length + 3) & ~3


def stacks_of(
    raw: Array, data: bytes, offsets: list[int], length: int
) -> Iterator[tuple[Array, Array, list[tuple[int, int]]]]:
    """Split equally long replies into stacks of equal message layout: (indices, matrix of bytes, messages)."""
    matrix = np.empty((len(offsets), length), np.uint8)
    for row, offset in enumerate(offsets):
        matrix[row] = raw[offset : offset + length]
    remaining = np.arange(len(offsets))
    while len(remaining):
        first = offsets[remaining[0]]
        messages = [(o - first, n) for o, n in messages_of(data, first, first + length)]
        alike = np.ones(len(remaining), dtype=bool)
        for offset, _ in messages:
            words = matrix[remaining, offset : offset + 4]
            alike &= (words == words[0]).all(axis=1)
            # attribute headers too: every reply of the stack must hold the same attributes at the same places
            start, end = offset + NLMSG_HEADER + DIAG_MESSAGE, offset + _message_length(messages, offset)
            for at, _ in attributes_of(data, first + start, first + end).values():
                head = matrix[remaining, at - first - 4 : at - first]
                alike &= (head == head[0]).all(axis=1)
        chosen = remaining[alike]
        yield chosen, matrix[chosen], messages
        remaining = remaining[~alike]


def _message_length(messages: list[tuple[int, int]], offset: int) -> int:
    return next(n for o, n in messages if o == offset)


def field_of(block: Array, offset: int, kind: str) -> Array:
    """Column of a matrix of bytes, read as numbers."""
    width = np.dtype(kind).itemsize
    return np.ascontiguousarray(block[:, offset : offset + width]).view(kind)[:, 0]
