"""The site: every statement is there, run or not; links lead somewhere; nothing is loaded from elsewhere; text stays text."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.documents import linked, sources
from bbrlab.campaign.targets import targets_of
from bbrlab.claims.judge import judge_all, verdict_frame
from bbrlab.claims.load import claims_of
from bbrlab.claims.select import full_figures
from bbrlab.claims.statement_verdict import statement_frame
from bbrlab.cli.app import overrides_of
from bbrlab.cli.commands import app
from bbrlab.measure.summary import FlowEntry
from bbrlab.results.algorithm_table import OTHER_COLOURS, colour_of_cca
from bbrlab.results.figures import figures_at
from bbrlab.results.judged import write_verdicts
from bbrlab.results.run_folder import find_run
from bbrlab.results.shipped import ShownResults
from bbrlab.results.tables import write_table
from bbrlab.results.verdicts import INCONCLUSIVE, NOT_REPRODUCED, PARTLY_RUN, REPRODUCED
from bbrlab.scenario.load import base_point, load_points, load_scenario
from bbrlab.scenario.point import Point
from bbrlab.show.findings import Findings, load_findings
from bbrlab.show.verdict_counts import STEPS, outcome_words
from bbrlab.show.verdicts import contrast
from bbrlab_apps.site import documents
from bbrlab_apps.site.build import build_site
from bbrlab_apps.site.charts import MODELLED
from bbrlab_apps.site.html import block, clean, embedded, slug
from bbrlab_apps.site.model_accuracy import HERE, accuracies, accuracy_table, distance_words, distances
from bbrlab_apps.site.notebook_page import notebook_page
from bbrlab_apps.site.run_page import write_run_page
from bbrlab_apps.site.setting import setting_of
from bbrlab_apps.site.statement_view import _unsure
from bbrlab_apps.site.who_wins import _cells, where_it_wins
from tests.made_up import all_statements, table
from tests.made_up_runs import made_up_run
from tests.show.browser import PROGRAM, Browser
from tests.show.colours import lab, linear

FIGURES = ["tang/fig2", "sarpkaya2025/fig2a"]
EVIL = "<script>document.title='run'</script><img src=https://example.org/x onerror=alert(1)> ```{include} /etc/passwd"
ANY = {"cells": [{"cell_type": "markdown", "source": ["# Some page: of a test\n", "\n", EVIL]},
                 {"cell_type": "code", "outputs": [{"data": {"text/html": f"<table><tr><td onclick='x()'>cell</td></tr></table>{EVIL}"}},
                                                   {"data": {"text/markdown": f"## A part\n\n{EVIL}\n\n```{{include}} /etc/passwd\n```"}},
                                                   {"data": {"image/png": "iVBORw0KGgo="}, "metadata": {"image/png": {"alt": "a [figure]"}}}]}]}  # fmt: skip


def write_results(results: Path) -> None:
    """What a campaign of two figures leaves, with text in it that would like to be markup."""
    figures = figures_at("smoke", FIGURES)
    tables = {}
    for figure in figures:
        ccas = {(p.label, i): flow.cca for p in figure.points for i, flow in enumerate(p.scenario.flows)}
        made = table(figure, lambda point, seed: 0.5 + 0.01 * seed)
        made["cca"] = [ccas[point, group] for point, group in zip(made["point"], made["group"], strict=True)]
        tables[figure.id] = made.assign(kernel=EVIL)
        write_table(tables[figure.id], results / "smoke" / f"{figure.id}.parquet")
    verdicts = judge_all(
        [c for c in claims_of(all_statements()) if set(c.figures) <= set(FIGURES)], figures, tables, results
    )
    judged = {v.claim.id for v in verdicts}
    whole = [s for s in all_statements() if all(c.id in judged for c in s.claims)]
    frame = verdict_frame(verdicts)
    frame["why"] = EVIL
    judged = [results / "smoke" / f"{id}.parquet" for id in FIGURES]
    of_statements = statement_frame(whole, verdicts).assign(in_words=EVIL)
    write_verdicts(frame, of_statements, results / "smoke" / "tang.claims.parquet", judged)
    (results / "smoke" / "tang.ipynb").write_text(json.dumps(ANY), encoding="utf-8")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site results")
    write_results(folder)
    return folder


def warnings_of_site(*given: Any, **options: Any) -> list[str]:
    """What build_site() says. Of a second site in one process Sphinx says that its parts are there already: which test is first is no matter."""
    return [line for line in build_site(*given, **options) if "already registered" not in line]


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, int, int]]:
    """What was said while the site was made."""
    return []


@pytest.fixture(scope="module")
def site(results, steps, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("a site") / "site"
    assert warnings_of_site("smoke", out, results, progress=lambda *step: steps.append(step)) == []
    return out


class Page(HTMLParser):
    """What a page has: names that links may lead to, links, and what it loads."""

    def __init__(self, text: str):
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names += [given["id"]] if "id" in given else []
        assert not [name for name in given if name.startswith("on") and name != "onclick"], given
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and "href" in given and given.get("rel") not in ("search", "index", "next", "prev"):
            self.loads.append(given["href"])
        elif "src" in given:
            self.loads.append(given["src"])


def pages_of(site: Path) -> dict[Path, Page]:
    return {p: Page(p.read_text(encoding="utf-8")) for p in sorted(site.rglob("*.html")) if "_static" not in p.parts}


def wrong_links(site: Path) -> list[str]:
    """Links and anchors that lead nowhere, and what is loaded from elsewhere."""
    pages = pages_of(site)
    assert len(pages) > 20
    wrong = []
    for place, page in pages.items():
        for load in page.loads:
            if "://" in load or load.startswith("//") or not (place.parent / unquote(load.split("?")[0])).exists():
                wrong.append(f"{place.relative_to(site)} loads {load}")
        for link in page.links:
            if "://" in link or link.startswith("mailto:"):
                continue
            path, anchor = urldefrag(link)
            target = (place.parent / unquote(path)).resolve() if path else place
            if not target.exists() or (anchor and target in pages and unquote(anchor) not in pages[target].names):
                wrong.append(f"{place.relative_to(site)} links to {link}")
    return wrong


def test_every_link_and_anchor_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    assert wrong_links(site) == []
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.mark.slow
def test_the_site_of_what_ships_is_whole_and_small(tmp_path, monkeypatch):
    """Every link resolves, and 20 MB are enough."""
    monkeypatch.setattr(paths, "SHIPPED", paths.ROOT / "shipped")
    site = tmp_path / "site"
    assert warnings_of_site("quick", site) == []
    assert wrong_links(site) == []
    assert sum(path.stat().st_size for path in site.rglob("*")) < 20e6
    bless = (site / "papers" / "bless2025.html").read_text(encoding="utf-8")
    assert 'href="#fig-bless2025-fig4">Fig. 4</a>' in bless, "a long page lists its figures"
    runs, chart = (
        [bless.index(f'"{kind}-bless2025-{name}') for name in ("fig5", "fig11")] for kind in ("runs", "chart")
    )
    assert runs[0] < chart[0] and chart[1] < runs[1], "where each point's run is drawn, the runs come first"


def test_how_far_the_site_is_counts_every_page_once(site, steps):
    for what in ("pages read", "pages written"):
        counts = [(done, number) for said, done, number in steps if said == what]
        assert counts == [(i + 1, len(counts)) for i in range(len(counts))]
        assert len(counts) > 50, what


def test_the_search_button_is_called_what_it_shows(site):
    """A label that the theme gives it, 'Search', is not the text 'Search Ctrl + K' (axe: label-content-name-mismatch)."""
    buttons = re.findall(r"<button[^>]*search-button-field.*?</button>", (site / "index.html").read_text(), re.DOTALL)
    assert buttons and all("aria-label" not in button and ">Search<" in button for button in buttons)
    style = (site / "_static" / "site.css").read_text(encoding="utf-8")
    assert re.search(r"search-button__default-text \{[^}]*clip-path[^}]*display: block", style), (
        "a name on a phone, too"
    )


def test_no_name_stands_twice_on_a_page(site):
    pages = pages_of(site)
    assert pages
    for place, page in pages.items():
        assert [name for name, times in Counter(page.names).items() if times > 1] == [], place


def test_every_statement_with_every_claim_stands_on_its_paper_s_page_run_or_not(site):
    for paper in {s.paper for s in all_statements()}:
        text = (site / "papers" / f"{paper}.html").read_text(encoding="utf-8")
        names = set(Page(text).names)
        for statement in (s for s in all_statements() if s.paper == paper):
            assert slug(statement.id) in names, statement.id
            for claim in statement.claims:
                assert f"<b>{claim.id}" in text, claim.id
        if paper != "tang":
            assert "No results of this paper are shown" in text or paper == "sarpkaya2025"


def test_the_front_counts_the_papers_statements_and_the_labs_own_apart(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    of_papers = [s for s in all_statements() if not s.own and s.exactness != "secondary"]
    assert f"<b>{len(of_papers)}</b><span>statements of papers" in text
    assert "</b><span>claims" not in text, "a sum of claims says nothing"
    table = text[text.index("bb-scores") :].partition("</table>")[0]
    numbers = [int(n) for n in re.findall(r'<td data-label="statements">(\d+)</td>', re.sub(r"</?p>", "", table))]
    papers = len({s.paper for s in of_papers})
    assert sum(numbers[:papers]) == len(of_papers)
    assert sum(numbers[-2:]) == len(all_statements()) - len(of_papers), "at second hand, and the lab's own"


def test_a_paper_whose_statements_are_all_at_second_hand_is_led_to(site):
    """It has no line of its own among what counts, and was on no list."""
    for page, base in (("index.html", "papers/"), ("papers/index.html", "")):
        text = (site / page).read_text(encoding="utf-8")
        assert re.search(rf'All 9 statements of <a href="{base}scherrer2022\.html">[^<]+</a> are counted apart', text)


def test_from_a_list_of_studies_there_is_a_way_back(site):
    text = (site / "studies" / "index.html").read_text(encoding="utf-8")
    assert "papers/index.html" in text[text.index("bd-breadcrumbs") :].partition("</ul>")[0]


def test_a_statements_page_says_how_many_verdicts_do_not_count():
    """A statement was inconclusive with 0 of 6 claims above a table in which four had reproduced."""
    rows = [{"verdict": verdict, "role": ""} for verdict in (REPRODUCED, REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE)]
    assert _unsure({"inconclusive": 4}, rows) == 3 and _unsure({"inconclusive": 1}, rows) == 0
    assert _unsure({"inconclusive": 0}, [*rows, None]) == 0 and _unsure(None, rows) == 0


def judged(verdicts: dict[str, tuple[str, float]]) -> Findings:
    """Findings without figures: of some claims a verdict and a mean, of every statement of theirs one that follows from them all."""
    found = [s for s in all_statements() if {c.id for c in s.claims} & verdicts.keys()]
    claims = [{"id": id, "verdict": verdict, "mean": mean} for id, (verdict, mean) in verdicts.items()]
    rows = [(s.id, REPRODUCED if all(verdicts.get(c.id, ("",))[0] == REPRODUCED for c in s.claims) else PARTLY_RUN, "", "", "raw data", False)
            for s in found]  # fmt: skip
    table = pd.DataFrame(rows, columns=["id", "verdict", "code", "cause", "exactness", "own"])
    return Findings(
        ShownResults(Path("nowhere"), "smoke", False, ""),
        {},
        {},
        {},
        table,
        pd.DataFrame(claims, columns=["id", "verdict", "mean"]),
    )


def test_the_front_begins_with_what_reproduces(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    assert text.index("Do the papers reproduce?") < text.index('class="bb-legend"') < text.index("Who wins")


def test_the_front_tells_who_wins_here_beside_the_paper(site):
    """A cell for each buffer, BBR's percentage large and the published one small, in the winner's colour, with a key of colours."""
    text = (site / "index.html").read_text(encoding="utf-8")
    used = {colour_of_cca(cca) for cca in ("bbr1", "cubic")}
    assert set(re.findall(r'class="bb-key"><i style="background:(#\w+)"', text)) == used
    matrix = text[text.index("bb-matrix") :].partition("</table>")[0]
    assert re.findall(r'<th scope="col">([^<]*)</th>', matrix) == ["buffer (BDP)", "1", "4"]
    (published,) = [c.expect.value for s in all_statements() for c in s.claims if c.id == "SA-2a-N1-X1"]
    assert f"<small>{round(100 * published)}</small>" in matrix and len(re.findall(r"<b>\d+\??</b>", matrix)) == 2
    assert "Against <strong>CUBIC</strong> BBRv1 is even at 1 to 4 BDP" in text


def test_a_claim_with_bounds_alone_gives_no_published_share(monkeypatch):
    (figure,) = figures_at("full", ["sarpkaya2025/fig2a"])
    point = next(p for p in figure.points if all(flow.count == 1 for flow in p.scenario.flows))
    found = {"points": [{"label": point.label}], "measured": {MODELLED: {"0": [[0.6, None, 1]], "1": [[0.3, None, 1]]}},
             "expected": {MODELLED: {"0": [[None, 0.5, 0.7, "a"]]}}}  # fmt: skip
    monkeypatch.setattr("bbrlab_apps.site.who_wins.shown_chart", lambda findings, id: found)
    (cell,) = _cells(judged({}), figure).values()
    assert (cell["here"], cell["published"]) == (60, None)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([6, 5, 3, 1], "wins at 1 to 2, is even at 3 and loses at 4 BDP"),
        ([0, 1], "loses at 1 to 2 BDP"),
        ([5, 1, 5, 3], "wins at 1 and 3, loses at 2 and is even at 4 BDP"),
        ([5, None], "wins at 1 and is open at 2 BDP"),
    ],
)
def test_who_wins_in_words(levels, words):
    cells = [{"level": level, "open": level is None, "buffer": str(i + 1)} for i, level in enumerate(levels)]
    assert where_it_wins(cells) == words


@pytest.mark.parametrize(("half", "is_open"), [(None, False), (0.02, False), (0.4, True)])
def test_who_wins_is_open_while_the_interval_has_room_for_either(monkeypatch, half, is_open):
    (figure,) = figures_at("full", ["sarpkaya2025/fig2a"])
    point = next(p for p in figure.points if all(flow.count == 1 for flow in p.scenario.flows))
    found = {
        "points": [{"label": point.label}],
        "measured": {MODELLED: {"0": [[0.6, half, 2]], "1": [[0.3, half, 2]]}},
        "expected": {},
    }
    monkeypatch.setattr("bbrlab_apps.site.who_wins.shown_chart", lambda findings, id: found)
    (cell,) = _cells(judged({}), figure).values()
    assert cell["open"] is is_open and (cell["colour"] == "#ffffff") is is_open
    assert contrast(cell["ink"], cell["colour"]) >= 4.5, "its number can be read"


def test_half_a_minute_tells_how_many_are_decided_and_how_near():
    whole = next(s for s in all_statements() if s.id == "SA-2a")
    shares = [c for c in whole.claims if c.expect.value is not None and c.metric == "share_of_capacity"]
    assert len(shares) > 20
    # All claims of one statement, every share .02 off; the others judged wrong.
    verdicts = {c.id: (NOT_REPRODUCED, 0.0) for c in whole.claims}
    verdicts |= {c.id: (REPRODUCED, (c.expect.value or 0) + 0.02) for c in shares}
    found = distances(judged(verdicts), whole.claims)
    assert found == pytest.approx([0.02] * len(shares))
    words = distance_words(found)
    assert f"Of {len(shares)} published shares (of the link" in words and "within **0.02**" in words
    assert distances(judged({}), whole.claims) == [] and distance_words([0.02] * 9) == "", "few have no quantile"
    undecided = outcome_words(judged(verdicts).statements)
    assert undecided == "None of the **1** statements is decided yet: that needs more runs, or longer ones."
    verdicts |= {c.id: (REPRODUCED, 0.5) for c in whole.claims if c not in shares}
    words = outcome_words(judged(verdicts).statements)
    assert words.startswith("Of **1** statements **1** are decided: **1** reproduced.") and "Not decided" not in words
    assert "claims" not in words, "sums of claims are no headline"


def test_a_list_of_statements_says_how_many_claims_and_a_figure_its_setting(site):
    text = (site / "papers" / "sarpkaya2025.html").read_text(encoding="utf-8")
    assert (
        "1 or 4 BBRv1 against 1 CUBIC; 10 Mbit/s; base RTT 40 ms; buffer 1 or 4 BDP; drop-tail; 60 s, measured from 20 to 60 s."
        in text
    )


def test_every_setting_is_a_sentence():
    sentence = r"[A-Z0-9].* Mbit/s(; base RTT .* ms.*)?; buffer .* (BDP|kB); .* s, measured from .* to .* s\."
    for figure in full_figures().values():
        said = setting_of(figure)
        assert re.fullmatch(sentence, said), f"{figure.id}: {said}"
        assert len(said) < 300 and "None" not in said and "[" not in said, f"{figure.id}: {said}"
        with_rtt = any(flow.has_networks_rtt for p in figure.points for flow in p.scenario.flows)
        assert ("base RTT" in said) == with_rtt, f"{figure.id}: {said}"


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ("scherrer2022/droptail", r"\(31\.2 to 38\.4 ms\) against .*\(30\.2 to 37\.8 ms\); 100 Mbit/s; buffer"),
        ("sarpkaya2025/fig4", r"; base RTT 30 to 40 ms; "),
        ("zeynali2024/fig1", r"; drop-tail or CoDel; 300 s"),
        ("questions/rtt_fairness", r"^1 BBRv3 against 1 BBRv3 \(100 ms\); .*; base RTT 20 ms; "),
    ],
)
def test_a_setting_has_its_queues_and_the_rtts_of_its_flows(figure, words):
    (found,) = figures_at("full", [figure])
    assert re.search(words, setting_of(found))


def test_models_and_measurements_are_counted_at_the_same_published_shares(results):
    content = load_findings("smoke", results=results)
    found = accuracies(content)
    assert found.keys() == {"bbr1"}
    here, ware = found["bbr1"][HERE], found["bbr1"]["ware"]
    assert len(here.distances) == len(ware.distances) == 4, "the points of Fig. 2a at this scale"
    assert 0 <= ware.within <= 4 and here.within < 4, "made-up shares are not the published ones"
    (row,) = accuracy_table(content)["rows"]
    assert row[0] == "BBRv1" and row[1][:2] == [here, ware]


def test_a_command_runs_the_figure_that_it_stands_at_and_no_other(site):
    """A figure's name alone may be that of several papers' figures."""
    at = {scale: targets_of(f.id for f in figures_at(scale, [])) for scale in ("smoke", "full")}
    assert len(at["full"]["fig2"]) > 1
    commands: list[str] = []
    for paper in {s.paper for s in all_statements()}:
        text = (site / "papers" / f"{paper}.html").read_text(encoding="utf-8")
        commands += re.findall(r"<code>(snakemake [^<]*)</code>", text)
        for figure, command in re.findall(
            r'<section id="fig-([^"]*)".*?<code>(snakemake [^<]*)</code>', text, re.DOTALL
        ):
            assert slug(command.split()[-1]) == figure
    assert len(commands) > 100
    for command in set(commands):
        found = re.fullmatch(r"snakemake --cores 2 --config scale=(smoke|full) -- (\S+)", command)
        assert found, command
        assert at[found[1]][found[2]] == [found[2]] or found[2] in {s.paper for s in all_statements()}, command


def test_every_chart_has_words_in_its_place(site):
    """For who does not see it, before a script has run; different ones on a page."""
    found = 0
    for place in pages_of(site):
        labels = re.findall(
            r'<div class="bb-plot" role="img" aria-label="([^"]*)"', text := place.read_text(encoding="utf-8")
        )
        assert len(labels) == text.count('class="bb-plot"') == len(set(labels)), place
        assert all(len(label) > 20 for label in labels), labels
        found += len(labels)
    assert found >= len(FIGURES)


def test_text_of_results_is_never_markup(site):
    for place in sorted(site.rglob("*.html")):
        if "_static" not in place.parts:
            text = place.read_text(encoding="utf-8")
            assert "document.title=" not in re.sub(r"&lt;script&gt;.*?&lt;/script&gt;", "", text), place
            assert "onerror=alert" not in re.sub(r"&lt;img[^<]*?&gt;", "", text), place
            assert "root:x:" not in text
    assert "&lt;script&gt;" in (site / "index.html").read_text(encoding="utf-8"), "the kernel's name is text"
    assert "&lt;script&gt;" in (site / "papers" / "tang.html").read_text(encoding="utf-8")


def test_a_notebook_has_its_words_and_tables_and_no_code(tmp_path):
    page = notebook_page(ANY["cells"], tmp_path, "some")
    assert page.startswith("# Some page\\: of a test\n")
    assert "<td>cell</td>" in page and "## A part" in page
    assert "![a \\[figure\\]](some-1.png)" in page and (tmp_path / "some-1.png").read_bytes().startswith(b"\x89PNG")
    assert "onclick" not in page and "<script" not in page.replace("&lt;script", "")
    assert "\n```{include}" not in page


@pytest.mark.parametrize("html", ["<style>p{}</style>", "<iframe src=x></iframe>", "<a href='javascript:x()'>", "<svg onload=x()>",
                                  "<p style='background:url(https://example.org)'>", "<form><input></form>", "<link href=x>"])  # fmt: skip
def test_html_of_outputs_loses_what_runs_or_loads(html):
    assert not re.search(r"style>|iframe|javascript|onload|url\(|form|input|link", clean(f"kept {html}"))
    assert clean(f"kept {html}").startswith("kept")


def test_no_content_ends_its_block():
    assert block("a\n```\n````\nb").startswith("`````{raw} html\n")
    assert "</script>" not in embedded({"a": "</script><b>"}, "x").removesuffix("</script>")


@pytest.mark.parametrize(
    ("file", "column", "value", "said"),
    [
        ("tang.claims.parquet", "mean", "many", "column mean holds"),
        ("tang.claims.parquet", "verdict", "splendid", "there is no verdict 'splendid'"),
        ("tang.statements.parquet", "in_words", 3, "column in_words holds"),
        ("tang/fig2.parquet", "goodput_mbit", "fast", "column goodput_mbit holds"),
        ("tang/fig2.parquet", "point", None, "has no column point"),
    ],
)  # fmt: skip
def test_a_table_with_a_wrong_type_gives_one_message(results, tmp_path, file, column, value, said):
    for source in results.rglob("*.parquet"):
        place = tmp_path / "r" / source.relative_to(results)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.read_bytes())
    path = tmp_path / "r" / "smoke" / file
    content = pd.read_parquet(path)
    content = content.drop(columns=column) if value is None else content.assign(**{column: value})
    content.to_parquet(path)
    with pytest.raises(UserError, match=re.escape(said)) as error:
        build_site("smoke", tmp_path / "site", tmp_path / "r")
    assert str(path) in str(error.value)
    assert not (tmp_path / "site").exists(), "nothing half-written"
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_without_results_it_says_what_to_do(tmp_path):
    with pytest.raises(UserError, match="snakemake --cores 2 --config scale=smoke -- all"):
        build_site("smoke", tmp_path / "site", tmp_path / "nothing")


def test_a_folder_that_is_no_site_is_left_alone(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "ch1.tex").write_text("mine")
    (tmp_path / ".home.old").mkdir()
    done = CliRunner().invoke(app, ["site", "--scale", "smoke", "--out", str(tmp_path), "--execute"])
    assert "has thesis/ch1.tex, which is not among what bbrlab made there" in str(done.exception), done.output
    with pytest.raises(UserError, match=r"thesis/ch1.tex"):
        build_site("smoke", tmp_path)
    assert (tmp_path / "thesis" / "ch1.tex").read_text() == "mine" and (tmp_path / ".home.old").is_dir()


def test_a_site_that_an_earlier_version_made_in_its_own_place_is_made_again(tmp_path, monkeypatch):
    """It has no list of its files; nothing of the user's is to be in the results folder."""
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "mine"))
    (tmp_path / "mine" / "smoke" / "site").mkdir(parents=True)
    (tmp_path / "mine" / "smoke" / "site" / "index.html").write_text("of before")
    (tmp_path / "nothing" / "smoke").mkdir(parents=True)
    words = ["site", "--scale", "smoke", "--results", str(tmp_path / "nothing")]
    for out, told in (([], "snakemake"), (["--out", str(tmp_path / "mine" / "smoke" / "site")], "has index.html")):
        done = CliRunner().invoke(app, [*words, *out])
        assert told in str(done.exception), done.output


