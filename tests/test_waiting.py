"""Figures that are run part by part: runs wait beside what ships, and ship as if all had been run at once."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.tables import read_table
from bbrlab.campaign.collect import read_figure, table_of_rows
from bbrlab.campaign.figures import Figure, Run, figures_at, runs_of
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.seeds import wanted_seeds
from bbrlab.cli.commands import app
from bbrlab.report.shipped import (
    left_out,
    named_left_out,
    shipped_figures,
    tampered,
    waiting_file,
    waiting_runs,
)
from bbrlab.run.run import run_point
from bbrlab.workflow import waiting
from bbrlab.workflow.rejudge import rejudge
from bbrlab.workflow.seen import Seen, look_at_all
from bbrlab.workflow.ship import Finished, pack
from bbrlab.workflow.ship_more import add, forget, keep
from bbrlab.workflow.targets import asked_for
from bbrlab.workflow.waiting import Gathered, gather, read_waiting, wait_table, wanted_so_far
from tests.test_ship_more import collect, contents

FIRST, SECOND = "tang/fig2", "bless2025/fig14"  # the second one with short flows, a run's optional table
ASKED_FOR_MORE = "tang/fig2"  # with a point that draws nothing, and one of which claims asked for more seeds
REAL = Path(__file__).parent.parent / "shipped" / "full"


@pytest.fixture(scope="module")
def more() -> Figure:
    (figure,) = figures_at("full", [ASKED_FOR_MORE])
    return figure


@pytest.fixture(scope="module")
def seen(more) -> list[Seen]:
    """The runs of a figure that ships, as their folders would have them."""
    table, hashes = read_figure(REAL / f"{more.id}.parquet"), read_table(REAL / "runs.parquet")
    checks, manifest = read_table(REAL / "checks.parquet"), files.read_json(REAL / "manifest.json")
    (version,) = manifest["versions"]
    told = {"kernel": manifest["kernel"], "guest_code_sha256": version["guest_code_sha256"]}
    told |= {"packages": {"iperf3": "3"}, "source": {"commit": "c", "modified": False}}
    points, found = {p.label: p for p in more.points}, []
    fields = version["fields"]
    for (label, seed), rows in table.groupby(["point", "seed"]):
        of_run = hashes[(hashes["figure"] == more.id) & (hashes["point"] == label) & (hashes["seed"] == seed)].iloc[0]
        mine = checks[(checks["figure"] == more.id) & (checks["point"] == label) & (checks["seed"] == seed)]
        content: list[dict[str, Any]] = json.loads(rows.to_json(orient="records", double_precision=15))
        found.append(
            Seen(
                Run(more.id, points[label], int(seed), Path("nowhere")),
                [{"figure": more.id} | row for row in content],
                [{"name": c["check"], "measured": c["measured"], "ok": bool(c["ok"])} for c in mine.to_dict("records")],
                of_run["summary_sha256"],
                frozenset(fields),
                {"samples.parquet": of_run["samples_sha256"]},
                told,
            )
        )
    return sorted(found, key=lambda one: ([p.label for p in more.points].index(one.run.point.label), one.run.seed))


def wait(seen: list[Seen], *seeds: int) -> pd.DataFrame:
    return wait_table(one for one in seen if one.run.seed in seeds)


def test_all_that_is_there_waits_and_what_is_asked_is_packed(more, seen, tmp_path):
    """Runs of later rounds stay while one of the first is missing."""
    part = gather(more, wait(seen, 2, 3, 4, 5, 6), tmp_path)
    trials = {p.label: more.trials_of(p) for p in more.points}
    assert len(part.there) == len(seen) - 2 and len(part.asked) == sum(trials.values())
    assert {run.seed for run in part.missing} == {1} and len(part.missing) == 2
    assert "nothing asks for now; 2 missing" in part.told
    with pytest.raises(UserError, match=r"2 of 5 runs are not there.* seed 1; `bbrlab missing --scale full"):
        part.all_there("full")
    whole = gather(more, wait_table(seen), tmp_path)
    assert whole.seen == whole.there and not whole.missing and whole.told.endswith("8 runs wait: all that it needs")
    assert whole.all_there("full") is whole
    pd.testing.assert_frame_equal(whole.table(), gather(more, wait_table(seen[::-1]), tmp_path).table())
    assert wait_table(gather(more, wait_table(seen[::-1]), tmp_path).there).equals(wait_table(seen))


@pytest.mark.parametrize(
    ("field", "told"), [("build_id", None), ("key", "its kernel is not that of the runs that wait")]
)
def test_a_run_of_another_kernel_is_told_and_one_of_another_binary_is_not(
    more, seen, tmp_path, monkeypatch, field, told
):
    """With other patches for the host a kernel's binary is another one, its key is not."""
    kernel = seen[0].manifest["kernel"] | {field: "another"}
    mine = dataclasses.replace(seen[0], manifest=seen[0].manifest | {"kernel": kernel})
    monkeypatch.setattr(waiting, "look_at_all", lambda runs: [mine])
    with contextlib.nullcontext() if told is None else pytest.raises(UserError, match=told):
        assert len(gather(more, wait_table(seen[1:]), tmp_path).there) == len(seen)


