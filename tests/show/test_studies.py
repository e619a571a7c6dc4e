"""Pages of what was run and no statement reads. No guest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.results.figures import figures_at
from bbrlab.show.findings import Findings
from bbrlab_apps.site import studies
from bbrlab_apps.site.pages import studies_pages
from tests.made_up import page_of, table


def found(folder: Path, *ids: str) -> Findings:
    """Findings of figures with made-up tables, of which nothing was judged."""
    figures = {figure.id.split("/")[1]: figure for figure in figures_at("quick", list(ids))}
    tables = {name: table(figure) for name, figure in figures.items()}
    return page_of(folder, ids[0].split("/")[0], figures, tables, scale="quick").all  # type: ignore[no-any-return]


def test_what_a_statement_reads_is_no_study(tmp_path):
    shown = found(tmp_path, "questions/issue109", "questions/rtt")
    assert [figure.id for figure in studies.studies_of(shown)] == ["questions/issue109"]
    assert studies.studies_of(found(tmp_path, "tang/fig6")) == [], "it stands on its paper's page"


def test_a_paper_of_ones_own_without_statements_has_pages(tmp_path, monkeypatch):
    shown = found(tmp_path, "questions/issue109")
    monkeypatch.setattr(studies, "scenario_files", lambda: {"mine/fig1": paths.SCENARIOS / "questions/pairs.yaml"})
    (figure,) = shown.figures.values()
    object.__setattr__(figure, "id", "mine/fig1")
    shown = Findings(shown.shown, {"mine/fig1": figure}, {"mine/fig1": shown.tables["questions/issue109"]}, {"mine/fig1": "quick"}, shown.statements, shown.claims)  # fmt: skip
    assert studies.studies_of(shown) == [figure]
    assert studies.study_of(shown, figure).name == "mine-fig1"


def test_a_page_has_the_question_a_chart_with_its_numbers_and_the_command(tmp_path):
    pages = studies_pages(found(tmp_path, "questions/issue109"))
    assert list(pages) == ["studies/issue109", "studies/index"]
    page = pages["studies/issue109"]
    assert "What would draft issue 109 change?" in page
    assert 'class="bb-chart"' in page and "Numbers of questions/issue109" in page
    assert "<code>snakemake --cores 2 questions/issue109</code>" in page
    assert 'href="../docs/explanation/issue109.html"' in page
    index = pages["studies/index"]
    assert 'href="issue109.html"' in index and re.search(r"```\{toctree\}[^`]*\nissue109\n", index), "the way back"
    assert "bbrlab sweep scenarios/l4s.yaml --kernel lab-7.3" in index and "docs/explanation/l4s.html" in index


@pytest.mark.parametrize(
    ("comment", "question"),
    [
        ("# Does it hold?\n# As Bless et al. 2025 say.\nname: x\n", "Does it hold?"),
        ("# Figs. 3a and 5a of Cao et al. 2019 again\n# (docs/explanation/l4s.md). More.\n", "Figs. 3a and 5a of Cao et al. 2019 again."),
        ("name: x\n# not at the beginning\n", ""),
    ],
)  # fmt: skip
def test_the_question_is_the_first_sentence_of_the_file(tmp_path, comment, question):
    (tmp_path / "x.yaml").write_text(comment, encoding="utf-8")
    assert studies._comment(tmp_path / "x.yaml")[0] == question
