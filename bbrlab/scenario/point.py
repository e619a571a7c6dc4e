"""One point of a scenario's grid: its values, conditions, fingerprint and folder name."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from bbrlab.scenario.schema import NOT_DECISIVE, Scenario


class Point:
    """One point of a scenario's grid: a scenario without ``cases`` and ``sweep`` plus what was chosen from them.

    Attributes:
        scenario: the scenario with the values put in.
        values: {"case": its name, dotted path: value}, in the sweep's order; without cases only the paths.
    """

    def __init__(self, scenario: Scenario, values: dict[str, Any]):
        self.scenario = scenario
        self.values = values

    @property
    def fingerprint(self) -> str:
        """Hash of all that decides a run's outcome, apart from kernel and seed (not: name, paper, figure, trials)."""
        content: dict[str, Any] = self.scenario.model_dump(exclude=NOT_DECISIVE)
        for flow in content["flows"]:
            if flow["traffic"] is None:
                del flow["traffic"]
            elif flow["traffic"]["trace"] != "model":
                flow["traffic"]["trace"] = hashlib.sha256(Path(flow["traffic"]["trace"]).read_bytes()).hexdigest()
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]

    @functools.cached_property
    def conditions(self) -> dict[str, Any]:
        """What the point is, in the same words for every figure (docs/results.md)."""
        network = self.scenario.network
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

    @property
    def label(self) -> str:
        """A folder name: the swept values in words and the fingerprint."""
        words = [f"{k.removeprefix('network.')}={_word(v)}" for k, v in self.values.items()]
        return ",".join([*words, self.fingerprint])


def _word(value: Any) -> str:
    text = json.dumps(value, sort_keys=True).replace('"', "") if isinstance(value, (dict, list)) else str(value)
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text)
