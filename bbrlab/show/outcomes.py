"""Of statements: what came of them by whose code they rest on, and where the cause lies of those that are not wholly reproduced."""

from __future__ import annotations

import pandas as pd

from bbrlab.claims.code import CODES, LAB, LINUX, MODEL
from bbrlab.results.verdicts import AS_READ, INCONCLUSIVE, NOT_REPRODUCED, NOT_RUN, PARTLY, PARTLY_RUN, REPRODUCED

NOT_LOOKED_INTO = "not looked into"
# Kinds of causes (claims.yaml) in words.
CAUSES = {
    "paper": "the paper",
    "open-condition": "an open condition",
    "algorithm": "the lab's BBRv2 or BBRv3",
    "environment": "the lab",
    "unknown": "not known",
    "": NOT_LOOKED_INTO,
}
OPEN = (INCONCLUSIVE, PARTLY_RUN, NOT_RUN)
# Columns of a scorecard: what a reader sees, and the verdicts that it counts.
COLUMNS = {
    "reproduced": (REPRODUCED,),
    "as read": (AS_READ,),
    "partly": (PARTLY,),
    "not": (NOT_REPRODUCED,),
    "open": OPEN,
}
MISSED = (PARTLY, NOT_REPRODUCED)
RESTING_ON = {
    LINUX: "resting on Linux's own BBRv1, CUBIC and Reno",
    LAB: "resting on the lab's BBRv2 or BBRv3",
    MODEL: "resting on a model, no run",
}


def tally(statements: pd.DataFrame) -> dict[str, int]:
    """How many statements came out how: {one of COLUMNS: number}."""
    return {name: int(statements["verdict"].isin(verdicts).sum()) for name, verdicts in COLUMNS.items()}


def by_code(statements: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The statements by whose code they rest on, with words; without those of which there are none."""
    parts = [(RESTING_ON[code], statements[statements["code"] == code]) for code in CODES]
    return [(name, mine) for name, mine in parts if len(mine)]


def causes(statements: pd.DataFrame) -> dict[str, int]:
    """Of the statements that are partly or not reproduced: {one of CAUSES in words: how many}."""
    missed = statements[statements["verdict"].isin(MISSED)]["cause"]
    return {words: int((missed == kind).sum()) for kind, words in CAUSES.items()}
