import dataclasses
import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from epistemic_calibration.metrics._label_counts import squared_error
from epistemic_calibration.metrics._means import (
    mean_of_groups,
    ratio_of_means,
    squares_of_means,
)
from epistemic_calibration.metrics._members import finite_draws_factor, slope_of_draws
from epistemic_calibration.metrics.error_curve import second_order_curve
from epistemic_calibration.metrics.law_test import second_order_test
from epistemic_calibration.metrics.one_label import (
    bounds_from_one_label,
    mean_bounds_from_one_label,
)
from epistemic_calibration.metrics.second_order import (
    mean_second_order_error,
    second_order_error,
    true_second_order_error,
)

QUANTITIES = (
    "reducible",
    "uncertainty",
    "gap",
    "share",
    "slope",
    "size_error",
    "calibration_error",
    "variance_in_bins",
    "aleatoric",
)


def draw(n, *, h=20, k=3, factor=1.0, wrong_inputs=False, seed=0):
    """Draw counts, hypotheses and p*, whose variance is ``factor`` times that of hypotheses.

    Both are Beta distributed at every input, with the same mean; with ``wrong_inputs`` their
    variances are independent given it.
    """
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.05, 0.95, n)
    variance = mean * (1 - mean) / (1 + rng.choice([4.0, 20.0], n))
    of_truth = variance * factor
    if wrong_inputs:
        of_truth = mean * (1 - mean) / (1 + rng.choice([4.0, 20.0], n))

    def beta(variance, shape):
        precision = mean * (1 - mean) / variance - 1
        a, b = mean * precision, (1 - mean) * precision
        return rng.beta(*((x[:, None] if len(shape) > 1 else x) for x in (a, b)), shape)

    p = beta(of_truth, (n,))
    rows = beta(variance, (n, h))
    return rng.binomial(k, p), rows, p


def values(result):
    return {q: getattr(result, q) for q in QUANTITIES}


def assert_same(first, second, **tolerance):
    for name, value in values(first).items():
        other = getattr(second, name)
        for field in dataclasses.fields(value):
            assert getattr(value, field.name) == pytest.approx(
                getattr(other, field.name), nan_ok=True, **tolerance
            ), (name, field.name)


# --- Closed forms and identities


@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_squared_error_is_a_mean_over_pairs_and_unbiased(k, centre):
    for s in range(k + 1):
        y = np.array([1] * s + [0] * (k - s))
        pairs = [(y[a] - centre) * (y[b] - centre) for a, b in itertools.permutations(range(k), 2)]
        value = squared_error(s / k, s * (s - 1) / (k * (k - 1)), centre)
        assert value == pytest.approx(np.mean(pairs), abs=1e-15)
    p, counts = 0.37, np.arange(k + 1)
    mean = binom.pmf(counts, k, p) @ squared_error(
        counts / k, counts * (counts - 1) / (k * (k - 1)), centre
    )
    assert mean == pytest.approx((p - centre) ** 2, abs=1e-14)


def test_by_hand():
    # Δ = .5, .75, EU = .0625 each; q = 1 − 1 + .25, 0 − .75 + .5625; s(k − s)/(k(k − 1)) = 0, .5.
    given = [2, 1], 2, [[0.25, 0.75], [0.5, 1.0]]
    result = second_order_error(*given, exchangeable=False, bins=[0, 0])
    assert result.reducible.estimate == pytest.approx((0.25 - 0.1875) / 2)
    assert result.reducible.standard_error == pytest.approx(0.4375 / 2)
    assert result.uncertainty.estimate == 0.0625
    assert result.gap.estimate == pytest.approx(0.03125 - 0.0625)
    assert result.share.estimate == pytest.approx(2)
    assert result.aleatoric.estimate == pytest.approx(0.25)
    # One pair each: v = .1875, −.25 and e = .5, −.25.
    assert result.size_error.estimate == pytest.approx(-0.1875 * 0.25)
    assert result.calibration_error.estimate == pytest.approx(-0.125)
    assert result.variance_in_bins.estimate == pytest.approx(0.03125 + 0.125)
    draws = second_order_error(*given, bins=[0, 0])
    assert draws.uncertainty.estimate == pytest.approx(3 * 0.0625)


