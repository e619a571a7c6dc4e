"""Validates an RO-Crate with roc-validator, without a network; run by .venv-citing's Python (envs/citing.in).

python tests/archive/validate_crate.py FOLDER: prints what is wrong, one finding a line, after its severity; ends with 1 if a requirement is not met.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import requests
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester

CONTEXT = "https://w3id.org/ro/crate/1.1/context"


def local(requester: HttpRequester, url: str, **options: Any) -> requests.Response:
    """The RO-Crate context that rocrate-py carries, in place of the one on the web; nothing else is there."""
    content = resources.files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()
    response = requests.Response()
    response.status_code = 200 if url == CONTEXT == json.loads(content)["@id"] else 404
    response.headers["Content-Type"] = "application/ld+json"
    response._content = content
    return response


def main(folder: Path) -> int:
    """Exit code."""
    HttpRequester.get = local
    with tempfile.TemporaryDirectory() as cache:
        result = services.validate(
            ValidationSettings(
                rocrate_uri=str(folder),
                profile_identifier="process-run-crate",
                requirement_severity=Severity.RECOMMENDED,
                offline=True,
                cache_path=Path(cache) / "cache",
            )
        )
    found = {(i.severity.name, i.check.name, i.message) for i in result.get_issues(Severity.RECOMMENDED)}
    for severity, check, message in sorted(found):
        print(f"{severity}: {check}: {' '.join((message or '').split())}")
    counts: dict[str, int] = {}
    for issue in result.get_issues(Severity.RECOMMENDED):
        counts[issue.severity.name] = counts.get(issue.severity.name, 0) + 1
    print(f"findings: {counts}", file=sys.stderr)
    return 1 if any(severity == "REQUIRED" for severity, *_ in found) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
