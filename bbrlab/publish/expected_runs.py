"""What a manifest says each finished run must be: by the manifest of results that ship, or by the files of anybody's folder of results."""

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
from bbrlab.results.digest import column_of, fields_of, summary_digest
from bbrlab.results.figures import Figure, Run, runs_of
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.schema import read_with
from bbrlab.results.shipped import (
    GET_ANEW,
    PLACE,
    RUNS,
    is_shipped,
    read_manifest,
    tampered,
)
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.output import MANIFEST, SAMPLES, SUMMARY, TABLES
from bbrlab.scenario.point import Point

NAMED = 5  # figures that a command names; more are all
Key = tuple[str, str, int]  # figure, point label, seed


@dataclass(frozen=True)
class Problem:
    """Something that is not as it should be.

    Attributes:
        file: in which file.
        what: it is.
        figure: whose runs this is about, if it is about those of one.
    """

    file: str
    what: str
    figure: str = ""


@dataclass(frozen=True)
class ExpectedRun:
    """What a run must be.

    Attributes:
        run: with the folder that it has, or had.
        summary_sha256: summary_digest(); None where there is no summary.
        tables: {name: SHA-256} of its Parquet files.
        kernel: its name and key; None where neither is known.
        rows: of its figure's table, by flow group; empty where there is no table.
        summary, manifest: its files; None in results that ship.
        problems: what is wrong before anything is run.
        fields: of its summary, over which its hash is: those of the version that made it.
    """

    run: Run
    summary_sha256: str | None
    tables: Mapping[str, str]
    kernel: tuple[str, str] | None
    rows: Sequence[Mapping[str, Any]] = ()
    summary: Any = None
    manifest: Any = None
    problems: tuple[Problem, ...] = ()
    fields: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Older:
    """Runs that this version cannot make again: of another kernel, or under other conditions.

    Attributes:
        runs: how many.
        figures: of which.
        words: how many they are and what they are of.
        remedy: what makes them again.
    """

    runs: int
    figures: frozenset[str]
    words: str
    remedy: str


@dataclass
class Results(ABC):
    """Results that may be verified.

    Attributes:
        folder, scale: which.
        figures: those that were asked for, by id.
        older: runs of them that are of another version, which cannot be verified with this one.
        keys: every run that this version can make again, sorted.
        problems: what is wrong with the whole.
        left_out: ids of figures that were asked for by name, or by their paper's, and of which there is no run.
        libraries: {library: version} that wrote the tables; empty where nobody says so.
    """

    folder: Path
    scale: str
    figures: Mapping[str, Figure]
    keys: list[Key] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    older: list[Older] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    libraries: Mapping[str, str] = field(default_factory=dict)

    @abstractmethod
    def expected(self, key: Key) -> ExpectedRun:
        """What a run must be."""

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        """Those that are there; one that cannot be read and is told to be wrong is left out."""
        found = {}
        for id in self.figures:
            path = self.folder / self.scale / f"{id}.parquet"
            if path.exists():
                try:
                    found[id] = read_with(path, [*PLACE, "group"])
                except DamagedFile:
                    if not any(one.file == f"{id}.parquet" for one in self.problems):
                        raise
        return found

    @cached_property
    def _points(self) -> dict[str, dict[str, Point]]:
        return {id: {p.label: p for p in figure.points} for id, figure in self.figures.items()}

    def _run(self, key: Key) -> Run | None:
        """A run of this checkout's scenarios; None if they have no such point."""
        figure, label, seed = key
        point = self._points[figure].get(label)
        return (
            None if point is None else Run(figure, point, seed, self.folder / "runs" / figure / label / f"seed-{seed}")
        )

    def _rows(self, key: Key) -> list[dict[str, Any]]:
        table = self._tables.get(key[0])
        if table is None:
            return []
        found = table[(table["point"] == key[1]) & (table["seed"] == key[2])]
        return [{str(k): v for k, v in row.items()} for row in found.to_dict("records")]


def _several(file: str, keys: set[Key], what: str) -> Problem:
    figure, label, seed = min(keys)
    are = "is" if len(keys) == 1 else "are"
    text = f"{number_of(len(keys), 'run')} of {figure} {are} {what}, such as {label} seed {seed}"
    return Problem(file, text, figure)


