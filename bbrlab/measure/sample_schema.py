"""Every column of samples.parquet, acks.parquet and short_flows.parquet: name, unit, axis label, meaning, source.

A new field of tcp_info is one entry here; the decoder (sockets.py) and the tables of docs/reference/results.md follow. BBR's own columns
also need their place in the module's record (bbr_record.py). Columns of one name have the same unit and label in every table.
"""

from __future__ import annotations

from dataclasses import dataclass

from bbrlab.base.arrays import Array
from bbrlab.measure.bbr_record import ACK_PHASES, FLAGS, STATES


@dataclass(frozen=True)
class Column:
    """One column of a table of a run."""

    name: str
    unit: str  # "1" for a ratio or a factor, empty for what is no quantity
    label: str  # short, for an axis, without the unit
    meaning: str  # in a few words, for people
    source: str = ""  # where the number comes from
    # (offset in bytes, NumPy type) in the kernel's struct tcp_info (uapi/linux/tcp.h), for its fields
    tcp_info: tuple[int, str] | None = None


def _tcp(name: str, unit: str, label: str, meaning: str, at: int, kind: str) -> Column:
    return Column(name, unit, label, meaning, "tcp_info", (at, kind))


_TIME = Column("time_s", "s", "time", "virtual time since the experiment's start, one clock for all", "sampler")
_FLOW = Column("flow", "", "flow", "index of the flow; -1: an instant without flows, whose other columns are the bottleneck's", "sampler")  # fmt: skip
_GROUP = Column("group", "", "group", "index of its flow group; -1: none", "the plan")

