"""Reads a submission: an untrusted folder or archive. No link is followed, and nothing is executed.

Links, devices, pipes, names that lead elsewhere and what is too large are left out and reported. The rest are plain files by their
names within the submission.
"""

from __future__ import annotations

import json
import lzma
import math
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bbrlab.base.errors import UserError
from bbrlab.base.words import in_short
from bbrlab.base.yaml_files import read_texts, read_yaml
from bbrlab_apps.grading.rubric import Limits

DEPTH_MAX = 12  # folders in folders
NAME_MAX = 300  # characters of a name with its folders
YAML_BYTES = 64 << 10
NOTEBOOK_BYTES = 50 << 20
CHUNK_BYTES = 1 << 18
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
PROGRAMS = (".py", ".sh", ".exe", ".so", ".pkl", ".npy", ".npz", ".pt", ".jar")  # and others: never opened
# What systems and programs leave in folders, in small letters.
JUNK = {
    "__macosx", ".ds_store", ".localized", ".spotlight-v100", ".trashes", ".fseventsd", "icon\r", "thumbs.db", "ehthumbs.db", "desktop.ini",
    "$recycle.bin", "system volume information", ".directory", ".git", ".gitignore", ".gitattributes", ".gitmodules", ".gitkeep", ".github",
    ".svn", ".hg", ".idea", ".vscode", ".vs", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", "__pycache__",
    ".snakemake", ".editorconfig", ".jupyter", ".virtual_documents",
}  # fmt: skip
SCENARIO, ANSWERS, NOTEBOOK, RESULTS = "scenario.yaml", "answers.yaml", "notebook.ipynb", "results"
PARTS = (SCENARIO, ANSWERS, NOTEBOOK, RESULTS)
SHEET = "sheet.yaml"  # what the student was given
PROBLEMS_MAX = 20  # problems, at most, that are listed
NAMED_MAX = 5  # names or differences of one kind


@dataclass
class Submission:
    """The plain files of a submission."""

    files: dict[str, Path] = field(default_factory=dict)  # {name with its folders: path of the plain file}
    problems: list[str] = field(default_factory=list)  # what was left out, and why
    elsewhere: list[str] = field(default_factory=list)  # names of files outside of the submission's folder

    def missing(self, name: str) -> str:
        """A message that a part is missing, with files that may be meant."""
        return f"{name} is missing{self._candidates(lambda path: _looks_like(name, path.rpartition('/')[2]), f'it must be named {name} and lie beside the other parts')}"  # fmt: skip

    def missing_runs(self, parts: Collection[str]) -> str:
        """A message that RESULTS has no runs, with files that may be meant."""
        return f"{RESULTS}/ has no run: no folder with {', '.join(parts)}{self._candidates(lambda path: path.rpartition('/')[2] in parts, f'each run must lie in a folder of its own in {RESULTS}/')}"  # fmt: skip

    def _candidates(self, fits: Callable[[str], bool], what_to_do: str) -> str:
        places = [path for path in (*self.files, *self.elsewhere) if fits(path)]
        return f" (but there is {some_of(places)}; {what_to_do})" if places else ""


def shown(name: str | bytes, length_max: int = 100) -> str:
    """An untrusted text as one printable line."""
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
    text = text.encode("utf-8", "backslashreplace").decode()
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return text if len(text) <= length_max else text[: length_max - 3] + "..."


def some_of(names: list[str]) -> str:
    """The first few untrusted names, and the number of the others."""
    return in_short([shown(name) for name in names], NAMED_MAX)


def open_submission(path: Path, limits: Limits, scratch: Path) -> Submission:
    """The plain files of a folder or of an archive. UserError if it is neither, or an archive that cannot be read at all.

    Args:
        scratch: an empty folder, to which an archive is unpacked, under numbers for names.
    """
    submission = Submission()
    try:
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode):
            _walk(path, submission, limits)
        elif stat.S_ISREG(status.st_mode) and path.name.lower().endswith(ARCHIVES):
            _unpack(path, submission, limits, scratch)
        else:
            raise UserError(
                f"{shown(path.name)}: is neither a folder nor an archive ({', '.join(ARCHIVES)}); hand in one of these"
            )
    except OSError as error:
        raise UserError(f"{shown(path.name)}: cannot be read ({error.strerror or error})") from None
    _take_folder(submission)
    if len(submission.problems) > PROBLEMS_MAX:
        more = len(submission.problems) - PROBLEMS_MAX
        submission.problems = [*submission.problems[:PROBLEMS_MAX], f"and {more} more of such"]
    return submission


