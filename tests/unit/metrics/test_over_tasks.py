import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom

from epistemic_calibration import metrics
from epistemic_calibration.metrics._trainings import Spread, found_with, trainings_needed


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


def test_mean_over_tasks_is_the_mean():
    labels, predictions, bins = two_methods(500, seed=0)
    result = metrics.mean_corrected_error(labels, predictions["a"], bins["a"])
    singles = [
        metrics.corrected_epistemic_calibration_error(y, p[:, None], bins=b)
        for y, p, b in zip(labels, predictions["a"], bins["a"], strict=True)
    ]
    assert result.estimate == pytest.approx(np.mean([s.estimate for s in singles]))
    assert result.plug_in == pytest.approx(np.mean([s.plug_in for s in singles]))


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
    assert result["a", "c"].estimate == 0
    assert result["a", "c"].p_value == 1
    assert result["a", "b"].p_value < 1e-6
    assert result["a", "b"].ci_high < 0 < result["b", "c"].ci_low
    with pytest.raises(ValueError, match="the same methods"):
        metrics.compare_mean_corrected_errors(labels, predictions, {"a": bins["a"]})


def test_methods_that_are_certain_and_right_or_wrong():
    y = np.repeat([0, 1], 50)
    predictions, bins = {"best": [y], "worst": [1 - y]}, {"best": [y], "worst": [y]}
    difference = metrics.compare_mean_corrected_errors([y], predictions, bins)["best", "worst"]
    assert difference.estimate == -1
    # A hundred labels of bins with one class hide a frequency of 3 % at most.
    hidden = 0.05 ** (1 / 100) * (1 - 0.05 ** (1 / 100))
    assert difference.standard_error == pytest.approx(np.sqrt(4 * hidden / 100), rel=0.2)
    assert difference.p_value < 1e-100


