"""What is said of runs and verdicts: no pass is made of what was not checked, no number of what is not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import files, paths
from bbrlab.cli.commands import app
from bbrlab.cli.outcome import show_outcome
from bbrlab.results.figures import PANEL_KEYS, Figure, figures_at, runs_of
from bbrlab.results.shipped import ShownResults
from bbrlab.results.verdicts import NOT_REPRODUCED, PARTLY_RUN, REPRODUCED
from bbrlab.show.findings import shown_results
from bbrlab.show.panel import Panel
from bbrlab.show.verdicts import marks_text
from bbrlab_apps.site import build
from studies.model_panels import not_run, panel_rows, panels_at, with_fluid
from tests import made_up

CHECKS = [
    {"name": "rate", "asked": 10.0, "measured": 9.0, "ok": False, "detail": "Mbit/s"},
    {"name": "buffer", "asked": 9.0, "measured": 9.0, "ok": True, "detail": "bytes"},
    {
        "name": "busy_rate",
        "asked": 1.0,
        "measured": None,
        "ok": None,
        "detail": "not checked: the queue was never busy",
    },
]


def test_checks_of_a_page_are_counted_by_what_they_came_to(tmp_path):
    (figure,) = figures_at("smoke", ["sarpkaya2025/fig2a"])
    runs = runs_of(figure, results=tmp_path)
    for run in runs:
        run.folder.mkdir(parents=True)
        (run.folder / "summary.json").write_text(
            json.dumps(made_up.whole_summary(made_up.nothing_measured(), checks=CHECKS))
        )
    table = pd.DataFrame({"point": [r.point.label for r in runs], "seed": [r.seed for r in runs]})
    found = made_up.page_of(tmp_path, "sarpkaya2025", {"fig2a": figure}, {"fig2a": table}).checks().loc["fig2a"]
    count, states = len(runs), ["passed", "failed", "not checked"]
    assert {name: list(found.loc[name, states]) for name in found.index} == {
        "rate": [0, count, 0], "buffer": [count, 0, 0], "busy_rate": [0, 0, count],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("failing", "said"), [(False, "all 1 self-checks passed"), (True, "1 of 3 self-checks failed")]
)
def test_what_was_not_checked_is_printed_and_is_no_pass(capsys, failing, said):
    measured = made_up.nothing_measured(
        goodput_mbit=5.0, utilisation=0.5, occupancy=0.1, queue_ms_mean=1.0, queue_ms_p95=2.0
    )
    show_outcome(made_up.whole_summary(measured, checks=CHECKS if failing else CHECKS[1:]), Path("out"))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "bottleneck: utilisation 0.500, loss -, occupancy 0.10, queue 1.0 ms (p95 2.0)" in lines
    assert ["1", "cubic", "5.000"] in [line.split() for line in lines]
    assert any(line.startswith(said) for line in lines)
    assert "busy_rate: not checked: the queue was never busy" in lines
    assert any(line.startswith("rate: asked 10.0, measured 9.0") for line in lines) == failing


@pytest.mark.parametrize(("counts", "cells"), [((1, 1), None), ((1, 3), ["", "0.900"])], ids=["single", "several"])
def test_fairness_is_that_of_several_flows(capsys, counts, cells):
    """That of one flow to itself, always 1, is not shown; that of all flows of the run is."""
    summary = made_up.whole_summary(made_up.nothing_measured(goodput_mbit=5.0, jain_index_all=0.695))
    one = summary["groups"][0]
    summary["groups"] = [one | {"count": n, "jain_index": j} for n, j in zip(counts, (1.0, 0.9), strict=True)]
    summary["flows"] = [{}] * sum(counts)
    show_outcome(summary, Path("out"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].endswith("(p95 -), Jain's index of all flows 0.695")
    head = next(line for line in lines if line.startswith("flows"))
    assert ("within the group" in head) == (cells is not None)
    if cells:
        found = [line[head.index("within the group") :].strip() for line in lines if "cubic" in line]
        assert found == cells


def test_fairness_of_a_single_flow_is_not_told(capsys):
    summary = made_up.whole_summary(made_up.nothing_measured(goodput_mbit=5.0, jain_index=1.0))
    show_outcome(summary | {"jain_index": 1.0, "flows": [{}]}, Path("out"))
    assert "Jain" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("starts", "window_s", "said"),
    [
        ([(0.2, 0.2), (0.2, 0.21)], [1, 10], []),
        ([(0.5, 0.5), (7.6, 7.8)], [8, 12], ["1 cubic: data from 0.5 s on", "3 cubic: data from 7.6 to 7.8 s on"]),
        ([(20.8, 20.81)], [10, 30], ["1 cubic: data from 20.8 s on"]),
        ([(0.2, 0.2)], [0, 10], []),
        ([(0.2, 0.2), (0.2, None)], [0, 10], ["1 cubic: data from 0.2 s on", "3 cubic: data from 0.2 s on, not all of them"]),
        ([(None, None)], [0, 10], []),
    ],
    ids=["together", "apart", "in the window", "from the beginning", "never", "older"],
)  # fmt: skip
def test_when_flows_began_to_send_is_printed_where_it_tells_something(capsys, starts, window_s, said):
    summary = made_up.whole_summary(made_up.nothing_measured(), window_s=window_s)
    one = summary["groups"][0]
    summary["groups"] = [
        one | {"count": n, "first_data_s": first, "last_first_data_s": last}
        for n, (first, last) in zip((1, 3), starts, strict=False)
    ]
    summary["flows"] = [{"base_rtt_ms": 40}]
    show_outcome(summary, Path("out"))
    assert [line.strip() for line in capsys.readouterr().out.splitlines() if "data from" in line] == said


CLAIM = {"why": "", "verdict": REPRODUCED, "set_aside": 0, "failed": 0, "without": 0, "seeds": 5, "stands": True}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"set_aside": 1}, "1 point without enough runs: the same verdict on either side"),
        ({"set_aside": 2}, "2 points without enough runs: the same verdict on either side"),
        ({"failed": 1}, "1 of 5 seeds failed"),
        ({"failed": 1, "without": 2}, "1 of 5 seeds failed; 2 of 5 seeds have no number"),
        ({"verdict": NOT_REPRODUCED, "stands": False}, "not significant among so many claims (Benjamini-Hochberg)"),
        ({"why": "2 of 3 points", "verdict": PARTLY_RUN, "without": 1}, "2 of 3 points; 1 of 5 seeds have no number"),
    ],
)
def test_what_a_verdict_lacks_is_said(changes, said):
    assert marks_text(CLAIM | changes) == said


def panel(**columns: list[float]) -> Panel:
    return Panel("sarpkaya2025/fig2a", "Fig. 2a", pd.DataFrame(columns), "bbr1", scaled=False)


def test_errors_of_the_ware_model_by_hand():
    found = panel(measured=[0.5, 0.5, 0.5], published=[0.6, 0.5, 0.4], residual=[-0.1, 0, 0.1], ware=[0.8, 0.9, 0.5])
    assert found.ware_rmse == pytest.approx(((0.09 + 0.16) / 3) ** 0.5)
    assert found.ware_published_rmse == pytest.approx(((0.04 + 0.16 + 0.01) / 3) ** 0.5)
    assert found.rmse == pytest.approx((0.02 / 3) ** 0.5)


def test_the_fluid_model_stands_beside_its_points(tmp_path):
    """Each length under its own name, the larger change with the step, nothing where nothing was predicted."""
    (figure,) = figures_at("smoke", ["sarpkaya2025/fig2a"])
    first, second, *_ = figure.points
    for point, length, share, step in (
        (first, "9s", 0.1, 0.001), (first, "own", 0.2, 0.02), (second, "own", 0.3, 0.003),
    ):  # fmt: skip
        file = tmp_path / "models" / figure.id / point.label / f"{length}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"share_of_capacity": [share], "step_difference": [step]}).to_parquet(file)
    places = {name: [p.values[path] for p in figure.points] for path, name in PANEL_KEYS.items()}
    points = with_fluid(panel(**places), figure, tmp_path).points
    columns = points[["fluid_9s", "fluid_own", "fluid_step"]].astype(object)
    found = columns.where(columns.notna(), None).to_numpy().tolist()
    assert found[:2] == [[0.1, 0.2, 0.02], [None, 0.3, 0.003]]
    assert all(row == [None] * 3 for row in found[2:])


def test_every_panel_that_was_run_has_a_row(tmp_path):
    """Of the figures without a table nothing is said; a model without predictions has no number."""
    (figure,) = figures_at("smoke", ["sarpkaya2025/fig2a"])
    file = tmp_path / "smoke" / f"{figure.id}.parquet"
    file.parent.mkdir(parents=True)
    made_up.table(figure, lambda point, seed: 0.5).to_parquet(file)
    for point in figure.points:
        own = tmp_path / "models" / figure.id / point.label / "own.parquet"
        own.parent.mkdir(parents=True)
        pd.DataFrame({"share_of_capacity": [0.6], "step_difference": [0.0]}).to_parquet(own)
    (row,) = panel_rows(panels_at(ShownResults(tmp_path, "smoke", False, ""))).reset_index().to_dict("records")
    assert (row["panel"], row["BBR"], row["against"]) == (figure.scenario.figure, "BBRv1", "CUBIC")
    assert row["points"] == len(figure.points)
    assert row["fluid (own length) - measured"] == pytest.approx(0.1)
    assert np.isnan(row["fluid (9 s) - measured"]) and np.isnan(row["burst - measured"])
    assert row["fluid moves with the step"] == 0
    assert panel_rows(panels_at(ShownResults(tmp_path / "nothing", "smoke", False, ""))).empty


def test_models_stand_against_what_is_asked_for(tmp_path):
    figure, panel_ = _one_panel(measured=[0.5, 0.5], published=[0.6, 0.4], residual=[-0.1, 0.1], ware=[0.9, 0.9],
                                fluid_9s=[0.7, 0.3], fluid_own=[0.5, np.nan], fluid_step=[0.02, 0.001],
                                burst=[0.5, 0.5])  # fmt: skip
    (row,) = panel_rows([(figure, panel_)], against=("measured", "published")).to_dict("records")
    assert row["fluid (9 s) - measured"] == pytest.approx(0.2)
    assert row["fluid (9 s) - published"] == pytest.approx(0.1)
    assert row["fluid (own length) - published"] == pytest.approx(0.1), "of the points that have one"
    assert row["fluid moves with the step"] == 1
    assert not [c for c in panel_rows([(figure, panel_)]) if c.endswith("- published") and not c.startswith("measured")]


def test_what_the_panels_lack_is_named(tmp_path):
    """Figures without measurements, and of those with: points without a prediction, by model."""
    figure, panel_ = _one_panel(fluid_9s=[0.1, 0.1], fluid_own=[0.1, np.nan], burst=[0.1, 0.1])
    file = tmp_path / "smoke" / f"{figure.id}.parquet"
    file.parent.mkdir(parents=True)
    file.touch()
    lacking = not_run([(figure, panel_)], ShownResults(tmp_path, "smoke", False, ""))
    assert "measurements of sarpkaya2025/fig3a" in lacking
    assert f"measurements of {figure.id}" not in lacking
    assert [words for words in lacking if "model" in words] == [f"the fluid model at 1 of 2 points of {figure.id}"]


def _one_panel(**columns: list[float]) -> tuple[Figure, Panel]:
    (figure,) = figures_at("smoke", ["sarpkaya2025/fig2a"])
    return figure, panel(**columns)


def test_pages_that_show_errors_say_what_was_averaged():
    pages = [p.read_text(encoding="utf-8") for p in sorted((paths.ROOT / "notebooks").glob("*.ipynb"))]
    showing = [text for text in pages if "panel.rmse" in text or "panel_rows" in text]
    assert len(showing) >= 2
    assert all("AVERAGED)" in text for text in showing)


def test_a_site_executes_the_notebooks_of_a_campaign(monkeypatch, tmp_path):
    """The burst model's among them, to which the overview has a link; sliders need somebody who moves them."""
    monkeypatch.setattr(paths, "SHIPPED", paths.ROOT / "shipped")
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    made: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(
        "bbrlab.show.execute.execute_notebook", lambda source, out, given: made.append((out.name, given))
    )
    monkeypatch.setattr(build, "stage_hash", lambda stage: "")
    monkeypatch.setattr("bbrlab_apps.site.build.build_site", lambda scale, out, results, **rest: [])
    done = CliRunner().invoke(app, ["site", "--scale", "quick", "--execute"])
    assert done.exit_code == 0, done.output
    papers = {f.id.split("/")[0] for f in figures_at("quick", [])}
    assert {name for name, _ in made} == {f"{name}.ipynb" for name in (*papers, "models", "burst", "overview")}
    assert {name for name, given in made if given.get("interactive") == "no"} == {"models.ipynb", "burst.ipynb"}
    assert "It shows the results that ship." in done.output


