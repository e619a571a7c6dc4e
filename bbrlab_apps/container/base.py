"""A base image from Debian's own archive, where no registry of images is reached: debootstrap, which needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab_apps.container.builders import Builder, last_words, temporary_folder

SUITES = ("bookworm", "trixie")  # Debian 12 and 13
MIRROR = "http://deb.debian.org/{archive}"
NEEDED_BYTES = 1e9
# What nobody reads in a container, a third of its size; the licences stay.
SLIM = """\
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
"""
# Of the machine that it was made on, and what apt can fetch again.
LEFT_OUT = (
    "etc/hostname",
    "etc/resolv.conf",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
    "proc",
    "sys",
    "dev",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
)


def base_name(suite: str) -> str:
    """What the base of a release of Debian is called."""
    return f"localhost/bbrlab-base:{suite}"


def sources_list(suite: str, archive: str | None = None) -> str:
    """apt's sources of a release, its updates and its security updates."""
    archive = archive or MIRROR
    main, security = (archive.replace("{archive}", name) for name in ("debian", "debian-security"))
    # An archive of the past is valid for good.
    return "".join(
        f"deb [check-valid-until=no] {url} {of} main\n"
        for url, of in ((main, suite), (main, f"{suite}-updates"), (security, f"{suite}-security"))
    )


def make_base(builder: Builder, suite: str, archive: str | None, say: Callable[[str], None]) -> str:
    """Make the base image. Returns its name. UserError without root or debootstrap, without a temporary folder for it, if the
    archive is not reachable."""
    if suite not in SUITES:
        raise UserError(f"--suite {suite}: use {' or '.join(SUITES)} (Debian 12, 13)")
    if os.geteuid() != 0:
        raise UserError("a base image is made with debootstrap, which needs root (try sudo)")
    if shutil.which("debootstrap") is None:
        raise UserError("no debootstrap here; apt-get install debootstrap")
    parent = _temporary()
    mirror = (archive or MIRROR).replace("{archive}", "debian")
    with tempfile.TemporaryDirectory(prefix="bbrlab-base-", dir=parent) as folder:
        root, packed = Path(folder) / "root", Path(folder) / "base.tar"
        say(f"base: Debian {suite} from {mirror}")
        # In a mount namespace of its own: whatever it mounts is gone with it.
        argv = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "debootstrap",
            "--variant=minbase",
            suite,
            str(root),
            mirror,
        ]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            words = [line.removeprefix("E: ") for line in done.stdout.splitlines() if line.startswith("E: ")]
            raise UserError(
                f"debootstrap: {words[-1] if words else last_words(done.stdout + done.stderr)}; see that {mirror} is reachable, or "
                "name another archive in config/container.yaml (archive)"
            )
        (root / "etc/apt/sources.list").write_text(sources_list(suite, archive), encoding="ascii")
        (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(SLIM, encoding="ascii")
        _pack(root, packed)
        name = base_name(suite)
        builder.take(packed, name)
    say(f"base: {name} ({builder.name}, {builder.size(name)}); config/container.yaml: base_image: {name}")
    return name


def _temporary() -> Path:
    """Where a whole file system can be made: with room, programs that may run, and devices."""
    parent = temporary_folder()
    flags = os.statvfs(parent).f_flag
    if flags & (os.ST_NOEXEC | os.ST_NODEV):
        lacks = "programs must not run" if flags & os.ST_NOEXEC else "devices do not work"
        raise UserError(
            f"{parent}: {lacks} there (mounted noexec or nodev), which debootstrap needs; set TMPDIR to a folder on a disk"
        )
    free = shutil.disk_usage(parent).free
    if free < NEEDED_BYTES:
        raise UserError(
            f"{parent}: {free / 1e9:.1f} GB free, but a base image takes {NEEDED_BYTES / 1e9:.0f} GB; set TMPDIR to a folder with more"
        )
    return parent


def _pack(root: Path, archive: Path) -> None:
    """The same bytes for the same files, but for their times."""
    left_out = [f"--exclude=./{name}/*" for name in LEFT_OUT] + [f"--exclude=./{name}" for name in LEFT_OUT[:2]]
    argv = [
        "tar",
        "--sort=name",
        "--numeric-owner",
        "--one-file-system",
        *left_out,
        "-C",
        str(root),
        "-cf",
        str(archive),
        ".",
    ]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"tar: {archive}: {last_words(done.stderr)}")
