"""Short flows on the hosts of the dumbbell: many TCP connections from one process per host, begun and timed exactly.

Usage: short_flows.py send|receive PLAN GROUP INDEX START_NS

A sender begins flow number INDEX, INDEX + (number of senders), ... of PLAN's workload; the receiver takes them all. The
first bytes of a connection are the flow's number. Both write lines "flow chunk nanoseconds since START_NS": when a chunk
was begun (the first one with the connection), and when its last byte was read. The receiver also writes how much it had read
at the edges of the window (short-GROUP-read.log: lines "nanoseconds bytes", with the instant at which it was noted).
"""

import array
import contextlib
import csv
import ctypes
import heapq
import json
import os
import select
import signal
import socket
import struct
import sys
import time

from ip_version import family_of

BLOCK = memoryview(bytes(1 << 20))
HEADER = struct.Struct("<q")
LOWAT_BYTES = 128 << 10  # a receiver is woken for so much, or for the end of a chunk
TCP_CONGESTION = 13
CLOCK_MONOTONIC, TFD_NONBLOCK, TFD_TIMER_ABSTIME = 1, 0o4000, 1

_libc = ctypes.CDLL(None, use_errno=True)


class _Timerspec(ctypes.Structure):
    _fields_ = [(n, ctypes.c_long) for n in ("interval_s", "interval_ns", "value_s", "value_ns")]


class Alarm:
    """A timer with nanoseconds that epoll can wait for (Python has it since 3.13 only)."""

    def __init__(self):
        self.fd = _libc.timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)
        self.spec = _Timerspec()

    def set(self, at_ns):
        """Become readable at ``at_ns`` of the monotonic clock."""
        self.spec.value_s, self.spec.value_ns = divmod(at_ns, 1_000_000_000)
        _libc.timerfd_settime(self.fd, TFD_TIMER_ABSTIME, ctypes.byref(self.spec), None)

    def clear(self):
        """Take note that it has rung."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 8)


class Workload:
    """The chunks of a workload file in 24 bytes each: a trace of minutes has hundreds of thousands, and three readers.

    Flows are numbered from 0 in the order of their rows; each one's chunks stand together.
    """

    def __init__(self, path):
        self.start_ns, self.first = array.array("q"), array.array("q")
        self.pause_ns, self.bytes = array.array("q"), array.array("q")
        with open(path, encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            column = {name: i for i, name in enumerate(next(rows))}
            flow, start, pause, size = (column[n] for n in ("flow", "start_s", "pause_s", "bytes"))
            for row in rows:
                if int(row[flow]) == len(self.start_ns):
                    self.start_ns.append(round(float(row[start]) * 1e9))
                    self.first.append(len(self.bytes))
                self.pause_ns.append(round(float(row[pause]) * 1e9))
                self.bytes.append(int(row[size]))
        self.first.append(len(self.bytes))

    def chunks(self, flow):
        """[(pause_ns, bytes) of each chunk of a flow]."""
        of_flow = slice(self.first[flow], self.first[flow + 1])
        return list(zip(self.pause_ns[of_flow], self.bytes[of_flow]))  # noqa: B905


class Flow:
    """A sender's flow: its socket and what is left of its chunks."""

    def __init__(self, number, chunks):
        self.number, self.chunks = number, chunks
        self.chunk, self.left, self.head = 0, chunks[0][1], HEADER.pack(number)
        self.sock = None

    def send(self):
        """Hand data to the kernel until it takes no more. Returns whether the chunk is through."""
        try:
            if self.head:
                self.left -= self.sock.send(self.head)  # eight bytes into an empty buffer: all or nothing
                self.head = b""
            while self.left:
                self.left -= self.sock.send(BLOCK[: min(self.left, len(BLOCK))])
        except BlockingIOError:
            return False
        return True


class Sender:
    """Begins the flows of one host when they are due."""

    def __init__(self, entry, workload, index, start_ns, log, family):
        self.entry, self.workload, self.start_ns, self.log = entry, workload, start_ns, log
        self.family = family
        self.epoll, self.alarm, self.open = select.epoll(), Alarm(), {}
        self.epoll.register(self.alarm.fd, select.EPOLLIN)
        begin = workload.start_ns
        order = sorted(range(len(begin)), key=begin.__getitem__)
        self.waiting = iter(array.array("q", order[index :: len(entry["clients"])]))
        self.due = []  # (when, number, flow): the next flow to begin, and every flow in a pause
        self._draw()

    def _draw(self):
        """Put the next flow to begin among what is due."""
        number = next(self.waiting, None)
        if number is not None:
            flow = Flow(number, self.workload.chunks(number))
            heapq.heappush(self.due, (self.start_ns + self.workload.start_ns[number], number, flow))

    def _note(self, flow, now_ns):
        self.log.write("%d %d %d\n" % (flow.number, flow.chunk, now_ns - self.start_ns))

    def _begin(self, flow, now_ns):
        self._note(flow, now_ns)
        if flow.sock is None:
            self._draw()
            flow.sock = socket.socket(self.family, socket.SOCK_STREAM)
            flow.sock.setblocking(False)
            flow.sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, self.entry["cca"].encode())
            flow.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            flow.sock.connect_ex((self.entry["server_ip"], self.entry["port"]))
            self.open[flow.sock.fileno()] = flow
            self.epoll.register(flow.sock.fileno(), select.EPOLLOUT)
        else:
            self._go_on(flow)

    def _go_on(self, flow):
        fd = flow.sock.fileno()
        if not flow.send():
            self.epoll.modify(fd, select.EPOLLOUT)
            return
        flow.chunk += 1
        if flow.chunk < len(flow.chunks):
            pause_ns, flow.left = flow.chunks[flow.chunk]
            heapq.heappush(self.due, (time.monotonic_ns() + pause_ns, flow.number, flow))
            self.epoll.modify(fd, 0)
        else:
            flow.sock.shutdown(socket.SHUT_WR)
            self.epoll.modify(fd, select.EPOLLIN)  # the receiver's end

    def run(self, running):
        """Until there is nothing left, or ``running`` is emptied."""
        while running and (self.due or self.open):
            if self.due:
                self.alarm.set(self.due[0][0])
            for fd, events in self.epoll.poll():
                if fd == self.alarm.fd:
                    self.alarm.clear()
                    continue
                flow = self.open[fd]
                if flow.chunk < len(flow.chunks) and not events & select.EPOLLERR:
                    self._go_on(flow)
                else:
                    self.epoll.unregister(fd)
                    del self.open[fd]
                    flow.sock.close()
            now_ns = time.monotonic_ns()
            while self.due and self.due[0][0] <= now_ns:
                self._begin(heapq.heappop(self.due)[2], now_ns)


