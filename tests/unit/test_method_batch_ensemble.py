"""BatchEnsemble against a plain torch module of explicitly formed weights."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from epistemic_calibration.methods.batch_ensemble import BatchEnsemble
from epistemic_calibration.methods.kernels import batch_ensembles as engine
from epistemic_calibration.methods.kernels.batch_ensembles import train_batch_ensembles
from epistemic_calibration.methods.kernels.minibatches import bit_generator, initial_weights
from epistemic_calibration.methods.kernels.prediction import predict_proba
from epistemic_calibration.seeds import derive_seed

FAST = {"hidden_sizes": (10, 5), "n_epochs": 4, "learning_rate": 0.01, "device": "cpu"}


def problem(n_samples=150, n_ensembles=2, n_members=3, seed=0):
    """Inputs with a dead feature; the members of an ensemble have the same labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 5)).astype(np.float32)
    X[:, 1] = 0
    scores = X @ rng.normal(size=(5, n_ensembles)) + rng.normal(size=(n_samples, n_ensembles))
    return X, np.repeat((scores.T > 0).astype(np.uint8), n_members, axis=0)


class PlainLayer(nn.Module):
    def __init__(self, weights, r, s):
        super().__init__()
        self.shared = nn.Parameter(torch.tensor(weights[:-1]))
        self.r, self.s = nn.Parameter(torch.tensor(r)), nn.Parameter(torch.tensor(s))
        self.bias = nn.Parameter(torch.tensor(weights[-1]).repeat(len(r), 1))

    def weights(self, m):
        return self.shared * torch.outer(self.r[m], self.s[m])

    def forward(self, inputs, m):
        return inputs @ self.weights(m) + self.bias[m]


def plain_ensemble(layer_sizes, seeds):
    signs = [engine._random_signs(layer_sizes, seed) for seed in seeds]
    return nn.ModuleList(
        PlainLayer(w, *(np.stack([of_member[i][j] for of_member in signs]) for j in (0, 1)))
        for i, w in enumerate(initial_weights(layer_sizes, seeds[0]))
    )


def forward(ensemble, inputs, m):
    for layer in ensemble[:-1]:
        inputs = layer(inputs, m).relu()
    return ensemble[-1](inputs, m)


def lock_step(X, labels, seeds, n_members, layer_sizes, batch_size):
    layers, starts = [], [initial_weights(layer_sizes, s) for s in seeds[::n_members]]
    for i, w in enumerate(zip(*starts, strict=True)):
        signs = [engine._random_signs(layer_sizes, s)[i] for s in seeds]
        r, s = (np.stack(v).reshape(-1, n_members, len(v[0])) for v in zip(*signs, strict=True))
        layers.append((np.stack(w)[:, :-1], r, s, np.stack(w)[:, -1:]))
    return engine._Training(
        torch.from_numpy(X),
        labels,
        layers,
        seeds=seeds,
        batch_size=batch_size,
        learning_rate=0.01,
    )


