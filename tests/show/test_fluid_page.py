"""The page of the models from what a campaign has run, and nothing of what it has not."""

from __future__ import annotations

import nbformat
import pytest

from bbrlab.base import paths
from bbrlab.results.figures import figures_at
from bbrlab.show.execute import execute_notebook
from tests.made_up import table


def first_cells(folder):
    """The notebook up to its panels; what follows integrates for minutes and reads nothing of a campaign."""
    notebook = nbformat.read(paths.ROOT / "notebooks" / "models.ipynb", as_version=4)
    end = 1 + next(i for i, cell in enumerate(notebook.cells) if "three_models(panel)" in cell.source)
    notebook.cells = notebook.cells[:end]
    nbformat.write(notebook, folder / "models.ipynb")
    return folder / "models.ipynb"


@pytest.mark.parametrize("ran", [pytest.param([], marks=pytest.mark.slow), ["fig2a"]])
def test_a_campaign_of_some_papers_has_its_page(tmp_path, monkeypatch, ran):
    """Without any panel, and with one whose fluid predictions are not there: what is missing is said."""
    results = tmp_path / "results"
    (results / "smoke" / "sarpkaya2025").mkdir(parents=True)
    for name in ran:
        (figure,) = figures_at("smoke", [f"sarpkaya2025/{name}"])
        whole = table(figure)
        whole["share_of_capacity"] = 0.6 - 0.3 * whole["group"]
        whole.to_parquet(results / "smoke" / "sarpkaya2025" / f"{name}.parquet")
    monkeypatch.setenv("BBRLAB_RESULTS", str(results))
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT))
    out = tmp_path / "out" / "models.ipynb"
    execute_notebook(first_cells(tmp_path), out, {"scale": "smoke", "interactive": "no"})
    page = out.read_text()
    assert "Not run, and so not on this page:" in page
    assert "measurements of sarpkaya2025/fig3a" in page
    assert ("measurements of sarpkaya2025/fig2a" in page) == (not ran)
    for model in ("fluid", "burst"):
        assert (f"the {model} model at 4 of 4 points of sarpkaya2025/fig2a" in page) == bool(ran)
    assert page.count('"alt": "') == len(ran)
