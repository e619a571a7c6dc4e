"""Results that ship with the package: shipped/SCALE/, of a finished campaign (docs/howto/shipped_results.md).

The layout is that of a folder of results, so that pages and comparisons can read either. Runs ship as rows of the figures' tables,
self-checks and hashes, without their samples, which are a thousand times larger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from bbrlab.base import files, paths
from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.base.strict import Strict, first_problem
from bbrlab.base.words import in_short
from bbrlab.kernel.built import KernelEntry
from bbrlab.kernel.own import recipe_name
from bbrlab.kernel.specs import NoSuchKernel, find_spec
from bbrlab.results.config import command_in, load_config, name_in_checkout
from bbrlab.results.figures import figures_at
from bbrlab.results.judged import changed_tables, judged_tables, verdict_files
from bbrlab.results.schema import other_version_error, read_with
from bbrlab.run.conditions import CONDITIONS

MANIFEST, RUNS, CHECKS, STATEMENTS = "manifest.json", "runs.parquet", "checks.parquet", "statements.parquet"
FORMAT = 3  # of the files; increased when an older bbrlab could not read them
PLACE = ["figure", "point", "seed"]  # of a run
WITHOUT_NOISE = CONDITIONS[0]  # of all versions before hosts.noise; their BBRv2 and BBRv3 are of before, too
FILE = r"^(?:[A-Za-z0-9_-]+/)?[A-Za-z0-9_][A-Za-z0-9_.-]*\.parquet$"  # only below the folder
WITHOUT_SAMPLES = "Samples of runs do not ship; where a figure is drawn over time, the curves of one run of it do."
GET_ANEW = "get these results anew, or look at them with the version that packed them"


class Failed(Strict):
    """A run that failed self-checks, and why it is shipped nevertheless."""

    figure: str
    point: str
    seed: int
    checks: list[str]
    why: str


class Version(Strict):
    """A version of bbrlab that made some of the runs."""

    # {commit of the runs: its time, as 2026-11-27T04:39:48Z, empty if unknown}; "unknown" without git, with "+" if files had been
    # changed
    commits: dict[str, str]
    fields: list[str]  # of summary.json that its hash covers (results.digest.fields_of()): all that the version had
    guest_code_sha256: dict[str, str]  # {file of mininet/: hash}
    kernel: KernelEntry
    packages: list[str]  # Debian packages that the guest uses, with their versions
    conditions: str  # of all its runs, which their scenarios do not state, in words (run.conditions)

    @property
    def origin(self) -> tuple[str, str]:
        """What makes results differ: the key of the kernel, and the conditions."""
        return self.kernel["key"], self.conditions

    def words(self, commits: Iterable[str]) -> str:
        """The version in words: kernel, those of its commits that are given, conditions."""
        listed = [
            f"{_short(name)} ({day[:10]})" if day else _short(name)
            for name, day in self.commits.items()
            if name in commits
        ]
        return f"kernel {self.kernel['key']}, {'commit' if len(listed) == 1 else 'commits'} {', '.join(listed)}: {self.conditions}"


class Manifest(Strict):
    """manifest.json of shipped results."""

    format: int
    scale: str
    figures: dict[str, int]  # {figure: its number of runs}
    commits: dict[str, int]  # {commit: number of runs made with it}
    versions: list[Version]  # of bbrlab that made the runs; each commit is in one
    libraries: dict[str, str]  # {library that wrote the Parquet files: version}
    failed: list[Failed]
    files: dict[Annotated[str, Field(pattern=FILE)], str]  # {file beside this one: SHA-256}
    sha256: str  # of all of this but itself (content_hash())

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(self.figures.values())

    @property
    def newest(self) -> Version:
        """The version with the newest commit."""
        return max(self.versions, key=lambda version: max(version.commits.values()))

    @property
    def kernels(self) -> dict[str, str]:
        """{key of a kernel: its name and release}, the newest version's first."""
        ordered = [self.newest, *self.versions]
        return {one.kernel["key"]: f"{one.kernel['name']} ({one.kernel['release']})" for one in ordered}

    def version_of(self, commit: str) -> Version | None:
        """The version of a commit."""
        return next((version for version in self.versions if commit in version.commits), None)


