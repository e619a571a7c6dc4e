"""What is known by all results that ship: which scale a page shows, and each statement at the largest scale that decides it."""

from __future__ import annotations

import html
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.results import shipped
from bbrlab.results.best_scale import (
    best_claims,
    best_statements,
    best_verdicts,
    results_shown,
    scale_words,
    shipped_statements,
)
from bbrlab.results.figures import figures_at
from bbrlab.results.judged import judged_tables, write_verdicts
from bbrlab.results.tables import read_figure, write_table
from bbrlab.results.verdicts import read_claims, read_statements
from bbrlab.show.findings import load_findings, shown_results
from bbrlab_apps.site.pages import front_page, paper_page, runs_page
from studies.page import load_page, statement_table

REAL = paths.ROOT / "shipped" / "quick"


def copy_of(source: Path, mine: Path, paper: str, *parts: str) -> Path:
    """One's own results of a paper, as what ships has them: its tables, and the files PART + claims.parquet on these."""
    place = mine / source.name
    shutil.copytree(source / paper, place / paper)
    for part in parts:
        file = source / f"{part}claims.parquet"
        tables = sorted((place / paper).glob("*.parquet"))
        write_verdicts(read_claims(file), read_statements(file), place / f"{part}claims.parquet", tables)
    return place


@pytest.fixture
def folder(tmp_path) -> Path:
    """Quick as it ships, and of full two papers' figures."""
    ids = {"quick": [f.id for f in figures_at("quick", [])], "full": ["tang/fig2", "ware2019/fig8a"]}
    rows = {
        "quick": {"A": "not run", "B": "partly run", "C": "reproduced", "D": "not reproduced"},
        "full": {"A": "inconclusive", "B": "not run", "C": "partly run", "D": "partly reproduced"},
    }
    for scale, figures in ids.items():
        place = tmp_path / scale
        place.mkdir()
        manifest = files.read_json(REAL / "manifest.json") | {"scale": scale, "figures": dict.fromkeys(figures, 3)}
        files.write_json(place / "manifest.json", manifest)
        runs = pd.DataFrame({"figure": figures, "commit": next(iter(manifest["commits"]))})
        runs.to_parquet(place / "runs.parquet")
        table = pd.DataFrame({"id": list(rows[scale]), "verdict": list(rows[scale].values())})
        table.assign(paper="tang", own=False, code="", cause="", chosen_after="", exactness="text").to_parquet(
            place / "statements.parquet"
        )
    return tmp_path


def test_each_statement_at_the_largest_scale_that_decides_it(folder, tmp_path):
    found = shipped_statements(folder)
    assert list(zip(found["id"], found["verdict"], found["scale"], strict=True)) == [
        ("A", "inconclusive", "full"),
        ("B", "partly run", "quick"),
        ("C", "reproduced", "quick"),
        ("D", "partly reproduced", "full"),
    ]
    assert len(shipped_statements(tmp_path / "nothing")) == 0


def test_a_claim_that_its_statements_scale_did_not_run_is_shown_as_another_did():
    """Never as a larger scale has it, which its statement does not follow."""
    of = {"X": ("reproduced", "partly run"), "Y": ("partly run", "reproduced")}
    statements = best_statements({
        scale: pd.DataFrame({"id": list(of), "verdict": [v[place] for v in of.values()]})
        for place, scale in enumerate(("quick", "full"))
    })  # fmt: skip
    assert list(statements["scale"]) == ["quick", "full"]
    rows = {"X-1": ("X", "reproduced", "not reproduced"), "Y-1": ("Y", "reproduced", "not reproduced"),
            "Y-2": ("Y", "inconclusive", "not run"), "Y-3": ("Y", "not run", "not run")}  # fmt: skip
    claims = best_claims(statements, {
        scale: pd.DataFrame({"id": list(rows), "statement": [r[0] for r in rows.values()], "verdict": [r[place] for r in rows.values()]})
        for place, scale in enumerate(("quick", "full"), 1)
    })  # fmt: skip
    assert list(zip(claims["id"], claims["verdict"], claims["scale"], strict=True)) == [
        ("X-1", "reproduced", "quick"),
        ("Y-1", "not reproduced", "full"),
        ("Y-2", "inconclusive", "quick"),
        ("Y-3", "not run", "full"),
    ]