def shipped_by(folder: Path, scale: str, figures: Sequence[str]) -> str:
    """The commit that last brought the tables of some figures that ship, whose code made their runs; empty where Git does not know, as
    in a shallow clone."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return ""
    tables = [str((folder / scale / f"{id}.parquet").resolve()) for id in figures]
    return git("log", "-1", "--format=%H", "--", *tables) or ""


@dataclass
class Shipped(Results):
    """Results as they ship."""

    def __post_init__(self) -> None:
        manifest = read_manifest(self.folder, self.scale)
        self.problems += [
            Problem(name, what, name.removesuffix(".parquet") if "/" in name else "")
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
            what = next((one.what for one in self.problems if one.file == RUNS), None)
            if what:  # the manifest tells better why
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
                self.problems.append(_several(RUNS, gone, "not of a point of this checkout's scenarios"))
            if id in self._tables:
                places = self._tables[id][PLACE].itertuples(index=False, name=None)
                if missing := keys_of_figure - set(places):
                    self.problems.append(_several(f"{id}.parquet", missing, "not in it"))
        self.keys = sorted(key for key in self._hashes if self._run(key))

    def _set_aside_older(self) -> list[Older]:
        """Take the runs of other versions out of the hashes, and say what they are of."""
        of_today = {
            commit: version is None or (version.conditions == CONDITIONS[-1] and matches_this_recipe(version.kernel))
            for commit, version in self._versions.items()
        }
        groups: dict[tuple[str, str], list[Key]] = {}
        for key, row in self._hashes.items():
            version = self._versions.get(row["commit"])
            if version is not None and not of_today[row["commit"]]:
                groups.setdefault(version.origin, []).append(key)
        found = []
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
            found.append(Older(len(keys), frozenset(figures), words, f"{place}{verify}"))
        return found

    def expected(self, key: Key) -> ExpectedRun:
        """What the manifest says that a run must be."""
        row, run = self._hashes[key], self._run(key)
        assert run is not None
        hashes = {name: row[column_of(name)] for name in TABLES}
        tables = {name: digest for name, digest in hashes.items() if isinstance(digest, str)}
        version = self._versions.get(row["commit"])
        kernel = (version.kernel["name"], version.kernel["key"]) if version else None
        fields = frozenset(version.fields) if version else frozenset()
        return ExpectedRun(run, row["summary_sha256"], tables, kernel, self._rows(key), fields=fields)


@dataclass
class Folder(Results):
    """A folder of results as campaigns leave it."""

    def __post_init__(self) -> None:
        found: set[Key] = set()
        for id, figure in self.figures.items():
            if id in self._tables:  # a run that its table has must be there
                table = self._tables[id][PLACE].drop_duplicates()
                found |= {(id, str(p), int(s)) for p, s in zip(table["point"], table["seed"], strict=True)}
            if changed := {key for key in found if key[0] == id and self._run(key) is None}:
                self.problems.append(_several(f"{id}.parquet", changed, "not of a point of this checkout's scenarios"))
            for run in runs_of(figure, results=self.folder):
                seeds = sorted(run.folder.parent.glob("seed-*")) if run.seed == 1 else []
                found |= {(id, run.point.label, int(s.name[5:])) for s in seeds if s.name[5:].isdigit()}
        self.keys = sorted(key for key in found if self._run(key))
        self.problems += self._lacking()

    def _lacking(self) -> list[Problem]:
        """The files that runs lack, of all runs, by figure and file: only some are run again, and looked at closely."""
        gone: dict[tuple[str, str], set[Key]] = {}
        for key in self.keys:
            run = self._run(key)
            for name in (SUMMARY, MANIFEST, SAMPLES):
                if run and not (run.folder / name).exists():
                    gone.setdefault((key[0], name), set()).add(key)
        return [_several(name, runs, "without it") for (_, name), runs in gone.items()]

    def expected(self, key: Key) -> ExpectedRun:
        """What a run's own files say, and what of them is missing, cut off, or of another run."""
        run = self._run(key)
        assert run is not None
        folder = RunFolder(run.folder)
        problems = tuple(Problem(one.path.name, one.reason) for one in folder.problems())
        whole = {one.file for one in problems}
        summary = folder.raw_summary if SUMMARY not in whole else None
        manifest = folder.raw_manifest if MANIFEST not in whole else None
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
    """The fields of a summary.json; none of a file that is none."""
    try:
        return fields_of(summary)
    except (KeyError, TypeError, AttributeError):
        return frozenset()


def _kernel_of(summary: Any) -> tuple[str, str] | None:
    """The name and the key of the kernel that a summary.json names; None if it names none."""
    kernel = summary.get("kernel") if isinstance(summary, dict) else None
    name, key = (kernel.get("name"), kernel.get("key")) if isinstance(kernel, dict) else (None, None)
    return (name, key) if isinstance(name, str) and isinstance(key, str) else None


def _is_of(id: str, name: str) -> bool:
    """Whether a figure is one that is meant by a name: its own, in full or without the paper's, or its paper's."""
    return name in (id, *id.split("/"))


def results_at(folder: Path, scale: str, figures: Sequence[Figure], names: Sequence[str] = ()) -> Results:
    """What there is to verify in a folder.

    Args:
        figures: that were asked for.
        names: of papers and figures by which they were; none: all that there are.

    Raises:
        UserError: if it has no run of these figures, or none of one that was asked for by name.
    """
    kind = Shipped if is_shipped(folder, scale) else Folder
    found = kind(folder, scale, {f.id: f for f in figures})
    there = {figure for figure, _, _ in found.keys}
    older = {id: one for one in found.older for id in one.figures}
    changed = {one.figure for one in found.problems}
    for name in names:
        if not any(_is_of(id, name) for id in there):
            if of := next((one for id, one in older.items() if _is_of(id, name)), None):
                raise UserError(
                    f"{folder}: {name} cannot be verified at scale {scale} with this version: {of.words}; {of.remedy}"
                )
            raise UserError(
                f"{folder}: has no run of {name} at scale {scale} with the points that its scenarios have now; leave it out"
            )
    if not there and found.older:
        text = "; ".join(f"{one.words}; {one.remedy}" for one in found.older)
        raise UserError(f"{folder}: nothing of scale {scale} can be verified with this version: {text}")
    if not there:
        raise UserError(f"{folder}: has no run of these figures at scale {scale}")
    found.left_out = [f.id for f in figures if f.id not in there | changed | older.keys()] if names else []
    return found
