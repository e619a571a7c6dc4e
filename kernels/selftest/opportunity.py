"""A link that sends at given times (kernels/sched): frames wait for its opportunities.

Prints one line per frame that arrived: ns since the link's start.
"""

import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "mininet"))
import netlink  # noqa: E402 - the guest's own

MS = 1_000_000
ETHERTYPE = 0x88B5  # for experiments
SO_TIMESTAMPNS = 35
FRAME = b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack(">H", ETHERTYPE) + bytes(386)  # 400 bytes
BYTES, TIMES, PERIOD, START = 1, 2, 3, 4
SENT = (5, 11), (76, 1)  # ms since the start, frames


def ask(kind, flags, device, *options):
    """A request for the root qdisc of a device. OSError if the kernel refuses it."""
    body = struct.pack("<BxxxiIII", socket.AF_UNSPEC, socket.if_nametoindex(device), 0x10000, netlink.TC_H_ROOT, 0)
    body += netlink.attribute(netlink.TCA_KIND, "opportunity")
    body += netlink.attribute(netlink.TCA_OPTIONS, b"".join(netlink.attribute(*option) for option in options))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.send(netlink.encoded(kind, netlink.NLM_F_REQUEST | netlink.NLM_F_ACK | flags, body))
        error = struct.unpack_from("<i", sock.recv(1 << 16), 16)[0]
    if error:
        raise OSError(-error, os.strerror(-error))


def times(*values_ms):
    """An attribute of times."""
    return TIMES, b"".join(struct.pack("<Q", value * MS) for value in values_ms)


def refused(*options):
    """Whether the kernel refuses to go on with these options."""
    try:
        ask(netlink.RTM_NEWQDISC, 0, "left", *options)
    except OSError:
        return True
    return False


def main():
    """Two bursts over a link of 1000 bytes at 10, 10, 20 and 35 ms of each 40."""
    with open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w", encoding="ascii") as file:
        file.write("1")  # its hosts would send frames of their own
    os.system("ip link add left type veth peer name right && ip link set left up && ip link set right up")
    ask(netlink.RTM_NEWQDISC, netlink.NLM_F_CREATE | netlink.NLM_F_EXCL, "left", (BYTES, 1000), times(10, 10))
    print("selftest refused", refused(times(9)), refused((START, struct.pack("<Q", 1))), flush=True)
    start_ns = time.monotonic_ns() + 10 * MS
    ask(netlink.RTM_NEWQDISC, 0, "left", times(20, 35), (PERIOD, struct.pack("<Q", 40 * MS)), (START, struct.pack("<Q", start_ns)))  # fmt: skip
    print("selftest refused", refused(times(50)), flush=True)
    offset_ns = time.time_ns() - time.monotonic_ns()
    sender, receiver = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE)) for _ in range(2))
    sender.bind(("left", 0))
    receiver.bind(("right", ETHERTYPE))
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    for at_ms, count in SENT:
        time.sleep((start_ns + at_ms * MS - time.monotonic_ns()) / 1e9)
        for _ in range(count):
            sender.send(FRAME)
    for _ in range(sum(count for _, count in SENT)):
        _, control, _, _ = receiver.recvmsg(1 << 11, 1 << 8)
        seconds, ns = struct.unpack("<qq", control[0][2])
        print("selftest arrived", seconds * 1_000_000_000 + ns - offset_ns - start_ns, flush=True)


if __name__ == "__main__":
    main()