def test_documents_come_with_what_they_link_to(tmp_path):
    (tmp_path / "docs" / "howto").mkdir(parents=True)
    (tmp_path / "docs" / "README.md").write_text(
        "# Flat\n\n[in](howto/in.md#a) [gone](../results/x.html) [file](file.txt)\n"
    )
    (tmp_path / "docs" / "howto" / "in.md").write_text("# In a folder\n\n## A\n")
    (tmp_path / "docs" / "file.txt").write_text("x")
    found = sources(tmp_path)
    assert found == [Path("docs/README.md"), Path("docs/howto/in.md")]
    assert linked(tmp_path) == [Path("docs/file.txt")]
    assert documents.write_documents(tmp_path / "out", tmp_path) == found
    assert (tmp_path / "out" / "docs" / "README.md").read_text().splitlines()[
        2
    ] == "[in](howto/in.md#a) gone [file](file.txt)"
    assert ":caption: How-to guides" in documents.contents(found[1:], tmp_path)


def test_the_sidebar_of_the_documentation_is_in_the_order_of_its_overview(tmp_path):
    (tmp_path / "docs" / "howto").mkdir(parents=True)
    pages = [Path(f"docs/howto/{name}.md") for name in ("a", "b", "c")]
    (tmp_path / documents.INDEX).write_text("[the last](howto/c.md#part) [the first](howto/a.md) [again](howto/c.md)")
    contents = documents.contents(pages, tmp_path)
    assert re.findall(r"/docs/howto/(\w)", contents) == ["c", "a", "b"]


