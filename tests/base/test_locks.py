"""Folders of living processes, cores that are taken, and who may meddle with either."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bbrlab.base import files, locks, scratch
from bbrlab.base.errors import UserError
from bbrlab.base.files import explain, place_of
from bbrlab.base.locks import owned_folder, remove_abandoned
from bbrlab.cli.doctor import _temporary
from bbrlab.experiment.machine import cores

MAKER = """
import sys, time
from pathlib import Path
from bbrlab.base.locks import owned_folder
with owned_folder(Path(sys.argv[1]), "x-") as folder:
    (folder / "sub").mkdir()
    (folder / "sub" / "big").write_text("memory")
    print(folder, flush=True)
    time.sleep(60)
"""


def age(folder: Path) -> None:
    os.utime(folder, (0, 0))


def test_an_owned_folder_goes_with_its_block(tmp_path):
    with owned_folder(tmp_path, "x-") as folder:
        assert folder.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_goes_however_deep_and_closed_it_is(tmp_path, monkeypatch):
    """What kernel code of others can leave in a run's folder. Python's own goes as deep as its stack."""
    with owned_folder(tmp_path, "x-") as folder:
        monkeypatch.chdir(folder)
        for _ in range(2000):
            os.mkdir("d")
            os.chdir("d")
        os.mkdir("closed", 0)
        os.chdir(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_a_living_ones_is_not(tmp_path):
    argv = [sys.executable, "-c", MAKER, str(tmp_path)]
    makers = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        dead, alive = (Path(maker.stdout.readline().strip()) for maker in makers)
        makers[0].send_signal(signal.SIGKILL)
        makers[0].wait()
        assert remove_abandoned(tmp_path, "x-") == [], "both are young: they could be about to be locked"
        age(dead)
        age(alive)
        assert remove_abandoned(tmp_path, "x-") == [dead]
        assert not dead.exists()
        assert (alive / "sub" / "big").exists()
    finally:
        for maker in makers:
            maker.kill()
            maker.communicate()


def test_only_real_folders_of_ones_own_are_removed(tmp_path, monkeypatch):
    target = tmp_path / "target"
    target.mkdir()
    (target / "precious").write_text("mine")
    (tmp_path / "x-link").symlink_to(target)
    (tmp_path / "x-file").write_text("a file")
    (tmp_path / "x-folder").mkdir()
    (tmp_path / "x-folder" / "link").symlink_to(target)
    (tmp_path / "y-other").mkdir()
    for path in (target, tmp_path / "x-folder", tmp_path / "y-other"):
        age(path)
    with monkeypatch.context() as patch:
        patch.setattr(locks.os, "geteuid", lambda: os.getuid() + 1)
        assert remove_abandoned(tmp_path, "x-") == []
    assert remove_abandoned(tmp_path, "x-") == [tmp_path / "x-folder"]
    assert (target / "precious").read_text() == "mine"
    assert {p.name for p in tmp_path.iterdir()} == {"target", "x-link", "x-file", "y-other"}


def test_what_a_killed_process_left_half_written_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    left, folder = tmp_path / "a" / ".summary.json.x.partial", tmp_path / "a" / ".site.y.partial"
    (folder / "html").mkdir(parents=True)
    left.write_text("{")
    other = tmp_path / "a" / "my.partial"
    other.write_text("mine")
    with files.aside(tmp_path / "a" / "table") as mine, files.folder_aside(tmp_path / "a" / "pages") as ours:
        for path in (left, folder, mine, ours):
            age(path)
        assert sorted(locks.remove_partials(tmp_path)) == sorted([left, folder])
        mine.write_text("whole")
    assert (tmp_path / "a" / "table").read_text() == "whole"
    assert other.exists()


def test_an_error_of_a_write_says_which_file(tmp_path):
    with pytest.raises(OSError) as caught, files.aside(tmp_path / "table.csv"):
        raise OSError(28, "No space left on device")
    assert str(explain(caught.value, Path(caught.value.filename))).startswith(
        f"{tmp_path / 'table.csv'}: the file system has no space"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_run_begins_with_removing_what_killed_ones_left(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    left = tmp_path / f"{scratch.PREFIX}left"
    left.mkdir()
    age(left)
    with scratch.scratch_folder() as folder:
        assert folder.parent == tmp_path
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def name_of_locks(user: int) -> str:
    return f"bbrlab-cores-{cores.outer_user(cores.ID_MAP.read_text(), user)}"


@pytest.fixture
def shared(tmp_path, monkeypatch):
    monkeypatch.setattr(cores, "SHARED", tmp_path)
    return tmp_path / name_of_locks(os.getuid())


def test_in_a_user_namespace_a_users_guests_meet_where_they_do_outside(tmp_path, monkeypatch):
    """Its root may be anybody: the folder of the machine's root is not theirs."""
    monkeypatch.setattr(cores, "SHARED", tmp_path)
    monkeypatch.setattr(cores, "ID_MAP", tmp_path / "uid_map")
    for id_map, folder in (
        ("         0          0 4294967295\n", f"bbrlab-cores-{os.getuid()}"),
        (f"{os.getuid()} 54321 1\n", "bbrlab-cores-54321"),
        (f"{os.getuid() + 1} 54322 5\n{max(os.getuid() - 3, 0)} 100 4\n", f"bbrlab-cores-{100 + min(os.getuid(), 3)}"),
    ):
        cores.ID_MAP.write_text(id_map)
        assert cores.lock_folder().name == folder


