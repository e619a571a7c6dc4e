"""What programs on nodes wrote in a play: plain files are kept, and nothing that leads elsewhere."""

from __future__ import annotations

import os

import pytest

from bbrlab.run.output import PROMPT_FILES
from bbrlab_apps.play import node_files
from bbrlab_apps.play.node_files import keep_files


def test_files_and_folders_are_kept_and_links_are_not(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    guest, out = tmp_path / "guest", tmp_path / "out"
    inner = guest / PROMPT_FILES / "deep" / "er"
    inner.mkdir(parents=True)
    (guest / PROMPT_FILES / "x.pcap").write_bytes(b"abc")
    (inner / "y.json").write_text("{}")
    (inner / "link").symlink_to(secret)
    (guest / PROMPT_FILES / "folder").symlink_to(tmp_path)
    os.mkfifo(guest / PROMPT_FILES / "pipe")
    left = keep_files(guest, out)
    assert (out / PROMPT_FILES / "x.pcap").read_bytes() == b"abc"
    assert (out / PROMPT_FILES / "deep/er/y.json").read_text() == "{}"
    assert sorted(p.name for p in (out / PROMPT_FILES).rglob("*") if p.is_file()) == ["x.pcap", "y.json"]
    assert left == ["pipe: is no plain file", "deep/er/link: is no plain file"]


@pytest.mark.parametrize("limit", ["FILES_MAX", "BYTES_MAX"])
def test_there_is_a_limit(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(node_files, limit, 2)
    (tmp_path / "guest" / PROMPT_FILES).mkdir(parents=True)
    for name in "abc":
        (tmp_path / "guest" / PROMPT_FILES / name).write_bytes(b"x")
    assert len(keep_files(tmp_path / "guest", tmp_path / "out")) == 1
    assert sorted(os.listdir(tmp_path / "out" / PROMPT_FILES)) == ["a", "b"]


def test_without_files_there_is_no_folder(tmp_path):
    (tmp_path / "guest" / PROMPT_FILES).mkdir(parents=True)
    assert keep_files(tmp_path / "guest", tmp_path / "out") == []
    assert not (tmp_path / "out").exists()
