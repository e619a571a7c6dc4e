"""bbrlab compare: which points and verdicts move between two campaigns."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.claims.judge import judge_all
from bbrlab.cli.commands import app
from bbrlab.comparison.compare import MOVED, NOT_COMPARED, OPEN, SAME, compare_points, compare_verdicts, only_in
from bbrlab.results.figures import figures_at
from bbrlab.results.tables import write_table
from bbrlab.scenario.load import load_scenario, points_of
from bbrlab_apps.study import campaign_source
from studies.kernel_age import difference_table, kernel_age, kernel_differences
from tests.made_up import GOOD, only_claim
from tests.made_up import table as table_of

FIGURE = "sarpkaya2025/fig2a"
NOISE = (0.0, 0.01, -0.01, 0.005)


def share(shift: float = 0.0, only: int | None = None):
    """A made-up share of N flows at each point and seed; points of N = ``only`` (None: all) are shifted."""

    def value(point, seed: int) -> float:
        count = point.values["flows.0.count"]
        moved = shift if only in (None, count) else 0.0
        return 0.4 + 0.01 * count + NOISE[seed % len(NOISE)] + moved

    return value


@pytest.fixture(scope="module")
def figure():
    (found,) = figures_at("quick", [FIGURE])
    return found


def tables(figure, value, **columns):
    return {FIGURE: table_of(figure, value).assign(**{"cca": "bbr1", "kernel_key": "k"} | columns)}


def outcomes(found: pd.DataFrame) -> dict[str, int]:
    return found["outcome"].value_counts().to_dict()


def test_equal_numbers_are_the_same(figure):
    found = compare_points(tables(figure, share()), tables(figure, share()), ["share_of_capacity"])
    assert set(outcomes(found)) == {SAME}
    assert (found["difference"] == 0).all()


def test_what_is_shifted_moves_and_nothing_else(figure):
    """Welch's interval holds the shift; what has other noise only is left open."""
    other = tables(figure, lambda point, seed: share(0.2, only=4)(point, seed + 1))
    found = compare_points(tables(figure, share()), other, ["share_of_capacity"])
    mine = found[found["group"] == 0]
    moved = mine["point"].str.contains("flows.0.count=4")
    assert set(mine.loc[moved, "outcome"]) == {MOVED}
    assert set(mine.loc[~moved, "outcome"]) == {OPEN}
    assert (mine.loc[moved, "low"] < 0.2).all() and (mine.loc[moved, "high"] > 0.15).all()
    assert (mine["low"] <= mine["difference"]).all() and (mine["difference"] <= mine["high"]).all()


def test_one_seed_tells_nothing_and_no_good_run_even_less(figure):
    a, b = tables(figure, share()), tables(figure, share(0.2))
    one = {FIGURE: b[FIGURE][b[FIGURE]["seed"] == 1]}
    assert set(outcomes(compare_points(a, one, ["share_of_capacity"]))) == {OPEN}
    none = {FIGURE: b[FIGURE].assign(ok=False)}
    for two in ((a, none), (none, a), (none, none)):
        found = compare_points(*two, ["share_of_capacity"])
        assert len(found) == len(compare_points(a, b, ["share_of_capacity"]))
        assert set(outcomes(found)) == {NOT_COMPARED}


def test_a_point_whose_runs_all_failed_on_one_side_is_not_left_out(figure):
    a, b = tables(figure, share()), tables(figure, share())
    failed = b[FIGURE]["point"].str.contains("flows.0.count=4")
    found = compare_points(a, {FIGURE: b[FIGURE].assign(ok=~failed)}, ["share_of_capacity"])
    lost = found[found["outcome"] == NOT_COMPARED]
    assert set(found["outcome"]) == {SAME, NOT_COMPARED}
    assert len(lost) and lost["point"].str.contains("flows.0.count=4").all()
    assert (lost["a_seeds"] == 3).all() and (lost["b_seeds"] == 0).all()
    assert lost["b_mean"].isna().all() and lost["difference"].isna().all()


