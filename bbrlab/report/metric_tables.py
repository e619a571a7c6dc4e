"""The tables of metrics in docs/results.md, from the schema: ``python -m bbrlab.report.metric_tables`` writes them anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.measure import schema
from bbrlab.measure.schema import Metric

PAGE = paths.ROOT / "docs/results.md"
BEGIN, END = "<!-- made by: python -m bbrlab.report.metric_tables -->", "<!-- end of what is made -->"


def _rows(metrics: Mapping[str, Metric]) -> list[str]:
    rows = ["| column | unit | meaning | definition | source |", "|---|---|---|---|---|"]
    for m in metrics.values():
        over = f" (over how many: `{m.over}`)" if m.over else ""
        rows.append(f"| `{m.name}` | {m.unit} | {m.meaning}{over} | {m.definition} | {m.source} |")
    return rows


def metric_tables() -> str:
    """The metrics of a flow group and those of a run, as Markdown."""
    lines = ["### Metrics of a flow group", *_rows(schema.GROUP), "", "### Metrics of a run", *_rows(schema.RUN)]
    return "\n".join(lines)


def renewed(text: str) -> str:
    """A page with what is between its two marks made anew. ValueError if it lacks them."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page needs the lines '{BEGIN}' and '{END}'")
    return f"{before}{BEGIN}\n{metric_tables()}\n{END}{after}"


def write_tables(page: Path = PAGE) -> None:
    """Renew the page's tables."""
    files.write_text(page, renewed(page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    write_tables()
