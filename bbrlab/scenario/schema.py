"""The schema of scenario files; docs/reference/scenario.md has each field, ``bbrlab schema`` prints it as JSON Schema."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from bbrlab.base.algorithms import KNOWN, no_such, own_sources
from bbrlab.base.errors import UserError
from bbrlab.base.strict import NonNegative, Positive, Probability, Strict
from bbrlab.scenario.frames import (
    FRAME_BYTES,
    IP_HEADER_BYTES,
    IP_VERSION,
    IPV6_MTU_BYTES,
    LINK_HEADER_BYTES,
    MTU_BYTES,
    RATE_MBIT_MAX,
    RATE_MBIT_MIN,
    TCP_HEADER_BYTES,
    frame_memory_bytes,
)
from bbrlab.scenario.link_trace import LinkTrace, existing_file, link_trace, place_of
from bbrlab.scenario.parameters import checked
from bbrlab.scenario.path_table import NOT_RIGHT, ROWS_MAX, changes_of
from bbrlab.scenario.red import Thresholds, problem, thresholds

RECEIVE_OFFLOAD_US = 50.0  # 20,000 interrupts a second, as Intel's e1000e driver has them for little traffic
PER_PACKET_JITTER_MS = 4293  # netem keeps half of it, and of what hosts take, in ns, in 31 bits
MAX_STREAMS = 128  # parallel streams that one iperf3 allows
ACK_BYTES = 66  # with timestamps, as tc counts it
PLAIN_WORD = re.compile(r"[\w.,:+-]{1,64}")  # what may stand on a kernel command line
FOLDER = "folder"  # in a validation's context: the folder of the scenario file; without it no file is opened
END_S = "end_s"  # in a validation's context: how long the run is
SOURCES = "sources"  # in a validation's context: C files of algorithms of one's own beside those in kernels/cca/
LINKS_MAX = 10
LINKS = re.compile(r"[0-9]{1,2}(-[0-9]{1,2})?")  # of a flow group
OF_A_LINK = ("rate_mbit", "buffer", "qdisc")  # what a link may have of its own, else the network's
# Fields of the network that one link has, and several do not.
NOT_WITH_LINKS = {
    "reverse": "ACKs never wait behind several links",
    "trace": "it would not say which link follows it",
    "data_path": "packets that are under way behind the last link would be missing in the counts of what each link sent",
    "policer": "it would not say beside which link it stands",
}
PARAMETER_SETS = ("bbr2", "bbr3")  # of which each flow group may have parameters of its own


def _folder_of(info: ValidationInfo) -> Path | None:
    """What paths in a scenario are relative to; None: it may name no files."""
    folder: Path | None = (info.context or {}).get(FOLDER)
    return folder


def _switch(value: Any) -> Any:
    """YAML 1.1 reads the bare words off and on as booleans."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


Switch = BeforeValidator(_switch)


def _whole_us(value: float) -> float:
    """tc keeps the times of queues in whole microseconds."""
    if abs(value * 1000 - round(value * 1000)) > 1e-6:
        raise ValueError(
            f"{value:g} ms is not a whole number of microseconds, as tc keeps it; write {round(value, 3):g}"
        )
    return value


RTT_MS_MAX = 10_000
RttMs = Annotated[float, Field(ge=0.001, le=RTT_MS_MAX)]  # drawn RTTs are whole microseconds
QueueMs = Annotated[float, Field(ge=0.001, le=10_000), AfterValidator(_whole_us)]
RateMbit = Annotated[float, Field(ge=RATE_MBIT_MIN, le=RATE_MBIT_MAX)]
ROUTER_RATE_MBIT_MIN = 0.01  # a segment of 64 KiB in 60 s
WORD_MAX = 2**32 - 1  # tc keeps sizes and numbers in 32 bits
Word = Annotated[int, Field(gt=0, le=WORD_MAX)]
POLICER_BURST_S = 274  # tc keeps a policer's burst as the time that it takes at its rate, in 32 bits of 64 ns
LOSS_MIN = 1e-7  # netem keeps it in 32 bits, 2.3e-10 each


def _loss(value: float) -> float:
    """What 32 bits would make none or all of is refused."""
    if value and not LOSS_MIN <= value <= 1 - LOSS_MIN:
        raise ValueError(
            f"a loss of {value:.10g} is more than netem can count: give 0, or {LOSS_MIN:g} to {1 - LOSS_MIN:.8g}"
        )
    return value


def burst_probabilities(loss: float, burst_packets: float) -> tuple[float, float]:
    """Gilbert's model of a mean loss and a mean number of packets that are lost together: with which probability a burst begins after a
    packet that is not lost, and ends after one that is."""
    return loss / (1 - loss) / burst_packets, 1 / burst_packets


Loss = Annotated[Probability, AfterValidator(_loss)]
SocketBytes = Annotated[int, Field(ge=4096, le=2**31 - 1)]


Name = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)
]  # of a scenario or paper: part of the names of files


def _later(default: Any = None, *, description: str) -> Any:
    """A field that came after the first points had their names: left out of a point where it has its default, so that these stay."""
    return Field(default, description=description, exclude_if=lambda value: value == default)


class Buffer(Strict):
    """Bottleneck buffer: exactly one of BDP, bytes, packets (of 1514 bytes, or of network.mtu_bytes and 14).

    fifo and red count bytes. The other queues count packets, of a buffer in BDP or bytes as many as full-size frames fit in it: of
    ACKs and other small packets they hold far fewer bytes (of 90840 bytes 60 ACKs, 3960 bytes). cake counts the memory of as many frames.
    fq holds up to 8 packets more.
    """

    bdp: Positive | None = Field(None, description="multiples of rate_mbit x rtt_ms (mean of a range)")
    bytes: Annotated[int, Field(ge=FRAME_BYTES)] | None = Field(None, description="bytes, as tc counts them (L2)")
    packets: Annotated[int, Field(ge=1)] | None = Field(
        None, description="full-size frames: 1514 bytes, or network.mtu_bytes and 14"
    )

    @model_validator(mode="after")
    def _one(self) -> Buffer:
        given = [k for k in ("bdp", "bytes", "packets") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of bdp, bytes, packets (found: {', '.join(given) or 'none'})")
        return self


Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)  # within what the field itself allows
CODEL_MS: Range = (
    0.1,
    10_000,
)  # CoDel counts in 1.024 us: of less than 0.1 ms it would make another time by more than 1 %
QUANTUM: Range = (256, 1 << 20)  # the kernel makes 256 of less, and refuses or cuts more
# {kind: {option: the least and the largest value that tc and the kernel take as it is}}
QDISC_OPTIONS: dict[str, dict[str, Range]] = {
    "fifo": {},
    "red": dict.fromkeys(
        ("ecn", "harddrop", "adaptive", "min_bytes", "max_bytes", "avpkt_bytes", "burst_packets", "probability"), ANY
    ),
    "codel": {"ecn": ANY, "target_ms": CODEL_MS, "interval_ms": CODEL_MS, "ce_threshold_ms": CODEL_MS},
    "fq_codel": {
        "ecn": ANY,
        "target_ms": CODEL_MS,
        "interval_ms": CODEL_MS,
        "ce_threshold_ms": CODEL_MS,
        "l4s_of": ANY,
        "flows": (1, 65_536),
        "quantum_bytes": QUANTUM,
    },
    # PIE counts in 64 ns, and tells its target in 32 bits of ns; its timer in jiffies, of 1 ms in the lab's kernels; tc keeps an alpha or beta of 0 to itself.
    "pie": {"ecn": ANY, "target_ms": (0.01, 4294), "tupdate_ms": (1, 10_000), "alpha": (1, 32), "beta": (1, 32)},
    "cake": {"rtt_ms": (0.02, 10_000), "isolation": ANY, "ack_filter": ANY},  # its target is a twentieth, at least 1 us
    "fq": {"ce_threshold_ms": (0.001, 10_000), "quantum_bytes": QUANTUM, "flow_limit_packets": ANY},
    "dualpi2": {  # which keeps times in 32 bits of ns
        "target_ms": (0.001, 4294),
        "tupdate_ms": (1, 4294),
        "step_threshold_ms": (0.001, 4294),
        "coupling": (1, 255),
        "l4s_of": ANY,
    },
}
# The largest buffer where the kernel counts the memory of packets, in 31 or 32 bits.
MEMORY_MAX = {"fq_codel": 1 << 31, "cake": WORD_MAX, "dualpi2": WORD_MAX}
COUNTS_BYTES = ("fifo", "red")  # the others count packets, and CAKE cuts segments itself


