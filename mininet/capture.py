"""Copies the packets that pass some interfaces, as tcpdump would, but with no process that they would wake.

Each interface has a packet socket with a ring in memory (TPACKET_V2, Documentation/networking/packet_mmap.rst), which the kernel
fills; this program, which wakes for its samples anyway, then moves the ring's content to a file. So nothing runs that would not
run without a capture.

File format of capture-N.raw, N counting the plan's interfaces: the ring's frames as the kernel wrote them, ``frame_bytes`` each.
bbrlab/measure/packets.py makes a capture file of them.
"""

import array
import mmap
import os
import socket
import struct
import time

from namespaces import network_of
from sampler import show

ETH_P_ALL = 3
SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 263, 5, 6, 10
TPACKET_V2 = 1
WORD_BYTES = 4  # of a frame's first field, its status; 0: it is the kernel's
LEAST_BLOCK_BYTES = 1 << 16


def real_ahead_of_monotonic_ns():
    """By how much CLOCK_REALTIME, of which packets have their stamps, is ahead of CLOCK_MONOTONIC.

    In virtual time a reading of the clock takes one step of it, so that the middle of two is the one between them.
    """
    before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    return real - (before + after) // 2


class Tap:
    """The packets of one interface, in both directions. It listens from the moment on that it is made."""

    def __init__(self, pid, device, frames, frame_bytes, path, sync):
        self.sync = sync
        self.frames, self.frame_bytes, self.head = frames, frame_bytes, 0
        self.file = open(path, "wb", buffering=0)  # noqa: SIM115 - lives as long as the guest
        with network_of(pid):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
            block_bytes = max(LEAST_BLOCK_BYTES, frame_bytes)
            ring = struct.pack("IIII", block_bytes, frames * frame_bytes // block_bytes, frame_bytes, frames)
            self.socket.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
            self.socket.bind((device, ETH_P_ALL))
        self.ring = memoryview(mmap.mmap(self.socket.fileno(), frames * frame_bytes))
        self.status = self.ring.cast("I")[:: frame_bytes // WORD_BYTES]
        self.free = memoryview(array.array("I", bytes(WORD_BYTES * frames)))

    def _waiting(self):
        """How many frames wait from ``head`` on, without those behind the ring's end: they come one after the other."""
        low, high = 0, self.frames - self.head
        while low < high:
            middle = (low + high) // 2
            if self.status[self.head + middle]:
                low = middle + 1
            else:
                high = middle
        return low

    def drain(self):
        """Move all that waits to the file."""
        moved = False
        while count := self._waiting():
            end = self.head + count
            data = self.ring[self.head * self.frame_bytes : end * self.frame_bytes]
            while data:
                data = data[self.file.write(data) :]
            self.status[self.head : end] = self.free[:count]
            self.head = end % self.frames
            moved = True
        if moved and self.sync:  # what waited in memory to be written would one day make the writer wait
            show(self.file)
            os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self):
        """Move the rest, and stop listening. Returns {packets: that came, dropped: of them, for want of room}."""
        self.drain()
        came, dropped = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        os.fsync(self.file.fileno())
        self.file.close()
        return {"packets": came, "dropped": dropped}


class Capture:
    """All interfaces of the plan's ``capture``."""

    def __init__(self, plan, dumbbell, out):
        asked = plan["capture"]
        self.ahead_ns = real_ahead_of_monotonic_ns()
        self.taps = []
        for number, place in enumerate(asked["interfaces"]):
            pid = dumbbell.hosts[place["host"]].pid if place["host"] else os.getpid()
            path = "%s/capture-%d.raw" % (out, number)
            # On a machine that is not the guest's alone, it would wait for a disk.
            sync = plan["own_machine"]
            self.taps.append(Tap(pid, place["device"], asked["frames"], asked["frame_bytes"], path, sync))

    def drain(self):
        """Move what has come to the files."""
        for tap in self.taps:
            tap.drain()

    def close(self):
        """Stop. Returns what the report says of the capture."""
        return {"real_ahead_ns": self.ahead_ns, "interfaces": [tap.close() for tap in self.taps]}
