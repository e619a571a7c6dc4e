"""Runs that failed self-checks and are kept nevertheless, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict, read_model
from bbrlab.measure.checks.check import failed_of
from bbrlab.results.figures import Run
from bbrlab.results.shipped import Failed
from bbrlab_apps.shipping.finished_run import FinishedRun


class AcceptedFailure(Strict):
    """Why runs that failed self-checks are shipped nevertheless; without point or seed: all runs of the figure."""

    figure: str
    why: str
    point: str | None = None
    seed: int | None = None
    check: str | None = None

    def covers(self, run: Run, check: str) -> bool:
        """Whether this explains a run's check."""
        given = (self.point, run.point.label), (self.seed, run.seed), (self.check, check)
        return self.figure == run.figure and all(wanted in (None, actual) for wanted, actual in given)


def read_accepted_failures(path: Path) -> list[AcceptedFailure]:
    """A file of explanations: a list of AcceptedFailure. UserError naming field and value if it is not one."""
    return read_model(path, list[AcceptedFailure])


def failed_runs(runs: Iterable[FinishedRun], accepted: Sequence[AcceptedFailure]) -> list[Failed]:
    """The runs that failed self-checks, with their reasons. UserError for a run without a reason, or a reason without a run."""
    failed, used = [], set()
    for finished in runs:
        checks = [c["name"] for c in failed_of(finished.checks)]
        reasons = [[i for i, e in enumerate(accepted) if e.covers(finished.run, check)] for check in checks]
        if open_ones := [check for check, why in zip(checks, reasons, strict=True) if not why]:
            raise UserError(
                f"{finished.run.folder}: failed {', '.join(open_ones)}, unexplained; find out why, then say so with --explained FILE "
                f"(- {{figure: {finished.run.figure}, point: '{finished.run.point.label}', seed: {finished.run.seed}, check: {open_ones[0]}, why: ...}})"
            )
        if checks:
            chosen = sorted({i for why in reasons for i in why})
            used |= set(chosen)
            why = " ".join(dict.fromkeys(accepted[i].why for i in chosen))
            failed.append(
                Failed(
                    figure=finished.run.figure,
                    point=finished.run.point.label,
                    seed=finished.run.seed,
                    checks=checks,
                    why=why,
                )
            )
    if idle := [e for i, e in enumerate(accepted) if i not in used]:
        raise UserError(
            f"--explained: no run of {idle[0].figure} failed as one entry says ({idle[0].why}); take it out"
        )
    return failed
