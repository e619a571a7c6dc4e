"""Measures the finished topology before the first flow: base RTT, bottleneck rate, buffer size.

The plan says what was asked for; these numbers say what the kernel does. bbrlab/measure/checks/ compares the two.
"""

import socket
import struct
import time

from dumbbell import SetupError, slowest_s
from ip_version import family_of, header_bytes, is_ipv6
from limiter import LINK_HEADER_BYTES, frame_of
from namespaces import network_of
from netlink import queue_state

PINGS = 3
PING_INTERVAL_S = 0.3
PING_SLACK_S = 10  # beyond what a path delays: ARP asks again for a while
PING_BYTES, PING_ID = 56, 1  # of payload, as ping has it
ICMP = {False: socket.IPPROTO_ICMP, True: socket.IPPROTO_ICMPV6}
ECHO, ECHO_REPLY = {False: 8, True: 128}, {False: 0, True: 129}  # of ICMP, and of IPv6's
SO_TIMESTAMPNS = 35
PING_HEADER_BYTES, UDP_HEADER_BYTES = 8, 8
BURST_SLACK_PACKETS = 40
TIMED_FRAMES = 16  # a departure is known to a fiftieth of a frame
BURST_CAP_PACKETS = 20_000  # beyond this, filling the buffer would cost more than the experiment
DISCARD_PORT = 9
POLLS_PER_FRAME = 50
ARRIVAL_POLLS, ARRIVAL_POLL_S = 1000, 1e-5
DRY_POLL_S = 0.1


