"""A paper's page: what was run of it, its figures as charts, and its statements one by one, run or not."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from bbrlab.claims.judge import SECOND_HAND
from bbrlab.claims.load import claims_of
from bbrlab.claims.schema import Claim, Statement
from bbrlab.claims.statements import counted_apart
from bbrlab.results.best_scale import whose
from bbrlab.results.config import command_for
from bbrlab.results.figures import Figure
from bbrlab.results.verdicts import FINAL, NOT_RUN, REPRODUCED
from bbrlab.show.charts import MODELLED, MODELS, Chart, chart_of, expectation, share_by, table_of
from bbrlab.show.content import Content
from bbrlab.show.distances import told
from bbrlab.show.html import LOOKS, badge, block, embedded, heading, number, slug
from bbrlab.show.notebook_page import clean
from bbrlab.show.outcomes import CAUSES, MISSED
from bbrlab.show.setting import setting_of
from bbrlab.show.strips import Dot, strip
from bbrlab.show.verdicts import marks_text, measured_text, verdict_text

MANY = 8  # claims of a statement that are folded below its words
_SHORT = {"ware": "Ware", "fluid": "fluid", "burst": "burst"}


def paper_page(content: Content, paper: str, title: str, notebook: str | None) -> str:
    """The source of a paper's page.

    Args:
        title: of the paper, for people.
        notebook: name of the page with its notebook, if there is one.
    """
    statements = content.papers[paper]
    figures = sorted((f for f in content.figures.values() if f.id.split("/")[0] == paper), key=in_order)
    words = whose_html(content, paper) if figures else ""
    parts = [
        heading(title, 1),
        *([block(f'<p class="bb-note">{words}</p>')] if words else []),
        _glance(content, statements, figures),
    ]
    if notebook:
        parts.append(
            f"The figures as the paper draws them, with explanations: [the notebook of this paper]({notebook}.md).\n\n"
        )
    parts += [heading("Statements at a glance", 2), block(_list(content, statements))]
    if figures:
        claims = claims_of(content.statements)
        parts.append(heading("Figures", 2))
        parts.append(block('<p>Choose a metric; point at a curve for its numbers; drag to zoom, double-click to see all; click a name '
                           'below the chart to hide it. The numbers of each chart stand as a table under it.</p>'))  # fmt: skip
        parts += [_figure(content, chart_of(f, content.tables[f.id], claims, content.shown.results)) for f in figures]
    parts.append(heading("Statement by statement", 2))
    parts += [_statement(content, statement) for statement in statements]
    return "".join(parts)


def whose_html(content: Content, paper: str | None = None) -> str:
    """Which results are shown, if they are those that ship, with the command that computes one's own; else "".

    Args:
        paper: of a paper's figures; default: of all.
    """
    from markdown_it import MarkdownIt

    if not content.shown.shipped:
        return ""
    return clean(str(MarkdownIt("commonmark").renderInline(whose(content.shown, paper))))


def in_order(figure: Figure) -> list[tuple[int, str]]:
    """To sort by: Fig. 4 before Fig. 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", figure.id)]


def _glance(content: Content, statements: Sequence[Statement], figures: Sequence[Figure]) -> str:
    counts = content.counts(statements)
    runs = sum(len(content.tables[f.id][["point", "seed"]].drop_duplicates()) for f in figures)
    hours = sum(
        float(content.tables[f.id].drop_duplicates(["point", "seed"])["virtual_s"].sum()) for f in figures
    ) / 3600  # fmt: skip
    ran = (
        f"<strong>{runs:,}</strong> runs of {len(figures)} figures, {hours:.1f} hours of testbed time, at scale {scales_in_words(content, figures)}."
        if figures
        else f"Nothing of this paper was run at scale <strong>{escape(content.shown.scale)}</strong>: its statements stand here as they are to be tested. "
        f"<code>{escape(command_for(statements[0].paper, content.shown.scale))}</code> runs it."
    )
    words = told(content, statements) if figures else ""
    return block(f'<div class="bb-lead">{words}<p>{ran}</p></div>{bar(counts)}{legend(counts)}')


def scales_in_words(content: Content, figures: Iterable[Figure]) -> str:
    """Which scales figures are shown at, the largest first, as HTML."""
    counts = content.counts_of_scales(figures) or {content.shown.scale: 0}
    if len(counts) == 1:
        return f"<strong>{escape(next(iter(counts)))}</strong>"
    return " and ".join(
        f"<strong>{escape(scale)}</strong> ({n} figure{'s' * (n > 1)})" for scale, n in reversed(counts.items())
    )


def bar(counts: Mapping[str, int]) -> str:
    """How many have which verdict, as a bar."""
    told = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
    parts = "".join(
        f'<span class="bb-{LOOKS[verdict][0]}" style="flex-grow:{n}" title="{n} {escape(verdict)}">{n}</span>'
        for verdict, n in counts.items()
        if n
    )
    return f'<div class="bb-bar" role="img" aria-label="{escape(told)}">{parts}</div>'


