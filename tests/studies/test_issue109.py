"""Draft issue 109 beside the default: the runs that ship, and what is made of them."""

import pandas as pd
import pytest

from bbrlab.base.tables import published_table
from bbrlab.publish.compare import MOVED
from bbrlab.results.figures import figures_at
from studies.issue109 import COLUMNS, LATE, OF_STATES, READINGS, effects, of_figures, picture, runs

FIGURES = ["questions/issue109", "questions/issue109_late"]


def made_up() -> dict[str, pd.DataFrame]:
    """Tables of both scenarios at quick: a late-comer has 0.3, with issue 109 0.2; all else is one number that scatters by seed."""
    tables = {}
    for figure in figures_at("quick", FIGURES):
        rows = []
        for point in figure.points:
            for seed in range(1, 4):
                for group, flow in enumerate(point.scenario.flows):
                    numbers = dict.fromkeys([*COLUMNS, *OF_STATES], 0.9 + seed / 1000)
                    if group == 1 and figure.id.endswith(LATE):
                        numbers["share_of_goodput"] = (0.2 if "issue109-" in point.label else 0.3) + seed / 1000
                        numbers["queue_ms_p50"] = float("nan")  # a run's stand at its first group
                    rows.append({"point": point.label, "seed": seed, "ok": True, "group": group, "cca": flow.cca,
                                 **point.conditions, **point.values, **numbers})  # fmt: skip
        tables[figure.id] = pd.DataFrame(rows)
    return tables


def test_a_known_difference_comes_out(monkeypatch):
    monkeypatch.setattr("studies.issue109.published_table", lambda name: of_figures(made_up()))
    table = runs()
    found = effects(table).set_index(["point", "metric"])
    late = found.loc[[("late, 1 BDP", "share_of_goodput"), ("late, 16 BDP", "share_of_goodput")]]
    assert late["difference"].tolist() == [pytest.approx(-0.1)] * 2
    assert set(late["outcome"]) == {MOVED}
    assert found.drop(late.index)["difference"].abs().max() < 1e-9
    assert found["a_mean"].notna().all()
    assert len(picture(table).axes) == 4


def test_the_runs_that_ship_are_the_scenarios_at_quick():
    shipped = published_table("questions/issue109")
    wanted = of_figures(made_up())
    keys = ["question", "reading", "start_s", "buffer_bdp"]
    assert set(shipped[keys].itertuples(index=False)) == set(wanted[keys].itertuples(index=False))
    seeds = {figure.id.endswith(LATE): figure.trials for figure in figures_at("quick", FIGURES)}
    for place, part in shipped.groupby(keys):
        assert sorted(part["seed"]) == list(range(1, seeds[place[0] == LATE] + 1))
    assert set(shipped["reading"]) == set(READINGS)
    assert shipped[COLUMNS].notna().all(axis=None)