class Qdisc(Strict):
    """Bottleneck queue discipline with the options of its kind (see ``man tc-<kind>``)."""

    kind: Literal["fifo", "red", "codel", "fq_codel", "pie", "cake", "fq", "dualpi2"] = Field(
        "fifo",
        description="fifo: drop-tail (bfifo); dualpi2: the two queues of L4S, in kernel lab-7.3 only (docs/howto/l4s.md); each "
        "one but fifo takes its own options",
    )
    ecn: bool | None = Field(None, description="mark ECT packets in place of dropping them (red, codel, fq_codel, pie)")
    harddrop: bool | None = Field(None, description="red: drop above max_bytes even if ECT")
    adaptive: bool | None = Field(None, description="red: adapt the probability")
    min_bytes: Word | None = Field(
        None, description="red: lower threshold; default: a twelfth of the buffer, at most a third of max_bytes"
    )
    max_bytes: Annotated[int, Field(gt=0, lt=2**30)] | None = Field(
        None, description="red: upper threshold; default: a quarter of the buffer"
    )
    avpkt_bytes: Word | None = Field(None, description="red: mean packet size, at most min_bytes; default: 1514")
    burst_packets: Word | None = Field(
        None, description="red: burst, at least min_bytes / avpkt_bytes; default: from min and max"
    )
    probability: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="red: mark probability at max_bytes; 1 is handed over as 1 - 2^-32; at least 4.7e-9 for each byte between the "
        "thresholds, or what the kernel's whole numbers carry to 5 %; default: 0.02",
    )
    target_ms: QueueMs | None = Field(
        None,
        description="codel, fq_codel, pie, dualpi2: target delay; dualpi2: of the queue of classic flows, default 15",
    )
    interval_ms: QueueMs | None = Field(None, description="codel, fq_codel: interval")
    tupdate_ms: Annotated[float, Field(ge=1, le=10_000, multiple_of=1)] | None = Field(
        None, description="pie, dualpi2: update interval, whole milliseconds"
    )
    alpha: Annotated[int, Field(ge=1, le=32)] | None = Field(
        None, description="pie: weight of how far the delay is from the target"
    )
    beta: Annotated[int, Field(ge=1, le=32)] | None = Field(None, description="pie: weight of how the delay changes")
    ce_threshold_ms: QueueMs | None = Field(None, description="codel, fq_codel, fq: mark above this sojourn time")
    step_threshold_ms: QueueMs | None = _later(
        description="dualpi2: the queue of scalable flows marks what waits longer; default: 1"
    )
    coupling: Annotated[int, Field(ge=1, le=255)] | None = _later(
        description="dualpi2: the probability of a mark for scalable flows, over the square root of that of a drop for classic ones; "
        "default: 2"
    )
    l4s_of: Literal["ect1", "ect"] | None = _later(
        description="dualpi2, fq_codel: which packets are those of scalable flows: with ECT(1), or with ECT of either kind; dualpi2: "
        "these have a queue of their own, default ect1; fq_codel: ce_threshold_ms is for them alone, default ect"
    )
    flows: Annotated[int, Field(ge=1, le=65_536)] | None = Field(None, description="fq_codel: number of queues")
    quantum_bytes: Annotated[int, Field(ge=256, le=1 << 20)] | None = Field(
        None, description="fq_codel, fq: bytes that a flow may send in a round"
    )
    flow_limit_packets: Word | None = Field(None, description="fq: default: the whole buffer")
    rtt_ms: QueueMs | None = Field(None, description="cake: the RTT it is tuned for")
    isolation: Literal["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"] | None = Field(None, description="cake: what is kept apart; default: triple-isolate. Flows of the same RTT share a sending host, but hosts.noise, on by default, gives each group an RTT, and so a host, of its own; all flows that go the same way share a receiving host")  # fmt: skip
    ack_filter: Annotated[Literal["off", "on", "aggressive"], Switch] | None = _later(
        description="cake: of a flow's ACKs that wait, drop those that a later one makes needless; aggressive: also if that loses a "
        "duplicate ACK; default: off"
    )

    @model_validator(mode="after")
    def _known(self) -> Qdisc:
        given = {k for k in type(self).model_fields if k != "kind" and getattr(self, k) is not None}
        options = QDISC_OPTIONS[self.kind]
        wrong = given - options.keys()
        if wrong:
            known = ", ".join(sorted(options)) or "none"
            raise ValueError(f"qdisc {self.kind} has no option {', '.join(sorted(wrong))} (its options: {known})")
        for name in sorted(given):
            least, largest = options[name]
            if (value := getattr(self, name)) is not None and options[name] != ANY and not least <= value <= largest:
                raise ValueError(f"{name} {value:g}: {self.kind} takes {least:g} to {largest:g}")
        return self

    def thresholds(self, buffer_bytes: int, frame_bytes: int = FRAME_BYTES) -> Thresholds:
        """RED's, with their defaults for a buffer."""
        given = (self.min_bytes, self.max_bytes, self.avpkt_bytes, self.burst_packets, self.probability)
        return thresholds(buffer_bytes, *given, frame_bytes=frame_bytes)

    def problem(self, link: Network) -> str:
        """Why tc or the kernel would not make such a queue for a link; empty if they do."""
        packets = link.buffer_bytes // link.frame_bytes
        most = MEMORY_MAX[self.kind] // frame_memory_bytes(link.payload_bytes) if self.kind in MEMORY_MAX else packets
        if packets > most:
            return f"buffer: {packets} packets, but {self.kind} holds at most {most}"
        red = self.thresholds(link.buffer_bytes, link.frame_bytes)
        said = problem(red, link.rate_mbit) if self.kind == "red" else ""
        return said and f"qdisc.{said}"


class Jitter(Strict):
    """Adds between 0 and ``ms`` to the path's delay (in the ACK direction); never reorders."""

    kind: Literal["slotted", "per-packet", "aggregated"] = Field(
        description="per-packet: each packet on its own; slotted: slots whose length is drawn uniformly from 0 to ms when they "
        "begin, at whose end packets leave together (random lengths were chosen after a comparison: LIMITATIONS.md); aggregated: "
        "slots of ms, one after another while there are ACKs (docs/howto/paths.md)"
    )
    ms: RttMs = Field(
        description=f"the largest delay that is added (aggregated: to an ACK that is alone, always); per-packet: at most {PER_PACKET_JITTER_MS}"
    )
    group: Annotated[int, Field(ge=0)] | None = Field(None, description="flow group; default: every group")

    @model_validator(mode="after")
    def _as_netem_holds_it(self) -> Jitter:
        if self.kind == "per-packet" and self.ms > PER_PACKET_JITTER_MS:
            raise ValueError(
                f"ms {self.ms:g}: per-packet jitter can be {PER_PACKET_JITTER_MS} ms at most (netem's limit); slotted can be more"
            )
        return self


