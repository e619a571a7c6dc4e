"""Checks of the guest: module parameters, and completeness of its records (samples, ACKs, packets)."""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check, Tolerance, not_checked
from bbrlab.measure.queues import Queue
from bbrlab.measure.sockets import Flows
from bbrlab.scenario.schema import Scenario


def parameter_checks(plan: Plan, report: Report) -> list[Check]:
    """``parameter MODULE.NAME`` for each module parameter of the plan and of parameter sets; words are compared as text."""
    wanted = []
    for argument in plan.kernel_arguments:
        name, _, asked = argument.partition("=")
        module, _, parameter = name.removeprefix("tcp_").partition(".")
        wanted.append((module, parameter, asked))
    for entry in plan.content["parameter_sets"]:
        wanted += [(entry["name"], parameter, asked) for parameter, asked in entry["values"].items()]
    checks = []
    for module, parameter, asked in wanted:
        actual = report["parameters"].get(module, {}).get(parameter)
        number = _number(asked)
        same = actual is not None and (actual == asked if number is None else _number(actual) == number)
        how = "parameter of the module, or of the group's own set, in the guest"
        if number is None:
            how += f": asked {asked}, found {actual}"
        checks.append(Check(f"parameter {module}.{parameter}", number, _number(actual), same, how))
    return checks


def _number(text: str | None) -> float | None:
    try:
        return float({"Y": "1", "N": "0"}.get(text or "", text or ""))
    except ValueError:
        return None


def sample_instants_s(scenario: Scenario) -> Array:
    """The instants of samples, s, ascending: the grid of sample_hz, the window's edges, and the end."""
    count = int(scenario.duration_s * scenario.sample_hz + 1e-9) + 1
    grid = np.arange(count) / scenario.sample_hz
    due: Array = np.unique(np.round([*grid, *scenario.window_s, scenario.duration_s], 9))
    return due


def samples_check(scenario: Scenario, queues: dict[str, Queue], tolerance: Tolerance) -> Check:
    """``samples``: every due instant must have its own sample, at every bottleneck.

    The sampler takes one sample for each instant, in order, however late it is.
    """
    due = sample_instants_s(scenario)
    inside = (due >= scenario.window_s[0]) & (due <= scenario.window_s[1])
    late_s = np.where(inside, tolerance.sample_s, tolerance.sample_outside_s)
    times_of = [queue.columns["time_s"] for queue in queues.values()]
    present = min(_present(due, times, late_s) for times in times_of)
    how = f"instants of the sampling grid, each hit within {tolerance.sample_s * 1000:g} ms"
    if tolerance.sample_outside_s != tolerance.sample_s:
        how += f" ({tolerance.sample_outside_s * 1000:g} ms outside of the window)"
    count_max = max(map(len, times_of))
    if count_max > len(due):
        how += f"; {count_max} samples"
    return Check("samples", len(due), present, present == len(due) and count_max == len(due), how)


def _present(due: Array, times_s: Array, late_s: Array) -> int:
    count = min(len(due), len(times_s))
    return int(np.sum(np.abs(times_s[:count] - due[:count]) <= late_s[:count]))


def states_check(flows: Flows) -> Check | None:
    """``bbr_states``: "not checked" if a flow's algorithm has a record from which no states can be read; else None."""
    if not flows.record_bytes:
        return None
    columns = flows.columns
    silent = np.isnan(columns["bbr_state"]) & (columns["bbr_pacing_gain"] > 0)
    lost = sorted(f for f in flows.record_bytes if (silent & (columns["flow"] == f)).any())
    if not lost:
        return None
    sizes = sorted({n for f in lost for n in flows.record_bytes[f]})
    flow_words = f"flow{'s' * (len(lost) > 1)} {', '.join(map(str, lost))}"
    why = f"the kernel's records of {flow_words} have {', '.join(map(str, sizes))} bytes, from which no states can be read (docs/howto/kernels.md)"
    return not_checked("bbr_states", None, why)


def acks_check(flows: Flows) -> Check:
    """``acks_traced``: all ACKs of traced flows must have been recorded."""
    count = 0 if flows.acks is None else len(flows.acks["time_ns"])
    whole = count + flows.acks_missing
    if not whole:
        return not_checked("acks_traced", 0, "no traced flow had an ACK", 0)
    return Check("acks_traced", whole, count, flows.acks_missing == 0, "ACKs, all of them recorded")


def capture_check(plan: Plan, report: Report) -> Check:
    """``packets_captured``: all packets of captured interfaces must have been kept."""
    taps = list(zip(plan.content["capture"]["interfaces"], report["capture"]["interfaces"], strict=True))
    arrived = sum(tap["packets"] for _, tap in taps)
    dropped = sum(tap["dropped"] for _, tap in taps)
    devices = ", ".join(place["device"] for place, tap in taps if tap["dropped"])
    detail = (
        f"packets; too many at {devices} between two samples: raise sample_hz"
        if dropped
        else "packets, all of them kept"
    )
    return Check("packets_captured", arrived, arrived - dropped, not dropped, detail)