def test_a_diagram_is_told_in_words(tmp_path):
    (tmp_path / "README.md").write_text(
        "# A\n\n```mermaid\nflowchart LR\n  subgraph x [what is asked]\n    S[files/*.yaml] -- read --> b\n  end\n  b --> C[pages]\n```\n"
    )
    documents.write_documents(tmp_path / "out", tmp_path)
    text = (tmp_path / "out" / "README.md").read_text()
    assert (
        "<b>what is asked</b>" in text
        and "files/*.yaml <span>→ read →</span> b" in text
        and "b <span>→</span> pages" in text
    )


@pytest.mark.parametrize(("counts", "cells"), [((1, 1), 0), ((1, 3), 1)], ids=["single", "several"])
def test_a_runs_fairness_is_that_of_several_flows(tmp_path, counts, cells):
    """That of one flow to itself, always 1, is not shown; that of all flows of the run is."""
    folder = run_with_markup(tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    one = summary["groups"][0]
    summary["groups"] = [one | {"count": n, "jain_index": j} for n, j in zip(counts, (1.0, 0.9), strict=True)]
    summary |= {"jain_index": 0.695, "flows": [a_flow()] * sum(counts)}
    (folder / "summary.json").write_text(json.dumps(summary))
    write_run_page(folder, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "Jain's index of all flows <b>0.695</b>" in unescape(text)
    table = text[text.index('aria-label="Flow groups"') :].split("</table>")[0]
    assert (table.count("Jain"), table.count("0.9")) == (cells, cells)


def a_flow() -> dict[str, object]:
    """The entry of a long flow in summary.json."""
    found = dict.fromkeys(FlowEntry.__required_keys__, 1)
    return found | {"cca": "cubic", "rtt_ms": {"min": 1.0, "mean": None}}


def run_with_markup(folder: Path) -> Path:
    """The run of one BBRv1 flow, through four phases, whose failed self-check has text that would like to be markup."""
    point = figures_at("smoke", ["tang/fig2"])[0].points[0]
    made_up_run(point, 1, folder)
    samples = pd.read_parquet(folder / "samples.parquet")
    states = np.array([0.0, 3.0, 6.0, 3.0])[np.arange(len(samples)) * 4 // len(samples)]
    samples.assign(bbr_state=states).to_parquet(folder / "samples.parquet")
    checks = [{"name": EVIL, "asked": 1, "measured": 2.0, "ok": False, "detail": EVIL}]
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"checks": checks, "ok": False}))
    return folder


