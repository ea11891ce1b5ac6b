"""What is outside [0, 1], or on the wrong side of an edge, by rounding only."""

import numpy as np
import pytest

from epistemic_calibration import metrics


def test_probabilities_outside_by_rounding_are_clipped():
    y, exact = [0, 1, 1], np.array([[0.0, 0.5], [1.0, 0.5], [0.2, 0.6]])
    rounded = exact + np.array([[-1e-17, 0], [2.3e-16, 0], [0, 0]])
    kept = rounded.copy()
    assert rounded.min() < 0 and rounded.max() > 1
    found, expected = metrics.Sample(y, rounded), metrics.Sample(y, exact)
    np.testing.assert_array_equal(found.hypotheses, expected.hypotheses)
    # What the user has is not written to.
    np.testing.assert_array_equal(rounded, kept)
    assert metrics.log_loss(y, rounded[:, 0]) == metrics.log_loss(y, exact[:, 0])
    reported = metrics.Sample(y, exact, epistemic_uncertainty=[-1e-18, 0.1, 2.0]).reported
    np.testing.assert_array_equal(reported, [0, 0.1, 2.0])


@pytest.mark.parametrize("value", [-2e-12, 1 + 2e-12, np.nan, np.inf])
def test_probabilities_further_outside_are_refused(value):
    with pytest.raises(ValueError, match=r"hypotheses must be in \[0, 1\]"):
        metrics.Sample([0, 1], [[0.5], [value]])
    with pytest.raises(ValueError, match=r"y_prob must be in \[0, 1\]"):
        metrics.brier_score([0, 1], [0.5, value])
    # float32 is not rounded that far.
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        metrics.Sample([0], np.nextafter(np.float32([[1]]), np.float32(2)))


def test_a_computed_grid_is_the_grid():
    # 1 − k/10 in place of (10 − k)/10: some are a little below the edge they are meant to be.
    k = np.arange(11)
    exact, computed = k / 10, 1 - (10 - k) / 10
    assert (computed < exact).any()
    y = k % 2
    for n_bins in (2, 5, 10):
        assert metrics.expected_calibration_error(y, computed, n_bins=n_bins) == pytest.approx(
            metrics.expected_calibration_error(y, exact, n_bins=n_bins), abs=1e-12
        )
        for rows in (exact, exact.astype(np.float32), computed):
            bins = metrics.assign_bins(rows[:, None], n_bins=n_bins, binning="grid")
            np.testing.assert_array_equal(bins, np.minimum(k * n_bins // 10, n_bins - 1))


def test_level_sets_of_computed_rows():
    # One prediction of 0.3 whose frequency is 0.5.
    assert metrics.true_epistemic_calibration_error([0, 1], [[0.1 + 0.2], [0.3]]) == pytest.approx(
        0.04
    )
    assert metrics.true_epistemic_calibration_error([0, 1], [[0.3], [0.3 + 1e-9]]) > 0.28