def legend(counts: Mapping[str, int]) -> str:
    """What the bar's colours mean, with the numbers."""
    parts = "".join(f"<li>{badge(verdict)} <strong>{n}</strong></li>" for verdict, n in counts.items())
    return f'<ul class="bb-legend">{parts}</ul>'


def _list(content: Content, statements: Sequence[Statement]) -> str:
    """All statements in a line each, to be filtered by verdict."""
    counts = content.counts(statements)
    buttons = "".join(
        f'<button type="button" data-verdict="{LOOKS[verdict][0]}" aria-pressed="false">{escape(verdict)} ({n})</button>'
        for verdict, n in counts.items()
        if n
    )
    lines = []
    for s in statements:
        verdict = content.verdict(s.id)
        lines.append(
            f'<tr data-verdict="{LOOKS[verdict][0]}"><td>{badge(verdict, _short(content, s))}</td>'
            f'<td><a href="#{slug(s.id)}">{escape(s.id)}</a></td><td>{escape(s.says)}</td></tr>'
        )
    return (
        f'<div class="bb-filter" role="group" aria-label="Show statements with this verdict only">{buttons}</div>'
        '<div class="bb-scroll"><table class="bb-list"><thead><tr><th scope="col">verdict</th><th scope="col">id</th>'
        f'<th scope="col">what the paper says, in our words</th></tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def _short(content: Content, statement: Statement) -> str:
    """A statement's verdict with its numbers."""
    row = content.of_statements.get(statement.id)
    return str(row["in_words"]) if row else NOT_RUN


def _figure(content: Content, chart: Chart) -> str:
    older = content.older.get(chart["id"])
    version = f" Its runs are of an older version of bbrlab ({escape(older)})." if older else ""
    return (
        heading(chart["title"], 3, slug(f"fig-{chart['id']}"))
        + block(f"<p>{escape(setting_of(content.figures[chart['id']]))}</p>{figure_html(chart)}")
        + block(
            f'<p class="bb-command">Shown at scale {escape(content.scales[chart["id"]])}.{version} Run it, and see its verdicts: <code>{escape(content.command(chart["id"]))}</code></p>'
        )
    )


def figure_html(chart: Chart) -> str:
    """A chart and its numbers."""
    id = slug(f"chart-{chart['id']}")
    return (
        f'<figure class="bb-chart" data-chart="{id}-data"><div class="bb-controls"></div>'
        f'<div class="bb-plot" role="img" aria-label="{escape(chart["title"])}: its numbers are in the table below"></div>'
        f'<details class="bb-numbers"><summary>The numbers</summary><div class="bb-scroll" tabindex="0" role="region" '
        f'aria-label="Numbers of {escape(chart["id"])}">{table_of(chart)}</div></details>{embedded(chart, f"{id}-data")}</figure>'
    )


def _statement(content: Content, statement: Statement) -> str:
    row = content.of_statements.get(statement.id)
    verdict = content.verdict(statement.id)
    lines = [_Line(claim, content) for claim in statement.claims]
    in_words = str(row["in_words"]) if row else NOT_RUN
    facts = [("source", f"{statement.source} ({statement.exactness})")]
    facts += (
        [("scale of the verdict", str(row["scale"]))] if row and content.shown.larger and verdict != NOT_RUN else []
    )
    facts += [("the lab's own", "not the paper's: a reading of the lab's, counted apart")] if statement.own else []
    facts += (
        [("at second hand", "what others say of this paper; counted apart")]
        if counted_apart(statement) == SECOND_HAND
        else []
    )
    facts += [("rests on", content.code(statement.id))] if content.code(statement.id) else []
    if verdict not in (REPRODUCED, NOT_RUN) and statement.cause:
        facts += [("where the cause lies", f"{CAUSES[statement.cause.kind]}: {statement.cause.evidence}")]
    elif verdict in MISSED:
        facts += [("where the cause lies", CAUSES[""])]
    facts += [("left open", statement.open)] if statement.open else []
    facts += [("tolerance", statement.because)] if statement.because else []
    facts += [("chosen after a comparison", statement.later_choices)] if statement.later_choices else []
    told = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts)
    html = [
        f'<div class="bb-statement" data-verdict="{LOOKS[verdict][0]}"><p class="bb-says">{escape(statement.says)}</p>',
        f"<p>{badge(verdict, in_words)}</p>",
        strip([dot for line in lines if (dot := line.dot)]),
        _models_say(lines),
        _claims(lines, statement),
        f"<dl>{told}</dl>",
        _finding(statement, verdict),
        _links(content, statement),
        "</div>",
    ]
    return heading(statement.id, 3, slug(statement.id)) + block("".join(html))


