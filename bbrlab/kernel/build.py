"""Builds guest kernels, once for each (source version, options, patches, compiler, own algorithms)."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores
from bbrlab.base.locks import lock, owned_folder, remove_abandoned, remove_tree
from bbrlab.kernel import beneath
from bbrlab.kernel.built import Kernel, is_outdated, kernel_folder, read_kernel
from bbrlab.kernel.built_with import compiler
from bbrlab.kernel.compile import compiled
from bbrlab.kernel.confine import confined
from bbrlab.kernel.key import build_key, host_key
from bbrlab.kernel.own import OwnCca, own_name
from bbrlab.kernel.own_build import compile_with_own
from bbrlab.kernel.sources import Located, locate
from bbrlab.kernel.specs import KernelSpec, OwnSpec, find_spec, load_specs
from bbrlab.kernel.steps import Say
from bbrlab.kernel.trees import keep_tree

PREFIX = ".build-"  # of the folders that kernels are built in


def build_kernel(
    name: str | None = None,
    jobs: int | None = None,
    say: Say = print,
    own: Sequence[OwnCca] = (),
    spec: KernelSpec | None = None,
) -> Kernel:
    """Build a kernel unless it exists. If two processes need the same one, one builds it and the other waits.

    UserError naming the step that failed and the log to read, or the place in an algorithm's file.

    Args:
        name: entry of kernels.yaml.
        jobs: parallel compilers; default: all cores.
        say: gets one line per step with the time it took.
        own: the user's own algorithms, beside those of the entry.
        spec: what ``name`` stands for, if it is no entry yet.
    """
    if name is None or spec is None:
        name, spec = find_spec(name)
    called = own_name(name, own)
    if (own or spec.foreign) and (warning := confined.warning()):
        say(f"kernel {called}: {warning}")
    source = locate(spec.source, fetch=True, say=lambda text: say(f"kernel {name}: {text}"))
    compiler_line = compiler()
    key = build_key(spec, source.identity, compiler_line, own)
    host = host_key(spec)
    if kernel := read_kernel(called, key, host):
        return kernel
    folder = kernel_folder(key)
    if re.search(r"[\s:]", str(folder.absolute())):
        raise UserError(
            f"{folder.parent}: Linux cannot be built in a folder with a space or colon in its path; name another for what is built, "
            "for example: export BBRLAB_BUILD=/var/tmp/bbrlab-build"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock(
            folder.parent / f".{key}.lock",
            lambda: say(f"kernel {called}: another process is building it; waiting for that"),
        ):
            if kernel := read_kernel(called, key, host):  # what was waited for
                return kernel
            remove_abandoned(folder.parent, PREFIX)
            with owned_folder(folder.parent, PREFIX) as scratch:
                cores = jobs or all_cores()
                if own:
                    _build_with(own, name, spec, source, key, host, scratch, cores, say)
                else:
                    _build(name, spec, source, key, host, scratch, cores, say)
                files.put_folder(scratch / "out", folder)
    except OSError as error:
        raise files.explain(error, files.place_of(error, folder.parent, Path(tempfile.gettempdir()))) from None
    kernel = read_kernel(called, key, host)
    assert kernel is not None
    return kernel


def renew_kernel(name: str | None = None, say: Say = print) -> None:
    """Build a kernel anew if it is_outdated(). Its key stays, so that a campaign's runs stay valid."""
    if is_outdated(name):
        build_kernel(name, say=say)


def _build(
    name: str, spec: KernelSpec, source: Located, key: str, host: str, scratch: Path, jobs: int, say: Say
) -> None:
    """Compile a kernel and probe it; ``out`` in ``scratch`` is its folder then."""
    start = time.monotonic()
    with compiled(name, spec, source, scratch.parent / f"{name}.log", jobs, say) as (tree, image, probe):
        _keep(tree, image, spec, key, host, source, probe, start, scratch / "out")
        if name == load_specs().default:
            keep_tree(tree, name, key + host, probe["ccas"], say)
        elif not isinstance(spec, OwnSpec):  # of which there will be a next try
            remove_tree(tree)


def _build_with(
    own: Sequence[OwnCca],
    name: str,
    spec: KernelSpec,
    source: Located,
    key: str,
    host: str,
    scratch: Path,
    jobs: int,
    say: Say,
) -> None:
    """The same with the user's own algorithms."""
    start = time.monotonic()
    base_key = build_key(spec, source.identity, compiler()) + host
    tree, image, probe = compile_with_own(name, spec, source, base_key, key, own, scratch, jobs, say)
    _keep(tree, image, spec, key, host, source, probe, start, scratch / "out", own)


def _keep(
    tree: Path,
    image: Path,
    spec: KernelSpec,
    key: str,
    host: str,
    source: Located,
    probe: dict[str, Any],
    start: float,
    out: Path,
    own: Sequence[OwnCca] = (),
) -> None:
    """Keep a kernel, its configuration, and a description."""
    out.mkdir()
    shutil.copy2(image, out / "linux")
    (out / "config").write_text(beneath.read_text(tree, ".config"), encoding="utf-8")
    names = spec.names | {cca.name: cca.name for cca in own}
    info = {
        "release": probe["release"],
        "build_id": files.sha256(out / "linux")[:16],
        "key": key,
        "ccas": {field: kernel for field, kernel in names.items() if kernel in probe["ccas"]},
        "parameters": probe["parameters"],
        "modules": {name: module for name, module in probe["modules"].items() if name in spec.names.values()},
        "profiles": {
            name: names_of_profiles
            for name, names_of_profiles in probe["profiles"].items()
            if name in spec.names.values()
        },
        "source": source.identity,
        "compiler": compiler(),
        "build_s": round(time.monotonic() - start, 1),
        "acceleration": probe["acceleration"],
        "host": host,
        **({"foreign": True} if spec.foreign else {}),
        **({"own": {cca.name: cca.sha256 for cca in own}} if own else {}),
    }
    files.write_json(out / "kernel.json", info)
