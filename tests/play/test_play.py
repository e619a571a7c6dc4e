"""bbrlab play: what can be played, the line to the prompt, and plays of a few seconds, scripted and on a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pexpect
import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import dump_yaml
from bbrlab.measure.netlink import HEAD
from bbrlab.results.algorithm_table import COLOURS
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point, load_scenario
from bbrlab.scenario.messages import validate
from bbrlab_apps.play.command_line import Words
from bbrlab_apps.play.live_samples import Follower
from bbrlab_apps.play.playable import LONGEST_S, playable
from bbrlab_apps.play.played import Played, played_text, read_events
from bbrlab_apps.play.prompt_link import LINE_BYTES, READY, Plain, PromptLink
from bbrlab_apps.play.run import plan_play
from bbrlab_apps.play.terminal import VIEW_COLUMNS, VIEW_LINES
from bbrlab_apps.play.view import colours_of
from tests.conftest import Result, processes_of, scenario_dict, wait_for

PLAY = [sys.executable, "-m", "bbrlab.cli.main", "play"]
STARTS_S = 300  # for a guest's set-up, on a machine that does something else, too
CCAS = {"bbr1": "bbr", "bbr3": "bbr3", "cubic": "cubic", "reno": "reno"}


def point_of(**changes):
    return base_point(validate(scenario_dict(**changes), "test"))


@pytest.fixture
def scenario_file(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(scenario_dict()))
    return path


# --- what can be played -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network__rate_mbit": 1000}, ["network.rate_mbit 1000", "at most 200", "--set network.rate_mbit"]),
        ({"network__changes": [{"at_s": 1, "rate_mbit": 900}]}, ["network.changes.0.rate_mbit 900"]),
        ({"network__rtt_ms": 3000}, ["network.rtt_ms 3000"]),
        ({"flows": [{"cca": "cubic", "rtt_ms": [10, 2000]}]}, ["flows.0.rtt_ms 2000"]),
        ({"flows": [{"cca": "cubic"}, {"cca": "bbr1", "bytes": 10**6}]}, ["flows.1.bytes 1000000"]),
        ({"flows": [{"cca": "cubic"}, {"cca": "bbr1", "traffic": {}}]}, ["flows.1.traffic", "short flows"]),
        ({"flows": [{"cca": "cubic", "count": 40}]}, ["40 flows", "at most 32"]),
        ({"sample_hz": 1000}, ["sample_hz 1000"]),
        ({"network__jitter": {"kind": "slotted", "ms": 1, "group": 0}}, ["network.jitter.group"]),
    ],
)
def test_scenario_that_cannot_be_played(changes, words, tmp_path):
    """The field and what to do are named, before a guest starts; every wrong field at once."""
    with pytest.raises(UserError) as error:
        playable(point_of(**changes), 1)
    for word in words:
        assert word in str(error.value)


def test_command_line_tells_what_cannot_be_played(scenario_file, tmp_path):
    """One line, exit status 2, and no folder is left behind; before it, what bbrlab run notes, but of the window, which no play has."""
    flows = [{"cca": "bbr3"}, {"cca": "cubic", "stop_s": 1}]
    content = scenario_dict(hosts__ecn="on", flows=flows) | {"sweep": {"network.qdisc.kind": ["fifo", "fq_codel"]}}
    scenario_file.write_text(yaml.safe_dump(content))
    argv = [*PLAY, str(scenario_file), "--out", str(tmp_path / "out"), "--set", "network.rate_mbit=500"]
    done = subprocess.run(argv, input="", capture_output=True, text=True, cwd=paths.ROOT, timeout=60)
    assert done.returncode == 2
    assert re.fullmatch(
        "note: hosts.ecn on would have no effect: the queue marks no packets: it is fifo .*\n", done.stdout
    )
    assert "network.rate_mbit 500" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_each_flow_is_a_group_with_its_drawn_rtt():
    """Flows of a group can be steered one by one, and have the RTTs that a run with that seed has."""
    flows = [{"cca": "bbr1", "count": 3, "start_s": 2, "stop_s": 4, "rtt_ms": [10, 90]}, {"cca": "cubic"}]
    point = playable(point_of(flows=flows), 7)
    found = point.scenario.flows
    assert [f.cca for f in found] == ["bbr1"] * 3 + ["cubic"]
    assert [f.count for f in found] == [1] * 4
    assert [f.stop_s for f in found] == [4, 4, 4, None]
    from bbrlab.scenario.draws import draw_rtts

    asked = draw_rtts(point_of(flows=flows).scenario, 7)
    assert [f.rtt_ms for f in found[:3]] == asked[0]
    assert found[3].rtt_ms is None
    assert point.scenario.duration_s == LONGEST_S


def test_every_scenario_can_be_played_or_says_why_not():
    """Of the package's own scenarios; with what it names put right, all can."""
    remedies = {"network.rate_mbit": 100.0, "sample_hz": 10.0, "network.rtt_ms": 50.0, "network.jitter": None}
    count = 0
    for path in sorted(paths.SCENARIOS.glob("*/*.yaml")):
        try:
            point = playable(base_point(load_scenario(path)), 1)
        except UserError as error:
            assert re.search(r"(flows|network|sample_hz)[\w.]*", str(error))
            if re.search(r"flows[.:]|jitter|changes", str(error)):
                continue
            overrides = {name: value for name, value in remedies.items() if name in str(error)}
            point = playable(base_point(load_scenario(path, overrides)), 1)
        plan_play(
            base_point(point.scenario), 1, dict.fromkeys(("bbr1", "bbr2", "bbr3", "cubic", "reno", "dctcp"), "x"), {}
        )
        count += 1
    assert count > 30


