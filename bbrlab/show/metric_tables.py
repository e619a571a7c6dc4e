"""The tables of metrics and columns in docs/reference/results.md, from the schemas: ``python -m bbrlab.show.metric_tables`` writes them anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.measure import sample_schema, schema
from bbrlab.measure.sample_schema import Column
from bbrlab.measure.schema import Metric

PAGE = paths.ROOT / "docs/reference/results.md"
BEGIN, END = "<!-- made by: python -m bbrlab.show.metric_tables ({}) -->", "<!-- end of what is made -->"


def _rows(metrics: Mapping[str, Metric]) -> list[str]:
    rows = ["| column | unit | meaning | definition | source |", "|---|---|---|---|---|"]
    for m in metrics.values():
        over = f" (over how many: `{m.over}`)" if m.over else ""
        since = f"; since {m.since}, null in older results" if m.since else ""
        rows.append(f"| `{m.name}` | {m.unit} | {m.meaning}{over} | {m.definition}{since} | {m.source} |")
    return rows


def metric_tables() -> str:
    """The metrics of a flow group and those of a run, as Markdown."""
    lines = ["### Metrics of a flow group", *_rows(schema.GROUP), "", "### Metrics of a run", *_rows(schema.RUN)]
    return "\n".join(lines)


def column_table(columns: Mapping[str, Column]) -> str:
    """The columns of a table of a run, as Markdown."""
    rows = ["| column | unit | meaning | from |", "|---|---|---|---|"]
    rows += [f"| `{c.name}` | {c.unit} | {c.meaning} | {c.source} |" for c in columns.values()]
    return "\n".join(rows)


def made() -> dict[str, str]:
    """{what a pair of marks on the page names: what stands between them}."""
    tables = {"samples": sample_schema.SAMPLES, "acks": sample_schema.ACKS, "short_flows": sample_schema.SHORT_FLOWS}
    return {name: column_table(columns) for name, columns in tables.items()} | {"metrics": metric_tables()}


def renewed(text: str) -> str:
    """A page with what is between its marks made anew. ValueError if it lacks them."""
    for name, content in made().items():
        begin = BEGIN.format(name)
        before, _, rest = text.partition(begin)
        _, end, after = rest.partition(END)
        if not end:
            raise ValueError(f"the page needs the lines '{begin}' and '{END}'")
        text = f"{before}{begin}\n{content}\n{END}{after}"
    return text


def write_tables(page: Path = PAGE) -> None:
    """Renew the page's tables."""
    files.write_text(page, renewed(page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    write_tables()
