"""``bbrlab beside``: recordings of a testbed, read, looked at, made a scenario, run and drawn."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.results.run_folder import RunFolder
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point, load_scenario
from bbrlab.scenario.messages import validate
from bbrlab_apps.study.sources import RunSource
from bbrlab_apps.testbed.as_scenario import text_of
from bbrlab_apps.testbed.draw import draw
from bbrlab_apps.testbed.estimate import Estimate, estimate_from
from bbrlab_apps.testbed.read import BYTES_MAX, read_files
from tests.conftest import scenario_dict
from tests.made_up_runs import made_up_run
from tests.testbed import made_up_testbed as made

FLOW = made.flow("bbr3")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The working folder: the folders above have names that say nothing."""
    folder = tmp_path / "a" / "b" / "c" / "d"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def put(name: str, content: Any) -> Path:
    path = Path(name)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def look(*paths: Path, **more: Any) -> Estimate:
    read, problems = read_files(paths)
    assert not problems
    return estimate_from(read, **more)


def finding(estimate: Estimate, what: str) -> str:
    return next(f"{f.value}: {f.evidence}" for f in estimate.findings if f.what == what)


def estimate_goodput(estimate: Estimate) -> float:
    return float(finding(estimate, "rate").split("goodput is ")[1].split()[0])


def beside(*words: object):
    return CliRunner().invoke(app, ["beside", *map(str, words)])


def test_two_clients_that_say_bbr_and_cubic(here):
    one = put("a.json", made.iperf3([made.flow("bbr3", rate_mbit=28)], "bbr"))
    two = put("b.json", made.iperf3([made.flow("cubic", rate_mbit=19.8)], "cubic"))
    estimate = look(one, two)
    assert [g.cca for g in estimate.groups] == ["bbr3", "cubic"]
    assert estimate.rate_mbit == 50 and estimate.rtt_ms == pytest.approx(40, abs=2)
    assert estimate.buffer_bdp == pytest.approx(1.5, abs=0.05)
    assert len(estimate.contradictions) == 1
    assert (
        "says 'bbr', which is BBRv1 in Linux, and BBRv3 in Google's kernel; its flows look like BBRv2 or BBRv3"
        in estimate.contradictions[0]
    )
    assert "falls to 0.7 of itself after a loss" in finding(estimate, "flows.1")


@pytest.mark.parametrize(("cca", "said", "contradicts"), [("bbr1", "bbr", False), ("bbr1", "cubic", True), ("cubic", "bbr", True), ("reno", "reno", False), ("reno", "cubic", True), ("bbr3", "bbr3", False)])  # fmt: skip
def test_the_samples_count_not_the_name(here, cca, said, contradicts):
    estimate = look(put("x.json", made.iperf3([made.flow(cca)], said)))
    assert estimate.groups[0].cca == cca
    assert bool(estimate.contradictions) == contradicts, estimate.contradictions


def test_samples_a_second_apart_show_no_algorithm_and_say_so(here):
    estimate = look(put("x.json", made.iperf3([made.flow("bbr3", every_s=1)], "bbr")))
    assert estimate.groups[0].cca == "bbr1"
    assert "which is BBRv1 in Linux" in finding(estimate, "flows.0") and "iperf3 -i 0.1" in finding(estimate, "flows.0")


def test_names_that_the_data_belie(here):
    estimate = look(put("cubic_80ms_10Mbps_reno.json", made.iperf3([made.flow("cubic")], "cubic")))
    assert any("says 80ms, and the smallest smoothed RTT is 4" in words for words in estimate.contradictions)
    assert any("says 10Mbps, and its flows got 47.8 Mbit/s" in words for words in estimate.contradictions)
    assert any("says reno, and no flow looks like Reno" in words for words in estimate.contradictions)
    fits = look(put("cubic_40ms_50mbit.json", made.iperf3([made.flow("cubic")], "cubic")))
    assert not fits.contradictions


def test_a_name_with_less_than_a_smoothed_rtt_is_no_contradiction(here):
    """The queue may never have been empty; the kernel's own minimum tells."""
    assert not look(put("20ms.json", made.iperf3([made.flow("cubic")], "cubic"))).contradictions
    assert look(put("20ms.txt", made.ss([("cubic", made.flow("cubic"))]))).contradictions


def test_every_form_of_a_file_reads_the_same(here):
    test = made.iperf3([FLOW], "bbr")
    forms = [put("x.json", test), put("x.jsonl", made.json_stream(test)), here / "x.json.gz"]
    forms[2].write_bytes(gzip.compress(json.dumps(test).encode()))
    tables = [read_files([form])[0][0].flows[0] for form in forms]
    for other in tables[1:]:
        assert other.samples.equals(tables[0].samples) and other.cca == "bbr"
    several = put("server.json", json.dumps(test) + "\n" + json.dumps(made.iperf3([FLOW], "cubic")))
    assert len(read_files([several])[0]) == 2, "a server that goes on writes test after test"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_texts_as_windows_writes_them(here, encoding):
    """PowerShell's > writes UTF-16, and editors put a mark before UTF-8."""
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path = here / "x.json"
    path.write_bytes((mark + json.dumps(made.iperf3([FLOW], "bbr"))).encode(encoding))
    read, problems = read_files([path])
    assert not problems and len(read[0].flows) == 1


def test_parallel_streams_are_one_group_and_late_ones_another(here):
    first = put("a.json", made.iperf3([made.flow("cubic", rate_mbit=9)] * 4, "cubic"))
    late = put("b.json", made.iperf3([made.flow("bbr1", rate_mbit=9, start_s=10, seconds=30)], "bbr"))
    estimate = look(first, late)
    content = load_scenario(put("s.yaml", text_of(estimate, "s")))
    assert [(f.cca, f.count, f.start_s) for f in content.flows] == [("cubic", 4, 0), ("bbr1", 1, 10.1)]
    assert (
        content.flows[0].stop_s is None
        and content.duration_s == 40
        and content.window_s == pytest.approx([16, 39.9], abs=0.2)
    )


