"""Packing what ships, without guests: points and verdicts are of the tables that are packed; one at a time works on it; a kill loses
nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.tables import read_table
from bbrlab.claims.columns import prediction_files
from bbrlab.claims.load import claims_of
from bbrlab.claims.statement_verdict import verdict_tables
from bbrlab.models.predictions import KINDS, PACKED, packed
from bbrlab.results.figures import figures_at, runs_of
from bbrlab.results.shipped import Failed, older_sentence, older_versions, read_manifest, tampered
from bbrlab.results.tables import read_figure, tidy, write_table
from bbrlab.results.verdicts import read_claims, read_statements
from bbrlab.run.conditions import CONDITIONS
from bbrlab.scenario.point import Point
from bbrlab_apps.shipping import pack as ship
from bbrlab_apps.shipping import rejudge as rejudging
from bbrlab_apps.shipping.finished_run import FinishedRun
from bbrlab_apps.shipping.pack import OtherFigures, pack
from bbrlab_apps.shipping.rejudge import rejudge
from bbrlab_apps.shipping.shipped_folder import WAITS, exclusive_access, replace_shipped
from tests.made_up import all_statements

REAL = paths.ROOT / "shipped" / "quick"
PART = ("tang/fig2", "ware2019/fig3")  # the only figure of a paper, and a paper's
MODELLED = "sarpkaya2025/fig2c"


def load_runs(asked: ship.Finished, *say: object) -> ship.Runs:
    """Every run of a table is there, as what ships says of it."""
    manifest = files.read_json(REAL / "manifest.json")
    told = {
        "packages": {}, "source": {"commit": "c", "modified": False}, "kernel": manifest["versions"][0]["kernel"],
        "guest_code_sha256": manifest["versions"][0]["guest_code_sha256"],
    }  # fmt: skip
    check = {"name": "rate", "measured": 1.0, "ok": True}
    tables = {f.id: read_figure(asked.results / asked.scale / f"{f.id}.parquet") for f in asked.figures}
    runs = [run for figure in asked.figures for run in runs_of(figure)]
    return ship.Runs(tables, [FinishedRun(run, [], [check], "0", frozenset(), {}, told) for run in runs], [])


@pytest.fixture(scope="module", autouse=True)
def whole_runs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ship, "load_runs", load_runs)
        yield


def campaign(results: Path, *figures: str) -> ship.Finished:
    """What `snakemake -- FIGURE...` leaves of figures: their tables, and the verdicts on each figure alone."""
    for id in figures:
        table = read_figure(REAL / f"{id}.parquet").assign(wall_s=1.0)
        write_table(table, results / "quick" / f"{id}.parquet")
        claims, statements = verdict_tables({id: table}, "quick", True, results)
        write_table(claims, results / "quick" / f"{id}.claims.parquet")
        write_table(statements, results / "quick" / f"{id}.statements.parquet")
    return ship.Finished("quick", figures_at("quick", list(figures)), results)


def test_runs_of_two_binaries_of_one_kernel_ship_together():
    """With other patches for the host a kernel's binary is another one, its key is not."""
    figures = figures_at("quick", [PART[0]])
    one, *others = load_runs(ship.Finished("quick", figures, REAL.parent)).runs
    kernel = one.manifest["kernel"]
    more = dataclasses.replace(one, manifest=one.manifest | {"kernel": kernel | {"build_id": "another"}})
    (version,) = ship.Runs({}, [one, more, *others], []).manifest("quick")["versions"]
    ship._check_one_origin([one, more, *others])
    assert version["kernel"] == kernel
    other = dataclasses.replace(one, manifest=one.manifest | {"kernel": kernel | {"key": "another"}})
    with pytest.raises(UserError, match="its kernel is another one than that of"):
        ship._check_one_origin([one, other])


