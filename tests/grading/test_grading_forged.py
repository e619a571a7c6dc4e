"""Forged submissions: what is no run of what was asked for is named and gives no points, without a run made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbrlab.base import files
from bbrlab.measure.sample_schema import SAMPLES
from bbrlab.scenario.messages import validate
from bbrlab_apps.grading import classroom
from bbrlab_apps.grading.grade import read_submission
from bbrlab_apps.grading.load import load_rubric
from bbrlab_apps.grading.submitted_runs import (
    COPIED,
    EDITED_MANIFEST,
    EDITED_SAMPLES,
    EDITED_SUMMARY,
    OTHER_KERNEL,
    OTHER_VERSION,
)
from bbrlab_apps.grading.submitted_samples import impossible, type_of
from tests.conftest import scenario_dict
from tests.graded import (
    careful_summary,
    copied,
    edit_json,
    edit_samples,
    first_run,
    graded,
    kinds,
    score_of,
    words,
    write_samples,
)

pytestmark = pytest.mark.guest
Edit = Callable[[Path], object]


def set_column(run: Path, name: str, change: Callable[[np.ndarray, np.ndarray], object]) -> None:
    """A column of the samples made from itself and the flows."""
    table = pq.read_table(run / "samples.parquet")
    values = change(table[name].to_numpy().copy(), table["flow"].to_numpy())
    write_samples(run, table.set_column(table.column_names.index(name), name, [values]))


def checks(run: Path) -> list[dict[str, object]]:
    return json.loads((run / "summary.json").read_text())["checks"]


def one_check(name: str, **changes: object) -> Edit:
    return lambda run: edit_json(run / "summary.json", checks=[c | changes if c["name"] == name else c for c in checks(run)])  # fmt: skip


def cut_short(run: Path) -> None:
    table = pq.read_table(run / "samples.parquet")
    write_samples(run, table.filter(pa.array(table["time_s"].to_numpy() <= 2)))


def every_other(run: Path) -> None:
    table = pq.read_table(run / "samples.parquet")
    times = np.unique(table["time_s"].to_numpy())
    write_samples(run, table.filter(pa.array(np.isin(table["time_s"].to_numpy(), times[::2]))))


def other_code(run: Path, **changes: str) -> None:
    content = json.loads((run / "manifest.json").read_text())["guest_code_sha256"]
    edit_json(run / "manifest.json", guest_code_sha256=content | changes)


def beyond_the_link(run: Path) -> None:
    """Twice the rate: all counters that a plausible story needs."""
    for name in ("bytes_acked", "bytes_sent", "queue_sent_bytes", "unacked"):
        set_column(run, name, lambda v, _: v * 2)


def swapped_flows(run: Path) -> None:
    """Each flow's values under the other's name: whoever wins loses."""
    table = pq.read_table(run / "samples.parquet")
    columns = {name: table[name].to_numpy() for name in table.column_names}
    for name in ("flow", "group"):
        columns[name] = np.where(columns[name] >= 0, 1 - columns[name], columns[name]).astype(columns[name].dtype)
    order = np.lexsort((columns["flow"], columns["time_s"]))
    write_samples(run, pa.table({name: values[order] for name, values in columns.items()}))


def other_shares(run: Path) -> None:
    """What one flow gets more, the other gets less."""
    for name in ("bytes_acked", "bytes_sent"):
        rows = pq.read_table(run / "samples.parquet")["time_s"].to_numpy()
        more = (np.clip(rows - 0.3, 0, None) * 30_000).astype("i8")
        set_column(
            run,
            name,
            lambda v, f, m=more: (v.astype("i8") + np.where(f == 0, m, np.where(f == 1, -m, 0))).clip(0).astype("u8"),
        )


def closed_sockets(run: Path) -> None:
    """Of these nothing would be asked."""
    set_column(run, "state", lambda v, _: v * 0 + 7)
    set_column(run, "bytes_acked", lambda v, f: np.where(f == 1, v // 3, v))


def less_sent(run: Path) -> None:
    for name in ("bytes_acked", "bytes_sent", "bytes_retrans"):
        set_column(run, name, lambda v, f: np.where(f == 1, v // 3, v))


def without_loss(run: Path) -> None:
    set_column(run, "queue_drops", lambda v, _: v * 0)


def report_without(run: Path) -> None:
    edit_json(run / "manifest.json", report={})


def failed_guest(run: Path) -> None:
    """A guest that lost packets on its way, which the summary keeps to itself."""
    content = json.loads((run / "manifest.json").read_text())["report"]
    edit_json(run / "manifest.json", report=content | {"switch_misses": 7})


FORGED = [
    (lambda run: other_code(run, **{"guest.py": "0" * 64}), OTHER_VERSION, "get the version that is graded with, and run it again"),
    (lambda run: edit_json(run / "manifest.json", guest_code_sha256={}), OTHER_VERSION, "guest.py"),
    (lambda run: edit_json(run / "manifest.json", conditions="a sieve"), OTHER_VERSION, "had other conditions (a sieve)"),
    (lambda run: edit_json(run / "manifest.json", guest_code_sha256={}, plan_sha256="0" * 64), OTHER_VERSION, "plan_sha256 of manifest.json"),
    (lambda run: edit_json(run / "manifest.json", plan_sha256="0" * 64), EDITED_MANIFEST, "plan_sha256"),
    (lambda run: edit_json(run / "manifest.json", kernel={"name": "lab", "release": "6", "build_id": "", "key": ""}, plan_sha256=""), OTHER_KERNEL, "plan_sha256"),
    (cut_short, EDITED_SUMMARY, "failed its self-checks: samples"), (every_other, EDITED_SUMMARY, "failed its self-checks: samples"),
    (lambda run: edit_json(run / "summary.json", checks=[{"name": "all", "ok": True}]), EDITED_SUMMARY, "is not there"),
    (lambda run: edit_json(run / "summary.json", checks=[{"ok": None}]), EDITED_SUMMARY, "is not there"),
    (lambda run: edit_json(run / "summary.json", checks=checks(run)[:-1]), EDITED_SUMMARY, "is not there"),
    (lambda run: edit_json(run / "summary.json", checks=[*checks(run), {"name": "x", "ok": "yes"}]), EDITED_SUMMARY, "neither true, false nor null"),
    (lambda run: edit_json(run / "summary.json", checks=[*checks(run), {"name": "x", "ok": False}]), EDITED_SUMMARY, "failed its self-checks: x"),
    (lambda run: edit_json(run / "summary.json", ok=False), EDITED_SUMMARY, "ok is false, its samples and manifest say true"),
    (lambda run: edit_json(run / "summary.json", ok=None), EDITED_SUMMARY, "ok is null"),
    (one_check("queue_peak", measured=1), EDITED_SUMMARY, "checks.queue_peak.measured is 1"),
    (one_check("base_rtt", ok=None), EDITED_SUMMARY, "checks.base_rtt.ok is null"),
    (failed_guest, EDITED_SUMMARY, "failed its self-checks: drops_elsewhere"), (report_without, "", "manifest.json: its report makes no sense"),
    (lambda run: set_column(run, "bytes_acked", lambda v, f: np.where(f == 0, 2**62, v)), EDITED_SAMPLES, "more bytes are acknowledged than were sent"),
    (lambda run: set_column(run, "bytes_acked", lambda v, f: np.where(f == 0, 2**64 - 1, v).astype("u8")), EDITED_SAMPLES, "no run can have measured this"),
    (lambda run: edit_samples(run, factor=0.99), EDITED_SAMPLES, "neither acknowledged nor in flight"),
    (beyond_the_link, EDITED_SAMPLES, "the bottleneck has sent more than its rate allows"),
    (lambda run: set_column(run, "queue_sent_bytes", lambda v, _: v // 2), EDITED_SAMPLES, "than the bottleneck has sent"),
    (lambda run: set_column(run, "queue_bytes", lambda v, f: np.where(f == 1, 0, v)), EDITED_SAMPLES, "several values at one time"),
    (lambda run: set_column(run, "min_rtt_us", lambda v, _: v // 2), EDITED_SAMPLES, "is below the path's"),
    (lambda run: set_column(run, "group", lambda v, _: v[::-1]), EDITED_SAMPLES, "column group"),
    (swapped_flows, EDITED_SAMPLES, "a flow without BBR has BBR's state"),
    (other_shares, EDITED_SAMPLES, "more bytes were sent than segments can hold"),
    (lambda run: set_column(run, "srtt_us", lambda v, _: v // 2), EDITED_SAMPLES, "an RTT (srtt_us) of"),
    (closed_sockets, EDITED_SAMPLES, "neither acknowledged nor in flight"),
    (less_sent, EDITED_SAMPLES, "the bottleneck has sent more than the flows"),
    (lambda run: set_column(run, "queue_drops", lambda v, _: -v), EDITED_SAMPLES, "queue_drops is below 0"),
    (lambda run: set_column(run, "queue_drops", lambda v, _: v * 10**6), EDITED_SAMPLES, "dropped more than the flows sent"),
    (lambda run: set_column(run, "queue_marks", lambda v, _: v + 1), EDITED_SAMPLES, "no flow has ECN"),
    (lambda run: set_column(run, "queue_packets", lambda v, _: v * 100), EDITED_SAMPLES, "more packets than its bytes make"),
    (lambda run: set_column(run, "queue_packets", lambda v, _: v // 4), EDITED_SAMPLES, "more bytes than its packets can hold"),
    (lambda run: set_column(run, "total_retrans", lambda v, _: v[::-1]), EDITED_SAMPLES, "total_retrans of a flow falls"),
    (lambda run: set_column(run, "delivered", lambda v, _: v * 9), EDITED_SAMPLES, "more segments were delivered than were sent"),
    (without_loss, EDITED_SAMPLES, "the flows sent more than came to the bottleneck"),
    (lambda run: set_column(run, "bytes_acked", lambda v, _: np.where(np.arange(len(v)) == len(v) - 1, 5, v)), EDITED_SAMPLES, "bytes_acked of a flow falls"),
]  # fmt: skip


@pytest.mark.parametrize(("forge", "kind", "told"), FORGED, ids=range(len(FORGED)))
def test_a_forged_run_is_named_and_gives_no_points(forge, kind, told, good, rubric, tmp_path):
    submission = copied(good, tmp_path / "ada")
    run = first_run(submission)
    forge(run)
    grade = graded(submission, rubric, tmp_path / "out")
    assert score_of(grade, "runs") == 10 and score_of(grade, "claim some") == 0
    assert kind in kinds(grade) or not kind
    assert told in words(grade).replace('\\"', '"'), grade["runs"][0]
    assert [r["counts"] for r in grade["runs"]] == [False, True]


def test_what_a_run_may_measure_is_not_called_impossible():
    """RTTs by TCP's timestamps are whole milliseconds; a limiter lets two packets and what it saved go before its rate counts."""
    network = {"rate_mbit": 0.03, "rtt_ms": 9.847, "buffer": {"packets": 9}}
    scenario = validate(
        scenario_dict(network=network, flows=[{"cca": "cubic"}], hosts={"noise": "off"}, duration_s=4, window_s=[1, 4]),
        "s",
    )
    plan = SimpleNamespace(flows=[SimpleNamespace(group=0)])
    columns = {name: np.zeros(2, np.dtype(type_of(name))) for name in SAMPLES}
    columns |= {"time_s": np.array([0.0, 0.1]), "min_rtt_us": np.array([0, 9000]), "srtt_us": np.array([0, 9000])}
    columns |= {"queue_sent_bytes": np.array([0, 4900]), "snd_mss": np.array([1448, 1448]), "state": np.array([1, 1])}
    columns |= {name: np.array([np.nan, np.nan]) for name in SAMPLES if name.startswith("bbr_")}
    assert list(impossible(scenario, plan, columns)) == []
    columns |= {"srtt_us": np.array([0, 8900]), "queue_sent_bytes": np.array([0, 5100])}
    assert [text[:17] for text in impossible(scenario, plan, columns)] == ["an RTT (srtt_us) ", "the bottleneck ha"]


