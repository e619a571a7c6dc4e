"""binder/Dockerfile, from the Dockerfile.

BinderHub builds what lies in binder/ and nothing of the checkout's top, and starts ``jupyter notebook`` in it as NB_UID.
"""

from __future__ import annotations

from pathlib import Path

from bbrlab.base import paths

PAGE = paths.ROOT / "binder" / "Dockerfile"
HEAD = "# For BinderHub. Made from ../Dockerfile by make format\n"
TAIL = """
# The name by which BinderHub starts JupyterLab.
USER root
RUN ln -s jupyter-lab /bbrlab/.venv/bin/jupyter-notebook
USER ${NB_UID}
"""


def made() -> str:
    """What binder/Dockerfile says."""
    lines = (paths.ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    return HEAD + "".join(lines[first:]) + TAIL


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: made()}
