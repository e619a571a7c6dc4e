"""What was recorded on another machine repeats to the digit where the guest is the same: source and compiler of its kernel, iperf3, Python."""

from __future__ import annotations

import pytest

from bbrlab.base import paths
from bbrlab.kernel.built import describe_kernel, get_kernel
from bbrlab.results.shipped import Version, read_manifest
from bbrlab.run.manifest import package_versions


def skip_for_another_guest(versions: list[Version] | None = None) -> None:
    """Skip the test where this machine's guest is none of those that made some results; default: what ships at ``full``."""
    versions = versions or read_manifest(paths.ROOT / "shipped", "full").versions
    for kernel in {version.kernel["name"]: version.kernel for version in versions}.values():
        here = describe_kernel(get_kernel(kernel["name"]))
        made_by = {(v.kernel["source"], v.kernel["compiler"]) for v in versions if v.kernel["name"] == kernel["name"]}
        if (here["source"], here["compiler"]) not in made_by:
            pytest.skip(f"kernel {kernel['name']}: its source or its compiler is another one here")
    known = {package for version in versions for package in version.packages}
    if other := {f"{name} {version}" for name, version in package_versions().items()} - known:
        pytest.skip(f"another version of a package that the guest uses: {min(other)}")
