"""``bbrlab kernel``."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.outputs import check_file
from bbrlab.cli.app import AsJson, CcaSources, at_once, kernel_app, print_json, words_of

if TYPE_CHECKING:
    from bbrlab.kernel.specs import KernelSpec, OwnSpec
    from bbrlab.kernel.users import UsersKernel


RECORD = b'"build_id"'  # is in each file that --record writes


@kernel_app.command("build")
def kernel_build(
    name: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]", help="A kernel (bbrlab kernel list); default: config/kernels.yaml's default. With --on: more patches."),
    ] = None,
    cores: Annotated[int | None, at_once("Parallel compilers")] = None,
    cca_source: CcaSources = None,
    record: Annotated[
        Path | None, typer.Option(help="Also write what was built to this JSON file (for Snakemake).")
    ] = None,
    on: Annotated[str | None, typer.Option(metavar="NAME", help="Make your own kernel: this entry of config/kernels.yaml with what the options below add (docs/howto/kernels.md).")] = None,
    patch: Annotated[list[Path] | None, typer.Option(metavar="FILE ...", help="With --on: patches, in this order, on top of that entry's; or a folder of them.")] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="CONFIG_X=VALUE", help="With --on: y, n, a number or a text; counts more than that entry's.")] = None,
    own_name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="With --on: what the kernel is called from then on.")] = None,
    names: Annotated[list[str] | None, typer.Option(metavar="FIELD=KERNEL", help="With --on: what the field calls an algorithm, and what this kernel calls it, as in bbr3=bbr.")] = None,
    source: Annotated[Path | None, typer.Option(metavar="FOLDER", help="With --on: a Git repository of Linux, whose present commit is the source.")] = None,
) -> None:  # fmt: skip
    """Build a kernel, once for each (source version, options, patches, compiler, your own algorithms)."""
    from bbrlab.base import files
    from bbrlab.experiment import iperf3_library
    from bbrlab.kernel.build import build_kernel
    from bbrlab.kernel.built import describe_kernel
    from bbrlab.kernel.own import own_of
    from bbrlab.kernel.specs import find_spec
    from bbrlab.kernel.users import add_to_users, users_file

    start = time.monotonic()
    check_file("--record", record, RECORD)
    words = name or []
    if on is None:
        for option_name, given in {
            "--patch": patch,
            "--option": option,
            "--name": own_name,
            "--names": names,
            "--source": source,
        }.items():
            if given:
                raise UserError(
                    f"{option_name} goes with --on: the kernel that yours goes on from, as in --on mainline-6.12"
                )
        if len(words) > 1:
            raise UserError(f"one kernel at a time, not {len(words)}: {', '.join(words)}")
        which = words[0] if words else None
        find_spec(which, "")
        built = build_kernel(which, cores, say=typer.echo, own=own_of((), which, cca_source or ()))
    else:
        if cca_source:
            raise UserError("--cca-source: build the kernel first; then give both that kernel's name and the C file")
        which, entry, spec = _own_entry(
            on, [*(patch or []), *map(Path, words)], option or [], own_name, names or [], source
        )
        built = build_kernel(which, cores, say=typer.echo, spec=spec)
        add_to_users(which, entry)
        typer.echo(
            f"kernel {which}: stands in {users_file()}, and goes wherever a kernel's name goes (--kernel {which})"
        )
    iperf3_library.library_folder()
    if record:
        content = describe_kernel(built) | {"ccas": built.ccas, "parameters": built.parameters}
        if not record.exists() or _content(record) != content:
            files.write_json(record, content)
        else:
            os.utime(record)
    typer.echo(f"kernel {built.name}: Linux {built.release}, {', '.join(sorted(built.ccas))} (build {built.build_id}, "
               f"{time.monotonic() - start:.1f} s)")  # fmt: skip


def _own_entry(
    on: str, patches: list[Path], options: list[str], name: str | None, names: list[str], source: Path | None
) -> tuple[str, UsersKernel, OwnSpec]:
    """A kernel of one's own as the command line has it. UserError for what is not possible, and if its name is taken."""
    from bbrlab.kernel.patch_files import parts_of
    from bbrlab.kernel.sources import head_of
    from bbrlab.kernel.specs import load_specs, own_spec
    from bbrlab.kernel.users import checked_entry, prepare_users_file, read_users, users_file

    if not name:
        raise UserError("--on: give the new kernel a name, as in --name my-bbr3")
    patch_paths = patches_in(patches)
    for path in patch_paths:
        parts_of(path)
    if not (patch_paths or options or source or names):
        raise UserError("--on: give what your kernel has besides: --patch, --option, --source or --names")
    entry = checked_entry(
        name,
        base=on,
        patches=[str(path) for path in patch_paths],
        options=_pairs("--option", options, "CONFIG_IPV6=y"),
        names=_pairs("--names", words_of(names), "bbr3=bbr"),
    )
    shipped = load_specs(paths.CONFIG / "kernels.yaml")
    if name in shipped.kernels:
        raise UserError(f"--name {name}: is taken: config/kernels.yaml has a kernel of this name; give another")
    if on not in shipped.kernels:
        raise UserError(f"--on {on}: config/kernels.yaml has no such kernel; it has {', '.join(shipped.kernels)}")
    if source:  # which may take a minute
        found = head_of(source, say=lambda text: typer.echo(f"kernel {name}: {text}"))
        entry = entry.model_copy(update={"source": found})
    before = read_users().get(name)
    if before is not None and before != entry:
        raise UserError(
            f"--name {name}: is taken: {users_file()} has another kernel of this name; give another, or change or remove that entry there"
        )
    prepare_users_file(name, entry)
    return name, entry, own_spec(name, entry, shipped)