def test_reducible_and_aleatoric_make_up_the_brier_score():
    s, rows, _ = draw(200, k=5)
    y = np.array([label for n in s for label in [1] * n + [0] * (5 - n)])
    brier = np.mean((y - np.repeat(rows.mean(axis=1), 5)) ** 2)
    result = second_order_error(s, 5, rows)
    assert result.reducible.estimate + result.aleatoric.estimate == pytest.approx(brier, abs=1e-14)


def test_factor_of_finite_draws():
    assert finite_draws_factor(20) == 21 / 19
    s, rows, _ = draw(100, h=5)
    eu = rows.var(axis=1)
    draws, law, reported = (
        second_order_error(s, 3, rows, exchangeable=exchangeable, epistemic_uncertainty=given)
        for exchangeable, given in ((True, None), (False, None), (True, eu))
    )
    assert draws.uncertainty.estimate == pytest.approx(1.5 * eu.mean())
    assert law.uncertainty.estimate == pytest.approx(eu.mean())
    assert_same(law, reported, rel=1e-9, abs=1e-15)


def test_labels_of_different_numbers():
    s, rows, _ = draw(300, k=6)
    k = np.tile([0, 1, 6], 100)
    s = np.minimum(s, k)
    result = second_order_error(s, k, rows, groups=np.arange(300) // 3)
    assert result.dropped_mass == pytest.approx(2 / 3)
    assert result.n_samples == 100
    assert_same(result, second_order_error(s[k == 6], 6, rows[k == 6]), rel=1e-12)


@pytest.mark.parametrize("h", [4, 5, 7])
def test_slope_of_draws_by_all_halves(h):
    s, rows, _ = draw(6, h=h, k=3)
    first, second = s / 3, s * (s - 1) / 6
    numerator, denominator = slope_of_draws(first, second, rows)
    products = np.zeros(4)
    quadruples = list(itertools.permutations(range(h), 4))
    for a, b, j, k in quadruples:
        v = (rows[:, a] - rows[:, b]) ** 2 / 2
        w = second - first * (rows[:, j] + rows[:, k]) + rows[:, j] * rows[:, k]
        u = (rows[:, j] - rows[:, k]) ** 2 / 2
        products += np.array(
            [np.mean(v * w), v.mean() * w.mean(), np.mean(v * u), v.mean() * u.mean()]
        )
    vw, v_w, vu, v_u = products / len(quadruples)
    assert numerator.mean() == pytest.approx(vw - v_w, abs=1e-14)
    assert denominator.mean() == pytest.approx(vu - v_u, abs=1e-14)


def test_slope_of_a_law_is_that_of_least_squares():
    s, rows, _ = draw(300)
    mean, eu = rows.mean(axis=1), rows.var(axis=1)
    q = squared_error(s / 3, s * (s - 1) / 6, mean)
    slope = second_order_error(s, 3, rows, exchangeable=False).slope
    assert slope.estimate == pytest.approx(np.polyfit(eu, q, 1)[0])
    residual = (eu - eu.mean()) * (q - q.mean() - slope.estimate * (eu - eu.mean()))
    sandwich = np.sqrt(np.sum(residual**2)) / np.sum((eu - eu.mean()) ** 2)
    # The jackknife's is a little larger than White's.
    assert sandwich < slope.standard_error < 1.05 * sandwich


def test_squares_of_means_by_pairs_of_groups():
    rng = np.random.default_rng(0)
    values, bins = rng.normal(1, 1, 40), rng.integers(0, 3, 40)
    groups = rng.integers(0, 12, 40)
    means, n_pairs = np.zeros(3), np.zeros(3)
    counts, sums = np.zeros((2, 12, 3))
    for m in range(3):
        inside = np.flatnonzero(bins == m)
        pairs = [
            values[i] * values[k]
            for i, k in itertools.permutations(inside, 2)
            if groups[i] != groups[k]
        ]
        means[m], n_pairs[m] = np.mean(pairs), len(pairs)
        n_groups = len(np.unique(groups[inside]))
        residual = (values[inside] - values[inside].mean()) * math.sqrt(n_groups / (n_groups - 1))
        np.add.at(sums[:, m], groups[inside], residual)
        np.add.at(counts[:, m], groups[inside], 1)
    assert np.all(means > 0)
    share = counts.sum(axis=0) / 40
    result = squares_of_means([(values, bins, groups)], 0.95)
    assert result.estimate == pytest.approx(share @ means)
    assert result.plug_in - result.noise_floor == pytest.approx(result.estimate)
    # Its variance without error: pairs of groups are independent of each other.
    weights = share / n_pairs
    variance = 2 * sum(
        (weights @ (sums[g] * sums[h])) ** 2 for g, h in itertools.permutations(range(12), 2)
    )
    # An error adds that of a linear form of residuals, and of which inputs lie in a bin.
    influence = sums @ (2 * weights * np.sqrt(means) * counts.sum(axis=0))
    influence -= (sums * counts) @ (2 * weights * np.sqrt(means))
    influence += counts @ ((means - share @ means) / 40)
    assert result.standard_error**2 == pytest.approx(variance + influence @ influence)
    # Where the estimate is 0 its standard error is that of no error.
    centred = values - np.array([values[bins == m].mean() for m in range(3)])[bins]
    at_zero = squares_of_means([(centred, bins, groups)], 0.95)
    assert at_zero.estimate < 0
    assert at_zero.standard_error**2 == pytest.approx(variance)
    assert result.minimum_detectable == pytest.approx(at_zero.minimum_detectable)


# --- Symmetry


@pytest.mark.parametrize("exchangeable", [True, False])
def test_calling_the_other_class_positive_changes_nothing(exchangeable):
    s, rows, _ = draw(400, h=8, k=3)
    options = {"exchangeable": exchangeable, "n_bins": 4, "binning": "quantile"}
    first = second_order_error(s, 3, rows, **options)
    second = second_order_error(3 - s, 3, 1 - rows, **options)
    assert_same(first, second, rel=1e-6, abs=1e-12)


def test_numbering_of_hypotheses_changes_nothing():
    s, rows, _ = draw(300, h=9, k=3)
    renumbered = rows[:, np.random.default_rng(1).permutation(9)]
    first = second_order_error(s, 3, rows)
    assert_same(first, second_order_error(s, 3, renumbered), rel=1e-6, abs=1e-12)
    test = second_order_test(s, 3, rows)
    other = second_order_test(s, 3, renumbered)
    assert (other.statistic, other.p_value) == pytest.approx((test.statistic, test.p_value))


@pytest.mark.parametrize("draws", ["functions", "inputs"])
def test_neither_order_nor_copies_nor_precision_matter(draws):
    error_of = partial(second_order_error, draws=draws)
    test_of = partial(second_order_test, draws=draws)
    s, rows, _ = draw(400, h=20, k=3)
    # Equal rows with other labels.
    rows[::5] = rows[0]
    first = error_of(s, 3, rows)
    test = test_of(s, 3, rows, n_resamples=99)
    curve = second_order_curve(s, 3, rows)
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(400)
        assert_same(first, error_of(s[order], 3, rows[order]), rel=1e-6, abs=1e-12)
        found = test_of(s[order], 3, rows[order], n_resamples=99)
        assert (found.statistic, found.p_value) == pytest.approx((test.statistic, test.p_value))
        of_order = second_order_curve(s[order], 3, rows[order])
        np.testing.assert_allclose(of_order.error, curve.error, rtol=1e-9)
    with pytest.warns(UserWarning, match="each hypothesis is given 2 times: as draws there are 20"):
        twice = error_of(s, 3, np.repeat(rows, 2, axis=1))
        of_twice = test_of(s, 3, np.repeat(rows, 2, axis=1), n_resamples=99)
    assert_same(first, twice, rel=1e-6, abs=1e-12)
    assert of_twice.p_value == test.p_value
    assert_same(first, error_of(s, 3, rows.astype(np.float32)), rel=1e-3, abs=1e-6)
    # No seed chooses between verdicts: labels are drawn often enough.
    p_values = [
        test_of(s, 3, rows, random_state=seed, n_resamples=399).p_value for seed in range(5)
    ]
    assert np.ptp(p_values) < 0.1


def test_copies_told_by_groups_change_nothing():
    s, rows, _ = draw(300, k=3)
    bins = np.arange(300) % 5
    once = second_order_error(s, 3, rows, bins=bins)
    twice = second_order_error(
        np.repeat(s, 2),
        3,
        np.repeat(rows, 2, axis=0),
        bins=np.repeat(bins, 2),
        groups=[f"image {n // 2}" for n in range(600)],
    )
    assert_same(once, twice, rel=1e-9, abs=1e-15)


# --- Edges


def test_two_and_three_draws_have_no_halves():
    for h in (2, 3):
        s, rows, _ = draw(400, h=h, k=2)
        result = second_order_error(s, 2, rows)
        assert math.isnan(result.slope.estimate)
        assert (result.slope.ci_low, result.slope.ci_high) == (-math.inf, math.inf)
        # All inputs are one bin: the square of the gap, from pairs.
        assert result.size_error.n_bins == 1
        assert abs(result.size_error.estimate - result.gap.estimate**2) < 1e-3
        assert result.law is None if h == 2 else math.isnan(result.law.slope.estimate)
        assert len(second_order_curve(s, 2, rows).error) == 1
        assert 0 < second_order_test(s, 2, rows, draws="inputs").p_value <= 1


def test_no_uncertainty():
    s, rows, _ = draw(200, h=6)
    rows = np.repeat(rows[:, :1], 6, axis=1)
    result = second_order_error(s, 3, rows)
    assert result.uncertainty.estimate == pytest.approx(0, abs=1e-30)
    assert result.gap.estimate == pytest.approx(result.reducible.estimate)
    assert result.share.estimate == pytest.approx(0, abs=1e-25)
    assert math.isnan(result.slope.estimate)
    assert result.size_error.n_bins == 1
    assert len(second_order_curve(s, 3, rows).error) == 1


def test_certain_and_right():
    result = second_order_error([0, 2, 0, 2], 2, [[0, 0], [1, 1], [0, 0], [1, 1]])
    assert result.reducible.estimate == result.gap.estimate == 0
    assert math.isnan(result.share.estimate)
    assert (result.share.ci_low, result.share.ci_high) == (0, math.inf)


def test_ties_share_a_bin():
    s, rows, _ = draw(2000, h=6)
    rows = rows[np.arange(2000) % 3]
    result = second_order_error(s, 3, rows, exchangeable=False)
    assert result.size_error.n_bins == 3
    q = squared_error(s / 3, s * (s - 1) / 6, rows.mean(axis=1))
    curve = second_order_curve(s, 3, rows, exchangeable=False)
    cells = sorted((rows[c].var(), q[c::3].mean()) for c in range(3))
    np.testing.assert_allclose(np.stack([curve.uncertainty, curve.error], axis=1), cells)
    np.testing.assert_allclose(curve.weight, 1 / 3, rtol=0.01)


def test_small_samples_are_not_all_alone():
    result = second_order_error([1, 2, 0], 2, np.random.default_rng(0).random((3, 5)))
    assert (result.calibration_error.n_bins, result.size_error.n_bins) == (1, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_positive": [1.5, 1, 1]}, r"n_positive must be integers >= 0, got \[1.5\]"),
        ({"n_positive": [-1, 1, 1]}, "n_positive must be integers >= 0"),
        ({"n_positive": [math.nan, 1, 1]}, "n_positive must be integers >= 0"),
        ({"n_positive": ["a", "b", "c"]}, "n_positive must be integers >= 0, got dtype"),
        ({"n_positive": [[1, 1, 1]]}, r"n_positive must have shape \(n_samples,\)"),
        ({"n_positive": [1, 3, 1]}, "got 3 of 2 labels for sample 1 and 0 more"),
        ({"n_labels": [2, 2]}, "n_labels has shape"),
        ({"n_labels": 1}, "no input has two labels or more"),
        ({"n_labels": [1, 1, 2]}, "two inputs, or groups of them"),
        ({"hypotheses": [[0.5], [0.5], [0.5]]}, "hypotheses must be two or more"),
        ({"hypotheses": [[0.5, 1.5]] * 3}, r"hypotheses must be in \[0, 1\]"),
        ({"hypotheses": [[0.5, 0.5]] * 2}, "hypotheses has 2 samples"),
        ({"epistemic_uncertainty": [0.1, -1, 0.1]}, "epistemic_uncertainty must be finite"),
        ({"groups": [0, 1]}, r"groups must have shape \(3,\)"),
        ({"bins": [0, 1, 2]}, "every sample is alone in its bin"),
        ({"n_bins": 0}, "n_bins must be an integer >= 1"),
        ({"confidence_level": 1}, "confidence_level must lie between 0 and 1"),
    ],
)
def test_arguments(changes, message):
    arguments = {"n_positive": [1, 1, 0], "n_labels": 2, "hypotheses": [[0.2, 0.4]] * 3}
    with pytest.raises(ValueError, match=message):
        second_order_error(**(arguments | changes))


