"""Results that ship, judged again by today's claims and models: verdicts and predictions follow, runs stay."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.tables import read_table
from bbrlab.cli.commands import app
from bbrlab.models.predictions import PACKED
from bbrlab.results.figures import figures_at
from bbrlab.results.shipped import read_manifest
from bbrlab_apps.shipping import rejudge as rejudging
from bbrlab_apps.shipping.rejudge import rejudge
from bbrlab_apps.shipping.shipped_folder import replace_shipped

REAL = paths.ROOT / "shipped" / "quick"
FIGURES = ("sarpkaya2025/fig2c", "sarpkaya2025/fig5a")


def put(folder: Path, content: dict[str, pd.DataFrame], scale: str = "quick") -> None:
    """Ship these tables, as if a campaign had."""
    manifest = files.read_json(REAL / "manifest.json")
    kept = {key: value for key, value in manifest.items() if key not in ("files", "sha256")}
    mine = {"scale": scale, "figures": {id: manifest["figures"][id] for id in FIGURES}}
    replace_shipped(folder / scale, content, kept | mine)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "quick").rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> Path:
    """Two figures that ship, judged by today's claims."""
    folder = tmp_path_factory.mktemp("shipped")
    names = [
        "claims",
        "statements",
        "sarpkaya2025.claims",
        "sarpkaya2025.statements",
        "runs",
        "checks",
        "predictions",
        *FIGURES,
    ]
    put(folder, {f"{name}.parquet": read_table(REAL / f"{name}.parquet") for name in names})
    rejudge(folder, "quick", ["burst"])
    return folder


@pytest.mark.slow
def test_verdicts_and_predictions_follow_and_runs_stay(judged, tmp_path):
    before = contents(judged)
    content = {name: read_table(judged / "quick" / name) for name in read_manifest(judged, "quick").files}
    old = content[PACKED]
    burst = old["kind"] == "burst"
    assert burst.any() and not burst.all()
    others = old.assign(**{c: old[c].where(~burst, 0.5) for c in old.select_dtypes(float)})
    content["claims.parquet"] = content["claims.parquet"].assign(verdict="reproduced")
    content["points.parquet"] = content["points.parquet"].assign(mean=0.5)
    put(tmp_path, content | {PACKED: others})
    assert contents(tmp_path) != before
    told = []
    moved = rejudge(tmp_path, "quick", ["burst"], say=told.append)
    assert contents(tmp_path) == before, "what was computed anew is what was there"
    assert "predictions: 1 of " in told[0] and told[-1] == "writing"
    assert not len(moved), "the statements shipped as they are judged"
    for name in ("runs.parquet", *(f"{id}.parquet" for id in FIGURES)):
        assert (tmp_path / "quick" / name).read_bytes() == (REAL / name).read_bytes()


def test_only_what_ships_whole_is_judged(judged, tmp_path):
    content = {name: read_table(judged / "quick" / name) for name in read_manifest(judged, "quick").files}
    with pytest.raises(UserError, match=r"--model ware: there is no such kind .* \(there are 9s, own, burst\)"):
        rejudge(judged, "quick", ["ware"])
    put(tmp_path, content)
    (tmp_path / "quick" / "checks.parquet").write_bytes(b"")
    with pytest.raises(UserError, match=r"checks.parquet: has hash .* get what ships anew"):
        rejudge(tmp_path, "quick")


def test_a_point_that_the_scenario_has_since_is_not_measured_yet_and_its_claims_are_open(judged, tmp_path):
    """Older runs are judged as far as they go: the scenario may have one more case, or one of theirs no more."""
    content = {name: read_table(judged / "quick" / name) for name in read_manifest(judged, "quick").files}
    table, before = content[f"{FIGURES[1]}.parquet"], content["claims.parquet"]
    new = next(p for p in figures_at("quick", [FIGURES[1]])[0].points if p.label == table["point"].iloc[0])
    old = table["point"] == new.label
    put(
        tmp_path,
        content | {f"{FIGURES[1]}.parquet": table.assign(point=table["point"].where(~old, "case=gone,0123456789"))},
    )
    rejudge(tmp_path, "quick")
    claims = read_table(tmp_path / "quick" / "claims.parquet").set_index("id")
    open_ = claims[claims["why"].str.contains("not measured at this scale yet")]
    assert len(open_) and set(open_["verdict"]) <= {"not run", "partly run"}
    assert all(FIGURES[1] in figures for figures in open_["figures"])
    others = claims.drop(index=open_.index)
    assert (others["verdict"] == before.set_index("id").loc[others.index, "verdict"]).all(), (
        "the others stay as they are"
    )
    assert read_manifest(tmp_path, "quick").figures == read_manifest(judged, "quick").figures
    points = read_table(tmp_path / "quick" / "points.parquet")
    assert "case=gone,0123456789" in set(points["point"]), "what was run is there, judged or not"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scale", ["quick", "full"])
