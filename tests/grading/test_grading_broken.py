"""Submissions that are broken, by mistake or on purpose: each is graded, each gets a useful message, none of them runs."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import socket
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bbrlab_apps.grading import report
from bbrlab_apps.grading.report import GRADESCOPE, PAGE
from tests.graded import copied, edit_json, first_run, graded, words

pytestmark = pytest.mark.guest
PROOF = "proof-of-execution"


class Evil:
    """What an unpickler would run."""

    def __reduce__(self):
        return os.system, (f"touch {PROOF}",)


def evil_bytes() -> bytes:
    import pickle

    return pickle.dumps(Evil())


# Ways to break a submission. Each returns what is handed in, if it is not the folder.
def nothing(s):
    shutil.rmtree(s)
    s.mkdir()


def no_answers(s):
    (s / "answers.yaml").unlink()


def no_results(s):
    shutil.rmtree(s / "results")


def no_manifest(s):
    (first_run(s) / "manifest.json").unlink()


def no_samples(s):
    (first_run(s) / "samples.parquet").unlink()


def cut_samples(s):
    file = first_run(s) / "samples.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def pickled_samples(s):
    (first_run(s) / "samples.parquet").write_bytes(evil_bytes())


def pickle_beside(s):
    (s / "model.pkl").write_bytes(evil_bytes())
    (s / "answers.yaml").unlink()


def other_columns(s):
    pq.write_table(pa.table({"time_s": [1.0]}), first_run(s) / "samples.parquet")


def text_columns(s):
    table = pq.read_table(first_run(s) / "samples.parquet")
    place = table.column_names.index("cwnd")
    pq.write_table(table.set_column(place, "cwnd", [["x"] * len(table)]), first_run(s) / "samples.parquet")


def strange_flows(s):
    table = pq.read_table(first_run(s) / "samples.parquet")
    place = table.column_names.index("flow")
    flows = np.full(len(table), 2_000_000_000, "i4")
    pq.write_table(table.set_column(place, "flow", [flows]), first_run(s) / "samples.parquet")


def parquet_bomb(s):
    names = pq.read_table(first_run(s) / "samples.parquet").column_names
    rows = np.zeros(100_000, "i1")
    pq.write_table(pa.table(dict.fromkeys(names, rows)), first_run(s) / "samples.parquet", compression="zstd")


def sparse_gigabyte(s):
    with open(s / "big.dat", "wb") as file:
        file.truncate(1 << 30)


def sparse_samples(s):
    with open(first_run(s) / "samples.parquet", "wb") as file:
        file.truncate(1 << 30)


def many_files(s):
    for number in range(400):
        (s / f"file-{number}").touch()


def many_folders(s):
    place = s
    for _ in range(40):
        place = place / "in"
        place.mkdir()


def link_out(s):
    (s / "answers.yaml").unlink()
    (s / "answers.yaml").symlink_to("/etc/passwd")


def folder_link_out(s):
    shutil.rmtree(s / "results")
    (s / "results").symlink_to("/etc")


def link_loop(s):
    (s / "results" / "again").symlink_to(s)


def pipe_as_answers(s):
    (s / "answers.yaml").unlink()
    os.mkfifo(s / "answers.yaml")


def pipe_as_samples(s):
    (first_run(s) / "samples.parquet").unlink()
    os.mkfifo(first_run(s) / "samples.parquet")


def a_socket(s):
    (s / "notebook.ipynb").unlink()
    here = os.getcwd()
    os.chdir(s)  # a socket's path has at most 107 characters
    try:
        socket.socket(socket.AF_UNIX).bind("notebook.ipynb")
    finally:
        os.chdir(here)


def folder_as_file(s):
    (s / "scenario.yaml").unlink()
    (s / "scenario.yaml").mkdir()


def no_utf8(s):
    (s / "answers.yaml").write_bytes(b"student: ada\nanswers: {colour: \xff\xfe}\n")


def no_utf8_name(s):
    (Path(os.fsdecode(os.fsencode(s) + b"/\xff\xfe.txt"))).touch()


def page_in_a_name(s):
    (s / "<img src=x onerror=alert(1)>.txt").touch()
    (s / "answers.yaml").unlink()


def line_in_a_name(s):
    (s / "a\nb\x1b[2J").touch()


def nan_in_summary(s):
    edit_json(first_run(s) / "summary.json", jain_index=float("nan"))


def huge_in_summary(s):
    file = first_run(s) / "summary.json"
    file.write_text(file.read_text().replace('"jain_index": ', '"jain_index": 1e999, "x": ', 1))


def huge_integer_in_summary(s):
    edit_json(first_run(s) / "summary.json", jain_index=10**400)


def deep_summary(s):
    (first_run(s) / "summary.json").write_text("[" * 100_000)


def list_summary(s):
    (first_run(s) / "summary.json").write_text("[]")


def other_summary(s):
    edit_json(first_run(s) / "summary.json", groups={"a": [None]}, bottleneck=7)


def no_checks(s):
    edit_json(first_run(s) / "summary.json", checks="all passed")


def list_manifest(s):
    (first_run(s) / "manifest.json").write_text("[1, 2]")


def text_seed(s):
    edit_json(first_run(s) / "manifest.json", seed="24")


def huge_seed(s):
    edit_json(first_run(s) / "manifest.json", seed=10**400)


def manifest_reads_files(s):
    traffic = {"cca": "bbr1", "traffic": {"trace": "/etc/passwd"}}
    content = json.loads((first_run(s) / "manifest.json").read_text())["scenario"]
    edit_json(first_run(s) / "manifest.json", scenario=content | {"flows": [traffic]})


def manifest_of_other_guest(s):
    edit_json(
        first_run(s) / "manifest.json", guest_code_sha256={"guest.py": "0", "../../etc/passwd": "1"}, plan_sha256="0"
    )
    edit_json(first_run(s) / "summary.json", seed=1)


def nan_answer(s):
    (s / "answers.yaml").write_text(
        "student: ada\nanswers: {bdp_bytes: .nan, share: .inf, holds: [x], colour: {a: b}}\n"
    )


def huge_answer(s):
    (s / "answers.yaml").write_text(
        f"student: ada\nanswers: {{bdp_bytes: {'9' * 400}, share: 1, holds: a, colour: red}}\n"
    )


def alias_bomb(s):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    (s / "answers.yaml").write_text("\n".join(lines))


def yaml_object(s):
    (s / "answers.yaml").write_text(f"!!python/object/apply:os.system ['touch {PROOF}']\n")


def deep_yaml(s):
    (s / "answers.yaml").write_text("[" * 30_000)


def long_yaml(s):
    (s / "answers.yaml").write_text("# x\n" * 100_000)


def list_answers(s):
    (s / "answers.yaml").write_text("- 1\n- 2\n")


def other_student(s):
    file = s / "answers.yaml"
    file.write_text(file.read_text().replace("student: ada", "student: bob"))


def huge_count(s):
    file = s / "scenario.yaml"
    file.write_text(file.read_text().replace("cca: cubic", "cca: cubic\n  count: 1000000000000"))


def huge_sweep(s):
    with open(s / "scenario.yaml", "a") as file:
        axes = "".join(
            f"  {path}: {list(range(1, 101))}\n"
            for path in ("network.rate_mbit", "network.rtt_ms", "duration_s", "trials")
        )
        file.write(f"sweep:\n{axes}")


def endless(s):
    file = s / "scenario.yaml"
    file.write_text(file.read_text().replace("duration_s: 4", "duration_s: 86000"))


def reads_files(s):
    file = s / "scenario.yaml"
    file.write_text(file.read_text() + "sweep:\n  flows.0.traffic: [{trace: /etc/passwd}]\n")


def no_notebook(s):
    (s / "notebook.ipynb").write_bytes(evil_bytes())


def plain_file(s):
    (s.parent / "report.pdf").write_bytes(b"%PDF")
    return s.parent / "report.pdf"


def is_a_link(s):
    (s.parent / "link").symlink_to(s)
    return s.parent / "link"


def zipped(s: Path, add: Callable[[zipfile.ZipFile], None] = lambda archive: None) -> Path:
    file = s.parent / "ada.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(s.rglob("*")):
            archive.write(path, path.relative_to(s))
        add(archive)
    return file


def zip_bomb(s):
    def add(archive):
        with archive.open("zeros", "w", force_zip64=True) as file:
            for _ in range(4):
                file.write(bytes(1 << 24))

    return zipped(s, add)


def zip_that_lies(s):
    file = zipped(s, lambda a: a.writestr("zeros", bytes(10_000_000)))
    data = file.read_bytes().replace(struct.pack("<I", 10_000_000), struct.pack("<I", 10))
    file.write_bytes(data)
    return file


def zip_leads_out(s):
    return zipped(s, lambda a: a.writestr("../../out.txt", "x"))


def zip_absolute(s):
    return zipped(s, lambda a: a.writestr("/tmp/bbrlab-out.txt", "x"))


def zip_with_a_link(s):
    def add(archive):
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")

    return zipped(s, add)


def zip_twice(s):
    def add(archive):
        with pytest.warns(UserWarning):
            archive.writestr("answers.yaml", "student: eve")

    return zipped(s, add)


def cut_zip(s):
    file = zipped(s)
    file.write_bytes(file.read_bytes()[:-2000])
    return file


def no_zip(s):
    file = s.parent / "ada.zip"
    file.write_bytes(b"PK\x03\x04 and nothing more")
    return file


def tarred(s: Path, *members: tarfile.TarInfo, size: int = 0) -> Path:
    file = s.parent / "ada.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        archive.add(s, "ada")
        for member in members:
            member.size = size
            archive.addfile(member, io.BytesIO(bytes(size)))
    return file


def tar_leads_out(s):
    return tarred(s, tarfile.TarInfo("ada/../../out"))


def tar_with_links(s):
    soft, hard = tarfile.TarInfo("ada/soft"), tarfile.TarInfo("ada/hard")
    soft.type, hard.type, soft.linkname, hard.linkname = tarfile.SYMTYPE, tarfile.LNKTYPE, "/etc/passwd", "/etc/passwd"
    return tarred(s, soft, hard)


def tar_with_a_device(s):
    device = tarfile.TarInfo("ada/disk")
    device.type, device.devmajor = tarfile.BLKTYPE, 8
    return tarred(s, device)


def tar_bomb(s):
    return tarred(s, tarfile.TarInfo("ada/zeros"), size=64_000_000)


def tar_of_headers(s):
    """A header of gigabytes that a reader would keep in memory."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 4_000_000_000
    file = s.parent / "ada.tar.gz"
    with gzip.open(file, "wb", compresslevel=1) as archive:
        archive.write(header.tobuf(tarfile.USTAR_FORMAT))
        archive.write(bytes(1 << 24))
    return file


