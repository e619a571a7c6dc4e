"""How near the panels that ship at full are: the errors, and the pages that have them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.base.tables import published_table
from bbrlab.results.figures import figures_at
from bbrlab.results.tables import read_figure
from docs._make import beside_google, nine_panels, readme
from docs._make import measured as measured_page
from docs._make.measured import AIMS, errors_of, shipped_errors, short
from tests.made_up import table

FIGURE = "sarpkaya2025/fig5a"


@pytest.fixture(scope="module")
def figure():
    return figures_at("full", [FIGURE])[0]


def test_errors_of_known_shares(figure):
    """Shares that are the published ones, but for a scatter of .03 over three seeds and .1 too much at 32 BDP."""
    published = published_table(FIGURE).set_index(["buffer_bdp", "bbr_flows"])["share_of_capacity"]

    def share(point, seed):
        bdp, flows = point.values["network.buffer.bdp"], point.values["flows.0.count"]
        return published[bdp, flows] + 0.03 * (seed - 2) + 0.1 * (bdp == 32)

    runs = table(figure, share, trials=3)
    found = errors_of(figure, runs)
    assert len(found.points) == 42 * 3
    assert found.rmse(16) == pytest.approx(0.02)  # the mean of .03, 0, .03
    assert found.rmse_of_means(16) == pytest.approx(0, abs=1e-12)
    assert found.rmse_of_means(np.inf) == pytest.approx(0.1 * (6 / 42) ** 0.5)
    assert [bdp for bdp, _ in found.largest(6).index] == [32] * 6
    assert found.words == "BBRv3 against CUBIC"


def test_failed_runs_and_more_seeds_are_left_out(figure):
    runs = table(figure, lambda point, seed: 0.5, trials=5)
    runs.loc[runs["seed"] == 2, "ok"] = False
    assert sorted(errors_of(figure, runs).points["seed"].unique()) == [1, 3]


def test_every_aim_is_of_a_panel_that_ships():
    assert {id for id, _, _ in AIMS} <= set(shipped_errors())
    assert "does not ship" not in measured_page.aims_table()
    assert (short(0.044), short(0.1234), short(1.5)) == ("0.044", "0.123", "1.500")


def test_how_near_the_second_laboratory_is():
    """docs/explanation/trust.md, point 7, by the results that ship."""
    runs = read_figure(paths.ROOT / "shipped/full/cao2019/fig5.parquet")
    goodput = runs[runs["ok"]].groupby(["case", "buffer_bytes", "rate_mbit", "base_rtt_ms"])["goodput_mbit"].mean()
    gain = (100 * (goodput["bbr1"] / goodput["cubic"] - 1)).rename("here").reset_index()
    both = gain.merge(published_table("cao2019/fig5"), on=["buffer_bytes", "rate_mbit", "base_rtt_ms"])
    shallow, deep = both[(both["buffer_bytes"] == 1e5) & (both["rate_mbit"] <= 250)], both[both["buffer_bytes"] == 1e7]
    assert (len(shallow), len(deep)) == (40, 64)
    words = (paths.ROOT / "docs/explanation/trust.md").read_text(encoding="utf-8")
    here = [(part["here"] - part["second_laboratory_percent"]).abs().median() for part in (shallow, deep)]
    apart = [(part["gain_percent"] - part["second_laboratory_percent"]).abs().median() for part in (shallow, deep)]
    assert f"is {here[0]:.1f} percentage points, over the 64 of Fig. 5b {here[1]:.1f}." in " ".join(words.split())
    assert f"are {apart[0]:.1f} and {apart[1]:.1f} apart" in " ".join(words.split())


def test_nine_panels_say_what_is_not_measured():
    """An empty cell is none, a part of the cells says how many, and what ships is what measured.md has of it."""
    rows = [[x.strip() for x in line.split("|")[1:-1]] for line in nine_panels.table().splitlines()[2:]]
    assert len(rows) == 9
    errors = shipped_errors()
    for row, (id, of) in zip(rows, sorted(errors.items()), strict=True):
        assert row[3] == f"**{short(of.rmse_of_means(np.inf))}**", id
        assert row[2] == (nine_panels.SAME if "BBRv1" in row[0] else nine_panels.NOT_MEASURED)
        assert row[-1] == nine_panels.NOT_MEASURED, "Google's code was run without noise only"
    cells = pd.DataFrame({"published": [0.5, 0.4], "ours": [0.6, np.nan], "google": np.nan})
    assert nine_panels.error_of(cells, "ours") == "0.100 (1)"
    assert nine_panels.error_of(cells, "google") == nine_panels.NOT_MEASURED


def test_the_readme_says_how_far_ours_are_from_googles():
    cells = beside_google.cells()
    error, number = beside_google.whole_error(cells, "bbr3")
    away = (cells["ours"] - cells["google"])[cells["figure"].str.contains("fig5")].dropna()
    assert (error, number) == (pytest.approx(float((away**2).mean()) ** 0.5), len(away))
    with pytest.raises(ValueError, match="needs one sentence"):
        readme.with_distance("no such sentence", cells)