def patches_in(given: list[Path]) -> list[Path]:
    """The files that were given, absolute, and in the place of a folder its patches by name, without a cover letter (0000-)."""
    patch_paths = []
    for path in given:
        inside = (
            sorted(p for p in path.iterdir() if p.suffix in (".patch", ".diff") and not p.name.startswith("0000-"))
            if path.is_dir()
            else [path]
        )
        if not inside:
            raise UserError(f"--patch {path}: has no file that ends in .patch or .diff")
        patch_paths += [p.absolute() for p in inside]
    return patch_paths


def _pairs(option: str, words: list[str], example: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        left, sign, right = word.partition("=")
        if not sign or not left or not right:
            raise UserError(f"{option} {word}: give two words with = between them, as in {option} {example}")
        if left in pairs and pairs[left] != right:
            raise UserError(f"{option} {word}: {left} was given before, as {pairs[left]}")
        pairs[left] = right.strip('"')
    return pairs


def _content(record: Path) -> object:
    try:
        return json.loads(record.read_text(encoding="utf-8"))
    except ValueError:  # damaged: written anew
        return None


@kernel_app.command("list")
def kernel_list(as_json: AsJson = False) -> None:
    """List the kernels that can be built, those of config/kernels.yaml and your own, from which source and by which key, and what the built ones can do.

    Two machines have the same kernel if its key is the same on both (kernel.key in a run's manifest.json).
    """
    from bbrlab.kernel.specs import load_specs

    specs = load_specs()
    entries = [
        {"name": name, "default": name == specs.default, "description": spec.description, **_known_of(name, spec)}
        for name, spec in specs.kernels.items()
    ]
    if as_json:
        print_json(entries)
        return
    for kernel in entries:
        typer.echo(f"{kernel['name']}{' (default)' if kernel['default'] else ''}: {kernel['description']}")
        state = "not built"
        if kernel["built"]:
            state = f"built: Linux {kernel['release']}, {', '.join(kernel['ccas'])}, build {kernel['build_id']}"
        typer.echo(f"    {state}")
        made = [f"source {kernel['source']}", kernel["compiler"], kernel["key"] and f"key {kernel['key']}"]
        typer.echo(f"    {', '.join(filter(None, made))}")


def _known_of(name: str, spec: KernelSpec) -> dict[str, Any]:
    """The state of a kernel: whether it is built, its source's version, compiler and key, where these can be said here."""
    from bbrlab.kernel.built import get_kernel
    from bbrlab.kernel.built_with import compiler
    from bbrlab.kernel.key import build_key
    from bbrlab.kernel.sources import locate, name_version

    try:
        built = get_kernel(name)
    except UserError:
        source = name_version(spec.source) or f"{spec.source.debian}, which is not installed"
        content: dict[str, Any] = {"built": False, "source": source, "compiler": "", "key": ""}
        try:
            content["compiler"] = compiler()
            content["key"] = build_key(spec, locate(spec.source, fetch=False).identity, content["compiler"])
        except UserError:  # no source here, or no compiler
            pass
        return content
    return {"built": True, "release": built.release, "ccas": sorted(built.ccas), "build_id": built.build_id,
            "source": built.source, "compiler": built.compiler, "key": built.key}  # fmt: skip