def ping_ms(dumbbell, pairs, count=PINGS):
    """Ping each (host, address) ``count`` times, together. Returns the minimum RTT of each in ms.

    What ping does, in this process: echo requests of its size, and the kernel's time stamp of the answer. Requests of
    several hosts follow each other so that none waits for another at the bottleneck.
    """
    of_ipv6 = is_ipv6(dumbbell.plan)
    frame_bytes = LINK_HEADER_BYTES + header_bytes(dumbbell.plan) + PING_HEADER_BYTES + PING_BYTES
    gap_s = 2 * frame_bytes * 8 / min(link["rate_bps"] for link in dumbbell.plan["bottlenecks"])
    timeout_s = (
        PING_SLACK_S + 2 * slowest_s(dumbbell.plan) + gap_s * len(pairs)
    )  # the first one waits for ARP's answer, too
    sockets = []
    for host, address in pairs:
        with network_of(dumbbell.hosts[host].pid):
            sock = socket.socket(family_of(dumbbell.plan), socket.SOCK_RAW, ICMP[of_ipv6])
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.settimeout(timeout_s)
        sock.connect((address, 0))
        sockets.append(sock)
    found_ns = [None] * len(pairs)
    for sequence in range(1, count + 1):
        sent_ns = []
        for sock in sockets:
            if sent_ns:
                time.sleep(gap_s)
            sent_ns.append(time.time_ns())
            sock.send(_echo_request(sequence, of_ipv6))
        for i, sock in enumerate(sockets):
            received_ns = _echo_reply_ns(sock, sequence, of_ipv6)
            if received_ns is not None:
                rtt_ns = received_ns - sent_ns[i]
                found_ns[i] = rtt_ns if found_ns[i] is None else min(rtt_ns, found_ns[i])
        if sequence < count:
            time.sleep(max(0.0, PING_INTERVAL_S - (time.time_ns() - sent_ns[0]) * 1e-9))
    for (host, address), sock, rtt_ns in zip(pairs, sockets, found_ns):
        sock.close()
        if rtt_ns is None:
            raise SetupError("%s cannot reach %s: no answer to a ping within %d s" % (host, address, timeout_s))
    return [rtt_ns // 1000 / 1000 for rtt_ns in found_ns]  # to the us, as ping tells it


def _echo_request(sequence, of_ipv6):
    """With its checksum, which of IPv6 the kernel puts in: it is of addresses, too."""
    words = [ECHO[of_ipv6] << 8, 0, PING_ID, sequence] + [0] * (PING_BYTES // 2)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    words[1] = ~total & 0xFFFF
    return struct.pack("!%dH" % len(words), *words)


def _echo_reply_ns(sock, sequence, of_ipv6):
    """When the answer to a request came, by the wall clock; None if none does."""
    while True:
        try:
            data, stamps, _, _ = sock.recvmsg(1 << 16, 256)
        except TimeoutError:
            return None
        start = 0 if of_ipv6 else (data[0] & 15) * 4  # behind the IP header, which of IPv6 is not there
        if struct.unpack_from("!BxxxHH", data, start) == (ECHO_REPLY[of_ipv6], PING_ID, sequence):
            seconds, ns = struct.unpack("<qq", stamps[0][2])
            return seconds * 1_000_000_000 + ns


def _departure(sampler, index, step_s):
    """Wait for the next packet to leave: (when in ns, bytes sent so far, backlog). Gives up after two frame times."""
    sent0, *_ = queue_state(sampler.qdisc(index))
    for _ in range(2 * POLLS_PER_FRAME):
        time.sleep(step_s)
        sent, backlog, *_ = queue_state(sampler.qdisc(index))
        if sent != sent0:
            break
    return time.monotonic_ns(), sent, backlog


def _arrival(sampler, index, packets, before, frame_bytes):
    """The queue's state once all ``packets`` of a burst have come to it, ``before`` which its state is given.

    On the lab's kernels they have when the sender's call returns. On another, a netem on the sender's interface holds them
    for some microseconds (dumbbell.py). Gives up after a while: then the check of the buffer fails and tells.
    """
    for _ in range(ARRIVAL_POLLS):
        sent, backlog, drops, _ = queue_state(sampler.qdisc(index))
        if (sent - before[0] + backlog) // frame_bytes + drops - before[2] >= packets:
            break
        time.sleep(ARRIVAL_POLL_S)
    return sent, backlog, drops


def _send(sock, payload):
    """Send one packet to a port where nobody listens. In real time the first ones' refusals come back meanwhile."""
    while True:
        try:
            sock.send(payload)
            return
        except ConnectionRefusedError:
            pass


def burst(dumbbell, sampler, index, link):
    """Throw more packets at bottleneck ``index`` than its buffer holds, and watch it drain.

    Returns {"rate_bps", "buffer_bytes", "filled", "packets"}: the drain rate, the largest backlog, whether the
    buffer overflowed (only then ``buffer_bytes`` is its size).
    """
    limiter, frame_bytes = dumbbell.limiters.get(link["device"]), frame_of(dumbbell.plan)
    saved_bytes = limiter.packet_bytes - frame_bytes if limiter else 0  # that it lets go at once, beyond what htb does
    packets = (link["buffer_bytes"] + saved_bytes) // frame_bytes + BURST_SLACK_PACKETS
    packets = min(packets, BURST_CAP_PACKETS)
    with network_of(dumbbell.hosts[link["burst_from"]].pid):
        sock = socket.socket(family_of(dumbbell.plan), socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 30)  # SO_SNDBUFFORCE: queued packets count against the sender
    sock.connect((link["burst_to_ip"], DISCARD_PORT))
    payload = bytes(frame_bytes - LINK_HEADER_BYTES - header_bytes(dumbbell.plan) - UDP_HEADER_BYTES)
    before = queue_state(sampler.qdisc(index))
    while before[1]:  # what was answered to another link's burst: packets of other sizes
        time.sleep(DRY_POLL_S)
        before = queue_state(sampler.qdisc(index))
    for _ in range(packets):
        _send(sock, payload)
    _, backlog0, drops0 = _arrival(sampler, index, packets, before, frame_bytes)
    # The rate between two departures, most of the queue apart but never to its end: it is only defined while busy.
    step_s = frame_bytes * 8 / link["rate_bps"] / POLLS_PER_FRAME
    for _ in range(2 + saved_bytes // frame_bytes):
        _departure(sampler, index, step_s)  # the first ones still live on the tokens that the limiter saved while idle
    start_ns, sent0, _ = _departure(sampler, index, step_s)
    timed_bytes = 0.8 * (backlog0 - 2 * saved_bytes)  # what was saved, and as many departures as it has packets
    time.sleep(max(0, timed_bytes) * 8 / link["rate_bps"])
    end_ns, sent1, backlog1 = _departure(sampler, index, step_s)
    elapsed_ns = end_ns - start_ns
    enough = backlog1 and elapsed_ns and timed_bytes >= TIMED_FRAMES * frame_bytes
    # Let it run dry (polling costs nothing), so that the experiment starts on an empty path.
    deadline = time.monotonic() + 60 + 4 * backlog0 * 8 / link["rate_bps"]
    while queue_state(sampler.qdisc(index))[1] and time.monotonic() < deadline:
        time.sleep(DRY_POLL_S)
    sock.close()
    return {
        "rate_bps": (sent1 - sent0) * 8e9 / elapsed_ns if enough else None,
        "buffer_bytes": backlog0,
        "filled": drops0 > before[2],
        "packets": packets,
    }
