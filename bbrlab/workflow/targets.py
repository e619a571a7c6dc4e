"""What one may ask the workflow for: papers and figures by name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def targets_of(chosen: Iterable[str]) -> dict[str, list[str]]:
    """What one may ask the workflow for: {paper, PAPER/FIGURE, or figure's name: figures}, a name of several papers' figures for all."""
    found: dict[str, list[str]] = {}
    for id in chosen:
        for name in (*id.split("/"), id):
            found.setdefault(name, []).append(id)
    return found


def asked_for(chosen: Iterable[str], names: Iterable[str]) -> list[str]:
    """The figures that the words of a command line ask for; all if none does.

    A word is a name of targets_of(), or a file of a figure's or a paper's results (results/full/tang/fig2.csv).
    """
    known = targets_of(chosen)
    wanted: dict[str, None] = {}
    for name in names:
        path = Path(name)
        stem = path.name.split(".")[0]
        words = [f"{path.parent.name}/{stem}", stem] if path.suffix else [name]
        wanted |= dict.fromkeys(next((known[w] for w in words if w in known), []))
    return list(wanted or chosen)