@pytest.mark.parametrize("size", [32, 13])
def test_forward_and_gradients_are_those_of_formed_weights(size):
    X, labels = problem()
    layer_sizes = (5, 7, 4, 2)
    training = lock_step(X, labels, list(range(6)), 3, layer_sizes, size)
    indices = torch.randint(len(X), (6, 32), generator=torch.Generator().manual_seed(1))
    targets = torch.from_numpy(labels.astype(np.float32)).gather(1, indices)
    losses = torch.zeros((6, 32))
    training.epoch = 1
    training.steps[size].compute_gradients(indices, targets, losses)
    for e in range(2):
        ensemble = plain_ensemble(layer_sizes, [3 * e, 3 * e + 1, 3 * e + 2])
        loss = 0
        for m in range(3):
            k = 3 * e + m
            logits = forward(ensemble, torch.from_numpy(X)[indices[k, :size]], m)
            of_samples = F.cross_entropy(logits, targets[k, :size].long(), reduction="none")
            torch.testing.assert_close(losses[k, :size], of_samples.detach())
            loss = loss + of_samples.mean() / 3
        loss.backward()
        for ours, layer in zip(training.layer_gradients, ensemble, strict=True):
            theirs = (layer.shared, layer.r, layer.s, layer.bias)
            for a, b in zip(ours, theirs, strict=True):
                torch.testing.assert_close(a[e], b.grad, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("minibatches", ["split", "tiled"])
@pytest.mark.parametrize("batch_size", [32, 50, 1000])
def test_training_is_that_of_a_plain_module(minibatches, batch_size):
    X, labels = problem()
    seeds = [4, 9, 5, 6, 8, 7]
    trained = train_batch_ensembles(
        X, labels, seeds=seeds, n_members=3, minibatches=minibatches, batch_size=batch_size, **FAST
    )
    inputs = torch.from_numpy(X)
    for e in range(2):
        of_members = seeds[3 * e : 3 * e + 3]
        ensemble = plain_ensemble((5, 10, 5, 2), of_members)
        optimizer = torch.optim.Adam(ensemble.parameters(), lr=0.01)
        order_seeds = of_members if minibatches == "split" else of_members[:1] * 3
        orders = [np.random.Generator(bit_generator(s, "order")) for s in order_seeds]
        y = torch.from_numpy(labels[3 * e]).long()
        for _ in range(4):
            totals = np.zeros(3)
            batches = [torch.from_numpy(o.permutation(len(X))).split(batch_size) for o in orders]
            for of_step in zip(*batches, strict=True):
                losses = [
                    F.cross_entropy(forward(ensemble, inputs[batch], m), y[batch])
                    for m, batch in enumerate(of_step)
                ]
                optimizer.zero_grad()
                torch.stack(losses).mean().backward()
                optimizer.step()
                totals += [v.item() * len(b) for v, b in zip(losses, of_step, strict=True)]
        for m in range(3):
            for ours, layer in zip(trained.weights, ensemble, strict=True):
                np.testing.assert_allclose(
                    ours[3 * e + m, :-1], layer.weights(m).detach(), rtol=1e-3, atol=2e-5
                )
                np.testing.assert_allclose(
                    ours[3 * e + m, -1], layer.bias[m].detach(), rtol=1e-3, atol=2e-5
                )
            assert trained.losses[3 * e + m] == pytest.approx(totals[m] / len(X), rel=1e-4)
            with torch.no_grad():
                expected = forward(ensemble, inputs, m).softmax(1)[:, 1].numpy()
            found = predict_proba(trained[3 * e + m : 3 * e + m + 1], X, device="cpu")[:, 0]
            np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("n_samples", "batch_size", "hidden_sizes"),
    [(150, 32, (100, 20)), (37, 5, (9, 6)), (10, 32, (3, 2)), (37, 1, (10, 5))],
)
@pytest.mark.parametrize("n_members", [1, 3])
def test_an_ensemble_does_not_depend_on_its_company(n_samples, batch_size, hidden_sizes, n_members):
    X, labels = problem(n_samples, n_ensembles=5, n_members=n_members)
    settings = {
        "n_members": n_members,
        "n_epochs": 3,
        "batch_size": batch_size,
        "hidden_sizes": hidden_sizes,
        "device": "cpu",
    }
    seeds = range(len(labels))
    together = train_batch_ensembles(X, labels, seeds=seeds, group_size=5, **settings)
    for group_size in (1, 2, None):
        split = train_batch_ensembles(X, labels, seeds=seeds, group_size=group_size, **settings)
        assert np.array_equal(split.losses, together.losses)
        for a, b in zip(split.weights, together.weights, strict=True):
            assert np.array_equal(a, b)
    rows = slice(3 * n_members, 4 * n_members)
    alone = train_batch_ensembles(X, labels[rows], seeds=seeds[rows], **settings)
    for a, b in zip(alone.weights, together[rows].weights, strict=True):
        assert np.array_equal(a, b)


def test_company_does_not_matter_at_the_size_of_the_benchmark():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 138)).astype(np.float32)
    labels = np.repeat(rng.integers(2, size=(3, 70)), 10, axis=0)
    settings = {"n_members": 10, "n_epochs": 2, "device": "cpu"}
    together = train_batch_ensembles(X, labels, seeds=range(30), group_size=3, **settings)
    for e in range(3):
        rows = slice(10 * e, 10 * e + 10)
        alone = train_batch_ensembles(X, labels[rows], seeds=range(30)[rows], **settings)
        for a, b in zip(alone.weights, together[rows].weights, strict=True):
            assert np.array_equal(a, b)


def test_signs_are_random_and_of_each_member():
    signs = engine._random_signs((400, 300, 2), 0)
    assert [tuple(v.shape for v in layer) for layer in signs] == [((400,), (300,)), ((300,), (2,))]
    values = np.concatenate([v for layer in signs for v in layer])
    assert set(values) == {-1, 1}
    # A sum of n signs has standard deviation √n.
    assert abs(values.sum()) < 5 * np.sqrt(values.size)
    assert not np.array_equal(signs[0][0], engine._random_signs((400, 300, 2), 1)[0][0])


def test_weights_differ_by_factors_of_rank_one():
    X, labels = problem(n_ensembles=1, n_members=4)
    trained = train_batch_ensembles(X, labels, seeds=range(4), n_members=4, **FAST)
    for w in trained.weights:
        for m in range(1, 4):
            ratio = (w[m, :-1] / w[0, :-1]).astype(float)
            first, second, *_ = np.linalg.svd(ratio, compute_uv=False)
            assert second < 1e-3 * first


def test_all_features_may_be_zero():
    labels = np.repeat([[0, 1, 1, 1]], 2, axis=0)
    settings = {"n_members": 2, "n_epochs": 500, "learning_rate": 1e-2, "device": "cpu"}
    trained = train_batch_ensembles(np.zeros((4, 3)), labels, seeds=[0, 1], **settings)
    found = predict_proba(trained, np.zeros((2, 3)), device="cpu")
    np.testing.assert_allclose(found, 0.75, atol=0.02)


def test_the_method_trains_such_ensembles():
    X, labels = problem(n_ensembles=1)
    for minibatches in ("split", "tiled"):
        method = BatchEnsemble(
            **FAST, min_steps=1, n_members=4, minibatches=minibatches, random_state=7
        )
        method.fit(X, labels[0])
        expected = train_batch_ensembles(
            X,
            np.repeat(labels[:1], 4, axis=0),
            seeds=[derive_seed(7, j) for j in range(4)],
            n_members=4,
            minibatches=minibatches,
            **FAST,
        )
        for a, b in zip(method.networks_.weights, expected.weights, strict=True):
            assert np.array_equal(a, b)