def test_a_page_of_what_ships_has_each_figure_at_the_largest_scale(monkeypatch, tmp_path):
    """Its statements, too, as on the site; and says which figure is of which scale, and whose runs."""
    monkeypatch.setattr(paths, "SHIPPED", paths.ROOT / "shipped")
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    page = load_page("quick", "sarpkaya2025")
    at = {scale: set(shipped.read_manifest(paths.SHIPPED, scale).figures) for scale in ("quick", "full")}
    for name, scale in page.scales.items():
        id = f"sarpkaya2025/{name}"
        assert scale == ("full" if id in at["full"] else "quick")
        table = pd.read_parquet(paths.SHIPPED / scale / f"{id}.parquet")
        assert set(page.tables[name]["point"]) == set(table["point"])
        assert name in set(page.checks().reset_index()["figure"])
    everywhere = shipped_statements().set_index("id")["verdict"]
    assert page.all.statements.set_index("id")["verdict"].to_dict().items() <= everywhere.to_dict().items()
    said = page.glance()
    runs = {scale: 0 for scale in at}
    for name, table in page.tables.items():
        runs[page.scales[name]] += len(table.drop_duplicates(["point", "seed"]))
    assert f": {sum(runs.values())} runs, " in said
    for scale, n in runs.items():
        assert (f"{n:,} runs at scale {scale} (of commit" in said) == bool(n)
    counts = {scale: [name for name, of in page.scales.items() if of == scale] for scale in at}
    most = max(counts, key=lambda scale: len(counts[scale]))
    for scale, names in counts.items():
        if names and scale != most:
            assert f"**{scale}** ({', '.join(names[:6])}" in said, "which figure is of which scale"
    (elsewhere,) = [
        name for name in page.figures if page.scales[name] == "full" and f"sarpkaya2025/{name}" not in at["quick"]
    ][:1]
    with pytest.raises(UserError, match=f"scale=full -- sarpkaya2025/{elsewhere}"):
        page.samples(elsewhere, ["time_s"])
    copy_of(REAL, tmp_path, "sarpkaya2025", "sarpkaya2025.")
    own = load_page("quick", "sarpkaya2025")
    assert set(own.scales.values()) == {"quick"} and set(own.all.statements["scale"]) == {"quick"}


def test_the_scales_of_figures_in_words():
    assert scale_words({"fig1": "full"}) == "**full**"
    assert scale_words({"fig1": "full", "fig2": "full", "fig3": "quick"}) == "**full** (2 figures) and **quick** (fig3)"
    many = dict.fromkeys("abcdefgh", "full") | dict.fromkeys("ijklmnop", "quick")
    assert scale_words(many).endswith(" and 2 more)")


def test_a_table_of_statements_marks_claims_of_another_scale():
    statements, claims = (read(REAL / "tang.claims.parquet") for read in (read_statements, read_claims))
    one = statements.iloc[:1].assign(scale="full")
    mine = claims[claims["statement"] == one["id"].iloc[0]]
    marked = statement_table(one, mine.assign(scale="quick"))
    assert marked.count("at scale quick, not counted above") == len(mine)
    assert "not counted" not in statement_table(one, mine.assign(scale="full"))
    assert "not counted" not in statement_table(statements.iloc[:1], mine), "of one scale, which no column names"


def test_a_part_of_a_scale_is_shown_for_its_papers_only(folder, tmp_path):
    at = {paper: shipped.shipped_scale("full", folder, paper) for paper in ("tang", "cao2019")}
    assert at == {"tang": "full", "cao2019": "quick"}, "of a paper that does not ship at full, what there is"
    assert shipped.shipped_scale("quick", folder) == "quick"
    assert shipped.shipped_scale("smoke", folder) == "quick", "the largest that is whole, not the largest"
    assert "tang/fig3" in shipped.left_out(folder, "full") and shipped.left_out(folder, "quick") == []
    words = results_shown(shipped.results_to_show("full", "tang", tmp_path / "mine", folder), "tang")
    assert (
        "3 runs at scale full (of commit " in words
        and "Not shipped at scale full: tang/fig3, " in words
        and "ware2019" not in words
    )
    assert "`bbrlab verify --scale full tang`" in words, "of the scale that is shown"
    words = results_shown(shipped.results_to_show("full", None, tmp_path / "mine", folder))
    assert "bless2025/fig10" in words and words.count("/fig") < 10 and " more." in words


