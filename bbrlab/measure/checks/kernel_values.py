"""Checks every value that was set, read back from the kernel after the experiment, against the scenario.

Each value may be off by the kernel's resolution, which is given below where it is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bbrlab.experiment.hosts import TCP_ECN, loss_devices, sysctls
from bbrlab.experiment.links import name_of, policers, scenario_of
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.plan_types import HostPlan, LinkPlan
from bbrlab.experiment.qdisc import L4S_OF
from bbrlab.experiment.report import HostSettings, Policer, Report, Setting
from bbrlab.measure.checks.check import Check, suffix_of
from bbrlab.measure.kernel_options import TICK_NS, Options, options_of, police_options
from bbrlab.scenario.frames import frame_memory_bytes
from bbrlab.scenario.link_trace import LinkTrace
from bbrlab.scenario.schema import Network, Scenario, burst_probabilities

MOST_TOLD = 3  # differences in a detail, at most
POLICERS_PLACE = "clsact"  # kind of the qdisc that a policer hangs on; it counts its drops, too
NOTHING = "noqueue"  # what the kernel calls a device without a qdisc
RATE_STEP_BPS = 8  # rates are whole bytes a second
LIMITER_BURST_BYTES = 1600  # tc's own default for htb: one packet of up to 1600 bytes
TC_STEP_S = 1e-6  # tc takes a burst's time in whole us
NETEM_PACKETS = 10_000_000  # more than any path holds: never the limit
NETEM_FIFO_BYTES_PER_S = 125_000_000_000  # any rate makes netem a strict queue; this one delays nothing
PROBABILITY_STEP = 2**-32  # probabilities are 32 bits
LOSS_STEP = PROBABILITY_STEP + 5e-11  # tc is given ten decimals
NETEM_STEP_US = 1.065  # tc keeps whole us and hands over steps of 64 ns
SLOT_STEP_US = 0.001  # whole ns
CODEL_STEP_US = 3.1  # tc keeps whole us, CoDel units of 1.024 us, and tells whole us again
AQM_STEP_US = 2.1  # tc keeps whole us, the kernel steps of 64 ns, and tells whole us again
# PIE's timer is in ticks of the kernel's clock: whole ms in the lab's kernels, up to 10 ms in any other.
TUPDATE_STEP_US = {True: 0, False: 10_000}
TC_ACT_SHOT = 2
ACK_FILTER = {"off": 0, "on": 1, "aggressive": 2}
SEGMENT_BYTES_MAX = 65_535
ISOLATION = {"flowblind": 0, "srchost": 1, "dsthost": 2, "hosts": 3, "flows": 4, "dual-srchost": 5, "dual-dsthost": 6,
             "triple-isolate": 7}  # fmt: skip
FQ_PACING = {"limit_packets": 1_000_000, "flow_limit_packets": 1_000_000, "buckets_log": 16}


@dataclass(frozen=True)
class Value:
    """One value: the scenario's field (or a constant of this package), its value, and the range that the kernel may have."""

    field: str
    asked: float
    low: float
    high: float


@dataclass
class Wanted:
    """An expected qdisc or class, with its values: {name of kernel_options: Value}."""

    device: str
    kind: str
    handle: str
    parent: str
    values: dict[str, Value] = field(default_factory=dict)


def about(label: str, asked: float, step: float = 0.0) -> Value:
    """An expected value that may be off by ``step``."""
    return Value(label, asked, asked - step, asked + step)


def at_least(label: str, asked: float) -> Value:
    """An expected minimum."""
    return Value(label, asked, asked, math.inf)