@pytest.mark.slow
def test_figures_of_several_kernels_ship_together(made, shipped, monkeypatch, tmp_path):
    """Figure by figure a scale goes over to another kernel; pages say which runs are of the older one."""
    monkeypatch.setattr(ship, "commit_time", {"c": "2026-11-25T00:00:00Z", "d": "2026-11-28T00:00:00Z"}.get)
    ship.pack(campaign(tmp_path / "mine", *PART), shipped, others=OtherFigures.DROP)
    # No file over the whole campaign, nor over a paper, is needed: docs/howto/shipped_results.md has the commands.
    papers = [f"{paper}.{kind}.parquet" for paper in ("tang", "ware2019") for kind in ("claims", "statements")]
    assert set(read_manifest(shipped, "quick").files) == {
        *(f"{id}.parquet" for id in PART), *papers, PACKED,
        "points.parquet", "runs.parquet", "checks.parquet", "claims.parquet", "statements.parquet",
    }  # fmt: skip
    assert tampered(shipped, "quick") == []
    before = contents(shipped)

    def with_another(asked: ship.Finished, *say: object) -> ship.Runs:
        runs = load_runs(asked)
        kernel = runs.runs[0].manifest["kernel"] | {"key": "new"}
        told = {
            "kernel": kernel,
            "source": {"commit": "d", "modified": False},
            "conditions": "noise",
            "packages": {"iperf3": "9"},
        }
        return dataclasses.replace(runs, runs=[dataclasses.replace(s, manifest=s.manifest | told) for s in runs.runs])

    monkeypatch.setattr(ship, "load_runs", with_another)
    pack(campaign(tmp_path / "mine", PART[0]), shipped, others=OtherFigures.KEEP)
    after, manifest = contents(shipped), read_manifest(shipped, "quick")
    assert {name for name in before | after if before.get(name) != after.get(name)} == {
        "quick/manifest.json",
        "quick/runs.parquet",
    }
    assert [one.origin for one in manifest.versions] == [(one := manifest.versions[0]).origin, ("new", "noise")]
    assert manifest.newest.origin == ("new", "noise") and list(manifest.kernels)[0] == "new"
    assert manifest.newest.packages == ["iperf3 9"] and one.packages == []
    words = f"kernel {one.kernel['key']}, commit c (2026-11-25): {CONDITIONS[0]}"
    assert older_versions(shipped, "quick") == {words: [PART[1]]}
    assert older_versions(shipped, "quick", [PART[0]]) == {}
    assert older_sentence(shipped, "quick", PART) == f" Made by an older version of bbrlab ({words}): {PART[1]}."
    pack(campaign(tmp_path / "mine", PART[1]), shipped, others=OtherFigures.KEEP)
    assert [one.origin for one in read_manifest(shipped, "quick").versions] == [("new", "noise")], (
        "nothing of the old one is left"
    )
    assert older_sentence(shipped, "quick") == ""


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.name.endswith(".lock")
    }


def test_points_and_verdicts_are_of_the_tables_that_are_packed(tmp_path):
    """Whatever else lies there: of older tables, other claims, other papers."""
    mine = campaign(tmp_path / "mine", *PART)
    tables = {figure.id: read_figure(REAL / f"{figure.id}.parquet") for figure in mine.figures}
    for name in ("", "tang.", "ware2019."):
        claims, statements = (read(REAL / f"{name}claims.parquet") for read in (read_claims, read_statements))
        claims = claims.assign(verdict="reproduced", mean=-1.0, expected="anything")
        write_table(claims, tmp_path / "mine" / "quick" / f"{name}claims.parquet")
        write_table(statements.assign(verdict="reproduced"), tmp_path / "mine" / "quick" / f"{name}statements.parquet")
    write_table(read_table(REAL / "points.parquet"), tmp_path / "mine" / "quick" / "points.parquet")
    ship.pack(mine, tmp_path / "out")
    place = tmp_path / "out" / "quick"
    for part, some in {
        "": tables,
        "tang.": {PART[0]: tables[PART[0]]},
        "ware2019.": {PART[1]: tables[PART[1]]},
    }.items():
        claims, statements = verdict_tables(some, "quick", bool(part))
        pd.testing.assert_frame_equal(read_table(place / f"{part}claims.parquet"), claims, check_dtype=False)
        pd.testing.assert_frame_equal(read_table(place / f"{part}statements.parquet"), statements, check_dtype=False)
    pd.testing.assert_frame_equal(read_table(place / "points.parquet"), tidy(tables), check_dtype=False)
    before = contents(place)
    assert not len(rejudge(tmp_path / "out", "quick"))
    assert contents(place) == before, "as a judgement of what ships gives it"


def a_quarter(kind: str, point: Point) -> pd.DataFrame:
    return pd.DataFrame({"share_of_capacity": [0.25]})


def test_predictions_that_are_missing_are_computed(tmp_path, monkeypatch):
    asked: list[str] = []
    monkeypatch.setattr(rejudging, "_predict", a_quarter)
    mine = campaign(tmp_path / "mine", MODELLED)
    ship.pack(mine, tmp_path / "out", say=asked.append)
    found = read_table(tmp_path / "out" / "quick" / PACKED)
    points = {point.label for point in mine.figures[0].points}
    curves = {(label, kind) for label in points for kind in KINDS}
    assert set(zip(found["point"], found["kind"], strict=True)) == curves
    assert f"predictions: {len(curves)} of {len(curves)}" in asked


