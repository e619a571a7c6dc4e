"""``bbrlab cache``."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.cli.app import AsJson, cache_app, print_json

if TYPE_CHECKING:
    from bbrlab.campaign.cache import Entry

Folder = Annotated[Path | None, typer.Option(help="Default: SNAKEMAKE_OUTPUT_CACHE.")]


def _folder(given: Path | None) -> Path:
    from bbrlab.campaign.cache import VARIABLE, cache_folder

    if (folder := cache_folder(given)) is None:
        raise UserError(f"no cache is configured; set {VARIABLE}, or give --folder (docs/howto/shipped_results.md)")
    return folder


def _sum(entries: Sequence[Entry]) -> str:
    return f"{number_of(len(entries), 'run')}, {sum(e.size_bytes for e in entries) / 1e9:.2f} GB"


def _numbers(entries: Sequence[Entry]) -> dict[str, int]:
    return {"runs": len(entries), "size_bytes": sum(e.size_bytes for e in entries)}


@cache_app.command("show")
def show(folder: Folder = None, as_json: AsJson = False) -> None:
    """Say how much is in the cache that campaigns share."""
    from bbrlab.campaign.cache import DAY_S, entries

    place = _folder(folder)
    cached = entries(place)
    free = shutil.disk_usage(place).free
    unused_days = (time.time() - cached[0].used_s) / DAY_S if cached else None
    if as_json:
        print_json({"folder": place, **_numbers(cached), "free_bytes": free, "longest_unused_days": unused_days})
        return
    typer.echo(f"{place}: {_sum(cached)}; {free / 1e9:.0f} GB free")
    if unused_days is not None:
        typer.echo(f"not used for longest: {number_of(round(unused_days), 'day')}")


@cache_app.command("prune")
def prune(
    folder: Folder = None,
    days: Annotated[float | None, typer.Option(min=0, help="Remove what was not used for so many days.")] = None,
    gb: Annotated[float | None, typer.Option(min=0, help="Then remove what was not used for longest, until this many GB are left. Without --days the default is cache_gb of config/config.yaml.")] = None,
    keep: Annotated[list[Path] | None, typer.Option(help="Results of another checkout, whose links stay as this checkout's always do; may be given several times.")] = None,
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="Only say what would go.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Remove old runs from the cache that campaigns share. What links to them elsewhere is made anew by its campaign."""
    from bbrlab.campaign import cache
    from bbrlab.results.config import load_config

    if days is None and gb is None:
        gb = load_config().cache_gb
    for results in keep or ():
        if not results.is_dir():
            raise UserError(f"--keep {results}: there is no such folder")
    pruned = cache.prune(_folder(folder), older_days=days, largest_bytes=None if gb is None else gb * 1e9, keep=keep or (), dry=dry_run)  # fmt: skip
    if as_json:
        parts = {"removed": pruned.removed, "kept_linked": pruned.kept_linked, "left": pruned.left}
        print_json({"dry_run": dry_run, **{name: _numbers(part) for name, part in parts.items()}})
        return
    spared = f"; {_sum(pruned.kept_linked)} stay because results link to them" if pruned.kept_linked else ""
    typer.echo(f"{'would remove' if dry_run else 'removed'} {_sum(pruned.removed)}{spared}; left: {_sum(pruned.left)}")
