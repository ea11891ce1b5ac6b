from itertools import combinations

import numpy as np
import pytest

from epistemic_calibration.methods.eknn import EvidentialKNN

RNG = np.random.default_rng(0)
X_TRAIN = RNG.standard_normal((40, 3))
Y_TRAIN = RNG.integers(0, 2, 40)
X = RNG.standard_normal((6, 3))


def test_equal_to_dempsters_rule_applied_one_neighbour_at_a_time():
    method = EvidentialKNN(n_neighbors=5, alpha=0.6, beta=1.5).fit(X_TRAIN, Y_TRAIN)
    prediction, uncertainty = method.evaluate(X)
    for x, h, eu in zip(X, prediction, uncertainty, strict=True):
        distances = np.linalg.norm(X_TRAIN - x, axis=1)
        # Masses are combined one by one and normalised, from the definition of the rule.
        m_1, m_0, m_theta = 0.0, 0.0, 1.0
        for i in np.argsort(distances)[:5]:
            phi = 0.6 * np.exp(-((distances[i] / method.mean_distance_) ** 1.5))
            a_1, a_0, a_theta = (phi, 0, 1 - phi) if Y_TRAIN[i] == 1 else (0, phi, 1 - phi)
            m_1, m_0, m_theta = (
                m_1 * a_1 + m_1 * a_theta + m_theta * a_1,
                m_0 * a_0 + m_0 * a_theta + m_theta * a_0,
                m_theta * a_theta,
            )
        expected = np.array([m_1 + m_theta / 2, m_theta]) / (m_1 + m_0 + m_theta)
        np.testing.assert_allclose([h, eu], expected, rtol=1e-12)


def test_mean_distance_is_that_of_distinct_pairs():
    exact = [np.linalg.norm(a - b) for a, b in combinations(X_TRAIN, 2)]
    n_pairs = 20_000
    estimate = EvidentialKNN(n_pairs=n_pairs).fit(X_TRAIN, Y_TRAIN).mean_distance_
    # Five standard errors; pairs of a point with itself would bring it 1/40 too low.
    tolerance = 5 * np.std(exact) / np.sqrt(n_pairs)
    assert tolerance < np.mean(exact) / 40
    assert abs(estimate - np.mean(exact)) < tolerance


def test_coinciding_training_points():
    method = EvidentialKNN(n_neighbors=4).fit(np.zeros((4, 2)), np.array([1, 1, 0, 0]))
    prediction, uncertainty = method.evaluate(np.array([[0.0, 0.0], [1.0, 0.0]]))
    q = 0.6**2
    np.testing.assert_allclose(uncertainty, [q * q / (2 * q - q * q), 1.0], rtol=1e-12)
    np.testing.assert_allclose(prediction, 0.5, rtol=1e-12)


@pytest.mark.fault
def test_a_single_training_point_is_refused():
    with pytest.raises(ValueError, match="at least 2"):
        EvidentialKNN().fit(X_TRAIN[:1], Y_TRAIN[:1])
