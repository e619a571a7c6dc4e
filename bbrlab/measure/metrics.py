"""Every metric of a run: name, unit, axis label, meaning, definition, source. Columns, units, labels and docs come from here.

A new metric is one entry here and the function that computes it (registry.py): in long_flows.py or short_flows.py for one of a
flow group, in bottleneck.py for one of the whole run.

Everything is over the window ``window_s`` = [w0, w1] of virtual time unless the definition says otherwise. A metric is null
where nothing was seen. A mean over the flows of a group is over all of them, or null: it never leaves out those without a
value; where it does, ``over`` names the metric that counts who was in. A window is [w0, w1): a change of the path at w0 counts in
all of it, one at w1 in nothing of it (scenario/rates.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bbrlab.measure.numbers import Value
from bbrlab.measure.sample_schema import COLUMNS

if TYPE_CHECKING:
    from bbrlab.measure.summary import BottleneckEntry, GroupEntry, Measured


@dataclass(frozen=True)
class Metric:
    """One number of a flow group or of a run."""

    name: str  # its key in summary.json and its column in the tables
    unit: str  # "1" for a ratio
    label: str  # short, for an axis, without the unit
    meaning: str  # in a few words, for people
    definition: str  # what is computed from what
    source: str = ""  # whose definition it is: a paper, an RFC, the kernel; empty for a plain count or mean
    over: str = ""  # the metric that says over how many flows a mean is that may leave some out
    # Where it stands in summary.json, for a metric of the run; empty: under ``bottleneck``, by its name
    place: tuple[str, ...] = ()
    # The day from which on results have it (YYYY-MM-DD), of one that came after the first results shipped: it is null in older
    # ones, whose tables may lack its column. Empty: all have it
    since: str = ""
    sometimes: bool = False  # a run that has nothing of the kind leaves it out, of its summary.json and of its tables

    def of_run(self, summary: Measured) -> Value:
        """Its value in a summary.json, for a metric of the run. KeyError if it has none and is not of later versions only."""
        inner: Any = summary
        *parts, last = self.place or ("bottleneck", self.name)
        for key in parts:
            inner = inner[key]
        return self._in(inner, last)

    def of_bottleneck(self, entry: BottleneckEntry) -> Value:
        """Its value in the entry of a bottleneck, for a metric of one: not Jain's index of all flows."""
        return self.of_run(cast("Measured", {"bottleneck": entry}))

    def of_group(self, entry: GroupEntry) -> Value:
        """Its value in the entry of a flow group. KeyError if it has none and is not of later versions only."""
        return self._in(entry, self.name)

    def _in(self, entry: Mapping[str, Any], key: str) -> Value:
        return cast(Value, entry.get(key) if self.since else entry[key])

    @property
    def most(self) -> float:
        """The largest value that it can have: 1 if it is a part of a whole, else there is none. The smallest of all is 0."""
        return 1.0 if self.unit == "1" and self.name not in _NO_PARTS else math.inf

    @property
    def field(self) -> str:
        """Its place among the fields of a summary (results/digest.fields_of())."""
        return f"groups.{self.name}" if self.name in GROUP else ".".join(self.place or ("bottleneck", self.name))


_NO_PARTS = (
    "slowdown_mean",
    "slowdown_p50",
    "slowdown_p95",
    "slowdown_p99",
    "srpt_slowdown_mean",
    "loss_over_delivered",
)
_SAMPLED = "sampled_flows"
_DAY = "2026-11-27"  # when first_data_s came
_BLESS = "Bless et al. 2025"
_PHASE = "mean length of the stays that ended, over the whole run, without those that ProbeRTT cut short; as fine as sample_hz"