def test_seeds_are_those_of_the_rounds(more):
    """What a shipped figure has that was run whole; and of a part the first round that it lacks."""
    table = read_figure(REAL / f"{more.id}.parquet")
    has = table.groupby("point")["seed"].nunique().to_dict()
    assert sorted(has.values()) == [2, 6]
    assert wanted_so_far(more, table) == has
    trials = {point.label: more.trials_of(point) for point in more.points}
    begun = table[table["seed"] <= table["point"].map(trials)]
    assert wanted_so_far(more, begun[begun["seed"] > 1]) == trials
    assert wanted_so_far(more, table.iloc[:0]) == trials
    first_look = wanted_seeds(more, begun, claims_of(load_statements(known_good=True)))
    assert wanted_so_far(more, begun) == first_look != trials


def edited(table: pd.DataFrame, part: str, change: Any) -> pd.DataFrame:
    """A waiting table with another first row of some part."""
    return table.assign(**{part: [json.dumps(change(json.loads(table[part].iloc[0]))), *table[part].iloc[1:]]})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.drop(columns="rows"), "has no column rows"),
        (lambda t: t.assign(rows="{"), "row 0: rows: .*is no JSON"),
        (lambda t: t.assign(rows="null"), "row 0: rows: .*valid list"),
        (lambda t: t.assign(seed=t["seed"].astype(str)), "row 0: seed: .*valid integer"),
        (lambda t: t.assign(seed=0), "row 0: seed: .*greater than or equal to 1"),
        (lambda t: t.assign(seed=t["seed"] + 1), "row 0: seed is not that of .* seed 2"),
        (lambda t: pd.concat([t, t]), "rows are there twice"),
        (lambda t: t.assign(point="other"), "the figure's scenario has other points now .* other"),
        (lambda t: edited(t, "manifest", lambda m: m | {"kernel": "mine"}), "row 0: manifest.kernel"),
        (lambda t: edited(t, "rows", lambda rows: [row | {"rate_mbit": 1.5} for row in rows]), "row 0: rate_mbit is not that of"),
        (lambda t: edited(t, "rows", lambda rows: [row | {"jain_index": "no"} for row in rows]), "column jain_index holds .* must hold numbers"),
        (lambda t: t.assign(rows=[json.dumps([{k: v for k, v in row.items() if k != "jain_index"} for row in json.loads(rows)]) for rows in t["rows"]]), "has no column jain_index"),
    ],
)  # fmt: skip
def test_a_table_that_was_edited_or_is_of_another_version(more, seen, tmp_path, change, told):
    with pytest.raises(UserError, match=told) as found:
        gather(more, change(wait_table(seen)), tmp_path)
    assert str(found.value).startswith(waiting_file(more.id))
    assert f"`bbrlab keep --forget {more.id}` drops the runs that wait" in str(found.value)


