"""Kernel sources: a Debian package, or a commit of a Git repository."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, model_validator

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.locks import lock, owned_folder, remove_abandoned
from bbrlab.base.strict import Strict
from bbrlab.kernel.built_with import recorded_source

NO_DEBIAN = "this is not a Debian system (no dpkg-query); use Debian 12 or 13, or the Dockerfile"
FULL_COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
VERSION = re.compile(r"[0-9][A-Za-z0-9.+~-]*")  # of a Debian package without epoch
LOCK = paths.KERNELS / "sources.lock.json"
# What a build for these architectures never compiles, but unpacking would write: two thirds of the tree.
UNPACK_EXCLUDES = (
    "*/Documentation/*.rst", "*/Documentation/*.yaml", "*/Documentation/*.txt", "*/sound/*.[ch]", "*/tools/testing/*", "*/tools/perf/*", "*/samples/*.[ch]",
    "*/drivers/gpu/*.[chS]", "*/drivers/net/ethernet/*.[ch]", "*/drivers/net/wireless/*.[ch]",
    "*/drivers/media/*.[ch]", "*/drivers/staging/*.[ch]", "*/drivers/infiniband/*.[ch]", "*/drivers/scsi/*.[ch]",
    "*/arch/*/boot/dts/*",
)  # fmt: skip
APT_HELPER = "/usr/lib/apt/apt-helper"  # fetches as apt does: its proxy, its mirrors' access
POOLS = ("pool/main", "pool/updates/main")  # where the archive and its security updates keep packages
FETCH_PREFIX = ".fetch-"
LOOK_S = 60.0  # what git may take for the commit of a folder
COMPARE_S = 600.0  # and for its files: a slow disk reads 1.5 GB in less
Run = Callable[[str, list[str]], None]


class Source(Strict):
    """A kernel's source: ``debian``, or ``git`` with ``commit``, ``branch`` or both.

    A Debian package is the one that is installed or, with ``version`` and ``sha256``, that version of it, which may be of
    another release: it is fetched and not installed.
    An abbreviated commit is looked for in ``branch``; a branch alone means its latest commit when it is first fetched.
    """

    debian: str | None = Field(None, description="a source package, such as linux-source-6.12, as it is installed")
    version: str | None = Field(
        None,
        description="this version of it, which may be of another release: fetched from the mirrors that apt uses here, checked, "
        "not installed. A file that is in build/sources/ already is taken; mirrors drop old versions, archives of them keep them",
    )
    sha256: str | None = Field(None, description="of that version's file")
    git: str | None = Field(None, description="URL of a repository")
    commit: str | None = Field(None, description="40 digits; abbreviated: looked for in branch")
    branch: str | None = Field(
        None, description="without commit: what it was when it was first fetched (kernels/sources.lock.json)"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Source:
        if (self.debian is None) == (self.git is None):
            raise ValueError("give either debian (a source package) or git (a repository)")
        if self.debian and (self.commit or self.branch):
            raise ValueError("commit and branch belong to git")
        if not self.debian and (self.version or self.sha256):
            raise ValueError("version and sha256 belong to debian")
        if (self.version is None) != (self.sha256 is None):
            raise ValueError("version and sha256 belong together")
        if self.sha256 is not None and not SHA256.fullmatch(self.sha256):
            raise ValueError("sha256 must be 64 hexadecimal digits")
        if self.version is not None and not VERSION.fullmatch(self.version):
            raise ValueError("version must be one of a Debian package")
        if self.commit and not re.fullmatch(r"[0-9a-f]{7,40}", self.commit):
            raise ValueError("commit must be 7 to 40 hexadecimal digits")
        if self.git and not self.branch and not FULL_COMMIT.fullmatch(self.commit or ""):
            raise ValueError("git needs branch, or a commit of 40 digits")
        return self

    @property
    def name(self) -> str:
        """Its name in the lock file."""
        return f"{self.git} {self.commit or self.branch}"


@dataclass(frozen=True)
class Located:
    """A source at a known version."""

    identity: str  # "package version" or "URL commit (tree)"; part of the kernel's hash and of every result
    unpack: Callable[[Path, Run], None]  # unpacks it into a folder, given a function that runs (step, command)


def locate(source: Source, *, fetch: bool, say: Callable[[str], None] = lambda text: None) -> Located:
    """Find a source, if need be (and if ``fetch``) over the network. UserError if it is missing, with the command that gets it; if
    a repository no longer has what the first fetch recorded."""
    if source.version:
        return _version(source, say)
    return _debian(source.debian) if source.debian else _git(source, fetch, say)


def head_of(folder: Path, say: Callable[[str], None] = lambda text: None) -> Source:
    """The current commit of a Git repository on this machine, which is fetched. UserError if the folder is none, or its checked-out
    files differ from the commit.

    The repository may be anybody's, and its configuration names programs that Git would start (core.fsmonitor, filters): it is only
    fetched from, for which Git reads none of that, and compared by the repository into which it was fetched.
    """
    where, there = str(folder.absolute()), folder / ".git"
    repository = _repository(where)
    if not folder.is_dir():
        raise UserError(f"--source {folder}: is no folder; give one that is a Git repository")
    # Not by the repository that this command may have been started in: that may be the one.
    told = _git_call(
        f"--git-dir={repository}",
        "ls-remote",
        "--upload-pack=git-upload-pack --strict",  # not folder.git beside it
        str((there if there.exists() else folder).absolute()),
        "HEAD",
        limit_s=LOOK_S,
    )
    if "dubious ownership" in told.stderr:
        remedy = next((line.strip() for line in told.stderr.splitlines() if line.startswith("\t")), "make it yours")
        raise UserError(f"--source {folder}: {_reason(told)}: it is another user's; if you trust that one: {remedy}")
    commit = next((line.split()[0] for line in told.stdout.splitlines() if line.endswith("\tHEAD")), "")
    if told.returncode or not commit:
        raise UserError(
            f"--source {folder}: is no Git repository with a commit (git: {_reason(told)}); in a folder of sources: git init, git add -A, "
            "git commit -m source"
        )
    if not FULL_COMMIT.fullmatch(commit):
        raise UserError(
            f"--source {folder}: names its commits by SHA-256, and a source's are named by SHA-1: give a folder of the same files in which "
            "you call: git init --object-format=sha1, git add -A, git commit -m source"
        )
    source = Source(git=where, commit=commit)
    locate(source, fetch=True, say=say)
    if there.exists() and (changed := _changed(repository, folder, commit)):
        raise UserError(
            f"--source {folder}: {changed} differs from the commit that is checked out; commit it, or give the change as --patch"
        )
    return source


def _changed(repository: Path, folder: Path, commit: str) -> str:
    """The first file of a commit in a repository of ours that is another one in a folder; "" if none is."""
    with tempfile.TemporaryDirectory() as temporary:
        index = Path(temporary) / "index"

        def call(*arguments: str) -> str:
            settings = [f"--git-dir={repository}", f"--work-tree={folder}", "-c", "core.fileMode=false"]
            done = _git_call(*settings, *arguments, limit_s=COMPARE_S, GIT_INDEX_FILE=str(index))
            if done.returncode:
                raise UserError(
                    f"--source {folder}: cannot be compared with the commit that is checked out: git {arguments[0]}: {_reason(done)}; "
                    "give a fresh clone of it (git clone)"
                )
            return done.stdout

        call("read-tree", commit)
        call("update-index", "-q", "--ignore-submodules", "--refresh")
        return call("diff-files", "--name-only", "--ignore-submodules=all", "-z").partition("\0")[0]


def hashes_of(source: Source) -> dict[str, str]:
    """The identity of a source: the SHA-256 of its archive, or commit and tree. UserError if it is missing."""
    if source.version:
        return {"file": f"{source.debian}_{source.version}_all.deb", "sha256": source.sha256 or ""}
    if source.debian:
        _debian(source.debian)
        tarball, record = _tarball(source.debian), recorded_source(source.debian)
        return {
            "file": tarball.name,
            "sha256": record["sha256"] if record and not tarball.exists() else files.sha256(tarball),
        }
    locate(source, fetch=False)
    return {"git": source.git or "", **read_lock(lock_of(source))[source.name]}


def name_version(source: Source) -> str:
    """The part of a source's identity that this project's files do not fix: a package's version, "" if it is not installed.
    A repository's commit does not: LOCK holds it. So the result is the same before and after the first fetch."""
    try:
        return locate(source, fetch=False).identity if source.debian else source.name
    except UserError:
        return ""


