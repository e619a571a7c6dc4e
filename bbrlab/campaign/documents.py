"""The documentation's files, which the site shows: the checkout's Markdown files, and what they link to."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bbrlab.base import paths

# Files and patterns of the checkout; docs/ flat or grouped in folders.
SOURCES = (
    "README.md",
    "LIMITATIONS.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**/*.md",
    "config/README.md",
    "data/README.md",
    "data/*/README.md",
    "courses/**/*.md",
)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_LARGEST_BYTES = 2_000_000  # of a file that a page links to and that comes along


def sources(root: Path | None = None) -> list[Path]:
    """The files, relative to the checkout."""
    root = root or paths.ROOT
    return list(dict.fromkeys(p.relative_to(root) for pattern in SOURCES for p in sorted(root.glob(pattern))))


def linked(root: Path | None = None) -> list[Path]:
    """The other files that they link to and that come along, relative to the checkout."""
    root = root or paths.ROOT
    targets: dict[Path, None] = {}
    own = set(sources(root))
    for source in own:
        for _, _, target in LINK.findall((root / source).read_text(encoding="utf-8")):
            place = place_of(source, target)
            if place is not None and place not in own and comes_along(root / place):
                targets[place] = None
    return sorted(targets)


def place_of(source: Path, target: str) -> Path | None:
    """Where a relative link leads in the checkout; None for others."""
    path = target.split("#", maxsplit=1)[0]
    if not path or "://" in target or target.startswith(("mailto:", "/")):
        return None
    place = Path(os.path.normpath(source.parent / path))
    return None if place.parts[:1] == ("..",) else place


def comes_along(path: Path) -> bool:
    """Whether a file that a page links to is there, and small enough for the site."""
    return path.is_file() and path.stat().st_size <= _LARGEST_BYTES