# --- what a play was ----------------------------------------------------------------------------------------------------


def begun(**changes):
    point, plan = plan_play(point_of(**changes), 1, CCAS, {})
    return Played(point.scenario, plan)


def started(played: Played, name: str, cca: str, number: int, at_s: float) -> dict:
    transfer = played.plan.content["transfers"][int(name[1:]) - 1] | {"id": number, "port": 5300 + number, "cca": cca}
    return {"at_ns": round(at_s * 1e9), "took_ns": 10**7, "command": None, "flow": name, "started": transfer}


def test_each_start_is_a_flow_group_of_the_result():
    """With its algorithm, start and stop; changes are the scenario's; what a scenario cannot say is told."""
    played = begun(flows=[{"cca": "bbr3", "params": {"headroom": 0.3}}, {"cca": "cubic", "rtt_ms": 80}])
    assert played.plan.content["prompt"]["network_rtt_hosts"] == ["h1"]
    own = played.plan.content["transfers"][0]["cca"]
    steps = [
        started(played, "f1", own, 0, 0.1),
        started(played, "f2", "cubic", 1, 0.2),
        {"at_ns": 3 * 10**9, "took_ns": 1, "command": "rate 5", "changed": {"rate_bps": 5_000_000}},
        {"at_ns": 4 * 10**9, "took_ns": 1, "command": "rtt 80", "changed": {"rtt_us": 80_000.0}},
        {"at_ns": 5 * 10**9, "took_ns": 1, "command": "h1 ping r1", "other": True},
        {"at_ns": 6 * 10**9, "took_ns": 1, "command": "algorithm f1 reno", "flow": "f1", "stopped": 0},
        started(played, "f1", "reno", 2, 6.1),
        {"at_ns": 8 * 10**9, "took_ns": 1, "command": None, "flow": "f2", "ended": 1},
    ]
    for step in steps:
        played.add(step)
    point, plan = played.as_point(10 * 10**9), played.as_plan(10 * 10**9)
    groups = point.scenario.flows
    assert [(g.cca, g.start_s, g.stop_s) for g in groups] == [
        ("bbr3", 0.1, 6.0),
        ("cubic", 0.2, 8.0),
        ("reno", 6.1, None),
    ]
    assert [g.params for g in groups] == [{"headroom": 0.3}, {}, {}]
    assert [g.rtt_ms for g in groups] == [None, 80, None]
    assert [(c.at_s, c.rate_mbit, c.rtt_ms) for c in point.scenario.network.changes] == [(3, 5, None), (4, None, 80)]
    assert point.scenario.window_s == [0, 10]
    own, other = (host["rtt_offset_us"] / 1000 for host in plan.content["hosts"] if host["sends"])
    assert [(f.flow, f.transfer, f.rtt_ms) for f in plan.flows] == [
        (0, 0, 40 + own),
        (1, 1, 80 + other),
        (2, 2, 40 + own),
    ]
    assert [e["what"] for e in played.events] == ["start", "start", "change", "change", "other", "stop", "start", "end"]
    text = played_text(point, played)
    assert "# Also at the prompt, which no scenario can say: h1 ping r1" in text
    assert validate(yaml.safe_load(text), "played").flows == point.scenario.flows


