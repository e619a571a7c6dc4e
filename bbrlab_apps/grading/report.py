"""What people and programs read of a grade: a page, Gradescope's results.json, a table of a class."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import files
from bbrlab.base.tables import cell
from bbrlab_apps.grading.grades import Grade, flag_words

PAGE, GRADESCOPE, CLASS = "report.html", "results.json", "class.csv"
STYLE = """:root { color-scheme: light dark; --text: #1c1e21; --page: #fff; --soft: #5c6066; --line: #d5d8dc; --good: #1b7837; --bad: #b2182b; --mark: #fdf1f1; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e7e9; --page: #16181b; --soft: #a3a8af; --line: #3a3e44; --good: #6cc88a; --bad: #ff8c8c; --mark: #35211f; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: .5rem 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
table { border-collapse: collapse; width: 100% } caption { text-align: left; color: var(--soft) }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem .4rem 0; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right } td.n, th, td.short { white-space: nowrap; overflow-wrap: normal }
ul { margin: .2rem 0; padding-left: 1.1rem } .soft { color: var(--soft); font-size: .9rem }
.good { color: var(--good); font-weight: 600 } .bad { color: var(--bad); font-weight: 600 }
.flags { background: var(--mark); border-left: 4px solid var(--bad); padding: .5rem 1rem; margin: 1rem 0 }
@media (max-width: 40rem) {
  thead { position: absolute; left: -100vw } tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0 }
  td { display: block; border: 0; padding: .1rem 0 } td.n { text-align: left } td[data-name]::before { content: attr(data-name) ": "; color: var(--soft); font-weight: 400 }
}
@media print { body { max-width: none } }
"""
TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ g.student }}: {{ g.title }}</title>
<style>{{ style | safe }}</style>
</head>
<body>
<main>
<h1>{{ g.title }}</h1>
<p>Student <b>{{ g.student }}</b>: <b>{{ number(g.score) }} of {{ number(g.of) }}</b> points</p>
{% if g.late %}<p>{{ g.late }}</p>{% endif %}
{% if g.pending %}<p>For a person to grade: {{ g.pending | join(", ") }}</p>{% endif %}
<p class="soft">Drawn for this student: {% for name, value in g.parameters.items() %}{{ name }} {{ value }}, {% endfor %}seeds {{ g.seeds | join(", ") }}</p>
{% if g.flags %}<section class="flags" aria-labelledby="flags"><h2 id="flags">For the teacher to look at</h2>
<ul>{% for kind, text in g.flags %}<li><b>{{ kind }}</b>: {{ text }}</li>{% endfor %}</ul></section>{% endif %}
<h2>Points</h2>
<table><thead><tr><th scope="col">for</th><th scope="col">found</th><th scope="col" class="n">points</th></tr></thead><tbody>
{% for i in g["items"] %}<tr><td>{{ i.title }}<div class="soft">{{ i.id }}</div></td>
<td data-name="found">{% if i.told | length == 1 %}{{ i.told[0] }}{% else %}<ul>{% for t in i.told %}<li>{{ t }}</li>{% endfor %}</ul>{% endif %}
{% for t in i.for_teacher %}<div class="soft">{{ t }}</div>{% endfor %}</td>
<td class="n {{ 'good' if i.score == i.of else 'bad' }}" data-name="points">{{ number(i.score) }} of {{ number(i.of) }}</td></tr>
{% endfor %}</tbody></table>
{% if g.runs %}<h2>Runs</h2>
<table><thead><tr><th scope="col">folder</th><th scope="col">seed</th><th scope="col">counts</th><th scope="col">found</th></tr></thead><tbody>
{% for r in g.runs %}<tr><td>{{ r.name }}</td><td class="short" data-name="seed">{{ r.seed if r.seed >= 0 else "-" }}</td>
<td data-name="counts" class="short {{ 'good' if r.counts else 'bad' }}">{{ "yes" if r.counts else "no" }}</td><td>{{ r.told | join("; ") or "whole" }}</td></tr>
{% endfor %}</tbody></table>{% endif %}
{% if g.reruns %}<h2>Runs made again here</h2>
<table><thead><tr><th scope="col">folder</th><th scope="col">outcome</th><th scope="col">how it was compared</th></tr></thead><tbody>
{% for r in g.reruns %}<tr><td>{{ r.name }}</td><td class="short {{ 'good' if r.outcome == 'the same' else 'bad' }}">{{ r.outcome }}</td><td>{{ r.told }}</td></tr>
{% endfor %}</tbody></table>{% endif %}
{% if g.notes %}<h2>Notes</h2><ul>{% for n in g.notes %}<li>{{ n }}</li>{% endfor %}</ul>{% endif %}
</main>
</body>
</html>
"""


def number(value: float) -> str:
    """Points as people write them."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def page(grade: Grade) -> str:
    """The page of one grade: one file, every foreign text escaped."""
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True)
    return environment.from_string(TEMPLATE).render(g=grade, number=number, style=STYLE)


def gradescope(grade: Grade) -> dict[str, Any]:
    """Gradescope's results.json. Students see it, so that it has neither right answers nor other students' names."""
    seen = "A teacher will look at this submission." if grade["flags"] else ""
    pending = f"A person has still to grade: {', '.join(grade['pending'])}." if grade["pending"] else ""
    late = f"{grade['late']}." if grade["late"] else ""
    words = [f"{number(grade['score'])} of {number(grade['of'])} points.", late, pending, seen, *grade["notes"]]
    return {
        "score": grade["score"],
        "output": " ".join(filter(None, words)),
        "output_format": "text",
        "visibility": "visible",
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


def class_table(grades: Mapping[str, Grade]) -> str:
    """The grades of a class as CSV: a row for each student."""
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
    return table_of(["student", "score", "of", *ids, "late", "pending", "flags"], rows)


def table_of(head: list[str], rows: list[list[str]]) -> str:
    """A table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([[cell(text) for text in row] for row in [head, *rows]])
    return text.getvalue()
