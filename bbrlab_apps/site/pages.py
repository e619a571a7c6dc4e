"""The sources of the site's pages: of each paper, the front page, papers, models, method, runs. Their words stand in templates/."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.claims.load import claims_of
from bbrlab.results.best_scale import results_shown
from bbrlab.results.config import command_for
from bbrlab.results.figures import Figure
from bbrlab.results.replacement import replacement
from bbrlab.results.verdicts import DECIDED
from bbrlab.show.findings import Findings
from bbrlab.show.verdict_counts import (
    STEPS,
    by_step,
    cause_table,
    causes,
    counted,
    noise_words,
    outcome_words,
    score_lines,
)
from bbrlab_apps.site.charts import shown_chart, table_of
from bbrlab_apps.site.curve_pictures import curves_shown, pictures_of
from bbrlab_apps.site.html import embedded, render, slug
from bbrlab_apps.site.model_accuracy import accuracy_table, distance_words, distances, scatter_of
from bbrlab_apps.site.setting import setting_of
from bbrlab_apps.site.statement_view import statement_line, statement_view, worst_first
from bbrlab_apps.site.studies import QUESTIONS, studies_of, study_of, sweeps
from bbrlab_apps.site.who_wins import sides_of, who_wins

CARDS = (
    ("papers/index", "Papers", "Every statement, one by one: what the paper says, what was measured, what the models say, the verdict."),
    ("statements", "Statements", "All of them in one list, to be searched by paper, verdict, cause and words."),
    ("studies/index", "Studies", "What was asked here beside the papers' statements: other kernels, readings of the drafts, maps by a model, L4S and more."),
    ("models", "Models", "Ware's steady state, the fluid model and the burst model, beside the measurements."),
    ("method", "Method", "From a sentence in a paper to a verdict with an error rate."),
    ("runs", "Runs", "Every run, and how to look into one: goodput, window, RTT, queue and BBR's states over time."),
)  # fmt: skip


def front_page(
    findings: Findings, titles: Mapping[str, str], more: Sequence[tuple[str, str, str]], entries: Sequence[str]
) -> str:
    """The first page."""
    of_papers = counted(findings.every)
    ids = set(of_papers["id"])
    near = distances(findings, claims_of([s for s in findings.defined if s.id in ids]))
    return render(
        "front.md",
        replaced=replacement(),
        wins=(wins := who_wins(findings)),
        sides=sides_of(wins),
        outcome=outcome_words(of_papers) + distance_words(near),
        without_noise=noise_words(findings.every, findings.claims, findings.without_noise),
        later=int((of_papers["verdict"].isin(DECIDED) & (of_papers["chosen_after"] != "")).sum()),
        totals=findings.totals(findings.figures),
        shipped=findings.shown.shipped,
        scales=findings.scale_words(findings.figures),
        whose=results_shown(findings.shown),
        cards=[*CARDS, *more],
        entries=entries,
        **_scores(findings, titles),
    )


def papers_page(findings: Findings, titles: Mapping[str, str]) -> str:
    """The list of papers."""
    return render("papers.md", entries=findings.papers, **_scores(findings, titles))


def _scores(findings: Findings, titles: Mapping[str, str]) -> dict[str, Any]:
    every = counted(findings.every)
    papers = sorted(findings.papers, key=lambda paper: paper == QUESTIONS)
    lines = score_lines(findings.every, {paper: titles[paper] for paper in papers})
    apart = [(p, titles[p], sum(s.paper == p for s in findings.defined)) for p in papers if (findings.every["paper"] == p).any() and not (every["paper"] == p).any()]  # fmt: skip
    return {"counts": by_step(every), "scores": lines, "apart": apart, "causes": cause_table(every)}


def paper_page(findings: Findings, paper: str, title: str, lead: str, notebook: str | None) -> str:
    """A paper's page: what was run of it, its figures as charts, and its statements one by one, run or not.

    Args:
        notebook: name of the page with its notebook, if there is one.
    """
    elsewhere = {figure.id for figure in studies_of(findings)}
    of_paper = [f for f in findings.figures.values() if f.id.split("/")[0] == paper and f.id not in elsewhere]
    figures = sorted(of_paper, key=lambda figure: in_order(figure.id))
    ids = [figure.id for figure in figures]
    statements = [s for s in findings.defined if s.paper == paper]
    rows = findings.every[findings.every["paper"] == paper]
    of_paper_itself = counted(rows)
    return render(
        "paper.md",
        title=title,
        lead=lead,
        notebook=notebook,
        whose=results_shown(findings.shown, paper) if figures else "",
        totals=findings.totals(ids) if figures else None,
        outcome=outcome_words(rows) + distance_words(distances(findings, claims_of(statements))),
        scale=findings.shown.scale,
        scales=findings.scale_words(ids),
        command=command_for(paper, findings.shown.scale),
        counts=by_step(rows if of_paper_itself.empty else of_paper_itself),
        listed=by_step(rows),
        figures=[_drawn(findings, figure) for figure in figures],
        studies="../studies/index" if paper == QUESTIONS and elsewhere else "",
        causes=_causes(rows),
        statements=sorted((statement_view(findings, statement) for statement in statements), key=worst_first),
    )


def statements_page(findings: Findings, titles: Mapping[str, str]) -> str:
    """The list of all statements, which links to each one's place on its paper's page."""
    lines = [statement_line(findings, statement) for statement in findings.defined]
    return render(
        "all_statements.md",
        statements=sorted(lines, key=worst_first),
        papers=dict(titles),
        counts=by_step(findings.every),
        causes=_causes(findings.every),
    )


def _causes(statements: pd.DataFrame) -> dict[str, int]:
    return {cause: n for cause, n in causes(statements).items() if n}


def studies_pages(findings: Findings) -> dict[str, str]:
    """{page: its source}, of each study and of the list of them."""
    figures = sorted(studies_of(findings), key=lambda figure: in_order(figure.id))
    studies = [study_of(findings, figure) for figure in figures]
    pages = {
        f"studies/{study.name}": render("one_study.md", study=study, figure=_drawn(findings, figure))
        for figure, study in zip(figures, studies, strict=True)
    }
    listed = render("studies.md", studies=studies, sweeps=sweeps())
    return pages | {"studies/index": listed}


def _drawn(findings: Findings, figure: Figure) -> dict[str, Any]:
    """What stands of a figure on a page: its chart, its setting, its chosen runs."""
    return _chart(findings, figure) | _facts(findings, figure) | _over_time(findings, figure)


def _chart(findings: Findings, figure: Figure) -> dict[str, Any]:
    """A figure's chart and its numbers, for the macro ``chart``."""
    drawn = shown_chart(findings, figure.id)
    anchor = slug(f"chart-{figure.id}")
    heads, rows = table_of(drawn)
    data = embedded(drawn, f"{anchor}-data")
    return {
        "id": figure.id,
        "title": drawn["title"],
        "anchor": anchor,
        "heads": heads,
        "rows": rows,
        "data": data,
    }


