"""Networks trained in lock step are the networks that plain PyTorch would train."""

import logging
import math

import numpy as np
import pytest
import torch
from plain_networks import PlainNetwork
from scipy.stats import kstest, uniform
from torch import nn
from torch.nn import functional as F

from epistemic_calibration.methods.kernels import networks as engine
from epistemic_calibration.methods.kernels import prediction
from epistemic_calibration.methods.kernels.masks import DropConnect, Dropout, Masks
from epistemic_calibration.methods.kernels.minibatches import (
    LockStepTraining,
    bit_generator,
    cross_entropy,
    padded_rows,
    with_constant,
)
from epistemic_calibration.methods.kernels.networks import (
    initial_weights,
    train_networks,
    training_mode,
)
from epistemic_calibration.methods.kernels.prediction import (
    dropout_hypotheses,
    last_hidden_activations,
    predict_proba,
)

NOISES = {
    "none": None,
    "dropout": Dropout((0.3, 0.2)),
    "dropconnect": DropConnect(0.3),
    "dropconnect all": DropConnect(0.3, output_layer=True),
}


def problem(n_samples=150, n_networks=3, n_features=6, seed=0):
    """Inputs with a dead and a constant feature, and labels that depend on the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)).astype(np.float32)
    X[:, 1] = 0
    X[:, 2] = 0.7
    scores = X @ rng.normal(size=(n_features, n_networks)) + rng.normal(
        size=(n_samples, n_networks)
    )
    return X, (scores.T > 0).astype(np.uint8)


X, LABELS = problem()


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("size", [32, 13])
def test_gradients_are_those_of_autograd(noise, size):
    initial = [initial_weights((6, 7, 5, 2), seed) for seed in range(3)]
    training = LockStepTraining(
        with_constant(torch.from_numpy(X), padded_rows(7, 7)),
        LABELS,
        [np.stack(of_layer) for of_layer in zip(*initial, strict=True)],
        seeds=[0, 1, 2],
        batch_size=size,
        learning_rate=1e-3,
        noise=noise,
        loss=cross_entropy,
    )
    training.epoch, step = 1, training.steps[size]
    indices = torch.randint(len(X), (3, 32), generator=torch.Generator().manual_seed(1))
    targets = torch.from_numpy(LABELS.astype(np.float32)).gather(1, indices)
    losses = torch.zeros((3, 32))
    step.compute_gradients(indices, targets, losses)

    for k in range(3):
        weights = [
            w[k, :n].clone().requires_grad_()
            for w, n in zip(training.weights, training.n_rows, strict=True)
        ]
        used = weights
        if isinstance(noise, DropConnect):
            masks = training.weight_masks.blocks
            used = [w * m[k, : len(w)] for w, m in zip(weights, masks, strict=False)]
            used += weights[len(masks) :]
            assert len(masks) == (3 if noise.output_layer else 2)
        hidden = torch.from_numpy(X)[indices[k, :size]]
        for i, w in enumerate(used):
            hidden = hidden @ w[:-1] + w[-1]
            if i < 2:
                hidden = hidden.relu()
                if isinstance(noise, Dropout):
                    hidden = hidden * step.dropout_masks.blocks[i][k, :size]
        of_samples = F.cross_entropy(hidden, targets[k, :size].long(), reduction="none")
        of_samples.mean().backward()
        torch.testing.assert_close(losses[k, :size], of_samples.detach())
        for ours, w in zip(training.weight_gradients, weights, strict=True):
            torch.testing.assert_close(ours[k, : len(w)], w.grad, rtol=1e-4, atol=1e-7)
            assert not ours[k, len(w) :].any()


@pytest.mark.parametrize("batch_size", [32, 50, 1000])
def test_training_is_that_of_a_plain_loop(batch_size):
    X, labels = problem(n_samples=150, n_networks=2)
    seeds, n_epochs = [5, 6], 4
    trained = train_networks(
        X,
        labels,
        seeds=seeds,
        hidden_sizes=(10, 4),
        n_epochs=n_epochs,
        batch_size=batch_size,
        learning_rate=3e-3,
        device="cpu",
    )
    for k, seed in enumerate(seeds):
        plain = PlainNetwork((6, 10, 4, 2), seed)
        optimizer = torch.optim.Adam(plain.module.parameters(), lr=3e-3)
        for _ in range(n_epochs):
            loss = plain.run_epoch(X, labels[k], optimizer, batch_size=batch_size)
        plain.assert_weights(trained.weights, k, rtol=1e-4, atol=1e-5)
        assert trained.losses[k] == pytest.approx(loss, rel=1e-5)
        with torch.no_grad():
            expected = plain.module(torch.from_numpy(X)).softmax(1)[:, 1].numpy()
            hidden = plain.module[:-1](torch.from_numpy(X)).numpy()
        found = predict_proba(trained, X, device="cpu")[:, k]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        found = last_hidden_activations(trained, X, device="cpu")[k]
        np.testing.assert_allclose(found, hidden, atol=1e-5)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize(
    ("n_samples", "batch_size", "hidden_sizes", "n_features"),
    [
        (150, 32, (100, 20), 6),
        (70, 32, (100, 20), 138),
        (37, 5, (100, 20), 6),
        (10, 32, (9, 6), 6),
        (37, 32, (10, 5), 6),
        # One unit is a product with a vector, for which libraries have other kernels.
        (37, 1, (3, 2), 6),
    ],
)
def test_a_network_does_not_depend_on_its_company(
    noise, n_samples, batch_size, hidden_sizes, n_features
):
    # Odd sizes leave neighbours unaligned, unless arrays are padded.
    X, labels = problem(n_samples=n_samples, n_networks=7, n_features=n_features)
    settings = {
        "n_epochs": 3,
        "batch_size": batch_size,
        "hidden_sizes": hidden_sizes,
        "noise": noise,
        "device": "cpu",
    }
    together = train_networks(X, labels, seeds=range(7), group_size=7, **settings)
    for group_size in (1, 2, 3, None):
        split = train_networks(X, labels, seeds=range(7), group_size=group_size, **settings)
        assert np.array_equal(split.losses, together.losses)
        for a, b in zip(split.weights, together.weights, strict=True):
            assert np.array_equal(a, b)
    alone = train_networks(X, labels[4:5], seeds=[4], **settings)
    for a, b in zip(alone.weights, together[4:5].weights, strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(
        predict_proba(alone, X, device="cpu")[:, 0], predict_proba(together, X, device="cpu")[:, 4]
    )


@pytest.mark.parametrize("noise", [Dropout((0.0, 0.0)), DropConnect(0.0)])
def test_masks_that_drop_nothing_change_nothing(noise):
    settings = {"seeds": range(3), "n_epochs": 2, "device": "cpu"}
    masked = train_networks(X, LABELS, noise=noise, **settings)
    plain = train_networks(X, LABELS, **settings)
    for a, b in zip(masked.weights, plain.weights, strict=True):
        assert np.array_equal(a, b)


def test_weights_of_a_feature_that_is_always_zero_stay_as_drawn():
    trained = train_networks(X, LABELS, seeds=range(3), n_epochs=2, device="cpu")
    for k in range(3):
        start = initial_weights((6, 100, 20, 2), k)[0]
        moved = (trained.weights[0][k] != start).any(axis=1)
        assert moved.tolist() == [True, False, True, True, True, True, True]
    # ... and count in prediction where the feature is not zero.
    X_new = X.copy()
    X_new[:, 1] = 5
    assert not np.array_equal(
        predict_proba(trained, X, device="cpu"), predict_proba(trained, X_new, device="cpu")
    )


def test_initial_weights_are_distributed_as_those_of_torch():
    ours = initial_weights((400, 300, 2), seed=0)
    theirs = nn.Linear(400, 300)
    for values in (ours[0], theirs.weight.detach().numpy()):
        assert kstest(20 * values.ravel(), uniform(-1, 2).cdf).pvalue > 1e-4
    assert [w.shape for w in ours] == [(401, 300), (301, 2)]
    assert not np.array_equal(ours[0], initial_weights((400, 300, 2), seed=1)[0])


def test_masks_are_bernoulli_and_scaled_to_mean_one():
    shapes, probabilities = [(500, 40), (3, 7)], [0.3, 0.2]
    masks = Masks(shapes, probabilities, n_networks=2, device=torch.device("cpu"))
    generators = [bit_generator(seed, "masks") for seed in (0, 1)]
    masks.draw(generators)
    first = masks.blocks[0].clone()
    assert [tuple(b.shape) for b in masks.blocks] == [(2, 500, 40), (2, 3, 7)]
    for block, p in zip(masks.blocks, probabilities, strict=True):
        values = np.unique(block.numpy())
        np.testing.assert_allclose(values, [0, 1 / (1 - p)], rtol=1e-4)
    for k in range(2):
        n, kept = first[k].numel(), (first[k] > 0).float().mean().item()
        assert abs(kept - 0.7) < 5 * math.sqrt(0.3 * 0.7 / n)
    assert not torch.equal(first[0], first[1])
    masks.draw(generators)
    agreement = (masks.blocks[0] == first).float().mean().item()
    # Independent masks agree with probability 0.7^2 + 0.3^2 = 0.58.
    assert abs(agreement - 0.58) < 5 * math.sqrt(0.58 * 0.42 / first.numel())


def test_dropping_nothing_for_each_input_is_the_network_itself():
    X, labels = problem(n_networks=1)
    trained = train_networks(X, labels, seeds=[0], n_epochs=2, device="cpu")
    expected = np.repeat(predict_proba(trained, X, device="cpu"), 3, axis=1)
    settings = {"n_hypotheses": 3, "shared_masks": False, "seed": 0, "device": "cpu"}
    hypotheses = dropout_hypotheses(trained, X, Dropout((0.0, 0.0)), **settings)
    np.testing.assert_allclose(hypotheses, expected, atol=1e-6)


def test_prediction_is_the_same_in_pieces(monkeypatch):
    X, labels = problem(n_networks=2)
    trained = train_networks(X, labels, seeds=range(2), n_epochs=1, device="cpu")
    whole = predict_proba(trained, X, device="cpu")
    monkeypatch.setattr(prediction, "_CHUNK", 40)
    np.testing.assert_allclose(predict_proba(trained, X, device="cpu"), whole, atol=1e-6)


def test_denormal_floats_are_flushed_in_training_only():
    for flushed in (True, False):
        torch.set_flush_denormal(flushed)
        with training_mode():
            assert torch.full((), 1e-40).mul(1).item() == 0
        assert (torch.full((), 1e-40).mul(1).item() == 0) == flushed


def test_progress_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="epistemic_calibration"):
        train_networks(X, LABELS, seeds=range(3), n_epochs=2, group_size=2, device="cpu")
    assert len(caplog.messages) == 4
    assert caplog.messages[0].startswith("networks 1-2 of 3, epoch 1/2: mean loss 0.")
    assert caplog.messages[3].startswith("networks 3-3 of 3, epoch 2/2: mean loss 0.")


@pytest.mark.fault
def test_a_loss_that_is_not_finite_is_an_error():
    with pytest.raises(FloatingPointError, match="learning_rate=1e"):
        train_networks(X, LABELS, seeds=range(3), learning_rate=1e30, device="cpu")


@pytest.mark.fault
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros(5)}, "X has shape"),
        ({"X": np.full((150, 6), np.nan)}, "NaN"),
        ({"labels": np.zeros((2, 150))}, "labels has shape"),
        ({"labels": np.full((3, 150), 2)}, "labels must be 0 or 1"),
        ({"hidden_sizes": []}, "hidden_sizes"),
        ({"noise": Dropout((0.3,))}, "drop_probabilities"),
        ({"device": "tpu"}, "device='tpu'"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    arguments = {"X": X, "labels": LABELS, "seeds": range(3), "device": "cpu", **change}
    with pytest.raises(ValueError, match=message):
        train_networks(**arguments)


@pytest.mark.fault
def test_absent_cuda_is_an_error_only_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert engine.resolve_device("auto").type == "cpu"
    with pytest.raises(ValueError, match="finds no GPU"):
        engine.resolve_device("cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_cuda_agrees_with_the_cpu(noise):
    settings = {"seeds": range(3), "n_epochs": 2, "noise": noise}
    cpu, cuda = (train_networks(X, LABELS, device=d, **settings) for d in ("cpu", "cuda"))
    np.testing.assert_allclose(cuda.losses, cpu.losses, rtol=1e-3)