def test_data_of_a_late_flow_begin_when_they_did(here):
    """iperf3 opens its connections through the queue that there is then."""
    late = made.flow("bbr1", rate_mbit=9, start_s=10, seconds=20)
    late.loc[:2, "rtt_ms"] = 240
    first = put("a.json", made.iperf3([made.flow("cubic", rate_mbit=36)], "cubic"))
    estimate = look(first, put("b.json", made.iperf3([late], "bbr")))
    flow = load_scenario(put("s.yaml", text_of(estimate, "s"))).flows[1]
    assert flow.start_s == pytest.approx(10 + 5 * 0.04 - 5 * 0.24) and flow.stop_s == pytest.approx(30.1, abs=0.05)
    assert "for data at 10 s: iperf3 first takes 5 RTTs, of 240 ms then" in " ".join(
        f.evidence for f in estimate.findings
    )


@pytest.mark.parametrize(("after_s", "when"), [(5000, "4960 s after"), (70, "30 s after"), (40, "when"), (1e6, "999960 s after"), (30, "")])  # fmt: skip
def test_files_one_after_another_are_not_of_one_test(here, after_s, when):
    first = put("a.json", made.iperf3([made.flow("cubic")], "cubic"))
    later = put("b.json", made.iperf3([made.flow("bbr1", start_s=after_s)], "bbr"))
    if not when:
        assert [g.start_s for g in look(later, first).groups] == [30, 0]
        return
    with pytest.raises(UserError, match=f"b.json begins {when} a.json ends: .* one by one"):
        look(later, first)
    long = put("c.json", made.iperf3([made.flow("cubic", seconds=60)], "cubic"))
    if after_s == 40:
        assert len(look(first, later, long).groups) == 3, "the third file lasts from the one to the other"


def test_a_servers_tests_are_not_one(here):
    tests = [made.iperf3([made.flow("cubic", start_s=start_s)], "cubic") for start_s in (0, 100)]
    with pytest.raises(UserError, match="s.json: a test in it begins 60 s after the one before ends"):
        look(put("s.json", "\n".join(map(json.dumps, tests))))


def test_a_run_is_drawn_from_its_first_data(here):
    estimate = look(put("x.json", made.iperf3([FLOW], "bbr3")))
    folder = made_up_run(base_point(load_scenario(put("s.yaml", text_of(estimate, "s")))), 1, here / "run")
    begins = []
    for first_s in (None, 5.0):
        summary = json.loads((folder / "summary.json").read_text())
        summary["groups"][0]["first_data_s"] = first_s
        (folder / "summary.json").write_text(json.dumps(summary))
        lines = draw(estimate, [RunSource("seed 1", RunFolder(folder))]).axes[0].get_lines()
        begins.append(
            min(float(np.min(line.get_xdata())) for line in lines if line.is_dashed() and len(line.get_xdata()))
        )
    assert begins[1] == pytest.approx(begins[0] - 5, abs=0.5)


def test_a_picture_says_what_the_band_is(here):
    estimate = look(put("x.json", made.iperf3([FLOW], "bbr3")))
    point = base_point(load_scenario(put("s.yaml", text_of(estimate, "s"))))
    runs = [RunSource("", RunFolder(made_up_run(point, seed, here / f"run{seed}"))) for seed in (1, 2)]
    for some, word in ((runs[:1], "lab"), (runs, "lab: mean and range of 2 runs")):
        assert word in [text.get_text() for text in draw(estimate, some).legends[0].get_texts()]


def test_reverse_flows_and_rtts_of_their_own(here):
    download = made.iperf3([made.flow("cubic", rtt_ms=100, rate_mbit=20)], "cubic")
    upload = made.iperf3([made.flow("cubic", rtt_ms=20, rate_mbit=27)], "cubic")
    own = load_scenario(put("s.yaml", text_of(look(put("a.json", upload), put("b.json", download)), "s")))
    assert [f.rtt_ms for f in own.flows] == [
        pytest.approx(20, abs=1),
        pytest.approx(100, abs=2),
    ] and own.network.rtt_ms < 21
    for interval in download["intervals"]:
        interval["streams"][0]["sender"] = False
    both = look(put("a.json", upload), put("b.json", download))
    assert [g.reverse for g in both.groups] == [False, True]
    for interval in download["intervals"]:
        interval["streams"][0]["rtt"] = None
    put("b.json", download)
    far = put("c.json", made.iperf3([made.flow("cubic", rtt_ms=100, rate_mbit=20)], "reno"))
    for files in ((Path("a.json"), far, Path("b.json")), (Path("b.json"), far, Path("a.json"))):
        three = look(*files)
        assert three.buffer_bdp * three.rtt_ms == pytest.approx(60, abs=2), "an RTT of 100 ms is no queue of 80"
        assert sorted(round(g.rtt_ms, -1) for g in three.groups) == [20, 20, 100]
        assert "the flows of b.json have an RTT of 20 ms, the smallest of all files" in " ".join(three.assumed)
    alone = look(put("up.txt", made.ss([("cubic", made.flow("cubic"))])), put("b.json", download))
    assert len(alone.groups) == 2


@pytest.mark.parametrize("stamps", ["before", "behind", ""])
def test_ss_output(here, stamps):
    path = put(
        "ss.txt",
        made.ss([("bbr", made.flow("bbr1", rate_mbit=23.9)), ("cubic", made.flow("cubic", rate_mbit=23.9))], stamps),
    )
    read, _ = read_files([path])
    assert any("fewer than three" in words for words in read[0].not_read) == (not stamps)
    estimate = look(path)
    assert [g.cca for g in estimate.groups] == ["bbr1", "cubic"] and estimate.rate_mbit == 50
    assert "the kernel met" in finding(estimate, "RTT") and finding(estimate, "RTT").startswith("40 ms")


@pytest.mark.parametrize("digits", [0, 3, 6, 9])
def test_times_are_in_seconds_or_parts_of_them(here, digits):
    """What date prints as +%s.%N, +%s%3N, +%s%6N and +%s%N."""
    printed = made.ss([("cubic", made.flow("cubic"))])
    if digits:
        printed = re.sub(r"(?m)^(\d{10})\.(\d{6})$", lambda m: m[1] + m[2].ljust(9, "0")[:digits], printed)
    read, _ = read_files([put("ss.txt", printed)])
    assert not read[0].not_read and read[0].epoch_s == pytest.approx(made.EPOCH_S + 0.1, abs=1e-3)
    assert read[0].flows[0].end_s == pytest.approx(39.9, abs=1e-3)


