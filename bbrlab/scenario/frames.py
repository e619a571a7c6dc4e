"""How large a full-size packet is, and what of it is payload: of the usual MTU and IPv4, and of any; how fast a link may send it."""

from __future__ import annotations

from typing import Final

FRAME_BYTES = 1514  # Ethernet's, as tc counts it: 1500 of IP behind a header of 14
FRAME_MEMORY_BYTES = 2280  # skb->truesize of it as TCP sends it, in Linux 6.12: what fq_codel and CAKE count
PAYLOAD_BYTES = 1448  # what is left of 1500 behind IPv4 (20), TCP (20) and TCP's timestamps (12)
MTU_BYTES = 1500  # Ethernet's
LINK_HEADER_BYTES = FRAME_BYTES - MTU_BYTES
IP_VERSION: Final = 4  # unless a scenario says otherwise
IP_HEADER_BYTES = {4: 20, 6: 40}  # RFC 791, 8200
TCP_HEADER_BYTES = MTU_BYTES - PAYLOAD_BYTES - IP_HEADER_BYTES[4]  # with timestamps
IPV6_MTU_BYTES = 1280  # the least that IPv6 may have (RFC 8200)
PAYLOAD_PER_FRAME = PAYLOAD_BYTES / FRAME_BYTES  # the ceiling of goodput over a link's rate
# HTB waits at most 60 s for a packet to be paid for (sch_htb.c, mbuffer), and tc keeps rates in whole bytes a second.
# Above 12,112 Mbit/s a frame takes less than a microsecond, the step of the guest's timers, by which the limiter lets each go.
RATE_MBIT_MIN, RATE_MBIT_MAX = 0.001, 12_000


def frame_memory_bytes(payload_bytes: int) -> int:
    """What the kernel counts for a packet that TCP sends: of each the same, beside its payload."""
    return FRAME_MEMORY_BYTES + payload_bytes - PAYLOAD_BYTES