def test_what_ships_opens_at_every_scale_that_ships(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SHIPPED", REAL.parent)
    monkeypatch.setattr(paths, "results_folder", lambda: tmp_path)
    for scale in ("smoke", "quick", "full"):
        for paper in ("tang", "cao2019"):
            page = load_page(scale, paper)
            assert page.shipped and page.tables, (scale, paper)


@pytest.mark.parametrize(("scale", "paper"), [("quick", "questions"), ("quick", "zeynali2024"), ("full", "questions")])
def test_a_papers_page_of_what_ships_reads_as_all_of_it(monkeypatch, tmp_path, scale, paper):
    """What stands does so among all claims that were judged together; of one's own results of a paper, among those on its figures."""
    monkeypatch.setattr(paths, "SHIPPED", REAL.parent)
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    page, (statements, claims) = load_page(scale, paper), best_verdicts(shipped.results_to_show(scale, paper))
    for mine, every in ((page.all.statements, statements), (page.all.claims, claims)):
        expected = every.set_index("id").loc[mine["id"]].reset_index()
        pd.testing.assert_frame_equal(mine, expected)
    alone = REAL.parent / scale / f"{paper}.claims.parquet"
    assert set(read_claims(alone)["id"]) <= set(page.all.claims["id"])
    assert "stand when all of their scale are judged together" in page.glance()
    copy_of(REAL.parent / scale, tmp_path, paper, "", f"{paper}.")
    own = load_page(scale, paper)
    assert own.all.claims["stands"].fillna(False).sum() == read_claims(alone)["stands"].fillna(False).sum()
    assert "stand when all on this paper's figures are judged together" in own.glance()


@pytest.mark.slow
def test_a_site_of_what_ships_has_each_figure_at_the_largest_scale(monkeypatch, tmp_path):
    """And each statement, with its claims, at the largest scale that decides it; one's own results stand alone."""
    monkeypatch.setattr(paths, "SHIPPED", paths.ROOT / "shipped")
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    content = load_findings("quick")
    at = {scale: set(shipped.read_manifest(paths.SHIPPED, scale).figures) for scale in ("quick", "full")}
    assert {id for id, scale in content.scales.items() if scale == "full"} == at["full"]
    assert {id for id, scale in content.scales.items() if scale == "quick"} == at["quick"] - at["full"]
    known = shipped_statements().set_index("id")
    assert content.every.set_index("id")["verdict"].to_dict() == known["verdict"].to_dict()
    there = {scale: read_claims(paths.SHIPPED / scale / "claims.parquet").set_index("id")["verdict"] for scale in at}
    for name, row in content.of_claim.items():
        scale = known.loc[row["statement"], "scale"]
        assert row["verdict"] == there[row["scale"]][name]
        assert row["scale"] == scale or there[scale][name] == "not run", "what is known at another scale is shown, too"
    front, runs, page = (
        front_page(content, defaultdict(str), [], []),
        runs_page(content),
        paper_page(content, "sarpkaya2025", "S", "", "n"),
    )
    number = sum(len(t.drop_duplicates(["point", "seed"])) for t in content.tables.values())
    assert f"<b>{number:,}</b><span>runs shown here" in front
    told = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) runs at scale (?:quick|full) ", front)]
    assert len(told) == len(set(content.scales.values())) and sum(told) == number, "of each scale with its commits"
    assert all(content.command(id) in html.unescape(runs) for id in content.figures)
    assert "notebook of this paper](n.md).\n" in page
    assert "<dt>scale of the verdict</dt><dd>full</dd>" in page
    elsewhere = {
        row["paper"] for row in content.of_claim.values() if row["scale"] != known.loc[row["statement"], "scale"]
    }
    for paper in elsewhere:
        assert "at scale quick, not counted above" in paper_page(content, paper, "S", "", "n"), paper
    for id in ("sarpkaya2025/fig2a", "zeynali2024/fig2"):
        assert content.command(id).endswith(id) and ("scale=full" in content.command(id)) == (id in at["full"])
    assert load_findings("full").scales == dict.fromkeys(at["full"], "full")
    (tmp_path / "quick" / "tang").mkdir(parents=True)
    shutil.copy(paths.SHIPPED / "quick" / "tang" / "fig2.parquet", tmp_path / "quick" / "tang")
    part = load_findings("quick")
    assert part.scales == content.scales, "a part of a campaign hides nothing of what ships"
    assert "Your own results at scale quick have tang/fig2 only" in paper_page(part, "tang", "T", "", None)
    assert "Not shipped at scale full" in front or not shipped.left_out(paths.SHIPPED, "full")
    claims, table = REAL / "claims.parquet", tmp_path / "quick" / "tang" / "fig2.parquet"
    write_verdicts(read_claims(claims), read_statements(claims), tmp_path / "quick" / "claims.parquet", [table])
    assert load_findings("quick").scales == {"tang/fig2": "quick"}


