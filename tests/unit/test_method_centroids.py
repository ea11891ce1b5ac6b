import numpy as np
import pytest
from scipy.stats import norm

from epistemic_calibration.methods._gaussian import sample_gaussian_hypotheses
from epistemic_calibration.methods.centroids import Centroids

X_TRAIN = np.array([[0.0, 0.0], [2.0, 0.0], [10.0, 0.0], [10.0, 4.0]])
Y_TRAIN = np.array([0, 0, 1, 1])
X = np.array([[1.0, 0.0], [10.0, 2.0], [5.0, 1.0], [4.0, 0.0], [-20.0, 3.0]])
# Squared distances to the centroids (1, 0) and (10, 2), by hand.
TO_0 = np.array([0.0, 85.0, 17.0, 9.0, 450.0])
TO_1 = np.array([85.0, 0.0, 26.0, 40.0, 901.0])


@pytest.mark.parametrize("length_scale", [np.sqrt(10), 3.0])
def test_prediction_is_the_normalised_kernel(length_scale):
    predicted = Centroids(length_scale=length_scale).fit(X_TRAIN, Y_TRAIN).predict_proba(X)
    k_0, k_1 = (np.exp(-d / (2 * length_scale**2 * 2)) for d in (TO_0, TO_1))
    np.testing.assert_allclose(predicted, k_1 / (k_0 + k_1), rtol=1e-12)


def test_uncertainty_of_the_paper():
    uncertainty = Centroids().fit(X_TRAIN, Y_TRAIN).epistemic_uncertainty(X)
    e = np.minimum(TO_0, TO_1) / 40
    np.testing.assert_allclose(uncertainty, 0.8 * e / (e + 10 * 9 / 40), rtol=1e-12)


def test_uncertainty_of_the_literature_with_duqs_dimension():
    X_wide, X_train_wide = (np.hstack([A, np.zeros((len(A), 3))]) for A in (X, X_TRAIN))
    method = Centroids(definition="literature", divisor="dimension").fit(X_train_wide, Y_TRAIN)
    kernel = np.exp(-np.minimum(TO_0, TO_1) / (2 * 10 * 5))
    np.testing.assert_allclose(method.epistemic_uncertainty(X_wide), 1 - kernel, atol=1e-15)


def test_inputs_on_a_centroid_are_certain():
    X_on = np.tile([[1.0, 0.0]], (4, 1))
    assert np.array_equal(
        Centroids().fit(X_TRAIN, Y_TRAIN).epistemic_uncertainty(X_on), np.zeros(4)
    )


@pytest.mark.fault
def test_a_class_without_points_is_refused():
    with pytest.raises(ValueError, match="no label 1"):
        Centroids().fit(X_TRAIN, np.zeros(4, dtype=int))


def test_hypotheses_have_the_reported_mean_and_variance_and_are_clipped():
    n = 20_000
    # Ten standard deviations from the bounds, where clipping does nothing, and a quarter.
    mean, variance = np.array([0.5, 0.5, 0.95]), np.array([0.0025, 0.0025, 0.04])
    draws = sample_gaussian_hypotheses(mean, variance, n_hypotheses=n, random_state=0)
    inside, clipped = draws[:2], draws[2]
    # Five standard errors of a Gaussian's mean and variance.
    assert np.all(np.abs(inside.mean(axis=1) - 0.5) < 5 * np.sqrt(0.0025 / n))
    assert np.all(np.abs(inside.var(axis=1) - 0.0025) < 5 * 0.0025 * np.sqrt(2 / n))
    # Inputs are drawn independently: correlation of two rows is 0 ± 1/sqrt(n).
    assert abs(np.corrcoef(inside)[0, 1]) < 5 / np.sqrt(n)
    assert clipped.max() == 1
    share = norm.sf(0.25)
    assert abs(np.mean(clipped == 1) - share) < 5 * np.sqrt(share * (1 - share) / n)