class _Room:
    """The files and bytes that the limits still allow; reports what does not fit."""

    def __init__(self, submission: Submission, limits: Limits):
        self.submission, self.limits = submission, limits
        self.bytes, self.files, self.full = limits.submission_mb * 1e6, limits.files, False

    def takes(self, name: str, size: int) -> bool:
        """Count a file, if it fits; whether it does."""
        self.files -= 1
        if self.files < 0:
            if not self.full:
                self.submission.problems.append(
                    f"has more than {self.limits.files} files and folders; the rest is left out"
                )
            self.full = True
            return False
        if size > self.bytes:
            left = f"{self.bytes / 1e6:.1f} of {self.limits.submission_mb:g} MB are left"
            self.submission.problems.append(
                f"{shown(name)}: has {size / 1e6:.1f} MB, {left} for a submission; left out"
            )
            return False
        self.bytes -= size
        return True


def _plain_name(name: str) -> str:
    """A name with / between folders. Windows PowerShell 5 packs with backslashes; unpacked elsewhere they stay in the names."""
    return "/".join(part for part in name.replace("\\", "/").split("/") if part != ".")


def _name_problem(name: str) -> str:
    """The problem of a name (of _plain_name()); empty if there is none."""
    parts = name.split("/")
    if "\0" in name or not all(c.isprintable() for c in name):
        return "has characters in its name that cannot be shown"
    if name.startswith("/") or (len(name) > 1 and name[1] == ":"):
        return "is named as a place of the whole machine, not of the submission"
    if ".." in parts:
        return "has a name that leads out of the submission (..)"
    if len(name) > NAME_MAX or len(parts) > DEPTH_MAX:
        return "has too long a name, or lies in too many folders"
    return ""


def _is_junk(name: str) -> bool:
    return any(part.casefold() in JUNK or part.startswith("._") for part in name.split("/"))


def _walk(root: Path, submission: Submission, limits: Limits) -> None:
    """Collect the plain files of a folder; nothing is followed."""
    room = _Room(submission, limits)
    folders: list[tuple[bytes, str, int]] = [(os.fsencode(root), "", 0)]
    while folders and not room.full:
        place, prefix, depth = folders.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda e: e.name)
        except OSError as error:
            submission.problems.append(f"{shown(prefix) or 'the folder'}: cannot be read ({error.strerror})")
            continue
        for entry in entries:
            try:
                name = prefix + _plain_name(entry.name.decode("utf-8"))
            except UnicodeDecodeError:
                submission.problems.append(f"{shown(prefix)}{shown(entry.name)}: its name is not UTF-8; left out")
                continue
            if _is_junk(name):
                continue
            problem = _name_problem(name) or ("is there twice" if name in submission.files else "")
            status = entry.stat(follow_symlinks=False)
            if problem:
                submission.problems.append(f"{shown(name)}: {problem}; left out")
            elif stat.S_ISDIR(status.st_mode):
                if depth >= DEPTH_MAX:
                    submission.problems.append(f"{shown(name)}: lies in too many folders; left out")
                elif room.takes(name, 0):
                    folders.append((entry.path, f"{name}/", depth + 1))
            elif not stat.S_ISREG(status.st_mode):
                submission.problems.append(
                    f"{shown(name)}: is a {_kind(status.st_mode)}; left out, hand in plain files"
                )
            elif room.takes(name, status.st_size):
                submission.files[name] = Path(os.fsdecode(entry.path))
            if room.full:
                break


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISLNK, "link"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISBLK, "device"), (stat.S_ISCHR, "device"))  # fmt: skip
    return next((name for test, name in kinds if test(mode)), "special file")


def _unpack(path: Path, submission: Submission, limits: Limits, scratch: Path) -> None:
    """Unpack an archive's plain files."""
    members = _zip_members(path, submission) if path.name.lower().endswith(".zip") else _tar_members(path, submission)
    room = _Room(submission, limits)
    try:
        for number, (name, size, source) in enumerate(members):
            if _is_junk(name):
                continue
            problem = _name_problem(name)
            if problem or name in submission.files:
                submission.problems.append(f"{shown(name)}: {problem or 'is there twice'}; left out")
            elif room.takes(name, size):
                target = scratch / str(number)
                with open(target, "wb") as file:
                    whole = _copy(source(), file, size)
                if whole:
                    submission.files[name] = target
                else:
                    submission.problems.append(f"{shown(name)}: holds more than its {size} bytes; left out")
                    target.unlink()
            if room.full:
                break
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:  # fmt: skip
        reason = shown(str(error) or type(error).__name__)
        raise UserError(
            f"{shown(path.name)}: the archive is damaged or of a kind that cannot be read ({reason}); pack it again"
        ) from None


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> bool:
    """Copy at most ``size`` bytes. Returns whether that was all."""
    with source:
        left = size
        while chunk := source.read(min(CHUNK_BYTES, left + 1)):
            if len(chunk) > left:
                return False
            target.write(chunk)
            left -= len(chunk)
    return True


