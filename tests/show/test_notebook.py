"""What the pages' cells share: published values by the points' names, the model in the conditions run, queueing delay."""

import ast
import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from IPython.display import HTML

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.claims.load import claims_of
from bbrlab.claims.select import full_figures
from bbrlab.models import ware
from bbrlab.results.figures import figures_at, has_panel, runs_of
from bbrlab.show.panel import Panel
from bbrlab_apps.ns3.runs import program_identity
from studies import notebook
from studies.model_panels import in_words
from studies.page import MANY
from tests.made_up import all_statements, page_of


def test_a_long_table_is_folded_and_whole(monkeypatch):
    shown = []
    monkeypatch.setattr(notebook, "display", shown.append)
    long = pd.DataFrame({"value": range(100, 200)})
    for table in (long, long.style, long[:MANY], long[:MANY].style):
        notebook.show(table)
    for folded in shown[:2]:
        assert folded.data.startswith("<details><summary>100 rows</summary>")
        assert all(str(value) in folded.data for value in range(100, 200)), "not cut short, as pandas would"
    assert not any(isinstance(short, HTML) for short in shown[2:])


@pytest.fixture
def page(tmp_path):
    """A page of Fig. 2a at smoke with tables and samples made up."""
    (figure,) = figures_at("smoke", ["sarpkaya2025/fig2a"])
    rows = []
    for run in runs_of(figure, results=tmp_path):
        run.folder.mkdir(parents=True)
        pd.DataFrame(
            {"time_s": [1.0, 1.0, 2.0], "flow": [0, 1, 0], "group": [0, 1, 0], "queue_bytes": [25000, 25000, 50000],
             "ssthresh": [9, 9, 9]}
        ).to_parquet(run.folder / "samples.parquet")  # fmt: skip
        for group, goodput in ((0, 6.0), (1, 2.0)):
            values = run.point.conditions | run.point.values
            rows.append({"point": run.point.label, "seed": run.seed, "group": group, "ok": run.seed == 1,
                         "goodput_mbit": goodput, "count": run.point.scenario.flows[group].count, **values})  # fmt: skip
    return page_of(tmp_path, "sarpkaya2025", {"fig2a": figure}, {"fig2a": pd.DataFrame(rows)})


def test_published_values_of_the_points_that_were_run(page):
    names = {"bbr_flows": "flows.0.count", "buffer_bdp": "network.buffer.bdp"}
    found = notebook.published("sarpkaya2025/fig2a", names, page.tables["fig2a"], tuple(names.values()))
    assert {(r["flows.0.count"], r["network.buffer.bdp"]) for _, r in found.iterrows()} == {
        (1, 1),
        (4, 1),
        (1, 4),
        (4, 4),
    }
    assert len(notebook.published("sarpkaya2025/fig2a")) == 42


@pytest.mark.parametrize(
    ("table", "names", "says"),
    [("nobody/fig1", {}, "nobody/fig1.csv: there is no such published table"),
     ("sarpkaya2025/fig2a", {"buffer": "x"}, "fig2a.csv: there is no column buffer")],
)  # fmt: skip
def test_what_is_not_published_is_named(table, names, says):
    with pytest.raises(UserError, match=says):
        notebook.published(table, names)


def test_the_model_takes_rate_rtt_and_flows_from_the_runs(page):
    table = page.tables["fig2a"].assign(rate_mbit=50.0, base_rtt_ms=30.0)
    found = notebook.ware_beside(table, "flows.0.count", "buffer_bdp").set_index(["flows.0.count", "buffer_bdp"])
    assert len(found) == 4
    assert found.loc[(4, 4), "share_of_capacity"] == pytest.approx(float(ware.bbr_share(50, 30, 4, 4)))
    assert found.loc[(4, 4), "share_of_capacity"] != pytest.approx(float(ware.bbr_share(10, 40, 4, 4)))


def test_part_of_both_leaves_failed_runs_out(page):
    found = notebook.part_of_both(page.tables["fig2a"])
    assert set(found["part"]) == {0.75}
    assert set(found["seed"]) == {1}
    assert set(found["group"]) == {0}


def test_time_between_window_cuts_of_each_run(page):
    run = page.run("fig2a", seed=2, **{"network__buffer__bdp": 1, "flows__0__count": 4})
    times = [60.0, 70.0, 110.0, 150.0]
    pd.DataFrame({"time_s": times, "flow": 4, "group": 1, "ssthresh": [9, 8, 7, 6]}).to_parquet(
        run.folder / "samples.parquet"
    )
    found = notebook.between_cuts(page, "fig2a").set_index(["network.buffer.bdp", "flows.0.count", "seed"])
    assert len(found) == 8, "every point and seed"
    assert found.loc[(1, 4, 2), "between_cuts_s"] == 40
    assert np.isinf(found.loc[(1, 4, 1), "between_cuts_s"]), "no cut"


