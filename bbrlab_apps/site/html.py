"""HTML by templates: what is put into one is text and becomes no markup, and no content ends its block of a page's source.

A page's source is Markdown (MyST), in which a line of somebody's text could become a directive. So such text stands in HTML
blocks only, which no Markdown is read in, and each block's fence is longer than any in its content.
"""

from __future__ import annotations

import functools
import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from bbrlab.base.words import shown
from bbrlab.claims.schema import rounded
from bbrlab.show.verdicts import LOOKS, marks_text, measured_text, verdict_text

_FOLDER = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """A template of templates/ with these values. An unknown name in it is an error."""
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: shown(value) if type(value) is str else value,
    )  # fmt: skip
    environment.globals["LOOKS"] = LOOKS
    environment.filters |= {"block": block, "heading": heading, "number": number, "slug": slug, "inline": inline, "measured_text": measured_text,
                      "verdict_text": verdict_text, "marks_text": marks_text}  # fmt: skip
    return environment


def block(html: str) -> Markup:
    """HTML as a block of a page's source."""
    longest = max((len(run) for run in re.findall(r"`+", html)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}{{raw}} html\n{str(html).rstrip()}\n{fence}\n\n")


def heading(text: str, level: int) -> Markup:
    """A heading of a page's source."""
    return Markup(f"{'#' * level} {plain(text)}\n\n")


def plain(text: str) -> str:
    """A line of text in Markdown, of which nothing is a sign."""
    return re.sub(r"([^\w\s])", r"\\\1", " ".join(text.split()))


def inline(markdown: str) -> Markup:
    """A line of Markdown as HTML that was made clean."""
    from markdown_it import MarkdownIt

    return Markup(clean(str(MarkdownIt("commonmark").renderInline(markdown))))


def slug(text: str) -> str:
    """A name as an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def number(value: Any, digits: int = 4) -> str:
    """A number for reading; a dash where there is none."""
    if not isinstance(value, int | float) or math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else rounded(float(value), digits)


def embedded(content: Any, id: str) -> Markup:
    """Data for the page's script, as a block that is never run and that no content can end."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{escape(id)}">{safe}</script>')


# What may stand in the HTML of results and notebooks.
_TAGS = {
    "a", "b", "br", "caption", "code", "col", "colgroup", "dd", "details", "div", "dl", "dt", "em", "figcaption", "figure", "h4", "hr",
    "i", "li", "ol", "p", "pre", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead",
    "tr", "u", "ul",
}  # fmt: skip
_ATTRIBUTES = {
    "*": {"class", "style", "title"},
    "a": {"href"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
}
_STYLES = {"text-align", "font-weight"}  # no colours: they would be of one background only


def clean(html: str) -> str:
    """HTML without anything that runs, loads or leaves its place."""
    import nh3

    return nh3.clean(
        html, tags=_TAGS, attributes=_ATTRIBUTES, clean_content_tags={"script", "style"}, filter_style_properties=_STYLES,
        url_schemes={"https", "http", "mailto"}, link_rel="noopener noreferrer",
    )  # fmt: skip
