import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.special import expit, log_expit

from epistemic_calibration.methods.bayesian_logistic_regression import (
    START_SCALE,
    BayesianLogisticRegression,
    ConvergenceError,
    _HamiltonianChains,
    _Posterior,
)


def problem(n, d, *, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([scale * rng.standard_normal((n, d)), np.ones(n)])
    return X, (rng.random(n) < expit(X @ rng.standard_normal(d + 1))).astype(float)


def sample(X, y, *, n_draws=400):
    """Return draws (n_chains, n_draws, n_weights) of the posterior with prior scale 0.5."""
    rng = np.random.default_rng(1)
    posterior = _Posterior(X, y, 0.5, rng)
    chains = _HamiltonianChains(
        posterior, START_SCALE * rng.standard_normal((8, posterior.n_weights)), rng
    )
    chains.warm_up(30)
    return np.stack(list(chains.iterate(n_draws)), axis=1)[:, :, :-1]


def mean_and_error(values):
    """Return means over chains and draws with their standard errors, by effective size."""
    ess = array_stats.ess(values, chain_axis=0, draw_axis=1, method="mean")
    flat = values.reshape(-1, values.shape[-1])
    return flat.mean(axis=0), flat.std(axis=0) / np.sqrt(ess)


def moments(draws):
    """Return each draw's weights and their products: means, variances and covariances."""
    rows, columns = np.triu_indices(draws.shape[-1])
    return np.concatenate([draws, draws[..., rows] * draws[..., columns]], axis=-1)


@pytest.mark.parametrize(
    "case",
    {
        "overlapping": problem(30, 1),
        "ten_points": problem(10, 1, scale=3.0),
        # Far apart: the posterior is a prior cut off by the data, far from any Gaussian.
        "separable": (
            np.column_stack([[-30.0, -25, 20, 31], np.ones(4)]),
            np.array([0.0, 0, 1, 1]),
        ),
    }.items(),
    ids=lambda case: case[0],
)
def test_moments_agree_with_quadrature(case):
    X, y = case[1]
    # The posterior mean of the moments of two weights, by the trapezoidal rule.
    grid = np.linspace(-4, 4, 801)
    w = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = log_posterior(w, X, y, 0.5)
    density = np.exp(log_density - log_density.max())
    exact = density @ moments(w) / density.sum()
    estimate, error = mean_and_error(moments(sample(X, y)))
    # Five means and products: the chance of one beyond 4 standard errors is 3e-4.
    np.testing.assert_array_less(np.abs(estimate - exact), 4 * error)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_moments_agree_with_importance_sampling_in_six_dimensions(scale):
    X, y = problem(60, 5, scale=scale)
    rng = np.random.default_rng(2)
    # Draws of Student's t with 5 degrees of freedom, around the chains' reference.
    z = rng.standard_normal((200_000, 6)) / np.sqrt(rng.chisquare(5, (200_000, 1)) / 5)
    w = _Posterior(X, y, 0.5, rng).weights(z)
    log_ratio = log_posterior(w, X, y, 0.5) + 11 / 2 * np.log1p(np.sum(z**2, axis=1) / 5)
    ratio = np.exp(log_ratio - log_ratio.max())
    ratio /= ratio.sum()
    assert 1 / np.sum(ratio**2) > 2000
    exact = ratio @ moments(w)
    error_of_exact = np.sqrt(ratio**2 @ (moments(w) - exact) ** 2)
    estimate, error = mean_and_error(moments(sample(X, y, n_draws=600)))
    # 27 comparisons: the chance of one beyond 4.5 standard errors is 2e-4.
    np.testing.assert_array_less(np.abs(estimate - exact), 4.5 * np.hypot(error, error_of_exact))


def log_posterior(weights, X, y, prior_scale):
    log_likelihood = log_expit(np.where(y == 1, 1, -1) * (weights @ X.T)).sum(axis=1)
    return log_likelihood - np.sum(weights**2, axis=1) / (2 * prior_scale**2)


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("n", [40, 20_000])
def test_remainder_and_its_gradient(n, scale):
    X, y = problem(n, 3, scale=scale)
    posterior = _Posterior(X, y, 0.5, np.random.default_rng(0))
    z = 2 * np.random.default_rng(1).standard_normal((5, 4))
    weights = posterior.weights(z)
    values, gradient = posterior.remainder(z)
    # The chain rule: of -log p(w), times the whitening, less that of |z|²/2.
    of_weights = (expit(weights @ X.T) - y) @ X + weights / 0.5**2
    expected = of_weights @ posterior.whitening - z
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)
    # Far below 1, the scale on which a proposal is accepted.
    differences = values + log_posterior(weights, X, y, 0.5) + 0.5 * np.sum(z**2, axis=1)
    assert np.ptp(differences) < 1e-4
    assert np.ptp(values) > 1e-3


