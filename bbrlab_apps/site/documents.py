"""The documentation as pages of the site: the checkout's Markdown files where they are, so that their links hold."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path

from bbrlab.base import paths
from bbrlab.campaign.documents import LINK, comes_along, linked, place_of, sources
from bbrlab_apps.site.html import block

# The folders of docs/ in their order, and what they are called.
KINDS = {
    "tutorial": "Tutorials",
    "howto": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    "development": "Development",
}
INDEX = Path("docs/README.md")
_ARROW = re.compile(r"(\w+)(?: ?\[[^\]]*\])? --(?: (.+?) --)?> (\w+)(?: ?\[[^\]]*\])?")
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def write_documents(out: Path, root: Path | None = None) -> list[Path]:
    """Write the documentation to the folder of the pages' sources; returns the pages, relative to it.

    A link to what does not come along (a folder, a page of results) becomes plain words.
    """
    root = root or paths.ROOT
    pages = sources(root)
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        place = out / page
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_MERMAID.sub(_diagram, _relinked(text, page, set(pages), root)), encoding="utf-8")
    for file in linked(root):
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, out / file)
    return pages


def _relinked(text: str, source: Path, pages: set[Path], root: Path) -> str:
    def put(match: re.Match[str]) -> str:
        image, words, target = match.groups()
        place = place_of(source, target)
        if place is None or place in pages or comes_along(root / place):
            return match[0]
        return "" if image else words

    return LINK.sub(put, text)


def _diagram(match: re.Match[str]) -> str:
    """A flow chart as boxes with its arrows as words, which needs no library."""
    names: dict[str, str] = {}
    boxes: list[tuple[str, list[str]]] = [("", [])]
    for line in map(str.strip, match[1].splitlines()):
        for name, label in re.findall(r"(\w+) ?\[([^\]]*)\]", line):
            names.setdefault(name, label)
        if begins := re.fullmatch(r"subgraph (\w+)(?: \[(.*)\])?", line):
            boxes.append((begins[2] or begins[1], []))
        elif line == "end":
            boxes.append(("", []))
        elif arrow := _ARROW.fullmatch(line):
            source, what, target = (names.get(n or "", n or "") for n in arrow.groups())
            boxes[-1][1].append(
                f"{escape(source)} <span>→{f' {escape(what)} →' if what else ''}</span> {escape(target)}"
            )
    text = "".join(
        f"<div>{f'<b>{escape(title)}</b>' if title else ''}<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul></div>"
        for title, lines in boxes
        if lines
    )
    return block(f'<div class="bb-flow">{text}</div>')


def title_of(page: Path, root: Path | None = None) -> str:
    """A page's first heading; its name without one."""
    text = ((root or paths.ROOT) / page).read_text(encoding="utf-8")
    match = re.search(r"^# +(.+)$", text, re.MULTILINE)
    return re.sub(r"[*_`]", "", match[1]) if match else page.stem


def contents(pages: Sequence[Path], root: Path | None = None) -> str:
    """What stands behind docs/README.md on the site, unseen: the list of all pages for the sidebar, by kind, in the order of docs/README.md."""
    text = ((root or paths.ROOT) / INDEX).read_text(encoding="utf-8")
    named_first = list(dict.fromkeys(place_of(INDEX, target) for _, _, target in LINK.findall(text)))
    groups: dict[str, list[Path]] = {}
    for page in sorted(pages, key=lambda p: named_first.index(p) if p in named_first else len(named_first)):
        groups.setdefault(_group(page), []).append(page)
    parts: list[str] = []
    for name in filter(groups.get, ["Begin here", *KINDS.values(), "Courses", "Files beside the code"]):
        entries = "\n".join(_entry(page) for page in groups[name])
        parts.append(f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {name}\n\n{entries}\n```\n")
    return "".join(parts)


def _entry(page: Path) -> str:
    place = f"/{page.with_suffix('')}"
    return f"What it is, and how to start <{place}>" if page == Path("README.md") else place


def _group(page: Path) -> str:
    if page == Path("README.md"):
        return "Begin here"
    if page.parts[0] == "docs":
        return KINDS[page.parts[1]]
    return "Courses" if page.parts[0] == "courses" else "Files beside the code"
