"""How far a campaign is: runs, hours of testbed time, speed, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from bbrlab.base.words import number_of
from bbrlab.campaign.plan import Plan, PlannedFigure, runs_of

if TYPE_CHECKING:
    from bbrlab.results.figures import Run

Key = tuple[str, str, int]  # figure, point label, seed
TRUSTED_SHARE = 0.02  # of the work, from which on what it took tells more than the estimate


class Cost(NamedTuple):
    """What a run is expected to take: testbed time, and real time on one core."""

    virtual_s: float
    core_s: float


@dataclass
class Progress:
    """Runs under way: of a campaign, a study, or a verification."""

    figures: Mapping[str, PlannedFigure]  # of a campaign all of the scale, by id
    cores: int
    clock: Callable[[], float] = time.monotonic
    planned: dict[Key, Cost] = field(default_factory=dict)  # the runs of this campaign, done or not
    # done, failed: those that are over; those of them whose self-checks failed
    done: set[Key] = field(default_factory=set)
    failed: int = 0
    start_s: float = field(init=False)
    last_s: float = field(init=False)  # when the last run was over

    def __post_init__(self) -> None:
        self.start_s = self.last_s = self.clock()

    @classmethod
    def of(cls, runs: Iterable[Run], cores: int, clock: Callable[[], float] = time.monotonic) -> Progress:
        """Of these runs, none of which is over."""
        from bbrlab.results.run_estimate import estimate_s  # only here: every Snakemake imports this module

        planned = {key_of(run): Cost(run.point.scenario.duration_s, estimate_s(run.point)) for run in runs}
        return cls({}, cores, clock, planned)

    def plan(self, keys: Iterable[Key]) -> None:
        """Add runs to what is planned."""
        for figure, label, seed in keys:
            point = self.figures[figure].points[label]
            self.planned[figure, label, seed] = Cost(point.virtual_s, point.core_s)

    def plan_seeds(self, figure: str, seeds: Mapping[str, int]) -> None:
        """Add what a look at a figure's claims asked for: the runs of those seeds that are not there yet."""
        runs = runs_of(self.figures[figure], seeds)
        self.plan((r.figure, r.label, r.seed) for r in runs if not r.is_done)

    def finish(self, key: Key, ok: bool = True) -> None:
        """A run is over."""
        if key not in self.planned:
            self.plan([key])
        self.done.add(key)
        self.failed += not ok
        self.last_s = self.clock()

    @property
    def virtual_s(self) -> float:
        """Testbed time that is over."""
        return sum(self.planned[key].virtual_s for key in self.done)

    @property
    def elapsed_s(self) -> float:
        """Real time since the start."""
        return self.clock() - self.start_s

    @property
    def left_s(self) -> float:
        """Expected real time of the runs that are left: by the estimate, and by how well it did as soon as that is known."""
        all_s = sum(cost.core_s for cost in self.planned.values())
        done_s = sum(self.planned[key].core_s for key in self.done)
        left_s = (all_s - done_s) / self.cores
        if done_s > TRUSTED_SHARE * all_s:
            left_s *= (self.last_s - self.start_s) * self.cores / done_s
        return max(0.0, left_s - (self.clock() - self.last_s))

    def words(self) -> str:
        """Where the campaign is, in one line."""
        all_s = sum(cost.virtual_s for cost in self.planned.values())
        parts = [
            f"runs {len(self.done)} of {len(self.planned)}",
            f"{span(self.virtual_s)} of {span(all_s)} of virtual time",
        ]
        if self.done:
            parts.append(f"{self.virtual_s / max(self.elapsed_s, 1e-9):.0f} x real time")
        parts.append(f"{span(self.left_s)} left")
        if self.failed:
            parts.append(f"{self.failed} failed their checks")
        return " · ".join(parts)

    def summary(self) -> str:
        """What was done, in one line."""
        speed = self.virtual_s / max(self.elapsed_s, 1e-9)
        failed = f"{self.failed} failed their checks" if self.failed else "all passed their checks"
        return f"{number_of(len(self.done), 'run')}, {span(self.virtual_s)} of virtual time in {span(self.elapsed_s)} ({speed:.0f} x real time); {failed}"


def key_of(run: Run) -> Key:
    """What a run is called in Progress."""
    return run.figure, run.point.label, run.seed


def span(seconds: float) -> str:
    """A time in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


current: Progress | None = None  # of this process, for the terminal (terminal.py), which Snakemake makes


def begin(plan: Plan, workflow: Any) -> None:
    """A campaign starts (``onstart``): plan the runs that Snakemake's workflow is going to start."""
    global current  # noqa: PLW0603 - one campaign in a process
    settings = workflow.resource_settings
    # Of a scheduler's jobs each has one core; here all runs share the cores.
    at_once = settings.nodes if workflow.non_local_exec else settings.cores
    current = Progress(plan.figures, at_once or 1)
    jobs = [job.wildcards for job in workflow.dag.needrun_jobs() if job.rule.name == "run"]
    current.plan((f"{w.paper}/{w.figure}", w.label, int(w.seed)) for w in jobs)
