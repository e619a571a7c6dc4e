"""What a campaign says of itself: how far it is, what is left, what goes wrong."""

from __future__ import annotations

import json
import logging
import os
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from snakemake_interface_logger_plugins.common import LogEvent

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign import forecast, progress
from bbrlab.campaign.forecast import forecast_of, show_forecast
from bbrlab.campaign.plan import runs_of
from bbrlab.campaign.planning import planned_figure, prediction_s
from bbrlab.campaign.progress import Cost, Progress, span
from bbrlab.campaign.terminal import LogHandler
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.models.predictions import prediction_file
from bbrlab.results.figures import figures_at
from bbrlab.results.seeds import read_seeds, seeds_after, write_seeds
from snakemake_logger_plugin_bbrlab import LogHandler as found


@pytest.fixture
def figure():
    return planned_figure(figures_at("smoke", ["tang/fig2"])[0], [])


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_what_is_left_follows_what_it_took(figure):
    clock = Clock()
    keys = [(figure.id, "p", seed) for seed in range(1, 101)]
    campaign = Progress({figure.id: figure}, 2, clock, dict.fromkeys(keys, Cost(virtual_s=3600, core_s=10)))
    assert campaign.left_s == 500, "nothing is known yet but the estimate: 100 runs of 10 s on 2 cores"
    clock.now_s = 100
    for key in keys[:10]:
        campaign.finish(key)
    assert campaign.left_s == pytest.approx(900), "they took twice as long as estimated"
    clock.now_s = 150
    assert campaign.left_s == pytest.approx(850), "it ticks down between two runs"
    campaign.finish(keys[10], ok=False)
    assert campaign.words() == (
        "runs 11 of 100 · 11.0 hours of 100.0 hours of virtual time · 264 x real time · 20 minutes left · 1 failed their checks"
    )
    assert campaign.summary().endswith("1 failed their checks")


def test_seeds_that_are_asked_for_are_planned(figure, tmp_path, monkeypatch):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    labels = list(figure.points)
    campaign = Progress({figure.id: figure}, cores=1)
    for run in runs_of(figure):
        run.folder.mkdir(parents=True)
        (run.folder / "summary.json").write_text("{}")
    campaign.plan_seeds(figure.id, {labels[0]: figure.trials + 2, labels[1]: figure.trials})
    assert set(campaign.planned) == {(figure.id, labels[0], figure.trials + n) for n in (1, 2)}, (
        "only what is not there"
    )
    assert forecast_of(figure).done == len(list(runs_of(figure)))


@pytest.mark.parametrize(("seconds", "words"), [(3, "3 s"), (99, "99 s"), (150, "2 minutes"), (9000, "2.5 hours")])
def test_spans(seconds, words):
    assert span(seconds) == words


def record(event: LogEvent | None, message: str = "", level: int = logging.INFO, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("snakemake", level, "", 0, message, None, None)
    made.__dict__ |= {"event": event, **extra} if event else extra
    return made


@pytest.fixture
def handler(monkeypatch):
    monkeypatch.setattr(progress, "current", None)
    settings = SimpleNamespace(
        quiet={"rules"}, show_failed_logs=True, dryrun=False, verbose=False, debug_dag=False, printshellcmds=False,
        nocolor=True, stdout=False,
    )  # fmt: skip
    return LogHandler(settings, None)


def job(number: int, rule: str, output: str, **wildcards: str) -> logging.LogRecord:
    return record(LogEvent.JOB_INFO, jobid=number, rule_name=rule, wildcards=wildcards, output=[output])


def test_a_campaign_in_a_file(handler, figure, tmp_path, capsys):
    """No line for each job; the texts that steps wrote for reading come last."""
    summary, card = tmp_path / "summary.json", tmp_path / "scorecard.txt"
    summary.write_text(json.dumps({"ok": False}))
    card.write_text("THE SCORECARD\n")
    progress.current = Progress({figure.id: figure}, cores=2)
    progress.current.plan((figure.id, label, 1) for label in figure.points)
    place = {"paper": "tang", "figure": "fig2", "label": next(iter(figure.points)), "seed": "1"}
    handler.emit(record(None, "Select jobs to execute..."))
    handler.emit(job(1, "scorecard", str(card)))
    handler.emit(job(2, "run", str(summary), **place))
    handler.emit(job(3, "scorecard", str(tmp_path / "in_a_storage.txt")))
    for number in (1, 2, 3):
        handler.emit(record(LogEvent.JOB_FINISHED, job_id=number))
    assert progress.current.words().startswith("runs 1 of 2")
    handler.said_s -= 61
    handler.emit(record(LogEvent.PROGRESS, done=2, total=9))
    handler.close()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" · ")[0] for line in lines] == [
        "runs 1 of 2", next(line for line in lines if line.startswith("1 run, ")), "THE SCORECARD"
    ]  # fmt: skip
    assert "1 failed their checks" in lines[1]


