"""SWAG: the moments of its iterates, the law of its draws, and the training between."""

import numpy as np
import pytest
import torch
from plain_networks import FAST, PlainNetwork, problem

from epistemic_calibration.methods.kernels.networks import ConstantRate, train_networks
from epistemic_calibration.methods.swag import SWAG, Moments
from epistemic_calibration.seeds import derive_seed

FAST = {**FAST, "n_epochs": 4, "n_collected": 6, "rank": 4}
X, Y = problem(150, dead=True)


def test_moments_are_those_that_the_paper_updates():
    rng = np.random.default_rng(0)
    iterates = rng.normal(size=(12, 7))
    # Algorithm 1, line by line.
    first, second, deviations = np.zeros(7), np.zeros(7), []
    for n, theta in enumerate(iterates):
        first = (n * first + theta) / (n + 1)
        second = (n * second + theta**2) / (n + 1)
        deviations = [*deviations, theta - first][-5:]
    moments = Moments.of_iterates(iterates, rank=5)
    np.testing.assert_allclose(moments.mean, first, atol=1e-12)
    np.testing.assert_allclose(moments.variance, second - first**2, atol=1e-12)
    np.testing.assert_allclose(moments.deviations, np.column_stack(deviations), atol=1e-12)


def test_draws_have_the_covariance_of_the_paper():
    rng = np.random.default_rng(1)
    moments = Moments.of_iterates(rng.normal(size=(8, 5)) * [1, 2, 0.1, 0, 3], rank=4)
    n = 200_000
    draws = moments.draw(n, np.random.default_rng(2))
    d = moments.deviations
    covariance = (np.diag(moments.variance) + d @ d.T / 3) / 2
    variances = covariance.diagonal()
    error = np.sqrt(variances / n)
    assert (np.abs(draws.mean(axis=0) - moments.mean) <= 5 * error).all()
    # Of normal draws, an entry of the sample covariance has variance (c_ii c_jj + c_ij²)/n.
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / n)
    assert (np.abs(np.cov(draws.T) - covariance) <= 5 * error + 1e-20).all()
    assert variances[3] == 0 and (draws[:, 3] == moments.mean[3]).all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_iterates_are_those_of_a_plain_loop(momentum):
    trained = train_networks(
        X,
        np.stack([Y, 1 - Y]),
        seeds=[5, 6],
        hidden_sizes=(10, 4),
        n_epochs=3,
        learning_rate=3e-3,
        constant_rate=ConstantRate(2, 0.02, momentum),
        device="cpu",
    )
    assert [w.shape for w in trained.iterates] == [(2, 2, 5, 10), (2, 2, 11, 4), (2, 2, 5, 2)]
    for k, seed in enumerate([5, 6]):
        plain, labels = PlainNetwork((4, 10, 4, 2), seed), Y if k == 0 else 1 - Y
        optimizer = torch.optim.Adam(plain.module.parameters(), lr=3e-3)
        for epoch in range(5):
            if epoch == 3:
                optimizer = torch.optim.SGD(plain.module.parameters(), lr=0.02, momentum=momentum)
            loss = plain.run_epoch(X, labels, optimizer)
            if epoch >= 3:
                iterates = [w[:, epoch - 3] for w in trained.iterates]
                plain.assert_weights(iterates, k, rtol=1e-3, atol=1e-5)
        assert trained.losses[k] == pytest.approx(loss, rel=1e-4)
    for last, w in zip(trained.iterates, trained.weights, strict=True):
        assert np.array_equal(last[:, -1], w)


def test_a_fit_has_the_moments_of_its_iterates():
    method = SWAG(**FAST, random_state=3).fit(X, Y)
    networks = train_networks(
        X,
        Y[None],
        seeds=[derive_seed(3, 0)],
        **{k: v for k, v in FAST.items() if k not in ("rank", "n_collected", "min_steps")},
        constant_rate=ConstantRate(6, method.constant_rate, method.momentum),
    )
    iterates = np.concatenate([w[0].reshape(6, -1) for w in networks.iterates], axis=1)
    expected = Moments.of_iterates(iterates, rank=4)
    for name in ("mean", "variance", "deviations"):
        assert np.array_equal(getattr(method.moments_, name), getattr(expected, name))
    assert (method.moments_.variance > 0).any()
    # Nothing moves the weights of a feature that is always zero.
    assert not method.moments_.variance[20:30].any()


def test_hypotheses_are_networks_with_drawn_weights():
    method = SWAG(**FAST, n_hypotheses=5, random_state=3).fit(X, Y)
    rng = np.random.default_rng(derive_seed(3, "weights"))
    hypotheses = method.sample_hypotheses(X)
    for j, draw in enumerate(method.moments_.draw(5, rng)):
        hidden, begin = X.astype(float), 0
        for i, (a, b) in enumerate([(5, 10), (11, 5), (6, 2)]):
            w = draw[begin : begin + a * b].reshape(a, b)
            begin += a * b
            hidden = hidden @ w[:-1] + w[-1]
            hidden = np.maximum(hidden, 0) if i < 2 else hidden
        expected = 1 / (1 + np.exp(hidden[:, 0] - hidden[:, 1]))
        np.testing.assert_allclose(hypotheses[:, j], expected, atol=1e-5)
    assert begin == method.moments_.mean.size


@pytest.mark.fault
def test_a_rank_that_no_iterates_fill_is_an_error():
    with pytest.raises(ValueError, match="rank=5 must be at most n_collected=4"):
        SWAG(rank=5, n_collected=4)
