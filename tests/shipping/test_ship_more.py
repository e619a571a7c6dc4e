"""Figures that are added to results that ship: the same files as if all had been packed at once."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pandas as pd
import pytest

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.models.predictions import packed
from bbrlab.results.figures import figures_at, runs_of
from bbrlab.results.shipped import tampered
from bbrlab.results.tables import figure_table, write_table
from bbrlab.run.run import run_point
from bbrlab_apps.shipping.pack import Finished, OtherFigures, pack
from bbrlab_apps.shipping.shipped_folder import read_shipped, replace_shipped

FIRST, SECOND = "tang/fig2", "bless2025/fig14"
pytestmark = pytest.mark.guest


def finished(results: Path, *figures: str) -> Finished:
    return Finished("smoke", figures_at("smoke", list(figures)), results)


def collect(results: Path, *figures: str) -> None:
    """What the workflow makes of a campaign of these figures, as far as it is needed: their tables."""
    before, paths.results_folder = paths.results_folder, lambda: results
    try:
        for figure in figures_at("smoke", list(figures)):
            write_table(figure_table(figure), results / "smoke" / f"{figure.id}.parquet")
    finally:
        paths.results_folder = before


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
def first(campaign, tmp_path) -> Path:
    """The first of them ships."""
    pack(finished(campaign, FIRST), tmp_path / "shipped")
    return tmp_path / "shipped"


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.name.endswith(".lock")
    }


@pytest.mark.slow
def test_one_after_the_other_is_what_both_at_once_are(campaign, first, tmp_path):
    pack(finished(campaign, FIRST, SECOND), tmp_path / "both")
    told = []
    manifest = pack(finished(campaign, SECOND), first, say=told.append, others=OtherFigures.KEEP)
    assert contents(first) == contents(tmp_path / "both")
    assert list(manifest.figures) == [SECOND, FIRST] and manifest.runs == sum(manifest.figures.values())
    assert tampered(first, "smoke") == []
    assert told[0].startswith(SECOND) and told[-1] == "writing"


@pytest.mark.slow
def test_the_order_does_not_matter(campaign, tmp_path):
    pack(finished(campaign, SECOND), tmp_path / "second")
    pack(finished(campaign, FIRST, SECOND), tmp_path / "both")
    pack(finished(campaign, FIRST), tmp_path / "second", others=OtherFigures.KEEP)
    assert contents(tmp_path / "second") == contents(tmp_path / "both")


@pytest.mark.slow
def test_a_figure_that_ships_is_replaced(campaign, first, tmp_path):
    """With all that was said of its runs; those of the other stay."""
    pack(finished(campaign, SECOND), first, others=OtherFigures.KEEP)
    before = contents(first)
    pack(finished(campaign, FIRST), first, others=OtherFigures.KEEP)
    assert contents(first) == before, "the same runs are the same bytes"


def test_points_of_a_figure_ship_one_by_one(campaign, first, tmp_path):
    """A point that has all of its runs takes the place of what ships of it; the other point stays, whatever ships of it."""
    before = contents(first)
    manifest, content = read_shipped(first, "smoke")
    table = content[f"{FIRST}.parquet"]
    new, old = table["point"].drop_duplicates()
    content[f"{FIRST}.parquet"] = table.assign(goodput_mbit=7.0)
    for name in ("runs.parquet", "checks.parquet"):
        content[name] = content[name][(content[name]["point"] != new) | (content[name]["seed"] == 1)]
    replace_shipped(first / "smoke", content, manifest.model_dump(mode="json", exclude={"files", "sha256"}))
    part = shutil.copytree(campaign, tmp_path / "part")
    shutil.rmtree(part / "runs" / FIRST / old / "seed-2")  # of its two seeds
    shutil.rmtree(part / "smoke")  # without the table, which is of whole figures
    asked = Finished("smoke", figures_at("smoke", [FIRST]), part, by_point=True)
    packed = pack(asked, first, others=OtherFigures.KEEP)
    after = read_shipped(first, "smoke")[1]
    goodput = after[f"{FIRST}.parquet"].set_index("point")["goodput_mbit"]
    assert goodput[new].tolist() == table.set_index("point")["goodput_mbit"][new].tolist()
    assert set(goodput[old]) == {7.0} and packed.figures == {FIRST: 4}
    pack(dataclasses.replace(asked, results=campaign), first, others=OtherFigures.KEEP)
    assert contents(first) == before, "all points one by one are the whole figure, byte by byte"


def test_points_that_cannot_ship_alone(campaign, first, tmp_path):
    before = contents(first)

    def refused(asked: Finished, match: str) -> None:
        with pytest.raises(UserError, match=match):
            pack(dataclasses.replace(asked, by_point=True), first, others=OtherFigures.KEEP)
        assert contents(first) == before

    part = shutil.copytree(campaign, tmp_path / "part")
    for seed in (part / "runs" / FIRST).glob("*/seed-1"):
        shutil.rmtree(seed)
    refused(finished(part, FIRST), f"{FIRST}: no point has all of its runs in .*part; run: .*{FIRST}")
    refused(finished(campaign, SECOND), f"{SECOND} does not ship; leave --by-point out and ship it whole")
    manifest, content = read_shipped(first, "smoke")
    table = content[f"{FIRST}.parquet"]
    content[f"{FIRST}.parquet"] = table.assign(point=table["point"] + "x")
    replace_shipped(first / "smoke", content, manifest.model_dump(mode="json", exclude={"files", "sha256"}))
    before = contents(first)
    refused(finished(campaign, FIRST), f"{FIRST} ships with other points than its scenario has; leave --by-point out")


def test_a_figure_that_stays_may_have_other_points_than_its_scenario(campaign, first):
    """Of an older version; no claim is judged by them."""
    manifest, content = read_shipped(first, "smoke")
    table = content[f"{FIRST}.parquet"]
    content[f"{FIRST}.parquet"] = table.assign(point=table["point"] + "x")
    replace_shipped(first / "smoke", content, manifest.model_dump(mode="json", exclude={"files", "sha256"}))
    pack(finished(campaign, SECOND), first, others=OtherFigures.KEEP)
    _, after = read_shipped(first, "smoke")
    assert set(after["claims.parquet"].query("figures == @FIRST")["verdict"]) == {"not run"}
    pd.testing.assert_frame_equal(after[f"{FIRST}.parquet"], content[f"{FIRST}.parquet"])


def test_predictions_are_the_same_in_any_order():
    """Of two of one place the later counts; a column that one kind lacks does not change another's numbers."""
    fluid = pd.DataFrame({"share_of_capacity": [0.25], "seeds": [3], "figure": ["b/f"], "point": ["p"], "kind": ["9s"]})
    burst = pd.DataFrame(
        {"figure": ["a/f"], "point": ["p"], "kind": ["burst"], "case": ["x"], "share_of_capacity": [0.5]}
    )
    both = packed([fluid, burst])
    pd.testing.assert_frame_equal(both, packed([burst, fluid]))
    pd.testing.assert_frame_equal(both, packed([burst.iloc[:0], both, fluid, burst]))
    assert list(both["kind"]) == ["burst", "9s"] and list(both.columns[:3]) == ["figure", "point", "kind"]
    assert packed([fluid, fluid.assign(share_of_capacity=0.75)])["share_of_capacity"].tolist() == [0.75]
    assert list(packed([]).columns) == ["figure", "point", "kind"]