def test_a_flow_has_the_colour_of_the_algorithm_that_it_has_now():
    played = begun(flows=[{"cca": "cubic"}, {"cca": "bbr3"}, {"cca": "cubic"}])
    cubic, bbr3, second = colours_of(played).values()
    assert (cubic, bbr3) == (COLOURS["cubic"].lower(), COLOURS["bbr3"].lower()) and second not in (cubic, bbr3)
    played.add(started(played, "f1", "reno", 0, 0.1))
    assert colours_of(played) == {"f1": COLOURS["reno"].lower(), "f2": bbr3, "f3": cubic}


def test_events_are_read_as_they_come(tmp_path):
    """Whole lines only; none is read twice."""
    path = tmp_path / "events.jsonl"
    assert read_events(tmp_path) == ([], 0)
    path.write_bytes(b'{"a": 1}\n{"a"')
    found, offset = read_events(tmp_path)
    assert found == [{"a": 1}]
    path.write_bytes(b'{"a": 1}\n{"a": 2}\n')
    assert read_events(tmp_path, offset) == ([{"a": 2}], 18)


def test_samples_are_followed_as_they_are_written(tmp_path):
    """A sample is shown when it is whole, which is when the next one has begun; a record may be cut anywhere."""
    path = tmp_path / "samples.raw"
    follower = Follower(path)
    assert follower.latest() is None

    def record(time_s: float) -> bytes:
        return HEAD.pack(round(time_s * 1e9), 0, 0, 4) + struct.pack("<I", 0)

    data = record(0.1) + record(0.1) + record(0.2) + record(0.3)
    seen = []
    for end in range(0, len(data) + 1, 5):
        path.write_bytes(data[:end])
        now = follower.latest()
        seen += [now.time_s] if now else []
    assert seen == [0.1, 0.2]


# --- the line to the prompt ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext \xc3\xa9\n", "plain\ttext é\n"),
        (b"\x1b[31mred\x1b[0m \x1b[2J\x1b[H", "red "),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]52;c;ZXZpbA==\x1b\\after", "after"),
        (b"\x1bP1;2qsixel\x1b\\after", "after"),
        (b"\x1b]never ended\nnext", "\nnext"),
        (b"\x1b(Bset \x1bcreset", "set reset"),
        (b"\xc2\x9b31mc1 \xc2\x9d0;t\x07x", "c1 x"),
        (b"a\rb\r\nc\x08\x00\x7f", "a\nb\nc"),
        ("left \u202e right \u2066".encode(), "left  right "),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_nothing_that_a_guest_prints_commands_a_terminal(data, text):
    """Whole, and cut anywhere."""
    assert Plain().feed(data) == text
    one_by_one = Plain()
    assert "".join(one_by_one.feed(data[i : i + 1]) for i in range(len(data))) == text


