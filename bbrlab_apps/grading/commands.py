"""The commands ``bbrlab grade``, ``assign``, ``course`` and ``assignment`` (courses/README.md)."""

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
from bbrlab.base.limits import all_cores
from bbrlab.base.outputs import PAGE as PAGE_MARK
from bbrlab.base.outputs import check_file
from bbrlab.base.words import in_short, number_of
from bbrlab.base.workers import workers
from bbrlab.cli.app import EXIT_MOVED, AsJson, Commands, app, at_once, print_json
from bbrlab.cli.interrupts import EXIT_INTERRUPTED, Interrupted, raise_again

if TYPE_CHECKING:
    from bbrlab_apps.grading.grades import Grade
    from bbrlab_apps.grading.marks import ByPeople
    from bbrlab_apps.grading.people import Roster
    from bbrlab_apps.grading.rubric import Rubric
    from bbrlab_apps.grading.submitted_content import SubmittedContent

Result = TypeVar("Result")
course_app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="A course beside others' systems: a Gradescope autograder, grades for Canvas and Moodle.",
)
assignment_app = typer.Typer(
    cls=Commands, no_args_is_help=True, help="For students: check a submission before handing it in."
)
RubricFile = Annotated[Path, typer.Option("--rubric", metavar="RUBRIC.yaml", help="The assignment, and its points.")]  # fmt: skip
IdColumn = Annotated[str | None, typer.Option(help="With --roster: the column of the ids; default: login, username, ID number, e-mail ...")]  # fmt: skip


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
    roster: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="With --class: all students, as for `bbrlab assign`; says who handed in nothing.")] = None,
    id_column: IdColumn = None,
    out: Annotated[Path, typer.Option(help="Folder for each student's report.html and results.json, and class.csv.")] = Path("grades"),
    cores: Annotated[int | None, at_once("With --class: submissions at once")] = None,
    submitted: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="student, submitted, extension_days: for the rubric's late days.")] = None,
    marks: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="student, question, points, comment: of answers that a person grades.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Grade a submission, or a class of them. Nothing of a submission is imported or executed outside a guest, also if it is the
    working folder.

    What is graded already and has not changed is not graded again.
    """
    from bbrlab_apps.grading.classroom import name_of
    from bbrlab_apps.grading.grade import check_out, grade_submission
    from bbrlab_apps.grading.load import load_rubric
    from bbrlab_apps.grading.people import read_people
    from bbrlab_apps.grading.personal import checked_id
    from bbrlab_apps.grading.rerun import ready

    if submission is None and class_ is None:
        raise UserError("give a SUBMISSION, or --class FOLDER with one for each student")
    if submission is not None and class_ is not None:
        raise UserError("give a SUBMISSION, or --class FOLDER with one for each student, not both")
    if submission is not None and cores is not None:
        raise UserError("--cores is of a class, whose submissions are graded at once; leave it out")
    if submission is not None and roster is not None:
        raise UserError("--roster is of a class, and says who handed in nothing; leave it out")
    if class_ is not None and student is not None:
        raise UserError("--student is of one submission; in a class the folders' names are the ids")
    course = _read_roster(roster, id_column)
    loaded = load_rubric(rubric)
    ready(loaded)
    _warn_of_salt(loaded)
    if submission is not None:
        if not os.path.lexists(submission):
            raise UserError(f"{submission}: is not there; give the folder or the archive of a submission")
        name = checked_id(student or name_of(submission))
        people, _ = read_people(loaded, submitted, marks, [name])  # rows of the rest of the class are no fault
        check_out(out / name, submission)
        result = grade_submission(submission, rubric, name, out / name, by_people=people[name])
        if as_json:
            print_json(result)
        else:
            _show(result, out / name)
        return
    assert class_ is not None
    _grade_class(class_, rubric, loaded, course, submitted, marks, out, cores or all_cores(), as_json)


@app.command()
def assign(
    rubric: RubricFile,
    student: Annotated[list[str] | None, typer.Option(help="A student's id, without --roster; may be given several times.")] = None,
    roster: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="All students of a table, as Canvas, Moodle, Gradescope or a spreadsheet writes it.")] = None,
    id_column: IdColumn = None,
    sheets: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write a folder for each student: sheet, scenario, answers to fill in, notebook.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a row for each student to this file.")] = None,
) -> None:  # fmt: skip
    """Draw the personal values of an assignment (rates, delays, seeds) from students' ids: the same on every machine."""
    from bbrlab.base import files
    from bbrlab_apps.grading.load import load_rubric
    from bbrlab_apps.grading.personal import personal
    from bbrlab_apps.grading.report import table_of
    from bbrlab_apps.grading.sheet import write_sheet

    loaded = load_rubric(rubric)
    _warn_of_salt(loaded)
    people = _read_roster(roster, id_column)
    if student and people is not None:
        raise UserError(
            "--roster draws for all of its students: leave --student out; or leave --roster out, to draw for one"
        )
    ids = student or (people.ids if people else [])
    if not ids:
        raise UserError("give --student ID, or --roster FILE.csv")
    drawn = [personal(loaded, id) for id in dict.fromkeys(ids)]
    head = ["student", *loaded.parameters, "seeds"]
    check_file("--csv", csv, table_of(head, []).encode())
    if sheets is not None:
        for assignment in drawn:
            folder = sheets / assignment.student
            if kept := write_sheet(loaded, assignment, folder):
                typer.echo(
                    f"note: {folder}: kept {', '.join(kept)}, not as they are handed out; to have them anew, move them away"
                )
        column_note = f", named by the column '{people.column}' of {roster}" if people else ""
        typer.echo(f"{number_of(len(drawn), 'sheet')}: {sheets}{column_note}")
    for assignment in drawn if sheets is None else ():
        typer.echo(f"student: {assignment.student}")
        for name, value in assignment.parameters.items():
            typer.echo(f"  {name}: {value}")
        typer.echo(f"  seeds: {' '.join(map(str, assignment.seeds))}")
    if csv is not None:
        rows = [
            [assignment.student, *map(str, assignment.parameters.values()), " ".join(map(str, assignment.seeds))]
            for assignment in drawn
        ]
        files.write_text(csv, table_of(head, rows))


