"""What a command may write over: what bbrlab made there; anything else is refused, and stays."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bbrlab.base import outputs
from bbrlab.base.errors import UserError

MARK = b"made by bbrlab"


@pytest.mark.parametrize("content", [b"", b"what is made by bbrlab, and more"])
def test_what_it_made_and_what_is_empty_may_be_replaced(tmp_path, content):
    (tmp_path / "x.png").write_bytes(content)
    outputs.check_file("--out", tmp_path / "x.png", MARK)
    outputs.check_file("--out", tmp_path / "none.png", MARK)
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"made by bbrlab"))
    outputs.check_file("--out", tmp_path / "x.gz", MARK)


@pytest.mark.parametrize("name", ["mine.png", "mine.gz", "damaged.gz", "dangling", "null", "link"])
def test_somebodys_file_is_refused(tmp_path, name):
    (tmp_path / "mine.png").write_text("mine")
    (tmp_path / "mine.gz").write_text("mine")
    (tmp_path / "damaged.gz").write_bytes(gzip.compress(MARK)[:10] + b"\xff" * 20)
    (tmp_path / "own.png").write_bytes(MARK)
    (tmp_path / "link").symlink_to(tmp_path / "own.png")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    (tmp_path / "null").symlink_to("/dev/null")
    with pytest.raises(UserError, match=f"--out .*{name}: is there, and .*; move it, or give another name"):
        outputs.check_file("--out", tmp_path / name, MARK)


def test_what_has_no_mark_is_never_replaced(tmp_path):
    (tmp_path / "x.csv").write_text("flow,start_s\n")
    with pytest.raises(UserError, match="is there, and would be replaced"):
        outputs.check_file("--out", tmp_path / "x.csv")


def made(folder: Path) -> Path:
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "index.html").write_text("made")
    outputs.list_made(folder)
    return folder


def test_a_folder_that_it_made_may_be_replaced_as_a_whole(tmp_path):
    folder = made(tmp_path / "site")
    (folder / ".snakemake_timestamp").touch()
    (tmp_path / "empty").mkdir()
    for one in (folder, tmp_path / "empty", tmp_path / "none"):
        outputs.check_folder("--out", one)


@pytest.mark.parametrize("name", ["thesis.tex", "below/thesis.tex", "link"])
def test_a_folder_with_anything_else_is_refused(tmp_path, name):
    folder = made(tmp_path / "site")
    if name == "link":
        (folder / name).symlink_to(tmp_path, target_is_directory=True)
    else:
        (folder / name).write_text("mine")
    with pytest.raises(UserError, match=f"has {name}, which is not among what bbrlab made there"):
        outputs.check_folder("--out", folder)
    with pytest.raises(UserError, match="is a file"):
        outputs.check_folder("--out", folder / "below" / "index.html")


def test_a_link_to_a_folder_is_no_place_for_one(tmp_path):
    (tmp_path / "link").symlink_to(made(tmp_path / "site"), target_is_directory=True)
    with pytest.raises(
        UserError, match="link: is a link, which a folder would replace; give the folder that it leads to"
    ):
        outputs.check_folder("--out", tmp_path / "link")


def test_a_list_that_is_no_text_lists_nothing(tmp_path):
    folder = made(tmp_path / "site")
    (folder / outputs.MADE).write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"has below/index\.html, which is not among"):
        outputs.check_folder("--out", folder)


def test_a_text_tells_whether_anybody_changed_it(tmp_path):
    file = tmp_path / "study.yaml"
    file.write_text(outputs.signed("name: a\n"))
    assert outputs.is_as_made(file)
    for text in (file.read_text().replace("name: a", "name: b"), "name: a\n", ""):
        file.write_text(text)
        assert not outputs.is_as_made(file)