def test_what_goes_wrong_is_shown_with_its_log(handler, tmp_path, capsys):
    log = tmp_path / "seed-1.log"
    log.write_text("bbrlab: the guest said nothing for 60 s\n")
    told = {"rule_name": "run", "rule_msg": None, "jobid": 3, "input": [], "output": ["o"], "log": [str(log)],
            "conda_env": None, "shellcmd": "bbrlab point", "aux": {}}  # fmt: skip
    handler.emit(record(LogEvent.JOB_ERROR, "", logging.ERROR, **told))
    handler.emit(record(None, "Exiting because a job execution failed.", logging.ERROR))
    handler.emit(record(None, "Nothing to be done (all requested files are present and up to date)."))
    said = capsys.readouterr().err
    assert "the guest said nothing for 60 s" in said
    assert "Exiting because" in said
    assert "Nothing to be done" in said


def test_a_dry_run_is_in_snakemakes_words_without_a_line_for_each_checkpoint(monkeypatch, capsys):
    settings = SimpleNamespace(
        quiet={"rules"}, show_failed_logs=True, dryrun=True, verbose=False, debug_dag=False, printshellcmds=False,
        nocolor=True, stdout=False,
    )  # fmt: skip
    wordy = LogHandler(settings, None)
    for words in ("Building DAG of jobs...", "DAG of jobs will be updated after completion.", "This was a dry-run"):
        wordy.emit(record(None, words))
    said = capsys.readouterr().err
    assert "Building DAG" in said and "This was a dry-run" in said
    assert "will be updated" not in said


def test_snakemake_finds_the_plugin():
    assert found is LogHandler


def test_files_of_seeds(tmp_path):
    write_seeds(tmp_path / "2.json", {"b": 3, "a": 6})
    assert read_seeds(tmp_path / "2.json") == {"a": 6, "b": 3}
    (tmp_path / "2.json").write_text('{"seeds": {"a": 0}}')
    with pytest.raises(UserError, match=r"2\.json: seeds\.a: .*greater than or equal to 1"):
        read_seeds(tmp_path / "2.json")
    (tmp_path / "2.json").write_text("{")
    with pytest.raises(UserError, match=r"2\.json: is damaged .*remove it"):
        read_seeds(tmp_path / "2.json")
    with pytest.raises(UserError, match=r"3\.json: is not there"):
        read_seeds(tmp_path / "3.json")


def test_a_round_that_asks_for_nothing_is_the_last(figure, tmp_path):
    first, second = figure.points
    few = {first: figure.trials, second: figure.trials}
    looked = []

    def file_of(number):
        looked.append(number)
        return tmp_path / f"{number}.json"

    assert seeds_after(few, 1, file_of) is None
    write_seeds(tmp_path / "2.json", few)
    assert seeds_after(few, 3, file_of) is None
    assert set(looked) == {2}, "nobody looks a third time"
    write_seeds(tmp_path / "2.json", few | {first: 8})
    write_seeds(tmp_path / "3.json", few | {first: 12})
    assert seeds_after(few, 2, file_of) == tmp_path / "2.json"
    assert seeds_after(few, 3, file_of) == tmp_path / "3.json"
    write_seeds(tmp_path / "3.json", few | {first: 8})
    assert seeds_after(few, 3, file_of) == tmp_path / "2.json"