class DataJitter(Strict):
    """Adds between 0 and ``ms`` to the delay of data packets, behind the bottleneck."""

    kind: Literal["slotted", "per-packet"] = Field(
        description="per-packet: uniformly, each packet on its own; slotted: packets leave together at the end of slots, whose length is "
        "drawn uniformly from 0 to ms when they begin"
    )
    ms: RttMs = Field(description=f"the largest delay that is added; per-packet: at most {PER_PACKET_JITTER_MS}")
    order: Literal["kept", "free"] = Field(
        "kept",
        description="kept: a packet waits for those that came before it, however short its own delay is; free: it overtakes them (per-packet "
        "only)",
    )

    @model_validator(mode="after")
    def _as_netem_holds_it(self) -> DataJitter:
        if self.kind == "per-packet" and self.ms > PER_PACKET_JITTER_MS:
            raise ValueError(
                f"ms {self.ms:g}: per-packet jitter can be {PER_PACKET_JITTER_MS} ms at most (netem's limit); slotted can be more"
            )
        if self.kind == "slotted" and self.order == "free":
            raise ValueError(
                "order free is of per-packet jitter; packets of a slot leave in their order (leave it out)"
            )
        return self


class Reordering(Strict):
    """Holds back some data packets, each on its own, behind the bottleneck: those that leave it meanwhile overtake them."""

    share: Annotated[float, Field(gt=0, lt=1), AfterValidator(_loss)] = Field(description="of packets that are late")
    late_ms: RttMs = Field(description="by how much, all by the same")


class DataPath(Strict):
    """What happens to data packets behind the bottleneck: reordering first, then delay and jitter. ACKs meet none of it."""

    delay_ms: Annotated[float, Field(ge=0, le=10_000)] = Field(
        0.0,
        description="the part of the base RTT that lies here; the rest is on the way of the ACKs. 0: all of it is there",
    )
    jitter: DataJitter | None = Field(None, description="delay that varies from packet to packet, beside the base RTT")
    reordering: Reordering | None = Field(None, description="packets that come late, and are overtaken")

    @model_validator(mode="after")
    def _something(self) -> DataPath:
        if not self.delay_ms and self.jitter is None and self.reordering is None:
            raise ValueError("give at least one of delay_ms (above 0), jitter, reordering; or leave data_path out")
        return self

    @property
    def varies_ms(self) -> float:
        """How much longer than ``delay_ms`` a packet may take, in ms."""
        return (self.jitter.ms if self.jitter else 0.0) + (self.reordering.late_ms if self.reordering else 0.0)


class Policer(Strict):
    """A token bucket that drops at once what exceeds it, and keeps nothing (tc's action ``police``).

    It stands in each direction in which there are flows, and is full when the run begins.
    """

    rate_mbit: RateMbit = Field(description="at which the bucket fills, Mbit/s of frames")
    burst_bytes: Annotated[int, Field(ge=FRAME_BYTES, le=WORD_MAX)] = Field(
        description=f"what the bucket holds: bytes of frames that pass at once after a pause; at most {POLICER_BURST_S} s of its rate"
    )
    place: Literal["before", "behind"] = Field(
        "before",
        description="before the bottleneck's queue, which what is dropped never reaches; behind the bottleneck: what is dropped has used the link",
    )

    @model_validator(mode="after")
    def _as_tc_holds_it(self) -> Policer:
        if (fills_s := self.burst_bytes * 8e-6 / self.rate_mbit) > POLICER_BURST_S:
            most = int(POLICER_BURST_S * self.rate_mbit * 1e6 / 8)
            raise ValueError(
                f"burst_bytes {self.burst_bytes}: at {self.rate_mbit:g} Mbit/s the bucket fills in {fills_s:.4g} s, and tc holds "
                f"{POLICER_BURST_S} s; give at most {most}"
            )
        return self


class Grants(Strict):
    """When a link may send: at every multiple of a period, counted from the start of the run. What waits in between leaves then."""

    period_ms: Annotated[float, Field(ge=0.01, le=1000), AfterValidator(_whole_us)] = Field(
        description="from one grant to the next"
    )
    bytes: Annotated[int, Field(ge=ACK_BYTES, le=2**30)] = Field(
        description="of frames that leave at each, at most: 66 for an ACK, of IPv6 86. What is left of it is lost, unless something waits that is "
        "larger, and leaves at a later one"
    )

    @property
    def rate_mbit(self) -> float:
        """The mean rate that all grants make."""
        return self.bytes * 8e-3 / self.period_ms

    @model_validator(mode="after")
    def _is_a_rate(self) -> Grants:
        if not RATE_MBIT_MIN <= self.rate_mbit <= RATE_MBIT_MAX:
            raise ValueError(
                f"bytes {self.bytes} every {self.period_ms:g} ms are {self.rate_mbit:.4g} Mbit/s; {RATE_MBIT_MIN:g} to {RATE_MBIT_MAX} are possible"
            )
        return self


class Reverse(Strict):
    """The link against the flows: what carries their ACKs, and the data of flows with ``direction: reverse``."""

    rate_mbit: RateMbit | None = Field(
        None,
        description="Mbit/s of frames; an ACK has 66 bytes, of IPv6 86. ``changes`` of the rate are not its. Needed without grants",
    )
    grants: Grants | None = _later(
        description="in place of rate_mbit: it sends at a grid of times only, as an upstream of cable (DOCSIS) or of a mobile network does "
        "(docs/howto/paths.md)"
    )
    buffer: Buffer = Field(description="size of its queue; bdp: multiples of its own rate_mbit x network.rtt_ms")
    qdisc: Qdisc = Field(Qdisc(), description="its queue discipline")

    @model_validator(mode="after")
    def _sends_in_one_way(self) -> Reverse:
        if (self.rate_mbit is None) == (self.grants is None):
            raise ValueError(f"give exactly one of rate_mbit, grants (found: {'both' if self.grants else 'none'})")
        return self

    @property
    def mean_mbit(self) -> float:
        """Its rate, over whole grants."""
        rate_mbit = self.grants.rate_mbit if self.grants else self.rate_mbit
        assert rate_mbit is not None
        return rate_mbit


class Link(Strict):
    """One of several bottlenecks in a row."""

    rate_mbit: RateMbit | None = Field(None, description="Mbit/s; default: network.rate_mbit")
    buffer: Buffer | None = Field(
        None,
        description="size of its queue; bdp: multiples of its own rate_mbit x the base RTT over all links; default: network.buffer",
    )
    qdisc: Qdisc | None = Field(None, description="its queue discipline; default: network.qdisc")
    rtt_ms: Annotated[float, Field(ge=0, le=10_000)] = Field(
        0.0, description="what it adds to the base RTT of each flow that crosses it"
    )


