import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import log_ndtr, ndtr

pytest.importorskip("gpytorch", reason="needs epistemic-calibration[extended]")

from epistemic_calibration.methods.gaussian_process import (
    GaussianProcess,
    _inducing_points,
    _minibatches,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 1))
Y = (X[:, 0] + 0.7 * RNG.standard_normal(12) > 0).astype(np.uint8)
X_TEST = np.linspace(-3, 3, 15)[:, None]


@pytest.fixture(scope="module")
def fitted():
    # Fewer points than inducing points, so that these are the training points.
    return GaussianProcess(n_steps=400, learning_rate=0.01, n_hypotheses=4000).fit(X, Y)


def prior(fitted):
    """Return standardised inputs, and mean and covariance of the learnt prior by hand."""
    learnt = fitted.diagnostics()

    def covariance(a, b):
        distances = cdist(fitted.scaler_.transform(a), fitted.scaler_.transform(b))
        return learnt["prior_variance"] * np.exp(-(distances**2) / 2 / learnt["length_scale"] ** 2)

    return learnt["prior_mean"], covariance


def best_gaussian(mean, K, y):
    """Return the Gaussian nearest to the posterior in KL(q ‖ p), at the training points.

    Its precision is K⁻¹ + diag(λ) and its mean prior mean + K g, where g and −λ are expected
    first and second derivatives of the log likelihood (Opper & Archambeau 2009).
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights /= weights.sum()
    sign = np.where(y == 1, 1.0, -1.0)[:, None]
    m, lam = np.full(len(y), mean), np.full(len(y), 0.3)
    for _ in range(2000):
        S = K - K @ np.linalg.solve(K + np.diag(1 / lam), K)
        f = m[:, None] + np.sqrt(np.diag(S))[:, None] * nodes
        u = sign * f
        ratio = np.exp(-(u**2) / 2 - log_ndtr(u)) / np.sqrt(2 * np.pi)
        g = (sign * ratio) @ weights
        new_lam = (ratio * (u + ratio)) @ weights
        m = 0.8 * m + 0.2 * (mean + K @ g)
        lam = 0.8 * lam + 0.2 * new_lam
    return m, lam


def test_posterior_is_the_best_gaussian_where_inducing_points_are_the_training_points(fitted):
    mean, covariance = prior(fitted)
    K, K_test = covariance(X, X), covariance(X_TEST, X)
    m, lam = best_gaussian(mean, K, Y)
    expected_mean = mean + K_test @ np.linalg.solve(K + 1e-9 * np.eye(12), m - mean)
    solved = np.linalg.solve(K + np.diag(1 / lam), K_test.T)
    expected_variance = covariance(X_TEST, X_TEST).diagonal() - np.sum(K_test.T * solved, axis=0)
    got_mean, got_variance = fitted.marginal_posterior(X_TEST)
    # The prior still moves a little at each step, and the Gaussian follows it.
    np.testing.assert_allclose(got_mean, expected_mean, atol=0.03)
    np.testing.assert_allclose(got_variance, expected_variance, atol=0.03)


def test_probabilities_are_near_those_of_the_exact_posterior(fitted):
    # Importance sampling from the prior: 12 labels leave thousands of effective draws.
    mean, covariance = prior(fitted)
    points = np.vstack([X, X_TEST])
    K = covariance(points, points) + 1e-9 * np.eye(len(points))
    rng = np.random.default_rng(1)
    f = mean + rng.standard_normal((400_000, len(points))) @ np.linalg.cholesky(K).T
    weights = np.exp(log_ndtr(np.where(Y == 1, 1, -1) * f[:, :12]).sum(axis=1))
    weights /= weights.sum()
    assert 1 / np.sum(weights**2) > 5000
    exact = weights @ ndtr(f[:, 12:])
    m, v = fitted.marginal_posterior(X_TEST)
    # 0.02 is what a Gaussian posterior may be off by; sampling errors are below 0.005.
    np.testing.assert_allclose(ndtr(m / np.sqrt(1 + v)), exact, atol=0.02)


def test_hypotheses_have_the_mean_of_the_probit_closed_form(fitted):
    m, v = fitted.marginal_posterior(X_TEST)
    hypotheses = fitted.sample_hypotheses(X_TEST)
    error = hypotheses.std(axis=1, ddof=1) / np.sqrt(hypotheses.shape[1])
    # Fifteen means: the chance of one beyond 4.5 standard errors is 1e-4.
    np.testing.assert_array_less(
        np.abs(hypotheses.mean(axis=1) - ndtr(m / np.sqrt(1 + v))), 4.5 * error
    )
    # Neighbouring inputs are drawn independently.
    assert abs(np.corrcoef(hypotheses[7], hypotheses[8])[0, 1]) < 5 / np.sqrt(4000)


def test_inducing_points_are_distinct_points_or_centres():
    few = np.repeat(X, 5, axis=0)
    np.testing.assert_array_equal(
        _inducing_points(few, 12, np.random.default_rng(0)), np.sort(X, 0)
    )
    centres = _inducing_points(X, 4, np.random.default_rng(0))
    assert centres.shape == (4, 1)
    # Centres are means of the points next to them.
    nearest = np.abs(X - centres.T).argmin(axis=1)
    means = [[X[nearest == k].mean()] for k in range(4)]
    np.testing.assert_allclose(centres, means)


def test_every_point_is_in_one_minibatch_of_an_epoch():
    batches = list(_minibatches(10, 4, 7, np.random.default_rng(0)))
    assert len(batches) == 7
    for epoch in (batches[:3], batches[3:6]):
        assert sorted(np.concatenate(epoch)) == list(range(10))
    assert not np.array_equal(batches[0], batches[3])


def test_few_inducing_points_do_on_many_points():
    rng = np.random.default_rng(2)
    X_many = rng.standard_normal((1500, 2))
    truth = ndtr(2 * np.sin(2 * X_many[:, 0]))
    y = (rng.random(1500) < truth).astype(int)
    method = GaussianProcess(n_inducing_points=20, n_steps=150, batch_size=500)
    m, v = method.fit(X_many, y).marginal_posterior(X_many)
    error = np.mean((ndtr(m / np.sqrt(1 + v)) - truth) ** 2)
    # A constant would be off by the variance of the truth, 0.1.
    assert error < 0.01 < np.var(truth) / 5
