"""The compiler and source packages of kernels; in an image without them (Dockerfile), the recorded ones.

So a kernel keeps its key there, and runs are the same bytes as elsewhere.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from pydantic import TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.problems import problem_of


@with_config(extra="forbid", strict=True)
class Package(TypedDict):
    """A Debian package of kernel source: its version, and the SHA-256 of the archive in it."""

    version: str
    sha256: str


@with_config(extra="forbid", strict=True)
class Recorded(TypedDict):
    """First line of ``gcc --version``, and {Debian package of kernel source: its version and hash}."""

    compiler: str
    sources: dict[str, Package]


def record_file() -> Path:
    """The file with the record."""
    return paths.build_folder() / "built_with.json"


def recorded() -> Recorded | None:
    """The record of this build folder; None if there is none. UserError if the file is damaged."""
    file = record_file()
    if not file.exists():
        return None
    try:
        return TypeAdapter(Recorded).validate_python(files.read_json(file))
    except ValidationError as error:
        raise UserError(f"{file}: is damaged ({problem_of(error.errors()[0])}); take an image that is whole") from None


def recorded_source(package: str) -> Package | None:
    """The recorded version of a package of kernel source; None if none is."""
    record = recorded()
    return record["sources"].get(package) if record else None


def compiler() -> str:
    """First line of ``gcc --version``, in an image without a compiler the recorded one. UserError if there is neither."""
    try:
        return subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except FileNotFoundError:
        record = recorded()
    except (OSError, subprocess.CalledProcessError):
        record = None
    if record is None:
        raise UserError("no C compiler; run 'make setup', or: apt-get install build-essential")
    return record["compiler"]
