"""The files of mininet/ that a run's guest loads, on which its result may depend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bbrlab.base import files, paths

# {file that guest.py loads on demand: the entry of the plan for which it does}
ON_DEMAND = {
    "capture.py": "capture", "data_path.py": "probes", "play.py": "prompt", "policer.py": "policers", "opportunities.py": "opportunities", "prompt.py": "prompt", "several.py": "several",
}  # fmt: skip


def guest_code(plan: Mapping[str, Any]) -> dict[str, str]:
    """{file of mininet/: SHA-256}, of those that a guest with this plan may load.

    Args:
        plan: a plan's content; {} is enough for a campaign's run.
    """
    paths_of_code = sorted(path for path in paths.GUEST_CODE.iterdir() if path.is_file())
    return {path.name: files.sha256(path) for path in paths_of_code if ON_DEMAND.get(path.name) in (None, *plan)}


def always_loaded(hashes: Mapping[str, str]) -> dict[str, str]:
    """{file: hash} without files that no campaign's run loads, which older versions listed, too."""
    return {name: hash for name, hash in hashes.items() if name not in ON_DEMAND}