def test_arguments_of_the_others():
    s, rows, p = draw(20)
    with pytest.raises(ValueError, match="hypotheses has 1 tasks, n_positive has 2"):
        mean_second_order_error([s, s], 3, [rows])
    with pytest.raises(ValueError, match="got none"):
        mean_second_order_error([], 3, [])
    with pytest.raises(ValueError, match="p_true"):
        true_second_order_error(p + 1, rows)
    with pytest.raises(ValueError, match="n_resamples"):
        second_order_test(s, 3, rows, n_resamples=0)
    y, prediction = s > 1, rows.mean(axis=1)
    with pytest.raises(ValueError, match="reference"):
        bounds_from_one_label(y, prediction, p[:10])
    with pytest.raises(ValueError, match="reference has 1 tasks, y_true has 2"):
        mean_bounds_from_one_label([y, y], [prediction, prediction], [p])
    with pytest.raises(ValueError, match="n_hypotheses must be an integer >= 2"):
        bounds_from_one_label(y, prediction, p, n_hypotheses=1)


# --- Intervals


def test_mean_of_symmetric_values_has_the_t_interval():
    values = np.tile([0.0, 1.0], 50)
    result = mean_of_groups(values, np.arange(100), 0.95)
    half = 1.98422 * np.std(values, ddof=1) / 10
    assert (result.ci_low, result.ci_high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-5)


