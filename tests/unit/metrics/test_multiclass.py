"""Calibration of several classes, against closed forms, explicit pairs, and binary metrics."""

import dataclasses
import itertools

import numpy as np
import pytest
from pairs import mean_over_pairs
from scipy.stats import binom

from epistemic_calibration import metrics


def draw(n, *, n_classes=4, h=8, exponent=1.0, dependence=0.0, seed=0):
    """Return labels, Dirichlet hypotheses, and P(Y | Π), which is a function of the hypotheses.

    P(Y | Π) ∝ Δ^exponent; where the hypotheses vary most, with an exponent smaller by
    ``dependence``, elsewhere larger.
    """
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(n_classes, 0.8), n) + 0.01
    precision = np.where(rng.random(n) < 0.5, 4.0, 60.0)
    gamma = rng.standard_gamma(np.repeat((law * precision[:, None])[:, None], h, axis=1)) + 1e-12
    hypotheses = gamma / gamma.sum(axis=2, keepdims=True)
    mean = hypotheses.mean(axis=1)
    spread = hypotheses.var(axis=1).sum(axis=1) / (1 - np.square(mean).sum(axis=1))
    power = exponent + dependence * np.where(spread > 0.05, -1, 1)
    p = mean ** power[:, None]
    p /= p.sum(axis=1, keepdims=True)
    return labels_of(p, rng), hypotheses, p


