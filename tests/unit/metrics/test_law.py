"""What is said of the law that members, which are functions, are drawn from."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from epistemic_calibration import metrics
from epistemic_calibration.metrics import law_test
from epistemic_calibration.metrics._members import canonical_members, parts_of_draws, replicates


def world(seed, *, n=400, h=20, k=5, directions=10, factor=1.0):
    """Draw counts, members and p*, functions σ(φ(x)'w) of one law, but for ``factor``.

    Also the mean and the variance of the law at the inputs, from 200 other draws.
    """
    rng = np.random.default_rng([seed, directions])
    centre = 1.5 * rng.standard_normal(directions)
    x = rng.standard_normal((n, directions)) / np.sqrt(directions)
    p = expit(x @ (centre + factor * rng.standard_normal(directions)))
    members, law = (
        expit(x @ (centre[:, None] + rng.standard_normal((directions, size)))) for size in (h, 200)
    )
    return rng.binomial(k, p), members, p, law.mean(axis=1), law.var(axis=1, ddof=1)


# --- The test


def test_a_right_law_of_few_directions_is_not_rejected():
    n_runs, p_values, as_if_independent = 100, [], []
    options = {"n_bins": 2, "n_resamples": 40}
    for seed in range(n_runs):
        s, rows, *_ = world(seed, n=150, k=10, directions=3)
        p_values.append(metrics.second_order_test(s, 10, rows, **options).p_value)
        if seed < 30:
            test = metrics.second_order_test(s, 10, rows, draws="inputs", **options)
            as_if_independent.append(test.p_value)
    for level in (0.05, 0.1, 0.2):
        rejected = np.count_nonzero(np.array(p_values) <= level)
        assert binom.sf(rejected - 1, n_runs, level) > 1e-3, level
    assert np.mean(np.array(as_if_independent) <= 0.05) > 0.3


@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_wrong_laws_are_rejected(factor):
    rejected = 0
    for seed in range(15):
        s, rows, *_ = world(seed, n=500, k=10, directions=50, factor=factor)
        rejected += metrics.second_order_test(s, 10, rows, n_resamples=40).p_value <= 0.05
    assert rejected >= 12


def test_p_value_is_the_rank_where_labels_tell_all():
    # With 10,000 labels for each input there is no noise: p* is the furthest, or in the middle.
    n, h = 200, 20
    rng = np.random.default_rng(0)
    centre = rng.uniform(0.3, 0.7, n)
    shape = np.sin(np.arange(n))
    size = np.linspace(0.1, 0.2, h) * np.where(np.arange(h) % 2, 1, -1)
    rows = centre[:, None] + np.outer(shape, size)
    for at, lowest, highest in ((0.29, 1, 1), (0.15, 5, 21)):
        s = rng.binomial(10_000, centre + at * shape)
        p = metrics.second_order_test(s, 10_000, rows, n_bins=1, n_resamples=20).p_value
        assert lowest <= round(p * (h + 1)) <= highest


def test_one_of_the_functions_is_exact():
    n_runs, rejected = 120, 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        rows = expit(rng.standard_normal((60, 3)) @ rng.standard_normal((3, 6)))
        s = rng.binomial(3, rows[:, seed % 6])
        test = metrics.second_order_test(s, 3, rows, exchangeable=False, n_bins=2, n_resamples=59)
        rejected += test.p_value <= 0.1
    assert binom.cdf(rejected, n_runs, 0.1) > 1e-3
    assert binom.sf(rejected - 1, n_runs, 0.1) > 1e-3


def test_few_members_reject_nothing():
    s, rows, *_ = world(0, h=18, factor=5.0)
    p = metrics.second_order_test(s, 5, rows, n_resamples=36).p_value
    assert p == pytest.approx(1 / 19)
    can_reject = law_test.can_reject
    functions = [can_reject(h, exchangeable=True, draws="functions") for h in (18, 19)]
    assert functions == [False, True]
    assert can_reject(2, exchangeable=True, draws="inputs")
    assert can_reject(5, exchangeable=False, draws="functions")
    with pytest.raises(ValueError, match="hypotheses must be three or more, got 2"):
        metrics.second_order_test(s, 5, rows[:, :2])
    for function in (metrics.second_order_test, metrics.second_order_error):
        with pytest.raises(ValueError, match=r"draws must be one of .*, got 'rows'"):
            function(s, 5, rows, draws="rows")


def test_members_without_spread():
    n = 200
    rows = np.repeat(np.random.default_rng(0).uniform(0.2, 0.8, (n, 1)), 20, axis=1)
    right = np.random.default_rng(1).binomial(5, rows[:, 0])
    wrong = np.random.default_rng(1).binomial(5, 1 - rows[:, 0])
    options = {"n_resamples": 40}
    assert metrics.second_order_test(right, 5, rows, **options).p_value > 0.05
    assert metrics.second_order_test(wrong, 5, rows, **options).p_value == pytest.approx(1 / 21)
    certain = np.zeros((n, 20))
    assert metrics.second_order_test(np.zeros(n, int), 5, certain, **options).p_value == 1
    assert metrics.second_order_test(np.full(n, 5), 5, certain, **options).p_value < 0.05


# --- Intervals


def test_replicates_are_estimates_without_one_block_of_members():
    s, rows, *_ = world(0, n=120, h=23)
    bins = np.arange(120) % 4
    members = rows, np.ones((1, 1, 23), dtype=bool)
    found = replicates(s / 5, s * (s - 1) / 20, *members, bins[None, None])
    assert len(found.error) == 20
    for block in range(20):
        kept = np.arange(23) % 20 != block
        without = metrics.second_order_error(s, 5, rows[:, kept], bins=bins, draws="inputs")
        assert found.error[block] == pytest.approx(without.reducible.estimate, abs=1e-14)
        assert found.uncertainty[block] == pytest.approx(without.uncertainty.estimate)
        slope = found.slope[0][block] / found.slope[1][block]
        assert slope == pytest.approx(without.slope.estimate)
        assert found.size[block] == pytest.approx(without.size_error.estimate, abs=1e-14)
    whole = metrics.second_order_error(s, 5, rows, bins=bins)
    assert found.size_of_all == pytest.approx(whole.size_error.estimate, abs=1e-14)


def test_mean_square_of_halves_by_pairs():
    s, rows, *_ = world(0, n=30, h=8)
    first, second = s / 5, s * (s - 1) / 20
    parts = parts_of_draws(8)[:1]
    bins = np.random.default_rng(0).integers(0, 3, (1, 2, 30))
    values = []
    for half in parts[0]:
        mean, variance = rows[:, half].mean(axis=1), rows[:, half].var(axis=1, ddof=1)
        values.extend(second - 2 * mean * first + mean**2 - variance * (1 + 1 / half.sum()))
    expected = 0.0
    for b in range(3):
        inside = np.array(values)[bins.ravel() == b]
        pairs = [x * y for x, y in itertools.permutations(inside, 2)]
        expected += len(inside) / 60 * np.mean(pairs)
    found = replicates(first, second, rows, parts, bins)
    assert found.size_of_all == pytest.approx(expected, abs=1e-15)


def test_intervals_hold_the_law_that_members_are_drawn_from():
    n_runs = 60
    covered = {name: [] for name in ("gap", "share", "slope")}
    of_members = []
    for seed in range(n_runs):
        s, rows, p, mean, variance = world(seed, n=500, k=20)
        squared = (p - mean) ** 2 - variance / 200
        truth = {
            "gap": squared.mean() - variance.mean(),
            "share": (1 + 1 / 20) * variance.mean() / (squared.mean() + variance.mean() / 20),
            "slope": np.cov(variance, squared)[0, 1] / variance.var(ddof=1),
        }
        found = metrics.second_order_error(s, 20, rows, binning="quantile")
        for name, value in truth.items():
            of_law = getattr(found.law, name)
            covered[name].append(of_law.ci_low <= value <= of_law.ci_high)
        of_members.append(found.gap.ci_low <= truth["gap"] <= found.gap.ci_high)
        assert found.law.gap.estimate == found.gap.estimate
    for name, held in covered.items():
        assert binom.cdf(sum(held), n_runs, 0.95) > 1e-3, name
    # The others are of these members, which have a gap of their own.
    assert np.mean(of_members) < 0.8


def test_size_error_of_the_law_is_less_what_members_add():
    added = []
    for seed in range(20):
        s, rows, *_ = world(seed, n=400, k=20, directions=5)
        found = metrics.second_order_error(s, 20, rows, binning="quantile")
        added.append(found.size_error.estimate - found.law.size_error.estimate)
    assert np.mean(added) > 3 * np.std(added) / math.sqrt(20)


def test_where_there_is_no_law():
    s, rows, *_ = world(0, n=100)
    of_functions = metrics.second_order_error(s, 5, rows)
    of_inputs = metrics.second_order_error(s, 5, rows, draws="inputs")
    assert of_inputs == dataclasses.replace(of_functions, law=None)
    assert metrics.second_order_error(s, 5, rows, exchangeable=False).law is None
    reported = rows.var(axis=1)
    assert metrics.second_order_error(s, 5, rows, epistemic_uncertainty=reported).law is None
    assert metrics.second_order_error(s, 5, rows[:, :2]).law is None
    few = metrics.second_order_error(s, 5, rows[:, :4]).law
    assert math.isfinite(few.gap.ci_high)
    assert (few.slope.ci_low, few.slope.ci_high) == (-math.inf, math.inf)
    assert math.isnan(few.size_error.estimate)
    assert (few.size_error.ci_low, few.size_error.ci_high) == (0, math.inf)


def test_law_of_the_mean_over_tasks():
    tasks = [world(seed, n=300)[:2] for seed in range(2)]
    s, rows = zip(*tasks, strict=True)
    same = metrics.mean_second_order_error([s[0]] * 2, 5, [rows[0]] * 2)
    single = metrics.second_order_error(s[0], 5, rows[0])
    for name in ("gap", "share", "slope", "size_error"):
        of_both, of_one = getattr(same.law, name), getattr(single.law, name)
        assert of_both.ci_low == pytest.approx(of_one.ci_low)
        assert of_both.ci_high == pytest.approx(of_one.ci_high)
    different = metrics.mean_second_order_error(s, 5, rows).law
    assert different.gap.standard_error < single.law.gap.standard_error
    other_numbers = metrics.mean_second_order_error(s, 5, [rows[0], rows[1][:, :9]])
    assert other_numbers.law is None


def test_an_interval_reaches_as_far_as_both_parts_together():
    s, rows, *_ = world(0, n=300, h=12)
    found = metrics.second_order_error(s, 5, rows)
    one_bin = np.ones((1, 1, 12), dtype=bool), np.zeros((1, 1, 300), dtype=int)
    without = replicates(s / 5, s * (s - 1) / 20, canonical_members(rows), *one_bin)
    gaps = without.error - without.uncertainty
    half = 2.2009852 * math.sqrt(11 / 12 * np.sum((gaps - gaps.mean()) ** 2))
    below = math.hypot(found.gap.estimate - found.gap.ci_low, half)
    assert found.law.gap.ci_low == pytest.approx(found.gap.estimate - below)
