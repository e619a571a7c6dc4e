"""The expected result of each finished run: by the manifest of shipped results, or by the files in a campaign's folder of results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.base.git import git
from bbrlab.base.words import number_of
from bbrlab.kernel.built import matches_this_recipe
from bbrlab.results.curves import SEED, figure_of, file_of, read_curves
from bbrlab.results.digest import column_of, fields_of, summary_digest
from bbrlab.results.figures import Figure, Run, runs_of
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.schema import read_with
from bbrlab.results.shipped import GET_ANEW, PLACE, RUNS, is_shipped, read_manifest, tampered
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.output import MANIFEST, SAMPLES, SUMMARY, TABLES
from bbrlab.scenario.point import Point

NAMED = 5  # figures in a command, at most; with more it says "all"
Key = tuple[str, str, int]  # figure, point label, seed


@dataclass(frozen=True)
class Problem:
    """Something wrong in results."""

    file: str
    what: str
    figure: str = ""


@dataclass(frozen=True)
class ExpectedRun:
    """The expected result of a run."""

    run: Run  # with its folder, which shipped results do not have
    summary_sha256: str | None  # summary_digest(); None without a summary
    tables: Mapping[str, str]  # {name: SHA-256} of its Parquet files
    kernel: tuple[str, str] | None  # its name and key; None if unknown
    rows: Sequence[Mapping[str, Any]] = ()  # of its figure's table, by flow group; empty without a table
    # summary, manifest: contents of its files; None for shipped results
    summary: Any = None
    manifest: Any = None
    problems: tuple[Problem, ...] = ()
    fields: frozenset[str] = frozenset()  # of its summary, which the hash covers: those of the version that made it
    curves: pd.DataFrame | None = None  # that ship of it (results.curves); None if none do


@dataclass(frozen=True)
class OlderRuns:
    """Runs that this version cannot repeat: of another kernel, or under other conditions."""

    runs: int
    figures: frozenset[str]
    words: str
    remedy: str


@dataclass
class ExpectedResults(ABC):
    """The expected results of some figures."""

    # folder, scale: of the results
    folder: Path
    scale: str
    figures: Mapping[str, Figure]
    keys: list[Key] = field(default_factory=list)  # every run that this version can repeat, sorted
    problems: list[Problem] = field(default_factory=list)
    # Their runs of other versions, which cannot be verified with this one
    older: list[OlderRuns] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # ids of requested figures without runs
    # {library: version} that wrote the tables; empty if unknown
    libraries: Mapping[str, str] = field(default_factory=dict)

    @abstractmethod
    def expected(self, key: Key) -> ExpectedRun:
        """The expected result of a run."""

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        """The existing tables, without unreadable ones that ``problems`` already lists."""
        tables = {}
        for id in self.figures:
            path = self.folder / self.scale / f"{id}.parquet"
            if path.exists():
                try:
                    tables[id] = read_with(path, [*PLACE, "group"])
                except DamagedFile:
                    if not any(problem.file == f"{id}.parquet" for problem in self.problems):
                        raise
        return tables

    @cached_property
    def _points(self) -> dict[str, dict[str, Point]]:
        return {id: {p.label: p for p in figure.points} for id, figure in self.figures.items()}

    def _run(self, key: Key) -> Run | None:
        """A run, by this checkout's scenarios; None if they have no such point."""
        figure, label, seed = key
        point = self._points[figure].get(label)
        return (
            None if point is None else Run(figure, point, seed, self.folder / "runs" / figure / label / f"seed-{seed}")
        )

    def _rows(self, key: Key) -> list[dict[str, Any]]:
        table = self._tables.get(key[0])
        if table is None:
            return []
        rows = table[(table["point"] == key[1]) & (table["seed"] == key[2])]
        return [{str(k): v for k, v in row.items()} for row in rows.to_dict("records")]


def _problem_of(file: str, keys: set[Key], what: str) -> Problem:
    figure, label, seed = min(keys)
    are = "is" if len(keys) == 1 else "are"
    text = f"{number_of(len(keys), 'run')} of {figure} {are} {what}, such as {label} seed {seed}"
    return Problem(file, text, figure)


