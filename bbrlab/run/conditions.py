"""Conditions of a version's runs that no scenario has as a field, as text for results of several versions."""

from __future__ import annotations

# The oldest first. A new line where the same scenario gives another result though no field of it, no kernel and no code of the guest
# says so: another default, another count. Who changes the last one before any run of it ships, changes it in place.
CONDITIONS = (
    "no noise (exact RTTs, hosts that take no time); goodput of flows with a size counts SYN, iperf3's cookie and FIN, 39 bytes",
    "noise by default (hosts.noise: RTTs moved within a packet's time, hosts take up to 50 us for a packet); goodput of flows with a size "
    "counts data alone",
    "noise by default (hosts.noise: RTTs up to 0.6 ms longer, within a packet's time, hosts take up to 50 us for a packet); goodput of flows "
    "with a size counts data alone",
)
