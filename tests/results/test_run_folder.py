"""A run's folder is read in one way; two contents are compared in one way."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bbrlab.base import files
from bbrlab.base.algorithms import KNOWN
from bbrlab.base.errors import DamagedFile
from bbrlab.results.algorithm_table import ALGORITHMS, OWN_COLOUR, colour_of_cca, label_of_cca
from bbrlab.results.nested import MISSING, differences, in_words, is_number, leaves
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.statistics import rms


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "samples.parquet").write_bytes(b"samples")
    hashes = {"samples.parquet": files.sha256(tmp_path / "samples.parquet")}
    files.write_json(tmp_path / "manifest.json", {"outputs_sha256": hashes})
    files.write_json(tmp_path / "summary.json", {"ok": True})
    return tmp_path


def problems(folder: Path) -> dict[str, str]:
    return {one.path.name: one.reason for one in RunFolder(folder).problems()}


def test_a_whole_folder_has_no_problem(folder):
    assert problems(folder) == {}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("summary.json", None, "is missing"),
        ("summary.json", b"{", "is damaged (Expecting property name"),
        ("manifest.json", None, "is missing"),
        ("samples.parquet", None, "is missing"),
        ("samples.parquet", b"others", "has hash "),
        ("short_flows.parquet", b"x", None),
    ],
)
def test_what_is_wrong_with_a_folder(folder, name, content, reason):
    """Every file with what is wrong with it, as fields and not as words that somebody has to take apart."""
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    found = problems(folder)
    assert list(found) == ([name] if reason else [])
    assert reason is None or found[name].startswith(reason)


def test_a_hash_that_is_none_is_a_problem_of_the_manifest(folder):
    files.write_json(folder / "manifest.json", {"outputs_sha256": {"samples.parquet": 7}})
    assert problems(folder) == {"manifest.json": "outputs_sha256.samples.parquet: is 7, and no hash"}


def test_reading_twice_says_the_same(folder):
    (folder / "samples.parquet").unlink()
    read = RunFolder(folder)
    assert [str(one) for one in read.problems()] == [str(one) for one in read.problems()]


def test_an_error_has_its_file_and_reason(folder):
    (folder / "manifest.json").write_text("[]")
    with pytest.raises(DamagedFile, match=r"manifest\.json: holds no keys with values") as error:
        _ = RunFolder(folder).manifest
    assert error.value.path == folder / "manifest.json"
    assert error.value.reason.startswith("holds no keys with values")


ONE = {"a": 1, "b": [{"c": 2.0}, {"c": None}], "d": {}}


@pytest.mark.parametrize(
    ("two", "places"),
    [
        (json.loads(json.dumps(ONE)), []),
        (ONE | {"a": 1.0}, ["a"]),  # other letters in the file
        (ONE | {"b": [{"c": 2.0}]}, ["b"]),
        (ONE | {"b": [{"c": 2.0}, {}]}, ["b.1.c"]),
        (ONE | {"e": None}, ["e"]),
        ({"a": 1}, ["b", "d"]),
    ],
)
def test_where_two_contents_differ(two, places):
    assert [one.place for one in differences(ONE, two)] == places


def test_numbers_may_be_close():
    assert not [*differences({"x": 1.0, "y": 1}, {"x": 1.0 + 1e-9}, close=1e-8, only_second=True)]
    (difference,) = differences({}, {"x": 1.0}, close=1e-8, only_second=True)
    assert difference == ("x", MISSING, 1.0) and in_words(difference.first) == "is not there"
    assert [*differences({"x": 1 << 5000}, {"x": 1.0}, close=1e-8)], "no float holds it"
    assert not is_number(True) and not is_number(1 << 5000) and not is_number(math.inf)


def test_every_value_has_its_place():
    assert [*leaves(ONE)] == [("a", 1), ("b.0.c", 2.0), ("b.1.c", None), ("d", {})]
    lists = {"plain": [1, 2], "empty": [], "objects": [{"a": [3]}]}
    assert dict(leaves(lists, whole_lists=True)) == {"plain": [1, 2], "empty": [], "objects.0.a": [3]}
    deep: object = 1
    for _ in range(10_000):
        deep = [deep]
    assert [value for _, value in leaves({"x": deep})] == [1]


def test_each_algorithm_has_a_line():
    assert set(ALGORITHMS) == set(KNOWN)
    assert len({one.colour for one in ALGORITHMS.values()} | {OWN_COLOUR}) == len(KNOWN) + 1
    assert (label_of_cca("bbr3"), label_of_cca("mine"), colour_of_cca("mine")) == ("BBRv3", "mine", OWN_COLOUR)


def test_root_mean_square():
    assert rms([3.0, 4.0]) == pytest.approx(math.sqrt(12.5))
    assert math.isnan(rms([]))
