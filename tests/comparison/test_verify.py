"""Running again under the eyes of whoever waits: what is told meanwhile, what counts as a run's time, and the words at the end."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import files, paths, python
from bbrlab.base.errors import UserError
from bbrlab.campaign.progress import Cost, Progress
from bbrlab.cli.commands import app
from bbrlab.cli.verification import progress_words, show_verification
from bbrlab.comparison import verify
from bbrlab.comparison.differences import LATER, compare
from bbrlab.comparison.expected_runs import ExpectedResults, Problem, results_at
from bbrlab.experiment.machine import cores
from bbrlab.kernel.built import matches_this_recipe
from bbrlab.kernel.specs import find_spec
from bbrlab.measure import metrics
from bbrlab.measure.checks.check import kind_of
from bbrlab.measure.summary import FlowEntry
from bbrlab.results.digest import fields_of, restricted, summary_digest
from bbrlab.results.figures import figures_at
from bbrlab.results.shipped import Version, read_manifest
from bbrlab.run import processes
from bbrlab_apps.shipping.pack import joined
from tests.made_up import nothing_measured, of_this_version, whole_summary
from tests.show.test_site import run_with_markup

REAL = paths.ROOT / "shipped"
FIGURE = "tang/fig2"
LATE_S = 0.2


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> Path:
    """What ships at quick, as if this version had made it."""
    folder = tmp_path_factory.mktemp("shipped")
    shutil.copytree(REAL / "quick", folder / "quick")
    return of_this_version(folder)


@pytest.fixture(scope="module")
def results(shipped) -> ExpectedResults:
    return results_at(shipped, "quick", figures_at("quick", [FIGURE]), [FIGURE])


# --- while it runs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path, monkeypatch) -> Callable[[str], None]:
    """Puts a shell program in the place of a run; its result folder is $9."""
    monkeypatch.setattr(verify, "missing_kernels", lambda records: {})
    monkeypatch.setattr(python, "sys", SimpleNamespace(executable=str(tmp_path / "program")))

    def put(text: str) -> None:
        (tmp_path / "program").write_text(f'#!/bin/sh\nmkdir -p "$9"\n{text}\n')
        (tmp_path / "program").chmod(0o755)

    return put


@pytest.fixture
def one_core_here(tmp_path, monkeypatch) -> None:
    """A machine with one core, of which nobody else knows."""
    monkeypatch.setattr(cores, "SHARED", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(processes, "TELL_AFTER_S", LATE_S)
    monkeypatch.setattr(processes, "TELL_S", LATE_S)


def some(results: ExpectedResults, count: int = 1) -> list[verify.ExpectedRun]:
    return [results.expected(key) for key in results.keys[:count]]


def test_a_runs_time_is_without_the_wait_for_a_core(results, program):
    program('sleep 2; echo > "$9/guest.log"; sleep 0.5; exit 3')
    (outcome,) = verify.run_again(results, some(results), 1)
    assert outcome.problems[-1].what == "does not run here: status 3"
    assert outcome.wall_s is not None and 0.3 < outcome.wall_s < 1.5


def test_a_run_that_never_had_a_core_has_no_time(results, program, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    program('echo "bbrlab: no such point" >&2; exit 2')
    outcomes = verify.run_again(results, some(results), 1)
    assert outcomes[0].wall_s is None
    show_verification(outcomes, [])
    assert "not run again: the run" in (told := capsys.readouterr().out)
    assert f" {outcomes[0].expected.run.point.label} " in told.splitlines()[1], (
        "a point's name is in one line, in a pipe"
    )
    assert "does not run here: no such point" in told


def test_it_is_told_at_once_that_a_run_waits_and_for_whom(results, program, one_core_here):
    program('sleep 1.5; echo > "$9/guest.log"; sleep 2; exit 3')
    told: list[tuple[int, str]] = []
    with cores.one_core():
        verify.run_again(results, some(results), 1, lambda done, waits: told.append((len(done), waits)))
    assert (0, f"1 run waits for a free core (core 0: process {os.getpid()})") in told
    waits = [text for _, text in told]
    assert told[-1][0] == 1 and waits[-2:] == ["", ""], "it had its core"


def test_a_run_that_takes_long_to_ask_for_a_core_waits_for_none(results, program, one_core_here):
    program('sleep 1; echo > "$9/guest.log"; exit 3')
    told: list[str] = []
    verify.run_again(results, some(results), 1, lambda done, waits: told.append(waits))
    assert len(told) > 2 and set(told) == {""}
    with cores.one_core():
        pass


def test_a_run_that_says_much_holds_nothing_up(results, program):
    program('head -c 3000000 /dev/zero | tr "\\0" x >&2; echo >&2; echo "bbrlab: it is full" >&2; exit 3')
    (outcome,) = verify.run_again(results, some(results), 1)
    assert outcome.problems[-1].what == "does not run here: it is full"


def test_an_interrupt_ends_what_runs_and_leaves_no_thread(results, program, tmp_path, one_core_here):
    program(f"echo $$ >> {tmp_path}/pids; exec sleep 60")
    threads, start = threading.active_count(), time.monotonic()

    def interrupt(done: list[verify.Outcome], waits: str) -> None:
        if (tmp_path / "pids").exists() and len((tmp_path / "pids").read_text().splitlines()) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify.run_again(results, some(results, 4), 2, interrupt)
    assert time.monotonic() - start < 30 and threading.active_count() == threads
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2 and not any(Path(f"/proc/{pid}").exists() for pid in pids)


# --- the words -----------------------------------------------------------------------------------------------------------


def test_the_line_tells_from_the_start(results):
    now = [0.0]
    progress = Progress.of([one.run for one in some(results, 2)], 1, lambda: now[0])
    assert progress_words(progress).startswith("runs 0 of 2 · 0 not equal · ")
    assert progress_words(progress).endswith(" left")
    assert progress_words(progress, "1 run waits") == "runs 0 of 2 · 0 not equal · 1 run waits"
    now[0] = 2 * progress.left_s
    assert progress_words(progress).endswith(" · 0 s left")
    keys = [(FIGURE, "a", seed) for seed in (1, 2)]
    equal_runs = Progress({}, 1, lambda: now[0], dict.fromkeys(keys, Cost(10, 10)))
    now[0] += 30
    equal_runs.finish(keys[0], ok=False)
    assert progress_words(equal_runs) == "runs 1 of 2 · 1 not equal · 30 s left"
    now[0] += 10
    assert progress_words(equal_runs).endswith(" · 20 s left")


def test_the_command_tells_on_a_log_that_a_run_waits_and_counts_one(monkeypatch, shipped):
    said = "1 run waits for a free core (core 0: process 12)"

    def again(found, records, jobs, tell):
        for _ in range(2):
            tell([], said)
        return [verify.Outcome(r, [], "kernel build differs; results are identical") for r in records]

    monkeypatch.setattr(verify, "run_again", again)
    argv = ["verify", FIGURE, "--results", str(shipped), "--scale", "quick", "--cores", "1", "--sample"]
    done = CliRunner().invoke(app, [*argv, "1"], catch_exceptions=False)
    assert done.stderr == f"bbrlab: {said}\n", "once, however often it was looked"
    assert " on 1 core\n" in done.stdout
    assert "\n1 run: kernel build differs" in done.stdout
    assert done.stdout.endswith("1 of 1 run is equal in every hash\n")
    done = CliRunner().invoke(app, [*argv, "2"], catch_exceptions=False)
    assert (
        done.stdout.endswith("2 of 2 runs are equal in every hash\n")
        and "\n2 runs: kernel build differs" in done.stdout
    )


@pytest.mark.parametrize(("faults", "said"), [(1, "1 fault in the files"), (2, "2 faults in the files")])
def test_faults_are_counted(results, capsys, faults, said):
    show_verification(
        [verify.Outcome(record, []) for record in some(results, 2)], [Problem("runs.parquet", "x")] * faults
    )
    assert capsys.readouterr().out.endswith(f"2 of 2 runs are equal in every hash; {said}\n")


def test_what_another_build_of_the_kernel_means_is_said(results, capsys):
    """On another release of Debian no run is equal, and nobody has to take that for a fault."""
    other = Problem("summary.json", f"{verify.OTHER_BUILD}: a there, b here")
    show_verification([verify.Outcome(some(results, 1)[0], [other, Problem("samples.parquet", "has hash c")])], [])
    told = " ".join(capsys.readouterr().out.split())
    assert "Another build of the kernel gives another trial" in told and "LIMITATIONS.md" in told
    show_verification([verify.Outcome(some(results, 1)[0], [Problem("samples.parquet", "has hash c")])], [])
    assert "trial" not in capsys.readouterr().out


# --- results of a version that measured less ------------------------------------------------------------------------------


def a_summary() -> dict[str, Any]:
    """Of a run with flows both ways."""
    checks = [
        {"name": name, "asked": 1, "measured": 1, "ok": True, "detail": ""}
        for name in ("rate", "rate_reverse", "parameter bbr3.ecn")
    ]
    measured = nothing_measured(goodput_mbit=5.0, queue_ms_p95=3.0)
    measured["flows"] = [{"flow": 0, "rtt_ms": {"min": 1.0}}]
    return whole_summary(measured | {"bottleneck_reverse": dict(measured["bottleneck"])}, checks=checks)


def more_measured(summary: dict[str, Any], ok: bool = True) -> dict[str, Any]:
    """The same run's summary by a version that measures and checks more."""
    found: dict[str, Any] = json.loads(json.dumps(summary))
    for entry in (found, *found["groups"], *found["flows"], found["flows"][0]["rtt_ms"], found["bottleneck"],
                  found["bottleneck"]["queue_ms"], found["bottleneck_reverse"]):  # fmt: skip
        entry["measured_later"] = 1
    found["bottleneck"]["nested_later"] = {"p50": 1}
    found["checks"].insert(1, {"name": "checked_later", "asked": 1, "measured": 1, "ok": ok, "detail": "so much"})
    return found | {"ok": ok}


