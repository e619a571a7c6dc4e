"""Algorithms of one's own: built into the guest's kernel, run against the others, and what goes wrong with them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pexpect
import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.algorithms import own_sources
from bbrlab.base.errors import UserError
from bbrlab.experiment.plan import make_plan
from bbrlab.kernel import build
from bbrlab.kernel.build import build_kernel
from bbrlab.kernel.built import Kernel, describe_kernel, get_kernel
from bbrlab.kernel.key import build_key
from bbrlab.kernel.own import OwnCca, crash_message, own_of, place_of_crash, read_own
from bbrlab.kernel.own_build import _check_registered
from bbrlab.kernel.sources import Located
from bbrlab.kernel.specs import find_spec
from bbrlab.kernel.trees import prune
from bbrlab.results.figures import check_ccas, figures_at, own_of_figure
from bbrlab.run.compatibility import kernel_for
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point, load_scenario
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict, wait_for

AIMD = paths.KERNELS / "cca" / "aimd.c"
EXAMPLE = AIMD.read_text(encoding="utf-8")
BUILDS = pytest.mark.timeout(3000)  # where the kernel's tree is not there yet, it is built first


def line_of(text: str, words: str) -> int:
    return text[: text.index(words)].count("\n") + 1


def variant(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """The example under another name, changed."""
    text = EXAMPLE.replace("aimd", name)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / f"{name}.c"
    path.write_text(text, encoding="utf-8")
    return path


def point_of(*given: Path, **changes):
    return base_point(validate(scenario_dict(**changes), "s.yaml", sources=given))


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A copy of kernels/ and an empty build folder, to break."""
    shutil.copytree(paths.KERNELS, tmp_path / "kernels")
    monkeypatch.setattr(paths, "KERNELS", tmp_path / "kernels")
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "build"))
    return tmp_path / "kernels"


# Names and files: nothing is built for these.


def test_a_build_takes_the_cores_that_this_process_may_use(kernels, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(build, "locate", lambda source, **_: Located("a source", lambda folder, run: None))
    jobs: list[int] = []

    def compiled(name, spec, source, log, at_once, say):
        jobs.append(at_once)
        raise UserError("enough")

    monkeypatch.setattr(build, "compiled", compiled)
    with pytest.raises(UserError, match="^enough$"):
        build.build_kernel("mainline-6.12", say=lambda text: None)
    assert jobs == [1]


def test_a_file_in_the_folder_is_an_algorithm_of_scenarios(kernels):
    assert "aimd" in own_sources()
    shutil.copy(AIMD, kernels / "cca" / "tcp_mine.c")
    assert validate(scenario_dict(flows=[{"cca": "mine"}]), "s.yaml").flows[0].cca == "mine"
    assert [cca.name for cca in own_of(["mine", "cubic"], None)] == ["mine"], "what no flow has is not built in"
    (kernels / "cca" / "Notes.c").write_text("")
    assert own_of(["cubic", "bbr3"], None) == [], "what stands in the folder is nothing to a run without it"
    with pytest.raises(UserError, match=r"Notes\.c: an algorithm of one's own is one C file"):
        own_of(["mine"], None)
    (kernels / "cca" / "Notes.c").unlink()
    shutil.copy(AIMD, kernels / "cca" / "mine.c")
    with pytest.raises(UserError, match=r"tcp_mine\.c: .*mine\.c is 'mine', too"):
        own_sources()


def test_a_named_file_comes_before_one_of_the_folder(tmp_path):
    path = variant(tmp_path, "mine")
    scenario = validate(scenario_dict(flows=[{"cca": "mine"}]), "s.yaml", sources=(path,))
    assert base_point(scenario).scenario.flows[0].cca == "mine"
    own = shutil.copy(AIMD, tmp_path / "aimd.c")
    assert [cca.path for cca in own_of(["aimd"], None, [own])] == [own]


def test_an_algorithm_that_there_is_not(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(scenario_dict(flows=[{"cca": "cubik"}])))
    words = r"s\.yaml:\d+: flows\.0\.cca: there is no algorithm 'cubik', did you mean cubic\? .*aimd.*, by a file NAME\.c in"
    with pytest.raises(UserError, match=words):
        load_scenario(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.c", None, r"none\.c: is not there"),
        ("mine.txt", EXAMPLE, r"mine\.txt: .*is one C file called by its name"),
        ("Mine.c", EXAMPLE, r"Mine\.c: .*small letter"),
        ("a_name_that_is_too_long.c", EXAMPLE, r"at most 15"),
        ("mine.c", b"\x7fELF\xff", r"mine\.c: is not text"),
        ("mine.c", "int x;\n", r"mine\.c: has no 'struct tcp_congestion_ops'"),
        ("cubic.c", EXAMPLE, r"cubic\.c: the name 'cubic' is taken: kernel lab-6\.12 has"),
        ("bbr.c", EXAMPLE, r"bbr\.c: the name 'bbr' is taken"),  # what the kernel calls bbr1
    ],
)
def test_files_that_cannot_be_one(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=words) as caught:
        own_of([], None, [path])
    assert "\n" not in str(caught.value)


