"""Executes a notebook and writes it as one HTML page, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bbrlab import files
from bbrlab.errors import UserError


def render(notebook: Path, out: Path, parameters: dict[str, str]) -> None:
    """Execute ``notebook`` with ``parameters`` and write it to ``out``. UserError naming the cell that failed."""
    import nbformat
    import papermill
    from nbconvert import HTMLExporter
    from papermill.exceptions import PapermillExecutionError

    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    with tempfile.TemporaryDirectory() as folder:
        executed = Path(folder) / notebook.name
        try:
            papermill.execute_notebook(
                str(notebook), str(executed), parameters=parameters, cwd=str(notebook.parent), progress_bar=False,
                kernel_name="python3", log_output=False,
            )  # fmt: skip
        except PapermillExecutionError as error:
            failed = out.with_suffix(".failed.ipynb")
            out.parent.mkdir(parents=True, exist_ok=True)
            failed.write_bytes(executed.read_bytes())
            raise UserError(
                f"{notebook}: cell {error.exec_count} failed: {error.ename}: {error.evalue}; the notebook up to there is {failed}"
            ) from None
        content = nbformat.read(str(executed), as_version=4)  # type: ignore[no-untyped-call]
    exporter = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True, embed_images=True)  # type: ignore[no-untyped-call]
    exporter.exclude_input = True
    page, _ = exporter.from_notebook_node(content)
    with files.aside(out.with_suffix(".ipynb")) as temporary:
        nbformat.write(content, str(temporary))  # type: ignore[no-untyped-call]
    files.write_text(out, page)
