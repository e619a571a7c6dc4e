"""Checks of several bottlenecks in a row: what one of them sent on must arrive, or be in a later queue."""

from __future__ import annotations

import math
from typing import Literal

from bbrlab.experiment.hosts import switch_of
from bbrlab.experiment.links import name_of
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.report import Report
from bbrlab.measure.checks.check import Check, not_checked, suffix_of
from bbrlab.measure.queues import Queue
from bbrlab.scenario.schema import Scenario

# Virtual time that passes while the guest reads counters: in runs of 15 hosts 0.106 ms from the qdiscs' to the last receiver's.
READING_S_PER_HOST = 1e-5
SLACK_BYTES = 1600  # of htb, beside its rate
QUEUE, LOSS = (
    "30:",
    "2:",
)  # handles of a bottleneck's queue, and of what loses at random before a receiver (mininet/dumbbell.py)


def passing_checks(scenario: Scenario, plan: Plan, report: Report, queues: dict[str, Queue]) -> list[Check]:
    """``passed`` of each link: each packet that it sent on arrived, or was lost on the way to its receiver.

    The receivers of a path get nothing else, so that the lower bound is what they got and what was lost at random right before them.
    A later link may have dropped or queued the rest. For the last link of its paths the two are equal, but for what it sends between
    the reading of its counters and of the receivers'.
    """
    if scenario.network.links is None:
        return []
    links = plan.content["bottlenecks"]
    names = ["passed" + suffix_of(name_of(link)) for link in links]
    if not plan.content["virtual"] or scenario.hosts.interrupt_delay_us:
        why = "counters of different places are not of one instant"
        if plan.content["virtual"]:
            why = "receive_offload gro holds packets before the receivers, where none are counted"
        return [not_checked(name, None, why) for name in names]
    sent, dropped = _grown(report, "packets"), _grown(report, "drops")
    frame_bytes = scenario.network.frame_bytes
    hosts = {host["name"]: host for host in plan.content["hosts"]}
    paths = {t["server"]: scenario.path_of(scenario.flows[f.group]) for f in plan.flows for t in [plan.content["transfers"][f.transfer]]}  # fmt: skip
    checks = []
    for name, link in zip(names, links, strict=True):
        over = {server: path for server, path in paths.items() if link["link"] in path}
        arrived = 0
        for server in over:
            got = report["received"][server]["packets"] - report["received_before"][server]["packets"]
            arrived += got + dropped.get((f"{hosts[server]['switch']}-{server}", LOSS), 0)
        later = [link_after for link_after in links if any(link_after["link"] > link["link"] and link_after["link"] in p for p in over.values())]  # fmt: skip
        room = sum(dropped[link_after["device"], QUEUE] + _waiting(queues[name_of(link_after)]) for link_after in later)
        passed = sent[link["device"], QUEUE]
        # And the one that leaves as the reading begins, and what the limiter's slack lets go at once.
        late = (
            1
            + max(1, SLACK_BYTES // frame_bytes)
            + math.floor(READING_S_PER_HOST * len(hosts) * link["rate_bps"] / 8 / frame_bytes)
        )
        rest = f", and at most {room} may be in later queues or dropped there" if later else ""
        how = f"packets that {switch_of(link['link'])}'s link sent on; {arrived} arrived or were lost at random{rest}"
        checks.append(Check(name, arrived, passed, arrived - late <= passed <= arrived + room, how))
    return checks


def _waiting(queue: Queue) -> int:
    """Packets in a queue at the run's end, and one that may arrive at that instant."""
    waiting = queue.columns["packets"]
    return 1 + int(waiting[-1]) if len(waiting) else 1


def _grown(report: Report, counter: Literal["packets", "drops"]) -> dict[tuple[str, str], int]:
    """{(device, handle of a qdisc): growth of a counter during the experiment}."""
    before = {(q["device"], q["handle"]): q[counter] for q in report["qdiscs_before"]}
    after = {(q["device"], q["handle"]): q[counter] for q in report["qdiscs"]}
    return {place: count - before.get(place, 0) for place, count in after.items()}