def test_the_host_has_no_kernel_to_build_into(tmp_path):
    with pytest.raises(UserError, match=r"mine\.c: --backend host runs this machine's own kernel"):
        kernel_for(None, "host", [read_own(variant(tmp_path, "mine"))])


def test_a_kernel_has_its_key_by_the_algorithms_in_it(kernels, tmp_path):
    """A file in kernels/cca/ that no run asks for changes nothing: the default kernel and its results stay."""
    _, spec = find_spec(None)
    key = build_key(spec, "source", "gcc")
    shutil.copy(AIMD, kernels / "cca" / "mine.c")
    assert build_key(spec, "source", "gcc") == key
    first, second = read_own(AIMD), read_own(variant(tmp_path, "aimd", ("500", "501")))
    keys = {key, *(build_key(spec, "source", "gcc", own) for own in ([first], [second], [first, second]))}
    assert len(keys) == 4


def test_a_manifest_says_which_source_a_kernel_has():
    plain = Kernel("k", "6", "b", "key", "image", {}, {}, "s", "c", 1.0)
    assert "own" not in describe_kernel(plain)
    assert describe_kernel(Kernel(**{**plain.__dict__, "own": {"mine": "00"}}))["own"] == {"mine": "00"}


def test_a_kernel_without_the_algorithm_says_how_to_have_it():
    with pytest.raises(
        UserError, match=r"this kernel has no aimd \(it has bbr1\); .*source \(docs/howto/own_algorithm\.md\)"
    ):
        make_plan(point_of(flows=[{"cca": "aimd"}]), 1, {"bbr1": "bbr"})


def test_a_figure_may_have_one(tmp_path, monkeypatch):
    """One kernel for all points of the figure, and none other for all other figures."""
    place = tmp_path / "scenarios" / "mine"
    place.mkdir(parents=True)
    content = scenario_dict(flows=[{"cca": "reno"}, {"cca": "reno"}])
    content |= {"name": "fig1", "paper": "mine", "cases": {"own": {"flows.0.cca": "aimd"}, "reno": {}}}
    (place / "fig1.yaml").write_text(yaml.safe_dump(content))
    shutil.copytree(paths.SCENARIOS / "tang", tmp_path / "scenarios" / "tang")
    monkeypatch.setattr(paths, "SCENARIOS", tmp_path / "scenarios")
    figures = figures_at("full")
    check_ccas(figures)
    assert {f.id for f in figures if own_of_figure(f)} == {"mine/fig1"}


# What the kernel said, in words of its own.


@pytest.mark.parametrize(
    ("found", "console", "words"),
    [
        (["reno"], "TCP: reno already registered or non-unique key\n", "registers the name 'reno', which is taken"),
        (["reno"], "TCP: mine does not implement required ops\n", "it needs ssthresh, undo_cwnd"),
        (["reno", "yours"], "", "registers 'yours' and not 'mine'"),
        (["reno"], "", r"registers no algorithm; call tcp_register_congestion_control\(\)"),
    ],
)
def test_what_is_not_there_after_the_start(found, console, words):
    own = OwnCca("mine", Path("my/mine.c"), "")
    with pytest.raises(UserError, match=rf"^my/mine\.c: .*{words}"):
        _check_registered(own, "lab", found, ["reno"], console)


