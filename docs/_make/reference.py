"""The reference pages that are made from the code (docs/reference/), and the JSON Schemas for editors (config/schemas/)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
import typer.main
from typer.core import TyperGroup

from bbrlab.base import paths
from bbrlab.cli.app import EXITS, app
from bbrlab.cli.schemas import KINDS, schema_of
from bbrlab.kernel.users import UsersFile
from docs._make.marks import cell, page, table

FOLDER, SCHEMAS = paths.ROOT / "docs" / "reference", paths.CONFIG / "schemas"
Schema = Mapping[str, Any]
# Of an option's value: what Typer calls it, and a word for readers.
TYPES = {
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<int>": "NUMBER",
    "<int range>": "NUMBER",
    "<float>": "NUMBER",
    "<float range>": "NUMBER",
    "<path>": "PATH",
    "<list[Path]>": "PATH",
}
BOUNDS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}


def _values(schema: Schema) -> str:
    """What a field may be, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    for many in ("anyOf", "allOf"):
        if many in schema:
            return " or ".join(dict.fromkeys(_values(s) for s in schema[many] if s.get("type") != "null"))
    match schema.get("type"):
        case "array":
            inner, few = _values(schema.get("items", {})), schema.get("minItems")
            return f"two of: {inner}" if few == 2 == schema.get("maxItems") else f"list of: {inner}"
        case "object":
            named = schema.get("additionalProperties")
            return f"name: {_values(named)}" if isinstance(named, dict) and named else "mapping"
        case "number" | "integer" as kind:
            bounds = " and ".join(f"{sign} {_number(schema[key])}" for key, sign in BOUNDS.items() if key in schema)
            return f"{kind if kind == 'number' else 'whole number'} {bounds}".strip()
        case "string":
            return "text"
        case "boolean":
            return "`true`, `false`"
    return "any value"


def _default(name: str, part: Schema, field: Schema) -> str:
    if name in part.get("required", ()):
        return "needed"
    value = field.get("default")
    if value and isinstance(value, dict) and "`on`" in _values(field):
        return "`on`"
    if value in (None, [], {}, "") or isinstance(value, dict):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return _number(value) if isinstance(value, int | float) else f"`{value}`"


def _number(value: float) -> str:
    return f"{value:.15g}"


def _cell(text: str) -> str:
    """One cell of a table: one line, pages of docs/ as links."""
    text = cell(text).replace("``", "`")
    return re.sub(
        r"docs/(\w+)/(\w+\.md)", lambda m: f"[{m[2]}]({'' if m[1] == FOLDER.name else f'../{m[1]}/'}{m[2]})", text
    )


def schema_tables(schema: Schema) -> str:
    """A JSON Schema as Markdown: a section with a table of keys for each mapping in it, the outermost first."""
    parts = dict(schema.get("$defs", {}))
    if "properties" in schema:
        parts = {schema["title"]: schema, **parts}
    lines = []
    for name in _in_order(parts, schema):
        part = parts[name]
        rows = [
            (f"`{key}`", _values(field), _default(key, part, field), str(field.get("description", "")))
            for key, field in part["properties"].items()
        ]
        lines += [f"## {name}", _cell(str(part.get("description", ""))), ""]
        lines += [*table(("key", "values", "default", "meaning"), [map(_cell, row) for row in rows]), ""]
    return "\n".join(lines)


def _in_order(parts: Mapping[str, Schema], schema: Schema) -> list[str]:
    """The names of a schema's mappings as a reader meets them."""
    found = [schema["title"]] if "properties" in schema else []

    def meet(part: Any) -> None:
        if isinstance(part, dict):
            if "$ref" in part:
                name = part["$ref"].rsplit("/", 1)[-1]
                if name not in found:
                    found.append(name)
                    meet(parts[name])
            for key, inner in part.items():
                if key != "$defs":
                    meet(inner)
        elif isinstance(part, list):
            for inner in part:
                meet(inner)

    meet({k: v for k, v in schema.items() if k != "$defs"})
    return [name for name in found if "properties" in parts[name]]


