"""The plan of a campaign: figures, points, seeds, what each run takes, and the files that rules depend on.

The process that a person starts works it out (planning.py) and writes it to results/plan/; every job reads it from there.
So this module imports nothing that takes time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bbrlab.base import paths
from bbrlab.campaign.stages import PACKAGES

# {group of runs that share a scheduler's job: up to so many estimated seconds}; profiles say how many of each make a job. Longer runs
# have one of their own.
GROUPS = {"seconds": 15.0, "minutes": 90.0}
MODELS = "models"  # the group of the models' jobs


@dataclass(frozen=True)
class PlannedPoint:
    """A point of a figure, and what one run of it takes."""

    trials: int  # seeds to begin with
    more_seeds: int  # at most so many more, where claims may ask for them
    virtual_s: float  # testbed time
    core_s: float  # expected real time on one core
    disk_bytes: float  # expected size of the run's folder
    guest_mb: int  # memory that the guest may grow to, in MB
    memory_mb: int  # the same with the host's processes: what a scheduler is told
    runtime_min: int  # minutes after which a scheduler may end it
    group: str | None  # of runs with which it may share a scheduler's job; None for a long one


@dataclass(frozen=True)
class PlannedFigure:
    """A figure at a scale."""

    id: str  # paper/name
    trials: int  # seeds of each point to begin with, but for those that draw nothing
    points: dict[str, PlannedPoint]  # by label
    own: dict[str, str]  # {algorithm of one's own that its flows have: its C file}
    lacking: list[str]  # algorithms that the campaign's kernel does not have
    is_panel: bool  # whether it is one of N BBR flows against loss-based ones, with a published table (has_panel())
    # {file: seconds that it takes}, what models say of its points where a page shows that
    predictions: dict[str, float]
    judged_by: list[str]  # those files that claims read
    # What of the claims decides how many seeds it gets, as a file's content; None if it keeps what it begins with
    seed_request: str | None

    @property
    def paper(self) -> str:
        """Its paper."""
        return self.id.split("/", maxsplit=1)[0]


@dataclass(frozen=True)
class PlannedRun:
    """One run."""

    figure: str
    label: str
    seed: int
    point: PlannedPoint
    folder: Path

    @property
    def is_done(self) -> bool:
        """Whether its results are there."""
        return (self.folder / "summary.json").exists()


@dataclass(frozen=True)
class Plan:
    """A campaign at a scale."""

    # scale, kernel: kernel None: the default one
    scale: str
    kernel: str | None
    figures: dict[str, PlannedFigure]
    code: dict[str, str]  # {stage: hash of what decides its results} (stages.py)
    identity: str  # of the kernel: what decides it (bbrlab.kernel.built.kernel_identity())
    kernel_is_built: bool  # whether it only has to be recorded
    packages: str  # versions of the Debian packages that guests use
    shipped: list[str]
    documents: list[str]  # files of the documentation that the site has
    others: list[str]  # files beside SOURCES that it depends on: own kernels, what scenarios name
    signature: str  # of all that the plan was worked out from (signature_of())

    @property
    def papers(self) -> list[str]:
        """Papers that have figures."""
        return sorted({figure.paper for figure in self.figures.values()})


def runs_of(figure: PlannedFigure, seeds: Mapping[str, int] | None = None) -> Iterator[PlannedRun]:
    """Every run of a figure.

    Args:
        seeds: {point label: how many, from 1 on}; a point that is not in it has what it begins with.
    """
    folder = paths.results_folder() / "runs" / figure.id
    for label, point in figure.points.items():
        for seed in range(1, (seeds or {}).get(label, point.trials) + 1):
            yield PlannedRun(figure.id, label, seed, point, folder / label / f"seed-{seed}")


def plan_file(scale: str, kernel: str | None, figures: Any) -> Path:
    """Where the plan of such a campaign is."""
    given = f"{kernel or ''} {json.dumps(figures or [])}"
    other = f"-{hashlib.sha256(given.encode()).hexdigest()[:8]}" if kernel or figures else ""
    return paths.results_folder() / "plan" / f"{scale}{other}.json"


def read_plan(path: Path) -> Plan | None:
    """The plan in a file; None if it is not there, or another version wrote it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        figures = {
            id: PlannedFigure(
                **figure | {"points": {label: PlannedPoint(**p) for label, p in figure["points"].items()}}
            )
            for id, figure in content.pop("figures").items()
        }
        return Plan(figures=figures, **content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def text_of(plan: Plan) -> str:
    """A plan as a file's content."""
    return json.dumps(asdict(plan)) + "\n"


# All that a plan may depend on, below the checkout.
SOURCES = (
    *PACKAGES, "mininet", "scenarios", "data", "config", "kernels", "notebooks", "docs", "courses", "envs", "shipped/*/manifest.json",
    "*.md", "Snakefile", "rules",
)  # fmt: skip


def signature_of(given: Mapping[str, Any], others: Iterable[str]) -> str:
    """A hash of what a plan is worked out from: names, sizes and times of files, where Snakemake works, and what was asked for.

    Args:
        given: the configuration, of which what it has from config/config.yaml alone is covered by that file.
        others: files outside of SOURCES.
    """
    settings = {key: given.get(key) or None for key in ("scale", "kernel", "figures", "replace")}
    digest = hashlib.sha256(
        json.dumps([str(Path.cwd()), str(paths.results_folder()), settings], sort_keys=True, default=str).encode()
    )
    for place in [*(str(p) for name in SOURCES for p in sorted(paths.ROOT.glob(name))), *others]:
        for path, status in _files(place):
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _files(place: str) -> Iterator[tuple[str, os.stat_result]]:
    if not os.path.isdir(place):
        if os.path.exists(place):
            yield place, os.stat(place)
        return
    for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        elif entry.is_file() and not entry.name.endswith((".nbi", ".nbc", ".pyc")):
            yield entry.path, entry.stat()
