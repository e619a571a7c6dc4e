"""Reads config/kernels.yaml: the kernels that can be built, and the files that each is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict, read_model
from bbrlab.kernel.patch_files import parts_of
from bbrlab.kernel.sources import Source
from bbrlab.kernel.users import UsersKernel, read_users, users_file

# Of files and folders of this project, of a folder of the source tree, and of a kernel, which its log is called by.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=100)]
Folder = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_-]*)*$", max_length=200)]

SHIPPED_FILE = "config/kernels.yaml"  # in messages


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
    same_results: list[Annotated[str, Field(pattern="^[0-9a-f]{16}$")]] = Field(
        [],
        description="keys that this entry had before a change after which each run has the same bytes: runs of theirs are verified with it",
    )
    add: dict[Folder, Name] = Field(
        {}, description="{folder of the source tree: folder of kernels/ whose files go there}"
    )
    names: dict[str, str] = Field(description="{the field's name of each CCA: the kernel's name}")

    @property
    def foreign(self) -> bool:
        """Whether it has code of neither this project nor Debian."""
        return self.source.git is not None


class OwnSpec(KernelSpec):
    """A kernel of the user's file: the entry that it is based on, and its additions."""

    base: str
    series: list[str]
    settings: dict[str, str]

    @property
    def foreign(self) -> bool:
        """Always: its code is unknown to this project."""
        return True


class KernelsFile(Strict):
    """What `config/kernels.yaml` says of guest kernels."""

    default: str = Field(description="the entry that is used where none is named")
    kernels: dict[Name, KernelSpec] = Field(description="by name")


def load_specs(path: Path | None = None) -> KernelsFile:
    """config/kernels.yaml and after it the user's own kernels (users.py), checked. UserError naming file, field and value.

    Args:
        path: another file instead of both.
    """
    if path is None:
        specs = load_specs(paths.CONFIG / "kernels.yaml")
        own = load_own(users_file(), specs)
        return specs.model_copy(update={"kernels": {**specs.kernels, **own}}) if own else specs
    content = read_model(path, KernelsFile)
    if content.default not in content.kernels:
        raise UserError(f"{path}: default: '{content.default}' is not one of {', '.join(content.kernels)}")
    return content


def load_own(path: Path, specs: KernelsFile) -> dict[str, OwnSpec]:
    """The kernels of a user's file, {} if it does not exist. UserError naming file, field and value; ``specs`` as of own_spec()."""
    return {name: own_spec(name, entry, specs, path) for name, entry in read_users(path).items()}


def own_spec(name: str, entry: UsersKernel, specs: KernelsFile, path: Path | None = None) -> OwnSpec:
    """A kernel of the user's file. UserError if its name is taken, or its base entry does not exist.

    Args:
        specs: config/kernels.yaml.
        path: another file in place of users_file().
    """
    path = (path or users_file()).absolute()
    if name in specs.kernels:
        raise UserError(f"{path}: kernels.{name}: the name is taken: config/kernels.yaml has it; give yours another")
    if entry.base not in specs.kernels:
        raise UserError(
            f"{path}: kernels.{name}.base: '{entry.base}' is not in config/kernels.yaml, which has {', '.join(specs.kernels)}"
        )
    base = specs.kernels[entry.base]
    taken = set(entry.names.values())
    names = {field: cca for field, cca in base.names.items() if cca not in taken} | entry.names
    return OwnSpec(
        **base.model_dump(exclude={"description", "source", "names", "same_results"}),
        description=entry.description or f"{entry.base} and {_besides(entry)} ({path})",
        source=entry.source or base.source,
        names=names,
        base=entry.base,
        series=[str(path.parent / patch) for patch in entry.patches],
        settings=entry.options,
    )


def _besides(entry: UsersKernel) -> str:
    count = len(entry.patches)
    parts = [
        f"{count} patch{'es' * (count > 1)}" if count else "",
        ", ".join(f"{k}={v}" for k, v in entry.options.items()),
    ]
    return ", ".join([p for p in parts if p] + (["another source"] if entry.source else [])) or "other names"


class NoSuchKernel(UserError):
    """An unknown name of a kernel; ``reason`` is the message without what it was given by."""

    def __init__(self, reason: str, given_by: str):
        super().__init__(given_by + reason)
        self.reason = reason


def find_spec(name: str | None, given_by: str = "--kernel ") -> tuple[str, KernelSpec]:
    """The entry ``name`` (default: the file's default). UserError listing the entries.

    Args:
        given_by: what stands before the name in a message.
    """
    specs = load_specs()
    name = name or specs.default
    if name not in specs.kernels:
        own = [n for n, spec in specs.kernels.items() if isinstance(spec, OwnSpec)]
        names = ", ".join(n for n in specs.kernels if n not in own)
        also = f"; {users_file()} has {', '.join(own)}" if own else ""
        raise NoSuchKernel(f"{name}: no such kernel; config/kernels.yaml has {names}{also}", given_by)
    return name, specs.kernels[name]


def probe_file() -> Path:
    """The first program of a new kernel, whose output shows the kernel's CCAs and parameters."""
    return paths.KERNELS / "probe"


@dataclass(frozen=True)
class Recipe:
    """The files that a kernel is made from, besides its source: option fragments, patches in the order in which they are
    applied, those by which it runs on more machines (after the others), and (file, folder of the source tree that it is added to);
    of a kernel of the user's own the series that comes after ``patches``, and {option: value} after ``options``."""

    options: list[Path]
    patches: list[Path]
    host_patches: list[Path]
    added: list[tuple[Path, str]]
    series: list[Path]
    settings: dict[str, str]


def recipe(spec: KernelSpec) -> Recipe:
    """The recipe of an entry of kernels.yaml. UserError for a file or folder that does not exist."""
    options = [paths.KERNELS / "options" / o for o in spec.options]
    for path in options:
        if not path.is_file():
            raise UserError(f"{SHIPPED_FILE}: options: {path} does not exist")
    patches = _patches("patches", spec.patches)
    host_patches = _patches("host_patches", spec.host_patches)
    added: list[tuple[Path, str]] = []
    for target, folder in spec.add.items():
        sources = sorted((paths.KERNELS / folder).glob("*.[ch]"))
        if not sources:
            raise UserError(f"{SHIPPED_FILE}: add: kernels/{folder} holds no source file")
        added += [(path, target) for path in sources]
    if not isinstance(spec, OwnSpec):
        return Recipe(options, patches, host_patches, added, [], {})
    series = [Path(name) for name in spec.series]
    for path in series:
        if not path.is_file():
            raise UserError(f"{path}: does not exist, or is no file; give a patch")
    return Recipe(options, patches, host_patches, added, series, spec.settings)


def check_recipes(kernels: Mapping[str, KernelSpec], path: Path) -> None:
    """UserError, as a build would say before it fetches a source, if files of a kernel do not exist, or a user's patch is none.

    Args:
        path: the file that has the kernels, for messages.
    """
    for name, spec in kernels.items():
        try:
            for patch in recipe(spec).series:
                parts_of(patch)
        except UserError as error:
            raise UserError(f"{path}: kernels.{name}: {str(error).removeprefix(f'{SHIPPED_FILE}: ')}") from None


def _patches(field: str, folders: list[Name]) -> list[Path]:
    patches: list[Path] = []
    for folder in folders:
        paths_found = sorted((paths.KERNELS / "patches" / folder).glob("*.patch"))
        if not paths_found:
            raise UserError(f"{SHIPPED_FILE}: {field}: kernels/patches/{folder} holds no .patch file")
        patches += paths_found
    return patches