def test_one_figure_of_ones_own_does_not_hide_what_ships(monkeypatch, tmp_path):
    """A paper's page needs the verdicts of all its figures."""
    monkeypatch.setattr(paths, "SHIPPED", paths.ROOT / "shipped")
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    (tmp_path / "quick" / "tang").mkdir(parents=True)
    shutil.copy(paths.SHIPPED / "quick" / "tang" / "fig2.parquet", tmp_path / "quick" / "tang")
    page = load_page("quick", "tang")
    assert page.shipped and len(page.figures) > 1
    said = page.glance()
    assert (
        "Your own results at scale quick have tang/fig2 only, not yet judged with all figures of the paper; `snakemake"
        in said
    )


def test_a_page_names_the_commits_of_its_own_runs():
    runs = pd.read_parquet(paths.ROOT / "shipped" / "full" / shipped.RUNS)
    made = {commit[:10] for commit in runs.loc[runs["figure"] == "tang/fig2", "commit"]}
    assert set(shipped.commits_of(paths.ROOT / "shipped", "full", ["tang/fig2"])) == made
    assert len(made) < len(shipped.read_manifest(paths.ROOT / "shipped", "full").commits)


def test_a_table_that_ships_and_is_not_there_is_told(monkeypatch, tmp_path):
    shutil.copytree(paths.ROOT / "shipped", tmp_path / "shipped")
    monkeypatch.setattr(paths, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "mine"))
    path = tmp_path / "shipped" / "full" / "tang" / "fig2.parquet"
    path.unlink()
    with pytest.raises(UserError, match=r"full/tang/fig2\.parquet: is missing; get these results anew"):
        load_page("quick", "tang")
    claims = tmp_path / "shipped" / "full" / "claims.parquet"
    claims.write_bytes(claims.read_bytes()[:100])
    with pytest.raises(UserError, match=r"claims\.parquet: is damaged .*; get what ships with this version anew"):
        read_claims(claims)


def test_a_site_of_one_folder_alone(monkeypatch, tmp_path):
    """Also of a part of a campaign, of which nothing was judged."""
    monkeypatch.setattr(paths, "SHIPPED", paths.ROOT / "shipped")
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "mine"))
    theirs = tmp_path / "theirs"
    (theirs / "quick" / "tang").mkdir(parents=True)
    shutil.copy(paths.SHIPPED / "quick" / "tang" / "fig2.parquet", theirs / "quick" / "tang")
    given = []
    monkeypatch.setattr("bbrlab_apps.site.build.build_site", lambda *words, **rest: given.append(words) or [])
    assert CliRunner().invoke(app, ["site", "--scale", "quick", "--results", str(theirs)]).exit_code == 0
    assert given == [("quick", None, theirs)]
    content = load_findings("quick", results=theirs)
    assert content.scales == {"tang/fig2": "quick"} and not len(content.statements)
    with pytest.raises(UserError, match="--execute: goes without --results"):
        CliRunner().invoke(app, ["site", "--results", str(theirs), "--execute"], catch_exceptions=False)
    with pytest.raises(UserError, match="--results .*: there is no folder full in it"):
        CliRunner().invoke(app, ["site", "--scale", "full", "--results", str(theirs)], catch_exceptions=False)


