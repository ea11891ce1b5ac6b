import itertools

import numpy as np
import pytest
from pairs import mean_over_pairs
from scipy.special import expit, logit
from scipy.stats import binom

from epistemic_calibration import metrics
from epistemic_calibration.metrics import Sample
from epistemic_calibration.metrics._bins import Bins
from epistemic_calibration.metrics._groups import GroupedBins
from epistemic_calibration.metrics._interval import invert
from epistemic_calibration.metrics.binning import coarse_bins
from epistemic_calibration.metrics.corrected import _difference, corrected_over_bins

# --- Corrected error


def test_estimate_is_the_mean_over_pairs(predictor):
    y, hypotheses, _ = predictor(60)
    bins = np.arange(60) % 7
    bins[0] = 99
    result = metrics.corrected_epistemic_calibration_error(y, hypotheses, bins=bins)
    expected = mean_over_pairs(y - hypotheses.mean(axis=1), bins)
    assert result.estimate == pytest.approx(expected, abs=1e-15)
    assert result.dropped_mass == pytest.approx(1 / 60)
    assert result.n_bins == 7


def test_noise_floor_is_the_mean_plug_in_of_a_calibrated_predictor(predictor):
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
def test_both_kinds_of_error_are_found_without_bias(change, predictor):
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


def test_interval_solves_its_equation():
    for estimate, at_zero, slope in ((0.02, 1e-6, 1e-3), (0.001, 1e-6, 0.0), (0.0, 1e-6, 1e-3)):
        low, high = invert(estimate, at_zero, slope, 1.96)
        for t in (low, high):
            if t > 0:
                assert abs(estimate - t) == pytest.approx(1.96 * np.sqrt(at_zero + slope * t))
    assert invert(-1.0, 1e-6, 1e-3, 1.96) == invert(0.0, 1e-6, 1e-3, 1.96)


@pytest.mark.parametrize(("size", "prevalence"), [(40, 0.5), (20, 0.02), (6, 0.1)])
def test_minimum_detectable_of_skewed_estimates(size, prevalence):
    """In 50 bins of ``size`` samples, by the quantile of what calibrated labels give."""
    n, n_draws = 50 * size, 4000
    rng = np.random.default_rng(0)
    p = expit(logit(prevalence) + rng.normal(0, 0.8, 50))[np.arange(n) % 50]
    least = metrics.corrected_epistemic_calibration_error(
        rng.random(n) < p, np.stack([p, p], axis=1), bins=np.arange(n) % 50
    ).minimum_detectable

    def estimates(true):
        e = ((rng.random((n_draws, n)) < true) - p).reshape(n_draws, size, 50)
        pairs = e.sum(axis=1) ** 2 - (e**2).sum(axis=1)
        return pairs.mean(axis=1) / (size * (size - 1))

    towards_half = p + np.where(p < 0.5, np.sqrt(least), -np.sqrt(least))
    power = np.mean(estimates(towards_half) > np.quantile(estimates(p), 0.95))
    # A χ² of the right skewness is right to 0.02 or so; the power has a standard error of
    # sqrt(0.16/4000) = 0.006, and the quantile one of 0.0034 in level, 0.01 in power.
    assert power == pytest.approx(0.8, abs=0.02 + 3 * 0.012)


def test_cumulants_are_those_of_all_labels():
    p, bins = np.array([0.05, 0.1, 0.15, 0.02, 0.9, 0.95, 0.97]), np.repeat([0, 1], [4, 3])
    y = np.array(list(itertools.product((0, 1), repeat=7)))
    probability = np.prod(np.where(y == 1, p, 1 - p), axis=1)
    estimate = 0.0
    for m, share in ((0, 4 / 7 / 12), (1, 3 / 7 / 6)):
        e = (y - p)[:, bins == m]
        estimate += share * (e.sum(axis=1) ** 2 - (e**2).sum(axis=1))
    expected = [probability @ estimate**k for k in (2, 3)]
    found = Bins(y[3].astype(float), p, bins).calibrated_cumulants()
    assert found == pytest.approx(expected, rel=1e-12)


def test_minimum_detectable_where_all_predictions_are_certain():
    y, hypotheses, bins = np.zeros(100), np.zeros((100, 3)), np.zeros(100, dtype=int)
    least = metrics.corrected_epistemic_calibration_error(y, hypotheses, bins=bins)
    # Two positives cannot be: of 100 there are two or more with probability 0.8 at a
    # frequency of 0.0296. A χ² is not quite the law of pairs of so few.
    assert 0.02**2 < least.minimum_detectable < 0.045**2


