"""Builds the image: what it needs first, then the stages of the Dockerfile, then its labels; whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.run.manifest import git_state
from bbrlab_apps.container.builders import HOW, Builder, find_builder, last_words, temporary_folder
from bbrlab_apps.container.context import context_digest
from bbrlab_apps.container.settings import Settings, image_name

DOCKERFILE = paths.ROOT / "Dockerfile"
CERTIFICATES = "SSL_CERT_FILE"  # in the environment, as curl, Python and others read it
STORAGE_BYTES = 7e9  # of all stages; some builders keep every step of each as a copy of its own and say so themselves
TEMPORARY_BYTES = 2e9
CONTEXT_LABEL, BASE_LABEL, KERNEL_LABEL = "bbrlab.context", "org.opencontainers.image.base.name", "bbrlab.kernel"
LOG_TAIL_LINES = 12
Say = Callable[[str], None]


@dataclass(frozen=True)
class Image:
    """An image that is there."""

    name: str
    builder: str
    size: str  # with all layers, in words
    labels: dict[str, str]


def build_image(settings: Settings, say: Say, name: str | None = None) -> tuple[Image, Builder]:
    """Build the image unless the one that is there has the same files, base and archive.

    UserError: no builder, too little room, a base that is not reachable, a step that failed; each with what to do. What was begun
    is gone then, and an older image of this name is still there.

    Args:
        name: of the image; default: bbrlab:VERSION.
    """
    builder = find_builder(settings.builder)
    name = name or image_name()
    digest = context_digest()
    wanted = {CONTEXT_LABEL: digest, BASE_LABEL: settings.base_image, "bbrlab.archive": settings.archive or ""}
    have = builder.labels(name)
    if all(have.get(key) == value for key, value in wanted.items()):
        say(f"image {name}: is there already ({builder.name}, {builder.size(name)})")
        return Image(name, builder.name, builder.size(name), have), builder
    _check_room(builder)
    _get_base(builder, settings.base_image, say)
    working = f"bbrlab:building-{digest[:12]}"
    try:
        _build(builder, settings, working, say)
        labels = wanted | _labels(builder, settings, working)
        with tempfile.TemporaryDirectory(prefix="bbrlab-image-") as folder:
            file = Path(folder) / "Dockerfile"
            file.write_text(f"FROM {working}\n", encoding="utf-8")
            log = Path(folder) / "log"
            with open(log, "w", encoding="utf-8") as out:
                if builder.build(Path(folder), name, file=file, arguments={}, labels=labels, secrets={}, log=out):
                    raise UserError(f"{builder.name}: labels of {name}: {last_words(log.read_text(encoding='utf-8'))}")
    finally:
        builder.ask("rmi", working)  # its layers stay where the image has them
    image = Image(name, builder.name, builder.size(name), builder.labels(name))
    say(f"image {name}: {image.size}, {image.labels.get(KERNEL_LABEL, '')} ({builder.name})")
    return image, builder


def _check_room(builder: Builder) -> None:
    """UserError where an image does not fit."""
    places = []
    if builder.name != "docker":  # whose daemon has a temporary folder of its own
        places.append((temporary_folder(), TEMPORARY_BYTES, "set TMPDIR to a folder with more"))
    if builder.storage:
        places.append(
            (builder.storage, STORAGE_BYTES, f"make room there ({builder.name} system prune), or move its storage")
        )
    for place, needed, remedy in places:
        free = shutil.disk_usage(place).free
        if free < needed:
            raise UserError(
                f"{place}: {free / 1e9:.1f} GB free, but building the image takes up to {needed / 1e9:.0f} GB there; {remedy}"
            )


def _get_base(builder: Builder, base: str, say: Say) -> None:
    """See that the base image is here, or get it."""
    if builder.image(base) is not None:
        return
    say(f"image {base}: pulling it")
    done = builder.ask("pull", base)
    if done.returncode or builder.image(base) is None:
        raise UserError(
            f"config/container.yaml: base_image: {base} is neither here nor reachable ({builder.name}: {last_words(done.stderr)}); "
            f"where no registry of images is reached make one from Debian's archive, as root: bbrlab container base. {HOW}"
        )


def _build(builder: Builder, settings: Settings, tag: str, say: Say) -> None:
    source = git_state()
    arguments = {
        "BASE_IMAGE": settings.base_image,
        "ARCHIVE": settings.archive or "",
        "COMMIT": source["commit"] or "",
        "MODIFIED": "" if source["modified"] is None else str(source["modified"]).lower(),
    }
    log = paths.build_folder() / "image.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    say(f"image: {builder.name} builds it, which takes some ten minutes where no step is kept from before; log: {log}")
    with open(log, "w", encoding="utf-8") as out:
        code = builder.build(
            paths.ROOT, tag, file=DOCKERFILE, arguments=arguments, labels={}, secrets=_secrets(), log=out
        )
    if code:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        raise UserError(
            f"{builder.name}: the image could not be built; the log is {log}, and ends:\n  "
            + "\n  ".join(lines[-LOG_TAIL_LINES:])
            + f"\n{_hint(lines)}"
        )
    say(f"image: built in {time.monotonic() - start:.0f} s")


# What a builder says that lacks something of the machine, and what helps.
HINTS = {
    "no space left on device": "The disk is full: make room, or move the builder's storage.",
    "Temporary failure resolving": "Debian's archive is not reachable from the build: docs/howto/container.md, Networks.",
    "certificate verify failed": f"This network shows certificates of its own: name the file that has them, export {CERTIFICATES}=FILE.",
    "operation not permitted": "The builder may do too little here: export BUILDAH_ISOLATION=chroot (podman, buildah), or build as root.",
    "overlay": "The builder's storage does not work here: export STORAGE_DRIVER=vfs (podman, buildah; takes more room).",
}


def _hint(lines: list[str]) -> str:
    tail = "\n".join(lines[-60:])
    remedies = [remedy for words, remedy in HINTS.items() if words.lower() in tail.lower()]
    return remedies[0] if remedies else HOW[0].upper() + HOW[1:] + " to look further."


def _secrets() -> dict[str, Path]:
    """Certificates of a network that has its own, which the build needs and the image must not have."""
    file = os.environ.get(CERTIFICATES)
    return {"certificates": Path(file)} if file and Path(file).is_file() else {}


def _labels(builder: Builder, settings: Settings, made: str) -> dict[str, str]:
    facts = json.loads(builder.read(made, "/bbrlab/image.json"))
    kernel = facts["kernels"][0]
    return {
        "org.opencontainers.image.title": "bbrlab",
        "org.opencontainers.image.description": "Reproducibility package for TCP BBR: real Linux kernels in virtual time",
        "org.opencontainers.image.version": facts["version"],
        "org.opencontainers.image.revision": (facts["commit"] or "unknown")
        + ("-modified" if facts["modified"] else ""),
        "org.opencontainers.image.base.digest": builder.digest(settings.base_image),
        KERNEL_LABEL: f"{kernel['name']}: Linux {kernel['release']}, build {kernel['build_id']}",
        "bbrlab.kernel.key": kernel["key"],
        "bbrlab.kernel.source": kernel["source"],
        "bbrlab.kernel.compiler": kernel["compiler"],
    }


def write_archive(image: Image, builder: Builder, archive: Path) -> None:
    """Write the image as an archive of docker's kind, whole or not at all."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{archive.name}.", dir=archive.parent) as folder:
        made = Path(folder) / "archive.tar"
        builder.save(image.name, made)
        made.replace(archive)


def write_sif(image: Image, builder: Builder, file: Path) -> None:
    """Write the image as apptainer runs it, whole or not at all. UserError without apptainer, or if it fails."""
    program = next((name for name in ("apptainer", "singularity") if shutil.which(name)), None)
    if program is None:
        raise UserError(
            f"neither apptainer nor singularity is here, which makes {file.name} of the image and runs jobs in it; install one, or run "
            f"the campaign in the image itself: {builder.name} run (docs/howto/container.md)"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as folder:
        archive, made = Path(folder) / "archive.tar", Path(folder) / "image.sif"
        builder.save(image.name, archive)
        done = subprocess.run(
            [program, "build", str(made), f"docker-archive:{archive}"], capture_output=True, text=True
        )
        if done.returncode:
            raise UserError(f"{program}: {file}: {last_words(done.stderr)}")
        made.replace(file)
