"""Results that ship with the package: shipped/SCALE/, of a finished campaign (docs/howto/shipped_results.md).

The files lie as in a folder of results, so that pages and comparisons read either. Of the runs there are rows of the figure
tables, self-checks and hashes; their samples, which are a thousand times larger, are not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from bbrlab.base import files, paths
from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.base.strict import Strict, first_problem
from bbrlab.base.words import in_short, number_of
from bbrlab.kernel.built import KernelEntry
from bbrlab.results.config import command_for, load_config
from bbrlab.results.figures import figures_at
from bbrlab.results.schema import other_version_error, read_with

MANIFEST, RUNS, CHECKS, STATEMENTS = "manifest.json", "runs.parquet", "checks.parquet", "statements.parquet"
FORMAT = 3  # of the files; another number where an older bbrlab could not read them
PLACE = ["figure", "point", "seed"]  # of a run
FILE = r"^(?:[A-Za-z0-9_-]+/)?[A-Za-z0-9_][A-Za-z0-9_.-]*\.parquet$"  # below the folder, and nowhere else
GET_ANEW = "get these results anew, or look at them with the version that packed them"


class Failed(Strict):
    """A run that failed self-checks, and why it is shipped all the same."""

    figure: str
    point: str
    seed: int
    checks: list[str]
    why: str


class Version(Strict):
    """A version of bbrlab that made some of the runs.

    Attributes:
        commits: {commit of the runs: when it was made, as 2026-11-27T04:39:48Z, empty if that is not known}; "unknown" without git, with
            "+" behind it where files had been changed.
        fields: what of their summary.json its hash is over, as workflow.digest.fields_of() names it: all that the version had.
        guest_code_sha256: {file of mininet/: hash}.
        kernel: that of the runs.
        packages: Debian packages that the guest uses, with their versions.
        conditions: what all its runs have and their scenarios do not say, in words (run.conditions).
    """

    commits: dict[str, str]
    fields: list[str]
    guest_code_sha256: dict[str, str]
    kernel: KernelEntry
    packages: list[str]
    conditions: str

    @property
    def origin(self) -> tuple[str, str]:
        """What results differ by: the key of the kernel, and the conditions."""
        return self.kernel["key"], self.conditions

    def words(self, commits: Iterable[str]) -> str:
        """Itself in words, with these of its commits: kernel, when it was, what all its runs have."""
        listed = [
            f"{_short(name)} ({day[:10]})" if day else _short(name)
            for name, day in self.commits.items()
            if name in commits
        ]
        return f"kernel {self.kernel['key']}, {'commit' if len(listed) == 1 else 'commits'} {', '.join(listed)}: {self.conditions}"


class Manifest(Strict):
    """manifest.json of shipped results.

    Attributes:
        figures: {figure: its runs}.
        commits: {commit: runs made with it}.
        versions: of bbrlab that made the runs; each commit is in one.
        libraries: {library that wrote the Parquet files: version}.
        failed: the runs that failed self-checks.
        files: {file beside this one: SHA-256}.
        sha256: of all of this but itself (content_hash()).
    """

    format: int
    scale: str
    figures: dict[str, int]
    commits: dict[str, int]
    versions: list[Version]
    libraries: dict[str, str]
    failed: list[Failed]
    files: dict[Annotated[str, Field(pattern=FILE)], str]
    sha256: str

    @property
    def runs(self) -> int:
        """How many."""
        return sum(self.figures.values())

    @property
    def newest(self) -> Version:
        """The version with the newest commit."""
        return max(self.versions, key=lambda version: max(version.commits.values()))

    @property
    def kernels(self) -> dict[str, str]:
        """{key of a kernel: its name and release}, that of the newest version first."""
        ordered = [self.newest, *self.versions]
        return {one.kernel["key"]: f"{one.kernel['name']} ({one.kernel['release']})" for one in ordered}

    def version_of(self, commit: str) -> Version | None:
        """The version that a commit is of."""
        return next((version for version in self.versions if commit in version.commits), None)


def content_hash(content: dict[str, Any]) -> str:
    """The hash of a manifest's content, its own hash apart."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def is_shipped(folder: Path, scale: str) -> bool:
    """Whether a folder has results as they ship, and not as a campaign leaves them.

    Raises:
        UserError: if one of the two files that make the difference is missing.
    """
    there = {name: (folder / scale / name).exists() for name in (MANIFEST, RUNS)}
    if any(there.values()) and not all(there.values()):
        gone = next(name for name, is_there in there.items() if not is_there)
        raise UserError(f"{folder / scale / gone}: is missing; get these results anew")
    return all(there.values())


