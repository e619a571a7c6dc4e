"""Reads a submission: a folder or an archive that somebody else made. Data only, nothing followed, nothing executed.

Links, devices, pipes, names that lead elsewhere and what is too large are left out and told. What is left are plain files by
their names within the submission.
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
from bbrlab.base.yaml_files import read_texts, read_yaml
from bbrlab_apps.grading.rubric import Limits

DEPTH_MAX = 12  # folders in folders
NAME_MAX = 300  # characters of a name with its folders
YAML_BYTES = 64 << 10
NOTEBOOK_BYTES = 50 << 20
CHUNK_BYTES = 1 << 18
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
PROGRAMS = (
    ".py",
    ".sh",
    ".exe",
    ".so",
    ".pkl",
    ".npy",
    ".npz",
    ".pt",
    ".jar",
)  # and others: never opened
# What systems and programs leave in folders, in small letters.
JUNK = {
    "__macosx", ".ds_store", ".localized", ".spotlight-v100", ".trashes", ".fseventsd", "icon\r", "thumbs.db", "ehthumbs.db", "desktop.ini",
    "$recycle.bin", "system volume information", ".directory", ".git", ".gitignore", ".gitattributes", ".gitmodules", ".gitkeep", ".github",
    ".svn", ".hg", ".idea", ".vscode", ".vs", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", "__pycache__",
    ".snakemake", ".editorconfig", ".jupyter", ".virtual_documents",
}  # fmt: skip
SCENARIO, ANSWERS, NOTEBOOK, RESULTS = "scenario.yaml", "answers.yaml", "notebook.ipynb", "results"
TOLD_MAX = 20  # problems that are told one by one
NAMED_MAX = 5  # names or differences of one kind


@dataclass
class Submission:
    """What was handed in.

    Attributes:
        files: {name with its folders: where the plain file is}.
        problems: what was left out that a submission must not have, in words.
        elsewhere: names of the files that lie outside of the submission's folder.
    """

    files: dict[str, Path] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def missing(self, name: str) -> str:
        """That a part is missing, and where there is a file that may be meant."""
        return f"{name} is missing{self._meant(lambda path: _looks_like(name, path.rpartition('/')[2]), f'it must be named {name} and lie beside the other parts')}"  # fmt: skip

    def missing_runs(self, parts: Collection[str]) -> str:
        """That there are no runs in RESULTS, and where there are files that may be meant."""
        return f"{RESULTS}/ has no run: no folder with {', '.join(parts)}{self._meant(lambda path: path.rpartition('/')[2] in parts, f'each run must lie in a folder of its own in {RESULTS}/')}"  # fmt: skip

    def _meant(self, fits: Callable[[str], bool], what_to_do: str) -> str:
        places = [path for path in (*self.files, *self.elsewhere) if fits(path)]
        return f" (but there is {some_of(places)}; {what_to_do})" if places else ""


def shown(name: str | bytes, most: int = 100) -> str:
    """A foreign name as text of one line that any terminal and page can show."""
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
    text = text.encode("utf-8", "backslashreplace").decode()
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return text if len(text) <= most else text[: most - 3] + "..."


def some_of(names: list[str]) -> str:
    """The first few foreign names, and how many more there are."""
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(shown(n) for n in names[:NAMED_MAX]) + more


def open_submission(path: Path, limits: Limits, scratch: Path) -> Submission:
    """The plain files of a folder or of an archive.

    Args:
        path: the folder, or one of ARCHIVES.
        limits: the rubric's.
        scratch: an empty folder of ours; gets the files of an archive, under numbers for names.

    Raises:
        UserError: if it is neither, or an archive that cannot be read at all.
    """
    found = Submission()
    try:
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode):
            _walk(path, found, limits)
        elif stat.S_ISREG(status.st_mode) and path.name.lower().endswith(ARCHIVES):
            _unpack(path, found, limits, scratch)
        else:
            raise UserError(
                f"{shown(path.name)}: is neither a folder nor an archive ({', '.join(ARCHIVES)}); hand in one of these"
            )
    except OSError as error:
        raise UserError(f"{shown(path.name)}: cannot be read ({error.strerror or error})") from None
    _take_folder(found)
    if len(found.problems) > TOLD_MAX:
        more = len(found.problems) - TOLD_MAX
        found.problems = [*found.problems[:TOLD_MAX], f"and {more} more of such"]
    return found


class _Room:
    """How much more may be taken: counts files and bytes, and says what does not fit."""

    def __init__(self, found: Submission, limits: Limits):
        self.found, self.limits = found, limits
        self.bytes, self.files, self.full = limits.submission_mb * 1e6, limits.files, False

    def takes(self, name: str, size: int) -> bool:
        """Whether a file of this size fits, and so is counted."""
        self.files -= 1
        if self.files < 0:
            if not self.full:
                self.found.problems.append(f"has more than {self.limits.files} files and folders; the rest is left out")
            self.full = True
            return False
        if size > self.bytes:
            left = f"{self.bytes / 1e6:.1f} of {self.limits.submission_mb:g} MB are left"
            self.found.problems.append(f"{shown(name)}: has {size / 1e6:.1f} MB, {left} for a submission; left out")
            return False
        self.bytes -= size
        return True


def _plain_name(name: str) -> str:
    """A name with / between folders. Windows PowerShell 5 packs with backslashes; unpacked elsewhere they stay in the names."""
    return "/".join(part for part in name.replace("\\", "/").split("/") if part != ".")


def _name_problem(name: str) -> str:
    """What is wrong with a name (of _plain_name()) in an archive; empty if nothing is."""
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


def _walk(root: Path, found: Submission, limits: Limits) -> None:
    """Collect the plain files of a folder; nothing is followed."""
    room = _Room(found, limits)
    folders: list[tuple[bytes, str, int]] = [(os.fsencode(root), "", 0)]
    while folders and not room.full:
        place, prefix, depth = folders.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda e: e.name)
        except OSError as error:
            found.problems.append(f"{shown(prefix) or 'the folder'}: cannot be read ({error.strerror})")
            continue
        for entry in entries:
            try:
                name = prefix + _plain_name(entry.name.decode("utf-8"))
            except UnicodeDecodeError:
                found.problems.append(f"{shown(prefix)}{shown(entry.name)}: its name is not UTF-8; left out")
                continue
            if _is_junk(name):
                continue
            problem = _name_problem(name) or ("is there twice" if name in found.files else "")
            status = entry.stat(follow_symlinks=False)
            if problem:
                found.problems.append(f"{shown(name)}: {problem}; left out")
            elif stat.S_ISDIR(status.st_mode):
                if depth >= DEPTH_MAX:
                    found.problems.append(f"{shown(name)}: lies in too many folders; left out")
                elif room.takes(name, 0):
                    folders.append((entry.path, f"{name}/", depth + 1))
            elif not stat.S_ISREG(status.st_mode):
                found.problems.append(f"{shown(name)}: is a {_kind(status.st_mode)}; left out, hand in plain files")
            elif room.takes(name, status.st_size):
                found.files[name] = Path(os.fsdecode(entry.path))
            if room.full:
                break


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISLNK, "link"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISBLK, "device"), (stat.S_ISCHR, "device"))  # fmt: skip
    return next((name for test, name in kinds if test(mode)), "special file")


def _unpack(path: Path, found: Submission, limits: Limits, scratch: Path) -> None:
    """Unpack an archive's plain files."""
    members = _zip_members(path, found) if path.name.lower().endswith(".zip") else _tar_members(path, found)
    room = _Room(found, limits)
    try:
        for number, (name, size, source) in enumerate(members):
            if _is_junk(name):
                continue
            problem = _name_problem(name)
            if problem or name in found.files:
                found.problems.append(f"{shown(name)}: {problem or 'is there twice'}; left out")
            elif room.takes(name, size):
                target = scratch / str(number)
                with open(target, "wb") as file:
                    whole = _copy(source(), file, size)
                if whole:
                    found.files[name] = target
                else:
                    found.problems.append(f"{shown(name)}: holds more than its {size} bytes; left out")
                    target.unlink()
            if room.full:
                break
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:  # fmt: skip
        reason = shown(str(error) or type(error).__name__)
        raise UserError(
            f"{shown(path.name)}: the archive is damaged or of a kind that cannot be read ({reason}); pack it again"
        ) from None


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> bool:
    """Copy at most ``size`` bytes. Whether that was all."""
    with source:
        left = size
        while chunk := source.read(min(CHUNK_BYTES, left + 1)):
            if len(chunk) > left:
                return False
            target.write(chunk)
            left -= len(chunk)
    return True


