"""Writes a grade as a page and as Gradescope's results.json, and the grades of a class as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bbrlab.base import files, outputs
from bbrlab.base.tables import cell
from bbrlab_apps.grading.grades import Grade, flag_words

PAGE, GRADESCOPE, CLASS = "report.html", "results.json", "class.csv"
NOT_HANDED_IN = "not handed in"
CLASS_HEAD = "student,score,of,"  # how each CLASS begins
TEMPLATES = Path(__file__).parent / "templates"


def number(value: float) -> str:
    """Points without superfluous zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def render(template: str, **values: Any) -> str:
    """A page by a template of templates/: one file, all texts escaped."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, keep_trailing_newline=True
    )
    return environment.get_template(template).render(values, number=number)


def page(grade: Grade) -> str:
    """The page of one grade."""
    return render("grade.html", g=grade)


def gradescope(grade: Grade) -> dict[str, Any]:
    """Gradescope's results.json. Students see it: it has neither right answers nor other students' names."""
    flagged = "A teacher will look at this submission." if grade["flags"] else ""
    pending = f"A person has still to grade: {', '.join(grade['pending'])}." if grade["pending"] else ""
    late = f"{grade['late']}." if grade["late"] else ""
    words = [f"{number(grade['score'])} of {number(grade['of'])} points.", late, pending, flagged, *grade["notes"]]
    return {
        "score": grade["score"],
        "output": "\n".join(filter(None, words)),
        "output_format": "text",
        "visibility": "visible",
        "extra_data": {"made_by": outputs.OWNER},
        "tests": [
            {
                "name": item["title"], "number": item["id"], "score": item["score"], "max_score": item["of"],
                "status": "passed" if item["score"] == item["of"] else "failed",
                "output": "\n".join(item["told"]), "output_format": "text", "visibility": "visible",
            }
            for item in grade["items"] if item["id"] not in grade["pending"]
        ],
    }  # fmt: skip


def write_report(grade: Grade, out: Path) -> None:
    """Write PAGE and GRADESCOPE to a folder."""
    files.write_text(out / PAGE, page(grade))
    files.write_json(out / GRADESCOPE, gradescope(grade))


def class_table(grades: Mapping[str, Grade], absent: Sequence[str] = ()) -> str:
    """The grades of a class as CSV: a row for each student, without points for those who handed in nothing."""
    ids = list(dict.fromkeys(item["id"] for grade in grades.values() for item in grade["items"]))
    rows = []
    for student, grade in sorted(grades.items()):
        scores = {item["id"]: number(item["score"]) for item in grade["items"]}
        row = [
            student,
            number(grade["score"]),
            number(grade["of"]),
            *(scores.get(id, "") for id in ids),
            grade["late"],
            " ".join(grade["pending"]),
            flag_words(grade),
        ]
        rows.append(row)
    rows += [[student, *[""] * (len(ids) + 4), NOT_HANDED_IN] for student in absent]
    return table_of(["student", "score", "of", *ids, "late", "pending", "flags"], rows)


def table_of(head: list[str], rows: list[list[str]]) -> str:
    """A table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([[cell(text) for text in row] for row in [head, *rows]])
    return text.getvalue()