def test_waiting_for_a_core_is_told_and_for_whom(shared, monkeypatch):
    monkeypatch.setattr(cores, "TELL_AFTER_S", 0.2)
    monkeypatch.setattr(cores, "TELL_AGAIN_S", 1.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    holder = subprocess.Popen(
        [sys.executable, "-c", f"""
import os, time
from pathlib import Path
from bbrlab.experiment.machine import cores
cores.SHARED = Path({str(shared.parent)!r})
os.sched_getaffinity = lambda _: {{0}}
with cores.one_core():
    print("held", flush=True)
    time.sleep(3)
"""], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout.readline() == "held\n"
    told: list[str] = []
    with cores.one_core(told.append) as core:
        assert core == 0
    assert 2 <= len(told) <= 4, "it is told again"
    assert set(told) == {f"waiting for a free core (core 0: process {holder.pid})"}
    holder.communicate()
    before = len(told)
    assert cores.waiting_words(59.9, ["core 0: process 1"]) == "waiting for a free core (core 0: process 1)"
    assert (
        cores.waiting_words(181, ["core 0: process 1"]) == "waiting for a free core, for 3 min now (core 0: process 1)"
    )
    with cores.one_core(told.append):
        assert len(told) == before, "nobody waits long for a free core"


def test_the_folder_of_the_locks_must_be_ones_own(shared, monkeypatch):
    assert cores.lock_folder() == shared
    assert shared.stat().st_mode & 0o777 == 0o700
    shared.chmod(0o777)
    with pytest.raises(UserError, match="must be a folder of yours that nobody else may write to"):
        cores.lock_folder()
    shared.chmod(0o700)
    monkeypatch.setattr(cores, "SHARED", shared.parent)
    shared.rmdir()
    (shared.parent / "elsewhere").mkdir()
    shared.symlink_to(shared.parent / "elsewhere")
    with pytest.raises(UserError, match="must be a folder of yours"):
        cores.lock_folder()
    shared.unlink()
    shared.write_text("")
    with pytest.raises(UserError, match="no folder for the locks of the cores"):
        cores.lock_folder()


def test_a_folder_of_locks_that_somebody_else_made_is_refused(shared, monkeypatch):
    """Who has that name first could keep every guest of ours waiting."""
    cores.lock_folder()
    other = os.getuid() + 1
    shared.rename(shared.with_name(name_of_locks(other)))
    monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.raises(UserError, match="must be a folder of yours"):
        cores.lock_folder()


def test_a_lock_that_is_a_link_is_refused(shared, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    victim = shared.parent / "victim"
    victim.write_text("precious")
    (cores.lock_folder() / "core-0.lock").symlink_to(victim)
    with pytest.raises(UserError, match=r"core-0\.lock"), cores.one_core():
        pass
    assert victim.read_text() == "precious"


def test_whose_fault_an_error_is(tmp_path, monkeypatch):
    out, temporary = tmp_path / "out", tmp_path / "tmp"
    temporary.mkdir()
    named = OSError(28, "No space left on device", str(temporary / "x" / "y"))
    assert place_of(named, out, temporary) == temporary
    assert place_of(OSError(13, "Permission denied", str(out / "y")), out, temporary) == out
    free = {out: 5e9, temporary: 0, tmp_path: 7}
    monkeypatch.setattr("bbrlab.base.files.existing_parent", lambda path: path)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": free[path]}))
    assert place_of(OSError(28, "No space left on device"), out, temporary) == temporary, "a write names no file"
    words = str(explain(OSError(28, "No space left on device"), temporary, "or set TMPDIR"))
    assert (
        words
        == f"{temporary}: the file system has no space or no inodes left; remove files there, or choose another place, or set TMPDIR"
    )


def test_doctor_says_which_temporary_folder_was_passed_over(tmp_path, monkeypatch):
    for folder, said in (
        (tmp_path, ""),
        (tmp_path / "nope", f"; passed over: {tmp_path}/nope (there is no such folder)"),
    ):
        monkeypatch.setenv("TMPDIR", str(folder))
        assert _temporary().found.partition("memory)")[2].split(", /")[0] == said


def test_a_temporary_folder_by_a_relative_name_is_one_wherever_a_process_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", ".")
    assert scratch.scratch_parent() == tmp_path
