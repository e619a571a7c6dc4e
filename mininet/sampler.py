"""Reads tcp_info of every sender and the bottleneck's queue at fixed instants, in one process, over netlink.

A system call is the dear thing in a guest, so requests are encoded once, sockets stay open, and the raw replies are
appended to a file with a time stamp; bbrlab/measure/traces.py decodes them outside.

File format (little-endian), repeated: int64 time_ns since the experiment's start | uint16 source | uint16 kind |
uint32 length | that many bytes of netlink messages. ``source`` counts hosts in plan order (kind 0: inet_diag dump,
kind 1: destroyed sockets) or bottlenecks (kind 2: qdisc); kind 3 is records of ACKs, as the kernel has them.
"""

import ctypes
import errno
import os
import socket
import struct
import time

from namespaces import network_of
from netlink import encoded

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
RTM_GETQDISC = 38
NLM_F_REQUEST, NLM_F_ECHO, NLM_F_DUMP = 1, 8, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
TCP_DESTROY = {socket.AF_INET: 1, socket.AF_INET6: 3}  # SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP = 270, 1
PR_SET_TIMERSLACK = 29
MSG_WAITFORONE = 0x10000
SO_RCVBUFFORCE = 33
DEATHS_BYTES = 64 << 20  # a bound; what does not wait takes no memory
TIMER_ABSTIME = 1
INFO, CONG, VEGASINFO = 2, 4, 3
# TCP states that can still have data to deliver: ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING.
STATES = sum(1 << s for s in (1, 4, 8, 9, 11))

KIND_SOCKETS, KIND_DESTROYED, KIND_QDISC, KIND_ACKS = 0, 1, 2, 3
ACKS_BYTES = 1 << 23
HEAD = struct.Struct("<qHHI")
FLUSH_BYTES = 1 << 20
RECEIVE_BYTES = 1 << 16
SYNC_FILE_RANGE_WRITE_AND_WAIT = 2 | 4

_libc = ctypes.CDLL(None, use_errno=True)


def be_punctual():
    """Wake up when asked to: by default Linux may delay a sleeper by 50 us to merge timers. Children inherit it."""
    _libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)


def run_in_order(pids):
    """Give this process, what it starts from now on, and ``pids`` real-time priority, first in, first out.

    The fair scheduler orders processes that wake at the same instant by what each has done before, so by the set-up; and
    the least timer slack of a normal process, 1 ns, lets it wake a clock step sooner whenever some unrelated timer
    expires at that moment. Not for the set-up: Mininet polls for its children, which would never get to run.
    """
    for pid in (0, *pids):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def show(file):
    """Let the host see what was written to ``file``: hostfs would keep it for seconds. Unlike fsync, it waits for no disk."""
    _libc.sync_file_range(file.fileno(), ctypes.c_int64(0), ctypes.c_int64(0), SYNC_FILE_RANGE_WRITE_AND_WAIT)


def netlink_in(pid, protocol):
    """Open a netlink socket in the network namespace of process ``pid``."""
    with network_of(pid):
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        sock.bind((0, 0))
    return sock


def socket_request(family):
    """The dump request for every TCP socket of an address family that may carry data, with tcp_info, CCA name and CCA internals."""
    extensions = sum(1 << (ext - 1) for ext in (INFO, VEGASINFO, CONG))
    body = struct.pack("<BBBxI48x", family, socket.IPPROTO_TCP, extensions, STATES)  # struct inet_diag_req_v2
    return encoded(SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, body)


def tc_request(kind, device, handle, parent):
    """The request for one qdisc or class of ``device``."""
    body = struct.pack("<BxxxiIII", socket.AF_UNSPEC, socket.if_nametoindex(device), handle, parent, 0)  # struct tcmsg
    # Without ECHO the kernel tells only the listeners of its multicast group.
    return encoded(kind, NLM_F_REQUEST | NLM_F_ECHO, body)


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Message(ctypes.Structure):  # struct mmsghdr
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("iovec", ctypes.POINTER(_Iovec)),
        ("iovec_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("length", ctypes.c_uint),
    ]


class Batch:
    """Receives all messages that wait on a netlink socket with one system call: a dump is its data and its DONE."""

    SIZE = 4

    def __init__(self):
        self.buffers = [ctypes.create_string_buffer(RECEIVE_BYTES) for _ in range(self.SIZE)]
        self.views = [memoryview(b).cast("B") for b in self.buffers]
        self.iovecs = [_Iovec(ctypes.addressof(b), RECEIVE_BYTES) for b in self.buffers]
        self.messages = (_Message * self.SIZE)()
        for message, iovec in zip(self.messages, self.iovecs):
            message.iovec = ctypes.pointer(iovec)
            message.iovec_count = 1
        self.call = _libc.recvmmsg

    def receive(self, sock):
        """Views of at least one message, good until the next call. BlockingIOError if a non-blocking socket has none."""
        count = self.call(sock.fileno(), self.messages, self.SIZE, MSG_WAITFORONE, None)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return [self.views[i][: self.messages[i].length] for i in range(count)]