def test_ratio_without_noise_below_is_a_mean():
    values = np.random.default_rng(0).normal(1, 1, 200)
    groups = np.arange(200)
    ratio = ratio_of_means(values, np.full(200, 2.0), groups, 0.95)
    mean = mean_of_groups(values / 2, groups, 0.95)
    assert ratio.estimate == pytest.approx(mean.estimate)
    assert ratio.standard_error == pytest.approx(mean.standard_error, rel=0.01)
    assert ratio.ci_low == pytest.approx(mean.ci_low, rel=0.01)
    assert ratio.ci_high == pytest.approx(mean.ci_high, rel=0.01)


@pytest.mark.filterwarnings("error")
def test_ratio_over_nothing_has_no_finite_limit():
    above = np.random.default_rng(0).normal(1, 0.1, 200)
    ratio = ratio_of_means(above, np.zeros(200), np.arange(200), 0.95, least=0.0)
    assert math.isnan(ratio.estimate)
    assert (ratio.ci_low, ratio.ci_high) == (math.inf, math.inf)
    # Of 0 over 0 nothing is known.
    ratio = ratio_of_means(np.zeros(200), np.zeros(200), np.arange(200), 0.95, least=0.0)
    assert (ratio.ci_low, ratio.ci_high) == (0, math.inf)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_bias_coverage_and_power(factor):
    results, rejected = [], 0
    for seed in range(100):
        s, rows, _ = draw(500, factor=factor, seed=seed)
        options = {"draws": "inputs", "random_state": seed}
        results.append(second_order_error(s, 3, rows, binning="quantile", **options))
        if seed < 40:
            test = second_order_test(s, 3, rows[:, :8], n_resamples=99, **options)
            rejected += test.p_value <= 0.05
    # E of mean(1 − mean) and of 1/(1 + precision).
    law = (0.5**2 - 0.9**2 / 12) * (1 / 5 + 1 / 21) / 2
    truth = {
        "reducible": factor * law + law / 20,
        "uncertainty": law * 21 / 20,
        "gap": (factor - 1) * law,
        "share": (21 / 20) / (factor + 1 / 20),
        "slope": factor,
        "aleatoric": (0.5**2 - 0.9**2 / 12) - factor * law,
    }
    for name, value in truth.items():
        estimates = np.array([getattr(result, name).estimate for result in results])
        if name != "share":  # a ratio is unbiased for many inputs only
            assert abs(estimates.mean() - value) < 4 * estimates.std() / np.sqrt(100), name
        covered = [getattr(r, name).ci_low <= value <= getattr(r, name).ci_high for r in results]
        assert binom.cdf(sum(covered), 100, 0.95) > 1e-3, name
    found = sum(result.size_error.ci_low > 0 for result in results)
    errors = np.array([result.size_error.estimate for result in results])
    if factor == 1:
        assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(100)
        assert binom.sf(found - 1, 100, 0.05) > 1e-3
        assert binom.sf(rejected - 1, 40, 0.05) > 1e-3
    else:
        assert found > 66
        assert rejected > 16