def test_a_panel_in_words():
    points = pd.DataFrame(
        {"buffer_bdp": [1, 32], "bbr_flows": [1, 1], "measured": [0.8, 0.5], "ci95": [0.01, 0.02], "runs": [3, 3],
         "published": [0.79, 0.4], "ware": [0.9, 0.44], "residual": [0.01, 0.1]}
    )  # fmt: skip
    said = in_words(Panel("sarpkaya2025/fig2a", "Fig. 2a", points, "bbr1", False))
    assert "1 of 2 points are within 0.05" in said
    assert "+0.100 at 1 BBR flows and 32 BDP (published 0.400, measured 0.500 ± 0.020)" in said
    assert "The Ware model is nearest at 32 BDP (-0.060 on average)" in said
    assert "farthest at 1 BDP (+0.100 on average)" in said


# Figures that are judged and have no picture of their own.
WITHOUT_A_PICTURE = {
    "bless2025/fig8_gro": "a variant of fig8, among the claims",
    "bless2025/fig8_early": "the first half of fig8's runs, among the claims",
    "bless2025/fig8_late": "the second half of fig8's runs, among the claims",
    "cao2019/fig5_offloads": "a variant of fig5, among the claims",
    "cao2019/fig5_default_memory": "one number, among the claims",
    "cao2019/fig6_10mb": "the rest of the settings of fig6, among the claims",
    "cao2019/fig8_conditions": "variants of fig8, among the claims",
    "cao2019/fig8_cycle": "variants of fig8, among the claims",
    "tang/sec5a": "two numbers, among the claims",
    "zeynali2024/red_floyd": "a variant of red, among the claims",
    "ware2019/fig3_long": "a variant of fig3, among the claims",
}


def test_every_figure_that_is_judged_is_on_its_page():
    """By its name in the notebook's code; a panel (has_panel) and the second window of Figs 4 and 6 have a loop."""
    missing = set()
    for id in {figure for claim in claims_of(all_statements()) for figure in claim.figures}:
        paper, name = id.split("/")
        cells = json.loads((paths.ROOT / f"notebooks/{paper}.ipynb").read_text(encoding="utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        looped = has_panel(full_figures()[id]) or name.endswith("_occupancy") or "in page.tables.items()" in code
        if not looped and f'"{name}"' not in code:
            missing.add(id)
    assert missing == set(WITHOUT_A_PICTURE)


def test_figures_are_let_go(capsys):
    figure, _ = plt.subplots()
    notebook.show(figure)
    assert not plt.fignum_exists(figure.number)


def ns3_table(page, **changes) -> pd.DataFrame:
    table = page.tables["fig2a"].assign(
        figure="sarpkaya2025/fig2a", cca="cubic", program=program_identity(), goodput_mbit=5.0
    )
    return table.assign(**changes)


def test_ns3_stands_beside_the_points_that_the_page_has(page, capsys):
    page.tables["fig2a"]["cca"] = "cubic"
    assert notebook.beside_ns3(page) is None
    notebook.other_engine(page)
    assert capsys.readouterr().out == "", "not run: nothing is said"
    file = page.results / "smoke" / "ns3" / "sarpkaya2025.parquet"
    file.parent.mkdir(parents=True)
    ns3_table(page).to_parquet(file)
    found, stale = notebook.beside_ns3(page)
    assert stale == ""
    assert len(found) == 8
    assert set(found["ns-3"]) == {5.0} and set(found["here"]) == {6.0, 2.0}


def test_old_numbers_of_ns3_are_left_out_and_told(page):
    """After a changed scenario a point has another name; after a changed program all numbers may be others."""
    page.tables["fig2a"]["cca"] = "cubic"
    first = page.figures["fig2a"].points[0].label
    table = ns3_table(page, program="another")
    file = page.results / "smoke" / "ns3" / "sarpkaya2025.parquet"
    file.parent.mkdir(parents=True)
    table.assign(point=table["point"].replace(first, "as,it,was")).to_parquet(file)
    found, stale = notebook.beside_ns3(page)
    assert len(found) == 6
    assert "another version of its program" in stale
    assert "1 of its points are not of this page's scenarios" in stale and "run `make ns3` again" in stale


def test_good_runs_have_delays_in_base_rtts(page):
    for p in ("mean", "p25", "p50", "p75", "p95", "max"):
        page.tables["fig2a"][f"queue_ms_{p}"] = 80.0
    found = notebook.good(page, "fig2a")
    assert set(found["group"]) == {0} and found["ok"].all()
    assert set(found["qd_p50"]) == {2.0}
    assert set(found["setting"]) == {"10 Mbit/s, 40 ms"}


def test_both_sides_of_a_case():
    rows = [
        {"case": "on", "group": group, "ok": ok, "goodput_mbit": mbit, "ecn_marked": marked, "share_of_goodput": share}
        for group, ok, mbit, marked, share in (
            (0, True, 6, 0.1, 0.75),
            (1, True, 2, 0.2, 0.25),
            (0, False, 9, 0.9, 0.9),
        )
    ]
    found = notebook.both_sides(pd.DataFrame(rows), ("BBR", "CUBIC")).loc["on"]
    assert found.to_dict() == {
        "Mbit/s, BBR": 6, "Mbit/s, CUBIC": 2, "marked, BBR": 0.1, "marked, CUBIC": 0.2, "BBR's part": 0.75,
    }  # fmt: skip


@pytest.mark.parametrize("path", sorted((paths.ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_define_nothing(path):
    """A function in a notebook has no test and no type."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    found = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    assert [node.name for node in found] == []