def flat(figure, seeds: int, **columns: object) -> dict[str, pd.DataFrame]:
    """Every number is the same at all points, with each of so many seeds; runs differ in their drops, unless ``columns`` say otherwise."""
    table = table_of(figure, lambda point, seed: 0.5, seeds)
    return {FIGURE: table.assign(cca="bbr1", kernel_key="k").assign(**columns)}


@pytest.mark.parametrize(
    ("seeds", "p"), [((2, 2), 0.5), ((3, 3), 0.25), ((5, 8), 0.0625), ((6, 6), 0.03125), ((9, 6), 0.03125)]
)
def test_equal_numbers_of_runs_that_differ_are_judged_by_a_sign_test(figure, seeds, p):
    """As a claim's are: six equal seeds are needed, of the side that has fewer."""
    a, b = flat(figure, seeds[0]), flat(figure, seeds[1], share_of_capacity=0.6)
    found = compare_points(a, b, ["share_of_capacity"])
    assert found["p"].tolist() == [pytest.approx(p)] * len(found)
    assert set(outcomes(found)) == {MOVED if p <= 0.05 else OPEN}
    assert found["low"].isna().all(), "no variance, no interval"


def test_numbers_without_chance_move_by_what_they_are(figure):
    """Where every seed measured the same in every column, on both sides; else the other side's seeds decide."""
    a, b = flat(figure, 2, drops=0.0), flat(figure, 2, drops=0.0, share_of_capacity=0.6)
    found = compare_points(a, b, ["share_of_capacity"])
    assert set(outcomes(found)) == {MOVED}
    assert found["low"].tolist() == found["difference"].tolist() and set(found["p"]) == {0.0}
    for seeds, outcome in ((5, OPEN), (6, MOVED)):
        chance = flat(figure, seeds, share_of_capacity=0.6)
        for two in ((a, chance), (chance, a)):
            assert set(outcomes(compare_points(*two, ["share_of_capacity"]))) == {outcome}


def test_one_side_that_does_not_scatter_by_chance_is_no_proof(figure):
    """Welch's t would take its mean for known."""
    a = flat(figure, 3)
    b = tables(figure, lambda point, seed: 0.6 + 1e-6 * seed)
    found = compare_points(a, b, ["share_of_capacity"])
    assert set(found["p"]) == {0.25} and set(outcomes(found)) == {OPEN}
    assert (found["low"] > 0).all(), "Welch's interval"
    still = flat(figure, 3, drops=0.0)
    assert set(outcomes(compare_points(still, b, ["share_of_capacity"]))) == {MOVED}


@pytest.mark.slow
def test_of_seeds_of_one_point_hardly_any_move():
    """Two halves of the seeds that a point has: nothing differs, so that at most one set of comparisons in twenty may say that
    something does. Real runs, of which many numbers are equal in both seeds of a half."""
    tables = {}
    for path in sorted((paths.ROOT / "shipped" / "full").glob("sarpkaya2025/*.parquet")):
        if "." in path.stem:  # curves
            continue
        table = pd.read_parquet(path)
        four = table.groupby("point")["seed"].transform("nunique") >= 4
        if four.any():
            tables[f"{path.parent.name}/{path.stem}"] = table[four & table["ok"] & (table["seed"] <= 4)]
    metrics = ["loss", "queue_ms_p95", "occupancy_p95"]
    equal = said = 0
    for first in ((1, 2), (1, 3), (1, 4)):
        halves = [{id: t[t["seed"].isin(first) == side] for id, t in tables.items()} for side in (True, False)]
        found = compare_points(*halves, metrics)
        equal += int((found["a_half"].isna() & found["b_half"].isna() & (found["difference"].abs() > 0)).sum())
        said += bool((found["outcome"] == MOVED).any())
    assert equal > 10, "numbers without spread that differ"
    assert said == 0


