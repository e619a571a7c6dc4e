"""The order in which files of tests are handed out to workers."""

from __future__ import annotations

from types import SimpleNamespace

from bbrlab.base import paths
from tests.conftest import LONGEST, pytest_collection_modifyitems


def test_the_longest_files_are_there_and_come_first():
    folder = paths.ROOT / "tests"
    assert all((folder / name).is_file() for name in LONGEST)
    names = ["base/test_base.py", *sorted(LONGEST), "study/test_sweep.py"]
    items = [SimpleNamespace(path=folder / name, get_closest_marker=lambda name: None) for name in names]
    pytest_collection_modifyitems(items)
    assert [item.path for item in items] == [folder / name for name in (*LONGEST, names[0], names[-1])]