def test_a_run_is_one_file_that_loads_nothing(tmp_path):
    out = tmp_path / "run.html"
    write_run_page(run_with_markup(tmp_path / "run"), out)
    text = out.read_text(encoding="utf-8")
    assert Page(text).loads == [] and "default-src 'none'" in text
    assert "&lt;script&gt;document" in text and "<script>document.title" not in text
    data = json.loads(re.search(r'id="series-data">(.*?)</script>', text)[1])
    assert [panel["label"] for panel in data["panels"][:4]] == [
        "goodput (Mbit/s)",
        "cwnd (packets)",
        "RTT (ms)",
        "queue (ms)",
    ]
    (phases,) = [panel["lines"][0]["y"] for panel in data["panels"] if panel["lines"][0]["y"][0] == "Startup"]
    assert phases == [name for name in ("Startup", "CRUISE", "ProbeRTT", "CRUISE") for _ in range(2)]
    assert "bbrlab run this_run.yaml" in text, "at this scale no file has it"
    with pytest.raises(UserError, match=r"no finished run .* did you mean .*run"):
        find_run(str(tmp_path))
    (tmp_path / "run" / "samples.parquet").unlink()
    with pytest.raises(UserError, match="samples do not ship"):
        write_run_page(tmp_path / "run", out)