def test_what_ships_is_as_todays_code_judges_it(tmp_path, scale):
    """Every file: points, predictions, claims and statements are those that these claims, models and tables give."""
    shipped = REAL.parent / scale
    mine = shutil.copytree(shipped, tmp_path / scale)
    assert not len(rejudge(tmp_path, scale, jobs=os.cpu_count() or 1))
    for name in read_manifest(REAL.parent, scale).files:
        assert (mine / name).read_bytes() == (shipped / name).read_bytes(), name


def test_the_command_says_what_moved_at_its_scale(monkeypatch, tmp_path):
    """Also where a larger scale that ships decides the same statements."""
    old = pd.DataFrame(
        {"id": ["A", "B", "C"], "says": "it is so", "verdict": ["reproduced", "not reproduced", "partly reproduced"]}
    )
    new = pd.DataFrame(
        {"id": ["A", "B", "D"], "says": "it is so", "verdict": ["inconclusive", "not reproduced", "reproduced"]}
    )
    tables = {f"{id}.parquet": read_table(REAL / f"{id}.parquet") for id in FIGURES}
    rest = {name: read_table(REAL / name) for name in ("runs.parquet", PACKED)}
    for scale in ("smoke", "quick"):
        put(tmp_path, tables | rest | {"statements.parquet": old}, scale)

    def renew(content, *given, **named):
        content["statements.parquet"] = new

    monkeypatch.setattr(paths, "SHIPPED", tmp_path)
    monkeypatch.setattr(rejudging, "renew", renew)
    done = CliRunner().invoke(app, ["rejudge", "--scale", "smoke"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].endswith("smoke: 3 statements have another verdict")
    told = [line.strip() for line in done.stdout.splitlines()[1:]]
    assert told == ["A: reproduced -> inconclusive", "C: partly reproduced -> is gone", "D: is new -> reproduced"]


# --- processes that compute predictions ------------------------------------------------------------------------------------


def killed(kind, point):
    """As the kernel does where memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def first_is_quick(kind, point):
    """The prediction that is waited for first is there at once, all others take a minute."""
    if point.label != os.environ["BBRLAB_TEST_FIRST"]:
        time.sleep(60)
    return pd.DataFrame({"share_of_capacity": [0.5]})


def test_predictions_are_computed_on_the_cores_that_this_process_may_use(monkeypatch):
    counts: list[int] = []

    def none(count, *_):
        counts.append(count)
        raise UserError("enough")

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(rejudging, "workers", none)
    with pytest.raises(UserError, match="^enough$"):
        predictions()
    assert counts == [1]


def predictions(say=lambda text: None):
    table = read_table(REAL / PACKED)
    return rejudging._predictions(table.iloc[:0], figures_at("quick", [FIGURES[0]]), say, ["burst"], 2)


def test_a_process_that_is_killed_is_no_fault_of_bbrlab(monkeypatch):
    monkeypatch.setattr(rejudging, "_predict", killed)
    with pytest.raises(UserError, match="computed predictions was killed .* fewer --cores"):
        predictions()


def test_what_is_interrupted_ends_at_once(monkeypatch):
    monkeypatch.setenv("BBRLAB_TEST_FIRST", min(p.label for p in figures_at("quick", [FIGURES[0]])[0].points))
    monkeypatch.setattr(rejudging, "_predict", first_is_quick)

    def interrupt(text):
        raise KeyboardInterrupt

    begun_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        predictions(interrupt)
    assert time.monotonic() - begun_s < 50
