"""Ranking of errors: by hand, beside scikit-learn and torch-uncertainty's definitions."""

import numpy as np
import pytest
from scipy.stats import beta, entropy
from sklearn.metrics import auc, roc_auc_score

from epistemic_calibration import metrics
from epistemic_calibration.metrics.ranking import rank_errors, risk_coverage_curve, uncertainty_of

LEVEL = 0.95


def reference(errors, uncertainty):
    """Return AURC and AUGRC as torch-uncertainty 0.13 computes them, where nothing is tied."""
    n = len(errors)
    coverage = np.arange(1, n + 1) / n
    risk = np.cumsum(errors[np.argsort(uncertainty)]) / np.arange(1, n + 1)
    return [auc(coverage, values) / (1 - 1 / n) for values in (risk, risk * coverage)]


def ranked(errors, uncertainty, doubt=None, groups=None):
    errors, uncertainty = np.asarray(errors, float), np.asarray(uncertainty, float)
    doubt = np.arange(len(errors)) * 1.0 if doubt is None else doubt
    groups = np.arange(len(errors)) if groups is None else groups
    return rank_errors(errors, uncertainty, np.asarray(doubt, float), groups, LEVEL)


@pytest.mark.parametrize("seed", range(20))
def test_areas_are_those_of_torch_uncertainty(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 300))
    errors, uncertainty = (rng.random(n) < 0.3).astype(float), rng.random(n)
    found = ranked(errors, uncertainty).by_uncertainty
    aurc, augrc = reference(errors, uncertainty)
    assert found.aurc.estimate == pytest.approx(aurc, abs=1e-12)
    assert found.augrc.estimate == pytest.approx(augrc, abs=1e-12)
    if 0 < errors.sum() < n:
        assert found.auroc_of_errors.estimate == roc_auc_score(errors, uncertainty)


def test_ties_are_the_mean_of_all_their_orders():
    rng = np.random.default_rng(0)
    errors, uncertainty = (rng.random(60) < 0.4).astype(float), rng.integers(0, 4, 60)
    found = ranked(errors, uncertainty).by_uncertainty
    orders = [uncertainty + 1e-3 * rng.random(60) for _ in range(500)]
    # The error of a mean of 500 is a 22nd of one order's, which is .02.
    for name, k in (("aurc", 0), ("augrc", 1)):
        expected = np.mean([reference(errors, order)[k] for order in orders])
        assert getattr(found, name).estimate == pytest.approx(expected, abs=4e-3)
    kept = [errors[np.argsort(order)[:54]].mean() for order in orders]
    assert found.kept_error_90.estimate == pytest.approx(np.mean(kept), abs=4e-3)


def test_errors_kept_by_hand():
    # Of ten, the two of largest uncertainty are wrong, and one of the other eight.
    errors = np.array([0, 0, 0, 1, 0, 0, 0, 0, 1, 1])
    found = ranked(errors, np.arange(10)).by_uncertainty
    kept = found.kept_error_90, found.kept_error_80, found.kept_error_50
    assert [k.estimate for k in kept] == pytest.approx([2 / 9, 1 / 8, 1 / 5])
    # A constant keeps errors in the share that all have.
    flat = ranked(errors, np.ones(10)).by_uncertainty
    assert flat.kept_error_50.estimate == pytest.approx(0.3)
    assert flat.auroc_of_errors.estimate == 0.5
    coverage, curve = risk_coverage_curve(errors * 1.0, np.arange(10.0))
    assert curve[8] == pytest.approx(2 / 9) and coverage[8] == 0.9


def test_intervals_where_no_error_is_kept_are_clopper_and_pearsons():
    errors = np.r_[np.zeros(990), np.ones(10)]
    found = ranked(errors, np.arange(1000))
    kept = found.by_uncertainty.kept_error_90
    assert (kept.estimate, kept.ci_low) == (0, 0)
    assert kept.ci_high == pytest.approx(beta.ppf(0.975, 1, 900))


def test_copies_in_groups_are_the_originals():
    rng = np.random.default_rng(2)
    errors, uncertainty, doubt = rng.random(500) < 0.2, rng.random(500), rng.random(500)
    once = ranked(errors, uncertainty, doubt)
    of_copy = rng.permutation(np.repeat(np.arange(500), 3))
    copied = ranked(errors[of_copy], uncertainty[of_copy], doubt[of_copy], of_copy)
    for name in ("kept_error_90", "kept_error_50", "augrc", "auroc_of_errors"):
        a, b = getattr(once.difference, name), getattr(copied.difference, name)
        assert a.estimate == pytest.approx(b.estimate, abs=2e-3)
        assert a.standard_error == pytest.approx(b.standard_error, rel=0.05)
        assert a.ci_high - a.ci_low == pytest.approx(b.ci_high - b.ci_low, rel=0.05)


@pytest.mark.parametrize("n_errors", [0, 1, 50])
def test_of_no_errors_one_and_nothing_else(n_errors):
    found = ranked(np.arange(50) < n_errors, np.random.default_rng(0).random(50))
    difference, auroc = found.difference.auroc_of_errors, found.by_uncertainty.auroc_of_errors
    assert (difference.ci_low, difference.ci_high) == (-1, 1)
    assert (auroc.ci_low, auroc.ci_high) == (0, 1)
    assert np.isnan(auroc.estimate) == (n_errors != 1)
    kept = found.difference.kept_error_90
    assert kept.ci_low < kept.estimate < kept.ci_high


