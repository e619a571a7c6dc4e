"""RTTs and losses over time from a file: lines of a time in s, an RTT in ms, and where wanted a loss, each of which holds from then on.

Empty lines and what follows a ``#`` are left out; numbers may stand apart by commas.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bbrlab.scenario.link_trace import read_rows

ROWS_MAX = 2000  # each is a call of tc in the guest
NOT_RIGHT = "has lines of a time in s, an RTT in ms and, in all or none, a loss (docs/howto/paths.md)"


def changes_of(path: Path, end_s: float | None, before: dict[str, Any]) -> list[dict[str, float]]:
    """What a scenario's ``changes`` would have for such a file: what each row has that is another than before, up to the run's end.

    ValueError naming file and line, if it is none, or changes nothing.

    Args:
        end_s: of the run; None: not known.
        before: what ``rtt_ms`` and ``loss`` are when the run begins.
    """
    try:
        rows, _ = read_rows(path, (2, 3), f"the file {NOT_RIGHT}", each_later=True)
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); the file {NOT_RIGHT}") from None
    if not rows:
        raise ValueError(f"{path}: has no line; it {NOT_RIGHT}")
    found: list[dict[str, float]] = []
    for row in rows:
        values = dict(zip(("rtt_ms", "loss"), row[1:], strict=False))
        new = {name: value for name, value in values.items() if before.get(name) != value}
        if new and (end_s is None or row[0] < end_s):
            found.append({"at_s": row[0], **new})
        before = before | values
    if not found and end_s is not None:
        raise ValueError(
            f"{path}: no row changes anything within the run, which ends at {end_s:g} s; give other rows, or leave network.changes out"
        )
    if len(found) > ROWS_MAX:
        raise ValueError(f"{path}: has {len(found)} changes within the run; at most {ROWS_MAX} are possible")
    return found