def test_numbers_that_fit_each_other_do_not_help_what_is_impossible(good, rubric, tmp_path):
    submission = copied(good, tmp_path / "ada")
    edit_samples(first_run(submission), factor=0.99)
    careful_summary(first_run(submission))
    grade = graded(submission, rubric, tmp_path / "out")
    assert kinds(grade) == {EDITED_SAMPLES} and score_of(grade, "runs") == 10


def test_types_are_those_that_bbrlab_writes(good):
    table = pq.read_table(first_run(good) / "samples.parquet")
    assert {name: table[name].to_numpy().dtype.str for name in table.column_names} == {
        name: np.dtype(type_of(name)).str for name in SAMPLES
    }


def as_of(run: Path, tmp_path: Path, rubric: Path, other: str, seed: int | None) -> dict[str, object]:  # fmt: skip
    """What is found in somebody else's submission that has one run."""
    folder = tmp_path / other / "results" / "r"
    shutil.copytree(run, folder, dirs_exist_ok=True)
    if seed is not None:
        edit_json(folder / "manifest.json", seed=seed)
    return read_submission(tmp_path / other, rubric, "ada", tmp_path / "out" / other)  # type: ignore[return-value]


def wide_types(run: Path) -> None:
    table = pq.read_table(run / "samples.parquet")
    wide = {n: table[n].cast(pa.float64() if pa.types.is_floating(table[n].type) or n == "cwnd" else pa.int64()) for n in table.column_names}  # fmt: skip
    write_samples(run, pa.table(wide).append_column("own", pa.array(["x"] * table.num_rows)))