def test_a_forecast_counts_what_the_models_have_yet_to_say(tmp_path, monkeypatch, capsys):
    """164 predictions of quick took 4.5 minutes on two cores (2026-11-24); those that are there are not counted."""
    monkeypatch.setattr(paths, "results_folder", lambda: tmp_path)
    (figure,) = figures_at("quick", ["sarpkaya2025/fig2a"])
    planned = planned_figure(figure, [])
    show_forecast([planned])
    assert f"{3 * len(figure.points)} predictions" in capsys.readouterr().out
    there = prediction_file("own", figure.id, figure.points[0])
    there.parent.mkdir(parents=True)
    there.touch()
    show_forecast([planned])
    assert f"{3 * len(figure.points) - 1} predictions" in capsys.readouterr().out
    few, many = figure.points[0].scenario, figure.points[2].scenario
    assert prediction_s("burst", many) < prediction_s("9s", few) < prediction_s("own", few) < prediction_s("own", many)
    (alone,) = figures_at("quick", ["cao2019/fig8"])
    show_forecast([planned_figure(alone, [])])
    assert "predictions" not in capsys.readouterr().out


def test_the_disk_and_the_cache_are_held_against_what_there_is(tmp_path, monkeypatch):
    monkeypatch.delenv("SNAKEMAKE_OUTPUT_CACHE", raising=False)
    monkeypatch.setattr(forecast.shutil, "disk_usage", lambda place: SimpleNamespace(free=100e9))
    assert forecast.disk_words(3e9, tmp_path) == "Disk: 3.0 GB of 100 GB that are free."
    assert forecast.disk_words(101e9, tmp_path).endswith(
        "That is too much: make room, or set BBRLAB_RESULTS to another disk."
    )
    (tmp_path / "file").touch()
    for name, words in (("none", "not there yet; make it"), ("file", "this is not a folder; name one")):
        monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(tmp_path / name))
        told = f"Cache {tmp_path / name}: {words} before you use --cache."
        assert forecast.disk_words(3e9, tmp_path).splitlines()[1] == told
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(shared))
    assert forecast.disk_words(3e9, tmp_path).endswith("links in the results.")
    assert "0 runs, 0.0 of at most 50 GB" in forecast.disk_words(3e9, tmp_path)
    assert "it may have 51.0 GB: bbrlab cache prune" in forecast.disk_words(51e9, tmp_path)
    room = {shared: 1e9}
    monkeypatch.setattr(forecast.shutil, "disk_usage", lambda place: SimpleNamespace(free=room.get(place, 100e9)))
    assert "set SNAKEMAKE_OUTPUT_CACHE to another disk" in forecast.disk_words(3e9, tmp_path)


def test_a_forecast_is_of_the_cores_that_were_given_and_has_the_seeds_that_may_follow(capsys, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(forecast, "available_bytes", lambda: 4e9)
    (chosen,) = figures_at("full", ["bless2025/fig8"])
    figure = planned_figure(chosen, claims_of(load_statements(known_good=True)))
    row = forecast_of(figure)
    assert row.more_runs > 0 and 0 < row.more_core_s < row.left_core_s and row.more_bytes > 0
    told = {}
    for cores in (1, 8, None):
        show_forecast([figure], Console(width=200), cores)
        told[cores] = capsys.readouterr().out
    assert "on 1 of the 8 cores of this machine" in told[1] and "the largest 1 at once" in told[1]
    assert "too much" not in told[1]
    assert "on the 8 cores of this machine" in told[8] and "use fewer --cores" in told[8]
    assert told[None] == told[8]
    assert f"at most {row.more_runs} more runs (" in told[8]


def test_no_seeds_follow_that_no_claim_reads(capsys):
    """A figure may have them, and does not get them: its forecast does not promise any."""
    (figure,) = figures_at("full", ["bless2025/fig8"])
    assert max(figure.caps.values()) > figure.trials
    planned = planned_figure(figure, [])
    row = forecast_of(planned)
    assert (row.more_runs, row.more_core_s, row.more_bytes) == (0, 0, 0)
    show_forecast([planned], Console(width=200))
    assert "cannot decide get more" not in capsys.readouterr().out