class Change(Strict):
    """What changes at ``at_s``. The buffer keeps its bytes."""

    at_s: NonNegative = Field(description="when, in virtual seconds from the start of the run")
    rate_mbit: RateMbit | None = Field(None, description="the bottleneck's new rate")
    rtt_ms: RttMs | None = Field(None, description="for every flow without an RTT of its own")
    loss: Loss | None = Field(None, description="where network.loss_place says")

    @model_validator(mode="after")
    def _something(self) -> Change:
        if self.rate_mbit is None and self.rtt_ms is None and self.loss is None:
            raise ValueError("a change needs at least one of rate_mbit, rtt_ms, loss")
        return self


def _rtt(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        if len(value) != 2 or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value):
            raise ValueError("an RTT range is a list of two numbers, [low, high]")
        if value[0] > value[1]:
            raise ValueError(f"an RTT range is [low, high], but {value[0]:g} > {value[1]:g}")
    return value


RttValue = RttMs | Annotated[list[RttMs], Field(min_length=2, max_length=2)]


class Network(Strict):
    """The dumbbell: one bottleneck, a base RTT, what its queue does, what goes wrong on the path; or, with ``links``, several."""

    rate_mbit: RateMbit = Field(description="rate of the bottleneck, Mbit/s")
    rtt_ms: RttValue = Field(
        description="base RTT; [low, high] is drawn uniformly per flow and seed. A buffer in BDP is computed with it (for a range with its middle), even if flows have RTTs of their own"
    )
    buffer: Buffer = Field(description="size of the bottleneck's queue")
    qdisc: Qdisc = Field(Qdisc(), description="queue discipline of the bottleneck")
    loss: Loss = Field(0.0, description="random loss of packets on their way to the receiver, each on its own")
    loss_place: Literal["behind", "before"] = Field(
        "behind",
        description="behind the bottleneck: what is lost has used the link, so goodput is at most (1 - loss) of it; before it: "
        "what is lost never reaches the queue. Holds for the loss of changes, too",
    )
    loss_burst_packets: Annotated[float, Field(ge=1, le=1_000_000)] | None = _later(
        description="mean number of packets that are lost one after another (Gilbert's model, netem's gemodel): a packet that is lost is "
        "followed by another lost one with probability 1 - 1 / loss_burst_packets; loss stays the mean; default: each on its own"
    )
    mtu_bytes: Annotated[int, Field(ge=576, le=9000)] = _later(
        MTU_BYTES,
        description="largest IP packet of all links, so that a frame has 14 bytes more and TCP sends 52 less in it, with ip_version 6 72 less "
        "(docs/howto/paths.md)",
    )
    ip_version: Literal[4, 6] = _later(
        IP_VERSION,
        description="of all packets; IPv6's header has 20 bytes more, so that TCP sends 1428 in place of 1448 in a packet (docs/howto/paths.md)",
    )
    jitter: Jitter | None = Field(
        None, description="delay of ACKs that varies from packet to packet; of data: data_path.jitter"
    )
    data_path: DataPath | None = _later(
        description="delay, jitter and reordering of data packets, behind the bottleneck (docs/howto/paths.md)"
    )
    reverse: Reverse | None = _later(
        description="the link of the other direction; default: a link that is never the limit, or, where there are flows with direction "
        "reverse, one like the bottleneck (docs/howto/paths.md)"
    )
    trace: str | None = _later(
        description="when the bottleneck may send, packet by packet, from the start of the run on: cellular, leo or wifi, which come with the package, "
        "or a file of times in ms, as mahimahi has them, or of times in s and rates (docs/howto/paths.md). rate_mbit is then what a buffer "
        "in BDP is of, and capacity the trace's"
    )
    policer: Policer | None = _later(description="a token bucket beside the bottleneck (docs/howto/paths.md)")
    links: Annotated[list[Link], Field(min_length=2, max_length=LINKS_MAX)] | None = _later(
        description="several bottlenecks in a row (a parking lot), in the order in which data meets them; rate_mbit, buffer and qdisc are "
        "those of each link that has none of its own (docs/howto/parking_lot.md)"
    )
    changes: Annotated[list[Change], Field(max_length=ROWS_MAX)] = Field(
        [],
        description="what changes during the run: a list, or a file of lines of a time in s, an RTT in ms and, where wanted, a loss "
        "(docs/howto/paths.md), whose rows within the run are then that list",
    )
    _grants: Grants | None = PrivateAttr(None)  # of the link against the flows (towards())

    @property
    def rate_is_known(self) -> bool:
        """Whether it can be told which rate the bottleneck has when."""
        return True

    @field_validator("changes", mode="before", json_schema_input_type=list[Change] | str)
    @classmethod
    def _of_a_file(cls, changes: Any, info: ValidationInfo) -> Any:
        """The rows of a file, so that they stand in the scenario that is run."""
        if not isinstance(changes, str):
            return changes
        begins_with = {name: info.data.get(name) for name in ("rtt_ms", "loss")}
        path = existing_file(changes, _folder_of(info), "a list of changes", f" that {NOT_RIGHT}")
        return changes_of(path, (info.context or {}).get(END_S), begins_with)

    @field_validator("trace")
    @classmethod
    def _is_a_trace(cls, trace: str | None, info: ValidationInfo) -> str | None:
        """The file's whole path, so that it means the same wherever the scenario goes."""
        if trace is None:
            return None
        path = str(place_of(trace, _folder_of(info)))
        try:
            link_trace(path)
        except UserError as error:
            raise ValueError(str(error)) from None
        return path

    @model_validator(mode="after")
    def _possible(self) -> Network:
        _rtt(self.rtt_ms)
        for at, loss in (
            ("loss", self.loss),
            *((f"changes.{i}.loss", c.loss or 0.0) for i, c in enumerate(self.changes)),
        ):
            if loss and self.loss_burst_packets is not None:
                self._check_bursts(at, loss, self.loss_burst_packets)
        rates = [i for i, change in enumerate(self.changes) if change.rate_mbit is not None]
        if self.trace is not None and rates:
            raise ValueError(
                f"changes.{rates[0]}.rate_mbit is not possible with trace, which says the rate all the time; leave one out"
            )
        self._check_frames()
        if self.links is not None:
            self._check_links(self.links)
        ways = [(self, ""), (self.towards("reverse"), "reverse.")]
        if self.links is not None:
            ways = [(link, f"links.{i}.") for i, link in enumerate(self.bottlenecks)]
        for link, at in ways:
            size = link.buffer.bdp * link.bdp_bytes if link.buffer.bdp else link.buffer_bytes
            if size > WORD_MAX:
                raise ValueError(f"{at}buffer: {size:g} bytes, but tc's limit is {WORD_MAX}")
            if why := link.qdisc.problem(link):
                raise ValueError(at + why)
        return self

    def _check_links(self, links: list[Link]) -> None:
        """ValueError for what several links cannot have."""
        for name, why in NOT_WITH_LINKS.items():
            if getattr(self, name) is not None:
                raise ValueError(f"{name} is not possible with links: {why}; leave one out")
        if self.loss_place == "before":
            raise ValueError("loss_place before is not possible with links: it would not say before which; use behind")
        for i, change in enumerate(self.changes):
            if change.rate_mbit is not None:
                raise ValueError(
                    f"changes.{i}.rate_mbit is not possible with links: it would not say of which; leave it out"
                )
        if self.links_rtt_ms + max(self.rtt_ms if isinstance(self.rtt_ms, list) else [self.rtt_ms]) > RTT_MS_MAX:
            raise ValueError(f"links: rtt_ms of the network and of all links must be at most {RTT_MS_MAX} ms together")
        for i, change in enumerate(self.changes):
            if self.links_rtt_ms + (change.rtt_ms or 0) > RTT_MS_MAX:
                raise ValueError(
                    f"changes.{i}.rtt_ms: it and rtt_ms of all links must be at most {RTT_MS_MAX} ms together"
                )

    def _check_frames(self) -> None:
        """ValueError if a frame of the MTU does not fit where it has to."""
        if self.ip_version == 6 and self.mtu_bytes < IPV6_MTU_BYTES:
            raise ValueError(
                f"mtu_bytes {self.mtu_bytes} is not possible with ip_version 6, which needs at least {IPV6_MTU_BYTES} (RFC 8200); give that, or use 4"
            )
        if self.mtu_bytes == MTU_BYTES:
            return
        if self.trace is not None:
            raise ValueError(
                f"mtu_bytes {self.mtu_bytes} is not possible with trace, whose opportunities are of {FRAME_BYTES} bytes; leave one out"
            )
        sizes = [("buffer.bytes", self.buffer.bytes)]
        sizes += [("reverse.buffer.bytes", self.reverse.buffer.bytes)] if self.reverse else []
        sizes += [(f"links.{i}.buffer.bytes", x.buffer.bytes) for i, x in enumerate(self.links or ()) if x.buffer]
        sizes += [("policer.burst_bytes", self.policer.burst_bytes)] if self.policer else []
        for at, size in sizes:
            if size is not None and size < self.frame_bytes:
                raise ValueError(
                    f"{at} {size}: a frame has {self.frame_bytes} bytes with mtu_bytes {self.mtu_bytes}; give at least that"
                )

    @staticmethod
    def _check_bursts(at: str, loss: float, packets: float) -> None:
        """ValueError if netem cannot begin bursts as often, or as seldom."""
        begins, _ = burst_probabilities(loss, packets)
        if begins > 1:
            least = loss / (1 - loss)
            raise ValueError(
                f"loss_burst_packets {packets:g}: {at} {loss:g} needs bursts of at least {least:g} packets, with one packet between them"
            )
        if begins < LOSS_MIN:
            raise ValueError(
                f"loss_burst_packets {packets:g}: with {at} {loss:g} a burst begins at one of {1 / begins:.3g} packets, fewer than netem can "
                f"count; give at most {loss / (1 - loss) / LOSS_MIN:g}"
            )

    def towards(self, direction: str) -> Network:
        """The network as what goes in one direction meets it: with ``reverse`` another rate, which stays, buffer and queue."""
        if direction == "forward" or self.reverse is None:
            return self
        own = {"rate_mbit": self.reverse.mean_mbit, "buffer": self.reverse.buffer, "qdisc": self.reverse.qdisc}
        changes = [change.model_copy(update={"rate_mbit": None}) for change in self.changes]
        network = self.model_copy(update={**own, "changes": changes, "reverse": None, "trace": None})
        network._grants = self.reverse.grants
        return network

    def of_link(self, number: int) -> Network:
        """The network as if one of its links were the only one: its rate, buffer and queue, and the base RTT over all links."""
        assert self.links is not None
        link, added_ms = self.links[number], self.links_rtt_ms
        own = {name: value for name in OF_A_LINK if (value := getattr(link, name)) is not None}
        rtt_ms = [ms + added_ms for ms in self.rtt_ms] if isinstance(self.rtt_ms, list) else self.rtt_ms + added_ms
        return self.model_copy(update={**own, "rtt_ms": rtt_ms, "links": None})

    @property
    def opportunities(self) -> LinkTrace | None:
        """When the bottleneck may send, and how much; None: whenever something waits, at its rate."""
        if self._grants is not None:
            period_ns = round(self._grants.period_ms * 1e6)
            return LinkTrace(np.array([period_ns]), period_ns, self._grants.bytes)
        return None if self.trace is None else link_trace(self.trace)

    @property
    def grants_ms(self) -> float:
        """How long a packet that is alone waits at most until it may leave, of a link with grants."""
        return self._grants.period_ms if self._grants else 0.0

    @property
    def links_rtt_ms(self) -> float:
        """What all links together add to the base RTT of a flow over them."""
        return sum(link.rtt_ms for link in self.links or ())

    @property
    def bottlenecks(self) -> list[Network]:
        """The network as each of its links is, in their order; itself alone where there is one."""
        return [self] if self.links is None else [self.of_link(number) for number in range(len(self.links))]

    @property
    def mean_rtt_ms(self) -> float:
        """Base RTT in ms; the mean of a range."""
        return sum(self.rtt_ms) / 2 if isinstance(self.rtt_ms, list) else self.rtt_ms

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product in bytes: rate_mbit x (mean) rtt_ms."""
        return self.rate_mbit * 1e6 * self.mean_rtt_ms * 1e-3 / 8

    @property
    def buffer_bytes(self) -> int:
        """Bottleneck buffer in bytes, at least one frame."""
        if self.buffer.bdp is not None:
            return max(self.frame_bytes, round(self.buffer.bdp * self.bdp_bytes))
        if self.buffer.bytes is not None:
            return self.buffer.bytes
        assert self.buffer.packets is not None
        return self.buffer.packets * self.frame_bytes

    @property
    def frame_bytes(self) -> int:
        """A packet of full size, as tc counts it."""
        return self.mtu_bytes + LINK_HEADER_BYTES

    @property
    def payload_bytes(self) -> int:
        """What TCP sends in a packet of full size, with timestamps."""
        return self.mtu_bytes - IP_HEADER_BYTES[self.ip_version] - TCP_HEADER_BYTES


class Noise(Strict):
    """What no testbed fixes and no paper states: what it adds to the RTT, and how long a host takes for each packet.

    Without it packets of all flows meet the queue at the same fraction of a packet's time for a whole run
    (docs/explanation/phase.md). Both are drawn by the seed.
    """

    rtt_offset_us: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        600.0,
        description="the base RTT of each group is longer, for a whole run, by an offset, uniform between 0 and this, or between 0 and a packet's "
        "time at the bottleneck if that is less. 600: what testbeds of published raw data add to the delay that they emulate",
    )
    processing_us: Annotated[float, Field(ge=0, le=1000)] = Field(
        50.0,
        description="hosts take up to this much longer for each packet, uniformly from 0: on the way of the ACKs, and before a paced packet "
        "leaves. Packets are never reordered, and pacing rates stay. 50: a network card that interrupts at most 20,000 times a "
        "second, as common drivers do by default",
    )


NO_NOISE = Noise(rtt_offset_us=0, processing_us=0)


def _noise(value: Any) -> Any:
    """``off`` and ``on`` (the default) in words."""
    value = _switch(value)
    if value in ("off", "on"):
        return NO_NOISE if value == "off" else Noise()
    if not isinstance(value, (dict, Noise)):
        raise ValueError("noise is on, off, or has keys: " + ", ".join(Noise.model_fields))
    return value


class Hosts(Strict):
    """Settings of the end hosts."""

    pacing: Literal["internal", "fq"] = Field(
        "internal", description="TCP's own pacing timer, or the fq qdisc at the sender"
    )
    segmentation: Annotated[Literal["off", "nic", "router"], Switch] = Field(
        "off",
        description="off: TCP sends single packets; nic: it builds segments of up to 64 KiB, cut at the sender's interface; "
        "router: cut behind the bottleneck's queue, as by a router that merges what comes back to back (GRO, on by default in Linux): "
        "the queue counts and drops whole segments (docs/explanation/receive_offload.md)",
    )
    receive_offload: Annotated[Literal["off", "gro", "gro-timer"], Switch] = Field(
        "off",
        description="gro: a host is interrupted once for all packets that come within receive_offload_us of a first one, and merges "
        "those of a flow (GRO), so that ACKs are fewer and senders answer in bursts; gro-timer: the kernel itself puts interrupts "
        "off (gro_flush_timeout, napi_defer_hard_irqs 2), and goes on merging until its next tick, up to 1 ms "
        "(docs/explanation/receive_offload.md)",
    )
    receive_offload_us: Annotated[float, Field(ge=0.001, le=10_000)] | None = Field(
        None,
        description="gro: how long after a packet came the interrupt comes; gro-timer: gro_flush_timeout; default: 50. "
        "With gro it lengthens the RTT by up to twice as much",
    )
    ecn: Annotated[Literal["off", "on", "accurate"], Switch] = Field(
        "off",
        description="whether connections negotiate ECN; accurate: AccECN, which counts marks, in kernel lab-7.3 only (docs/howto/l4s.md); bbr2 and bbr3 use it only with their parameter ecn (docs/reference/bbr_parameters.md)",
    )
    noise: Annotated[Noise, BeforeValidator(_noise, json_schema_input_type=Literal["off", "on"] | Noise)] = _later(
        Noise(),
        description="what no testbed fixes, drawn by the seed: what it adds to an RTT, and what hosts take for each packet; off: an "
        "exact RTT, and hosts that take no time (docs/explanation/phase.md)",
    )
    rmem_max_bytes: SocketBytes | None = Field(None, description="largest receive buffer; default: never the limit")
    wmem_max_bytes: SocketBytes | None = Field(None, description="largest send buffer; default: never the limit")
    rmem_initial_bytes: SocketBytes | None = _later(
        description="receive buffer at the start, from which Linux lets it grow (the second number of tcp_rmem; Linux' default is 131072); default: the largest, at once"
    )
    wmem_initial_bytes: SocketBytes | None = _later(
        description="send buffer at the start, from which Linux lets it grow (the second number of tcp_wmem; Linux' default is 16384); default: 8 MiB, shared among all flows, but 64 KiB each at least, and the largest at most"
    )

    @model_validator(mode="after")
    def _initial_at_most_largest(self) -> Hosts:
        for name in ("rmem", "wmem"):
            initial, largest = getattr(self, f"{name}_initial_bytes"), getattr(self, f"{name}_max_bytes")
            if initial and largest and initial > largest:
                raise ValueError(
                    f"{name}_initial_bytes {initial} is more than {name}_max_bytes {largest}: give at most that"
                )
        return self

    @field_serializer("noise")
    def _in_words(self, noise: Noise) -> str | dict[str, float]:
        return "off" if noise == NO_NOISE else noise.model_dump()

    @property
    def interrupt_delay_us(self) -> float | None:
        """How long after a packet came a host is interrupted, in us; None: at once, for each packet."""
        return (self.receive_offload_us or RECEIVE_OFFLOAD_US) if self.receive_offload == "gro" else None

    @property
    def gro_timer_us(self) -> float | None:
        """The hosts' gro_flush_timeout in us; None: GRO, if it is on, holds nothing back."""
        return (self.receive_offload_us or RECEIVE_OFFLOAD_US) if self.receive_offload == "gro-timer" else None