def labels_of(p, rng):
    return (rng.random((len(p), 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


def errors(y, hypotheses):
    return np.eye(hypotheses.shape[2])[y] - hypotheses.mean(axis=1)


def in_bins(bins, function):
    """Mean over bins of two samples or more, weighted by their sizes."""
    members = [np.flatnonzero(bins == m) for m in np.unique(bins)]
    members = [index for index in members if len(index) > 1]
    return np.average([function(i) for i in members], weights=[len(i) for i in members])


# --- Canonical error


def test_canonical_estimate_is_the_mean_over_pairs():
    y, hypotheses, _ = draw(60)
    bins = np.arange(60) % 7
    bins[0] = 99
    e = errors(y, hypotheses)
    result = metrics.canonical_epistemic_calibration_error(y, hypotheses, bins=bins)
    noise = np.stack([np.diag(p) - np.outer(p, p) for p in hypotheses.mean(axis=1)])
    assert result.estimate == pytest.approx(mean_over_pairs(e, bins), abs=1e-14)
    assert result.plug_in == pytest.approx(in_bins(bins, lambda i: np.sum(e[i].mean(0) ** 2)))
    floor = in_bins(bins, lambda i: np.trace(noise[i].mean(axis=0)) / len(i))
    assert result.noise_floor == pytest.approx(floor)
    assert (result.dropped_mass, result.n_bins) == (pytest.approx(1 / 60), 7)


@pytest.mark.parametrize(
    ("n_classes", "n_bins", "concentration"), [(5, 30, 1.0), (10, 40, 0.05), (4, 50, 0.01)]
)
def test_minimum_detectable_is_found_with_probability_of_80_percent(
    n_classes, n_bins, concentration
):
    """From even laws to predictions that are all but certain."""
    n, n_draws = 1200, 1500
    rng = np.random.default_rng(0)
    bins = np.arange(n) % n_bins
    mean = rng.dirichlet(np.full(n_classes, concentration), n_bins)[bins]
    least = metrics.canonical_epistemic_calibration_error(
        labels_of(mean, rng), mean[:, None], bins=bins
    ).minimum_detectable
    counts = np.bincount(bins)

    def estimates(p):
        values = np.empty(n_draws)
        for k in range(n_draws):
            e = np.eye(n_classes)[labels_of(p, rng)] - mean
            sums = np.stack([np.bincount(bins, weights=column) for column in e.T], axis=1)
            squares = np.bincount(bins, weights=np.sum(e**2, axis=1))
            values[k] = np.sum((np.sum(sums**2, axis=1) - squares) / (counts - 1)) / n
        return values

    # Samples of a bin have one law here, so that none of its error is hidden: it is that of the
    # predicted class, in favour of the others in proportion.
    top = mean.argmax(axis=1)[:, None]
    others = np.maximum(1 - np.take_along_axis(mean, top, axis=1), 1e-9)
    # Where the others have nothing they gain alike.
    direction = np.where(others > 1e-9, mean / others, 1 / (n_classes - 1))
    np.put_along_axis(direction, top, -1.0, axis=1)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    away = estimates(np.clip(mean + np.sqrt(least) * direction, 0, 1))
    power = np.mean(away > np.quantile(estimates(mean), 0.95))
    # As for one class: 0.02 for the χ², and standard errors of sqrt(0.16/1500) = 0.010 and, for
    # the quantile, 0.0056 in level or 0.016 in power.
    assert power == pytest.approx(0.8, abs=0.02 + 3 * 0.019)


@pytest.mark.parametrize("exponent", [1.0, 0.6])
def test_standard_error_is_the_spread_of_estimates(exponent):
    _, hypotheses, p = draw(1200, n_classes=5, exponent=exponent)
    bins = metrics.assign_class_bins(hypotheses, n_bins=40)
    rng = np.random.default_rng(0)
    n_runs = 300
    results = [
        metrics.canonical_epistemic_calibration_error(labels_of(p, rng), hypotheses, bins=bins)
        for _ in range(n_runs)
    ]
    estimates = np.array([r.estimate for r in results])
    delta = p - hypotheses.mean(axis=1)

    def visible(index):
        sums = delta[index].sum(axis=0)
        return (sums @ sums - np.sum(delta[index] ** 2)) / (len(index) * (len(index) - 1))

    expected = in_bins(bins, visible)
    assert abs(estimates.mean() - expected) < 4 * estimates.std() / np.sqrt(n_runs)
    # The spread of 300 results has a relative deviation of 1/sqrt(2·300); bins of 30 samples
    # make variances too large by less than 10 %.
    ratio = np.mean([r.standard_error for r in results]) / estimates.std()
    assert 1 - 4 / np.sqrt(2 * n_runs) < ratio < 1.1 + 4 / np.sqrt(2 * n_runs)
    covered = sum(r.ci_low <= expected <= r.ci_high for r in results)
    assert covered >= binom.ppf(1e-4, n_runs, 0.93)


def test_labels_all_the_same_do_not_give_a_certain_estimate():
    hypotheses = np.full((30, 2, 3), [0.98, 0.01, 0.01])
    result = metrics.canonical_epistemic_calibration_error(np.zeros(30), hypotheses, n_bins=1)
    assert result.standard_error > 0
    assert result.ci_low == 0 < result.ci_high


# --- Two classes


def assert_twice(result, binary, factor=2):
    for field in dataclasses.fields(binary):
        value, expected = getattr(result, field.name), getattr(binary, field.name)
        if field.name == "minimum_detectable" and factor == 2:
            assert value == pytest.approx(2 * expected, rel=0.12)
            continue
        same = field.name in ("dropped_mass", "n_bins", "confidence_level")
        assert value == pytest.approx((1 if same else factor) * expected, abs=1e-12, rel=1e-12), (
            field.name
        )


@pytest.mark.parametrize("labels", ["drawn", "calibrated", "constant", "in groups"])
def test_canonical_error_of_two_classes_is_twice_the_binary_one(labels):
    y, hypotheses, _ = draw(400, n_classes=2, exponent=0.6, seed=3)
    bins = metrics.assign_bins(hypotheses[:, :, 1], n_bins=30)
    if labels == "calibrated":
        y = labels_of(hypotheses.mean(axis=1), np.random.default_rng(0))
    if labels == "constant":
        y = np.zeros(400, dtype=int)
    groups = np.random.default_rng(0).integers(0, 150, 400) if labels == "in groups" else None
    options = {"bins": bins, "groups": groups}
    assert_twice(
        metrics.canonical_epistemic_calibration_error(y, hypotheses, **options),
        metrics.corrected_epistemic_calibration_error(y, hypotheses[:, :, 1], **options),
    )


# --- Groups


def test_canonical_error_over_groups_is_the_mean_over_pairs_of_different_groups():
    y, hypotheses, _ = draw(80, exponent=0.5)
    rng = np.random.default_rng(0)
    bins, groups = rng.integers(0, 5, 80), rng.integers(0, 14, 80)
    expected = mean_over_pairs(errors(y, hypotheses), bins, groups)
    options = {"bins": bins, "groups": groups}
    result = metrics.canonical_epistemic_calibration_error(y, hypotheses, **options)
    assert result.estimate == pytest.approx(expected, abs=1e-14)
    test = metrics.canonical_epistemic_calibration_test(y, hypotheses, n_resamples=9, **options)
    assert test.statistic == pytest.approx(result.estimate, abs=1e-14)


CORRECTED = [
    metrics.classwise_epistemic_calibration_error,
    metrics.top_label_epistemic_calibration_error,
    metrics.canonical_epistemic_calibration_error,
]


@pytest.mark.parametrize("function", CORRECTED)
def test_copies_in_groups_say_no_more_than_the_originals(function):
    y, hypotheses, _ = draw(300, n_classes=3, exponent=0.5)
    bins = np.arange(300) % 10
    of_copy = np.random.default_rng(0).permutation(np.repeat(np.arange(300), 3))

    def of(rows, **options):
        given = {"n_bins": 10} if function is CORRECTED[0] else {"bins": bins[rows]}
        found = function(y[rows], hypotheses[rows], **given, **options)
        return found.mean if function is CORRECTED[0] else found

    once, copied, naive = of(np.arange(300)), of(of_copy, groups=of_copy), of(of_copy)
    assert copied.estimate == pytest.approx(once.estimate, abs=1e-13)
    assert copied.plug_in == pytest.approx(once.plug_in, abs=1e-13)
    # The closed form of single samples differs by their fourth moments, and resamples by chance.
    assert copied.standard_error == pytest.approx(once.standard_error, rel=0.15)
    # Of single samples it is that of calibrated labels, of groups that of these labels.
    assert copied.minimum_detectable == pytest.approx(once.minimum_detectable, rel=0.25)
    # Of three copies, a third of the noise floor is taken off, and not all of it.
    assert naive.estimate > once.estimate + 0.5 * once.noise_floor


@pytest.mark.parametrize("function", [*CORRECTED, metrics.canonical_epistemic_calibration_test])
def test_groups_of_one_are_no_groups_and_wrong_ones_are_refused(function):
    y, hypotheses, _ = draw(60)
    assert function(y, hypotheses, groups=np.arange(60)) == function(y, hypotheses)
    with pytest.raises(ValueError, match=r"groups must have shape \(60,\)"):
        function(y, hypotheses, groups=np.arange(59))


def test_groups_of_too_many_classes_and_bins_are_refused():
    y, hypotheses, _ = draw(400, n_classes=50, h=2)
    with pytest.raises(ValueError, match="50 classes take at most 120 bins, got 200"):
        metrics.canonical_epistemic_calibration_error(
            y, hypotheses, bins=np.arange(400) // 2, groups=np.arange(400) // 4 * 2 + y % 2
        )


def test_canonical_test_over_groups_keeps_its_level_where_groups_share_their_errors():
    """Four copies of 60 inputs, and 20 alone: rejected as often as promised, and not without."""
    n_runs, level, rejected = 200, 0.1, {"with": 0, "without": 0}
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        _, hypotheses, _ = draw(80, n_classes=3, h=3, seed=seed)
        of_copy = np.concatenate([np.repeat(np.arange(60), 4), np.arange(60, 80)])
        y = labels_of(hypotheses.mean(axis=1), rng)[of_copy]
        options = {"bins": of_copy % 4, "n_resamples": 99, "random_state": seed}
        for name, groups in (("with", of_copy), ("without", None)):
            rejected[name] += (
                metrics.canonical_epistemic_calibration_test(
                    y, hypotheses[of_copy], groups=groups, **options
                ).p_value
                <= level
            )
    low, high = binom.ppf([1e-4, 1 - 1e-4], n_runs, level)
    assert low <= rejected["with"] <= high
    assert rejected["without"] > 150


# --- Tests


def test_p_value_is_that_of_labels_listed_one_by_one():
    rng = np.random.default_rng(5)
    hypotheses = rng.dirichlet([2, 1, 1], (4, 2))
    mean, bins, y = hypotheses.mean(axis=1), [0, 0, 1, 1], (0, 0, 2, 2)

    def statistic(labels):
        result = metrics.canonical_epistemic_calibration_error(labels, hypotheses, bins=bins)
        return result.estimate

    exact = sum(
        np.prod(mean[np.arange(4), labels])
        for labels in itertools.product(range(3), repeat=4)
        if statistic(labels) >= statistic(y) - 1e-12
    )
    result = metrics.canonical_epistemic_calibration_test(
        y, hypotheses, bins=bins, n_resamples=9999
    )
    assert result.statistic == pytest.approx(statistic(y), abs=1e-14)
    assert abs(result.p_value - exact) < 4 * np.sqrt(exact * (1 - exact) / 9999)


# --- Classes and the predicted class


def test_classwise_is_one_against_all_and_its_mean_knows_the_shared_inputs():
    y, hypotheses, _ = draw(500, n_classes=3, exponent=0.5)
    result = metrics.classwise_epistemic_calibration_error(y, hypotheses)
    bins = [metrics.assign_bins(hypotheses[:, :, c], n_bins=50, binning="nested") for c in range(3)]
    for c in range(3):
        single = metrics.corrected_epistemic_calibration_error(
            y == c, hypotheses[:, :, c], bins=bins[c]
        )
        assert_twice(result.classes[c], single, factor=1)
    mean = metrics.mean_corrected_error(
        [(y == c).astype(int) for c in range(3)], hypotheses.mean(axis=1).T, bins
    )
    assert_twice(result.mean, mean, factor=1)


def test_top_label_sums_over_predicted_classes():
    y, hypotheses, _ = draw(600, n_classes=3, exponent=0.5)
    result = metrics.top_label_epistemic_calibration_error(y, hypotheses, n_bins=12, adaptive=False)
    top, total = hypotheses.mean(axis=1).argmax(axis=1), 0.0
    for c in range(3):
        inside = top == c
        single = metrics.corrected_epistemic_calibration_error(
            y[inside] == c,
            hypotheses[inside][:, :, c],
            # More than its share of 12: at least 20 inputs in each of 8 or more.
            n_bins=min(12, inside.sum() // 20),
            adaptive=False,
        )
        total += inside.mean() * single.estimate
    assert result.estimate == pytest.approx(total, abs=1e-14)


def test_ties_are_predicted_as_the_lowest_class():
    hypotheses = np.array([[[0.1, 0.45, 0.45], [0.3, 0.35, 0.35], [0.2, 0.4, 0.4]]] * 2)
    assert metrics.top_label_task([1, 2], hypotheses).predicted.tolist() == [1, 1]


def test_classwise_second_order_error_is_that_of_the_classes():
    rng = np.random.default_rng(0)
    _, hypotheses, p = draw(300, n_classes=3)
    n = rng.integers(1, 6, 300)
    counts = np.stack([rng.multinomial(k, row) for k, row in zip(n, p, strict=True)])
    result = metrics.classwise_second_order_error(counts, hypotheses)
    for c in range(3):
        single = metrics.second_order_error(counts[:, c], n, hypotheses[:, :, c])
        assert result.classes[c].gap.estimate == pytest.approx(single.gap.estimate, abs=1e-13)
    mean = metrics.mean_second_order_error(counts.T, n, hypotheses.transpose(2, 0, 1))
    assert result.mean.reducible.estimate == pytest.approx(mean.reducible.estimate, abs=1e-13)
    assert result.mean.reducible.ci_low == pytest.approx(mean.reducible.ci_low, abs=1e-12)
    assert result.mean.dropped_mass == pytest.approx(np.mean(n == 1))


# --- Bins


def test_bins_do_not_depend_on_how_hypotheses_and_classes_are_numbered():
    _, hypotheses, _ = draw(700, n_classes=5)
    rng = np.random.default_rng(0)
    bins = metrics.assign_class_bins(hypotheses)
    shuffled = hypotheses[:, :, rng.permutation(5)]
    shuffled = np.take_along_axis(shuffled, np.argsort(rng.random((700, 8)))[:, :, None], axis=1)
    np.testing.assert_array_equal(metrics.assign_class_bins(shuffled), bins)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
def test_bins_of_few_samples(n):
    _, hypotheses, _ = draw(n)
    bins = metrics.assign_class_bins(hypotheses)
    np.testing.assert_array_equal(np.unique(bins), np.arange(bins.max() + 1))
    if n > 1:
        assert np.bincount(bins).min() > 1


def test_nested_bins_see_spread_at_equal_means():
    wide = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    hypotheses = np.array([wide, np.full((3, 3), 1 / 3)] * 20)
    bins = metrics.assign_class_bins(hypotheses)
    assert len(set(bins[::2])) == len(set(bins[1::2])) == 1
    assert bins[0] != bins[1]


# --- Arguments


@pytest.mark.parametrize("function", [*CORRECTED, metrics.canonical_epistemic_calibration_test])
@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((0, 2, 1), r"transpose with \.transpose\(0, 2, 1\)"),
        ((2, 0, 1), r"transpose with \.transpose\(1, 2, 0\)"),
        ((1, 0, 2), r"transpose with \.transpose\(1, 0, 2\)"),
    ],
)
def test_other_orders_of_axes_are_refused_with_the_remedy(function, axes, message):
    y, hypotheses, _ = draw(20)
    with pytest.raises(ValueError, match=message):
        function(y, hypotheses.transpose(axes))


def test_sums_within_a_thousandth_are_normalised_and_others_refused():
    y, hypotheses, _ = draw(50)
    function, bins = metrics.canonical_epistemic_calibration_error, np.arange(50) % 5
    exact, near = function(y, hypotheses, bins=bins), function(y, 0.9995 * hypotheses, bins=bins)
    assert near.estimate == pytest.approx(exact.estimate, abs=1e-12)
    with pytest.raises(ValueError, match="add up to 1; got sums in"):
        function(y, 0.99 * hypotheses)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 4], "classes 0 to 3"),
        ([0, 1.5], "classes 0 to 3"),
        ([0, np.nan], "classes 0 to 3"),
        (["0", "1"], "integers"),
        ([[0], [1]], "shape"),
        ([0, 1, 2], "2 samples, y_true has 3"),
    ],
)
def test_wrong_labels_are_refused(labels, message):
    _, hypotheses, _ = draw(2)
    with pytest.raises(ValueError, match=message):
        metrics.canonical_epistemic_calibration_error(labels, hypotheses)


