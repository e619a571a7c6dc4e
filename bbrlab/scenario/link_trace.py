"""When a link may send: traces of delivery opportunities, and tables of rates made into such.

A file has one of two forms, told by how many numbers a line has; empty lines and what follows a ``#`` are left out:

- one, as mahimahi has it: a time in ms at which a packet of full size may leave. Times ascend, several may be equal, and after the
  last the trace begins again.
- two, a time in s and the rate in Mbit/s from then on. The first time is 0; the last line says when the table begins again, and its
  rate is not used. A packet may leave whenever the rate has made one up.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bbrlab.base import paths
from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.scenario.frames import FRAME_BYTES, RATE_MBIT_MAX

FOLDER = paths.DATA / "traces"  # of those that come with the package
FILE_BYTES_MAX = 250_000_000  # of a file that a scenario names: four times a trace of OPPORTUNITIES_MAX
OPPORTUNITIES_MAX = 0x400000  # of a turn (kernels/sched/sch_opportunity.c)
NS_PER_MS, NS_PER_S = 1_000_000, 1_000_000_000
NOT_RIGHT = "a trace has lines of one time in ms each, or of a time in s and a rate in Mbit/s (docs/howto/paths.md)"


@dataclass(frozen=True)
class LinkTrace:
    """One turn of a trace, which is repeated without end."""

    # When so many bytes may leave, ascending, above 0 and at most the period; int64, shape (opportunities,)
    times_ns: Array
    period_ns: int
    bytes: int = FRAME_BYTES  # what may leave at each time, of a file's a packet of full size

    def count(self, times_s: Array) -> Array:
        """How many opportunities there are from 0 s up to each time, itself included."""
        turns, rest = np.divmod(np.rint(np.asarray(times_s) * NS_PER_S).astype("<i8"), self.period_ns)
        found: Array = turns * len(self.times_ns) + np.searchsorted(self.times_ns, rest, side="right")
        return found

    def when_s(self, numbers: Array) -> Array:
        """When the opportunities of these numbers are, counted from 1."""
        turns, rest = np.divmod(np.asarray(numbers, "<i8") - 1, len(self.times_ns))
        found: Array = (turns * self.period_ns + self.times_ns[rest]) / NS_PER_S
        return found

    def mbit(self, low_s: float, high_s: float) -> float:
        """The mean rate between two instants."""
        low, high = self.count(np.array([low_s, high_s]))
        return float(high - low) * self.bytes * 8e-6 / (high_s - low_s)

    def delay_ms(self, times_s: Array, backlog_bytes: Array) -> Array:
        """How long what waits at each time takes to leave."""
        needed = np.ceil(np.asarray(backlog_bytes) / self.bytes).astype("<i8")
        ends_s = self.when_s(np.maximum(self.count(times_s) + needed, 1))
        found: Array = np.where(needed > 0, np.maximum(ends_s - times_s, 0) * 1000, 0.0)
        return found


def shipped_traces() -> dict[str, Path]:
    """{name: file} of the traces that come with the package."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.txt"))}


def place_of(name: str, folder: Path | None) -> Path:
    """The file of a trace: one that comes with the package, by its name, or a path relative to the scenario's folder. ValueError
    if there is none. As existing_file(); also without a folder a trace that comes with the package may have its whole path."""
    shipped = shipped_traces()
    if name in shipped:
        return shipped[name]
    if folder is None and (path := shipped_trace(name)) is not None:
        return path
    return existing_file(name, folder, f"{' or '.join(sorted(shipped))}, which come with the package")


def shipped_trace(path: str) -> Path | None:
    """The trace that comes with the package, by its whole path on any machine: what a run's manifest has. None if it is none of them."""
    return next((p for p in shipped_traces().values() if path.endswith(f"/{p.relative_to(paths.ROOT)}")), None)


def existing_file(name: str, folder: Path | None, others: str, kind: str = "") -> Path:
    """The whole path of a plain file that a scenario names. ValueError if it is none, is too large, or no file may be named.

    Args:
        folder: that a relative path is relative to; None: the scenario is somebody else's, for whom nothing is opened here.
        others: what may be given in place of a file, in words.
        kind: of file, in words.
    """
    if folder is None:
        raise ValueError(f"'{name:.60}': no file can be named here; give {others}")
    path = folder / name
    if not os.path.isfile(path):  # of a name that is none at all, too
        raise ValueError(
            f"{path} is not a file; give {others}, or a file{kind} (a relative path is relative to the scenario's folder)"
        )
    if (size := path.stat().st_size) > FILE_BYTES_MAX:
        raise ValueError(
            f"{path} has {size / 1e6:.0f} MB; a file that a scenario names has at most {FILE_BYTES_MAX / 1e6:g}"
        )
    return path.resolve()


