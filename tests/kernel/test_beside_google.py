"""BBRv2 and BBRv3 beside Google's released code: the tables of data/google, and runs again of its traces, state by state."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bbrlab.base.tables import published_table
from bbrlab.measure.bbr_record import STATES
from bbrlab.measure.phases import phases
from docs._make import beside_google as beside_google_page
from docs._make.beside_google import (
    by_chance,
    cells,
    cells_table,
    conditions_table,
    in_errors,
    largest_group_bias,
    pages,
    queues,
)  # fmt: skip
from studies.beside_google import CELL, LOSS_CELL, SEEDS
from studies.google_traces import (
    TRACES,
    bound_moves,
    first_parting_s,
    google_trace,
    index,
    scenario_of,
    stays,
    what_it_does,
)  # fmt: skip
from tests.recorded import skip_for_another_guest


def run_of(run_scenario, trace: str, **changes) -> pd.DataFrame:
    """Samples of a run of a trace's scenario."""
    content = scenario_of(trace) | changes
    return run_scenario(seed=content.pop("trials"), **content).samples


def gain_changes(table: pd.DataFrame, column: str) -> pd.Series:
    """Time of each change of the pacing gain, by the gain in 1/256 that follows."""
    with_gain = table[table[column] > 0]
    changes = with_gain[with_gain[column] != with_gain[column].shift()]
    return changes.set_index((changes[column] * 256).round().astype(int))["time_s"]


@pytest.mark.guest
def test_bbr3_alone_is_the_same_to_the_packet(run_scenario):
    """Until 1.11 s, where a packet leaves one place earlier; its window until UP's second round. With the profile of before,
    Startup ends a round later."""
    skip_for_another_guest()
    google = google_trace("v3_alone_startup")
    ours = run_of(run_scenario, "v3_alone_startup")
    assert set(google["time_s"].round(3)) <= set(ours["time_s"].round(3)), "samples at the same instants"
    parting = first_parting_s(ours, google)
    assert min(parting.values()) >= 1.11, parting
    assert parting["cwnd"] > 3.8
    mine, theirs = gain_changes(ours, "bbr_pacing_gain"), gain_changes(google, "pacing_gain")
    assert list(mine.index) == list(theirs.index) == [710, 88, 232, 256, 320, 232, 256]
    assert np.abs(mine.to_numpy() - theirs.to_numpy())[1:].max() <= 0.0015
    flows = [{"cca": "bbr3", "params": {"profile": "v3-before"}}]
    before = run_of(run_scenario, "v3_alone_startup", flows=flows)
    assert min(first_parting_s(before, google).values()) < 0.9


@pytest.mark.guest
def test_bbr2_alone_has_the_states_of_googles(run_scenario):
    """In 40 s: no ProbeRTT, as many probes (one more or less), each state as long to a sample."""
    google = google_trace("v2_alone_40s")
    ours = run_of(run_scenario, "v2_alone_40s")
    mine, theirs = stays(ours), stays(google)
    assert set(mine.index) == set(theirs.index) == set(STATES) - {"ProbeRTT"}
    assert (mine["count"] - theirs["count"]).abs().max() <= 1, (mine, theirs)
    # CRUISE's length is drawn, and Startup begins before the first ACK, when Google's tells nothing yet.
    same = ["Drain", "DOWN", "REFILL", "UP"]
    assert (mine["median"] - theirs["median"])[same].abs().max() <= 0.011, (mine, theirs)
    drain = [phases(table).set_index("state")["start_s"]["Drain"] for table in (ours, google)]
    assert drain[0] == pytest.approx(drain[1], abs=0.011)
    for table in (ours, google):
        moves = bound_moves(table)
        assert moves["falls_per_min"] == moves["rises_per_min"] == 0


@pytest.mark.guest
@pytest.mark.parametrize(
    ("panel", "flows", "buffer_bdp"),
    [("3a", 1, 1), *(pytest.param(panel, 8, bdp, marks=pytest.mark.slow) for panel, bdp in (("3a", 1), ("3c", 2)))],
)
def test_bbr2_in_small_buffers_has_the_share_of_googles(run_scenario, panel, flows, buffer_bdp):
    """Within two standard deviations of Google's over seeds. With fractions of packets in what is in flight at the next departure
    it gets 0.05 to 0.11 more."""
    table = published_table("google/shares").set_index(CELL)
    google = table.loc[(f"sarpkaya2025/fig{panel}", buffer_bdp, flows)]
    other = {"3a": "cubic", "3c": "reno"}[panel]
    result = run_scenario(flows=[{"cca": "bbr2", "count": flows}, {"cca": other}], network__rate_mbit=10, network__rtt_ms=40,
                          network__buffer__bdp=buffer_bdp, hosts__segmentation="nic", hosts__noise="off", duration_s=1000,
                          window_s=[600, 1000], sample_hz=1)  # fmt: skip
    share = result.summary["groups"][0]["share_of_capacity"]
    assert share == pytest.approx(google["google"], abs=2 * google["google_sd"])


