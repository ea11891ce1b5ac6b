import numpy as np
import pytest
from shipped import python
from sklearn.isotonic import IsotonicRegression

pytest.importorskip("venn_abers", reason="needs epistemic-calibration[extended]")

from epistemic_calibration.methods.venn_abers import VennAbersPredictor

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("decimals", [0, 1, None], ids=["many ties", "ties", "no ties"])
@pytest.mark.parametrize("n", [6, 30, 150])
def test_hypotheses_are_two_isotonic_regressions_per_test_point(n, decimals):
    X, X_test = RNG.standard_normal((n, 2)), RNG.standard_normal((40, 2))
    y = (X[:, 0] + RNG.standard_normal(n) > 0).astype(int)
    y[:2] = [0, 1]
    if decimals is not None:
        X, X_test = X.round(decimals), X_test.round(decimals)
    method = VennAbersPredictor(random_state=3).fit(X, y)
    hypotheses = method.sample_hypotheses(X_test)
    scores, labels = method.calibration_scores_, method.calibration_labels_
    # The definition.
    expected = np.empty((len(X_test), 2))
    for i, score in enumerate(method._scores(X_test)):
        for label in (0, 1):
            isotonic = IsotonicRegression().fit(np.append(scores, score), np.append(labels, label))
            expected[i, label] = isotonic.predict([score])[0]
    np.testing.assert_allclose(hypotheses, expected, atol=1e-12)
    assert np.all(hypotheses[:, 0] <= hypotheses[:, 1])


def test_scores_are_learnt_from_the_rest_of_the_training_set():
    X = RNG.standard_normal((90, 2))
    y = (X[:, 0] > 0).astype(int)
    method = VennAbersPredictor(random_state=2).fit(X, y)
    held_out = np.random.default_rng(2).permutation(90)[:30]
    assert np.array_equal(method.calibration_labels_, y[held_out])
    # Other labels of what is held out do not change the scores.
    changed = y.copy()
    changed[held_out] = 1 - y[held_out]
    again = VennAbersPredictor(random_state=2).fit(X, changed)
    assert np.array_equal(again.calibration_scores_, method.calibration_scores_)


def test_without_scores_it_is_the_base_rate_with_one_more_label():
    X, y = np.zeros((40, 2)), np.arange(40) % 4 == 0
    method = VennAbersPredictor(calibration_fraction=0.5).fit(X, y)
    n_positive = method.calibration_labels_.sum()
    expected = np.tile([n_positive / 21, (n_positive + 1) / 21], (3, 1))
    np.testing.assert_allclose(method.sample_hypotheses(np.zeros((3, 2))), expected)


@pytest.mark.parametrize("label", [0, 1])
def test_a_training_set_of_one_class(label):
    X = RNG.standard_normal((30, 2))
    hypotheses = VennAbersPredictor().fit(X, np.full(30, label)).sample_hypotheses(X)
    # Ten labels of the calibration set, and one of the test point.
    expected = [0, 1 / 11] if label == 0 else [10 / 11, 1]
    np.testing.assert_allclose(hypotheses, np.tile(expected, (30, 1)))


def test_numpy_treats_divisions_as_before():
    # In a new process, since importing the package is what changes it.
    code = (
        "import numpy as np; from epistemic_calibration.methods import load_method; "
        "before = np.geterr(); X = np.arange(30.0)[:, None]; y = np.arange(30) % 2; "
        "load_method('venn_abers')().fit(X, y).sample_hypotheses(X); "
        "import sys; print('venn_abers' in sys.modules, np.geterr() == before)"
    )
    assert python("-c", code).stdout.split() == ["True", "True"]


@pytest.mark.fault
def test_one_training_point_is_refused():
    with pytest.raises(ValueError, match=r"1 training point\(s\); Venn–Abers prediction needs 2"):
        VennAbersPredictor().fit(np.zeros((1, 2)), np.array([1]))
