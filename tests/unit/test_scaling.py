"""Scaling of latents, and dead units."""

import numpy as np
import pytest

from epistemic_calibration.latents._scaling import n_dead_units, scale_latents


def test_scaling_leaves_dead_units_as_they_are():
    rng = np.random.default_rng(0)
    train = rng.gamma(2, 3, (50, 5)).astype(np.float32)
    test = rng.gamma(2, 3, (20, 5)).astype(np.float32)
    # The mean of this constant is not exact: its computed variance is positive.
    train[:, 1], train[:, 3] = 0, np.float32(0.1)
    assert n_dead_units(train) == 2
    alive = [0, 2, 4]

    same = scale_latents(train, test, "none")
    assert np.array_equal(same[0], train)
    assert np.array_equal(same[1], test)

    standard = scale_latents(train, test, "standard")
    np.testing.assert_allclose(standard[0][:, alive].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(standard[0][:, alive].std(axis=0), 1, rtol=1e-6)
    minmax = scale_latents(train, test, "minmax")
    assert np.array_equal(minmax[0][:, alive].min(axis=0), np.zeros(3))
    assert np.array_equal(minmax[0][:, alive].max(axis=0), np.ones(3))
    for scaled in (standard, minmax):
        assert np.array_equal(scaled[0][:, [1, 3]], train[:, [1, 3]])
        assert np.array_equal(scaled[1][:, [1, 3]], test[:, [1, 3]])
        assert scaled[0].dtype == scaled[1].dtype == np.float32
        # The test set is moved by what the training set says.
        slope = (scaled[0][0] - scaled[0][1])[alive] / (train[0] - train[1])[alive]
        expected = scaled[0][0, alive] + slope * (test[0] - train[0])[alive]
        np.testing.assert_allclose(scaled[1][0, alive], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.fault
def test_scaling_names_wrong_arguments():
    with pytest.raises(ValueError, match="scaling='robust'; it must be one of none, standard"):
        scale_latents(np.ones((2, 2)), np.ones((2, 2)), "robust")
    with pytest.raises(ValueError, match="the same units"):
        scale_latents(np.ones((2, 2)), np.ones((2, 3)), "none")
