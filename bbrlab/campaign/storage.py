"""A campaign whose results are in a storage elsewhere (S3), because its jobs share no file system with it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from bbrlab.base import paths


def copies_of(workflow: Any, results: str) -> Path | None:
    """Where Snakemake keeps its copies of the results that are in a storage; None without --default-storage-provider.

    Args:
        results: the results folder as the rules call it, relative to Snakemake's working folder.
    """
    settings = workflow.storage_settings
    if settings is None or not settings.default_storage_provider:
        return None
    # s3://bucket/folder and others alike: the copies' folders are named by what follows the scheme.
    place = str(settings.default_storage_prefix or "").rpartition("://")[2]
    copies: Path = Path(settings.local_storage_prefix).absolute() / settings.default_storage_provider / place / results
    return copies


def find_results_in(copies: Path) -> str:
    """What goes before the commands of rules, so that they find the results in these copies; the rules keep their own names."""
    return f"export BBRLAB_RESULTS={shlex.quote(str(copies))}; "


def code_of(file: str) -> str:
    """What a stage's file of hashes says, for a job that has none of it as an input."""
    return (paths.ROOT / file).read_text(encoding="utf-8")
