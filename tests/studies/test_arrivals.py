"""When packets come to a full queue, by the captures of a run."""

import pandas as pd
import pytest

from bbrlab.run.capture import Capture
from studies.arrivals import arrivals, by_port


def test_a_line_for_each_sender():
    table = pd.DataFrame({"port": [1, 1, 2], "fraction": [0.05, 0.95, 0.31], "lost": [True, False, False]})
    found = by_port(table)
    assert list(found["packets"]) == [2, 1] and list(found["lost"]) == [0.5, 0]
    assert found.loc[1, "tenth 0"] == found.loc[1, "tenth 9"] == 0.5 and found.loc[2, "tenth 3"] == 1


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize(("rtt_ms", "tenth"), [(40.05, "tenth 0"), (41.15, "tenth 9")])
def test_cubic_comes_at_the_fraction_of_its_rtt_and_bbr_at_any(run_scenario, rtt_ms, tenth):
    result = run_scenario(
        network={"rate_mbit": 10, "rtt_ms": rtt_ms, "buffer": {"packets": 33}},
        hosts={"noise": "off", "segmentation": "nic"},
        flows=[{"cca": "bbr1"}, {"cca": "cubic"}],
        duration_s=60,
        window_s=[20, 60],
        capture=Capture(("bottleneck", "hosts")),
    )
    assert not result.failed
    found = by_port(arrivals(result.folder, 10, 33)).sort_values("packets")
    cubic, bbr = found.iloc[0], found.iloc[-1]
    tenths = [name for name in found.columns if name.startswith("tenth")]
    assert len(found) == 2 and cubic[tenth] > 0.7 and bbr[tenths].max() < 0.2
    assert 0 < cubic["lost"] < 0.1
