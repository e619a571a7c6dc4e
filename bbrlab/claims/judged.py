"""All claims and statements judged by tables of figures: what claims.parquet and statements.parquet have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from bbrlab.claims.judge import judge_all, verdict_frame
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.statements import statement_frame
from bbrlab.results.figures import figures_at


def judged(
    tables: Mapping[str, pd.DataFrame], scale: str, only: bool = False, results: Path | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The verdicts on the claims of data/, and on their statements.

    Args:
        tables: {figure: its table at that scale}.
        only: statements of which these figures alone can judge a claim, in place of all.
        results: where the models' predictions are; default: the results folder.

    Returns:
        judge.verdict_frame() and statements.statement_frame().
    """
    chosen = [
        s for s in load_statements(known_good=True) if not only or any(set(c.figures) <= set(tables) for c in s.claims)
    ]
    verdicts = judge_all(claims_of(chosen), figures_at(scale, list(tables)), tables, results)
    return verdict_frame(verdicts), statement_frame(chosen, verdicts)
