"""The pictures that a study ends with."""

from __future__ import annotations

from pathlib import Path

from bbrlab.study.plan import Study
from bbrlab.study.plot import Wish, plot, save
from bbrlab.study.sources import source_of


def draw_study(study: Study) -> list[Path]:
    """Draw the first swept field, as PNG and SVG. Returns the files."""
    found = []
    for kind in ("png", "svg"):
        figure, _ = plot(source_of([str(study.folder)]), Wish())
        found.append(study.folder / f"{study.name}.{kind}")
        save(figure, found[-1])
    return found
