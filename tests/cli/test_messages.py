"""What a person is told who typed something that looks right: what, where, and what to do, in one line."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores
from bbrlab.cli import main
from bbrlab.cli.app import EXIT_FAILED, overrides_of, words_of
from bbrlab.cli.commands import app
from bbrlab.cli.run import _by_group, all_points_with
from bbrlab.kernel.specs import load_specs
from bbrlab.results.config import in_checkout, name_in_checkout
from bbrlab.results.figures import figures_at
from bbrlab.run.output import prepare_out
from bbrlab.run.run import check_seed
from bbrlab.scenario.load import load_scenario, points_of
from bbrlab_apps.study.commands import catalogue

SCENARIO = """name: mine
network: {rate_mbit: 20, rtt_ms: 50, buffer: {bdp: 2}}
hosts: {segmentation: nic}
flows:
  - {cca: bbr3}
  - {cca: cubic, count: 2, start_s: 5}
duration_s: 60
window_s: [20, 60]
"""


def refused(folder: Path, old: str = "", new: str = "", **overrides: object) -> str:
    """What is said of SCENARIO with a change of its text, or with ``--set``."""
    path = folder / "mine.yaml"
    assert old in SCENARIO
    path.write_text(SCENARIO.replace(old, new) if old else SCENARIO)
    with pytest.raises(UserError) as error:
        load_scenario(path, {key.replace("__", "."): value for key, value in overrides.items()} or None)
    return str(error.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate_mbit: 20", "rate_mbit: 20Mbit", '2: network.rate_mbit = "20Mbit": must be a number without a unit (it is in Mbit/s)'),
        ("rtt_ms: 50", "rtt_ms: 50 ms", '2: network.rtt_ms = "50 ms": must be a number without a unit (it is in ms)'),
        ("rtt_ms: 50", "rtt_ms: [5, 50ms]", '2: network.rtt_ms.1 = "50ms": must be a number without a unit (it is in ms)'),
        ("rtt_ms: 50", "rtt_ms: long", '2: network.rtt_ms = "long": must be a number or a list'),
        ("duration_s: 60", "duration_s: 60s", '7: duration_s = "60s": must be a number without a unit (it is in s)'),
        ("rtt_ms: 50", "rtt_ms: 50, loss: 1%", '2: network.loss = "1%": must be a number without a unit (0.01 is 1 %)'),
        ("{bdp: 2}", "2 BDP", '2: network.buffer = "2 BDP": must be keys with values, for example {bdp: 4}; it has one of bdp, bytes, packets '
         "(on the command line: --set network.buffer.bdp=4)"),
        ("{segmentation: nic}", "nic", '3: hosts = "nic": must be keys with values, for example {segmentation: nic}'),
        ("window_s: [20, 60]", "window_s:", "8: window_s is empty; fill it in"),
        ("rtt_ms: 50", "rtt_ms: ", "2: network.rtt_ms is empty; fill it in"),
        ("segmentation: nic", "segmentation: ", "3: hosts.segmentation is empty; fill it in"),
        ("cca: bbr3", "cca: bbr3, rate_mbit: 4", "5: unknown key 'flows.0.rate_mbit'; did you mean 'network.rate_mbit'?"),
        ("name: mine", "name: mine\nloss: 0.1", "2: unknown key 'loss'; did you mean 'network.loss'?"),
        ("name: mine", "name: mine\nrtt_ms: 9", "2: unknown key 'rtt_ms'; did you mean 'network.rtt_ms' or 'flows.0.rtt_ms'?"),
        ("name: mine", "name: mine\nnetwrok: 9", "2: unknown key 'netwrok'; did you mean 'network'?"),
    ],
)  # fmt: skip
def test_one_line_says_what_to_write(tmp_path, old, new, said):
    assert refused(tmp_path, old, new) == f"mine.yaml:{said}"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("rtt_ms: 50", "rtt_ms: 50, policer: ", "2: network.policer"),
        ("rtt_ms: 50", "rtt_ms: 50, trace: null", "2: network.trace"),
        ("rtt_ms: 50", "rtt_ms: 50, qdisc: {kind: codel, target_ms: }", "2: network.qdisc.target_ms"),
        ("segmentation: nic", "segmentation: nic, rmem_max_bytes: ~", "3: hosts.rmem_max_bytes"),
        ("cca: bbr3", "cca: bbr3, bytes: ", "5: flows.0.bytes"),
        ("name: mine", "name: mine\nscales:\n  smoke: {trials: }", "3: scales.smoke.trials"),
        ("duration_s: 60", "duration_s: 60\nsweep:", "8: sweep"),
    ],
)
def test_a_field_that_is_left_empty_is_not_a_field_that_is_not_given(tmp_path, old, new, place):
    assert refused(tmp_path, old, new) == f"mine.yaml:{place} is empty; fill it in"


def test_an_empty_value_of_set_is_refused_and_one_of_a_case_or_sweep_is_a_value(tmp_path):
    said = "network.policer is empty; fill it in, or leave it out"
    assert refused(tmp_path, network__policer=None) == f"--set network.policer: {said}"
    assert refused(tmp_path, network={"rate_mbit": 5, "policer": None}) == f"--set network: {said}"
    path = tmp_path / "mine.yaml"
    cases = "cases: {a: {flows.0.bytes: null}, b: {flows.0.bytes: 90000}}\nsweep: {flows.1.stop_s: [null, 30]}\n"
    path.write_text(SCENARIO + cases)
    assert len(points_of(load_scenario(path))) == 4
    assert len(points_of(load_scenario(path, case="a"))) == 2
    assert len(points_of(load_scenario(path, {"sweep": {"flows.1.stop_s": [None, 40, 50]}}, "b"))) == 3
    with pytest.raises(UserError, match=r"^--set flows\.0\.bytes: flows\.0\.bytes is empty"):
        load_scenario(path, {"flows.0.bytes": None}, "a")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[20, 60]", "[20, 90]", "8: window_s [20.0, 90.0] must lie"),
        ("start_s: 5", "start_s: 99", "6: flows.1.start_s 99 would have no effect: it is at or after"),
        ("cca: bbr3", "cca: bbr3, params: {ecn: on}", "5: flows.0.params.ecn on would have no effect"),
        ("start_s: 5", "start_s: 5, stop_s: 4", "6: flows.1: stop_s 4.0 must be after"),
    ],
)
def test_what_is_wrong_with_several_fields_has_the_line_of_the_first_that_is_named(tmp_path, old, new, said):
    assert refused(tmp_path, old, new).startswith(f"mine.yaml:{said}")


def test_what_is_set_on_the_command_line(tmp_path):
    assert refused(tmp_path, network__buffer=4).endswith("(on the command line: --set network.buffer.bdp=4)")
    assert refused(tmp_path, buffer__bdp=4) == "mine.yaml: unknown key 'buffer'; did you mean 'network.buffer'?"
    told = refused(tmp_path, duration_s=10)
    assert told.endswith(
        "<= 10 s; set it, too, for example window_s: [2, 10] (on the command line: --set window_s=[2,10])"
    )


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("bbr", "there is no algorithm 'bbr'; Linux's own 'bbr' is BBRv1 and is called bbr1 here (there are"),
        ("BBRv3", "there is no algorithm 'BBRv3', did you mean bbr3? (there are"),
        ("CUBIC", "there is no algorithm 'CUBIC', did you mean cubic? (there are"),
    ],
)
def test_names_of_algorithms(tmp_path, typed, said):
    assert f"flows.0.cca: {said}" in refused(tmp_path, "cca: bbr3", f"cca: {typed}")


def test_a_folder_that_cannot_be_made():
    with pytest.raises(UserError, match=r"^--out /proc/x: this folder cannot be made here; choose another place$"):
        prepare_out(Path("/proc/x"))


def bbrlab(*argv: str) -> str:
    done = CliRunner().invoke(app, argv)
    return str(done.exception) if done.exception else done.stdout


def test_a_forecast_is_of_figures():
    assert "mine.yaml: forecast takes PAPER/FIGURE" in bbrlab("forecast", "mine.yaml")
    assert bbrlab("forecast", str(paths.SCENARIOS / "tang" / "fig2.yaml")).endswith("did you mean tang/fig2?")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("courses/fairness/rubric.yaml", "rubric fairness, "),
        ("config/kernels.yaml", f"{len(load_specs().kernels)} kernels, lab-6.12 by default"),
        ("config/config.yaml", "configuration of the workflow, scales smoke, quick, full"),
        ("config/container.yaml", "the container's image, on "),
        ("scenarios/tang/fig2.yaml", "tang/fig2, 2 points x 3 trials, 100 s each; about "),
        ("data/tang/claims.yaml", "20 statements, "),
    ],
)
def test_each_kind_of_file_is_checked_as_what_it_is(path, said):
    assert bbrlab("check", str(paths.ROOT / path)).startswith(f"{paths.ROOT / path}: {said}")


@pytest.mark.parametrize(
    ("argv", "after"),
    [
        (("run", "mine.yaml", "--out", ""), "--out"),
        (("run", "mine.yaml", "--out=", "--kernel", "lab-6.12"), "--out"),
        (("run", "mine.yaml", "--out", "x", "--kernel", ""), "--kernel"),
        (("check", ""), "check"),
        (("",), "bbrlab"),
    ],
)
def test_an_empty_word_is_a_variable_that_is_not_set(argv, after):
    said = "what follows is empty; give a value (is a variable of the shell not set?)"
    assert bbrlab(*argv) == f"{after}: {said}"


@pytest.mark.parametrize(
    ("argv", "begin", "end"),
    [
        ((), "Usage: bbrlab [OPTIONS] COMMAND", "checksums (docs/howto/artifact.md)."),
        (("model",), "Usage: bbrlab model [OPTIONS] COMMAND", "Compute a kept table of the burst model again."),
        (("model", "nope"), "bbrlab: No such command 'nope'.", "(see 'bbrlab model --help')"),
    ],
)
def test_a_group_of_commands_alone_shows_its_help(monkeypatch, capsys, argv, begin, end):
    monkeypatch.setattr(sys, "argv", ["bbrlab", *argv])
    assert main._run() == EXIT_FAILED
    said = capsys.readouterr().err.strip()
    assert said.startswith(begin) and said.endswith(end)


def test_words_with_commas():
    assert words_of(["goodput, queue", "rtt ,cwnd"]) == ["goodput", "queue", "rtt", "cwnd"] and words_of(None) == []


def test_seeds_are_those_that_the_kernel_can_tell_apart():
    check_seed(0)
    check_seed(2**64 - 1)
    for seed in (-1, 2**64):
        with pytest.raises(UserError, match=rf"^--seed {seed}: must be from 0 to 18446744073709551615$"):
            check_seed(seed)


def test_of_several_files_each_is_checked(tmp_path):
    good, bad, worse = tmp_path / "good.yaml", tmp_path / "bad.yaml", tmp_path / "table.csv"
    good.write_text(SCENARIO)
    bad.write_text(SCENARIO.replace("duration_s", "duration"))
    worse.write_text("a,b\n1,2\n")
    done = CliRunner().invoke(app, ["check", *map(str, (bad, good, worse))])
    assert isinstance(done.exception, UserError) and done.stdout.startswith(f"{good}: mine, 1 point x 3 trials,")
    assert f"{bad}:1: " in str(done.exception) and f"\n{worse}: " in str(done.exception)
    assert not CliRunner().invoke(app, ["check", "--json", *map(str, (bad, good))]).stdout
    claims = [tmp_path / name / "claims.yaml" for name in ("one", "two")]
    for path in claims:
        path.parent.mkdir()
        path.write_text("- {id: X}\n")
    done = CliRunner().invoke(app, ["check", *map(str, (*claims, paths.DATA / "ware2019" / "claims.yaml"))])
    assert all(f"{path}: " in str(done.exception) for path in claims) and "ware2019/claims.yaml: 6 " in done.stdout


def test_a_scenario_of_no_paper_has_its_name_alone(tmp_path):
    mine = tmp_path / "mine.yaml"
    text = (paths.SCENARIOS / "tang" / "fig2.yaml").read_text(encoding="utf-8")
    mine.write_text(text.replace("paper: tang\n", ""))
    assert bbrlab("check", str(mine)).startswith(f"{mine}: fig2, 2 points")


def test_how_to_run_all_points_is_a_command_that_takes_the_file(monkeypatch, tmp_path):
    assert all_points_with(tmp_path / "mine.yaml") == f"bbrlab sweep {tmp_path / 'mine.yaml'}"
    assert all_points_with(tmp_path / "sp ace.yaml") == f"bbrlab sweep '{tmp_path / 'sp ace.yaml'}'"
    monkeypatch.chdir(paths.ROOT)
    assert all_points_with(paths.SCENARIOS / "tang" / "fig2.yaml") == "snakemake --cores 2 tang/fig2"
    assert all_points_with(paths.SCENARIOS / "l4s.yaml").startswith("bbrlab sweep"), "a study, which no campaign has"


def test_commands_of_the_workflow_begin_in_the_checkout(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(paths, "SHIPPED", tmp_path / "shipped")
    there = f"cd {paths.ROOT} && snakemake --cores "
    commands = {
        ("plot", "tang/fig2", "--scale", "smoke"): "2 --config scale=smoke -- tang/fig2",
        ("list", "tang"): f"{all_cores()} PAPER/FIGURE",
    }
    for argv, command in commands.items():
        monkeypatch.chdir(tmp_path)
        assert there + command in bbrlab(*argv)
        monkeypatch.chdir(paths.ROOT)
        assert there not in (said := bbrlab(*argv)) and f"snakemake --cores {command}" in said
    monkeypatch.chdir(tmp_path)
    assert all_points_with(paths.SCENARIOS / "tang" / "fig2.yaml") == f"{there}2 tang/fig2"
    monkeypatch.setattr(paths, "ROOT", Path("/a b"))
    monkeypatch.setattr(os.path, "samefile", lambda *_: False)
    assert in_checkout("snakemake") == "cd '/a b' && snakemake"
    assert name_in_checkout(Path("/a b/results/x.csv")) == "results/x.csv"


def test_a_fault_of_another_kind_of_file(tmp_path):
    rubric = tmp_path / "rubric.yaml"
    text = (paths.ROOT / "courses" / "fairness" / "rubric.yaml").read_text(encoding="utf-8")
    rubric.write_text(text.replace("\nrerun:", "\nrerunn:"))
    assert rubric.read_text() != text
    assert bbrlab("check", str(rubric)).endswith("rerunn: unknown key; did you mean 'rerun'?")


def test_all_is_what_none_is():
    assert bbrlab("list", "all", "--json") == bbrlab("list", "--json")
    assert len(json.loads(bbrlab("forecast", "all", "--scale", "smoke", "--json"))) == len(figures_at("smoke"))


def test_a_file_of_kernels_of_ones_own_is_checked_as_that(tmp_path):
    mine = tmp_path / "mykernels.yaml"
    mine.write_text("kernels: {mine: {base: lab-6.12, options: {CONFIG_IPV6: y}}}\n")
    assert bbrlab("check", str(mine)) == f"{mine}: 1 kernel of your own\n"
    mine.write_text("kernels: {mine: {base: lab-6.12, patches: [my.patch]}}\n")
    assert bbrlab("check", str(mine)).startswith(f"{mine}: kernels.mine: {tmp_path / 'my.patch'}: does not exist")
    (tmp_path / "my.patch").write_text("no patch\n")
    assert bbrlab("check", str(mine)).startswith(f"{mine}: kernels.mine: {tmp_path / 'my.patch'}")
    mine.write_text("kernels: {mine: {base: lab-6}}\n")
    assert bbrlab("check", str(mine)).startswith(f"{mine}: kernels.mine.base: 'lab-6' is not in config/kernels.yaml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("guest.config", "gest.config", f"options: {paths.KERNELS / 'options' / 'gest.config'} does not exist"),
        ("[um, veth", "[umm, veth", "patches: kernels/patches/umm holds no .patch file"),
        ("net/ipv4: bbr", "net/ipv4: nope", "add: kernels/nope holds no source file"),
    ],
)
def test_kernels_that_cannot_be_built_are_refused(tmp_path, old, new, said):
    path = tmp_path / "kernels.yaml"
    path.write_text((paths.CONFIG / "kernels.yaml").read_text(encoding="utf-8").replace(old, new))
    assert bbrlab("check", str(path)) == f"{path}: kernels.lab-6.12: {said}"


def test_the_help_of_schema_names_every_kind():
    from bbrlab.cli.schemas import KINDS

    told = " ".join(CliRunner().invoke(app, ["schema", "--help"]).stdout.split())
    assert all(kind in told for kind in KINDS)


def test_a_path_or_a_group_is_given_once():
    with pytest.raises(UserError, match=r"^--set network\.rate_mbit is given twice; keep one$"):
        overrides_of(["network.rate_mbit=5", "network.rate_mbit=7"])
    with pytest.raises(UserError, match=r"^--sender-kernel 1=b: group 1 is given twice; keep one$"):
        _by_group(["1=a", "1=b"])
    with pytest.raises(UserError, match="give GROUP=NAME"):
        _by_group(["²=a"])


def test_bytes_that_are_no_text_are_refused_in_words():
    with pytest.raises(UserError, match="is no UTF-8 text"):
        overrides_of([b"figure=\xff".decode("utf-8", "surrogateescape")])


def test_one_core_is_no_cores(monkeypatch):
    monkeypatch.setattr(catalogue, "all_cores", lambda: 1)
    assert "minutes on 1 core, in all" in CliRunner().invoke(app, ["list", "tang"]).stdout


NO_EFFECT = [
    ("run {file} --out {out} --backend host --kernel lab-6.12", "--kernel lab-6.12: would have no effect with --backend host"),
    ("run {file} --out {out} --set trials=5", "--set trials: would have no effect: the command's own option"),
    ("run {file} --out {out} --set scales.full.trials=5", "--set scales.full.trials: would have no effect: scales are of campaigns"),
    ("sweep {file} --out {out} --seeds 2 --set trials=5", "--set trials: would have no effect"),
    ("crosscheck {file} --out {out} --set trials=5", "--set trials: would have no effect"),
    ("crosscheck {file} --out {out} --backend host --real-kernel lab-6.12", "--real-kernel lab-6.12: would have no effect"),
    ("play {file} --out {out} --set trials=5", "--set trials: would have no effect"),
    ("model ware {file} --set trials=5", "--set trials: would have no effect"),
    ("model ware {file} --set flows.0.rtt_ms=9", "the Ware model does not describe flows.0.rtt_ms"),
    ("model fluid {file} --seed 2", "--seed 2: would have no effect: no RTT of the scenario is a range"),
    ("model fluid {file} --set network.qdisc.kind=red --set network.qdisc.probability=0.5", "does not describe network.qdisc.probability"),
    ("model burst {file} --reading cut", "--reading cut: would have no effect: no flow is bbr2 or bbr3"),
    ("plot {run} --scale quick", "--scale quick: would have no effect: runs are of no scale"),
    ("plot {study} --scale quick", "--scale quick: would have no effect: a study is of no scale"),
    ("compare {run} {run} --cores 2", "--cores: is for the sides of a campaign"),
    ("forecast all tang", "all tang: all are all figures"),
    ("list tang all", "tang all: all are all figures"),
    ("verify all tagn", "all tagn: all are all figures"),
    ("ship tagn all", "tagn all: all are all figures"),
    ("artifact all tang", "all tang: all are all figures"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), NO_EFFECT, ids=[words for words, _ in NO_EFFECT])
def test_an_option_or_a_word_without_effect_is_refused(tmp_path, words, said):
    for name, file in (("run", "summary.json"), ("study", "runs.parquet")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
    path = tmp_path / "mine.yaml"
    text = SCENARIO.replace("bbr3", "bbr1").replace("hosts: {segmentation: nic}\n", "").replace(", start_s: 5", "")
    path.write_text(text)
    places = {name: tmp_path / name for name in ("run", "study", "out")} | {"file": path}
    done = CliRunner().invoke(app, [word.format(**places) for word in words.split()])
    assert isinstance(done.exception, UserError) and said in str(done.exception), done.exception
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("scale: quick ", "scale: quik ", "scale quik: no such scale; scales has smoke, quick, full"), ("figures: []", "figures: [tagn]", "figures: there is no figure or paper 'tagn', did you mean tang?"),
     ("figures: []", "kernel: lab-6.13", "kernel lab-6.13: no such kernel"), ("    seeds_cap: 6\n", "", "scales.quick: seeds_packets would have no effect without seeds_cap")],
)  # fmt: skip
def test_names_in_a_configuration_are_checked(tmp_path, old, new, said):
    file = tmp_path / "config.yaml"
    text = (paths.CONFIG / "config.yaml").read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    done = CliRunner().invoke(app, ["check", str(file)])
    assert isinstance(done.exception, UserError) and str(done.exception).startswith(f"{file}: {said}")


def test_a_rubrics_kernel_is_checked(tmp_path):
    file = tmp_path / "rubric.yaml"
    file.write_text((paths.ROOT / "courses/first-dumbbell/rubric.yaml").read_text() + "kernel: lab-6.13\n")
    done = CliRunner().invoke(app, ["check", str(file)])
    assert str(done.exception).startswith(f"{file}: kernel lab-6.13: no such kernel")


def test_what_has_no_effect_in_a_files_own_values_is_noted(tmp_path):
    """Its sweep may give it one, so that the file is right; `bbrlab run` runs the file's own values."""
    path = tmp_path / "mine.yaml"
    path.write_text(SCENARIO.replace("nic", "off, ecn: on") + "sweep: {network.qdisc.kind: [fifo, codel, fq_codel]}\n")
    done = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out"), "--kernel", "none"])
    assert "note: hosts.ecn on would have no effect: the queue marks no packets: it is fifo" in done.output


def test_points_ship_only_beside_what_ships():
    for words in ((), ("--replace",)):
        assert "--by-point: is of --add alone" in bbrlab("ship", "tang/fig2", "--by-point", *words)
