"""Copies and clusters: samples of a group may depend on each other in any way."""

import itertools
from dataclasses import asdict

import numpy as np
import pytest
from pairs import mean_over_pairs
from scipy.special import expit
from scipy.stats import binom

from epistemic_calibration import metrics
from epistemic_calibration.metrics._bins import Bins
from epistemic_calibration.metrics._groups import GroupedBins, distinct_inputs
from epistemic_calibration.metrics.corrected import form_of

FUNCTIONS = [
    metrics.corrected_epistemic_calibration_error,
    metrics.cross_fitted_lower_bound,
    metrics.epistemic_calibration_test,
    metrics.mean_calibration_test,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_groups_of_one_are_no_groups(function, predictor):
    y, hypotheses, _ = predictor(300, mean_error=0.5)
    names = np.array([f"patient {k}" for k in range(300)])
    assert function(y, hypotheses, groups=names) == function(y, hypotheses)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_wrong_groups(function, predictor):
    y, hypotheses, _ = predictor(20)
    mean = hypotheses.mean(axis=1)
    for groups, message in (
        (np.arange(19), r"groups must have shape \(20,\)"),
        (np.zeros(20), "two inputs, or groups of them, or more"),
        (np.full(20, np.nan), "groups must not be NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            function(y, hypotheses, groups=groups)
        with pytest.raises(ValueError, match=message):
            metrics.mean_corrected_error([y], [mean], [np.zeros(20, dtype=int)], groups=groups)


def test_a_bin_of_one_group_is_dropped(predictor):
    y, hypotheses, _ = predictor(20)
    bins, groups = np.repeat([0, 1, 2], [4, 6, 10]), np.repeat([0, 1, 0, 2, 3], [4, 3, 3, 5, 5])
    result = metrics.corrected_epistemic_calibration_error(y, hypotheses, bins=bins, groups=groups)
    assert (result.n_bins, result.dropped_mass) == (2, 0.2)
    with pytest.raises(ValueError, match="every group is alone in its bin"):
        metrics.corrected_epistemic_calibration_error(y, hypotheses, bins=bins, groups=bins)


def test_estimate_is_the_mean_over_pairs_of_different_groups(predictor):
    y, hypotheses, _ = predictor(60)
    rng = np.random.default_rng(0)
    bins, groups = rng.integers(0, 5, 60), rng.integers(0, 12, 60)
    expected = mean_over_pairs(y - hypotheses.mean(axis=1), bins, groups)
    options = {"bins": bins, "groups": groups}
    result = metrics.corrected_epistemic_calibration_error(y, hypotheses, **options)
    assert result.estimate == pytest.approx(expected, abs=1e-15)
    test = metrics.epistemic_calibration_test(y, hypotheses, n_resamples=9, **options)
    assert test.statistic == pytest.approx(expected, abs=1e-15)


def test_cells_of_one_sample_are_bins_of_samples(predictor):
    y, hypotheses, _ = predictor(200)
    y[:40] = 0
    mean, labels = hypotheses.mean(axis=1), np.arange(200) // 20
    labels[-1] = 12
    a, b = Bins(y, mean, labels), GroupedBins(y, mean, labels, np.arange(200))
    for name in ("used", "n", "w", "pairs", "error", "squared_error", "dropped_mass"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12, atol=1e-15)
    # One-class bins have at least the variance that they hide.
    squares = b.of_bins(b.residual**2) / b.n
    np.testing.assert_allclose(squares[2:], a.s2[2:], rtol=1e-12)
    assert (squares[:2] >= a.s2[:2] * (1 - 1e-12)).all()


@pytest.mark.parametrize("one_class", [False, True])
def test_copies_say_no_more_than_the_originals(one_class, predictor):
    y, hypotheses, _ = predictor(120, mean_error=0.4)
    y = 0 * y if one_class else y
    mean, bins, level = hypotheses.mean(axis=1), np.arange(120) % 6, 0.95
    once = form_of(y, mean, bins, np.arange(120)).corrected(level)
    rng = np.random.default_rng(0)
    of_copy = rng.permutation(np.repeat(np.arange(120), 3))
    copied = form_of(y[of_copy], mean[of_copy], bins[of_copy], of_copy).corrected(level)
    assert asdict(copied) == pytest.approx(asdict(once), rel=1e-9, abs=1e-15)
    # The closed form of single samples differs by their fourth moments, a part in n.
    closed = metrics.corrected_epistemic_calibration_error(y, hypotheses, bins=bins)
    assert once.estimate == pytest.approx(closed.estimate, abs=1e-15)
    assert once.standard_error == pytest.approx(closed.standard_error, rel=0.1)


def test_standard_error_is_that_of_all_pairs():
    """Against the sums of the quadratic form, with groups in several bins."""
    rng = np.random.default_rng(1)
    n = 40
    p, groups, bins = rng.uniform(0.1, 0.9, n), rng.integers(0, 9, n), rng.integers(0, 3, n)
    y = (rng.random(n) < p / 2).astype(float)
    result = form_of(y, p, bins, groups).corrected(0.95)
    b = GroupedBins(y, p, bins, groups)
    matrix = np.zeros((9, 3))
    matrix[b.of_group, b.of_bin] = b.residual
    form = matrix @ np.diag(b.w / b.pairs) @ matrix.T
    np.fill_diagonal(form, 0)
    at_zero = 2 * np.sum(form**2)
    sizes = np.zeros((9, 3))
    np.add.at(sizes, (groups, bins), 1)
    means = np.sign(b.error) * np.sqrt(np.maximum(b.squared_error, 0))
    linear = ((b.n - sizes) * matrix) @ (2 * b.w / b.pairs * means)
    truth = b.w @ np.maximum(b.squared_error, 0)
    expected = at_zero + linear @ linear / truth * max(result.estimate, 0)
    assert result.standard_error == pytest.approx(np.sqrt(expected), rel=1e-12)


# --- Tests


def test_flips_of_groups_and_draws_of_single_samples_can_be_listed():
    p, groups = np.array([0.3, 0.3, 0.6, 0.6, 0.2, 0.5]), np.array([0, 0, 1, 1, 2, 3])
    y = np.array([1, 1, 0, 1, 0, 1])
    hypotheses, bins = np.stack([p, p], axis=1), np.array([0, 0, 0, 1, 0, 1])
    result = metrics.epistemic_calibration_test(
        y, hypotheses, bins=bins, groups=groups, n_resamples=9999
    )
    e = y - p

    def statistic(e):
        # Pairs of different groups: three cells of 2, 1, 1 samples, and two of one.
        first, second = (e[0] + e[1], e[2], e[4]), (e[3], e[5])
        pairs = [
            2 * sum(a * b for a, b in itertools.combinations(cells, 2)) for cells in (first, second)
        ]
        return 4 / 6 * pairs[0] / (16 - 6) + 2 / 6 * pairs[1] / 2

    exact = 0.0
    for signs in itertools.product((-1, 1), repeat=2):
        for drawn in itertools.product((0, 1), repeat=2):
            new = e * np.array([signs[0], signs[0], signs[1], signs[1], 1, 1])
            new[4:] = np.array(drawn) - p[4:]
            weight = np.prod(np.where(np.array(drawn) == 1, p[4:], 1 - p[4:])) / 4
            exact += weight * (statistic(new) >= statistic(e) - 1e-12)
    assert result.statistic == pytest.approx(statistic(e))
    assert result.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))


def test_a_group_has_one_sign_in_all_bins():
    # Three groups in both bins, all with e = 1/2: the largest statistic, had by equal signs.
    hypotheses, bins = np.full((12, 2), 0.5), np.repeat([0, 1], 6)
    test = metrics.epistemic_calibration_test(
        np.ones(12), hypotheses, bins=bins, groups=np.arange(12) % 3, n_resamples=999
    )
    assert test.statistic == pytest.approx(0.25)
    assert test.p_value == pytest.approx(1 / 4, abs=4 * np.sqrt(3 / 16 / 999))


@pytest.mark.parametrize("location", [0.0, -3.0])
def test_copies_do_not_pass_for_error(location):
    n, n_runs = 250, 100
    of_copy = np.repeat(np.arange(n), 4)
    rejected, missed = dict.fromkeys(("all", "mean", "not given"), 0), 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(location, 1, n))
        hypotheses = np.stack([p, p], axis=1)[of_copy]
        y = (rng.random(n) < p)[of_copy]
        bins = np.floor(20 * np.argsort(np.argsort(p)) / n).astype(int)[of_copy]
        options = {"n_resamples": 99, "random_state": seed}
        tests = {
            "all": metrics.epistemic_calibration_test(
                y, hypotheses, bins=bins, groups=of_copy, **options
            ),
            "mean": metrics.mean_calibration_test(y, hypotheses, groups=of_copy, **options),
            "not given": metrics.epistemic_calibration_test(y, hypotheses, bins=bins, **options),
        }
        for name, test in tests.items():
            rejected[name] += test.p_value <= 0.05
        interval = metrics.corrected_epistemic_calibration_error(
            y, hypotheses, bins=bins, groups=of_copy
        )
        missed += interval.ci_low > 0
    high = binom.ppf(0.999, n_runs, 0.05)
    assert max(rejected["all"], rejected["mean"], missed) <= high
    assert rejected["not given"] > 0.8 * n_runs


