"""What every adapter shares: which one is asked, positive classes, and refusals."""

import numpy as np
import pytest
from scipy.stats import beta, kstest
from shipped import python
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from epistemic_calibration import hypotheses_of
from epistemic_calibration.adapters import ModelError, dirichlet_hypotheses

X, Y = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[Y]
FOREST = RandomForestClassifier(7, max_depth=2, random_state=0).fit(X, Y)


def test_a_positive_class_is_one_of_several():
    of_all = hypotheses_of(FOREST, X)
    for k, name in enumerate(FOREST.classes_):
        found = hypotheses_of(FOREST, X, positive_class=name)
        np.testing.assert_array_equal(found, of_all[:, :, k])


def test_the_positive_class_of_two_is_the_second():
    two = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, Y != "setosa")
    found = hypotheses_of(two, X)
    np.testing.assert_allclose(found.mean(axis=1), two.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(found, hypotheses_of(two, X, positive_class=True))
    np.testing.assert_allclose(found, 1 - hypotheses_of(two, X, positive_class=False))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"positive_class": "rose"}, "'rose' is no class of the model: 'setosa', 'versicolor'"),
        ({"positive_class": 1}, "1 is no class"),
        ({"outputs": "logits"}, "unexpected keyword argument 'outputs'"),
        ({"n_hypotheses": 3}, "RandomForestClassifier has 7 members"),
        ({"n_hypotheses": 1}, "n_hypotheses must be an integer >= 2"),
        ({"random_state": -1}, "random_state must be an integer >= 0"),
        ({"random_state": None}, "random_state must be an integer >= 0"),
    ],
)
def test_wrong_keywords_are_named(keywords, message):
    with pytest.raises((ValueError, TypeError), match=message):
        hypotheses_of(FOREST, X, **keywords)


@pytest.mark.fault
def test_what_is_no_model_is_refused():
    single, linear = GaussianNB().fit(X, Y), pytest.importorskip("torch").nn.Linear(4, 3)
    cases = [
        ([single, linear], r"mixes models of (PyTorch|scikit-learn) and"),
        (np.zeros((3, 2)), "is no model of a library that is known here"),
        (RandomForestClassifier, "is no model"),
        ([], "the list of 0 models has no spread"),
        ([single], "the list of 1 models has no spread"),
        ([single, single], "has no spread: give two models or more, fitted apart"),
        ([single, object()], "is no model"),
    ]
    for model, message in cases:
        with pytest.raises(ModelError, match=message) as caught:
            hypotheses_of(model, X)
        assert "\n" not in str(caught.value)


def test_the_interface_is_enough_and_no_library_is_loaded_that_was_not_there():
    code = """
import sys
import numpy as np
from epistemic_calibration import hypotheses_of
class Constant:
    classes_ = (0, 1)
    def __init__(self, p):
        self.p = p
    def predict_proba(self, X):
        return np.tile([1 - self.p, self.p], (len(X), 1))
assert "sklearn" not in sys.modules
assert hypotheses_of([Constant(0.25), Constant(0.5)], np.zeros((3, 1))).shape == (3, 2)
assert not {"torch", "laplace", "torchmetrics"} & set(sys.modules)
"""
    python("-c", code)


def test_draws_of_dirichlet_laws_have_their_moments():
    alpha = np.array([[1.0, 3.0, 4.0], [0.01, 0.02, 0.03], [50.0, 1.0, 9.0]])
    found = dirichlet_hypotheses(alpha, n_hypotheses=20_000)
    total = alpha.sum(axis=1, keepdims=True)
    mean = alpha / total
    variance = mean * (1 - mean) / (total + 1)
    assert np.all(np.abs(found.mean(axis=1) - mean) < 5 * np.sqrt(variance / 20_000))
    np.testing.assert_allclose(found.var(axis=1), variance, rtol=0.1)
    np.testing.assert_allclose(found.sum(axis=2), 1)
    # Beta(3, 1) of the second class.
    two = dirichlet_hypotheses([[1, 3]], n_hypotheses=20_000)
    assert kstest(two[0], beta(3, 1).cdf).pvalue > 1e-4
    for wrong in ([[0, 1]], [1, 2], [[np.nan, 1]]):
        with pytest.raises(ValueError, match="alpha must be positive numbers"):
            dirichlet_hypotheses(wrong)
