"""What the kernels of a build folder were built with, for a place that has neither compiler nor sources: an image (Dockerfile).

What is here counts; what is not here is what it was when it was recorded. So a kernel keeps its key, and runs in an image are the
same bytes as elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError


@with_config(extra="forbid", strict=True)
class Package(TypedDict):
    """A Debian package of kernel source: its version, and the SHA-256 of the archive in it."""

    version: str
    sha256: str


@with_config(extra="forbid", strict=True)
class Recorded(TypedDict):
    """First line of ``gcc --version``, and {Debian package of kernel source: which it was}."""

    compiler: str
    sources: dict[str, Package]


def record_file() -> Path:
    """Where it stands."""
    return paths.build_folder() / "built_with.json"


def recorded() -> Recorded | None:
    """What was recorded; None if nothing was. UserError if the file is damaged."""
    file = record_file()
    if not file.exists():
        return None
    try:
        return TypeAdapter(Recorded).validate_python(files.read_json(file))
    except ValidationError as error:
        raise UserError(f"{file}: is damaged ({error.errors()[0]['msg']}); take an image that is whole") from None


def recorded_source(package: str) -> Package | None:
    """Which version of a package of kernel source was here; None if none is recorded."""
    found = recorded()
    return found["sources"].get(package) if found else None
