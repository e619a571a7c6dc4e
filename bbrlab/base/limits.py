"""What this machine and its shell (ulimit) allow: a guest or a compiler that runs into a limit does not name it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

# (letter of ulimit, limit, bytes or pieces of a unit, unit, what is enough); enough is what Linux starts a session with.
_LIMITS = (
    ("f", resource.RLIMIT_FSIZE, 1024, " kB of a file", resource.RLIM_INFINITY),
    ("v", resource.RLIMIT_AS, 1024, " kB of memory", resource.RLIM_INFINITY),
    ("d", resource.RLIMIT_DATA, 1024, " kB of data", resource.RLIM_INFINITY),
    ("t", resource.RLIMIT_CPU, 1, " s of a processor", resource.RLIM_INFINITY),
    ("n", resource.RLIMIT_NOFILE, 1, " open files", 1024),
    ("u", resource.RLIMIT_NPROC, 1, " processes", 1024),
)


def limits_in_words() -> str:
    """Which limits of this process are low, and what to do: the end of a message of something that failed; empty if none is."""
    low = []
    for letter, which, unit, words, enough in _LIMITS:
        soft = resource.getrlimit(which)[0]
        if soft != resource.RLIM_INFINITY and (enough == resource.RLIM_INFINITY or soft < enough):
            low.append(f"ulimit -{letter} ({soft // unit}{words})")
    if not low:
        return ""
    return f"\nthis shell has limits that may be the reason: {', '.join(low)}; start again from one without them"


def all_cores() -> int:
    """How many cores this process may use: taskset and batch systems give it fewer than the machine has."""
    return len(os.sched_getaffinity(0))


def available_bytes() -> float:
    """Memory that programs may still take; infinite where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return float("inf")