class Clock:
    """CLOCK_MONOTONIC with one system call per sleep (time.sleep reads the clock twice more)."""

    class _Timespec(ctypes.Structure):
        _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]

    def __init__(self):
        self.target = self._Timespec()
        self.pointer = ctypes.byref(self.target)
        self.call = _libc.clock_nanosleep

    def sleep_until(self, target_ns):
        """Sleep until the monotonic clock shows ``target_ns``."""
        self.target.seconds, self.target.nanoseconds = divmod(target_ns, 1_000_000_000)
        while self.call(time.CLOCK_MONOTONIC, TIMER_ABSTIME, self.pointer, None) == errno.EINTR:
            pass


class Sampler:
    """Holds the sockets; ``take(time_ns)`` appends one sample of everything."""

    def __init__(self, path, host_pids, devices, traced, left_out, family):
        self.capture = None  # of packets, which it empties with each sample (capture.py)
        self.file = open(path, "wb", buffering=0)  # noqa: SIM115 - lives as long as the guest
        # Kept for good: memory that is freed and allocated again costs a guest a page fault for each of its pages.
        self.pending, self.size = memoryview(bytearray(FLUSH_BYTES)), 0
        self.batch = Batch()
        self.request = socket_request(family)
        self.hosts = [netlink_in(pid, NETLINK_SOCK_DIAG) for pid in host_pids]
        self.deaths = [netlink_in(pid, NETLINK_SOCK_DIAG) for pid in host_pids]
        self.left_out = set(left_out)  # hosts whose sockets are of no interest
        for source, sock in enumerate(self.deaths):
            if source not in self.left_out:
                sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, TCP_DESTROY[family])
            # Of a thousand flows that end at one instant each leaves a message; by default the socket holds some hundred.
            sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, DEATHS_BYTES)
            sock.setblocking(False)
        self.route = netlink_in(os.getpid(), socket.NETLINK_ROUTE)
        # The bottleneck queues: qdisc 30: below class 1:3.
        self.queues = [tc_request(RTM_GETQDISC, device, 0x300000, 0x10003) for device in devices]
        self.acks = os.open("/proc/tcp_ack_records", os.O_RDONLY) if traced else None
        self.records = memoryview(bytearray(ACKS_BYTES if traced else 0))

    def qdisc(self, index):
        """The raw reply for bottleneck ``index`` now."""
        self.route.send(self.queues[index])
        return self._receive(self.route)

    def _receive(self, sock):
        return self.batch.receive(sock)[0]

    def _append(self, time_ns, source, kind, data):
        if self.size + HEAD.size + len(data) > FLUSH_BYTES:
            self.flush()
        HEAD.pack_into(self.pending, self.size, time_ns, source, kind, len(data))
        self.size += HEAD.size
        if self.size + len(data) > FLUSH_BYTES:
            self.flush()
            self._write(data)
        else:
            self.pending[self.size : self.size + len(data)] = data
            self.size += len(data)

    def take(self, time_ns):
        """Append the state of all sockets and bottleneck queues, stamped ``time_ns``."""
        for source, sock in enumerate(self.hosts):
            if source in self.left_out:
                continue
            sock.send(self.request)
            done = False
            while not done:
                for data in self.batch.receive(sock):
                    kind = data[4] | data[5] << 8
                    if kind == NLMSG_DONE:
                        done = True
                    elif kind == NLMSG_ERROR:
                        raise OSError("inet_diag refused the request: %d" % struct.unpack_from("<i", data, 16))
                    else:
                        self._append(time_ns, source, KIND_SOCKETS, data)
        for source in range(len(self.queues)):
            self._append(time_ns, source, KIND_QDISC, self.qdisc(source))
        while self.acks is not None:
            count = os.readv(self.acks, [self.records])
            if not count:
                break
            self._append(time_ns, 0, KIND_ACKS, self.records[:count])
        if self.capture is not None:
            self.capture.drain()

    def bury(self, time_ns):
        """Append the last tcp_info of every socket that was destroyed since the last call."""
        for source, sock in enumerate(self.deaths):
            while True:
                try:
                    messages = self.batch.receive(sock)
                except BlockingIOError:
                    break
                for data in messages:
                    self._append(time_ns, source, KIND_DESTROYED, data)

    def flush(self):
        """Write what is in memory to the file."""
        self._write(self.pending[: self.size])
        self.size = 0

    def _write(self, data):
        while data:
            data = data[self.file.write(data) :]

    def close(self):
        """Write the rest and close."""
        self.flush()
        os.fsync(self.file.fileno())
        self.file.close()
