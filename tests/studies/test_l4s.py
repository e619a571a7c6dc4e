"""The table and the figure of a scalable flow beside others."""

from __future__ import annotations

import pandas as pd

from bbrlab.base import paths
from bbrlab.scenario.load import load_scenario, points_of
from studies.l4s import COLUMNS, QUEUES, RIVALS, coexistence, coexistence_picture

CASES = ("dualpi2-cubic", "dualpi2-bbr3_ecn", "fifo-cubic")


def runs():
    rows = []
    for case in CASES:
        for rtt in (10, 40):
            for group, cca in enumerate(("dctcp1", "cubic")):
                found = dict.fromkeys(COLUMNS, 0.5) | {"group": group, "cca": cca, "seed": 1, "base_rtt_ms": rtt}
                rows.append(found | {"case": case, "ok": (case, rtt) != ("fifo-cubic", 40), "rtt_ms_mean": rtt + 3.0})
    return pd.DataFrame(rows).drop(columns=["queue", "rival"])


def test_a_case_is_a_queue_and_a_rival():
    """Runs that failed their self-checks are left out."""
    table = coexistence(runs())
    assert list(table.columns) == list(COLUMNS)
    assert set(zip(table["queue"], table["rival"], strict=True)) == {("dualpi2", "cubic"), ("dualpi2", "bbr3_ecn"), ("fifo", "cubic")}  # fmt: skip
    assert len(table) == 2 * (2 * len(CASES) - 1)


def test_every_case_of_the_study_has_its_words():
    """scenarios/l4s.yaml and the picture have the same cases."""
    cases = load_scenario(paths.ROOT / "scenarios/l4s.yaml").cases
    assert all(q in QUEUES and r in RIVALS for q, r in (case.split("-", 1) for case in cases))
    assert len(points_of(load_scenario(paths.ROOT / "scenarios/l4s.yaml"))) == 2 * len(cases)


def test_the_picture_has_both_flows_of_each_row():
    figure = coexistence_picture(coexistence(runs()))
    shares, waits = figure.axes
    assert [label.get_text() for label in shares.get_yticklabels()] == ["DualPI2 · CUBIC", "DualPI2 · BBRv3, ECN", "FIFO · CUBIC"]  # fmt: skip
    drawn = [len(line.get_xdata()) for line in waits.get_lines()]
    assert drawn == [3, 3, 2, 2] and set(waits.get_lines()[0].get_xdata()) == {3.0}