def read_manifest(folder: Path, scale: str) -> Manifest:
    """The manifest of shipped results. UserError if there is none, or it is not one."""
    path = folder / scale / MANIFEST
    content = files.read_json(path, "get it anew")
    if not isinstance(content, dict):
        what = "a list" if isinstance(content, list) else "a single value"
        raise UserError(
            f"{path}: is {what}, must be keys with values; it was edited, or made by another version: get it anew"
        )
    if content.get("format", FORMAT) != FORMAT:
        raise other_version_error(
            path, f"is of format {content['format']}, this bbrlab reads format {FORMAT}", GET_ANEW
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        raise DamagedFile(
            path, first_problem(error), "it was edited, or made by another version: get it anew"
        ) from None


def tampered(folder: Path, scale: str) -> list[tuple[str, str]]:
    """What of shipped results is not as the manifest says: (file, what is wrong with it).

    A manifest that was edited is found by its own hash; who renews that as well is found by git; by verify, too, if a run's
    hash or its rows in a figure's table were changed (points and verdicts are made of these by rejudge).
    """
    manifest = read_manifest(folder, scale)
    found = []
    if content_hash(files.read_json(folder / scale / MANIFEST)) != manifest.sha256:
        found.append((MANIFEST, "was edited: its content has not the hash that it says"))
    for name, digest in manifest.files.items():
        path = folder / scale / name
        if path.is_symlink() or path.parent.is_symlink():
            found.append((name, "is a link, which may lead anywhere"))
        elif not path.is_file():
            found.append((name, "is missing"))
        elif (now := files.sha256(path)) != digest:
            found.append((name, f"has hash {now[:12]}, the manifest says {digest[:12]}"))
    known = {*manifest.files, MANIFEST}
    extra = [p.relative_to(folder / scale) for p in sorted((folder / scale).rglob("*")) if p.is_file()]
    return found + [(str(p), "is not in the manifest") for p in extra if str(p) not in known]


def shipped_scale(wanted: str, folder: Path | None = None, paper: str | None = None) -> str | None:
    """Which scale of what ships to show for one that is wanted; None if nothing ships.

    That one, else the largest that ships with all its figures, else the largest.

    Args:
        paper: of a paper: scales at which a figure of it ships.
    """
    folder = folder or paths.SHIPPED
    figures = {scale: shipped_figures(folder, scale) for scale in load_config().scales if is_shipped(folder, scale)}
    there = [scale for scale, ids in figures.items() if paper is None or any(id.split("/")[0] == paper for id in ids)]
    if wanted in there:
        return wanted
    whole = [scale for scale in there if not left_out(folder, scale)]
    return (whole or there)[-1] if there else None


def shipped_figures(folder: Path, scale: str) -> set[str]:
    """Ids of the figures that ship at a scale."""
    return set(read_manifest(folder, scale).figures)


def left_out(folder: Path, scale: str) -> list[str]:
    """Figures of a scale that do not ship with it, in their order."""
    there = shipped_figures(folder, scale)
    return [figure.id for figure in figures_at(scale, []) if figure.id not in there]


def larger_scales(folder: Path, scale: str, paper: str | None = None) -> list[str]:
    """The scales that ship, with a figure of the paper if one is given, and are larger than one, the largest last."""
    scales = list(load_config().scales)
    return [
        other
        for other in scales[scales.index(scale) + 1 :]
        if is_shipped(folder, other)
        and (paper is None or any(id.split("/")[0] == paper for id in shipped_figures(folder, other)))
    ]


@dataclass(frozen=True)
class Shown:
    """What a page shows: one's own results, or those that ship.

    Attributes:
        results: the folder, laid out as results/.
        scale: of what is shown there.
        shipped: whether it is what ships.
        words: that in a sentence (Markdown).
        larger: larger scales of which some figures ship, too; they are shown as they are there.
        own: of what ships: what there is of one's own, and what computes it (Markdown).
    """

    results: Path
    scale: str
    shipped: bool
    words: str
    larger: tuple[str, ...] = ()
    own: str = ""

    @property
    def scales(self) -> tuple[str, ...]:
        """All scales that are shown, the smallest first."""
        return (self.scale, *self.larger)


def shown(
    scale: str,
    paper: str | None = None,
    results: Path | None = None,
    shipped: Path | None = None,
    needs: str | None = None,
) -> Shown:
    """What a page shows: one's own results of a scale if there are any, else what ships.

    Args:
        paper: of a paper's page: whether there are any of it.
        results, shipped: default: the results folder and what ships.
        needs: a file without which one's own are not shown; default: of a paper its verdicts, which need all its figures; else the
            table of any figure.

    Returns:
        With neither, one's own, of which there are none: who reads them says so.
    """
    own, folder = results or paths.results_folder(), shipped or paths.SHIPPED
    ids = [figure.id for figure in figures_at(scale, []) if paper in (None, figure.id.split("/")[0])]
    there = [id for id in ids if (own / scale / f"{id}.parquet").exists()]
    needs = needs or (f"{paper}.claims.parquet" if paper else None)
    has_own = (own / scale / needs).exists() if needs else bool(there)
    instead = None if has_own else shipped_scale(scale, folder, paper)
    if instead is None:
        return Shown(own, scale, False, f"Your own results (`{_name(own)}/{scale}`).")
    manifest = read_manifest(folder, instead)
    figures = [id for id in manifest.figures if paper in (None, id.split("/")[0])]
    runs = sum(manifest.figures[id] for id in figures)
    own_command = (
        f"Of your own there {'is' if len(there) == 1 else 'are'} {in_short(there)} at scale {scale}, not yet judged with all figures"
        f"{' of the paper' if paper else ''}"
        if there
        else f"Of your own there are none at scale {scale}"
    ) + f"; `{command_for(paper or 'all', scale)}` computes them."
    return Shown(
        folder,
        instead,
        True,
        f"**Shipped results**, scale {instead}: {number_of(runs, 'run')} of commit {' and '.join(commits_of(folder, instead, figures))}, "
        f"kernel {' and '.join(f'{name}, {key}' for key, name in manifest.kernels.items())}.{missing_sentence(folder, instead, paper)}"
        f"{older_sentence(folder, instead, figures)} {own_command} The runs' samples do "
        f"not ship: what is drawn from them is left out here. `bbrlab verify --scale {instead} {paper or 'all'}` runs a part again and "
        "compares.",
        tuple(larger_scales(folder, instead, paper)),
        own_command,
    )


def missing_sentence(folder: Path, scale: str, paper: str | None = None, among: str = "them") -> str:
    """Which figures of a scale do not ship, as a sentence behind a space; "" where all do.

    Args:
        paper: of a paper; default: of all.
        among: what they are not among.
    """
    missing = [id for id in left_out(folder, scale) if paper in (None, id.split("/")[0])]
    return f" Not among {among}: {in_short(missing)}." if missing else ""


def commits_of(folder: Path, scale: str, figures: Iterable[str]) -> list[str]:
    """The commits, in short, that made the runs of some figures, as the manifest has them in order."""
    table = read_with(folder / scale / RUNS, ["figure", "commit"], ["figure", "commit"])
    made = set(table.loc[table["figure"].isin(list(figures)), "commit"])
    return [_short(commit) for commit in read_manifest(folder, scale).commits if commit in made]


def older_versions(folder: Path, scale: str, figures: Iterable[str] | None = None) -> dict[str, list[str]]:
    """The figures whose runs are not of the newest version that ships at a scale: {of which one, in words: their ids}.

    Args:
        figures: of which; default: all that ship.
    """
    manifest = read_manifest(folder, scale)
    newest = manifest.newest.origin
    table = read_with(folder / scale / RUNS, ["figure", "commit"], ["figure", "commit"])
    if figures is not None:
        table = table[table["figure"].isin(list(figures))]
    groups: dict[tuple[str, str], tuple[Version, list[str], list[str]]] = {}
    for figure, commit in table.drop_duplicates().itertuples(index=False):
        version = manifest.version_of(commit)
        if version is None or version.origin == newest:
            continue
        _, commits, ids = groups.setdefault(version.origin, (version, [], []))
        commits.append(commit)
        ids.append(figure)
    merged = {}
    for origin, (first, commits, ids) in groups.items():
        times = {c: t for one in manifest.versions if one.origin == origin for c, t in one.commits.items()}
        version = first.model_copy(update={"commits": dict(sorted(times.items(), key=lambda item: item[1]))})
        merged[version.words(commits)] = list(dict.fromkeys(ids))
    return merged


def older_sentence(folder: Path, scale: str, figures: Iterable[str] | None = None) -> str:
    """The same as sentences behind a space; "" where all runs are of the newest version."""
    older = older_versions(folder, scale, figures)
    return "".join(f" Of an older version of bbrlab ({words}): {in_short(ids)}." for words, ids in older.items())


def _short(commit: str) -> str:
    return commit[:10] + ("+" if commit.endswith("+") else "")


def _name(folder: Path) -> str:
    return str(folder.relative_to(paths.ROOT)) if folder.is_relative_to(paths.ROOT) else str(folder)
