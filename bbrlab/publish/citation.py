"""How bbrlab is cited: CITATION.cff, and .zenodo.json, which follows from it: ``python -m bbrlab.publish.citation`` writes both anew.

The version is pyproject.toml's, everywhere.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.base.yaml_files import read_yaml

CITATION = paths.ROOT / "CITATION.cff"
ZENODO = paths.ROOT / ".zenodo.json"
VERSION = re.compile(r"^version: .*$", re.MULTILINE)
# Zenodo takes one licence for all; ours hold by folder, so it is told that there are some and where they stand.
LICENCE, LICENCE_NOTE = "other-open", "<p>Licences hold by folder; the file LICENSE says which (MIT, GPL-2.0-only, CC0-1.0).</p>"  # fmt: skip


def project_version() -> str:
    """The version of this package, as pyproject.toml has it."""
    version: str = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def read_citation(path: Path = CITATION) -> dict[str, Any]:
    """The content of CITATION.cff."""
    content: dict[str, Any] = read_yaml(path)
    return content


def name_of(author: Mapping[str, str]) -> str:
    """An author of CITATION.cff: ``Family, Given``, or the name of a group."""
    return author["name"] if "name" in author else f"{author['family-names']}, {author['given-names']}"


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


def write_all() -> None:
    """Renew CITATION.cff's version and .zenodo.json."""
    files.write_if_changed(CITATION, renewed(CITATION.read_text(encoding="utf-8"), project_version()))
    files.write_if_changed(ZENODO, json.dumps(zenodo(read_citation()), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write_all()