def test_times_that_cannot_be_read_are_told(here):
    printed = re.sub(r"(?m)^\d{10}\.\d{6}$", "Mon Nov 30 00:26:38 UTC 2026", made.ss([("cubic", made.flow("cubic"))]))
    read, _ = read_files([put("ss.txt", printed)])
    assert "can be read" in read[0].not_read[0] and "record date +%s.%N" in read[0].not_read[0]


@pytest.mark.parametrize("stamps", ["before", "behind"])
def test_sockets_of_a_file_have_one_clock(here, stamps):
    flows = [("cubic", made.flow("cubic", rate_mbit=20, start_s=start_s, seconds=40 - start_s)) for start_s in (0, 10)]
    estimate = look(put("ss.txt", made.ss(flows, stamps)))
    assert [len(g.flows) for g in estimate.groups] == [1, 1]
    # The first print has no time if times stand behind, so that the first flow begins a print of 0.1 s later.
    assert [g.start_s for g in estimate.groups] == [0, 10 if stamps == "before" else 9.9]


def test_a_socket_that_was_not_busy_at_first(here):
    """Without times: ss prints ``busy`` from the first data on."""
    printed = made.ss([("cubic", made.flow("cubic"))], stamps="")
    estimate = look(put("ss.txt", printed.replace(" busy:100ms", "", 1)))
    assert estimate.groups[0].cca == "cubic" and estimate.rate_mbit == 50


@pytest.mark.parametrize(("gains", "cca"), [("bbr:(bw:95.1Mbps,mrtt:40,pacing_gain:2.77344,cwnd_gain:2) ", "bbr3"), ("bbr:(bw:1.2Gbps,mrtt:40.1,pacing_gain:0.9,cwnd_gain:2,version:3,bw_hi:1Mbps) ", "bbr3"), ("bbr:(bw:9Mbps,mrtt:40.1,pacing_gain:2.88672,cwnd_gain:2.88672) ", "bbr1")])  # fmt: skip
def test_pacing_gains_tell_versions(here, gains, cca):
    flow = made.flow("bbr3", every_s=1)
    estimate = look(put("ss.txt", made.ss([("bbr", flow)], more=gains)))
    assert estimate.groups[0].cca == cca
    assert bool(estimate.contradictions) == (cca == "bbr3")


def connected(host: str = "10.0.0.1", port: int = 40000) -> dict[str, Any]:
    """The socket of iperf3's first stream, as made.ss() prints it."""
    return {"socket": 5, "local_host": host, "local_port": port, "remote_host": "10.0.1.1", "remote_port": 5201}