def repeat_of(page: Path) -> tuple[list[str], str]:
    """The words of the command that repeats a run, and the scenario that its page has; empty if it has none."""
    text = page.read_text(encoding="utf-8")
    text = text[text.index("<h2>How to repeat it</h2>") :]
    parts = [unescape(part) for part in re.findall("<pre><code>(.*?)</code></pre>", text, re.DOTALL)]
    return shlex.split(parts[-1]), "".join(parts[:-1])


def as_run(folder: Path, point: Point) -> None:
    """Make a run's manifest that of a point."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"scenario": point.scenario.model_dump(), "values": point.values, "fingerprint": point.fingerprint}
    (folder / "manifest.json").write_text(json.dumps(manifest, default=str))


def test_a_point_of_a_scenario_is_repeated_by_its_values(tmp_path):
    folder = run_with_markup(tmp_path / "run")
    file = paths.SCENARIOS / "bless2025" / "fig7.yaml"
    point = next(p for p in load_points(file)[1] if p.values["case"] != "quiet")
    as_run(folder, point)
    write_run_page(folder, tmp_path / "run.html")
    words, scenario = repeat_of(tmp_path / "run.html")
    options = words[3:-2]
    changes = overrides_of([options[i + 1] for i, word in enumerate(options) if word == "--set"])
    assert scenario == "" and words[:3] == ["bbrlab", "run", "scenarios/bless2025/fig7.yaml"]
    case = options[options.index("--case") + 1]
    assert base_point(load_scenario(file, changes, case)).fingerprint == point.fingerprint


@pytest.mark.parametrize("name", ["fig2a", "mine"])
def test_a_run_of_what_no_file_has_is_repeated_by_its_scenario(tmp_path, name):
    """Whatever --set, --case or another file made of it: the page has what was run."""
    folder = run_with_markup(tmp_path / "run")
    changes = {"network.buffer.bdp": 4, "flows.1.cca": "reno", "sample_hz": 20, "window_s": [600, 900], "name": name}
    point = base_point(load_scenario(paths.SCENARIOS / "sarpkaya2025" / "fig2a.yaml", changes))
    as_run(folder, point)
    write_run_page(folder, tmp_path / "run.html")
    words, scenario = repeat_of(tmp_path / "run.html")
    assert words[:5] + words[-2:] == ["bbrlab", "run", "this_run.yaml", "--seed", "1", "--out", "/tmp/again"]
    (tmp_path / "this_run.yaml").write_text(scenario)
    assert base_point(load_scenario(tmp_path / "this_run.yaml")).fingerprint == point.fingerprint
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "1 of 1 self-checks failed" in text, "stands before the numbers"
    assert text.index("self-checks failed") < text.index('aria-label="Flow groups"')


def test_kernel_backend_and_own_algorithms_are_in_the_command(tmp_path):
    folder = run_with_markup(tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    kernel = summary["kernel"] | {"name": "lab-6.1-qemu+mine", "own": {"mine": "a", "aimd": "b"}}
    others = {"1": summary["kernel"] | {"name": "lab-5.10-qemu"}}
    summary |= {"kernel": kernel, "backend": "qemu", "sender_kernels": others}
    (folder / "summary.json").write_text(json.dumps(summary))
    write_run_page(folder, tmp_path / "run.html")
    words = " ".join(repeat_of(tmp_path / "run.html")[0])
    assert "--backend qemu --kernel lab-6.1-qemu --sender-kernel 1=lab-5.10-qemu --cca-source mine.c --out" in words
    (folder / "summary.json").write_text(json.dumps(summary | {"backend": "play", "sender_kernels": {}}))
    write_run_page(folder, tmp_path / "run.html")
    assert "--backend" not in repeat_of(tmp_path / "run.html")[0], "bbrlab run plays nothing"


def test_a_point_that_only_a_sweep_has_says_so(tmp_path):
    points = load_points(paths.SCENARIOS / "cao2019" / "fig7.yaml")[1]
    folder = made_up_run(next(p for p in points if p.values["network.loss"] == 0), 1, tmp_path / "run")
    write_run_page(folder, tmp_path / "run.html")
    text = unescape((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert "Not by itself: its scenario: network.loss_place before would have no effect" in text


def test_a_run_of_ones_own_scenario_is_called_by_its_name(tmp_path):
    folder = run_with_markup(tmp_path / "run")
    manifest, summary = (json.loads((folder / name).read_text()) for name in ("manifest.json", "summary.json"))
    manifest["scenario"] |= {"paper": "none", "name": "my_path", "figure": ""}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "summary.json").write_text(json.dumps(summary | {"paper": "none", "figure": ""}))
    write_run_page(folder, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert f"<h1>my_path, seed {summary['seed']}</h1>" in text
    assert repeat_of(tmp_path / "run.html")[1].startswith("name: my_path\n")


def axe() -> str:
    """axe-core's source. (Its package wants a library to drive browsers, which this does without.)"""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(
            "axe-core is not installed: pip install --no-deps -r envs/browser.txt (make test-slow does, as root)"
        )
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