def test_verdicts_stand_beside_the_tables_that_were_judged_and_no_others(monkeypatch, tmp_path):
    """After a campaign of a part, and after one figure was run again."""
    monkeypatch.setattr(paths, "SHIPPED", REAL.parent)
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    place = copy_of(REAL, tmp_path, "tang", "", "tang.")
    shutil.copytree(REAL / "cao2019", place / "cao2019")
    whole = load_findings("quick")
    assert not whole.shown.shipped and {id.split("/")[0] for id in whole.figures} == {"tang"}
    said = results_shown(whole.shown)
    assert (
        said.startswith("Your own results")
        and "Not shown: cao2019/" in said
        and "snakemake --cores 2 all` judges all" in said
    )
    assert said.partition(" Not shown")[2] in shipped.own_results(tmp_path, "quick").own
    assert "Not shown: cao2019/" in front_page(whole, defaultdict(str), [], [])
    assert "Not shown" not in load_page("quick", "tang").glance()
    table = place / "tang" / "fig2.parquet"
    before = table.read_bytes()
    for change in (lambda: write_table(read_figure(table).assign(utilisation=0.5), table), table.unlink):
        change()
        for paper, target in ((None, "all"), ("tang", "tang")):
            instead = shown_results("quick", paper)
            assert instead.shipped and instead.own == (
                "Your own results at scale quick are not shown: tang/fig2 changed after they were judged; "
                f"`snakemake --cores 2 {target}` judges them anew."
            )
            with pytest.raises(
                UserError, match=rf"quick/tang/fig2.parquet: changed after .*; run: snakemake --cores 2 {target}"
            ):
                load_findings("quick", paper, tmp_path)
    table.write_bytes(before)
    assert not load_page("quick", "tang").shipped, "the same bytes are the same results"
    (place / "claims.parquet").unlink()
    assert {id.split("/")[0] for id in load_findings("quick", results=tmp_path).figures} == {"tang"}, (
        "as its papers were judged"
    )
    shutil.copy(REAL / "claims.parquet", place)
    with pytest.raises(
        UserError, match="claims.parquet: does not say which tables were judged: made by another version of bbrlab"
    ):
        load_findings("quick")


def test_judging_notes_the_tables(tmp_path):
    """Of a figure without claims, too."""
    tables = [REAL / "tang" / "fig2.parquet", REAL / "tang" / "fig3.parquet"]
    out = tmp_path / "tang.claims.parquet"
    done = CliRunner().invoke(app, ["judge", *map(str, tables), "--only", "--scale", "quick", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert judged_tables(out) == {f"tang/{path.stem}": files.sha256(path) for path in tables}
    write_verdicts(pd.DataFrame(), pd.DataFrame(), out, tables[:1])
    assert list(judged_tables(out)) == ["tang/fig2"]


def test_verdicts_that_are_not_shown_stop_no_page(monkeypatch, tmp_path):
    """Of one paper alone, by a version that did not note which tables it judged: what ships is shown."""
    monkeypatch.setattr(paths, "SHIPPED", REAL.parent)
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    (tmp_path / "quick").mkdir()
    shutil.copy(REAL / "claims.parquet", tmp_path / "quick" / "tang.claims.parquet")
    assert shown_results("quick").shipped


def test_advice_on_another_folder_of_results_names_it(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "mine"))
    place = copy_of(REAL, tmp_path / "theirs", "tang", "tang.")
    shutil.copytree(REAL / "cao2019", place / "cao2019")
    said = shipped.own_results(tmp_path / "theirs", "quick").own
    assert f"`BBRLAB_RESULTS={tmp_path / 'theirs'} snakemake --cores 2 all` judges all" in said
    (place / "tang" / "fig2.parquet").unlink()
    with pytest.raises(
        UserError, match=rf"changed after .*BBRLAB_RESULTS={tmp_path / 'theirs'} snakemake --cores 2 tang$"
    ):
        load_findings("quick", None, tmp_path / "theirs")
