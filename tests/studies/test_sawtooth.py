"""Loss epochs of a loss-based flow."""

from __future__ import annotations

import pandas as pd
import pytest

from studies.sawtooth import loss_epochs


def samples(thresholds):
    return pd.DataFrame(
        {"time_s": [10.0 * i for i in range(len(thresholds))], "flow": 1, "group": 1, "ssthresh": thresholds}
    )


def test_epochs_are_changes_of_the_threshold():
    assert list(loss_epochs(samples([2**31] * 6 + [50, 50, 40, 40]), 1)) == [60, 80]
    assert list(loss_epochs(samples([2**31] * 10), 1)) == []
    assert list(loss_epochs(samples([9, 8] * 5), 1, from_s=75)) == [80, 90]


def test_cuts_close_together_are_one_epoch():
    table = samples([100] * 6 + [50, 45, 40, 40])
    table["time_s"] = [*table["time_s"][:6], 60, 63, 66, 90]
    assert list(loss_epochs(table, 1)) == [60]


def test_other_groups_are_left_out():
    both = pd.concat([samples([100] * 8), samples([9, 8, 7, 6, 5, 4, 3, 2]).assign(group=0, flow=0)])
    assert list(loss_epochs(both, 1)) == []
    assert loss_epochs(both, 0) == pytest.approx([60, 70])