def test_what_claims_read_of_a_figure_that_is_no_panel_is_computed(monkeypatch):
    monkeypatch.setattr(rejudging, "_predict", a_quarter)
    chosen = figures_at("full", ["questions/adoption"])
    read = prediction_files(claims_of(all_statements()), chosen)
    found = rejudging._predictions(packed([]), chosen, lambda text: None, [], 1)
    places = zip(found["point"], found["kind"], strict=True)
    assert read and set(places) == {(path.parent.name, path.stem) for path in read}


# --- one at a time ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(whole_runs, tmp_path_factory) -> Path:
    """A folder with a figure's campaign, mine/, and what ships of it, shipped/."""
    folder = tmp_path_factory.mktemp("packed")
    ship.pack(campaign(folder / "mine", PART[0]), folder / "shipped")
    return folder


@pytest.fixture
def shipped(made, tmp_path) -> Path:
    """A figure that ships, to change."""
    return shutil.copytree(made / "shipped", tmp_path / "shipped")


def test_what_one_wrote_is_not_lost_by_another_that_began_before(shipped, monkeypatch):
    """Two judge what ships at once: the second waits, says so, and reads what the first has written."""
    begun, go = threading.Event(), threading.Event()
    told: dict[str, list[str]] = {"first": [], "second": []}

    def renew(content, *given, **named):
        content[f"{threading.current_thread().name}.parquet"] = pd.DataFrame({"x": [1]})
        begun.set()
        assert go.wait(60)

    monkeypatch.setattr(rejudging, "renew", renew)

    def start(name: str) -> threading.Thread:
        def work() -> None:
            rejudge(shipped, "quick", say=told[name].append)

        thread = threading.Thread(target=work, name=name)
        thread.start()
        return thread

    first = start("first")
    assert begun.wait(60)
    second = start("second")
    for _ in range(600):
        if told["second"]:
            break
        second.join(0.1)
    go.set()
    first.join(60)
    second.join(60)
    assert told == {"first": ["writing"], "second": [WAITS, "writing"]}
    assert {"first.parquet", "second.parquet"} <= set(read_manifest(shipped, "quick").files)


def test_scales_do_not_wait_for_each_other(shipped):
    told: list[str] = []
    with exclusive_access(shipped, "full", told.append), exclusive_access(shipped, "quick", told.append):
        assert told == []


KILLED = """
import os, signal, sys
from pathlib import Path
import pandas as pd
from bbrlab_apps.shipping import shipped_folder

calls = []
replace = Path.replace

def killed(self, target):
    if Path(target).name == "quick" and self.name != ".quick.bbrlab.old":
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)

Path.replace = killed
folder = Path(sys.argv[1])
with shipped_folder.exclusive_access(folder, "quick"):
    manifest, content = shipped_folder.read_shipped(folder, "quick")
    shipped_folder.replace_shipped(folder / "quick", content, manifest.model_dump(mode="json", exclude={"files", "sha256"}))
"""


def refuses(*given: object, **named: object) -> None:
    raise UserError("a claim cannot be verdict_tables")


@pytest.mark.parametrize("how", ["rejudge", "add", "pack"])
def test_who_is_killed_between_old_and_new_loses_nothing(shipped, made, tmp_path, monkeypatch, how):
    before = contents(shipped / "quick")
    for module in (rejudging, ship):
        monkeypatch.setattr(module, "renew", lambda *given, **named: None)
    mine = ship.Finished("quick", figures_at("quick", [PART[0]]), made / "mine")
    done = subprocess.run([sys.executable, "-c", KILLED, str(shipped)], cwd=paths.ROOT)
    assert done.returncode == -9
    assert {path.name for path in shipped.iterdir()} >= {".quick.bbrlab.old"} and not (shipped / "quick").exists()
    match how:
        case "rejudge":
            rejudge(shipped, "quick")
        case "add":
            pack(mine, shipped, others=OtherFigures.KEEP)
        case "pack":  # and nothing takes the place of the old one
            monkeypatch.setattr(ship, "renew", refuses)
            with pytest.raises(UserError):
                ship.pack(mine, shipped)
    assert contents(shipped / "quick") == before
    assert {path.name for path in shipped.iterdir()} == {"quick", ".quick.lock"}, "nothing is left aside"


