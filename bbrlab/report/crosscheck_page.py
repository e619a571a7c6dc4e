"""The cross-checks that ship, as the table of docs/explanation/crosschecks.md: ``python -m bbrlab.report.crosscheck_page``."""

from __future__ import annotations

import pandas as pd

from bbrlab.base import files, paths
from bbrlab.report.crosscheck import difference_words, measured_words, metric_words

PAGE = paths.ROOT / "docs" / "explanation" / "crosschecks.md"
TABLE = paths.DATA / "crosschecks" / "algorithms.csv"
BEGIN, END = "<!-- made by: python -m bbrlab.report.crosscheck_page -->", "<!-- end of what is made -->"


def made(table: pd.DataFrame) -> str:
    """The comparisons as a table in Markdown, and what they were made on."""
    rows = ["| algorithm | metric | virtual time | real time | difference (95 %) | |", "|---|---|---|---|---|---|"]
    for row in table.to_dict("records"):
        name = str(row["point"]).removeprefix("case=")
        cells = [
            name,
            metric_words(row),
            measured_words(row, "a"),
            measured_words(row, "b"),
            difference_words(row),
            row["outcome"],
        ]
        rows.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    first = table.iloc[0]
    how = {"kvm": "with KVM", "tcg": "emulated"}.get(str(first["acceleration"]), "")
    lost, late, busy = (float(table[key].max()) for key in ("lost", "late_ms_p99", "busy"))
    return "\n".join([
        *rows,
        "",
        f"Virtual time: {first['virtual_kernel']}. Real time: backend {first['backend']}, {how}, {first['real_kernel']}; of the runs that count, one timer in a "
        f"hundred was up to {late:.1f} ms late, the processor up to {busy:.0%} busy, and up to {lost:.1%} of its time was taken by others; "
        f"{int(first['refused'])} runs were refused.",
    ])  # fmt: skip


def renewed(text: str, table: pd.DataFrame) -> str:
    """The page with its table made anew. ValueError if it lacks the marks."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page needs the lines '{BEGIN}' and '{END}'")
    return f"{before}{BEGIN}\n{made(table)}\n{END}{after}"


if __name__ == "__main__":
    files.write_text(PAGE, renewed(PAGE.read_text(encoding="utf-8"), pd.read_csv(TABLE)))
