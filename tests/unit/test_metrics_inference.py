import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, chi2, kstest
from threadpoolctl import threadpool_limits

from epistemic_calibration import metrics
from epistemic_calibration.metrics.binning import nested_bins
from epistemic_calibration.metrics.inference import _invert


def predictor(n, *, h=10, mean_error=0.0, dependence=0.0, seed=0):
    """Draw labels and hypotheses with known P(Y = 1 | Π) − Δ, which is also returned.

    Half of the inputs have a large spread; there P(Y = 1 | Π) is larger by ``dependence``
    (times Δ(1 − Δ)), elsewhere smaller.
    """
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    wide = rng.random(n) < 0.5
    precision = np.where(wide, 4.0, 40.0)
    hypotheses = rng.beta(*((q * precision)[:, None] for q in (p, 1 - p)), (n, h))
    mean = hypotheses.mean(axis=1)
    spread_sign = np.where(wide, 1, -1)
    error = mean_error * (0.5 - mean) + dependence * spread_sign * mean * (1 - mean)
    true = np.clip(mean + error, 0, 1)
    return (rng.random(n) < true).astype(int), hypotheses, true - mean


# --- Corrected error


def corrected_by_pairs(y, hypotheses, bins):
    """Mean of e_i e_k over ordered pairs in a bin, weighted by the bins' sizes."""
    error = y - hypotheses.mean(axis=1)
    values, sizes = [], []
    for m in np.unique(bins):
        pairs = list(itertools.permutations(error[bins == m], 2))
        if pairs:
            values.append(np.mean([a * b for a, b in pairs]))
            sizes.append((bins == m).sum())
    return np.average(values, weights=sizes)


def test_estimate_is_the_mean_over_pairs():
    y, hypotheses, _ = predictor(60)
    bins = np.arange(60) % 7
    bins[0] = 99
    result = metrics.corrected_epistemic_calibration_error(y, hypotheses, bins=bins)
    assert result.estimate == pytest.approx(corrected_by_pairs(y, hypotheses, bins), abs=1e-15)
    assert result.dropped_mass == pytest.approx(1 / 60)
    assert result.n_bins == 7


def test_correction_by_hand():
    # e = 0.5, −0.5, 0.5, 0.5 in one bin: Σe = 1, Σe² = 1, so (1 − 1)/12 = 0; g² = 1/16.
    result = metrics.corrected_epistemic_calibration_error(
        [1, 0, 1, 1], np.full((4, 2), 0.5), bins=[0, 0, 0, 0]
    )
    assert result.estimate == 0
    assert result.plug_in == pytest.approx(1 / 16)
    assert result.noise_floor == pytest.approx(0.25 / 4)


def test_noise_floor_is_the_mean_plug_in_of_a_calibrated_predictor():
    rng = np.random.default_rng(0)
    _, hypotheses, _ = predictor(300)
    bins = np.arange(300) % 30
    results = [
        metrics.corrected_epistemic_calibration_error(
            rng.random(300) < hypotheses.mean(axis=1), hypotheses, bins=bins
        )
        for _ in range(400)
    ]
    plug_in = np.array([r.plug_in for r in results])
    estimate = np.array([r.estimate for r in results])
    deviation = np.std(plug_in) / 20
    assert abs(plug_in.mean() - results[0].noise_floor) < 4 * deviation
    assert abs(estimate.mean()) < 4 * np.std(estimate) / 20
    # The spread of 400 results has a relative deviation of 1/sqrt(2·400).
    ratio = np.mean([r.standard_error for r in results]) / estimate.std()
    assert ratio > 1 - 4 / np.sqrt(2 * 400)


def visible_error(error, bins):
    """Mean of the estimate over the labels: independent e_i and e_k have mean error_i error_k."""
    inside = [error[bins == m] for m in np.unique(bins)]
    pairs = [(np.outer(e, e).sum() - e @ e) / (len(e) * (len(e) - 1)) for e in inside]
    return np.average(pairs, weights=[len(e) for e in inside])


