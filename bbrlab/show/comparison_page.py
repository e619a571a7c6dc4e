"""Two campaigns against each other as a page of its own: every point and every verdict of both sides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from bbrlab.base import files
from bbrlab.show.comparison import Comparison, outcome_counts, with_ends, with_half

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 2rem; font-size: .9rem }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid #ccc; vertical-align: top }
tr.moved td { background: #fff3d6 }
"""


def write_page(comparison: Comparison, page: Path) -> None:
    """Write the page. Everything in it is text: what results say is escaped."""
    a, b = (side["name"] for side in comparison.sides)
    points = [
        (
            [
                row["figure"], row["point"], row["cca"], f"{row['metric']} ({row['unit']})" if row["unit"] != "1" else row["metric"],
                with_half(row["a_mean"], row["a_half"]), with_half(row["b_mean"], row["b_half"]),
                with_ends(row["difference"], row["low"], row["high"]), row["outcome"],
            ],
            row["outcome"] == "moved",
        )
        for row in comparison.points.to_dict("records")
    ]  # fmt: skip
    verdicts = [
        (
            [row["id"], row["expected"]]
            + [text for s in "ab" for text in (row[s], with_ends(row[f"{s}_mean"], row[f"{s}_low"], row[f"{s}_high"]))],
            bool(row["moved"]),
        )
        for row in comparison.verdicts.to_dict("records")
    ]
    sides = "".join(
        f"<li>{letter}: <strong>{escape(side['name'])}</strong>, {escape(', '.join(side['kernels']))}</li>"
        for letter, side in zip("AB", comparison.sides, strict=True)
    )
    title = escape(f"{a} and {b}")
    body = (
        f"<h1>{title}</h1><p>Scale {escape(comparison.scale)}. Points: {escape(outcome_counts(comparison))}. Means with half of their 95 % intervals; "
        f"differences B - A with theirs. What moved is marked.</p><ul>{sides}</ul>"
        + _table("Points", ["figure", "point", "flows", "metric", "A", "B", "difference", "outcome"], points)
        + _table("Verdicts", ["claim", "expected", "A", "measured", "B", "measured"], verdicts)
    )
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    files.write_text(page, f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n')


def _table(caption: str, names: Sequence[str], rows: Iterable[tuple[Sequence[str], bool]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    lines = [
        f"<tr{' class=moved' * moved}>{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"
        for cells, moved in rows
    ]
    none = f'<tr><td colspan="{len(names)}">none</td></tr>'
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines) or none}</tbody></table>"