@pytest.mark.parametrize("host", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_a_connection_that_two_files_have_counts_once(here, host):
    flow = made.flow("cubic")
    one = put("one.json", made.iperf3([flow], "cubic", connected=[connected(host)]))
    two = put("ss.txt", made.ss([("cubic", flow)]))
    for first, second in ((one, two), (two, one)):
        read, problems = read_files([first, second])
        assert problems == [f"{one}: is of the same test as {two}, which is used: leave one of them out"], (
            "ss says more"
        )
        estimate = estimate_from(read)
        assert estimate.rate_mbit == 50 and len(estimate.groups) == 1
    rare = put("rare.txt", "\n".join(block for i, block in enumerate(two.read_text().split("---\n")) if i % 10 == 9))
    assert [kept.file for kept in read_files([rare, one])[0]] == [one], (
        "ss once a second says less than ten times a second"
    )
    other = put("other.json", made.iperf3([flow], "cubic", connected=[connected(port=40001)]))
    assert look(other, two).rate_mbit == 100, "of another connection"


def test_a_file_that_is_given_twice_counts_once(here):
    path = made.flent({"TCP upload": made.flow("cubic")}, here / "x.flent.gz")
    read, problems = read_files([path, path])
    assert len(read) == 1 and problems == [f"{path}: is given twice, and read once"]


def test_other_connections_of_a_file_stay(here):
    flow = made.flow("cubic", rate_mbit=23.9)
    ends = [connected(), {**connected(port=40009), "socket": 7}]
    one = put("one.json", made.iperf3([flow, flow], "cubic", connected=ends))
    read, problems = read_files([one, put("ss.txt", made.ss([("cubic", flow)]))])
    assert not problems and read[0].not_read == ["1 flow of a connection that ss.txt has, too"]
    estimate = estimate_from(read)
    assert estimate.rate_mbit == 50 and sum(len(g.flows) for g in estimate.groups) == 2


def test_ports_that_are_used_again_are_of_another_connection(here):
    """iperf3 --cport."""
    tests = [made.iperf3([made.flow("cubic", start_s=at)], "cubic", connected=[connected()]) for at in (0, 100)]
    with pytest.raises(UserError, match="b.json begins 60 s after a.json ends"):
        look(put("a.json", tests[0]), put("b.json", tests[1]))


def test_the_file_with_rtts_is_used(here):
    """The receiver's has none, and was written between the same ends the other way round."""
    flow = made.flow("cubic")
    ends = {"socket": 5, "local_host": "10.0.1.1", "local_port": 5201, "remote_host": "10.0.0.1", "remote_port": 40000}
    test = made.iperf3([flow], "cubic", connected=[ends], accepted_connection={})
    for interval in test["intervals"]:
        interval["streams"][0].update(sender=False, rtt=None)
    receivers = put("server.json", test)
    with pytest.raises(UserError, match="no file has an RTT: record at the sender"):
        look(receivers)
    read, problems = read_files([receivers, put("ss.txt", made.ss([("cubic", flow)]))])
    assert [one.file.name for one in read] == ["ss.txt"] and problems[0].startswith("server.json: is of the same test")


def of_both_ends(nat: bool = False) -> list[Path]:
    """What client and server of iperf3 --bidir write: each says of what it sends all, of what it receives the bytes only."""
    upload, download = made.flow("cubic", rate_mbit=47.8), made.flow("bbr1", rate_mbit=30)
    paths = []
    for client in (True, False):
        ends = [connected(port=port) for port in (40000, 40001)]
        if not client:  # by another clock, that of the server
            keys = {"local": "remote", "remote": "local"}
            ends = [{k.replace(k.split("_")[0], keys.get(k.split("_")[0], k)): v for k, v in e.items()} for e in ends]
            for end in ends:
                end["remote_host"] = "10.9.9.9" if nat else end["remote_host"]
        for end, socket in zip(ends, (5, 7), strict=True):
            end["socket"] = socket
        stamp = {"timesecs": made.EPOCH_S + (0 if client else 5000)}
        more = {
            "connected": ends,
            "timestamp": stamp,
            "cookie": "one",
            **({} if client else {"accepted_connection": {}}),
        }
        test = made.iperf3([upload, download], "", **more)
        for interval in test["intervals"]:
            for stream, sends in zip(interval["streams"], (client, not client), strict=True):
                stream["sender"] = sends
                if not sends:
                    del stream["rtt"], stream["snd_cwnd"], stream["retransmits"]
        paths.append(put("client.json" if client else "server.json", test))
    return paths


@pytest.mark.parametrize("turned", [False, True])
def test_each_end_of_a_test_says_what_it_sends(here, turned):
    """Whatever order they are given in; of a download alone, what the server wrote is used, which has the RTTs."""
    files = of_both_ends()[:: -1 if turned else 1]
    estimate = estimate_from(read_files(files)[0])
    found = {(g.recording.file.name, g.reverse, g.cca, g.start_s) for g in estimate.groups}
    assert found == {("client.json", False, "cubic", 0), ("server.json", True, "bbr1", 0)} and estimate.rate_mbit == 50


def test_ends_behind_a_translated_address_are_one_test(here):
    read, problems = read_files(of_both_ends(nat=True))
    assert [one.file.name for one in read] == ["client.json"] and problems[0].startswith("server.json: is of the same")


def test_a_download_is_read_of_who_sent_it(here):
    client, server = of_both_ends(nat=True)
    for path in (client, server):
        test = json.loads(path.read_text())
        for interval in test["intervals"]:
            del interval["streams"][0]
        put(path.name, test)
    read, problems = read_files([client, server])
    assert [one.file.name for one in read] == ["server.json"] and problems[0].startswith("client.json: is of the same")
    assert estimate_from(read).groups[0].cca == "bbr1"


def at(host: str, reverse: bool, number: int) -> Path:
    """What iperf3's client of one of two hosts writes, of an upload or (-R) of a download."""
    flow = made.flow("cubic", rate_mbit=23.9)
    other = {"10.0.0.1": "10.0.1.1", "10.0.1.1": "10.0.0.1"}[host]
    ends = {"socket": 5, "local_host": host, "local_port": 40000 + number, "remote_host": other, "remote_port": 5201}
    test = made.iperf3([flow], "cubic", connected=[ends], cookie=f"{number}")
    for interval in test["intervals"]:
        interval["streams"][0]["sender"] = not reverse
    return put(f"{number}.json", test)


@pytest.mark.parametrize(("host", "reverse", "back"), [("10.0.0.1", False, False), ("10.0.0.1", True, True), ("10.0.1.1", False, True), ("10.0.1.1", True, False)])  # fmt: skip
def test_a_flows_direction_is_by_the_hosts_that_data_go_between(here, host, reverse, back):
    """Not by who is the client: an upload of the one end and a download of the other share a direction."""
    estimate = look(at("10.0.0.1", False, 1), at(host, reverse, 2))
    assert [g.reverse for g in estimate.groups] == [False, back]
    assert estimate.rate_mbit == pytest.approx(25 if back else 50)


def test_a_connection_goes_the_way_of_its_data(here):
    """ss of the server has the RTTs of what it sends, and not that its client is the other host."""
    client, server = of_both_ends()
    server.unlink()
    printed = made.ss([("bbr", made.flow("bbr1", rate_mbit=30))]).replace("10.0.0.1:40000      10.0.1.1:5201", "10.0.1.1:5201      10.0.0.1:40001")  # fmt: skip
    read, _ = read_files([client, put("ss.txt", printed)])
    estimate = estimate_from(read)
    assert [(g.recording.file.name, g.reverse) for g in estimate.groups] == [("client.json", False), ("ss.txt", True)]
    assert estimate.rate_mbit == 50


def test_files_that_may_be_of_one_test_are_told(here):
    """flent names no ends."""
    flow = made.flow("cubic")
    of_flent = made.flent({"TCP upload": flow}, here / "x.flent.gz")
    same, less = (
        put("ss.txt", made.ss([("cubic", flow)])),
        put("b.txt", made.ss([("cubic", made.flow("cubic", rate_mbit=40))])),
    )
    told = [any("ss.txt are of different flows" in words for words in look(of_flent, same).assumed)]
    told += ["of different flows" in " ".join(look(of_flent, less).assumed)]
    assert told == [True, False]


@pytest.mark.parametrize(("start_s", "seconds", "rates", "asked"), [(10, 30, (20, 20), 1), (0, 40, (20, 8), 1), (25, 40, (20, 20), 0), (0, 80, (10, 10), 0)])  # fmt: skip
def test_files_are_asked_for_by_flow_and_by_what_both_cover(here, start_s, seconds, rates, asked):
    """A log that began late, of which a flow is in no other file, is of one test; the same sum at other times is none."""
    flow = made.flow("cubic", rate_mbit=20)
    of_flent = made.flent({"TCP upload": flow}, here / "x.flent.gz", t0="2023-11-14T22:13:20.000000Z")
    sockets = [("cubic", made.flow("cubic", rate_mbit=rate, start_s=start_s, seconds=seconds)) for rate in rates]
    estimate = look(of_flent, put("ss.txt", made.ss(sockets)))
    words = "though 1 flow of each got the same at the same time"
    assert sum(words in assumed for assumed in estimate.assumed) == asked, estimate.assumed


@pytest.mark.parametrize(("t0", "start_s"), [("2023-11-14T22:13:20.000000Z", 10), ("2023-11-14T22:13:20", 0), (None, 0), ("soon", 0), (3, 0)])  # fmt: skip
def test_flents_clock_is_of_the_world(here, t0, start_s):
    of_flent = made.flent({"TCP upload": made.flow("cubic", rate_mbit=20)}, here / "x.flent.gz", t0=t0)
    late = put("ss.txt", made.ss([("cubic", made.flow("cubic", rate_mbit=27, start_s=10, seconds=30))]))
    estimate = look(of_flent, late)
    assert estimate.groups[1].start_s == pytest.approx(start_s, abs=0.11)
    assert any("all files begin together" in words for words in estimate.assumed) == (not start_s)


@pytest.mark.parametrize("port", [None, True, 10**6, [], "5201x"])
def test_ends_of_no_sense_are_none(here, port):
    ends = [{**connected(), "remote_port": port}, {**connected("nowhere"), "socket": 7}, None]
    read, _ = read_files([put("x.json", made.iperf3([FLOW] * 3, "bbr3", connected=ends))])
    assert [flow.ends for flow in read[0].flows] == [frozenset()] * 3


def test_flents_data(here):
    flows = {"TCP upload BBR": made.flow("bbr1", rate_mbit=24), "TCP upload Cubic": made.flow("cubic", rate_mbit=23.8)}
    estimate = look(made.flent(flows, here / "x.flent.gz", pings_ms=[39.0, 60.0]))
    assert [g.cca for g in estimate.groups] == ["bbr1", "cubic"]
    assert estimate.rtt_ms == 39 and "pings" in finding(estimate, "RTT")


@pytest.mark.parametrize(
    ("address", "version"),
    [("2001:db8::1", 6), ("fe80::1%eth0", 6), ("::ffff:10.0.1.1", 4), ("10.0.1.1", 4), ("nonsense", 4), (None, 4)],
)
def test_heads_are_those_of_the_addresses(here, address, version):
    """A link of 47.8 / 0.943 = 50.7 Mbit/s of IPv6: in IPv4's frames its goodput would be that of 50."""
    test = made.iperf3([made.flow("cubic")], "cubic", connected=[{"socket": 5, "remote_host": address}])
    printed = made.ss([("cubic", made.flow("cubic"))]).replace("10.0.1.1:5201", f"[{address}]:5201")
    files = [
        put("x.json", json.loads(json.dumps(test).replace("1448", "1428"))),
        put("x.txt", printed.replace("mss:1448", "mss:1428")),
    ]
    for file in files:
        estimate = look(file)
        assert load_scenario(put("s.yaml", text_of(estimate, "s"))).network.ip_version == estimate.ip_version == version
        heads = {4: 66, 6: 86}[version]
        assert f", {estimate_goodput(estimate) * (1428 + heads) / 1428:.4g} with the heads" in finding(estimate, "rate")


def test_a_path_has_one_version_of_ip(here):
    for name, host, start_s in (("a.json", "::1", 0), ("b.json", "10.0.0.1", 1)):
        flow = made.flow("cubic", rate_mbit=20, start_s=start_s)
        put(name, made.iperf3([flow], "cubic", connected=[{"remote_host": host}]))
    estimate = look(Path("a.json"), Path("b.json"))
    assert estimate.ip_version == 4 and any("some flows are of IPv6" in words for words in estimate.assumed)


def test_a_link_that_was_not_full(here):
    flow = made.flow("bbr3", queue_ms=0, rate_mbit=20)
    estimate = look(put("x.json", made.iperf3([flow.assign(lost=0)], "bbr3")))
    assert "at least that" in finding(estimate, "rate")
    assert estimate.rate_mbit == pytest.approx(20 * 1514 / 1448, rel=1e-3), "not rounded to what somebody may have set"


def test_iperf3s_rate_is_of_each_stream(here):
    flows = [made.flow("cubic", rate_mbit=9.9, queue_ms=0).assign(lost=0)] * 3
    test = made.iperf3(flows, "cubic")
    test["start"]["test_start"]["target_bitrate"] = 10_000_000
    assert "iperf3 was told to send at most 30 Mbit/s" in finding(look(put("x.json", test)), "rate")


def test_rtts_of_their_own_are_no_queue(here):
    files = []
    for rtt_ms in (20, 100):
        test = made.iperf3([made.flow("cubic", rate_mbit=4.9).assign(rtt_ms=rtt_ms, lost=0)], "cubic")
        files.append(put(f"{rtt_ms}.json", {**test, "title": "50mbit"}))
    estimate = look(*files)
    assert estimate.own_rtts and "at least that" in finding(estimate, "rate")
    assert not estimate.contradictions, "the link may have 50 Mbit/s"


def test_loss_without_a_queue_is_taken_for_random(here):
    flow = made.flow("cubic", queue_ms=0)
    flow["lost"] = range(0, 5 * len(flow), 5)
    estimate = look(put("x.json", made.iperf3([flow], "cubic")))
    assert estimate.loss == pytest.approx(5 / (47.8e6 / 8 / 1448 / 10), rel=0.05)
    assert "cannot tell which" in finding(estimate, "buffer")
    assert load_scenario(put("s.yaml", text_of(estimate, "s"))).network.loss == estimate.loss


def test_what_ethernet_carries(here):
    estimate = look(put("x.json", made.iperf3([made.flow("cubic", rate_mbit=941.5)], "cubic")))
    assert "1000 Mbit/s of Ethernet" in finding(estimate, "rate") and estimate.rate_mbit == pytest.approx(
        984.4, abs=0.1
    )


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(here):
    whole = json.dumps(made.iperf3([FLOW], "bbr"), indent=1)
    path = put("x.json", whole[: len(whole) // 2])
    read, problems = read_files([path])
    assert not problems and read[0].not_read == ["its end: the file is cut off"]
    assert 150 < len(read[0].flows[0].samples) < 250
    stream = made.json_stream(made.iperf3([FLOW], "bbr"))
    read, _ = read_files([put("x.jsonl", stream[: len(stream) // 2])])
    assert "cut off" in read[0].not_read[0]


def omitting(test: dict[str, Any], omit_s: int, printed: int) -> dict[str, Any]:
    """The test as iperf3 -O writes it: times and bytes begin anew behind what is omitted, of which it printed some intervals only."""
    streams = [interval["streams"][0] for interval in test["intervals"]]
    for stream in streams:
        stream["omitted"] = bool(stream["end"] <= omit_s + 0.01)
        if not stream["omitted"]:
            stream.update(start=stream["start"] - omit_s, end=stream["end"] - omit_s)
    behind = sum(stream["omitted"] for stream in streams)
    streams[behind]["seconds"] += (behind - printed) * 0.1
    test["intervals"] = test["intervals"][:printed] + test["intervals"][behind:]
    test["start"]["test_start"]["omit"] = omit_s
    return test


@pytest.mark.parametrize("printed", [100, 95, 0])
def test_a_flow_begins_with_what_iperf3_omits_and_counts_behind_it(here, printed):
    """What iperf3 prints of it ends up to an interval before; of none that is longer."""
    first = put("a.json", made.iperf3([made.flow("cubic", rate_mbit=19.8)], "cubic"))
    late = made.flow("bbr1", rate_mbit=28, start_s=5, seconds=35)
    path = put("b.json", omitting(made.iperf3([late], "bbr"), 10, printed))
    read, problems = read_files([path])
    rows = read[0].flows[0].samples
    assert not problems and rows["goodput_mbit"].to_numpy() == pytest.approx(28)
    assert rows["seconds"].sum() == pytest.approx(rows["time_s"].iloc[-1]), "without a gap"
    estimate = look(first, path)
    assert [g.start_s for g in estimate.groups] == [0, 5] and estimate.rate_mbit == 50
    assert estimate.window_s[0] == 15, "behind what is omitted, not a fifth of the time"
    with pytest.raises(UserError, match=r"the files are of 10.9 s, with what iperf3 omits \(-O\): at least 2 s"):
        look(put("c.json", omitting(made.iperf3([made.flow("bbr1", seconds=11)], "bbr"), 10, printed)))


def test_an_interval_that_cannot_be_read_is_named(here):
    test = made.iperf3([FLOW], "bbr3")
    test["intervals"][30]["streams"][0]["bytes"] = None
    read, _ = read_files([put("x.json", test)])
    assert read[0].not_read == ["1 interval of streams without times, bytes or a socket"]
    assert len(read[0].flows[0].samples) == len(test["intervals"]) - 1


TOTALS_ONLY = {"start": {}, "intervals": [], "end": {"streams": [{"sender": {}}]}}
BAD = {
    "empty.json": ("", "is empty"),
    "text.txt": ("[ ID] Interval           Transfer     Bitrate\n", "iperf3's text"),
    "qlog.sqlog": ('\x1e{"file_schema": "urn:ietf:params:qlog:file:sequential"}\n', "is qlog, which is QUIC's"),
    "tc.txt": ("qdisc tbf 8001: dev eth0 root refcnt 2 rate 50Mbit burst 5Kb lat 50ms\n Sent 9 bytes\n", "not of flows; give flows"),
    "x.pcap": ("\x0a\x0d\x0d\x0a\x1c\0\0\0", "is a capture of packets"),
    "totals.json": (json.dumps(TOTALS_ONLY), "totals only"),
    "omitted.json": (json.dumps({"start": {}, "intervals": [{"streams": [{"omitted": True, "socket": 5, "end": 1, "seconds": 1, "bytes": 9}]}]}), "omitted ones only"),
    "udp.json": (json.dumps({"start": {"test_start": {"protocol": "UDP"}}, "intervals": []}), "is a test of UDP"),
    "refused.json": (json.dumps({"start": {}, "intervals": [], "end": {}, "error": "unable to connect"}), "unable to connect"),
    "other.json": ('{"a": 1}', "is none of"),
    "table.csv": ("rtt_ms,share\n20,0.3\n", "for a table of numbers: docs/howto/beside.md#a-table-of-numbers"),
    "list.json": ("[" * 100_000, "is none of"),
    "deep.json": ('{"start": ' + "[" * 100_000, "no JSON that can be read"),
    "flent.json": ('{"x_values": [1], "results": {"Ping": [1]}}', "no series of a TCP flow"),
    "flent2.json": ('{"x_values": [1, "results"', "is flent's, but"),
    "ss.txt": ("ESTAB 0 0 1.1.1.1:1 2.2.2.2:2\n\t cubic wscale:7,7 rto:204 rtt:1/1 cwnd:10 bytes_acked:5\n", "none with bytes_acked"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_none(here, name):
    content, words = BAD[name]
    done = beside(put(name, content), "--no-run")
    assert done.exit_code != 0 and isinstance(done.exception, UserError), done.output
    assert f"{name}: " in str(done.exception) and words in str(done.exception)
    good = put("good.json", made.iperf3([FLOW], "bbr3"))
    both = beside(name, good, "--no-run", "--out", "both")
    assert both.exit_code == 0 and f"not read: {name}: " in both.output and "read: good.json" in both.output


def test_other_files(here):
    (here / "folder").mkdir()
    (here / "zip.gz").write_bytes(gzip.compress(random.Random(1).randbytes(1000))[:500])
    (here / "bytes").write_bytes(b"\xff\xfe\x00")
    (here / "bomb.gz").write_bytes(gzip.compress(b" " * (BYTES_MAX + 10)))
    put("one.json", made.iperf3([FLOW], "bbr3"))
    put("same.json", made.iperf3([FLOW], "bbr3"))
    _, problems = read_files(
        [Path(n) for n in ("one.json", "same.json", "folder", "zip.gz", "bytes", "bomb.gz", "none")]
    )
    for name, words in {"same.json": "of the same test as one.json", "folder": "is a folder", "zip.gz": "cut off or damaged", "bytes": "is no text", "bomb.gz": "more than 64 MB", "none": "is not there"}.items():  # fmt: skip
        assert any(p.startswith(f"{name}: ") and words in p for p in problems), (name, problems)


def test_numbers_are_bounded_and_texts_are_plain(here):
    test = made.iperf3([FLOW], "bbr3")
    for i, value in enumerate([1e308, -5, True, None, "9", 10**400, [], float("nan")]):
        test["intervals"][50 + i]["streams"][0]["rtt"] = value
        test["intervals"][60 + i]["streams"][0]["bytes"] = value
        test["intervals"][70 + i]["streams"][0]["snd_cwnd"] = value
    test["start"]["system_info"] = "\x1b[31mLinux\u202e \n x" * 100
    test["title"] = "\x1b]0;evil\x07\nname: other"
    path = put("x\x1b[1m\nname: y.json", test)
    estimate = look(path)
    assert estimate.rate_mbit == 50 and estimate.groups[0].cca == "bbr3"
    text = text_of(estimate, "s")
    assert "\x1b" not in text and load_scenario(put("s.yaml", text)).name == "s"
    done = beside(path, "--no-run", "--out", "o")
    assert done.exit_code == 0 and "\x1b" not in done.output


def test_names_of_files_do_not_reach_the_terminal_as_they_are(here):
    """In any line: of what was read, of what was not, of a contradiction."""
    test = made.iperf3([FLOW], "bbr3")
    test["title"] = "80 ms"
    paths = put("good\x1b[31m\nscenario: x.json", test), put("bad\x1b[31m\nscenario: x.json", "")
    done = CliRunner().invoke(app, ["beside", *map(str, paths), "--no-run", "--out", "o"], color=True)
    assert done.exit_code == 0 and "\x1b[31m" not in done.output
    assert [line for line in done.output.splitlines() if line.startswith("scenario:")] == ["scenario: o.yaml"]


def test_a_pipe_is_read(here):
    content = gzip.compress(json.dumps(made.iperf3([FLOW], "bbr3")).encode())
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(content,))
    writer.start()
    read, problems = read_files([Path("pipe")])
    writer.join()
    assert not problems and len(read[0].flows) == 1


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        (made.flow("bbr3", rate_mbit=47_800), "network.rate_mbit = 50000"),
        (made.flow("bbr3", rtt_ms=20_000), "network.rtt_ms = 20000"),
        (made.flow("cubic", queue_ms=0).assign(lost=np.arange(400) * 1000.0), "network.loss = 2.4"),
    ],
)
def test_what_no_scenario_can_have_is_refused_and_not_cut(here, flow, words):
    done = beside(put("x.json", made.iperf3([flow], "bbr3")), "--no-run")
    assert isinstance(done.exception, UserError) and words in str(done.exception), done.output
    assert not Path("x.yaml").exists()


def test_an_rtt_of_nothing_is_none(here):
    """ss prints 0 before the first ACK."""
    flow = made.flow("bbr1")
    flow.loc[5:9, "rtt_ms"] = 0.0
    estimate = look(put("ss.txt", made.ss([("bbr", flow)])))
    assert estimate.rtt_ms == 40


def test_files_of_no_sense_end_in_a_message(here):
    """Parts of good files in other places: read or refused, never a fault of ours."""
    texts = [
        json.dumps(made.iperf3([made.flow("cubic", seconds=6)] * 2, "cubic"), indent=0),
        made.ss([("bbr", made.flow("bbr1", seconds=6))]),
    ]
    chance = random.Random(7)
    for i in range(120):
        text = texts[i % 2]
        for _ in range(chance.randint(1, 30)):
            at = chance.randrange(len(text))
            text = (
                text[:at]
                + chance.choice(["", "9" * 20, "-", "null", text[at // 2 : at // 2 + 40], "{", "NaN"])
                + text[at + chance.randint(0, 40) :]
            )
        try:
            text_of(estimate_from(read_files([put("x", text)])[0]), "s")
        except UserError as error:
            assert str(error)


def test_an_algorithm_that_the_lab_lacks(here):
    path = put("x.json", made.iperf3([made.flow("cubic")], "vegas"))
    with pytest.raises(UserError, match=r"'vegas', which the lab lacks .* --set flows.0.cca=cubic"):
        look(path)
    assert look(path, ccas={"flows.0": "cubic"}).groups[0].cca == "cubic"


def test_the_command(lab, here, monkeypatch):
    monkeypatch.chdir(here)
    one = put("bbr_40ms.json", made.iperf3([made.flow("bbr3", rate_mbit=28)], "bbr"))
    two = put("cubic.json", made.iperf3([made.flow("cubic", rate_mbit=19.8)], "cubic"))
    done = beside(one, two, "--seeds", 2)
    assert done.exit_code == 0, done.output
    for words in ("read: bbr_40ms.json: iperf3's JSON, 1 flow, 39.9 s, Linux testbed 5.15.0-91-generic", "contradiction: bbr_40ms.json: says 'bbr'",
                  "scenario: bbr_40ms.yaml", "1 point, 2 runs", "picture: bbr_40ms/bbr_40ms.png"):  # fmt: skip
        assert words in done.output, done.output
    assert [job.seed for job in lab.jobs] == [1, 2]
    assert Path("bbr_40ms/bbr_40ms.svg").stat().st_size > 10_000
    assert beside(one, two, "--seeds", 2).exit_code == 0 and len(lab.jobs) == 2, "what is there is kept"
    Path("bbr_40ms.yaml").write_text("name: mine")
    again = beside(one, two)
    assert "is another one" in str(again.exception)
    other = beside(
        one,
        two,
        "--out",
        "o",
        "--seeds",
        1,
        "--set",
        "flows.0.cca=bbr1",
        "--set",
        "duration_s=30",
        "--set",
        "window_s=[5,30]",
    )
    assert other.exit_code == 0, other.output
    assert "set by you" in other.output and "BBRv1" in other.output
    swept = beside(one, two, "--out", "p", "--set", "sweep={network.rtt_ms: [10, 20]}")
    assert "one point" in str(swept.exception)


@pytest.mark.parametrize("out", [".", "/", ".."])
def test_a_folder_without_a_name(here, out):
    done = beside(put("x.json", made.iperf3([FLOW], "bbr3")), "--no-run", "--out", out)
    assert isinstance(done.exception, UserError) and f"--out {out}: give a folder" in str(done.exception)


def test_an_rtt_that_is_known_tells_the_queue(here):
    """Of a queue that was never empty the smallest RTT is too long, and the buffer too shallow."""
    path = put("x.json", made.iperf3([made.flow("cubic", rtt_ms=40, queue_ms=60)], "cubic"))
    done = beside(path, "--no-run", "--set", "network.rtt_ms=20.55")
    assert done.exit_code == 0 and "set by you" in done.output and "contradiction" not in done.output, done.output
    network = load_scenario(Path("x.yaml")).network
    assert network.rtt_ms == 20.55 and network.buffer.bdp == pytest.approx((100 - 20.55) / 20.55, rel=0.02)
    assert "you say an RTT of 50 ms, and the files have one of 4" in look(path, rtt_ms=50).contradictions[0]


def test_a_given_rtt_serves_files_without_rtts(here):
    path = put("x.json", made.iperf3([made.flow("cubic").assign(rtt_ms=0)], "cubic"))
    refused = beside(path, "--no-run")
    assert "no file has an RTT" in str(refused.exception) and "--set network.rtt_ms=40" in str(refused.exception)
    assert beside(path, "--no-run", "--set", "network.rtt_ms=40").exit_code == 0
    assert load_scenario(Path("x.yaml")).network.rtt_ms == 40


@pytest.mark.parametrize(
    "path", ["network.rtt_ms=[10, 20]", "network.rate_mbit=20", "flows.1.cca=cubic", "flows.0.cca=[bbr1, bbr3]"]
)
def test_what_a_run_would_have_is_refused_without_one(here, path):
    done = beside(put("x.json", made.iperf3([FLOW], "bbr3")), "--no-run", "--set", path)
    assert isinstance(done.exception, UserError) and "has no effect with --no-run" in str(done.exception)


@pytest.mark.parametrize(("option", "value"), [("--seeds", "3"), ("--cores", "2"), ("--kernel", "nope")])
def test_options_of_runs_are_refused_without_one(here, option, value):
    done = beside(put("x.json", made.iperf3([FLOW], "bbr3")), "--no-run", option, value)
    assert isinstance(done.exception, UserError) and f"{option} {value}: has no effect with --no-run" in str(
        done.exception
    )
    assert not Path("x.yaml").exists()


def test_a_wrong_algorithm_is_the_options_fault(here):
    done = beside(put("x.json", made.iperf3([FLOW], "bbr3")), "--no-run", "--set", "flows.0.cca=nope")
    assert str(done.exception).startswith("--set flows.0.cca=nope: cca: there is no algorithm 'nope'")
    assert "contradiction" not in done.output and not Path("x.yaml").exists()


@pytest.mark.parametrize("option", [("--set", "network.nope=20"), ("--set", "sweep={network.rtt_ms: [10, 20]}"), ("--kernel", "nope")])  # fmt: skip
def test_a_wrong_option_leaves_no_scenario(here, option):
    path = put("x.json", made.iperf3([FLOW], "bbr3"))
    done = beside(path, *option)
    assert isinstance(done.exception, UserError) and not Path("x.yaml").exists()
    assert "scenario:" not in done.output
    assert beside(path, "--no-run").exit_code == 0
    assert isinstance(beside(path, *option).exception, UserError) and Path("x.yaml").exists()


def test_names_are_compared_with_what_flows_look_like_not_with_what_is_set(here):
    path = put("cubic.json", made.iperf3([made.flow("cubic")], "cubic"))
    assert not look(path, ccas={"flows.0": "bbr3"}).contradictions
    other = put("reno.json", made.iperf3([made.flow("cubic", rate_mbit=20)]))
    assert "says reno, and no flow looks like Reno" in look(other).contradictions[0]
    assert not look(other, ccas={"flows.0": "bbr3"}).contradictions, "who sets it knows better than the name"
    both = look(path, other, ccas={"flows.0": "bbr3"})
    assert [words.split(":")[0] for words in both.contradictions] == ["reno.json"]


def test_an_algorithm_is_set_for_any_group(here):
    one, two = (put(f"{cca}.json", made.iperf3([made.flow(cca, rate_mbit=20)], cca)) for cca in ("cubic", "reno"))
    done = beside(one, two, "--no-run", "--set", "flows.1.cca=bbr3")
    assert done.exit_code == 0, done.output
    assert [f.cca for f in load_scenario(Path("cubic.yaml")).flows] == ["cubic", "bbr3"]


def test_without_a_run(lab, here, monkeypatch):
    monkeypatch.chdir(here)
    done = beside(put("x.json", made.iperf3([FLOW], "bbr3")), "--no-run")
    assert done.exit_code == 0 and not lab.jobs and not Path("x").exists()
    assert load_scenario(Path("x.yaml")).network.rate_mbit == 50


@pytest.mark.guest
@pytest.mark.parametrize(("cca", "bdp"), [("bbr1", 2), ("bbr3", 2), ("cubic", 0.5)])
def test_a_run_of_the_lab_comes_back_as_itself(here, cca, bdp):
    """What iperf3 and ss would have written of a run: the known answer."""
    network = {"rate_mbit": 50, "rtt_ms": 40, "buffer": {"bdp": bdp}}
    scenario = validate(
        scenario_dict(network=network, flows=[{"cca": cca}], duration_s=30, window_s=[6, 30], sample_hz=10), "test"
    )
    run_point(base_point(scenario), 1, here / "run")
    flows = made.of_run(here / "run")
    for path in (put("x.json", made.iperf3(flows, cca)), put("x.txt", made.ss([(cca, f) for f in flows]))):
        estimate = look(path)
        assert not estimate.contradictions and estimate.groups[0].cca == cca
        assert estimate.rate_mbit == 50 and estimate.rtt_ms == pytest.approx(40, abs=2)
        if cca != "bbr3":  # its losses end with Startup, which the first sample may miss
            assert estimate.buffer_bdp == pytest.approx(bdp, rel=0.12)