def test_right_uncertainty_of_few_draws_is_found_right():
    s, rows, _ = draw(4000, h=6, k=10)
    result = second_order_error(s, 10, rows, binning="quantile")
    naive = second_order_error(s, 10, rows, binning="quantile", exchangeable=False)
    assert result.share.ci_low < 1 < result.share.ci_high
    assert naive.share.ci_high < 0.85
    assert naive.slope.ci_high < 0.85
    assert result.size_error.ci_low == 0
    # Bins of the draws that are judged: what is large by chance seems too large.
    ranks = rows.var(axis=1).argsort().argsort()
    assert second_order_error(s, 10, rows, bins=ranks // 100).size_error.ci_low > 0
    curve = second_order_curve(s, 10, rows)
    assert np.all(np.abs(curve.error - curve.uncertainty) < 4 * curve.standard_error)
    assert np.mean(curve.uncertainty) == pytest.approx(result.uncertainty.estimate, rel=0.03)


def test_wrong_inputs_are_seen_by_all_but_the_gap():
    s, rows, _ = draw(4000, k=10, wrong_inputs=True)
    result = second_order_error(s, 10, rows, binning="quantile")
    assert abs(result.gap.estimate) < 4 * result.gap.standard_error
    assert result.slope.ci_high < 0.9
    assert result.size_error.ci_low > 0
    assert second_order_test(s, 10, rows, n_resamples=199).p_value < 0.05
    assert second_order_test(s, 10, rows, n_bins=1, n_resamples=199).p_value > 0.05


@pytest.mark.parametrize("exchangeable", [True, False])
def test_test_of_draws_at_each_input_is_exact_for_few_inputs(exchangeable):
    rejected = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rows = rng.beta(0.5, 1.5, (12, 6))
        s = rng.binomial(2, rng.beta(0.5, 1.5, 12) if exchangeable else rows[:, 0])
        options = {"exchangeable": exchangeable, "draws": "inputs", "random_state": seed}
        rejected += (
            second_order_test(s, 2, rows, n_bins=3, n_resamples=39, **options).p_value <= 0.1
        )
    # Twice the median over halves is at most exact.
    assert exchangeable or binom.cdf(rejected, 300, 0.1) > 1e-3
    assert binom.sf(rejected - 1, 300, 0.1) > 1e-3


def test_groups_widen_intervals_where_people_agree_with_themselves():
    rng = np.random.default_rng(0)
    mean = np.repeat(rng.uniform(0.2, 0.8, 100), 10)
    rows = np.clip(mean[:, None] + rng.normal(0, 0.05, (1000, 8)), 0, 1)
    p = np.clip(mean + np.repeat(rng.normal(0, 0.15, 100), 10), 0, 1)
    s = rng.binomial(20, p)
    alone, grouped = (
        second_order_error(s, 20, rows, groups=groups, binning="quantile")
        for groups in (None, np.repeat(np.arange(100), 10))
    )
    assert grouped.gap.standard_error > 2 * alone.gap.standard_error
    assert grouped.size_error.standard_error > alone.size_error.standard_error
    assert grouped.gap.estimate == alone.gap.estimate


# --- Known truth, tasks, bounds


def test_known_truth():
    s, rows, p = draw(3000, k=200)
    truth = true_second_order_error(p, rows, binning="quantile")
    result = second_order_error(s, 200, rows, binning="quantile")
    assert truth.reducible.estimate == pytest.approx(np.mean((p - rows.mean(axis=1)) ** 2))
    assert truth.aleatoric.estimate == pytest.approx(np.mean(p * (1 - p)))
    for name, value in values(truth).items():
        estimate = getattr(result, name)
        # Both see the same inputs; only labels are left.
        assert abs(estimate.estimate - value.estimate) < estimate.standard_error, name


def test_mean_over_tasks():
    tasks = [draw(300, k=3, seed=seed) for seed in range(3)]
    s, rows = [t[0] for t in tasks], [t[1] for t in tasks]
    options = {"binning": "quantile", "n_bins": 6}
    single = [second_order_error(*pair, **options) for pair in zip(s, [3] * 3, rows, strict=True)]
    result = mean_second_order_error(s, 3, rows, **options)
    for name in ("reducible", "uncertainty", "gap", "aleatoric", "size_error", "variance_in_bins"):
        mean = np.mean([getattr(r, name).estimate for r in single])
        assert getattr(result, name).estimate == pytest.approx(mean)
    assert result.share.estimate == pytest.approx(
        result.uncertainty.estimate / result.reducible.estimate
    )
    assert result.size_error.n_bins == sum(r.size_error.n_bins for r in single)
    # Of independent tasks the variance of the mean is a third.
    independent = np.sqrt(np.mean([r.gap.standard_error**2 for r in single]) / 3)
    assert result.gap.standard_error == pytest.approx(independent, rel=0.1)
    # Tasks that are the same say nothing new.
    same = mean_second_order_error([s[0]] * 3, 3, [rows[0]] * 3, **options)
    for name in ("reducible", "gap", "share", "slope", "size_error"):
        ends = [(e.ci_low, e.ci_high) for e in (getattr(r, name) for r in (same, single[0]))]
        assert ends[0] == pytest.approx(ends[1], rel=1e-6, abs=1e-12), name


def test_mean_over_tasks_takes_what_is_given_for_each():
    s, rows, _ = draw(100, k=3)
    eu, bins, groups = rows.var(axis=1), np.arange(100) % 4, np.arange(100) // 2
    mean = mean_second_order_error(
        [s], 3, [rows], epistemic_uncertainty=[eu], bins=[bins], groups=groups
    )
    one = second_order_error(s, 3, rows, epistemic_uncertainty=eu, bins=bins, groups=groups)
    assert_same(mean, one, rel=1e-12)


def test_bounds_by_hand():
    y, prediction, reference = [1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5], [0.9, 0.1, 0.9, 0.1]
    result = bounds_from_one_label(
        y, prediction, reference, epistemic_uncertainty=[0.1] * 4, n_hypotheses=3
    )
    assert result.upper.estimate == pytest.approx(0.25)
    assert result.lower.estimate == pytest.approx(0.25 - 0.01)
    assert result.lower.standard_error == pytest.approx(0, abs=1e-15)
    assert (result.ci_low, result.ci_high) == pytest.approx((0.24, 0.25))
    assert (result.share_low, result.share_high) == pytest.approx((0.2 / 0.25, 0.2 / 0.24))
    with_groups = bounds_from_one_label(y, prediction, reference, groups=[0, 0, 1, 1])
    assert with_groups.upper.estimate == result.upper.estimate
    assert math.isnan(with_groups.share_low)


def test_bounds_hold():
    held = shares_held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=500)
        method = 0.5 + 0.4 * (p - 0.5)
        result = bounds_from_one_label(
            rng.random(500) < p, method, p, epistemic_uncertainty=np.full(500, 0.36 / 12 / 2)
        )
        truth = 0.36 / 12
        held += result.ci_low <= truth <= result.ci_high
        shares_held += result.share_low <= 0.5 <= result.share_high
    # The lower bound is sharp here, the upper one far away: one side of 95 % may fail.
    assert binom.cdf(held, 100, 0.975) > 1e-3
    assert binom.cdf(shares_held, 100, 0.975) > 1e-3


def test_a_reference_is_not_judged_where_it_was_chosen():
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.5
    method = np.full(400, 0.5)
    guesses = rng.uniform(0.3, 0.7, (200, 400))
    chosen = bounds_from_one_label(y, method, guesses)
    losses = ((y - guesses) ** 2).mean(axis=1)
    best = bounds_from_one_label(y, method, guesses[losses.argmin()])
    assert best.lower.estimate > 0
    assert chosen.lower.estimate < 0
    one = bounds_from_one_label(y, method, guesses[:1])
    assert one.lower.estimate == bounds_from_one_label(y, method, guesses[0]).lower.estimate
