import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.ensemble import RandomForestClassifier

from epistemic_calibration.methods import random_forest
from epistemic_calibration.methods.random_forest import RandomForest

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 5)).astype(np.float32)
Y = (X[:, 0] + RNG.standard_normal(600) > 0).astype(np.uint8)
X_TEST = RNG.standard_normal((200, 5)).astype(np.float32)


@pytest.mark.parametrize(("n_train", "levels"), [(600, None), (600, 256)])
def test_unquantised_hypotheses_are_the_trees_of_scikit_learn(n_train, levels):
    ours = RandomForest(n_estimators=10, max_feature_levels=levels, random_state=3)
    hypotheses = ours.fit(X[:n_train], Y[:n_train]).sample_hypotheses(X_TEST)
    forest = RandomForestClassifier(10, min_samples_leaf=5, random_state=3)
    trees = forest.fit(X[:n_train], Y[:n_train]).estimators_
    expected = np.stack([tree.predict_proba(X_TEST)[:, 1] for tree in trees], axis=1)
    assert np.array_equal(hypotheses, expected)


@pytest.fixture
def always_quantised(monkeypatch):
    monkeypatch.setattr(random_forest, "MIN_SAMPLES_OF_LEVELS", 0)


@pytest.mark.usefixtures("always_quantised")
def test_few_levels_leave_few_distinct_inputs():
    method = RandomForest(n_estimators=10, max_feature_levels=2).fit(X[:, :1], Y)
    hypotheses = method.sample_hypotheses(X_TEST[:, :1])
    above = X_TEST[:, 0] > np.median(X[:, 0])
    upper = X[:, 0] > np.median(X[:, 0])
    for side, half in ((above, upper), (~above, ~upper)):
        assert len(np.unique(hypotheses[side], axis=0)) == 1
        # Each tree saw a bootstrap sample of its own, about 300 points of which are in the half.
        rate = Y[half].mean()
        error = np.sqrt(rate * (1 - rate) / 300)
        np.testing.assert_allclose(hypotheses[side][0], rate, atol=4.5 * error)


@pytest.mark.usefixtures("always_quantised")
def test_quantised_forest_predicts_as_well():
    rng, n = np.random.default_rng(1), 2000
    X_new = rng.standard_normal((n, 5)).astype(np.float32)
    y_new = X_new[:, 0] + rng.standard_normal(n) > 0
    errors = {}
    for levels in (None, 64):
        method = RandomForest(max_feature_levels=levels).fit(X[:400], Y[:400])
        errors[levels] = (method.sample_hypotheses(X_new).mean(axis=1) - y_new) ** 2
    difference = errors[64] - errors[None]
    assert abs(difference.mean()) < 3 * difference.std(ddof=1) / np.sqrt(n)


@pytest.mark.usefixtures("always_quantised")
def test_dead_features_are_quantised_without_warnings():
    X_dead = np.column_stack([X, np.zeros(len(X))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method = RandomForest(n_estimators=5).fit(X_dead, Y)
    assert np.all(np.isfinite(method.sample_hypotheses(X_dead)))


def test_trees_whose_sample_holds_one_class():
    y = np.zeros(30, dtype=int)
    y[0] = 1
    hypotheses = RandomForest(n_estimators=50).fit(X[:30], y).sample_hypotheses(X_TEST)
    # The positive point misses a bootstrap sample with probability (1 − 1/30)^30 = 0.36.
    without = np.all(hypotheses == 0, axis=0)
    low, high = binom.ppf([5e-4, 1 - 5e-4], 50, (1 - 1 / 30) ** 30)
    assert low <= without.sum() <= high


@pytest.mark.parametrize("label", [0, 1])
def test_a_training_set_of_one_class(label):
    y = np.full(30, label)
    hypotheses = RandomForest(n_estimators=5).fit(X[:30], y).sample_hypotheses(X_TEST)
    assert np.array_equal(hypotheses, np.full((200, 5), float(label)))


def test_depth_is_limited():
    method = RandomForest(n_estimators=5, max_depth=1).fit(X, Y)
    assert max(tree.get_depth() for tree in method.forest_.estimators_) == 1