@pytest.mark.parametrize("change", [{"mean_error": 0.5}, {"dependence": 0.6}])
def test_both_kinds_of_error_are_found_without_bias(change):
    n_runs, deviations, covered, visible, truth = 25, [], 0, 0, 0
    for seed in range(n_runs):
        y, hypotheses, error = predictor(2000, seed=seed, **change)
        bins = metrics.assign_bins(hypotheses, n_bins=50, binning="nested")
        result = metrics.corrected_epistemic_calibration_error(y, hypotheses, bins=bins)
        expected = visible_error(error, bins)
        deviations.append(result.estimate - expected)
        covered += result.ci_low <= expected <= result.ci_high
        visible += expected
        truth += np.mean(error**2)
    assert abs(np.mean(deviations)) < 4 * np.std(deviations, ddof=1) / np.sqrt(n_runs)
    assert covered >= binom.ppf(1e-3, n_runs, 0.95)
    # Not noise, which is left out here, but a demand: the default bins hide 10 % at most.
    assert visible > 0.9 * truth


def test_raw_kmeans_is_blind_to_dependence_in_exchangeable_scatter():
    y, hypotheses, error = predictor(6000, h=30, dependence=0.6)
    # Intervals that miss what they estimate once in 10 000 times.
    blind, seeing = (
        metrics.corrected_epistemic_calibration_error(
            y, hypotheses, binning=b, n_bins=50, confidence_level=1 - 1e-4
        )
        for b in ("kmeans", "nested")
    )
    truth = np.mean(error**2)
    assert blind.ci_high < truth
    assert seeing.ci_low < truth < seeing.ci_high


def test_blind_spot_of_eece_is_seen():
    # Two kinds of input whose hypotheses swap: W = g², so that EECE is 0.
    rng = np.random.default_rng(0)
    n = 4000
    hypotheses = np.where(rng.random((n, 1)) < 0.5, [[0.1, 0.5]], [[0.5, 0.1]])
    y = rng.random(n) < 0.5
    bins = np.zeros(n, dtype=int)
    # EECE is |(0.2 + a)² + (0.4 b)² − 0.04| with a and b what two frequencies are off one half.
    off = 4 * 0.5 / np.sqrt(n)
    noise = 0.4 * off + off**2 + (0.4 * off) ** 2
    assert metrics.expected_epistemic_calibration_error(y, hypotheses, bins=bins) < noise
    result = metrics.corrected_epistemic_calibration_error(y, hypotheses, confidence_level=1 - 1e-4)
    assert noise < result.ci_low < 0.04 < result.ci_high


def test_interval_solves_its_equation():
    for estimate, at_zero, slope in ((0.02, 1e-6, 1e-3), (0.001, 1e-6, 0.0), (0.0, 1e-6, 1e-3)):
        low, high = _invert(estimate, at_zero, slope, 1.96)
        for t in (low, high):
            if t > 0:
                assert abs(estimate - t) == pytest.approx(1.96 * np.sqrt(at_zero + slope * t))
    assert _invert(-1.0, 1e-6, 1e-3, 1.96) == _invert(0.0, 1e-6, 1e-3, 1.96)


def test_minimum_detectable_is_found_with_probability_of_80_percent():
    n, n_runs, bins = 1000, 200, np.repeat(np.arange(20), 50)
    hypotheses = np.full((n, 2), 0.5)
    base = metrics.corrected_epistemic_calibration_error(np.arange(n) % 2, hypotheses, bins=bins)
    error = np.sqrt(base.minimum_detectable)
    rng = np.random.default_rng(0)
    true = 0.5 + error * np.where(bins % 2, 1, -1)
    found = [
        metrics.epistemic_calibration_test(
            rng.random(n) < true, hypotheses, bins=bins, n_resamples=99, random_state=k
        ).p_value
        <= 0.05
        for k in range(n_runs)
    ]
    low, high = binom.ppf([5e-4, 1 - 5e-4], n_runs, 0.8)
    assert low <= np.sum(found) <= high


