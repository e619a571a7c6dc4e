"""The cells of every paper's notebook run to their end on made-up runs: without guests and without Jupyter's kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from bbrlab.base import paths
from bbrlab.claims.statement_verdict import verdict_tables_by_file
from bbrlab.results.figures import figures_at, runs_of
from bbrlab.results.judged import write_verdicts
from bbrlab.results.tables import figure_table, tidy, write_table
from tests.made_up_runs import made_up_run

PAPERS = sorted(p.name for p in paths.SCENARIOS.iterdir() if (paths.ROOT / "notebooks" / f"{p.name}.ipynb").is_file())


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """What a campaign of every paper leaves at scale smoke."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BBRLAB_RESULTS", str(folder))
        tables = {}
        for figure in figures_at("smoke"):
            for run in runs_of(figure, results=folder):
                made_up_run(run.point, run.seed, run.folder)
            tables[figure.id] = figure_table(figure)
            write_table(tables[figure.id], folder / "smoke" / f"{figure.id}.parquet")
        write_table(tidy(tables), folder / "smoke" / "points.parquet")
        for part, claims, statements in verdict_tables_by_file(tables, "smoke", folder):
            judged = [folder / "smoke" / f"{id}.parquet" for id in tables if id.startswith(part.replace(".", "/"))]
            write_verdicts(claims, statements, folder / "smoke" / f"{part}claims.parquet", judged)
    return folder


@pytest.mark.parametrize("name", [*PAPERS, "overview"])
def test_its_cells_run(results, monkeypatch, capsys, name):
    monkeypatch.setenv("BBRLAB_RESULTS", str(results))
    cells = json.loads((paths.ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        exec(compile("".join(cell["source"]), f"{name}.ipynb, cell {number}", "exec"), names)  # noqa: S102
        if "parameters" in cell.get("metadata", {}).get("tags", []):
            names["scale"] = "smoke"
    assert names["scale"] == "smoke"
    plt.close("all")
    assert capsys.readouterr().out
