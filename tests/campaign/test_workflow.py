"""The campaign as users run it: snakemake at scale smoke, twice, and after a kill."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.lock import hold_lock
from bbrlab.campaign.snakemake import lift_job_rate_limit
from bbrlab.campaign.targets import chosen_figures, targets_of
from bbrlab.claims.judge import ALL, OWN, SECOND_HAND
from bbrlab.claims.load import check_published, claims_of
from bbrlab.results.config import load_config
from bbrlab.results.figures import Figure, _scaled, check_ccas, figures_at, runs_of, scenario_files
from bbrlab.results.run_estimate import estimate_s
from bbrlab.results.verdicts import VERDICTS
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests.campaign.kills import content
from tests.conftest import CORES, processes_of, wait_for
from tests.made_up import all_statements

RESULTS = paths.results_folder()  # the session's own (conftest.py)
WORK = RESULTS / "work"  # what Snakemake keeps for itself is there, too

CAMPAIGN_S = 3600  # a whole one, on a machine that does other things, too
pytestmark = pytest.mark.timeout(2 * CAMPAIGN_S)


# Of the campaign that `make test` runs: two papers, so that there are pages of their own and pages of both.
FIGURES = ("tang/fig2", "sarpkaya2025/fig3c")


def command(*argv: str, figures: Sequence[str] = FIGURES) -> list[str]:
    """A campaign at scale smoke that touches nothing of the checkout."""
    WORK.mkdir(exist_ok=True)
    options = [a for a in argv if a.startswith("-")]
    targets = [a for a in argv if not a.startswith("-")]
    start = ["snakemake", "--snakefile", str(paths.ROOT / "Snakefile"), "--directory", str(WORK), "--cores", CORES]
    return [*start, *options, "--config", "scale=smoke", f"figures=[{','.join(figures)}]", "--", *targets]


def snakemake(*argv: str, figures: Sequence[str] = FIGURES, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*argv, figures=figures), capture_output=True, text=True, timeout=CAMPAIGN_S, **options
    )


@functools.cache
def every_figure() -> dict[str, list[Figure]]:
    """Every figure of each scale, read once."""
    return {scale: figures_at(scale) for scale in ("smoke", "quick", "full")}


def test_scales():
    sizes = {scale: {f.id: len(runs_of(f)) for f in figures} for scale, figures in every_figure().items()}
    assert set(sizes["full"]) == set(scenario_files())
    left_out = {f"sarpkaya2025/{name}" for name in ("fig4_occupancy", "fig6_occupancy")}
    left_out |= {"scherrer2022/red", "bless2025/fig8_gro"}
    left_out |= {f"cao2019/{name}" for name in ("fig5_default_memory", "fig6_10mb", "fig8_cycle")}
    left_out |= {
        f"questions/{name}" for name in ("adoption", "kernel_age", "map_buffer_flows", "map_rate_rtt", "phase_flows")
    }
    left_out |= {f"questions/readings_{what}" for what in ("shares", "loss", "queue", "50mbit")}
    assert set(sizes["quick"]) == set(sizes["full"]) - left_out, (
        "nothing is published, the figure is there without, or it is judged as a whole grid only"
    )
    assert {id.split("/")[0] for id in sizes["smoke"]} == {id.split("/")[0] for id in sizes["full"]}, "every paper"
    panels = [f"sarpkaya2025/fig{n}{p}" for n in (2, 3, 5) for p in "abc"]
    assert sum(sizes["full"][p] for p in panels) == 1134
    with pytest.raises(UserError, match="scale tiny"):
        figures_at("tiny")


def test_a_figure_by_its_name_alone_is_that_of_every_paper():
    assert [f.id for f in figures_at("full", ["fig2"])] == ["tang/fig2", "zeynali2024/fig2"]
    assert [f.id for f in figures_at("full", ["sarpkaya2025/fig2a"])] == ["sarpkaya2025/fig2a"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sarpkaya", "'sarpkaya', did you mean sarpkaya2025? (there are bless2025, cao2019, "),
        ("tang/fg2", "'tang/fg2', did you mean tang/fig2? (there are tang/fig2, tang/fig3, "),
        ("elsewhere", "'elsewhere' (there are bless2025, "),
        ("scenarios/tang/fig2.yaml", "', a figure is named without folder and ending: tang/fig2"),
        (
            "mine.yaml",
            "'mine.yaml'; a file of your own is looked at by bbrlab check, and run by bbrlab run and bbrlab sweep",
        ),
    ],
)
def test_a_figure_that_there_is_not(name, said):
    """Close names, and no list of all figures."""
    with pytest.raises(UserError, match=re.escape(said)) as error:
        figures_at("full", [name])
    assert len(str(error.value)) < 250


def test_a_figure_that_a_scale_leaves_out():
    with pytest.raises(UserError, match="fig8_gro is not part of scale quick"):
        figures_at("quick", ["fig8_gro"])
    with pytest.raises(UserError, match="fig8 is not part of scale smoke"):
        figures_at("smoke", ["bless2025/fig8"])


def test_a_kernel_without_a_cca():
    figures = figures_at("smoke", ["sarpkaya2025/fig5a"])
    check_ccas(figures)
    with pytest.raises(UserError, match=r"fig5a\.yaml:\d+: kernel mainline-6.12 has no bbr3 \(it has bbr1, cubic"):
        check_ccas(figures, "mainline-6.12")
    with pytest.raises(UserError, match="no such kernel"):
        check_ccas(figures, "linux-99")


@pytest.mark.parametrize(
    "given", ["flows: [{cca: bbr3}]", "cases: {one: {}, other: {flows.0.cca: bbr3}}", "sweep: {flows.0.cca: [cubic, bbr3]}"]
)  # fmt: skip
def test_a_kernel_without_a_cca_is_told_with_the_line_of_a_flow(given, tmp_path, monkeypatch):
    """And not with that of a comment or a name."""
    monkeypatch.setattr(paths, "SCENARIOS", tmp_path)
    flows = [] if given.startswith("flows") else ["flows: [{cca: cubic}]"]
    network = "network: {rate_mbit: 10, rtt_ms: 40, buffer: {bdp: 1}}"
    lines = ["# bbr3 alone", "name: bbr3", "paper: mine", network, "duration_s: 9", "window_s: [1, 9]", *flows, given]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bbr3.yaml").write_text("\n".join(lines))
    with pytest.raises(UserError, match=rf"mine/bbr3\.yaml:{len(lines)}: kernel mainline-6.12 has no bbr3"):
        check_ccas(figures_at("full", ["mine/bbr3"]), "mainline-6.12")


def test_a_published_value_without_source(tmp_path, monkeypatch):
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "fig1.csv").write_text("a,source\n1,Fig. 1\n2,\n")
    monkeypatch.setattr(paths, "DATA", tmp_path)
    with pytest.raises(UserError, match=r"fig1\.csv:3: this published value has no source"):
        check_published()


def test_what_a_scale_changes(tmp_path):
    """Each field of a scenario's ``scales`` reaches the figure; what it names must be there."""
    content = {
        "name": "f", "paper": "p", "network": {"rate_mbit": 10, "rtt_ms": 40, "buffer": {"bdp": 1}}, "flows": [{"cca": "bbr1"}],
        "duration_s": 100, "window_s": [50, 100], "trials": 5, "cases": {"a": {}, "b": {"flows.0.cca": "reno"}},
        "sweep": {"network.buffer.bdp": [1, 2, 3]},
    }  # fmt: skip
    config = load_config()
    quick = config.scales["quick"].model_copy(update={"trials": 3})  # whatever the file says
    config = config.model_copy(update={"scales": config.scales | {"quick": quick}})

    def scaled(**override):
        path = tmp_path / "f.yaml"
        path.write_text(yaml.safe_dump(content | {"scales": {"quick": override}}))
        return _scaled("p/f", path, "quick", config)

    assert scaled(skip=True) is None
    assert scaled().trials == 3, "config.yaml's limit"
    assert scaled(trials=4).trials == 4
    assert len(scaled().points) == 6
    assert [p.values["case"] for p in scaled(cases=["b"]).points] == ["b"] * 3
    assert [p.values["network.buffer.bdp"] for p in scaled(cases=["a"], sweep={"network.buffer.bdp": [2]}).points] == [
        2
    ]
    short = scaled(duration_s=20, window_s=[10, 20]).points[0].scenario
    assert (short.duration_s, short.window_s) == (20, [10, 20])
    with pytest.raises(UserError, match="scales.quick.cases: 'c' is not"):
        scaled(cases=["c"])
    with pytest.raises(UserError, match="scales.quick.sweep: 'flows.0.count' is not"):
        scaled(sweep={"flows.0.count": [1]})


