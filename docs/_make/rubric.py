"""The tables of a rubric's keys in courses/README.md, from the schema."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bbrlab.base import paths
from bbrlab_apps.grading.rubric import CheckPoints, Hint, JudgedClaim, Late, Limits, Question, Rubric, Values
from docs._make.marks import page, table

PAGE = paths.ROOT / "courses/README.md"
TABLES: dict[str, type[BaseModel]] = {
    "A rubric": Rubric, "`parameters.NAME` and `free.PATH`": Values, "`points`": CheckPoints, "An entry of `claims`": JudgedClaim,
    "An entry of `questions`": Question, "An entry of `hints`": Hint, "`late`": Late, "`limits`": Limits,
}  # fmt: skip


def tables() -> str:
    """The keys of a rubric and of its parts, as Markdown."""
    lines = []
    for title, model in TABLES.items():
        rows = [(f"`{name}`", _default(info), info.description or "") for name, info in model.model_fields.items()]
        lines += [f"### {title}", *table(("key", "default", "meaning"), rows), ""]
    return "\n".join(lines)


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "needed"
    if isinstance(info.default, BaseModel):
        return "as below"
    return (
        ""
        if info.default in (None, [], {})
        else f"{info.default:g}"
        if isinstance(info.default, float)
        else str(info.default)
    )


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: page(PAGE, {"rubric": tables()})}