def test_labels_of_one_class_do_not_pass_for_certainty():
    n, p = 30, 0.05
    y, hypotheses = np.zeros(n), np.full((n, 5), p)
    result = metrics.corrected_epistemic_calibration_error(y, hypotheses)
    # 30 labels of 0 are 95 % evidence of a frequency f below 1 − 0.05^(1/30), which is more than
    # p, so s² is f(1 − f): Var = 2 s⁴/(n(n − 1)) + 4·s²/n·p².
    variance = 0.05 ** (1 / n) * (1 - 0.05 ** (1 / n))
    expected = 2 * variance**2 / (n * (n - 1)) + 4 * variance / n * p**2
    assert result.estimate == pytest.approx(p**2)
    assert result.standard_error == pytest.approx(np.sqrt(expected))
    assert result.ci_low == 0


@pytest.mark.parametrize(("n", "frequency"), [(20, 0.1), (50, 0.04), (100, 0.02)])
@pytest.mark.parametrize("p", [0.0, 1e-6])
def test_interval_of_predictions_that_no_label_contradicts(n, frequency, p):
    """The number of positive labels is binomial, so coverage is a sum."""
    truth, covered = (frequency - p) ** 2, 0.0
    for k in range(n + 1):
        result = metrics.corrected_epistemic_calibration_error(np.arange(n) < k, np.full((n, 2), p))
        covered += binom.pmf(k, n, frequency) * (result.ci_low <= truth <= result.ci_high)
    assert covered >= 0.93


def test_labels_of_one_class_hide_no_more_than_together():
    # Ten bins of ten zeros: not 0.05^(1/10), for all of them together are 100 zeros.
    bins = np.repeat(np.arange(10), 10)
    result = metrics.corrected_epistemic_calibration_error(
        np.zeros(100), np.zeros((100, 2)), bins=bins
    )
    f = 1 - 0.05 ** (1 / 100)
    # Of V₀ alone: Σ w²·2s⁴/(n(n − 1)) over ten bins of w = 1/10.
    assert result.standard_error == pytest.approx(f * (1 - f) * np.sqrt(2 / (10 * 90)))


def test_only_singletons_is_an_error():
    for test in (metrics.corrected_epistemic_calibration_error, metrics.epistemic_calibration_test):
        with pytest.raises(ValueError, match="alone in its bin"):
            test([0, 1], [[0.1], [0.9]], bins=[0, 1])


# --- Split


def test_split_adds_up_and_finds_the_part_that_is_there(predictor):
    y, hypotheses, error = predictor(8000, mean_error=0.5)
    split = metrics.split_epistemic_calibration_error(y, hypotheses)
    assert split.total.estimate == pytest.approx(
        split.mean_miscalibration.estimate + split.epistemic_dependence.estimate, abs=1e-15
    )
    truth = np.mean(error**2)
    assert split.mean_miscalibration.ci_low < truth < split.mean_miscalibration.ci_high
    assert abs(split.epistemic_dependence.estimate) < 3 * split.epistemic_dependence.standard_error

    y, hypotheses, error = predictor(8000, dependence=0.6)
    split = metrics.split_epistemic_calibration_error(y, hypotheses)
    assert abs(split.mean_miscalibration.estimate) < 3 * split.mean_miscalibration.standard_error
    bins = metrics.assign_bins(hypotheses, n_bins=50, binning="nested")
    coarse = coarse_bins(hypotheses.mean(axis=1), 50)
    visible = visible_error(error, bins) - visible_error(error, coarse)
    dependence = split.epistemic_dependence
    assert dependence.ci_low < visible < dependence.ci_high
    assert visible > 0.9 * np.mean(error**2)


@pytest.mark.parametrize(("n_rows", "n"), [(20, 500), (20, 10_000), (60, 3000)])
def test_rows_that_the_mean_determines_have_no_dependence(n_rows, n):
    rng = np.random.default_rng(0)
    means = rng.uniform(0.1, 0.9, n_rows)
    rows = means[:, None] + np.outer(rng.uniform(0, 0.1, n_rows), np.linspace(-1, 1, 8))
    cell = rng.integers(0, n_rows, n)
    y = rng.random(n) < (means + rng.choice([-0.1, 0.1], n_rows))[cell]
    split = metrics.split_epistemic_calibration_error(y, rows[cell])
    assert split.epistemic_dependence.estimate == pytest.approx(0, abs=1e-15)
    assert split.epistemic_dependence.ci_low == 0
    assert split.mean_miscalibration.ci_low < 0.01 < split.mean_miscalibration.ci_high


