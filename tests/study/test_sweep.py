"""``bbrlab sweep``: a study of one's own, from an empty folder to a picture."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from bbrlab.base.errors import UserError
from bbrlab.campaign import lock
from bbrlab.cli.commands import app
from bbrlab.cli.interrupts import Interrupted
from bbrlab.results import figures
from bbrlab_apps.study import plan
from bbrlab_apps.study import run as study_run
from bbrlab_apps.study.plan import plan_study
from bbrlab_apps.study.table import means, study_table
from tests.study.conftest import QUESTION


def sweep(*words: str):
    return CliRunner().invoke(app, ["sweep", *words])


def test_a_study_ends_with_a_table_a_csv_and_a_picture(lab, tmp_path):
    done = sweep("my.yaml", "--seeds", "3")
    assert done.exit_code == 0, done.output
    assert "exp1: 2 points, 6 runs; about" in done.output
    assert "0.320 ± 0.025" in done.output, "mean of 0.31, 0.32, 0.33 with Student's interval, at 4 BDP"
    for name in ("exp1.png", "exp1.svg", "runs.csv", "means.csv", "study.yaml"):
        assert (tmp_path / "exp1" / name).stat().st_size > 100, name
    assert len(pd.read_csv("exp1/runs.csv")) == 2 * 3 * 2, "a row for each point, seed and group"
    rows = pd.read_csv("exp1/means.csv").set_index(["network.buffer.bdp", "cca"])
    assert rows.loc[(1, "bbr3"), "share_of_capacity"] == pytest.approx(0.17)
    assert rows.loc[(1, "bbr3"), "share_of_capacity_ci95"] == pytest.approx(0.01 * 4.3027 / 3**0.5, rel=1e-3)
    assert rows.loc[(1, "bbr3"), "runs"] == 3


def test_what_is_too_much_for_one_picture_has_its_tables_and_its_page(lab, tmp_path):
    fields = {"network.rtt_ms": [*range(10, 23)], "network.buffer.bdp": [1, 2]}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(QUESTION | {"sweep": fields}))
    done = sweep("my.yaml", "--seeds", "1")
    assert done.exit_code == 0, done.output
    assert "no picture was drawn: " in done.output and "--where" in done.output
    assert (tmp_path / "exp1" / "means.csv").exists() and not (tmp_path / "exp1" / "exp1.png").exists()


def test_what_is_there_is_kept(lab):
    assert sweep("my.yaml", "--seeds", "2", "--out", "a").exit_code == 0
    assert len(lab.jobs) == 4
    more = sweep("my.yaml", "--seeds", "3", "--out", "a")
    assert "6 runs; 4 are there" in more.output
    assert [job.seed for job in lab.jobs[4:]] == [3, 3]
    assert sweep("my.yaml", "--seeds", "3", "--out", "a", "--set", "duration_s=12").exit_code == 0
    assert len(lab.jobs) == 12, "other points"
    before = len(lab.jobs)
    again = sweep("a/study.yaml", "--out", "a")
    assert again.exit_code == 0, again.output
    assert len(lab.jobs) == before, "the scenario as it was run is a scenario, with what was set and the seeds"


def test_runs_of_another_kernel_and_damaged_ones_are_run_again(lab):
    sweep("my.yaml", "--seeds", "1")
    lab.key = "bbbb"
    sweep("my.yaml", "--seeds", "1")
    assert len(lab.jobs) == 4
    samples = next(Path("exp1/runs").glob("*/seed-1/samples.parquet"))
    samples.write_bytes(samples.read_bytes()[:-1])
    sweep("my.yaml", "--seeds", "1")
    assert len(lab.jobs) == 5


def test_a_run_that_fails_is_told_and_nothing_else_begins(lab):
    lab.fails = {2}
    done = sweep("my.yaml", "--seeds", "3", "--cores", "1")
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith("exp1: buffer.bdp=")
    assert "seed 2: the guest said nothing for 60 s; 2 runs of 6 are there, and the same command goes on" in str(
        done.exception
    )
    assert [job.seed for job in lab.jobs][:3] == [1, 1, 2]
    lab.fails = set()
    assert sweep("my.yaml", "--seeds", "3").exit_code == 0


def test_an_interruption_says_what_is_kept(lab, monkeypatch, capsys):
    def interrupt(*given: object) -> None:
        raise Interrupted

    monkeypatch.setattr(study_run, "run_each", interrupt)
    with pytest.raises(Interrupted):
        app(["sweep", "my.yaml", "--seeds", "2"], standalone_mode=False)
    assert "exp1: 0 runs of 4 are kept; the same command goes on" in capsys.readouterr().err


def test_runs_that_fail_their_self_checks_are_in_no_mean(lab):
    lab.bad = {2}
    done = sweep("my.yaml", "--seeds", "3")
    assert "self-checks failed in 2 runs, which no mean is of: buffer.bdp=" in done.output
    assert "2, 1 failed" in done.output


def test_all_runs_failed_their_self_checks(lab):
    lab.bad = {1}
    done = sweep("my.yaml", "--seeds", "1")
    assert done.exit_code == 0, done.output
    assert not Path("exp1/exp1.png").exists()


def test_what_draws_nothing_has_two_seeds(lab, monkeypatch):
    monkeypatch.setattr(figures, "draws_nothing", lambda scenario: scenario.network.buffer.bdp == 1)
    study = plan_study(Path("my.yaml"), None, {}, 5)
    assert [len([r for r in study.runs if r.point is p]) for p in study.figure.points] == [2, 5]
    assert "7 runs (where nothing is random, two seeds tell all)" in sweep("my.yaml", "--seeds", "5").output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["my.yaml", "--out", "my.yaml"], "--out my.yaml: is a file; give a folder"),
        (
            ["my.yaml", "--out", "."],
            "--out .: has files that are of no study (no study.yaml); choose a folder that is empty",
        ),
        (["my.yaml", "--set", "network.bufer.bdp=4"], "unknown key 'network.bufer'; did you mean 'buffer'"),
        (["mi.yaml"], "mi.yaml"),
        (["my.yaml", "--set", "bdp"], "--set bdp: give PATH=VALUE"),
    ],
)
def test_mistakes_have_one_message(lab, words, told):
    done = sweep(*words)
    assert isinstance(done.exception, UserError), done.output
    assert told in str(done.exception)
    assert not lab.jobs


def test_what_a_folder_tells_is_of_the_last_sweep(lab):
    """Runs are kept. Tables, pictures and page are of one sweep, also where the later one broke off."""
    made = ["exp1.png", "exp1.svg", "index.html", "means.csv", "runs.csv", "runs.parquet"]
    there = lambda: sorted(name for name in made if Path("exp1", name).exists())  # noqa: E731
    sweep("my.yaml", "--seeds", "1")
    assert CliRunner().invoke(app, ["show", "exp1"]).exit_code == 0
    more = sweep("my.yaml", "--seeds", "2")
    assert "note: " not in more.output and "2 seeds" in Path("exp1/index.html").read_text(), "the page goes along"
    lab.fails = {1, 2}
    done = sweep("my.yaml", "--seeds", "2", "--set", "duration_s=12")
    assert "note: exp1 had another sweep (duration_s): its tables, pictures and page are removed" in done.output
    assert there() == []
    lab.fails = set()
    assert sweep("my.yaml", "--seeds", "2", "--set", "duration_s=12").exit_code == 0
    assert there() == [name for name in made if name != "index.html"]
    assert set(pd.read_csv("exp1/means.csv")["duration_s"]) == {12}
    before = len(lab.jobs)
    back = sweep("my.yaml", "--seeds", "2")
    assert set(pd.read_csv("exp1/means.csv")["duration_s"]) == {10} and len(lab.jobs) == before, back.output
    assert "had another sweep (window_s): " in sweep("my.yaml", "--seeds", "1", "--set", "window_s=[4, 9]").output


def test_what_was_made_of_another_kernels_runs_goes_before_they_do(lab, monkeypatch):
    """So that a sweep that breaks off leaves no table that says something else than its runs."""
    sweep("my.yaml", "--seeds", "1")
    monkeypatch.setattr(plan, "is_kept", lambda run, key: False)
    lab.fails = {1}
    done = sweep("my.yaml", "--seeds", "1")
    assert "note: exp1: 2 runs of another kernel, of an older version or damaged: made anew" in done.output
    assert not any(Path("exp1", name).exists() for name in ("means.csv", "runs.csv", "runs.parquet", "exp1.png"))


def test_a_folder_of_another_study_is_left_alone(lab):
    sweep("my.yaml", "--out", "a", "--seeds", "1")
    Path("other.yaml").write_text(yaml.safe_dump(QUESTION | {"name": "exp2"}))
    done = sweep("other.yaml", "--out", "a")
    assert (
        str(done.exception) == "--out a: is of the study 'exp1', and other.yaml is called 'exp2'; choose another folder"
    )


@pytest.mark.parametrize("words", [[], ["--seeds", "5"], ["--set", "duration_s=12"]])
def test_a_scenario_by_hand_is_not_replaced_by_what_is_run(lab, words):
    text = f"# why I ask\n{yaml.safe_dump(QUESTION)}"
    Path("study.yaml").write_text(text)
    done = sweep("study.yaml", "--out", ".", *words)
    assert "its study.yaml is not as bbrlab sweep wrote it" in str(done.exception), done.output
    assert Path("study.yaml").read_text() == text and not lab.jobs


def test_a_change_by_hand_of_what_was_run_is_not_replaced(lab):
    assert sweep("my.yaml", "--seeds", "1", "--out", "a").exit_code == 0
    changed = Path("a/study.yaml").read_text().replace("trials: 1", "trials: 2")
    Path("a/study.yaml").write_text(changed)
    done = sweep("my.yaml", "--seeds", "1", "--out", "a")
    assert "its study.yaml is not as bbrlab sweep wrote it" in str(done.exception), done.output
    assert Path("a/study.yaml").read_text() == changed


@pytest.mark.parametrize("name", ["exp1.png", "exp1.svg", "means.csv", "runs.csv", "runs.parquet", "index.html"])
def test_somebodys_file_in_the_place_of_a_result_stays(lab, name):
    assert sweep("my.yaml", "--seeds", "1", "--out", "a").exit_code == 0
    Path("a", name).write_text("mine")
    done = sweep("my.yaml", "--seeds", "2", "--out", "a")
    assert f"--out a/{name}: is there, and does not have the mark" in str(done.exception), done.output
    assert Path("a", name).read_text() == "mine" and len(lab.jobs) == 2, "told before anything is run"


def test_a_study_yaml_that_somebody_wrote_stays(lab):
    assert sweep("my.yaml", "--seeds", "1", "--out", "a").exit_code == 0
    Path("a/study.yaml").write_text(f"{Path('a/study.yaml').read_text()}# why I ask\n")
    assert "its study.yaml is not as bbrlab sweep wrote it" in str(sweep("my.yaml", "--out", "a").exception)


def test_values_that_no_column_holds_are_texts(lab, tmp_path):
    sweep_of = {"network.rtt_ms": [40, [20, 60]]}
    Path("rtt.yaml").write_text(yaml.safe_dump(QUESTION | {"sweep": sweep_of, "name": "rtt"}))
    done = sweep("rtt.yaml", "--seeds", "1")
    assert done.exit_code == 0, done.output
    study = plan_study(Path("rtt.yaml"), Path("rtt"), {}, 1)
    assert sorted(set(study_table(study)["network.rtt_ms"])) == ["40", "[20, 60]"]
    assert len(means(study_table(study))) == 4


@pytest.mark.guest
def test_two_points_of_two_seconds(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lock, "hold_lock", lambda folder: folder.mkdir(exist_ok=True))  # it is the process', to its end
    Path("my.yaml").write_text(yaml.safe_dump(QUESTION | {"duration_s": 2, "window_s": [1, 2]}))
    done = sweep("my.yaml", "--seeds", "1")
    assert done.exit_code == 0, done.output
    shares = pd.read_csv("exp1/means.csv").groupby("network.buffer.bdp")["share_of_capacity"].sum()
    assert (shares > 0.3).all() and (shares < 0.96).all(), shares
    assert Path("exp1/exp1.svg").read_text().startswith("<?xml")
    again = sweep("my.yaml", "--seeds", "1")
    assert "2 runs; 2 are there" in again.output
