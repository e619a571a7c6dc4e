"""What came of many statements, for somebody who has half a minute: how many are decided, and how near the numbers are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bbrlab.claims.schema import Claim, Statement
from bbrlab.results.verdicts import (
    AS_READ,
    FINAL,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    PARTLY_RUN,
    REPRODUCED,
)
from bbrlab.show.content import Content
from bbrlab.show.html import number

_SHARES = ("share_of_capacity", "share_of_goodput")
_NOT_MEASURED = ("model output", "qualitative")
_FEW = 10  # of fewer shares no quantile is told
_UNDECIDED = (PARTLY_RUN, NOT_RUN)


def distances(content: Content, statements: Iterable[Statement]) -> list[float]:
    """Of the judged claims whose number is a group's share and is published: how far the measured mean is from that."""
    rows = [(claim, content.of_claims.get(claim.id)) for statement in statements for claim in statement.claims]
    shares = [(c, row) for c, row in rows if row is not None and row["verdict"] in FINAL and c.metric in _SHARES]
    apart = [abs(float(row["mean"]) - value) for claim, row in shares if (value := published(claim)) is not None]
    return [d for d in apart if np.isfinite(d)]


def published(claim: Claim) -> float | None:
    """The number that a claim compares with, if somebody printed or measured it: not a model's, nor our reading of words."""
    return None if claim.exactness in _NOT_MEASURED else claim.expect.value


def told(content: Content, statements: Sequence[Statement]) -> str:
    """The outcome in a few sentences, as HTML."""
    counts = content.counts(statements)
    undecided = sum(counts[verdict] for verdict in _UNDECIDED)
    decided = len(statements) - undecided
    if not decided:
        return f"<p>None of the <b>{len(statements)}</b> statements is decided yet: that needs more runs, or longer ones.</p>"
    parts = [f"<b>{counts[verdict]}</b> {word}" for verdict, word in
             ((REPRODUCED, "reproduced"), (AS_READ, "in one reading of what the paper leaves open"), (PARTLY, "partly"), (NOT_REPRODUCED, "not"), (INCONCLUSIVE, "inconclusive"))
             if counts[verdict] or verdict == REPRODUCED]  # fmt: skip
    words = f"Of <b>{len(statements)}</b> statements <b>{decided}</b> are decided: {', '.join(parts)}."
    words += f" To decide the other {undecided} needs more runs, or longer ones." if undecided else ""
    if len(found := distances(content, statements)) >= _FEW:
        half, most = (number(float(q), 2) for q in np.quantile(found, (0.5, 0.9)))
        words += f" Of {len(found)} published shares of the link (0 to 1) half are within <b>{half}</b> of what was measured here, nine in ten within {most}."
    return f"<p>{words}</p>"
