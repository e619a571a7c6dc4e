"""The key of a kernel: the hash of all that decides what it does, by which it is built once (build.py) and found again (built.py)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from bbrlab.kernel.c_tokens import tokens
from bbrlab.kernel.own import OwnCca
from bbrlab.kernel.specs import KernelSpec, OwnSpec, probe_file, recipe


def build_key(spec: KernelSpec, source: str, compiler_line: str, own: Sequence[OwnCca] = ()) -> str:
    """Hash of (source version, options, patches, added files, what tries it out, compiler, this recipe's steps, algorithms of
    one's own): of all that can change a result. Patches for the host cannot: host_key(); nor can comments in the added C files, of which
    the tokens count. An algorithm of one's own counts as it stands: the kernel names lines of it where it stops (own.place_of_crash())."""
    parts = recipe(spec)
    digest = hashlib.sha256()
    for part in (source, compiler_line, spec.arch, "recipe 4"):
        digest.update(part.encode() + b"\0")
    for path in [*parts.options, *parts.patches, probe_file()]:
        digest.update(f"/{path.name}".encode() + b"\0" + path.read_bytes() + b"\0")
    for path, target in parts.added:
        code = "\0".join(tokens(path.read_text(encoding="utf-8")))
        digest.update(f"{target}/{path.name}\0{code}\0".encode())
    if isinstance(spec, OwnSpec):  # names stand in what is built
        digest.update(json.dumps([parts.settings, spec.names]).encode() + b"\0")
        for path in parts.series:
            digest.update(b"series\0" + path.read_bytes() + b"\0")
    for cca in own:
        digest.update(f"own {cca.name}".encode() + b"\0" + cca.text.encode() + b"\0")
    return digest.hexdigest()[:16]


def host_key(spec: KernelSpec) -> str:
    """Hash of the patches by which a kernel runs on more machines, "" without any. With other ones it is built anew in the place of the
    one that is there: it keeps its key, for what it computes is the same."""
    parts = [file.name.encode() + b"\0" + file.read_bytes() + b"\0" for file in recipe(spec).host_patches]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16] if parts else ""
