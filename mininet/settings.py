"""What the kernel has of what was set, after the experiment: qdiscs, classes, sysctls, interfaces.

Raw, as netlink has it: bbrlab/measure/kernel_options.py decodes it outside, and the self-checks compare it with the scenario.
"""

import os
from contextlib import suppress

from dumbbell import DEFERRED, REACHABLE, interface_file, read, sysctl_file
from ip_version import neighbours_key
from namespaces import network_of
from netlink import Netlink

PACING_LATE_NS = "/sys/module/tcp_output/parameters/pacing_late_ns"


def kernel_settings(dumbbell, plan):
    """{"ports": qdiscs and classes of the switches' side, "tcp_mem", "pacing_late_ns", "hosts": {host: what is set in it}}."""
    route = Netlink(os.getpid())
    ports = list(route.settings([link["device"] for link in plan["bottlenecks"]]))
    route.socket.close()
    hosts = {name: _of_host(name, host, plan) for name, host in dumbbell.hosts.items()}
    late_ns = None
    with suppress(FileNotFoundError):  # a kernel without kernels/patches/lateness
        late_ns = int(read(PACING_LATE_NS))
    return {"ports": ports, "tcp_mem": _sysctl("net.ipv4.tcp_mem"), "pacing_late_ns": late_ns, "hosts": hosts}


def _sysctl(key):
    return " ".join(read(sysctl_file(key)).split())


def _of_host(name, host, plan):
    device = name + "-eth0"
    keys = [*plan["sysctls"], neighbours_key(plan, device, REACHABLE)]
    with network_of(host.pid):
        sysctls = {key: _sysctl(key) for key in keys}
    return {
        "qdiscs": [qdisc for qdisc in host.netlink.settings() if qdisc["device"] == device],
        "sysctls": sysctls,
        "gso_max_segs": host.netlink.gso_max_segs(device),
        "deferred_interrupts": int(read(interface_file(host.pid, device, DEFERRED))),
    }