def test_failed_runs_are_named(more, seen, tmp_path):
    check = {"name": "rate", "measured": 1.0, "ok": False}
    failed = replace(seen[0], checks=[check])
    found = gather(more, wait_table([failed, *seen[1:]]), tmp_path).failed
    assert [(run.seed, checks) for run, checks in found] == [(seen[0].run.seed, ["rate"])]


def test_a_run_of_the_command_line_names_its_figure():
    known = ["tang/fig2", "bless2025/fig14"]
    assert asked_for(known, ["results/runs/tang/fig2/case=x,1.5/seed-2/summary.json"]) == ["tang/fig2"]
    assert asked_for(known, ["/a/runs/b/runs/bless2025/fig14/p/seed-2/summary.json"]) == ["bless2025/fig14"]
    assert asked_for(known, ["results/full/tang/fig2.csv"]) == ["tang/fig2"]


def test_the_file_of_a_figure(tmp_path):
    """A paper's name may have dots."""
    assert waiting_file("a.b/c") == "waiting/a.b.c.parquet"


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


def keep_of(results: Path, folder: Path, *figures: str) -> Gathered:
    (kept,) = keep(figures_at("smoke", list(figures or [SECOND])), "smoke", results, folder).figures
    return kept


@pytest.mark.guest
def test_part_by_part_is_what_the_whole_is(both, first, halves, tmp_path):
    """What waits is in no verdict and on no page, and waits as the same bytes whichever part came first."""
    shutil.copytree(first, tmp_path / "other")
    before = contents(first)
    kept = keep_of(halves[1], first)
    assert (len(kept.seen), len(kept.missing), kept.told) == (1, 1, "1 of 2 runs wait; 1 missing")
    assert waiting_runs(first, "smoke") == {SECOND: 1}
    assert tampered(first, "smoke") == []
    assert shipped_figures(first, "smoke") == {FIRST} and SECOND in left_out(first, "smoke")
    assert named_left_out(first, "smoke", ["tang/fig3", SECOND]) == ["tang/fig3", f"{SECOND}, of which 1 run waits"]
    changed = {name for name, content in contents(first).items() if before.get(name) != content}
    assert changed == {f"smoke/{waiting_file(SECOND)}", "smoke/manifest.json"}
    assert keep_of(halves[0], first).told == "2 of 2 runs wait: all that it needs"
    for half in halves:
        keep_of(half, tmp_path / "other")
    assert contents(first) == contents(tmp_path / "other")
    add(finished(tmp_path / "nowhere", SECOND), first)
    assert contents(first) == contents(both), "what waited waits no more"


@pytest.mark.guest
def test_the_commands(both, first, halves, tmp_path):
    """As the documentation has them, from a part to the whole figure."""

    def bbrlab(*argv: object, code: int = 0) -> tuple[str, str]:
        done = CliRunner().invoke(app, [str(a) for a in argv], catch_exceptions=False)
        assert done.exit_code == code, done.output
        return done.stdout, done.stderr

    where = [SECOND, "--scale", "smoke", "--out", first]
    out, told = bbrlab("missing", *where, "--results", halves[0])
    assert [file.split("/")[-2:] for file in out.split()] == [["seed-2", "summary.json"]]
    assert told == f"bbrlab: {SECOND}: 1 of 2 runs wait; 1 missing\n"
    killed = runs_of(figures_at("smoke", [SECOND])[0], results=halves[0])[1].folder
    killed.mkdir(parents=True)
    (killed / "summary.json").write_text("{}")
    assert bbrlab("missing", *where, "--results", halves[0])[0] == out, "a run without all its files is none"
    assert bbrlab("keep", *where, "--results", halves[0])[0] == f"{SECOND}: 1 of 2 runs wait; 1 missing\n"
    assert bbrlab("missing", *where, "--results", tmp_path)[0].split()[0].endswith("seed-2/summary.json")
    assert bbrlab("missing", *where, "--results", halves[1], code=1)[0] == "", "for && of a shell"
    bbrlab("ship", "--add", *where, "--results", halves[1])
    assert contents(first) == contents(both)
    out, told = bbrlab("missing", *where, "--results", halves[1], code=1)
    assert out == "" and "ships at scale smoke: it needs no run" in told


