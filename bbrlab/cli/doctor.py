"""``bbrlab doctor``: requirements that this machine lacks, and how to get them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import paths, scratch
from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores
from bbrlab.experiment.machine import cores, uml
from bbrlab.kernel.built import get_kernel
from bbrlab.kernel.confine import confined, landlock
from bbrlab.kernel.sources import NO_DEBIAN

NEEDED_DISK_BYTES = 4e9
BUILDING = "# --- to build the guest kernel"  # a section of envs/debian-packages.txt
NEEDED_MEMORY_BYTES = 1.5e9


@dataclass(frozen=True)
class Finding:
    """A requirement: its name, what this machine has, and what to do if it is not met; empty if it is."""

    name: str
    found: str
    remedy: str = ""


def packages() -> list[str]:
    """The Debian packages that bbrlab needs; in an image without those that build kernels."""
    names, building = [], False
    for line in paths.DEBIAN_PACKAGES.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            building = line == BUILDING
        elif line.strip() and not (building and paths.IMAGE.exists()):
            names.append(line.strip())
    return names


def missing_packages() -> list[str]:
    """Those of packages() that are not installed. UserError where there is no dpkg."""
    needed = packages()
    argv = ["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *needed]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError(NO_DEBIAN) from None
    have = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    return [p for p in needed if p not in have]


def _machine() -> Finding:
    remedy = "" if uml.is_supported() else "virtual time needs Linux on x86-64; use such a machine or a virtual one"
    return Finding("machine", f"{os.uname().sysname} {os.uname().machine}", remedy)


def _debian() -> Finding:
    try:
        missing = " ".join(missing_packages())
    except UserError as error:
        return Finding("packages", str(error), "install Debian 12 or 13, for example in a container (Dockerfile)")
    if missing:
        return Finding("packages", f"missing: {missing}", f"make setup, or: apt-get install {missing}")
    return Finding("packages", f"all {len(packages())} Debian packages are installed")


def _temporary() -> Finding:
    try:
        folder = scratch.scratch_parent()
    except UserError as error:
        return Finding("temporary folder", str(error), "export TMPDIR=/some/folder/on/a/disk/mounted/with/exec")
    free = shutil.disk_usage(folder).free
    few = (
        ""
        if free >= NEEDED_MEMORY_BYTES
        else "free some space there, or set TMPDIR to a folder with 1.5 GB for each core"
    )
    instead = f"; passed over: {', '.join(over)}" if (over := scratch.passed_over()) else ""
    return Finding(
        "temporary folder",
        f"{folder} allows programs to run, {free / 1e9:.1f} GB free (a guest's memory){instead}",
        few,
    )


def _disk() -> Finding:
    folders = list(dict.fromkeys((paths.build_folder(), paths.results_folder())))
    there = [next(p for p in (folder, *folder.parents) if p.exists()) for folder in folders]
    free = [shutil.disk_usage(folder).free for folder in there]
    ok = min(free) >= NEEDED_DISK_BYTES and all(os.access(folder, os.W_OK) for folder in there)
    remedy = "" if ok else (
        "a kernel build and results need 4 GB in folders that you may write to: export BBRLAB_BUILD=FOLDER, BBRLAB_RESULTS=FOLDER")  # fmt: skip
    words = ", ".join(f"{bytes / 1e9:.1f} GB free for {folder}" for folder, bytes in zip(folders, free, strict=True))
    return Finding("disk", words, remedy)


def _ptrace() -> Finding:
    path = Path("/proc/sys/kernel/yama/ptrace_scope")
    scope = path.read_text(encoding="utf-8").strip() if path.exists() else "0"
    remedy = "a guest is traced by its kernel; this machine forbids all tracing until it is restarted with kernel.yama.ptrace_scope at most 2"
    return Finding("ptrace", f"kernel.yama.ptrace_scope is {scope}", remedy if scope == "3" else "")


def _confinement() -> Finding:
    tried = subprocess.run(confined.uml(["/usr/bin/true"], (0, 0), foreign=True, reads=[], writes=[]), capture_output=True, text=True)  # fmt: skip
    if tried.returncode:
        why = tried.stderr.strip() or f"a confined program ended with status {tried.returncode}"
        return Finding("confinement", why, "no guest can start; please report it (CONTRIBUTING.md)")
    by = f"Landlock version {landlock.version()}" if landlock.version() else "no Landlock"
    lacking = confined.lacking()
    held = f"not held back: {'; '.join(lacking)}. {confined.REMEDY}" if lacking else (
        "a guest's kernel reads and writes no files of yours, opens no sockets and reaches no other process")  # fmt: skip
    return Finding("confinement", f"{by}; {held}")


def _cores() -> Finding:
    try:
        folder = cores.lock_folder()
    except UserError as error:
        return Finding("cores", str(error), "remove that folder")
    return Finding("cores", f"{all_cores()} usable, one guest each (locks in {folder})")


def _kernel() -> Finding:
    try:
        built = get_kernel()
    except UserError as error:
        return Finding("kernel", "none that could run", str(error))
    return Finding("kernel", f"{built.name}: Linux {built.release} with {', '.join(sorted(built.ccas))}")


def check_machine() -> list[Finding]:
    """Every finding; never raises for something that is missing."""
    return [_machine(), _debian(), _ptrace(), _confinement(), _cores(), _temporary(), _disk(), _kernel()]