def test_what_cannot_be_added(campaign, first, tmp_path):
    before = contents(first)
    with pytest.raises(UserError, match="nothing ships at scale smoke; leave --add out"):
        pack(finished(campaign, SECOND), tmp_path / "nowhere", others=OtherFigures.KEEP)
    with pytest.raises(
        UserError, match=rf"{SECOND}.parquet: is missing: the campaign is not finished; run: .*{SECOND}"
    ):
        pack(finished(tmp_path, SECOND), first, others=OtherFigures.KEEP)
    other = shutil.copytree(campaign, tmp_path / "other")
    for run in runs_of(figures_at("smoke", [SECOND])[0], results=other):
        manifest = files.read_json(run.folder / "manifest.json")
        guest = manifest["guest_code_sha256"] | {"traffic.py": "0"}
        files.write_json(run.folder / "manifest.json", manifest | {"guest_code_sha256": guest})
    with pytest.raises(
        UserError,
        match=r"runs of commit \w+\+? have two versions of the kernel, of the guest's code or of .*; commit what was changed",
    ):
        pack(finished(other, SECOND), first, others=OtherFigures.KEEP)
    assert contents(first) == before
    (first / "smoke" / "points.parquet").write_bytes(b"")
    with pytest.raises(UserError, match=r"points.parquet: has hash .* get what ships anew"):
        pack(finished(campaign, SECOND), first, others=OtherFigures.KEEP)
    assert contents(first).keys() == before.keys()
