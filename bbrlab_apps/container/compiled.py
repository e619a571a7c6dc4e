"""Compiles the modules that bbrlab uses, as the last step of an image (envs/image.sh).

Its user may write no bytecode beside them, so that every process would compile them anew; all that is installed is three times as large.
"""

from __future__ import annotations

import ast
import compileall
import contextlib
import importlib
import io
from pathlib import Path

from bbrlab.base import paths
from bbrlab.campaign.stages import PACKAGES

OURS = (*PACKAGES, "tests", "snakemake_logger_plugin_bbrlab")
# What is started by name.
STARTED = (
    "snakemake.cli",
    "jupyterlab.labapp",
    "ipykernel.kernelapp",
    "ipywidgets",
    "nbconvert.exporters",
    "pytest",
    "xdist.plugin",
    "pytest_timeout",
    "papermill",
    "sphinx.application",
    "sphinx.builders.html",
    "textual.app",
    "psutil",
)


def imported(root: Path) -> set[str]:
    """Modules of others that files below ``root`` import, anywhere in them."""
    modules: set[str] = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module)
    return modules


if __name__ == "__main__":
    for name in sorted({*STARTED, *(m for ours in OURS for m in imported(paths.ROOT / ours))}):
        # What cannot be imported alone is compiled when it is used.
        with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stderr(io.StringIO()):
            importlib.import_module(name)
    for ours in OURS:
        compileall.compile_dir(paths.ROOT / ours, quiet=1)