_TCP_INFO = (
    _tcp("state", "", "TCP state", "of the socket (1: ESTABLISHED)", 0, "u1"),
    _tcp("ca_state", "", "recovery state", "0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss", 1, "u1"),
    _tcp("rto_us", "us", "retransmission timeout", "retransmission timeout", 8, "<u4"),
    _tcp("snd_mss", "bytes", "segment size", "largest segment that the sender sends", 16, "<u4"),
    _tcp("unacked", "packets", "not yet acknowledged", "sent and not yet acknowledged", 24, "<u4"),
    _tcp("sacked", "packets", "selectively acknowledged", "of these, selectively acknowledged", 28, "<u4"),
    _tcp("lost", "packets", "lost", "taken for lost at present", 32, "<u4"),
    _tcp("retrans", "packets", "retransmitted in flight", "retransmitted and not yet acknowledged", 36, "<u4"),
    _tcp("srtt_us", "us", "smoothed RTT", "smoothed RTT (RFC 6298)", 68, "<u4"),
    _tcp("rttvar_us", "us", "RTT's deviation", "the RTT's smoothed deviation (RFC 6298)", 72, "<u4"),
    _tcp("ssthresh", "packets", "slow start threshold", "slow start threshold", 76, "<u4"),
    _tcp("cwnd", "packets", "cwnd", "congestion window", 80, "<u4"),
    _tcp("total_retrans", "packets", "retransmissions", "retransmitted since the flow's start", 100, "<u4"),
    _tcp("pacing_rate", "bytes/s", "pacing rate", "pacing rate", 104, "<u8"),
    _tcp("bytes_acked", "bytes", "acknowledged", "acknowledged since the flow's start", 120, "<u8"),
    _tcp("bytes_received", "bytes", "received", "received by the sender since the flow's start", 128, "<u8"),
    _tcp("segs_out", "packets", "segments sent", "segments sent since the flow's start", 136, "<u4"),
    _tcp("notsent_bytes", "bytes", "not yet sent", "in the socket and not yet sent", 144, "<u4"),
    _tcp("min_rtt_us", "us", "smallest RTT", "smallest RTT of the last five minutes", 148, "<u4"),
    _tcp("data_segs_out", "packets", "data segments sent", "segments with data sent since the flow's start", 156, "<u4"),
    _tcp("delivery_rate", "bytes/s", "delivery rate", "delivery rate of the latest sample", 160, "<u8"),
    _tcp("busy_us", "us", "busy time", "time with unacknowledged data since the flow's start", 168, "<u8"),
    _tcp("rwnd_limited_us", "us", "time limited by the receive window", "of this, limited by the receive window", 176, "<u8"),
    _tcp("sndbuf_limited_us", "us", "time limited by the send buffer", "of this, limited by the send buffer", 184, "<u8"),
    _tcp("delivered", "packets", "delivered", "delivered since the flow's start", 192, "<u4"),
    _tcp("delivered_ce", "packets", "delivered with a mark", "of these, marked (ECN)", 196, "<u4"),
    _tcp("bytes_sent", "bytes", "sent", "sent since the flow's start, retransmissions included", 200, "<u8"),
    _tcp("bytes_retrans", "bytes", "retransmitted", "retransmitted since the flow's start", 208, "<u8"),
)  # fmt: skip
_ANY = "BBR's own record; NaN for other CCAs"
_LAB = "the lab's BBRv2 and BBRv3; NaN for others"
_MODEL = "the lab's BBRv2 and BBRv3, and Google's; NaN for others"
_BBR = (
    Column("bbr_state", "", "state", f"index into {', '.join(STATES)} (bbrlab.measure.bbr_record.STATES); BBRv1's follows from its gains; NaN: not known (before the first ACK of a BBRv1 or of Google's; a record that is neither the lab's, nor Google's, nor BBRv1's)", _ANY),
    Column("bbr_bw", "bytes/s", "BBR's bandwidth", "bandwidth estimate", _ANY),
    Column("bbr_min_rtt_us", "us", "BBR's smallest RTT", "smallest RTT", _ANY),
    Column("bbr_pacing_gain", "1", "pacing gain", "pacing gain", _ANY),
    Column("bbr_cwnd_gain", "1", "cwnd gain", "cwnd gain", _ANY),
    Column("bbr_ack_phase", "", "ACK phase", f"index into {', '.join(ACK_PHASES)}", _LAB),
    Column("bbr_flags", "", "flags", f"sum of 2^index: {', '.join(FLAGS)}", _LAB),
    Column("bbr_round_count", "rounds", "round", "round trips since the flow's start", _LAB),
    Column("bbr_max_bw", "bytes/s", "max_bw", "largest bandwidth of its filter", _MODEL),
    Column("bbr_bw_lo", "bytes/s", "bw_lo", "short-term bound of the bandwidth; infinite: none", _MODEL),
    Column("bbr_inflight_hi", "packets", "inflight_hi", "long-term bound of what is in flight; infinite: none (later drafts: inflight_longterm)", _MODEL),
    Column("bbr_inflight_lo", "packets", "inflight_lo", "short-term bound of what is in flight; infinite: none (later drafts: inflight_shortterm)", _MODEL),
    Column("bbr_extra_acked", "packets", "extra_acked", "acknowledged beyond what the bandwidth explains", _MODEL),
    Column("bbr_ecn_alpha", "1", "ecn_alpha", "smoothed fraction of marked packets", _LAB),
    Column("bbr_losses_seen", "packets", "losses seen", "losses that it was told of since the flow's start", _LAB),
    Column("bbr_undos", "", "undos", "how often a reaction to loss was undone", _LAB),
    Column("bbr_probe_wait_us", "us", "wait to probe", "time that it waits to probe for bandwidth", _LAB),
    Column("bbr_tx_in_flight", "packets", "in flight when sent", "in flight when the packet of the latest rate sample was sent", _LAB),
    Column("bbr_sample_lost", "packets", "lost in the sample", "lost in the latest rate sample", _LAB),
)  # fmt: skip
_QDISC = "qdisc statistics of the bottleneck that the flow crosses; of several links the first"
_QUEUE = (
    Column("queue_bytes", "bytes", "queue", "backlog", _QDISC),
    Column("queue_packets", "packets", "queue", "backlog", _QDISC),
    Column("queue_sent_bytes", "bytes", "sent on", "sent on since it was set up", _QDISC),
    Column("queue_sent_packets", "packets", "sent on", "sent on since it was set up", _QDISC),
    Column("queue_drops", "packets", "dropped", "dropped since it was set up", _QDISC),
    Column("queue_marks", "packets", "marked", "marked (ECN) since it was set up", _QDISC),
)
_RECORD = "TCP, right after the ACK"
_INFO = {c.name: c for c in _TCP_INFO}


def _of_ack(name: str, unit: str, label: str, meaning: str) -> Column:
    return Column(name, unit, label, meaning, _RECORD)


def _as_sampled(name: str) -> Column:
    return _of_ack(name, _INFO[name].unit, _INFO[name].label, _INFO[name].meaning)


