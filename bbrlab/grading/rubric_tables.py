"""The tables of a rubric's keys in courses/README.md, from the schema: ``python -m bbrlab.grading.rubric_tables`` writes them anew."""

from __future__ import annotations

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bbrlab.base import files, paths
from bbrlab.grading.rubric import CheckPoints, JudgedClaim, Limits, Question, Rubric, Values

PAGE = paths.ROOT / "courses/README.md"
BEGIN, END = "<!-- made by: python -m bbrlab.grading.rubric_tables -->", "<!-- end of what is made -->"
TABLES: dict[str, type[BaseModel]] = {
    "A rubric": Rubric, "`parameters.NAME` and `free.PATH`": Values, "`points`": CheckPoints, "An entry of `claims`": JudgedClaim,
    "An entry of `questions`": Question, "`limits`": Limits,
}  # fmt: skip


def tables() -> str:
    """The keys of a rubric and of its parts, as Markdown."""
    lines = []
    for title, model in TABLES.items():
        lines += [f"### {title}", "| key | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {_default(info)} | {info.description or ''} |" for name, info in model.model_fields.items()
        ]
        lines.append("")
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


def renewed(text: str) -> str:
    """The page with its tables made anew. ValueError if it lacks their marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines '{BEGIN}' and '{END}'")
    return f"{before}{begin}\n{tables()}{end}{after}"


if __name__ == "__main__":
    files.write_text(PAGE, renewed(PAGE.read_text(encoding="utf-8")))