def test_the_interval_of_the_dependence_covers_with_groups_in_several_bins():
    """Labels of a group are one draw of its noise; the dependence is 0.05² by construction."""
    n_groups, n_runs, covered, estimates = 500, 200, 0, []
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_groups), 4)
    n = len(groups)
    for _ in range(n_runs):
        wide = rng.random(n) < 0.5
        mean = rng.uniform(0.3, 0.7, n)
        spread = np.where(wide, 0.2, 0.01)
        rows = mean[:, None] + spread[:, None] * np.array([-1.0, 1.0])
        p = mean + np.where(wide, 0.05, -0.05)
        # Half of the group's labels share one uniform number.
        shared = np.where(np.arange(n) % 4 < 2, rng.random(n_groups)[groups], rng.random(n))
        found = metrics.split_epistemic_calibration_error(
            (shared < p).astype(int), rows, n_bins=20, groups=groups
        ).epistemic_dependence
        estimates.append(found.estimate)
        covered += found.ci_low <= 0.0025 <= found.ci_high
    assert np.mean(estimates) == pytest.approx(
        0.0025, abs=4 * np.std(estimates) / np.sqrt(n_runs) + 0.03 * 0.0025
    )
    assert covered >= binom.ppf(1e-4, n_runs, 0.93)


def test_distinct_inputs_are_rows_within_groups():
    rng = np.random.default_rng(0)
    rows, groups = rng.integers(0, 2, (90, 2)) / 2, rng.integers(0, 40, 90)
    first, copy = distinct_inputs(rows, groups)
    assert len(first) == len(np.unique(np.column_stack([groups, rows]), axis=0))
    np.testing.assert_array_equal(rows[first][copy], rows)
    np.testing.assert_array_equal(groups[first][copy], groups)
