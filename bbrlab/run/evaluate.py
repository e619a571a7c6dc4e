"""Evaluates the guest's files: the content of summary.json and of the tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from struct import error as StructError
from typing import Any

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.experiment.machine.strain import Strain
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.plan_types import ShortFlowsPlan
from bbrlab.experiment.report import Report
from bbrlab.kernel.built import Kernel, describe_kernel
from bbrlab.measure.bbr_record import forget_states
from bbrlab.measure.checks.check import entry_of, failed_of
from bbrlab.measure.checks.real_time import RealTimeEntry, real_time_checks, real_time_entry
from bbrlab.measure.checks.suite import run_checks
from bbrlab.measure.flow_counters import flow_counters
from bbrlab.measure.lateness import lateness_s
from bbrlab.measure.summarise import summarise
from bbrlab.measure.summary import Summary
from bbrlab.measure.tables import acks_table, samples_table, short_flows_table
from bbrlab.measure.traces import decode
from bbrlab.run.output import ACKS, SAMPLES, SHORT_FLOWS
from bbrlab.scenario.point import Point


def evaluate(
    point: Point, seed: int, backend: str, plan: Plan, kernel: Kernel, folder: Path, strain: Strain | None = None
) -> tuple[Summary, dict[str, Any]]:
    """The content of summary.json (``wall_s`` apart) and {file name: Arrow table}.

    UserError if a file of the guest is truncated or missing.

    Args:
        strain: of a machine in real time: the processor time that it had.
    """
    scenario = point.scenario
    report: Report = files.read_json(folder / "report.json")
    late_s = lateness_s(plan.content["virtual"])
    with _told(scenario.name, report):
        flows, queues_of = decode(folder / "samples.raw", plan)
        if newer := [f.flow for f in plan.flows if scenario.flows[f.group].cca in ("bbr2", "bbr3")]:
            for table in [flows.columns, *([flows.acks] if flows.acks else [])]:
                forget_states(table, newer)
        short = {e["group"]: _short_flows(e, point, plan, folder) for e in plan.content["short_flows"]}
    queues = {direction: replace(queue, late_s=late_s) for direction, queue in queues_of.items()}
    counters = flow_counters(flows, len(plan.flows), late_s)
    checks = run_checks(scenario, plan, report, counters, queues, short, flows)
    real: RealTimeEntry | None = None
    if strain is not None:
        real = real_time_entry(scenario, queues, strain)
        checks += [entry_of(check) for check in real_time_checks(real)]
    summary: Summary = {
        "scenario": scenario.name,
        "paper": scenario.paper,
        "figure": scenario.figure,
        "values": point.values,
        "seed": seed,
        "backend": backend,
        "virtual_s": scenario.duration_s,
        "window_s": list(scenario.window_s),
        "wall_s": None,
        "kernel": describe_kernel(kernel),
        **summarise(scenario, plan, counters, queues, short),
        "checks": checks,
        "ok": not failed_of(checks),
    }
    if real is not None:
        summary["real_time"] = real
    tables = {SAMPLES: samples_table(scenario, plan, flows, queues)}
    if short:
        tables[SHORT_FLOWS] = short_flows_table(short)
    if flows.acks is not None:
        tables[ACKS] = acks_table(flows, report["start_ns"])
    return summary, tables


@contextmanager
def _told(name: str, report: Report) -> Iterator[None]:
    """Turn errors of broken guest files into a UserError, with failures of its programs for short flows."""
    try:
        yield
    except FileNotFoundError as error:
        broken = f"the guest did not write {Path(error.filename).name}"
    except (ValueError, KeyError, StructError) as error:
        broken = f"what the guest wrote cannot be read ({error})"
    else:
        return
    failed = "".join(
        f"{program}: {words}; " for program, words in report["traffic_failures"] if isinstance(program, str)
    )
    raise UserError(f"{name}: {failed}{broken}; guest.log beside the results tells more. Run it again")


def _short_flows(entry: ShortFlowsPlan, point: Point, plan: Plan, folder: Path) -> Any:
    """The outcome of a group's short flows."""
    from bbrlab.measure.short_flows import ShortFlows, chunk_outcomes, read_between

    group = entry["group"]
    sent = [folder / f"short-{group}-send-{i}.log" for i in range(len(entry["clients"]))]
    received = [folder / f"short-{group}-receive-0.log"]
    rate_mbit = point.scenario.network.rate_mbit
    table = chunk_outcomes(plan.workloads[group], sent, received, rate_mbit, entry["rtt_ms"])
    read = read_between(folder / f"short-{group}-read.log", *point.scenario.window_s)
    return ShortFlows(point.scenario, entry["rtt_ms"], table, read)
