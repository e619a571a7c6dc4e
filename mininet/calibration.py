"""Measures the finished topology before the first flow: base RTT, bottleneck rate, buffer size.

The plan says what was asked for; these numbers say what the kernel does. bbrlab/measure/checks/ compares the two.
"""

import re
import socket
import subprocess
import time

from dumbbell import SetupError
from netlink import queue_state

PINGS = 3
FRAME_BYTES = 1514  # full-size Ethernet frame as tc counts it
UDP_PAYLOAD_BYTES = FRAME_BYTES - 14 - 20 - 8
BURST_SLACK_PACKETS = 40
BURST_CAP_PACKETS = 20_000  # beyond this, filling the buffer would cost more than the experiment
DISCARD_PORT = 9
POLLS_PER_FRAME = 50
ARRIVAL_POLLS, ARRIVAL_POLL_S = 1000, 1e-5


def ping_ms(dumbbell, pairs, count=PINGS):
    """Ping each (host, address) ``count`` times, all at once. Returns the minimum RTT of each in ms."""
    running = []
    for host, address in pairs:
        argv = ["ping", "-n", "-c", str(count), "-i", "0.3", "-W", "10", address]
        running.append(dumbbell.start(host, argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    found = []
    for (host, address), process in zip(pairs, running):
        output = process.communicate()[0]
        match = re.search(r"= ([\d.]+)/", output)
        if not match:
            raise SetupError("%s cannot reach %s:\n%s" % (host, address, output))
        found.append(float(match.group(1)))
    return found


def _departure(sampler, index, step_s):
    """Wait for the next packet to leave: (when in ns, bytes sent so far, backlog). Gives up after two frame times."""
    sent0, *_ = queue_state(sampler.qdisc(index))
    for _ in range(2 * POLLS_PER_FRAME):
        time.sleep(step_s)
        sent, backlog, *_ = queue_state(sampler.qdisc(index))
        if sent != sent0:
            break
    return time.monotonic_ns(), sent, backlog


def _arrival(sampler, index, packets, before):
    """The queue's state once all ``packets`` of a burst have come to it, ``before`` which its state is given.

    On the lab's kernels they have when the sender's call returns. On another, a netem on the sender's interface holds them
    for some microseconds (dumbbell.py). Gives up after a while: then the check of the buffer fails and tells.
    """
    for _ in range(ARRIVAL_POLLS):
        sent, backlog, drops, _ = queue_state(sampler.qdisc(index))
        if (sent - before[0] + backlog) // FRAME_BYTES + drops - before[2] >= packets:
            break
        time.sleep(ARRIVAL_POLL_S)
    return sent, backlog, drops


def burst(dumbbell, sampler, index, link, namespace_socket):
    """Throw more packets at bottleneck ``index`` than its buffer holds, and watch it drain.

    Returns {"rate_bps", "buffer_bytes", "filled", "packets"}: the drain rate, the largest backlog, whether the
    buffer overflowed (only then ``buffer_bytes`` is its size).
    """
    packets = min(link["buffer_bytes"] // FRAME_BYTES + BURST_SLACK_PACKETS, BURST_CAP_PACKETS)
    sock = namespace_socket(dumbbell.hosts[link["burst_from"]].pid)
    sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 30)  # SO_SNDBUFFORCE: queued packets count against the sender
    sock.connect((link["burst_to_ip"], DISCARD_PORT))
    payload = bytes(UDP_PAYLOAD_BYTES)
    before = queue_state(sampler.qdisc(index))
    for _ in range(packets):
        sock.send(payload)
    _, backlog0, drops0 = _arrival(sampler, index, packets, before)
    # The rate between two departures, most of the queue apart but never to its end: it is only defined while busy.
    step_s = FRAME_BYTES * 8 / link["rate_bps"] / POLLS_PER_FRAME
    _departure(sampler, index, step_s)  # the first ones still live on the tokens that htb saved while idle
    _departure(sampler, index, step_s)
    start_ns, sent0, _ = _departure(sampler, index, step_s)
    time.sleep(0.8 * backlog0 * 8 / link["rate_bps"])
    end_ns, sent1, backlog1 = _departure(sampler, index, step_s)
    elapsed_ns = end_ns - start_ns
    # Let it run dry (polling costs nothing), so that the experiment starts on an empty path.
    deadline = time.monotonic() + 60 + 4 * backlog0 * 8 / link["rate_bps"]
    while queue_state(sampler.qdisc(index))[1] and time.monotonic() < deadline:
        time.sleep(0.1)
    sock.close()
    return {
        "rate_bps": (sent1 - sent0) * 8e9 / elapsed_ns if backlog1 and elapsed_ns else None,
        "buffer_bytes": backlog0,
        "filled": drops0 > before[2],
        "packets": packets,
    }
