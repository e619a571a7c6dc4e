"""Text from results and from the papers' files on pages: always escaped, never markup.

A page's source is Markdown (MyST), in which a line of somebody's text could become a directive. So such text stands in HTML
blocks only, which no Markdown is read in, and each block's fence is longer than any in its content.
"""

from __future__ import annotations

import json
import math
import re
from html import escape
from typing import Any

from bbrlab.claims.schema import rounded
from bbrlab.results.verdicts import AS_READ, INCONCLUSIVE, NOT_REPRODUCED, NOT_RUN, PARTLY, PARTLY_RUN, REPRODUCED

# A verdict's CSS class, and its mark, so that colour is never the only sign.
LOOKS = {
    REPRODUCED: ("good", "✓"),
    AS_READ: ("read", "✓"),
    PARTLY: ("half", "◐"),
    NOT_REPRODUCED: ("bad", "✗"),
    INCONCLUSIVE: ("open", "?"),
    PARTLY_RUN: ("part", "…"),
    NOT_RUN: ("none", "–"),
}


def block(html: str) -> str:
    """HTML as a block of a page's source."""
    longest = max((len(run) for run in re.findall(r"`+", html)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{{raw}} html\n{html}\n{fence}\n\n"


def heading(text: str, level: int, target: str = "") -> str:
    """A heading of a page's source, and the name that links find it by."""
    plain = re.sub(r"([^\w\s])", r"\\\1", " ".join(text.split()))
    return (f"({target})=\n" if target else "") + f"{'#' * level} {plain}\n\n"


def slug(text: str) -> str:
    """A name as an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def badge(verdict: str, text: str | None = None) -> str:
    """A verdict in its colour, with its mark."""
    kind, mark = LOOKS[verdict]
    return f'<span class="bb-badge bb-{kind}"><span aria-hidden="true">{mark}</span> {escape(text or verdict)}</span>'


def number(value: Any, digits: int = 4) -> str:
    """A number for reading; a dash where there is none."""
    if not isinstance(value, int | float) or math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else rounded(float(value), digits)


def embedded(content: Any, id: str) -> str:
    """Data for the page's script, as a block that is never run and that no content can end."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{escape(id)}">{safe}</script>'
