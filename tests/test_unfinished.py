"""Figures that are run part by part: runs wait beside what ships, and ship as if all had been run at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.tables import read_table
from bbrlab.campaign.collect import read_figure, table_of_rows
from bbrlab.campaign.figures import Figure, figures_at, runs_of
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.seeds import wanted_seeds
from bbrlab.cli.commands import app
from bbrlab.report.shipped import (
    left_out,
    named_left_out,
    read_manifest,
    shipped_figures,
    tampered,
    waiting_file,
    waiting_runs,
)
from bbrlab.run.run import run_point
from bbrlab.workflow.seen import look_at_all
from bbrlab.workflow.ship import Finished, pack
from bbrlab.workflow.ship_more import add, keep
from bbrlab.workflow.shipped_folder import read_shipped
from bbrlab.workflow.unfinished import (
    gather,
    read_waiting,
    wait_table,
    wanted_so_far,
)
from tests.test_ship_more import collect, contents

FIRST, SECOND = "tang/fig2", "bless2025/fig14"  # the second one with short flows, a run's optional table
ASKED_FOR_MORE = "tang/fig2"  # with a point that draws nothing, and one of which claims asked for more seeds
REAL = Path(__file__).parent.parent / "shipped"


def finished(results: Path, *figures: str) -> Finished:
    return Finished("smoke", figures_at("smoke", list(figures)), results)


@pytest.fixture(scope="module")
def second() -> Figure:
    (figure,) = figures_at("smoke", [SECOND])
    return figure


@pytest.fixture(scope="module")
def campaign(tmp_path_factory) -> Path:
    """Two figures, run by real guests."""
    results = tmp_path_factory.mktemp("campaign") / "results"
    for figure in figures_at("smoke", [FIRST, SECOND]):
        for run in runs_of(figure, results=results):
            run_point(run.point, run.seed, run.folder)
    collect(results, FIRST, SECOND)
    return results


@pytest.fixture
def halves(campaign, second, tmp_path) -> list[Path]:
    """The second figure's runs, in two folders: seed 1, seed 2; no table."""
    found = []
    for seed in (1, 2):
        for run in runs_of(second, results=campaign):
            if run.seed == seed:
                shutil.copytree(run.folder, tmp_path / f"half{seed}" / run.folder.relative_to(campaign))
        found.append(tmp_path / f"half{seed}")
    return found


