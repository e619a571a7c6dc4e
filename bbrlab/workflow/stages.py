"""Which code and data decide the results of each stage of a campaign.

What a stage depends on is folders, so that no file can be forgotten: a new module is covered by standing in its room.
Snakemake sees one small file for each stage, with a line for each of its files; it changes only if what the code does
may have changed, not with a comment or a docstring.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError

# Folders, files or patterns of them below the checkout. Of bbrlab/ a stage has its own rooms, all rooms that these import from, and its
# command; tests/test_stages.py follows the imports. The rest of cli/ and workflow/ only pass words on.
_RUNS = (
    "bbrlab/base", "bbrlab/scenario", "bbrlab/workload", "bbrlab/kernel", "bbrlab/experiment", "bbrlab/measure",
    "bbrlab/run", "mininet", "bbrlab/cli/stages/runs.py",
)  # fmt: skip
# What is computed here by NumPy, SciPy and numba; of a run they make sums and percentiles only, which no version changes.
_LIBRARIES = "envs/requirements.lock"
_TABLES = (*_RUNS, _LIBRARIES, "bbrlab/results", "bbrlab/cli/stages/tables.py")
_SEEDS = (*_TABLES, "bbrlab/models", "bbrlab/claims", "bbrlab/cli/stages/claims.py")  # the claims: asking.py
_CLAIMS = (*_SEEDS, "data", "scenarios", "config/config.yaml")
STAGES: dict[str, tuple[str, ...]] = {
    "kernel": (
        "bbrlab/base",
        "bbrlab/kernel",
        "bbrlab/experiment/iperf3_library.py",
        "mininet/iperf3_patience.c",
        "mininet/ovs_clock.c",
        "bbrlab/cli/kernels.py",
    ),
    "runs": _RUNS,
    "models": (
        "bbrlab/base",
        "bbrlab/scenario",
        "bbrlab/models",
        "data/*/models.yaml",
        _LIBRARIES,
        "bbrlab/cli/stages/models.py",
    ),
    "tables": _TABLES,
    "seeds": _SEEDS,
    "claims": _CLAIMS,
    "pages": (*_CLAIMS, "bbrlab/publish", "bbrlab/report", "bbrlab/cli/stages/pages.py"),
    "site": (*_CLAIMS, "bbrlab/publish", "bbrlab/report", "bbrlab/site", "bbrlab/cli/stages/site.py"),
}
LEFT_OUT = {".md", ".pyc", ".nbi", ".nbc"}  # words about the files, and what Python and numba leave beside them


def files_of(stage: str, root: Path | None = None) -> list[Path]:
    """The files that decide a stage's results, relative to ``root`` (default: the checkout), sorted.

    Raises:
        UserError: if a folder of the stage is not there.
    """
    root = root or paths.ROOT
    found: set[Path] = set()
    for name in STAGES[stage]:
        places = list(root.glob(name))
        if not places:
            raise UserError(
                f"{root / name}: is not there, but stage {stage} of a campaign depends on it (bbrlab/workflow/stages.py)"
            )
        for place in places:
            below = place.rglob("*") if place.is_dir() else [place]
            found |= {p.relative_to(root) for p in below if p.is_file() and p.suffix not in LEFT_OUT}
    return sorted(p for p in found if not any(part.startswith(".") for part in p.parts))


def write_stages(results: Path | None = None, root: Path | None = None) -> dict[str, Path]:
    """Write ``code/STAGE.sha256`` of every stage, untouched where nothing changed. Returns {stage: file}.

    Args:
        results: default: the results folder.
        root: default: the checkout.
    """
    written = {}
    root = root or paths.ROOT
    for stage in STAGES:
        text = "".join(f"{_hash(root / path)}  {path}\n" for path in files_of(stage, root))
        written[stage] = (results or paths.results_folder()) / "code" / f"{stage}.sha256"
        files.write_if_changed(written[stage], text)
    return written


@functools.cache
def _hash(path: Path) -> str:
    """SHA-256 of what a file does: of Python its syntax tree without docstrings, of others the bytes."""
    content = path.read_bytes()
    if path.suffix == ".py":
        content = ast.dump(_without_docstrings(ast.parse(content, str(path)))).encode()
    return hashlib.sha256(content).hexdigest()


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body[0] = ast.Pass()
    return tree
