"""The Laplace approximation of the last layer is the one of the textbook."""

import numpy as np
import pytest
from plain_networks import FAST, problem

from epistemic_calibration.methods.kernels.prediction import last_hidden_activations
from epistemic_calibration.methods.laplace import LastLayerLaplace

X, Y = problem(400)


def gauss_newton_matrix(method, X):
    """Sum over samples of (diag p − p pᵀ) ⊗ φ φᵀ: weights first, output by output, then biases."""
    features = last_hidden_activations(method.networks_, X, device="cpu")[0].astype(float)
    output = method.networks_.weights[-1][0].astype(float)
    logits = features @ output[:-1] + output[-1]
    p = np.exp(logits - np.logaddexp(*logits.T)[:, None])
    extended = np.c_[features, np.ones(len(X))]
    d = features.shape[1]
    matrix = np.zeros((2 * (d + 1), 2 * (d + 1)))
    for a in range(2):
        for b in range(2):
            weight = p[:, a] * ((a == b) - p[:, b])
            block = extended.T @ (weight[:, None] * extended)
            rows, columns = ([*range(k * d, (k + 1) * d), 2 * d + k] for k in (a, b))
            matrix[np.ix_(rows, columns)] = block
    return matrix


@pytest.mark.parametrize("structure", ["full", "diag"])
def test_the_posterior_is_that_of_the_closed_form(structure):
    method = LastLayerLaplace(**FAST, hessian_structure=structure).fit(X, Y)
    expected = gauss_newton_matrix(method, X)
    prior_precision = method.diagnostics()["prior_precision"]
    assert 0 < prior_precision < 1e4
    posterior = method.laplace_.posterior_precision.numpy()
    if structure == "diag":
        expected = expected.diagonal() + prior_precision
    else:
        expected += prior_precision * np.eye(len(expected))
    np.testing.assert_allclose(posterior, expected, rtol=1e-5, atol=1e-5)


def test_the_prior_precision_maximises_the_marginal_likelihood():
    method = LastLayerLaplace(**FAST).fit(X, Y)
    eigenvalues = np.linalg.eigvalsh(gauss_newton_matrix(method, X)).clip(0)
    weights = method.networks_.weights[-1][0].astype(float)

    def log_marginal_likelihood(delta):
        return (-delta * (weights**2).sum() + weights.size * np.log(delta)) / 2 - np.log(
            eigenvalues + delta
        ).sum() / 2

    delta = method.diagnostics()["prior_precision"]
    grid = np.geomspace(1e-3, 1e3, 10_001)
    best = grid[np.argmax([log_marginal_likelihood(d) for d in grid])]
    # A hundred steps of laplace-torch's optimiser end near the maximum, not at it.
    assert delta == pytest.approx(best, rel=0.05)


@pytest.mark.parametrize("structure", ["full", "diag"])
def test_hypotheses_are_the_network_with_gaussian_last_layers(structure):
    method = LastLayerLaplace(**FAST, hessian_structure=structure, n_hypotheses=3000).fit(X, Y)
    hypotheses = method.sample_hypotheses(X[:20])
    precision = gauss_newton_matrix(method, X)
    if structure == "diag":
        precision = np.diag(precision.diagonal())
    precision += method.diagnostics()["prior_precision"] * np.eye(len(precision))
    covariance = np.linalg.inv(precision)
    features = last_hidden_activations(method.networks_, X[:20], device="cpu")[0].astype(float)
    output = method.networks_.weights[-1][0].astype(float)
    # Log odds are linear in the weights: w_1ᵀφ + b_1 − w_0ᵀφ − b_0.
    jacobian = np.c_[-features, features, -np.ones(20), np.ones(20)]
    mean = jacobian[:, :-2] @ output[:-1].T.ravel() + output[-1, 1] - output[-1, 0]
    variance = np.einsum("ni,ij,nj->n", jacobian, covariance, jacobian)
    log_odds = np.log(hypotheses) - np.log1p(-hypotheses)
    assert (np.abs(log_odds.mean(axis=1) - mean) < 5 * np.sqrt(variance / 3000)).all()
    ratio = log_odds.var(axis=1) / variance
    assert (np.abs(ratio - 1) < 5 * np.sqrt(2 / 3000)).all()
    # A draw is a function of x: draws at different inputs have the covariance of the weights.
    expected = jacobian @ covariance @ jacobian.T
    expected /= np.sqrt(np.outer(variance, variance))
    np.testing.assert_allclose(np.corrcoef(log_odds), expected, atol=5 / np.sqrt(3000))
