"""What every stage's command does where it cannot write: the program that tests/campaign/test_bad_disks.py runs in mounts of its own.

`python -m tests.campaign.bad_disks FOLDER KIND...` reads {name: command line} from FOLDER/commands.json, with "{out}" for the place to write to,
and tries each on a full disk, on one that is mounted read-only, in a folder without permission (KINDS). FOLDER/told.json then has
{name: {kind: {"status", "errors", "left"}}}.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

KINDS = ("full", "read-only", "no permission")
KIB = 64  # of the disk that is full
CAPABILITY_VERSION_3 = 0x20080522


def mounted(out: Path, kind: str) -> None:
    """Mount what cannot be written to at ``out``."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={KIB}k", "none", out], check=True)
    if kind == "full":
        with open(out / "filler", "wb", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(512))
                except OSError:
                    break
    elif kind == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", out], check=True)
    else:
        out.chmod(0o555)


def drop_capabilities() -> None:
    """Be held back by permissions, as whoever is not root is."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")


def attempt(argv: list[str], out: Path, kind: str, errors: Path) -> dict[str, Any]:
    """What a command did in a fork of this process, which has all that it imports."""
    mounted(out, kind)
    child = os.fork()
    if child == 0:
        status = 99
        try:
            for number, place in ((1, os.devnull), (2, str(errors))):
                os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            if kind == "no permission":
                drop_capabilities()
            os.environ["BBRLAB_BUILD"] = str(out) if argv[0] == "kernel" else os.environ["BBRLAB_BUILD"]
            sys.argv = ["bbrlab", *argv]
            from bbrlab.cli.main import main

            main()
        except SystemExit as end:
            status = int(end.code or 0)
            sys.stderr.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, waited = os.waitpid(child, 0)
    left = sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.name != "filler")
    subprocess.run(["umount", out], check=True)
    return {"status": os.waitstatus_to_exitcode(waited), "errors": errors.read_text(errors="replace"), "left": left}


def main() -> None:
    """The command."""
    import scipy.stats  # noqa: F401

    import bbrlab.cli.commands  # noqa: F401

    folder, kinds = Path(sys.argv[1]), sys.argv[2:]
    commands = json.loads((folder / "commands.json").read_text())
    out = folder / "out"
    out.mkdir()
    told: dict[str, dict[str, Any]] = {}
    for name, argv in commands.items():
        words = [word.replace("{out}", str(out)) for word in argv]
        told[name] = {kind: attempt(words, out, kind, folder / "errors") for kind in kinds}
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
