"""Work in a host's network namespace from the guest's own process.

nsenter does the same as a program of its own, and starting a program is the dear thing in a guest's set-up.
"""

import contextlib
import ctypes
import os

CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def setns(fd):
    """Move this process into the network namespace behind ``fd``."""
    if _libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def network_of(pid):
    """This process, and what it starts, is in the network namespace of process ``pid`` within the block."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
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