OFFERED_MBIT = 1250.0  # of Traffic's model by default


class Traffic(Strict):
    """Short flows that come and go, in place of long ones (bbrlab/workload)."""

    mode: Literal["replay", "collapsed", "synthetic"] = Field(
        "replay", description="with its pauses; each flow at once; or sizes and interarrival times drawn independently"
    )
    trace: str = Field(
        "model",
        description="model, or a file made by: bbrlab traffic CAPTURE.pcap --out FILE.csv; relative to the scenario's folder",
    )
    offered_mbit: Annotated[float, Field(ge=0.001, le=100_000)] = Field(
        OFFERED_MBIT,
        description="mean load of the model; refused where the run is too short for the few large flows that make it up: 100 Mbit in all are enough",
    )
    senders: Annotated[int, Field(ge=1, le=16)] = Field(2, description="hosts that take turns in sending a flow")

    @field_validator("trace")
    @classmethod
    def _there(cls, trace: str, info: ValidationInfo) -> str:
        """The file's whole path, so that it means the same wherever the scenario goes."""
        if trace == "model":
            return trace
        kind = " made by: bbrlab traffic CAPTURE.pcap --out FILE.csv"
        return str(existing_file(trace, _folder_of(info), "'model'", kind))


def _some_links(links: Any) -> Any:
    """One link is written as a number."""
    links = str(links) if isinstance(links, int) and not isinstance(links, bool) else links
    if not (isinstance(links, str) and LINKS.fullmatch(links)):
        raise ValueError(
            "give the number of one of network.links (the first is 0), or those of the first and the last, as 0-2"
        )
    return links


