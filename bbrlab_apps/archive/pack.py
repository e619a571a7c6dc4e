"""One archive of a finished campaign: results, sources, licences, provenance, checksums (docs/howto/artifact.md)."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.kernel.sources import hashes_of, locate
from bbrlab.kernel.specs import KernelSpec, OwnSpec, find_spec
from bbrlab.results.config import command_for, in_checkout
from bbrlab.results.shipped import content_hash
from bbrlab.run.output import MANIFEST as RUN_MANIFEST
from bbrlab.run.output import SUMMARY, TABLES
from bbrlab_apps.archive import crate
from bbrlab_apps.archive.checkout import Commit, Member, commit_of, sources
from bbrlab_apps.archive.citation import project_version, read_citation
from bbrlab_apps.archive.verdicts import check_judged
from bbrlab_apps.shipping.finished_run import FinishedRun
from bbrlab_apps.shipping.pack import Finished, load_runs

FORMAT = 1
README, MANIFEST, SUMS = "README.md", "MANIFEST.json", "SHA256SUMS"
BESIDES = (README, MANIFEST, crate.METADATA, SUMS)  # about the other files of an archive
SITE = "site/index.html"  # below results/SCALE/, where it was built
LICENCES = {
    "source": "by folder: LICENSE",
    "source/kernels": "GPL-2.0-only",
    "source/data": "CC0-1.0",
    "results": "CC0-1.0",
}
COMPRESSION = 6


@dataclass(frozen=True)
class Packed:
    """An archive that was made."""

    path: Path
    bytes: int
    files: int
    sha256: str
    manifest: dict[str, Any]


def pack(
    campaign: Finished,
    out: Path,
    whole: bool = True,
    on_progress: Callable[[str], None] = lambda text: None,
    checkout: Path = paths.ROOT,
) -> Packed:
    """Write bbrlab-VERSION-SCALE-COMMIT.tar.gz to a folder, whole or not at all.

    The bytes are the same for the same results and commit: names are in order, and every time is the commit's. UserError if the
    campaign is not finished (pack.load_runs()), its verdicts are not those of its tables, the sources are not those of a commit,
    the kernel's source is not on this machine, or there is no room.

    Args:
        whole: that it is the whole campaign, with its scorecard and overview.
        on_progress: told now and then, in words, how far it is.
    """
    scale, results = campaign.scale, campaign.results
    if not results.is_dir():  # told before what is wrong with the sources: who mistyped it has nothing to commit
        raise UserError(f"{results}: there is no such folder of results")
    commit = commit_of(checkout, [results, paths.results_folder(), paths.build_folder(), out])
    runs = load_runs(campaign, on_progress)
    on_progress("claims")
    check_judged(campaign, whole)
    if whole:
        _check_whole(results / scale)
    provenance = runs.manifest(scale)
    version = project_version()
    name = f"bbrlab-{version}-{scale}-{commit.name[:10]}"
    on_progress("reading sources")
    members = [*_sources(sources(commit, checkout)), *_results(scale, runs.runs, results)]
    _check_room(sum(m.size() for m in members), out)
    packages = Counter(f"{name} {of}" for one in runs.runs for name, of in one.manifest["packages"].items())
    manifest = _manifest(version, commit, provenance, packages, members)
    members.append(Member(README, data=_readme(name, manifest).encode()))
    members.append(Member(MANIFEST, data=_json(manifest)))
    described = crate.Campaign(read_citation(), version, commit.name, commit.day, scale, runs.runs)
    members.append(Member(crate.METADATA, data=_json(crate.metadata(described))))
    members.sort(key=lambda m: m.name)
    sums = []
    for number, member in enumerate(m for m in members if not m.link):
        if number % 100 == 0:
            on_progress(f"hashing file {number} of {len(members)}")
        sums.append((member.digest(), member.name))
    members.append(Member(SUMS, data="".join(f"{digest}  {file}\n" for digest, file in sums).encode()))
    on_progress("writing")
    path = out / f"{name}.tar.gz"
    with files.aside(path) as temporary:
        _write(temporary, name, commit.time_s, members, dict((file, digest) for digest, file in sums))
    return Packed(path, path.stat().st_size, len(members), files.sha256(path), manifest)


def _check_whole(place: Path) -> None:
    """UserError if the last files of a campaign are not there."""
    for name in ("scorecard.json", "overview.ipynb"):
        if not (place / name).exists():
            raise UserError(
                f"{place / name}: is missing: the campaign is not finished; run: {in_checkout(command_for('all', place.name))}"
            )


def _check_room(needed: int, out: Path) -> None:
    """UserError if an archive of so many bytes, not compressed, might not fit. Most of it is compressed already."""
    free = shutil.disk_usage(files.existing_parent(out)).free
    if needed > free:
        raise UserError(
            f"{out}: the archive may take {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free; make room, or choose "
            "another place with --out"
        )


def _sources(files_of_commit: Sequence[Member]) -> Iterator[Member]:
    """The sources below source/, and the licences once more where everybody looks."""
    for file in files_of_commit:
        yield dataclasses.replace(file, name=f"source/{file.name}")
        if file.name == "LICENSE" or file.name.startswith("LICENSES/"):
            yield Member(file.name, data=file.data)


def _results(scale: str, runs: Sequence[FinishedRun], results: Path) -> Iterator[Member]:
    """The files of a campaign below results/: runs without their logs, points, predictions, tables, pages, site."""
    chosen: dict[str, Path] = {}
    for one in runs:
        for name in (SUMMARY, *TABLES, RUN_MANIFEST):
            if (one.run.folder / name).is_file():
                chosen[f"runs/{one.run.figure}/{one.run.point.label}/seed-{one.run.seed}/{name}"] = (
                    one.run.folder / name
                )
        label = f"{one.run.figure}/{one.run.point.label}"
        chosen[f"points/{label}.yaml"] = results / "points" / f"{label}.yaml"
        chosen[f"{_kernel_name(one)}.json"] = results / f"{_kernel_name(one)}.json"
    for figure in dict.fromkeys(one.run.figure for one in runs):
        chosen |= {str(p.relative_to(results)): p for p in (results / "models" / figure).rglob("*.parquet")}
    chosen |= {str(p.relative_to(results)): p for p in (results / scale).rglob("*") if p.is_file()}
    for name, path in sorted(chosen.items()):
        if any(part.startswith(".") for part in Path(name).parts):
            continue  # what is being written, or was when a campaign was killed
        if not path.is_file():
            raise UserError(
                f"{path}: is missing: the campaign is not finished; start it again, it makes what is not there"
            )
        yield Member(f"results/{name}", path)


def _kernel_name(one: FinishedRun) -> str:
    return "+".join(["kernel", *sorted(one.manifest["kernel"].get("own", {}))])


def _manifest(
    version: str, commit: Commit, campaign: dict[str, Any], packages: Mapping[str, int], members: Sequence[Member]
) -> dict[str, Any]:
    """The content of MANIFEST.json: what this is and what it came from; SHA256SUMS has the files' hashes."""
    kernel = campaign["versions"][0]["kernel"]  # a campaign has one
    spec = find_spec(kernel["name"])[1]
    located = locate(spec.source, fetch=False).identity
    if located != kernel["source"]:
        raise UserError(
            f"the runs' kernel is of {kernel['source']}, here is {located}: its hash cannot be told; pack where the campaign "
            "ran, or start the campaign again"
        )
    content = {
        "format": FORMAT,
        "package": "bbrlab",
        "version": version,
        "commit": commit.name,
        "commit_date": commit.day,
        **{key: campaign[key] for key in ("scale", "figures", "commits", "failed")},
        "guest_code_sha256": campaign["versions"][0]["guest_code_sha256"],
        "conditions": campaign["versions"][0]["conditions"],
        "kernel": kernel
        | {
            "source_hashes": hashes_of(spec.source),
            "patches": [*spec.patches, *spec.host_patches],
            "options": spec.options,
            **_own_parts(spec),
        },
        "debian_packages": dict(sorted(packages.items())),
        "python_packages": "source/envs/requirements.lock",
        "licences": LICENCES,
        "site": any(m.name == f"results/{campaign['scale']}/{SITE}" for m in members),
        # What is made of this cannot be counted in it.
        "content": {"files": len(members), "bytes": sum(m.size() for m in members), "besides": list(BESIDES)},
    }
    return content | {"sha256": content_hash(content)}