_ACK = (
    _of_ack("event", "", "event", "0: an ACK; 1: the retransmission timer expired (before anything is sent again)"),
    _as_sampled("ca_state"),
    _as_sampled("cwnd"),
    _as_sampled("ssthresh"),
    _of_ack("in_flight", "packets", "in flight", "in flight"),
    _of_ack("prior_in_flight", "packets", "in flight before", "in flight before the ACK"),
    _of_ack("acked", "packets", "newly acknowledged", "newly acknowledged"),
    _of_ack("losses", "packets", "newly lost", "newly taken for lost"),
    _as_sampled("delivered"),
    _as_sampled("delivered_ce"),
    _of_ack("lost", "packets", _INFO["lost"].label, "taken for lost since the flow's start"),
    _of_ack("lost_out", "packets", "lost at present", "taken for lost at present"),
    _as_sampled("sacked"),
    _as_sampled("retrans"),
    _as_sampled("total_retrans"),
    _of_ack("rate_delivered", "packets", "delivered in the sample", "delivered in the rate sample; negative: there is none"),
    _of_ack("rate_interval_us", "us", "length of the sample", "over which that was; negative: there is none"),
    _of_ack("rtt_us", "us", "RTT", "RTT of this ACK; negative: there is none"),
    _as_sampled("srtt_us"),
    _as_sampled("rttvar_us"),
    _as_sampled("min_rtt_us"),
    _as_sampled("rto_us"),
    _as_sampled("snd_mss"),
    _of_ack("snd_wnd", "bytes", "receive window", "what the receiver has room for"),
    _as_sampled("notsent_bytes"),
    _as_sampled("pacing_rate"),
    _as_sampled("bytes_sent"),
    _as_sampled("bytes_retrans"),
    _as_sampled("bytes_acked"),
)  # fmt: skip
_ACK_DERIVED = (
    _of_ack("delivery_rate", "bytes/s", _INFO["delivery_rate"].label, "rate_delivered times snd_mss over rate_interval_us; NaN: there is no sample"),
    _of_ack("app_limited", "", "application-limited", "1: the sample's packet was sent while the application had too little to send"),
    _of_ack("sample_retransmitted", "", "sample of a retransmission", "1: the sample's packet was sent more than once"),
    _of_ack("ack_delayed", "", "delayed ACK", "1: the receiver may have waited with this ACK"),
    _of_ack("cwnd_limited", "", "limited by cwnd", "1: the window kept TCP from sending"),
    _of_ack("slow_start", "", "slow start", "1: cwnd is below ssthresh"),
    Column("dctcp_alpha", "1", "DCTCP's alpha", "DCTCP's smoothed fraction of marked packets", "DCTCP's own record; NaN for other CCAs"),
)  # fmt: skip
_SHORT = (
    Column("flow", "", "flow", "index of the short flow within its group's workload", "the workload"),
    Column("chunk", "", "transmission", "number of the transmission within its flow", "the workload"),
    Column("bytes", "bytes", "size", "bytes to send", "the workload"),
    Column("begin_s", "s", "begin", "when it was begun; of a flow's first one, the connection", "the sender"),
    Column("end_s", "s", "end", "when its last byte was read, plus the way back; empty if the run ended before", "the receiver"),
    Column("ideal_s", "s", "completion time in an empty network",
           "one base RTT, one more for the set-up of the flow's connection, and the bytes at the bottleneck's rate", "computed"),
    Column("slowdown", "1", "slowdown", "completion time over ideal_s", "computed"),
    Column("group", "", "group", "index of its flow group", "the plan"),
)  # fmt: skip

SAMPLES: dict[str, Column] = {c.name: c for c in (_TIME, _FLOW, _GROUP, *_TCP_INFO, *_BBR, *_QUEUE)}
"""Of samples.parquet, in the table's order."""
ACKS: dict[str, Column] = {c.name: c for c in (_TIME, _FLOW, *_ACK, *_ACK_DERIVED, *_BBR)}
"""Of acks.parquet, in the table's order."""
SHORT_FLOWS: dict[str, Column] = {c.name: c for c in _SHORT}
"""Of short_flows.parquet, in the table's order."""
COLUMNS: dict[str, Column] = SHORT_FLOWS | ACKS | SAMPLES
"""Of all three; of columns of one name, that of samples.parquet."""

QUEUE_COLUMNS = tuple(c.name.removeprefix("queue_") for c in _QUEUE)
"""The columns of a queue, as a Queue has them."""


def of_link(name: str, number: int) -> str:
    """The column of samples.parquet that has a column of a queue (``queue_bytes``) of one of several links in a row: queue_bytes_link0."""
    return f"{name}_link{number}"


IN_FLIGHT = ("unacked", "sacked", "lost", "retrans")


def packets_in_flight(unacked: Array, sacked: Array, lost: Array, retrans: Array) -> Array:
    """What is in flight, in packets, of the columns IN_FLIGHT: as Linux counts it (tcp_packets_in_flight), the pipe of RFC 6675. As floats, since
    these columns are unsigned."""
    return 1.0 * unacked - sacked - lost + retrans


TCP_INFO: dict[str, tuple[int, str]] = {c.name: c.tcp_info for c in _TCP_INFO if c.tcp_info}
"""{column: (offset in struct tcp_info, NumPy type)}."""
ONLY_READ = {"last_data_sent_ms": (44, "<u4")}
"""The same, of fields that are read of a destroyed socket and are in no table: ms since data was last sent."""
BBR_COLUMNS = tuple(c.name for c in _BBR)
"""NaN where a CCA or kernel does not say."""
ACK_FIELDS = tuple(c.name for c in _ACK)
"""The fields of an ACK's record (ack_records.RECORD) that are columns as they are."""
