"""The rate limiter of a bottleneck whose rate changes.

htb keeps its debt in time: a packet that left at 1 kbit/s stops the class for 12 s, whatever its rate is by then, and nothing
can be done about it, since every way to put another class in its place throws the queue away. tbf forgets at each change. So:

    htb 9: (limits nothing) --- class 9:1 --- tbf 1: (the rate) --- 30: (the queue)
                            \\-- class 9:2 --- pfifo 90: of no packets

At a change the rest of the packet that is under way goes on at the new rate: tbf is held until it has left, and then starts
with room for one packet. Which packet left last, and when, a packet socket behind the bottleneck tells, which is open
for one packet's time before the change. Room for the largest packet may let several small ones go at once: what has left since
the last change beyond the rate counts as under way, too. tbf sleeps by its old rate meanwhile; a frame to class 9:2, where it is dropped, wakes it.
"""

import contextlib
import socket
import struct
import time

from netlink import NLM_F_ACK, NLM_F_ECHO, RTM_GETQDISC, RTM_NEWQDISC, TCA_KIND, TCA_OPTIONS, attribute, queue_state

ROOT, QUEUE_PARENT, WAKE_CLASS = "9:", "1:3", 0x90002
LINK_HEADER_BYTES, MTU_BYTES = 14, 1500
SEGMENT_BYTES = 70_000  # more than a segment of 64 KiB with all its headers, as tc counts them
SLACK_BYTES = 1600  # as htb's: what a limiter whose timer is late may catch up
TCA_TBF_PARMS, TCA_TBF_RATE64, TCA_TBF_BURST = 1, 4, 6
LINKLAYER_ETHERNET = 1
TICK_NS, TICKS_MAX = 64, 2**32 - 1
# tbf is held when no packet can ever fit: each counts as 65,535 bytes (mpu) and there is never room for more than 65,000.
HELD_PACKET_BYTES, HELD_ROOM_BYTES = 65_535, 65_000
SO_TIMESTAMPNS = 35
ETH_P_ALL = 3
WAKE_FRAME = bytes(12) + b"\x88\xb5" + bytes(46)  # of the EtherType for experiments


def frame_of(plan):
    """A packet of full size as tc counts it."""
    return plan.get("mtu_bytes", MTU_BYTES) + LINK_HEADER_BYTES


