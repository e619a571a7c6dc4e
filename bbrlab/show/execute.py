"""Executes a notebook, whole or not at all, and writes its figures as files. The site shows it (notebook_page.py)."""

from __future__ import annotations

import base64
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from bbrlab.base import files, outputs
from bbrlab.base.errors import UserError
from bbrlab.results.replacement import replacement

# A figure as a file: for a screen and for a paper.
FORMATS = {"image/png": ".png", "application/pdf": ".pdf"}


def execute_notebook(notebook: Path, out: Path, parameters: dict[str, str], figures: Path | None = None) -> None:
    """Execute ``notebook`` with ``parameters`` and write it to ``out``, with its outputs. UserError naming the cell that failed.

    Args:
        figures: folder for the notebook's figures, each as PNG and PDF, replaced as a whole; None: no files.
    """
    if figures is not None:
        outputs.check_folder("--figures", figures)
    import nbformat
    import papermill
    from papermill.exceptions import PapermillExecutionError

    from bbrlab.show.notebook_kernel import PollingManager

    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    # The date in a PDF, so that equal figures are equal files.
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    formats = "%matplotlib inline\n%config InlineBackend.figure_formats = ['png', 'pdf']"
    with tempfile.TemporaryDirectory() as folder:
        prepared, executed = Path(folder) / notebook.name, Path(folder) / f"executed-{notebook.name}"
        try:
            content = nbformat.read(str(notebook), as_version=4)  # type: ignore[no-untyped-call]
        except OSError as error:
            raise files.explain(error, notebook) from None
        except ValueError as error:
            raise UserError(f"{notebook}: is no notebook ({str(error).splitlines()[0][:200]})") from None
        content.cells.insert(0, nbformat.v4.new_code_cell(formats, id="formats"))  # type: ignore[no-untyped-call]
        nbformat.write(content, str(prepared))  # type: ignore[no-untyped-call]
        try:
            papermill.execute_notebook(
                str(prepared), str(executed), parameters=parameters, cwd=str(notebook.parent), progress_bar=False,
                kernel_name="python3", log_output=False, extra_arguments=["--log-level=ERROR"],
                kernel_manager_class=PollingManager,
            )  # fmt: skip
        except PapermillExecutionError as error:
            failed = out.with_suffix(".failed.ipynb")
            out.parent.mkdir(parents=True, exist_ok=True)
            failed.write_bytes(executed.read_bytes())
            raise UserError(
                f"{notebook}: cell {error.exec_count} failed: {error.ename}: {error.evalue}; the notebook up to there is {failed}"
            ) from None
        content = nbformat.read(str(executed), as_version=4)  # type: ignore[no-untyped-call]
    content.cells = [cell for cell in content.cells if cell.get("id") != "formats"]
    if swap := replacement():
        content.cells.insert(1, nbformat.v4.new_markdown_cell(swap.note, id="replaced"))  # type: ignore[no-untyped-call]
    content.metadata.get("papermill", {}).update(input_path=notebook.name, output_path=out.name)
    drawn = take_figures(content)
    if figures is not None:
        with files.folder_aside(figures) as temporary:
            temporary.chmod(0o755)
            for name, data in drawn.items():
                (temporary / name).write_bytes(data)
            outputs.list_made(temporary)
            files.put_folder(temporary, figures)
    with files.aside(out) as temporary:
        nbformat.write(content, str(temporary))  # type: ignore[no-untyped-call]


def take_figures(content: Any) -> dict[str, bytes]:
    """The figures of an executed notebook; takes their PDFs out of it (a page shows the PNGs) and gives each image a text.

    Returns:
        {file name: bytes}, named by the heading that the figure stands under, numbered from the second on.
    """
    images: dict[str, bytes] = {}
    heading, count = "figure", 0
    for cell in content.cells:
        outputs: list[Any] = (
            [{"data": {"text/markdown": cell.source}}] if cell.cell_type == "markdown" else cell.get("outputs", [])
        )
        for output in outputs:
            data = output.get("data", {})
            if headings := re.findall(r"^#+ +(.+)$", data.get("text/markdown", ""), re.MULTILINE):
                heading, count = headings[-1], 0
            if "image/png" not in data:
                continue
            count += 1
            name = _slug(heading) if count == 1 else f"{_slug(heading)}-{count}"
            output.metadata["image/png"] = {"alt": heading if count == 1 else f"{heading} ({count})"}
            while f"{name}.png" in images:
                name += "-more"
            images |= {f"{name}{suffix}": base64.b64decode(data[k]) for k, suffix in FORMATS.items() if k in data}
            data.pop("application/pdf", None)
    return images


def _slug(heading: str) -> str:
    """A heading as a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower().replace(". ", " ")).strip("-")[:70].strip("-") or "figure"
