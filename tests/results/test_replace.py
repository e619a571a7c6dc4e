"""One algorithm in the place of another through a paper: its points, its folder, what pages and verdicts say of it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.select import select
from bbrlab.results.figures import figures_at, own_of_figure
from bbrlab.results.replacement import (
    UNCHANGED,
    Replacement,
    begin_replacement,
    check_replaced,
    parse_replacement,
    replacement,
)
from bbrlab.show import terminal as scorecard
from bbrlab.show.execute import execute_notebook
from bbrlab_apps.study.campaign_source import sources_of
from tests.campaign.checkout import STAND_IN, copy_checkout, run_snakemake
from tests.conftest import changed, state_of

SWAP = Replacement("bbr3", "aimd")


@pytest.fixture
def replaced(monkeypatch):
    """As in a campaign with replace=bbr3:aimd."""
    monkeypatch.setenv(paths.REPLACE, "bbr3:aimd")


def ccas(figure):
    return {flow.cca for point in figure.points for flow in point.scenario.flows}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "replace=: give OLD:NEW"),
        ("bbr3", "replace=bbr3: give OLD:NEW"),
        ("bbr3:", "give OLD:NEW"),
        (":mine", "give OLD:NEW"),
        ("bbr3:aimd:x", "give OLD:NEW"),
        ("bbr3:bbr3", "puts bbr3 in its own place; with a parameter it may"),
        ("bbr3:bbr3,", "'': give PARAMETER=VALUE"),
        ("bbr3:bbr3,profile", "'profile': give PARAMETER=VALUE"),
        ("bbr3:bbr3,profile=", "'profile=': give PARAMETER=VALUE"),
        ("bbr3:bbr3,profile=v3 x=1", "'profile=v3 x=1': give PARAMETER=VALUE"),
        ("bbr3:bbr3,ecn=:", "'ecn=:': give PARAMETER=VALUE"),
        ("bbr3:bbr3,ecn=020", "'ecn=020': give PARAMETER=VALUE"),
        ("bbr3:bbr3,ecn=0b_", "'ecn=0b_': give PARAMETER=VALUE"),
        ("bbr3:bbr3,ecn=on,ecn=off", "'ecn=off': give PARAMETER=VALUE once"),
        ("bbr9:aimd", r"replace=bbr9:aimd: there is no algorithm 'bbr9' \(there are bbr1, .*aimd"),
        ("bbr3:mine", r"there is no algorithm 'mine' .*a file kernels/cca/NAME\.c"),
        ("bbr3:../x", r"there is no algorithm '\.\./x'"),
    ],
)
def test_what_is_not_possible(text, words):
    with pytest.raises(UserError, match=words) as caught:
        parse_replacement(text)
    assert "\n" not in str(caught.value)


def test_nothing_to_replace(monkeypatch):
    monkeypatch.setenv(paths.REPLACE, "dctcp:aimd")
    figures = figures_at("smoke", ["sarpkaya2025"], UNCHANGED)
    with pytest.raises(UserError, match="replace=dctcp:aimd: no figure of this campaign has dctcp"):
        check_replaced(point for figure in figures for point in figure.points)
    monkeypatch.setenv(paths.REPLACE, "bbr2:bbr3,profile=v3-drafts")
    (figure,) = figures_at("full", ["sarpkaya2025/fig5a"], UNCHANGED)
    with pytest.raises(UserError, match="no figure of this campaign has bbr2"):
        check_replaced(figure.points)  # it has bbr3, but in nobody's place
    (figure,) = figures_at("full", ["sarpkaya2025/fig3a"], UNCHANGED)
    check_replaced(figure.points)
    monkeypatch.delenv(paths.REPLACE)
    check_replaced([])


def test_every_flow_of_a_paper(replaced):
    """All points are there, with the names that claims choose them by; those without the algorithm are what they were."""
    swapped = {f.id: f for f in figures_at("quick")}
    plain = {f.id: f for f in figures_at("quick", swap=Replacement("nobody", "nothing"))}
    assert swapped.keys() == plain.keys()
    concerned = {id for id, figure in plain.items() if "bbr3" in ccas(figure)}
    assert {"sarpkaya2025/fig5a", "bless2025/fig4", "zeynali2024/fig2"} <= concerned < set(plain)
    for id, figure in swapped.items():
        assert "bbr3" not in ccas(figure)
        assert ("aimd" in ccas(figure)) == (id in concerned)
        assert [cca.name for cca in own_of_figure(figure)] == (["aimd"] if id in concerned else [])
        assert [p.values for p in figure.points] == [p.values for p in plain[id].points]
        for ours, theirs in zip(figure.points, plain[id].points, strict=True):
            same = all(flow.cca != "bbr3" for flow in theirs.scenario.flows)
            assert (ours.fingerprint == theirs.fingerprint) == same
            assert all(not flow.params for flow in ours.scenario.flows if flow.cca == "aimd")
    assert swapped["sarpkaya2025/fig5a"].scenario.flows[0].cca == "aimd"


def test_another_profile_of_the_same_algorithm(monkeypatch, tmp_path):
    """It has its own folder, and keeps what a scenario gives it besides; another algorithm keeps nothing."""
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    monkeypatch.setenv(paths.REPLACE, "bbr2:bbr2,lower_bounds=lossy-refill,headroom=false")
    swap = replacement()
    assert swap.words == "bbr2 with lower_bounds=lossy-refill, headroom=false replaces bbr2"
    assert "Other parameters that a scenario gives bbr2 stay." in swap.note
    assert begin_replacement(swap.text) == swap
    assert paths.results_folder() == tmp_path / "replace" / "bbr2-bbr2,lower_bounds=lossy-refill,headroom=false"
    given = {"lower_bounds": "lossy-refill", "headroom": False}
    (figure,) = figures_at("full", ["zeynali2024/red"])
    params = {p.label: p.scenario.flows[0].params for p in figure.points if p.scenario.flows[0].cca == "bbr2"}
    assert len(params) == 3
    assert {k: v for k, v in params.items() if "bbr2-ignore" in k} == {
        next(k for k in params if "bbr2-ignore" in k): {"ecn": "ignore", **given}
    }
    monkeypatch.setenv(paths.REPLACE, "bbr2:bbr3,profile=v3-drafts")
    (figure,) = figures_at("full", ["zeynali2024/red"])
    other = [f for p in figure.points if p.values["case"].startswith("bbr2") for f in p.scenario.flows]
    assert {(f.cca, *f.params.items()) for f in other if f.cca != "cubic"} == {("bbr3", ("profile", "v3-drafts"))}


def test_claims_find_their_points(replaced):
    figure = next(f for f in figures_at("full", ["zeynali2024"]) if f.id == "zeynali2024/fig2")
    claims = claims_of(load_statements(known_good=True))
    terms = [(claim.id, term) for claim in claims for term in claim.at.values() if term.figure == figure.id]
    assert terms
    assert [id for id, term in terms if not select(term, figure.points)] == []


def test_a_folder_of_its_own(replaced, monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    assert replacement() == SWAP
    assert paths.results_folder() == tmp_path / "replace" / "bbr3-aimd"
    monkeypatch.delenv(paths.REPLACE)
    assert replacement() is None
    assert paths.results_folder() == tmp_path


def test_compare_takes_it_as_a_setting(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    first, second = sources_of(["lab-6.12"], [], ["replace=bbr3:aimd"])
    assert first.swap is None
    assert second.swap == SWAP
    assert second.folder == second.home / "replace" / "bbr3-aimd"
    assert "replace=bbr3:aimd" in second.command("smoke", [], 2)
    with pytest.raises(UserError, match="there is no algorithm 'mine'"):
        sources_of(["lab-6.12"], [], ["replace=bbr3:mine"])
    first, second = sources_of([], [], ["replace=bbr3:bbr3,profile=v3", "replace=bbr3:bbr3,profile=v3-drafts"])
    assert first.swap == Replacement("bbr3", "bbr3", {"profile": "v3"})
    assert first.folder != second.folder


def test_the_page_says_it_first(replaced, tmp_path):
    notebook = tmp_path / "p.ipynb"
    cells = [nbformat.v4.new_markdown_cell("# A paper"), nbformat.v4.new_code_cell("1 + 1")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
    execute_notebook(notebook, tmp_path / "out" / "p.ipynb", {})
    content = nbformat.read(tmp_path / "out" / "p.ipynb", as_version=4)
    assert "aimd replaces bbr3" in content.cells[1].source


def test_the_verdicts_say_it(replaced, capsys):
    none = pd.DataFrame(columns=["id", "verdict", "in_words", "statement", "interim", "expected"])
    scorecard.show_verdicts(none, none)
    assert "aimd replaces bbr3" in capsys.readouterr().out


def test_a_campaign_without_it_says_nothing(capsys):
    none = pd.DataFrame(columns=["id", "verdict", "in_words", "statement", "interim", "expected"])
    scorecard.show_verdicts(none, none)
    assert "replaces" not in capsys.readouterr().out


def test_a_campaign_of_a_paper_leaves_the_other_results_alone(tmp_path):
    """Every job is done by a stand-in: which kernel, which folder and which algorithm each gets."""
    calls, results = tmp_path / "calls", tmp_path / "results"
    checkout = copy_checkout(
        tmp_path / "checkout", STAND_IN.replace("\n", f'\necho "$BBRLAB_REPLACE|$@" >> {calls}\n', 1)
    )

    def snakemake(*settings: str) -> None:
        run_snakemake(
            checkout, ["sarpkaya2025"], figures=["sarpkaya2025"], config=settings, BBRLAB_RESULTS=str(results)
        )

    snakemake()
    before, plain = state_of(results), calls.read_text().splitlines()
    assert not any("aimd" in call for call in plain)
    assert any(call.startswith("|kernel build --cores") for call in plain)
    snakemake("replace=bbr3:aimd")
    own = calls.read_text().splitlines()[len(plain) :]
    assert {call.split("|")[0] for call in own} == {"bbr3:aimd"}
    assert len(own) == len(plain) + 1, "one kernel more"
    assert len([c for c in own if "kernel build" in c and "--cca-source kernels/cca/aimd.c" in c]) == 1
    with_own = {Path(c.split()[1]).parent.name for c in own if c.startswith("bbr3:aimd|point") and "--cca-source" in c}
    without = {
        Path(c.split()[1]).parent.name for c in own if c.startswith("bbr3:aimd|point") and "--cca-source" not in c
    }
    assert {"fig5a", "fig5c"} <= with_own
    assert {"fig2a", "fig3a"} <= without
    assert not with_own & without, "all runs of a figure have one kernel"
    touched = changed(before, state_of(results))
    assert {p.split("/")[0] for p in touched} <= {"replace"}
    assert (results / "replace" / "bbr3-aimd" / "smoke" / "sarpkaya2025.ipynb").exists()
