"""Checks a policer: the bytes that passed against what its bucket allows."""

from __future__ import annotations

from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check, Tolerance, not_checked
from bbrlab.measure.checks.kernel_values import policer_values_check
from bbrlab.scenario.schema import Scenario


def policer_checks(scenario: Scenario, plan: Plan, report: Report, tolerance: Tolerance) -> list[Check]:
    """``policer_values``, and ``policer``: the bytes that passed each policer, at most a full bucket and its rate for the whole run.

    A policer that drops all the time passes exactly that. One more packet may pass on credit.
    """
    policer = scenario.network.policer
    if policer is None:
        return []
    duration_s = report.get("duration_ns", plan.content["duration_ns"]) * 1e-9
    allowed = policer.burst_bytes + policer.rate_mbit * 1e6 / 8 * duration_s
    checks = []
    for entry in report["policers"]:
        checks.append(policer_values_check(scenario, entry))
        passed, drops = entry["passed_bytes"], entry["drops"]
        counted = entry["passed_packets"] + drops == entry["offered_packets"]
        ok = counted and passed <= allowed * (1 + tolerance.rate) + scenario.network.frame_bytes
        detail = (
            f"bytes that passed the policer at {entry['device']}; {drops} of {entry['offered_packets']} packets dropped"
        )
        if ok and not drops:
            checks.append(not_checked("policer", round(allowed), "nothing exceeded it: no packet was dropped", passed))
        else:
            checks.append(Check("policer", round(allowed), passed, ok, detail))
    return checks