def _own_parts(spec: KernelSpec) -> dict[str, Any]:
    """What a kernel of the user's own has besides: its patches by their hashes, its options."""
    if not isinstance(spec, OwnSpec):
        return {}
    series = [{"file": Path(name).name, "sha256": files.sha256(Path(name))} for name in spec.series]
    return {"base": spec.base, "series": series, "settings": spec.settings}


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _readme(name: str, manifest: dict[str, Any]) -> str:
    """What stands in the archive, for who opens it first."""
    kernel, hashes = manifest["kernel"], manifest["kernel"]["source_hashes"]
    runs = sum(manifest["figures"].values())
    commits = ", ".join(f"{commit} ({number})" for commit, number in manifest["commits"].items())
    site = f"`results/{manifest['scale']}/{SITE}`: the site. " if manifest["site"] else ""
    return f"""# {name}
Results of bbrlab {manifest["version"]} at scale {manifest["scale"]}: {runs} runs of {len(manifest["figures"])} figures, with the sources that made them.

| what | where |
|---|---|
| is it whole? | `sha256sum --quiet -c {SUMS}` in this folder: prints nothing, ends with 0 |
| what reviewers ask (requirements, 30 minutes, each claim) | `source/docs/howto/artifact.md` |
| notebooks, tables, verdicts | {site}`results/{manifest["scale"]}/`: `overview.ipynb`, `scorecard.txt`, `PAPER.ipynb`, `PAPER/FIGURE.csv` (columns: `source/docs/reference/results.md`) |
| every run: what was asked, samples, self-checks, what it came from | `results/runs/PAPER/FIGURE/POINT/seed-N/` |
| every run with its point, seed, times, code and kernel | `{crate.METADATA}`: an RO-Crate (Process Run Crate 0.5) |
| versions and hashes | `{MANIFEST}` |
| sources | `source/`: commit {manifest["commit"]} |
| licences | `LICENSE`, `LICENSES/` |

To run a sample of it again and compare hashes, in `source/` after `make setup`:

```
source .venv/bin/activate
bbrlab verify --results ../results --scale {manifest["scale"]} --sample 20
```

Code that made the runs: commit {commits}.

**Kernel.** All runs are of {kernel["name"]} ({kernel["release"]}, key {kernel["key"]}), built from {kernel["source"]}
({", ".join(f"{key} {value}" for key, value in hashes.items())}) with the options and patches in `source/kernels/`, by {kernel["compiler"]}.
No binary of it is in this archive. Linux is under GPL-2.0-only: who passes on a kernel that was built from this passes on its source, these
patches and options and how it is built (`source/bbrlab/kernel/`) with it, or a written offer of them.
"""


def _write(path: Path, folder: str, time_s: int, members: Sequence[Member], sums: dict[str, str]) -> None:
    """The tar file, compressed. UserError if a file is no longer the one that was hashed."""
    with (
        open(path, "wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=COMPRESSION, fileobj=raw, mtime=time_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for member in members:
            entry = tarfile.TarInfo(f"{folder}/{member.name}")
            entry.mtime, entry.mode = time_s, 0o755 if member.executable else 0o644
            if member.link:
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, member.link, 0o777
                tar.addfile(entry)
                continue
            entry.size = member.size()
            with member.open() as content:
                reader = _Hashing(content)
                tar.addfile(entry, reader)
            if member.name in sums and reader.digest.hexdigest() != sums[member.name]:
                raise UserError(
                    f"{member.path}: changed while it was packed; wait until the campaign has ended, and start again"
                )


class _Hashing:
    """Reads from a file and hashes what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        data = self.file.read(size)
        self.digest.update(data)
        return data