class _Line:
    """A claim with what came of it and what the models say of its number."""

    def __init__(self, claim: Claim, content: Content):
        self.claim = claim
        self.row = content.of_claims.get(claim.id)
        self.of_statement = (content.of_statements.get(claim.statement) or {"scale": content.shown.scale})["scale"]
        self.models: dict[str, float] = {}
        figure = content.figures.get(claim.figures[0])
        one = expectation(claim, figure) if figure else None
        if figure and one and one[0] == MODELLED and one[1] == "0":
            said = {model: share_by(model, figure.id, one[2], content.shown.results) for model in MODELS}
            self.models = {model: share for model, share in said.items() if share is not None}

    @property
    def dot(self) -> Dot | None:
        """Where its number is, in tolerances; None without a number or a tolerance."""
        width = self.claim.expect.tolerance
        if self.row is None or not math.isfinite(width) or not width or not _finite(self.row["mean"]):
            return None
        low, high = self.claim.expect.bounds
        mean, least, most = ((float(self.row[c]) - (low + high) / 2) / width for c in ("mean", "low", "high"))
        return Dot(self.claim.id, mean, least, most, str(self.row["verdict"]), str(self.row["interim"]))

    def html(self, statement: Statement, models: Sequence[str]) -> str:
        """Its line in a table."""
        claim = self.claim
        name = f"<b>{escape(claim.id if not claim.variant else f'{claim.id}: {claim.variant}')}</b>"
        if claim.says != statement.says:
            name += f"<br>{escape(claim.says)}"
        for label, text, whole in (
            ("tolerance", claim.because, statement.because),
            ("chosen after a comparison", claim.chosen_after, statement.chosen_after),
        ):
            if text and text != whole:
                name += f"<br><small>{label}: {escape(text)}</small>"
        said = "".join(_cell(_SHORT[m], number(self.models.get(m))) for m in models)
        if self.row is None:
            cells = (str(claim.expect), "–", "–", badge(NOT_RUN), "")
        else:
            marks = marks_text(self.row)
            if self.row["scale"] != self.of_statement:
                marks = "; ".join(filter(None, (marks, f"at scale {self.row['scale']}, not counted above")))
            cells = (
                str(self.row["expected"]),
                measured_text(self.row),
                str(int(self.row["seeds"]) or "–"),
                badge(self.row["interim"] or self.row["verdict"], verdict_text(self.row)),
                f"<br><small>{escape(marks)}</small>" if marks else "",
            )
        expected, measured, seeds, verdict, notes = cells
        return (
            f"<tr><td>{name}</td>{_cell('expected', escape(expected))}{_cell('measured', escape(measured))}{said}"
            f"{_cell('seeds', seeds)}{_cell('verdict', f'{verdict}{notes}')}</tr>"
        )


def _cell(label: str, html: str) -> str:
    """A cell that has its column's name with it, where a narrow window stacks the cells."""
    return f'<td data-label="{label}">{html}</td>'


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _models_say(lines: Sequence[_Line]) -> str:
    """At how many of a statement's points each model is within the tolerance."""
    with_any = [line for line in lines if line.models]
    if not with_any:
        return '<p class="bb-models"><strong>Models:</strong> none of the three gives this number.</p>'
    told = []
    for model in MODELS:
        mine = [line for line in with_any if model in line.models]
        if mine:
            good = sum(line.claim.expect.holds(line.models[model]) for line in mine)
            told.append(f"{_SHORT[model]} at {good} of {len(mine)}")
    return (
        f'<p class="bb-models"><strong>Models</strong> within what is expected: {escape(", ".join(told))} points.</p>'
    )


def _claims(lines: Sequence[_Line], statement: Statement) -> str:
    models = [m for m in MODELS if any(m in line.models for line in lines)]
    head = ("claim", "expected", "measured", *(_SHORT[m] for m in models), "seeds", "verdict")
    cells = "".join(f'<th scope="col">{h}</th>' for h in head)
    rows = "".join(line.html(statement, models) for line in lines)
    judged = sum(line.row is not None and line.row["verdict"] in FINAL for line in lines)
    good = sum(line.row is not None and line.row["verdict"] == REPRODUCED for line in lines)
    count = f"{len(lines)} claim{'s' if len(lines) > 1 else ''}: {judged} judged, {good} reproduced"
    return (
        f'<details class="bb-claims"{" open" if len(lines) <= MANY else ""}><summary>{count}</summary><div class="bb-scroll" tabindex="0" '
        f'role="region" aria-label="Claims of {escape(statement.id)}"><table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def _finding(statement: Statement, verdict: str) -> str:
    found = [statement.finding, *(c.finding for c in statement.claims)]
    known = {f.text: f for f in found if f is not None}
    if not known or verdict in (REPRODUCED, NOT_RUN):
        return ""
    told = "".join(f"<p>{escape(f.text)} Shown by <code>{escape(f.shows)}</code></p>" for f in known.values())
    return f'<div class="bb-finding"><p class="bb-title">What an investigation found</p>{told}</div>'


def _links(content: Content, statement: Statement) -> str:
    """The figures that it reads: their charts, and the commands that run them."""
    parts = []
    for id in dict.fromkeys(f for c in statement.claims for f in c.figures):
        paper = id.split("/")[0]
        command = f"<code>{escape(content.command(id))}</code>"
        here = id in content.figures
        place = "" if paper == statement.paper else f"{paper}.html"
        known = here and paper in content.papers
        parts.append(
            f'<li>{f"""<a href="{place}#{slug(f"fig-{id}")}">chart of {escape(id)}</a>""" if known else escape(id)}, {command}</li>'
        )
    return f'<ul class="bb-links" aria-label="Figures and commands">{"".join(parts)}</ul>'