@pytest.mark.parametrize("size", [0.0, 0.08])
def test_standard_error_of_a_difference_is_neither_too_large_nor_too_small(size):
    """Two methods that are off by ±size in their bins, which are not the same."""
    n, n_runs, n_resamples = 600, 60, 299
    rng = np.random.default_rng(0)
    p = np.tile([0.3, 0.5, 0.7], n // 3)
    bins = {"a": [np.arange(n) % 20], "b": [np.arange(n) // 30]}
    signs = {k: np.where(b[0] % 2, size, -size) for k, b in bins.items()}
    predictions = {k: [p + sign] for k, sign in signs.items()}
    # D = Σ_{i≠k} a_ik ε_i ε_k + linear, where both have n/20 samples in each bin.
    forms = {k: (b[0][:, None] == b[0]) / (n * (n / 20 - 1.0)) for k, b in bins.items()}
    noise = p * (1 - p)
    form = forms["a"] - forms["b"]
    np.fill_diagonal(form, 0)
    linear = 2 * (signs["b"] - signs["a"]) / n
    quadratic = 2 * noise @ form**2 @ noise
    expected = quadratic + linear**2 @ noise
    found, z = [], []
    for seed in range(n_runs):
        y = rng.random(n) < p
        d = metrics.compare_mean_corrected_errors(
            [y], predictions, bins, n_resamples=n_resamples, random_state=seed
        )["a", "b"]
        found.append(d.standard_error**2)
        z.append(d.estimate / np.sqrt(expected))
    # That it is at least the variance around 0 lifts the mean where there is no error, by
    # less than a half. Without what is taken off, it would be 3 times as large there.
    noise_of_mean = 4 * np.std(found) / np.sqrt(n_runs) / expected
    assert 1 - noise_of_mean < np.mean(found) / expected < 1.5 + noise_of_mean
    # The closed form itself: a mean of 60 squares.
    assert np.mean(np.square(z)) == pytest.approx(1, abs=4 * np.std(np.square(z)) / np.sqrt(60))


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
    with pytest.raises(ValueError, match="predictions has 2 tasks, y_true has 1"):
        metrics.mean_corrected_error([[0, 1]], [[0.5] * 2] * 2, [[0, 0]])
    y, predictions, bins = trainings_of(50, seed=0, sd=0.1)
    with pytest.raises(ValueError, match="the same trainings, got 3 and 5"):
        metrics.mean_corrected_error(y, predictions["a"], bins["b"])


def trainings_of(n, *, seed, sd, numbers=(3, 5), mean=(0.1, 0.1)):
    """Two methods, whose trainings are off by a normal constant each: TECE is its square."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < p
    predictions = {
        name: [[p + error] for error in rng.normal(centre, sd, number)]
        for name, number, centre in zip("ab", numbers, mean, strict=True)
    }
    bins = {name: [[np.floor((p - 0.3) * 20)]] * len(runs) for name, runs in predictions.items()}
    bins = {name: [[b[0].astype(int)] for b in runs] for name, runs in bins.items()}
    return [y], predictions, bins


def test_the_samples_are_random_and_not_only_their_labels():
    # A method that is certain, and wrong about a tenth of the samples, which it knows from others.
    n, n_wrong = 4000, 400
    y = (np.arange(n) < n_wrong).astype(int)
    error = metrics.mean_corrected_error([y], [np.zeros(n)], [y], n_resamples=1999)
    assert error.estimate == pytest.approx(0.1)
    # The labels of bins of one class may hide a little more.
    assert error.standard_error == pytest.approx(np.sqrt(0.1 * 0.9 / n), rel=0.1)


def test_trainings_that_agree_are_as_one():
    y, predictions, bins = trainings_of(500, seed=0, sd=0)
    several = metrics.mean_corrected_error(y, predictions["b"], bins["b"])
    one = metrics.mean_corrected_error(y, predictions["b"][0], bins["b"][0])
    for name in ("estimate", "standard_error", "ci_low", "ci_high"):
        assert getattr(several, name) == pytest.approx(getattr(one, name), rel=1e-12)
    difference = metrics.compare_mean_corrected_errors(y, predictions, bins)["a", "b"]
    assert difference.p_value == difference.p_value_fixed == 1
    assert difference.trainings_needed is None


def test_the_variance_of_means_over_trainings_is_that_of_trainings_and_of_labels():
    y, predictions, bins = trainings_of(20_000, seed=1, sd=0.05, numbers=(4, 6))
    options = {"n_resamples": 199}
    estimates = {
        name: [
            metrics.mean_corrected_error(y, *run, **options).estimate
            for run in zip(*both, strict=True)
        ]
        for name, both in ((k, (predictions[k], bins[k])) for k in "ab")
    }
    # Labels shared by all trainings add √(4 E[e]² E[p(1 − p)]/n) = 7e-4 to the SD of a mean, and
    # nearly nothing to that of a difference; trainings make 2·0.1·0.05 = 1e-2 of each.
    of_trainings = {name: np.var(x, ddof=1) / len(x) for name, x in estimates.items()}
    mean = metrics.mean_corrected_error(y, predictions["a"], bins["a"], **options)
    assert mean.estimate == pytest.approx(np.mean(estimates["a"]))
    expected = np.sqrt(of_trainings["a"])
    assert mean.standard_error == pytest.approx(expected, rel=0.05)
    # At most the 3 degrees of freedom of four trainings.
    half = stats.t.ppf(0.975, 3) * expected
    assert mean.ci_high - mean.estimate > half
    difference = metrics.compare_mean_corrected_errors(y, predictions, bins, **options)["a", "b"]
    assert difference.standard_error == pytest.approx(np.sqrt(sum(of_trainings.values())), rel=0.02)
    assert 3 <= difference.degrees_of_freedom <= 8.5
    assert difference.p_value_fixed < 1e-3 < difference.p_value


@pytest.mark.parametrize("numbers", [(2, 2), (3, 5), (1, 4)])
def test_methods_are_compared_and_not_their_trainings(numbers):
    n_repeats, sd = 120, 0.03
    differ, differ_fixed, covered = 0, 0, 0
    for seed in range(n_repeats):
        y, predictions, bins = trainings_of(600, seed=seed, sd=sd, numbers=numbers)
        options = {"n_resamples": 99}
        d = metrics.compare_mean_corrected_errors(y, predictions, bins, **options)["a", "b"]
        differ += d.p_value <= 0.05
        differ_fixed += d.p_value_fixed <= 0.05
        result = metrics.mean_corrected_error(y, predictions["b"], bins["b"], **options)
        covered += result.ci_low <= 0.1**2 + sd**2 <= result.ci_high
    assert differ <= binom.ppf(0.9995, n_repeats, 0.05)
    assert covered >= binom.ppf(0.0005, n_repeats, 0.95)
    assert differ_fixed > 0.4 * n_repeats


@pytest.mark.parametrize("difference", [1.5, 2.5, 4.0])
def test_with_as_many_trainings_a_difference_is_found_as_often_as_said(difference):
    spread = [Spread(1.0, 0.0, 1 / 3, 2)] * 2
    n = trainings_needed(difference, 0.0, spread, 0.95)
    power = [
        stats.nct.sf(stats.t.ppf(0.975, 2 * k - 2), 2 * k - 2, difference / np.sqrt(2 / k))
        for k in (n - 1, n)
    ]
    assert power[0] < 0.82
    assert power[1] > 0.77
    assert found_with(np.array([n]), 0.95)[0] < difference < found_with(np.array([n - 1]), 0.95)[0]
    # What all trainings share does not become less with more of them.
    assert trainings_needed(difference, difference**2, spread, 0.95) is None
