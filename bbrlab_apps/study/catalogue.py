"""What there is to run and to look at: papers, figures, points, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bbrlab.base import paths
from bbrlab.results.config import FULL, load_config
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.run_estimate import estimate_s
from bbrlab.results.shipped import is_shipped, shipped_figures
from bbrlab_apps.site.pages import in_order


@dataclass(frozen=True)
class AtScale:
    """A figure at a scale."""

    points: int
    runs: int
    core_s: float
    own: bool
    shipped: bool


@dataclass(frozen=True)
class Listed:
    """A figure."""

    id: str
    title: str
    scales: dict[str, AtScale]  # {scale: what it is there}, without those that leave it out


def catalogue(chosen: Sequence[str] = ()) -> list[Listed]:
    """Every figure, or those of some papers. UserError for a name that there is not; for a scenario that is not valid."""
    by_scale: dict[str, dict[str, Figure]] = {}
    wanted = {figure.id for figure in figures_at(FULL, list(chosen))} if chosen else None
    for scale in load_config().scales:
        by_scale[scale] = {f.id: f for f in figures_at(scale, []) if wanted is None or f.id in wanted}
    ships = {s: shipped_figures(paths.SHIPPED, s) if is_shipped(paths.SHIPPED, s) else set() for s in by_scale}
    ids = list(dict.fromkeys(id for figures in by_scale.values() for id in figures))
    return [
        _listed(id, {s: figures[id] for s, figures in by_scale.items() if id in figures}, ships)
        for id in sorted(ids, key=in_order)
    ]


def _listed(id: str, figures: dict[str, Figure], ships: dict[str, set[str]]) -> Listed:
    scales = {}
    for scale, figure in figures.items():
        seeds = {point.label: figure.trials_of(point) for point in figure.points}
        scales[scale] = AtScale(
            len(figure.points),
            sum(seeds.values()),
            sum(seeds[point.label] * estimate_s(point) for point in figure.points),
            (paths.results_folder() / scale / f"{id}.parquet").exists(),
            id in ships[scale],
        )
    return Listed(id, next(iter(figures.values())).scenario.figure, scales)