def test_lines_to_the_guest_are_lines():
    """Control characters do not get through; a line that the guest's terminal would cut is refused."""
    link = PromptLink()
    end = os.dup(link.guest_end)
    assert link.send_line("rate 4\x03\x04\n\x1b[A now")
    assert os.read(end, 1000) == b"rate 4[A now\n"
    assert not link.send_line("x" * (LINE_BYTES + 1))
    link.interrupt()
    link.end()
    assert os.read(end, 1000) == b"\x03\x04"
    link.close()
    assert link.read() is None
    os.close(end)


def test_words_complete_a_line():
    """Commands, then what each takes; nodes for Mininet's own."""
    flows = ["f1", "f2"]
    own = {"algorithm": [flows, ["bbr1", "cubic"]], "rate": [], "start": [[*flows, "all"]]}
    words = Words({"own": own, "mininets": ["net", "nodes"], "nodes": ["h1", "s1"]})
    assert words.after("n") == ["net", "nodes"]
    assert words.after("st") == ["start"]
    assert words.after("start f1 ") == ["f2", "all"]
    assert words.after("algorithm ") == flows
    assert words.after("algorithm f2 b") == ["bbr1"]
    assert words.after("algorithm f2 bbr1 ") == []
    assert words.after("rate ") == []
    assert words.after("h1 ping s") == ["s1"]
    assert words.after("unknown ") == []


# --- plays --------------------------------------------------------------------------------------------------------------

SCRIPT = """\
# what a comment is worth
flows
sleep 3
rate 4
sleep 3
algorithm f1 bbr3
stop f2
sleep 2
loss nonsense
algorithm f1 tahoe
algorithm f1 bbrv2
flow
start f9
rate 5000
frobnicate
h1 ping -c 1 r1
h1 echo kept > note.txt
s1 printf '\\033[2J\\033]0;\\145vil\\007'
start f2
sleep 1
exit
"""


