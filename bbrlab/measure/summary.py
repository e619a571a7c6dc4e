"""What a run's summary.json holds (docs/results.md describes its fields)."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from bbrlab.measure.checks.check import CheckEntry


class Measured(TypedDict):
    """What was measured of a run (metrics.summarise()).

    Attributes:
        groups: an entry for each flow group.
        flows: an entry for each flow.
        bottleneck: the one that the first group crosses.
        bottleneck_reverse: the other one, if flows run in both directions.
        jain_index: of all flows.
    """

    groups: list[dict[str, Any]]
    flows: list[dict[str, Any]]
    bottleneck: dict[str, Any]
    bottleneck_reverse: NotRequired[dict[str, Any]]
    jain_index: float | None


class Summary(Measured):
    """summary.json.

    Attributes:
        scenario, paper, figure, values, seed, backend: what was run, where.
        virtual_s, window_s: length of the run and the window of its metrics, in s of virtual time.
        wall_s: real seconds that it took; None until it is over.
        kernel: built.describe_kernel().
        checks: the self-checks (checks.suite.run_checks()).
        ok: whether none of them failed.
    """

    scenario: str
    paper: str
    figure: str
    values: dict[str, Any]
    seed: int
    backend: str
    virtual_s: float
    window_s: list[float]
    wall_s: float | None
    kernel: dict[str, Any]
    checks: list[CheckEntry]
    ok: bool
