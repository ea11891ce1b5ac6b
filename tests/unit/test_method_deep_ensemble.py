"""The deep ensemble, its control, and what all methods made of networks promise."""

import numpy as np
import pytest
from plain_networks import FAST
from scipy.stats import binom, chi2
from sklearn.linear_model import LogisticRegression

from epistemic_calibration.methods import load_method
from epistemic_calibration.methods.kernels.networks import train_networks
from epistemic_calibration.methods.kernels.prediction import predict_proba
from epistemic_calibration.seeds import derive_seed


def problem(n_train=200, n_test=40, n_tasks=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_train + n_test, 4)).astype(np.float32)
    scores = X @ rng.normal(size=(4, n_tasks)) + 0.5 * rng.normal(size=(len(X), n_tasks))
    Y = (scores > 0).astype(np.uint8)
    return X[:n_train], Y[:n_train], X[n_train:], Y[n_train:]


@pytest.mark.parametrize(
    "name", ["deep_ensemble", "dropconnect", "mc_dropout", "laplace", "evidential", "swag"]
)
def test_methods_learn_and_their_hypotheses_differ(name):
    X, Y, X_test, Y_test = problem(n_train=500, n_test=300)
    method = load_method(name)(**{**FAST, "n_epochs": 20}, random_state=0).fit(X, Y[:, 0])
    hypotheses = method.sample_hypotheses(X_test)
    assert np.array_equal(method.sample_hypotheses(X_test), hypotheses)
    assert len(np.unique(hypotheses, axis=1).T) == hypotheses.shape[1] > 1
    assert 0 < method.diagnostics()["final_training_loss"] < 1
    right = (hypotheses.mean(axis=1) > 0.5) == Y_test[:, 0]
    # But for noise a plane divides the classes: who is as good as a logistic regression is right
    # at half of the inputs at which just one of the two is.
    other = LogisticRegression().fit(X, Y[:, 0]).predict(X_test) == Y_test[:, 0]
    assert (right & ~other).sum() >= binom.ppf(1e-3, (right != other).sum(), 0.5)


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
