"""Network namespaces of the guest's own process: making them, and working in them.

nsenter does the same as a program of its own, and starting a program is the dear thing in a guest's set-up.
"""

import contextlib
import ctypes
import os
import threading

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
STACK_BYTES = 1 << 17

_libc = ctypes.CDLL(None, use_errno=True)


def _check(status, what):
    if status:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))


def setns(fd):
    """Move this thread into the network namespace behind ``fd``."""
    _check(_libc.setns(fd, CLONE_NEWNET), "setns")


def mount(source, target, kind, flags=0, options=None):
    """mount(2)."""
    words = [word.encode() if word is not None else None for word in (source, target, kind, options)]
    _check(_libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]), "mount %s" % target)


@contextlib.contextmanager
def network_of(pid):
    """This thread, and what it starts, is in the network namespace of process ``pid`` within the block."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        other = os.open("/proc/%d/ns/net" % pid, os.O_RDONLY)
        try:
            setns(other)
        finally:
            os.close(other)
        try:
            yield
        finally:
            setns(own)
    finally:
        os.close(own)


class Namespace:
    """A network namespace with /sys of its own, as mnexec -n makes them. It lives as long as a thread that stands in it.

    Attributes:
        pid: the thread's number, good wherever the kernel or mnexec takes that of a process.
    """

    def __init__(self):
        self.pid, self._error = None, None
        self._made, self._end = threading.Event(), threading.Event()
        before = threading.stack_size(STACK_BYTES)
        self._thread = threading.Thread(target=self._stand, daemon=True)
        self._thread.start()
        threading.stack_size(before)
        self._made.wait()
        if self._error:
            raise self._error

    def _stand(self):
        try:
            _check(_libc.unshare(CLONE_NEWNET | CLONE_NEWNS), "unshare")
            mount(None, "/", None, MS_REC | MS_PRIVATE)
            mount("sysfs", "/sys", "sysfs")
            self.pid = threading.get_native_id()
        except OSError as error:
            self._error = error
        self._made.set()
        if self.pid:
            self._end.wait()

    def end(self):
        """Let go of it. What runs in it keeps it alive."""
        self._end.set()
        self._thread.join()
