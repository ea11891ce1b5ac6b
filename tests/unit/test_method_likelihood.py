import numpy as np
import pytest

from epistemic_calibration.methods.likelihood import Likelihood, plausibilities


@pytest.mark.parametrize(
    ("p", "n"), [(0, 0), (1, 0), (0, 1), (10, 0), (7, 3), (5, 5), (3, 7), (60, 40)]
)
def test_plausibilities_equal_a_fine_grid(p, n):
    t = np.linspace(0, 1, 200_001)
    likelihood = t**p * (1 - t) ** n
    likelihood /= likelihood.max()
    expected = [np.minimum(likelihood, line).max() for line in (2 * t - 1, 1 - 2 * t)]
    # The suprema are kinks of slope up to 2 (of 1 − 2t) at grid steps of 5e-6.
    np.testing.assert_allclose(plausibilities(p, n), expected, atol=1e-5)


def test_known_plausibilities():
    # One positive label: π(0) solves t = 1 − 2t. Ten: s = (1 − s)^10 / 2^10 with s near 2^-10.
    assert plausibilities(1, 0) == (1.0, pytest.approx(1 / 3, rel=1e-14))
    unanimous = plausibilities(10, 0)[1]
    assert unanimous == pytest.approx(((1 - unanimous) / 2) ** 10, rel=1e-12)
    assert round(unanimous, 3) == 0.001
    assert round(min(plausibilities(5, 5)), 3) == 0.406


def test_plausibilities_stay_positive_and_accurate_for_many_labels():
    # s (1 − s)^-400 = 2^-400: s is 2^-400 to first order.
    assert plausibilities(400, 0)[1] == pytest.approx(2.0**-400, rel=1e-12)


X_TRAIN = np.array([[0.0], [0.1], [0.2], [5.0], [6.0], [7.0]])
Y_TRAIN = np.array([1, 1, 0, 0, 0, 0])


def test_definition_of_the_paper_counts_within_the_radius_or_the_nearest():
    method = Likelihood(definition="paper", n_neighbors=3).fit(X_TRAIN, Y_TRAIN)
    uncertainty = method.epistemic_uncertainty(np.array([[0.05], [5.4]]))
    expected = [min(plausibilities(2, 1)) / 2, 1 / 6]
    np.testing.assert_allclose(uncertainty, expected, rtol=1e-12)


def test_definition_of_the_literature_counts_all_neighbours():
    method = Likelihood(definition="literature", n_neighbors=3).fit(X_TRAIN, Y_TRAIN)
    uncertainty = method.epistemic_uncertainty(np.array([[0.05], [6.1]]))
    expected = [min(plausibilities(2, 1)), min(plausibilities(0, 3))]
    np.testing.assert_allclose(uncertainty, expected, rtol=1e-12)


def test_prediction_is_the_inverse_distance_vote():
    method = Likelihood(n_neighbors=3).fit(X_TRAIN, Y_TRAIN)
    weights = 1 / np.array([0.3, 0.4, 0.5])
    expected = weights[1:].sum() / weights.sum()
    np.testing.assert_allclose(method.predict_proba(np.array([[0.5]])), expected, rtol=1e-12)


def test_points_that_coincide_with_the_input_vote_alone():
    X_train = np.array([[0.0], [0.0], [0.0], [1.0]])
    method = Likelihood(n_neighbors=4).fit(X_train, np.array([1, 1, 0, 0]))
    np.testing.assert_allclose(method.predict_proba(np.array([[0.0]])), 2 / 3, rtol=1e-12)