def goodput_mbit(samples: pd.DataFrame, low_s: float, high_s: float) -> float:
    """Of all flows together."""
    inside = samples[(samples["time_s"] >= low_s) & (samples["time_s"] <= high_s) & (samples["flow"] >= 0)]
    grown = inside.groupby("flow")["bytes_acked"].agg(lambda values: values.iloc[-1] - values.iloc[0])
    return float(grown.sum() * 8e-6 / (high_s - low_s))


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    """A play of some ten seconds whose commands come from a file: its result, and what it printed."""
    folder = tmp_path_factory.mktemp("play")
    content = scenario_dict(flows=[{"cca": "cubic"}, {"cca": "bbr1"}], network__rtt_ms=20)
    (folder / "s.yaml").write_text(yaml.safe_dump(content))
    argv = [*PLAY, str(folder / "s.yaml"), "--out", str(folder / "out")]
    done = subprocess.run(argv, input=SCRIPT, capture_output=True, text=True, cwd=paths.ROOT, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return Result(folder / "out"), done.stdout


@pytest.mark.guest
def test_play_from_a_script(scripted):
    """Each line is done when the one before is; what is wrong is told and nothing happens; the terminal is not commanded."""
    _, text = scripted
    assert text.count(READY) == len(SCRIPT.splitlines())
    for line in ("sleep 3", "rate 4", "exit"):
        assert f"{READY}{line}\n" in text
    assert "f1   cubic      h1 -> r1  runs" in text
    for refusal in ("usage: loss NUMBER", "no algorithm 'tahoe' (it has: bbr1, bbr2", "no flow 'f9' (there are: f1, f2)",
                    "rate 5000: must be 0.1 to 200 Mbit/s", "no command or node 'frobnicate'", "'bbrv2', did you mean bbr2? (it has",
                    "'flow', did you mean flows?; 'help' lists"):  # fmt: skip
        assert refusal in text
    assert "1 packets transmitted, 1 received" in text
    assert "\x1b" not in text
    assert "evil" not in text
    assert "Traceback" not in text


@pytest.mark.guest
def test_goodput_follows_the_rate_that_was_set(scripted):
    """And the result says what was changed when."""
    result, _ = scripted
    events = result.summary["events"]
    (rate,) = [e for e in events if "rate_mbit" in e]
    assert (rate["command"], rate["rate_mbit"], rate["what"]) == ("rate 4", 4, "change")
    assert rate["took_s"] < 1
    at_s = rate["at_s"]
    before, after = goodput_mbit(result.samples, at_s - 1.5, at_s), goodput_mbit(result.samples, at_s + 1, at_s + 2.8)
    assert 5 < before < 10  # of 9.56 and 3.83, on a machine that may be busy
    assert 2 < after < 4.1


@pytest.mark.guest
def test_play_is_a_result_like_any(scripted):
    """A group for each start, the tables, the checks, what it came from."""
    result, _ = scripted
    summary = result.summary
    assert summary["backend"] == "play"
    assert [(g["cca"], g["count"]) for g in summary["groups"]] == [("cubic", 1), ("bbr1", 1), ("bbr3", 1), ("bbr1", 1)]
    assert summary["virtual_s"] == pytest.approx(9, abs=6)
    whats = [(e["what"], e.get("flow"), e.get("cca")) for e in summary["events"]]
    assert whats == [
        ("start", "f1", "cubic"), ("start", "f2", "bbr1"), ("change", None, None), ("stop", "f1", None),
        ("start", "f1", "bbr3"), ("stop", "f2", None), *[("other", None, None)] * 3, ("start", "f2", "bbr1"),
    ]  # fmt: skip
    others = result.check("other_commands")
    assert others["ok"] is None
    assert "h1 ping -c 1 r1" in others["detail"]
    assert set(result.failed) <= {"samples", "rate", "buffer", "base_rtt"}  # what a busy machine may cost in real time
    assert result.check("flows_ran")["measured"] == 4
    assert result.manifest["scenario"]["flows"][2]["cca"] == "bbr3"
    samples = result.samples
    assert set(samples["flow"]) - {-1} == {0, 1, 2, 3}
    assert samples[samples["flow"] == 2]["bbr_state"].notna().all()
    assert not samples[samples["flow"] == 0]["bbr_state"].notna().any()
    assert (result.folder / "prompt.log").read_text().startswith(READY)
    assert (result.folder / "prompt-files/note.txt").read_text() == "kept\n"


@pytest.mark.guest
def test_play_can_be_run_again_in_virtual_time(scripted, tmp_path):
    """played.yaml is a scenario; a run of it shares the link as the play did."""
    result, _ = scripted
    point = base_point(load_scenario(result.folder / "played.yaml"))
    run_point(point, 1, tmp_path)
    again = Result(tmp_path)
    assert again.failed == []
    groups = {summary["backend"]: summary["groups"] for summary in (result.summary, again.summary)}
    assert [g["cca"] for g in groups["uml"]] == [g["cca"] for g in groups["play"]]
    carried = {backend: sum(g["goodput_mbit"] for g in found) for backend, found in groups.items()}
    assert carried["play"] == pytest.approx(carried["uml"], rel=0.4)


def spawn(scenario: Path, out: Path, columns: int, rows: int, *options: str) -> pexpect.spawn:
    """bbrlab play on a pseudo-terminal."""
    environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    argv = [*PLAY[1:], str(scenario), "--out", str(out), *options]
    return pexpect.spawn(PLAY[0], argv, dimensions=(rows, columns), env=environment, cwd=str(paths.ROOT),
                         timeout=STARTS_S, encoding="utf-8", codec_errors="replace")  # fmt: skip


def exit_status_after(child: pexpect.spawn, last_words: str) -> int | None:
    child.expect(last_words, timeout=60)
    child.expect(pexpect.EOF, timeout=60)
    child.close()
    return child.exitstatus


@pytest.mark.guest
@pytest.mark.slow
def test_play_in_the_view(scenario_file, tmp_path):
    """It starts, shows the flow, does what is typed, completes a word, ends a command with Ctrl-C, and leaves the terminal."""
    child = spawn(scenario_file, tmp_path / "out", 120, 40)
    try:
        child.expect("slow start|avoidance|Recovery")  # the flow's state: samples come in
        child.expect("help lists them")  # the prompt is ready
        for keys in ("rat", "\t", "4\r"):
            time.sleep(0.5)  # as somebody types
            child.send(keys)
        child.expect(r"rate 4 Mbit/s", timeout=60)  # the title
        child.send("sleep 300\r")
        child.expect("sleep 300", timeout=60)
        time.sleep(1)
        child.send("\x03")
        child.expect("Interrupt", timeout=60)
        time.sleep(2.1)
        child.send("\x04")
        assert exit_status_after(child, "results: ") == 0
    finally:
        child.close(force=True)
    result = Result(tmp_path / "out")
    commands = [e["command"] for e in result.summary["events"]]
    assert commands == [None, "rate 4"]
    assert "sleep 300" in (result.folder / "prompt.log").read_text()


@pytest.mark.guest
def test_guest_that_dies_is_told_and_nothing_kept(scenario_file, tmp_path):
    """On a terminal too small for the view, which gets the plain prompt."""
    out = tmp_path / "out"
    child = spawn(scenario_file, out, 60, 20)
    try:
        child.expect(f"needs {VIEW_COLUMNS} columns and {VIEW_LINES} lines, this terminal has 60 and 20")
        child.expect(READY)
        child.send("nodes\r")
        child.expect("h1 r1 s1 s2", timeout=60)
        guests = [pid for pid in processes_of("bbrlab-run-") if os.getpgid(pid) == pid and _child_of(pid, child.pid)]
        assert guests
        os.kill(guests[0], signal.SIGKILL)
        assert exit_status_after(child, "was killed by signal 9 before the experiment was over") == 2
    finally:
        child.close(force=True)
    assert not (out / "summary.json").exists()
    assert (out / "guest.log").exists()


def _child_of(pid: int, parent: int) -> bool:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) == parent
    return False