def test_where_the_kernel_stopped(tmp_path):
    own = read_own(variant(tmp_path, "mine"))
    line = line_of(own.text, "static u32 mine_ssthresh")
    panic = "Kernel panic - not syncing: Kernel mode signal 8"
    trace = [panic, "Call Trace:", " [<60012345>] ? panic+0x1/0x2", " [<60054321>] mine_ssthresh.isra.0+0x1d/0x30"]
    assert place_of_crash(own, trace) == f"{own.path}:{line}: in mine_ssthresh(): {panic}"
    assert place_of_crash(own, trace[:3]) is None, "something else stopped it"
    assert place_of_crash(own, trace[1:]) is crash_message([own], trace[1:]) is None, "it did not stop"
    assert crash_message([own], trace[:3]) == f"{own.path}: the kernel with it stopped, and did not say where: {panic}"
    bug = ["BUG: failure at net/ipv4/tcp_mine.c:7/mine_ssthresh()!", "Kernel panic - not syncing: BUG!"]
    assert place_of_crash(own, bug).startswith(f"{own.path}:7: BUG: failure at mine.c:7")


def test_a_tree_keeps_what_it_was_built_from(tmp_path):
    for name in (
        "drivers/a/used.c",
        "drivers/above.h",
        "drivers/a/other.c",
        "drivers/a/Kconfig",
        "arch/x86/entry.S",
        "arch/arm/a.S",
        "net/b.c",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "drivers/a/.used.o.cmd").write_text(
        "deps_drivers/a/used.o := \\\n  drivers/a/used.c \\\n  drivers/a/../above.h \\\n"
    )
    prune(tmp_path)
    left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert left == {"drivers/a/used.c", "drivers/above.h", "drivers/a/.used.o.cmd", "drivers/a/Kconfig",
                    "arch/x86/entry.S", "net/b.c"}  # fmt: skip


@pytest.mark.compiles
def test_a_kernel_whose_patches_do_not_apply(kernels, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "locate", lambda *_, **__: Located("a source", lambda folder, run: None))  # with no file
    with pytest.raises(
        UserError, match=r"step 'patch um/0001' failed: .*this source has no .*the log is .*trees/lab-6\.12\.log"
    ):
        build_kernel(say=lambda text: None, own=[read_own(AIMD)])
    assert not [p for p in (tmp_path / "build").rglob("*") if p.is_file() and p.suffix not in {".log", ".lock"}]


# With a kernel.


def built_with(*files: Path) -> Kernel:
    return build_kernel(say=lambda text: None, own=own_of([], None, list(files)))


def working_below(folder: Path) -> list[int]:
    """Processes whose folder is in one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
    return found


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A build folder without a kernel, in whose source tree each build goes on that was ended as it compiled."""
    return tmp_path_factory.mktemp("build")


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize("has_view", [pytest.param(True, id="view"), pytest.param(False, id="plain")])
def test_sigterm_ends_a_play_whose_kernel_is_being_built(unpacked, tmp_path, monkeypatch, has_view):
    """At once, with every compiler, whether the play has a terminal or not."""
    scenario, out = tmp_path / "s.yaml", tmp_path / "out"
    monkeypatch.setenv("BBRLAB_BUILD", str(unpacked))
    scenario.write_text(yaml.safe_dump(scenario_dict(flows=[{"cca": "aimd"}])))
    argv = [
        sys.executable,
        "-m",
        "bbrlab.cli.main",
        "play",
        str(scenario),
        "--cca-source",
        str(AIMD),
        "--out",
        str(out),
    ]
    child = pexpect.spawn(
        argv[0], argv[1:] + ["--plain"] * (not has_view), cwd=str(paths.ROOT), dimensions=(40, 120), timeout=300
    )
    try:
        child.expect("its tree is built once")
        child.expect("configure +[0-9.]+ s")
        assert wait_for(lambda: len(working_below(unpacked)) > 2, 60), "compilers are at work"
        child.kill(signal.SIGTERM)
        child.expect(r"compile(: first)? was ended", timeout=20)
        assert wait_for(lambda: working_below(unpacked) == [], 5)
        child.expect(pexpect.EOF)
        assert child.before.endswith(b"bbrlab: interrupted; nothing half-done was kept\r\n")
        child.close()
        assert child.exitstatus == 130
    finally:
        child.close(force=True)
    assert left_behind() == [] and not out.exists()


@pytest.mark.slow
@pytest.mark.compiles
def test_compilers_end_with_who_was_killed(unpacked, monkeypatch):
    monkeypatch.setenv("BBRLAB_BUILD", str(unpacked))
    argv = [sys.executable, "-m", "bbrlab.cli.main", "kernel", "build", "--cca-source", str(AIMD)]
    child = pexpect.spawn(argv[0], argv[1:], cwd=str(paths.ROOT), timeout=300)
    try:
        child.expect("configure +[0-9.]+ s")
        assert wait_for(lambda: len(working_below(unpacked)) > 2, 60)
        child.kill(signal.SIGKILL)
        assert wait_for(lambda: working_below(unpacked) == [], 30)
    finally:
        child.close(force=True)


