"""The folder of shipped results: locked for one process at a time, read whole, and written whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import files, outputs
from bbrlab.base.errors import UserError
from bbrlab.base.locks import PARTIAL, lock
from bbrlab.base.tables import read_table
from bbrlab.results.config import load_config
from bbrlab.results.shipped import MANIFEST, Manifest, content_hash, is_shipped, read_manifest, tampered
from bbrlab.results.tables import read_figure

Say = Callable[[str], None]
WAITS = "waiting for another bbrlab that works on what ships at this scale"


def check_place(folder: Path, scale: str) -> None:
    """UserError if the folder of a scale has a file that is not of shipped results: it is replaced as a whole."""
    made = (MANIFEST, *read_manifest(folder, scale).files) if is_shipped(folder, scale) else ()
    outputs.check_folder("--out", folder / scale, made)


@contextlib.contextmanager
def exclusive_access(folder: Path, scale: str, say: Say = lambda text: None, or_else: str = "") -> Iterator[None]:
    """Lock the shipped results of a scale for the block.

    What a killed process had put aside is restored first, and what it had half written is removed. UserError if nothing ships and
    ``or_else`` is given, the folder cannot be written, or its file system has no locks.

    Args:
        folder: for shipped results; made if it does not exist.
        say: called with WAITS if another process has the lock.
        or_else: the remedy if nothing ships at the scale; empty if that is no error.
    """
    if scale not in (scales := load_config().scales):
        raise UserError(f"--scale {scale}: there is no such scale (there are {', '.join(scales)})")
    nothing = UserError(f"{folder}: nothing ships at scale {scale}; {or_else}")
    if or_else and not (is_shipped(folder, scale) or files.may_be_restored(folder / scale)):
        raise nothing
    file = folder / f".{scale}.lock"
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(file, lambda: say(WAITS)))
            files.restore_folder(folder / scale)
            for partial in folder.glob(f".{scale}.*{PARTIAL}"):  # this process has the lock
                shutil.rmtree(partial, ignore_errors=True)
        except OSError as error:
            raise files.explain(error, file) from None
        if or_else and not is_shipped(folder, scale):
            raise nothing
        yield


def read_shipped(folder: Path, scale: str) -> tuple[Manifest, dict[str, pd.DataFrame]]:
    """The manifest of shipped results, and {file: table}. UserError if a file is not as the manifest says."""
    manifest = read_manifest(folder, scale)
    if problems := tampered(folder, scale):
        raise UserError(f"{folder / scale / problems[0][0]}: {problems[0][1]}; get what ships anew")
    figures = {f"{id}.parquet" for id in manifest.figures}
    read = {True: read_figure, False: read_table}
    return manifest, {name: read[name in figures](folder / scale / name) for name in manifest.files}


def replace_shipped(folder: Path, content: dict[str, pd.DataFrame], manifest: dict[str, Any]) -> Manifest:
    """Replace a folder of shipped results by tables and a manifest, whole or not at all.

    Args:
        folder: SCALE/ itself.
        content: {file below the folder: table}.
        manifest: without the hashes of files and its own.

    Returns:
        The whole manifest.
    """
    with files.folder_aside(folder) as aside:
        aside.chmod(0o755)
        for name, table in sorted(content.items()):
            path = aside / name
            path.parent.mkdir(exist_ok=True)
            with open(path, "wb") as file:
                table.to_parquet(file, index=False, compression="zstd", compression_level=19)
        hashes = {name: files.sha256(aside / name) for name in sorted(content)}
        whole = manifest | {"files": hashes}
        whole |= {"sha256": content_hash(whole)}
        files.write_json(aside / MANIFEST, whole)
        files.put_folder(aside, folder)
    return Manifest.model_validate(whole)
