"""Memory and disk that a campaign needs, and that this machine has."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.scratch import scratch_parent
from bbrlab.base.words import number_of
from bbrlab.campaign import cache
from bbrlab.campaign.plan import PlannedRun
from bbrlab.results.config import load_config

# Of the process that evaluates a run: Python with its libraries and the samples. Resident size of those of scale quick.
PROCESS_BYTES = 300e6


def available_bytes() -> float:
    """Memory that programs may still take; infinite where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return float("inf")


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
