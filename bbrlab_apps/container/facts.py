"""What an image has in it: image.json. Made while the image is built (envs/image.sh)."""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.kernel.built import describe_kernel, get_kernel, is_built
from bbrlab.kernel.built_with import record_file
from bbrlab.kernel.record import to_record
from bbrlab.kernel.specs import load_specs


def write_recorded() -> None:
    """Record what the kernels that are built here were built with (bbrlab/kernel/built_with.py)."""
    files.write_json(record_file(), to_record())


def facts(commit: str, modified: str) -> dict[str, Any]:
    """What image.json says.

    Args:
        commit: of the checkout; "" if it is not known.
        modified: "true" if files differ from it, "false", or "".
    """
    return {
        "version": importlib.metadata.version("bbrlab"),
        "commit": commit or None,
        "modified": {"true": True, "false": False}.get(modified),
        "kernels": [dict(describe_kernel(get_kernel(name))) for name in load_specs().kernels if is_built(name)],
        "debian": Path("/etc/debian_version").read_text(encoding="utf-8").strip(),
        "packages": _packages(),
    }


def _packages() -> dict[str, str]:
    """{Debian package: version} of all that are installed."""
    argv = ["dpkg-query", "-W", "-f=${Package} ${Version}\n"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--recorded", action="store_true", help="record compiler and sources instead")
    parser.add_argument("--commit", default="")
    parser.add_argument("--modified", default="")
    arguments = parser.parse_args()
    if arguments.recorded:
        write_recorded()
    else:
        files.write_json(paths.IMAGE, facts(arguments.commit, arguments.modified))
