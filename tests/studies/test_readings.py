"""The readings of BBRv2's and BBRv3's drafts: what the rule in docs/explanation/bbr_defaults.md chose from the runs, and what the kernel has."""

import re

import pytest

from bbrlab.base import paths
from bbrlab.base.tables import published_table
from bbrlab.run.run import run_point
from bbrlab.scenario.load import load_scenario, points_of

SOURCE = (paths.KERNELS / "bbr" / "tcp_bbr_sets.c").read_text(encoding="utf-8")
# What a reading's name stands for: lower_bounds, filter_after_probe_rtt (docs/explanation/bbr_defaults.md).
READINGS = {
    "drafts": ("outside-probes", "kept"), "refill": ("lossy-refill", "kept"), "cut": ("outside-probes", "after-cut-up"),
    "narrow": ("lossy-refill", "after-cut-up"), "bounds": ("probes-too", "kept"), "bounds-cut": ("probes-too", "after-cut-up"),
    "rotates": ("outside-probes", "always"), "refill-rotates": ("lossy-refill", "always"), "wide": ("probes-too", "always"),
}  # fmt: skip
WORDS = {"BBRM_AFTER_CUT_UP": "after-cut-up", "BBRM_ALWAYS": "always", "BBRM_LOSSY_REFILL": "lossy-refill",
         "BBRM_PROBES_TOO": "probes-too"}  # fmt: skip


def default_of(cca):
    """(lower_bounds, filter_after_probe_rtt) of a profile in the kernel's source."""
    body = re.search(rf'\.ops\.name = "{cca}",(.*?)\n\t\}},\n', SOURCE, re.DOTALL)[1]
    found = dict(re.findall(r"\.(lower_bounds|filter_after_probe_rtt) = (\w+)", body))
    letter = READINGS["drafts"]
    return tuple(WORDS[found[k]] if k in found else v
                 for k, v in zip(("lower_bounds", "filter_after_probe_rtt"), letter, strict=True))  # fmt: skip


@pytest.mark.parametrize(("cca", "reading"), [("bbr2", "drafts"), ("bbr3", "cut")])
def test_the_rule_chose_the_default_of_before(cca, reading):
    assert default_of(f"{cca}_before") == READINGS[reading]


def test_todays_defaults_and_the_drafts_profiles_have_the_letter():
    """As the released code behaves, which refutes what the rule chose for BBRv3."""
    for profile in ("bbr2", "bbr2_draft", "bbr3", "bbr3_drafts", "bbr3_06"):
        assert default_of(profile) == READINGS["drafts"]


@pytest.mark.parametrize("name", ["readings_50mbit", "readings_loss", "readings_queue", "readings_shares"])
def test_the_readings_depart_from_the_profiles_of_before(name):
    """So that they ask what they asked when the rule chose, whatever the defaults are since then."""
    for point in points_of(load_scenario(paths.SCENARIOS / "questions" / f"{name}.yaml")):
        flow = point.scenario.flows[0]
        reading = next(r for r in sorted(READINGS, key=len, reverse=True) if f"-{r}" in point.values["case"])
        assert (flow.params["lower_bounds"], flow.params["filter_after_probe_rtt"]) == READINGS[reading]
        assert flow.params["profile"] == {"bbr2": "v2alpha-before", "bbr3": "v3-before"}[flow.cca]


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