def qdisc_check(scenario: Scenario, plan: Plan, report: Report, link: LinkPlan) -> Check:
    """``qdisc_values``: the limiter's rate and burst and every option of the queue of one bottleneck."""
    device, network = link["device"], scenario_of(scenario, link).network
    is_reverse = "link" not in link and network is not scenario.network
    rate_mbit = _last(network, "rate_mbit", scenario.duration_s)
    rate = about(f"network.{'reverse.' if is_reverse else ''}rate_mbit (bit/s)", 1e6 * rate_mbit, RATE_STEP_BPS)
    step = TICK_NS * rate.asked / 8e9
    kind, values = _queue(network, plan.content["own_machine"])
    if network.opportunities:
        path = "network.reverse.grants" if is_reverse else "network.trace"
        wanted = _opportunities(scenario, network.opportunities, path, report, device)
    elif not is_reverse and ("prompt" in plan.content or any(c.rate_mbit is not None for c in network.changes)):
        burst = at_least("burst of the rate limiter (bytes)", network.frame_bytes - step)
        limiter = {"rate_bps": rate, "burst_bytes": burst, "overhead_bytes": about("overhead", 0)}
        wanted = [
            Wanted(device, "htb", "9:", "root"),
            Wanted(device, "htb", "9:1", "root"),
            Wanted(device, "htb", "9:2", "root"),
            Wanted(device, "pfifo", "90:", "9:2", {"limit_packets": about("queue that wakes the limiter", 0)}),
            Wanted(device, "tbf", "1:", "9:1", limiter),
        ]
    else:
        burst_min = LIMITER_BURST_BYTES - TC_STEP_S * rate.asked / 8 - step
        burst = Value("burst of the rate limiter (bytes)", LIMITER_BURST_BYTES, burst_min, LIMITER_BURST_BYTES + step)
        limiter = {"rate_bps": rate, "ceil_bps": rate, "burst_bytes": burst, "overhead_bytes": about("overhead", 0),
                   "mpu_bytes": about("least size of a packet", 0)}  # fmt: skip
        wanted = [Wanted(device, "htb", "1:", "root"), Wanted(device, "htb", "1:3", "root", limiter)]
    wanted.append(Wanted(device, kind, "30:", "1:3", values))
    wanted += _policers_places(scenario, plan, {device})
    name = "qdisc_values" + suffix_of(name_of(link))
    settings = [entry for entry in report["settings"]["ports"] if entry["device"] == device]
    return values_check(name, compare(wanted, settings), "values of the bottleneck's rate limiter and queue")


def path_check(scenario: Scenario, plan: Plan, report: Report) -> Check:
    """``path_values``: delay, jitter, loss, and interrupts of every port but the bottlenecks'."""
    bottlenecks = {link["device"] for link in plan.content["bottlenecks"]}
    ports = {f"{h['switch']}-{h['name']}" for h in plan.content["hosts"]}
    ports |= {f"{a}-{b}" for pair in plan.content["switch_links"] for a, b in (pair, pair[::-1])}
    settings = [e for e in report["settings"]["ports"] if e["device"] in ports - bottlenecks and e["kind"] != NOTHING]
    wanted = [*ports_wanted(scenario, plan, scenario.network), *_policers_places(scenario, plan, ports - bottlenecks)]
    return values_check(
        "path_values", compare(wanted, settings), "values of the path's delay, jitter, loss and interrupts"
    )


def host_check(scenario: Scenario, plan: Plan, report: Report) -> Check:
    """``host_values``: sysctls, qdisc and interface of every host."""
    problems: list[str | None] = []
    for name, entry in report["settings"]["hosts"].items():
        wanted = _host_qdiscs(scenario, plan, name)
        settings = [s for s in entry["qdiscs"] if s["kind"] != NOTHING]
        problems += compare(wanted, [{**s, "handle": ""} for s in settings])
        problems += [
            difference(f"{name}: {v.field}", v, actual) for v, actual in _host_values(scenario, plan, name, entry)
        ]
    if plan.content["own_machine"]:
        has = report["settings"]["tcp_mem"]
        limits = about("net.ipv4.tcp_mem (pages; never the limit)", 1 << 28)
        problems += [difference(limits.field, limits, float(word)) for word in has.split()]
    if plan.content["virtual"]:  # hosts of other machines are not exact by themselves
        late = about(
            "hosts.noise.processing_us (pacing_late_ns of kernels/patches/lateness)", plan.content["pacing_late_ns"]
        )
        has_ns = report["settings"]["pacing_late_ns"]
        if late.asked or has_ns is not None:
            problems.append(difference(late.field, late, has_ns))
    return values_check("host_values", problems, "values of the hosts' kernels and interfaces")


