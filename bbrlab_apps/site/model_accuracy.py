"""How near published shares are to what was measured here, and to what the models say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bbrlab.claims.expected import measured_point, published_value
from bbrlab.claims.schema import Claim
from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.verdicts import FINAL
from bbrlab.show.findings import Findings
from bbrlab_apps.site.charts import MODELLED, MODELS, share_by
from bbrlab_apps.site.html import number

HERE = "measured here"
_SHARES = ("share_of_capacity", "share_of_goodput")
_FEW = 10  # of fewer shares no quantile is told


@dataclass
class Accuracy:
    """Published shares that one source of numbers speaks of: how many it meets within the claim's tolerance, and how far it is from each."""

    within: int = 0
    distances: list[float] = field(default_factory=list)

    def add(self, distance: float, holds: bool) -> None:
        """One more."""
        self.within += holds
        self.distances.append(distance)

    @property
    def median(self) -> float:
        """Of the distances."""
        return float(np.median(self.distances))


def distances(findings: Findings, claims: Iterable[Claim]) -> list[float]:
    """Of the judged claims whose number is a group's share and is published: how far the measured mean is from that."""
    rows = [(claim, findings.of_claim.get(claim.id)) for claim in claims if claim.metric in _SHARES]
    shares = [(claim, float(row["mean"])) for claim, row in rows if row is not None and row["verdict"] in FINAL]
    apart = [abs(mean - value) for claim, mean in shares if (value := published_value(claim)) is not None]
    return [distance for distance in apart if np.isfinite(distance)]


def distance_words(distances: list[float]) -> str:
    """distances() in a sentence behind a space (Markdown); "" of few."""
    if len(distances) < _FEW:
        return ""
    half, most = (number(float(q), 2) for q in np.quantile(distances, (0.5, 0.9)))
    return f" Of {len(distances)} published shares (of the link, or of what all flows carry; 0 to 1) half are within **{half}** of what was measured here, nine in ten within {most}."


@dataclass(frozen=True)
class Compared:
    """A published share of the first flow group, and what else there is at its point: {HERE or model: share}."""

    claim: Claim
    cca: str
    published: float
    shares: dict[str, float]


def compared(findings: Findings) -> Iterator[Compared]:
    """Of the papers' claims on a share that was measured and is published."""
    for claim in (c for s in findings.defined if not s.own for c in s.claims):
        row, figure = findings.of_claim.get(claim.id), findings.figures.get(claim.figures[0])
        value = published_value(claim)
        if row is None or figure is None or value is None or not math.isfinite(row["mean"]):
            continue
        one = measured_point(claim, figure)
        if one is None or one[:2] != (MODELLED, "0"):
            continue
        shares = {HERE: float(row["mean"])}
        shares |= {m: s for m in MODELS if (s := share_by(m, figure.id, one[2], findings.shown.results)) is not None}
        yield Compared(claim, one[2].scenario.flows[0].cca, value, shares)


def accuracies(findings: Findings) -> dict[str, dict[str, Accuracy]]:
    """{algorithm of the first flow group: {HERE or model: how it meets the published shares}}, where a model speaks of them."""
    by_cca: dict[str, dict[str, Accuracy]] = {}
    for one in compared(findings):
        if len(one.shares) > 1:
            of = by_cca.setdefault(one.cca, {name: Accuracy() for name in (HERE, *MODELS)})
            for name, share in one.shares.items():
                of[name].add(abs(share - one.published), one.claim.expect.holds(share))
    return dict(sorted(by_cca.items()))


def scatter_of(findings: Findings) -> dict[str, Any]:
    """The same for a chart: ``series`` of a ``name``, published shares ``x``, other shares ``y`` and claims ``at``, measured ones first."""
    by_name: dict[str, dict[str, Any]] = {}
    for one in compared(findings):
        for name, share in one.shares.items():
            series = by_name.setdefault(name, {"name": MODELS.get(name, name), "x": [], "y": [], "at": []})
            for key, value in (
                ("x", round(one.published, 4)),
                ("y", round(share, 4)),
                ("at", f"{label_of_cca(one.cca)}, {one.claim.id}"),
            ):
                series[key].append(value)
    order = [name for name in (HERE, "burst", *MODELS) if name in by_name]
    return {
        "x": "published share of the link",
        "y": "measured here, or by a model",
        "series": [by_name[n] for n in dict.fromkeys(order)],
    }


def accuracy_table(findings: Findings) -> dict[str, Any]:
    """The same for a table: ``heads``, and ``rows`` of a name and its Accuracies; without rows if nothing can be compared."""
    rows = [(label_of_cca(cca), [of[name] for name in (HERE, *MODELS)]) for cca, of in accuracies(findings).items()]
    return {"heads": ["share of", HERE, *MODELS.values()], "rows": rows}