def test_labels_of_one_class_do_not_pass_for_certainty():
    n, p = 30, 0.05
    y, hypotheses = np.zeros(n), np.full((n, 5), p)
    result = metrics.corrected_epistemic_calibration_error(y, hypotheses)
    # s² is what Bernoulli(p) has: Var = 2 s⁴/(n(n − 1)) + 4·s²/n·p².
    variance = p * (1 - p)
    expected = 2 * variance**2 / (n * (n - 1)) + 4 * variance / n * p**2
    assert result.estimate == pytest.approx(p**2)
    assert result.standard_error == pytest.approx(np.sqrt(expected))
    assert result.ci_low == 0
    # 400 labels of 0 are 95 % evidence of a frequency below 1 − 0.05^(1/400), about 3/400.
    many = metrics.corrected_epistemic_calibration_error(np.zeros(400), np.full((400, 5), 0.2))
    f = 1 - 0.05 ** (1 / 400)
    v = f * (1 - f)
    assert many.standard_error == pytest.approx(
        np.sqrt(2 * v**2 / (400 * 399) + 4 * v / 400 * 0.2**2)
    )
    assert metrics.cross_fitted_lower_bound(y, hypotheses).ci_low == 0
    drawn = metrics.mean_corrected_error([y], [hypotheses[:, 0]], [np.zeros(n, dtype=int)])
    # 499 draws of a χ²-like variable, of excess kurtosis 12, give a standard deviation to 8 %.
    assert drawn.standard_error == pytest.approx(result.standard_error, rel=0.32)
    assert drawn.ci_low == 0


def test_only_singletons_is_an_error():
    with pytest.raises(ValueError, match="alone in its bin"):
        metrics.corrected_epistemic_calibration_error([0, 1], [[0.1], [0.9]], bins=[0, 1])
    with pytest.raises(ValueError, match="alone in its bin"):
        metrics.epistemic_calibration_test([0, 1], [[0.1], [0.9]], bins=[0, 1])


# --- Nested bins and the split


def test_nested_bins_are_nested_and_hold_two_samples():
    _, hypotheses, _ = predictor(500)
    coarse, fine = nested_bins(hypotheses, n_bins=50, random_state=0)
    assert np.bincount(coarse).tolist() == [50] * 10
    assert all(len(np.unique(coarse[fine == m])) == 1 for m in np.unique(fine))
    counts = np.bincount(fine)
    assert counts[counts > 0].min() >= 2
    assert 40 <= np.count_nonzero(counts) <= 50


def test_nested_bins_separate_shapes_of_equal_mean_and_variance():
    left = np.array([0.2, 0.2, 0.2, 0.6, 0.3])
    hypotheses = np.where(np.arange(200)[:, None] % 2, left, 2 * left.mean() - left)
    # Two bins are two of the mean, which is one here, and one of the shape.
    bins = metrics.assign_bins(hypotheses, n_bins=2, binning="nested")
    assert len(np.unique(bins)) == 1
    bins = metrics.assign_bins(hypotheses, n_bins=8, binning="nested")
    assert (bins[::2] == bins[0]).all()
    assert (bins[1::2] == bins[1]).all()
    assert bins[0] != bins[1]


@pytest.mark.parametrize("n_samples", [2, 3, 10])
def test_nested_bins_of_few_samples(n_samples):
    _, hypotheses, _ = predictor(n_samples, h=2)
    bins = metrics.assign_bins(hypotheses, n_bins=50, binning="nested")
    assert len(bins) == n_samples
    bins = metrics.assign_bins(np.full((n_samples, 2), 0.3), n_bins=50, binning="nested")
    assert (bins == 0).all()


