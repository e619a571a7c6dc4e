"""``bbrlab grade`` and ``bbrlab assign``: replications in a course (courses/README.md)."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bbrlab.base.errors import UserError
from bbrlab.base.workers import workers
from bbrlab.cli.app import AsJson, all_cores, app, at_once, print_json
from bbrlab.cli.interrupts import EXIT_INTERRUPTED, Interrupted, raise_again

if TYPE_CHECKING:
    from bbrlab_apps.grading.examine import Examined
    from bbrlab_apps.grading.grade import Grade
    from bbrlab_apps.grading.rubric import Rubric

Result = TypeVar("Result")
RubricFile = Annotated[Path, typer.Option("--rubric", metavar="RUBRIC.yaml", help="What is asked for, and what gives points.")]  # fmt: skip


@app.command()
def grade(
    rubric: RubricFile,
    submission: Annotated[
        Path | None, typer.Argument(help="Folder, .zip or .tar of one student.", show_default=False)
    ] = None,
    class_: Annotated[
        Path | None, typer.Option("--class", metavar="FOLDER", help="Grade everything in here, each submission named by its student's id.")
    ] = None,
    student: Annotated[
        str | None, typer.Option(help="Whose submission it is; default: the name of the folder or archive.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for each student's report.html and results.json, and class.csv.")] = Path("grades"),
    cores: Annotated[int | None, at_once("With --class: submissions at once")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Grade a submission, or a class of them. Nothing of a submission is imported or executed outside a guest, also if it is the
    working folder.

    What is graded already and has not changed is not graded again.
    """
    from bbrlab_apps.grading.classroom import name_of, submissions_in
    from bbrlab_apps.grading.grade import grade_submission
    from bbrlab_apps.grading.personal import known_id
    from bbrlab_apps.grading.report import CLASS, class_table
    from bbrlab_apps.grading.rerun import ready
    from bbrlab_apps.grading.rubric import load_rubric

    if (submission is None) == (class_ is None):
        raise UserError("give a SUBMISSION, or --class FOLDER with one for each student")
    if submission is not None and cores is not None:
        raise UserError("--cores is of a class, whose submissions are graded at once; leave it out")
    if class_ is not None and student is not None:
        raise UserError("--student is of one submission; in a class the folders' names are the ids")
    loaded = load_rubric(rubric)
    ready(loaded)
    _warn_of_salt(loaded)
    if submission is not None:
        if not os.path.lexists(submission):
            raise UserError(f"{submission}: is not there; give the folder or the archive of a submission")
        name = known_id(student or name_of(submission))
        found = grade_submission(submission, rubric, name, out / name)
        if as_json:
            print_json(found)
        else:
            _show(found, out / name)
        return
    assert class_ is not None
    grades = _class(submissions_in(class_), rubric, loaded, out, cores or all_cores(), as_json)
    from bbrlab.base import files

    files.write_text(out / CLASS, class_table(grades))
    typer.echo(f"{len(grades)} graded: {out / CLASS}", err=as_json)
    if as_json:
        print_json([grades[student] for student in sorted(grades)])


@app.command()
def assign(
    rubric: RubricFile,
    student: Annotated[list[str], typer.Option(help="A student's id; may be given several times.")],
    csv: Annotated[Path | None, typer.Option(help="Write a row for each student to this file.")] = None,
    scenario: Annotated[
        Path | None, typer.Option(help="Write the scenario that is asked of the student to this file (one student).")
    ] = None,
) -> None:
    """Draw what is personal in an assignment (rates, delays, seeds) from students' ids: the same on every machine."""
    from bbrlab.base import files
    from bbrlab.base.yaml_files import dump_yaml
    from bbrlab_apps.grading.personal import personal
    from bbrlab_apps.grading.report import table_of
    from bbrlab_apps.grading.rubric import load_rubric

    loaded = load_rubric(rubric)
    _warn_of_salt(loaded)
    if scenario is not None and len(student) > 1:
        raise UserError("--scenario is of one student")
    drawn = [personal(loaded, id) for id in student]
    for own in drawn:
        typer.echo(f"student: {own.student}")
        for name, value in own.parameters.items():
            typer.echo(f"  {name}: {value}")
        typer.echo(f"  seeds: {' '.join(map(str, own.seeds))}")
    if csv is not None:
        names = [*loaded.parameters, "seeds"]
        rows = [[own.student, *map(str, own.parameters.values()), " ".join(map(str, own.seeds))] for own in drawn]
        files.write_text(csv, table_of(["student", *names], rows))
    if scenario is not None:
        content = drawn[0].asked.scenario.model_dump(exclude_unset=True)
        files.write_text(scenario, dump_yaml(content))