Member = tuple[str, int, Any]  # name, size, a function that opens it


def _zip_members(path: Path, found: Submission) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            name = _plain_name(info.filename)
            if name.endswith("/"):
                continue
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                found.problems.append(f"{shown(info.filename)}: is a {_kind(mode)}; left out, hand in plain files")
            elif info.flag_bits & 1:
                found.problems.append(f"{shown(info.filename)}: is encrypted; left out")
            else:
                yield name, info.file_size, lambda info=info: archive.open(info)


def _tar_members(path: Path, found: Submission) -> Iterator[Member]:
    with tarfile.open(path, "r:*") as archive:
        for info in archive:
            if info.isdir():
                continue
            if not info.isreg() or info.issparse():
                kind = "link" if info.issym() or info.islnk() else "special file"
                found.problems.append(f"{shown(info.name)}: is a {kind}; left out, hand in plain files")
                continue
            yield _plain_name(info.name), info.size, lambda info=info: archive.extractfile(info)


def _take_folder(found: Submission) -> None:
    """Take the submission's folder: the only one that has scenario.yaml, whatever lies beside it, or that all others are in.

    Without a scenario the other parts tell which it is. What lies elsewhere is named.
    """
    for part in (SCENARIO, ANSWERS, NOTEBOOK, RESULTS):
        folders = sorted(
            {place for name in found.files if (place := _folder_of(part, name)) is not None}, key=lambda f: (len(f), f)
        )
        if not folders:
            continue
        top = folders[0]
        if all(folder.startswith(top) for folder in folders):
            inside = {name: path for name, path in found.files.items() if name.startswith(top)}
            found.elsewhere = [name for name in found.files if name not in inside]
            found.files = {name.removeprefix(top): path for name, path in inside.items()}
        else:
            found.problems.append(
                f"{part} is in {some_of([folder or 'the top folder' for folder in folders])}: which of them is handed in? "
                "Hand in one folder that has each part once"
            )
        return