# The charts of a page that are not drawn once a reader comes to them, or that do not say in words what they show.
NOT_DRAWN = """(async () => {
  const wrong = [];
  for (const plot of document.querySelectorAll(".bb-plot")) {
    plot.scrollIntoView();
    for (let i = 0; i < 100 && !plot.querySelector(".main-svg"); i++) await new Promise((done) => setTimeout(done, 100));
    const label = plot.getAttribute("aria-label") || "";
    if (!plot.querySelector(".main-svg")) wrong.push(`not drawn: ${label}`);
    else if (plot.closest(".bb-chart") && !/: .+ (curves?:|cells over) .+ The numbers are in the table below/.test(label)) wrong.push(`not in words: ${label}`);
  }
  return wrong;
})()"""


in_a_browser = pytest.mark.skipif(
    PROGRAM is None, reason="there is no chromium: apt-get install chromium (make test-slow does, as root)"
)
# What would cut a printed page: frames around the text that scroll.
FRAMES_THAT_CUT = """(() => {
  const found = [];
  for (let e = document.querySelector("article, main"); e; e = e.parentElement) {
    const style = getComputedStyle(e);
    if (style.overflowX !== "visible" || style.overflowY !== "visible" || style.maxHeight !== "none") found.push(e.className);
  }
  return found;
})()"""