def test_a_notebook_is_executed_again_once_what_it_was_made_of_has_changed(monkeypatch, tmp_path):
    """And is not shown before that; one that a campaign executed is never executed here."""
    monkeypatch.setattr(paths, "SHIPPED", paths.ROOT / "shipped")
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "mine"))
    shutil.copytree(paths.ROOT / "notebooks", tmp_path / "notebooks")
    monkeypatch.setattr(build, "_notebook", lambda name: tmp_path / "notebooks" / f"{name}.ipynb")
    monkeypatch.setattr(build, "stage_hash", lambda stage: "code of today")
    monkeypatch.setattr("bbrlab.show.execute.execute_notebook", lambda source, out, given: files.write_text(out, "{}"))

    def executed() -> set[str]:
        said: list[str] = []
        build.execute_notebooks("smoke", said.append)
        return {line.removeprefix("notebook ") for line in said}

    which = shown_results("smoke")
    every = executed()
    assert which.scale != "smoke" and {"tang", "cao2019", "models", "burst", "overview"} < every
    assert build.notebook_files(which, sorted(every), "smoke").keys() == every, (
        "of what ships at another scale than was asked for"
    )
    assert build.notebook_files(ShownResults(tmp_path, "smoke", False, ""), sorted(every), "smoke") == {}, (
        "of one folder alone"
    )
    assert executed() == set()
    files.write_text(tmp_path / "notebooks" / "tang.ipynb", "{}")
    assert every - build.notebook_files(which, sorted(every), "smoke").keys() == {"tang"}
    assert executed() == {"tang"}
    files.write_text(tmp_path / "mine" / "smoke" / "tang.claims.parquet", "one's own")
    assert build.notebook_files(which, ["tang", "cao2019", "overview"], "smoke").keys() == {"cao2019"}
    (tmp_path / "mine" / "smoke" / "tang.claims.parquet").unlink()
    files.write_text(tmp_path / "mine" / "models" / "tang" / "fig2" / "a" / "burst.parquet", "a prediction")
    assert executed() == {"models", "burst", "overview"}
    monkeypatch.setattr(build, "stage_hash", lambda stage: "other code")
    assert executed() == every
    (tmp_path / "mine" / "pages" / "smoke" / "burst.inputs").unlink()
    assert executed() == {"burst"}, "of which it is not known"
    own = ShownResults(tmp_path / "mine", "smoke", False, "")
    files.write_text(tmp_path / "mine" / "smoke" / "burst.ipynb", "of a campaign")
    monkeypatch.setattr(build, "stage_hash", lambda stage: "yet other code")
    assert build.notebook_files(own, sorted(every), "smoke") == {"burst": tmp_path / "mine" / "smoke" / "burst.ipynb"}
