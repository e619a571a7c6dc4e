"""The user's own kernels: a file outside of this checkout with entries based on those of config/kernels.yaml."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from bbrlab.base import files
from bbrlab.base.algorithms import KNOWN, no_such, own_sources
from bbrlab.base.errors import UserError
from bbrlab.base.problems import problem_of
from bbrlab.base.strict import Strict, read_model
from bbrlab.base.yaml_files import dump_yaml, parse_yaml
from bbrlab.kernel.sources import Source

VARIABLE = "BBRLAB_KERNELS"
OPTION = re.compile(r"CONFIG_[A-Z0-9][A-Za-z0-9_]*")
NUMBER = re.compile(r"-?[0-9]+|0x[0-9A-Fa-f]+")
# As Name of specs.py, without the "+" by which results name algorithms that were built in besides.
OWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
CCA = re.compile(r"[a-z][a-z0-9_-]{0,14}")  # TCP_CA_NAME_MAX of include/net/tcp.h, without the byte that ends it


def _own_name(name: str) -> str:
    if not OWN_NAME.fullmatch(name):
        raise ValueError(
            f"'{name}' is no name of a kernel: letters, digits, _, . and -, a letter or digit first, at most 100"
        )
    return name


def _cca(name: str) -> str:
    if not CCA.fullmatch(name):
        raise ValueError(
            f"'{name}' is no name of an algorithm: a small letter, then small letters, digits, _ and -, at most 15 in all"
        )
    return name


def _option(name: str) -> str:
    if not OPTION.fullmatch(name):
        raise ValueError(f"'{name}' is no name of an option; they are CONFIG_ and capital letters, as in CONFIG_IPV6")
    return name


def _text(value: object) -> object:
    """Accept a YAML number as its text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _value(value: str) -> str:
    if value == "m":
        raise ValueError("m is not possible: a guest loads no modules; give y")
    if any(c in value for c in '"\\\n\r'):
        raise ValueError("a value has no quotation marks, backslashes and line ends")
    return value


OwnName = Annotated[str, AfterValidator(_own_name)]
Cca = Annotated[str, AfterValidator(_cca)]
Options = dict[Annotated[str, AfterValidator(_option)], Annotated[str, BeforeValidator(_text), AfterValidator(_value)]]


class UsersKernel(Strict):
    """A user's own kernel: an entry of config/kernels.yaml with patches, options or another source."""

    base: str = Field(description="the entry of config/kernels.yaml whose options, patches and source it has")
    description: str = Field("", description="for people")
    source: Source | None = Field(None, description="in place of that entry's")
    patches: list[str] = Field(
        [],
        description="files, in the order in which they are applied, after that entry's; relative: to this file's folder",
    )
    options: Options = Field(
        {}, description="{CONFIG_NAME: y, n, a number or a text}; they count more than that entry's"
    )
    names: dict[Cca, Cca] = Field(
        {},
        description="{the field's name of a CCA: the kernel's name}; that entry's hold for the others, unless the kernel's name is taken",
    )


class UsersFile(Strict):
    """What a user's file says of kernels: `~/.config/bbrlab/kernels.yaml`, or the one that `BBRLAB_KERNELS` names."""

    kernels: dict[OwnName, UsersKernel] = Field(description="by name; none that config/kernels.yaml has")


def users_file() -> Path:
    """The file of the user's own kernels: BBRLAB_KERNELS, else kernels.yaml in bbrlab's folder of the user's settings."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(os.environ.get(VARIABLE) or settings / "bbrlab" / "kernels.yaml").absolute()


def read_users(path: Path | None = None) -> dict[str, UsersKernel]:
    """The kernels of the user's file, {} without one. UserError naming file, field and value."""
    path = path or users_file()
    return read_model(path, UsersFile).kernels if path.exists() else {}


def checked_entry(name: str, **fields: object) -> UsersKernel:
    """An entry of the user's file from command-line options. UserError naming field and value."""
    try:
        entry = UsersFile.model_validate({"kernels": {name: fields}}).kernels[name]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"][2:] if p != "[key]") or "name"
        option = {"options": "--option", "names": "--names", "patches": "--patch"}.get(
            where.split(".")[0], f"--{where}"
        )
        if first["loc"][-1] == "[key]" and len(first["loc"]) == 3:
            option = "--name"
        of_key = f"{first['loc'][3]}=" if option in ("--option", "--names") and len(first["loc"]) == 4 else ""
        raise UserError(f"{option} {of_key}{first['input']}: {problem_of(first)}") from None
    own = own_sources()
    for field, kernel_name in entry.names.items():
        if field not in KNOWN and field not in own:  # no flow could have it
            raise UserError(f"--names {field}={kernel_name}: {no_such(field, own)}")
    return entry


def prepare_users_file(name: str, entry: UsersKernel) -> None:
    """Make the folder of the user's file, before a build that takes minutes. UserError if the file cannot be written there, or a kernel
    not into it."""
    path = users_file()
    _with(name, entry)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise files.explain(
            error, path.parent, f"or name another file for your kernels: export {VARIABLE}=FILE"
        ) from None


def add_to_users(name: str, entry: UsersKernel) -> None:
    """Add a kernel to the user's file, which is made if need be (prepare_users_file())."""
    files.write_text(users_file(), _with(name, entry))


def _with(name: str, entry: UsersKernel) -> str:
    """The text of the user's file with one more kernel. UserError if it would not be read as what it is."""
    kernels = read_users() | {name: entry}
    content = {"kernels": {n: k.model_dump(mode="json", exclude_defaults=True) for n, k in kernels.items()}}
    begin = "# Kernels of one's own (docs/howto/kernels.md), beside those of config/kernels.yaml.\n"
    try:
        text = begin + dump_yaml(content, allow_unicode=True)
        same = UsersFile.model_validate(parse_yaml(text)).kernels == kernels
    except (yaml.YAMLError, ValueError):
        same = False
    if not same:
        raise UserError(
            f"{users_file()}: cannot have kernel {name}: a path or an option's value has characters that are no text; give others"
        )
    return text


def option_line(name: str, value: str) -> str:
    """A line of a .config."""
    if value == "n":
        return f"# {name} is not set"
    return f"{name}={value}" if value == "y" or NUMBER.fullmatch(value) else f'{name}="{value}"'