def test_targets():
    targets = targets_of(["a/fig1", "a/fig2", "b/fig1"])
    assert targets.pop("fig1") == ["a/fig1", "b/fig1"], "a figure's name alone is that of every paper"
    assert targets.pop("a") == ["a/fig1", "a/fig2"]
    assert targets == {"b": ["b/fig1"], "fig2": ["a/fig2"], **{id: [id] for id in ("a/fig1", "a/fig2", "b/fig1")}}
    assert chosen_figures(["a/fig1", "b/fig1"], ["b/fig1"]) == ["b/fig1"]
    assert chosen_figures(["a/fig1", "b/fig1"], ["--cores", "2", "b"]) == ["b/fig1"]
    assert chosen_figures(["a/fig1", "b/fig1"], ["all"]) == ["a/fig1", "b/fig1"]
    assert chosen_figures(["a/fig1", "b/fig1"], ["results/full/b/fig1.claims.parquet"]) == ["b/fig1"]
    assert chosen_figures(["a/fig1", "b/fig1"], ["results/full/a.ipynb"]) == ["a/fig1"]
    assert chosen_figures(["a/fig1", "b/fig1"], ["results/full/overview.ipynb"]) == ["a/fig1", "b/fig1"]


def test_a_point_has_one_folder_at_every_scale():
    """What quick has run, full does not run again."""
    folders = {scale: {r.folder for f in figures for r in runs_of(f)} for scale, figures in every_figure().items()}
    shared = {f.relative_to(RESULTS / "runs").parts[1] for f in folders["quick"] & folders["full"]}
    assert {"fig2a", "fig5c", "fig8", "table2"} <= shared
    same = {f.relative_to(RESULTS / "runs").parts[0] for f in folders["smoke"] & folders["full"]}
    assert same <= {"scherrer2022"}, "the others are shorter at smoke"