def test_nested_bins_ignore_order_of_hypotheses():
    _, hypotheses, _ = predictor(400)
    shuffled = np.random.default_rng(1).permuted(hypotheses, axis=1)
    np.testing.assert_array_equal(
        *(metrics.assign_bins(h, binning="nested", n_bins=30) for h in (hypotheses, shuffled))
    )


def test_split_adds_up_and_finds_the_part_that_is_there():
    y, hypotheses, error = predictor(8000, mean_error=0.5)
    split = metrics.split_epistemic_calibration_error(y, hypotheses)
    assert split.total.estimate == pytest.approx(
        split.mean_miscalibration.estimate + split.epistemic_dependence.estimate, abs=1e-15
    )
    assert (
        split.total.estimate
        == metrics.corrected_epistemic_calibration_error(y, hypotheses).estimate
    )
    truth = np.mean(error**2)
    assert split.mean_miscalibration.ci_low < truth < split.mean_miscalibration.ci_high
    assert abs(split.epistemic_dependence.estimate) < 3 * split.epistemic_dependence.standard_error

    y, hypotheses, error = predictor(8000, dependence=0.6)
    split = metrics.split_epistemic_calibration_error(y, hypotheses)
    assert abs(split.mean_miscalibration.estimate) < 3 * split.mean_miscalibration.standard_error
    dependence = split.epistemic_dependence
    assert dependence.ci_low < np.mean(error**2) < dependence.ci_high


def test_split_over_given_bins_is_that_over_its_own():
    y, hypotheses, _ = predictor(700, dependence=0.5, mean_error=0.3)
    bins = metrics.assign_bins(hypotheses, binning="nested", n_bins=32)
    given = metrics.split_epistemic_calibration_error(y, hypotheses, n_bins=32, bins=bins)
    assert given == metrics.split_epistemic_calibration_error(y, hypotheses, n_bins=32)
    with pytest.raises(ValueError, match="not nested in those of the row mean for n_bins=8"):
        metrics.split_epistemic_calibration_error(y, hypotheses, n_bins=8, bins=bins % 5)


@pytest.mark.parametrize("change", [{}, {"dependence": 0.5, "mean_error": 0.3}])
def test_standard_error_of_the_dependence(change):
    n_runs = 50
    results = [
        metrics.split_epistemic_calibration_error(*predictor(400, seed=k, **change)[:2], n_bins=32)
        for k in range(n_runs)
    ]
    # The variance of 50 results, which are nearly Gaussian, is χ² with 49 degrees of freedom.
    low, high = np.sqrt((n_runs - 1) / chi2.ppf([1 - 5e-4, 5e-4], n_runs - 1))
    for name in ("total", "mean_miscalibration", "epistemic_dependence"):
        parts = [getattr(r, name) for r in results]
        spread = np.std([p.estimate for p in parts], ddof=1)
        assert low < np.mean([p.standard_error for p in parts]) / spread < high, name


def test_variance_of_the_difference_agrees_with_the_quadratic_form():
    from epistemic_calibration.metrics.inference import _corrected, _difference

    rng = np.random.default_rng(0)
    n = 40
    coarse, fine = np.repeat([0, 1], 20), np.repeat([0, 1, 2, 3], [12, 8, 5, 15])
    p = rng.uniform(0.1, 0.9, n)
    y = (rng.random(n) < p).astype(float)
    total, mean = (_corrected(y, p, labels, 0.95) for labels in (fine, coarse))
    found = _difference(y, p, coarse, fine, total, mean)

    def form(labels):
        same = (labels[:, None] == labels) & ~np.eye(n, dtype=bool)
        return same / (n * (np.bincount(labels)[labels] - 1.0))[:, None]

    a = form(fine) - form(coarse)
    assert found.estimate == pytest.approx((y - p) @ a @ (y - p), abs=1e-15)
    # Under the hypothesis the variance is 2 Σ a_ik² v_i v_k.
    noise = p * (1 - p)
    variance = 2 * noise @ a**2 @ noise
    detectable = metrics.inference._detectable(variance, 4 * noise.mean() / n, 0.95)
    assert found.minimum_detectable == pytest.approx(detectable, rel=1e-12)


