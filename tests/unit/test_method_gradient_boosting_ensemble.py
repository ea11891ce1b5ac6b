import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from epistemic_calibration.methods.gradient_boosting_ensemble import GradientBoostingEnsemble
from epistemic_calibration.seeds import derive_seed

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 4)).astype(np.float32)
Y = (X[:, 0] + RNG.standard_normal(400) > 0).astype(np.uint8)
X_TEST = RNG.standard_normal((100, 4)).astype(np.float32)


def test_members_are_models_fitted_by_themselves_on_the_same_bootstrap_samples():
    method = GradientBoostingEnsemble(n_members=3, max_iter=10, random_state=5).fit(X, Y)
    hypotheses = method.sample_hypotheses(X_TEST)
    for j in range(3):
        drawn = np.random.default_rng(derive_seed(5, j)).integers(0, 400, 400)
        points, counts = np.unique(drawn, return_counts=True)
        model = HistGradientBoostingClassifier(
            max_iter=10,
            learning_rate=0.2,
            max_leaf_nodes=31,
            min_samples_leaf=5,
            max_bins=32,
            early_stopping=False,
        ).fit(X[points], Y[points], sample_weight=counts)
        np.testing.assert_array_equal(hypotheses[:, j], model.predict_proba(X_TEST)[:, 1])
    assert len(np.unique(hypotheses, axis=1).T) == 3


@pytest.mark.parametrize("label", [0, 1])
def test_a_training_set_of_one_class(label):
    method = GradientBoostingEnsemble(n_members=2).fit(X[:30], np.full(30, label))
    assert np.array_equal(method.sample_hypotheses(X_TEST), np.full((100, 2), float(label)))


def test_a_member_whose_sample_misses_the_rare_class_predicts_the_other():
    y = np.zeros(30, dtype=int)
    y[0] = 1
    method = GradientBoostingEnsemble(n_members=20, max_iter=2).fit(X[:30], y)
    missed = [
        0 not in np.random.default_rng(derive_seed(0, j)).integers(0, 30, 30) for j in range(20)
    ]
    # The probability of missing it is (1 − 1/30)^30 = 0.36.
    assert 0 < sum(missed) < 20
    assert np.array_equal(np.all(method.sample_hypotheses(X_TEST) == 0, axis=0), missed)
