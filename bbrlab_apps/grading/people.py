"""CSV tables that teachers provide: rosters, times of hand-ins, marks of people."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.files import read_plain
from bbrlab.base.words import in_short
from bbrlab_apps.grading.marks import ByPeople, late_days
from bbrlab_apps.grading.personal import checked_id
from bbrlab_apps.grading.rubric import Rubric, instant_of

BYTES_MAX = 5_000_000
# Columns that name a student, in the order in which they are looked for.
ID_COLUMNS = ("sis login id", "username", "student id", "id number", "sid", "student", "id", "email address", "email")
EMAIL_COLUMNS = ("email address", "email")
# Of Canvas's table those that are about the student; the others are assignments, notes and sums. An import needs Student (or LastName
# and FirstName), ID and Section, with what the export has between them (instructure/canvas-lms, lib/gradebook_importer.rb).
CANVAS = (
    "student",
    "lastname",
    "firstname",
    "id",
    "sis user id",
    "sis login id",
    "integration id",
    "root account",
    "section",
)
CANVAS_IDS = ("sis login id", "sis user id", "id")  # "Student" is a name, and "ID" Canvas's own number
POINTS_POSSIBLE = "points possible"


@dataclass(frozen=True)
class Table:
    """A CSV file."""

    file: Path
    head: list[str]
    rows: list[list[str]]  # each as long as the head
    numbers: list[int]  # of the rows, as a spreadsheet counts them: the head is 1, and empty ones count

    def column(self, names: Sequence[str]) -> int | None:
        """The first of some columns that the table has, ignoring case."""
        lower = [name.strip().lower() for name in self.head]
        return next((lower.index(name) for name in names if name in lower), None)

    @property
    def is_canvas(self) -> bool:
        """Whether Canvas wrote it."""
        return all(self.column([name]) is not None for name in ("id", "section")) and (
            self.column(["student", "lastname"]) is not None
        )

    def students(self) -> Iterator[tuple[int, list[str]]]:
        """The rows of students with their numbers, without those of Canvas's that are of assignments or of its test student."""
        about = [i for i, name in enumerate(self.head) if name.strip().lower() in CANVAS]
        for number, row in zip(self.numbers, self.rows, strict=True):
            texts = [row[i].strip() for i in about] if self.is_canvas else row
            test = "Student, Test" in texts or texts[:2] == ["Student", "Test"]
            if any(texts) and not (self.is_canvas and (test or is_points_possible(row))):
                yield number, row

    def needed(self, *names: str) -> int:
        """The index of a column. UserError if it is missing."""
        place = self.column([name.lower() for name in names])
        if place is None:
            raise UserError(f"{self.file}: has no column '{names[0]}' (it has {in_short(self.head) or 'none'})")
        return place


def read_table(file: Path) -> Table:
    """A CSV file with a head; commas, semicolons or tabs. UserError if it is none."""
    try:
        text = read_plain(file, BYTES_MAX).decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); give a CSV file") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: is no UTF-8 text; save it as CSV (UTF-8)") from None
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    try:
        rows = [
            (number, row)
            for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=separator), 1)
            if any(map(str.strip, row))
        ]
    except csv.Error as error:
        raise UserError(f"{file}: is no CSV ({error})") from None
    if not rows:
        raise UserError(f"{file}: is empty; its first line names the columns")
    (_, head), *below = rows
    if longer := next((number for number, row in below if any(map(str.strip, row[len(head) :]))), None):
        raise UserError(
            f"{file}, row {longer}: has more cells than the first line names columns; put a text or number with a '{separator}' in quotes"
        )
    return Table(file, head, [(row + [""] * len(head))[: len(head)] for _, row in below], [n for n, _ in below])


def is_points_possible(row: Sequence[str]) -> bool:
    """Whether a row of Canvas's table says how many points each assignment has."""
    return any(text.strip().lower() == POINTS_POSSIBLE for text in row)


def as_number(text: str) -> float:
    """A number with a point or a comma. ValueError if it is none."""
    return float(text.strip().replace(",", "."))


@dataclass(frozen=True)
class Roster:
    """The students of a course."""

    file: Path
    column: str  # from which the ids are
    ids: list[str]  # of the students, in the table's order
    by_email: dict[str, str]  # {e-mail in small letters: id}, of those who have one