_GROUP = (
    Metric("goodput_mbit", "Mbit/s", "goodput", "goodput of the group",
           "bytes newly acknowledged in the window (tcp_info bytes_acked), exact at its edges, over its length: of flows with a size data alone, of others with the 38 bytes of SYN and "
           "iperf3's cookie if they and data are acknowledged in it; of short flows, bytes read by the receiver",
           "RFC 4898, tcpEStatsAppHCThruOctetsAcked"),
    Metric("written_mbit", "Mbit/s", "written", "what the senders' programs wrote to their sockets",
           "bytes sent, each once, and bytes that wait in the socket (tcp_info bytes_sent - bytes_retrans + notsent_bytes), growth in the window over its length, with the 37 of iperf3's cookie: "
           "what iperf3's sender tells as its rate, more than goodput_mbit by what is still in the socket and under way; null for short flows",
           "iperf3, sum_sent", since=_DAY),
    Metric("share_of_capacity", "1", "share of capacity", "goodput over the nominal bottleneck rate",
           "goodput_mbit over the mean nominal rate in the window; a loss-free link reaches payload over frame, 1448/1514 = 0.956",
           "Sarpkaya et al. 2025, Fig. 2"),
    Metric("share_of_goodput", "1", "share of all goodput", "goodput over that of all groups", "goodput_mbit over its sum over all groups"),
    Metric("retransmits", "packets", "retransmits", "segments retransmitted", "growth of tcp_info total_retrans in the window"),
    Metric("jain_index", "1", "Jain's index within the group", "fairness among the flows of the group",
           "(sum x)^2 / (n sum x^2) of the flows' goodputs x; null if all are zero", "Jain, Chiu, Hawe 1984"),
    Metric("rtt_ms_mean", "ms", "smoothed RTT", "mean RTT", "mean over flows of the mean of tcp_info rtt at the window's samples",
           "RFC 6298 (smoothed RTT)", _SAMPLED),
    Metric("ecn_marked", "1", "marked packets over delivered", "fraction of the delivered packets that were marked",
           "sum over flows of tcp_info delivered_ce over the sum of delivered, growth in the window. With AccECN each mark counts; with the ECN of RFC 3168 receivers echo a mark until "
           "the sender's answer arrives, so that all that they acknowledge until then counts, about a round trip's packets", "RFC 3168; RFC 9768"),
    Metric("cwnd_packets", "packets", "congestion window", "congestion windows, summed",
           "sum over flows of the mean of tcp_info snd_cwnd at the window's samples", "", _SAMPLED),
    Metric("cwnd_packets_p50", "packets", "congestion window (median)", "congestion windows, medians, summed",
           "sum over flows of the median of tcp_info snd_cwnd at the window's samples, in which BBR's four packets in ProbeRTT do not count as they do in a mean", "", _SAMPLED, since=_DAY),
    Metric("in_flight_packets", "packets", "packets not yet acknowledged", "packets sent and not yet acknowledged, summed",
           "sum over flows of the mean of tcp_info unacked at the window's samples. What is selectively acknowledged or taken for lost counts, too, so that in loss recovery it can be more "
           "than the window: pipe_packets leaves these out", "", _SAMPLED),
    Metric("pipe_packets", "packets", "packets in flight", "packets in flight, summed",
           "sum over flows of the mean of tcp_info unacked - sacked - lost + retrans at the window's samples, as the kernel counts what is in flight against the window", "RFC 6675 (pipe)",
           _SAMPLED, since="2026-11-28"),
    Metric("min_rtt_ms", "ms", "TCP's smallest RTT", "TCP's smallest RTT, mean over flows",
           "mean over flows of the mean of tcp_info min_rtt at the window's samples: the smallest of the last five minutes (sysctl tcp_min_rtt_wlen). BBR's own is bbr_min_rtt_ms", "",
           _SAMPLED, since="2026-11-28"),
    Metric(_SAMPLED, "flows", "flows sampled", "flows of which something was measured in the window",
           "those over which RTT, window, packets in flight and BBR's estimates are: with a sample and growth of tcp_info delivered in the window. A short finite flow may have no "
           "sample; of one that waits for a retransmission timeout all the time TCP's numbers are older"),
    Metric("first_data_s", "s", "first data", "when the first flow of the group began to send data",
           "since the run's start. By the first sample with data sent, less tcp_info busy_time since iperf3's cookie was acknowledged, which is right to 1 ms; to one interval between samples "
           "where it was idle in between; null for short flows, of which short_flows.parquet has begin_s",
           since=_DAY),
    Metric("last_first_data_s", "s", "last first data", "when the last flow of the group began to send data",
           "as first_data_s; null if one sent none", since=_DAY),
    Metric("completion_s", "s", "completion time", "mean completion time of finite flows, without connection set-up and close",
           "time in which the sender had unacknowledged data (tcp_info busy_time), less that of iperf3's cookie and of the FIN: where no sample lies between those "
           "and the data, one smallest RTT each; null if a flow did not end. Of short flows: mean time from begin to the last byte's "
           "acknowledgement over the transmissions begun in the window, one that is not whole counts with the time up to the end of the run",
           "", "unfinished_flows"),
    Metric("unfinished_flows", "flows", "unfinished flows", "finite flows that did not end within the run", "count; null for a group without a size"),
    Metric("bbr_jitter_ms", "ms", "BBR's estimate of the jitter", "BBR's own estimate of the jitter (bbr2, bbr3)",
           "mean over flows of extra_acked x segment size over the flow's goodput, at the window's samples; the goodput from its group's start_s, if that is in the window, to the last of them", f"{_BLESS}, Fig. 12", _SAMPLED),
    Metric("bbr_jitter_ms_max", "ms", "BBR's largest estimate of the jitter", "largest of BBR's own estimates of the jitter, second by second (bbr2, bbr3)",
           "mean over flows of the largest, over the window's whole seconds, of mean extra_acked x segment size over the second's goodput", f"{_BLESS}, Fig. 12", _SAMPLED,
           since=_DAY),
    Metric("bbr_bw_mbit", "Mbit/s", "BBR's bandwidth estimate", "BBR's own estimate of the bandwidth, summed",
           "sum over flows of the mean of BBR's bw at the window's samples", "", _SAMPLED),
    Metric("bbr_min_rtt_ms", "ms", "BBR's smallest RTT", "BBR's own smallest RTT",
           "mean over flows of the mean of BBR's min_rtt at the window's samples", "", _SAMPLED),
    Metric("startup_s", "s", "time in Startup", "mean stay in Startup", _PHASE, "draft-ietf-ccwg-bbr (states)"),
    Metric("up_s", "s", "time in ProbeBW UP", "mean stay in ProbeBW UP", _PHASE, "draft-ietf-ccwg-bbr (states)"),
    Metric("down_s", "s", "time in ProbeBW DOWN", "mean stay in ProbeBW DOWN", _PHASE, "draft-ietf-ccwg-bbr (states)"),
    Metric("cruise_s", "s", "time in ProbeBW CRUISE", "mean stay in ProbeBW CRUISE", _PHASE, "draft-ietf-ccwg-bbr (states)"),
    Metric("between_probe_rtt_s", "s", "time between ProbeRTTs", "mean time between two entries into ProbeRTT",
           "over the whole run, as fine as sample_hz"),
    Metric("probe_rtt_together", "1", "ProbeRTT together", "part of the flows' stays in ProbeRTT in which all flows of the group are in it at one sample",
           "over the whole run, as fine as sample_hz; null for one flow, and without such a stay", since=_DAY),
    Metric("between_up_s", "s", "time between UPs", "mean time between two entries into ProbeBW UP",
           "over the whole run, as fine as sample_hz"),
    Metric("up_start_queue_ms", "ms", "queueing delay when UP begins", "queueing delay when a stay in UP begins",
           "mean over the stays within the window of the delay at their first sample; mean over flows"),
    Metric("up_peak_queue_ms", "ms", "largest queueing delay of UP", "largest queueing delay of a stay in UP",
           "mean over the stays within the window of the largest delay up to the first sample after it; mean over flows"),
    Metric("cruise_queue_ms_p05", "ms", "queueing delay in CRUISE (5th percentile)", "smallest queueing delays in CRUISE",
           "5th percentile of the delay at the window's samples in CRUISE; mean over flows"),
    Metric("chunks", "transmissions", "transmissions", "short flows: transmissions begun in the window",
           "a transmission is a stretch of a flow's data without a pause of 100 ms", f"{_BLESS}, section VI"),
    Metric("unfinished", "transmissions", "unfinished transmissions", "short flows: of these, those not whole at the end of the run",
           "they count in slowdown and completion time with the time that they have had by then, which is less than they need"),
    Metric("concurrent_max", "transmissions", "concurrent transmissions", "short flows: largest number under way at once", "over the whole run"),
    *(Metric(f"slowdown_{key}", "1", f"slowdown ({words})", f"short flows: slowdown, {words}",
             "of the transmissions begun in the window: completion time over that in an empty network (one base RTT, one more for the set-up "
             "of the flow's connection, and the bytes at the bottleneck's rate), at least 1", f"{_BLESS}, section VI")
      for key, words in (("mean", "mean"), ("p50", "median"), ("p95", "95th percentile"), ("p99", "99th percentile"))),
    Metric("srpt_slowdown_mean", "1", "slowdown under SRPT (mean)", "short flows: mean slowdown of the same transmissions if the bottleneck always served the one with the least bytes left",
           "alone on the link, by the same rule as slowdown_mean. SRPT has the least mean completion time of all orders of service; of the mean "
           "slowdown it is a yardstick (at most twice the least), no bound", "Schrage 1968; Muthukrishnan et al. 1999"),
    Metric("srpt_completion_s", "s", "completion time under SRPT", "short flows: mean completion time of the same transmissions under SRPT",
           "by the same rule as completion_s; no order of service, and so no congestion control, has a lower mean", "Schrage 1968"),
)  # fmt: skip

