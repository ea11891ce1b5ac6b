import numpy as np
import pytest
from scipy.stats import combine_pvalues

from epistemic_calibration import evaluate, metrics
from epistemic_calibration.metrics.label_collection import (
    _p_of_too_many,
    selection_fault,
    stopping_fault,
)


def labels_of(seed, n=3000):
    """Draw five labels of each input in their order, hypotheses of a right law, and p*."""
    rng = np.random.default_rng(seed)
    mean = rng.beta(1.5, 1.5, n).clip(0.02, 0.98)
    variance = mean * (1 - mean) / (4 + np.exp(rng.normal(1.2, 1, n)))
    precision = mean * (1 - mean) / variance - 1
    p, *rows = rng.beta(mean * precision, (1 - mean) * precision, (11, n))
    return (rng.random((n, 5)) < p[:, None]).astype(int), np.stack(rows, axis=1), p


def asked_by(rule, labels):
    """Return counts of the labels that a rule asked for, and these labels."""
    sums, number = labels.cumsum(axis=1), np.arange(1, 6)
    first_two_agree = labels[:, 0] == labels[:, 1]
    k = {
        "three more": np.where(first_two_agree, 2, 5),
        "until two agree": np.where(first_two_agree, 2, 3),
        "until three agree": (np.maximum(sums, number - sums) >= 3).argmax(axis=1) + 1,
        "another where two agree": np.where(first_two_agree, 3, 2),
        "five": np.full(len(labels), 5),
        "any number": np.arange(len(labels)) % 4 + 2,
    }[rule]
    asked = np.where(number <= k[:, None], labels, np.nan)
    return sums[np.arange(len(labels)), k - 1], k, asked


RULES = ["three more", "until two agree", "until three agree", "another where two agree"]


@pytest.mark.parametrize("rule", RULES)
def test_rules_that_look_at_labels_are_seen(rule):
    labels, rows, _ = labels_of(0)
    s, k, asked = asked_by(rule, labels)
    with pytest.warns(metrics.LabelCollectionWarning, match="counts_of_first_labels"):
        spoilt = metrics.second_order_error(s, k, rows, binning="quantile")
    with pytest.warns(metrics.LabelCollectionWarning, match="labels cannot be independent"):
        metrics.second_order_test(s, k, rows, n_resamples=10)
    assert not 0.75 < spoilt.share.estimate < 1.25
    found = evaluate(labels[:, 0], rows, n_positive=s, n_labels=k)
    assert any("distrust" in warning for warning in found.warnings)
    first = metrics.counts_of_first_labels(asked)
    right = metrics.second_order_error(*first, rows, binning="quantile")
    assert right.dropped_mass == 0
    assert right.share.ci_low < 1 < right.share.ci_high


@pytest.mark.parametrize("rule", ["five", "any number"])
@pytest.mark.filterwarnings("error")
def test_labels_that_nobody_looked_at_raise_no_alarm(rule):
    for seed in range(40):
        labels, rows, _ = labels_of(seed, n=(100, 1000, 5000)[seed % 3])
        s, k, _ = asked_by(rule, labels)
        assert stopping_fault(s, k) is None
    metrics.second_order_error(s, k, rows, binning="quantile")


@pytest.mark.parametrize("p", [0.02, 0.5, 0.97])
@pytest.mark.parametrize("k", [2, 3, 10, 50])
def test_one_p_for_all_is_the_least_that_counts_may_vary(p, k):
    alarms = sum(
        stopping_fault(np.random.default_rng(seed).binomial(k, p, 500), np.full(500, k)) is not None
        for seed in range(100)
    )
    # Of one test in a thousand.
    assert alarms <= 2


def test_p_value_of_too_many_by_hand():
    # Two labels, as genotypes: of 6 inputs with 6 positive labels of 12, all have one of each.
    ways = {6: 2**6 / 720, 4: 2**4 / 24, 2: 2**2 / 2 / 4, 0: 1 / 36}
    assert _p_of_too_many(np.array([0, 6, 0]), 2, 1) == pytest.approx(ways[6] / sum(ways.values()))
    assert _p_of_too_many(np.array([3, 0, 3]), 2, 1) == pytest.approx(1)


def test_p_values_of_both_ends_are_joined_by_fishers_method():
    rng = np.random.default_rng(0)
    told = []
    for _ in range(300):
        counts = np.concatenate([rng.integers(0, 8, 1), 4 * [60], rng.integers(0, 8, 1)])
        counts[[1, 4]] = rng.integers(30, 60, 2)
        p = [_p_of_too_many(counts, 5, s) for s in range(1, 5)]
        p.append(combine_pvalues([p[0], p[3]]).pvalue)
        positive = np.repeat(np.arange(6), counts)
        found = stopping_fault(positive, np.full(len(positive), 5)) is not None
        assert found == (min(p) * 5 <= 0.001)
        told.append(found)
    assert 50 < sum(told) < 250


@pytest.mark.parametrize("by", ["p*", "spread"])
def test_inputs_with_one_label_that_are_unlike_the_others_are_seen(by):
    labels, rows, p = labels_of(1)
    clear = np.abs(p - 0.5) > 0.3 if by == "p*" else rows.var(axis=1) < np.median(rows.var(axis=1))
    k = np.where(clear, 1, 3)
    s = np.where(clear, labels[:, 0], labels[:, :3].sum(axis=1))
    with pytest.warns(metrics.LabelCollectionWarning, match="not of all 3,000"):
        metrics.second_order_error(s, k, rows, binning="quantile")
    found = evaluate(labels[:, 0], rows, n_positive=s, n_labels=k)
    assert any("unlike those that are judged" in w for w in found.warnings)


def test_inputs_with_one_label_at_random_are_like_the_others():
    for seed in range(30):
        _, rows, _ = labels_of(seed, n=400)
        kept = np.random.default_rng(seed).random(400) < 0.7
        assert selection_fault(kept, rows.mean(axis=1), rows.var(axis=1)) is None


def test_first_labels():
    nan = np.nan
    labels = [[1, 0, 1], [1, 1, nan], [0, nan, nan], [nan, nan, nan]]
    s, k = metrics.counts_of_first_labels(labels)
    assert (s.tolist(), k.tolist()) == ([1, 2, 0, 0], [2, 2, 0, 0])
    s, k = metrics.counts_of_first_labels(labels, n_first=3)
    assert (s.tolist(), k.tolist()) == ([2, 0, 0, 0], [3, 0, 0, 0])


@pytest.mark.parametrize(
    ("labels", "n_first", "message"),
    [
        ([[0, 2]], 2, r"labels must be 0, 1 or NaN, got \[2.\]"),
        ([[0, np.nan, 1]], 2, "sample 0 has one after a missing one"),
        ([[0]], 2, "with 2 columns or more"),
        ([0, 1], 2, r"labels must have shape \(n_samples, n_labels\)"),
        ([[0, 1]], 1, "n_first must be an integer >= 2"),
    ],
)
def test_arguments(labels, n_first, message):
    with pytest.raises(ValueError, match=message):
        metrics.counts_of_first_labels(labels, n_first)
