"""RunFolder: the only reader of a finished run's folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from bbrlab.base import files, paths
from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.base.problems import problem_of
from bbrlab.measure import metrics
from bbrlab.measure.summary import Summary
from bbrlab.results.nested import leaves
from bbrlab.results.schema import RUN_AGAIN, other_version_error
from bbrlab.run.output import MANIFEST, SUMMARY, TABLES
from bbrlab.scenario.messages import explain_error

LARGEST = 1e18  # of a plausible number
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class RunFolder:
    """A run's folder. Its files are read when needed, each once; an invalid file raises DamagedFile."""

    path: Path

    @cached_property
    def raw_summary(self) -> Any:
        """The content of summary.json, unchecked."""
        return self._content(SUMMARY)

    @cached_property
    def raw_manifest(self) -> Any:
        """The content of manifest.json, unchecked."""
        return self._content(MANIFEST)

    def file(self, name: str) -> Path | None:
        """The path of one of its files; None if it is missing."""
        return self.path / name if (self.path / name).is_file() else None

    def _content(self, name: str) -> Any:
        file = self.file(name)
        if file is None:
            raise DamagedFile(self.path / name, "is missing", RUN_AGAIN)
        return self.content(name, file)

    def content(self, name: str, path: Path) -> Any:
        """The content of one of its JSON files. UserError if it is not JSON."""
        return files.read_json(path, RUN_AGAIN)

    @cached_property
    def summary(self) -> Summary:
        """summary.json, checked (checked_summary())."""
        return checked_summary(self.raw_summary, self.path / SUMMARY)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """manifest.json."""
        if not isinstance(self.raw_manifest, dict):
            raise other_version_error(self.path / MANIFEST, "holds no keys with values", RUN_AGAIN)
        return self.raw_manifest

    def manifest_as(self, model: type[Model]) -> Model:
        """The fields of manifest.json that a model names. DamagedFile naming the first field that is missing or invalid."""
        try:
            return model.model_validate(self.manifest)
        except ValidationError as error:
            path = self.path / MANIFEST
            first = min(
                error.errors(), key=lambda one: (one["type"] != "missing", -len(one["loc"]))
            )  # the farthest inside
            if first["type"] == "missing":
                place = ".".join(part for part in first["loc"] if isinstance(part, str))
                raise other_version_error(path, f"has no '{place}'", RUN_AGAIN) from None
            problem = explain_error("", first, self.manifest).removeprefix(": ")
            raise other_version_error(path, problem, RUN_AGAIN) from None

    @cached_property
    def table_hashes(self) -> dict[str, str]:
        """{name: SHA-256} of the existing tables, by which runs are compared."""
        return {name: files.sha256(file) for name in TABLES if (file := self.file(name))}

    @cached_property
    def stated_hashes(self) -> dict[str, Any]:
        """{name: SHA-256} of tables, by manifest.json; empty if it has none or is invalid."""
        try:
            stated = self.manifest.get("outputs_sha256")
        except UserError:
            return {}
        return stated if isinstance(stated, dict) else {}

    @property
    def not_cached(self) -> dict[str, str]:
        """{name: SHA-256} of optional tables that are missing because the cache between workflows keeps only three files of a run
        (rules/experiments.smk)."""
        if not (self.path / SUMMARY).is_symlink():
            return {}
        return {
            name: stated
            for name in TABLES[1:]
            if name not in self.table_hashes and isinstance(stated := self.stated_hashes.get(name), str)
        }

    def problems(self) -> list[DamagedFile]:
        """Its files that are missing, truncated, or do not have the hash in manifest.json."""
        problems = []
        for name in (SUMMARY, MANIFEST):
            try:
                _ = self.raw_summary if name == SUMMARY else self.raw_manifest
            except DamagedFile as error:
                problems.append(error)
        hashes, stated = self.table_hashes, self.stated_hashes
        for name in TABLES if stated else TABLES[:1]:
            path, digest = self.path / name, stated.get(name)
            if name not in hashes:
                if (name in stated or not stated) and name not in self.not_cached:
                    problems.append(DamagedFile(path, "is missing"))
            elif not isinstance(digest, str):
                if name in stated:
                    problems.append(
                        DamagedFile(self.path / MANIFEST, f"outputs_sha256.{name}: is {digest!r}, and no hash")
                    )
            elif hashes[name] != digest:
                problems.append(DamagedFile(path, f"has hash {hashes[name][:12]}, its manifest says {digest[:12]}"))
        return problems


def find_run(run: str) -> Path:
    """The folder of a run: a path, or PAPER/FIGURE/POINT/seed-N of the results folder. UserError if there is none."""
    name = run.removeprefix("runs/")
    places = [Path(run).absolute(), paths.results_folder() / "runs" / name]
    for folder in places:
        if (folder / SUMMARY).exists():
            return folder
    hint = "give the folder of a run, or PAPER/FIGURE/POINT/seed-N of the results folder"
    near = ("*/summary.json", "*/*/summary.json", "*/*/*/summary.json")  # no farther: a folder may be anybody's home
    for folder in [p for p in places if p.is_dir()][:1]:
        if below := [path for pattern in near for path in sorted(folder.glob(pattern))]:
            hint = f"did you mean {below[0].parent}?"
    raise UserError(f"{run}: there is no finished run (no summary.json); {hint}")


class _File(BaseModel):
    """A summary.json: fields of Summary have their types; others, such as metrics, are allowed."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
    content: Summary


def checked_summary(content: Any, path: Path) -> Summary:
    """The content of a summary.json, checked: every field that is read exists and has its type. DamagedFile with the first field
    that is missing (then another version wrote it) or invalid."""
    try:
        _File(content=content)
    except ValidationError as error:
        first = min(error.errors(), key=lambda one: one["type"] != "missing")
        place = ".".join(str(part) for part in first["loc"][1:])
        if first["type"] == "missing":
            raise _without(path, place) from None
        raise _changed(path, place, problem_of(first)) from None
    summary: Summary = content  # not pydantic's copy, in which 10 is 10.0, with another hash
    entries: list[tuple[str, Iterable[metrics.Metric], Any]] = [
        *((f"groups.{i}.", metrics.GROUP.values(), group) for i, group in enumerate(summary["groups"])),
        ("", metrics.RUN.values(), summary),
    ]
    for place, described, entry in entries:
        for metric in described:
            try:
                value = metric.of_run(entry) if entry is summary else metric.of_group(entry)
            except KeyError as error:
                raise _without(path, error.args[0]) from None
            except TypeError:
                raise _without(path, metric.name) from None
            if not isinstance(value, int | float | None) or isinstance(value, bool):
                raise _changed(path, f"{place}{metric.name}", "must be a number or null")
    for place, value in leaves(content):
        if isinstance(value, int | float) and not abs(value) <= LARGEST:
            raise _changed(path, place, "must be a number that can be")
    return summary


def _changed(path: Path, place: str, problem: str) -> DamagedFile:
    return DamagedFile(path, f"{place or 'its content'}: {problem}", f"was it changed? {RUN_AGAIN}")


def _without(path: Path, field: str) -> DamagedFile:
    return other_version_error(path, f"has no '{field}'", RUN_AGAIN)
