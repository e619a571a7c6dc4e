"""How many of the published shares the models meet, beside what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape

import numpy as np

from bbrlab.results.algorithms import label_of_cca
from bbrlab.show.charts import MODELLED, MODELS, expectation, share_by
from bbrlab.show.content import Content
from bbrlab.show.distances import published
from bbrlab.show.html import number

HERE = "measured here"


@dataclass
class Met:
    """Published shares that one source of numbers speaks of: how many it meets within the claim's tolerance, and how far it is from each."""

    within: int = 0
    distances: list[float] = field(default_factory=list)

    def add(self, distance: float, holds: bool) -> None:
        """One more."""
        self.within += holds
        self.distances.append(distance)


def met(content: Content) -> dict[str, dict[str, Met]]:
    """{algorithm of the first flow group: {HERE or model: how it meets the published shares}}, of those that were measured."""
    found: dict[str, dict[str, Met]] = {}
    for claim in (c for s in content.statements if not s.own for c in s.claims):
        row, figure = content.of_claims.get(claim.id), content.figures.get(claim.figures[0])
        value = published(claim)
        if row is None or figure is None or value is None or not math.isfinite(row["mean"]):
            continue
        one = expectation(claim, figure)
        if one is None or one[:2] != (MODELLED, "0"):
            continue
        values = {HERE: float(row["mean"])}
        values |= {m: s for m in MODELS if (s := share_by(m, figure.id, one[2], content.shown.results)) is not None}
        if len(values) > 1:
            of = found.setdefault(one[2].scenario.flows[0].cca, {name: Met() for name in (HERE, *MODELS)})
            for name, share in values.items():
                of[name].add(abs(share - value), claim.expect.holds(share))
    return dict(sorted(found.items()))


def met_table(content: Content) -> str:
    """The same as a table; empty if nothing can be compared."""
    names = {HERE: HERE, **MODELS}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("share of", *names.values()))
    rows = "".join(
        f'<tr><th scope="row">{escape(label_of_cca(cca))}</th>{"".join(_cell(of[name]) for name in names)}</tr>'
        for cca, of in met(content).items()
    )
    if not rows:
        return ""
    return (
        "<p>Published shares of the link (0 to 1) that are met within the tolerance of their claim, and how far the median is from the published value:</p>"
        f'<div class="bb-scroll" tabindex="0" role="region" aria-label="Published shares that are met"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(found: Met) -> str:
    if not found.distances:
        return "<td>–</td>"
    apart = number(float(np.median(found.distances)), 2)
    return f"<td>{found.within} of {len(found.distances)}<br><small>{apart} off</small></td>"