_PERCENTILE = "linear between samples (NumPy's default, method 7 of Hyndman and Fan 1996)"
QUEUE_CDF_RTTS = (0.05, 0.5, 1, 1.5, 2)  # where the distribution of the queueing delay is told, in base RTTs


def queue_cdf_name(rtts: float) -> str:
    """The metric of the fraction of samples with at most so many base RTTs of queueing delay."""
    return f"queue_cdf_{rtts:g}".replace(".", "_")


_RUN = (
    Metric("jain_index_all", "1", "Jain's index of all flows", "fairness among all long flows of the run",
           "(sum x)^2 / (n sum x^2) of the flows' goodputs x; null without long flows and if all are zero", "Jain, Chiu, Hawe 1984",
           place=("jain_index",)),
    Metric("utilisation", "1", "utilisation", "goodput of all flows over the nominal rate",
           "sum of goodput_mbit over the groups of the bottleneck's direction, over the mean nominal rate", "Sarpkaya et al. 2025; Scherrer et al. 2022"),
    Metric("link_utilisation", "1", "utilisation of the link", "whole frames carried over the nominal rate",
           "growth of the qdisc's sent bytes in the window, over its length and the mean nominal rate"),
    Metric("loss", "1", "lost over sent", "fraction of the packets sent that the bottleneck dropped",
           "drops over drops and packets sent on; null if none came (of a flow: retransmits over segments sent), and null where data crosses it with hosts.segmentation router, whose drops are whole segments: see loss_over_delivered", "Scherrer et al. 2022"),
    Metric("loss_over_delivered", "1", "lost over delivered", "retransmitted over delivered segments",
           "sum over the long flows of the direction of total_retrans, over that of delivered, growth in the window; null if none was delivered",
           "Sarpkaya et al. 2025, Fig. 4 (retransmits x 1500 B / delivered bytes)"),
    Metric("drops", "packets", "dropped packets", "packets dropped at the bottleneck", "growth of the qdisc's drops in the window; with hosts.segmentation router whole segments"),
    Metric("ecn_marks", "packets", "marked packets", "packets marked at the bottleneck",
           "growth of the qdisc's mark counters in the window; CoDel and FQ-CoDel with a ce_threshold: the larger of their two counters, which is a lower bound, for a packet is counted in one of them or in both",
           "RFC 3168"),
    Metric("occupancy", "1", "buffer occupancy", "mean backlog over the buffer", "mean over the window's samples"),
    Metric("occupancy_p50", "1", "buffer occupancy (median)", "median backlog over the buffer", f"of the window's samples, {_PERCENTILE}"),
    Metric("occupancy_p95", "1", "buffer occupancy (95th percentile)", "95th percentile of the backlog over the buffer", f"of the window's samples, {_PERCENTILE}"),
    Metric("queue_ms_mean", "ms", "queueing delay", "mean queueing delay", "backlog bytes x 8 over the nominal rate, at the window's samples; a change of the rate at the window's end is none of it",
           _BLESS, place=("bottleneck", "queue_ms", "mean")),
    *(Metric(f"queue_ms_p{p:02d}", "ms", f"queueing delay ({p}th percentile)", f"{p}th percentile of the queueing delay", f"as the mean; {_PERCENTILE}",
             _BLESS, place=("bottleneck", "queue_ms", f"p{p:02d}"))
      for p in (5, 25, 50, 75, 95, 99)),
    Metric("queue_ms_max", "ms", "largest queueing delay", "largest queueing delay sampled", "as the mean", _BLESS, place=("bottleneck", "queue_ms", "max")),
    *(Metric(queue_cdf_name(rtts), "1", f"fraction of time with at most {rtts:g} RTT of queueing delay",
             f"fraction of the samples with at most {rtts:g} base RTTs of queueing delay", "over the window's samples; base RTT: the mean of a range",
             _BLESS, place=("bottleneck", "queue_cdf", queue_cdf_name(rtts)))
      for rtts in QUEUE_CDF_RTTS),
    *(Metric(f"{queue}_queue_ms_{key}", "ms", f"delay of the {words} queue{end}", f"{of} delay of DualPI2's queue of {flows} flows",
             f"how long the first packet of that queue has waited (tc_dualpi2_xstats, delay_{letter}), 0 if it is empty; {how}", "RFC 9332",
             since=_DAY, sometimes=True)
      for queue, words, flows, letter in (("classic", "classic", "classic", "c"), ("l4s", "L4S", "scalable", "l"))
      for key, end, of, how in (("mean", "", "mean", "mean over the window's samples"),
                                ("p99", " (99th percentile)", "99th percentile of the", f"at the window's samples, {_PERCENTILE}"))),
    *(Metric(f"coupled_probability_{key}", "1", f"DualPI2's probability ({of})", f"{of} of the probability p' by which DualPI2's queues are coupled",
             f"{of} over the window's samples of tc_dualpi2_xstats prob: a packet of a classic flow is marked or dropped with p'^2, one of a scalable flow marked with coupling x p', or by the step",
             "RFC 9332", since=_DAY, sometimes=True)
      for key, of in (("mean", "mean"), ("rms", "root mean square"))),
    Metric("l4s_packets", "1", "packets through the L4S queue", "fraction of the packets that came into DualPI2's queue of scalable flows",
           "growth of tc_dualpi2_xstats packets_in_l in the window over that of packets_in_l and packets_in_c", "RFC 9332", since=_DAY, sometimes=True),
)  # fmt: skip

GROUP: dict[str, Metric] = {m.name: m for m in _GROUP}
"""Metrics of a flow group, in the order of the tables."""
RUN: dict[str, Metric] = {m.name: m for m in _RUN}
"""Metrics of a run; if flows go both ways, of the bottleneck that the first group crosses."""
METRICS: dict[str, Metric] = GROUP | RUN
SUMMED = frozenset({
    "goodput_mbit", "written_mbit", "share_of_capacity", "share_of_goodput", "retransmits", "cwnd_packets", "cwnd_packets_p50",
    "in_flight_packets", "pipe_packets", "bbr_bw_mbit",
})  # fmt: skip
"""Metrics of a flow group that are sums over its flows, so that a group of twice as many has twice as much."""
ALWAYS = tuple(name for name, metric in METRICS.items() if not metric.since)
"""Those that all results have, of whatever version."""


def label_of(name: str) -> str:
    """The axis label of a metric or of a column of a run's tables (sample_schema.py), with its unit unless the words say it;
    of any other column its name."""
    described = METRICS.get(name) or COLUMNS.get(name)
    if described is None:
        return name
    return (
        described.label
        if described.unit in ("", "1") or described.unit in described.label.split()
        else f"{described.label} ({described.unit})"
    )
