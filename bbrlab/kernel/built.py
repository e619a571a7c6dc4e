"""A built kernel: its place, its algorithms and parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict  # pydantic reads typing's own from Python 3.12 on only

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.kernel.built_with import compiler
from bbrlab.kernel.key import build_key, host_key
from bbrlab.kernel.own import own_of, recipe_name
from bbrlab.kernel.sources import locate, name_version
from bbrlab.kernel.specs import find_spec


@dataclass(frozen=True)
class Kernel:
    """A built kernel."""

    name: str  # its entry in kernels.yaml
    release: str  # what ``uname -r`` prints in it
    build_id: str  # SHA-256 of the binary, first 16 digits
    key: str  # hash of everything it was built from
    image: str  # path of the binary
    ccas: dict[str, str]  # {field's name: kernel's name}, only those that the kernel really has
    parameters: dict[str, list[str]]  # {module, or kernel's name of a CCA: its parameters}
    source: str  # the source package and version
    compiler: str  # first line of ``cc --version``
    build_s: float  # wall-clock seconds of the build
    acceleration: str = ""  # how QEMU ran it when it was tried out ("kvm" or "tcg"; empty for other backends)
    # {kernel's name of a CCA that may be had in parameter sets: the module that has it}
    modules: dict[str, str] = field(default_factory=dict)
    # {kernel's name of such a CCA: the profiles that a set of its parameters may begin with}
    profiles: dict[str, list[str]] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)  # {algorithm of one's own: SHA-256 of its C file}
    host: str = ""  # hash of the patches by which it runs on more machines (host_key())
    # It has kernel code that is not of this project: patches of the user's, or a repository's source
    foreign: bool = False


def kernel_folder(key: str) -> Path:
    """The folder of the kernel with this build key."""
    return paths.build_folder() / "kernels" / key


def read_kernel(name: str, key: str, host: str) -> Kernel | None:
    """The kernel with this build key and these patches for the host (host_key()); None if it is not built, or damaged."""
    folder = kernel_folder(key)
    try:
        content = json.loads((folder / "kernel.json").read_text(encoding="utf-8"))
        if not (folder / "linux").is_file() or content.get("host", "") != host:
            return None
        return Kernel(**content | {"name": name, "image": str(folder / "linux")})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def get_kernel(name: str | None = None) -> Kernel:
    """A built kernel without own algorithms. UserError with the command that builds it."""
    name, spec = find_spec(name)
    exists = False
    try:
        key = build_key(spec, locate(spec.source, fetch=False).identity, compiler())
        kernel, exists = read_kernel(name, key, host_key(spec)), kernel_folder(key).is_dir()
    except UserError:
        if spec.source.debian:
            raise
        kernel = None
    if kernel is None:
        if exists:
            raise UserError(
                f"kernel {name} is not built as it is to be: the one that is there is damaged, or has other patches for the host; run: "
                f"bbrlab kernel build {name}"
            )
        raise UserError(f"kernel {name} is not built yet; run: bbrlab kernel build {name}")
    return kernel


def is_outdated(name: str | None = None) -> bool:
    """Whether a built kernel is damaged or has other patches for the host, so that it must be built anew under the same key."""
    name, spec = find_spec(name)
    try:
        key = build_key(spec, locate(spec.source, fetch=False).identity, compiler())
    except UserError:  # no source here, or no compiler
        return False
    return kernel_folder(key).is_dir() and read_kernel(name, key, host_key(spec)) is None


def has_ipv6(kernel: Kernel) -> bool:
    """Whether IPv6 is built into a kernel of the lab."""
    config = Path(kernel.image).with_name("config")
    return config.is_file() and "CONFIG_IPV6=y" in config.read_text(encoding="utf-8").splitlines()


def boot_options(kernel: Kernel, ip_version: int = 4) -> list[str]:
    """The kernel's command-line options for hosts that send nothing of their own.

    With IPv6 a host announces itself and asks for routers and for who has its address; such packets would
    meet the queue, and the run would fail a self-check. Where its hosts are to have IPv6, its interfaces have none before they are told to
    (mininet/dumbbell.py).
    """
    if not has_ipv6(kernel):
        return []
    return ["ipv6.disable_ipv6=1" if ip_version == 6 else "ipv6.disable=1"]


def kernel_identity(name: str | None = None) -> str:
    """The identity of a kernel: a hash of its entry in kernels.yaml (without description and patches for the host) and of its files, the
    source's version, and the compiler; the hash alone if either of these is missing.

    If it changes, the workflow makes the kernel and all runs anew. Other entries, and comments in C, do not change it.
    """
    name, spec = find_spec(name)
    entry = json.dumps(spec.model_dump(mode="json", exclude={"description", "host_patches"}))
    digest = hashlib.sha256(f"{entry} {build_key(spec, '', '')}".encode()).hexdigest()[:16]
    try:
        return f"{name} {digest}, {name_version(spec.source)}, {compiler()}"
    except UserError:
        return f"{name} {digest}"


class _OptionalFields(TypedDict, total=False):
    acceleration: str
    own: dict[str, str]


@with_config(ConfigDict(extra="forbid", strict=True))
class KernelEntry(_OptionalFields):
    """A result's description of its kernel: fields of Kernel; ``acceleration`` if QEMU ran it, ``own`` if the user's own algorithms are
    built into it."""

    name: str
    release: str
    build_id: str
    key: str
    source: str
    compiler: str


def is_built(name: str | None) -> bool:
    """Whether a kernel of kernels.yaml is there, so that it only has to be recorded, which needs no job."""
    try:
        get_kernel(name)
    except UserError:
        return False
    return True


def describe_kernel(kernel: Kernel) -> KernelEntry:
    """A result's description of a kernel."""
    content: KernelEntry = {
        "name": kernel.name,
        "release": kernel.release,
        "build_id": kernel.build_id,
        "key": kernel.key,
        "source": kernel.source,
        "compiler": kernel.compiler,
    }
    if kernel.acceleration:
        content["acceleration"] = kernel.acceleration
    if kernel.own:
        content["own"] = kernel.own
    return content


def without_build(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """A result's description of its kernel without the binary's hash, which depends on patches for the host."""
    return {name: value for name, value in kernel.items() if name != "build_id"}


def matches_this_recipe(kernel: KernelEntry) -> bool:
    """Whether this version builds a result's kernel from the same source with the same compiler, or the kernel is listed as giving the
    same results (KernelSpec.same_results)."""
    try:
        name, spec = find_spec(recipe_name(kernel["name"]))
        own = own_of(kernel.get("own", {}), name)
    except UserError:  # unknown here
        return False
    return (
        kernel["key"] in spec.same_results
        or build_key(spec, kernel["source"], kernel["compiler"], own) == kernel["key"]
    )