Member = tuple[str, int, Any]  # name, size, a function that opens it


def _zip_members(path: Path, submission: Submission) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            name = _plain_name(info.filename)
            if name.endswith("/"):
                continue
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                submission.problems.append(f"{shown(info.filename)}: is a {_kind(mode)}; left out, hand in plain files")
            elif info.flag_bits & 1:
                submission.problems.append(f"{shown(info.filename)}: is encrypted; left out")
            else:
                yield name, info.file_size, lambda info=info: archive.open(info)


def _tar_members(path: Path, submission: Submission) -> Iterator[Member]:
    with tarfile.open(path, "r:*") as archive:
        for info in archive:
            if info.isdir():
                continue
            if not info.isreg() or info.issparse():
                kind = "link" if info.issym() or info.islnk() else "special file"
                submission.problems.append(f"{shown(info.name)}: is a {kind}; left out, hand in plain files")
                continue
            yield _plain_name(info.name), info.size, lambda info=info: archive.extractfile(info)


def _take_folder(submission: Submission) -> None:
    """Keep the files of the submission's folder: the only one with scenario.yaml, or the one around all others that have it.

    Without a scenario the other parts decide. Files elsewhere are kept by name.
    """
    for part in (SCENARIO, ANSWERS, NOTEBOOK, RESULTS):
        folders = sorted(
            {place for name in submission.files if (place := _folder_of(part, name)) is not None},
            key=lambda f: (len(f), f),
        )
        if not folders:
            continue
        top = folders[0]
        if all(folder.startswith(top) for folder in folders):
            inside = {name: path for name, path in submission.files.items() if name.startswith(top)}
            submission.elsewhere = [name for name in submission.files if name not in inside]
            submission.files = {name.removeprefix(top): path for name, path in inside.items()}
        else:
            submission.problems.append(
                f"{part} is in {some_of([folder or 'the top folder' for folder in folders])}: which of them is handed in? "
                "Hand in one folder that has each part once"
            )
        return


def _folder_of(part: str, name: str) -> str | None:
    """The folder of a part, with a slash at its end, by one of the part's files; None if the file is of no such part."""
    if part != RESULTS:
        folder, _, file = name.rpartition("/")
        return (f"{folder}/" if folder else "") if file == part else None
    at = f"/{name}".find(f"/{RESULTS}/")
    return name[:at] if at >= 0 else None


def _looks_like(part: str, file: str) -> bool:
    """Whether a file's name resembles that of a part: scenario.yml, Scenario.yaml.txt, answers (1).yaml."""
    return file.casefold().strip().startswith(part.rpartition(".")[0])


def read_bytes(path: Path, bytes_max: int, name: str) -> bytes:
    """The content of a plain file. UserError if it is none (any more) or has more than ``bytes_max`` bytes."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UserError(f"{shown(name)}: is no plain file")
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise UserError(f"{shown(name)}: cannot be read ({error.strerror})") from None
    if len(data) > bytes_max:
        raise UserError(f"{shown(name)}: has more than {bytes_max / 1e6:g} MB, which is too much for such a file")
    return data


def read_strict_json(path: Path, bytes_max: int, name: str) -> Any:
    """The content of a JSON file with finite numbers only. UserError saying what is wrong."""
    data = read_bytes(path, bytes_max, name)

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no number")

    def finite(text: str) -> float:
        number = float(text)
        return number if math.isfinite(number) else refuse(text[:40])

    try:
        return json.loads(data.decode("utf-8"), parse_constant=refuse, parse_float=finite)
    except RecursionError:
        raise UserError(f"{shown(name)}: is nested too deeply") from None
    except UnicodeDecodeError:
        raise UserError(f"{shown(name)}: is not a UTF-8 text file") from None
    except ValueError as error:
        raise UserError(f"{shown(name)}: is no JSON as bbrlab writes it ({shown(str(error))})") from None


def read_foreign_yaml(path: Path, name: str, *, as_typed: bool = False) -> Any:
    """The content of an untrusted YAML file; with ``as_typed`` all words as they were typed (read_texts()). UserError with line and column."""
    data = read_bytes(path, YAML_BYTES, name)
    if not data.strip():
        raise UserError(f"{shown(name)}: is empty; hand in the one that you were given, filled in")
    if b"\0" in data:
        raise UserError(f"{shown(name)}: is not a text file")
    try:
        return read_texts(path) if as_typed else read_yaml(path)
    except UserError as error:
        raise UserError(shown(str(error).replace(str(path), name).split("; give the path")[0], 300)) from None
