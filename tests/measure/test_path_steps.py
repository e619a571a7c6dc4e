"""Each change of the path's delay or loss is looked for: what the kernel had then, what was lost until the next."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bbrlab.measure.checks.path_steps import path_steps_check, stepwise_loss_check
from bbrlab.scenario.schema import Change
from tests.measure.kernel_settings import entry, netem
from tests.measure.test_checks import outcome_of, sound_run

LOSSES = (0.01, 0.0, 0.05, 0.001)  # until 2, 4 and 7 s, and the end
CHANGES = [
    {"at_s": 7, "loss": LOSSES[3], "rate_mbit": 9},
    {"at_s": 2, "rtt_ms": 60, "loss": LOSSES[1]},
    {"at_s": 3, "rtt_ms": 10},
    {"at_s": 4, "loss": LOSSES[2]},
    {"at_s": 5, "rate_mbit": 10},
]
PACKETS = (1000, 700, 2000, 50)  # that came while each of LOSSES held


def changing_run(losses: tuple[int, ...] = (10, 0, 100, 0), **fields: Any) -> SimpleNamespace:
    """A sound run with CHANGES, whose counters are read at each change of the loss and at the end."""
    run = sound_run(network__changes=CHANGES, flows=[{"cca": "cubic"}], **fields)
    (sender,) = (h for h in run.plan.content["hosts"] if h["sends"])
    (lossy,) = run.plan.content["loss_devices"]

    def counts(stretches: int) -> dict[str, int]:
        return {"came": sum(PACKETS[:stretches]), "lost": sum(losses[:stretches])}

    def delayed(rtt_ms: float) -> dict[str, str]:
        delay_us = 1000 * rtt_ms + sender["rtt_offset_us"]
        return entry("s1-h1", "netem", "2:", "root", netem(delay_us, 0, spread_us=sender["processing_us"]))

    def loses(loss: float) -> dict[str, str]:
        return entry(lossy, "netem", "2:", "root", netem(0, loss))

    run.report["path_steps"] = [
        {"ports": [delayed(60), loses(LOSSES[1])], "losses": counts(1)},
        {"ports": [delayed(10)], "losses": None},
        {"ports": [loses(LOSSES[2])], "losses": counts(2)},
        {"ports": [loses(LOSSES[3])], "losses": counts(3)},
        {"ports": [], "losses": counts(4)},
    ]
    return run


def check_of(run: SimpleNamespace, name: str) -> dict[str, Any]:
    (check,) = (c for c in outcome_of(run) if c["name"] == name)
    return check


def test_changes_as_asked_pass():
    run = changing_run()
    assert check_of(run, "path_steps")["ok"] is True
    loss = check_of(run, "random_loss")
    assert loss["ok"] is True and loss["measured"] == pytest.approx(110 / 3750)


def step(run: SimpleNamespace, number: int) -> dict[str, Any]:
    found: dict[str, Any] = run.report["path_steps"][number]
    return found


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda r: step(r, 1).update(ports=step(r, 0)["ports"][:1]), "network.changes.2: s1-h1 netem: RTT of h1"),
        (lambda r: step(r, 2).update(ports=step(r, 0)["ports"][1:]), "network.loss: asked 0.05, the kernel has 0"),
        (lambda r: step(r, 3).update(ports=[]), "network.changes.0.loss: no port that has it was read"),
        (lambda r: r.report["path_steps"].pop(1), "network.changes of delay or loss: asked 4, the kernel has 3"),
    ],
    ids=["the RTT before", "the loss before", "not read", "never made"],
)  # fmt: skip
def test_a_change_that_was_not_made_as_asked_is_found(wrong: Callable[[SimpleNamespace], None], words: str):
    run = changing_run()
    wrong(run)
    check = check_of(run, "path_steps")
    assert check["ok"] is False and words in check["detail"]


@pytest.mark.parametrize(
    ("losses", "words"),
    [((10, 0, 10, 0), "from 4 s 10 of 2000 packets, asked 0.05"),  # the second loss was never set
     ((10, 1, 100, 0), "from 2 s 1 of 700 packets, asked 0"),
     ((60, 0, 50, 0), "from 0 s 60 of 1000 packets, asked 0.01")],  # their sum is what it should be
)  # fmt: skip
def test_losses_of_each_stretch_are_looked_at(losses, words):
    check = check_of(changing_run(losses), "random_loss")
    assert check["ok"] is False and words in check["detail"]


def test_two_of_few_packets_may_be_lost():
    """At 0.1 % two of 50 are six standard deviations of a normal law, and one run of a thousand has them."""
    assert check_of(changing_run((10, 0, 100, 2)), "random_loss")["ok"] is True
    assert check_of(changing_run((10, 0, 100, 12)), "random_loss")["ok"] is False


def test_bursts_may_be_further_off():
    """With bursts of 8 packets the variance is 15 times as large."""
    assert check_of(changing_run((40, 0, 100, 0)), "random_loss")["ok"] is False
    run = changing_run((40, 0, 100, 0), network__loss_burst_packets=8)
    assert stepwise_loss_check(run.scenario, run.plan, run.report).ok is True


def test_in_real_time_packets_come_while_they_are_counted():
    run = changing_run()
    run.plan.content["virtual"] = False
    check = check_of(run, "random_loss")
    assert check["ok"] is None and check["detail"].startswith("not checked: ")


def test_without_changes_of_delay_or_loss_there_is_nothing_to_check():
    run = sound_run(network__changes=[{"at_s": 5, "rate_mbit": 9}], network__loss=0, flows=[{"cca": "cubic"}])
    assert path_steps_check(run.scenario, run.plan, run.report) is None


def test_a_change_that_has_no_effect_is_not_missed():
    """As one may at some points of a sweep: of an RTT that no flow has there."""
    changes = [{"at_s": 5, "rtt_ms": 70}, {"at_s": 6, "rtt_ms": 80, "loss": 0.02}]
    own = sound_run(network__changes=changes, flows=[{"cca": "cubic", "rtt_ms": 40}])
    (lossy,) = own.plan.content["loss_devices"]
    step_made = {"ports": [entry(lossy, "netem", "2:", "root", netem(0, 0.02))], "losses": {"came": 1000, "lost": 10}}
    own.report["path_steps"] = [step_made, {"ports": [], "losses": {"came": 2000, "lost": 30}}]
    assert [check_of(own, name)["ok"] for name in ("path_steps", "random_loss")] == [True, True]


def test_a_change_after_the_end_is_not_missed():
    run, names = changing_run(), ("path_steps", "random_loss", "path_values", "qdisc_values")
    without = [check_of(run, name) for name in names]
    late = Change(at_s=11, rtt_ms=80, loss=0.1, rate_mbit=5)
    network = run.scenario.network.model_copy(update={"changes": [late, *run.scenario.network.changes]})
    run.scenario = run.scenario.model_copy(update={"network": network})
    assert [check_of(run, name) for name in names] == without


@pytest.mark.guest
def test_a_guest_that_makes_other_changes_is_caught(run_scenario):
    """In the middle of the run, so that what the kernel has at its end is right."""

    def tamper(plan: dict[str, Any]) -> None:
        plan["changes"][0].update(delay_us={"h1": 51_000}, loss=0.02)

    changes = [{"at_s": 3, "rtt_ms": 50, "loss": 0.0}, {"at_s": 7, "rtt_ms": 40, "loss": 0.01}]
    run = run_scenario(tamper=tamper, network__changes=changes, hosts__noise="off")
    assert run.failed == ["path_steps", "random_loss"]
    detail = run.check("path_steps")["detail"]
    assert (
        "network.changes.0: s1-h1 netem: RTT of h1" in detail and "network.loss: asked 0, the kernel has 0.02" in detail
    )
