import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, chi2
from sklearn.linear_model import RidgeCV

from epistemic_calibration import metrics
from epistemic_calibration.metrics import _regression
from epistemic_calibration.metrics._regression import ridge_coefficients
from epistemic_calibration.metrics.lower_bound import _calibrated_variance, _variance_of_groups


def test_lower_bound_is_below_and_near(predictor):
    n = 8000
    # 32 coefficients fitted to 4/5 of the labels, whose variance is at most 1/4.
    regression_error = 32 * 0.25 / (0.8 * n)
    for change in ({"mean_error": 0.5}, {"dependence": 0.6}):
        y, hypotheses, error = predictor(n, **change)
        bound = metrics.cross_fitted_lower_bound(y, hypotheses)
        truth = np.mean(error**2)
        assert bound.ci_low < truth
        assert bound.estimate > truth - regression_error - 3 * bound.standard_error
    y, hypotheses, _ = predictor(n)
    bound = metrics.cross_fitted_lower_bound(y, hypotheses)
    # Without error the mean of the estimate is that of −ĝ², below 0.
    assert bound.ci_low == 0


def test_lower_bound_of_constant_predictions():
    y = np.arange(400) % 2
    bound = metrics.cross_fitted_lower_bound(y, np.full((400, 3), 0.25))
    # Folds of 80 whose means are off by δ lose 9/16 of the mean of δ², whose sum is χ²_4·0.25/80.
    loss = 9 / 16 * 0.25 / 80 * chi2.ppf(1 - 5e-4, 4) / 5
    assert 0.25**2 - loss < bound.estimate < 0.25**2


def test_few_positives_do_not_lift_the_limit():
    n, n_runs, above = 1000, 150, 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(-6.3, 1, n))
        hypotheses = rng.beta((p * 5)[:, None], ((1 - p) * 5)[:, None], (n, 10))
        y = rng.random(n) < hypotheses.mean(axis=1)
        above += metrics.cross_fitted_lower_bound(y, hypotheses).ci_low > 0
    # The variance of the gains alone gives 0.17.
    assert above <= binom.ppf(0.999, n_runs, 0.05)


def test_labels_of_one_class_do_not_pass_for_certainty():
    n, p = 50, 0.05
    bound = metrics.cross_fitted_lower_bound(np.zeros(n), np.full((n, 5), p))
    # All e are −p and all ĝ the same: the gain is ĝ(−2p − ĝ) = p² − (p + ĝ)².
    fitted = np.sqrt(p**2 - bound.estimate) - p
    assert -p < fitted < -0.9 * p
    expected = np.sqrt(4 * fitted**2 * p * (1 - p) / n)
    assert bound.standard_error == pytest.approx(expected, rel=1e-9)
    assert bound.ci_low == 0


# --- Groups


def test_variances_of_copies_are_those_of_the_originals():
    rng = np.random.default_rng(0)
    values, deviation, groups = rng.random(20), rng.random(20), np.repeat(np.arange(20), 3)
    variance = _variance_of_groups(np.repeat(values, 3), groups) / 60
    assert variance == pytest.approx(values.var(ddof=1) / 20)
    error = np.repeat(rng.normal(size=20), 3)
    variance = _calibrated_variance(np.repeat(deviation, 3), error, groups) / 60
    assert variance == pytest.approx(np.mean(deviation**2) / 20)
    # Errors that cancel in their groups are no sign of dependence.
    error = np.tile([1.0, -0.5, -0.5], 20)
    variance = _calibrated_variance(np.repeat(deviation, 3), error, groups) / 60
    assert variance == pytest.approx(np.mean(deviation**2) / 60)


@pytest.mark.parametrize("location", [0.0, -4.5])
def test_copies_do_not_lift_the_limit(location):
    n, n_runs = 250, 80
    above = {"given": 0, "not given": 0}
    groups = np.repeat(np.arange(n), 4)
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(location, 1, n))
        hypotheses = rng.beta((p * 20)[:, None], ((1 - p) * 20)[:, None], (n, 10))
        y = rng.random(n) < hypotheses.mean(axis=1)
        y, hypotheses = y[groups], hypotheses[groups]
        bound = metrics.cross_fitted_lower_bound(y, hypotheses, groups=groups)
        above["given"] += bound.ci_low > 0
        above["not given"] += metrics.cross_fitted_lower_bound(y, hypotheses).ci_low > 0
    assert above["given"] <= binom.ppf(0.999, n_runs, 0.05) < above["not given"]


def test_groups_must_fill_the_folds(predictor):
    y, hypotheses, _ = predictor(20)
    with pytest.raises(ValueError, match="5 folds take as many samples, or groups, got 4"):
        metrics.cross_fitted_lower_bound(y, hypotheses, groups=np.arange(20) % 4)


@pytest.mark.parametrize(("n", "signal"), [(300, 0.0), (300, 1.0), (20, 1.0)])
def test_ridge_is_that_of_scikit_learn(n, signal, monkeypatch):
    monkeypatch.setattr("epistemic_calibration.metrics._validation._ROW_BLOCK_SIZE", 700)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 24)) * np.logspace(0, -3, 24)
    X[:, 5] = X[:, 4]
    y = signal * X[:, 0] + rng.standard_normal(n)
    alphas = np.logspace(-2, 4, 19)
    expected = RidgeCV(alphas=alphas, fit_intercept=False).fit(X, y).coef_
    assert len(list(_regression.row_blocks(X))) > 1 or n == 20
    np.testing.assert_allclose(ridge_coefficients(X, y, alphas), expected, rtol=1e-8, atol=1e-12)


def test_ridge_leaves_out_what_is_held_out():
    rng = np.random.default_rng(0)
    X, alphas = rng.standard_normal((90, 4)), np.logspace(-2, 4, 19)
    y = X[:, 0] + rng.standard_normal(90)
    for start, stop in ((0, 30), (30, 60), (60, 90)):
        kept = np.r_[:start, stop:90]
        np.testing.assert_allclose(
            ridge_coefficients(X, y, alphas, held_out=slice(start, stop)),
            ridge_coefficients(X[kept], y[kept], alphas),
            rtol=1e-9,
        )