def single_values(run: Path) -> None:
    for number, name in enumerate(("cwnd", "srtt_us", "rto_us", "ssthresh", "queue_drops")):
        set_column(run, name, lambda v, _, n=number: np.where(np.arange(len(v)) % 11 == n, v + 1, v))


def whole_column(run: Path) -> None:
    set_column(run, "cwnd", lambda v, _: v + 1)


@pytest.mark.parametrize(
    ("edit", "how"), [(lambda run: None, "equal"), (wide_types, "equal"), (single_values, "alike"), (whole_column, "alike")]
)  # fmt: skip
def test_a_copied_run_is_a_suspect_whatever_its_types_and_single_values(edit, how, good, rubric, tmp_path):
    loaded = load_rubric(rubric)
    ada = read_submission(good, rubric, "ada", tmp_path / "out" / "ada")
    run = copied(good, tmp_path / "of") / "results" / first_run(good).name
    edit(run)
    bob = as_of(run, tmp_path, rubric, "bob", 7)
    others = classroom.class_matches("ada", {"ada": ada, "bob": bob}, loaded)  # type: ignore[dict-item]
    assert list(others[how]) == ["0"] or set(others[how]) == {"0", "1"}, others  # type: ignore[literal-required]
    told = graded_with(good, rubric, tmp_path / "graded", others)
    assert any(kind == COPIED and ("bob" in text) for kind, text in told)