BROKEN = [
    (nothing, "scenario.yaml is missing"), (no_answers, "answers.yaml is missing"), (no_results, "results/ has no run"),
    (no_manifest, "manifest.json missing"), (no_samples, "samples.parquet missing"), (cut_samples, "is no Parquet file"),
    (pickled_samples, "is no Parquet file"), (pickle_beside, "never opened: model.pkl"), (other_columns, "has no column flow"),
    (text_columns, "has no column cwnd of numbers"), (strange_flows, "flows that the scenario does not have"),
    (parquet_bomb, "has 100000 rows; such a run has at most"), (sparse_gigabyte, "big.dat: has 1073.7 MB"),
    (sparse_samples, "has 1073.7 MB"), (many_files, "more than 300 files and folders"), (many_folders, "too many folders"),
    (link_out, "answers.yaml: is a link"), (folder_link_out, "results: is a link"), (link_loop, "results/again: is a link"),
    (pipe_as_answers, "answers.yaml: is a pipe"), (pipe_as_samples, "samples.parquet: is a pipe"), (a_socket, "is a socket"),
    (folder_as_file, "scenario.yaml is missing"), (no_utf8, "answers.yaml: is not a UTF-8 text file"),
    (no_utf8_name, "its name is not UTF-8"), (page_in_a_name, "not opened: <img"), (line_in_a_name, "cannot be shown"),
    (nan_in_summary, "NaN is no number"), (huge_in_summary, "1e999 is no number"), (huge_integer_in_summary, "edited summary: summary.json: jain_index is 1000"), (deep_summary, "nested too deeply"),
    (list_summary, "is no summary of a run"), (other_summary, "edited summary"), (no_checks, "has no self-checks"),
    (list_manifest, "manifest.json"), (text_seed, "must be a whole number: made by another version"),
    (huge_seed, "manifest.json: seed"), (manifest_reads_files, "no file can be named here"),
    (manifest_of_other_guest, "results of another version of bbrlab"), (nan_answer, "is no number"),
    (huge_answer, "is no number"), (alias_bomb, "an alias"), (yaml_object, "answers.yaml:1:1: not valid YAML"),
    (deep_yaml, "nested too deeply"), (long_yaml, "which is too much for such a file"), (list_answers, "must have the keys"),
    (other_student, "says student 'bob'"), (huge_count, "flows.1.count = 1000000000000"), (huge_sweep, "at most 100 are possible"),
    (endless, "duration_s is 86000"), (reads_files, "no file can be named here"), (no_notebook, "notebook.ipynb"),
    (plain_file, "is neither a folder nor an archive"), (is_a_link, "is neither a folder nor an archive"),
    (zip_bomb, "zeros: has 67.1 MB"), (zip_that_lies, "damaged"), (zip_leads_out, "leads out of the submission"),
    (zip_absolute, "a place of the whole machine"), (zip_with_a_link, "link: is a link"), (zip_twice, "is there twice"),
    (cut_zip, "the archive is damaged"), (no_zip, "the archive is damaged"), (tar_leads_out, "leads out of the submission"),
    (tar_with_links, "ada/hard: is a link"), (tar_with_a_device, "ada/disk: is a special file"), (tar_bomb, "zeros: has 64.0 MB"),
    (tar_of_headers, "MiB of memory"),
]  # fmt: skip