def _facts(findings: Findings, figure: Figure) -> dict[str, Any]:
    """What is told beside a figure's chart."""
    return {
        "setting": setting_of(figure),
        "scale": findings.scales[figure.id],
        "older": findings.older.get(figure.id),
        "command": findings.command(figure.id),
    }


def _over_time(findings: Findings, figure: Figure) -> dict[str, Any]:
    """The pictures of a figure's chosen runs, for the macro ``runs``; and whether they are told first: where all points have them."""
    curves = curves_shown(findings.shown, figure.id, findings.scales[figure.id])
    pictures = []
    for number, picture in enumerate(pictures_of(curves) if curves else []):
        anchor = slug(f"runs-{figure.id}-{number}")
        panels = ", ".join(panel["label"] for panel in picture.panels)
        axis = picture.xlabel if picture.window_s is None else "over time"
        says = f"{panels}, {axis}{': ' if picture.title else ''}{picture.title}"
        data = embedded(picture.data(), f"{anchor}-data")
        pictures.append(
            {
                "title": picture.title or ("over time" if picture.window_s else "distributions"),
                "anchor": anchor,
                "says": says,
                "data": data,
            }
        )
    whole = curves is not None and len(curves.points) == len(figure.points)
    return {"runs": {"pictures": pictures, "words": curves.words} if curves else None, "runs_first": whole}


def in_order(id: str) -> list[tuple[int, str]]:
    """To sort figures by: fig4 before fig10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", id)]


def models_page(findings: Findings, notebooks: Sequence[str]) -> str:
    """The page of models."""
    scatter = scatter_of(findings)
    data = embedded(scatter, "scatter-data") if scatter["series"] else None
    return render("models.md", accuracy=accuracy_table(findings), scatter=data, notebooks=notebooks)


def method_page(links: Mapping[str, Path]) -> str:
    """The page on the method."""
    return render("method.md", links=links, steps=STEPS)


def runs_page(findings: Findings) -> str:
    """The list of runs."""
    return render(
        "runs.md",
        shipped=findings.shown.shipped,
        figures=[
            _runs(findings, figure)
            for figure in sorted(findings.figures.values(), key=lambda figure: in_order(figure.id))
        ],
    )


def _runs(findings: Findings, figure: Figure) -> dict[str, Any]:
    runs = findings.tables[figure.id].drop_duplicates(["point", "seed"])
    failed = ~runs["ok"].astype(bool)
    by_point = failed.groupby(runs["point"], sort=False)
    return {
        "id": figure.id,
        "runs": len(runs),
        "failed": int(failed.sum()),
        "points": [(point, len(of), int(of.sum())) for point, of in by_point],
        "scale": findings.scales[figure.id],
        "command": findings.command(figure.id),
    }
