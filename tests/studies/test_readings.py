"""The readings of BBRv2's and BBRv3's drafts: what the rule in docs/explanation/bbr_defaults.md chose from the runs, and what the kernel has."""

import re
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.base.tables import published_table
from bbrlab.run.run import run_point
from bbrlab.scenario.load import load_scenario, points_of
from studies import readings

SOURCE = (paths.KERNELS / "bbr" / "tcp_bbr_sets.c").read_text(encoding="utf-8")
WORDS = {"BBRM_AFTER_CUT_UP": "after-cut-up", "BBRM_ALWAYS": "always", "BBRM_LOSSY_REFILL": "lossy-refill",
         "BBRM_PROBES_TOO": "probes-too"}  # fmt: skip


def default_of(cca):
    """(lower_bounds, filter_after_probe_rtt) of a profile in the kernel's source."""
    body = re.search(rf'\.ops\.name = "{cca}",(.*?)\n\t\}},\n', SOURCE, re.DOTALL)[1]
    found = dict(re.findall(r"\.(lower_bounds|filter_after_probe_rtt) = (\w+)", body))
    letter = readings.READINGS["drafts"]
    return tuple(WORDS[found[k]] if k in found else v
                 for k, v in zip(("lower_bounds", "filter_after_probe_rtt"), letter, strict=True))  # fmt: skip


@pytest.mark.parametrize(("cca", "reading"), [("bbr2", "drafts"), ("bbr3", "cut")])
def test_the_rule_chose_the_default_of_before(cca, reading):
    assert readings.chosen(cca) == reading
    assert default_of(f"{cca}_before") == readings.READINGS[reading]


def test_todays_defaults_and_the_drafts_profiles_have_the_letter():
    """As the released code behaves, which refutes what the rule chose for BBRv3."""
    for profile in ("bbr2", "bbr2_draft", "bbr3", "bbr3_drafts", "bbr3_06"):
        assert default_of(profile) == readings.READINGS["drafts"]


@pytest.mark.parametrize("name", ["readings_50mbit", "readings_loss", "readings_queue", "readings_shares"])
def test_the_readings_depart_from_the_profiles_of_before(name):
    """So that they ask what they asked when the rule chose, whatever the defaults are since then."""
    for point in points_of(load_scenario(paths.SCENARIOS / "questions" / f"{name}.yaml")):
        flow = point.scenario.flows[0]
        reading = next(r for r in sorted(readings.READINGS, key=len, reverse=True) if f"-{r}" in point.values["case"])
        assert (flow.params["lower_bounds"], flow.params["filter_after_probe_rtt"]) == readings.READINGS[reading]
        assert flow.params["profile"] == {"bbr2": "v2alpha-before", "bbr3": "v3-before"}[flow.cca]


def test_every_cell_of_the_rule_is_there():
    cells = readings.shares()
    assert len(cells) == (4 + 4 + 2) * 2 * 20  # readings of BBRv2 and of BBRv3; BBRv2's with `always`; two rivals
    assert cells["published"].notna().all()
    table = readings.judged().set_index(["cca", "reading"])
    assert set(table.loc["bbr2"].index) == set(table.loc["bbr3"].index) == set(readings.READINGS)
    assert not table.loc[("bbr3", "rotates"), "kept"]
    assert not table.loc[("bbr2", "bounds"), "kept"]


def test_which_panels_decide_is_data_and_no_module_names_a_paper():
    assert len(readings.panels()) == 4
    for (cca, rival), figure in readings.panels().items():
        flows = load_scenario(paths.SCENARIOS / f"{figure}.yaml").flows
        assert [flow.cca for flow in flows] == [cca, rival], figure
    papers = {p.name for p in paths.SCENARIOS.iterdir() if p.is_dir()} - {"questions"}
    source = Path(readings.__file__).read_text(encoding="utf-8")
    assert [paper for paper in papers if paper in source] == []


def test_nothing_is_told_apart_where_nothing_was_chosen_by():
    """A row of another algorithm's points would make the counts look better."""
    table = readings.elsewhere()
    assert set(table.index.droplevel("paper")) == {
        ("bbr3", "drafts"),
        ("bbr3", "narrow"),
        ("bbr2", "refill"),
        ("bbr2", "cut"),
    }
    assert (table["moved"] == 0).all()
    rows = published_table("questions/readings_elsewhere")
    assert table.to_numpy().sum() == len(rows), "every outcome is counted"
    with_it = rows[rows["flows"] == rows["cca"]].groupby(["cca", "reading"])[["figure", "point"]].apply(set_of_points)
    every = rows.groupby(["cca", "reading"])[["figure", "point"]].apply(set_of_points)
    assert with_it.equals(every)
    shares = rows[(rows["metric"] == "share_of_capacity") & (rows["reading"] == "drafts")]["difference"].abs()
    assert round(shares.max(), 2) == 0.05 and shares.median() <= 0.0005, "as the documentation says"


def set_of_points(rows):
    return set(rows.itertuples(index=False, name=None))


def test_the_cells_50mbit_of_50_mbit_are_those_that_were_run():
    cells = readings.cells_50mbit()
    points = points_of(load_scenario(paths.SCENARIOS / "questions" / "readings_50mbit.yaml"))
    names = {f"{c.cca}-{c.reading}-{c.bbr_flows}-{c.buffer_bdp}" for c in cells.itertuples()}
    assert names == {point.values["case"] for point in points}
    table = readings.table_50mbit()
    assert len(table) == 2 * (1 + 4)
    errors = readings.errors_50mbit(cells)
    one = cells[(cells["cca"] == "bbr2") & (cells["reading"] == "drafts")]
    assert errors["bbr2", "drafts"] == pytest.approx(
        float(((one["share_of_capacity"] - one["published"]) ** 2).mean() ** 0.5)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("cca", "rival", "reading", "buffer_bdp", "bbr_flows"), [
    ("bbr3", "cubic", "cut", 8, 1), ("bbr2", "reno", "drafts", 2, 4), ("bbr3", "cubic", "narrow", 32, 8)])  # fmt: skip
def test_a_cell_again_is_the_same(tmp_path, cca, rival, reading, buffer_bdp, bbr_flows):
    """The lab's kernel still gives the shares by which the default was chosen, to the last digit."""
    scenario = load_scenario(paths.SCENARIOS / "questions" / "readings_shares.yaml")
    wanted = {"case": f"{cca}-{rival}-{reading}", "network.buffer.bdp": buffer_bdp, "flows.0.count": bbr_flows}
    point = next(p for p in points_of(scenario) if all(p.values[k] == v for k, v in wanted.items()))
    share = run_point(point, 1, tmp_path / "run")["groups"][0]["share_of_capacity"]
    table = published_table("questions/readings_shares").set_index(
        ["cca", "rival", "reading", "buffer_bdp", "bbr_flows"]
    )
    assert table.loc[(cca, rival, reading, buffer_bdp, bbr_flows), "share_of_capacity"] == share
