"""Applies a kernel's patches in a row, on copies of the files that they touch, which go into the source tree if all apply."""

from __future__ import annotations

import fnmatch
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.locks import owned_folder, remove_abandoned
from bbrlab.kernel import beneath
from bbrlab.kernel.patch_files import AS_IT_SHOULD_BE, NOTHING, Part, parts_of
from bbrlab.kernel.source_tree import SourceTree
from bbrlab.kernel.sources import UNPACK_EXCLUDES
from bbrlab.kernel.specs import Recipe
from bbrlab.kernel.steps import StepFailedError, Steps

FUZZ = 2  # lines of context that a user's patch may be wrong in, as by patch's own default; one of the lab's in none
PREFIX = "patched-"
SHOWN_MAX = 6  # rejected hunks that a message names
WITH_FUZZ = re.compile(r"Hunk #(\d+) succeeded at (\d+) with fuzz (\d+)")
WITH_OFFSET = re.compile(r"Hunk #(\d+) succeeded at (\d+) \(offset (-?\d+) lines?\)")


@dataclass(frozen=True)
class _Patch:
    path: Path
    parts: list[Part]
    fuzz: int

    def part_of(self, name: str) -> Part | None:
        return next((part for part in self.parts if name in part.files), None)


def apply_series(steps: Steps, tree: SourceTree, recipe: Recipe, identity: str) -> list[str]:
    """Apply a recipe's patches and added files to a tree.

    UserError naming the patch and its line, and the file and its line, where it does not apply.

    Args:
        steps: of the build.
        tree: in which another series may be applied; it is undone.
        recipe: of the kernel.
        identity: of the source, for messages.

    Returns:
        The files that differ from the source, those of the user's series first.
    """
    own_patches, shipped_patches = [], []
    for path in recipe.series:
        parts = parts_of(path)
        _check_paths(path, parts, tree)
        own_patches.append(_Patch(path, _possible(parts, tree, steps), FUZZ))
    for path in [*recipe.patches, *recipe.host_patches]:
        shipped_patches.append(_Patch(path, parts_of(path), 0))
    before, after = shipped_patches[: len(recipe.patches)], [*own_patches, *shipped_patches[len(recipe.patches) :]]
    added = {f"{target}/{path.name}": path for path, target in recipe.added}
    touched = [
        *(name for patch in [*own_patches, *shipped_patches] for part in patch.parts for name in part.files),
        *added,
    ]
    remove_abandoned(tree.folder, PREFIX)
    with owned_folder(tree.folder, PREFIX) as scratch:
        tried = scratch / "files"
        tried.mkdir()
        for name in dict.fromkeys(touched):
            tree.copy_original(name, tried / name)
        apart = Steps(steps.name, tried, steps.log, steps.file, steps.say)
        begin = time.monotonic()
        for patch in before:
            _apply(apart, patch, identity, scratch / "patch")
        for name, path in added.items():  # which a user's series may change
            (tried / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, tried / name)
        for patch in after:
            _apply(apart, patch, identity, scratch / "patch")
        steps.report_time(f"{len(before) + len(after)} patches", begin)
        tree.put(tried, touched)
    return list(dict.fromkeys(touched))


def _check_paths(path: Path, parts: list[Part], tree: SourceTree) -> None:
    """UserError for a patch that was made without "a/" and "b/"."""
    for part in parts:
        for name, inside in zip(part.named, part.files, strict=True):
            if beneath.is_file(tree.source, name) and not beneath.exists(tree.source, inside):
                raise UserError(f"{path}:{part.line}: names '{name}' without 'a/' or 'b/' before it; {AS_IT_SHOULD_BE}")


def _possible(parts: list[Part], tree: SourceTree, steps: Steps) -> list[Part]:
    """A patch without the parts on files that are not unpacked because nothing is compiled from them."""
    left = []
    for part in parts:
        absent = [n for n in part.files if _is_left_out(n) and not tree.has(n)]
        if part.files and len(absent) == len(part.files):
            steps.say(
                f"kernel {steps.name}: {absent[0]} is not unpacked, since nothing is compiled from it: what a patch does to it is left out"
            )
        else:
            left.append(part)
    return left


def _is_left_out(name: str) -> bool:
    return any(fnmatch.fnmatch(f"/{name}", pattern) for pattern in UNPACK_EXCLUDES)


