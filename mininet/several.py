"""Senders whose kernel is another than the bottleneck's: one machine for each kernel, in real time.

Every machine builds the whole dumbbell and measures it. Then the hosts that send from elsewhere are handed over:

    machine of the senders            machine of the bottleneck
    h2 --- s1-h2 [bridge] nic ======= nic [bridge in h2] h2-eth0 --- s1-h2 --- s1 ===bottleneck=== s2 --- receivers

In the machine of the bottleneck h2 is nothing but a bridge behind its port, which keeps its delay; in that of the senders h2 is
a host as ever, whose port leads to the other machine and delays nothing. Both samplers take the same instants: the
machine of the bottleneck says how long it is until the start.
"""

import os
import select
import socket
import struct
import time

from dumbbell import ETHTOOL_GET, SetupError, call, feature_is_on, set_offloads
from namespaces import network_of

PORT = 9999
ANSWER = struct.Struct("<q")  # ns until the start
HELLO, GOT_IT = b"hello", b"got it"
EVERY_S, PATIENCE_S = 0.2, 300
AHEAD_NS = 6_000_000_000  # of the start: hellos come and go meanwhile
INTERFACES = "/sys/class/net"


def nics():
    """{last number of its address: name} of the machine's own network devices."""
    found = {}
    for name in os.listdir(INTERFACES):
        if os.path.exists("%s/%s/device" % (INTERFACES, name)):
            with open("%s/%s/address" % (INTERFACES, name), encoding="ascii") as file:
                found[int(file.read().strip().split(":")[-1], 16)] = name
    return found


def _bridge(name, devices):
    """Put devices of this process's network namespace on a bridge of their own, whole packets only."""
    call("ip", "link", "add", name, "type", "bridge")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for device in devices:  # a network device that has none of an offload cannot be told to be without it either
            on = [name for name, command in ETHTOOL_GET.items() if feature_is_on(sock, device, command)]
            set_offloads(sock, device, dict.fromkeys(on, False))
    for device in devices:
        call("ip", "link", "set", device, "master", name, "up")
    call("ip", "link", "set", name, "up")


def hand_over(plan, dumbbell):
    """Join the machines: see above. SetupError if a network device is missing."""
    found, here = nics(), plan["several"]
    for number, name in enumerate(here["hosts"]):
        nic = found.get(here["nics"][number])
        if nic is None:
            raise SetupError("this kernel has no network device for %s (VIRTIO_NET)" % name)
        host, port = dumbbell.hosts[name], dumbbell.ports[name]
        if here["role"] == "senders":
            call("ovs-vsctl", "del-port", port)
            call("tc", "qdisc", "del", "dev", port, "root")
            _bridge("out%d" % number, [port, nic])
        else:
            call("ip", "link", "set", nic, "netns", str(host.pid))
            with network_of(host.pid):
                device = name + "-eth0"
                call("ip", "address", "flush", "dev", device)
                _bridge("in", [device, nic])
    for host in dumbbell.hosts.values():
        with network_of(host.pid):
            call("ip", "neigh", "flush", "all")


def _socket_in(pid):
    with network_of(pid):
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def agree_on_start(plan, dumbbell):
    """When the experiment starts, on this machine's clock, in ns. SetupError if the others do not come."""
    return (_ask if plan["several"]["role"] == "senders" else _tell)(plan, dumbbell)


def _ask(plan, dumbbell):
    """Ask through the path of the first host until there is an answer, which took its delay to come."""
    name = plan["several"]["hosts"][0]
    spec = dumbbell.host_plans[name]
    sock = _socket_in(dumbbell.hosts[name].pid)
    sock.settimeout(EVERY_S + spec["delay_us"] / 1e6)
    sock.connect((plan["several"]["meet_at"], PORT))
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            sock.send(HELLO)
            data = sock.recv(64)
        except OSError:  # nobody there yet
            time.sleep(EVERY_S)
            continue
        start_ns = time.monotonic_ns() - round(spec["delay_us"] * 1000) + ANSWER.unpack(data)[0]
        for _ in range(3):
            sock.send(GOT_IT)
        return start_ns
    raise SetupError("the machine of the bottleneck did not answer within %d s" % PATIENCE_S)


def _tell(plan, dumbbell):
    """Answer every machine until all know."""
    sock = _socket_in(dumbbell.hosts[plan["several"]["receiver"]].pid)
    sock.bind(("0.0.0.0", PORT))  # noqa: S104 - of a namespace of its own
    waiting, start_ns = set(plan["several"]["machines"]), None
    deadline = time.monotonic() + PATIENCE_S
    while waiting and time.monotonic() < deadline:
        if not select.select([sock], [], [], EVERY_S)[0]:
            continue
        data, (address, port) = sock.recvfrom(64)
        if data == GOT_IT:
            waiting.discard(address)
        else:
            start_ns = start_ns or time.monotonic_ns() + AHEAD_NS
            sock.sendto(ANSWER.pack(start_ns - time.monotonic_ns()), (address, port))
    if waiting:
        raise SetupError("the machines of %s did not come within %d s" % (", ".join(sorted(waiting)), PATIENCE_S))
    return start_ns