def shipped_by(folder: Path, scale: str, figures: Sequence[str]) -> str:
    """The last commit of some shipped figures' tables, whose code can repeat their runs; empty if Git does not know it, as in a
    shallow clone."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return ""
    tables = [str((folder / scale / f"{id}.parquet").resolve()) for id in figures]
    return git("log", "-1", "--format=%H", "--", *tables) or ""


@dataclass
class ShippedResults(ExpectedResults):
    """Shipped results, by their manifest."""

    def __post_init__(self) -> None:
        manifest = read_manifest(self.folder, self.scale)
        self.problems += [
            Problem(name, what, figure_of(name) if "/" in name else "")
            for name, what in tampered(self.folder, self.scale)
        ]
        self.libraries = manifest.libraries
        self.figures = {id: f for id, f in self.figures.items() if id in manifest.figures}
        self._versions = {commit: manifest.version_of(commit) for commit in manifest.commits}
        try:
            table = read_with(
                self.folder / self.scale / RUNS, [*PLACE, "summary_sha256", "commit", *map(column_of, TABLES)]
            )
        except DamagedFile as error:
            what = next((problem.what for problem in self.problems if problem.file == RUNS), None)
            if what:  # a better reason, from the manifest
                raise DamagedFile(error.path, f"cannot be read: {what}", GET_ANEW) from None
            raise
        self._hashes = {
            (str(r["figure"]), str(r["point"]), int(r["seed"])): r
            for r in table.to_dict("records")
            if r["figure"] in self.figures
        }
        counts = pd.Series([k[0] for k in self._hashes], dtype=str).value_counts()
        for id in self.figures:
            if counts.get(id, 0) != manifest.figures[id]:
                self.problems.append(
                    Problem(
                        RUNS,
                        f"has {number_of(counts.get(id, 0), 'run')} of {id}, the manifest says {manifest.figures[id]}",
                    )
                )
        self.older = self._set_aside_older()
        for id in self.figures:
            keys_of_figure = {key for key in self._hashes if key[0] == id}
            gone = {key for key in keys_of_figure if self._run(key) is None}
            if gone:
                self.problems.append(_problem_of(RUNS, gone, "not of a point of this checkout's scenarios"))
            if id in self._tables:
                places = self._tables[id][PLACE].itertuples(index=False, name=None)
                if missing := keys_of_figure - set(places):
                    self.problems.append(_problem_of(f"{id}.parquet", missing, "not in it"))
        self.keys = sorted(key for key in self._hashes if self._run(key))

    def _set_aside_older(self) -> list[OlderRuns]:
        """Take the runs of other versions out of the hashes, and describe them."""
        of_today = {
            commit: version is None or (version.conditions == CONDITIONS[-1] and matches_this_recipe(version.kernel))
            for commit, version in self._versions.items()
        }
        groups: dict[tuple[str, str], list[Key]] = {}
        for key, row in self._hashes.items():
            version = self._versions.get(row["commit"])
            if version is not None and not of_today[row["commit"]]:
                groups.setdefault(version.origin, []).append(key)
        older_runs = []
        for (kernel, conditions), keys in groups.items():
            for key in keys:
                del self._hashes[key]
            figures = sorted({key[0] for key in keys})
            verify = f"bbrlab verify --scale {self.scale} {' '.join(figures) if len(figures) <= NAMED else 'all'}"
            commit = shipped_by(self.folder, self.scale, figures)
            runs = number_of(len(keys), "run")
            words = f"{runs} {'is' if len(keys) == 1 else 'are'} of another version of bbrlab (kernel {kernel}; {conditions})"
            place = (
                f"git checkout {commit[:10]} && " if commit else "get the version of bbrlab that shipped them; there: "
            )
            older_runs.append(OlderRuns(len(keys), frozenset(figures), words, f"{place}{verify}"))
        return older_runs

    def expected(self, key: Key) -> ExpectedRun:
        """The expected result of a run, by the manifest."""
        row, run = self._hashes[key], self._run(key)
        assert run is not None
        hashes = {name: row[column_of(name)] for name in TABLES}
        tables = {name: digest for name, digest in hashes.items() if isinstance(digest, str)}
        version = self._versions.get(row["commit"])
        kernel = (version.kernel["name"], version.kernel["key"]) if version else None
        fields = frozenset(version.fields) if version else frozenset()
        return ExpectedRun(
            run, row["summary_sha256"], tables, kernel, self._rows(key), fields=fields, curves=self._curves_of(run)
        )

    def _curves_of(self, run: Run) -> pd.DataFrame | None:
        path = self.folder / self.scale / file_of(run.figure)
        if run.seed != SEED or not path.exists():
            return None
        curves = read_curves(path)
        curves = curves[curves["point"] == run.point.label]
        return None if curves.empty else curves


@dataclass
class ResultsFolder(ExpectedResults):
    """A campaign's folder of results."""

    def __post_init__(self) -> None:
        keys: set[Key] = set()
        for id, figure in self.figures.items():
            if id in self._tables:  # a run that its table has must be there
                table = self._tables[id][PLACE].drop_duplicates()
                keys |= {(id, str(p), int(s)) for p, s in zip(table["point"], table["seed"], strict=True)}
            if changed := {key for key in keys if key[0] == id and self._run(key) is None}:
                self.problems.append(
                    _problem_of(f"{id}.parquet", changed, "not of a point of this checkout's scenarios")
                )
            for run in runs_of(figure, results=self.folder):
                seeds = sorted(run.folder.parent.glob("seed-*")) if run.seed == 1 else []
                keys |= {(id, run.point.label, int(s.name[5:])) for s in seeds if s.name[5:].isdigit()}
        self.keys = sorted(key for key in keys if self._run(key))
        self.problems += self._lacking()

    def _lacking(self) -> list[Problem]:
        """The missing files of all runs, by figure and file; only a sample of the runs is examined closely later."""
        gone: dict[tuple[str, str], set[Key]] = {}
        for key in self.keys:
            run = self._run(key)
            for name in (SUMMARY, MANIFEST, SAMPLES):
                if run and not (run.folder / name).exists():
                    gone.setdefault((key[0], name), set()).add(key)
        return [_problem_of(name, runs, "without it") for (_, name), runs in gone.items()]

    def expected(self, key: Key) -> ExpectedRun:
        """The expected result by a run's own files, with those that are missing, truncated, or of another run."""
        run = self._run(key)
        assert run is not None
        folder = RunFolder(run.folder)
        problems = tuple(Problem(problem.path.name, problem.reason) for problem in folder.problems())
        damaged = {problem.file for problem in problems}
        summary = folder.raw_summary if SUMMARY not in damaged else None
        manifest = folder.raw_manifest if MANIFEST not in damaged else None
        return ExpectedRun(
            run,
            summary_digest(summary) if isinstance(summary, dict) else None,
            folder.table_hashes | folder.not_cached,
            _kernel_of(summary),
            self._rows(key),
            summary,
            manifest,
            problems,
            _fields_of(summary),
        )


