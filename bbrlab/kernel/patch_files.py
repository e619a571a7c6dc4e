"""Reads patch files: the files of a source tree that they change, and what is no patch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.files import explain, open_plain

COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
}
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NOTHING = "/dev/null"
AS_IT_SHOULD_BE = "it must be a unified diff, as git format-patch or diff -u a b writes it"


@dataclass
class Part:
    """The part of a patch for one file."""

    line: int  # where it begins in the patch, from 1 on
    # Of the tree, without the first part of their path ("a/"): those that it reads, writes or removes
    files: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)  # the same as the patch has them
    lines: list[str] = field(default_factory=list)  # its text
    hunks: list[int] = field(default_factory=list)  # where each hunk begins in the patch


def parts_of(path: Path) -> list[Part]:
    """The parts of a patch. UserError if it cannot be read, is no patch, or has what a patch of a kernel may not have: binary
    files, links, paths that lead out of the tree."""
    return _Reader(path, text_of(path)).parts()


def text_of(path: Path) -> str:
    """A patch's text. UserError for a file that is no patch, with what it is instead."""
    try:
        with open_plain(path) as file:
            data = file.read()
    except OSError as error:
        raise explain(error, path) from None
    for magic, kind in COMPRESSED.items():
        if data.startswith(magic):
            raise UserError(f"{path}: is compressed ({kind}); unpack it, and give the patch")
    if not data.strip():
        raise UserError(f"{path}: is empty, and no patch")
    if b"\0" in data:
        raise UserError(f"{path}: is a binary file, and no patch")
    text = data.decode("utf-8", "surrogateescape")
    if re.match(r"\s*<(!doctype|html|\?xml)", text, re.IGNORECASE):
        raise UserError(
            f"{path}: is a web page, and no patch; save the patch itself (the page's link 'raw' or 'patch')"
        )
    return text


class _Reader:
    """Reads a patch from its first line to its last."""

    def __init__(self, path: Path, text: str):
        self.path, self.lines = path, re.findall(r"[^\n]*\n|[^\n]+", text)  # a form feed ends no line
        self.found: list[Part] = []
        self.begins_at: int | None = None  # the line of a "diff --git" whose part has no "---" yet

    def wrong(self, index: int, what: str) -> UserError:
        return UserError(f"{self.path}:{index + 1}: {what}")

    def parts(self) -> list[Part]:
        index = 0
        while index < len(self.lines):
            index = self._read(index)
        for number, part in enumerate(self.found):
            end = self.found[number + 1].line if number + 1 < len(self.found) else len(self.lines) + 1
            part.lines = self.lines[part.line - 1 : end - 1]
        if not any(part.hunks or part.files for part in self.found):
            mail = any(re.match(r"(From|Subject|Date): ?", line) for line in self.lines[:40])
            raise UserError(
                f"{self.path}: has no diff in it"
                + (
                    ": it is a mail without one, such as a cover letter; leave it out"
                    if mail
                    else f", and is no patch; {AS_IT_SHOULD_BE}"
                )
            )
        return self.found

    def _read(self, index: int) -> int:
        """Read what begins at a line; returns the line after it."""
        line = self.lines[index].rstrip("\r\n")
        following = self.lines[index + 1] if index + 1 < len(self.lines) else ""
        if line.startswith("diff --git "):
            self.found.append(Part(index + 1))
            self.begins_at = index
            if named := re.fullmatch(r"diff --git (a/\S+) (b/\S+)", line):  # of an empty file nothing else names it
                self._add(index, named[1])
                self._add(index, named[2])
        elif line.startswith("--- ") and following.startswith("+++ "):
            if self.begins_at is None:
                self.found.append(Part(index + 1))
            self.begins_at = None
            for offset, text in enumerate((line, following.rstrip("\r\n"))):
                self._add(index + offset, text[4:])
            return index + 2
        elif line.startswith("*** ") and following.startswith("--- "):
            raise self.wrong(index, f"is a context diff; {AS_IT_SHOULD_BE}")
        elif line == "GIT binary patch" or re.fullmatch(r"Binary files .* differ", line):
            raise self.wrong(index, "changes a binary file, which is not possible here")
        elif self.begins_at is not None and line.endswith(" mode 120000"):
            raise self.wrong(index, "makes or changes a symbolic link, which is not possible here")
        elif self.begins_at is not None and (moved := re.fullmatch(r"(?:rename|copy) (?:from|to) (.+)", line)):
            self._add(index, "a/" + moved[1])
        elif hunk := HUNK.match(line):
            if not self.found:
                raise self.wrong(index, "a hunk ('@@') before any file is named ('---' and '+++')")
            if max(len(hunk[2] or ""), len(hunk[4] or "")) > len(str(len(self.lines))):
                raise self.wrong(index, "the file ends within this hunk: it is cut off")
            self.found[-1].hunks.append(index + 1)
            return self._end_of_hunk(index, int(hunk[2] or 1), int(hunk[4] or 1))
        return index + 1

    def _end_of_hunk(self, index: int, old: int, new: int) -> int:
        begin = index
        while old > 0 or new > 0:
            index += 1
            if index >= len(self.lines):
                raise self.wrong(begin, "the file ends within this hunk: it is cut off")
            sign = self.lines[index][:1]
            if sign == "\\":
                continue
            if sign not in " +-\n\r\t":
                raise self.wrong(index, "is no line of a hunk: the patch is damaged, perhaps by who sent or copied it")
            old -= sign != "+"
            new -= sign != "-"
        return index + 1

    def _add(self, index: int, text: str) -> None:
        name = text.split("\t", maxsplit=1)[0].rstrip()
        if name == NOTHING:
            return
        if name.startswith('"'):
            raise self.wrong(index, f"names a file in quotation marks ({name}), which is not possible here")
        _, slash, inside = name.partition("/")
        if not slash or not inside:
            raise self.wrong(index, f"names '{name}' without 'a/' or 'b/' before it; {AS_IT_SHOULD_BE}")
        if name.startswith("/") or ".." in name.split("/") or "//" in name:
            raise self.wrong(index, f"names '{name}', which leads out of the source tree")
        if inside not in self.found[-1].files:
            self.found[-1].files.append(inside)
            self.found[-1].named.append(name)