def test_the_traces_are_as_their_index_says():
    assert {path.stem for path in TRACES.glob("*.parquet")} == set(index())
    for name, row in index().items():
        trace = google_trace(name)
        assert len(trace) == row["rows"]
        assert trace["time_s"].max() == pytest.approx(row["duration_s"], abs=2 / row["sample_hz"])
        of_bbr = trace[trace["pacing_gain"] > 0]
        assert of_bbr["bbr_state"].notna().all() and len(of_bbr) > 0.9 * (trace["flow"] == 0).sum()


def test_the_page_is_up_to_date():
    for path, text in pages().items():
        assert path.read_text(encoding="utf-8") == text, "run: make format"


def test_ours_were_run_in_every_cell_of_googles():
    """A mean over some cells is no comparison."""
    ours, google = published_table("google/ours"), published_table("google/shares")
    assert set(ours[CELL].itertuples(index=False)) == set(google[CELL].itertuples(index=False))
    assert not ours.duplicated([*CELL, "seed"]).any() and set(ours["seed"]) == set(range(1, SEEDS + 1))


def test_ours_were_run_in_every_setting_of_googles():
    """With random loss with the same seeds."""
    keys = [*LOSS_CELL, "seed"]
    google = published_table("google/loss").query("code == 'google'").astype({"seed": int})
    ours = published_table("google/ours_loss")
    assert sorted(ours[keys].itertuples(index=False)) == sorted(google[keys].itertuples(index=False))


def test_googles_states_are_those_of_the_traces():
    rows = published_table("google/states").set_index(["trace", "code"])
    assert set(rows.index) == {(trace, code) for trace in index() for code in ("google", "ours")}
    for trace in index():
        table = google_trace(trace)
        row = what_it_does(table, table["version"].max() > 0)
        assert rows.loc[(trace, "google"), list(row)].to_list() == pytest.approx(list(row.values()), nan_ok=True)


def test_a_difference_in_standard_errors():
    """Three seeds of each side with a standard deviation of 3: an error of 6**0.5 of the difference."""
    cell = {"cca": "bbr3", "loss_percent": 1.0, "google": 75.0, "google_sd": 3.0, "google_seeds": 3}
    table = pd.DataFrame([cell | {"ours": ours, "ours_sd": 3.0, "ours_seeds": 3} for ours in (70.0, 80.0)])
    assert in_errors(table).to_list() == pytest.approx([-5 / 6**0.5, 5 / 6**0.5])
    line = conditions_table(table, queues()).splitlines()[2]
    assert line == "| BBRv3, 1 % lost | 75.0 ± 1.7 | 70.0 ± 1.7 | 3 | **-2.0, missed** |"


def test_a_difference_of_known_size_is_what_the_page_says():
    table = cells()
    table["ours"] = table["google"] + 0.1 * (table["bbr_flows"] == 8)
    part = table[table["figure"] == "sarpkaya2025/fig5c"]
    assert largest_group_bias(part, "ours") == (pytest.approx(0.1), "N = 8")
    line = next(one for one in beside_google_page.panels_table(table).splitlines() if one.startswith("| Fig. 5c "))
    rmse = 0.1 * (part["bbr_flows"] == 8).mean() ** 0.5
    assert f"**{rmse:.3f}**" in line and "0.006, missed" in line and "+0.100 (N = 8), missed" in line
    assert len(cells_table(table).splitlines()) == 2 + len(table)


def test_what_seeds_give_by_chance():
    """Three seeds of each side with a standard deviation of 0.03: the root of twice 0.03 squared over three."""
    equal = {"google_sd": 0.03, "google_seeds": 3, "ours_sd": 0.03, "ours_seeds": 3}
    assert by_chance(pd.DataFrame([equal] * 4), "ours") == pytest.approx(0.03 * (2 / 3) ** 0.5)
    generator = np.random.default_rng(1)
    google, ours = generator.normal(0.5, 0.03, (2, 4000, 3)).mean(axis=2)
    assert beside_google_page.error(pd.DataFrame({"google": google, "ours": ours}), "ours") == pytest.approx(
        0.03 * (2 / 3) ** 0.5, rel=0.03
    )


def test_the_aim_of_each_panel():
    """By the seeds of Google's and of what shipped before, as issue 40 has it."""
    aims = {name: round(by_chance(part, "before"), 3) for name, part in cells().groupby("figure")}
    panels = {"3a": 0.013, "3b": 0.023, "3c": 0.030, "5a": 0.020, "5b": 0.017, "5c": 0.006}
    assert aims == {f"sarpkaya2025/fig{panel}": aim for panel, aim in panels.items()}


def test_every_cell_of_googles_is_a_published_one():
    """The published share beside Google's is that of the panel's own table."""
    for figure, part in published_table("google/shares").groupby("figure"):
        panel = published_table(figure).set_index(["bbr_flows", "buffer_bdp"])["share_of_capacity"]
        for row in part.itertuples():
            assert row.published == pytest.approx(panel[row.bbr_flows, row.buffer_bdp], abs=0.0006)