class Flow(Strict):
    """A group of equal flows, or of short flows (``traffic``)."""

    cca: str = Field(description=f"{', '.join(KNOWN)}, or the name of your own algorithm (docs/howto/own_algorithm.md)")
    count: Annotated[int, Field(ge=1, le=1000)] = Field(1, description="flows of the group")
    start_s: NonNegative = Field(
        0.0, description="when iperf3 starts; its first data leaves some base RTTs later, as start says"
    )
    start: Literal["in-turn", "together"] = _later(
        "in-turn",
        description="in-turn: as iperf3 -P does it, which opens the connections of a group one after another and sends nothing before "
        "the last is open, so that data begins (count + 4) RTTs after start_s (with more than 128 flows of one RTT: 132); together: all "
        "at once, 5 RTTs after start_s however many there are. Flows with bytes or with RTTs of their own begin after 5 RTTs either way. "
        "Queues on the path, and lost packets, come on top",
    )
    stop_s: Positive | None = Field(None, description="default: the end of the run")
    bytes: Annotated[int, Field(gt=0, le=10**15)] | None = Field(
        None,
        description="size of each flow; default: unlimited. iperf3 sends equal blocks of at most 1 MiB, of whole bytes, so that up to a byte more for each is "
        "sent (10485772 for 10485767)",
    )
    rtt_ms: RttValue | None = Field(None, description="default: network.rtt_ms")
    rtts_ms: Annotated[list[RttMs], Field(min_length=1, max_length=1000)] | None = _later(
        description="base RTT of each of the count flows, in place of rtt_ms"
    )
    direction: Literal["forward", "reverse"] = Field(
        "forward", description="reverse: against the others, through a bottleneck of the same kind"
    )
    links: Annotated[str, BeforeValidator(_some_links, json_schema_input_type=int | str)] | None = _later(
        description="which of network.links its data crosses: a number, or the first and the last (0-2); the first of all is 0; "
        "default: all"
    )
    traffic: Traffic | None = Field(
        None,
        description="short flows in place of count long ones; not possible with network.trace, nor with network.changes of rate_mbit or of "
        "the group's RTT, as a slowdown is over the time that an empty path of one rate and RTT takes",
    )
    ecn: Annotated[Literal["off", "on", "accurate"], Switch] | None = _later(
        description="what the group's senders ask for, of what hosts.ecn allows: off: no ECN; on: the ECN of RFC 3168, where the "
        "hosts' is accurate; default: hosts.ecn"
    )
    params: dict[str, int | float | str | bool] = Field(
        {},
        description="parameters of the CCA; a group's own for bbr2 and bbr3 (docs/reference/bbr_parameters.md), else the same for all "
        "groups with that CCA (of cubic and dctcp: under Parameters of Linux's algorithms)",
    )

    @field_validator("cca")
    @classmethod
    def _is_known(cls, cca: str, info: ValidationInfo) -> str:
        """The name of an algorithm of the field's, or of one whose C file is there."""
        if cca in KNOWN:
            return cca
        own = own_sources((info.context or {}).get(SOURCES, ()))
        if cca not in own:
            raise ValueError(no_such(cca, own))
        return cca

    @field_validator("params")
    @classmethod
    def _ecn_is_a_word(cls, params: dict[str, Any]) -> dict[str, Any]:
        """YAML reads a bare on or off as a truth value; the modules' ``ecn`` is one of three words."""
        if isinstance(params.get("ecn"), bool):
            return params | {"ecn": "on" if params["ecn"] else "off"}
        return params

    @field_validator("params")
    @classmethod
    def _are_defined(cls, params: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Within the limits of the kernel's own algorithms."""
        for name, value in params.items():
            if isinstance(value, str) and not PLAIN_WORD.fullmatch(value):
                raise ValueError(f"{name}: '{value}' is not a plain value (letters, digits and . , : + - only)")
        return checked(info.data.get("cca", ""), params)

    @property
    def has_networks_rtt(self) -> bool:
        """Whether its base RTT is the network's, which may change during the run."""
        return self.rtt_ms is None and self.rtts_ms is None

    @model_validator(mode="after")
    def _consistent(self) -> Flow:
        _rtt(self.rtt_ms)
        if self.rtts_ms is not None and self.rtt_ms is not None:
            raise ValueError("give rtt_ms or rtts_ms, not both")
        if self.rtts_ms is not None and len(self.rtts_ms) != self.count:
            raise ValueError(f"rtts_ms has {len(self.rtts_ms)} RTTs, but the group has count {self.count} flows")
        if self.stop_s is not None and self.stop_s <= self.start_s:
            raise ValueError(f"stop_s {self.stop_s} must be after start_s {self.start_s}")
        if self.traffic is not None:
            for key, plain in (
                ("count", 1),
                ("bytes", None),
                ("start_s", 0.0),
                ("stop_s", None),
                ("direction", "forward"),
                ("rtts_ms", None),
            ):
                if getattr(self, key) != plain:
                    raise ValueError(f"{key} has no meaning for short flows (traffic); leave it out")
            if isinstance(self.rtt_ms, list):
                raise ValueError("rtt_ms of short flows (traffic) is one number")
        for name in self.params:
            if not name.isidentifier():
                raise ValueError(f"params: '{name}' is not a parameter name")
        return self


class Override(Strict):
    """How a scale of config/config.yaml changes one scenario."""

    skip: bool = Field(False, description="leave the figure out at this scale")
    trials: Annotated[int, Field(ge=1, le=10_000)] | None = Field(None, description="in place of the scenario's")
    duration_s: Positive | None = Field(None, description="the same")
    window_s: Annotated[list[NonNegative], Field(min_length=2, max_length=2)] | None = Field(
        None, description="the same"
    )
    cases: Annotated[list[str], Field(min_length=1)] | None = Field(None, description="these cases only")
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] | None = Field(
        None, description="fewer values of these paths"
    )


