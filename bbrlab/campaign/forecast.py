"""Forecast of a campaign: its runs, time, memory and disk, beside what this machine has (of one run: results/run_estimate.py)."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from bbrlab.base import files, paths
from bbrlab.base.console import Console
from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores, available_bytes
from bbrlab.base.scratch import scratch_parent
from bbrlab.base.words import number_of
from bbrlab.campaign import cache
from bbrlab.campaign.plan import PlannedFigure, PlannedRun, runs_of
from bbrlab.campaign.progress import span
from bbrlab.results.config import load_config

MANY_CORES = 16
# Of the process that evaluates a run: Python with its libraries and the samples. Resident size of those of scale quick.
PROCESS_BYTES = 300e6


@dataclass(frozen=True)
class Forecast:
    """One figure of a campaign, or the sum of several."""

    figure: str
    # points, seeds: how many, seeds of each point to begin with
    points: int
    seeds: int
    # runs, done: of those seeds; how many of them are there already
    runs: int
    done: int
    more_runs: int  # at most so many more seeds may follow, of points that claims read, where these need them
    more_core_s: float
    more_bytes: float
    virtual_s: float  # testbed time of all runs
    # left_core_s, left_bytes: real time on one core, and disk, of what is left
    left_core_s: float
    left_bytes: float


def forecast_of(figure: PlannedFigure) -> Forecast:
    """What a figure would run and cost."""
    runs = list(runs_of(figure))
    left = [run for run in runs if not run.is_done]
    points = figure.points.values()
    return Forecast(
        figure=figure.id,
        points=len(points),
        seeds=figure.trials,
        runs=len(runs),
        done=len(runs) - len(left),
        more_runs=sum(p.more_seeds for p in points),
        more_core_s=sum(p.more_seeds * p.core_s for p in points),
        more_bytes=sum(p.more_seeds * p.disk_bytes for p in points),
        virtual_s=sum(run.point.virtual_s for run in runs),
        left_core_s=sum(run.point.core_s for run in left),
        left_bytes=sum(run.point.disk_bytes for run in left),
    )


def show_forecast(
    figures: Sequence[PlannedFigure],
    console: Console | None = None,
    cores: int | None = None,
    cache_gb: float | None = None,
) -> None:
    """Print the plan and how long it will take here and on a larger machine.

    Args:
        cores: that the campaign may use; default: all that this process may use.
        cache_gb: GB that the cache should not exceed; default: config/config.yaml's.
    """
    console = console or Console()
    rows = [forecast_of(figure) for figure in figures]
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True, min_width=max((len(row.figure) for row in rows), default=0))
    for name in ("points", "seeds", "runs", "done", "virtual h", "core min*", "MB*"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.figure,
            str(row.points),
            str(row.seeds),
            str(row.runs),
            str(row.done),
            f"{row.virtual_s / 3600:.1f}",
            f"{row.left_core_s / 60:.1f}",
            f"{row.left_bytes / 1e6:.0f}",
        )
    console.print(table)
    left_s, size = sum(row.left_core_s for row in rows), sum(row.left_bytes for row in rows)
    runs, done, more = (
        sum(row.runs for row in rows),
        sum(row.done for row in rows),
        sum(row.more_runs for row in rows),
    )
    here = all_cores()
    cores = min(cores or here, here)
    words = (
        f"* of what is left: {runs - done} of {runs} runs ({span(sum(row.virtual_s for row in rows))} of testbed "
        f"time): about {span(left_s / cores)} on {_cores_words(cores, here)}, {span(left_s / MANY_CORES)} "
        f"on {MANY_CORES}, {_size(size)} of disk"
    )
    more_bytes = 0.0
    if more:
        more_bytes = sum(row.more_bytes for row in rows)
        words += (
            f"\nPoints whose claims these seeds cannot decide get more, in two rounds: at most {more} more runs "
            f"({span(sum(row.more_core_s for row in rows) / cores)} more, {_size(more_bytes)})."
        )
    words += _predictions_words(figures, cores)
    left = [run for figure in figures for run in runs_of(figure) if not run.is_done]
    if left:
        words += f"\n{memory_words(left, cores)}\n{disk_words(size + more_bytes, cache_gb=cache_gb)}"
    console.print(words, soft_wrap=True)


def _cores_words(cores: int, here: int) -> str:
    if here == 1:
        return "the one core of this machine"
    return f"the {here} cores of this machine" if cores == here else f"{cores} of the {here} cores of this machine"


def _size(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size > 1e9 else f"{math.ceil(size / 1e6)} MB"


def _predictions_words(figures: Sequence[PlannedFigure], cores: int) -> str:
    """What models have yet to say of points for the pages' panels, and how long that takes; empty if nothing."""
    left = [seconds for figure in figures for file, seconds in figure.predictions.items() if not Path(file).exists()]
    if not left:
        return ""
    return f"\nPages (target all) show what the models say, too: {len(left)} predictions, about {span(sum(left) / cores)} more."


