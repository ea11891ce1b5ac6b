"""Finer bins where the labels show that these see more, and what bins of classes hide."""

import numpy as np
import pytest

from epistemic_calibration import metrics
from epistemic_calibration.metrics._bins import Bins
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._classwise import worst_class
from epistemic_calibration.metrics._resolution import _Form, _ranks, finer_bins
from epistemic_calibration.metrics._within_bins import gain_of_classes
from epistemic_calibration.metrics.binning import coarse_bins, quantile_bins


def rows_around(rng, mean, spread, n_hypotheses=8):
    """Rows of exactly these means."""
    noise = rng.standard_normal((len(mean), n_hypotheses))
    noise -= noise.mean(axis=1, keepdims=True)
    room = np.minimum(mean, 1 - mean) / np.abs(noise).max(axis=1)
    return mean[:, None] + noise * np.minimum(spread, room)[:, None]


def steps(seed, n=8000, n_steps=60, size=0.08):
    """Predictions off by ``size``, up and down in narrow steps of the mean."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(size, 1 - size, n)
    up = np.floor(n_steps * (mean - size) / (1 - 2 * size)) % 2 == 0
    frequency = mean + np.where(up, size, -size)
    return (rng.random(n) < frequency).astype(int), rows_around(rng, mean, np.full(n, 0.05))


def calibrated(seed, n=2000):
    rng = np.random.default_rng(seed)
    mean = rng.beta(1, 2, n)
    spread = np.where(rng.random(n) < 0.5, 0.3, 0.1) * mean * (1 - mean)
    return (rng.random(n) < mean).astype(int), rows_around(rng, mean, spread)


def test_narrow_steps_are_seen_and_put_down_to_the_mean():
    found = [metrics.split_epistemic_calibration_error(*steps(seed)) for seed in range(4)]
    for split in found:
        assert split.total.refined and split.total.n_bins > 200
        assert split.total.ci_low <= 0.08**2 <= split.total.ci_high
        assert split.mean_miscalibration.estimate > 0.7 * split.total.estimate
    # Bins see at most TECE; 256 of Δ alone see three quarters or more of 60 steps.
    assert 0.7 * 0.08**2 < np.mean([split.total.estimate for split in found]) < 1.2 * 0.08**2
    same = metrics.corrected_epistemic_calibration_error(*steps(0))
    assert same == found[0].total
    fixed = metrics.corrected_epistemic_calibration_error(*steps(0), adaptive=False)
    assert fixed.estimate < 0.001 and not fixed.refined


def test_bins_stay_where_finer_ones_see_no_more():
    refined = 0
    for seed in range(60):
        sample = metrics.Sample(*calibrated(seed))
        found = metrics.corrected_epistemic_calibration_error(sample)
        if found.refined:
            refined += 1
        else:
            assert found == metrics.corrected_epistemic_calibration_error(sample, adaptive=False)
    # At most 1 %: of 60 draws, 4 or more with a probability of 0.003.
    assert refined < 4


def test_finer_bins_are_nested_and_hold_eight_inputs():
    y, rows = calibrated(0)
    sample = metrics.Sample(y, rows)
    fine, coarse = sample.bins(n_bins=27, binning="nested"), coarse_bins(sample.mean, 27)
    ladder = finer_bins(sample.mean, sample.variance, coarse, fine)
    assert len(ladder) > 4
    for part, cell in ladder:
        assert len(np.unique(part * 10**6 + cell)) == cell.max() + 1
        assert len(np.unique(coarse * 10**6 + part)) == part.max() + 1
        assert cell.max() < len(y) / 8


def test_ranks_within_bins_share_ties():
    values, labels = np.array([3.0, 1.0, 1.0, 2.0, 5.0]), np.array([0, 0, 0, 0, 1])
    np.testing.assert_allclose(_ranks(values, labels), [7 / 8, 2 / 8, 2 / 8, 5 / 8, 1 / 2])


def test_the_difference_of_two_forms_has_this_variance():
    rng = np.random.default_rng(3)
    mean = rng.uniform(0.1, 0.9, 60)
    first, second = rng.integers(0, 4, 60), rng.integers(0, 6, 60)
    weights = np.zeros((60, 60))
    for sign, labels in ((-1, first), (1, second)):
        together = labels[:, None] == labels
        b = Bins(np.zeros(60), mean, labels)
        weights += sign * together * (b.w / b.pairs)[labels][:, None]
    np.fill_diagonal(weights, 0)
    noise = mean * (1 - mean)
    expected = 2 * np.sum(weights**2 * np.outer(noise, noise))
    forms = [_Form(np.zeros(60), mean, labels, noise) for labels in (first, second)]
    covariance = forms[1]._covariance(forms[0])
    variance = forms[0].variance + forms[1].variance - 2 * covariance
    assert variance == pytest.approx(expected)


def classes(seed, n, n_classes, power):
    """Predictions of which a power is right: one where hypotheses vary much, another elsewhere."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, n_classes))
    wide = rng.random(n) < 0.5
    noise = rng.normal(0, 1, (n, 6, n_classes)) * np.where(wide, 1.2, 0.3)[:, None, None]
    rows = np.exp(logits[:, None] + noise)
    rows /= rows.sum(axis=2, keepdims=True)
    mean = rows.mean(axis=1)
    spread = rows.std(axis=1).sum(axis=1)
    right = mean ** np.where(spread > np.median(spread), *power)[:, None]
    right /= right.sum(axis=1, keepdims=True)
    y = (right.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return y, rows, right - mean


def test_the_spread_of_the_predicted_class_is_looked_at_with_many_classes():
    y, rows, error = classes(0, 6000, 10, (0.6, 1.4))
    true = np.mean(error[np.arange(6000), rows.mean(axis=1).argmax(axis=1)] ** 2)
    found = metrics.top_label_epistemic_calibration_error(y, rows)
    assert found.estimate > 0.7 * true and found.ci_low < true < found.ci_high


def test_a_regression_sees_what_bins_of_many_classes_hide():
    y, rows, error = classes(1, 4000, 10, (0.6, 0.6))
    true = np.square(error).sum() / 4000
    of_bins = metrics.canonical_epistemic_calibration_error(y, rows, adaptive=False)
    found = metrics.canonical_epistemic_calibration_error(y, rows)
    assert of_bins.estimate < found.estimate
    assert abs(found.estimate - true) < abs(of_bins.estimate - true)
    assert found.ci_low < true < found.ci_high


def test_what_is_seen_within_bins_is_at_most_what_is_there():
    """E[g(2e − g)] over g of mean 0 in bins is at most the variance of the error within them."""
    gains, within = [], []
    for seed in range(6):
        y, rows, error = classes(10 + seed, 1500, 4, (0.6, 1.3))
        bins = metrics.assign_class_bins(rows, n_bins=20)
        gain = gain_of_classes(ClassSample(y, rows), bins, None, 0)
        count = np.bincount(bins)
        deviation = [e - (np.bincount(bins, e) / count)[bins] for e in error.T]
        gains.append(gain.estimate - 2 * np.sqrt(gain.variance / 6))
        within.append(np.mean(np.square(deviation).sum(axis=0)))
    assert 0 < np.mean(gains) < np.mean(within)


def test_nothing_is_seen_within_bins_of_what_is_right():
    found = []
    for seed in range(8):
        y, rows, _ = classes(20 + seed, 1000, 3, (1.0, 1.0))
        bins = metrics.assign_class_bins(rows, n_bins=20)
        found.append(gain_of_classes(ClassSample(y, rows), bins, None, 0))
        order = np.random.default_rng(0).permutation(1000)
        again = gain_of_classes(ClassSample(y[order], rows[order]), bins[order], None, 0)
        assert again.estimate == pytest.approx(found[-1].estimate, abs=1e-12)
    errors = [gain.estimate for gain in found]
    assert abs(np.mean(errors)) < 1e-3


def test_the_worst_of_many_classes_is_not_above_zero_by_chance():
    above = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        mean = rng.dirichlet(np.full(200, 0.1), 1500)
        y = (mean.cumsum(axis=1)[:, :-1] < rng.random((1500, 1))).sum(axis=1)
        tasks = [((y == c) * 1.0, mean[:, c], quantile_bins(mean[:, c], 20)) for c in range(200)]
        seen = [(b := Bins(*task)).w @ b.squared_error for task in tasks]
        worst = worst_class(*tasks[np.argmax(seen)], None, 0.95, 200)
        above += worst.ci_low > 0
    # At most 2.5 % each: four or more of 30 with a probability of 0.006.
    assert above < 4
