"""A sound run hardly ever fails by chance, of few packets or many; a wrong loss is still seen."""

from __future__ import annotations

import numpy as np
import pytest

from bbrlab.measure.checks.chance import CHANCE, room
from bbrlab.scenario.schema import burst_probabilities


def law_of_lost(packets: int, share: float, burst_packets: float | None) -> np.ndarray:
    """The probability that so many of the packets are lost, by Gilbert's model, which begins without a loss."""
    begins, ends = (share, 1 - share) if burst_packets is None else burst_probabilities(share, burst_packets)
    kept, lost = np.zeros(packets + 1), np.zeros(packets + 1)
    kept[0] = 1
    for _ in range(packets):
        kept, now = kept * (1 - begins) + lost * ends, kept * begins + lost * (1 - ends)
        lost = np.concatenate(([0.0], now[:-1]))
    law: np.ndarray = kept + lost
    return law


@pytest.mark.parametrize(
    ("packets", "share", "burst_packets"),
    [(1000, 1e-5, None), (1000, 1e-3, None), (1000, 0.3, None), (2000, 0.01, 8), (2000, 0.001, 100), (2000, 0.2, 8)],
)
def test_chance_alone_fails_one_sound_run_of_150_000_at_most(packets, share, burst_packets):
    off = np.abs(np.arange(packets + 1) - packets * share)
    law = law_of_lost(packets, share, burst_packets)
    assert law.sum() == pytest.approx(1)
    assert law[off > room(packets, share, burst_packets)].sum() <= CHANCE == pytest.approx(1 / 150_000, rel=0.03)


def test_a_loss_that_is_certain_has_no_room():
    assert [room(1000, share, 8) for share in (0, 1)] == [0, 0]
