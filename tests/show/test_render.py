"""A notebook's figures as files, and what a failing notebook leaves."""

from __future__ import annotations

import nbformat
import pytest

from bbrlab.base import outputs
from bbrlab.base.errors import UserError
from bbrlab.show.execute import execute_notebook


def notebook(path, *cells):
    """A notebook of cells: text that begins with # is markdown, other is code."""
    make = {True: nbformat.v4.new_markdown_cell, False: nbformat.v4.new_code_cell}
    content = nbformat.v4.new_notebook(cells=[make[c.startswith("#")](c) for c in cells])
    content.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content.cells.insert(0, nbformat.v4.new_code_cell("word = 'default'", metadata={"tags": ["parameters"]}))
    nbformat.write(content, path)
    return path


PLOT = "import matplotlib.pyplot as plt\nfor i in range({}):\n    plt.plot([0, i])\n    plt.show()"


def test_figures_are_files_too(tmp_path):
    source = notebook(
        tmp_path / "in.ipynb",
        "# A page",
        "## Fig. 2a: one, two",
        PLOT.format(2),
        "from IPython.display import Markdown, display\ndisplay(Markdown('### Told at run time: ' + word))\n"
        + PLOT.format(1),
        "## Fig. 2a: one, two",
        PLOT.format(1),
    )
    out, figures = tmp_path / "out" / "page.ipynb", tmp_path / "out" / "figures"
    figures.mkdir(parents=True)
    (figures / "old.png").touch()
    outputs.list_made(figures)
    execute_notebook(source, out, {"word": "given"}, figures)
    first = {p.name: p.read_bytes() for p in figures.iterdir()}
    assert first.pop(outputs.MADE).decode().splitlines() == sorted(first)
    names = ["fig-2a-one-two", "fig-2a-one-two-2", "told-at-run-time-given", "fig-2a-one-two-more"]
    assert set(first) == {name + suffix for name in names for suffix in (".png", ".pdf")}
    assert all(data.startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[name[-3:]]) for name, data in first.items())
    executed = out.read_text()
    assert "application/pdf" not in executed
    assert "figure_formats" not in executed
    assert executed.count('"alt": "') == len(names)
    assert executed.count('"alt": "Fig. 2a: one, two"') == 2
    assert '"alt": "Told at run time: given"' in executed
    execute_notebook(source, out, {"word": "given"}, figures)
    assert {p.name: p.read_bytes() for p in figures.glob("[!.]*")} == first, "equal figures are equal files"
    assert sorted(p.name for p in out.parent.iterdir()) == ["figures", "page.ipynb"]


def test_a_folder_with_anything_else_is_left_alone(tmp_path):
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "mine.png").write_text("mine")
    with pytest.raises(UserError, match=r"has mine\.png, which is not among what bbrlab made there"):
        execute_notebook(notebook(tmp_path / "in.ipynb", "1"), tmp_path / "page.ipynb", {}, figures)
    assert (figures / "mine.png").read_text() == "mine" and not (tmp_path / "page.ipynb").exists()


def test_a_failing_notebook_is_named_and_replaces_nothing(tmp_path):
    source = notebook(tmp_path / "in.ipynb", "1 / 0")
    out, figures = tmp_path / "page.ipynb", tmp_path / "figures"
    out.write_text("the page before")
    figures.mkdir()
    with pytest.raises(UserError, match=r"in.ipynb: cell \d+ failed: ZeroDivisionError: .*page.failed.ipynb"):
        execute_notebook(source, out, {}, figures)
    assert out.read_text() == "the page before"
    assert figures.exists()
