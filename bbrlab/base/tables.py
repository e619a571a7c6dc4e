"""Tables in files: Parquet, and the published ones of data/."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bbrlab.base import paths
from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.base.files import aside, open_plain, unreadable
from bbrlab.base.limits import available_bytes

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# What to do about a file below paths.SHIPPED: nothing here makes it anew.
SHIPS_ANEW = "get what ships with this version anew, or pack it: docs/howto/shipped_results.md"


COPIES = 2  # of a table that are in memory while it is read: PyArrow's and pandas'


def read_table(path: Path, columns: Sequence[str] | None = None, most_rows: float = math.inf) -> pd.DataFrame:
    """A Parquet file, or those of some columns that it has. DamagedFile if it is missing, cut off, no Parquet, or has more than ``most_rows`` rows;
    UserError if there is no memory for it: a file of some MB may have equal values without end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_plain(path) as file:  # PyArrow's own errors have no number
            parts = pq.read_metadata(file)
            rows = sum(parts.row_group(i).num_rows for i in range(parts.num_row_groups))
            if rows > most_rows:
                raise ValueError(f"{rows} rows; such a run has at most {most_rows:.0f}")
            read = [field for field in parts.schema.to_arrow_schema() if columns is None or field.name in columns]
            bits = sum(field.type.bit_width if pa.types.is_primitive(field.type) else 64 for field in read)
            needed, free = COPIES * rows * bits / 8, available_bytes()
            if needed > free:
                raise UserError(
                    f"{path}: has {rows} rows; to read {len(read)} columns of them takes about {needed / 1e9:.1f} GB of memory, and "
                    f"{free / 1e9:.1f} GB are free: end other programs, or read it on a machine that has more"
                )
            file.seek(0)
            content = pq.read_table(file, columns=None if columns is None else [field.name for field in read])
            table: pd.DataFrame = content.to_pandas(ignore_metadata=True)
            return table.astype(dict.fromkeys(_flags(content.schema), "boolean"))
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise unreadable(error, path) from None
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        anew = (
            SHIPS_ANEW if path.absolute().is_relative_to(paths.SHIPPED) else "delete it, and what made it makes it anew"
        )
        raise DamagedFile(path, f"is damaged ({reason})", anew) from None


def _flags(schema: pa.Schema) -> list[str]:
    """The columns of true, false or nothing, by the note that pandas leaves in a file: all that is read of it, since it may say anything."""
    try:
        columns = json.loads((schema.metadata or {})[b"pandas"])["columns"]
        noted = {column["name"] for column in columns if column["numpy_type"] == "boolean"}
    except (LookupError, TypeError, ValueError, RecursionError):
        return []
    return [field.name for field in schema if str(field.type) == "bool" and field.name in noted]


def unequal(one: pd.Series, two: pd.Series) -> pd.Series:
    """Which cells of two columns of one length differ; two without a value are equal."""
    return ~((one == two).fillna(False).astype(bool) | (one.isna() & two.isna()))


def published_table(name: str) -> pd.DataFrame:
    """Published values: data/PAPER/TABLE.csv. UserError if there is no such table."""
    import pandas as pd

    path = paths.DATA / f"{name}.csv"
    if not path.exists():
        raise UserError(f"{path}: there is no such published table")
    return pd.read_csv(path)


_NUMBERS = re.compile(r"-|[-+]?[0-9.]+( to [-+]?[0-9.]+)?")


def cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula; a number, or a range of numbers in words, is none."""
    return text if text[:1] not in ("=", "+", "-", "@", "\t", "\r") or _NUMBERS.fullmatch(text) else f"'{text}"


def csv_head(table: pd.DataFrame) -> bytes:
    """The first line that write_csv() gives a table of these columns."""
    return ",".join(cell(str(name)) for name in table.columns).encode() + b"\n"


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV, whole or not at all; what its texts say is text (cell())."""
    texts = table.select_dtypes(include=["object", "string", "category"]).columns
    plain = table.assign(**{c: table[c].map(lambda v: cell(v) if isinstance(v, str) else v) for c in texts})
    with aside(path) as temporary:
        plain.rename(columns=lambda name: cell(str(name))).to_csv(temporary, index=False)
