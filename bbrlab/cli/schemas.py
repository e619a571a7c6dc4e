"""JSON Schemas of the files that people write, for editors; config/schemas/ has them (docs/_make/reference.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from bbrlab.base.errors import UserError
from bbrlab.claims.schema import INHERITED, Claim, Wording
from bbrlab.kernel.specs import KernelsFile
from bbrlab.kernel.users import UsersFile
from bbrlab.results.config import Config
from bbrlab.scenario.schema import Scenario
from bbrlab_apps.container.settings import Settings
from bbrlab_apps.grading.rubric import Rubric

Schema = dict[str, Any]


def _claims() -> Schema:
    """claims.yaml as it is written: a list of statements, whose claims may stand for rows of a table (``{column}``)."""
    wording, claim = Wording.model_json_schema(), Claim.model_json_schema()
    parts = wording.pop("$defs", {}) | claim.pop("$defs", {})
    term = {"$ref": "#/$defs/Term"}
    claim["properties"] |= {
        "at": {
            "description": "points of a figure, or several of these with names",
            "anyOf": [term, {"type": "object", "additionalProperties": term, "not": {"required": ["figure"]}}],
        },
        "each": {"type": "string", "description": "PAPER/TABLE or TABLE: one claim for each row of it"},
        "rows": {"type": "object", "description": "of each: only rows with these values"},
    }
    for name in ("statement", "paper"):
        del claim["properties"][name]
    claim["required"] = ["at", "expect"]
    claim["title"], claim["description"] = (
        "Claim",
        "One number that tests the statement, or one for each row of a table.",
    )
    del wording["properties"]["paper"]
    wording["properties"]["claims"] = {"type": "array", "items": {"$ref": "#/$defs/Claim"}, "minItems": 1}
    wording["required"] = ["id", "says", "source", "exactness", "claims"]
    wording["title"], wording["description"] = "Statement", "One thing that a paper says, and the claims that test it."
    for name in INHERITED:
        claim["properties"][name]["description"] = f"{claim['properties'][name].get('description', '')} (default: the statement's)".strip()  # fmt: skip
    parts |= {"Claim": claim, "Statement": wording}
    templated = {name: _with_cells(part) if name != "Statement" else part for name, part in parts.items()}
    return {"title": "claims.yaml", "type": "array", "items": {"$ref": "#/$defs/Statement"}, "$defs": templated}


def _with_cells(schema: Any) -> Any:
    """A schema in which every number, and every word of some, may be a text with ``{column}`` in it, or arithmetic on it."""
    if isinstance(schema, list):
        return [_with_cells(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("number", "integer"):
        annotations = {key: schema[key] for key in ("description", "default", "title") if key in schema}
        return annotations | {"anyOf": [{k: v for k, v in schema.items() if k not in annotations}, {"type": "string"}]}
    if schema.get("type") == "string":
        return {key: value for key, value in schema.items() if key != "pattern"}
    return {key: _with_cells(value) for key, value in schema.items()}


# Of the kinds that are mappings; claims are a list.
MODELS: dict[str, type[BaseModel]] = {
    "scenario": Scenario,
    "rubric": Rubric,
    "own-kernels": UsersFile,  # before those of the checkout: it is what a file of kernels alone is
    "kernels": KernelsFile,
    "config": Config,
    "container": Settings,
}
KINDS: dict[str, Callable[[], Schema]] = {
    **{kind: model.model_json_schema for kind, model in MODELS.items()},
    "claims": _claims,
}


def schema_of(kind: str) -> Schema:
    """The JSON Schema of a kind of file. UserError listing the kinds if there is no such one."""
    if kind not in KINDS:
        raise UserError(f"there is no schema '{kind}' (there are {', '.join(KINDS)})")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **KINDS[kind]()}
