"""config/kernels.yaml: which kernels can be built, and the files that each is made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict
from bbrlab.base.yaml_files import read_yaml
from bbrlab.kernel.sources import Source

# Of files and folders of this project, of a folder of the source tree, and of a kernel, which its log is called by.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=100)]
Folder = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_-]*)*$", max_length=200)]


class KernelSpec(Strict):
    """One kernel."""

    description: str = Field(description="for people")
    source: Source = Field(description="where the kernel's source comes from")
    arch: Literal["um", "x86_64"] = Field("um", description="um: for virtual time; x86_64: for qemu")
    options: Annotated[list[Name], Field(min_length=1)] = Field(
        description="fragments in kernels/options/; of two lines about one option the later one counts"
    )
    patches: list[Name] = Field([], description="folders in kernels/patches/")
    host_patches: list[Name] = Field(
        [],
        description="folders in kernels/patches/ by which a kernel runs on more machines, and that nothing in a guest can notice: "
        "no part of its key",
    )
    add: dict[Folder, Name] = Field(
        {}, description="{folder of the source tree: folder of kernels/ whose files go there}"
    )
    names: dict[str, str] = Field(description="{the field's name of each CCA: the kernel's name}")


class KernelsFile(Strict):
    """What `config/kernels.yaml` says of guest kernels."""

    default: str = Field(description="the entry that is used where none is named")
    kernels: dict[Name, KernelSpec] = Field(description="by name")


def load_specs(path: Path | None = None) -> KernelsFile:
    """config/kernels.yaml, checked. UserError naming file, field and value."""
    path = path or paths.CONFIG / "kernels.yaml"
    try:
        found = KernelsFile.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"])
        raise UserError(f"{path}: {where}: {first['msg']} (found {first['input']!r})") from None
    if found.default not in found.kernels:
        raise UserError(f"{path}: default: '{found.default}' is not one of {', '.join(found.kernels)}")
    return found


def find_spec(name: str | None) -> tuple[str, KernelSpec]:
    """The entry called ``name`` (default: the file's default). UserError listing what there is."""
    specs = load_specs()
    name = name or specs.default
    if name not in specs.kernels:
        raise UserError(f"--kernel {name}: no such kernel; config/kernels.yaml has {', '.join(specs.kernels)}")
    return name, specs.kernels[name]


def probe_file() -> Path:
    """The first program of a new kernel: by what it prints a kernel is known to have a CCA or a parameter."""
    return paths.KERNELS / "probe"


@dataclass(frozen=True)
class Recipe:
    """The files that a kernel is made from, besides its source: option fragments, patches in the order in which they are
    applied, those by which it runs on more machines (after the others), and (file, folder of the source tree that it is added to)."""

    options: list[Path]
    patches: list[Path]
    host_patches: list[Path]
    added: list[tuple[Path, str]]


def recipe(spec: KernelSpec) -> Recipe:
    """The recipe of an entry of kernels.yaml. UserError for a file or folder that does not exist."""
    options = [paths.KERNELS / "options" / o for o in spec.options]
    for path in options:
        if not path.is_file():
            raise UserError(f"config/kernels.yaml: options: {path} does not exist")
    patches = _patches("patches", spec.patches)
    host_patches = _patches("host_patches", spec.host_patches)
    added: list[tuple[Path, str]] = []
    for target, folder in spec.add.items():
        sources = sorted((paths.KERNELS / folder).glob("*.[ch]"))
        if not sources:
            raise UserError(f"config/kernels.yaml: add: kernels/{folder} holds no source file")
        added += [(path, target) for path in sources]
    return Recipe(options, patches, host_patches, added)


def _patches(field: str, folders: list[Name]) -> list[Path]:
    patches: list[Path] = []
    for folder in folders:
        found = sorted((paths.KERNELS / "patches" / folder).glob("*.patch"))
        if not found:
            raise UserError(f"config/kernels.yaml: {field}: kernels/patches/{folder} holds no .patch file")
        patches += found
    return patches


def ingredients(name: str | None = None) -> list[Path]:
    """The files of this project whose change makes another kernel; kernels.yaml apart, whose entry is in built.kernel_identity().

    Patches for the host are none of them: no result depends on them.
    """
    parts = recipe(find_spec(name)[1])
    return [*parts.options, *parts.patches, *(path for path, _ in parts.added), probe_file()]
