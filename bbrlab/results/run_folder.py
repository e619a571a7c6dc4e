"""One finished run as its folder has it, whole and its own, and tables of many of them."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.measure.summary import read_summary
from bbrlab.results.digest import SUMMARY, TABLES, column_of, fields_of, summary_digest, table_digests
from bbrlab.results.figures import Run
from bbrlab.results.tables import run_rows


@dataclass(frozen=True)
class Seen:
    """One run as its folder has it.

    Attributes:
        rows: of the figure's table.
        checks: of its summary.
        fields: of its summary, over which its hash is.
        tables: {name: SHA-256}.
        manifest: its manifest.json.
    """

    run: Run
    rows: list[dict[str, Any]]
    checks: list[Any]
    summary_sha256: str
    fields: frozenset[str]
    tables: dict[str, str]
    manifest: dict[str, Any]

    @property
    def commit(self) -> str:
        """Of the code that it was run with, "+" behind it if files had been changed."""
        source = self.manifest["source"]
        return (source["commit"] or "unknown") + ("+" if source["modified"] else "")


def look_at(run: Run) -> Seen:
    """A run's folder. UserError if it is not whole, or its manifest is of other tables or of another run."""
    for name in (SUMMARY, TABLES[0], "manifest.json"):
        if not (run.folder / name).is_file():
            raise UserError(f"{run.folder / name}: is missing; start the campaign again, it makes what is not there")
    summary, manifest = read_summary(run.folder), files.read_json(run.folder / "manifest.json")
    tables = table_digests(run.folder)
    try:
        said = {name: digest for name, digest in manifest["outputs_sha256"].items() if name in tables}
        same = (manifest["fingerprint"], manifest["seed"]) == (run.point.fingerprint, run.seed)
        same &= manifest["kernel"] == summary["kernel"]
        hashes = {name: manifest["outputs_sha256"][name] for name in TABLES if name in manifest["outputs_sha256"]}
        digest, fields = summary_digest(summary), fields_of(summary)
        found = Seen(run, run_rows(run), summary["checks"], digest, fields, hashes, manifest)
        for part in ("kernel", "guest_code_sha256", "packages"):
            _ = manifest[part]
        found.commit  # noqa: B018 - that it is there
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{run.folder / 'manifest.json'}: has no {error}: made by another version of bbrlab; remove this folder and start the campaign again"
        ) from None
    if not same:
        raise UserError(
            f"{run.folder / 'manifest.json'}: is of another run than summary.json; remove this folder and start the campaign again"
        )
    if said != tables:
        wrong = next(name for name in tables if said.get(name) != tables[name])
        raise UserError(
            f"{run.folder / wrong}: is not the file that manifest.json has the hash of; remove this folder and start the campaign again"
        )
    return found


def look_at_all(runs: Iterable[Run]) -> list[Seen]:
    """look_at() of each, in their order."""
    with ThreadPoolExecutor() as pool:  # hashing lets go of the interpreter
        return list(pool.map(look_at, runs))


def run_frame(seen: Iterable[Seen]) -> pd.DataFrame:
    """One row per run: its place, hashes and commit."""
    hashes = {column_of(name): name for name in TABLES}
    found = pd.DataFrame(
        [
            {"figure": s.run.figure, "point": s.run.point.label, "seed": s.run.seed, "summary_sha256": s.summary_sha256,
             **{column: s.tables.get(name) for column, name in hashes.items()}, "commit": s.commit}
            for s in seen
        ],
        columns=["figure", "point", "seed", "summary_sha256", *hashes, "commit"],
    )  # fmt: skip
    return found.astype(dict.fromkeys(hashes, "str"))  # one that no run has, too


def check_frame(seen: Iterable[Seen]) -> pd.DataFrame:
    """One row per run and self-check."""
    rows = [
        {
            "figure": s.run.figure,
            "point": s.run.point.label,
            "seed": s.run.seed,
            "check": c["name"],
            "measured": c["measured"],
            "ok": c["ok"],
        }
        for s in seen
        for c in s.checks
    ]
    return pd.DataFrame(rows).astype({"measured": float, "ok": "boolean"})