@assignment_app.command("check")
def assignment_check(
    submission: Annotated[Path, typer.Argument(help="Folder or archive that is to be handed in.")] = Path(),
    sheet: Annotated[Path | None, typer.Option(metavar="SHEET.yaml", help="Your assignment; default: sheet.yaml in the folder.", show_default=False)] = None,
) -> None:  # fmt: skip
    """Check that a submission is complete: parts, scenario, runs, an answer of its kind to each question; not that answers are right.

    Exits with 1 if something is missing.
    """
    from bbrlab_apps.grading.sheet import check_submission
    from bbrlab_apps.grading.submission import SHEET

    if not os.path.lexists(submission):
        raise UserError(f"{submission}: is not there; give the folder or the archive that you want to hand in")
    assignment, checks, notes = check_submission(submission, sheet or submission / SHEET)
    typer.echo(f"{assignment.title}, {assignment.student}")
    for check in checks:
        typer.echo(f"{'lacks' if check.problems else 'ok   '} {check.what}")
        for text in check.problems:
            typer.echo(f"      {text}")
    for text in notes:
        typer.echo(f"note: {text}")
    if any(check.problems for check in checks):
        raise typer.Exit(EXIT_MOVED)
    typer.echo("It is what was asked for. Whether the answers are right is not checked here.")


@course_app.command("gradescope")
def course_gradescope(
    rubric: Annotated[Path, typer.Argument(metavar="RUBRIC.yaml", help="Of the assignment.")],
    out: Annotated[Path, typer.Option(metavar="FILE.zip", help="The archive to upload.")] = Path("autograder.zip"),
    roster: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Ids and e-mails of the students; default: their e-mails are their ids.")] = None,
) -> None:  # fmt: skip
    """Write a Gradescope autograder: setup.sh, run_autograder, the rubric without repeated runs, this checkout and its kernel."""
    from bbrlab_apps.grading.gradescope import write_autograder
    from bbrlab_apps.grading.load import load_rubric

    if out.suffix.lower() != ".zip":
        raise UserError(f"--out {out}: Gradescope takes a ZIP archive; give a name that ends in .zip")
    check_file("--out", out, b"build/built_with.json")  # which every autograder has
    _warn_of_salt(load_rubric(rubric))
    for note in write_autograder(rubric, roster, out):
        typer.echo(f"note: {note}")
    typer.echo(f"{out} ({out.stat().st_size / 1e6:.1f} MB): upload it as the autograder of a programming assignment")


@course_app.command("gradebook")
def course_gradebook(
    grades: Annotated[Path, typer.Argument(metavar="GRADES", help="Folder that `bbrlab grade --class` wrote.")],
    table: Annotated[Path, typer.Argument(metavar="EXPORT.csv", help="The gradebook as Canvas or Moodle exported it.")],
    out: Annotated[Path, typer.Option(metavar="FILE.csv", help="The table to import there.")],
    column: Annotated[str | None, typer.Option(help="The assignment's column; default: the one named by its title.")] = None,
) -> None:  # fmt: skip
    """Put grades into the table that Canvas or Moodle exported, for import there."""
    from bbrlab.base import files
    from bbrlab_apps.grading.gradebook import filled, grades_in
    from bbrlab_apps.grading.people import read_table

    check_file("--out", out)
    found, left_out = grades_in(grades)
    text, notes = filled(read_table(table), found, column)
    files.write_text(out, text)
    for note in (*left_out, *notes):
        typer.echo(f"note: {note}")
    typer.echo(str(out))


@course_app.command("autograde", hidden=True)
def course_autograde(root: Annotated[Path, typer.Argument(help="/autograder")]) -> None:
    """Grade ROOT/submission, as run_autograder does on Gradescope."""
    from bbrlab_apps.grading.gradescope import autograde

    autograde(root)


