"""qlog of a run's ACKs: what is in it, that it is what the draft says, and that others' code reads it."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.measure.bbr_record import STATES
from bbrlab.measure.sample_schema import ACKS
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point, load_scenario
from bbrlab.scenario.messages import validate
from bbrlab_apps.qlog.records import METRICS, PARAMETERS, STATE, TIMER, records, write_qlog
from tests.conftest import scenario_dict
from tests.made_up_runs import made_up_run

TRACES = paths.ROOT / "data" / "traces"
READER = Path(__file__).parent / "qlog_reader"
# The fields of these events in draft-ietf-quic-qlog-quic-events-12: their JSON types; and those that must be there.
WHOLE, NUMBER = (int,), (int, float)
DRAFT = {
    PARAMETERS: ({"timer_granularity": WHOLE, "max_datagram_size": WHOLE}, set()),
    METRICS: (
        dict.fromkeys(["min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"], NUMBER)
        | dict.fromkeys(["congestion_window", "bytes_in_flight", "ssthresh", "packets_in_flight", "pacing_rate"], WHOLE),
        set(),
    ),
    STATE: ({"old": (str,), "new": (str,)}, {"new"}),
    TIMER: ({"timer_type": (str,), "event_type": (str,)}, {"event_type"}),
}  # fmt: skip


def acks_of(rows, **common):
    """Rows of acks.parquet: what is given, and zeros."""
    table = pd.DataFrame([dict.fromkeys(ACKS, 0.0) | {"snd_mss": 1000} | common | row for row in rows])
    return table.astype({"event": int, "ca_state": int, "snd_mss": int, "slow_start": int})


def events_of(table):
    header, *events = records(table, "title", "flow 0", "6.12")
    return header, [(e["time"], e["name"], e["data"]) for e in events]


def test_what_has_changed_is_told_in_the_drafts_units():
    nothing = {"bbr_bw": float("nan"), "bbr_state": float("nan"), "rtt_us": -1}
    rows = [
        {"time_s": 0.1, "cwnd": 10, "in_flight": 8, "srtt_us": 40_500, "rtt_us": 41_000, "ssthresh": 0x7FFFFFFF},
        {"time_s": 0.2, "cwnd": 11, "in_flight": 8, "srtt_us": 40_500, "pacing_rate": 125_000, "ssthresh": 7},
    ]
    header, events = events_of(acks_of(rows, **nothing))
    assert header["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert header["trace"]["common_fields"]["group_id"] == "flow 0"
    first, second = (data for _, name, data in events if name == METRICS)
    assert first.items() >= {"congestion_window": 10_000, "bytes_in_flight": 8000, "packets_in_flight": 8}.items()
    assert first.items() >= {"smoothed_rtt": 40.5, "latest_rtt": 41.0, "tcp_recovery_state": "Open"}.items()
    assert "ssthresh" not in first
    assert "bbr_bw" not in first
    assert second == {"congestion_window": 11_000, "pacing_rate": 1_000_000, "ssthresh": 7000}
    assert [time_ms for time_ms, name, _ in events if name == METRICS] == [100.0, 200.0]
    assert events[0] == (100.0, PARAMETERS, {"timer_granularity": 1, "max_datagram_size": 1000})


def test_nothing_is_told_twice():
    _, events = events_of(acks_of([{"time_s": 0.1}, {"time_s": 0.2}], bbr_state=3))
    assert [name for _, name, _ in events] == [PARAMETERS, STATE, METRICS]


def test_states_of_bbr_are_congestion_states_and_a_bound_that_goes_is_null():
    infinite = float("inf")
    rows = [
        {"time_s": 0.1, "bbr_state": float("nan"), "bbr_inflight_lo": infinite},
        {"time_s": 0.2, "bbr_state": STATES.index("UP"), "bbr_inflight_lo": 5},
        {"time_s": 0.3, "bbr_state": STATES.index("DOWN"), "bbr_inflight_lo": infinite},
    ]
    _, events = events_of(acks_of(rows))
    assert [(t, data) for t, name, data in events if name == STATE] == [
        (200.0, {"new": "UP"}), (300.0, {"old": "UP", "new": "DOWN"}),
    ]  # fmt: skip
    bounds = [data["bbr_inflight_lo"] for _, name, data in events if name == METRICS and "bbr_inflight_lo" in data]
    assert bounds == [5000, None]


def test_states_of_other_algorithms_and_timeouts():
    rows = [
        {"time_s": 1, "slow_start": 1}, {"time_s": 2, "ca_state": 3, "slow_start": 1}, {"time_s": 3},
        {"time_s": 4, "ca_state": 4, "event": 1}, {"time_s": 5, "ca_state": 2}, {"time_s": 6, "ca_state": 1},
    ]  # fmt: skip
    _, events = events_of(acks_of(rows, bbr_bw=float("nan"), bbr_state=float("nan")))
    assert [(t, d["new"]) for t, name, d in events if name == STATE] == [
        (1000, "slow_start"), (2000, "recovery"), (3000, "congestion_avoidance"), (4000, "recovery"), (6000, "congestion_avoidance"),
    ]  # fmt: skip
    assert [(t, d) for t, name, d in events if name == TIMER] == [
        (4000, {"timer_type": "pto", "event_type": "expired"})
    ]


def test_a_run_without_records_says_how_to_have_them(tmp_path):
    with pytest.raises(UserError, match=r"acks\.parquet: is not there; run it with --trace-acks"):
        write_qlog(tmp_path, tmp_path)
    done = CliRunner().invoke(app, ["qlog", str(tmp_path / "none")])
    assert "there is no finished run" in str(done.exception)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"flow": 9}, "column flow has 9, but manifest.json has 1 flow,"),
        ({"flow": 0, "ca_state": 200}, "flow 0 has values that no run records"),
        ({"flow": 0, "bbr_bw": 1.0, "bbr_state": 99.0}, "column bbr_state has 99, which no run of 10 s has"),
    ],
)
def test_a_strangers_records_end_in_a_message(tmp_path, values, told):
    point = base_point(validate(scenario_dict(), "s"))
    run = made_up_run(point, 1, tmp_path / "run")
    acks_of([{"time_s": 0.1} | values]).astype({"flow": int}).to_parquet(run / "acks.parquet")
    with pytest.raises(UserError, match=rf"acks\.parquet: {told}"):
        write_qlog(run, tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file; give a folder"):
        write_qlog(run, tmp_path / "file")


@pytest.mark.parametrize("packed", [False, True])
def test_records_replace_records_of_their_own_and_nothing_else(tmp_path, packed):
    run = made_up_run(base_point(validate(scenario_dict(), "s")), 1, tmp_path / "run")
    acks_of([{"time_s": 0.1, "flow": 0}]).astype({"flow": int}).to_parquet(run / "acks.parquet")
    file = run / ("flow-0.sqlog.gz" if packed else "flow-0.sqlog")
    own = (json.dumps(next(records(acks_of([{"time_s": 0.1}]), "t", "flow 0", "6.12"))) + "\n").encode()
    for content, told in ((b"mine", "is there, and does not have the mark"), (own, "values that no run records")):
        file.write_bytes(gzip.compress(content) if packed and content == own else content)
        with pytest.raises(UserError, match=told):  # the made-up run has no flow: who comes so far would write
            write_qlog(run, run, packed=packed)


def traces():
    return sorted(TRACES.glob("*.sqlog.gz"))


def test_each_case_that_ships_has_a_file_for_each_flow():
    wanted = {
        f"{path.stem}.flow-{i}.sqlog.gz"
        for path in TRACES.glob("*.yaml")
        for i in range(sum(flow.count for flow in load_scenario(path).flows))
    }
    assert {path.name for path in traces()} == wanted
    assert len(wanted) >= 12
    for path in traces():
        assert 5_000 < path.stat().st_size < 150_000, path.name


@pytest.mark.parametrize("path", traces(), ids=lambda path: path.name)
def test_what_ships_is_as_the_draft_says(path):
    """JSON text sequences (RFC 7464); each event's fields have the draft's names and types, or are named as ours."""
    data = gzip.decompress(path.read_bytes())
    assert data.startswith(b"\x1e")
    assert data.endswith(b"\n")
    header, *events = [json.loads(text) for text in data.decode().split("\x1e")[1:]]
    assert set(header) == {"file_schema", "serialization_format", "title", "description", "trace"}
    assert set(header["trace"]) == {"common_fields", "vantage_point", "event_schemas"}
    assert [e["time"] for e in events] == sorted(e["time"] for e in events)
    for event in events:
        assert set(event) == {"time", "name", "data"}
        types, needed = DRAFT[event["name"]]
        assert needed <= set(event["data"])
        for name, value in event["data"].items():
            assert re.match("tcp_|bbr_", name) or type(value) in types[name], (name, value)
    names = {event["name"] for event in events}
    assert names >= {PARAMETERS, METRICS, STATE}
    assert (TIMER in names) >= path.name.startswith("outage")


@pytest.mark.slow
def test_others_code_reads_what_ships(tmp_path):
    """The library with which quiche logs: every record is an event that it has."""
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(tmp_path / "target")}
    folder = shutil.copytree(READER, tmp_path / "reader")
    built = subprocess.run(
        ["cargo", "build", "-q"], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    if built.returncode:
        pytest.skip(f"cargo cannot build it here: {built.stderr.strip().splitlines()[-1]}")
    unpacked = []
    for path in traces():
        unpacked.append(tmp_path / path.name.removesuffix(".gz"))
        unpacked[-1].write_bytes(gzip.decompress(path.read_bytes()))
    done = subprocess.run(
        [tmp_path / "target/debug/qlog_reader", *unpacked], capture_output=True, text=True, check=True
    )
    counts = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}
    assert counts == {str(path): path.read_bytes().count(b"\x1e") - 1 for path in unpacked}


@pytest.mark.guest
def test_a_trace_that_ships_is_made_again(tmp_path):
    """The same bytes on the same kernel; on another one the same events to within a tenth."""
    point = base_point(load_scenario(TRACES / "alone.yaml"))
    run_point(point, 1, tmp_path / "run", trace="acks")
    [again] = write_qlog(tmp_path / "run", tmp_path / "qlog", packed=True)
    ships = TRACES / "alone.flow-0.sqlog.gz"
    texts = [gzip.decompress(path.read_bytes()).decode().split("\x1e")[1:] for path in (ships, again)]
    kernels = [json.loads(of[0])["description"] for of in texts]
    if kernels[0] == kernels[1]:
        assert again.read_bytes() == ships.read_bytes()
    else:
        assert len(texts[1]) == pytest.approx(len(texts[0]), rel=0.1)