def _apply(steps: Steps, patch: _Patch, identity: str, file: Path) -> None:
    """Apply a patch, or the parts of it that are possible, which are written to ``file``."""
    if not patch.parts:
        return
    text = "".join(line for part in patch.parts for line in part.lines)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = len(steps.words())
    step = f"patch {patch.path.name}" if patch.fuzz else f"patch {patch.path.parent.name}/{patch.path.name[:4]}"
    # -u: what says itself to be a script for ed is none.
    argv = ["patch", "-p1", "-u", "--forward", f"--fuzz={patch.fuzz}", "--no-backup-if-mismatch"]
    try:
        steps.run(step, argv, stdin=file, quiet=True)
    except StepFailedError:
        why = _why(patch, steps.words()[before + 1 :], steps.tree)
        raise UserError(
            f"kernel {steps.name}: step '{step}' failed: {patch.path} does not apply to {identity}: {why}; the log is {steps.log}"
        ) from None
    for line in _remarks(patch, steps.words()[before + 1 :]):
        steps.say(f"kernel {steps.name}: {line}")


def _why(patch: _Patch, words: list[str], tried: Path) -> str:
    """The messages of patch, each rejected hunk with its place in the patch and in the file."""
    reasons, name, part = [], "", None
    for line in words:
        if about := re.match(r"(?:patching|checking) file '?(.+?)'?(?: \(.*\))?$", line):
            name, part = about[1], patch.part_of(about[1])
        elif hunk := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            at = (
                f"{patch.path.name}:{part.hunks[int(hunk[1]) - 1]}, "
                if part and int(hunk[1]) <= len(part.hunks)
                else ""
            )
            reasons.append(f"{name}:{hunk[2]}: {at}hunk {hunk[1]} FAILED")
        elif re.match(r"\d+ out of \d+ hunks? (FAILED|ignored)", line):
            reasons.append(f"{name}: " + line.split(" -- ")[0])
        elif "previously applied" in line:
            reasons.append(f"{name}: this source has it already, or it undoes what is there")
        elif line.startswith("can't find file to patch"):
            reasons.append(_missing(patch, tried))
        elif stopped := re.match(r"patch: \*\*\*\* (.*)", line):
            reasons.append(stopped[1])
        elif "already exists!" in line:
            reasons.append(f"the file that it would make is there already ({line.strip()})")
    failed = [text for text in reasons if "FAILED" in text or "ignored" in text]
    shown = reasons[:SHOWN_MAX] + ([f"... ({len(failed)} in all)"] if len(reasons) > SHOWN_MAX else [])
    hint = "; it may be for another version of Linux, or need another patch before it" if reasons else ""
    return ("; ".join(dict.fromkeys(shown)) or "; ".join(words[-SHOWN_MAX:])) + hint


def _missing(patch: _Patch, tried: Path) -> str:
    """The file that a patch needs and the source lacks, and whether wrong paths are the reason."""
    for part in patch.parts:
        for name in part.files:
            new = any(line.startswith(f"--- {NOTHING}") for line in part.lines[:12])
            if not new and not (tried / name).exists():
                return f"{patch.path.name}:{part.line}: this source has no {name}"
    return "this source lacks a file that it changes"


def _remarks(patch: _Patch, words: list[str]) -> list[str]:
    """Remarks on a patch that applies, but not exactly as it was made."""
    remarks, name = [], ""
    moved: dict[str, list[str]] = {}
    for line in words:
        if about := re.match(r"patching file '?(.+?)'?(?: \(.*\))?$", line):
            name = about[1]
        elif fuzz := WITH_FUZZ.match(line):
            remarks.append(
                f"warning: {patch.path.name}: {name}:{fuzz[2]}: hunk {fuzz[1]} applies only if {fuzz[3]} lines of its context are left "
                f"out (fuzz {fuzz[3]}): look whether it is where it belongs"
            )
        elif offset := WITH_OFFSET.match(line):
            moved.setdefault(name, []).append(offset[3])
    if patch.fuzz:  # of the lab's own the log says it
        remarks += [
            f"{patch.path.name}: {name}: applies {', '.join(dict.fromkeys(n))} lines from where it says"
            for name, n in moved.items()
        ]
    return remarks
