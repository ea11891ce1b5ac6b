import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from epistemic_calibration.methods import random_forest
from epistemic_calibration.methods.random_forest import RandomForest

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 5)).astype(np.float32)
Y = (X[:, 0] + RNG.standard_normal(600) > 0).astype(np.uint8)
X_TEST = RNG.standard_normal((200, 5)).astype(np.float32)
Y_TEST = X_TEST[:, 0] + RNG.standard_normal(200) > 0


def test_forests_are_like_those_of_scikit_learn():
    # Means over 30 seeds of what is scored, each with its own sample and features.
    def errors(hypotheses):
        mean = hypotheses.mean(axis=1)
        return mean.mean(), hypotheses.var(axis=1).mean(), np.mean((mean - Y_TEST) ** 2)

    ours, theirs = [], []
    for seed in range(30):
        method = RandomForest(n_estimators=20, random_state=seed).fit(X, Y)
        ours.append(errors(method.sample_hypotheses(X_TEST)))
        forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=seed).fit(X, Y)
        trees = [tree.predict_proba(X_TEST)[:, 1] for tree in forest.estimators_]
        theirs.append(errors(np.stack(trees, axis=1)))
    difference = np.mean(ours, axis=0) - np.mean(theirs, axis=0)
    error = np.hypot(np.std(ours, axis=0, ddof=1), np.std(theirs, axis=0, ddof=1)) / np.sqrt(30)
    assert np.all(np.abs(difference) < 3.5 * error)
    # So small a difference that it would show if the trees were others.
    assert np.all(error < 0.02 * np.mean(theirs, axis=0))


@pytest.fixture
def always_quantised(monkeypatch):
    monkeypatch.setattr(random_forest, "MIN_SAMPLES_OF_LEVELS", 0)


@pytest.mark.usefixtures("always_quantised")
def test_tasks_share_levels_and_nothing_else():
    tasks = np.column_stack([Y, 1 - Y, Y])
    parameters = {"n_estimators": 5, "max_feature_levels": 16}
    together = RandomForest.fit_predict_tasks(
        X, tasks, X_TEST, parameters=parameters, random_states=[3, 4, 5]
    )
    for labels, seed, predictions in zip(tasks.T, [3, 4, 5], together, strict=True):
        alone = RandomForest(**parameters, random_state=seed).fit(X, labels)
        assert np.array_equal(predictions.hypotheses, alone.sample_hypotheses(X_TEST))


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
@pytest.mark.filterwarnings("error")
def test_dead_features_are_quantised_without_warnings():
    X_dead = np.column_stack([X, np.zeros(len(X))])
    method = RandomForest(n_estimators=5).fit(X_dead, Y)
    assert np.all(np.isfinite(method.sample_hypotheses(X_dead)))


@pytest.mark.parametrize("label", [0, 1])
def test_a_training_set_of_one_class(label):
    y = np.full(30, label)
    hypotheses = RandomForest(n_estimators=5).fit(X[:30], y).sample_hypotheses(X_TEST)
    assert np.array_equal(hypotheses, np.full((200, 5), float(label)))