@pytest.mark.slow
@in_a_browser
def test_pages_are_printed_whole(site, tmp_path):
    write_run_page(run_with_markup(tmp_path / "run"), tmp_path / "run.html")
    with Browser(tmp_path / "profile") as browser:
        browser.look(1000)
        browser.send("Emulation.setEmulatedMedia", media="print")
        for page in (site / "index.html", site / "papers" / "tang.html", tmp_path / "run.html"):
            browser.open(page)
            assert browser.run(FRAMES_THAT_CUT) == [], page
            shown = browser.run("[...document.querySelectorAll('.bd-header, .bb-controls, header button')].filter(e => e.getClientRects().length)"
                                ".map(e => e.className)")  # fmt: skip
            assert shown == [], page
            heading = "getComputedStyle(document.querySelector('h2')).breakAfter"
            assert browser.run(heading) == "avoid", "no heading alone at the end of a page"
        browser.look(720)  # which is of a screen again
        browser.send("Emulation.setEmulatedMedia", media="print")
        browser.open(site / "papers" / "tang.html")
        assert browser.run("[...document.querySelectorAll('.bb-figures section')].map(e => getComputedStyle(e).breakInside)"
                           ".every(e => e === 'avoid')"), "a heading stays with its chart"  # fmt: skip
        columns = "getComputedStyle(document.querySelector('.bb-figures')).gridTemplateColumns.split(' ').length"
        assert browser.run(columns) == 2, "charts are as wide on paper as on a screen"


# Of the list of all statements: how many are shown after each entry of its form.
SEARCHES = """(() => {
  const form = document.querySelector("form.bb-filter"), shown = () => [...document.querySelectorAll("#list [data-words]")].filter(r => r.getClientRects().length).length;
  const enter = (name, value) => { form.elements[name].value = value; form.dispatchEvent(new Event("input", { bubbles: true })); return shown(); };
  return [shown(), enter("words", "sa-2a"), enter("words", ""), enter("paper", "tang"), enter("verdict", "not run"), form.querySelector("output").textContent];
})()"""


@pytest.mark.slow
@in_a_browser
def test_statements_are_searched_and_their_links_open_them(site, tmp_path):
    every = all_statements()
    with Browser(tmp_path / "profile") as browser:
        browser.look(1200)
        browser.open(site / "statements.html")
        number, by_words, again, of_paper, not_run, count = browser.run(SEARCHES)
        assert number == again == len(every) and of_paper == sum(s.paper == "tang" for s in every)
        assert 0 < by_words < 10 and 0 < not_run < of_paper and count == f"{not_run} of {len(every)}"
        link = next(link for link in pages_of(site)[site / "statements.html"].links if link.endswith("#sa-2a"))
        browser.open(site / link.split("#")[0])
        assert not browser.run("document.getElementById('sa-2a').open"), "folded until it is asked for"
        browser.run("location.hash = 'sa-2a'; new Promise(done => setTimeout(done, 300))")
        assert browser.run("document.getElementById('sa-2a').open")
        assert browser.problems == []


