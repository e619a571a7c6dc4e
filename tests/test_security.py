"""What a guest's root may do to the host: read, and write to one folder. Nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.run import guest
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict

pytestmark = pytest.mark.guest

# Each line is an attempt of the guest's root; it prints "escaped" if it worked.
ATTEMPTS = r"""
try() { "$@" 2>/dev/null && echo "escaped: $*" >>/mnt/attempts; }
touch /mnt/attempts
mkdir -p /run/host
mount -o remount,rw / 2>/dev/null
try sh -c 'echo x >TARGET/file'
try sh -c 'echo x >TARGET/new'
try rm TARGET/file
try chmod 777 TARGET/file
try mkdir TARGET/folder
try mv TARGET/file TARGET/moved
try ln TARGET/file /mnt/hard
try ln -s TARGET/file /mnt/soft
try mknod /mnt/device b 8 0
for place in TARGET /proc/self/cwd/out/../../TARGET /proc/self/cwd /; do
    umount /run/host 2>/dev/null
    mount -t hostfs -o "$place" none /run/host || continue
    try sh -c 'echo x >/run/host/file'
    try sh -c 'echo x >/run/host/TARGET/file'
    try rm /run/host/file
done
touch /mnt/suid && chmod 4755 /mnt/suid
echo mine >/mnt/allowed
"""


def test_a_guest_cannot_write_elsewhere(tmp_path, monkeypatch):
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("precious")
    code = tmp_path / "code"
    shutil.copytree(paths.GUEST_CODE, code)
    kept = tmp_path / "kept"
    (code / "attempts.sh").write_text(ATTEMPTS.replace("TARGET", str(target)))
    (code / "guest.py").write_text("import subprocess\nsubprocess.run(['sh', '/run/guest/attempts.sh'])\n")
    monkeypatch.setattr(paths, "GUEST_CODE", code)
    keep = guest.keep_console

    def keep_all(folder: Path, log: Path) -> None:
        shutil.copytree(folder, kept, dirs_exist_ok=True)
        keep(folder, log)

    monkeypatch.setattr(guest, "keep_console", keep_all)
    with pytest.raises(UserError):  # it runs no experiment
        run_point(base_point(validate(scenario_dict(), "s")), 1, tmp_path / "out")
    assert (kept / "attempts").read_text() == ""
    assert (kept / "allowed").read_text() == "mine\n"
    assert not (kept / "suid").stat().st_mode & 0o6000
    assert sorted(p.name for p in target.iterdir()) == ["file"]
    assert (target / "file").read_text() == "precious"
    assert not (tmp_path / "out" / "summary.json").exists()
