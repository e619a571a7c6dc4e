"""Makes anew what is made: all, or the modules of these names (``python -m docs._make readme outcomes``)."""

from __future__ import annotations

import importlib
import sys

from bbrlab.base import files, paths
from docs._make import MODULES


def main(names: list[str]) -> None:
    """Write the pages of these modules; say which changed."""
    if unknown := sorted(set(names) - set(MODULES)):
        raise SystemExit(f"there is no maker '{unknown[0]}' (there are {', '.join(MODULES)})")
    for name in names or MODULES:
        for path, text in importlib.import_module(f"docs._make.{name}").pages().items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                files.write_text(path, text)
                print(path.relative_to(paths.ROOT))


main(sys.argv[1:])
