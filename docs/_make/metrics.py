"""The tables of metrics and columns in docs/reference/results.md, from the schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from bbrlab.base import paths
from bbrlab.measure import metrics, sample_schema
from bbrlab.measure.metrics import Metric
from bbrlab.measure.sample_schema import Column
from docs._make.marks import page, table

PAGE = paths.ROOT / "docs/reference/results.md"


# What the page says once, above the tables.
PERCENTILES = re.compile(r"[,;]? ?linear between samples \(NumPy's default, method 7 of Hyndman and Fan 1996\)")
SINCE = next(m.since for m in metrics.GROUP.values() if m.since)  # when most of the later ones came
LONG = 50  # a definition that another metric has, too, is told once


def _rows(metrics: Mapping[str, Metric]) -> list[str]:
    rows = []
    defined: dict[str, str] = {}
    for m in metrics.values():
        over = f" (over how many: `{m.over}`)" if m.over else ""
        since = ""
        if m.since:
            since = " †" if m.since == SINCE else f"; since {m.since}, null in older results"
        since = "; only in results that have one" if m.sometimes else since
        definition = PERCENTILES.sub("", m.definition)
        first = defined.setdefault(definition, m.name)
        if first != m.name and len(definition) > LONG:
            definition = f"as `{first}`"
        rows.append((f"`{m.name}`", m.unit, m.meaning + over, definition + since, m.source))
    return table(("column", "unit", "meaning", "definition", "source"), rows)


def metric_tables() -> str:
    """The metrics of a flow group and those of a run, as Markdown."""
    lines = [f"†: since {SINCE}; null in older results.", ""]
    lines += ["### Metrics of a flow group", *_rows(metrics.GROUP), "", "### Metrics of a run", *_rows(metrics.RUN)]
    return "\n".join(lines)


def column_table(columns: Mapping[str, Column]) -> str:
    """The columns of a table of a run, as Markdown."""
    rows = [(f"`{c.name}`", c.unit, c.meaning, c.source) for c in columns.values()]
    return "\n".join(table(("column", "unit", "meaning", "from"), rows))


def made() -> dict[str, str]:
    """{what a pair of marks on the page names: what stands between them}."""
    tables = {"samples": sample_schema.SAMPLES, "acks": sample_schema.ACKS, "short_flows": sample_schema.SHORT_FLOWS}
    return {name: column_table(columns) for name, columns in tables.items()} | {"metrics": metric_tables()}


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: page(PAGE, made())}