class Limiter:
    """That of one bottleneck.

    Attributes:
        due_ns: when to call release(), on the monotonic clock; None: not before the next change.
    """

    def __init__(self, link, route, plan):
        self.device, self.limit_bytes, self.route = link["device"], link["buffer_bytes"], route
        self.first_rate_bps, self.queue = link["rate_bps"], link["qdisc"]
        self.packet_bytes = SEGMENT_BYTES if plan["segmentation"] == "router" else frame_of(plan)
        self.slack_bytes = 0 if plan["virtual"] else SLACK_BYTES
        self.rate_bps, self.due_ns = self.first_rate_bps, None
        self.behind = "%s-%s" % tuple(reversed(self.device.split("-")))
        self.watcher = self.waker = None
        self.released = None  # when tbf last started anew, and what it had sent by then

    def commands(self):
        """tc batch lines of the limiter and its queue in their initial state, which is that of htb."""
        self.rate_bps, self.due_ns, self.released = self.first_rate_bps, None, None
        words = (self.first_rate_bps, self.packet_bytes + SLACK_BYTES, self.limit_bytes)
        return [
            line % self.device
            for line in (
                "qdisc add dev %s root handle 9: htb default 1",
                "class add dev %s parent 9: classid 9:1 htb rate 1000gbit",
                "class add dev %s parent 9: classid 9:2 htb rate 1000gbit",
                "qdisc add dev %s parent 9:2 handle 90: pfifo limit 0",
                "qdisc add dev %%s parent 9:1 handle 1: tbf rate %dbit burst %d limit %d" % words,
                "qdisc add dev %s parent 1:3 handle 30: " + " ".join(self.queue),
            )
        ]

    def watch_ns(self, rate_bps):
        """How long before a change of ``rate_bps`` the packet that is then under way may have left."""
        return -(-self.packet_bytes * 8_000_000_000 // rate_bps)

    def watch(self):
        """Begin to note which packets leave."""
        self.watcher = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.watcher.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.watcher.setblocking(False)
        self.watcher.bind((self.behind, ETH_P_ALL))

    def change(self, rate_bps):
        """Go on at ``rate_bps``. With a packet under way from ``due_ns`` on; it has left by then."""
        now_ns = time.monotonic_ns()
        left_bits = self._left_bits(now_ns)
        self.rate_bps, self.due_ns = rate_bps, None
        if left_bits > 0:
            self.due_ns = now_ns + round(left_bits * 1e9 / rate_bps)
            self._set(held=True)
        else:
            self.release()

    def release(self):
        """Let packets go: the first at once."""
        self.due_ns, self.released = None, (time.monotonic_ns(), self._sent_bytes())
        self._set(held=False)
        self._wake()

    def _left_bits(self, now_ns):
        """What is left of the packet that is under way."""
        packets = [self._last_departure()]  # (how many ns ago, bytes)
        if self.due_ns is not None:  # it was under way at the change before this one
            return (self.due_ns - now_ns) * self.rate_bps / 1e9
        if self.released is not None:
            at_ns, sent_bytes = self.released
            packets.append((now_ns - at_ns, self._sent_bytes() - sent_bytes))
        return max((8 * size - since_ns * self.rate_bps / 1e9 for since_ns, size in filter(None, packets)), default=0)

    def _tbf(self):
        return struct.pack("<BxxxiIII", socket.AF_UNSPEC, self.route.index(self.device), 0x10000, 0x90001, 0)

    def _sent_bytes(self):
        (reply,) = self.route.ask(RTM_GETQDISC, NLM_F_ACK | NLM_F_ECHO, self._tbf(), self.device)
        return queue_state(reply)[0]

    def _last_departure(self):
        """(how many ns ago, bytes) of the last packet that was noted, or None. Ends the watch."""
        if self.watcher is None:
            return None
        last, now_ns = None, time.time_ns()
        with contextlib.suppress(BlockingIOError):
            while True:
                data, stamps, _, sender = self.watcher.recvmsg(self.packet_bytes, 256)
                if sender[2] == socket.PACKET_OUTGOING:
                    continue
                seconds, ns = struct.unpack("<qq", stamps[0][2])
                last = now_ns - seconds * 1_000_000_000 - ns, len(data)
        self.watcher.close()
        self.watcher = None
        return last

    def _set(self, held):
        """Give tbf its rate, and no room, or room for one packet."""
        rate = -(-self.rate_bps // 8)
        mpu, room = (HELD_PACKET_BYTES, HELD_ROOM_BYTES) if held else (0, self.packet_bytes + self.slack_bytes)
        spec = struct.pack("<BBHhHI", 0, LINKLAYER_ETHERNET, 0, -1, mpu, min(rate, 2**32 - 1))
        ticks = min(TICKS_MAX, room * 1_000_000_000 // rate // TICK_NS)
        options = attribute(TCA_TBF_PARMS, spec + bytes(12) + struct.pack("<III", self.limit_bytes, ticks, 0))
        options += attribute(TCA_TBF_RATE64, struct.pack("<Q", rate))
        options += b"" if held else attribute(TCA_TBF_BURST, room)
        body = self._tbf() + attribute(TCA_KIND, "tbf") + attribute(TCA_OPTIONS, options)
        self.route.ask(RTM_NEWQDISC, NLM_F_ACK, body, "network.changes: rate_mbit %g" % (self.rate_bps / 1e6))

    def _wake(self):
        if self.waker is None:
            self.waker = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.waker.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, WAKE_CLASS)
            self.waker.bind((self.device, 0))
        with contextlib.suppress(OSError):  # "no room", as it is meant to be
            self.waker.send(WAKE_FRAME)
