"""Makes manifest.json: the provenance of a result."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.base.git import git
from bbrlab.experiment.plan import Plan
from bbrlab.experiment.plan_types import GuestPlan
from bbrlab.kernel.built import Kernel, describe_kernel
from bbrlab.run.conditions import CONDITIONS
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import GRID

GUEST_PACKAGES = ("iperf3", "mininet", "openvswitch-switch", "iproute2", "python3")


def manifest_of(point: Point, seed: int, backend: str, plan: Plan, kernel: Kernel, folder: Path) -> dict[str, Any]:
    """The content of manifest.json (docs/reference/results.md)."""
    scenario = point.scenario.model_dump(exclude=GRID)
    return {
        "scenario": scenario,
        "values": point.values,
        "fingerprint": point.fingerprint,
        "seed": seed,
        "backend": backend,
        "kernel": describe_kernel(kernel),
        "plan_sha256": plan_digest(plan.content),
        "guest_code_sha256": guest_code(plan.content),
        "conditions": CONDITIONS[-1],
        "source": git_state(),
        "packages": package_versions(),
        "report": files.read_json(folder / "report.json"),
        "iperf3": {str(t["id"]): _iperf3_totals(folder / f"client-{t['id']}.json") for t in plan.content["transfers"]},
    }


def plan_digest(plan: GuestPlan) -> str:
    """The SHA-256 of a guest's plan without its captures, which do not change a run."""
    content = {key: value for key, value in plan.items() if key != "capture"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _iperf3_totals(report: Path) -> dict[str, Any] | None:
    """iperf3's own counts; None for a transfer that the run's end cut off before its report."""
    try:
        end = json.loads(report.read_text(encoding="utf-8"))["end"]
        return {
            "sent_bytes": end["sum_sent"]["bytes"],
            "received_bytes": end["sum_received"]["bytes"],
            "retransmits": end["sum_sent"].get("retransmits"),
            "seconds": end["sum_sent"]["seconds"],
        }
    except (OSError, ValueError, KeyError):
        return None


def git_state() -> dict[str, Any]:
    """The checkout's commit, and whether tracked files differ from it; in an image, those that it was built from; None if unknown."""

    status = git("status", "--porcelain", "--untracked-files=no")
    if status is None and paths.IMAGE.exists():
        return {name: files.read_json(paths.IMAGE).get(name) for name in ("commit", "modified")}
    return {"commit": git("rev-parse", "HEAD"), "modified": bool(status) if status is not None else None}


def package_versions() -> dict[str, str]:
    """{Debian package that the guest uses: version}, of those that are installed."""
    argv = ["dpkg-query", "-W", "-f=${Package} ${Version}\n", *GUEST_PACKAGES]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return {}
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


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
