"""How large a full-size packet is, and what of it is payload."""

from __future__ import annotations

FRAME_BYTES = 1514  # Ethernet's, as tc counts it: 1500 of IP behind a header of 14
FRAME_MEMORY_BYTES = 2280  # skb->truesize of it as TCP sends it, in Linux 6.12: what fq_codel and CAKE count
PAYLOAD_BYTES = 1448  # what is left of 1500 behind IP (20), TCP (20) and TCP's timestamps (12)
PAYLOAD_PER_FRAME = PAYLOAD_BYTES / FRAME_BYTES  # the ceiling of goodput over a link's rate
