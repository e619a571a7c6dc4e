"""What builds images on this machine: docker, podman or buildah, by their command lines, which are nearly the same."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bbrlab.base.errors import UserError

NAMES = ("docker", "podman", "buildah")
HOW = "docs/howto/container.md says how"
TIMEOUT_S = 60  # of an answer that needs no work
SUBORDINATE_IDS = (Path("/etc/subuid"), Path("/etc/subgid"))


@dataclass(frozen=True)
class Builder:
    """One of NAMES."""

    name: str
    storage: Path | None = None  # the folder that it keeps images in; None if that is not on this machine

    def ask(self, *argv: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
        """Run it and return what it said, whatever that is."""
        return subprocess.run([self.name, *argv], capture_output=True, text=True, env=_environment(), timeout=timeout_s)

    def do(self, what: str, *argv: str) -> str:
        """Run it and return its standard output. UserError with its last words if it fails; ``what`` says at what."""
        done = self.ask(*argv)
        if done.returncode:
            raise UserError(f"{self.name}: {what}: {last_words(done.stderr)}")
        return done.stdout.strip()

    def image(self, name: str) -> dict[str, Any] | None:
        """What it knows of an image; None if it has none of this name."""
        kind = ["inspect", "--type", "image"] if self.name == "buildah" else ["image", "inspect"]
        done = self.ask(*kind, name)
        if done.returncode:
            return None
        content = json.loads(done.stdout)
        return dict(content[0] if isinstance(content, list) else content)

    def labels(self, name: str) -> dict[str, str]:
        """An image's labels; empty if there is no such image."""
        content = self.image(name) or {}
        config = content.get("Config") if self.name != "buildah" else (content.get("OCIv1") or {}).get("config")
        return dict((config or {}).get("Labels") or {})

    def digest(self, name: str) -> str:
        """What tells an image from any other, as sha256:...; "" if there is no such image."""
        content = self.image(name) or {}
        if self.name == "buildah":
            return str(content.get("FromImageDigest") or "")
        of_registry = [d.rpartition("@")[2] for d in content.get("RepoDigests") or []]
        return next(iter(of_registry), str(content.get("Digest") or content.get("Id") or ""))

    def size(self, name: str) -> str:
        """An image's size with all its layers, in words."""
        if self.name == "buildah":
            images = json.loads(self.do(f"size of {name}", "images", "--json", name))
            return str(images[0]["size"])
        return f"{(self.image(name) or {})['Size'] / 1e9:.2f} GB"

    def build(
        self,
        context: Path,
        tag: str,
        *,
        file: Path,
        arguments: Mapping[str, str],
        labels: Mapping[str, str],
        secrets: Mapping[str, Path],
        log: IO[str] | int,
    ) -> int:
        """Build an image, its words going to ``log``. Returns the exit code."""
        argv = [self.name, "build", "--file", str(file), "--tag", tag]
        for name, value in arguments.items():
            argv += ["--build-arg", f"{name}={value}"]
        for name, value in labels.items():
            argv += ["--label", f"{name}={value}"]
        for name, path in secrets.items():
            argv += ["--secret", f"id={name},src={path}"]
        return subprocess.run(
            [*argv, str(context)], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=_environment()
        ).returncode

    def read(self, name: str, path: str) -> str:
        """A file of an image."""
        if self.name == "buildah":
            with self._container(name) as made:
                return self.do(f"reading {path} of {name}", "run", made, "cat", path)
        made = self.do(f"reading {path} of {name}", "create", "--network", "none", name)
        try:
            # A tar archive with one file, whose content a text that is JSON is found in.
            packed = self.do(f"reading {path} of {name}", "cp", f"{made}:{path}", "-")
        finally:
            self.ask("rm", made)
        return packed[packed.index("{") : packed.rindex("}") + 1]

    @contextmanager
    def _container(self, image: str) -> Iterator[str]:
        """A container of buildah's, gone at the end of the block."""
        made = self.do(f"a container from {image}", "from", *([] if image == "scratch" else ["--pull-never"]), image)
        try:
            yield made
        finally:
            self.ask("rm", made)

    def take(self, archive: Path, name: str) -> None:
        """Make an image of a tar archive of a whole file system."""
        what = f"taking {archive} as image {name}"
        if self.name != "buildah":
            self.do(what, "import", str(archive), name)
            return
        with self._container("scratch") as made:
            self.do(what, "add", "--quiet", made, str(archive), "/")
            self.do(what, "commit", "--quiet", made, name)

    def save(self, name: str, archive: Path) -> None:
        """Write an image as an archive that docker, podman and apptainer read."""
        what = f"writing {name} to {archive}"
        match self.name:
            case "docker":
                self.do(what, "save", "--output", str(archive), name)
            case "podman":
                self.do(what, "save", "--quiet", "--format", "docker-archive", "--output", str(archive), name)
            case _:
                self.do(what, "push", "--quiet", name, f"docker-archive:{archive}:{name}")


