"""Puts grades into the table that Canvas or Moodle exported, so that it can be imported there again.

Canvas: the columns of people.CANVAS name a student, a row "Points Possible" has each assignment's points, and a column that is not there
becomes a new assignment. A cell without a score takes away the one that Canvas has, so who has no grade here is left out. Moodle: any column may name a student (its import asks which: e-mail address, ID
number); feedback comes in a column beside the grade, without which it would be lost (docs.moodle.org, Grade import).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.tables import cell
from bbrlab.base.words import in_short, number_of
from bbrlab_apps.grading.grades import GRADE, Grade
from bbrlab_apps.grading.people import CANVAS, Table, as_number, is_points_possible, read_table
from bbrlab_apps.grading.personal import one_form
from bbrlab_apps.grading.report import CLASS, number

FEEDBACK = "Feedback comments"


def grades_in(folder: Path) -> tuple[dict[str, Grade], list[str]]:
    """{student: grade} of what `bbrlab grade --class` wrote to a folder, and notes for the teacher.

    The folder may have grades of earlier times: of the students of the class's table, if there is one, only those with points in
    it count. UserError if there is no grade, or some are of different assignments.
    """
    found = {file.parent.name: file for file in sorted(folder.glob(f"*/{GRADE}"))}
    table = folder / CLASS
    in_class = _with_points(table) if table.exists() else set(map(cell, found))
    chosen = {student: file for student, file in found.items() if cell(student) in in_class}
    grades: dict[str, Grade] = {}
    for file in chosen.values():
        grade: Grade = files.read_json(file, "delete it, and grade again")
        if not {"student", "assignment", "title", "score", "of", "items", "pending"} <= grade.keys():
            raise UserError(f"{file}: is of another version; grade again")
        grades[grade["student"]] = grade
    if not grades:
        of_class = f" of students with points in {CLASS}" if table.exists() else ""
        raise UserError(
            f"{folder}: has no grades (*/{GRADE}){of_class}; give the folder that `bbrlab grade --class` wrote to (--out)"
        )
    first, *others = grades.values()
    if other := next((grade for grade in others if grade["assignment"] != first["assignment"]), None):
        raise UserError(
            f"{folder}: {first['student']}'s grade is of assignment '{first['assignment']}', {other['student']}'s of "
            f"'{other['assignment']}'; grade each assignment's class into a folder of its own (--out)"
        )
    if not (left_out := [student for student in found if student not in chosen]):
        return grades, []
    return grades, [
        f"left out, without points in {table}: {in_short(left_out)}; if they have handed in, grade the class again"
    ]


def _with_points(file: Path) -> set[str]:
    """The students of a class's table who have points, as it writes their ids."""
    table = read_table(file)
    student, score = table.needed("student"), table.needed("score")
    return {row[student] for row in table.rows if row[score].strip()}


def filled(table: Table, grades: Mapping[str, Grade], column: str | None) -> tuple[str, list[str]]:
    """The text of a CSV file to import, and notes for the teacher. UserError if nobody of the table has a grade.

    Args:
        column: of the assignment; default: one that is called by its title.
    """
    id_column, matched = _identity(table, grades)
    title = column or next(iter(grades.values()))["title"]
    place = _place_of(table, title)
    name = table.head[place] if place is not None else title
    canvas = table.is_canvas
    kept = [i for i, head in enumerate(table.head) if not canvas or head.strip().lower() in CANVAS]
    kept = [i for i in kept if i != place]
    rows = [[*(table.head[i] for i in kept), name, *([] if canvas else [FEEDBACK])]]
    of = _points_possible(table, place) if canvas and place is not None else None
    whole = next(iter(grades.values()))["of"]
    rows += [[*(row[i] for i in kept), number(of or whole)] for row in table.rows if canvas and is_points_possible(row)]
    without = 0
    for _, row in table.students():
        if (grade := grades.get(matched.get(row[id_column], ""))) is None:
            without += 1
            continue
        score = number(grade["score"] * (of or whole) / whole)
        rows.append([*(row[i] for i in kept), score, *([] if canvas else [cell(_feedback(grade))])])
    notes = [
        f"students are named by '{table.head[id_column]}', points go to '{name}'"
        + ("" if place is not None or not canvas else ", which is a new assignment")
    ]
    if of is not None and of != whole:
        notes.append(f"{number(whole)} points here are {number(of)} there")
    if lacking := sorted(set(grades) - set(matched.values())):
        notes.append(f"not in the table: {in_short(lacking)}")
    if without:
        notes.append(
            f"left out, without a grade here: {number_of(without, 'student')}; the import changes nothing of theirs"
        )
    if waiting := [student for student, grade in sorted(grades.items()) if grade["pending"]]:
        notes.append(f"a person has still to grade something of {in_short(waiting)}")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue(), notes


def _identity(table: Table, grades: Mapping[str, Grade]) -> tuple[int, dict[str, str]]:
    """The column that has most of the students' ids, and {its text: id}."""
    by_form = {one_form(student).casefold(): student for student in grades}
    best, matched = 0, dict[str, str]()
    for place in range(len(table.head)):
        matches = {
            row[place]: by_form[form] for row in table.rows if (form := one_form(row[place]).casefold()) in by_form
        }
        if len(matches) > len(matched):
            best, matched = place, matches
    if not matched:
        raise UserError(
            f"{table.file}: none of its columns ({in_short(table.head)}) has the ids of the grades ({in_short(sorted(grades))})"
        )
    return best, matched


def _place_of(table: Table, title: str) -> int | None:
    """The column of an assignment, whose title Canvas and Moodle write with additions."""
    wanted = title.strip().lower()
    heads = [head.strip().lower() for head in table.head]
    fits = [i for i, head in enumerate(heads) if re.sub(r" \(\d+\)$", "", head) == wanted or head == wanted] or [
        i for i, head in enumerate(heads) if wanted in head and "feedback" not in head
    ]
    if len(fits) > 1:
        raise UserError(
            f"{table.file}: '{title}' may be {' or '.join(table.head[i] for i in fits)}; give one of them with --column"
        )
    return fits[0] if fits else None


def _points_possible(table: Table, place: int) -> float | None:
    for row in table.rows:
        if is_points_possible(row):
            try:
                return as_number(row[place]) or None
            except ValueError:
                return None
    return None


def _feedback(grade: Grade) -> str:
    """What a student reads, in one text, without right answers."""
    lines = [
        f"{item['title']}: {number(item['score'])} of {number(item['of'])}: {'; '.join(item['told'][:3])}"
        for item in grade["items"]
    ]
    return "\n".join([*lines, *([grade["late"]] if grade["late"] else [])])
