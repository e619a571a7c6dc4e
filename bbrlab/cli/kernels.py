"""``bbrlab kernel``."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bbrlab.base.errors import UserError
from bbrlab.cli.app import AsJson, CcaSources, at_once, kernel_app, print_json

if TYPE_CHECKING:
    from bbrlab.kernel.specs import KernelSpec


@kernel_app.command("build")
def kernel_build(
    name: Annotated[str | None, typer.Argument(help="Entry of config/kernels.yaml; default: its default.")] = None,
    jobs: Annotated[int | None, at_once("Parallel compilers", "--jobs")] = None,
    cca_source: CcaSources = None,
    record: Annotated[
        Path | None, typer.Option(help="Also write what was built to this JSON file (for Snakemake).")
    ] = None,
) -> None:
    """Build a kernel, once for each (source version, options, patches, compiler, algorithms of one's own)."""
    from bbrlab.base import files
    from bbrlab.experiment import iperf3_library
    from bbrlab.kernel.build import build_kernel
    from bbrlab.kernel.built import describe_kernel
    from bbrlab.kernel.own import own_of

    start = time.monotonic()
    built = build_kernel(name, jobs, say=typer.echo, own=own_of((), name, cca_source or ()))
    iperf3_library.library_folder()
    if record:
        content = describe_kernel(built) | {"ccas": built.ccas, "parameters": built.parameters}
        if not record.exists() or _content(record) != content:
            files.write_json(record, content)
        else:
            os.utime(record)
    typer.echo(f"kernel {built.name}: Linux {built.release}, {', '.join(sorted(built.ccas))} (build {built.build_id}, "
               f"{time.monotonic() - start:.1f} s)")  # fmt: skip


def _content(record: Path) -> object:
    try:
        return json.loads(record.read_text(encoding="utf-8"))
    except ValueError:  # damaged: written anew
        return None


@kernel_app.command("list")
def kernel_list(as_json: AsJson = False) -> None:
    """List the kernels that can be built, from which source and by which key, and what the built ones can do.

    Two machines have the same kernel if its key is the same on both (kernel.key in a run's manifest.json).
    """
    from bbrlab.kernel.specs import load_specs

    specs = load_specs()
    found = [
        {"name": name, "default": name == specs.default, "description": spec.description, **_known_of(name, spec)}
        for name, spec in specs.kernels.items()
    ]
    if as_json:
        print_json(found)
        return
    for kernel in found:
        typer.echo(f"{kernel['name']}{' (default)' if kernel['default'] else ''}: {kernel['description']}")
        state = "not built"
        if kernel["built"]:
            state = f"built: Linux {kernel['release']}, {', '.join(kernel['ccas'])}, build {kernel['build_id']}"
        typer.echo(f"    {state}")
        made = [f"source {kernel['source']}", kernel["compiler"], kernel["key"] and f"key {kernel['key']}"]
        typer.echo(f"    {', '.join(filter(None, made))}")


def _known_of(name: str, spec: KernelSpec) -> dict[str, Any]:
    """What is known of a kernel: whether it is built, its source's version, compiler and key, where these can be said here."""
    from bbrlab.kernel.built import build_key, get_kernel
    from bbrlab.kernel.compiler import compiler
    from bbrlab.kernel.sources import locate, name_version

    try:
        built = get_kernel(name)
    except UserError:
        source = name_version(spec.source) or f"{spec.source.debian}, which is not installed"
        told: dict[str, Any] = {"built": False, "source": source, "compiler": "", "key": ""}
        try:
            told["compiler"] = compiler()
            told["key"] = build_key(spec, locate(spec.source, fetch=False).identity, told["compiler"])
        except UserError:  # no source here, or no compiler
            pass
        return told
    return {"built": True, "release": built.release, "ccas": sorted(built.ccas), "build_id": built.build_id,
            "source": built.source, "compiler": built.compiler, "key": built.key}  # fmt: skip
