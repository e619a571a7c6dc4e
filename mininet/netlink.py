"""Requests to the kernel over netlink, in the guest's own process.

Each stands in place of a program (ip, tc, ovs-dpctl) that would have to be started for it, in each host's network
namespace. Message types, attributes and structures are those of linux/rtnetlink.h, if_link.h, pkt_sched.h, genetlink.h
and openvswitch.h.
"""

import fcntl
import os
import socket
import struct

from namespaces import network_of

NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO, NLM_F_DUMP, NLM_F_EXCL, NLM_F_CREATE = 1, 4, 8, 0x300, 0x200, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK, RTM_NEWADDR, RTM_NEWQDISC, RTM_GETQDISC, RTM_GETTCLASS = (
    16,
    17,
    18,
    20,
    36,
    38,
    42,
)
IFF_UP = 1
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO, IFLA_NET_NS_PID, IFLA_GSO_MAX_SEGS = 1, 3, 4, 18, 19, 40
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL, IFA_LABEL, IFA_BROADCAST = 1, 2, 3, 4
IFA_F_NODAD = 2  # use it at once: nobody else has it
TCA_KIND, TCA_OPTIONS, TCA_STATS2, TCA_STATS_BASIC, TCA_STATS_QUEUE = 1, 2, 7, 1, 3
NETLINK_GENERIC, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 16, 3, 1, 2
OVS_DP_CMD_GET, OVS_DP_ATTR_STATS = 3, 3
SIOCGIFNAME, SIOCGIFINDEX = 0x8910, 0x8933
TC_H_ROOT = 0xFFFFFFFF
NLA_F_NESTED = 0x8000  # newer qdiscs insist on it
RECEIVE_BYTES = 1 << 18


def encoded(kind, flags, body):
    """A whole netlink message."""
    return struct.pack("<IHHII", 16 + len(body), kind, flags, 1, 0) + body