def test_a_hash_is_over_the_fields_of_the_version_that_made_it():
    summary = a_summary()
    fields, digest = fields_of(summary), summary_digest(summary)
    assert {
        "ok",
        "groups.goodput_mbit",
        "flows.rtt_ms.min",
        "bottleneck.queue_ms.p95",
        "checks.rate",
        "checks.parameter",
    } <= fields
    assert not any("reverse" in name or "later" in name for name in fields)
    assert summary_digest(restricted(summary, fields)) == digest
    for ok in (True, False):
        later = more_measured(summary, ok)
        assert summary_digest(later) != digest and summary_digest(restricted(later, fields)) == digest


@pytest.mark.parametrize(
    "change",
    [lambda s: s["groups"][0].pop("goodput_mbit"), lambda s: s["groups"][0].update(goodput_mbit=5.1),
     lambda s: s["flows"][0]["rtt_ms"].pop("min"), lambda s: s["bottleneck"]["queue_ms"].update(p95=4.0),
     lambda s: s["bottleneck_reverse"].pop("loss"), lambda s: s["checks"].pop(0), lambda s: s.pop("jain_index"),
     lambda s: s["checks"][2].update(measured=2), lambda s: s["flows"].append({}), lambda s: s.update(ok=False)],
)  # fmt: skip
def test_a_field_that_is_no_more_or_has_another_value_is_another_result(change):
    summary = a_summary()
    later = more_measured(summary)
    later["checks"] = [check for check in later["checks"] if check["name"] != "checked_later"]
    change(later)
    assert summary_digest(restricted(later, fields_of(summary))) != summary_digest(summary)


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_what_ships_says_of_every_column_and_check_that_its_hashes_are_over_it(scale):
    manifest, place = read_manifest(REAL, scale), REAL / scale
    runs = pd.read_parquet(place / "runs.parquet", columns=["figure", "point", "seed", "commit"])
    checks = pd.read_parquet(place / "checks.parquet").merge(runs, on=["figure", "point", "seed"])
    for commit, made in runs.groupby("commit"):
        fields = set(manifest.version_of(commit).fields)
        assert {f"checks.{kind_of(name)}" for name in checks[checks["commit"] == commit]["check"].unique()} <= fields
        for figure, of_it in made.groupby("figure"):
            rows = pd.read_parquet(place / f"{figure}.parquet").merge(of_it[["point", "seed"]], on=["point", "seed"])
            measured = set(rows.columns[rows.notna().any()])
            assert {metrics.METRICS[name].field for name in measured & metrics.METRICS.keys()} <= fields
        assert {f"flows.{name}" for name in FlowEntry.__required_keys__ if name != "rtt_ms"} - {*LATER} <= fields


