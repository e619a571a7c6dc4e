"""Numbers of several points of a figure: bbrlab/claims/series.py."""

from __future__ import annotations

import warnings

import numpy as np

from bbrlab.claims.series import grouped_rms


def test_an_error_over_groups_is_not_known_while_a_point_was_not_run():
    """And nothing is said about it on the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(grouped_rms(np.array([0.1, np.nan]), np.array([1.0, np.nan])))
    assert grouped_rms(np.array([3.0, 4.0, 5.0]), np.array([1, 1, 2])) == (np.sqrt(12.5) + 5) / 2