def attribute(kind, value):
    """A netlink attribute: bytes, a string (with its zero), or a 32-bit number."""
    data = value if isinstance(value, bytes) else value.encode() + b"\0" if isinstance(value, str) else _u32(value)
    return struct.pack("<HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def _u32(value):
    return struct.pack("<I", value)


def attributes(data, start):
    """Yield (type, payload) of the netlink attributes of ``data`` from ``start`` on."""
    while start + 4 <= len(data):
        length, kind = struct.unpack_from("<HH", data, start)
        if length < 4:
            return
        yield kind & 0x3FFF, data[start + 4 : start + length]
        start += (length + 3) & ~3


def queue_state(reply):
    """(sent bytes, backlog bytes, drops, sent packets) of a raw RTM_NEWQDISC message."""
    return next((queue_state_of(v) for kind, v in attributes(reply, 36) if kind == TCA_STATS2), (0, 0, 0, 0))


def queue_state_of(statistics):
    """The same of the attribute with a qdisc's or an action's statistics."""
    sent = backlog = drops = packets = 0
    for kind, value in attributes(statistics, 0):
        if kind == TCA_STATS_BASIC:
            sent, packets = struct.unpack_from("<QI", value)
        elif kind == TCA_STATS_QUEUE:
            _, backlog, drops = struct.unpack_from("<III", value)
    return sent, backlog, drops, packets


class Netlink:
    """A netlink socket in the network namespace of process ``pid`` that waits for each answer."""

    def __init__(self, pid, protocol=socket.NETLINK_ROUTE):
        with network_of(pid):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self.socket.bind((0, 0))

    def ask(self, kind, flags, body, what):
        """Send one message and return the messages of the answer. OSError, naming ``what``, if the kernel refuses."""
        self.socket.send(encoded(kind, NLM_F_REQUEST | flags, body))
        found = []
        while True:
            data = self.socket.recv(RECEIVE_BYTES)
            while data:
                length, kind = struct.unpack_from("<IH", data)
                if kind == NLMSG_ERROR:
                    (number,) = struct.unpack_from("<i", data, 16)
                    if number:
                        raise OSError(-number, "%s: %s" % (what, os.strerror(-number)))
                    return found
                if kind == NLMSG_DONE:
                    return found
                found.append(data[:length])
                data = data[(length + 3) & ~3 :]

    def _link(self, kind, flags, body, device):
        self.ask(kind, flags | NLM_F_ACK, body, device)

    def add_veth(self, name, mac, peer, peer_mac, peer_pid):
        """Create the two ends of a link: ``name`` in this namespace, ``peer`` in that of process ``peer_pid``."""
        there = attribute(IFLA_IFNAME, peer) + attribute(IFLA_ADDRESS, bytes.fromhex(peer_mac.replace(":", "")))
        there = attribute(VETH_INFO_PEER, bytes(16) + there + attribute(IFLA_NET_NS_PID, peer_pid))
        body = bytes(16) + attribute(IFLA_IFNAME, name)
        body += attribute(IFLA_ADDRESS, bytes.fromhex(mac.replace(":", "")))
        body += attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, "veth") + attribute(IFLA_INFO_DATA, there))
        self._link(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, body, name)

    def set_up(self, device):
        """Switch ``device`` on."""
        self._link(RTM_NEWLINK, 0, struct.pack("<BxHiII", 0, 0, self.index(device), IFF_UP, IFF_UP), device)

    def set_gso_max_segs(self, device, count):
        """At most ``count`` packets in a segment that TCP gives to ``device``."""
        body = struct.pack("<BxHiII", 0, 0, self.index(device), 0, 0) + attribute(IFLA_GSO_MAX_SEGS, count)
        self._link(RTM_NEWLINK, 0, body, device)

    def set_mtu(self, device, mtu_bytes):
        """The largest IP packet that ``device`` sends."""
        body = struct.pack("<BxHiII", 0, 0, self.index(device), 0, 0) + attribute(IFLA_MTU, mtu_bytes)
        self._link(RTM_NEWLINK, 0, body, device)

    def delete(self, device):
        """Remove ``device``, and the other end of its link with it."""
        self._link(RTM_DELLINK, 0, struct.pack("<BxHiII", 0, 0, self.index(device), 0, 0), device)

    def add_address(self, device, address, prefix_bits):
        """Give ``device`` an address of IPv4 or IPv6."""
        if ":" in address:
            own = socket.inet_pton(socket.AF_INET6, address)
            body = struct.pack("<BBBBI", socket.AF_INET6, prefix_bits, IFA_F_NODAD, 0, self.index(device))
            body += attribute(IFA_LOCAL, own) + attribute(IFA_ADDRESS, own)
            self._link(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body, "%s %s" % (device, address))
            return
        own = socket.inet_aton(address)
        hosts = (1 << 32 - prefix_bits) - 1
        everybody = struct.pack(">I", struct.unpack(">I", own)[0] | hosts)
        body = struct.pack("<BBBBI", socket.AF_INET, prefix_bits, 0, 0, self.index(device))
        body += attribute(IFA_LOCAL, own) + attribute(IFA_ADDRESS, own)
        body += attribute(IFA_BROADCAST, everybody) + attribute(IFA_LABEL, device)
        self._link(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body, "%s %s" % (device, address))

    def change_qdisc(self, device, parent, handle, kind, options):
        """Give a qdisc that is there other options: the attributes in TCA_OPTIONS."""
        body = struct.pack("<BxxxiIII", socket.AF_UNSPEC, self.index(device), handle, parent, 0)
        body += attribute(TCA_KIND, kind) + attribute(TCA_OPTIONS | NLA_F_NESTED, options)
        self._link(RTM_NEWQDISC, 0, body, "%s, options of %s" % (device, kind))

    def index(self, device):
        """The number of ``device`` in this namespace."""
        request = struct.pack("16s16x", device.encode())
        return struct.unpack_from("16si", fcntl.ioctl(self.socket, SIOCGIFINDEX, request))[1]

    def device(self, index):
        """The name of a device of this namespace."""
        return fcntl.ioctl(self.socket, SIOCGIFNAME, struct.pack("16si12x", b"", index))[:16].split(b"\0")[0].decode()

    def qdiscs(self):
        """(device, kind, handle as tc writes it, packets, drops) of each qdisc of the namespace."""
        for reply in self.ask(RTM_GETQDISC, NLM_F_DUMP, bytes(20), "qdiscs"):
            index, handle = struct.unpack_from("<iI", reply, 20)
            kind = next(value for name, value in attributes(reply, 36) if name == TCA_KIND)
            _, _, drops, packets = queue_state(reply)
            yield self.device(index), kind.rstrip(b"\0").decode(), "%x:" % (handle >> 16), packets, drops

    def settings(self, classes_of=()):
        """What the kernel has of each qdisc of the namespace, and of the classes of the devices ``classes_of`` below their root.

        {"device", "kind", "handle", "parent": as tc writes them, "options": the attribute TCA_OPTIONS in hex}.
        """
        replies = self.ask(RTM_GETQDISC, NLM_F_DUMP, bytes(20), "qdiscs")
        roots = {
            struct.unpack_from("<i", r, 20)[0]: r for r in replies if struct.unpack_from("<I", r, 28)[0] == TC_H_ROOT
        }
        for device in classes_of:
            (root,) = struct.unpack_from("<I", roots[self.index(device)], 24)
            body = struct.pack("<BxxxiIII", socket.AF_UNSPEC, self.index(device), 0, root, 0)
            replies += self.ask(RTM_GETTCLASS, NLM_F_DUMP, body, "classes of " + device)
        for reply in replies:
            yield self.setting(reply)

    def setting(self, reply):
        """The same of one raw RTM_NEWQDISC or RTM_NEWTCLASS message."""
        index, handle, parent = struct.unpack_from("<iII", reply, 20)
        found = dict(attributes(reply, 36))
        return {
            "device": self.device(index),
            "kind": found[TCA_KIND].rstrip(b"\0").decode(),
            "handle": tc_handle(handle),
            "parent": tc_handle(parent),
            "options": found.get(TCA_OPTIONS, b"").hex(),
        }

    def root_qdisc(self, device):
        """The raw RTM_NEWQDISC message of the qdisc at the root of ``device``."""
        body = struct.pack("<BxxxiIII", socket.AF_UNSPEC, self.index(device), 0, TC_H_ROOT, 0)
        (reply,) = self.ask(RTM_GETQDISC, NLM_F_ACK | NLM_F_ECHO, body, device)
        return reply

    def gso_max_segs(self, device):
        """At most how many packets TCP puts in a segment that it gives to ``device``."""
        body = struct.pack("<BxHiII", 0, 0, self.index(device), 0, 0)
        (reply,) = self.ask(RTM_GETLINK, NLM_F_ACK, body, device)
        return struct.unpack("<I", dict(attributes(reply, 32))[IFLA_GSO_MAX_SEGS])[0]


def tc_handle(number):
    """A handle or a parent as tc writes it."""
    if number == TC_H_ROOT:
        return "root"
    return "%x:%s" % (number >> 16, "%x" % (number & 0xFFFF) if number & 0xFFFF else "")


def datapath_misses():
    """How many packets had no flow in the switches' kernel part so far."""
    netlink = Netlink(os.getpid(), NETLINK_GENERIC)
    name = struct.pack("<BBxx", CTRL_CMD_GETFAMILY, 1) + attribute(CTRL_ATTR_FAMILY_NAME, "ovs_datapath")
    (family,) = netlink.ask(GENL_ID_CTRL, NLM_F_ACK, name, "ovs_datapath")
    number = next(v for k, v in attributes(family, 20) if k == CTRL_ATTR_FAMILY_ID)
    request = struct.pack("<BBxxi", OVS_DP_CMD_GET, 2, 0)
    misses = 0
    for reply in netlink.ask(struct.unpack("<H", number)[0], NLM_F_DUMP, request, "datapaths"):
        stats = next(value for kind, value in attributes(reply, 24) if kind == OVS_DP_ATTR_STATS)
        misses += struct.unpack_from("<QQ", stats)[1]
    netlink.socket.close()
    return misses
