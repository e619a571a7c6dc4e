"""Draws the pictures of chosen runs (bbrlab_apps/site/curve_pictures.py) for notebooks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bbrlab.show.plots.style import ABOVE, grey_outside
from bbrlab_apps.site.curve_pictures import FRACTION, TIME_AXIS, Picture

DASHES = {"solid": "-", "dash": "--"}


def drawn(picture: Picture) -> Figure:
    """A picture, its panels below each other; grey: outside of the metrics' window."""
    over_time = picture.xlabel == TIME_AXIS
    count = len(picture.panels)
    size = (10.5, 0.6 + 1.9 * count) if over_time else (6.5, 3.6)
    figure, grid = plt.subplots(count, 1, figsize=size, sharex=True, squeeze=False, layout="constrained")
    for axes, panel in zip(grid.flat, picture.panels, strict=True):
        for line in panel["lines"]:
            y = np.array(line["y"], dtype=float)
            look = {"color": line["colour"], "ls": DASHES[line.get("dash", "solid")]}
            axes.plot(line["x"], y, lw=1.1, label=line["name"] if line["legend"] else None, **look)
        axes.set_ylabel(panel["label"].replace(" (", "\n("))
        axes.set_ylim(bottom=0)
        if named := sum(line["legend"] for line in panel["lines"]):
            axes.legend(ncols=named if over_time else 1, fontsize=9, **(ABOVE if over_time else {}))
        if picture.window_s:
            _outside(axes, picture)
    lowest = grid.flat[-1]
    lowest.set_xlabel(picture.xlabel)
    if not over_time:
        lowest.set(xlim=(0, None), ylim=(0, 1.02), ylabel=FRACTION)
    if picture.title:
        figure.suptitle(picture.title, fontsize=11, x=0.01, ha="left")
    figure.align_ylabels(list(grid.flat))
    return figure


def _outside(axes: Axes, picture: Picture) -> None:
    assert picture.window_s is not None
    xs = [x for panel in picture.panels for line in panel["lines"] for x in line["x"][:: max(len(line["x"]) - 1, 1)]]
    first, last = min(xs), max(xs)
    grey_outside(axes, picture.window_s, first, last)
    axes.set_xlim(first, last)
