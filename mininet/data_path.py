"""What data packets meet behind the bottleneck: how long they take, measured before the experiment, and how many came late in it."""

import os
import socket
import struct
import time

from calibration import PING_SLACK_S, UDP_HEADER_BYTES
from dumbbell import SetupError, slowest_s
from ip_version import family_of, header_bytes
from limiter import LINK_HEADER_BYTES
from namespaces import network_of
from netlink import NLM_F_DUMP, RTM_GETQDISC, TC_H_ROOT, TCA_STATS2, TCA_STATS_QUEUE, Netlink, attributes, queue_state

PROBES, LEAST_PROBES, LONGEST_S = 200, 20, 120
PROBE_BYTES = 8
PORT = 10_009
SO_TIMESTAMPNS = 35


def delays_us(dumbbell):
    """How long each of some small packets took, of each of the plan's ``probes``, in us: one after another, on the empty path."""
    plan, found = dumbbell.plan, []
    frame_bytes = LINK_HEADER_BYTES + header_bytes(plan) + UDP_HEADER_BYTES + PROBE_BYTES
    frame_s = frame_bytes * 8 / min(link["rate_bps"] for link in plan["bottlenecks"])
    longest_s = slowest_s(plan)
    gap_s = longest_s + 3 * frame_s + 0.001  # none is to meet another
    count = max(LEAST_PROBES, min(PROBES, int(LONGEST_S / gap_s)))
    for probe in plan["probes"]:
        address = dumbbell.host_plans[probe["receiver"]]["ip"]
        with network_of(dumbbell.hosts[probe["receiver"]].pid):
            receiver = socket.socket(family_of(plan), socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.bind((address, PORT))
        receiver.settimeout(PING_SLACK_S + longest_s + frame_s)
        with network_of(dumbbell.hosts[probe["host"]].pid):
            sender = socket.socket(family_of(plan), socket.SOCK_DGRAM)
        sender.connect((address, PORT))
        took_us = []
        for number in range(count):
            sent_ns = time.time_ns()
            sender.send(struct.pack("<Q", number))
            took_us.append((_came_ns(receiver, number, probe) - sent_ns) / 1000)
            time.sleep(max(0.0, gap_s - (time.time_ns() - sent_ns) * 1e-9))
        sender.close()
        receiver.close()
        found.append(took_us)
    return found


def _came_ns(receiver, number, probe):
    """When the packet of a number came, by the wall clock."""
    while True:
        try:
            data, stamps, _, _ = receiver.recvmsg(64, 256)
        except TimeoutError:
            raise SetupError("no packet from %(host)s came to %(receiver)s" % probe) from None
        if struct.unpack("<Q", data) == (number,):
            seconds, ns = struct.unpack("<qq", stamps[0][2])
            return seconds * 1_000_000_000 + ns


def late_counts(devices):
    """{device: {"packets": that left it, "late": how many of them had been held back}} of netems that hold back a share."""
    route = Netlink(os.getpid())
    numbers, found = {route.index(device): device for device in devices}, {}
    for reply in route.ask(RTM_GETQDISC, NLM_F_DUMP, bytes(20), "qdiscs"):
        index, _, parent = struct.unpack_from("<iII", reply, 20)
        if index in numbers and parent == TC_H_ROOT:
            packets = queue_state(reply)[3]
            (statistics,) = (value for kind, value in attributes(reply, 36) if kind == TCA_STATS2)
            queue = next(value for kind, value in attributes(statistics, 0) if kind == TCA_STATS_QUEUE)
            waiting, at_once = struct.unpack_from("<I8xI", queue)  # struct gnet_stats_queue: qlen, requeues
            found[numbers[index]] = {"packets": packets + waiting, "late": packets + waiting - at_once}
    route.socket.close()
    return found