def _last(network: Network, name: str, end_s: float) -> float:
    """The value of a field of the path at the end of the run, after the last change of it that the run comes to."""
    later = [
        c for c in sorted(network.changes, key=lambda c: c.at_s) if getattr(c, name) is not None and c.at_s <= end_s
    ]
    last: float = getattr(later[-1] if later else network, name)
    return last


def _queue(network: Network, own_machine: bool) -> tuple[str, dict[str, Value]]:
    """The kernel's kind of the queue, and its options."""
    qdisc, size = network.qdisc, network.buffer_bytes
    packets = max(1, size // network.frame_bytes)
    values = {"limit_packets": about("network.buffer (packets)", packets)}
    memory = {
        "memory_bytes": at_least(
            "network.buffer (bytes of memory)", packets * frame_memory_bytes(network.payload_bytes)
        )
    }
    if qdisc.kind == "fifo":
        return "bfifo", {"limit_bytes": about("network.buffer (bytes)", size)}
    if qdisc.kind == "red":
        return "red", _red(network)
    if qdisc.kind in ("fq_codel", "dualpi2"):
        values |= memory
    if qdisc.kind == "fq_codel" and qdisc.l4s_of is not None:  # a mask of 0 is all
        selector, mask = (1, 3) if qdisc.l4s_of == "ect1" else (0, 0)
        values["ce_threshold_selector"] = about("network.qdisc.l4s_of", selector)
        values["ce_threshold_mask"] = about("network.qdisc.l4s_of (mask)", mask)
    if qdisc.kind == "dualpi2":
        values["l4s_of"] = about("network.qdisc.l4s_of", L4S_OF[qdisc.l4s_of or "ect1"])
    if qdisc.kind == "cake":
        values = memory | {
            "rate_bytes_per_s": about("cake's own rate limiter (none)", 0),
            "ack_filter": about("network.qdisc.ack_filter", ACK_FILTER[qdisc.ack_filter or "off"]),
            "isolation": about("network.qdisc.isolation", ISOLATION[qdisc.isolation or "triple-isolate"]),
        }
    if qdisc.kind == "fq":
        values |= {
            "pacing": about("pacing of fq at the bottleneck (none)", 0),
            "flow_limit_packets": about("network.qdisc.flow_limit_packets", qdisc.flow_limit_packets or packets),
        }
    aqm = CODEL_STEP_US if qdisc.kind in ("codel", "fq_codel") else AQM_STEP_US
    steps = dict.fromkeys(("target", "interval", "ce_threshold", "rtt"), aqm)
    steps |= {"step_threshold": 0.0, "tupdate": TUPDATE_STEP_US[own_machine]}
    for name, step in steps.items():
        if (asked_ms := getattr(qdisc, f"{name}_ms")) is not None:
            values[f"{name}_us"] = about(f"network.qdisc.{name}_ms (us)", 1000 * asked_ms, step)
    for name in ("ecn", "alpha", "beta", "flows", "coupling", "quantum_bytes"):
        if (number := getattr(qdisc, name)) is not None:
            values[name] = about(f"network.qdisc.{name}", number)
    return qdisc.kind, values


def _red(network: Network) -> dict[str, Value]:
    """RED's thresholds (derived from the buffer where the scenario leaves them out) and parameters that follow from them."""
    qdisc, size = network.qdisc, network.buffer_bytes
    red = qdisc.thresholds(size, network.frame_bytes)
    low, high = qdisc.min_bytes or red.min_bytes, qdisc.max_bytes or red.max_bytes
    probability = qdisc.probability or red.probability
    burst, average = qdisc.burst_packets or red.burst_packets, qdisc.avpkt_bytes or red.avpkt_bytes
    values = {
        "limit_bytes": about("network.buffer (bytes)", size),
        "min_bytes": about("network.qdisc.min_bytes", low),
        "max_bytes": about("network.qdisc.max_bytes", high),
        "Wlog": about("network.qdisc.burst_packets (as Wlog)", _wlog(low, burst, average)),
        "Plog": about("network.qdisc.probability (as Plog)", _plog(high - low, probability)),
        "ecn": about("network.qdisc.ecn", bool(qdisc.ecn)),
        "harddrop": about("network.qdisc.harddrop", bool(qdisc.harddrop)),
        "adaptive": about("network.qdisc.adaptive", bool(qdisc.adaptive)),
    }
    if not qdisc.adaptive:  # it changes the probability as it runs
        values["probability"] = about("network.qdisc.probability", probability, PROBABILITY_STEP)
    return values


def _wlog(low: float, burst: float, average: float) -> int:
    """The weight of RED's average as a power of two: iproute2's tc_red_eval_ewma."""
    room = burst + 1 - low / average
    return next((w for w in range(1, 32) if room <= (1 - (1 - 2.0**-w) ** burst) * 2.0**w), 32)


def _plog(span: float, probability: float) -> int:
    """The slope of RED's probability as a power of two: iproute2's tc_red_eval_P."""
    return next((p for p in range(32) if probability / span * 2.0**p > 1), 32)


def _opportunities(scenario: Scenario, trace: LinkTrace, name: str, report: Report, device: str) -> list[Wanted]:
    """A link that sends at given times: bytes at each, their number, period and start."""
    first_ns = int(trace.times_ns[0])
    within = int((trace.times_ns <= max(first_ns, round(scenario.duration_s * 1e9))).sum())
    values = {
        "bytes": about(f"bytes that leave at each time of {name}", trace.bytes),
        "opportunities": about(f"times of {name} in the run's first turn", within),
        "period_ns": about(f"length of {name} (ns)", trace.period_ns),
        "start_ns": about(f"first time of {name} (ns)", report["start_ns"] + first_ns),
    }
    return [Wanted(device, "opportunity", "1:", "root", values), Wanted(device, "opportunity", "1:1", "1:")]


def _policers_places(scenario: Scenario, plan: Plan, devices: set[str]) -> list[Wanted]:
    return [
        Wanted(entry["device"], POLICERS_PLACE, "ffff:", "ffff:fff1")
        for entry in policers(scenario, plan.content["hosts"])
        if entry["device"] in devices
    ]


def policer_values_check(scenario: Scenario, entry: Policer) -> Check:
    """``policer_values``: rate, bucket and action of one policer."""
    policer = scenario.network.policer
    assert policer is not None
    rate = about("network.policer.rate_mbit (bit/s)", 1e6 * policer.rate_mbit, RATE_STEP_BPS)
    step = TC_STEP_S * rate.asked / 8 + TICK_NS * rate.asked / 8e9
    wanted = {
        "rate_bps": rate,
        "burst_bytes": about("network.policer.burst_bytes", policer.burst_bytes, step),
        "largest_bytes": at_least("largest packet (bytes)", SEGMENT_BYTES_MAX),
        "exceed_action": about("what happens to a packet that exceeds it (drop)", TC_ACT_SHOT),
        "overhead_bytes": about("overhead", 0),
        "mpu_bytes": about("least size of a packet", 0),
    }
    has = police_options(entry["options"])
    problems = [difference(f"{entry['device']} police: {v.field}", v, has.get(name)) for name, v in wanted.items()]
    return values_check("policer_values", problems, "values of the policer")


def ports_wanted(scenario: Scenario, plan: Plan, network: Network, devices: set[str] | None = None) -> Iterator[Wanted]:
    """The netem of every port (or of ``devices``), as ``network`` has them at its end."""
    hosts = plan.content["hosts"]
    lossy = (
        plan.content["loss_devices"] if "prompt" in plan.content else loss_devices(scenario, hosts)
    )  # it might have been set
    losses = _losses(network, scenario.duration_s)
    base = {
        "limit_packets": about("limit of netem", NETEM_PACKETS),
        "gap": about("gap", 0),
        "duplicate": about("duplicate", 0),
    }
    nothing = {
        n: about(n, 0) for n in ("delay_us", "jitter_us", "slot_min_us", "slot_max_us", "rate_bytes_per_s", "loss")
    }
    if network.data_path:  # nowhere else does a scenario have it, whose summary counts the values
        nothing["at_once"] = about("packets that overtake", 0)
    delays_us = _delays_us(scenario, plan, network)
    for host in hosts:
        port = f"{host['switch']}-{host['name']}"
        if devices is not None and port not in devices:
            continue
        of_data = _data_delay(network) if host["receives"] else {}
        above = host["sends"] or port in lossy or bool(of_data)
        if above:
            values = base | nothing | {"rate_bytes_per_s": about("rate of netem", NETEM_FIFO_BYTES_PER_S)}
            values |= (losses if port in lossy else {}) | of_data
            if host["sends"] and host["name"] in delays_us:
                values |= _delay(scenario, host, *delays_us[host["name"]])
            elif host["sends"]:  # nobody used it (bbrlab play): nothing was asked of it
                for name in ("delay_us", "jitter_us", "slot_min_us", "slot_max_us"):
                    del values[name]
            yield Wanted(port, "netem", "2:", "root", values)
        if scenario.hosts.interrupt_delay_us:
            slot = about("hosts.receive_offload_us", scenario.hosts.interrupt_delay_us, SLOT_STEP_US)
            values = base | nothing | {"slot_min_us": slot, "slot_max_us": slot}
            yield Wanted(port, "netem", "3:", "2:" if above else "root", values)
    ports = {f"{h['switch']}-{h['name']}" for h in hosts}
    for device in lossy:
        if device not in ports and (devices is None or device in devices):
            yield Wanted(device, "netem", "2:", "root", base | nothing | losses)
    if network.data_path and (late := network.data_path.reordering):
        on_time = "network.data_path.reordering.share (of packets that are not late)"
        values = base | nothing | {
            "gap": about("gap", 1), "at_once": about(on_time, 1 - late.share, LOSS_STEP),
            "delay_us": about("network.data_path.reordering.late_ms (us)", 1000 * late.late_ms, NETEM_STEP_US),
        }  # fmt: skip
        late_devices = {f"{h['side']}-{h['switch']}" for h in hosts if h["receives"]}
        for device in sorted(late_devices if devices is None else late_devices.intersection(devices)):
            yield Wanted(device, "netem", "2:", "root", values)


def _data_delay(network: Network) -> dict[str, Value]:
    """netem's values for the delay of data towards a receiver; empty without a delay."""
    path = network.data_path
    if path is None or not (path.delay_ms or path.jitter):
        return {}
    per_packet_us = 1000 * path.jitter.ms if path.jitter and path.jitter.kind == "per-packet" else 0.0
    what = "network.data_path.delay_ms" + (" and half of jitter.ms" if per_packet_us else "")
    values = {
        "delay_us": about(f"{what} (us)", 1000 * path.delay_ms + per_packet_us / 2, NETEM_STEP_US),
        "jitter_us": about("half of network.data_path.jitter.ms (us)", per_packet_us / 2, NETEM_STEP_US),
    }
    if path.jitter and path.jitter.kind == "slotted":
        values["slot_max_us"] = about("network.data_path.jitter.ms (us)", 1000 * path.jitter.ms, SLOT_STEP_US)
    if path.jitter and path.jitter.order == "free":
        values["rate_bytes_per_s"] = about("rate of netem (none, so that packets overtake)", 0)
    return values


def _losses(network: Network, end_s: float) -> dict[str, Value]:
    """netem's values for the random loss at the end of the run."""
    loss = _last(network, "loss", end_s)
    if network.loss_burst_packets is None or not loss:
        return {"loss": about("network.loss", loss, LOSS_STEP)}
    begins, ends = burst_probabilities(loss, network.loss_burst_packets)
    return {
        "burst_begins": about("network.loss (how often a burst begins)", begins, LOSS_STEP),
        "burst_ends": about("network.loss_burst_packets (how often a burst ends)", ends, LOSS_STEP),
        "kept_in_burst": about("packets that a burst lets through", 0),
        "lost_outside": about("packets that are lost outside of bursts", 0),
    }


def _delays_us(scenario: Scenario, plan: Plan, network: Network) -> dict[str, tuple[float, int]]:
    """{sending host: what of its base RTT is on the way of its ACKs, at the end of ``network``, and a group that has it}."""
    transfers = plan.content["transfers"]
    used = [(transfers[f.transfer]["client"], f.rtt_ms, f.group) for f in plan.flows]
    used += [(client, e["rtt_ms"], e["group"]) for e in plan.content["short_flows"] for client in e["clients"]]
    changes = any(c.rtt_ms is not None and c.at_s <= scenario.duration_s for c in network.changes)
    offset_us = {host["name"]: host["rtt_offset_us"] for host in plan.content["hosts"]}
    delays = {}
    for client, rtt_ms, group in used:
        changed = changes and scenario.flows[group].has_networks_rtt
        rtt_now_ms = _last(network, "rtt_ms", scenario.duration_s)
        base_us = 1000 * rtt_now_ms + offset_us[client] if changed else 1000 * rtt_ms
        delays[client] = base_us - (1000 * network.data_path.delay_ms if network.data_path else 0.0), group
    return delays


def _delay(scenario: Scenario, host: HostPlan, delay_us: float, group: int) -> dict[str, Value]:
    jitter = scenario.network.jitter
    shaken = jitter if jitter and jitter.group in (None, group) else None
    per_packet_us = 1000 * shaken.ms if shaken and shaken.kind == "per-packet" else 0.0
    half_us = (per_packet_us + scenario.hosts.noise.processing_us) / 2  # netem draws around the delay
    what = "half of hosts.noise.processing_us" + (" and network.jitter.ms" if per_packet_us else "")
    values = {
        "delay_us": about(f"RTT of {host['name']} and {what} (us)", delay_us + half_us, NETEM_STEP_US),
        "jitter_us": about(f"{what} (us)", half_us, NETEM_STEP_US),
    }
    if shaken and not per_packet_us:
        slot = about("network.jitter.ms (us)", 1000 * shaken.ms, SLOT_STEP_US)
        values |= {"slot_max_us": slot} | ({"slot_min_us": slot} if shaken.kind == "aggregated" else {})
    return values


def _host_qdiscs(scenario: Scenario, plan: Plan, name: str) -> list[Wanted]:
    """The expected qdisc of a host's interface."""
    device = name + "-eth0"
    if not plan.content[
        "own_machine"
    ]:  # it lets packets go as the lab's kernels do by themselves (mininet/dumbbell.py)
        delay = about("delay at the sender's interface (us)", 1.0, NETEM_STEP_US)
        return [Wanted(device, "netem", "", "root", {"delay_us": delay})]
    if scenario.hosts.pacing != "fq":
        return []
    return [Wanted(device, "fq", "", "root", {k: about(f"{k} of the sender's fq", v) for k, v in FQ_PACING.items()})]


def _host_values(scenario: Scenario, plan: Plan, name: str, entry: HostSettings) -> Iterator[tuple[Value, float]]:
    hosts = scenario.hosts
    own = next(host for host in plan.content["hosts"] if host["name"] == name).get("sysctls", {})
    has = {key: [float(word) for word in text.split()] for key, text in entry["sysctls"].items()}
    rtts_ms = [f.rtt_ms for f in plan.flows] + [e["rtt_ms"] for e in plan.content["short_flows"]]
    room = sysctls(scenario, max(rtts_ms), max(1, len(plan.flows)))
    for kind in ("rmem", "wmem"):
        key, label, given = f"net.ipv4.tcp_{kind}", f"hosts.{kind}_max_bytes", getattr(hosts, f"{kind}_max_bytes")
        never = at_least(f"{label} (never the limit)", float(str(room[key]).split()[2]))
        yield about(label, given) if given else never, has[key][2]
        if initial := getattr(hosts, f"{kind}_initial_bytes"):
            yield about(f"hosts.{kind}_initial_bytes", initial), has[key][1]
    ecn = about("hosts.ecn (net.ipv4.tcp_ecn)", TCP_ECN[hosts.ecn])
    if "net.ipv4.tcp_ecn" in own:
        ecn = about("flows.ecn (net.ipv4.tcp_ecn)", own["net.ipv4.tcp_ecn"])
    yield ecn, has["net.ipv4.tcp_ecn"][0]
    yield about("net.ipv4.tcp_no_metrics_save", 1), has["net.ipv4.tcp_no_metrics_save"][0]
    if plan.content["virtual"]:
        (reachable,) = (value for key, value in has.items() if "neigh" in key)
        yield (
            at_least("base_reachable_time_ms (no ARP, of IPv6 no neighbour discovery, while flows run)", 1e9),
            reachable[0],
        )
    segments = about("hosts.segmentation (gso_max_segs)", 1) if hosts.segmentation == "off" else at_least("hosts.segmentation (gso_max_segs)", 2)  # fmt: skip
    yield segments, entry["gso_max_segs"]
    yield (
        about("hosts.receive_offload (napi_defer_hard_irqs)", 2 if hosts.gro_timer_us else 0),
        entry["deferred_interrupts"],
    )


def compare(wanted: Iterable[Wanted], settings: Iterable[Setting]) -> list[str | None]:
    """For each value, and each qdisc and class, the difference in words; None if there is none."""
    unexpected = {(s["device"], s["handle"], s["parent"]): s for s in settings}
    problems: list[str | None] = []
    for expected in wanted:
        has = unexpected.pop((expected.device, expected.handle, expected.parent), None)
        place = f"{expected.device} {expected.kind}"
        if has is None or has["kind"] != expected.kind:
            problems.append(f"{place}: is not there (in its place: {has['kind'] if has else 'nothing'})")
            continue
        options: Options = options_of(expected.kind, has["options"]) if expected.values else {}
        problems.append(None)
        problems += [difference(f"{place}: {v.field}", v, options.get(name)) for name, v in expected.values.items()]
    problems += [f"{device} {s['kind']}: was not asked for" for (device, _, _), s in unexpected.items()]
    return problems


def difference(label: str, value: Value, actual: float | None) -> str | None:
    """How a value differs, in words; None: it does not."""
    if actual is not None and value.low <= actual <= value.high:
        return None
    return f"{label}: asked {value.asked:.12g}, the kernel has {'none' if actual is None else f'{actual:.12g}'}"


def values_check(name: str, differences: list[str | None], what: str) -> Check:
    """The check that nothing differs (difference())."""
    reported = [d for d in differences if d is not None]
    detail = "; ".join(reported[:MOST_TOLD]) or f"{what}, read back from the kernel"
    if reported[MOST_TOLD:]:
        detail += f"; and {len(reported) - MOST_TOLD} more"
    return Check(name, len(differences), len(differences) - len(reported), not reported, detail)
