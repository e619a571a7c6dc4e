"""What the guest was told (module parameters), and whether what it recorded is whole (samples, ACKs)."""

from __future__ import annotations

import numpy as np

from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check, Tolerance, not_checked
from bbrlab.measure.lateness import EDGE_TOLERANCE_S
from bbrlab.measure.queues import Queue
from bbrlab.measure.sockets import Flows
from bbrlab.scenario.schema import Scenario


def parameter_checks(plan: Plan, report: Report) -> list[Check]:
    """``parameter MODULE.NAME`` for each module parameter of the plan; words are compared as words."""
    checks = []
    for argument in plan.kernel_arguments:
        name, _, asked = argument.partition("=")
        module, _, parameter = name.removeprefix("tcp_").partition(".")
        actual = report["parameters"].get(module, {}).get(parameter)
        number = _number(asked)
        same = actual is not None and (actual == asked if number is None else _number(actual) == number)
        how = "module parameter in the guest"
        if number is None:
            how += f": asked {asked}, found {actual}"
        checks.append(Check(f"parameter {module}.{parameter}", number, _number(actual), same, how))
    return checks


def _number(text: str | None) -> float | None:
    try:
        return float({"Y": "1", "N": "0"}.get(text or "", text or ""))
    except ValueError:
        return None


def samples_check(scenario: Scenario, queues: dict[str, Queue], tolerance: Tolerance) -> Check:
    """``samples``: every instant of the sampling grid, from the first to the last, must have been hit."""
    times = next(iter(queues.values())).columns["time_s"]
    expected = int(scenario.duration_s * scenario.sample_hz + 1e-9) + 1
    grid = np.round(np.arange(expected) / scenario.sample_hz, 9)
    present = 0
    if len(times):
        at = np.clip(np.searchsorted(times, grid - EDGE_TOLERANCE_S), 0, len(times) - 1)
        present = int(np.sum(np.abs(times[at] - grid) <= tolerance.sample_s))
    how = f"instants of the sampling grid, each hit within {tolerance.sample_s * 1000:g} ms"
    return Check("samples", expected, present, present == expected, how)


def acks_check(flows: Flows) -> Check:
    """``acks_traced``: every ACK of a traced flow must have been recorded."""
    count = 0 if flows.acks is None else len(flows.acks["time_ns"])
    whole = count + flows.acks_missing
    if not whole:
        return not_checked("acks_traced", 0, "no traced flow had an ACK", 0)
    return Check("acks_traced", whole, count, flows.acks_missing == 0, "ACKs, all of them recorded")
