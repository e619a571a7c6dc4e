"""Made-up claims, tables of figures and summaries, for tests of what is said of the runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base import files
from bbrlab.claims import judge
from bbrlab.claims import sample as of_sample
from bbrlab.claims.judge import Verdict
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.sample import Sample
from bbrlab.claims.schema import Claim, Statement
from bbrlab.claims.table_facts import TableFacts
from bbrlab.kernel.key import build_key
from bbrlab.kernel.specs import find_spec
from bbrlab.measure.metrics import GROUP, METRICS, RUN
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.shipped import content_hash
from bbrlab.run.conditions import CONDITIONS
from bbrlab.scenario.point import Point

GOOD = """
- id: SA-x
  says: One flow takes half of the link.
  source: Fig. 2a
  exactness: raw data
  because: two laboratories differ by so much
  claims:
    - at: {figure: sarpkaya2025/fig2a, where: {network.buffer.bdp: 4, flows.0.count: 1}}
      metric: share_of_capacity
      expect: {value: 0.5, within: 0.1}
"""
ORDER = GOOD.replace(
    """    - at: {figure: sarpkaya2025/fig2a, where: {network.buffer.bdp: 4, flows.0.count: 1}}
      metric: share_of_capacity
""",
    """    - at:
        few: {figure: fig2a, where: {network.buffer.bdp: 4, flows.0.count: 1}}
        many: {figure: fig2a, where: {network.buffer.bdp: 4, flows.0.count: 4}}
""",
).replace("{value: 0.5, within: 0.1}", "{order: [few.share_of_capacity, many.share_of_capacity]}")
EACH = """
- id: SA-p
  says: The share of N BBRv1 flows is as published.
  source: Fig. 2a
  exactness: raw data
  because: two laboratories differ by so much
  claims:
    - id: SA-p-N{bbr_flows}-X{buffer_bdp}
      each: fig2a
      says: "{bbr_flows} flows in {buffer_bdp} BDP take {share_of_capacity}."
      at: {figure: fig2a, where: {flows.0.count: "{bbr_flows}", network.buffer.bdp: "{buffer_bdp}"}}
      metric: share_of_capacity
      expect: {value: "{share_of_capacity}", within: 0.05}
"""
Value = Callable[[Point, int], float]


@functools.cache
def all_statements() -> tuple[Statement, ...]:
    """What data/ says of every paper, read and compared with the scenarios once in a process."""
    return tuple(load_statements())


def expecting(expect: str, text: str = GOOD) -> str:
    """A claims file in which something else is expected."""
    return text.replace("{value: 0.5, within: 0.1}", expect)


def series(expect: str) -> str:
    """A claims file about the seven buffers of one flow."""
    whole = GOOD.replace("{network.buffer.bdp: 4, flows.0.count: 1}", "{flows.0.count: 1}, along: network.buffer.bdp")
    return expecting(expect, whole)


def written(folder: Path, text: str, paper: str = "sarpkaya2025") -> Path:
    """A claims file in its paper's folder."""
    file = folder / paper / "claims.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def only_claim(folder: Path, text: str) -> Claim:
    (claim,) = claims_of(load_statements([written(folder, text)]))
    return claim


def table(figure: Figure, value: Value = lambda point, seed: 0.5, trials: int = 3) -> pd.DataFrame:
    """A figure's table: every metric of a point and seed has the same value, but for one that tells the runs apart."""
    rows: list[dict[str, Any]] = []
    values: list[float] = []
    for point in figure.points:
        for seed in range(1, trials + 1):
            for group, flow in enumerate(point.scenario.flows):
                values.append(value(point, seed))
                rows.append({
                    "figure": figure.id, "point": point.label, "seed": seed, "ok": True, "cca": flow.cca, "count": flow.count,
                    "direction": flow.direction, "kernel": "lab (6.12)", "kernel_key": "aaaa", "virtual_s": point.scenario.duration_s, "wall_s": 1.0,
                    **point.values, **point.conditions, "group": group,
                })  # fmt: skip
    made = pd.DataFrame(rows)
    metrics = pd.DataFrame(dict.fromkeys(METRICS, values)).assign(drops=made["seed"].astype(float))
    return pd.concat([made, metrics], axis=1)


def partly(figure: Figure) -> Figure:
    """Three buffers of 1 and 4 flows: a part of a figure's points, whatever the scales say."""
    some = [
        p for p in figure.points if p.values["network.buffer.bdp"] in (1, 4, 32) and p.values["flows.0.count"] in (1, 4)
    ]
    return replace(figure, points=some)