def test_a_folder_that_cannot_be_put_in_its_place_leaves_the_old_one(shipped, monkeypatch):
    before = contents(shipped / "quick")
    manifest = read_manifest(shipped, "quick").model_dump(mode="json", exclude={"files", "sha256"})
    renamed = Path.replace

    def fails(self: Path, target: Path) -> Path:
        if target.name == "quick" and self.name != ".quick.bbrlab.old":
            raise OSError(5, "Input/output error")
        return renamed(self, target)

    with monkeypatch.context() as patch, contextlib.suppress(OSError):
        patch.setattr(Path, "replace", fails)
        replace_shipped(shipped / "quick", {}, manifest)
    assert contents(shipped / "quick") == before
    assert {path.name for path in shipped.iterdir()} == {"quick", ".quick.lock"}


def test_where_nothing_ships_or_can_nothing_is_made(tmp_path):
    with pytest.raises(UserError, match="nothing ships at scale quick; bbrlab ship packs a campaign"):
        rejudge(tmp_path / "nowhere", "quick")
    with pytest.raises(UserError, match="nothing ships at scale quick; leave --add out"):
        pack(
            ship.Finished("quick", figures_at("quick", [PART[0]]), tmp_path),
            tmp_path / "nowhere",
            others=OtherFigures.KEEP,
        )
    with pytest.raises(UserError):
        ship.pack(ship.Finished("quick", figures_at("quick", [PART[0]]), tmp_path), tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_the_lock_is_no_part_of_the_package():
    """It stays beside what ships; Git and an image leave it out."""
    ignored = subprocess.run(
        ["git", "check-ignore", "--no-index", "shipped/.quick.lock", "shipped/.full.bbrlab.old/manifest.json"],
        cwd=paths.ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert len(ignored.stdout.splitlines()) == 2, ignored.stderr


def test_figures_that_ship_go_only_if_one_says_so(made, shipped, tmp_path):
    """Who forgets --add loses nothing."""
    other = campaign(tmp_path / "mine", PART[1])
    before = contents(shipped)
    with pytest.raises(UserError, match=f"1 figures ship there .* such as {PART[0]}: give --add .* or --replace"):
        ship.pack(other, shipped)
    assert contents(shipped) == before
    ship.pack(other, shipped, others=OtherFigures.DROP)
    assert list(read_manifest(shipped, other.scale).figures) == [PART[1]]


def test_a_folder_with_what_never_shipped_is_left_alone(shipped, tmp_path):
    """Of its name, or beside what ships: it would be gone with the old results."""
    (tmp_path / "home" / "quick").mkdir(parents=True)
    unread = ship.Finished("quick", figures_at("quick", [PART[0]]), tmp_path)
    for place in (shipped, tmp_path / "home"):
        (place / "quick" / "notes.txt").write_text("mine")
        with pytest.raises(UserError, match=r"has notes\.txt, which is not among what bbrlab made there"):
            ship.pack(unread, place, others=ship.OtherFigures.DROP)
        assert (place / "quick" / "notes.txt").read_text() == "mine"


def test_an_old_folder_that_was_left_aside_is_not_put_back_later(shipped):
    old = shipped / ".quick.bbrlab.old"
    shutil.copytree(shipped / "quick", old)
    with exclusive_access(shipped, "quick"):
        pass
    assert not old.exists(), "its place is taken"


def test_a_scale_that_there_is_not(shipped):
    with pytest.raises(UserError, match="--scale fast: there is no such scale"), exclusive_access(shipped, "fast"):
        pass
    with (
        pytest.raises(UserError, match="nothing ships at scale smoke; pack one"),
        exclusive_access(shipped, "smoke", or_else="pack one"),
    ):
        pass
    assert not [path.name for path in shipped.glob(".*.lock") if "quick" not in path.name]


def test_a_manifest_counts_the_rows_of_its_runs():
    """Whatever was packed at once or one after the other; each commit is of one version, whatever kernel it has."""
    version = read_manifest(REAL.parent, "quick").versions[0]
    versions = [
        version.model_copy(update={"commits": {"b": ""}}),
        version.model_copy(update={"commits": {"a": ""}, "kernel": version.kernel | {"release": "7.0"}}),
    ]
    runs = pd.DataFrame({"figure": ["x/2", "x/2", "x/1"], "point": "p", "seed": [1, 2, 1], "commit": ["b", "b", "a"]})
    failed = [Failed(figure=figure, point="p", seed=1, checks=["rate"], why="late") for figure in ("x/1", "x/2")]
    manifest = ship.manifest_of("quick", runs, versions, failed)
    assert list(manifest["figures"].items()) == [("x/2", 2), ("x/1", 1)]
    assert list(manifest["commits"].items()) == [("a", 1), ("b", 2)]
    assert [one["commits"] for one in manifest["versions"]] == [{"a": ""}, {"b": ""}]
    assert [one["figure"] for one in manifest["failed"]] == ["x/2", "x/1"]