def _commands(group: TyperGroup, path: str) -> Iterator[tuple[str, Any]]:
    """Every command that ``--help`` lists, with what one types for it."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def command_line() -> str:
    """Exit codes, and every command with its arguments and options."""
    import bbrlab.cli.commands  # noqa: F401 - each module adds its commands

    lines = ["## Exit codes", *table(("code", "meaning"), EXITS.items())]
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    for typed, command in sorted(_commands(root, "bbrlab")):
        context = typer.Context(command, info_name=typed)
        usage = " ".join([typed, *command.collect_usage_pieces(context)])
        lines += ["", f"## {typed}", f"`{usage}`", "", _cell(command.help or ""), ""]
        rows = list(_parameters(command, context))
        lines += table(("argument or option", "meaning"), rows) if rows else []
    return "\n".join([*lines, ""])


def _parameters(command: Any, context: typer.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = None if getattr(parameter, "hidden", False) else parameter.get_help_record(context)
        if record is not None and "--help" not in parameter.opts:
            # An argument's name says what it is.
            name = re.sub(r"<[^>]*>", lambda found: TYPES.get(found[0], found[0]), record[0])
            typed = name if record[0].startswith("-") else re.sub(r" <[^>]*>$", "", record[0])
            yield f"`{_cell(typed)}`", _cell(record[1])


def scenario_page() -> str:
    """The fields, the ranges of each queue's options, and what has no effect without something else."""
    from bbrlab.scenario.needs import NEEDS
    from bbrlab.scenario.parameters import FRIENDLY_BETA_MIN, PARAMETERS
    from bbrlab.scenario.schema import ANY, QDISC_OPTIONS

    lines = [
        schema_tables(schema_of("scenario")),
        "## Options of queues",
        "Where a kind takes less than the field:",
        "",
    ]
    ranges = [
        (f"`{kind}`", f"`{name}`", *map(_number, bounds))
        for kind, options in QDISC_OPTIONS.items()
        for name, bounds in options.items()
        if bounds != ANY
    ]
    lines += table(("kind", "option", "least", "largest"), ranges)
    lines += ["", "## Parameters of Linux's algorithms", "`params` of a flow group; a kernel of one's own may have more. reno has none. Those of bbr2 and "
              "bbr3: [bbr_parameters.md](bbr_parameters.md).", ""]  # fmt: skip
    kinds = [(f"`{cca}`", f"`{name}`", kind) for cca, kinds in PARAMETERS.items() for name, kind in kinds.items()]
    lines += table(("algorithm", "parameter", "values"), kinds)
    lines += ["", f"`beta` of cubic below {FRIENDLY_BETA_MIN} needs `tcp_friendliness: off`."]
    lines += ["", "## What needs what", "Without its partner a field has no effect: it is refused where it has none at any point of the scenario, and noted by `check` "
              "where it has none at some points of a sweep.", ""]  # fmt: skip
    rows = [(f"`{n.field}`", _cell(n.needs), "noted" if n.only_noted else "refused") for n in NEEDS]
    lines += table(("field", "has an effect with", "otherwise"), rows)
    return "\n".join([*lines, ""])


def _users_kernels() -> str:
    """The user's own file of kernels; its Source is that of config/kernels.yaml."""
    return schema_tables(UsersFile.model_json_schema()).partition("\n## Source\n")[0] + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "scenario.md": scenario_page,
    "claims.md": lambda: schema_tables(schema_of("claims")),
    "configuration.md": lambda: "\n".join(
        [*(schema_tables(schema_of(k)) for k in ("config", "kernels", "container")), _users_kernels()]
    ),
    "command_line.md": command_line,
}


def pages() -> dict[Path, str]:
    """{page or schema: its text as it should be}."""
    reference = {FOLDER / name: page(FOLDER / name, {"reference": content()}) for name, content in PAGES.items()}
    return reference | {SCHEMAS / f"{kind}.schema.json": json.dumps(schema_of(kind), indent=1) + "\n" for kind in KINDS}
