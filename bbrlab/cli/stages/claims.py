"""Stage ``claims``: what the papers say, judged by the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import app


@app.command(hidden=True)
def judge(
    tables: list[Path],
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
    only: Annotated[bool, typer.Option("--only", help="Only the claims that these figures alone can judge.")] = False,
) -> None:
    """Judge the papers' claims by the tables of a campaign (used by the workflow)."""
    from bbrlab.campaign.collect import read_tables, write_table
    from bbrlab.campaign.figures import figures_at
    from bbrlab.claims.judge import judge_all, verdict_frame
    from bbrlab.claims.load import claims_of, load_statements

    found = read_tables(tables)
    chosen = [c for c in claims_of(load_statements()) if not only or {t.figure for t in c.at.values()} <= set(found)]
    verdicts = judge_all(chosen, figures_at(scale, list(found)), found)
    write_table(verdict_frame(verdicts), out)