# --- Lower bound


def test_lower_bound_is_below_and_near():
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


# --- Tests


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
def test_p_values_are_uniform_for_a_calibrated_predictor(test):
    n_runs = 120
    p_values = np.array(
        [test(*predictor(400, seed=1000 + k)[:2], k).p_value for k in range(n_runs)]
    )
    rejected = np.count_nonzero(p_values <= 0.05)
    assert binom.ppf(1e-3, n_runs, 0.05) <= rejected <= binom.ppf(1 - 1e-3, n_runs, 0.05)
    assert kstest(p_values, "uniform").pvalue > 1e-3


def test_gcm_allows_a_miscalibrated_mean():
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


def test_each_test_finds_its_error_only():
    mean = predictor(5000, mean_error=0.5)[:2]
    dependent = predictor(5000, dependence=0.5)[:2]
    for test in ("epistemic", "mean"):
        assert TESTS[test](*mean, 0).p_value == 0.01
    for test in ("epistemic", "gcm", "score"):
        assert TESTS[test](*dependent, 0).p_value <= 0.01
    assert TESTS["mean"](*dependent, 0).p_value > 0.05
    assert TESTS["gcm"](*mean, 0).p_value > 0.05


def test_independence_sees_an_effect_that_changes_sign():
    rng = np.random.default_rng(0)
    _, hypotheses, _ = predictor(4000)
    mean = hypotheses.mean(axis=1)
    wide = hypotheses.std(axis=1) > 0.3 * np.sqrt(mean * (1 - mean))
    y = rng.random(4000) < np.where(wide, 0.5 + 0.6 * (mean - 0.5), mean)
    for method in ("gcm", "score"):
        assert metrics.epistemic_independence_test(y, hypotheses, method=method).p_value < 1e-3


def test_independence_of_an_uncertainty_that_is_a_function_of_the_mean():
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


def test_independence_uses_the_reported_uncertainty():
    y, hypotheses, _ = predictor(3000)
    reported = 0.01 + 0.1 * y
    result = metrics.epistemic_independence_test(y, hypotheses, epistemic_uncertainty=reported)
    assert result.p_value < 1e-10


def test_tests_are_reproducible_whatever_the_threads():
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


# --- Means over tasks


def tasks_of(n, *, seed, n_tasks=3, same=False):
    rng = np.random.default_rng(seed)
    y, hypotheses, _ = predictor(n, seed=seed, mean_error=0.3)
    p = hypotheses.mean(axis=1)
    labels, predictions, bins = [], [], []
    for t in range(n_tasks):
        if t and not same:
            p = rng.permutation(p)
            y = rng.random(n) < p + 0.3 * (0.5 - p)
        labels.append(y)
        predictions.append(p)
        bins.append(np.floor(p * 12).astype(int))
    return labels, predictions, bins


def test_mean_over_tasks_is_the_mean():
    tasks = tasks_of(500, seed=0)
    result = metrics.mean_corrected_error(*tasks)
    singles = [
        metrics.corrected_epistemic_calibration_error(y, p[:, None], bins=b)
        for y, p, b in zip(*tasks, strict=True)
    ]
    assert result.estimate == pytest.approx(np.mean([s.estimate for s in singles]))
    assert result.plug_in == pytest.approx(np.mean([s.plug_in for s in singles]))


def test_tasks_that_share_everything_count_once():
    one = metrics.mean_corrected_error(*tasks_of(500, seed=0, n_tasks=1))
    three = metrics.mean_corrected_error(*tasks_of(500, seed=0, n_tasks=3, same=True))
    assert three.standard_error == pytest.approx(one.standard_error, rel=1e-9)


