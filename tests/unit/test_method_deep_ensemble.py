"""The deep ensemble, its control, and what all methods made of networks promise."""

import numpy as np
import pytest
import torch
from scipy.stats import binom, chi2
from sklearn.linear_model import LogisticRegression

from epistemic_calibration.methods import load_method
from epistemic_calibration.methods.kernels.networks import train_networks
from epistemic_calibration.methods.kernels.prediction import predict_proba
from epistemic_calibration.seeds import derive_seed

NETWORK_METHODS = [
    "deep_ensemble",
    "label_shuffled_ensemble",
    "dropconnect",
    "mc_dropout",
    "laplace",
    "evidential",
    "swag",
]
#: How many hypotheses each has by default.
N_HYPOTHESES = {
    **dict.fromkeys(NETWORK_METHODS, 100),
    "deep_ensemble": 10,
    "label_shuffled_ensemble": 10,
    "swag": 30,
}
FAST = {
    "hidden_sizes": [10, 5],
    "n_epochs": 5,
    "min_steps": 1,
    "learning_rate": 0.01,
    "device": "cpu",
}


def problem(n_train=200, n_test=40, n_tasks=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_train + n_test, 4)).astype(np.float32)
    scores = X @ rng.normal(size=(4, n_tasks)) + 0.5 * rng.normal(size=(len(X), n_tasks))
    Y = (scores > 0).astype(np.uint8)
    return X[:n_train], Y[:n_train], X[n_train:], Y[n_train:]


@pytest.mark.parametrize("name", NETWORK_METHODS)
def test_tasks_together_are_tasks_alone(name):
    X, Y, X_test, _ = problem()
    method = load_method(name)
    results = method.fit_predict_tasks(X, Y, X_test, parameters=FAST, random_states=[11, 12, 13])
    seen = []
    for k, together in enumerate(results):
        alone = method(**FAST, random_state=11 + k).fit(X, Y[:, k]).predict(X_test)
        assert np.array_equal(together.hypotheses, alone.hypotheses)
        assert together.diagnostics == alone.diagnostics
        assert together.epistemic_uncertainty is None
        assert together.prediction is None
        seen.append(together.hypotheses)
    assert len(seen) == 3
    assert not np.array_equal(seen[0], seen[1])


@pytest.mark.parametrize("name", NETWORK_METHODS)
def test_hypotheses_are_probabilities_that_differ(name):
    X, Y, X_test, _ = problem()
    method = load_method(name)(**FAST, random_state=3).fit(X, Y[:, 0])
    hypotheses = method.sample_hypotheses(X_test)
    n_hypotheses = N_HYPOTHESES[name]
    assert hypotheses.shape == (len(X_test), n_hypotheses)
    assert np.isfinite(hypotheses).all()
    assert hypotheses.min() >= 0
    assert hypotheses.max() <= 1
    assert (hypotheses.std(axis=1) > 0).all()
    assert len(np.unique(hypotheses, axis=1).T) == n_hypotheses
    assert np.array_equal(method.sample_hypotheses(X_test), hypotheses)
    assert 0 < method.diagnostics()["final_training_loss"] < 1


@pytest.mark.parametrize("name", sorted({*NETWORK_METHODS} - {"label_shuffled_ensemble"}))
def test_methods_learn(name):
    X, Y, X_test, Y_test = problem(n_train=500, n_test=300)
    method = load_method(name)(**{**FAST, "n_epochs": 20}, random_state=0).fit(X, Y[:, 0])
    mean = method.sample_hypotheses(X_test).mean(axis=1)
    right = (mean > 0.5) == Y_test[:, 0]
    # But for noise a plane divides the classes: who is as good as a logistic regression is right
    # at half of the inputs at which just one of the two is.
    other = LogisticRegression().fit(X, Y[:, 0]).predict(X_test) == Y_test[:, 0]
    assert (right & ~other).sum() >= binom.ppf(1e-3, (right != other).sum(), 0.5)


@pytest.mark.fault
@pytest.mark.parametrize("name", NETWORK_METHODS)
def test_absent_cuda_is_told(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    X, Y, *_ = problem()
    with pytest.raises(ValueError, match="device='cuda'"):
        load_method(name)(**{**FAST, "device": "cuda"}).fit(X, Y[:, 0])


def test_members_are_networks_with_their_own_seeds():
    X, Y, X_test, _ = problem()
    method = load_method("deep_ensemble")(n_members=4, **FAST, random_state=7).fit(X, Y[:, 0])
    settings = {name: value for name, value in FAST.items() if name != "min_steps"}
    networks = train_networks(
        X, np.repeat(Y[:, :1].T, 4, axis=0), seeds=[derive_seed(7, j) for j in range(4)], **settings
    )
    expected = predict_proba(networks, X_test, device="cpu")
    assert np.array_equal(method.sample_hypotheses(X_test), expected)


@pytest.mark.parametrize(("min_steps", "n_epochs"), [(1, 5), (10, 5), (11, 6), (500, 250)])
def test_epochs_are_added_until_there_are_enough_steps(min_steps, n_epochs):
    X, Y, X_test, _ = problem()
    X, y = X[:40], Y[:40, 0]
    assert len(y) == 40  # two steps of an epoch: 32 samples and 8
    method = load_method("deep_ensemble")(n_members=2, **{**FAST, "min_steps": min_steps})
    settings = {**FAST, "n_epochs": n_epochs}
    del settings["min_steps"]
    networks = train_networks(
        X, np.stack([y, y]), seeds=[derive_seed(0, j) for j in range(2)], **settings
    )
    expected = predict_proba(networks, X_test, device="cpu")
    assert np.array_equal(method.fit(X, y).sample_hypotheses(X_test), expected)


def test_the_first_members_do_not_depend_on_the_number_of_members():
    X, Y, X_test, _ = problem()
    few, many = (
        load_method("deep_ensemble")(n_members=n, **FAST).fit(X, Y[:, 0]).sample_hypotheses(X_test)
        for n in (2, 5)
    )
    assert np.array_equal(few, many[:, :2])


def test_the_shuffled_ensemble_learns_the_base_rate_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)).astype(np.float32)
    y = (X[:, 0] > 0.8).astype(np.uint8)
    method = load_method("label_shuffled_ensemble")(
        n_members=3, hidden_sizes=[5], learning_rate=0.01, n_epochs=10, device="cpu"
    )
    assert method.family == "control"
    shuffled = method.training_labels(y)
    assert shuffled.sum() == y.sum()
    # A permutation at random leaves labels and features uncorrelated, up to 1 / sqrt(n).
    assert abs(np.corrcoef(shuffled, X[:, 0])[0, 1]) < 5 / np.sqrt(len(X))
    mean, rate = method.fit(X, y).sample_hypotheses(X).mean(axis=1), y.mean()
    # 21 parameters, 2·5 + 5 and of the log odds 5 + 1, fit noise with squares of sum χ²_21.
    noise = rate * (1 - rate) * chi2.ppf(1 - 5e-4, 21) / len(X)
    assert np.mean((mean - rate) ** 2) < noise


def test_the_shuffled_ensemble_is_the_ensemble_on_shuffled_labels():
    X, Y, X_test, _ = problem()
    shuffled = load_method("label_shuffled_ensemble")(**FAST, random_state=2)
    plain = load_method("deep_ensemble")(**FAST, random_state=2)
    labels = shuffled.training_labels(Y[:, 0])
    assert not np.array_equal(labels, Y[:, 0])
    assert np.array_equal(
        shuffled.fit(X, Y[:, 0]).sample_hypotheses(X_test),
        plain.fit(X, labels).sample_hypotheses(X_test),
    )
