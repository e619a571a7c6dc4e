"""The map of each algorithm against each."""

from __future__ import annotations

import pandas as pd
import pytest

from studies.pairs import pair_shares, pairs_map


def pairs_table():
    """Two algorithms in both orders, and beside their own; a run that failed its checks."""
    rows = []
    runs = [
        ("bbr3", "cubic", 1, 0.6, 0.3),
        ("cubic", "bbr3", 1, 0.5, 0.4),
        ("bbr3", "bbr3", 1, 0.2, 0.7),
        ("cubic", "cubic", 1, 0.4, 0.5),
    ]
    for first, second, seed, one, two in [*runs, ("bbr3", "cubic", 2, 0.1, 0.1)]:
        for group, cca, share in ((0, first, one), (1, second, two)):
            rows.append({"point": f"{first}-{second}", "seed": seed, "group": group, "cca": cca, "share_of_capacity": share,
                         "ok": seed == 1, "rate_mbit": 8, "buffer_bdp": 4})  # fmt: skip
    return pd.DataFrame(rows)


def test_pairs_are_means_over_both_orders():
    """A cell is the row's share beside the column, of runs that passed their checks."""
    shares = pair_shares(pairs_table()).set_index(["cca", "other"])["share_of_capacity"]
    assert shares.to_dict() == pytest.approx(
        {("bbr3", "bbr3"): 0.45, ("bbr3", "cubic"): 0.5, ("cubic", "bbr3"): 0.4, ("cubic", "cubic"): 0.45}
    )


def test_the_map_of_pairs_has_the_rows_share_in_each_cell():
    """Rows from above as in the scenario; a setting that was not measured has no axes."""
    table = pairs_table()
    figure = pairs_map(pd.concat([table, table.assign(rate_mbit=50, buffer_bdp=1)]))
    shown = [axes for axes in figure.axes if axes.get_visible() and axes.get_title()]
    assert [axes.get_title() for axes in shown] == ["8 Mbit/s, 4 BDP", "50 Mbit/s, 1 BDP"]
    assert [text.get_text() for text in shown[0].texts] == ["0.45", "0.50", "0.40", "0.45"]
    assert [label.get_text() for label in shown[0].get_yticklabels()] == ["BBRv3", "CUBIC"]
