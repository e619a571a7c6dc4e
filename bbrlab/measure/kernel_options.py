"""Decodes the options of a qdisc or class from netlink (linux/pkt_sched.h)."""

from __future__ import annotations

import struct

from bbrlab.measure.netlink import attributes_of

TICK_NS = 64  # net/pkt_sched.h, PSCHED_SHIFT
Options = dict[str, float]

# {kind: {attribute: (name, struct format)}} of those whose options are attributes of one number each.
ATTRIBUTES: dict[str, dict[int, tuple[str, str]]] = {
    "codel": {1: ("target_us", "I"), 2: ("limit_packets", "I"), 3: ("interval_us", "I"), 4: ("ecn", "I"),
              5: ("ce_threshold_us", "I")},
    "fq_codel": {1: ("target_us", "I"), 2: ("limit_packets", "I"), 3: ("interval_us", "I"), 4: ("ecn", "I"), 5: ("flows", "I"),
                 6: ("quantum_bytes", "I"), 7: ("ce_threshold_us", "I"), 9: ("memory_bytes", "I"),
                 10: ("ce_threshold_selector", "B"), 11: ("ce_threshold_mask", "B")},
    "pie": {1: ("target_us", "I"), 2: ("limit_packets", "I"), 3: ("tupdate_us", "I"), 4: ("alpha", "I"), 5: ("beta", "I"),
            6: ("ecn", "I")},
    "cake": {2: ("rate_bytes_per_s", "Q"), 5: ("isolation", "I"), 7: ("rtt_us", "I"), 10: ("memory_bytes", "I"),
             16: ("ack_filter", "I")},
    "opportunity": {1: ("bytes", "I"), 3: ("period_ns", "Q"), 4: ("start_ns", "Q"), 5: ("opportunities", "I")},
    "fq": {1: ("limit_packets", "I"), 2: ("flow_limit_packets", "I"), 3: ("quantum_bytes", "I"), 5: ("pacing", "I"),
           8: ("buckets_log", "I"), 12: ("ce_threshold_us", "I")},
    "dualpi2": {1: ("limit_packets", "I"), 2: ("memory_bytes", "I"), 3: ("target_us", "I"), 4: ("tupdate_us", "I"),
                8: ("step_threshold_us", "I"), 10: ("coupling", "B"), 14: ("l4s_of", "B")},
}  # fmt: skip
RED_FLAGS = {"ecn": 1, "harddrop": 2, "adaptive": 4}
RED = struct.Struct("<IIIBBBB")  # tc_red_qopt
HTB = struct.Struct(
    "<2xH2xHI2xH2xHIIIIII"
)  # tc_htb_opt: two tc_ratespec (their overhead, mpu and rate), then its own fields
TBF = struct.Struct("<2xH2xHI12xIII")  # tc_tbf_qopt
POLICE = struct.Struct("<IiIII2xHxxHI")  # tc_police, up to the tc_ratespec of its rate
NETEM = struct.Struct("<IIIIII")  # tc_netem_qopt
NETEM_SLOT = struct.Struct("<qqiiqq")


def options_of(kind: str, options: str) -> Options:
    """{name with unit: number} of a qdisc or class. ValueError or struct.error if it cannot be read.

    Args:
        kind: as the kernel calls it; "htb" for a class of htb.
        options: the attribute TCA_OPTIONS in hex, as report.json has it.
    """
    data = bytes.fromhex(options)
    if kind in ("bfifo", "pfifo"):
        return {"limit_bytes" if kind == "bfifo" else "limit_packets": struct.unpack_from("<I", data)[0]}
    if kind == "netem":
        return _netem(data)
    places = attributes_of(data, 0, len(data))
    if kind == "red":
        return _red(data, places)
    if kind == "htb":
        return _htb(data, places)
    if kind == "tbf":
        return _tbf(data, places)
    return {
        name: struct.unpack_from("<" + form, data, places[at][0])[0]
        for at, (name, form) in ATTRIBUTES.get(kind, {}).items()
        if at in places
    }