def test_points_are_the_same_whatever_their_fingerprints(figure):
    """Another algorithm in the same place, or another version of a scenario, changes a point's fingerprint and not its name."""
    b = tables(figure, share())
    other = b[FIGURE].assign(point=b[FIGURE]["point"].str.rpartition(",")[0] + ",0123456789")
    a = tables(figure, share())
    assert set(outcomes(compare_points(a, {FIGURE: other}, ["share_of_capacity"]))) == {SAME}
    fewer = {FIGURE: other[~other["point"].str.contains("count=4")]}
    assert only_in(fewer, a) == []
    assert all("count=4" in name for name in only_in(a, fewer))


def test_unknown_metric(figure):
    with pytest.raises(UserError, match="--metric speed: there is no such metric"):
        compare_points({}, {}, ["speed"])


def test_a_verdict_that_differs_is_told(figure, tmp_path):
    claim = only_claim(tmp_path, GOOD.replace("0.5, within: 0.1", "0.41, within: 0.1"))
    both = [judge_all([claim], [figure], tables(figure, share(shift))) for shift in (0.0, 0.4)]
    (row,) = compare_verdicts(*both).to_dict("records")
    assert row["moved"] and row["a"] != row["b"]
    assert row["b_mean"] == pytest.approx(row["a_mean"] + 0.4, abs=0.02)
    assert not compare_verdicts(both[0], both[0])["moved"].any()


# --- the command ---------------------------------------------------------------------------------------------------------


def write_side(folder: Path, figure, value, kernel: str = "made-up (1.0)") -> Path:
    target = folder / "quick" / f"{FIGURE}.parquet"
    target.parent.mkdir(parents=True)
    write_table(tables(figure, value, kernel=kernel, kernel_key=kernel)[FIGURE], target)
    return folder


def invoke(*argv: object):
    return CliRunner().invoke(app, ["compare", *map(str, argv), "--scale", "quick"], catch_exceptions=True)


def test_two_folders(figure, tmp_path):
    a = write_side(tmp_path / "a", figure, share(), "old (5.10)")
    b = write_side(tmp_path / "b", figure, share(0.3, only=4), "new (7.3)")
    found = invoke(FIGURE, "--results", a, "--results", b, "--csv", tmp_path / "p.csv")
    assert found.exit_code == 1, found.output
    assert "old (5.10)" in found.output and "new (7.3)" in found.output and "moved" in found.output
    content = json.loads(invoke(FIGURE, "--results", a, "--results", b, "--json").stdout)
    assert content["moved"] is True
    points = pd.read_csv(tmp_path / "p.csv")
    assert len(points) == len(content["points"])
    moved = [p for p in content["points"] if p["outcome"] == MOVED]
    assert moved and all(np.isfinite(p["low"]) for p in moved)


def test_nothing_moves(figure, tmp_path):
    a, b = (write_side(tmp_path / name, figure, share()) for name in "ab")
    found = invoke("--results", a, "--results", b)
    assert found.exit_code == 0, found.output
    assert "equal in every seed" in found.output
    assert "verdicts: 0 of" in found.output


def test_runs_that_fail_on_one_side_are_told_and_no_pass(figure, tmp_path):
    a, b = (write_side(tmp_path / name, figure, share()) for name in "ab")
    file = b / "quick" / f"{FIGURE}.parquet"
    table = pd.read_parquet(file)
    failed = table["point"].str.contains("flows.0.count=4")
    table.assign(ok=~failed).to_parquet(file, index=False)
    found = invoke("--results", a, "--results", b)
    assert found.exit_code == 1, found.output
    assert "not compared" in found.output
    assert (
        "B has no good run with a number for " in found.output
        and f"such as share_of_capacity of {FIGURE} " in found.output
    )
    content = json.loads(invoke("--results", a, "--results", b, "--json").stdout)
    assert content["moved"] and {p["b_mean"] for p in content["points"] if p["outcome"] == NOT_COMPARED} == {None}
    table.assign(ok=~failed | (table["seed"] == 1)).to_parquet(file, index=False)
    found = invoke("--results", a, "--results", b)
    assert found.exit_code == 1 and "or one where others failed" in found.output, "one run left proves nothing"
    count = int((failed & (table["group"] == 0) & (table["seed"] > 1)).sum())
    assert f"B: left out, as their self-checks failed: {number_of(count, 'run')} of " in found.output
    for side in (a, b):
        table.assign(ok=False).to_parquet(side / "quick" / f"{FIGURE}.parquet", index=False)
    assert "no point has a number of these metrics" in str(invoke("--results", a, "--results", b).exception)