def test_intervals_cover():
    # E[error | u] = u²/2, so that the first c have c²/6; beside a constant, whose have all 1/6.
    rng = np.random.default_rng(5)
    found = []
    for _ in range(200):
        u = rng.random(300)
        found.append(ranked(rng.random(300) < u**2 / 2, u, np.ones(300)))
    # AUGRC is ∫ u²/2 (1 − u) du = 1/24 and half of 1/6; AUROC 1 − (1/24 − 1/72)/(5/36) and 1/2.
    truths = [
        (0.25 / 6, lambda r: r.by_uncertainty.kept_error_50),
        (0.8, lambda r: r.by_uncertainty.auroc_of_errors),
        ((0.81 - 1) / 6, lambda r: r.difference.kept_error_90),
        (1 / 24 - 1 / 12, lambda r: r.difference.augrc),
        (0.3, lambda r: r.difference.auroc_of_errors),
    ]
    for truth, of in truths:
        # Three standard errors of 95 % of 200.
        assert np.mean([of(r).ci_low <= truth <= of(r).ci_high for r in found]) > 0.9


# Labels and hypotheses.


def test_two_classes_are_two_classes():
    rng = np.random.default_rng(4)
    rows = rng.beta(2, 2, (300, 5))
    y = (rng.random(300) < rows.mean(axis=1)).astype(int)
    s = rng.binomial(4, rows[:, 0])
    binary = metrics.error_ranking(y, rows, n_positive=s, n_labels=4)
    both = np.stack([1 - rows, rows], axis=2)
    classes = metrics.error_ranking(y, both, label_counts=np.stack([4 - s, s], axis=1))
    for a, b in ((binary, classes), (binary.squared, classes.squared)):
        assert a.by_uncertainty.kept_error_80.estimate == pytest.approx(
            b.by_uncertainty.kept_error_80.estimate
        )
        assert a.by_prediction.augrc.estimate == pytest.approx(b.by_prediction.augrc.estimate)
    assert binary.error.estimate == np.mean((rows.mean(axis=1) > 0.5) != y)


def test_a_prediction_of_its_own_is_what_errs_and_doubts():
    rng = np.random.default_rng(5)
    rows, own = rng.random((200, 3)), rng.random(200)
    y = (rng.random(200) < own).astype(int)
    found = metrics.error_ranking(y, rows, prediction=own)
    errors = ((own > 0.5) != y).astype(float)
    assert found.error.estimate == errors.mean()
    expected = reference(errors, np.minimum(own, 1 - own))
    assert found.by_prediction.augrc.estimate == pytest.approx(expected[1])
    reported = metrics.error_ranking(y, rows, prediction=own, epistemic_uncertainty=7 * own)
    assert reported.by_uncertainty.augrc.estimate == pytest.approx(reference(errors, own)[1])


def test_squared_errors_are_unbiased():
    # (p* - Δ)² is 0.04 for half of the inputs, and 0 for the others, which are kept.
    rng = np.random.default_rng(6)
    rows = np.repeat([[0.3, 0.7], [0.5, 0.5]], 5000, axis=0)
    p = np.repeat([0.7, 0.5], 5000)
    found = metrics.error_ranking(
        np.zeros(10_000), rows, n_positive=rng.binomial(3, p), n_labels=3
    ).squared
    all_of, half = found.error, found.by_uncertainty.kept_error_50
    assert all_of.ci_low < 0.02 < all_of.ci_high and half.ci_low <= 0 < half.ci_high
    assert found.difference.kept_error_50.ci_high < -0.01


def test_kinds_of_uncertainty():
    rng = np.random.default_rng(7)
    rows = rng.dirichlet([1, 2, 3], (40, 6))
    each = entropy(rows, axis=2).mean(axis=1)
    np.testing.assert_allclose(uncertainty_of(rows, "expected_entropy"), each)
    np.testing.assert_allclose(
        uncertainty_of(rows, "mutual_information"), entropy(rows.mean(axis=1), axis=1) - each
    )
    np.testing.assert_allclose(uncertainty_of(rows, "variance"), rows.var(axis=1).sum(axis=1))
    two = rows[:, :, 0]
    np.testing.assert_allclose(
        uncertainty_of(two, "expected_entropy"),
        entropy(np.stack([two, 1 - two]), axis=0).mean(axis=1),
    )


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind_of_uncertainty": "entropy"}, "kind_of_uncertainty must be one of"),
        ({"epistemic_uncertainty": [-1.0] * 20}, "epistemic_uncertainty must be"),
        ({"prediction": [0.5] * 19}, "prediction has 19 samples"),
        ({"label_counts": np.ones((20, 3), int)}, "counts of each class of 20 inputs"),
        ({"groups": [1] * 20}, "groups of them, or more"),
    ],
)
def test_wrong_arguments_are_named(changes, words):
    arguments = {"y_true": np.arange(20) % 2, "hypotheses": np.full((20, 2), 0.5), **changes}
    with pytest.raises(ValueError, match=words):
        metrics.error_ranking(**arguments)