def content_hash(content: dict[str, Any]) -> str:
    """The hash of a manifest's content without the hash itself."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def is_shipped(folder: Path, scale: str) -> bool:
    """Whether a folder has shipped results, not those of a campaign. UserError if it has only one of the two files that
    distinguish them."""
    present = {name: (folder / scale / name).exists() for name in (MANIFEST, RUNS)}
    if any(present.values()) and not all(present.values()):
        missing = next(name for name, is_there in present.items() if not is_there)
        raise UserError(f"{folder / scale / missing}: is missing; get these results anew")
    return all(present.values())


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
    """The files of shipped results that are not as the manifest says: (file, problem).

    An edited manifest does not have its own hash. If that was renewed, too, git shows it, and so does verify if a run's hash or rows
    were edited (rejudge makes points and verdicts from these).
    """
    manifest = read_manifest(folder, scale)
    problems = []
    if content_hash(files.read_json(folder / scale / MANIFEST)) != manifest.sha256:
        problems.append((MANIFEST, "was edited: its content has not the hash that it says"))
    for name, digest in manifest.files.items():
        path = folder / scale / name
        if path.is_symlink() or path.parent.is_symlink():
            problems.append((name, "is a link, which may lead anywhere"))
        elif not path.is_file():
            problems.append((name, "is missing"))
        elif (now := files.sha256(path)) != digest:
            problems.append((name, f"has hash {now[:12]}, the manifest says {digest[:12]}"))
    listed = {*manifest.files, MANIFEST}
    extra = [p.relative_to(folder / scale) for p in sorted((folder / scale).rglob("*")) if p.is_file()]
    return problems + [(str(p), "is not in the manifest") for p in extra if str(p) not in listed]


def shipped_scales(folder: Path, paper: str | None = None) -> list[str]:
    """The scales at which results ship, the smallest first; with a paper, only those with a figure of it."""
    scales = [scale for scale in load_config().scales if is_shipped(folder, scale)]
    return [s for s in scales if paper is None or any(id.split("/")[0] == paper for id in shipped_figures(folder, s))]


def shipped_scale(wanted: str, folder: Path | None = None, paper: str | None = None) -> str | None:
    """The shipped scale to show for a wanted one: itself, else the largest with all its figures, else the largest; None if nothing ships.

    Args:
        paper: consider only scales at which a figure of this paper ships.
    """
    folder = folder or paths.SHIPPED
    available = shipped_scales(folder, paper)
    if wanted in available:
        return wanted
    whole = [scale for scale in available if not left_out(folder, scale)]
    return (whole or available)[-1] if available else None


def shipped_figures(folder: Path, scale: str) -> set[str]:
    """Ids of the figures that ship at a scale."""
    return set(read_manifest(folder, scale).figures)


def left_out(folder: Path, scale: str) -> list[str]:
    """The figures of a scale that do not ship, in their order."""
    shipped = shipped_figures(folder, scale)
    return [figure.id for figure in figures_at(scale, []) if figure.id not in shipped]


@dataclass(frozen=True)
class ShownResults:
    """The results that a page shows: the user's own, or the shipped ones."""

    results: Path  # the folder, laid out as results/
    scale: str
    shipped: bool
    own: str  # a sentence on the user's own; if they are not shown, with the command that computes them (Markdown)
    larger: tuple[str, ...] = ()  # larger scales at which some figures ship; these figures are shown at that scale
    # Of the user's own: {figure: SHA-256 of its table} of those that were judged; no others are shown. None: all that have a table
    judged: Mapping[str, str] | None = None

    @property
    def scales(self) -> tuple[str, ...]:
        """All shown scales, the smallest first."""
        return (self.scale, *self.larger)


def own_results(results: Path, scale: str, paper: str | None = None, words: str = "") -> ShownResults:
    """Results of a folder with the verdicts on them, all or a paper's: the figures that these verdicts were judged by.

    DamagedFile if a file of verdicts does not say by which.

    Args:
        words: begin ``own``, which goes on with the figures that are left out.
    """
    place = results / scale
    noted = [] if is_shipped(results, scale) else [judged_tables(file) for file in verdict_files(place, paper)]
    if not noted:
        return ShownResults(results, scale, False, words)
    judged = {id: digest for note in noted for id, digest in note.items()}
    if others := [id for id in _with_tables(place, scale, paper) if id not in judged]:
        words += (
            f" Not shown: {in_short(others)}, which were not judged together with these; "
            f"`{command_in(results, paper or 'all', scale)}` judges all."
        )
    return ShownResults(results, scale, False, words.strip(), judged=judged)


def _with_tables(place: Path, scale: str, paper: str | None) -> list[str]:
    """The figures [of a paper] that have a table."""
    ids = [figure.id for figure in figures_at(scale, []) if paper in (None, figure.id.split("/")[0])]
    return [id for id in ids if (place / f"{id}.parquet").exists()]


