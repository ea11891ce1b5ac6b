import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, kstest
from threadpoolctl import threadpool_limits

from epistemic_calibration import metrics


def test_redraw_test_is_exact():
    """With four labels the null distribution can be listed."""
    p = np.array([0.3, 0.3, 0.6, 0.6])
    hypotheses, bins = np.repeat(p[:, None], 2, axis=1), np.array([0, 0, 1, 1])

    def statistic(y):
        return sum(np.prod((y - p)[bins == m]) / 2 for m in (0, 1))

    seen = np.array([1, 1, 0, 1])
    outcomes = [np.array(y) for y in itertools.product((0, 1), repeat=4)]
    exact = sum(
        np.prod(np.where(y == 1, p, 1 - p))
        for y in outcomes
        if statistic(y) >= statistic(seen) - 1e-12
    )
    result = metrics.epistemic_calibration_test(seen, hypotheses, bins=bins, n_resamples=9999)
    assert result.statistic == pytest.approx(statistic(seen))
    assert result.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))


TESTS = {
    "epistemic": lambda y, h, k: metrics.epistemic_calibration_test(
        y, h, n_bins=20, binning="quantile", n_resamples=99, random_state=k
    ),
    "mean": lambda y, h, k: metrics.mean_calibration_test(y, h, n_resamples=99, random_state=k),
    "gcm": lambda y, h, k: metrics.epistemic_independence_test(y, h, random_state=k),
    "score": lambda y, h, k: metrics.epistemic_independence_test(
        y, h, method="score", random_state=k
    ),
}


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS.keys())
def test_p_values_are_uniform_for_a_calibrated_predictor(test, predictor):
    n_runs = 120
    p_values = np.array(
        [test(*predictor(400, seed=1000 + k)[:2], k).p_value for k in range(n_runs)]
    )
    rejected = np.count_nonzero(p_values <= 0.05)
    assert binom.ppf(1e-3, n_runs, 0.05) <= rejected <= binom.ppf(1 - 1e-3, n_runs, 0.05)
    assert kstest(p_values, "uniform").pvalue > 1e-3


def test_gcm_allows_a_miscalibrated_mean(predictor):
    n_runs = 120
    rejected = sum(
        metrics.epistemic_independence_test(
            *predictor(600, seed=k, mean_error=0.8)[:2], random_state=k
        ).p_value
        <= 0.05
        for k in range(n_runs)
    )
    assert rejected <= binom.ppf(1 - 1e-3, n_runs, 0.05)


@pytest.mark.parametrize("distortion", [1.0, 0.6])
def test_gcm_keeps_its_level_where_most_predictions_are_nearly_certain(distortion):
    n_runs, n = 120, 4000
    rejected = 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        certain = np.where(rng.random(n) < 0.9, rng.normal(-9, 1.5, n), rng.normal(8, 1.5, n))
        position = np.where(rng.random(n) < 0.05, rng.uniform(-9, 7, n), certain)
        mean = expit(position)
        # Independent of the label given the mean, but not linear in it.
        spread = 0.5 * np.sqrt(mean * (1 - mean)) * rng.uniform(0.5, 1, n)
        spread = np.minimum(spread, np.minimum(mean, 1 - mean))
        hypotheses = np.stack([mean - spread, mean + spread], axis=1)
        y = rng.random(n) < expit(distortion * position)
        rejected += metrics.epistemic_independence_test(y, hypotheses).p_value <= 0.05
    assert rejected <= binom.ppf(1 - 1e-3, n_runs, 0.05)


def test_each_test_finds_its_error_only(predictor):
    mean = predictor(5000, mean_error=0.5)[:2]
    dependent = predictor(5000, dependence=0.5)[:2]
    for test in ("epistemic", "mean"):
        assert TESTS[test](*mean, 0).p_value == 0.01
    for test in ("epistemic", "gcm", "score"):
        assert TESTS[test](*dependent, 0).p_value <= 0.01
    assert TESTS["mean"](*dependent, 0).p_value > 0.05
    assert TESTS["gcm"](*mean, 0).p_value > 0.05


def test_independence_sees_an_effect_that_changes_sign(predictor):
    rng = np.random.default_rng(0)
    _, hypotheses, _ = predictor(4000)
    mean = hypotheses.mean(axis=1)
    wide = hypotheses.std(axis=1) > 0.3 * np.sqrt(mean * (1 - mean))
    y = rng.random(4000) < np.where(wide, 0.5 + 0.6 * (mean - 0.5), mean)
    for method in ("gcm", "score"):
        assert metrics.epistemic_independence_test(y, hypotheses, method=method).p_value < 1e-3


def test_independence_of_an_uncertainty_that_is_a_function_of_the_mean(predictor):
    y, hypotheses, _ = predictor(300)
    constant = metrics.epistemic_independence_test(
        y, hypotheses, epistemic_uncertainty=np.full(300, 0.04)
    )
    assert (constant.statistic, constant.p_value) == (0, 1)
    assert metrics.epistemic_independence_test(y, np.full((300, 2), 0.5)).p_value == 1


def test_independence_where_all_predictions_are_certain():
    hypotheses = np.repeat([[0.0], [1.0]], 50, axis=0)
    y = np.random.default_rng(0).integers(0, 2, 100)
    reported = np.random.default_rng(1).random(100)
    result = metrics.epistemic_independence_test(
        y, hypotheses, epistemic_uncertainty=reported, method="score"
    )
    assert (result.statistic, result.p_value) == (0, 1)


def test_independence_uses_the_reported_uncertainty(predictor):
    y, hypotheses, _ = predictor(3000)
    reported = 0.01 + 0.1 * y
    result = metrics.epistemic_independence_test(y, hypotheses, epistemic_uncertainty=reported)
    assert result.p_value < 1e-10


def test_tests_are_reproducible_whatever_the_threads(predictor):
    y, hypotheses, _ = predictor(800, mean_error=0.2)
    functions = (
        metrics.epistemic_calibration_test,
        metrics.cross_fitted_lower_bound,
        metrics.epistemic_independence_test,
    )
    for function in functions:
        results = []
        for threads in (1, 2):
            with threadpool_limits(threads):
                results.append(function(y, hypotheses, random_state=5))
        assert results[0] == results[1]


def test_holm_by_hand():
    np.testing.assert_allclose(
        metrics.holm_correction([0.04, 0.01, 0.03, 0.6]), [0.09, 0.04, 0.09, 0.6]
    )
    assert metrics.holm_correction([0.9, 0.8]).tolist() == [1, 1]
    with pytest.raises(ValueError, match="p_values"):
        metrics.holm_correction([0.5, np.nan])
