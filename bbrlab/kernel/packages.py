"""A Debian package of another release: fetched from the mirrors that this machine uses, checked, unpacked, not installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.owned import lock, owned_folder, remove_abandoned

APT_HELPER = "/usr/lib/apt/apt-helper"  # fetches as apt does: its proxy, its mirrors' access
POOLS = ("pool/main", "pool/updates/main")  # where the archive and its security updates keep packages
PREFIX = ".fetch-"


def package_file(package: str, version: str) -> Path:
    """Where this version of a package of kernel source is, if it is there."""
    return paths.build_folder() / "sources" / f"{package}_{version}_all.deb"


def fetch_package(package: str, version: str, sha256: str, say: Callable[[str], None]) -> Path:
    """The file of a package of kernel source: the one that is there, or fetched. Of two processes one fetches.

    Raises:
        UserError: if no mirror has it, with what to do; if the file that is there is another one.
    """
    file = package_file(package, version)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with lock(
            file.with_name(f".{file.name}.lock"), lambda: say("another process is fetching it; waiting for that")
        ):
            if not file.exists():
                say(f"fetching {package} {version}")
                remove_abandoned(file.parent, PREFIX)
                with owned_folder(file.parent, PREFIX) as folder:
                    _download(file, sha256, folder / "package.deb")
                    (folder / "package.deb").replace(file)
            found = files.sha256(file)
    except OSError as error:
        raise files.explain(error, files.place_of(error, file.parent)) from None
    if found != sha256:
        raise UserError(
            f"{file}: has SHA-256 {found}, but config/kernels.yaml says {sha256} of {package} {version}; "
            "remove it, and it is fetched again"
        )
    return file


def _mirrors() -> list[str]:
    """The archives of Debian that apt uses on this machine, each with a slash at its end."""
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return list(dict.fromkeys(line.rstrip("/") + "/" for line in done.stdout.split() if line))


def _download(file: Path, sha256: str, target: Path) -> None:
    reasons = []
    for mirror in _mirrors():
        for pool in POOLS:
            argv = [
                APT_HELPER,
                "-q",
                "download-file",
                f"{mirror}{pool}/l/linux/{file.name}",
                str(target),
                f"SHA256:{sha256}",
            ]
            try:
                done = subprocess.run(argv, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                done = subprocess.CompletedProcess(argv, 1, "", f"E: no {APT_HELPER}")
            if not done.returncode and target.exists():
                return
            reasons += [line.removeprefix("E: ") for line in done.stderr.splitlines() if line.startswith("E: ")][:1]
    raise UserError(
        f"no mirror of Debian that this machine uses has {file.name}"
        f" ({reasons[0] if reasons else 'apt knows none; run: apt-get update'}); mirrors drop old versions: get it from an "
        f"archive of them and put it into {file.parent} (SHA-256 {sha256} is checked), or choose a newer version in "
        "config/kernels.yaml"
    )
