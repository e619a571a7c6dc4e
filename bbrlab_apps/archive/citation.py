"""How bbrlab is cited: CITATION.cff. The version is pyproject.toml's, everywhere (docs/_make/citation.py)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from bbrlab.base import paths
from bbrlab.base.yaml_files import read_yaml

CITATION = paths.ROOT / "CITATION.cff"


def project_version() -> str:
    """The version of this package, as pyproject.toml has it."""
    version: str = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def read_citation() -> dict[str, Any]:
    """The content of CITATION.cff."""
    content: dict[str, Any] = read_yaml(CITATION)
    return content


def name_of(author: Mapping[str, str]) -> str:
    """An author of CITATION.cff: ``Family, Given``, or the name of a group."""
    return author["name"] if "name" in author else f"{author['family-names']}, {author['given-names']}"
