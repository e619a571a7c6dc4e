"""Checks the content of a scenario file, and says in words what is wrong: file, line, field, value, what would be valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import Lines
from bbrlab.scenario.schema import (
    FOLDER,
    SOURCES,
    Buffer,
    Change,
    Flow,
    Hosts,
    Jitter,
    Network,
    Override,
    Qdisc,
    Scenario,
    Traffic,
)

PYDANTICS_OWN = {
    "float",
    "int",
    "str",
    "bool",
    "constrained-float",
    "constrained-int",
}  # words for one of several types


def validate(
    content: Any, where: str, lines: Lines | None = None, folder: Path | None = None, sources: tuple[Path, ...] = ()
) -> Scenario:
    """A Scenario from a dictionary. UserError naming ``where``, each wrong field, its value and what would be valid.

    Args:
        content: the dictionary.
        where: what to call it, such as its file.
        lines: of that file, to name the line as well.
        folder: of that file, which ``traffic.trace`` is relative to; default: the working directory.
        sources: C files of algorithms of one's own that flows may have, beside those in kernels/cca/.
    """
    if not isinstance(content, dict):
        raise UserError(f"{where}: a scenario is a mapping of keys to values; see docs/reference/scenario.md")
    try:
        scenario = Scenario.model_validate(content, context={FOLDER: folder or Path.cwd(), SOURCES: sources})
    except ValidationError as error:
        told = (explain_error(f"{where}:{lines.of(e['loc'])}" if lines else where, e, content) for e in error.errors())
        raise UserError("\n".join(dict.fromkeys(told))) from None
    scenario.keep_place(folder, sources)
    return scenario


def explain_error(where: str, error: Any, content: Any) -> str:
    """A pydantic error in words: file, field, value, what would be valid."""
    known = [p for p in error["loc"] if not (isinstance(p, str) and ("[" in p or p in PYDANTICS_OWN))]
    path = ".".join(str(p) for p in known)
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key '{path}'{_suggest(path, content)}"
    if error["type"] == "missing":
        return f"{where}: '{path}' is missing"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":
        return f"{where}: {path + ': ' if path else ''}{message}"
    return f"{where}: {path} = {_short(error['input'])}: {message[0].lower() + message[1:]}"


def _short(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _suggest(path: str, content: Any) -> str:
    import difflib

    model: Any = Scenario
    parts = path.split(".")
    for part in parts[:-1]:
        if part.isdigit():
            continue
        inner = model.model_fields.get(part)
        found = [m for m in _MODELS if inner and m.__name__ in str(inner.annotation)]
        model = found[0] if found else model
    names = list(model.model_fields)
    close = difflib.get_close_matches(parts[-1], names, 1)
    return f"; did you mean '{close[0]}'?" if close else f" (valid here: {', '.join(names)})"


_MODELS = (Network, Buffer, Qdisc, Jitter, Change, Hosts, Flow, Traffic, Override)
