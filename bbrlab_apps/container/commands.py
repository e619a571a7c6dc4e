"""``bbrlab container``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base.outputs import check_file
from bbrlab.cli.app import AsJson, Commands, print_json

container_app = typer.Typer(cls=Commands, no_args_is_help=True, help="Build the image that has all of bbrlab in it.")
BuilderName = Annotated[
    str | None,
    typer.Option(
        "--builder", help="docker, podman or buildah; default: config/container.yaml's, else the first that works."
    ),
]


@container_app.command("build")
def container_build(
    base_image: Annotated[
        str | None, typer.Option(help="Image of Debian 12 or 13 that it stands on; default: config/container.yaml's.")
    ] = None,
    builder: BuilderName = None,
    name: Annotated[str | None, typer.Option(help="The image's name; default: bbrlab:VERSION.")] = None,
    archive: Annotated[
        Path | None, typer.Option(help="Also write it as an archive, which docker and podman load.")
    ] = None,
    sif: Annotated[Path | None, typer.Option(help="Also write it as apptainer or singularity runs it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Build the image with docker, podman or buildah, unless it is there as the checkout has it."""
    from dataclasses import asdict

    from bbrlab_apps.container.build import build_image, write_archive, write_sif
    from bbrlab_apps.container.settings import load_settings

    check_file("--archive", archive)
    check_file("--sif", sif)
    settings = load_settings().with_changes(base_image=base_image, builder=builder)
    image, by = build_image(settings, lambda text: typer.echo(text, err=as_json), name)
    if archive:
        write_archive(image, by, archive)
        typer.echo(f"archive: {archive}", err=as_json)
    if sif:
        write_sif(image, by, sif)
        typer.echo(f"image for apptainer: {sif}", err=as_json)
    if as_json:
        print_json(asdict(image))


@container_app.command("base")
def container_base(
    suite: Annotated[str, typer.Option(help="Release of Debian: bookworm (12) or trixie (13).")] = "bookworm",
    builder: BuilderName = None,
) -> None:
    """Make a base image from Debian's archive with debootstrap, where no registry of images is reached."""
    from bbrlab_apps.container.base import make_base
    from bbrlab_apps.container.builders import find_builder
    from bbrlab_apps.container.settings import load_settings

    settings = load_settings().with_changes(base_image=None, builder=builder)
    make_base(find_builder(settings.builder), suite, settings.archive, typer.echo)