def version(commit: str, fields: set[str], **more: object) -> Version:
    kernel = {"name": "lab", "release": "6", "build_id": "b", "key": "k", "source": "s", "compiler": "c"}
    same = {"guest_code_sha256": {"guest.py": "0"}, "kernel": kernel, "packages": ["iperf3 3"], "conditions": "calm"}
    return Version.model_validate({"commits": {commit: ""}, "fields": sorted(fields), **same, **more})


def test_each_commit_is_of_one_version():
    made = [
        version("b", {"x"}),
        version("a", {"x", "y"}),
        version("b", {"y"}, packages=["iperf3 4"]),
        version("c", {"x"}),
        version("d", {"x"}, guest_code_sha256={"guest.py": "1"}),
        version("e", {"x"}, kernel=version("", set()).kernel | {"key": "other"}),
        version("f", {"x"}, kernel=version("", set()).kernel | {"build_id": "patched for the host"}),
        version("g", {"x"}, conditions="noise"),
    ]
    found = joined(made)
    assert [list(one.commits) for one in found] == [["a", "b"], ["c", "f"], ["d"], ["e"], ["g"]]
    assert found[0].fields == ["x", "y"] and found[0].packages == ["iperf3 3", "iperf3 4"]
    assert [list(one.commits) for one in joined(made, {"c", "d"})] == [["c"], ["d"]]
    assert made[0].packages == ["iperf3 3"], "what was given stays as it is"
    for other in ({"conditions": "noise"}, {"guest_code_sha256": {}}, {"kernel": made[5].kernel}):
        with pytest.raises(UserError, match="runs of commit b have two versions of the kernel, of the guest's code"):
            joined([version("b", {"x"}), version("b", {"x"}, **other)])


