"""Records of ACKs: of every algorithm, equal to what samples have, and without an effect on the run."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from bbrlab.base import files
from tests.kernel.test_bbr_robustness import selftest

pytestmark = pytest.mark.guest

CCAS = ["bbr1", "bbr2", "bbr3", "cubic", "dctcp", "reno"]
# A short queue that marks and drops, and an outage, so that there are timeouts.
PATH = {
    "flows": [{"cca": cca} for cca in CCAS],
    "network__rate_mbit": 20,
    "network__buffer__bdp": 0.5,
    "network__loss": 0.003,
    "duration_s": 20,
    "window_s": [5, 20],
    "sample_hz": 50,
}
STATE = ["ca_state", "slow_start", "bbr_pacing_gain", "bbr_cwnd_gain", "bbr_state", "bbr_ack_phase"]


@pytest.fixture(scope="module")
def all_acks(run_scenario):
    return run_scenario(trace="acks", **PATH)


def test_what_is_recorded_is_what_is_sampled(all_acks):
    """Each sample's counters are those of the flow's latest ACK, whatever its algorithm; and each algorithm is there."""
    acks, samples = all_acks.acks, all_acks.samples
    assert not all_acks.failed
    assert sorted(acks["flow"].unique()) == list(range(len(CCAS)))
    names = ["delivered", "delivered_ce", "bytes_acked", "srtt_us", "min_rtt_us"]
    sampled = samples[samples["flow"] >= 0].sort_values("time_s", kind="stable")
    # A sample at the very instant of an ACK comes before or after it.
    both = pd.merge_asof(
        sampled, acks, on="time_s", by="flow", suffixes=("", "_acked"), allow_exact_matches=True
    ).dropna(subset=["delivered_acked"])
    apart = both[~both["time_s"].isin(set(acks["time_s"]))]
    assert len(apart) > 1000
    for name in names:
        assert (apart[name] == apart[f"{name}_acked"]).all(), name
    for flow, cca in enumerate(CCAS):
        mine = acks[acks["flow"] == flow]
        assert mine["bbr_bw"].notna().all() == cca.startswith("bbr"), cca
        assert mine["dctcp_alpha"].notna().all() == (cca == "dctcp"), cca
        assert mine["delivered"].is_monotonic_increasing
        rated = mine[(mine["rate_delivered"] > 0) & (mine["rate_interval_us"] > 0)]
        assert len(rated) > 0.9 * len(mine)
        # In all: what the ACKs say of themselves adds up to what is counted.
        assert mine["acked"].iloc[1:].sum() == mine["delivered"].iloc[-1] - mine["delivered"].iloc[0], cca


def test_a_trace_changes_no_byte_of_a_run(all_acks, run_scenario):
    plain = run_scenario(**PATH)
    assert files.sha256(plain.folder / "samples.parquet") == files.sha256(all_acks.folder / "samples.parquet")


def test_changes_are_those_of_all_acks_at_which_a_state_changes(all_acks, run_scenario):
    changes = run_scenario(trace="changes", **PATH)
    assert not changes.failed
    rows = all_acks.acks
    before = rows.groupby("flow")[STATE].shift()
    changed = ~((rows[STATE] == before) | (rows[STATE].isna() & before.isna())).all(axis=1)
    first = ~rows["flow"].duplicated()
    wanted = rows[changed | first].reset_index(drop=True)
    pd.testing.assert_frame_equal(wanted, changes.acks)
    assert 100 < len(wanted) < len(rows) / 10


def test_timeouts_are_recorded_when_they_happen(run_scenario):
    """After an outage longer than the RTO: each has its row, in state Loss, without a rate sample."""
    changes = [{"at_s": 5, "loss": 0.9999}, {"at_s": 7, "loss": 0.0}]
    run = run_scenario(trace="acks", **PATH | {"network__loss": 0.0, "network__changes": changes, "duration_s": 12, "window_s": [1, 12]})  # fmt: skip
    timeouts = run.acks[run.acks["event"] == 1]
    assert set(timeouts["flow"]) == set(range(len(CCAS)))
    assert (timeouts["ca_state"] == 4).all()
    assert (timeouts[["rate_delivered", "rate_interval_us", "rtt_us"]] == -1).all(axis=None)
    assert timeouts["time_s"].between(5, 9).any()
    rtos = timeouts.groupby("flow")["rto_us"].apply(list)
    assert all(np.array(r).min() >= 200_000 for r in rtos)


def test_a_link_of_opportunities_sends_at_its_times(tmp_path):
    """1000 bytes at 10, 10, 20 and 35 ms of each 40; frames of 400: 11 at 5 ms, one at 76 ms. Times before the last, a start
    without a period, and times after the start are refused."""
    output = selftest("opportunity", tmp_path)
    assert re.findall(r"selftest refused (.*)", output) == ["True True", "True"]
    # A timer of User-Mode Linux expires up to a microsecond late, never early.
    arrived = [int(ns) // 1000 / 1000 for ns in re.findall(r"selftest arrived (-?\d+)", output)]
    assert arrived == [10.0] * 5 + [20.0] * 2 + [35.0] * 3 + [50.0, 90.0]