def test_variances_of_independent_tasks_add_up():
    n, n_resamples = 500, 499
    tasks = tasks_of(n, seed=0, n_tasks=3)
    together = metrics.mean_corrected_error(*tasks, n_resamples=n_resamples)
    alone = [
        metrics.mean_corrected_error(*([part] for part in task), n_resamples=n_resamples)
        for task in zip(*tasks, strict=True)
    ]
    expected = np.linalg.norm([a.standard_error for a in alone]) / 3
    # What is left are three correlations, 0 ± sqrt(1/n + 1/n_resamples), twice each.
    noise = 2 * np.sqrt(3) / 3 * np.sqrt(1 / n + 1 / n_resamples)
    assert together.standard_error == pytest.approx(expected, rel=4 * noise / 2)


def two_methods(n, *, seed, errors=(0.1, -0.1), n_tasks=2):
    """Two methods whose predictions are off by a constant: TECE is its square."""
    rng = np.random.default_rng(seed)
    labels, predictions, bins = [], {"a": [], "b": []}, {"a": [], "b": []}
    for _ in range(n_tasks):
        p = rng.uniform(0.2, 0.8, n)
        labels.append(rng.random(n) < p)
        for name, error in zip("ab", errors, strict=True):
            predictions[name].append(p + error)
            bins[name].append(np.floor((p - 0.2) * 20).astype(int))
    return labels, predictions, bins


def test_a_difference_is_that_of_the_means_and_has_the_error_of_the_closed_form():
    n, n_tasks, n_resamples = 4000, 2, 1999
    labels, predictions, bins = two_methods(n, seed=0)
    difference = metrics.compare_mean_corrected_errors(
        labels, predictions, bins, n_resamples=n_resamples
    )["a", "b"]
    means = [metrics.mean_corrected_error(labels, predictions[k], bins[k]).estimate for k in "ab"]
    assert difference.estimate == pytest.approx(means[0] - means[1], abs=1e-15)
    # With c the mean of y − p in a bin, (c − 0.1)² − (c + 0.1)² = −0.4 c, where var c is
    # E[p(1 − p)]/n: what both have in common cancels, so that the squares need no part.
    variance = 0.25 - 0.6**2 / 12
    expected = 0.4 * np.sqrt(variance / n / n_tasks)
    # The variance is estimated from draws, which are Gaussian, of residuals of kurtosis below 2.
    noise = np.sqrt(1 / (2 * n_resamples) + 1 / (4 * n * n_tasks))
    assert difference.standard_error == pytest.approx(expected, rel=4 * noise)
    low, high = difference.ci_low, difference.ci_high
    assert (low + high) / 2 == pytest.approx(difference.estimate)
    assert (high - low) / 2 == pytest.approx(1.96 * difference.standard_error, rel=1e-3)


def test_comparison_of_a_method_with_itself_and_with_a_worse_one():
    labels, predictions, bins = two_methods(2000, seed=1, errors=(0.05, 0.2))
    predictions["c"], bins["c"] = predictions["a"], bins["a"]
    result = metrics.compare_mean_corrected_errors(labels, predictions, bins)
    assert list(result) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert result["a", "c"].estimate == 0
    assert result["a", "c"].p_value == 1
    assert result["a", "b"].p_value < 1e-6
    assert result["a", "b"].ci_high < 0 < result["b", "c"].ci_low
    with pytest.raises(ValueError, match="the same methods"):
        metrics.compare_mean_corrected_errors(labels, predictions, {"a": bins["a"]})


def test_methods_that_differ_without_any_noise():
    y = np.repeat([0, 1], 50)
    predictions, bins = {"best": [y], "worst": [1 - y]}, {"best": [y], "worst": [y]}
    difference = metrics.compare_mean_corrected_errors([y], predictions, bins)["best", "worst"]
    assert (difference.estimate, difference.standard_error, difference.p_value) == (-1, 0, 0)