def _red(data: bytes, places: dict[int, tuple[int, int]]) -> Options:
    limit, low, high, wlog, plog, _, flags = RED.unpack_from(data, places[1][0])
    if 4 in places:
        flags = struct.unpack_from("<I", data, places[4][0])[0]
    (probability,) = struct.unpack_from("<I", data, places[3][0])
    options: Options = {"limit_bytes": limit, "min_bytes": low, "max_bytes": high, "Wlog": wlog, "Plog": plog,
                        "probability": probability / 2**32}  # fmt: skip
    return options | {name: float(bool(flags & bit)) for name, bit in RED_FLAGS.items()}


def _htb(data: bytes, places: dict[int, tuple[int, int]]) -> Options:
    overhead, mpu, rate, _, _, ceil, burst, _, _, _, _ = HTB.unpack_from(data, places[1][0])
    wide = {at: struct.unpack_from("<Q", data, places[at][0])[0] for at in (6, 7) if at in places}
    rate, ceil = wide.get(6, rate), wide.get(7, ceil)
    return {"rate_bps": 8 * rate, "ceil_bps": 8 * ceil, "burst_bytes": burst * TICK_NS * rate / 1e9, "overhead_bytes": overhead,
            "mpu_bytes": mpu}  # fmt: skip


def _tbf(data: bytes, places: dict[int, tuple[int, int]]) -> Options:
    overhead, _, rate, _, burst, _ = TBF.unpack_from(data, places[1][0])
    rate = struct.unpack_from("<Q", data, places[4][0])[0] if 4 in places else rate
    return {"rate_bps": 8 * rate, "burst_bytes": burst * TICK_NS * rate / 1e9, "overhead_bytes": overhead}


def police_options(options: str) -> Options:
    """{name with unit: number} of an action ``police``, from its attribute TCA_ACT_OPTIONS in hex."""
    data = bytes.fromhex(options)
    places = attributes_of(data, 0, len(data))
    _, action, _, burst, mtu, overhead, mpu, rate = POLICE.unpack_from(data, places[1][0])
    rate = struct.unpack_from("<Q", data, places[8][0])[0] if 8 in places else rate
    return {"rate_bps": 8 * rate, "burst_bytes": burst * TICK_NS * rate / 1e9, "largest_bytes": mtu, "exceed_action": action,
            "overhead_bytes": overhead, "mpu_bytes": mpu}  # fmt: skip


def _span(place: tuple[int, int]) -> tuple[int, int]:
    at, size = place
    return at, at + size


def _netem(data: bytes) -> Options:
    latency, limit, loss, gap, duplicate, jitter = NETEM.unpack_from(data)
    places = attributes_of(data, NETEM.size, len(data))
    wide = {at: struct.unpack_from("<q", data, places[at][0])[0] for at in (10, 11) if at in places}
    (rate,) = (
        struct.unpack_from("<Q", data, places[8][0]) if 8 in places else struct.unpack_from("<I", data, places[6][0])
    )
    options: Options = {
        "delay_us": wide.get(10, latency * TICK_NS) / 1000,
        "jitter_us": wide.get(11, jitter * TICK_NS) / 1000,
        "limit_packets": limit,
        "loss": loss / 2**32,
        "gap": gap,
        "duplicate": duplicate,
        "rate_bytes_per_s": rate,
        "slot_min_us": 0,
        "slot_max_us": 0,
        "at_once": 0,
    }
    if 3 in places:  # tc_netem_reorder
        options["at_once"] = struct.unpack_from("<I", data, places[3][0])[0] / 2**32
    if 5 in places and (model := attributes_of(data, *_span(places[5]))) and 2 in model:  # tc_netem_gemodel
        begins, ends, kept, lost = struct.unpack_from("<IIII", data, model[2][0])
        options |= {
            "burst_begins": begins / 2**32,
            "burst_ends": ends / 2**32,
            "kept_in_burst": kept,
            "lost_outside": lost,
        }
    if 12 in places:
        low, high, *_ = NETEM_SLOT.unpack_from(data, places[12][0])
        options |= {"slot_min_us": low / 1000, "slot_max_us": high / 1000}
    return options
