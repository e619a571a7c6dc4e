"""Scenarios that mean something at the ends of what is documented: each runs to its end in a guest, or is refused in our words.

``python -m tests.fuzz.meaning --count 3000 --seed 1 --out FOLDER`` tries so many, two guests at once at most; started again it
goes on where it was. FOLDER/outcomes.jsonl has a line for each; what died stays in FOLDER/died/. Every scenario is drawn from
its seed and number alone: kinds of queues with their options, pairs of fields, values at the ends of each field and just
beyond. Networks are small, so that a guest of one second takes a few seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import shutil
import sys
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import dump_yaml
from bbrlab.run.run import run_point
from bbrlab.scenario.load import assign, load_scenario, points_of
from bbrlab.scenario.schema import ANY, QDISC_OPTIONS, Qdisc

BASE: dict[str, Any] = {
    "name": "meaning",
    "network": {"rate_mbit": 10, "rtt_ms": 10, "buffer": {"packets": 50}},
    "flows": [{"cca": "cubic"}, {"cca": "bbr3"}],
    "duration_s": 1,
    "window_s": [0.2, 1],
}
BEYOND = 1e-3  # how far beyond an end a value is tried, as part of it
# Ends of fields: what is documented and what lies just beyond. Where a guest would have much to do (100 Gbit/s, 1000 flows, a
# thousand samples a second) the slow tests try the end itself.
ENDS: dict[str, list[Any]] = {
    "network.rate_mbit": [0.0009, 0.001, 0.01, 0.1, 200],
    "network.rtt_ms": [0.0009, 0.001, 0.1, 500, 10_000, 10_001, [0.001, 20], [5, 5]],
    "network.buffer": [{"bdp": 0.001}, {"bdp": 100}, {"bytes": 1513}, {"bytes": 1514}, {"packets": 1}, {"packets": 20_000}],
    "network.loss": [0, 1e-8, 1e-7, 0.5, 0.9999999, 0.99999999],
    "network.loss_place": ["before", "behind"],
    "network.jitter": [{"kind": k, "ms": ms} for k in ("slotted", "per-packet", "aggregated") for ms in (0.001, 5, 1000)],
    "network.jitter.group": [0, 1, 2],
    "network.reverse": [{"rate_mbit": r, "buffer": b, **q} for r in (0.001, 0.1, 200) for b in ({"packets": 1}, {"bdp": 1}, {"packets": 200}) for q in ({}, {"qdisc": {"kind": "cake", "ack_filter": "aggressive"}}, {"qdisc": {"kind": "fq_codel"}}, {"qdisc": {"kind": "codel", "ecn": True}})],
    "network.reverse.grants": [{"period_ms": p, "bytes": b} for p in (0.01, 0.0101, 5, 1000, 1001) for b in (65, 66, 660, 20_000, 2**30)],
    "network.links": [[{}], [{}, {}], [{}] * 10, [{}] * 11, [{"rate_mbit": 0.001}, {}], [{}, {"rate_mbit": 12_001}], [{"rate_mbit": 5}, {"rate_mbit": 20}], [{"rtt_ms": 0.001}, {"rtt_ms": 500}, {}], [{"rtt_ms": 9999}, {}], [{"buffer": {"packets": 1}}, {"qdisc": {"kind": "fq_codel"}}], [{}, {"buffer": {"bdp": 0.001}, "qdisc": {"kind": "codel", "ecn": True}}, {"qdisc": {"kind": "red", "max_bytes": 20_000}}]],
    "flows.0.links": [0, 1, "0-1", "1-2", "0-9", "1-0", 2, "x", -1],
    "flows.1.links": [0, 1, "0-1"],
    "network.loss_burst_packets": [0.5, 1, 4, 1_000_000],
    "network.mtu_bytes": [575, 576, 1280, 1500, 9000, 9001],
    "network.ip_version": [4, 6, 5, "6", 6.0, None],
    "network.data_path": [{}, *({"delay_ms": ms} for ms in (0.001, 5, 10, 10_000, 10_001)), *({"jitter": {"kind": k, "ms": ms, **o}} for k in ("slotted", "per-packet") for ms in (0.001, 5, 4293, 10_000) for o in ({}, {"order": "free"})), *({"reordering": {"share": share, "late_ms": ms}, **more} for share in (0, 1e-8, 1e-7, 0.5, 0.9999999) for ms in (0.001, 1.3, 200, 10_000) for more in ({}, {"delay_ms": 3, "jitter": {"kind": "per-packet", "ms": 4}}))],
    "network.trace": ["cellular", "leo", "wifi", "nowhere"],
    "network.policer": [{"rate_mbit": r, "burst_bytes": b, **p} for r in (0.001, 5, 12_000) for b in (1513, 1514, 20_000, 2**32 - 1) for p in ({}, {"place": "behind"})],
    "network.changes": [
        [{"at_s": at_s, field: value}]
        for at_s in (0, 0.5, 0.999, 1)
        for field, value in (("rate_mbit", 0.001), ("rate_mbit", 10), ("rate_mbit", 50), ("rtt_ms", 0.001), ("rtt_ms", 2000), ("loss", 0), ("loss", 1e-7))
    ],
    "hosts.pacing": ["internal", "fq"],
    "hosts.segmentation": ["off", "nic", "router"],
    "hosts.receive_offload": ["off", "gro", "gro-timer"],
    "hosts.receive_offload_us": [0.0009, 0.001, 50, 10_000],
    "hosts.ecn": ["off", "on"],
    "hosts.rmem_max_bytes": [4095, 4096, 65_536, 2**31 - 1],
    "hosts.rmem_initial_bytes": [4095, 4096, 131_072, 2**31 - 1],
    "hosts.wmem_initial_bytes": [4095, 4096, 16_384, 2**31 - 1],
    "hosts.wmem_max_bytes": [4095, 4096, 65_536, 2**31 - 1],
    "flows.0.cca": ["bbr1", "bbr2", "bbr3", "cubic", "reno", "dctcp"],
    "flows.0.count": [0, 1, 2, 20],
    "flows.0.start": ["in-turn", "together"],
    "flows.0.start_s": [0, 0.5, 0.999, 1],
    "flows.0.stop_s": [0.3, 1, 1.1],
    "flows.0.bytes": [0, 1, 1448, 10**6, 10**15],
    "flows.0.rtt_ms": [0.001, 1, 300, [1, 9]],
    "flows.0.rtts_ms": [[5], [5, 7], [0.001]],
    "flows.0.direction": ["forward", "reverse"],
    "flows.1.traffic": [{"offered_mbit": 0.001}, {"offered_mbit": 100}, {"mode": "synthetic", "offered_mbit": 100, "senders": 16}, {"mode": "collapsed", "senders": 1}],
    "flows.0.params": [*({"beta": b} for b in (0, 204, 205, 1023, 1024, 0.7)), {"beta": 1, "tcp_friendliness": False}, *({"bic_scale": b} for b in (0, 1, 214_748_364, 214_748_365)), *({"hystart": h} for h in (False, 1, "off", 2)), *({"hystart_detect": d} for d in (0, 3, 4)), {"initial_ssthresh": 1, "hystart": False}, {"hystart_low_window": 2**31 - 1}, {"hystart_ack_delta_us": 0}],
    "flows.1.params": [{"ecn": "on"}, {"ecn": "ignore"}, {"headroom": False}, {"profile": "v3-06"}, {"up_pacing_gain_percent": 10}, {"up_pacing_gain_percent": 1001}],
    "duration_s": [0.2, 1, 1.5],
    "window_s": [[0, 1], [0, 0.001], [0.999, 1], [0.5, 1.1]],
    "sample_hz": [9e-6, 1e-5, 0.5, 10, 100],
}  # fmt: skip
# Words of others, which no user is to meet: tc's, iperf3's, Python's, the kernel's.
FOREIGN = re.compile(
    r"RTNETLINK|Traceback|\bErrno\b|Illegal \"|What is \"|\" is required|Usage:|tc_red_eval|RED: |iperf3: |Error: |Exception|"
    r"the guest hung|killed by signal|ended with status|please report it|Invalid argument|\bNone\b"
)


def ends_of(kind: str, name: str) -> list[Any]:
    """Values at the ends of an option of a kind of queue, beyond them and within."""
    if kind == "red" and name in ("min_bytes", "max_bytes"):
        return [1, 1514, 3000, 20_000, 75_700, 2**30 - 1]
    if kind == "red":
        of_red = {"avpkt_bytes": [1, 64, 1514, 5000], "burst_packets": [1, 2, 5, 50, 10**6, 2**32 - 1], "probability": [1e-9, 1e-4, 0.02, 0.5, 1]}  # fmt: skip
        return of_red.get(name, [True, False])
    if name == "ack_filter":
        return ["off", "on", "aggressive"]
    if name == "isolation":
        return ["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"]
    if name == "l4s_of":
        return ["ect1", "ect"]
    if name == "ecn":
        return [True, False]
    low, high = QDISC_OPTIONS[kind][name] if QDISC_OPTIONS[kind][name] != ANY else (1, 2**32 - 1)
    if "int" in str(Qdisc.model_fields[name].annotation):
        return [int(low), int(high), int(low) - 1, int(high) + 1, int(min(high, low + 20))]
    return [low, high, low * (1 - BEYOND), high * (1 + BEYOND), 5]


def scenario_of(seed: int, number: int) -> dict[str, Any]:
    """The scenario that a seed draws under a number."""
    rng = random.Random(f"meaning:{seed}:{number}")
    content: dict[str, Any] = json.loads(json.dumps(BASE))
    kind = rng.choice([*QDISC_OPTIONS, "fifo"])
    names = list(QDISC_OPTIONS[kind])
    queue = {"kind": kind} | {
        name: rng.choice(ends_of(kind, name))
        for name in rng.sample(names, min(len(names), rng.choice((0, 1, 1, 2, 3))))
    }
    assign(content, "network.qdisc", queue, "meaning")
    for path in rng.sample(list(ENDS), rng.choice((0, 1, 1, 2, 2, 3))):
        if path == "network.jitter.group":
            assign(content, "network.jitter", rng.choice(ENDS["network.jitter"]), "meaning")
        assign(content, path, rng.choice(ENDS[path]), "meaning")
    if ("ecn" in queue or "ce_threshold_ms" in queue) and rng.random() < 0.7:
        assign(content, "hosts.ecn", "on", "meaning")
    return content


def attempt(seed: int, number: int, out: Path) -> dict[str, Any]:
    """What becomes of one of the scenarios: passed, failed (a self-check), refused or died, and what was said."""
    folder = out / "running" / str(number)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "meaning.yaml"
    file.write_text(dump_yaml(scenario_of(seed, number)), encoding="utf-8")
    found: dict[str, Any] = {"number": number}
    try:
        (point,) = points_of(load_scenario(file), str(file))
        summary = run_point(point, 1, folder / "out")
        failed = [f"{c['name']}: asked {c['asked']}, measured {c['measured']}" for c in summary["checks"] if c["ok"] is False]  # fmt: skip
        found |= {"outcome": "failed", "said": "; ".join(failed)} if failed else {"outcome": "passed", "said": ""}
    except UserError as error:
        found |= {"outcome": "died" if FOREIGN.search(str(error)) else "refused", "said": str(error)}
    except Exception:
        found |= {"outcome": "died", "said": traceback.format_exc(limit=-3)}
    if found["outcome"] in ("died", "failed"):
        kept = out / found["outcome"] / str(number)
        kept.parent.mkdir(exist_ok=True)
        shutil.rmtree(kept, ignore_errors=True)
        folder.rename(kept)
    else:
        shutil.rmtree(folder)
    return found


def fuzz(count: int, seed: int, out: Path, guests: int = 2) -> list[dict[str, Any]]:
    """The outcomes of ``count`` scenarios, those that FOLDER/outcomes.jsonl has already included."""
    out.mkdir(parents=True, exist_ok=True)
    record = out / "outcomes.jsonl"
    found = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []
    done = {one["number"] for one in found}
    context = multiprocessing.get_context("spawn")
    with open(record, "a", encoding="utf-8") as file, ProcessPoolExecutor(guests, mp_context=context) as pool:
        for job in as_completed([pool.submit(attempt, seed, n, out) for n in range(count) if n not in done]):
            found.append(job.result())
            file.write(json.dumps(found[-1]) + "\n")
            file.flush()
    return [one for one in found if one["number"] < count]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--guests", type=int, choices=(1, 2), default=2)
    options = parser.parse_args()
    found = fuzz(options.count, options.seed, options.out, options.guests)
    for one in found:
        if one["outcome"] in ("died", "failed"):
            print(f"{one['outcome']}: {options.out}/{one['outcome']}/{one['number']}/meaning.yaml: {one['said']}")
    outcomes = Counter(one["outcome"] for one in found)
    print(f"{len(found)} scenarios: " + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())))
    return 1 if outcomes["died"] else 0


if __name__ == "__main__":
    sys.exit(main())