class Scenario(Strict):
    """One experiment, or with ``cases`` and ``sweep`` a grid of them."""

    name: Name = Field(
        description="a paper's scenario: that of its file, scenarios/PAPER/NAME.yaml; your own: any, and `bbrlab sweep` writes to a folder of this name"
    )
    paper: Name = Field("none", description="that of the folder: scenarios/PAPER/")
    figure: str = Field("", description="what it is in the paper, for people")
    network: Network = Field(description="the path")
    hosts: Hosts = Field(Hosts(), description="the end hosts")
    flows: Annotated[list[Flow], Field(min_length=1)] = Field(description="groups of equal flows")
    duration_s: Annotated[float, Field(gt=0, le=86_000)] = Field(description="length of a run, virtual seconds")
    window_s: Annotated[list[NonNegative], Field(min_length=2, max_length=2)] = Field(
        description="[start, end]: metrics are of this part of the run"
    )
    trials: Annotated[int, Field(ge=1, le=10_000)] = Field(
        3, description="seeds 1 to trials are run, at most as many as the scale allows"
    )
    sample_hz: Annotated[float, Field(ge=1e-5, le=1000)] = Field(10, description="samples per virtual second")
    cases: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")], dict[str, Any]] = Field(
        {}, description="name: {dotted path: value}; every case is combined with the whole sweep"
    )
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        {}, description="{dotted path: [values]}; all combinations are run"
    )
    scales: dict[str, Override] = Field({}, description="what a scale of config.yaml changes")
    _folder: Path | None = PrivateAttr(None)
    _sources: tuple[Path, ...] = PrivateAttr(())
    _overrides: dict[str, Any] = PrivateAttr({})

    @model_validator(mode="before")
    @classmethod
    def _tell_how_long_it_is(cls, content: Any, info: ValidationInfo) -> Any:
        """A file of changes may be longer than the run."""
        if isinstance(content, dict) and isinstance(info.context, dict):
            end_s = content.get("duration_s")
            info.context[END_S] = end_s if isinstance(end_s, int | float) else None
        return content

    @model_validator(mode="after")
    def _has_a_capacity(self) -> Scenario:
        for field, network in (("trace", self.network), ("reverse.grants", self.network.towards("reverse"))):
            opportunities = network.opportunities
            if opportunities and not opportunities.mbit(*self.window_s):
                raise ValueError(
                    f"network.{field} lets no packet through in window_s {self.window_s}; choose another window"
                )
        return self

    @model_validator(mode="after")
    def _has_room_for_the_delay_of_data(self) -> Scenario:
        """It is a part of each RTT."""
        delay_ms = self.network.data_path.delay_ms if self.network.data_path else 0.0
        short = next((i for i, flow in enumerate(self.flows) if flow.traffic is not None), None)
        if delay_ms and short is not None:
            raise ValueError(
                f"flows.{short}.traffic: the times of short flows have the whole RTT on the way of the ACKs; leave "
                "network.data_path.delay_ms out"
            )
        rtts: list[tuple[str, Any]] = [("network.rtt_ms", self.network.rtt_ms)]
        rtts += [(f"network.changes.{i}.rtt_ms", c.rtt_ms) for i, c in enumerate(self.network.changes)]
        rtts += [(f"flows.{i}.rtt_ms", flow.rtt_ms) for i, flow in enumerate(self.flows)]
        rtts += [(f"flows.{i}.rtts_ms", flow.rtts_ms) for i, flow in enumerate(self.flows)]
        for name, value in rtts:
            least_ms = min(value) if isinstance(value, list) else value
            if least_ms is not None and least_ms < delay_ms:
                raise ValueError(
                    f"network.data_path.delay_ms {delay_ms:g} is a part of each RTT, but {name} is {least_ms:g}; set it lower"
                )
        return self

    def towards(self, direction: str) -> Scenario:
        """The same with the network as it is in one direction."""
        network = self.network.towards(direction)
        return self if network is self.network else self.model_copy(update={"network": network})

    def of_link(self, number: int) -> Scenario:
        """The same with one of the network's links as its only one."""
        return self.model_copy(update={"network": self.network.of_link(number)})

    def path_of(self, flow: Flow) -> range:
        """The numbers of the links that a group crosses; 0 alone where there is one bottleneck."""
        if self.network.links is None:
            return range(1)
        if flow.links is None:
            return range(len(self.network.links))
        first, _, last = flow.links.partition("-")
        return range(int(first), int(last or first) + 1)

    def links_of(self, flow: Flow) -> list[Network]:
        """The network as each of the links is that a group crosses (Network.of_link()); itself where there is one bottleneck."""
        return [self.network] if self.network.links is None else [self.network.of_link(i) for i in self.path_of(flow)]

    def draws_rtt(self, flow: Flow) -> bool:
        """Whether the seed draws the RTT of each flow of a group from a range."""
        return flow.rtts_ms is None and isinstance(flow.rtt_ms or self.network.rtt_ms, list)

    def links_rtt_ms(self, flow: Flow) -> float:
        """What the links that a group crosses add to its base RTT."""
        links = self.network.links
        return 0.0 if links is None else sum(links[number].rtt_ms for number in self.path_of(flow))

    @property
    def folder(self) -> Path | None:
        """The folder of the file that the scenario comes from, which files of its sweep are relative to; None: it names no files."""
        return self._folder

    @property
    def sources(self) -> tuple[Path, ...]:
        """C files of algorithms of one's own that its flows may have, beside those in kernels/cca/."""
        return self._sources

    def keep_place(self, folder: Path | None, sources: tuple[Path, ...]) -> None:
        """Remember ``folder`` and ``sources``."""
        self._folder, self._sources = folder, sources

    @property
    def overrides(self) -> dict[str, Any]:
        """{dotted path: value} that somebody set in place of the file's, and that all its points are to have."""
        return self._overrides

    def keep_overrides(self, overrides: dict[str, Any]) -> None:
        """Remember ``overrides``."""
        self._overrides = overrides

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        low, high = self.window_s
        if not low < high <= self.duration_s:
            raise ValueError(
                f"window_s {self.window_s} must lie within the run: 0 <= start < end <= {self.duration_s:g} s; set it, too, for "
                f"example window_s: [{self.duration_s / 5:g}, {self.duration_s:g}] (on the command line: "
                f"--set window_s=[{self.duration_s / 5:g},{self.duration_s:g}])"
            )
        for i, flow in enumerate(self.flows):
            if flow.stop_s is not None and flow.stop_s > self.duration_s:
                raise ValueError(
                    f"flows.{i}.stop_s {flow.stop_s:g} is after the end of the run ({self.duration_s:g} s)"
                )
            for other in self.flows[:i]:
                if other.cca == flow.cca and other.params != flow.params and flow.cca not in PARAMETER_SETS:
                    raise ValueError(
                        f"flows.{i}.params: module parameters hold for a whole kernel, so every {flow.cca} group "
                        f"needs the same ones (found {other.params} and {flow.params})"
                    )
            if flow.traffic is not None:
                self._check_path_of_short(i, flow)
        for at, link in {"network": self.network, "network.reverse": self.network.towards("reverse")}.items():
            if self.hosts.segmentation != "router":
                break
            if (kind := link.qdisc.kind) not in COUNTS_BYTES:
                raise ValueError(
                    f"hosts.segmentation router is not possible with {at}.qdisc.kind {kind}, which "
                    + (
                        "cuts the segments itself"
                        if kind == "cake"
                        else "counts packets: a segment of 64 KiB would be one"
                    )
                    + f" (use nic, or a queue that counts bytes: {', '.join(COUNTS_BYTES)})"
                )
            rates = [link.rate_mbit, *(c.rate_mbit for c in link.changes if c.rate_mbit)]
            if min(rates) < ROUTER_RATE_MBIT_MIN:
                raise ValueError(
                    f"hosts.segmentation router needs a rate of at least {ROUTER_RATE_MBIT_MIN:g} Mbit/s, found {min(rates):g}: a "
                    "segment of 64 KiB would take more than the 60 s that HTB waits for a packet (use nic)"
                )
        self._check_paths()
        random_loss = self.network.loss > 0 or any(c.loss is not None for c in self.network.changes)
        if self.hosts.segmentation == "router" and random_loss and self.network.loss_place == "before":
            raise ValueError(
                "hosts.segmentation router is not possible with network.loss_place before: segments would be cut where the "
                "loss is, before the bottleneck's queue (use nic, or loss_place: behind)"
            )
        policer = self.network.policer
        if self.hosts.segmentation == "router" and policer is not None and policer.place == "before":
            raise ValueError(
                "hosts.segmentation router is not possible with network.policer.place before: it would drop segments of up to 64 KiB "
                "whole (use nic, or place: behind)"
            )
        return self

    def _check_path_of_short(self, i: int, flow: Flow) -> None:
        """ValueError where the path of short flows has not one rate and RTT, which their slowdown is of."""
        if self.draws_rtt(flow):
            raise ValueError(f"flows.{i}.traffic: short flows need one rtt_ms, not a range")
        changes = list(enumerate(self.network.changes))
        others = [
            *(["network.trace"] if self.network.trace is not None else []),
            *(f"network.changes.{n}.rate_mbit" for n, change in changes if change.rate_mbit is not None),
            *(f"network.changes.{n}.rtt_ms" for n, change in changes if change.rtt_ms and flow.has_networks_rtt),
        ]
        if others:
            raise ValueError(
                f"flows.{i}.traffic: short flows are not possible with {others[0]}: their slowdown is over the time that an empty path of "
                "one rate and RTT takes; leave one out"
            )

    def _check_paths(self) -> None:
        """ValueError for flows that cross links that are not there, and for what only one link has."""
        links = self.network.links
        if links is None:
            if at := [i for i, flow in enumerate(self.flows) if flow.links is not None]:
                raise ValueError(
                    f"flows.{at[0]}.links: there is one bottleneck, which every flow crosses; leave it out, or give network.links"
                )
            return
        for i, flow in enumerate(self.flows):
            path = self.path_of(flow)
            if not path or path[-1] >= len(links):
                raise ValueError(
                    f"flows.{i}.links {flow.links}: give one of network.links 0 to {len(links) - 1}, or the first and the last, as 0-{len(links) - 1}"
                )
            for field, plain in (("direction", "forward"), ("traffic", None)):
                if getattr(flow, field) != plain:
                    raise ValueError(
                        f"flows.{i}.{field} is not possible with network.links, over which long flows go forward; leave one out"
                    )
            for rtt_ms in [
                *(flow.rtts_ms or []),
                *(flow.rtt_ms if isinstance(flow.rtt_ms, list) else [flow.rtt_ms or 0]),
            ]:
                if rtt_ms + self.links_rtt_ms(flow) > RTT_MS_MAX:
                    raise ValueError(
                        f"flows.{i}: its RTT and rtt_ms of the links that it crosses must be at most {RTT_MS_MAX} ms together"
                    )
        if self.hosts.segmentation == "router":
            raise ValueError(
                "hosts.segmentation router is not possible with network.links: segments are cut behind the first link (use nic)"
            )


GRID = {"cases", "sweep", "scales"}  # what makes many points of one scenario
NOT_DECISIVE = {"name", "paper", "figure", "trials", *GRID}  # two points that differ in these only have one outcome
CASE = "case"
