"""Made-up run folders, for tests of what is drawn and said of runs: whole as a guest's, in no time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base import files
from bbrlab.measure.metrics import GROUP
from bbrlab.measure.sample_schema import BBR_COLUMNS
from bbrlab.measure.sample_schema import SAMPLES as SAMPLES_COLUMNS
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.output import MANIFEST, SAMPLES, SUMMARY
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import GRID
from tests.made_up import put_run_metrics, whole_summary


def made_up_run(point: Point, seed: int, out: Path, key: str = "aaaa", ok: bool = True) -> Path:
    """Write a run's folder: the first group takes more of a deeper buffer, each seed a little more than the one before.

    Args:
        key: of the kernel.
        ok: whether its self-checks passed.
    """
    scenario, network = point.scenario, point.scenario.network
    first = min(0.9, 0.1 + 0.05 * network.buffer_bytes / network.bdp_bytes + 0.01 * seed)
    shares = [first, *[(0.95 - first) / max(1, len(scenario.flows) - 1)] * (len(scenario.flows) - 1)]
    groups = [
        {"cca": flow.cca, "count": flow.count, "direction": flow.direction, **dict.fromkeys(GROUP),
         "share_of_capacity": share, "goodput_mbit": share * network.rate_mbit, "rtt_ms_mean": 50.0 + seed,
         "unfinished_flows": 0 if flow.bytes else None}
        for flow, share in zip(scenario.flows, shares, strict=True)
    ]  # fmt: skip
    measured: dict[str, Any] = {
        "groups": groups,
        "flows": [],
        "bottleneck": {"buffer_bytes": network.buffer_bytes},
    }
    queue_ms = 10.0 * network.buffer_bytes / network.bdp_bytes + seed
    put_run_metrics(measured, {"jain_index_all": 0.9, "utilisation": 0.95, "loss": 0.01, "queue_ms_mean": queue_ms})
    checks = [{"name": "rate", "ok": ok, "asked": 1, "measured": 1 if ok else 2, "detail": "" if ok else "1 v 2"}]
    summary = whole_summary(measured, key, scenario=scenario.name, paper=scenario.paper, values=point.values, seed=seed,
                            window_s=scenario.window_s, virtual_s=scenario.duration_s, checks=checks, ok=ok)  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    samples(point, shares).to_parquet(out / SAMPLES, index=False)
    files.write_json(out / MANIFEST, {
        "scenario": scenario.model_dump(exclude=GRID), "values": point.values, "fingerprint": point.fingerprint, "seed": seed,
        "plan_sha256": "p", "conditions": CONDITIONS[-1], "source": {"commit": "c"}, "outputs_sha256": {SAMPLES: files.sha256(out / SAMPLES)},
    })  # fmt: skip
    files.write_json(out / SUMMARY, summary)
    return out


def samples(point: Point, shares: list[float]) -> pd.DataFrame:
    """samples.parquet: one flow for each group; BBR's states change each second, and what is not drawn is 1."""
    scenario = point.scenario
    times = np.arange(0, scenario.duration_s, 1 / scenario.sample_hz)
    parts = []
    for group, (flow, share) in enumerate(zip(scenario.flows, shares, strict=True)):
        is_bbr = flow.cca.startswith("bbr")
        parts.append(pd.DataFrame({
            "time_s": times, "flow": group, "group": group, "bytes_acked": times * share * scenario.network.rate_mbit * 1e6 / 8,
            "srtt_us": 50_000 + 1000 * group + 100 * np.sin(times), "cwnd": 20 + 10 * group, "unacked": 15, "total_retrans": times // 2,
            "pacing_rate": 1e6, "bbr_bw": 1e6 if is_bbr else np.nan, "bbr_min_rtt_us": 4e4 if is_bbr else np.nan,
            "bbr_state": np.where(is_bbr, times // 1 % 5, np.nan), "queue_bytes": 5000 + 1000 * np.cos(times),
        }))  # fmt: skip
    made = pd.concat(parts).sort_values(["time_s", "flow"], ignore_index=True)
    others = pd.DataFrame(1.0, made.index, [name for name in SAMPLES_COLUMNS if name not in made])
    others.loc[made["bbr_state"].isna(), [name for name in others if name in BBR_COLUMNS]] = np.nan
    return pd.concat([made, others], axis=1)[list(SAMPLES_COLUMNS)]
