import logging

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from epistemic_calibration.latents._neighbors import Neighbors, nearest_neighbors
from epistemic_calibration.methods import load_method

RNG = np.random.default_rng(0)
X_TRAIN, X = RNG.standard_normal((30, 4)), RNG.standard_normal((7, 4))


def test_equal_to_sorting_all_distances():
    found = nearest_neighbors(X_TRAIN, X, 5)
    distances = cdist(X, X_TRAIN)
    assert np.array_equal(found.indices, np.argsort(distances, axis=1)[:, :5])
    np.testing.assert_allclose(found.distances, np.sort(distances, axis=1)[:, :5], rtol=1e-7)
    assert np.array_equal(found.nearest(2).indices, found.indices[:, :2])
    assert np.array_equal(found.nearest(2).distances, found.distances[:, :2])
    # A small training set is used whole.
    assert nearest_neighbors(X_TRAIN[:3], X, 10).indices.shape == (7, 3)


@pytest.mark.fault
def test_more_than_stored_are_refused():
    stored = Neighbors(np.zeros((1, 3)), np.zeros((1, 3), dtype=int))
    with pytest.raises(ValueError, match="n_neighbors=4, but only 3"):
        stored.nearest(4)


@pytest.mark.parametrize("name", ["eknn", "likelihood"])
def test_methods_use_the_neighbours_that_they_are_given(name):
    method = load_method(name)().fit(X_TRAIN, np.arange(30) % 2)
    searched = method.predict(X)
    method.neighbors = nearest_neighbors(X_TRAIN, X, 20)
    # The inputs themselves are not looked at.
    given = method.predict(np.full_like(X, np.nan))
    assert np.array_equal(searched.hypotheses, given.hypotheses)


@pytest.mark.parametrize(("name", "wanted"), [("eknn", 12), ("likelihood", 10)])
def test_methods_use_all_of_too_few_training_points_and_log_it(name, wanted, caplog):
    few = X_TRAIN[:5], np.arange(5) % 2
    with caplog.at_level(logging.INFO, logger="epistemic_calibration"):
        method = load_method(name)().fit(*few)
    assert f"5 training points, fewer than {wanted} neighbours" in caplog.text
    all_five = load_method(name)(n_neighbors=5).fit(*few)
    assert np.array_equal(method.evaluate(X), all_five.evaluate(X))