def link_trace(path: str) -> LinkTrace:
    """A file's trace. UserError, naming the line, if it is none."""
    try:
        status = Path(path).stat()
        return _read(Path(path), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise UserError(f"{path}: network.trace cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UserError(str(error)) from None


@functools.lru_cache(maxsize=8)
def _read(path: Path, mtime_ns: int, size_bytes: int) -> LinkTrace:
    rows, lines = read_rows(path, (1, 2), NOT_RIGHT)
    if not rows or rows[-1][0] <= 0:
        raise ValueError(f"{path}: has no time above 0; {NOT_RIGHT}")
    table = np.array(rows)
    if table.shape[1] == 1:
        times_ns, period_ns = _of_times(table[:, 0])
    else:
        if table[0, 0] != 0:
            raise ValueError(f"{path}:{lines[0]}: the first time of a table is 0, found {table[0, 0]:g}")
        times_ns, period_ns = _of_rates(table, str(path))
    if not 0 < len(times_ns) <= OPPORTUNITIES_MAX:
        raise ValueError(
            f"{path}: has {len(times_ns)} opportunities to send a packet in a turn; 1 to {OPPORTUNITIES_MAX} are possible"
        )
    mean_mbit = len(times_ns) * FRAME_BYTES * 8e3 / max(period_ns, 1)
    if mean_mbit > RATE_MBIT_MAX:
        raise ValueError(
            f"{path}: lets {mean_mbit:.0f} Mbit/s through in the mean; at most {RATE_MBIT_MAX} are possible: {NOT_RIGHT}"
        )
    return LinkTrace(times_ns, period_ns)


def read_rows(
    path: Path, widths: tuple[int, int], must: str, *, each_later: bool = False
) -> tuple[list[list[float]], list[int]]:
    """The lines of a file of numbers, without empty ones and what follows a ``#``, and where each stands. ValueError, naming the line, if
    one is not right; OSError.

    Args:
        widths: how many numbers a line may have, all lines as many; the first is a time.
        must: what the file must have, in words.
        each_later: whether no time may stand again.
    """
    rows: list[list[float]] = []
    lines: list[int] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is no text; {must}") from None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            row = [float(word) for word in words]
        except ValueError:
            row = []
        if len(row) not in widths or (rows and len(row) != len(rows[0])) or not all(0 <= v < 1e9 for v in row):
            raise ValueError(f"{path}:{number}: '{line.strip()[:60]}'; {must}")
        if rows and (row[0] <= rows[-1][0] if each_later else row[0] < rows[-1][0]):
            raise ValueError(f"{path}:{number}: times must ascend, but {row[0]:g} follows {rows[-1][0]:g}")
        rows.append(row)
        lines.append(number)
    return rows, lines


def _of_times(times_ms: Array) -> tuple[Array, int]:
    """What would leave at 0, where nothing waits yet, leaves at the turn's end, which is the next one's beginning."""
    period_ns = round(float(times_ms[-1]) * NS_PER_MS)
    times_ns = np.rint(times_ms * NS_PER_MS).astype("<i8")
    times_ns[times_ns == 0] = period_ns
    return np.sort(times_ns), period_ns


def _of_rates(table: Array, where: str) -> tuple[Array, int]:
    """One whenever another frame is made up; what is less than a frame at the turn's end is lost."""
    times_s, bytes_per_s = table[:, 0], table[:-1, 1] * 125_000
    made_up = np.concatenate([[0.0], np.cumsum(bytes_per_s * np.diff(times_s))])
    frames = np.floor(made_up / FRAME_BYTES + 1e-9).astype("<i8")  # by the end of each line
    if frames[-1] > OPPORTUNITIES_MAX:
        raise ValueError(f"{where}: makes {frames[-1]} opportunities to send a packet in a turn; at most {OPPORTUNITIES_MAX} are possible")  # fmt: skip
    parts = [
        begin_s + (np.arange(first + 1, last + 1) * FRAME_BYTES - before) / rate
        for begin_s, before, rate, first, last in zip(
            times_s[:-1], made_up[:-1], bytes_per_s, frames[:-1], frames[1:], strict=True
        )
        if last > first
    ]
    period_ns = round(float(times_s[-1]) * NS_PER_S)
    at_s = np.concatenate([np.zeros(0), *parts])
    return np.clip(np.rint(at_s * NS_PER_S), 1, period_ns).astype("<i8"), period_ns