def _read_roster(file: Path | None, id_column: str | None) -> Roster | None:
    from bbrlab_apps.grading.people import read_roster

    if id_column is not None and file is None:
        raise UserError("--id-column is of a --roster")
    return None if file is None else read_roster(file, id_column)


def _warn_of_salt(rubric: Rubric) -> None:
    from bbrlab_apps.grading.rubric import SHIPPED_SALT

    if SHIPPED_SALT in rubric.salt:
        typer.echo("bbrlab: the rubric has the salt that it came with, which everybody knows; change it for a course", err=True)  # fmt: skip


def _show(result: Grade, out: Path) -> None:
    """A grade on the terminal."""
    from bbrlab_apps.grading.report import PAGE, number

    for item in result["items"]:
        mark = "ok  " if item["score"] == item["of"] else "MISS"
        typer.echo(f"{mark} {number(item['score']):>5} of {number(item['of']):<5} {item['id']}: {item['told'][0]}")
        for text in item["told"][1:]:
            typer.echo(f"                    {text}")
    for kind, text in result["flags"]:
        typer.echo(f"LOOK {kind}: {text}")
    if result["late"]:
        typer.echo(f"LATE {result['late']}")
    if result["pending"]:
        typer.echo(f"WAIT for a person to grade: {', '.join(result['pending'])}")
    typer.echo(f"{result['student']}: {number(result['score'])} of {number(result['of'])} points: {out / PAGE}")


def _grade_class(
    folder: Path, rubric_file: Path, rubric: Rubric, course: Roster | None, submitted: Path | None, marks: Path | None, out: Path, cores: int, as_json: bool
) -> None:  # fmt: skip
    """Grade a class and write its table and page: arguments as of grade(). UserError before anything is graded, if something is wrong.

    Args:
        folder: with everybody's submissions.
        course: everybody of the course, of whom those without a submission are told; None: not known.
    """
    from bbrlab.base import files
    from bbrlab_apps.grading.class_page import CLASS_PAGE, class_page
    from bbrlab_apps.grading.classroom import submissions_in, without_submission
    from bbrlab_apps.grading.grade import check_out
    from bbrlab_apps.grading.people import read_people
    from bbrlab_apps.grading.report import CLASS, CLASS_HEAD, NOT_HANDED_IN, class_table

    if out.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            f"--out {out}: lies in --class {folder}, and would be graded as a submission; choose another folder"
        )
    submissions = submissions_in(folder)
    absent = [] if course is None else without_submission(course, submissions)
    people, notes = read_people(rubric, submitted, marks, list(submissions))
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    check_file("--out", out / CLASS, CLASS_HEAD.encode())
    check_file("--out", out / CLASS_PAGE, PAGE_MARK)
    for name, path in submissions.items():
        check_out(out / name, path)
    grades = _class(submissions, rubric_file, rubric, out, cores, people, as_json)
    files.write_text(out / CLASS, class_table(grades, absent))
    files.write_text(out / CLASS_PAGE, class_page(grades, absent))
    typer.echo(f"{len(grades)} graded: {out / CLASS}  {out / CLASS_PAGE}", err=as_json)
    if absent:
        typer.echo(f"{len(absent)} {NOT_HANDED_IN}: {in_short(absent)}", err=as_json)
    if as_json:
        print_json([grades[student] for student in sorted(grades)])


def _class(
    submissions: dict[str, Path], rubric_file: Path, rubric: Rubric, out: Path, cores: int, people: dict[str, ByPeople], to_stderr: bool
) -> dict[str, Grade]:  # fmt: skip
    """Grade a class, several submissions at once: first read all of them, then compare them, then repeat runs."""
    from bbrlab_apps.grading.classroom import class_matches
    from bbrlab_apps.grading.grade import grade_submission, read_submission
    from bbrlab_apps.grading.grades import flag_words
    from bbrlab_apps.grading.report import number

    context = multiprocessing.get_context("spawn")
    count = min(cores, len(submissions))
    killed = "a process that graded was killed"
    with workers(count, _begin_worker, killed, "what is graded is kept", context) as pool:
        with _ctrl_c_for_this_process_alone():  # all workers are started with the first job
            looking = {
                student: pool.submit(_work, read_submission, path, rubric_file, student, out / student)
                for student, path in submissions.items()
            }
        submitted: dict[str, SubmittedContent] = {student: job.result() for student, job in looking.items()}
        grading = {
            pool.submit(_work, grade_submission, path, rubric_file, student, out / student, class_matches(student, submitted, rubric), people[student]): student
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
    """Processes started in the block ignore a terminal's Ctrl-C; this one gets it at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_at_work = threading.Event()  # in a worker: it has something to clean up


def _begin_worker() -> None:
    """Have a worker end at SIGTERM with all that it started, and ignore Ctrl-C and hangups, which its parent handles."""

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
    """Run a job in a worker; interrupted, clean up and end the process."""
    try:
        _at_work.set()
        return do(*given)
    except Interrupted:
        os._exit(EXIT_INTERRUPTED)
    finally:
        _at_work.clear()