def _warn_of_salt(rubric: Rubric) -> None:
    from bbrlab_apps.grading.rubric import SHIPPED_SALT

    if SHIPPED_SALT in rubric.salt:
        typer.echo("bbrlab: the rubric has the salt that it came with, which everybody knows; change it for a course", err=True)  # fmt: skip


def _show(found: Grade, out: Path) -> None:
    """A grade on the terminal."""
    from bbrlab_apps.grading.report import PAGE, number

    for item in found["items"]:
        mark = "ok  " if item["score"] == item["of"] else "MISS"
        typer.echo(f"{mark} {number(item['score']):>5} of {number(item['of']):<5} {item['id']}: {item['told'][0]}")
        for text in item["told"][1:]:
            typer.echo(f"                    {text}")
    for kind, text in found["flags"]:
        typer.echo(f"LOOK {kind}: {text}")
    typer.echo(f"{found['student']}: {number(found['score'])} of {number(found['of'])} points: {out / PAGE}")


def _class(
    submissions: dict[str, Path], rubric_file: Path, rubric: Rubric, out: Path, cores: int, to_stderr: bool
) -> dict[str, Grade]:
    """Grade a class, several submissions at once: first look at all of them, then compare them, then make runs again."""
    from bbrlab_apps.grading.classroom import others_of
    from bbrlab_apps.grading.grade import examine_submission, flag_words, grade_submission
    from bbrlab_apps.grading.report import number

    context = multiprocessing.get_context("spawn")
    count = min(cores, len(submissions))
    killed = "a process that graded was killed"
    with workers(count, _begin_worker, killed, "what is graded is kept", context) as pool:
        with _ctrl_c_for_this_process_alone():  # all workers are started with the first job
            looking = {
                student: pool.submit(_work, examine_submission, path, rubric_file, student, out / student)
                for student, path in submissions.items()
            }
        found: dict[str, Examined] = {student: job.result() for student, job in looking.items()}
        grading = {
            pool.submit(_work, grade_submission, path, rubric_file, student, out / student, others_of(student, found, rubric)): student
            for student, path in submissions.items()
        }  # fmt: skip
        grades = {}
        for number_done, job in enumerate(as_completed(grading), 1):
            graded = grades[grading[job]] = job.result()
            words = f"{number(graded['score'])} of {number(graded['of'])}"
            typer.echo(
                f"[{number_done}/{len(grading)}] {grading[job]}: {words} {flag_words(graded)}".rstrip(), err=to_stderr
            )
    return grades


@contextlib.contextmanager
def _ctrl_c_for_this_process_alone() -> Iterator[None]:
    """Processes that are started in the block never see a terminal's Ctrl-C; this one gets it at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_at_work = threading.Event()  # in a worker: it has something to clean up


def _begin_worker() -> None:
    """A worker ends at SIGTERM, whatever it does, and takes what it started with it. Ctrl-C and a terminal that is closed are for who started it."""

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if not _at_work.is_set():
            os._exit(EXIT_INTERRUPTED)
        raise Interrupted

    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    raise_again(lambda: signal.signal(signal.SIGTERM, end))
    signal.signal(signal.SIGTERM, end)


def _work(do: Callable[..., Result], *given: Any) -> Result:
    """What a worker does; interrupted, it cleans up and ends."""
    try:
        _at_work.set()
        return do(*given)
    except Interrupted:
        os._exit(EXIT_INTERRUPTED)
    finally:
        _at_work.clear()