def test_size_and_coverage_of_comparisons():
    n_repeats, rejected, covered = 200, 0, 0
    for seed in range(n_repeats):
        settings = {"n_resamples": 199}
        same = metrics.compare_mean_corrected_errors(*two_methods(400, seed=seed), **settings)
        rejected += same["a", "b"].p_value <= 0.05
        other = two_methods(400, seed=1000 + seed, errors=(0.1, -0.15))
        difference = metrics.compare_mean_corrected_errors(*other, **settings)["a", "b"]
        covered += difference.ci_low <= 0.1**2 - 0.15**2 <= difference.ci_high
    for count, rate in ((rejected, 0.05), (covered, 0.95)):
        low, high = binom.ppf([0.0005, 0.9995], n_repeats, rate)
        assert low <= count <= high


def test_wild_bootstrap_agrees_with_the_closed_form():
    # Both are the same where no bin's estimate is negative, which the bootstrap would cut off.
    (y,), predictions, bins = two_methods(2000, seed=1, errors=(0.2, 0.2), n_tasks=1)
    (p,), (b,), n_resamples = predictions["a"], bins["a"], 1999
    closed = metrics.corrected_epistemic_calibration_error(y, p[:, None], bins=b)
    drawn = metrics.mean_corrected_error([y], [p], [b], n_resamples=n_resamples)
    tolerance = 4 / np.sqrt(2 * n_resamples)
    assert drawn.standard_error == pytest.approx(closed.standard_error, rel=tolerance)
    for end in ("ci_low", "ci_high"):
        length = getattr(closed, end) - closed.estimate
        assert getattr(drawn, end) - drawn.estimate == pytest.approx(length, rel=tolerance)


def test_tasks_must_fit_together():
    with pytest.raises(ValueError, match="tasks of 2 and of 3"):
        metrics.mean_corrected_error([[0, 1], [0, 1, 1]], [[0.5] * 2, [0.5] * 3], [[0, 0]] * 2)
    with pytest.raises(ValueError, match="same tasks, got 1, 2 and 1"):
        metrics.mean_corrected_error([[0, 1]], [[0.5] * 2] * 2, [[0, 0]])


# --- Recalibration


def test_recalibration_finds_the_parameters_of_the_distortion():
    from scipy.special import expit, logit

    rng = np.random.default_rng(0)
    n, h = 20_000, 8
    logits = rng.normal(0, 1.5, n)[:, None] + rng.choice([0.3, 1.2], n)[:, None] * (
        rng.standard_normal((n, h))
    )
    mean, spread = logits.mean(axis=1), logits.std(axis=1)
    shift = 0.6 * mean + 0.3 - 0.5 * spread + 0.2 * mean * spread - mean
    true = expit(logits + shift[:, None])
    y = rng.random(n) < true.mean(axis=1)
    fitted = metrics.SecondOrderRecalibrator().fit(y, expit(logits))
    found = [fitted.scale_, fitted.shift_, fitted.spread_, fitted.interaction_]
    # Maximum likelihood errs by the inverse of Fisher's information.
    design = np.stack([mean, np.ones(n), spread, mean * spread], axis=1)
    p, slope = true.mean(axis=1), (true * (1 - true)).mean(axis=1)
    information = design.T @ (design * (slope**2 / (p * (1 - p)))[:, None])
    error = np.sqrt(np.linalg.inv(information).diagonal())
    np.testing.assert_array_less(np.abs(np.subtract(found, [0.6, 0.3, -0.5, 0.2])), 4 * error)
    # The dispersion of the logits is kept.
    after = logit(fitted.transform(expit(logits)))
    np.testing.assert_allclose(
        after - after.mean(axis=1, keepdims=True), logits - mean[:, None], atol=1e-10
    )


