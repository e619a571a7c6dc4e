"""A finished run to be packed, checked for completeness; and the tables of many."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict

from bbrlab.base.errors import DamagedFile
from bbrlab.results.digest import column_of, fields_of, summary_digest
from bbrlab.results.figures import Run
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.shipped import PLACE
from bbrlab.results.tables import run_rows
from bbrlab.run.output import MANIFEST, TABLES

START_AGAIN = "remove this folder and start the campaign again"


class _Source(BaseModel):
    commit: str | None
    modified: bool | None


class _Manifest(BaseModel):
    """The fields of manifest.json that are packed."""

    model_config = ConfigDict(extra="ignore", strict=True)
    fingerprint: str
    seed: int
    kernel: dict[str, Any]
    guest_code_sha256: dict[str, str]
    packages: dict[str, str]
    outputs_sha256: dict[str, str]
    source: _Source


@dataclass(frozen=True)
class FinishedRun:
    """A run by its folder."""

    run: Run
    rows: list[dict[str, Any]]
    checks: list[Any]
    summary_sha256: str
    fields: frozenset[str]
    tables: dict[str, str]
    manifest: dict[str, Any]

    @property
    def commit(self) -> str:
        """The commit of the code that ran it, with "+" if files had been changed."""
        source = self.manifest["source"]
        return (source["commit"] or "unknown") + ("+" if source["modified"] else "")

    @classmethod
    def load(cls, run: Run) -> FinishedRun:
        """Read a run's folder. DamagedFile if it is incomplete, or its manifest is of other tables or of another run."""
        folder = RunFolder(run.folder)
        for problem in folder.problems():
            raise DamagedFile(problem.path, problem.reason, START_AGAIN)
        summary, manifest = folder.summary, folder.manifest_as(_Manifest)
        path = run.folder / MANIFEST
        if (manifest.fingerprint, manifest.seed) != (run.point.fingerprint, run.seed) or manifest.kernel != summary[
            "kernel"
        ]:
            raise DamagedFile(path, "is of another run than summary.json", START_AGAIN)
        if extra := [name for name in folder.table_hashes if name not in manifest.outputs_sha256]:
            raise DamagedFile(path, f"has no hash of {extra[0]}", START_AGAIN)
        return cls(
            run,
            run_rows(run, summary),
            summary["checks"],
            summary_digest(summary),
            fields_of(summary),
            {name: manifest.outputs_sha256[name] for name in TABLES if name in manifest.outputs_sha256},
            folder.manifest,
        )


def load_all(runs: Iterable[Run]) -> list[FinishedRun]:
    """FinishedRun.load() of each, in their order."""
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter's lock
        return list(pool.map(FinishedRun.load, runs))


def _place(finished: FinishedRun) -> dict[str, Any]:
    return dict(zip(PLACE, (finished.run.figure, finished.run.point.label, finished.run.seed), strict=True))


def run_frame(runs: Iterable[FinishedRun]) -> pd.DataFrame:
    """runs.parquet: one row per run with its place, hashes and commit."""
    hashes = {column_of(name): name for name in TABLES}
    frame = pd.DataFrame(
        [
            _place(finished)
            | {"summary_sha256": finished.summary_sha256}
            | {column: finished.tables.get(name) for column, name in hashes.items()}
            | {"commit": finished.commit}
            for finished in runs
        ],
        columns=[*PLACE, "summary_sha256", *hashes, "commit"],
    )
    return frame.astype(dict.fromkeys(hashes, "str"))  # also if no run has the table


def check_frame(runs: Iterable[FinishedRun]) -> pd.DataFrame:
    """checks.parquet: one row per run and self-check."""
    rows = [
        _place(finished) | {"check": check["name"], "measured": check["measured"], "ok": check["ok"]}
        for finished in runs
        for check in finished.checks
    ]
    return pd.DataFrame(rows).astype({"measured": float, "ok": "boolean"})
