"""Runs a sample of finished runs again and compares: of the results that ship, or of anybody's folder of results."""

from __future__ import annotations

import importlib.metadata
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.tables import read_table
from bbrlab.campaign.collect import run_rows
from bbrlab.campaign.figures import Figure, Run, runs_of, write_points
from bbrlab.campaign.versions import read_with
from bbrlab.kernel.built import Kernel, get_kernel
from bbrlab.measure import schema
from bbrlab.report.shipped import PLACE, RUNS, is_shipped, read_manifest, tampered
from bbrlab.run.guest_code import always_loaded
from bbrlab.scenario.point import Point
from bbrlab.workflow.digest import SUMMARY, TABLES, column_of, summary_digest, table_digests
from bbrlab.workflow.estimate import estimate_s

MANIFEST = "manifest.json"
# Of a run's manifest.json: what the same run writes again. The rest is of the machine, or has its own line (kernel).
REPEATABLE = ("scenario", "values", "fingerprint", "seed", "backend", "plan_sha256", "guest_code_sha256", "outputs_sha256", "report", "iperf3")  # fmt: skip
MISSING = object()  # a field that is not there
SHOWN = 3  # of the fields that differ, for each file
Key = tuple[str, str, int]  # figure, point label, seed


@dataclass(frozen=True)
class Wrong:
    """Something that is not as it should be: in which file, and what."""

    file: str
    what: str