def memory_words(left: Sequence[PlannedRun], cores: int, available: float | None = None) -> str:
    """What the guests of these runs may take, so many at once, in a sentence.

    Args:
        available: bytes that there are; default: available_bytes() and the room where guests' memory lies.
    """
    sizes = sorted(((run.point.guest_mb * 1e6, run.figure) for run in left), reverse=True)
    largest, figure = sizes[0]
    together = sum(size for size, _ in sizes[:cores]) + min(cores, len(sizes)) * PROCESS_BYTES
    if available is None:
        available = available_bytes()
        with contextlib.suppress(UserError):  # doctor tells
            available = min(available, shutil.disk_usage(scratch_parent()).free)
    words = (
        f"Memory: a guest may grow to {largest / 1e9:.1f} GB ({figure}); the largest {min(cores, len(sizes))} at once, with their "
        f"processes, to {together / 1e9:.1f} GB of {available / 1e9:.1f} GB that are free."
    )
    return words + (" That is too much: use fewer --cores." if together > available else "")


def disk_words(needed: float, results: Path | None = None, cache_gb: float | None = None) -> str:
    """What a campaign leaves on disk beside what there is, and what the cache has, in a sentence or two.

    Args:
        needed: bytes of its runs. Tables, pages and site are not in it: some 60 MB at scale quick (docs/reference/benchmarks.md).
        cache_gb: GB that the cache should not exceed; default: config/config.yaml's.
    """
    place = files.existing_parent(results or paths.results_folder())
    free = shutil.disk_usage(place).free
    words = f"Disk: {needed / 1e9:.1f} GB of {free / 1e9:.0f} GB that are free."
    words += " That is too much: make room, or set BBRLAB_RESULTS to another disk." if needed > free else ""
    folder = cache.cache_place() if "://" not in os.environ.get(cache.VARIABLE, "") else None
    if folder is None:
        return words
    if not folder.is_dir():
        what = "this is not a folder; name one" if folder.exists() else "not there yet; make it"
        return f"{words}\nCache {folder}: {what} before you use --cache."
    there, free = cache.entries(folder), shutil.disk_usage(folder).free
    held, most = sum(e.size_bytes for e in there), (load_config().cache_gb if cache_gb is None else cache_gb) * 1e9
    words += (
        f"\nCache {folder}, with --cache: {number_of(len(there), 'run')}, {held / 1e9:.1f} of at most {most / 1e9:g} GB (cache_gb of the configuration), "
        f"{free / 1e9:.0f} GB free; new runs lie there, and links in the results."
    )
    if needed > free:
        words += " That is too much: make room there, or set SNAKEMAKE_OUTPUT_CACHE to another disk."
    elif held + needed > most:
        words += f" With these runs it may have {(held + needed) / 1e9:.1f} GB: bbrlab cache prune removes what was not used for longest."
    return words