def _debian(package: str) -> Located:
    tarball = _tarball(package)
    try:
        query = subprocess.run(
            ["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UserError(NO_DEBIAN) from None
    if query.returncode or not tarball.exists():
        if record := recorded_source(package):
            return Located(f"{package} {record['version']}", lambda folder, run: _refuse(package))
        raise UserError(
            f"the kernel source {package} is not installed; run 'make setup' (the default kernel's), or: apt-get install {package}"
        )

    return Located(f"{package} {query.stdout}", lambda folder, run: _untar(tarball, folder, run))


def _refuse(package: str) -> None:
    raise UserError(
        f"the kernel source {package} is not here: this is an image with kernels that are built already; another kernel, or one with an "
        "algorithm of your own, needs compiler and sources: an image on top has them (docs/howto/container.md, Kernels)"
    )


def _tarball(package: str) -> Path:
    return Path("/usr/src") / f"{package}.tar.xz"


def _version(source: Source, say: Callable[[str], None]) -> Located:
    """A version of a package. It is fetched when it is unpacked; a built kernel does not need it."""
    package, version, sha256 = source.debian or "", source.version or "", source.sha256 or ""

    def unpack(folder: Path, run: Run) -> None:
        file = fetch_package(package, version, sha256, say)
        opened = folder.parent / "package"
        run("unpack package", ["dpkg-deb", "-x", str(file), str(opened)])
        _untar(opened / "usr/src" / f"{package}.tar.xz", folder, run)
        shutil.rmtree(opened)

    return Located(f"{package} {version}", unpack)


def _untar(tarball: Path, folder: Path, run: Run) -> None:
    excludes = [f"--exclude={pattern}" for pattern in UNPACK_EXCLUDES]
    run("unpack", ["tar", "-C", str(folder), "-xf", str(tarball), "--strip-components=1", *excludes])


def lock_of(source: Source) -> Path:
    """The file that records the first fetch: LOCK; for a commit of a folder of this machine, which means nothing elsewhere, one
    beside what was fetched."""
    here = FULL_COMMIT.fullmatch(source.commit or "") and Path(source.git or "").is_absolute()
    return paths.build_folder() / "sources" / LOCK.name if here else LOCK


def read_lock(file: Path) -> dict[str, dict[str, str]]:
    """{"URL commit": {"commit": full, "tree": full}}: the results of the first fetches."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _git(source: Source, fetch: bool, say: Callable[[str], None]) -> Located:
    assert source.git
    repository = _repository(source.git)
    locked = read_lock(lock_of(source)).get(source.name)
    if locked is None or (fetch and not _has(repository, locked["commit"])):
        if not fetch:
            raise UserError(f"the source {source.name} has not been fetched yet")
        with _alone(repository.parent, say):
            locked = _fetched(repository, source, say)

    def unpack(folder: Path, run: Run) -> None:
        command = [
            "git",
            f"--git-dir={repository}",
            f"--work-tree={folder}",
            "checkout",
            "-f",
            locked["commit"],
            "--",
            ".",
        ]
        run("unpack", ["env", f"GIT_INDEX_FILE={folder.parent / 'index'}", *command])

    return Located(f"{source.git} {locked['commit']} (tree {locked['tree']})", unpack)


def _repository(url: str) -> Path:
    """Where commits of a repository are fetched to."""
    return paths.build_folder() / "sources" / (hashlib.sha256(url.encode()).hexdigest()[:16] + ".git")


@contextlib.contextmanager
def _alone(repositories: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Lock fetching for the block: the repositories of a build folder, which checkouts may share, and
    LOCK, which build folders may share."""
    repositories.mkdir(parents=True, exist_ok=True)

    def wait() -> None:
        say("another process is fetching a source; waiting for that")

    with lock(repositories / ".lock", wait), lock(LOCK.with_name(f".{LOCK.name}.lock"), wait):
        yield


def _fetched(repository: Path, source: Source, say: Callable[[str], None]) -> dict[str, str]:
    """Fetch a source and record it in LOCK, if needed, and return the record. Only for one process at a time."""
    locked = read_lock(lock_of(source)).get(source.name)  # which another process may have written meanwhile
    if locked is not None and _has(repository, locked["commit"]):
        return locked
    say(f"fetching {source.git}")
    _fetch(repository, source, (locked or {}).get("commit"))
    wanted = (locked or {}).get("commit") or source.commit or "FETCH_HEAD"
    hashes = {part: _rev_parse(repository, f"{wanted}^{{{part}}}", source) for part in ("commit", "tree")}
    if locked is not None and hashes != locked:
        raise UserError(
            f"{source.name}: has tree {hashes['tree']}, but {lock_of(source)} says {locked['tree']}: "
            "this is not the source that was fetched before; if that is meant, remove its entry there"
        )
    if locked is None:
        file = lock_of(source)
        files.write_json(file, dict(sorted({**read_lock(file), source.name: hashes}.items())))
    return hashes


def _git_call(*arguments: str, limit_s: float | None = None, **settings: str) -> subprocess.CompletedProcess[str]:
    """What git says. Where it takes longer than ``limit_s`` it is ended, with all that it started, and has failed for that reason."""
    # A repository with objects that are elsewhere names the program that gets them: nobody's is started.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C", **settings}
    argv, pipe = ["git", *arguments], subprocess.PIPE
    group = 0 if limit_s else None  # a terminal's own group otherwise: ssh may ask for a password in it
    try:
        process = subprocess.Popen(
            argv, stdout=pipe, stderr=pipe, text=True, errors="replace", env=environment, process_group=group
        )
    except FileNotFoundError:
        raise UserError("git is not installed; run: apt-get install git") from None
    with process:
        try:
            said, errors = process.communicate(timeout=limit_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL) if limit_s else process.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return subprocess.CompletedProcess(argv, -signal.SIGKILL, "", f"was not done after {limit_s:g} s")
    return subprocess.CompletedProcess(argv, process.returncode, said, errors)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Why git failed, in its words."""
    lines = done.stderr.strip().splitlines() or ["no reason given"]
    first = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0])
    return first.removeprefix("fatal: ").removeprefix("error: ")


def _has(repository: Path, commit: str) -> bool:
    return repository.exists() and not _git_call(f"--git-dir={repository}", "cat-file", "-e", commit).returncode


def _rev_parse(repository: Path, what: str, source: Source) -> str:
    done = _git_call(f"--git-dir={repository}", "rev-parse", "--verify", "--quiet", what)
    if done.returncode:
        where = f"branch {source.branch}" if source.branch else "it"
        raise UserError(f"{source.git}: {where} has no commit {source.commit}; check config/kernels.yaml")
    return done.stdout.strip()


def _fetch(repository: Path, source: Source, full_commit: str | None) -> None:
    """Fetch one commit, or the history of a branch (without its files) in which an abbreviated commit can be found."""
    assert source.git
    repository.parent.mkdir(parents=True, exist_ok=True)
    _git_call("init", "--quiet", "--bare", str(repository))
    commit = full_commit or (source.commit if FULL_COMMIT.fullmatch(source.commit or "") else None)
    # A remote by name, so that git can get the files of a commit when they are checked out.
    _git_call(f"--git-dir={repository}", "remote", "add", "origin", source.git)
    if commit or not source.commit:
        what = ["--depth=1", "origin", commit or f"refs/heads/{source.branch}"]
    else:
        what = ["--filter=blob:none", "origin", f"refs/heads/{source.branch}"]
    done = _git_call(f"--git-dir={repository}", "fetch", "--quiet", "--no-tags", *what)
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UserError(
            f"cannot fetch {source.git}: {words}; this kernel needs a network that reaches it. Without one, give a copy of "
            "the repository on this machine as source.git in config/kernels.yaml (commit and tree are checked all the "
            "same), or use the kernels that come from Debian packages (bbrlab kernel list)"
        )


def package_file(package: str, version: str) -> Path:
    """The path of this version of a package of kernel source, if it was fetched."""
    return paths.build_folder() / "sources" / f"{package}_{version}_all.deb"


def fetch_package(package: str, version: str, sha256: str, say: Callable[[str], None]) -> Path:
    """The file of a package of kernel source, fetched if needed by one process at a time. UserError if no mirror has it, with what
    to do; if an existing file has another hash."""
    file = package_file(package, version)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with lock(
            file.with_name(f".{file.name}.lock"), lambda: say("another process is fetching it; waiting for that")
        ):
            if not file.exists():
                say(f"fetching {package} {version}")
                remove_abandoned(file.parent, FETCH_PREFIX)
                with owned_folder(file.parent, FETCH_PREFIX) as folder:
                    _download(file, sha256, folder / "package.deb")
                    (folder / "package.deb").replace(file)
            actual = files.sha256(file)
    except OSError as error:
        raise files.explain(error, files.place_of(error, file.parent)) from None
    if actual != sha256:
        raise UserError(
            f"{file}: has SHA-256 {actual}, but config/kernels.yaml says {sha256} of {package} {version}; "
            "remove it, and it is fetched again"
        )
    return file


def _mirrors() -> list[str]:
    """The archives of Debian that apt uses on this machine, each with a slash at its end."""
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return list(dict.fromkeys(line.rstrip("/") + "/" for line in done.stdout.split() if line))


def _download(file: Path, sha256: str, target: Path) -> None:
    reasons = []
    for mirror in _mirrors():
        for pool in POOLS:
            argv = [
                APT_HELPER,
                "-q",
                "download-file",
                f"{mirror}{pool}/l/linux/{file.name}",
                str(target),
                f"SHA256:{sha256}",
            ]
            try:
                done = subprocess.run(argv, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                done = subprocess.CompletedProcess(argv, 1, "", f"E: no {APT_HELPER}")
            if not done.returncode and target.exists():
                return
            reasons += [line.removeprefix("E: ") for line in done.stderr.splitlines() if line.startswith("E: ")][:1]
    raise UserError(
        f"no mirror of Debian that this machine uses has {file.name}"
        f" ({reasons[0] if reasons else 'apt knows none; run: apt-get update'}); mirrors drop old versions: get it from an "
        f"archive of them and put it into {file.parent} (SHA-256 {sha256} is checked), or choose a newer version in "
        "config/kernels.yaml"
    )