@pytest.mark.parametrize("change", [{"mean_error": 0.5}, {"dependence": 0.6}])
def test_recalibration_lowers_the_error_on_other_data(change):
    y, hypotheses, _ = predictor(4000, seed=1, **change)
    fitted = metrics.SecondOrderRecalibrator().fit(y, hypotheses)
    y, hypotheses, _ = predictor(4000, seed=2, **change)
    # Intervals that miss what they estimate once in 10 000 times.
    before, after = (
        metrics.corrected_epistemic_calibration_error(y, h, confidence_level=1 - 1e-4)
        for h in (hypotheses, fitted.transform(hypotheses))
    )
    assert after.ci_high < before.ci_low
    assert metrics.epistemic_calibration_test(y, hypotheses, n_resamples=99).p_value == 0.01


def test_recalibration_of_certain_and_separable_predictions():
    y = np.arange(200) % 2
    certain = np.repeat(y[:, None], 3, axis=1).astype(np.float32)
    after = metrics.SecondOrderRecalibrator().fit(y, certain).transform(certain)
    assert np.isfinite(after).all()
    assert metrics.brier_score(y, after.mean(axis=1)) < 1e-4


def test_recalibration_refuses_one_class():
    with pytest.raises(ValueError, match="both classes, got only 1"):
        metrics.SecondOrderRecalibrator().fit([1, 1], [[0.5], [0.6]])
    with pytest.raises(ValueError, match="clip must"):
        metrics.SecondOrderRecalibrator(clip=0.0)


# --- Input


FUNCTIONS = [
    metrics.corrected_epistemic_calibration_error,
    metrics.split_epistemic_calibration_error,
    metrics.cross_fitted_lower_bound,
    metrics.epistemic_calibration_test,
    metrics.mean_calibration_test,
    metrics.epistemic_independence_test,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_kinds_of_input(function):
    y, hypotheses, _ = predictor(300, h=4)
    hypotheses = hypotheses.astype(np.float32)
    hypotheses[:3] = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1]]
    frozen = hypotheses.copy()
    frozen.flags.writeable = False
    expected = function(y, hypotheses.astype(np.float64))
    assert function(y.astype(bool), frozen) == expected
    strided = np.repeat(hypotheses, 2, axis=0)[::2]
    assert function(y.astype(np.uint8), strided) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("h", [1, 2])
def test_one_class_and_few_hypotheses(function, h):
    _, hypotheses, _ = predictor(200, h=h)
    result = function(np.zeros(200), hypotheses)
    numbers = vars(result).values()
    assert all(np.isfinite(v) for v in numbers if isinstance(v, float))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_wrong_input(function):
    with pytest.raises(ValueError, match="y_true must be labels"):
        function([-1, 1], [[0.1], [0.2]])
    with pytest.raises(ValueError, match="hypotheses must be in"):
        function([0, 1], [[0.1], [1.2]])
    with pytest.raises(ValueError, match="hypotheses has 1 samples"):
        function([0, 1], [[0.1]])


def test_wrong_options():
    y, hypotheses, _ = predictor(20)
    for options, message in (
        ({"confidence_level": 95}, "confidence_level must lie between 0 and 1"),
        ({"n_bins": 0}, "n_bins must be an integer >= 1"),
        ({"binning": "best"}, "binning must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.corrected_epistemic_calibration_error(y, hypotheses, **options)
    with pytest.raises(ValueError, match="n_folds must lie between 2"):
        metrics.cross_fitted_lower_bound(y, hypotheses, n_folds=1)
    with pytest.raises(ValueError, match="n_resamples must be an integer >= 1"):
        metrics.mean_calibration_test(y, hypotheses, n_resamples=0)
    task = ([y], [hypotheses.mean(axis=1)], [np.zeros(20, dtype=int)])
    with pytest.raises(ValueError, match="n_resamples must be an integer >= 2"):
        metrics.mean_corrected_error(*task, n_resamples=1)
    with pytest.raises(ValueError, match="method must be 'gcm' or 'score', got 'kci'"):
        metrics.epistemic_independence_test(y, hypotheses, method="kci")
