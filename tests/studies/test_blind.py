"""What the lab predicted of data that nobody here had seen: the tables that ship, and how the distance is told."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.tables import published_table
from studies.blind import agreement, agreement_table, blind_comparisons, blind_panels, blind_tables


def test_agreement_of_known_numbers():
    table = pd.DataFrame({
        "metric": ["loss"] * 3,
        "here": [0.03, 0.5, 1.0],
        "published": [0.0, 0.5, float("nan")],  # what was not published is no difference
    })  # fmt: skip
    row = agreement({"some": table, "unseen": pd.DataFrame({"metric": ["rmse"], "here": [0.1]})})
    assert row.to_dict("records") == [
        {
            "data": "some",
            "metric": "loss",
            "values": 2,
            "rms": pytest.approx(0.03 / 2**0.5),
            "largest": pytest.approx(0.03),
            "median_percent": 0.0,  # of the one that is not 0
        }
    ]


def test_what_ships_says_what_the_documentation_says():
    found = agreement(blind_tables(paths.DATA / "blind")).set_index(["data", "metric"])
    assert found.loc[("fig2b", "share_of_capacity"), ["values", "rms", "largest"]].round(3).tolist() == [
        10,
        0.016,
        0.034,
    ]
    assert found.loc[("gomez", "goodput_mbit"), "median_percent"] == pytest.approx(5, abs=1)
    shares = {
        name: found.loc[(name, "share_of_capacity"), ["values", "rms"]].round(3).tolist() for name in ("fig3b", "fig5b")
    }
    assert shares == {"fig3b": [38, 0.055], "fig5b": [39, 0.042]}
    assert found.loc[("rns", "share_of_goodput"), ["values", "rms"]].round(3).tolist() == [4, 0.023]
    assert found.loc["nest", "largest"].drop("rtt_ms_p50").max() <= 0.5


@pytest.mark.parametrize(("name", "rms"), [("fig3b", 0.044), ("fig5b", 0.016)])
def test_figs_3b_and_5b_were_predicted_where_they_were_not_known(name, rms):
    table = blind_tables(paths.DATA / "blind")[name]
    published = published_table(f"sarpkaya2025/{name}").set_index(["buffer_bdp", "bbr_flows"])["share_of_capacity"]
    cells = list(zip(table["buffer_bdp"], table["bbr_flows"], strict=True))
    assert published[cells].tolist() == table["published"].tolist()
    known = {"fig3b": {(1, 1), (2, 1), (8, 1), (8, 4)}, "fig5b": {(1, 1), (8, 1), (8, 4)}}[name]
    assert set(published.index) - set(cells) == known
    shallow = table[table["buffer_bdp"] <= 16]
    assert ((shallow["here"] - shallow["published"]) ** 2).mean() ** 0.5 == pytest.approx(rms, abs=0.0005)


def test_what_ships_is_drawn_as_its_panels_say():
    folder = paths.DATA / "blind"
    panels = blind_panels(folder)
    figure = blind_comparisons(blind_tables(folder), panels)
    assert [axes.get_title() for axes in figure.axes] == [panel.title for panel in panels]
    series = {axes.get_title(): axes.get_legend_handles_labels()[1] for axes in figure.axes}
    assert series["Five flows against five, 100 Mbit/s"] == [
        "Jain's index", "lost over delivered", "queue occupancy", "utilisation",
    ]  # fmt: skip
    assert series["Two BBRv3 flows, 1 Gbit/s (Mbit/s)"] == ["flow of 20 ms", "flow of 100 ms"]
    plt.close(figure)


def test_wrong_panels_are_named(tmp_path):
    (tmp_path / "panels.yaml").write_text("- {table: a, title: b, by: c, scale: cubic}\n")
    with pytest.raises(UserError, match=r"panels\.yaml: 0\.scale: .* \(found 'cubic'\)"):
        blind_panels(tmp_path)


def test_the_table_of_agreement_says_what_it_shows():
    """A page shows it as it is: metrics by their names, no row numbers, large numbers in full."""
    found = pd.DataFrame({"data": ["cao"], "metric": ["retransmits"], "values": [64], "rms": [12153.548], "largest": [0.01234],
                          "median_percent": [float("nan")]})  # fmt: skip
    html = agreement_table(found).to_html()
    assert "12,154" in html and "0.0123" in html and "–" in html
    assert "retransmits (packets)" in html and "median_percent" not in html and "row_heading" not in html
