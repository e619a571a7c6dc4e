"""Bottlenecks that send at given times only: the qdisc ``opportunity`` (kernels/sched) in place of htb, above the same queue.

Calibration, which has no start to count from, is over by then. Until start() nothing leaves.
"""

import os
import socket
import struct

from dumbbell import SetupError
from netlink import (
    NLM_F_ACK,
    NLM_F_CREATE,
    NLM_F_EXCL,
    RTM_NEWQDISC,
    TC_H_ROOT,
    TCA_KIND,
    TCA_OPTIONS,
    Netlink,
    attribute,
)

BYTES, TIMES, PERIOD, START = 1, 2, 3, 4
TIMES_BYTES = 8 * 4096  # in a message: an attribute has 64 KiB at most
HANDLE = 0x10000


class Links:
    """Those of a plan."""

    def __init__(self, dumbbell, plan, out):
        self.entries, self.route = plan["opportunities"], Netlink(os.getpid())
        queues = {link["device"]: " ".join(link["qdisc"]) for link in plan["bottlenecks"]}
        for entry in self.entries:
            with open(os.path.join(out, entry["file"]), "rb") as file:
                times = file.read()
            for device in entry["devices"]:
                dumbbell.tc(["qdisc del dev %s root" % device])
                self._ask(entry, device, NLM_F_CREATE | NLM_F_EXCL, (BYTES, entry["bytes"]))
                for at in range(0, len(times), TIMES_BYTES):
                    self._ask(entry, device, 0, (TIMES, times[at : at + TIMES_BYTES]))
                dumbbell.tc(["qdisc add dev %s parent 1:3 handle 30: %s" % (device, queues[device])])
        dumbbell.set_queue_options()

    def start(self, start_ns):
        """Let them send from ``start_ns`` on."""
        for entry in self.entries:
            period = struct.pack("<Q", entry["period_ns"])
            first = struct.pack("<Q", start_ns + entry["first_ns"])
            for device in entry["devices"]:
                self._ask(entry, device, 0, (PERIOD, period), (START, first))

    def _ask(self, entry, device, flags, *options):
        body = struct.pack("<BxxxiIII", socket.AF_UNSPEC, self.route.index(device), HANDLE, TC_H_ROOT, 0)
        body += attribute(TCA_KIND, "opportunity")
        body += attribute(TCA_OPTIONS, b"".join(attribute(*option) for option in options))
        try:
            self.route.ask(RTM_NEWQDISC, NLM_F_ACK | flags, body, device)
        except OSError as error:
            raise SetupError(
                "%s: the kernel has no link that sends at given times (%s); use a kernel of config/kernels.yaml whose "
                "options have paths.config (lab-6.12 has)" % (entry["field"], error.strerror)
            ) from None
