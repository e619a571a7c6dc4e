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
        self.trace, self.route = plan["trace"], Netlink(os.getpid())
        with open(os.path.join(out, self.trace["file"]), "rb") as file:
            times = file.read()
        for link in plan["bottlenecks"]:
            if link["device"] not in self.trace["devices"]:
                continue
            dumbbell.tc(["qdisc del dev %s root" % link["device"]])
            self._ask(link["device"], NLM_F_CREATE | NLM_F_EXCL, (BYTES, self.trace["bytes"]))
            for at in range(0, len(times), TIMES_BYTES):
                self._ask(link["device"], 0, (TIMES, times[at : at + TIMES_BYTES]))
            dumbbell.tc(["qdisc add dev %s parent 1:3 handle 30: %s" % (link["device"], " ".join(link["qdisc"]))])
        dumbbell.set_queue_options()

    def start(self, start_ns):
        """Let them send from ``start_ns`` on."""
        first_ns = start_ns + self.trace["first_ns"]
        for device in self.trace["devices"]:
            period = struct.pack("<Q", self.trace["period_ns"])
            self._ask(device, 0, (PERIOD, period), (START, struct.pack("<Q", first_ns)))

    def _ask(self, device, flags, *options):
        body = struct.pack("<BxxxiIII", socket.AF_UNSPEC, self.route.index(device), HANDLE, TC_H_ROOT, 0)
        body += attribute(TCA_KIND, "opportunity")
        body += attribute(TCA_OPTIONS, b"".join(attribute(*option) for option in options))
        try:
            self.route.ask(RTM_NEWQDISC, NLM_F_ACK | flags, body, device)
        except OSError as error:
            raise SetupError(
                "network.trace: the kernel has no link that sends at given times (%s); use a kernel of config/kernels.yaml whose "
                "options have paths.config (lab-6.12 has)" % error.strerror
            ) from None
