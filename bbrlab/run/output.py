"""The result folder: locked for one run at a time, with a whole result or none."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbrlab.base import files, outputs
from bbrlab.base.errors import UserError
from bbrlab.base.scratch import scratch_folder, scratch_parent
from bbrlab.measure.summary import Summary

# The files of a finished run's folder (docs/reference/results.md).
SUMMARY, MANIFEST, LOG = "summary.json", "manifest.json", "guest.log"
SAMPLES, SHORT_FLOWS, ACKS = "samples.parquet", "short_flows.parquet", "acks.parquet"
PLAYED, PROMPT_LOG = "played.yaml", "prompt.log"
PROMPT_FILES = "prompt-files"  # a folder: what programs on nodes wrote in a play
CAPTURES = (BOTTLENECK, SENDERS, RECEIVERS) = ("bottleneck.pcapng", "senders.pcapng", "receivers.pcapng")
TABLES = (SAMPLES, SHORT_FLOWS)  # by which runs are compared; the second one only where there are short flows
RESULTS = (SUMMARY, *TABLES, ACKS, *CAPTURES, MANIFEST, LOG, PLAYED, PROMPT_LOG)
PAGE = "index.html"
# What `bbrlab show` and `bbrlab qlog` make of a run in its folder, with the mark of each: gone with the run that it is of.
MADE_OF_IT = {PAGE: outputs.PAGE, "flow-*.sqlog": outputs.QLOG, "flow-*.sqlog.gz": outputs.QLOG}
BEGUN = ".bbrlab-run"  # from begin() to the manifest.json: the folder has what a run leaves that does not end
BROKEN_OFF = "bbrlab stage mininet"  # the line by which a guest.log tells it that is older than BEGUN
MARKS = {"scenario", "seed", "plan_sha256"}  # what the manifest.json of every run has
PATIENCE_S = 30  # far more than a run takes to end when its campaign was killed
POLL_S = 0.1


@dataclass
class ResultFolder:
    """A folder that one run has locked."""

    path: Path
    begun: bool = False  # whether an earlier run's files are removed, so that all files are this run's

    def begin(self) -> None:
        """Remove an earlier run's files and what was made of them; called right before the guest starts, when only the guest can still fail.

        Not later: the guest's log grows in this folder and stays there if the run fails, and nobody must take an older result beside it
        for this run's.
        """
        had_a_run = bool(_there(self.path))  # else the page is of the study that is in this folder
        (self.path / BEGUN).touch()
        self.begun = True
        for name in RESULTS:
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.path / PROMPT_FILES, ignore_errors=True)
        for pattern, mark in MADE_OF_IT.items() if had_a_run else ():
            for file in self.path.glob(pattern):
                if outputs.is_own(file, mark):
                    file.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove this run's files; keep those of an earlier one."""
        for name in RESULTS if self.begun else ():
            with contextlib.suppress(OSError):
                (self.path / name).unlink(missing_ok=True)
        if self.begun:
            shutil.rmtree(self.path / PROMPT_FILES, ignore_errors=True)


@contextlib.contextmanager
def result_folder(out: Path, patience_s: float = 0) -> Iterator[ResultFolder]:
    """Lock the folder ``out`` for the block; it is made with its parents if needed, and removed again if the block fails and leaves
    them empty.

    UserError if results cannot be written there, another run has locked it, or its manifest.json is not of a run.

    Args:
        patience_s: real seconds to wait for another run that has locked it.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    prepare_out(out)
    handle = _lock(out, patience_s)
    result = ResultFolder(out)
    try:
        yield result
    except BaseException:
        with contextlib.suppress(OSError):  # there is none, or no room
            if result.begun and not _there(out):
                (out / BEGUN).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # there is something in it
            for folder in made:
                folder.rmdir()
        raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def workspace(result: ResultFolder) -> Iterator[Path]:
    """A scratch folder for a run. UserError where it, or the result, cannot be written; then this run's files are removed."""
    parent = scratch_parent()
    try:
        with scratch_folder() as scratch:
            yield scratch
    except OSError as error:
        result.discard()
        place = files.place_of(error, result.path, parent)
        raise files.explain(error, place, "or set TMPDIR to another folder" if place == parent else "") from None


def _lock(out: Path, patience_s: float) -> int:
    """Lock a folder and return its handle. The folder itself is locked, so that no lock file stays."""
    end_s = time.monotonic() + patience_s
    try:
        handle = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise files.explain(error, out) from None
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < end_s:
                time.sleep(POLL_S)
                continue
            os.close(handle)
            raise UserError(
                f"--out {out}: another run is writing to this folder; wait for it or end it, or choose another folder"
            ) from None
        except (
            OSError
        ):  # a network file system that cannot lock a folder; who runs a campaign has its own lock (campaign/lock.py)
            pass
        return handle


def prepare_out(out: Path) -> None:
    """Make the folder ``out``, and check that results can be written to it. UserError if not, or if a result would replace a file that
    is not of a run: in a folder with no run's manifest.json, and no sign of one that was broken off."""
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
    there = _there(out)
    if MANIFEST not in there:
        if there and not (out / BEGUN).is_file() and BROKEN_OFF not in (outputs.text_of(out / LOG) or "").splitlines():
            raise UserError(
                f"--out {out}: has {there[0]}, but no manifest.json of a run, and a result would replace it; choose another folder, or move it"
            )
        return
    try:
        manifest = json.loads(outputs.text_of(out / MANIFEST) or "")
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or not manifest.keys() >= MARKS:
        raise UserError(
            f"--out {out}: has a manifest.json that is not of a run, and that a result would replace; choose another folder, or move it"
        )


def _there(out: Path) -> list[str]:
    """What is there of a run's files."""
    return [name for name in (*RESULTS, PROMPT_FILES) if os.path.lexists(out / name)]


def check_apart(scenario: Path, out: Path) -> None:
    """UserError if a new result in ``out`` would replace the scenario file: the played.yaml of a play in that folder."""
    if scenario.name in RESULTS and scenario.absolute().parent.resolve() == out.resolve():
        raise UserError(
            f"--out {out}: has {scenario.name}, which is the scenario, and which a new result would replace; choose another folder"
        )


def write_results(
    out: Path,
    summary: Summary,
    tables: dict[str, Any],
    manifest: dict[str, Any],
    marks: dict[str, float],
    start: float,
    captures: Sequence[str] = (),
) -> None:
    """Write everything but the log, summary.json last.

    Args:
        summary: gets ``wall_s``.
        tables: {file name: Arrow table}.
        manifest: gets the tables' hashes and the durations.
        marks: {part of the run, or waiting: wall-clock seconds}.
        start: of the run, on the monotonic clock, in s, moved by the time that it waited for a core.
        captures: names of capture files that are written already.
    """
    import pyarrow.parquet as pq

    for name, table in tables.items():
        # Opened here: Arrow takes a name for UTF-8, whatever the locale.
        with files.aside(out / name) as temporary, open(temporary, "wb") as file:
            pq.write_table(table, file, compression="zstd")
    manifest["outputs_sha256"] = {name: files.sha256(out / name) for name in (*tables, *captures)}
    wall_s = time.monotonic() - start
    summary["wall_s"] = round(wall_s, 2)
    manifest["wall"] = {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **{f"{k}_s": round(v, 2) for k, v in marks.items()},
        "total_s": round(wall_s, 2),
    }
    files.write_json(out / MANIFEST, manifest)
    (out / BEGUN).unlink(missing_ok=True)
    files.write_json(out / SUMMARY, summary)  # last: its presence says that the result is whole