def _fields_of(summary: Any) -> frozenset[str]:
    """The fields of a summary.json; none if it is not a summary."""
    try:
        return fields_of(summary)
    except (KeyError, TypeError, AttributeError):
        return frozenset()


def _kernel_of(summary: Any) -> tuple[str, str] | None:
    """The name and key of the kernel in a summary.json; None if it has none."""
    kernel = summary.get("kernel") if isinstance(summary, dict) else None
    name, key = (kernel.get("name"), kernel.get("key")) if isinstance(kernel, dict) else (None, None)
    return (name, key) if isinstance(name, str) and isinstance(key, str) else None


def _is_of(id: str, name: str) -> bool:
    """Whether a name means a figure: its id, the part without the paper, or its paper."""
    return name in (id, *id.split("/"))


def results_at(folder: Path, scale: str, figures: Sequence[Figure], names: Sequence[str] = ()) -> ExpectedResults:
    """The results of a folder that can be verified. UserError if it has no run of these figures, or none of a named one.

    Args:
        names: of papers and figures, as the user gave them; empty for all.
    """
    kind = ShippedResults if is_shipped(folder, scale) else ResultsFolder
    results = kind(folder, scale, {f.id: f for f in figures})
    present = {figure for figure, _, _ in results.keys}
    older = {id: one for one in results.older for id in one.figures}
    changed = {one.figure for one in results.problems}
    for name in names:
        if not any(_is_of(id, name) for id in present):
            if of := next((one for id, one in older.items() if _is_of(id, name)), None):
                raise UserError(
                    f"{folder}: {name} cannot be verified at scale {scale} with this version: {of.words}; {of.remedy}"
                )
            raise UserError(
                f"{folder}: has no run of {name} at scale {scale} with the points that its scenarios have now; leave it out"
            )
    if not present and results.older:
        text = "; ".join(f"{one.words}; {one.remedy}" for one in results.older)
        raise UserError(f"{folder}: nothing of scale {scale} can be verified with this version: {text}")
    if not present:
        raise UserError(f"{folder}: has no run of these figures at scale {scale}")
    results.left_out = [f.id for f in figures if f.id not in present | changed | older.keys()] if names else []
    return results