def test_what_is_missing_is_told_with_the_command_that_makes_it(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    found = invoke(FIGURE, "--kernel", "lab-6.12", "--kernel", "lab-6.1", "--cores", "2")
    assert isinstance(found.exception, UserError)
    text = str(found.exception)
    assert "add --run" in text
    assert (
        f"BBRLAB_RESULTS={tmp_path}/compare/kernel=lab-6.12 snakemake --cores 2 --config kernel=lab-6.12 scale=quick"
        in text
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "give two sides, not 0"),
        (["--kernel", "lab-6.12"], "give two sides, not 1"),
        (["--kernel", "lab-6.12", "--kernel", "lab-6.12"], "both sides are lab-6.12"),
        (["--kernel", "lab-6.12", "--kernel", "linux-2.0"], "no such kernel"),
        (["--results", "/nowhere", "--results", "/"], "no such folder"),
        (["--config", "kernel=", "--kernel", "lab-6.12"], "give KEY=VALUE"),
        (["--config", "scale=full", "--kernel", "lab-6.12"], "scale is --scale"),
        (["--kernel", "lab-6.12", "--kernel", "lab-6.1"], "no figure at scale quick in common"),
    ],
)
def test_bad_sides(argv, words, monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    assert words in str(invoke(*argv).exception)


def test_run_asks_the_workflow_for_the_tables(figure, monkeypatch, tmp_path):
    """Each side runs in a folder of its own, for the tables that are wanted only."""
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    asked = []

    def start(*argv, env):
        folder = Path(argv[-1]).parents[2]  # of its results: the table's
        asked.append((argv, Path(env["BBRLAB_RESULTS"]), folder))
        write_side(folder, figure, share())
        return subprocess.Popen(["true"])

    monkeypatch.setattr(campaign_source.python, "start", start)
    found = invoke(
        FIGURE, "--kernel", "lab-6.12", "--config", "kernel=lab-6.1 replace=bbr3:aimd", "--run", "--cores", "1"
    )
    assert found.exit_code == 0, (found.output, found.exception)
    assert [home.name for _, home, _ in asked] == ["kernel=lab-6.12", "kernel=lab-6.1,replace=bbr3:aimd"]
    argv, home, folder = asked[1]
    assert folder == home / "replace" / "bbr3-aimd"
    assert list(argv) == ["snakemake", "--cores", "1", "--config", "kernel=lab-6.1", "replace=bbr3:aimd", "scale=quick", "--",
                        str(folder / "quick" / f"{FIGURE}.parquet")]  # fmt: skip


def test_the_page_has_every_point_and_verdict_of_both_sides(figure, tmp_path):
    """What moved is marked; what a result says is text, never markup."""
    evil = "<script>alert(1)</script>"
    a, b = (
        write_side(tmp_path / name, figure, share(more), kernel=kernel)
        for name, more, kernel in (("a", 0, "lab"), ("b", 0.3, evil))
    )
    found = invoke("--results", a, "--results", b, "--page", tmp_path / "pages" / "both.html")
    assert found.exit_code == 1, (found.output, found.exception)
    text = (tmp_path / "pages" / "both.html").read_text(encoding="utf-8")
    content = json.loads(invoke("--results", a, "--results", b, "--json").stdout)
    points, verdicts = (part.count("<tr") - 1 for part in text.split("<table>")[1:])
    assert (points, verdicts) == (len(content["points"]), max(1, len(content["verdicts"])))
    assert (
        text.count("<tr class=moved>")
        == sum(p["outcome"] == "moved" for p in content["points"]) + sum(v["moved"] for v in content["verdicts"])
        > 0
    )
    assert evil not in text and "&lt;script&gt;" in text
    assert "--page" in str(invoke("--results", a, "--results", b, "--page", tmp_path).exception)


def test_only_what_both_kernels_can_run_is_compared_and_the_rest_is_named(monkeypatch, tmp_path):
    """A kernel with BBRv3 alone, as Google's: figures of BBRv2 are left out, and no figure that nobody asked for is looked at."""
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    asked = []

    def start(*argv, env):
        asked.append(argv)
        return subprocess.Popen(["false"])

    monkeypatch.setattr(campaign_source.python, "start", start)
    pair = ["--kernel", "lab-6.12", "--kernel", "google-v3-7542cc7", "--scale", "quick", "--run"]
    found = invoke("sarpkaya2025/fig5a", "sarpkaya2025/fig3a", *pair)
    assert "left out, since google-v3-7542cc7 has no bbr2: sarpkaya2025/fig3a" in found.output
    (argv,) = asked
    assert [Path(target).stem for target in argv[argv.index("--") + 1 :]] == ["fig5a"]
    found = invoke("sarpkaya2025/fig3a", *pair)
    assert str(found.exception) == (
        "no figure that both sides can run; google-v3-7542cc7 has no bbr2: sarpkaya2025/fig3a"
    )


def test_a_slip_is_told_before_anything_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    monkeypatch.setattr(campaign_source.python, "start", lambda *arguments, **more: pytest.fail("a campaign began"))
    (tmp_path / "file").write_text("mine")
    for options, words in (
        (["--metric", "los"], "--metric los: there is no such metric"),
        (["--csv", tmp_path], f"--csv {tmp_path}: is a folder; give a file"),
        (
            ["--csv", tmp_path / "file" / "p.csv"],
            f"--csv {tmp_path}/file/p.csv: {tmp_path}/file is a file, not a folder",
        ),
        (["--csv", "/proc/p.csv"], "/proc/p.csv: "),
    ):
        found = invoke(FIGURE, "--kernel", "lab-6.12", "--kernel", "lab-6.1", "--run", *options)
        assert isinstance(found.exception, UserError) and str(found.exception).startswith(words), found.exception
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "and nothing is made"


def test_a_campaign_that_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    monkeypatch.setattr(campaign_source.python, "start", lambda *a, **k: subprocess.Popen(["false"]))
    found = invoke(FIGURE, "--kernel", "lab-6.12", "--kernel", "lab-6.1", "--run")
    assert "the campaign of lab-6.12 failed" in str(found.exception)


# --- the page of several kernels -----------------------------------------------------------------------------------------


def test_the_page_has_every_run_on_every_kernel():
    table = kernel_age()
    kernels = ["lab-6.12", "lab-5.10", "lab-6.1", "lab-7.3"]
    assert list(dict.fromkeys(table["kernel"])) == kernels, "the lab's own first"
    points = points_of(load_scenario(paths.SCENARIOS / "questions" / "kernel_age.yaml"))
    seeds = points[0].scenario.trials
    assert len(table) == len(kernels) * len(points) * seeds
    assert set(table.groupby(["kernel", "point"]).size()) == {seeds}
    assert table.groupby("kernel")["release"].nunique().eq(1).all()


def test_kernels_are_compared_with_the_labs_own(monkeypatch):
    table = kernel_age()
    shifted = table["share_of_capacity"] + 0.3 * (table["kernel"] == "lab-7.3")
    same = table[table["kernel"] == "lab-6.12"].assign(kernel="lab-5.10")
    table = pd.concat([table.assign(share_of_capacity=shifted).query("kernel != 'lab-5.10'"), same])
    found = kernel_differences(table, "questions/kernel_age", ["share_of_capacity"])
    assert set(found["against"]) == {"lab-6.12"}
    assert set(found.loc[found["kernel"] == "lab-5.10", "outcome"]) == {SAME}
    assert MOVED in set(found.loc[found["kernel"] == "lab-7.3", "outcome"])
    shown = difference_table(found)
    assert (shown["moved"] == "yes").sum() == (found["outcome"] == MOVED).sum()