def test_weights_of_dead_features_are_prior_draws():
    X, y = problem(50, 2)
    X = np.insert(X[:, :2], 1, 0, axis=1)
    n = 2000
    method = BayesianLogisticRegression(prior_scale=0.8, n_hypotheses=n).fit(X, y)
    assert method.diagnostics()["n_dead_features"] == 1
    dead = method.coef_[:, 1]
    # Five standard errors of independent draws.
    assert abs(dead.mean()) < 5 * 0.8 / np.sqrt(n)
    assert abs(dead.var() - 0.64) < 5 * 0.64 * np.sqrt(2 / n)
    assert abs(np.corrcoef(dead, method.coef_[:, 0])[0, 1]) < 5 / np.sqrt(n)
    # They count where a test point has the feature that no training point had.
    x = np.array([[0.0, 3.0, 0.0]])
    np.testing.assert_allclose(
        method.sample_hypotheses(x)[0], expit(3 * dead + method.intercept_), rtol=1e-12
    )


@pytest.mark.parametrize("n_train", [10, 50, 1000])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_two_gaussians_converge(n_train, scale):
    rng = np.random.default_rng(n_train)
    y = np.arange(n_train) % 2
    X = np.where(y[:, None] == 1, -2.5, 2.5) + np.sqrt(3) * rng.standard_normal((n_train, 2))
    method = BayesianLogisticRegression(n_draws=20).fit(scale * X, y)
    assert method.sample_hypotheses(scale * X).shape == (n_train, 100)
    assert method.diagnostics()["r_hat_max"] <= 1.05
    assert method.diagnostics()["ess_min"] >= 100


def test_warm_up_frees_a_chain_whose_mean_acceptance_hides_it():
    # Large features and a start far out: the trajectory that suits nine chains is too coarse
    # for the tenth, which rejects for ever unless it is looked at by itself.
    rng = np.random.default_rng(0)
    X = np.column_stack([8 * rng.exponential(size=(3000, 12)), np.ones(3000)])
    y = (rng.random(3000) < expit(X[:, :12] @ np.linspace(-1, 1, 12) * 0.4)).astype(float)
    posterior = _Posterior(X, y, 0.5, rng)
    starts = START_SCALE * rng.standard_normal((10, posterior.n_weights))
    starts[0] *= 6
    chains = _HamiltonianChains(posterior, starts, rng)
    chains.warm_up(10)
    draws = np.stack(list(chains.iterate(30)), axis=1)[:, :, :-1]
    assert (np.diff(draws, axis=1) != 0).any(axis=(1, 2)).all()


def test_more_hypotheses_than_draws_lengthen_the_chains():
    X, y = problem(30, 1)
    method = BayesianLogisticRegression(n_hypotheses=1500).fit(X, y)
    assert method.diagnostics()["n_draws"] >= 1500
    assert len(np.unique(method.intercept_)) > 1000


def test_draws_are_doubled_until_the_chains_agree():
    X, y = problem(60, 3)
    method = BayesianLogisticRegression(
        n_draws=20, n_hypotheses=10, min_effective_sample_size=700, max_r_hat=1.1
    )
    n_draws = method.fit(X, y).diagnostics()["n_draws"]
    assert n_draws in (800, 1600, 3200)
    method.max_doublings = 1
    with pytest.raises(ConvergenceError, match="required 700"):
        method.fit(X, y)


@pytest.mark.parametrize(("acceptance", "n_steps"), [(0.79, 15), (0.81, 2)])
def test_steps_get_shorter_while_too_few_proposals_are_accepted(monkeypatch, acceptance, n_steps):
    rng = np.random.default_rng(0)
    posterior = _Posterior(*problem(40, 2), 0.5, rng)
    chains = _HamiltonianChains(
        posterior, START_SCALE * rng.standard_normal((3, posterior.n_weights)), rng
    )
    monkeypatch.setattr(chains, "_move", lambda: (acceptance, np.ones(3, dtype=bool)))
    chains.warm_up(7)
    # 2, 3, 4, 5, 7, 9, 12 and 15 steps, by a quarter more each time, rounded up.
    assert chains.n_steps == n_steps