@pytest.mark.guest
def test_what_waits_is_lost_by_nothing_but_a_word(campaign, first, halves):
    keep_of(halves[0], first)
    waits = (first / "smoke" / waiting_file(SECOND)).read_bytes()
    again = contents(first)
    keep_of(halves[0], first)
    assert contents(first) == again, "the same runs are the same bytes"
    rejudge(first, "smoke")
    assert (first / "smoke" / waiting_file(SECOND)).read_bytes() == waits
    with pytest.raises(UserError, match=rf"runs of {SECOND} wait there until it is finished \(1\): give --add"):
        pack(finished(campaign, FIRST), first)
    with pytest.raises(UserError, match=f"no run of {FIRST} waits there"):
        forget([FIRST], first, "smoke")
    assert forget([FIRST, SECOND], first, "smoke") == {SECOND: 1}
    assert waiting_runs(first, "smoke") == {} and tampered(first, "smoke") == []


@pytest.mark.guest
def test_what_cannot_be_kept_or_joined(campaign, first, halves, second, tmp_path):
    with pytest.raises(UserError, match=f"{FIRST}: ships already at scale smoke; there is nothing to keep"):
        keep_of(campaign, first, FIRST)
    with pytest.raises(UserError, match=f"{SECOND}: has no run in"):
        keep_of(tmp_path, first)
    with pytest.raises(UserError, match="nothing ships at scale smoke"):
        keep_of(halves[0], tmp_path / "nowhere")
    with pytest.raises(UserError, match="there is no such folder of results"):
        keep_of(tmp_path / "no", first)
    kept = keep(figures_at("smoke", [FIRST, SECOND]), "smoke", halves[0], first)
    assert kept.left_out == {FIRST: "ships already"} and sum(kept.commits.values()) == 1
    with pytest.raises(UserError, match=f"{SECOND}: 1 of 2 runs are not there.* seed 2"):
        add(finished(halves[0], SECOND), first)
    run = runs_of(second, results=halves[0])[0]
    summary = files.read_json(run.folder / "summary.json")
    files.write_json(run.folder / "summary.json", summary | {"virtual_s": 1.0})
    with pytest.raises(UserError, match=f"{run.folder}: is not equal to the same run that waits in waiting/"):
        add(finished(halves[0], SECOND), first)
    run = runs_of(second, results=halves[1])[1]
    manifest = files.read_json(run.folder / "manifest.json")
    guest = manifest["guest_code_sha256"] | {"traffic.py": "0"}
    files.write_json(run.folder / "manifest.json", manifest | {"guest_code_sha256": guest})
    before = contents(first)
    with pytest.raises(UserError, match=f"{run.folder}: its guest_code_sha256 is not that of the runs that wait"):
        keep_of(halves[1], first)
    forget([SECOND], first, "smoke")
    with pytest.raises(UserError, match="have two versions of the guest's code"):
        keep_of(halves[1], first)
    assert contents(first).keys() == before.keys() - {f"smoke/{waiting_file(SECOND)}"}


@pytest.mark.guest
def test_a_damaged_file_is_told_with_what_to_do(first, halves, second):
    keep_of(halves[0], first)
    path = first / "smoke" / waiting_file(SECOND)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"is damaged .*; get these results anew"):
        named_left_out(first, "smoke", [SECOND])
    done = CliRunner().invoke(app, ["missing", SECOND, "--scale", "smoke", "--out", str(first)])
    assert isinstance(done.exception, UserError) and "is not the file that the manifest has the hash of" in str(
        done.exception
    )


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
        assert mine.rows == [row | {"wall_s": None} for row in theirs.rows]
    table = table_of_rows([row for one in again for row in one.rows])
    whole = read_figure(campaign / "smoke" / f"{SECOND}.parquet")
    pd.testing.assert_frame_equal(table.drop(columns="wall_s"), whole.drop(columns="wall_s"), check_dtype=True)