def _folder_of(part: str, name: str) -> str | None:
    """The folder, with a slash at its end, in which a file makes a part; None if it makes no such part."""
    if part != RESULTS:
        folder, _, file = name.rpartition("/")
        return (f"{folder}/" if folder else "") if file == part else None
    at = f"/{name}".find(f"/{RESULTS}/")
    return name[:at] if at >= 0 else None


def _looks_like(part: str, file: str) -> bool:
    """Whether a file's name is that of a part but for what programs add or change: scenario.yml, Scenario.yaml.txt, answers (1).yaml."""
    return file.casefold().strip().startswith(part.rpartition(".")[0])


def read_bytes(path: Path, most: int, name: str) -> bytes:
    """The content of a plain file. UserError if it is not one (any more) or has more than ``most`` bytes."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UserError(f"{shown(name)}: is no plain file")
            data = file.read(most + 1)
    except OSError as error:
        raise UserError(f"{shown(name)}: cannot be read ({error.strerror})") from None
    if len(data) > most:
        raise UserError(f"{shown(name)}: has more than {most / 1e6:g} MB, which is too much for such a file")
    return data


def read_strict_json(path: Path, most: int, name: str) -> Any:
    """The content of a JSON file with finite numbers only. UserError saying what is wrong."""
    data = read_bytes(path, most, name)

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
    """The content of a YAML file, also with all words as they were typed (read_texts()). UserError with line and column for what is wrong."""
    data = read_bytes(path, YAML_BYTES, name)
    if b"\0" in data:
        raise UserError(f"{shown(name)}: is not a text file")
    try:
        return read_texts(path) if as_typed else read_yaml(path)
    except UserError as error:
        raise UserError(shown(str(error).replace(str(path), name).split("; give the path")[0], 300)) from None
