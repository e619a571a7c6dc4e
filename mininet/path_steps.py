"""What the path did at each of ``changes``: what the kernel had then, how many packets had come and were lost.

Of the ports whose delay or loss changes one each is read back: one call of tc sets them all, and settings.py reads all of them at the
end. That takes no virtual time, as a look at the clock would. bbrlab/measure/checks compares it all with the scenario.
"""

import os
import struct

from netlink import TCA_STATS2, TCA_STATS_QUEUE, Netlink, attributes, queue_state


class PathSteps:
    """Notes for report.json's ``path_steps``."""

    def __init__(self, loss_devices):
        self.loss_devices = loss_devices
        self.steps = []
        self.route = Netlink(os.getpid())

    def take(self, delayed, loss_changes, do):
        """Make a change, ``do()``, that gives the switch ports ``delayed`` another delay, and where ``loss_changes`` others another loss."""
        counts = self.losses() if loss_changes else None
        do()
        ports = [*delayed[:1], *(self.loss_devices[:1] if loss_changes else [])]
        settings = [self.route.setting(self.route.root_qdisc(port)) for port in dict.fromkeys(ports)]
        self.steps.append({"ports": settings, "losses": counts})

    def end(self):
        """All notes, and a last one of the run's end, without ports."""
        return [*self.steps, {"ports": [], "losses": self.losses()}]

    def losses(self):
        """Of all ports where packets are lost at random: how many came so far, and were lost."""
        came = lost = 0
        for device in self.loss_devices:
            reply = self.route.root_qdisc(device)
            _, _, drops, packets = queue_state(reply)
            came += packets + drops + _waiting(reply)
            lost += drops
        return {"came": came, "lost": lost}


def _waiting(reply):
    """Packets in a qdisc of which a raw RTM_NEWQDISC message tells."""
    statistics = next((value for kind, value in attributes(reply, 36) if kind == TCA_STATS2), b"")
    return next((struct.unpack_from("<I", v)[0] for kind, v in attributes(statistics, 0) if kind == TCA_STATS_QUEUE), 0)