@pytest.mark.parametrize(("breaks", "expected"), BROKEN, ids=[b.__name__ for b, _ in BROKEN])
def test_it_is_graded_with_a_useful_message(breaks, expected, good, rubric, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    submission = copied(good, tmp_path / "in" / "ada")
    before = {p for p in tmp_path.iterdir()}
    submission = breaks(submission) or submission
    grade = graded(submission, rubric, tmp_path / "out")
    text = words(grade)
    assert expected in text
    assert "Traceback" not in text and str(tmp_path) not in text
    assert grade["score"] < grade["of"]
    assert {p for p in tmp_path.iterdir()} - before == {
        tmp_path / "out"
    }  # nothing was written elsewhere, nothing executed
    page = (tmp_path / "out" / PAGE).read_text(encoding="utf-8")
    assert "<img" not in page and page == report.page(grade)
    json.loads((tmp_path / "out" / GRADESCOPE).read_text())
    assert not Path("/tmp/bbrlab-out.txt").exists()


def test_an_archive_of_a_whole_submission_gets_full_marks(good, rubric, tmp_path):
    for number, make in enumerate((zipped, tarred)):
        submission = copied(good, tmp_path / str(number) / "ada")
        grade = graded(make(submission), rubric, tmp_path / f"out-{number}")
        assert grade["score"] == grade["of"] == 100, words(grade)
