import numba
import numpy as np
import pytest
from scipy.stats import binom
from sklearn.tree import DecisionTreeClassifier

from epistemic_calibration.methods.kernels.trees import (
    compiled,
    grow_tree,
    positive_fractions,
    ranks,
)

N = 2000
ALL = {"min_samples_leaf": 1, "max_depth": None, "bootstrap": False}


def sample(seed, n_features, decimals):
    rng = np.random.default_rng(seed)
    X, X_test = np.round(rng.standard_normal((2, N, n_features)), decimals).astype(np.float32)
    y = (X[:, 0] + rng.standard_normal(N) > 1).astype(np.uint8)
    return X, y, X_test


def grown(X, y, *, seed=0, max_features=None, **settings):
    settings = {**ALL, "max_features": max_features or X.shape[1], **settings}
    return grow_tree(ranks(X), y, rng=np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("decimals", [1, 6])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limits", [{}, {"min_samples_leaf": 5}, {"max_depth": 1}])
def test_one_feature_is_split_as_scikit_learn_does(seed, limits, decimals):
    X, y, X_test = sample(seed, 1, decimals)
    expected = DecisionTreeClassifier(**limits).fit(X, y).predict_proba(X_test)[:, 1]
    fractions = positive_fractions(grown(X, y, **limits), X_test)
    # Of two splits of a small node that are equally good, rounding may favour either.
    assert np.mean(fractions != expected) < 0.02


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_several_features_is_that_of_scikit_learn(seed):
    # Few nodes, all large, of which no two features split equally well.
    X, y, X_test = sample(seed, 10, 6)
    limits = {"max_depth": 3, "min_samples_leaf": 60}
    reference = DecisionTreeClassifier(**limits).fit(X, y)
    fractions = positive_fractions(grown(X, y, **limits), X_test)
    np.testing.assert_array_equal(fractions, reference.predict_proba(X_test)[:, 1])


def test_a_bootstrap_sample_weighs_the_points():
    X, y, X_test = sample(0, 1, 6)
    weights = np.bincount(np.random.default_rng(4).integers(N, size=N), minlength=N)
    drawn = weights > 0
    reference = DecisionTreeClassifier(min_samples_leaf=5)
    reference.fit(X[drawn], y[drawn], sample_weight=weights[drawn])
    fractions = positive_fractions(grown(X, y, seed=4, min_samples_leaf=5, bootstrap=True), X_test)
    np.testing.assert_array_equal(fractions, reference.predict_proba(X_test)[:, 1])


def test_constant_features_are_passed_over():
    X, y, X_test = sample(0, 1, 6)
    constant = np.zeros((N, 30), dtype=np.float32)
    alone = positive_fractions(grown(X, y, min_samples_leaf=5), X_test)
    tree = grown(np.hstack([constant, X, constant]), y, max_features=3, min_samples_leaf=5)
    assert set(tree.feature) == {-1, 30}
    among = np.hstack([constant, X_test, constant])
    np.testing.assert_array_equal(positive_fractions(tree, among), alone)


@pytest.mark.parametrize(("n_features", "share"), [(1, 1 / 4), (4, 1 / 2)])
def test_the_best_of_the_drawn_features_is_taken(n_features, share):
    # Two of four are drawn. Of four equal ones the first drawn is taken; where only feature 0
    # says anything, it is wherever it is drawn.
    X, _, _ = sample(0, n_features, 6)
    y = (X[:, 0] > 0).astype(np.uint8)
    X = np.repeat(X, 4 // n_features, axis=1)
    roots = [grown(X, y, seed=k, max_features=2, max_depth=1).feature[0] for k in range(400)]
    low, high = binom.ppf([5e-5, 1 - 5e-5], 400, share)
    assert low <= np.sum(np.equal(roots, 0)) <= high


def test_features_that_do_not_vary_make_a_leaf():
    tree = grown(np.ones((4, 3), dtype=np.float32), np.array([0, 1, 1, 1]))
    assert len(tree.feature) == 1
    assert tree.positive_fraction[0] == 0.75


def test_thresholds_are_halfway():
    X = np.array([[0], [0], [1], [1]], dtype=np.float32)
    tree = grown(X, np.array([0, 0, 1, 1]))
    assert tree.threshold[0] == 0.5
    assert positive_fractions(tree, np.float32([[0.5], [0.51]])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("n", "dtype"), [(256, np.uint8), (257, np.uint16), (65536, np.uint16), (65537, np.uint32)]
)
def test_ranks(n, dtype):
    column = np.random.default_rng(0).permutation(np.arange(n, dtype=np.float32) - 5)
    ranked = ranks(np.column_stack([column, np.full(n, 7, dtype=np.float32)]))
    assert ranked.codes.dtype == dtype
    np.testing.assert_array_equal(ranked.values[0][ranked.codes[0]], column)
    assert ranked.values[1].tolist() == [7]
    assert not ranked.codes[1].any()


def test_too_many_samples_are_refused():
    y = np.zeros(2**21, dtype=np.uint8)
    with pytest.raises(ValueError, match="2,097,152 training samples; a tree takes 2,097,151"):
        grow_tree(ranks(np.ones((1, 1))), y, max_features=1, rng=np.random.default_rng(0), **ALL)


def test_code_is_compiled_where_it_cannot_be_kept(monkeypatch):
    njit = numba.njit

    def without_cache(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*args, **options)

    monkeypatch.setattr(numba, "njit", without_cache)
    assert compiled(lambda x: x + 1)(2) == 3
