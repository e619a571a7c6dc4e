"""Measures the processor time of a machine in real time: what it used, and what others took.

In virtual time this does not affect an experiment; in real time a late processor acts like a slower network.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

STAT, PRESSURE = Path("/proc/stat"), Path("/proc/pressure/cpu")
IDLE, IOWAIT, STEAL = 3, 4, 7  # fields of a line of /proc/stat (proc(5)), the name left out


@dataclass(frozen=True)
class Strain:
    """Fractions of an experiment's time that a machine's processor was busy, or taken by others."""

    busy: float  # it ran. Near 1 it was too slow for its load
    # It was runnable, but other processes of this machine had the processor; None if the kernel does not report it
    waited: float | None
    stolen: float  # the hypervisor below this machine had given the processor to others (steal)

    @property
    def lost(self) -> float:
        """The fraction that others took."""
        return (self.waited or 0.0) + self.stolen


@dataclass(frozen=True)
class _Look:
    at_s: float
    threads: dict[int, tuple[int, int]]  # {thread: (ns that it ran, ns that it waited for a core)}
    ticks: list[int]
    pressure_us: int | None


class Gauge:
    """Observes a machine while it runs; ``strain()`` is the result between the first look and the last."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._line = "cpu"
        self._first: _Look | None = None
        self._last: _Look | None = None

    def watch(self, pid: int, core: int) -> None:
        """Observe this process on this core. By default the whole computer is observed."""
        self._pid, self._line = pid, f"cpu{core}"

    def look(self) -> None:
        """Take a look: when the experiment starts, and at intervals until its end."""
        self._last = _Look(
            time.monotonic(),
            {} if self._pid is None else _threads(self._pid),
            _ticks(self._line),
            _pressure_us() if self._pid is None else None,
        )
        self._first = self._first or self._last

    def strain(self) -> Strain | None:
        """The result; None without two looks."""
        first, last = self._first, self._last
        if first is None or last is None or last.at_s <= first.at_s or not first.ticks or not last.ticks:
            return None
        wall_s = last.at_s - first.at_s
        ticks = [b - a for a, b in zip(first.ticks, last.ticks, strict=True)]
        all_ticks = max(1, sum(ticks))
        stolen = ticks[STEAL] / all_ticks
        if self._pid is None:
            waited = (
                None
                if first.pressure_us is None or last.pressure_us is None
                else (last.pressure_us - first.pressure_us) / 1e6 / wall_s
            )
            busy = 1 - (ticks[IDLE] + ticks[IOWAIT]) / all_ticks
        else:
            spent = {
                thread: (ran - before[0], waited - before[1])
                for thread, (ran, waited) in last.threads.items()
                if (before := first.threads.get(thread, (0, 0)))
            }
            # The thread that is the machine's processor runs most by far; the others wait upon devices.
            ran_ns, waited_ns = max(spent.values(), default=(0, 0))
            busy, waited = ran_ns / 1e9 / wall_s, waited_ns / 1e9 / wall_s
        return Strain(round(busy, 4), None if waited is None else round(waited, 4), round(stolen, 4))


def _threads(pid: int) -> dict[int, tuple[int, int]]:
    """{thread: (ns that it ran, ns that it was runnable without a core)}; empty if the process has ended."""
    times = {}
    with contextlib.suppress(OSError):
        for folder in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):  # it ended, or this kernel does not tell
                words = (folder / "schedstat").read_text(encoding="ascii").split()
                times[int(folder.name)] = int(words[0]), int(words[1])
    return times


def _ticks(line: str) -> list[int]:
    """A core's ticks by kind (proc(5)), or those of all cores together."""
    with contextlib.suppress(OSError, ValueError):
        for text in STAT.read_text(encoding="ascii").splitlines():
            name, *numbers = text.split()
            if name == line:
                return [int(number) for number in numbers[: STEAL + 1]]
    return []


def _pressure_us() -> int | None:
    """Time in which a process of this machine waited for a processor, us (PSI); None if the kernel does not report it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(PRESSURE.read_text(encoding="ascii").split("total=")[1].split()[0])
    return None
