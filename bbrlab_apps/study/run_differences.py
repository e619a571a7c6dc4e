"""Two runs beside each other: in what their scenarios differ, and their metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bbrlab.measure import metrics
from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.nested import MISSING, differences
from bbrlab_apps.study.sources import RunSource

# What is compared if nothing is asked for.
METRICS = (
    "share_of_capacity", "goodput_mbit", "retransmits", "rtt_ms_mean", "cwnd_packets", "pipe_packets", "slowdown_mean",
    "completion_s", "utilisation", "loss", "queue_ms_mean", "queue_ms_p95", "jain_index_all",
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A field in which two runs differ; None where one does not have it."""

    name: str
    one: Any
    two: Any


@dataclass(frozen=True)
class Number:
    """A metric of two runs."""

    metric: str
    flows: str  # of which flow group; empty: of the run
    # one, two: None where it was not observed
    one: float | None
    two: float | None


def fields_that_differ(one: RunSource, two: RunSource) -> list[Field]:
    """In what the scenarios of two runs differ, and what else made them: seed, kernel, backend."""
    differing = list(differences(_made_by(one), _made_by(two)))
    return [Field(d.place, *(None if v is MISSING else v for v in (d.first, d.second))) for d in differing]


def _made_by(run: RunSource) -> dict[str, Any]:
    manifest, summary = run.folder.manifest, run.summary
    kernel = summary["kernel"]
    return {
        **manifest.get("scenario", {}),
        "seed": summary["seed"],
        "backend": summary["backend"],
        "kernel": f"{kernel['name']} ({kernel['release']}), key {kernel['key']}",
        "conditions": manifest.get("conditions"),
        "commit": (manifest.get("source") or {}).get("commit"),
    }


def numbers_of(one: RunSource, two: RunSource, names: Sequence[str] = METRICS) -> list[Number]:
    """Metrics of two runs: those of each flow group, then those of the run. Where neither has one, it is left out."""
    return [n for n in _numbers(one, two, names) if n.one is not None or n.two is not None]


def _numbers(one: RunSource, two: RunSource, names: Sequence[str]) -> Iterator[Number]:
    groups = one.summary["groups"], two.summary["groups"]
    for g in range(max(map(len, groups))):
        pair = [of[g] if g < len(of) else None for of in groups]
        ccas = dict.fromkeys(f"{group['count']} {label_of_cca(group['cca'])}" for group in pair if group is not None)
        for name in names:
            if name in metrics.GROUP:
                values = [None if group is None else metrics.GROUP[name].of_group(group) for group in pair]
                yield Number(name, f"flows.{g}: {' / '.join(ccas)}", values[0], values[1])
    for name in names:
        if name in metrics.RUN:
            yield Number(name, "", *(metrics.RUN[name].of_run(run.summary) for run in (one, two)))
