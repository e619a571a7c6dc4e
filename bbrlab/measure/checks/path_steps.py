"""Each change of the path's delay or loss: made as the scenario says, and between two as many packets lost as it says.

Changes of the rate are judged by ``busy_rate`` and ``queue_sends``, when a change is made by ``samples``, which the same loop takes. What
a delay does to packets is not measured during the run, where a ping would take part in it; the kernel's value is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from bbrlab.experiment.hosts import loss_devices
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import PathStep, Report
from bbrlab.measure.checks.chance import room
from bbrlab.measure.checks.check import Check, not_checked
from bbrlab.measure.checks.kernel_values import about, compare, difference, ports_wanted, values_check
from bbrlab.scenario.schema import Change, Scenario


def path_steps_check(scenario: Scenario, plan: Plan, report: Report) -> Check | None:
    """``path_steps``: what the kernel had right after each change. None without a change of delay or loss."""
    changes = _changes_made(scenario)
    if not changes or "prompt" in plan.content:  # by hand the changes are what was done
        return None
    steps = report["path_steps"][:-1]
    network, hosts = scenario.network, plan.content["hosts"]
    lossy = set(loss_devices(scenario, hosts))
    delayed = {f"{h['switch']}-{h['name']}" for h in hosts if h["sends"] and h["network_rtt"]}
    problems = [difference("network.changes of delay or loss", about("", len(changes)), len(steps))]
    state = Change.model_construct(at_s=0.0, rate_mbit=None, rtt_ms=None, loss=None)  # of all changes until then
    for (place, _, new), step in zip(changes, steps, strict=False):
        state = state.model_copy(update=new)
        where = f"network.changes.{place}"
        read = {setting["device"] for setting in step["ports"]}
        for name, ports in (("rtt_ms", delayed), ("loss", lossy)):
            if name in new and not ports & read:
                problems.append(f"{where}.{name}: no port that has it was read")
        now = network.model_copy(update={"changes": [state]})
        wanted = [w for w in ports_wanted(scenario, plan, now, read) if w.parent == "root"]
        problems += [text and f"{where}: {text}" for text in compare(wanted, step["ports"])]
    return values_check("path_steps", problems, "values of the path right after each of network.changes")


def stepwise_loss_check(scenario: Scenario, plan: Plan, report: Report) -> Check:
    """``random_loss`` where the loss changes: between any two changes as many packets are lost as it says."""
    if not plan.content["virtual"]:
        why = "it changes during the run, and in real time packets come while they are counted"
        return not_checked("random_loss", scenario.network.loss, why)
    stretches = list(_stretches(scenario, report["path_steps"]))
    came = sum(n for _, _, n, _ in stretches)
    worst, how = 0.0, ""
    for from_s, loss, n, lost in stretches:
        beyond = abs(lost - n * loss) - room(n, loss, scenario.network.loss_burst_packets, among=len(stretches))
        if not how or beyond > worst:
            worst, how = beyond, f"from {from_s:g} s {lost} of {n} packets, asked {loss:g}"
    asked = sum(n * loss for _, loss, n, _ in stretches) / max(came, 1)
    measured = sum(lost for *_, lost in stretches) / max(came, 1)
    detail = f"in {len(stretches)} stretches between changes; furthest off: {how}"
    return Check("random_loss", round(asked, 9), round(measured, 9), came > 0 and worst <= 1e-6, detail)


def _changes_made(scenario: Scenario) -> list[tuple[int, float, dict[str, float]]]:
    """(place in network.changes, when in s, new values) of each change of delay or loss, in their order.

    Left out is what has no effect, as it may at some points of a sweep: an RTT that no flow has, and what comes after the end.
    """
    has_rtt = any(flow.has_networks_rtt for flow in scenario.flows)
    made = []
    for place, change in sorted(enumerate(scenario.network.changes), key=lambda entry: entry[1].at_s):
        values = {"rtt_ms": change.rtt_ms if has_rtt else None, "loss": change.loss}
        new = {name: value for name, value in values.items() if value is not None}
        if new and change.at_s <= scenario.duration_s:
            made.append((place, change.at_s, new))
    return made


def _stretches(scenario: Scenario, steps: list[PathStep]) -> Iterator[tuple[float, float, int, int]]:
    """(from when in s, loss, packets that came, packets that were lost) of each time with one loss."""
    from_s, loss, came, lost = 0.0, scenario.network.loss, 0, 0
    changes = [(at_s, new.get("loss")) for _, at_s, new in _changes_made(scenario)]
    for step, (until_s, next_loss) in zip(steps, [*changes, (scenario.duration_s, loss)], strict=False):
        if (now := step["losses"]) is None:
            continue
        yield from_s, loss, now["came"] - came, now["lost"] - lost
        came, lost, from_s = now["came"], now["lost"], until_s
        loss = loss if next_loss is None else next_loss
