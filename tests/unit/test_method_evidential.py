"""Evidential networks: their loss against quadrature and torch, their law against scipy."""

from functools import partial

import numpy as np
import pytest
import torch
from plain_networks import FAST, PlainNetwork, problem
from scipy.integrate import quad
from scipy.stats import beta as beta_law
from torch import nn
from torch.distributions import Dirichlet, kl_divergence

from epistemic_calibration.methods.evidential import Evidential
from epistemic_calibration.methods.kernels.evidential_loss import EvidentialLoss
from epistemic_calibration.seeds import derive_seed

FAST = {**FAST, "n_epochs": 12}
ACTIVATIONS = ("relu", "softplus", "exp")


def reference_evidence(logits, activation):
    if activation == "exp":
        return torch.exp(torch.clamp(logits, -10, 10))
    return {"relu": torch.relu, "softplus": nn.Softplus()}[activation](logits)


def reference_loss(logits, labels, activation, weight):
    """Equation 5 of the paper and its divergence, for one-hot labels, as it is written there."""
    alpha = reference_evidence(logits, activation) + 1
    y = nn.functional.one_hot(labels.long(), 2).to(logits.dtype)
    strength = alpha.sum(-1, keepdim=True)
    p = alpha / strength
    error = ((y - p) ** 2 + p * (1 - p) / (strength + 1)).sum(-1)
    removed = y + (1 - y) * alpha
    return error + weight * kl_divergence(Dirichlet(removed), Dirichlet(torch.ones_like(removed)))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    ("annealing", "epoch", "weight"),
    [(10, 1, 0.0), (10, 4, 0.3), (10, 11, 1.0), (10, 15, 1.0), (0, 1, 1.0)],
)
def test_loss_and_gradients_are_those_of_the_paper(activation, annealing, epoch, weight):
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn((3, 32, 2), generator=generator)
    logits[0, 0] = torch.tensor([-1.0, -2.0])  # no evidence at all for ReLU
    logits[0, 1] = torch.tensor([12.0, -13.0])  # clipped for exp
    labels = torch.randint(2, (3, 32), generator=generator).float()
    losses, gradients = EvidentialLoss(activation, annealing)(logits, labels, epoch)

    exact = logits.double().requires_grad_()
    expected = reference_loss(exact, labels, activation, weight)
    expected.sum().backward()
    # The loss is a difference of numbers around ln α, which is at most 10.
    torch.testing.assert_close(losses.double(), expected.detach(), rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(gradients.double(), exact.grad, rtol=2e-4, atol=1e-6)
    if activation == "exp":
        assert not gradients[0, 1].any()


@pytest.mark.parametrize("label", [0, 1])
def test_the_loss_is_an_expectation_under_the_beta_law(label):
    loss, _ = EvidentialLoss("softplus", 10)(torch.tensor([0.3, 1.7]), torch.tensor(label), 1)
    negative, positive = (np.logaddexp(0, z) + 1 for z in (0.3, 1.7))
    law = beta_law(positive, negative)
    # Two components of a one-hot label are equally wrong.
    expected, _ = quad(lambda q: 2 * (label - q) ** 2 * law.pdf(q), 0, 1)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def mean_reference_loss(*args, **settings):
    return reference_loss(*args, **settings).mean()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_training_is_that_of_a_plain_loop(activation):
    X, y = problem(100)
    method = Evidential(**FAST, evidence=activation, annealing_epochs=5, random_state=3).fit(X, y)
    plain = PlainNetwork((4, 10, 5, 2), derive_seed(3, 0))
    optimizer = torch.optim.Adam(plain.module.parameters(), lr=0.01)
    for epoch in range(12):
        loss = partial(mean_reference_loss, activation=activation, weight=min(1, epoch / 5))
        mean_loss = plain.run_epoch(X, y, optimizer, loss)
    plain.assert_weights(method.networks_.weights, 0, rtol=1e-3, atol=1e-4)
    assert method.diagnostics()["final_training_loss"] == pytest.approx(mean_loss, rel=1e-4)
    with torch.no_grad():
        logits = plain.module(torch.from_numpy(X))
    negative, positive = reference_evidence(logits, activation).numpy().T + 1
    for ours, theirs in zip(method.beta_parameters(X), (positive, negative), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-3)


def test_quantiles_are_those_of_the_law():
    X, y = problem()
    method = Evidential(**FAST, n_hypotheses=40).fit(X, y)
    alpha, beta = method.beta_parameters(X)
    assert alpha.min() >= 1 and beta.min() >= 1
    levels = (np.arange(40) + 0.5) / 40
    expected = beta_law(alpha[:, None], beta[:, None]).ppf(levels)
    predictions = method.predict(X)
    np.testing.assert_allclose(predictions.hypotheses, expected, rtol=1e-8, atol=1e-12)
    assert predictions.exchangeable is False


def test_draws_follow_the_law():
    X, y = problem()
    n = 4000
    method = Evidential(**FAST, n_hypotheses=n, hypotheses="draws", random_state=1).fit(X, y)
    alpha, beta = method.beta_parameters(X)
    predictions = method.predict(X)
    assert predictions.exchangeable is True
    law = beta_law(alpha, beta)
    mean, variance, kurtosis = (np.asarray(v, dtype=float) for v in law.stats("mvk"))
    hypotheses = predictions.hypotheses
    assert np.abs((hypotheses.mean(axis=1) - mean) / np.sqrt(variance / n)).max() < 5
    error = variance * np.sqrt((kurtosis + 2) / n)
    assert (np.abs(hypotheses.var(axis=1) - variance) < 5 * error).all()
