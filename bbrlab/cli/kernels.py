"""``bbrlab kernel``."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base.errors import UserError
from bbrlab.cli.app import AsJson, CcaSources, at_once, kernel_app, print_json


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
    """List the kernels that can be built, and what the built ones can do."""
    from bbrlab.kernel.built import get_kernel
    from bbrlab.kernel.specs import load_specs

    specs = load_specs()
    found = []
    for name, spec in specs.kernels.items():
        try:
            built = get_kernel(name)
            state = f"built: Linux {built.release}, {', '.join(sorted(built.ccas))}"
            told = {"built": True, "release": built.release, "ccas": sorted(built.ccas), "build_id": built.build_id}
        except UserError:
            state, told = "not built", {"built": False}
        if as_json:
            found.append({"name": name, "default": name == specs.default, "description": spec.description, **told})
            continue
        typer.echo(f"{name}{' (default)' if name == specs.default else ''}: {spec.description} [{state}]")
    if as_json:
        print_json(found)