def left_behind() -> list[str]:
    return [p.name for place in ("kernels", "trees") for p in (paths.build_folder() / place).glob(".[bt]*-*")]


@pytest.mark.compiles
@pytest.mark.guest
@BUILDS
def test_the_kernel_with_the_example(run_scenario):
    built, plain = built_with(AIMD), get_kernel()
    assert built.name == "lab-6.12+aimd"
    assert built.ccas == {**plain.ccas, "aimd": "aimd"}
    assert built.parameters["aimd"] == ["keep_permille"]
    assert built.parameters["bbr3"] == plain.parameters["bbr3"]
    assert built.key != plain.key == build_key(find_spec(None)[1], plain.source, plain.compiler)
    assert built_with(AIMD) == built, "it is built once"
    assert left_behind() == []


@pytest.mark.compiles
@pytest.mark.guest
@BUILDS
def test_with_half_the_window_left_it_is_reno(run_scenario):
    """The same packets at the same nanoseconds: the example does nothing that Reno does not."""
    path = {"network__rtt_ms": 20, "network__buffer__bdp": 1}
    first, second = (run_scenario(flows=[{"cca": cca}, {"cca": "aimd"}], **path) for cca in ("reno", "aimd"))
    assert second.manifest["kernel"]["own"] == {"aimd": read_own(AIMD).sha256}
    assert first.summary["kernel"]["key"] == second.summary["kernel"]["key"]
    assert first.failed == second.failed == []
    assert first.samples.equals(second.samples)


def aimd_in_rounds(keep: float, loss: float, rounds: int, runs: int, seed: int) -> np.ndarray:
    """Packets that an AIMD flow sends in so many round trips, for each of so many runs; each packet is lost at random.

    A round sends a window. A loss in it cuts the window, and the round after it is one of recovery, without growth.
    """
    random = np.random.default_rng(seed)
    window, sent, recovers = np.full(runs, 10.0), np.zeros(runs), np.zeros(runs, dtype=bool)
    for _ in range(rounds):
        sent += window
        lost = (random.random(runs) < 1 - (1 - loss) ** window) & ~recovers
        window = np.where(lost, np.maximum(2, window * keep), window + ~recovers)
        recovers = lost
    return sent


@pytest.mark.compiles
@pytest.mark.guest
@BUILDS
def test_who_gives_up_less_gets_more(run_scenario):
    """Where packets are lost at random, each flow is alone: by how much 800 of 1000 is more than Reno's 500 follows from AIMD.

    The ratio of the two goodputs is to be that of AIMD in rounds, within four standard deviations of one run.
    """
    flows = [{"cca": "aimd", "params": {"keep_permille": 800}}, {"cca": "reno"}]
    result = run_scenario(flows=flows, network__rate_mbit=500, network__loss=0.001, duration_s=120, window_s=[20, 120])
    own, reno = (group["goodput_mbit"] for group in result.summary["groups"])
    assert result.failed == []
    assert own + reno < 250, "the queue, which would tie the flows to each other, stays empty"
    rounds = round(100 / 0.040)
    ratios = aimd_in_rounds(0.8, 0.001, rounds, 500, 1) / aimd_in_rounds(0.5, 0.001, rounds, 500, 2)
    assert abs(own / reno - ratios.mean()) < 4 * ratios.std()
    assert ratios.mean() - 4 * ratios.std() > 1, "Reno itself would fail"


@pytest.mark.compiles
@pytest.mark.guest
@BUILDS
def test_a_compilers_message_has_the_users_file_and_line(tmp_path):
    path = variant(tmp_path, "broken", ("return max_t", "return oops; max_t"))
    with pytest.raises(UserError) as caught:
        built_with(path)
    first, *rest = str(caught.value).splitlines()
    assert first == f"{path}: does not compile:"
    assert any(
        text.startswith(f"{path}:{line_of(path.read_text(), 'return oops')}:") and "error: " in text for text in rest
    )
    assert "oops" in str(caught.value)
    assert left_behind() == []


@pytest.mark.compiles
@pytest.mark.guest
@BUILDS
def test_a_file_that_the_kernels_source_has(tmp_path):
    with pytest.raises(UserError, match=r"vegas\.c: the kernel's source has net/ipv4/tcp_vegas\.c already"):
        built_with(variant(tmp_path, "vegas"))


