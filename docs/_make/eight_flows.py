"""The table of docs/explanation/beside_google.md of what was tried for eight BBRv3 flows at 32 BDP (data/google/eight_flows.csv)."""

from __future__ import annotations

from pathlib import Path

from bbrlab.base.tables import published_table
from docs._make import marks
from docs._make.beside_google import PAGE

WHOSE = {"google": "Google's", "now": "ours"}


def table() -> str:
    """A line for each setting, code and noise, in Markdown."""
    rows = []
    tried = published_table("google/eight_flows")
    # Of the earlier bbr3 this cell scatters by seed, so single runs tell nothing.
    for (setting, code, noise), runs in tried[tried["code"].isin(WHOSE)].groupby(
        ["setting", "code", "noise"], sort=False
    ):
        shares = ", ".join(f"{share:.3f}" for share in runs["share_of_capacity"])
        rows.append((setting, WHOSE[str(code)], noise, shares))
    return "\n".join(marks.table(("what was tried", "whose", "noise", "share, seed by seed"), rows)) + "\n"


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: marks.page(PAGE, {"eight flows": table()})}