def test_wrong_hypotheses_are_refused():
    y, hypotheses, _ = draw(6)
    bad = hypotheses.copy()
    bad[0, 0, 0] = np.nan
    for rows, message in (
        (bad, "NaN"),
        (hypotheses[:, :, 0], "n_classes"),
        (2 * hypotheses, r"in \[0, 1\]"),
        (np.ones((6, 3, 1)), "two classes or more"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.canonical_epistemic_calibration_error(y, rows)
    with pytest.raises(ValueError, match="alone in its bin"):
        metrics.canonical_epistemic_calibration_error(y, hypotheses, bins=np.arange(6))
    with pytest.raises(ValueError, match=r"\(6, 4\), got \(4, 6\)"):
        metrics.classwise_second_order_error(np.ones((4, 6)), hypotheses)
    with pytest.raises(ValueError, match=r"\(6, 4\), one for each"):
        metrics.classwise_second_order_error(
            np.ones((6, 4), dtype=int), hypotheses, epistemic_uncertainty=np.ones(6)
        )


def test_votes_and_half_precision_are_taken():
    rng = np.random.default_rng(0)
    votes = np.eye(3, dtype=np.uint8)[rng.integers(0, 3, (200, 5))]
    y = rng.integers(0, 3, 200)
    expected = metrics.canonical_epistemic_calibration_error(y, votes.astype(float))
    for dtype in (np.uint8, np.float16, bool):
        result = metrics.canonical_epistemic_calibration_error(y, votes.astype(dtype))
        assert result.estimate == pytest.approx(expected.estimate, abs=1e-7)