@dataclass(frozen=True)
class Record:
    """What is said of a run.

    Attributes:
        run: with the folder that it has, or had.
        summary_sha256: summary_digest(); None where there is no summary.
        tables: {name: SHA-256} of its Parquet files.
        kernel: its name and key; None where neither is known.
        rows: of its figure's table, by flow group; empty where there is no table.
        summary, manifest: its files; None in results that ship.
        wrong: what is wrong before anything is run.
    """

    run: Run
    summary_sha256: str | None
    tables: Mapping[str, str]
    kernel: tuple[str, str] | None
    rows: Sequence[Mapping[str, Any]] = ()
    summary: Any = None
    manifest: Any = None
    wrong: tuple[Wrong, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of running it again.

    Attributes:
        wrong: every difference; none: equal in every hash.
        note: what is worth telling of a run that is equal.
        wall_s: that it took; None if it was not run.
    """

    record: Record
    wrong: list[Wrong]
    note: str = ""
    wall_s: float | None = None


@dataclass
class Results:
    """Results that may be verified.

    Attributes:
        folder, scale: which.
        figures: those that were asked for, by id.
        wrong: what is wrong with the whole.
        libraries: {library: version} that wrote the tables; empty where nobody says so.
    """

    folder: Path
    scale: str
    figures: Mapping[str, Figure]
    wrong: list[Wrong] = field(default_factory=list)
    libraries: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> list[Key]:
        """Every run, sorted."""
        raise NotImplementedError

    def record(self, key: Key) -> Record:
        """What is said of a run."""
        raise NotImplementedError

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        at = {id: self.folder / self.scale / f"{id}.parquet" for id in self.figures}
        return {id: read_with(path, [*PLACE, "group"]) for id, path in at.items() if path.exists()}

    @cached_property
    def _points(self) -> dict[str, dict[str, Point]]:
        return {id: {p.label: p for p in figure.points} for id, figure in self.figures.items()}

    def _run(self, key: Key) -> Run | None:
        """A run of this checkout's scenarios; None if they have no such point."""
        figure, label, seed = key
        point = next((p for p in self.figures[figure].points if p.label == label), None)
        return (
            None if point is None else Run(figure, point, seed, self.folder / "runs" / figure / label / f"seed-{seed}")
        )

    def _rows(self, key: Key) -> list[dict[str, Any]]:
        table = self._tables.get(key[0])
        if table is None:
            return []
        found = table[(table["point"] == key[1]) & (table["seed"] == key[2])]
        return [{str(k): v for k, v in row.items()} for row in found.to_dict("records")]


def _several(file: str, keys: set[Key], what: str) -> Wrong:
    figure, label, seed = min(keys)
    return Wrong(file, f"{len(keys)} runs of {figure} are {what}, such as {label} seed {seed}")


@dataclass
class Shipped(Results):
    """Results as they ship."""

    def __post_init__(self) -> None:
        manifest = read_manifest(self.folder, self.scale)
        self.wrong += [Wrong(name, what) for name, what in tampered(self.folder, self.scale)]
        self.libraries = manifest.libraries
        self.figures = {id: f for id, f in self.figures.items() if id in manifest.figures}
        self._kernel = (manifest.kernel["name"], manifest.kernel["key"])
        table = read_with(self.folder / self.scale / RUNS, [*PLACE, "summary_sha256", *map(column_of, TABLES)])
        self._hashes = {
            (str(r["figure"]), str(r["point"]), int(r["seed"])): r for r in table.to_dict("records") if r["figure"] in self.figures
        }  # fmt: skip
        counts = pd.Series([k[0] for k in self._hashes], dtype=str).value_counts()
        for id in self.figures:
            if counts.get(id, 0) != manifest.figures[id]:
                self.wrong.append(
                    Wrong(RUNS, f"has {counts.get(id, 0)} runs of {id}, the manifest says {manifest.figures[id]}")
                )
        for id in self.figures:
            mine = {key for key in self._hashes if key[0] == id}
            gone = {key for key in mine if self._run(key) is None}
            if gone:
                self.wrong.append(_several(RUNS, gone, "not of a point of this checkout's scenarios"))
            if id in self._tables:
                places = self._tables[id][PLACE].itertuples(index=False, name=None)
                if missing := mine - set(places):
                    self.wrong.append(_several(f"{id}.parquet", missing, "not in it"))

    @property
    def keys(self) -> list[Key]:
        """Every run that this checkout's scenarios have, too."""
        return sorted(key for key in self._hashes if self._run(key))

    def record(self, key: Key) -> Record:
        """What is said of a run."""
        row, run = self._hashes[key], self._run(key)
        assert run is not None
        hashes = {name: row[column_of(name)] for name in TABLES}
        tables = {name: digest for name, digest in hashes.items() if isinstance(digest, str)}
        return Record(run, row["summary_sha256"], tables, self._kernel, self._rows(key))


class Folder(Results):
    """A folder of results as campaigns leave it."""

    @cached_property
    def _keys(self) -> list[Key]:
        found: set[Key] = set()
        for id, figure in self.figures.items():
            if id in self._tables:  # a run that its table has must be there
                table = self._tables[id][PLACE].drop_duplicates()
                found |= {(id, str(p), int(s)) for p, s in zip(table["point"], table["seed"], strict=True)}
            for run in runs_of(figure, results=self.folder):
                seeds = sorted(run.folder.parent.glob("seed-*")) if run.seed == 1 else []
                found |= {(id, run.point.label, int(s.name[5:])) for s in seeds if s.name[5:].isdigit()}
        return sorted(key for key in found if self._run(key))

    @property
    def keys(self) -> list[Key]:
        """Every run that a figure's table has, or that is there without a table."""
        return self._keys

    def record(self, key: Key) -> Record:
        """What is said of a run, and what of its files is missing, cut off, or of another run."""
        run = self._run(key)
        assert run is not None
        wrong, content = [], {}
        for name in (SUMMARY, MANIFEST):
            try:
                content[name] = files.read_json(run.folder / name)
            except UserError as error:
                missing = not (run.folder / name).exists()
                wrong.append(Wrong(name, "is missing" if missing else str(error).split(": ", 1)[1]))
        summary, manifest = content.get(SUMMARY), content.get(MANIFEST)
        tables = table_digests(run.folder)
        said = manifest.get("outputs_sha256") if isinstance(manifest, dict) else None
        said = said if isinstance(said, dict) else {}
        for name, digest in said.items():
            if name not in tables and name in TABLES:
                wrong.append(Wrong(name, "is missing"))
            elif name in tables and tables[name] != digest:
                wrong.append(Wrong(name, f"has hash {tables[name][:12]}, its manifest says {digest[:12]}"))
        if not said and TABLES[0] not in tables:
            wrong.append(Wrong(TABLES[0], "is missing"))
        kernel = summary.get("kernel") if isinstance(summary, dict) else None
        return Record(
            run,
            summary_digest(summary) if isinstance(summary, dict) else None,
            tables,
            (kernel["name"], kernel["key"]) if isinstance(kernel, dict) and {"name", "key"} <= kernel.keys() else None,
            self._rows(key),
            summary,
            manifest,
            tuple(wrong),
        )


def results_at(folder: Path, scale: str, figures: Sequence[Figure]) -> Results:
    """What there is to verify in a folder. UserError if it has no run of these figures."""
    kind = Shipped if is_shipped(folder, scale) else Folder
    found = kind(folder, scale, {f.id: f for f in figures})
    if not found.keys:
        raise UserError(f"{folder}: has no run of these figures at scale {scale}")
    return found


def choose(keys: Sequence[Key], sample: int, seed: int) -> list[Key]:
    """So many of the runs by chance, each as likely as the others; the same ones for the same runs and seed."""
    return sorted(random.Random(seed).sample(list(keys), min(sample, len(keys))))  # noqa: S311 - chance, no secret


def kernels_here(records: Sequence[Record]) -> dict[str, Kernel]:
    """{name: kernel} of all that these runs were made with, as they are built here. UserError with the command that builds one."""
    return {name: get_kernel(name) for name in sorted({r.kernel[0] for r in records if r.kernel})}


def again(
    results: Results,
    records: Sequence[Record],
    cores: int,
    on_progress: Callable[[list[Outcome]], None] = lambda done: None,
) -> list[Outcome]:
    """Run each again and compare, so many at once.

    Args:
        on_progress: called with those that are over, each time that one is.

    Returns:
        In the order of the records.

    Raises:
        UserError: if a kernel is not built here.
    """
    kernels = kernels_here(records)
    done: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="bbrlab-verify-") as name, ThreadPoolExecutor(cores) as pool:
        scratch = Path(name)
        points = {id: write_points(results.figures[id], scratch) for id in {r.run.figure for r in records}}
        started: list[subprocess.Popen[bytes]] = []

        def one(number: int, record: Record) -> Outcome:
            return _again(
                record,
                kernels,
                points[record.run.figure][record.run.point.label],
                scratch / str(number),
                results,
                started,
            )

        # The longest first: no core waits for one that began last.
        order = sorted(range(len(records)), key=lambda i: -estimate_s(records[i].run.point))
        jobs: dict[Future[Outcome], int] = {pool.submit(one, i, records[i]): i for i in order}
        left = set(jobs)
        try:
            while left:
                over, left = wait(left, return_when=FIRST_COMPLETED)
                done += [job.result() for job in over]
                on_progress(done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in started:
                process.terminate()
            raise
    return [job.result() for job, _ in sorted(jobs.items(), key=lambda item: item[1])]


def _again(
    record: Record,
    kernels: Mapping[str, Kernel],
    point: Path,
    out: Path,
    results: Results,
    started: list[subprocess.Popen[bytes]],
) -> Outcome:
    if record.kernel is None or record.summary_sha256 is None:
        return Outcome(record, [*record.wrong] or [Wrong(SUMMARY, "does not say of which kernel it is")])
    name = record.kernel[0]
    argv = [
        sys.executable,
        "-m",
        "bbrlab.cli.main",
        "point",
        str(point),
        "--seed",
        str(record.run.seed),
        "--out",
        str(out),
        "--kernel",
        name,
    ]
    start = time.monotonic()
    process = subprocess.Popen(argv, cwd=paths.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    started.append(process)
    _, told = process.communicate()
    wall_s = time.monotonic() - start
    if process.returncode:
        last = (told.decode(errors="replace").strip().splitlines() or [f"status {process.returncode}"])[0]
        return Outcome(
            record, [*record.wrong, Wrong("", f"does not run here: {last.removeprefix('bbrlab: ')}")], wall_s=wall_s
        )
    wrong = [*record.wrong, *compare(record, out, results.libraries)]
    note, here = "", kernels[name]
    if here.key != record.kernel[1]:
        said = f"is of another kernel: {name} {record.kernel[1]} there, {name} {here.key} here ({here.source}, {here.compiler})"
        if wrong:
            wrong.insert(0, Wrong(SUMMARY, said))
        else:
            note = f"{said}; equal all the same"
    return Outcome(record, wrong, note, wall_s)


def compare(record: Record, folder: Path, libraries: Mapping[str, str]) -> list[Wrong]:
    """What a run that was made again, in ``folder``, has otherwise than its record."""
    wrong = []
    summary, now = files.read_json(folder / SUMMARY), table_digests(folder)
    if summary_digest(summary) != record.summary_sha256:
        fields = _unequal(record.summary, summary) if record.summary else _unequal_rows(record, summary, folder)
        told = "; ".join(fields[:SHOWN]) or "a field that the figure's table does not have"
        more = f"; and {len(fields) - SHOWN} more" if len(fields) > SHOWN else ""
        wrong.append(Wrong(SUMMARY, f"another result: {told}{more}"))
    elif record.rows and (fields := _unequal_rows(record, summary, folder)):
        wrong.append(Wrong(f"{record.run.figure}.parquet", f"is not of its run: {'; '.join(fields[:SHOWN])}"))
    for name in sorted(record.tables.keys() | now.keys()):
        old, new = record.tables.get(name), now.get(name)
        if old == new or any(w.file == name for w in record.wrong):
            continue
        if old is None or new is None:
            wrong.append(Wrong(name, "is missing" if old is None else "is not made any more"))
            continue
        told = _first_cell(record.run.folder / name, folder / name)
        mine = importlib.metadata.version("pyarrow")
        if libraries and libraries.get("pyarrow") != mine:
            told += f" (written by pyarrow {libraries.get('pyarrow')}, here by {mine}: the bytes may differ for that)"
        wrong.append(Wrong(name, f"has hash {old[:12]}, again {new[:12]}{told}"))
    if isinstance(record.manifest, dict):
        manifest = files.read_json(folder / MANIFEST)
        there, here = (_repeatable(m) for m in (record.manifest, manifest))
        if fields := _unequal(there, here):
            wrong.append(
                Wrong(
                    MANIFEST,
                    "; ".join(fields[:SHOWN]) + (f"; and {len(fields) - SHOWN} more" if len(fields) > SHOWN else ""),
                )
            )
        if record.summary and record.manifest.get("kernel") != record.summary.get("kernel"):
            wrong.append(Wrong(MANIFEST, "kernel: is another one than in summary.json"))
    return wrong


def _repeatable(manifest: dict[str, Any]) -> dict[str, Any]:
    """What of a run's manifest must be the same again; without files that no campaign's guest loads, which older versions named."""
    found = {key: manifest.get(key) for key in REPEATABLE}
    if isinstance(guest := found["guest_code_sha256"], dict):
        found["guest_code_sha256"] = always_loaded(guest)
    return found


def _unequal(there: Any, here: Any, place: str = "") -> list[str]:
    """Where two contents of JSON files differ, in words; not in what is no result (digest.py)."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = [k for k in dict.fromkeys([*there, *here]) if place or k not in ("wall_s", "kernel")]
        # A version that measures more, or less, has other fields; a field without a value is another thing.
        return [
            w
            for k in keys
            for w in _unequal(there.get(k, MISSING), here.get(k, MISSING), f"{place}.{k}" if place else str(k))
        ]
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        return [w for i, pair in enumerate(zip(there, here, strict=True)) for w in _unequal(*pair, f"{place}.{i}")]
    # As JSON has them: 10 and 10.0 are one number to Python, but other bytes.
    one, two = _words(there), _words(here)
    return [] if one == two else [f"{place} {_short(one)}, again {_short(two)}"]


def _words(value: Any) -> str:
    return "is not there" if value is MISSING else json.dumps(value, sort_keys=True)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _unequal_rows(record: Record, summary: Mapping[str, Any], folder: Path) -> list[str]:
    """Which metrics of a figure's table differ from the run that was made again."""
    found = []
    rows = run_rows(Run(record.run.figure, record.run.point, record.run.seed, folder))
    if len(rows) != len(record.rows):
        return [f"{len(record.rows)} flow groups, again {len(rows)}"]
    for there, here in zip(sorted(record.rows, key=lambda row: row["group"]), rows, strict=True):
        for name in ("ok", "count", *schema.METRICS):
            if name not in there or (name in schema.RUN and here["group"]):
                continue
            one, two = (np.nan if v is None else v for v in (there[name], here.get(name)))
            if not (one == two or (pd.isna(one) and pd.isna(two))):
                of = "" if name in schema.RUN else f" of group {here['group']}"
                found.append(f"{name}{of} {one!r}, again {two!r}")
    return found


def _first_cell(there: Path, here: Path) -> str:
    """The first cell of two tables that differs, in words; "" where one cannot be read, or all cells are equal."""
    try:
        one, two = read_table(there), read_table(here)
    except UserError:
        return ""
    if one.shape != two.shape:
        return f": {len(one)} rows of {one.shape[1]} columns, again {len(two)} of {two.shape[1]}"
    for column in one:
        differ = ~((one[column] == two[column]) | (one[column].isna() & two[column].isna())).to_numpy()
        if column not in two or differ.any():
            row = int(differ.argmax())
            return f": {column}, row {row}: {one[column].iloc[row]!r}, again {two[column].iloc[row]!r}"
    return ""