def graded_with(good, rubric, out, others):
    from bbrlab_apps.grading.grade import grade_submission

    return grade_submission(good, rubric, "ada", out, others)["flags"]


def test_runs_that_were_asked_of_both_are_no_suspects(good, rubric, tmp_path, monkeypatch):
    """Only where both were to run the same point with the same seed."""
    loaded = load_rubric(rubric)
    ada = read_submission(good, rubric, "ada", tmp_path / "out" / "ada")
    seeds = [run["seed"] for run in ada["runs"]]
    monkeypatch.setattr(classroom, "drawn_seeds", lambda rubric, student: seeds if student != "eve" else [1])
    everybody = {"ada": ada, "bob": ada}
    assert not classroom.class_matches("ada", everybody, loaded)["equal"]
    assert classroom.class_matches("ada", {"ada": ada, "eve": ada}, loaded)["equal"]


def test_a_table_of_other_conditions_is_not_alike(good, rubric, tmp_path):
    found = read_submission(good, rubric, "ada", tmp_path / "out")
    slower = copied(good, tmp_path / "of") / "results" / first_run(good).name
    for name in ("bytes_acked", "queue_sent_bytes", "queue_bytes"):
        set_column(slower, name, lambda v, _: (v * 0.9).astype(v.dtype))
    bob = as_of(slower, tmp_path, rubric, "bob", 7)
    others = classroom.class_matches("ada", {"ada": found, "bob": bob}, load_rubric(rubric))  # type: ignore[dict-item]
    assert not others["equal"] and not others["alike"]
    assert files.sha256(slower / "samples.parquet") == bob["runs"][0]["sha256"]  # type: ignore[index]
