"""Runs a study: what is not there yet, as many guests at once as there are cores."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.campaign.progress import Progress, key_of
from bbrlab.experiment.plan import check_room
from bbrlab.kernel.built import Kernel
from bbrlab.kernel.own import own_of
from bbrlab.results.figures import Run, write_points
from bbrlab.results.run_folder import RunFolder
from bbrlab.run.compatibility import check_parameters, kernel_for
from bbrlab.run.processes import Ended, Job, Started, run_each, run_job
from bbrlab_apps.study.plan import Study

VIRTUAL = "uml"  # of the backends, that in virtual time


def kernel_of(study: Study, name: str | None, sources: Sequence[Path], say: Callable[[str], None]) -> Kernel:
    """The kernel that runs all points of a study; one with algorithms of one's own is built if it is not there.

    UserError if it is not built, or cannot run one of the points.

    Args:
        name: entry of kernels.yaml; default: its default.
        say: gets one line per step of a build.
    """
    points = study.figure.points
    used = {flow.cca for point in points for flow in point.scenario.flows}
    kernel = kernel_for(name, VIRTUAL, own_of(used, name, sources), say)
    if lacking := sorted(used - kernel.ccas.keys()):
        raise UserError(
            f"{study.name}: kernel {kernel.name} has no {lacking[0]} (it has {', '.join(sorted(kernel.ccas))}); choose another "
            "with --kernel (bbrlab kernel list)"
        )
    for point in points:
        check_parameters(point, kernel)
        check_room(point.scenario)
    return kernel


def run_study(
    study: Study,
    left: Sequence[Run],
    jobs: int,
    kernel_name: str | None,
    sources: Sequence[Path],
    on_progress: Callable[[Progress, str], None],
) -> None:
    """Run what is left of a study. If a run fails, no other begins. UserError with why the first run failed that did.

    Args:
        jobs: guests at once.
        on_progress: called with how far it is, and how many runs wait for a free core (in words; empty: none).
    """
    figure = study.figure
    progress = Progress.of(left, jobs)
    used = {flow.cca for point in figure.points for flow in point.scenario.flows}
    own = [cca.path.absolute() for cca in own_of(used, kernel_name, sources)]  # one kernel has them all
    with tempfile.TemporaryDirectory(prefix="bbrlab-sweep-") as scratch:
        files = write_points(figure, Path(scratch))

        def work(run: Run) -> Callable[[list[Started]], tuple[Run, Ended]]:
            job = Job(files[run.point.label], run.seed, run.folder.absolute(), kernel_name, own)
            return lambda started: (run, run_job(job, started))

        def report(done: list[tuple[Run, Ended]], waits: str) -> None:
            for run, ended in done:
                if not ended.why and key_of(run) not in progress.done:
                    progress.finish(key_of(run), ok=RunFolder(run.folder).summary["ok"])
            on_progress(progress, waits)

        on_progress(progress, "")
        over = run_each([work(run) for run in left], jobs, report, lambda one: bool(one[1].why))
    failed = [(run, ended.why) for run, ended in over if ended.why]
    if failed:
        run, why = failed[0]
        more = f" ({number_of(len(failed), 'run')} failed)" if len(failed) > 1 else ""
        raise UserError(
            f"{study.name}: {run.point.label}, seed {run.seed}: {why}{more}; {number_of(len(study.finished), 'run')} of "
            f"{len(study.runs)} are there, and the same command goes on with the others"
        )
