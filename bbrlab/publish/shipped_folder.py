"""The folder of results that ship: one at a time works on it, reads it whole, and writes it whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.locks import PARTIAL, lock
from bbrlab.base.tables import read_table
from bbrlab.results.config import load_config
from bbrlab.results.shipped import MANIFEST, Manifest, content_hash, is_shipped, read_manifest, tampered
from bbrlab.results.tables import read_figure

Say = Callable[[str], None]
WAITS = "waiting for another bbrlab that works on what ships at this scale"


@contextlib.contextmanager
def exclusive_access(folder: Path, scale: str, say: Say = lambda text: None, or_else: str = "") -> Iterator[None]:
    """Be the only one for the block that works on what ships at a scale: what is read in it is what is replaced in it.

    What a killed one left aside is put back first, and what it left half-written is removed.

    Args:
        folder: for shipped results; made if it is not there.
        say: told WAITS if another one is at it; the block begins when that has ended.
        or_else: what to do where nothing ships at the scale; empty: that is no fault.

    Raises:
        UserError: if nothing ships and something must, nothing can be written there, or its file system has no locks.
    """
    if scale not in (known := load_config().scales):
        raise UserError(f"--scale {scale}: there is no such scale (there are {', '.join(known)})")
    nothing = UserError(f"{folder}: nothing ships at scale {scale}; {or_else}")
    if or_else and not (is_shipped(folder, scale) or files.may_be_restored(folder / scale)):
        raise nothing
    file = folder / f".{scale}.lock"
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(file, lambda: say(WAITS)))
            files.restore_folder(folder / scale)
            for left in folder.glob(f".{scale}.*{PARTIAL}"):  # nobody else writes here
                shutil.rmtree(left, ignore_errors=True)
        except OSError as error:
            raise files.explain(error, file) from None
        if or_else and not is_shipped(folder, scale):
            raise nothing
        yield


def read_shipped(folder: Path, scale: str) -> tuple[Manifest, dict[str, pd.DataFrame]]:
    """The manifest of shipped results, and {file: table}. UserError if a file is not as the manifest says."""
    manifest = read_manifest(folder, scale)
    if wrong := tampered(folder, scale):
        raise UserError(f"{folder / scale / wrong[0][0]}: {wrong[0][1]}; get what ships anew")
    figures = {f"{id}.parquet" for id in manifest.figures}
    read = {True: read_figure, False: read_table}
    return manifest, {name: read[name in figures](folder / scale / name) for name in manifest.files}


def replace_shipped(folder: Path, content: dict[str, pd.DataFrame], manifest: dict[str, Any]) -> Manifest:
    """Write tables and manifest in the place of a folder of shipped results, whole or not at all.

    Args:
        folder: SCALE/ itself.
        content: {file below the folder: table}.
        manifest: without the hashes of files and its own.

    Returns:
        The manifest with them.
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