class Connection:
    """A receiver's connection: how much of its chunks has come."""

    def __init__(self, sock):
        self.sock, self.number, self.ends, self.chunk, self.got = sock, None, [], 0, 0


class Receiver:
    """Takes every flow and notes when each of its chunks is whole."""

    def __init__(self, entry, workload, start_ns, log, edges_ns, edge_log, family):
        self.workload, self.start_ns, self.log = workload, start_ns, log
        self.edges_ns, self.edge_log, self.total, self.alarm = edges_ns, edge_log, 0, Alarm()
        self.listener = socket.create_server((entry["server_ip"], entry["port"]), family=family, backlog=4096)
        self.listener.setblocking(False)
        self.epoll, self.open, self.buffer = select.epoll(), {}, bytearray(1 << 20)
        self.epoll.register(self.listener.fileno(), select.EPOLLIN)
        self.epoll.register(self.alarm.fd, select.EPOLLIN)
        self._await_edge()

    def _await_edge(self):
        if self.edges_ns:
            self.alarm.set(self.start_ns + self.edges_ns[0])

    def note_edge(self):
        """Read what has come and note how much that is, at an edge of the window."""
        if not self.edges_ns:
            return
        for fd, connection in list(self.open.items()):
            self._read(fd, connection)
        # Not the edge's own instant: in real time the alarm is heard late, and what came meanwhile is counted.
        self.edge_log.write("%d %d\n" % (time.monotonic_ns() - self.start_ns, self.total))
        self.edges_ns.pop(0)
        self._await_edge()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, HEADER.size)
            self.open[sock.fileno()] = Connection(sock)
            self.epoll.register(sock.fileno(), select.EPOLLIN)

    def _read(self, fd, connection):
        try:
            count = connection.sock.recv_into(self.buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self.epoll.unregister(fd)
            del self.open[fd]
            connection.sock.close()
            return
        if connection.number is None:
            (connection.number,) = HEADER.unpack_from(self.buffer)
            total = 0
            for _, size in self.workload.chunks(connection.number):
                total += size
                connection.ends.append(total)
        connection.got += count
        self.total += count
        while connection.chunk < len(connection.ends) and connection.got >= connection.ends[connection.chunk]:
            now_ns = time.monotonic_ns() - self.start_ns
            self.log.write("%d %d %d\n" % (connection.number, connection.chunk, now_ns))
            connection.chunk += 1
        left = connection.ends[connection.chunk] - connection.got if connection.chunk < len(connection.ends) else 1
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, min(left, LOWAT_BYTES))

    def run(self, running):
        """Until ``running`` is emptied."""
        while running:
            for fd, _ in self.epoll.poll():
                if fd == self.listener.fileno():
                    self._accept()
                elif fd == self.alarm.fd:
                    self.alarm.clear()
                    self.note_edge()
                elif fd in self.open:  # not closed while an edge was noted
                    self._read(fd, self.open[fd])


class Stop(Exception):
    """The run is over."""


def main(role, plan_path, group, index, start_ns):
    """Send or receive until told to stop."""
    with open(plan_path, encoding="utf-8") as file:
        plan = json.load(file)
    entry = next(e for e in plan["short_flows"] if e["group"] == int(group))
    out = os.path.dirname(plan_path)
    workload = Workload("%s/%s" % (out, entry["workload"]))
    running = [True]

    def stop(*_):
        raise Stop

    with open("%s/short-%s-%s-%s.log" % (out, group, role, index), "w", encoding="ascii", buffering=1 << 20) as log:
        signal.signal(signal.SIGTERM, stop)
        try:
            if role == "send":
                Sender(entry, workload, int(index), int(start_ns), log, family_of(plan)).run(running)
                signal.pause()
            else:
                with open("%s/short-%s-read.log" % (out, group), "w", encoding="ascii") as edge_log:
                    edges_ns, family = list(plan["window_ns"]), family_of(plan)
                    receiver = Receiver(entry, workload, int(start_ns), log, edges_ns, edge_log, family)
                    try:
                        receiver.run(running)
                    finally:
                        receiver.note_edge()  # the end of the run can be an edge and come before its alarm
        except Stop:
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