def read_roster(file: Path, column: str | None = None) -> Roster:
    """The students of a CSV file, as Canvas, Moodle, Gradescope or a spreadsheet writes it.

    UserError if there is no such column, or a name is no id or stands twice.

    Args:
        column: that names the student; default: the first of ID_COLUMNS that is there, of Canvas's table of CANVAS_IDS.
    """
    table = read_table(file)
    place = table.needed(column) if column else table.column(CANVAS_IDS if table.is_canvas else ID_COLUMNS)
    if place is None:
        raise UserError(
            f"{file}: has no column that names students ({', '.join(ID_COLUMNS)}); say which does: --id-column NAME"
        )
    email = table.column(EMAIL_COLUMNS)
    ids: list[str] = []
    by_email: dict[str, str] = {}
    for number, row in table.students():
        id = checked_id(row[place], f"{file}, row {number}, column '{table.head[place]}'")
        if id in ids:
            raise UserError(f"{file}, row {number}: '{id}' stands twice")
        ids.append(id)
        if email is not None and row[email].strip():
            by_email[row[email].strip().lower()] = id
    if not ids:
        raise UserError(f"{file}: has no students")
    return Roster(file, table.head[place], ids, by_email)


def read_people(
    rubric: Rubric, submitted: Path | None, marks: Path | None, students: Sequence[str]
) -> tuple[dict[str, ByPeople], list[str]]:
    """{student: what people contribute to the grade}, and a note for each file with rows of others. UserError naming file, row and
    column of what is wrong, or stands twice.

    Args:
        submitted: a CSV file with student, submitted (ISO 8601 with a zone) and, if there are any, extension_days; None: all in time.
        marks: a CSV file with student, question, points and, if there are any, comment; None: none yet.
    """
    people: dict[str, ByPeople] = {student: {"late_days": 0, "marks": {}} for student in students}
    others: dict[Path, list[str]] = {}
    if submitted is not None:
        if rubric.late.deadline is None:
            raise UserError(f"--submitted {submitted}: the rubric has no late.deadline")
        for student, days in _times(rubric, submitted).items():
            if student in people:
                people[student]["late_days"] = days
            else:
                others.setdefault(submitted, []).append(student)
    if marks is not None:
        for student, given in _marks(rubric, marks).items():
            if student in people:
                people[student]["marks"] = given
            else:
                others.setdefault(marks, []).append(student)
    return people, [
        f"{file}: has rows of {in_short(names)}, of whom there is no submission" for file, names in others.items()
    ]


def _times(rubric: Rubric, file: Path) -> dict[str, int]:
    table = read_table(file)
    student, at, extension_column = table.needed("student"), table.needed("submitted"), table.column(["extension_days"])
    deadline = instant_of(rubric.late.deadline or "")
    days_of: dict[str, int] = {}
    for number, row in zip(table.numbers, table.rows, strict=True):
        extension = (
            _number(table, number, row, extension_column, 365)
            if extension_column is not None and row[extension_column].strip()
            else 0.0
        )
        id = checked_id(row[student], f"{file}, row {number}")
        if id in days_of:
            raise UserError(f"{file}, row {number}: '{id}' stands twice; keep the row that counts")
        try:
            days_of[id] = late_days(deadline, instant_of(row[at]), extension)
        except ValueError as error:
            raise UserError(f"{file}, row {number}, column 'submitted': {error}") from None
    return days_of


def _marks(rubric: Rubric, file: Path) -> dict[str, dict[str, tuple[float, str]]]:
    table = read_table(file)
    student, question, points = table.needed("student"), table.needed("question"), table.needed("points")
    comment = table.column(["comment"])
    points_max = {q.id: q.points for q in rubric.questions if q.person is not None}
    marks: dict[str, dict[str, tuple[float, str]]] = {}
    for number, row in zip(table.numbers, table.rows, strict=True):
        id = row[question].strip()
        if id not in points_max:
            raise UserError(
                f"{file}, row {number}, column 'question': no person grades '{id}' (people grade {in_short(list(points_max)) or 'none'})"
            )
        value = _number(table, number, row, points, points_max[id])
        words = row[comment].strip()[:2000] if comment is not None else ""
        name = checked_id(row[student], f"{file}, row {number}")
        if id in marks.setdefault(name, {}):
            raise UserError(f"{file}, row {number}: '{name}' has two rows for '{id}'; keep the one that counts")
        marks[name][id] = (value, words)
    return marks


def _number(table: Table, number: int, row: Sequence[str], place: int, most: float) -> float:
    try:
        value = as_number(row[place])
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise UserError(
            f"{table.file}, row {number}, column '{table.head[place]}': '{row[place].strip()[:40]}' must be a number from 0 to {most:g}"
        )
    return value