OOPS = "*(volatile int *)0x10 = 1;"


@pytest.mark.compiles
@pytest.mark.guest
@BUILDS
@pytest.mark.slow
def test_an_oops_in_the_run_has_its_place(tmp_path):
    path = variant(tmp_path, "stops", ("u64 window", f"{OOPS} u64 window"))
    point = point_of(path, flows=[{"cca": "stops"}])
    with pytest.raises(UserError) as caught:
        run_point(point, 1, tmp_path / "out", sources=[path])
    line = line_of(path.read_text(), "static u32 stops_ssthresh")
    assert str(caught.value).startswith(f"{path}:{line}: in stops_ssthresh(): Kernel panic - not syncing: ")
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.compiles
@pytest.mark.guest
@BUILDS
def test_one_command(tmp_path):
    """``bbrlab run --cca-source FILE.c``: built, run, its parameter set."""
    path = shutil.copy(AIMD, tmp_path / "tcp_aimd.c")
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        yaml.safe_dump(scenario_dict(flows=[{"cca": "aimd", "params": {"keep_permille": 900}}, {"cca": "bbr3"}]))
    )
    argv = [
        sys.executable,
        "-m",
        "bbrlab.cli.main",
        "run",
        str(scenario),
        "--cca-source",
        str(path),
        "--out",
        str(tmp_path / "o"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=paths.ROOT)
    assert done.returncode == 0, done.stderr
    assert (
        json.loads((tmp_path / "o" / "manifest.json").read_text())["report"]["parameters"]["aimd"]["keep_permille"]
        == "900"
    )


@pytest.mark.guest
@pytest.mark.slow
@BUILDS
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("return tcp_register_congestion_control(&mine);", "return 0;"), r"registers no algorithm; call"),
        (('= "mine"', '= "reno"'), r"registers the name 'reno', which is taken"),
        (('= "mine"', '= "bbr3_06"'), r"registers the name 'bbr3_06', which is taken"),
        (('= "mine"', '= "yours"'), r"registers 'yours' and not 'mine'"),
        ((".undo_cwnd\t= tcp_reno_undo_cwnd,", ""), r"refuses 'mine': it needs ssthresh"),
        (("return tcp_register", f"{OOPS} return tcp_register"), r"\d+: in mine_register\(\): .*as it was started"),
        (("return tcp_register", "BUG(); return tcp_register"), r"\d+: BUG: failure at mine\.c:\d+.*as it was started"),
        (("return tcp_register", "nowhere(); return tcp_register"), r"(does not compile:(.|\n)*nowhere)"),
        (("static u32", "void nowhere(void);\nstatic u32"), None),
    ],
)  # fmt: skip
def test_sources_that_compile_and_are_no_algorithm(tmp_path, change, words):
    changes = [change]
    if words is None:  # declared, and nowhere defined
        changes.append(("return tcp_register", "nowhere(); return tcp_register"))
        words = r"does not link: undefined reference to .nowhere"
    path = variant(tmp_path, "mine", *changes)
    with pytest.raises(UserError, match=words) as caught:
        built_with(path)
    assert str(caught.value).startswith(str(path))
    assert left_behind() == []


