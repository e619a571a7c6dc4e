"""The result folder: there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.measure.summary import Summary

RESULTS = ("summary.json", "samples.parquet", "acks.parquet", "short_flows.parquet", "manifest.json", "guest.log",
           "played.yaml", "prompt.log")  # fmt: skip


def prepare_out(out: Path) -> None:
    """Make sure that results can be written to ``out``. UserError if not."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except FileExistsError:
        raise UserError(f"--out {out}: is a file; give a folder") from None
    except FileNotFoundError:  # as below /proc
        raise UserError(f"--out {out}: this folder cannot be made here; choose another place") from None
    except OSError as error:
        raise files.explain(error, out) from None
    for name in RESULTS:  # a whole old result must not stand beside half a new one
        (out / name).unlink(missing_ok=True)


def remove_results(out: Path) -> None:
    """Remove what a run has written to ``out`` so far."""
    for name in RESULTS:
        with contextlib.suppress(OSError):
            (out / name).unlink(missing_ok=True)


def write_results(
    out: Path,
    summary: Summary,
    tables: dict[str, Any],
    manifest: dict[str, Any],
    marks: dict[str, float],
    start: float,
) -> None:
    """Write everything but the log, summary.json last.

    Args:
        out: the result folder.
        summary: gets ``wall_s``.
        tables: {file name: Arrow table}.
        manifest: gets the tables' hashes and how long what took.
        marks: {part of the run: wall-clock seconds}.
        start: of the run, on the monotonic clock, in s.
    """
    import pyarrow.parquet as pq

    for name, table in tables.items():
        # Opened here: Arrow takes a name for UTF-8, whatever the locale.
        with files.aside(out / name) as temporary, open(temporary, "wb") as file:
            pq.write_table(table, file, compression="zstd")
    manifest["outputs_sha256"] = {name: files.sha256(out / name) for name in tables}
    wall_s = time.monotonic() - start
    summary["wall_s"] = round(wall_s, 2)
    manifest["wall"] = {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **{f"{k}_s": round(v, 2) for k, v in marks.items()},
        "total_s": round(wall_s, 2),
    }
    files.write_json(out / "manifest.json", manifest)
    files.write_json(out / "summary.json", summary)  # last: its presence says that the result is whole