def _environment() -> dict[str, str]:
    # Without BuildKit docker knows no secrets and builds stages that nothing needs.
    return {**os.environ, "DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}


def temporary_folder() -> Path:
    """Where podman, buildah and debootstrap put whole file systems for the time being: on a disk, which /tmp need not be. UserError
    for a TMPDIR that is no folder."""
    folder = Path(os.environ.get("TMPDIR") or "/var/tmp")  # noqa: S108
    if not folder.is_dir():
        raise UserError(f"TMPDIR={folder}: is no folder; set it to one on a disk")
    return folder


def last_words(text: str) -> str:
    """The last line of what a program said that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def find_builder(wanted: str | None = None) -> Builder:
    """The builder that was asked for, or the first of NAMES that works. UserError if there is none: what was found of each, and
    what to do."""
    reasons = []
    for name in [wanted] if wanted else NAMES:
        builder = _look(name)
        if isinstance(builder, Builder):
            return builder
        reasons.append(f"{name}: {builder}")
    raise UserError(
        f"nothing here can build an image ({'; '.join(reasons)}); install one that can (Debian: apt-get install podman), or start it. {HOW}"
    )


def _look(name: str) -> Builder | str:
    """The builder, or why it is of no use."""
    if shutil.which(name) is None:
        return "not installed"
    if name != "docker" and os.geteuid() != 0 and (reason := why_no_users()):
        return reason
    in_json = [] if name == "buildah" else ["--format", "{{json .}}"]
    try:
        done = Builder(name).ask("info", *in_json, timeout_s=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not answer ({error})"
    try:
        facts = json.loads(done.stdout)
    except ValueError:
        return last_words(done.stderr)
    if name == "docker":
        if done.returncode or facts.get("ServerErrors"):
            return last_words("\n".join(facts.get("ServerErrors") or []) or done.stderr)
        folder = facts.get("DockerRootDir")
    else:
        folder = facts["store"]["graphRoot" if name == "podman" else "GraphRoot"]
    return Builder(name, Path(folder) if folder and Path(folder).is_dir() else None)


def why_no_users() -> str:
    """Why podman and buildah cannot build for somebody who is not root; empty if they can."""
    try:
        done = subprocess.run(["unshare", "--user", "true"], capture_output=True, text=True)
    except FileNotFoundError:
        return "no `unshare`; apt-get install util-linux"
    if done.returncode:
        return (
            "this machine gives you no user namespaces, without which only root can build; build as root, or let its administrator "
            "allow them: sysctl user.max_user_namespaces=10000 (and where it exists kernel.unprivileged_userns_clone=1)"
        )
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # nobody that this machine knows by name
        user = str(os.getuid())
    for file in SUBORDINATE_IDS:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if not any(line.split(":")[0] in (user, str(os.getuid())) for line in lines):
            return (
                f"you have no ids in {file}, which files of an image belong to; as root: "
                f"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
            )
    return ""
