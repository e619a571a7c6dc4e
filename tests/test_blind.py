"""What the lab predicted of data that nobody here had seen: the tables that ship, and how the distance is told."""

import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.report.plots.blind import agreement, blind_tables


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
