"""What a place without compiler and sources has to be told so that kernels keep their keys there (built_with.py)."""

from __future__ import annotations

from bbrlab.kernel.built_with import Recorded, compiler
from bbrlab.kernel.sources import hashes_of, name_version
from bbrlab.kernel.specs import load_specs


def to_record() -> Recorded:
    """What the kernels that are built here were built with."""
    content: Recorded = {"compiler": compiler(), "sources": {}}
    for spec in load_specs().kernels.values():
        package, source = spec.source.debian, spec.source
        if package and not source.version and (identity := name_version(source)):
            content["sources"][package] = {"version": identity.split()[1], "sha256": hashes_of(source)["sha256"]}
    return content