@pytest.fixture
def again(tmp_path) -> Path:
    """A run of one's own folder, and the same one made again."""
    (chosen,) = figures_at("smoke", [FIGURE])
    label = chosen.points[0].label
    for folder in (tmp_path / "runs" / FIGURE / label / "seed-1", tmp_path / "again"):
        run_with_markup(folder)
        files.write_json(folder / "summary.json", a_summary())
        kernel = a_summary()["kernel"]
        files.write_json(folder / "manifest.json", files.read_json(folder / "manifest.json") | {"kernel": kernel})
    return tmp_path


def wrong_in(results: Path) -> list[Problem]:
    found = results_at(results, "smoke", figures_at("smoke", [FIGURE]))
    return compare(found.expected(found.keys[0]), results / "again", {})


def test_a_later_version_finds_the_same_and_names_a_check_that_fails_now(again):
    assert wrong_in(again) == []
    summary = a_summary()
    summary["checks"].append({"name": "checked_later", "asked": 1, "measured": 2, "ok": True, "detail": "so much"})
    files.write_json(again / "again" / "summary.json", summary)
    assert wrong_in(again) == []
    summary["checks"][-1]["ok"] = summary["ok"] = False
    files.write_json(again / "again" / "summary.json", summary)
    (wrong,) = wrong_in(again)
    assert wrong.what == "fails self-checks that its version did not have: checked_later (so much)"


def test_a_folder_of_results_may_lack_no_field_that_all_versions_have(again):
    summary = a_summary()
    del summary["flows"][0]["flow"]
    (record,) = again.glob("runs/*/*/*/*/summary.json")
    files.write_json(record, summary)
    (wrong,) = wrong_in(again)
    assert wrong.what == "another result: flows.0.flow is not there, again 0"


def test_a_kernel_stated_to_give_the_same_results_verifies_them():
    spec = find_spec("lab-6.12")[1]
    entry = {
        "name": "lab-6.12",
        "source": "linux-source-6.12 6.12.117",
        "compiler": "gcc",
        "key": spec.same_results[0],
    }
    assert matches_this_recipe(entry)
    assert not matches_this_recipe(entry | {"key": "0" * 16})
