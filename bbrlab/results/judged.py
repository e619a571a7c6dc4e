"""By which tables verdicts were judged: a note in each file [NAME.]claims.parquet, so that pages show what belongs together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from bbrlab.base import files
from bbrlab.base.tables import read_table
from bbrlab.results.schema import other_version_error
from bbrlab.results.tables import write_table
from bbrlab.results.verdicts import statements_beside

CLAIMS = "claims.parquet"
_NOTE = "judged"


def write_verdicts(claims: pd.DataFrame, statements: pd.DataFrame, out: Path, tables: Iterable[Path]) -> None:
    """Write [NAME.]claims.parquet with the note, and the statements beside it.

    Args:
        tables: the files SCALE/PAPER/FIGURE.parquet that were judged.
    """
    beside = statements_beside(out)
    noted = claims.copy(deep=False)
    noted.attrs = {_NOTE: {f"{path.parent.name}/{path.stem}": files.sha256(path) for path in tables}}
    write_table(noted, out)
    write_table(statements, beside)


def judged_tables(claims: Path) -> dict[str, str]:
    """The note: {figure: SHA-256 of its table}. DamagedFile if the file cannot be read or has none."""
    import pyarrow.parquet as pq

    read_table(claims)  # says what is wrong with a damaged one
    try:
        note = json.loads((pq.read_schema(claims).metadata or {})[b"PANDAS_ATTRS"])[_NOTE]
        return {str(figure): str(digest) for figure, digest in note.items()}
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        raise other_version_error(claims, "does not say which tables were judged") from None


def changed_tables(place: Path, judged: Mapping[str, str]) -> list[str]:
    """The figures whose table is gone, or is another than the one that was judged.

    Args:
        place: the folder SCALE of the tables.
    """
    paths = {figure: place / f"{figure}.parquet" for figure in judged}
    return [id for id, path in paths.items() if not path.is_file() or files.sha256(path) != judged[id]]


def verdict_files(place: Path, paper: str | None = None) -> list[Path]:
    """The files of verdicts that are there on one's own results of a scale: of a paper its own; of all papers that of the whole
    campaign, without one those of each paper."""
    whole = place / (f"{paper}.{CLAIMS}" if paper else CLAIMS)
    if whole.exists():
        return [whole]
    return [] if paper else sorted(place.glob(f"*.{CLAIMS}"))
