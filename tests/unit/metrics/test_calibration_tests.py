import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, kstest
from threadpoolctl import threadpool_limits

from epistemic_calibration import metrics
from epistemic_calibration.metrics import calibration_tests


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
    "independence": lambda y, h, k: metrics.epistemic_independence_test(y, h, random_state=k),
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


@pytest.mark.parametrize("distortion", [1.0, 0.6])
def test_independence_keeps_its_level_where_most_predictions_are_nearly_certain(distortion):
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
    for test in ("epistemic", "independence"):
        assert TESTS[test](*dependent, 0).p_value <= 0.01
    assert TESTS["mean"](*dependent, 0).p_value > 0.05
    assert TESTS["independence"](*mean, 0).p_value > 0.05


def test_independence_sees_an_effect_that_changes_sign(predictor):
    rng = np.random.default_rng(0)
    _, hypotheses, _ = predictor(4000)
    mean = hypotheses.mean(axis=1)
    wide = hypotheses.std(axis=1) > 0.3 * np.sqrt(mean * (1 - mean))
    y = rng.random(4000) < np.where(wide, 0.5 + 0.6 * (mean - 0.5), mean)
    assert metrics.epistemic_independence_test(y, hypotheses).p_value < 1e-3


@pytest.mark.parametrize(("n_rows", "n"), [(20, 500), (20, 2000), (60, 3000)])
def test_independence_where_the_mean_determines_the_row(n_rows, n):
    rng = np.random.default_rng(0)
    means, spreads = rng.uniform(0.1, 0.9, n_rows), rng.uniform(0, 0.1, n_rows)
    cell = rng.integers(0, n_rows, n)
    hypotheses = means[:, None] + np.outer(spreads, [-1, 0, 1])
    # Frequencies that follow the spread of the row, which is a function of its mean.
    y = rng.random(n) < (means + 0.1 * np.sign(spreads - 0.05))[cell]
    result = metrics.epistemic_independence_test(y, hypotheses[cell])
    assert (result.statistic, result.p_value) == (0, 1)


def test_independence_is_not_misled_by_what_jumps_with_the_mean():
    n_runs, n, rejected = 120, 2000, 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        mean = rng.uniform(0.1, 0.9, n)
        up = np.floor((mean - 0.1) * 5) % 2 == 0
        spread = np.where(up, 0.1, 0.02) * rng.uniform(0.8, 1, n)
        y = rng.random(n) < mean + np.where(up, 0.08, -0.08)
        hypotheses = mean[:, None] + np.outer(spread, [-1, 1])
        rejected += metrics.epistemic_independence_test(y, hypotheses).p_value <= 0.05
    assert rejected <= binom.ppf(1 - 1e-3, n_runs, 0.05)


@pytest.mark.parametrize(("n", "frequency"), [(50, 0.5), (100, 0.05), (400, 0.02)])
def test_independence_of_few_samples_or_few_positives(n, frequency):
    n_runs, rejected = 200, 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        mean = rng.beta(0.8, 0.8 / frequency - 0.8, n).clip(1e-3, 1 - 1e-3)
        spread = mean * (1 - mean) * np.exp(rng.normal(-1.5, 0.5, n)).clip(0, 1)
        hypotheses = mean[:, None] + np.outer(spread, [-1, 1])
        p_value = metrics.epistemic_independence_test(
            rng.random(n) < mean, hypotheses, random_state=seed, n_resamples=99
        ).p_value
        rejected += p_value <= 0.05
    assert rejected <= binom.ppf(1 - 1e-3, n_runs, 0.05)


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


def test_draws_depend_on_neither_the_order_of_samples_nor_blocks(predictor, monkeypatch):
    y, hypotheses, _ = predictor(2000)
    bins = np.random.default_rng(0).integers(0, 30, 2000)
    order = np.random.default_rng(1).permutation(2000)
    given = metrics.epistemic_calibration_test(y, hypotheses, bins=bins)
    monkeypatch.setattr(calibration_tests, "BLOCK_SIZE", 7000)
    permuted = metrics.epistemic_calibration_test(y[order], hypotheses[order], bins=bins[order])
    assert permuted == given


def test_holm_by_hand():
    np.testing.assert_allclose(
        metrics.holm_correction([0.04, 0.01, 0.03, 0.6]), [0.09, 0.04, 0.09, 0.6]
    )
    assert metrics.holm_correction([0.9, 0.8]).tolist() == [1, 1]
    with pytest.raises(ValueError, match="p_values"):
        metrics.holm_correction([0.5, np.nan])
