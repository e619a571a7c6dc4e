"""Results that somebody damaged or brought along: one line that names file and column or field, and no traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.measure.metrics import METRICS
from bbrlab.results import schema as versions
from bbrlab.results import shipped
from bbrlab.results.figures import figures_at
from bbrlab.results.tables import CONDITIONS, IDENTITY, read_figure, write_table
from bbrlab_apps.archive import pack
from bbrlab_apps.shipping.pack import Finished
from bbrlab_apps.site.run_page import write_run_page
from tests.made_up import table
from tests.show.test_site import run_with_markup

FIGURE = "tang/fig2"


def damage(content: pd.DataFrame, column: str, value: object) -> pd.DataFrame:
    """A table with ``value`` in the first row of a column."""
    values = content[column].astype(object)
    values.iloc[0] = value
    return content.assign(**{column: values})


def as_text(content: pd.DataFrame, column: str) -> pd.DataFrame:
    return content.assign(**{column: content[column].astype(str)})


DAMAGED = {
    "text": (lambda t: as_text(t, "share_of_capacity"), "column share_of_capacity holds str, must hold numbers"),
    "a condition": (lambda t: as_text(t, "buffer_bdp"), "column buffer_bdp holds str, must hold numbers"),
    "empty cells": (lambda t: damage(t, "ok", None), "column ok holds object with empty cells, must hold true or false"),
    "ok as text": (lambda t: as_text(t, "ok"), "column ok holds str, must hold true or false"),
    "half a seed": (lambda t: t.assign(seed=t["seed"] + 0.5), "column seed holds float64, must hold whole numbers"),
    "no group": (lambda t: damage(t, "group", None).astype({"group": float}), "column group holds float64 with empty cells"),
    "no name": (lambda t: damage(t, "point", None), "column point holds"),
    "a number": (lambda t: t.assign(cca=1), "column cca holds int64, must hold text"),
    "twice": (lambda t: pd.concat([t, t.iloc[:2]]), "columns point, seed, group: 2 rows are there twice, such as point = "),
}  # fmt: skip


@pytest.fixture
def sides(tmp_path) -> list[Path]:
    """Two folders of results with one figure, as a campaign leaves them."""
    (figure,) = figures_at("smoke", [FIGURE])
    for side in ("a", "b"):
        write_table(table(figure), tmp_path / side / "smoke" / f"{FIGURE}.parquet")
    return [tmp_path / "a", tmp_path / "b"]


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_table_is_told_by_its_column(sides, what):
    change, said = DAMAGED[what]
    path = sides[1] / "smoke" / f"{FIGURE}.parquet"
    read_figure(path)
    change(pd.read_parquet(path)).to_parquet(path, index=False)
    for do in (
        lambda: read_figure(path),
        lambda: CliRunner().invoke(
            app, ["compare", "--results", str(sides[0]), "--results", str(sides[1]), "--scale", "smoke"], catch_exceptions=False),
    ):  # fmt: skip
        with pytest.raises(UserError) as found:
            do()
        text = str(found.value)
        assert text.startswith(f"{path}: ") and said in text and "\n" not in text
        assert text.endswith("; delete it, and snakemake makes it anew")


def test_a_metric_that_nobody_observed_is_no_damage(sides):
    path = sides[0] / "smoke" / f"{FIGURE}.parquet"
    pd.read_parquet(path).assign(chunks=None).to_parquet(path, index=False)
    assert read_figure(path)["chunks"].isna().all()


def test_every_column_that_is_read_has_a_kind():
    known = {*versions._WORDS, *versions._WHOLE, *versions._NUMBERS, "ok"}
    assert known == {*IDENTITY, *CONDITIONS, *METRICS}


# --- show -------------------------------------------------------------------------------------------------------------------


def set_in(content: dict, place: str, value: object) -> None:
    *parents, last = place.split(".")
    for part in parents:
        content = content[int(part) if part.isdigit() else part]
    content[last] = value


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [("scenario.network.rate_mbit", "x", 'scenario.network.rate_mbit = "x": must be a number'),
     ("scenario.network.rate_mbit", 0, "scenario.network.rate_mbit = 0: "),
     ("scenario.network.rtt_ms", [1, "y"], "scenario.network.rtt_ms.1 = "),
     ("scenario.network.changes", [{"at_s": 1, "rate_mbit": "x"}], 'scenario.network.changes.0.rate_mbit = "x": must be a number'),
     ("scenario.sample_hz", None, "scenario.sample_hz is empty"),
     ("scenario.flows", [], "scenario.flows = []: "),
     ("scenario.flows", "bbr1", 'scenario.flows = "bbr1": must be a list'),
     ("scenario.flows.0.count", "two", 'scenario.flows.0.count = "two": must be a whole number'),
     ("scenario.flows.0.cca", 3, "scenario.flows.0.cca = 3: must be a text"),
     ("scenario", [], "scenario = []: must be keys with values"),
     ("values", [1], "values = [1]: must be keys with values"),
     ("source", "here", 'source = "here": must be keys with values')],
)  # fmt: skip
def test_a_damaged_manifest_of_a_run_is_told_by_its_field(tmp_path, place, value, said):
    folder = run_with_markup(tmp_path / "run")
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    set_in(content, place, value)
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as found:
        write_run_page(folder, tmp_path / "run.html")
    text = str(found.value)
    assert text.startswith(f"{path}: {said}") and "\n" not in text and "run this point again" in text
    assert not (tmp_path / "run.html").exists()


@pytest.mark.parametrize("content", ["[]", "3", '{"scenario": '])
def test_a_manifest_of_a_run_that_is_none(tmp_path, content):
    folder = run_with_markup(tmp_path / "run")
    (folder / "manifest.json").write_text(content)
    with pytest.raises(
        UserError, match=r"manifest\.json: (holds no keys with values|is damaged).*; run this point again"
    ):
        write_run_page(folder, tmp_path / "run.html")


def test_an_algorithm_of_ones_own_and_keys_of_another_version_are_no_damage(tmp_path):
    folder = run_with_markup(tmp_path / "run")
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    content["scenario"]["flows"][0]["cca"] = "mine_alone"
    content["scenario"]["network"]["no_more"] = content["scenario"]["no_more"] = 1
    path.write_text(json.dumps(content))
    write_run_page(folder, tmp_path / "run.html")
    assert "1 mine_alone" in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_samples_of_another_run(tmp_path):
    folder = run_with_markup(tmp_path / "run")
    groups = len(json.loads((folder / "manifest.json").read_text())["scenario"]["flows"])
    pd.read_parquet(folder / "samples.parquet").assign(group=groups).to_parquet(folder / "samples.parquet")
    with pytest.raises(
        UserError, match=rf"samples\.parquet: column group has {groups}, but manifest.json has {groups} flow"
    ):
        write_run_page(folder, tmp_path / "run.html")


# --- what ships, and what is packed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [("[]", "is a list, must be keys with values; it was edited, or made by another version: get it anew"),
     ("3", "is a single value, must be keys with values; it was edited, or made by another version: get it anew"),
     ('{"format": 1, ', "get it anew")],
)  # fmt: skip
def test_a_shipped_manifest_that_is_none(tmp_path, content, said):
    shutil.copytree(paths.ROOT / "shipped" / "quick", tmp_path / "quick")
    path = tmp_path / "quick" / shipped.MANIFEST
    path.write_text(content)
    with pytest.raises(UserError) as found:
        shipped.read_manifest(tmp_path, "quick")
    text = str(found.value)
    assert text.startswith(f"{path}: ") and text.endswith(said)
    assert "what made it" not in text and "instance of" not in text


def test_a_missing_folder_of_results_is_told_before_uncommitted_files(tmp_path, monkeypatch):
    def dirty(*asked: object) -> None:
        raise UserError("not as in a commit")

    monkeypatch.setattr(pack, "commit_of", dirty)
    with pytest.raises(UserError, match=r"nope: there is no such folder of results"):
        pack.pack(Finished("smoke", figures_at("smoke", [FIGURE]), tmp_path / "nope"), tmp_path / "out")
    (tmp_path / "nope").mkdir()
    with pytest.raises(UserError, match="not as in a commit"):
        pack.pack(Finished("smoke", figures_at("smoke", [FIGURE]), tmp_path / "nope"), tmp_path / "out")
