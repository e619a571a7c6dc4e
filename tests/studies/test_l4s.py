"""The table and the figure of a scalable flow beside others."""

from __future__ import annotations

import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.scenario.load import load_scenario, points_of
from studies.l4s import COLUMNS, QUEUES, RIVALS, coexistence, coexistence_picture, main, means

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
    marks = [line for line in waits.get_lines() if line.get_marker() in ("o", "s")]
    assert [len(line.get_xdata()) for line in marks] == [3, 3, 2, 2] and set(marks[0].get_xdata()) == {3.0}


def test_seeds_are_means_with_intervals():
    """Three seeds with 0.4, 0.5 and 0.6: 0.5, and Student's 4.303 times 0.1 over the root of 3."""
    seeds = [coexistence(runs()).assign(seed=seed, share_of_capacity=0.3 + seed / 10) for seed in (1, 2, 3)]
    table = pd.concat(seeds, ignore_index=True)
    found = means(table, "share_of_capacity")
    assert found["mean"].tolist() == [pytest.approx(0.5)] * len(found) and set(found["seeds"]) == {3}
    assert found["half"].tolist() == [pytest.approx(4.303 * 0.1 / 3**0.5, rel=1e-3)] * len(found)
    shares = coexistence_picture(table).axes[0]
    assert interval_drawn(shares) == (pytest.approx(0.5 - 0.2484, abs=1e-3), pytest.approx(0.5 + 0.2484, abs=1e-3))
    assert interval_drawn(coexistence_picture(table[table["seed"] < 3]).axes[0]) == (0, 1), (
        "a share is at most the whole"
    )


def interval_drawn(axes):
    """The ends of the first one."""
    (bars,) = axes.containers[0].lines[2]
    (low, _), (high, _) = bars.get_segments()[0]
    return low, high


def test_a_folder_without_runs_is_told_in_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["l4s", str(tmp_path), "--out", str(tmp_path / "x.png")])
    with pytest.raises(SystemExit):
        main()
    assert f"{tmp_path / 'runs.parquet'}: is not there; give the folder" in capsys.readouterr().err
