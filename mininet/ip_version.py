"""What differs between IPv4 and IPv6 in the guest's work; ``plan`` says which its hosts have."""

import socket

HEADER_BYTES = {4: 20, 6: 40}  # of IP, without options


def is_ipv6(plan):
    """Whether the hosts of a plan have addresses of IPv6, and no others."""
    return plan.get("ip_version", 4) == 6


def family_of(plan):
    """The address family of a plan's sockets."""
    return socket.AF_INET6 if is_ipv6(plan) else socket.AF_INET


def header_bytes(plan):
    """The size of an IP header."""
    return HEADER_BYTES[plan.get("ip_version", 4)]


def neighbours_key(plan, device, name):
    """The sysctl by which a host remembers, or asks for, who has an address: of ARP, or of IPv6's neighbour discovery."""
    return "net.%s.neigh.%s.%s" % ("ipv6" if is_ipv6(plan) else "ipv4", device, name)