def test_estimates_do_not_depend_on_the_order_of_samples(predictor):
    y, hypotheses, _ = predictor(600, dependence=0.5, mean_error=0.3)
    order = np.random.default_rng(0).permutation(600)
    for function in (
        metrics.corrected_epistemic_calibration_error,
        metrics.cross_fitted_lower_bound,
        metrics.decompose_eece,
        metrics.epistemic_independence_test,
    ):
        given, permuted = (
            {name: value for name, value in vars(found).items() if name != "bins"}
            for found in (function(y, hypotheses), function(y[order], hypotheses[order]))
        )
        assert permuted == pytest.approx(given, rel=1e-9, abs=1e-13)


def test_split_over_given_bins_is_that_over_its_own(predictor):
    y, hypotheses, _ = predictor(700, dependence=0.5, mean_error=0.3)
    bins = metrics.assign_bins(hypotheses, binning="nested", n_bins=32)
    given = metrics.split_epistemic_calibration_error(y, hypotheses, n_bins=32, bins=bins)
    assert given == metrics.split_epistemic_calibration_error(y, hypotheses, n_bins=32)
    with pytest.raises(ValueError, match="not nested in those of the row mean for n_bins=8"):
        metrics.split_epistemic_calibration_error(y, hypotheses, n_bins=8, bins=bins % 5)


@pytest.mark.parametrize("n_groups", [None, 12])
def test_standard_error_of_the_dependence_is_that_of_the_quadratic_form(n_groups):
    rng = np.random.default_rng(2)
    n, fine = 60, np.repeat([0, 1, 2, 3], [12, 8, 15, 25])
    coarse, p = fine // 2, rng.uniform(0.2, 0.8, n)
    groups = None if n_groups is None else rng.integers(0, n_groups, n)
    y = (rng.random(n) < p + np.array([0.2, -0.4, 0.4, -0.1])[fine]).astype(float)
    total, of_mean = (corrected_over_bins(y, p, b, 0.95, groups) for b in (fine, coarse))
    result = _difference(Sample(y, p[:, None]), coarse, fine, groups, total, of_mean)
    assert result.estimate == total.estimate - of_mean.estimate > 0

    units = np.arange(n) if groups is None else groups
    c, f = GroupedBins(y, p, coarse, units), GroupedBins(y, p, fine, units)
    sums, sizes = np.zeros((2, units.max() + 1, 4))
    sums[f.of_group, f.of_bin], sizes[f.of_group, f.of_bin] = f.residual, f.size
    same = np.kron(np.eye(2), np.ones((2, 2)))
    form = np.diag(f.w / f.pairs) - same * np.repeat(c.w / c.pairs, 2)
    pairs = sums @ form @ sums.T
    np.fill_diagonal(pairs, 0)
    noise = np.sum(sums**2, axis=0)
    of_coarse = np.repeat((same[::2] @ noise) / c.n**2, 2)
    deviation = f.error - np.repeat(c.error, 2)
    noise = noise / f.n**2 * (1 - 2 * f.n / np.repeat(c.n, 2)) + of_coarse
    squares = np.maximum(deviation**2 - noise, 0)
    linear = ((f.n - sizes) * sums) @ (2 * f.w / f.pairs * np.sign(deviation) * np.sqrt(squares))
    slope = linear @ linear / (f.w @ squares)
    expected = 2 * np.sum(pairs**2) + slope * result.estimate
    # The closed form of single samples differs by their fourth moments.
    tolerance = 0.03 if groups is None else 1e-12
    assert result.standard_error == pytest.approx(np.sqrt(expected), rel=tolerance)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("highest", [0, 1e-9, 2e-4, 1])
def test_no_error_has_to_be_larger_than_probabilities_allow_to_be_seen(highest, grouped):
    rng = np.random.default_rng(0)
    hypotheses = rng.uniform(0, highest, (1000, 20))
    if highest == 1e-9:
        hypotheses[1:] = 0
    groups = np.arange(1000) // 4 if grouped else None
    found = []
    for y in (rng.binomial(1, 0.1, 1000), np.zeros(1000, dtype=int)):
        split = metrics.split_epistemic_calibration_error(y, hypotheses, groups=groups)
        parts = (split.total, split.mean_miscalibration, split.epistemic_dependence)
        found.append([part.minimum_detectable for part in parts])
    assert np.all(np.array(found) > 0) and np.all(np.array(found) <= 1)
    # Of calibrated labels, whatever was seen; of groups, how they depend on each other is seen.
    assert grouped or found[0] == found[1]


def test_what_the_mean_over_tasks_can_detect_is_of_each_task_by_itself():
    certain, nearly = np.zeros((2, 1000))
    nearly[0] = 1e-9
    y, bins = np.random.default_rng(0).binomial(1, 0.1, (2, 1000)), [np.arange(1000) // 20] * 2
    assert metrics.mean_corrected_error(y, [certain, nearly], bins).minimum_detectable < 1e-4