def results_to_show(
    scale: str,
    paper: str | None = None,
    results: Path | None = None,
    shipped: Path | None = None,
    needs: str | None = None,
) -> ShownResults:
    """The results that a page shows: the user's own of a scale if there are any, else the shipped ones.

    Args:
        paper: for a paper's page: consider only its figures.
        results, shipped: folders; default: the results folder and that of shipped results.
        needs: a file of verdicts without which, or if a table changed after them, the user's own are not shown; default: a paper's
            verdicts, which need all its figures; else any figure's table.

    Returns:
        If there are neither, the user's own, so that reading them fails with a message.
    """
    own, folder = results or paths.results_folder(), shipped or paths.SHIPPED
    present = _with_tables(own / scale, scale, paper)
    needs = needs or (f"{paper}.claims.parquet" if paper else None)
    words = f"Your own results (`{name_in_checkout(own)}/{scale}`)."
    has_own = (own / scale / needs).exists() if needs else bool(present)
    mine = own_results(own, scale, paper, words) if needs and has_own else ShownResults(own, scale, False, words)
    changed = changed_tables(own / scale, mine.judged or {})
    instead = None if has_own and not changed else shipped_scale(scale, folder, paper)
    if instead is None:
        return mine if has_own or not needs else own_results(own, scale, paper, words)
    has = f"You have no results of your own at scale {scale}"
    if changed:
        has = f"Your own results at scale {scale} are not shown: {in_short(changed)} changed after they were judged"
    elif present:
        whole = "all figures of the paper" if paper else "all figures"
        has = f"Your own results at scale {scale} have {in_short(present)} only, not yet judged with {whole}"
    has += f"; `{command_in(own, paper or 'all', scale)}` {'judges them anew' if changed else 'computes them'}."
    scales = shipped_scales(folder, paper)
    return ShownResults(folder, instead, True, has, tuple(scales[scales.index(instead) + 1 :]))


def missing_sentence(folder: Path, scale: str, paper: str | None = None) -> str:
    """A space and a sentence on the figures of a scale that do not ship; empty if all do."""
    missing = [id for id in left_out(folder, scale) if paper in (None, id.split("/")[0])]
    return f" Not shipped at scale {scale}: {in_short(missing)}." if missing else ""


def commits_of(folder: Path, scale: str, figures: Iterable[str]) -> list[str]:
    """The short commits that made the runs of some figures, in the manifest's order."""
    table = read_with(folder / scale / RUNS, ["figure", "commit"], ["figure", "commit"])
    made = set(table.loc[table["figure"].isin(list(figures)), "commit"])
    return [_short(commit) for commit in read_manifest(folder, scale).commits if commit in made]


def older_versions(folder: Path, scale: str, figures: Iterable[str] | None = None) -> dict[str, list[str]]:
    """The figures whose runs today's kernel would not give byte by byte, by what the newest shipped version of a scale says of it:
    {version in words: ids}."""
    manifest = read_manifest(folder, scale)
    newest = manifest.newest
    table = read_with(folder / scale / RUNS, ["figure", "commit"], ["figure", "commit"])
    if figures is not None:
        table = table[table["figure"].isin(list(figures))]
    groups: dict[tuple[str, str], tuple[Version, list[str], list[str]]] = {}
    for figure, commit in table.drop_duplicates().itertuples(index=False):
        version = manifest.version_of(commit)
        if version is None or version.origin == newest.origin or _gives_the_same(version, newest):
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


def _gives_the_same(version: Version, newest: Version) -> bool:
    """Whether the newest version's kernel and conditions give each run of another one the same bytes (KernelSpec.same_results)."""
    try:
        _, spec = find_spec(recipe_name(newest.kernel["name"]))
    except NoSuchKernel:
        return False
    return version.conditions == newest.conditions and version.kernel["key"] in spec.same_results


def figures_without_noise(folder: Path, scale: str) -> set[str]:
    """The figures of a scale with runs of a version that had no noise of hosts."""
    manifest = read_manifest(folder, scale)
    commits = {c for version in manifest.versions if version.conditions == WITHOUT_NOISE for c in version.commits}
    table = read_with(folder / scale / RUNS, ["figure", "commit"], ["figure", "commit"])
    return set(table.loc[table["commit"].isin(commits), "figure"])


def older_sentence(folder: Path, scale: str, figures: Iterable[str] | None = None) -> str:
    """older_versions() as sentences, each after a space; empty if all runs are of the newest version."""
    older = older_versions(folder, scale, figures)
    return "".join(f" Made by an older version of bbrlab ({words}): {in_short(ids)}." for words, ids in older.items())


def _short(commit: str) -> str:
    return commit[:10] + ("+" if commit.endswith("+") else "")