@pytest.mark.slow
@in_a_browser
def test_a_chart_tells_all_at_once_and_is_saved(site, tmp_path):
    """Unified hover with what is published; models are folded; tolerances are no error bars; pictures and numbers are saved."""
    with Browser(tmp_path / "profile") as browser:
        browser.look(1200)
        browser.open(site / "papers" / "sarpkaya2025.html")
        assert browser.run(NOT_DRAWN) == []
        chart = "document.querySelector('[data-chart=\"chart-sarpkaya2025-fig2a-data\"] .bb-plot')"
        drawn = browser.run(f"(() => {{ const p = {chart}; return {{ hover: p.layout.hovermode, size: p.layout.font.size, traces: p.data.map(t => "
                           "({name: t.name, visible: t.visible, text: t.text || null, colour: t.line ? t.line.color : null, bar: t.error_y ? t.error_y.thickness : 0})) }; })()")  # fmt: skip
        assert (drawn["hover"], drawn["size"]) == ("x unified", 14)
        measured = [t for t in drawn["traces"] if t["text"] and t["name"].startswith("BBRv1")]
        assert measured and all("published" in t["text"][0] and "ware" in t["text"][0] for t in measured)
        assert len(measured) > 1 and {t["colour"].upper() for t in measured} <= {*OTHER_COLOURS}, (
            "no flow count has BBRv1's colour"
        )
        assert {t["visible"] for t in drawn["traces"] if "Ware" in t["name"]} == {"legendonly"}
        band = [t["bar"] for t in drawn["traces"] if t["name"].endswith(": published")]
        assert band and min(band) > 5 * max(t["bar"] for t in measured)
        ends = browser.run(
            f"{chart}.data.filter(t => t.error_y).flatMap(t => t.y.flatMap((y, i) => y === null ? [] : [y - t.error_y.arrayminus[i], y + t.error_y.array[i]]))"
        )
        assert min(ends) >= 0 and max(ends) <= 1, "a share"
        buttons = f"[...{chart}.closest('figure').querySelectorAll('.bb-saved button')].map(b => b.textContent)"
        assert browser.run(buttons) == ["PNG", "SVG", "CSV"]
        svg = browser.run(f"Plotly.toImage({chart}, {{format: 'svg'}})")
        assert svg.startswith("data:image/svg+xml")


@pytest.mark.slow
@in_a_browser
def test_a_chart_draws_what_a_claim_allows_without_a_mark(site, tmp_path):
    """Where it gives a range."""
    text = (site / "papers" / "sarpkaya2025.html").read_text(encoding="utf-8")
    id = "chart-sarpkaya2025-fig2a-data"
    data = json.loads(re.search(rf'id="{id}">(.*?)</script>', text)[1])
    for cells in data["expected"]["share_of_capacity"].values():
        cells[:] = [cell and [None, *cell[1:]] for cell in cells]
    page = site / "papers" / "ranges.html"
    page.write_text(
        re.sub(rf'(id="{id}">).*?(</script>)', lambda m: m[1] + json.dumps(data) + m[2], text), encoding="utf-8"
    )
    with Browser(tmp_path / "profile") as browser:
        browser.look(1200)
        browser.open(page)
        page.unlink()
        assert browser.run(NOT_DRAWN) == []
        chart = f"document.querySelector('[data-chart=\"{id}\"] .bb-plot')"
        drawn = browser.run(f"{chart}.data.map(t => ({{name: t.name, marks: t.marker?.opacity, y: t.y}}))")
    bands = [t for t in drawn if t["name"].endswith(": published")]
    marks = [m for t in bands for m, y in zip(t["marks"], t["y"], strict=True) if y is not None]
    assert marks and set(marks) == {0}
    names = {t["name"] for t in drawn}
    assert "what its claim allows" in names and "published" not in names


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("vision", ["none", "deuteranopia", "protanopia"])
def test_verdicts_look_different_to_everybody(site, tmp_path, vision, dark):
    """The pixels of the verdicts' badges on the method's page, as Chromium shows them to people with red-green blindness."""
    with Browser(tmp_path / "profile") as browser:
        browser.look(1000, dark=dark)
        browser.send("Emulation.setEmulatedVisionDeficiency", type=vision)
        browser.open(site / "method.html")
        # Beside the words, where the badge's own colour is.
        places = browser.run("[...document.querySelectorAll('.bb-verdicts .bb-badge')].map(b => { const r = b.getBoundingClientRect();"
                             " return [b.textContent.trim(), r.x + scrollX + 5, r.y + scrollY + r.height / 2]; })")  # fmt: skip
        browser.picture(tmp_path / "page.png")
    assert len(places) == len(STEPS)
    with Image.open(tmp_path / "page.png") as picture:
        pixels = picture.convert("RGB")
        colours = {name: lab(linear(pixels.getpixel((int(x), int(y))))) for name, x, y in places}
    for one, other in combinations(colours, 2):
        assert np.linalg.norm(colours[one] - colours[other]) > 12, (one, other)


@pytest.mark.slow
@in_a_browser
def test_the_tables_on_models_fit_a_small_laptop(site, tmp_path):
    """None goes on to the right of its frame, where a reader may not see it."""
    with Browser(tmp_path / "profile") as browser:
        browser.look(1100)
        browser.open(site / "docs" / "explanation" / "models.html")
        wide = "[...document.querySelectorAll('.pst-scrollable-table-container')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
        assert browser.run(wide) == 0


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (400, True)])
def test_pages_open_without_an_error_and_keep_nobody_out(site, tmp_path, width, dark):
    source = axe()
    write_run_page(run_with_markup(tmp_path / "run"), tmp_path / "run.html")
    problems = []
    with Browser(tmp_path / "profile") as browser:
        browser.look(width, dark=dark)
        for page in [*pages_of(site), tmp_path / "run.html"]:
            browser.open(page)
            browser.run("new Promise(done => setTimeout(done, 300))")
            name = page.relative_to(site) if page.is_relative_to(site) else page.name
            problems += [f"{name}: {problem}" for problem in browser.problems]
            browser.problems.clear()
            if browser.run("document.documentElement.scrollWidth > innerWidth"):
                problems.append(f"{name}: is wider than the window")
            problems += [f"{name}: chart {problem}" for problem in browser.run(NOT_DRAWN)]
            browser.run(source + "; true")
            for found in browser.run("axe.run(document, {preload: false, resultTypes: ['violations']}).then(r => r.violations.map(v => "
                                     "({impact: v.impact, id: v.id, nodes: v.nodes.slice(0, 3).map(n => n.html.slice(0, 160))})))"):  # fmt: skip
                if found["impact"] in ("serious", "critical"):
                    problems.append(f"{name}: {found['id']}: {found['nodes']}")
    assert problems == []
