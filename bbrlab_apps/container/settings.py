"""config/container.yaml."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.problems import problem_of
from bbrlab.base.strict import Strict, read_model

# What may stand in a command line, in a Dockerfile and in apt's sources.list without quotes.
IMAGE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$"
ARCHIVE_URL = r"^https?://[A-Za-z0-9._~:/@%+-]*\{archive\}[A-Za-z0-9._~:/@%+-]*$"


class Settings(Strict):
    """What `config/container.yaml` says of the image."""

    base_image: Annotated[str, Field(pattern=IMAGE_NAME)] = Field(
        description="image of Debian 12 or 13 that it stands on, by tag or digest, or one that `bbrlab container base` made"
    )
    archive: Annotated[str, Field(pattern=ARCHIVE_URL)] | None = Field(
        None,
        description="archive of Debian that packages come from, `{archive}` standing for debian and debian-security; "
        "of snapshot.debian.org a day, which fixes every version; default: the base image's own",
    )
    builder: Literal["docker", "podman", "buildah"] | None = Field(
        None, description="what builds it; default: the first of them that is there and works"
    )

    def with_changes(self, *, base_image: str | None = None, builder: str | None = None) -> Settings:
        """The same with what a command line says in place of the file. UserError naming the option and what it may be."""
        changes = {"base_image": base_image, "builder": builder}
        try:
            return Settings.model_validate(self.model_dump() | {k: v for k, v in changes.items() if v is not None})
        except ValidationError as error:
            first = error.errors()[0]
            option = str(first["loc"][0]).replace("_", "-")
            raise UserError(f"--{option} {first['input']}: {problem_of(first)}") from None


def load_settings(path: Path | None = None) -> Settings:
    """config/container.yaml, checked. UserError naming file, field and value."""
    return read_model(path or paths.CONFIG / "container.yaml", Settings)


def image_name() -> str:
    """What the image is called."""
    return f"bbrlab:{importlib.metadata.version('bbrlab')}"
