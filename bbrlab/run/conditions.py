"""Conditions of a version's runs that are no field of a scenario, as text for results of several versions."""

from __future__ import annotations

# The oldest first. Add a line if the same scenario gives another result although its fields, the kernel and the guest's code are the
# same: another default, another count. Until a run with the last one ships, change it in place.
CONDITIONS = (
    "no noise (exact RTTs, hosts that take no time); goodput of flows with a size counts SYN, iperf3's cookie and FIN, 39 bytes",
    "noise by default (hosts.noise: RTTs moved within a packet's time, hosts take up to 50 us for a packet); goodput of flows with a size "
    "counts data alone",
    "noise by default (hosts.noise: RTTs up to 0.6 ms longer, within a packet's time, hosts take up to 50 us for a packet); goodput of flows "
    "with a size counts data alone",
)