def one(folder: Path, text: str, value: Value, scale: str = "full", trials: int = 3) -> Verdict:
    """The verdict on the only claim of a file, by made-up tables of runs that cost nothing, so that more seeds are not left out for it.

    At ``quick`` a part of the points was run (partly()).
    """
    claim = only_claim(folder, text)
    figures = {f.id: replace(f, seeds_packets=math.inf) for f in figures_at(scale, claim.figures)}
    if scale == "quick":
        figures = {id: partly(figure) for id, figure in figures.items()}
    return judge_claim(claim, figures, {id: table(f, value, trials) for id, f in figures.items()})


def judge_claim(
    claim: Claim, figures: Mapping[str, Figure], tables: Mapping[str, pd.DataFrame], results: Path | None = None
) -> Verdict:
    """What judge.judge_claim() says of tables."""
    return judge.judge_claim(claim, figures, facts_of(tables), results)


def sample(claim: Claim, points: Mapping[str, list[Point]], tables: Mapping[str, pd.DataFrame]) -> Sample:
    """The numbers that tables give a claim."""
    return of_sample.sample(claim, points, facts_of(tables))


def facts_of(tables: Mapping[str, pd.DataFrame]) -> dict[str, TableFacts]:
    return {id: TableFacts(table) for id, table in tables.items()}


def of_seeds(*values: float) -> Value:
    """A value for each seed, the same at every point."""
    return lambda point, seed: float(np.asarray(values)[seed - 1])


def of_parts(values: Any, failed: int = 0, without: int = 0, identical: bool = False) -> Sample:
    """A sample of these numbers: shape (seeds,), or (seeds, parts)."""
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    parts = numbers.shape[1]
    labels = ("",) if parts == 1 else tuple(f"point {i}" for i in range(parts))
    seeds, lost = len(numbers) + failed + without, (np.full(parts, failed), np.full(parts, without))
    return Sample(numbers, np.full(parts, seeds), *lost, np.full(parts, identical), np.full(parts, math.inf), labels)


def whole_summary(measured: dict[str, Any], key: str = "aaaa", **changes: Any) -> dict[str, Any]:
    """A summary.json with every field, of what was measured (summarise.summarise()) by the kernel with this key."""
    kernel = {"name": "k", "release": "6", "build_id": "b", "key": key, "source": "s", "compiler": "c"}
    scenario = {
        "scenario": "s",
        "paper": "p",
        "figure": "Fig.",
        "values": {},
        "seed": 1,
        "backend": "uml",
        "window_s": [5, 10],
    }
    return measured | scenario | {"virtual_s": 10, "wall_s": 1.5, "kernel": kernel, "checks": [], "ok": True} | changes


def put_run_metrics(measured: dict[str, Any], values: dict[str, Any]) -> None:
    """Put every metric of a run in the measured part of its summary, each at its place: None where there is no value."""
    for name, metric in RUN.items():
        *folders, last = metric.place or ("bottleneck", name)
        inner = measured
        for key in folders:
            inner = inner.setdefault(key, {})
        inner[last] = values.get(name)


def nothing_measured(**changes: Any) -> dict[str, Any]:
    """The measured part of a summary.json of one CUBIC flow with nothing but ``changes``: {metric: value}."""
    group = {"cca": "cubic", "count": 1, "direction": "forward", **dict.fromkeys(GROUP)}
    group |= {name: value for name, value in changes.items() if name in GROUP}
    measured: dict[str, Any] = {"groups": [group], "flows": [], "bottleneck": {"buffer_bytes": 1}}
    put_run_metrics(measured, {name: value for name, value in changes.items() if name not in GROUP})
    return measured


def of_this_version(folder: Path, scale: str = "quick") -> Path:
    """Results that ship as if this version had made their runs, with the kernel's source and compiler that they name."""
    path = folder / scale / "manifest.json"
    manifest = files.read_json(path)
    for version in manifest["versions"]:
        kernel = version["kernel"]
        kernel["key"] = build_key(find_spec(kernel["name"])[1], kernel["source"], kernel["compiler"])
        version["conditions"] = CONDITIONS[-1]
    files.write_json(path, manifest | {"sha256": content_hash(manifest)})
    return folder


def page_of(results: Path, paper: str, figures: dict[str, Figure], tables: dict[str, pd.DataFrame], scale: str = "smoke", shipped: bool = False) -> Any:  # fmt: skip
    """A notebook's page of some figures, of which nothing was judged."""
    from bbrlab.results.shipped import ShownResults
    from bbrlab.show.findings import Findings
    from studies.page import Page

    which = ShownResults(results, scale, shipped, "")
    ids = {name: f"{paper}/{name}" for name in figures}
    nothing = pd.DataFrame()
    scales = dict.fromkeys(ids.values(), scale)
    found = Findings(
        which, {ids[n]: f for n, f in figures.items()}, {ids[n]: t for n, t in tables.items()}, scales, nothing, nothing
    )
    return Page(found, paper)