@pytest.fixture(scope="module")
def packed_first(campaign, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("first") / "shipped"
    pack(finished(campaign, FIRST), out)
    return out


@pytest.fixture(scope="module")
def both(campaign, tmp_path_factory) -> Path:
    """Both ship, packed at once."""
    out = tmp_path_factory.mktemp("both") / "shipped"
    pack(finished(campaign, FIRST, SECOND), out)
    return out


@pytest.fixture
def first(packed_first, tmp_path) -> Path:
    """The first figure ships."""
    return shutil.copytree(packed_first, tmp_path / "shipped")


@pytest.mark.guest
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_part_by_part_is_what_the_whole_is(both, first, halves, order):
    """Whichever part came first; what waits is in no verdict and on no page."""
    before = contents(first)
    (kept,) = keep(finished(halves[order[0]], SECOND), first)
    assert (len(kept.seen), len(kept.missing), kept.most) == (1, 1, 2)
    assert kept.told == "1 of 2 runs wait, 1 missing"
    assert waiting_runs(first, "smoke") == {SECOND: 1}
    assert tampered(first, "smoke") == []
    assert shipped_figures(first, "smoke") == {FIRST} and SECOND in left_out(first, "smoke")
    assert named_left_out(first, "smoke", ["tang/fig3", SECOND]) == ["tang/fig3", f"{SECOND} (runs of it that wait: 1)"]
    changed = {name for name, content in contents(first).items() if before.get(name) != content}
    assert changed == {f"smoke/{waiting_file(SECOND)}", "smoke/manifest.json"}
    add(finished(halves[order[1]], SECOND), first)
    assert contents(first) == contents(both), "what waited waits no more"


@pytest.mark.guest
def test_all_of_it_may_wait(both, first, halves, tmp_path):
    for half in halves:
        (kept,) = keep(finished(half, SECOND), first)
    assert kept.told == "2 of 2 runs wait: all that it needs"
    add(finished(tmp_path, SECOND), first)
    assert contents(first) == contents(both)


@pytest.mark.guest
def test_what_waits_is_lost_by_nothing(campaign, first, halves):
    keep(finished(halves[0], SECOND), first)
    waits = (first / "smoke" / waiting_file(SECOND)).read_bytes()
    again = contents(first)
    keep(finished(halves[0], SECOND), first)
    assert contents(first) == again, "the same runs are the same bytes"
    add(finished(campaign, FIRST), first)
    assert (first / "smoke" / waiting_file(SECOND)).read_bytes() == waits
    with pytest.raises(UserError, match=rf"runs of {SECOND} wait there until it is finished \(1\): give --add"):
        pack(finished(campaign, FIRST), first)
    pack(finished(campaign, FIRST), first, replace=True)
    assert waiting_runs(first, "smoke") == {}


@pytest.mark.guest
def test_what_cannot_be_kept_or_joined(campaign, first, halves, second, tmp_path):
    with pytest.raises(UserError, match=f"{FIRST}: ships already at scale smoke"):
        keep(finished(campaign, FIRST), first)
    with pytest.raises(UserError, match=f"{SECOND}: has no run in"):
        keep(finished(tmp_path, SECOND), first)
    with pytest.raises(UserError, match="nothing ships at scale smoke"):
        keep(finished(halves[0], SECOND), tmp_path / "nowhere")
    with pytest.raises(UserError, match="there is no such folder of results"):
        keep(finished(tmp_path / "no", SECOND), first)
    before = contents(first)
    keep(finished(halves[0], SECOND), first)
    with pytest.raises(
        UserError, match=f"{SECOND}: 1 of 2 runs are not there.* seed 2; `bbrlab missing --scale smoke {SECOND}`"
    ):
        add(finished(halves[0], SECOND), first)
    run = runs_of(second, results=halves[0])[0]
    summary = files.read_json(run.folder / "summary.json")
    files.write_json(run.folder / "summary.json", summary | {"virtual_s": 1.0})
    with pytest.raises(UserError, match=f"{run.folder}: is not equal to the same run that waits in unfinished/"):
        add(finished(halves[0], SECOND), first)
    _, content = read_shipped(first, "smoke")
    changed = content[waiting_file(SECOND)].assign(point="other")
    with pytest.raises(UserError, match="its scenario has other points now than the runs that wait"):
        gather(second, changed, tmp_path)
    for run in runs_of(second, results=halves[1]):
        if run.folder.is_dir():
            manifest = files.read_json(run.folder / "manifest.json")
            guest = manifest["guest_code_sha256"] | {"traffic.py": "0"}
            files.write_json(run.folder / "manifest.json", manifest | {"guest_code_sha256": guest})
    with pytest.raises(UserError, match="its guest_code_sha256 is another one"):
        keep(finished(halves[1], SECOND), first)
    assert before.keys() | {f"smoke/{waiting_file(SECOND)}"} == contents(first).keys()


@pytest.mark.guest
def test_a_run_that_waits_is_as_it_was_seen(campaign, second, tmp_path):
    runs = runs_of(second, results=campaign)
    seen = look_at_all(runs)
    path = tmp_path / "waits.parquet"
    wait_table(seen).to_parquet(path)
    again = read_waiting(read_table(path), second, campaign)
    assert [one.run for one in again] == runs
    for mine, theirs in zip(again, seen, strict=True):
        assert (mine.checks, mine.tables, mine.summary_sha256, mine.commit) == (
            theirs.checks, theirs.tables, theirs.summary_sha256, theirs.commit,
        )  # fmt: skip
    table = table_of_rows([row for one in again for row in one.rows], runs)
    pd.testing.assert_frame_equal(table.assign(wall_s=0.0), read_figure(campaign / "smoke" / f"{SECOND}.parquet").assign(wall_s=0.0), check_dtype=False)  # fmt: skip


@pytest.mark.guest
def test_the_commands(campaign, first, halves, tmp_path):
    def bbrlab(*argv: object) -> str:
        done = CliRunner().invoke(app, [str(a) for a in argv], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    where = ["--scale", "smoke", "--out", first]
    files_ = bbrlab("missing", SECOND, *where, "--results", halves[0]).split()
    assert len(files_) == 1 and files_[0].endswith("seed-2/summary.json")
    assert bbrlab("keep", SECOND, *where, "--results", halves[0]).strip().endswith("1 of 2 runs wait, 1 missing")
    assert bbrlab("missing", SECOND, *where, "--results", tmp_path).split()[0].endswith("seed-2/summary.json")
    assert bbrlab("missing", SECOND, *where, "--results", halves[1]) == ""
    bbrlab("ship", "--add", SECOND, *where, "--results", halves[1])
    assert set(read_manifest(first, "smoke").figures) == {FIRST, SECOND}
    assert "ships at scale smoke: it needs no run" in bbrlab("missing", SECOND, *where, "--results", halves[1])


def test_seeds_are_those_of_the_rounds():
    """What shipped figures have, that were run whole; and of a part the first round that it lacks."""
    (figure,) = figures_at("full", [ASKED_FOR_MORE])
    table = read_figure(REAL / "full" / f"{ASKED_FOR_MORE}.parquet")
    has = table.groupby("point")["seed"].nunique().to_dict()
    assert wanted_so_far(figure, table) == has
    trials = {point.label: figure.trials_of(point) for point in figure.points}
    begun = table[table["seed"] <= table["point"].map(trials)]
    assert wanted_so_far(figure, begun[begun["seed"] > 1]) == trials
    assert wanted_so_far(figure, table.iloc[:0]) == trials
    first_look = wanted_seeds(figure, begun, claims_of(load_statements(known_good=True)))
    assert wanted_so_far(figure, begun) == first_look != trials
    assert sorted(has.values()) == [2, 6]
