"""A class's page: the distribution of points, the hardest items, what a teacher has to look at. One file, no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from urllib.parse import quote

from bbrlab_apps.grading.grades import Grade, flag_words
from bbrlab_apps.grading.report import NOT_HANDED_IN, PAGE, number, render

CLASS_PAGE = "class.html"
BINS = 10  # of the distribution


@dataclass(frozen=True)
class Row:
    """How a class did on one item."""

    id: str
    title: str
    reached: float  # mean part of the item's points, 0 to 1
    full: int  # how many students of ``graded`` have all its points
    graded: int
    common: str  # the most frequent comment to the others, with its count


def rows_of(grades: Mapping[str, Grade]) -> list[Row]:
    """A row for each item, the hardest first, without what a person still has to grade."""
    scores: dict[str, list[tuple[float, str, str]]] = {}
    for grade in grades.values():
        for item in grade["items"]:
            if item["id"] not in grade["pending"]:
                words = item["told"][0] if item["told"] else ""
                if ": not right" in words:  # of a question: the hint, not the answer, which is each student's own
                    words = words.partition(": not right. ")[2]
                scores.setdefault(item["id"], []).append((item["score"] / item["of"], item["title"], words))
    rows = []
    for id, reached in scores.items():
        comments = [words for part, _, words in reached if part < 1 and words]
        most_common = max(sorted(set(comments)), key=comments.count, default="")
        common = f"{most_common} ({comments.count(most_common)})" if comments.count(most_common) > 1 else ""
        full = sum(part == 1 for part, _, _ in reached)
        rows.append(Row(id, reached[0][1], round(mean(part for part, _, _ in reached), 3), full, len(reached), common))
    return sorted(rows, key=lambda row: (row.reached, row.id))


def class_page(grades: Mapping[str, Grade], absent: Sequence[str] = ()) -> str:
    """The page of a class that has at least one grade, and who handed in nothing; every foreign text is escaped."""
    ordered = sorted(grades.items())
    parts = [grade["score"] / grade["of"] for grade in grades.values()]
    counts = [sum(min(int(part * BINS), BINS - 1) == i for part in parts) for i in range(BINS)]
    top = max(counts)
    bars = [
        {"count": c, "height": round(100 * c / top), "label": f"{10 * i}-{10 * i + 10}"} for i, c in enumerate(counts)
    ]
    links = {student: f"{quote(student)}/{PAGE}" for student in grades}
    scores = [grade["score"] for grade in grades.values()]
    first = ordered[0][1]
    return render(
        "class.html", title=first["title"], of=first["of"], count=len(grades), average=mean(scores), middle=median(scores),
        pending=sum(len(grade["pending"]) for grade in grades.values()), bars=bars, rows=rows_of(grades),
        described="; ".join(f"{b['label']} %: {b['count']}" for b in bars if b["count"]),
        flagged=[(student, links[student], flag_words(grade)) for student, grade in ordered if grade["flags"]],
        students=[(student, links[student], number(grade["score"]), grade["late"]) for student, grade in ordered],
        absent=absent, not_handed_in=NOT_HANDED_IN,
    )  # fmt: skip