@pytest.mark.guest
def test_ctrl_c_before_the_prompt_ends_it(scenario_file, tmp_path):
    """Nothing is kept, nothing is left running, and one line says so."""
    out = tmp_path / "out"
    process = subprocess.Popen([*PLAY, str(scenario_file), "--out", str(out), "--plain"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=paths.ROOT)  # fmt: skip
    assert process.stderr
    assert "guest:" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert not out.exists()
    assert wait_for(lambda: not [p for p in processes_of("bbrlab-run-") if _child_of(p, process.pid)])


@pytest.mark.guest
def test_several_links_are_shown_and_keep_their_rates(tmp_path):
    content = scenario_dict(network__rate_mbit=8, network__links=[{}, {"rate_mbit": 5}], duration_s=90, window_s=[5, 90],
                            flows=[{"cca": "cubic"}, {"cca": "cubic", "links": 0}, {"cca": "cubic", "links": 1}])  # fmt: skip
    content["flows"][2]["start_s"] = 80  # not in this play
    file = tmp_path / "lot.yaml"
    file.write_text(dump_yaml(content), encoding="utf-8")
    child = spawn(file, tmp_path / "out", 130, 40)
    try:
        child.expect("slow start|avoidance|Recovery")
        child.expect("help lists them")
        child.expect(r"rate 8 5 Mbit/s", timeout=60)  # the title
        child.send("rate 4\r")
        child.expect("keep their rates", timeout=60)
        time.sleep(2.1)
        child.send("\x04")
        assert exit_status_after(child, "results: ") == 0
    finally:
        child.close(force=True)
    result = Result(tmp_path / "out")
    assert [link["groups"] for link in result.summary["links"]] == [[0, 1], [0]]
    flows = yaml.safe_load((result.folder / "played.yaml").read_text())["flows"]
    assert [flow.get("links") for flow in flows] == [None, "0"]
