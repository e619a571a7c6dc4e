"""Snakemake's cache between workflows: how much is in it, and what of it has not been used for long."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbrlab.base import paths
from bbrlab.base.errors import UserError

VARIABLE = "SNAKEMAKE_OUTPUT_CACHE"
# What Snakemake calls the files of an entry: its key, and behind it the output's name.
ENTRY = re.compile(r"^([0-9a-f]{64})(?:[_.].*)?$")
DAY_S = 86400


@dataclass(frozen=True)
class Entry:
    """What the cache holds of one job."""

    files: tuple[Path, ...]
    size_bytes: int
    # When one of them was last read or written, in s since 1970; a file system without access times tells when it was written
    used_s: float


def cache_place(given: Path | None = None) -> Path | None:
    """Where the cache that is configured has its folder, which need not be there yet; None if none is configured.

    UserError for an address, which is no folder.
    """
    text = str(given) if given else os.environ.get(VARIABLE, "")
    if "://" in text:
        raise UserError(f"{VARIABLE}={text}: only a folder can be the cache here")
    return Path(text).absolute() if text else None


def cache_folder(given: Path | None = None) -> Path | None:
    """The cache that is configured; None if there is none. UserError for a place that is no folder."""
    folder = cache_place(given)
    if folder and not folder.is_dir():
        if folder.exists():
            raise UserError(f"{folder}: this is not a folder, and the cache must be one")
        raise UserError(f"{folder}: there is no such folder; make it first: mkdir -p {shlex.quote(str(folder))}")
    return folder


def check_cache(workflow: Any) -> None:
    """Look for the cache's folder before a campaign with ``--cache`` runs anything (``onstart``: what only plans needs no cache).

    Snakemake 9.27 says that there is none when the first run has ended. UserError if the cache is used and is no folder that is
    there.
    """
    if workflow.workflow_settings is None or workflow.workflow_settings.cache is None:
        return
    try:
        cache_folder()
    except UserError as error:
        raise UserError(f"--cache: {error}") from None


def entries(folder: Path) -> list[Entry]:
    """Everything in a cache, what was not used for longest first. What else lies there does not count."""
    grouped: dict[str, list[tuple[Path, os.stat_result]]] = {}
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # somebody else prunes
            if (match := ENTRY.match(path.name)) and path.is_file() and not path.is_symlink():
                grouped.setdefault(match[1], []).append((path, path.stat()))
    made = [
        Entry(
            tuple(sorted(path for path, _ in group)),
            sum(status.st_size for _, status in group),
            max(max(status.st_atime, status.st_mtime) for _, status in group),
        )
        for group in grouped.values()
    ]
    return sorted(made, key=lambda entry: (entry.used_s, entry.files))


def linked(results: Path) -> set[Path]:
    """The files that a folder of results has only as links: they are what a cache holds for it.

    Those of stand-ins (results/replace/) and of comparisons (results/compare/), too.
    """
    targets = set()
    for parent, _, names in os.walk(results):
        targets |= {p.resolve() for p in (Path(parent, name) for name in names) if p.is_symlink()}
    return targets


@dataclass(frozen=True)
class Pruned:
    """What pruning did, or would do."""

    removed: list[Entry]
    kept_linked: list[Entry]  # entries that would go, were results not linked to them
    left: list[Entry]  # entries that stay, these among them


def prune(
    folder: Path,
    *,
    older_days: float | None = None,
    largest_bytes: float | None = None,
    keep: Sequence[Path] = (),
    dry: bool = False,
    now_s: float | None = None,
) -> Pruned:
    """Remove what was not used for so long, and then what was not used for longest until the rest is small enough.

    Args:
        older_days: None: age alone removes nothing.
        largest_bytes: of what stays; None: any size.
        keep: folders of others' results; what they link to stays, as does what this checkout's results link to.
        now_s: the time that it is, in s since 1970; default: the clock's.
    """
    now_s = time.time() if now_s is None else now_s
    there = entries(folder)
    held = {path for results in (paths.results_folder(), *keep) for path in linked(results)}
    size = sum(entry.size_bytes for entry in there)
    removed, spared, left = [], [], []
    for entry in there:
        old = older_days is not None and now_s - entry.used_s > older_days * DAY_S
        large = largest_bytes is not None and size > largest_bytes
        if not (old or large):
            left.append(entry)
        elif held & {path.resolve() for path in entry.files}:
            spared.append(entry)
            left.append(entry)
        else:
            removed.append(entry)
            size -= entry.size_bytes
            for path in () if dry else entry.files:
                path.unlink(missing_ok=True)
    return Pruned(removed, spared, left)
