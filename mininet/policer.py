"""A token bucket that drops what exceeds it: tc's action police, on the egress of a switch port, before that port's queue.

What conforms goes on to a second action that limits nothing and counts it: the first counts bytes before it decides.
"""

import os
import socket
import struct

from netlink import NLM_F_DUMP, TCA_OPTIONS, Netlink, attributes, queue_state_of

RTM_GETTFILTER, CLSACT_EGRESS = 46, 0xFFFFFFF3
TCA_MATCHALL_ACT, TCA_ACT_OPTIONS, TCA_ACT_STATS = 2, 2, 4
LARGEST_PACKET_BYTES = 65_535  # a larger one would exceed whatever the bucket has


def commands(policers):
    """tc batch lines that add them, each full."""
    lines = []
    for entry in policers:
        bucket = "police rate %dbit burst %d mtu %d conform-exceed drop/pipe" % (
            entry["rate_bps"], entry["burst_bytes"], LARGEST_PACKET_BYTES)  # fmt: skip
        counter = "police mtu %d conform-exceed drop/ok" % LARGEST_PACKET_BYTES
        lines += [
            "qdisc add dev %s clsact" % entry["device"],
            "filter add dev %s egress matchall action %s action %s" % (entry["device"], bucket, counter),
        ]
    return lines


def counters(policers):
    """What the kernel has of each, and what came and went: {"device", "options" (of the bucket, in hex), "offered_packets",
    "offered_bytes", "passed_packets", "passed_bytes", "drops"}."""
    route = Netlink(os.getpid())
    found = []
    for entry in policers:
        body = struct.pack("<BxxxiIII", socket.AF_UNSPEC, route.index(entry["device"]), 0, CLSACT_EGRESS, 0)
        actions = [a for r in route.ask(RTM_GETTFILTER, NLM_F_DUMP, body, entry["device"]) for a in _actions(r)]
        bucket, counter = (dict(attributes(action, 0)) for action in actions)
        offered_bytes, _, drops, offered = queue_state_of(bucket[TCA_ACT_STATS])
        passed_bytes, _, _, passed = queue_state_of(counter[TCA_ACT_STATS])
        found.append({
            "device": entry["device"], "options": bucket[TCA_ACT_OPTIONS].hex(), "offered_packets": offered,
            "offered_bytes": offered_bytes, "passed_packets": passed, "passed_bytes": passed_bytes, "drops": drops,
        })  # fmt: skip
    route.socket.close()
    return found


def _actions(reply):
    """The actions of a filter's message, in their order; of one without (the head of a dump) none."""
    for kind, payload in attributes(reply, 36):
        if kind == TCA_OPTIONS:
            for inner, actions in attributes(payload, 0):
                if inner == TCA_MATCHALL_ACT:
                    yield from (action for _, action in attributes(actions, 0))
