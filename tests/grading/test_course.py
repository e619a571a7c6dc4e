"""A course beside the grading itself: hints, late days, people's marks, rosters, sheets, gradebooks, Gradescope, the class's page."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.results.nested import differences
from bbrlab.scenario.load import load_scenario
from bbrlab_apps.grading import gradescope
from bbrlab_apps.grading.class_page import class_page, rows_of
from bbrlab_apps.grading.grade import NOTHING, grade_submission
from bbrlab_apps.grading.gradebook import filled, grades_in
from bbrlab_apps.grading.grades import GRADE
from bbrlab_apps.grading.load import load_rubric, notes_on
from bbrlab_apps.grading.marks import late_cost, late_days, worth
from bbrlab_apps.grading.people import read_people, read_roster, read_table
from bbrlab_apps.grading.personal import personal
from bbrlab_apps.grading.report import CLASS, class_table
from bbrlab_apps.grading.report import gradescope as results_json
from bbrlab_apps.grading.rubric import Late, Question, instant_of
from bbrlab_apps.grading.sheet import check_submission, write_sheet
from bbrlab_apps.grading.submission import ANSWERS, SHEET
from tests.graded import RUBRIC, STUDENT, graded, make_submission, score_of, write_rubric
from tests.show.browser import PROGRAM, Browser

BDP: dict[str, Any] = {
    **RUBRIC["questions"][0],
    "hints": [
        {"times": 8, "says": "Are these bits? A byte has eight.", "part": 0.5},
        {"value": "{rate_mbit} * {rtt_ms}", "says": "Which units do Mbit/s times ms give?"},
        {"within_percent": 10, "says": "Nearly; round less.", "part": 0.25},
        {"says": "Bandwidth times round-trip time."},
    ],
}
TEXT = {"id": "why", "asks": "Why does BBR drain its queue?", "points": 10, "person": "names min_rtt and ProbeRTT"}
COLOUR = {**RUBRIC["questions"][3], "hints": [{"choice": "blue", "says": "Look at the pen again."}]}
LATE = {"deadline": "2026-12-01T23:59:00+01:00", "free_days": 1, "percent_per_day": 20, "last_day": 4}
WHOLE = {"questions": [BDP, *RUBRIC["questions"][1:3], COLOUR, TEXT], "late": LATE}


def invoke(*argv: object):
    return CliRunner().invoke(app, [str(a) for a in argv])


# Hints and partial credit.


@pytest.mark.parametrize(("given", "part", "hint"), [(1000, 1, ""), (1009, 1, ""), (8000, 0.5, "bits"), (8070, 0.5, "bits"), (80, 0, "units"), (1090, 0.25, "Nearly"), (7000, 0, "times round-trip"), (0, 0, "times round-trip")])  # fmt: skip
def test_usual_mistakes_of_a_number(given, part, hint):
    question = Question.model_validate(
        {**BDP, "value": 1000.0, "hints": [{**h, "value": 80.0} if "value" in h else h for h in BDP["hints"]]}
    )
    got, words = worth(question, given, 1000.0, 10.0)
    assert got == part and hint in words and bool(words) == bool(hint)


def test_usual_mistakes_of_a_choice():
    question = Question.model_validate({**COLOUR, "choices": ["red", "blue", "green"]})
    assert worth(question, "red", "red", 0) == (1.0, "")
    assert worth(question, "blue", "red", 0) == (0.0, "Look at the pen again.")
    assert worth(question, "green", "red", 0) == (0.0, "")


@pytest.mark.parametrize(("hints", "words"), [([{"says": "xxxxx", "times": 8, "value": 3}], "one condition"), ([{"says": "xxxxx", "part": 0.5}], "only an answer that a condition"), ([{"says": "xxxxx", "part": 1.0, "times": 2}], "less than 1"), ([{"says": "xxxxx", "choice": "red"}], "no wrong choice"), ([{"says": "xxxxx", "tmes": 8}], "did you mean 'times'")])  # fmt: skip
def test_hints_that_are_none(tmp_path, hints, words):
    question = RUBRIC["questions"][3] if "choice" in hints[0] else BDP
    with pytest.raises(UserError, match=words):
        load_rubric(write_rubric(tmp_path, questions=[{**question, "hints": hints}], claims=[]))


def hint(**condition: object) -> dict[str, object]:
    return {"says": "Look again.", **condition}


RIGHT, EARLIER = "what it is for is right", "an earlier hint is for all such answers"
SHARE = {"id": "share", "asks": "What is its share?", "points": 1, "number_of": "share"}


@pytest.mark.parametrize(
    ("question", "hints", "why"),
    [
        (BDP, [hint(times=1)], RIGHT),
        (BDP, [hint(times="{rtt_ms} / {rtt_ms}")], RIGHT),
        (BDP, [hint(value="{rate_mbit} * {rtt_ms} * 125")], RIGHT),
        (BDP, [hint(within_percent=1)], RIGHT),
        ({**SHARE, "within": 0.1}, [hint(times=1)], RIGHT),
        ({**SHARE, "within_percent": 2}, [hint(within_percent=1)], RIGHT),
        (BDP, [hint(times=8), hint(times=8)], EARLIER),
        (BDP, [hint(), hint(times=8)], EARLIER),
        (BDP, [hint(within_percent=10), hint(within_percent=5)], EARLIER),
        (RUBRIC["questions"][3], [hint(choice="blue"), hint(choice="blue")], EARLIER),
    ],
)
def test_hints_that_nobody_would_read(tmp_path, question, hints, why):
    rubric = write_rubric(tmp_path, questions=[question | {"hints": hints}])
    place = len(hints) - 1
    with pytest.raises(
        UserError, match=rf"\.yaml:\d+: questions\.0\.hints\.{place} would have no effect: {why}; change"
    ):
        load_rubric(rubric)


@pytest.mark.parametrize(
    ("question", "hints"),
    [
        (BDP, [hint(value="{rate_mbit} * 22 * 125")]),  # right for some
        (BDP, [hint(within_percent=5), hint(within_percent=10), hint()]),
        ({**SHARE, "within": 0.1}, [hint(times=1.05), hint(value=1), hint(within_percent=1)]),
        (RUBRIC["questions"][2], [hint(choice="inconclusive"), hint()]),
    ],
)
def test_hints_that_some_may_read(tmp_path, question, hints):
    assert not notes_on(load_rubric(write_rubric(tmp_path, questions=[question | {"hints": hints}])))


@pytest.mark.parametrize("mistake", [hint(times=1.005), hint(value="{rate_mbit} * {rtt_ms} * 1000 / 8 + 1")])
def test_a_mistake_that_the_tolerance_lets_pass_is_noted(tmp_path, mistake):
    """Answers a little beyond the tolerance may still get such a hint."""
    (note,) = notes_on(load_rubric(write_rubric(tmp_path, questions=[BDP | {"hints": [hint(times=8), mistake]}])))
    assert note.startswith("questions.bdp_bytes: hints.1: who makes this mistake is right within")


def test_arithmetic_of_hints_is_computed_and_checked(tmp_path):
    own = personal(load_rubric(write_rubric(tmp_path, questions=[BDP], claims=[])), "ada")
    assert own.assignment.questions[0].hints[1].value == pytest.approx(11.0 * 22)
    wrong = {**BDP, "hints": [{"says": "xxxxx", "value": "{speed} * 2"}]}
    with pytest.raises(UserError, match="there is no parameter 'speed'"):
        load_rubric(write_rubric(tmp_path, questions=[wrong], claims=[]))


# Late work.


def test_days_that_have_begun():
    due = instant_of("2026-12-01T23:59:00+01:00")
    assert late_days(due, instant_of("2026-12-01T22:58:59Z")) == 0
    assert late_days(due, instant_of("2026-12-01T22:59:01Z")) == 1
    assert late_days(due, instant_of("2026-12-03T23:59:00+01:00")) == 2
    assert late_days(due, instant_of("2026-12-03T23:59:00+01:00"), 1.5) == 1


@pytest.mark.parametrize(("days", "taken", "words"), [(0, 0, ""), (1, 0, "costs nothing"), (2, 20, "1 of them at 20 %"), (4, 60, "3 of them"), (5, 100, "no points")])  # fmt: skip
def test_what_late_work_costs(days, taken, words):
    cost, told = late_cost(Late.model_validate(LATE), days, 100)
    assert cost == taken and words in told


@pytest.mark.parametrize("text", ["tomorrow", "2026-12-01T10:00:00"])
def test_a_deadline_is_an_instant(tmp_path, text):
    with pytest.raises(UserError, match=r"late\.deadline.*write it as"):
        load_rubric(write_rubric(tmp_path, late={"deadline": text}))


# Tables that people bring.


@pytest.mark.parametrize(("text", "ids"), [
    ("Student,ID,SIS User ID,SIS Login ID,Section,Lab 1 (77)\n    Points Possible,,,,,10\n\"Doe, Jane\",11,s1,jdoe,A,\n\"Student, Test\",12,,x,A,\n", ["jdoe"]),
    ("First name;Surname;ID number;Email address\nJane;Doe;123;jane@x.org\nBob;Roe;124;bob@x.org\n", ["123", "124"]),
    ("\ufeffName\tEmail\nJane\tjane@x.org\n", ["jane@x.org"]),
    ("name,id,email\nAda,ada,ada@x.org\n", ["ada"]),
    ("student\nada\nbob\n", ["ada", "bob"]),
])  # fmt: skip
def test_rosters_of_others_systems(tmp_path, text, ids):
    (tmp_path / "r.csv").write_text(text, encoding="utf-8")
    assert read_roster(tmp_path / "r.csv").ids == ids


@pytest.mark.parametrize(("text", "words"), [("a,b\n1,2\n", "no column that names students"), ("student\nada\nada\n", "'ada' stands twice"), ("student\n../x\n", "row 2, column 'student'"), ("", "is empty"), ("student\n", "has no students"), ("student,points\nada,2,5\n", "row 2: has more cells than .* with a ',' in quotes")])  # fmt: skip
def test_rosters_that_are_none(tmp_path, text, words):
    (tmp_path / "r.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=words):
        read_roster(tmp_path / "r.csv")


def test_marks_and_times(tmp_path):
    rubric = load_rubric(write_rubric(tmp_path, **WHOLE))
    times, marks = tmp_path / "t.csv", tmp_path / "m.csv"
    times.write_text(
        "student,submitted,extension_days\nada,2026-12-03T10:00:00+01:00,\nbob,2026-12-03T10:00:00+01:00,7\nzoe,2026-12-09T10:00:00Z,\n"
    )
    marks.write_text('student,question,points,comment\nada,why,"7,5",good\n')
    people, notes = read_people(rubric, times, marks, ["ada", "bob"])
    assert notes == [f"{times}: has rows of zoe, of whom there is no submission"]
    assert people == {"ada": {"late_days": 2, "marks": {"why": (7.5, "good")}}, "bob": {"late_days": 0, "marks": {}}}
    marks.write_text("student,question,points\nada,why,11\n")
    with pytest.raises(UserError, match="row 2, column 'points': '11' must be a number from 0 to 10"):
        read_people(rubric, None, marks, ["ada"])
    marks.write_text("student,question,points\nada,colour,1\n")
    with pytest.raises(UserError, match="no person grades 'colour'"):
        read_people(rubric, None, marks, ["ada"])
    marks.write_text("student,question,points\nada,why,5\nada,why,6\n")
    with pytest.raises(UserError, match="row 3: 'ada' has two rows for 'why'"):
        read_people(rubric, None, marks, ["ada"])
    times.write_text("student,submitted\nada,2026-12-03T10:00:00Z\nada,2026-12-01T10:00:00Z\n")
    with pytest.raises(UserError, match="row 3: 'ada' stands twice"):
        read_people(rubric, times, None, ["ada"])
    times.write_text("student,submitted\nada,yesterday\n")
    with pytest.raises(UserError, match="row 2, column 'submitted': 'yesterday' is no time"):
        read_people(rubric, times, None, ["ada"])
    with pytest.raises(UserError, match="no late.deadline"):
        read_people(load_rubric(write_rubric(tmp_path)), times, None, ["ada"])


# Grades of a class, as others' systems take them.


def made_up(student: str, score: float, **changes: Any) -> Any:
    items = [{"id": "bdp", "title": "BDP?", "score": score, "of": 10.0, "told": [f"{score}: not right. Bits." if score < 10 else "5: right"], "for_teacher": ["right: 5"]},
             {"id": "runs", "title": "Runs", "score": 10.0, "of": 10.0, "told": ["=2+2"], "for_teacher": []}]  # fmt: skip
    return {"key": "k", "student": student, "assignment": "tiny", "title": "Lab 1", "parameters": {}, "seeds": [1], "score": score + 10, "of": 20.0,
            "flags": [], "notes": [], "items": items, "runs": [], "reruns": [], "pending": [], "late": "", **changes}  # fmt: skip


CANVAS = 'Student,ID,SIS User ID,SIS Login ID,Section,Lab 1 (77),Current Score\n    Points Possible,,,,,40.00,\n"Doe, Jane",11,s1,ADA,A,,90\n"Roe, Bob",12,s2,bob,A,,80\n"Poe, Zoe",13,s3,zoe,A,3,80\n'
MOODLE = "First name,Surname,ID number,Email address,Assignment: Lab 1 (Real)\nJane,Doe,1,ada,-\nBob,Roe,2,bob,-\n"


def table(tmp_path: Path, text: str):
    (tmp_path / "export.csv").write_text(text, encoding="utf-8")
    return read_table(tmp_path / "export.csv")


def test_canvas_gets_its_columns_and_points(tmp_path):
    text, notes = filled(
        table(tmp_path, CANVAS), {"ada": made_up("ada", 10), "bob": made_up("bob", 0), "kim": made_up("kim", 1)}, None
    )
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lab 1 (77)"]
    assert rows[1][0].strip() == "Points Possible" and rows[1][-1] == "40"
    assert [row[-1] for row in rows[2:]] == ["40", "20"], "an empty cell would take away the 3 that zoe has there"
    assert "students are named by 'SIS Login ID'" in notes[0]
    assert (
        any("20 points here are 40 there" in n for n in notes)
        and any("not in the table: kim" in n for n in notes)
        and any("left out, without a grade here: 1 student" in n for n in notes)
    )
    new, said = filled(table(tmp_path, CANVAS), {"ada": made_up("ada", 10)}, "Lab 9")
    assert (
        new.splitlines()[0].endswith(",Lab 9") and "a new assignment" in said[0] and new.splitlines()[1].endswith(",20")
    )


# As Canvas writes it with names apart and a column for another root account, where points are not posted by themselves, in a
# country with a decimal comma.
CANVAS_WHOLE = (
    "LastName;FirstName;ID;SIS User ID;SIS Login ID;Integration ID;Root Account;Section;Notes;Lab 1 (77);Lab 10 (78);Final Score\n"
    ";;;;;;;;;Manual Posting;;\n"
    "    Points Possible;;;;;;;;;40,00;10,00;(read only)\n"
    "Doe;Jane;11;s1;ada;i1;x.edu;A and B;absent;;;90\n"
    "Student;Test;99;;4f1c0a;;x.edu;A;;;;\n"
)


def test_canvas_can_import_each_kind_of_its_own_exports(tmp_path):
    """Its importer reads LastName, FirstName, ID and then up to Section by their places."""
    text, notes = filled(table(tmp_path, CANVAS_WHOLE), {"ada": made_up("ada", 0)}, None)
    about = ["LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section"]
    assert list(csv.reader(io.StringIO(text))) == [
        [*about, "Lab 1 (77)"],
        ["    Points Possible", *[""] * 7, "40"],
        ["Doe", "Jane", "11", "s1", "ada", "i1", "x.edu", "A and B", "20"],
    ]
    assert not any("left out" in note for note in notes), "neither the row of posting nor the test student is one"
    assert read_roster(tmp_path / "export.csv").ids == ["ada"]
    without_login = 'Student,ID,Section,Lab 1 (77)\n    Points Possible,,,20\n"Doe, Jane",11,A,\n'
    text, _ = filled(table(tmp_path, without_login), {"11": made_up("11", 0)}, None)
    assert text.splitlines()[0] == "Student,ID,Section,Lab 1 (77)" and text.splitlines()[2].endswith(",11,A,10")
    assert read_roster(tmp_path / "export.csv").ids == ["11"]


def test_a_row_has_the_number_that_a_spreadsheet_shows(tmp_path):
    (tmp_path / "r.csv").write_text("student\nada\n\n../x\n")
    with pytest.raises(UserError, match="row 4, column 'student'"):
        read_roster(tmp_path / "r.csv")


def test_moodle_gets_feedback_without_right_answers(tmp_path):
    text, _ = filled(
        table(tmp_path, MOODLE), {"ada": made_up("ada", 10), "bob": made_up("bob", 2, late="2 days late")}, None
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["Assignment: Lab 1 (Real)"] for row in rows] == ["20", "12"]
    assert "not right. Bits." in rows[1]["Feedback comments"] and "2 days late" in rows[1]["Feedback comments"]
    assert "right: 5" not in text


def test_each_note_to_a_student_has_a_line_of_its_own():
    output = results_json(made_up("ada", 10, notes=["one", "another"], late="1 day late"))["output"]
    assert output == "20 of 20 points.\n1 day late.\none\nanother"


def test_tables_that_do_not_fit(tmp_path):
    with pytest.raises(UserError, match="none of its columns .* has the ids"):
        filled(table(tmp_path, MOODLE), {"eve": made_up("eve", 1)}, None)
    twice = MOODLE.replace("Surname", "Lab 1 old")
    with pytest.raises(UserError, match="may be Lab 1 old or Assignment: Lab 1"):
        filled(table(tmp_path, twice), {"ada": made_up("ada", 1)}, None)


def test_a_gradebook_takes_who_has_points_in_the_table_of_the_class(tmp_path):
    """Of bob, who handed in nothing this time, and of kim, there are grades of another assignment."""
    graded = {name: made_up(name, 10) for name in ("ada", "-eve")}
    for name, grade in {**graded, **{name: made_up(name, 1, assignment="before") for name in ("bob", "kim")}}.items():
        files.write_json(tmp_path / "grades" / name / GRADE, grade)
    (tmp_path / "grades" / CLASS).write_text(class_table(graded, ["bob"]))
    export, out = tmp_path / "export.csv", tmp_path / "import.csv"
    export.write_text(MOODLE)
    done = CliRunner().invoke(app, ["course", "gradebook", *map(str, (tmp_path / "grades", export, "--out", out))])
    assert done.exit_code == 0, done.output
    assert f"left out, without points in {tmp_path / 'grades' / CLASS}: bob, kim; if they" in done.output
    assert [row["Email address"] for row in csv.DictReader(io.StringIO(out.read_text()))] == ["ada"]
    assert set(grades_in(tmp_path / "grades")[0]) == {"ada", "-eve"}
    (tmp_path / "grades" / CLASS).write_text(class_table({}, ["ada", "bob"]))
    with pytest.raises(UserError, match=r"has no grades \(\*/grade.json\) of students with points in class.csv"):
        grades_in(tmp_path / "grades")


def test_grades_of_two_assignments_make_no_gradebook(tmp_path):
    files.write_json(tmp_path / "ada" / GRADE, made_up("ada", 10))
    files.write_json(tmp_path / "bob" / GRADE, made_up("bob", 1, assignment="before"))
    words = "ada's grade is of assignment 'tiny', bob's of 'before'; grade each assignment's class into a folder"
    with pytest.raises(UserError, match=words):
        grades_in(tmp_path)
    (tmp_path / "bob" / GRADE).unlink()
    assert [*grades_in(tmp_path)[0]] == ["ada"], "without a table of the class all count"


def test_the_page_of_a_class():
    flag = [("edited samples", "x")]
    grades = {
        "ada": made_up("ada", 10),
        "bob": made_up("bob", 0),
        "<i>eve": made_up("<i>eve", 0, flags=flag, late="1 day late", pending=["why"]),
    }
    rows = rows_of(grades)
    assert [row.id for row in rows] == ["bdp", "runs"] and rows[0].reached == pytest.approx(1 / 3, abs=1e-3)
    assert rows[0].full == 1 and rows[0].common == "Bits. (2)"
    page = class_page(grades)
    assert "<i>eve" not in page and "&lt;i&gt;eve" in page and "%3Ci%3Eeve/report.html" in page
    for words in (
        "3 submissions; mean 13.33, median 10 of 20 points; 1 answer waits",
        "edited samples",
        "1 day late",
        "90-100 %: 1",
    ):
        assert words in page, words
    assert "<script" not in page


# Sheets, and what students check.


def test_sheets_have_nothing_that_is_right(tmp_path):
    rubric = write_rubric(tmp_path, **WHOLE)
    (tmp_path / "r.csv").write_text("student\nada\nbob\n")
    done = invoke(
        "assign",
        "--rubric",
        rubric,
        "--roster",
        tmp_path / "r.csv",
        "--sheets",
        tmp_path / "sheets",
        "--csv",
        tmp_path / "drawn.csv",
    )
    assert done.exit_code == 0, done.output
    assert "2 sheets" in done.output and "named by the column 'student'" in done.output
    text = "".join(p.read_text() for p in (tmp_path / "sheets/ada").iterdir())
    for secret in (RUBRIC["salt"], "within_percent", "ProbeRTT", "number_of", "eight", "because", "expect"):
        assert secret not in text
    assert "one of: red, blue" in text
    own = personal(load_rubric(rubric), "ada")
    sheet = yaml.safe_load((tmp_path / "sheets/ada" / SHEET).read_text())
    assert sheet["seeds"] == own.seeds and sheet["parameters"] == own.parameters
    assert load_scenario(tmp_path / "sheets/ada/scenario.yaml").network.rtt_ms == own.parameters["rtt_ms"]
    assert len((tmp_path / "drawn.csv").read_text().splitlines()) == 3


def test_a_sheet_that_is_written_again_keeps_what_was_filled_in(tmp_path):
    rubric = load_rubric(write_rubric(tmp_path, **WHOLE))
    folder = tmp_path / "ada"
    assert write_sheet(rubric, personal(rubric, "ada"), folder) == []
    (folder / ANSWERS).write_text("my answers")
    (folder / SHEET).write_text("")
    assert write_sheet(rubric, personal(rubric, "ada"), folder) == [ANSWERS]
    assert (folder / ANSWERS).read_text() == "my answers" and (folder / SHEET).read_text()
    said = invoke("assign", "--rubric", tmp_path / "rubric.yaml", "--student", "ada", "--sheets", tmp_path).output
    assert f"note: {folder}: kept {ANSWERS}, not as they are handed out" in said


def test_a_sheet_is_of_a_roster_or_of_a_student(tmp_path):
    """All of the roster would be drawn, whoever is named besides."""
    (tmp_path / "r.csv").write_text("student\nada\nbob\n")
    said = invoke("assign", "--rubric", write_rubric(tmp_path), "--roster", tmp_path / "r.csv", "--student", "bob")
    assert "--roster draws for all of its students: leave --student out" in str(said.exception) and not said.output


def test_a_class_has_no_grades_in_it(tmp_path, monkeypatch):
    """They would be the submission of a student called grades."""
    rubric = write_rubric(tmp_path)
    (tmp_path / "class/ada").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "class")
    said = str(invoke("grade", "--class", ".", "--rubric", rubric).exception)
    assert said.startswith("--out grades: lies in --class ., and would be graded as a submission")


def test_a_sheet_alone_lacks_runs_and_answers(tmp_path):
    rubric = load_rubric(write_rubric(tmp_path, **WHOLE))
    own = personal(rubric, "ada")
    write_sheet(rubric, own, tmp_path / "ada")
    _, answers, _ = check_submission(tmp_path / "ada", tmp_path / "ada" / SHEET)
    lacks = {a.what.split()[0] + a.what.split()[1]: a.problems for a in answers}
    assert (
        lacks["allparts"] == ["results/ has no run: no folder with manifest.json, summary.json, samples.parquet"]
        or "results/" in lacks["allparts"][0]
    )
    assert lacks["thescenario"] == []
    assert len(lacks["everyrun"]) == 2 and all("no run with" in text for text in lacks["everyrun"])
    assert len(lacks["everyquestion"]) == 5
    (tmp_path / "ada/scenario.yaml").write_text(
        yaml.safe_dump(own.assignment.scenario.model_dump(exclude_unset=True) | {"duration_s": 5})
    )
    done = invoke("assignment", "check", tmp_path / "ada")
    assert done.exit_code == 1 and "duration_s is 5.0, asked for is 4.0" in done.output, done.output
    assert SHEET not in done.output.replace(str(tmp_path), ""), "what a student was given may be handed in, too"
    for part in (ANSWERS, "scenario.yaml"):
        (tmp_path / "ada" / part).write_text("\n")
        assert (
            f"{part}: is empty; hand in the one that you were given"
            in invoke("assignment", "check", tmp_path / "ada").output
        )
    sheet = yaml.safe_load((tmp_path / "ada" / SHEET).read_text())
    (tmp_path / "ada" / SHEET).write_text(yaml.safe_dump(sheet | {"title": "x"}))
    assert "sheets` wrote (title: " in str(invoke("assignment", "check", tmp_path / "ada").exception)
    (tmp_path / "ada" / SHEET).write_text("assignment: x\n")
    assert "sheet.yaml: " in str(invoke("assignment", "check", tmp_path / "ada").exception)


# Gradescope.


def archive(tmp_path: Path, **options: Any) -> zipfile.ZipFile:
    gradescope.write_autograder(write_rubric(tmp_path, **WHOLE), options.get("roster"), tmp_path / "a.zip")
    return zipfile.ZipFile(tmp_path / "a.zip")


def test_the_archive_for_gradescope(tmp_path):
    roster = tmp_path / "r.csv"
    roster.write_text("student,email\nada,Ada@x.org\n")
    found = archive(tmp_path, roster=roster)
    modes = {i.filename: i.external_attr >> 16 & 0o777 for i in found.infolist()}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert {"rubric.yaml", "roster.csv", "bbrlab.tar.gz", "build/built_with.json"} <= modes.keys()
    assert any(name.startswith("build/kernels/") and name.endswith("/linux") for name in modes)
    assert yaml.safe_load(found.read("rubric.yaml"))["rerun"] == 0
    for script in ("setup.sh", "run_autograder"):
        assert subprocess.run(["bash", "-n"], input=found.read(script), check=False).returncode == 0
    first = (tmp_path / "a.zip").read_bytes()
    archive(tmp_path, roster=roster)
    assert (tmp_path / "a.zip").read_bytes() == first, "the same files, the same archive"
    roster.write_text("student,email\nada,\n")
    with pytest.raises(UserError, match="no e-mail"):
        archive(tmp_path, roster=roster)


def test_the_archive_for_gradescope_has_the_files_that_the_scenario_names(tmp_path):
    network = RUBRIC["scenario"]["network"]
    parameters = RUBRIC["parameters"] | {"delays": {"one_of": ["a.txt", "b.txt"]}}
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("1 50\n")
    for changes, packed in (("a.txt", ["a.txt"]), ("{delays}", ["a.txt", "b.txt"])):
        scenario = RUBRIC["scenario"] | {"network": network | {"changes": changes}}
        rubric = write_rubric(tmp_path, scenario=scenario, parameters=parameters)
        gradescope.write_autograder(rubric, None, tmp_path / "a.zip")
        with zipfile.ZipFile(tmp_path / "a.zip") as found:
            for name in ("rubric.yaml", *packed):
                found.extract(name, tmp_path / "there")
        assert load_rubric(tmp_path / "there/rubric.yaml").name == "tiny"
    (tmp_path / "sub").mkdir()
    rubric = write_rubric(
        tmp_path / "sub", scenario=RUBRIC["scenario"] | {"network": network | {"changes": "../a.txt"}}
    )
    with pytest.raises(UserError, match=r"network\.changes \.\./a\.txt: the archive has what lies beside the rubric"):
        gradescope.write_autograder(rubric, None, tmp_path / "a.zip")


@pytest.mark.parametrize("name", ["x.tar", "x", "zip"])
def test_an_archive_for_gradescope_is_called_one(tmp_path, name):
    """Before it is made: Gradescope would not take it."""
    said = str(invoke("course", "gradescope", write_rubric(tmp_path), "--out", tmp_path / name).exception)
    assert said == f"--out {tmp_path / name}: Gradescope takes a ZIP archive; give a name that ends in .zip"
    assert not (tmp_path / name).exists()


def unpacked(tmp_path: Path) -> Path:
    """/autograder as setup.sh leaves it, with this checkout and its environment in the place of those that it would install."""
    roster = tmp_path / "r.csv"
    roster.write_text("student,email\nada,ada@x.org\nbob,bob@x.org\n")
    root = tmp_path / "autograder"
    found = archive(tmp_path, roster=roster)
    for info in found.infolist():  # with modes, as unzip keeps them
        Path(found.extract(info, root / "source")).chmod(info.external_attr >> 16 & 0o777)
    (root / "results").mkdir()
    (root / "source/bbrlab").symlink_to(paths.ROOT)
    return root


def run_autograder(root: Path, metadata: Any) -> dict[str, Any]:
    (root / "submission_metadata.json").write_text(metadata if isinstance(metadata, str) else json.dumps(metadata))
    script = root / "source/run_autograder"
    done = subprocess.run(
        ["/bin/bash", str(script)],
        env={"AUTOGRADER": str(root), "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((root / "results/results.json").read_text())
    return found


METADATA = {"id": 1, "created_at": "2026-12-03T10:00:00.123456+01:00", "users": [{"email": "Ada@X.org", "id": 5, "name": "Ada"}], "previous_submissions": [],
            "assignment": {"due_date": "2026-12-31T23:59:00.000000+01:00", "total_points": "100.0"}}  # fmt: skip


@pytest.mark.parametrize(("metadata", "words"), [({**METADATA, "users": [{"email": "eve@x.org"}]}, "eve@x.org is not in the roster"), ("{", "is damaged")])  # fmt: skip
def test_what_gradescope_says_that_cannot_be(tmp_path, metadata, words):
    root = tmp_path
    (root / "source").mkdir()
    shutil.copy(write_rubric(tmp_path, **WHOLE), root / "source/rubric.yaml")
    (root / "source/roster.csv").write_text("student,email\nada,ada@x.org\n")
    (root / "submission_metadata.json").write_text(metadata if isinstance(metadata, str) else json.dumps(metadata))
    gradescope.autograde(root)
    found = json.loads((root / "results/results.json").read_text())
    assert found["score"] == 0 and words in found["output"]


def test_a_fault_of_the_autograder_leaves_results(tmp_path, monkeypatch, capsys):
    """Without the file Gradescope would say only that it failed; teachers get the traceback."""

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(gradescope, "load_rubric", broken)
    gradescope.autograde(tmp_path)
    found = json.loads((tmp_path / "results/results.json").read_text())
    assert found["score"] == 0 and "ZeroDivisionError (a fault of the autograder's)" in found["output"]
    assert "Traceback" in capsys.readouterr().err and "Traceback" not in found["output"]


@pytest.mark.parametrize(
    ("late", "days"),
    [({"percent_per_day": 0, "last_day": 1}, 3), ({"percent_per_day": 10}, 3), ({"percent_per_day": 0}, 0)],
)
def test_a_last_day_holds_on_gradescope_whatever_a_day_costs(tmp_path, late, days):
    rubric = load_rubric(write_rubric(tmp_path, late={"deadline": "2026-11-30T12:00:00+01:00", **late}))
    _, people, _ = gradescope._student_of(METADATA, rubric, None)
    assert people["late_days"] == days


@pytest.mark.parametrize(("own", "days"), [({}, 3), ({"assignment": {"due_date": "2026-12-02T12:00:00+01:00"}}, 1)])
def test_an_extension_on_gradescope_counts(tmp_path, own, days):
    rubric = load_rubric(write_rubric(tmp_path, late={"percent_per_day": 10}))
    users = [{**METADATA["users"][0], **own}]
    told = METADATA | {"users": users, "assignment": {"due_date": "2026-11-30T12:00:00+01:00"}}
    _, people, _ = gradescope._student_of(told, rubric, None)
    assert people["late_days"] == days


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> tuple[Path, Path]:
    """A submission that gets full marks, with its runs, and its rubric."""
    folder = tmp_path_factory.mktemp("course")
    rubric = write_rubric(folder, **WHOLE)
    (folder / "ada").mkdir()
    make_submission(folder / "ada", rubric)
    answers = yaml.safe_load((folder / "ada/answers.yaml").read_text())
    answers["answers"]["why"] = "It measures min_rtt in ProbeRTT."
    (folder / "ada/answers.yaml").write_text(yaml.safe_dump(answers))
    return folder / "ada", rubric


@pytest.mark.guest
def test_from_a_sheet_to_gradescopes_points(good, tmp_path):
    """What the student checks, what run_autograder says, what a person adds: the same submission."""
    submission, rubric = good
    sheet = tmp_path / "sheet"
    write_sheet(load_rubric(rubric), personal(load_rubric(rubric), STUDENT), sheet)
    checked = invoke("assignment", "check", submission, "--sheet", sheet / SHEET)
    assert checked.exit_code == 0 and "It is what was asked for" in checked.output, checked.output
    root = unpacked(tmp_path)
    shutil.copytree(submission, root / "submission")
    found = run_autograder(root, METADATA)
    assert {t["number"]: t["score"] for t in found["tests"]} == {
        "complete": 10,
        "scenario": 20,
        "runs": 20,
        "claim some": 10,
        "bdp_bytes": 10,
        "share": 10,
        "holds": 10,
        "colour": 10,
    }
    assert found["score"] == pytest.approx(80), "two days late, one of them free"
    assert "1 of them at 20 %" in found["output"] and "A person has still to grade: why." in found["output"]


@pytest.mark.guest
def test_hints_marks_and_late_days_in_a_grade(good, tmp_path):
    submission, rubric = good
    copy = tmp_path / "ada"
    shutil.copytree(submission, copy)
    content = yaml.safe_load((copy / "answers.yaml").read_text())
    content["answers"] |= {"bdp_bytes": 8 * content["answers"]["bdp_bytes"], "colour": "blue"}
    (copy / "answers.yaml").write_text(yaml.safe_dump(content))
    (copy / "notebook.ipynb").unlink()
    before = graded(copy, rubric, tmp_path / "a")
    assert (
        score_of(before, "bdp_bytes") == 5 and score_of(before, "colour") == 0 and score_of(before, "complete") == 7.5
    )
    assert before["pending"] == ["why"] and not before["late"]
    told = json.dumps(results_json(before))
    assert (
        "right in part. Are these bits?" in told
        and "Look at the pen again." in told
        and "right: red" not in told
        and "names min_rtt" not in told
    )
    after = grade_submission(
        copy, rubric, STUDENT, tmp_path / "a", by_people={"late_days": 2, "marks": {"why": (7.0, "good")}}
    )
    assert after["pending"] == [] and score_of(after, "why") == 7
    assert after["score"] == pytest.approx(0.8 * (before["score"] + 7))
    assert any("It measures min_rtt" in text for item in after["items"] for text in item["for_teacher"])
    assert not list(differences(before["items"][:3], after["items"][:3]))
    assert NOTHING["answers"] == {}


@pytest.mark.slow
@pytest.mark.skipif(
    PROGRAM is None, reason="there is no chromium: apt-get install chromium (make test-slow does, as root)"
)
def test_heads_of_tables_are_out_of_sight_on_a_phone(tmp_path):
    """They were pushed to the left by the width of the window, and a wider one showed its end over the first row."""
    page = tmp_path / "class.html"
    page.write_text(class_page({"ada": made_up("ada", 10), "bob": made_up("bob", 0)}), encoding="utf-8")
    with Browser(tmp_path / "profile") as browser:
        browser.look(400)
        browser.open(page)
        assert browser.run("document.querySelector('thead').getBoundingClientRect().width") <= 1
        late = "getComputedStyle([...document.querySelectorAll('td:empty')].at(-1)).display"
        assert browser.run(late) == "none", "a name with nothing behind it"