# Kernel code that tries, as the kernel starts, what a process of the user may: by system calls of the host's. It needs no C library.
HOSTILE = r"""
static long host_call(long number, long a, long b, long c)
{
	long result;

	asm volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static int __init mine_tries(void)
{
	static const char new_file[] = "FOLDER/new", secret[] = "FOLDER/secret", folder[] = "FOLDER", system[] = "/etc/shadow";
	static const char program[] = "/bin/true", inside[] = "/proc/self/cwd/out/link", server[] = "\1\0FOLDER/socket";
	static const char *argv[] = {program, NULL};

	pr_info("tried write %ld\n", host_call(2, (long)new_file, 0x241, 0644));
	pr_info("tried folder %ld\n", host_call(83, (long)new_file, 0755, 0));
	pr_info("tried read %ld\n", host_call(2, (long)secret, 0, 0));
	pr_info("tried list %ld\n", host_call(2, (long)folder, 0x10000, 0));
	pr_info("tried shadow %ld\n", host_call(2, (long)system, 0, 0));
	pr_info("tried accounts %ld\n", host_call(2, (long)"/etc/passwd", 0, 0));
	pr_info("tried environment %ld\n", host_call(2, (long)"/proc/self/environ", 0, 0));
	pr_info("tried truncate %ld\n", host_call(76, (long)secret, 0, 0));
	pr_info("tried remove %ld\n", host_call(87, (long)secret, 0, 0));
	pr_info("tried rename %ld\n", host_call(82, (long)secret, (long)new_file, 0));
	pr_info("tried chmod %ld\n", host_call(90, (long)secret, 0777, 0));
	pr_info("tried link %ld\n", host_call(88, (long)secret, (long)inside, 0));
	pr_info("tried hard %ld\n", host_call(86, (long)secret, (long)inside, 0));
	pr_info("tried inet %ld\n", host_call(41, 2, 1, 0));
	pr_info("tried inet6 %ld\n", host_call(41, 10, 2, 0));
	pr_info("tried netlink %ld\n", host_call(41, 16, 3, 0));
	pr_info("tried packet %ld\n", host_call(41, 17, 3, 0));
	pr_info("tried connect %ld\n", host_call(42, host_call(41, 1, 1, 0), (long)server, 2 + sizeof("FOLDER/socket")));
	pr_info("tried exec %ld\n", host_call(59, (long)program, (long)argv, 0));
	pr_info("tried execat %ld\n", host_call(322, -100, (long)program, (long)argv));
	pr_info("tried trace %ld\n", host_call(101, 16, PID, 0));
	pr_info("tried seize %ld\n", host_call(101, 0x4206, PID, 0));
	pr_info("tried kill %ld\n", host_call(62, PID, 0, 0));
	pr_info("tried all %ld\n", host_call(62, -1, 0, 0));
	pr_info("tried ring %ld\n", host_call(425, 1, 0, 0));
	pr_info("tried memory %ld\n", host_call(310, PID, 0, 0));
	pr_info("tried bpf %ld\n", host_call(321, 0, 0, 0));
	pr_info("tried keys %ld\n", host_call(250, 0, -3, 0));
	pr_info("tried mount %ld\n", host_call(165, (long)folder, (long)folder, 0));
	pr_info("tried namespace %ld\n", host_call(272, 0x10000000, 0, 0));
	pr_info("tried clone %ld\n", host_call(56, 0x10000011, 0, 0));
	pr_info("tried shared %ld\n", host_call(29, 0, 4096, 01600));
	return 0;
}
late_initcall(mine_tries);
"""


@pytest.mark.compiles
@pytest.mark.guest
@pytest.mark.slow
@BUILDS
def test_kernel_code_of_others_reaches_nothing_of_the_users(tmp_path):
    """Neither as the new kernel is tried out nor in a run, which is right all the same. The filter alone: tests/kernel/test_confine.py."""
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret"
    secret.write_text("do-not-tell")
    text = HOSTILE.replace("FOLDER", str(outside)).replace("PID", str(os.getpid()))
    path = variant(tmp_path, "mine", ('MODULE_AUTHOR("bbrlab");', f'MODULE_AUTHOR("bbrlab");\n{text}'))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{os.open(outside, os.O_PATH)}/socket")  # its own path may be too long
        server.listen()
        kernel = built_with(path)
        summary = run_point(point_of(path, flows=[{"cca": "mine"}]), 1, tmp_path / "out", sources=[path])
    assert all(check["ok"] for check in summary["checks"])
    probe = paths.build_folder() / "kernels" / f"{kernel.name}.{kernel.key}.log"
    for log in (probe, tmp_path / "out" / "guest.log"):
        came_of = dict(re.findall(r"tried (\w+) (-?\d+)", log.read_text()))
        assert len(came_of) == HOSTILE.count("tried ")
        assert {name: said for name, said in came_of.items() if int(said) >= 0} == {}
    assert sorted(p.name for p in outside.iterdir()) == ["secret", "socket"]
    assert secret.read_text() == "do-not-tell" and secret.stat().st_mode & 0o777 == 0o644


@pytest.mark.compiles
@pytest.mark.guest
@BUILDS
def test_a_compilers_message_tells_nothing_of_other_files(tmp_path):
    (tmp_path / "secret").write_text("do-not-tell\n")
    path = variant(tmp_path, "leak", ("#include <net/tcp.h>", f'#include <net/tcp.h>\n#include "{tmp_path}/secret"'))
    with pytest.raises(UserError, match=r"leak\.c:\d+:\d+: fatal error: .*secret: Permission denied") as caught:
        built_with(path)
    assert "do-not-tell" not in str(caught.value)
    assert not [
        log for log in (paths.build_folder() / "kernels").glob("*leak*.log") if "do-not-tell" in log.read_text()
    ]
