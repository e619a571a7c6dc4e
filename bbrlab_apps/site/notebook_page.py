"""Executed notebooks as pages of the site: words and outputs, no code, and no markup of an output that could do anything."""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path
from typing import Any

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab_apps.site.html import block, clean, heading, plain

Cells = list[dict[str, Any]]
# A table of statements (templates/statements.html) that is longer is left out: the papers' pages have it.
_STATEMENTS, _LARGEST = 'class="statements"', 60_000


def read_notebook(path: Path) -> Cells:
    """A notebook's cells. UserError if it is none of format 4."""
    content = files.read_json(path)  # nbformat would take four seconds to be imported
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) and "cell_type" in cell for cell in cells):
        raise UserError(f"{path}: is no notebook of format 4; delete it, and snakemake makes it anew")
    return cells


def title_of(notebook: Cells, otherwise: str) -> str:
    """The first heading."""
    for cell in notebook:
        if cell["cell_type"] == "markdown" and (
            match := re.search(r"^# +(.+)$", _text(cell.get("source")), re.MULTILINE)
        ):
            return re.sub(r"[*_`]", "", match[1]).strip()
    return otherwise


def lead_of(notebook: Cells) -> str:
    """The paragraph below the first heading (Markdown); empty if there is none."""
    first = _text(notebook[0].get("source")) if notebook else ""
    paragraphs = [part.strip() for part in first.split("\n\n") if part.strip() and not part.startswith("#")]
    return " ".join(paragraphs[0].split()) if paragraphs else ""


def notebook_page(notebook: Cells, images: Path, name: str, title: str = "") -> str:
    """The source of a page with a notebook's words and outputs.

    Args:
        notebook: read_notebook(), executed.
        images: folder beside the page's source, for its images.
        name: of the notebook, by which images are called.
        title: in the place of its first heading; default: that.
    """
    parts: list[str] = []
    count = tables = 0
    for cell in notebook:
        if cell["cell_type"] == "markdown":
            parts.append(_words(_text(cell.get("source"))))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                count += 1
                file = f"{name}-{count}.png"
                _write_image(images / file, _text(data["image/png"]))
                alternative = (
                    str(output.get("metadata", {}).get("image/png", {}).get("alt", "")) or f"{name}, figure {count}"
                )
                parts.append(f"![{plain(alternative)}]({file})\n\n")
            elif "text/markdown" in data:
                parts.append(_words(_text(data["text/markdown"])))
            elif (
                "text/html" in data
                and _STATEMENTS in _text(data["text/html"])
                and len(_text(data["text/html"])) > _LARGEST
            ):
                parts.append(
                    "Too long to be read here: the statements with all their claims stand on the [papers' pages](../papers/index.md).\n\n"
                )
            elif "text/html" in data:
                tables += 1
                parts.append(
                    block(
                        f'<div class="bb-scroll bb-output" tabindex="0" role="region" aria-label="Table {tables}">{clean(_text(data["text/html"]))}</div>'
                    )
                )
    page = "".join(parts)
    return re.sub(r"\A# .*\n", lambda _: heading(title, 1), page) if title else page


def _text(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else str(value)


def _words(markdown: str) -> str:
    """Markdown: headings as the page's own, the rest as HTML that was made clean."""
    parts: list[str] = []
    rest: list[str] = []
    fenced = False

    def flush() -> None:
        if "".join(rest).strip():
            parts.append(block(clean(_rendered("\n".join(rest)))))
        rest.clear()

    for line in markdown.splitlines():
        fenced ^= line.lstrip().startswith("```")
        match = None if fenced else re.match(r"(#{1,5}) +(.+)$", line)
        if match:
            flush()
            parts.append(heading(re.sub(r"[*`]", "", match[2]), len(match[1])))
        else:
            rest.append(line)
    flush()
    return "".join(parts)


def _rendered(markdown: str) -> str:
    from markdown_it import MarkdownIt

    html = str(MarkdownIt("commonmark").enable("table").render(markdown))
    return re.sub(r'href="([\w-]+)\.ipynb"', r'href="\1.html"', html)  # another notebook is a page beside this one


def _write_image(path: Path, encoded: str) -> None:
    try:
        path.write_bytes(base64.b64decode(encoded))
    except binascii.Error:
        path.write_bytes(b"")
