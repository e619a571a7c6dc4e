"""Files as tools of a testbed write them, made of samples: iperf3's JSON, ss output, flent's data."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

MSS_BYTES = 1448
EPOCH_S = 1_700_000_000


def of_run(folder: Path) -> list[pd.DataFrame]:
    """The samples of each flow of a run, as this module takes them."""
    table = pd.read_parquet(folder / "samples.parquet")
    found = []
    for _, rows in table[(table["flow"] >= 0) & (table["bytes_acked"] > 0)].groupby("flow"):
        found.append(pd.DataFrame({
            "time_s": rows["time_s"], "acked": rows["bytes_acked"], "rtt_ms": rows["srtt_us"] / 1e3, "cwnd": rows["cwnd"],
            "lost": rows["total_retrans"],
        }).reset_index(drop=True))  # fmt: skip
    return found


def flow(cca: str, seconds: float = 40, rate_mbit: float = 47.8, rtt_ms: float = 40.0, queue_ms: float = 60.0, every_s: float = 0.1, start_s: float = 0.0) -> pd.DataFrame:  # fmt: skip
    """Samples of a flow that has an algorithm's marks: a sawtooth for cubic and reno, ProbeRTTs for bbr1 and bbr3."""
    time_s = np.arange(1, round(seconds / every_s) + 1) * every_s
    bdp = rate_mbit * 1e6 * rtt_ms * 1e-3 / 8 / MSS_BYTES
    queue, lost, window = np.zeros(len(time_s)), np.zeros(len(time_s)), np.full(len(time_s), 2 * bdp)
    if cca in ("cubic", "reno"):
        beta, most = {"cubic": 0.7, "reno": 0.5}[cca], bdp * (1 + queue_ms / rtt_ms)
        phase = (time_s % 5) / 5
        window = most * (beta + (1 - beta) * phase)
        queue = np.maximum(0, window / bdp - 1) * rtt_ms
        queue[:3] = 0
        lost = np.cumsum(np.concatenate([[0], np.diff(phase) < 0]) * 20)
    else:
        every, floor = {"bbr1": (10.2, 4), "bbr3": (5.2, bdp / 2)}[cca]
        window = np.where((time_s % every < 0.21) & (time_s > 2), floor, window)
        queue = np.where(time_s < 1, queue_ms, queue_ms / 10)
        queue[:3] = 0
        lost = np.where(time_s < 1, 0, 30)
    return pd.DataFrame({
        "time_s": time_s + start_s, "acked": np.cumsum(np.full(len(time_s), rate_mbit * 1e6 / 8 * every_s)), "rtt_ms": rtt_ms + queue,
        "cwnd": np.maximum(window, 1).astype(int), "lost": lost,
    })  # fmt: skip


def iperf3(flows: Sequence[pd.DataFrame], cca: str = "", **start: Any) -> dict[str, Any]:
    """What iperf3 -J writes of streams of one process."""
    begin_s = min(f["time_s"].iloc[0] for f in flows)
    records = [f.to_dict("records") for f in flows]
    intervals = []
    for i in range(1, min(map(len, flows))):
        streams = []
        for number, rows in enumerate(records):
            now, before = rows[i], rows[i - 1]
            seconds, data = now["time_s"] - before["time_s"], int(now["acked"] - before["acked"])
            streams.append({
                "socket": 5 + 2 * number, "start": before["time_s"] - begin_s, "end": now["time_s"] - begin_s, "seconds": seconds,
                "bytes": data, "bits_per_second": data * 8 / seconds, "retransmits": int(now["lost"] - before["lost"]),
                "snd_cwnd": int(now["cwnd"]) * MSS_BYTES, "rtt": int(now["rtt_ms"] * 1e3), "rttvar": 100, "pmtu": 1500, "omitted": False,
                "sender": True,
            })  # fmt: skip
        intervals.append({"streams": streams, "sum": {"sender": True}})
    return {
        "start": {
            "version": "iperf 3.12", "system_info": "Linux testbed 5.15.0-91-generic #101-Ubuntu SMP", "tcp_mss_default": MSS_BYTES,
            "timestamp": {"time": "", "timesecs": EPOCH_S + int(begin_s)}, "cookie": cca + str(sum(int(f.sum().sum()) for f in flows)),
            "test_start": {"protocol": "TCP", "num_streams": len(flows), "omit": 0, "reverse": 0, "target_bitrate": 0}, **start,
        },
        "intervals": intervals,
        "end": {"streams": [{"sender": {}}], **({"sender_tcp_congestion": cca} if cca else {})},
    }  # fmt: skip


def json_stream(test: dict[str, Any]) -> str:
    """The same as iperf3 --json-stream writes it."""
    events = [("start", test["start"]), *(("interval", i) for i in test["intervals"]), ("end", test["end"])]
    return "".join(json.dumps({"event": name, "data": data}) + "\n" for name, data in events)


def ss(flows: Sequence[tuple[str, pd.DataFrame]], stamps: Literal["before", "behind", ""] = "before", more: str = "") -> str:  # fmt: skip
    """What ss -tin prints again and again at the times of the first flow, with a time before each print, behind it, or without."""
    lines = []
    for time_s in flows[0][1]["time_s"]:
        if stamps == "before":
            lines.append(f"{EPOCH_S + time_s:.6f}")
        lines.append("State Recv-Q Send-Q Local Address:Port Peer Address:Port Process")
        for number, (cca, f) in enumerate(flows):
            there = np.flatnonzero(np.isclose(f["time_s"], time_s))
            if not len(there):
                continue
            i = there[0]
            now = {name: f[name].iat[i] for name in f}
            lines.append(f"ESTAB 0      2096704      10.0.0.1:{40000 + number}      10.0.1.1:5201")
            lines.append(
                f"\t {cca} wscale:7,7 rto:240 rtt:{now['rtt_ms']:.3f}/1.5 mss:{MSS_BYTES} pmtu:1500 rcvmss:536 advmss:1448 cwnd:{now['cwnd']:.0f} "
                f"bytes_sent:{now['acked'] * 1.01:.0f} bytes_acked:{now['acked']:.0f} segs_out:1000 {more}send 100Mbps lastsnd:4 "
                f"busy:{now['time_s'] * 1e3:.0f}ms retrans:0/{now['lost']:.0f} rcv_space:14480 minrtt:{f['rtt_ms'][: i + 1].min():.3f}"
            )
        if stamps == "behind":
            lines.append(f"Time: {EPOCH_S + time_s:.6f}")
        lines.append("---")
    return "\n".join(lines)


def flent(flows: dict[str, pd.DataFrame], path: Path, pings_ms: Sequence[float] = (), t0: Any = None) -> Path:
    """A data file of flent, with socket statistics."""
    first = next(iter(flows.values()))
    results: dict[str, Any] = {
        "Ping (ms) ICMP": list(pings_ms) + [None] * (len(first) - len(pings_ms)),
        "TCP upload avg": [1] * len(first),
    }
    for name, f in flows.items():
        results[name] = [None, *(np.diff(f["acked"]) * 8e-6 / np.diff(f["time_s"]))]
        results[f"{name}::tcp_rtt"] = list(f["rtt_ms"])
        results[f"{name}::tcp_cwnd"] = [int(v) for v in f["cwnd"]]
    content = {
        "version": 4,
        "x_values": list(first["time_s"]),
        "results": results,
        "metadata": {"TITLE": "", "NAME": "tcp_nup", "T0": t0},
    }
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path
