"""CITATION.cff's version, and .zenodo.json, which follows from it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import paths
from bbrlab_apps.archive.citation import CITATION, name_of, project_version, read_citation

ZENODO = paths.ROOT / ".zenodo.json"
VERSION = re.compile(r"^version: .*$", re.MULTILINE)
# Zenodo takes one licence for all; ours hold by folder, so it is told that there are some and where they stand.
LICENCE, LICENCE_NOTE = "other-open", "<p>Licences hold by folder; the file LICENSE says which (MIT, GPL-2.0-only, CC0-1.0).</p>"  # fmt: skip


def reference_line(reference: Mapping[str, Any]) -> str:
    """A reference of CITATION.cff as a line of a bibliography."""
    year = f" ({reference['year']})" if "year" in reference else ""
    parts = ["; ".join(name_of(author) for author in reference["authors"]) + year, reference["title"]]
    parts += [reference[key] for key in ("collection-title", "journal") if key in reference]
    parts += [f"https://doi.org/{reference['doi']}"] if "doi" in reference else []
    return " ".join(part if part.endswith(("?", ".")) else f"{part}." for part in parts)


def zenodo(citation: Mapping[str, Any]) -> dict[str, Any]:
    """The content of .zenodo.json (https://developers.zenodo.org, representation of a deposit's metadata)."""
    return {
        "title": citation["title"],
        "upload_type": "software",
        "version": citation["version"],
        "description": f"<p>{' '.join(citation['abstract'].split())}</p>",
        "notes": LICENCE_NOTE,
        "creators": [{"name": name_of(author)} for author in citation["authors"]],
        "access_right": "open",
        "license": LICENCE,
        "language": "eng",
        "keywords": citation["keywords"],
        "references": [reference_line(reference) for reference in citation["references"]],
    }


def renewed(text: str, version: str) -> str:
    """CITATION.cff with this version. ValueError if it has no line for it."""
    new, count = VERSION.subn(f"version: {version}", text)
    if count != 1:
        raise ValueError(f"{CITATION.name} needs one line 'version: ...', it has {count}")
    return new


def pages() -> dict[Path, str]:
    """{file: its text as it should be}."""
    cff = renewed(CITATION.read_text(encoding="utf-8"), project_version())
    return {CITATION: cff, ZENODO: json.dumps(zenodo(read_citation()), indent=2, ensure_ascii=False) + "\n"}
