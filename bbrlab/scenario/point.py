"""One point of a scenario's grid: its values, conditions, fingerprint and folder name."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.scenario.schema import NOT_DECISIVE, Scenario

WORDS_BYTES = 200  # of a label; a file's name has at most 255


class Point:
    """One point of a scenario's grid: a scenario without ``cases`` and ``sweep`` plus what was chosen from them."""

    def __init__(self, scenario: Scenario, values: dict[str, Any]):
        self.scenario = scenario
        self.values = (
            values  # {"case": its name, dotted path: value}, in the sweep's order; without cases only the paths
        )

    @functools.cached_property
    def fingerprint(self) -> str:
        """fingerprint_of() its scenario."""
        return fingerprint_of(self.scenario.model_dump(exclude=NOT_DECISIVE))

    @functools.cached_property
    def conditions(self) -> dict[str, Any]:
        """What the point is, in the same words for every figure (docs/reference/results.md); of several links the first that the
        first group crosses, as ``bottleneck`` of summary.json."""
        first = self.scenario.flows[0]
        network = self.scenario.towards(first.direction).links_of(first)[0]
        return {
            "rate_mbit": network.rate_mbit,
            "base_rtt_ms": network.mean_rtt_ms,
            "buffer_bytes": network.buffer_bytes,
            "buffer_bdp": network.buffer_bytes / network.bdp_bytes,
            "qdisc": network.qdisc.kind,
            "random_loss": network.loss,
            "duration_s": self.scenario.duration_s,
            "window_start_s": self.scenario.window_s[0],
            "window_end_s": self.scenario.window_s[1],
        }

    @functools.cached_property
    def traits(self) -> dict[str, Any]:
        """What a point may be chosen by: conditions, case, swept values."""
        return self.conditions | self.values

    @functools.cached_property
    def label(self) -> str:
        """A folder name: the swept values in words, as far as a name can hold them, and the fingerprint."""
        words = [f"{k.removeprefix('network.')}={_word(v)}" for k, v in self.values.items()]
        while len(",".join(words).encode()) > WORDS_BYTES:
            words = [word[: len(word) * 3 // 4] for word in words]
        return ",".join([*words, self.fingerprint])


def fingerprint_of(scenario: Mapping[str, Any]) -> str:
    """Hash of all that decides a run's outcome, apart from kernel and seed (not: name, paper, figure, trials).

    UserError if a file that it names cannot be read.

    Args:
        scenario: as its model or manifest.json has it.
    """
    content = {key: value for key, value in scenario.items() if key not in NOT_DECISIVE}
    if trace := content["network"].get("trace"):
        content["network"] = content["network"] | {"trace": _hash_of(Path(trace), "network.trace")}
    content["flows"] = [_decisive(flow) for flow in content["flows"]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]


def _decisive(flow: Mapping[str, Any]) -> dict[str, Any]:
    """A flow group without an empty ``traffic``, and with the content of its file in place of the name."""
    content = {key: value for key, value in flow.items() if key != "traffic"}
    traffic = flow.get("traffic")
    if traffic is None:
        return content
    if traffic["trace"] != "model":
        traffic = traffic | {"trace": _hash_of(Path(traffic["trace"]), "flows: traffic.trace")}
    return content | {"traffic": traffic}


def _hash_of(trace: Path, field: str) -> str:
    """SHA-256 of a trace's content. UserError if it cannot be read (any more)."""
    try:
        status = trace.stat()
        return _hash_at(trace, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise UserError(f"{trace}: {field} cannot be read ({error.strerror})") from None


@functools.lru_cache
def _hash_at(trace: Path, mtime_ns: int, size_bytes: int) -> str:
    """The hash of a file as it was then: every point of a sweep asks for it."""
    return files.sha256(trace)


def _word(value: Any) -> str:
    text = json.dumps(value, sort_keys=True).replace('"', "") if isinstance(value, (dict, list)) else str(value)
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text)