def test_one_campaign_at_a_time(tmp_path):
    script = "from bbrlab.campaign.lock import hold_lock; from pathlib import Path; hold_lock(Path({!r})); print('held', flush=True); input()"
    first = subprocess.Popen(
        [sys.executable, "-c", script.format(str(tmp_path))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout and first.stdout.readline() == "held\n"
    with pytest.raises(UserError, match="another campaign"):
        hold_lock(tmp_path)
    first.kill()
    first.communicate()
    hold_lock(tmp_path)  # the lock went with its owner


def test_a_part_of_the_campaign():
    done = snakemake("-n", "fig2c", figures=())
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "fig2a" not in said
    assert re.search(r"sarpkaya2025/fig2c +4 +2 +8 ", said), "the plan: figure, points, seeds, runs"
    assert re.search(
        r"8 of 8 runs \(8 minutes of testbed time\): about \d+ s on (1 of )?the \d+ cores? of this machine, \d+ s on 16, \d+ MB of disk",
        said,
    )


@pytest.fixture(scope="module")
def campaign_done():
    done = snakemake("all")
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.guest
def test_a_smoke_campaign_of_two_papers(campaign_done):
    is_whole(RESULTS, set(FIGURES))


@pytest.mark.guest
@pytest.mark.slow
def test_the_smoke_campaign_of_every_paper(tmp_path):
    done = snakemake("all", figures=(), env=os.environ | {"BBRLAB_RESULTS": str(tmp_path)})
    assert done.returncode == 0, done.stderr[-3000:]
    is_whole(tmp_path, {f.id for f in figures_at("smoke")})


def is_whole(results: Path, figures: set[str]) -> None:
    """Every run is good, every statement counted, every page has its pictures."""
    card = json.loads((results / "smoke" / "scorecard.json").read_text())
    assert {f["figure"] for f in card["figures"]} == figures
    assert all(f["runs_failed"] == 0 for f in card["figures"])
    statements = all_statements()
    counted = {kind: [card[kind][row] for row in (ALL, SECOND_HAND, OWN)] for kind in ("statements", "claims")}
    assert sum(sum(row.values()) for row in counted["statements"]) == len(statements)
    assert sum(row[v] for row in counted["claims"] for v in VERDICTS) == len(claims_of(statements))
    for paper in {id.split("/")[0] for id in figures} | {"overview"}:
        assert '"image/png"' in (results / "smoke" / f"{paper}.ipynb").read_text(), paper
        drawn = sorted(p.name for p in (results / "smoke" / "figures" / paper).iterdir() if p.name[0] != ".")
        assert drawn and len(drawn) == 2 * len({n.removesuffix(".png").removesuffix(".pdf") for n in drawn}), paper
    points = pd.read_parquet(results / "smoke" / "points.parquet")
    assert set(points["figure"]) == figures
    assert not points.duplicated(["figure", "point", "group", "metric"]).any()
    assert (points["ci95_low"].isna() | (points["ci95_low"] <= points["mean"])).all()
    assert len(pd.read_csv(results / "smoke" / "points.csv")) == len(points)
    page = (results / "smoke" / "sarpkaya2025.ipynb").read_text()
    assert "At a glance" in page
    models = (results / "smoke" / "models.ipynb").read_text()
    assert "The published fluid curve, taken apart" in models
    assert "0.6758" in models
    assert {p.name for p in (results / "models").glob("*/*/*/*.parquet")} == {
        "9s.parquet",
        "own.parquet",
        "burst.parquet",
    }
    table = (results / "smoke" / "sarpkaya2025" / "fig3c.csv").read_text().splitlines()
    assert len(table) == 1 + 1 * 2 * 2  # points x seeds x groups


@pytest.mark.guest
def test_nothing_is_made_twice_but_the_page_of_what_another_engine_measured(campaign_done):
    """After `make ns3` the next campaign renders Tang's page again, and nothing else."""

    def planned(*targets: str) -> set[tuple[str, str]]:
        done = snakemake("-n", *targets)
        assert done.returncode == 0, done.stderr
        return set(re.findall(r"^(\w+) +(\d+)$", done.stdout + done.stderr, re.MULTILINE))

    table = RESULTS / "smoke" / "ns3" / "tang.parquet"
    table.parent.mkdir()
    table.touch()
    try:
        assert planned("all") == {("notebook", "1"), ("site", "1"), ("all", "1"), ("total", "3")}
        assert planned(str(RESULTS / "smoke" / "tang.ipynb")) == {("notebook", "1"), ("total", "1")}
    finally:
        table.unlink()
    again = snakemake("all")
    assert again.returncode == 0
    assert "Nothing to be done" in again.stderr + again.stdout


@pytest.mark.guest
def test_a_killed_campaign_goes_on_where_it_stopped(campaign_done, tmp_path):
    """Of one figure: pages know nothing of runs that were cut short."""
    figure = "sarpkaya2025/fig3c"
    every = sorted((RESULTS / "runs" / figure).glob("*/seed-*/summary.json"))
    assert len(every) == 2
    chosen = every[:1]
    before = {path: content(path.parent) for path in chosen}
    for path in chosen:
        path.unlink()
    shutil.rmtree(RESULTS / "smoke")  # or nobody would miss them
    others = {p: p.stat().st_mtime_ns for p in RESULTS.glob("runs/*/*/*/*/summary.json")}
    process = subprocess.Popen(
        command(figure), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    guests = str(tmp_path / "bbrlab-")  # where they work
    assert wait_for(lambda: bool(processes_of(guests)), 300), "no guest was started"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_for(lambda: not processes_of(guests)), "guests survive their campaign"
    done = snakemake(figure)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {path: content(path.parent) for path in chosen} == before, "byte for byte"
    assert {p: p.stat().st_mtime_ns for p in others} == others


@pytest.mark.parametrize(
    ("limit", "remote", "lifted"),
    [((100, 1), False, True), ((7, 1), False, False), ((100, 60), False, False), ((100, 1), True, False)],
)
def test_rate_limit_is_lifted_unless_chosen(limit, remote, lifted):
    jobs, timespan = limit
    workflow = SimpleNamespace(
        scheduler=SimpleNamespace(job_rate_limiter=object()),
        scheduling_settings=SimpleNamespace(max_jobs_per_timespan=SimpleNamespace(max_jobs=jobs, timespan=timespan)),
        remote_exec=remote,
    )
    lift_job_rate_limit(workflow)
    assert (workflow.scheduler.job_rate_limiter is None) == lifted


def test_the_rate_limit_of_this_snakemake_is_lifted(tmp_path):
    """Should a later one keep it elsewhere, this fails, and campaigns take a quarter longer (docs/reference/benchmarks.md)."""
    (tmp_path / "Snakefile").write_text(
        "from bbrlab.campaign.snakemake import lift_job_rate_limit\n"
        "onstart:\n"
        "    before = workflow.scheduler.job_rate_limiter\n"
        "    lift_job_rate_limit(workflow)\n"
        "    print('limits:', before is None, workflow.scheduler.job_rate_limiter is None)\n"
        "rule one:\n    output: 'one'\n    shell: 'touch {output}'\n"
    )
    done = subprocess.run(["snakemake", "--cores", "1"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "limits: False True" in done.stdout + done.stderr


def cost_s(file: str, **changes: object) -> float:
    """The estimate of a scenario's base point with some fields changed."""
    content = yaml.safe_load((paths.ROOT / "scenarios" / file).read_text(encoding="utf-8"))
    for name, value in changes.items():
        *outer, last = name.split("__")
        place = content
        for key in outer:
            place = place[key]
        place[last] = value
    return estimate_s(base_point(validate(content, file)))


@pytest.mark.parametrize(
    ("file", "changes", "cpu_s"),
    [
        ("bless2025/fig14.yaml", {"duration_s": 150, "window_s": [0, 150]}, 96.5),
        ("bless2025/fig14.yaml", {"duration_s": 20, "window_s": [0, 20]}, 15.2),
        ("bless2025/fig8.yaml", {"network__rate_mbit": 10_000, "duration_s": 6, "window_s": [1, 6]}, 16.0),
        ("cao2019/fig5.yaml", {"network__rate_mbit": 500}, 8.6),
        ("cao2019/fig5.yaml", {}, 2.4),
    ],
)
def test_the_dearest_runs_cost_what_is_estimated(file, changes, cpu_s):
    """CPU that was measured (docs/reference/benchmarks.md), and the job around it."""
    assert cost_s(file, **changes) == pytest.approx(cpu_s + 0.8, rel=0.15)


def test_packets_that_go_alone_cost_more():
    slow, fast = (cost_s("cao2019/fig5.yaml", network__rate_mbit=rate) for rate in (10, 1000))
    fixed = cost_s("cao2019/fig5.yaml", network__rate_mbit=0.001)
    assert (fast - fixed) / 100 < 0.6 * (slow - fixed)
