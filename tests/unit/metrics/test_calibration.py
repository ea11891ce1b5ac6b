import math

import numpy as np
import pytest
from scipy.stats import beta
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve as sk_calibration_curve

from epistemic_calibration import metrics

FIRST_ORDER = [
    metrics.accuracy,
    metrics.brier_score,
    metrics.log_loss,
    metrics.auroc,
    metrics.expected_calibration_error,
]

RNG = np.random.default_rng(0)
P = RNG.beta(0.5, 1.5, 500)
Y = (RNG.random(500) < P**1.3).astype(int)


def test_agree_with_scikit_learn():
    assert metrics.accuracy(Y, P) == sk.accuracy_score(Y, P > 0.5)
    assert metrics.brier_score(Y, P) == pytest.approx(sk.brier_score_loss(Y, P), rel=1e-12)
    assert metrics.log_loss(Y, P) == pytest.approx(sk.log_loss(Y, P), rel=1e-12)
    assert metrics.auroc(Y, P) == sk.roc_auc_score(Y, P)


def test_edges_of_first_order_metrics():
    # One half predicts the negative class.
    assert metrics.accuracy([0, 1], [0.5, 0.5]) == 0.5
    assert metrics.accuracy([0, 1], [0.5, np.nextafter(0.5, 1)]) == 1
    assert metrics.log_loss([1, 0], [0.0, 1.0]) == pytest.approx(-math.log(1e-15), rel=1e-2)
    assert metrics.log_loss([1, 0], [1.0, 0.0]) == pytest.approx(0, abs=1e-14)
    assert math.isnan(metrics.auroc([1, 1], [0.2, 0.7]))


def test_edges_of_bins_are_fractions():
    # 0.3 is the left end of a bin: |0.3 − 0.2| and |0.2 − 0.3|, each with weight 1/2.
    y = np.r_[np.ones(30), np.zeros(70), np.ones(20), np.zeros(80)]
    p = np.repeat([0.2, 0.3], 100)
    assert metrics.expected_calibration_error(y, p) == pytest.approx(0.1)


def test_calibration_curve_agrees_with_scikit_learn():
    curve = metrics.calibration_curve(Y, P, n_bins=7)
    frequency, predicted = sk_calibration_curve(Y, P, n_bins=7)
    np.testing.assert_allclose(curve.frequency, frequency, rtol=1e-12)
    np.testing.assert_allclose(curve.predicted, predicted, rtol=1e-12)
    assert curve.count.sum() == len(Y)


def test_smooth_curve_is_a_ratio_of_beta_densities():
    curve = metrics.smooth_calibration_curve(Y, P, bandwidth=0.2, n_points=5)
    for t, frequency in zip(curve.predicted, curve.frequency, strict=True):
        weight = beta.pdf(P, t / 0.2 + 1, (1 - t) / 0.2 + 1)
        assert frequency == pytest.approx(np.average(Y, weights=weight), rel=1e-10)


def test_smooth_curve_at_exact_zero_and_one():
    curve = metrics.smooth_calibration_curve([0, 1], [0.0, 1.0], n_points=3)
    # At each end all the weight is on that end's sample; between them neither has any.
    assert curve.frequency[[0, 2]].tolist() == [0, 1]
    assert math.isnan(curve.frequency[1])


@pytest.mark.parametrize("metric", FIRST_ORDER)
def test_kinds_of_input(metric):
    p = P.astype(np.float32)
    expected = metric(Y, p.astype(np.float64))
    for labels in (Y.astype(bool), Y.astype(np.uint8), Y.tolist()):
        for prob in (p, np.repeat(p, 2)[::2], p.tolist()):
            assert metric(labels, prob) == expected


@pytest.mark.parametrize(
    "labels", [[-1, 1], ["0", "1"], [None, 1], [0, 2], [0.5, 1], [np.nan, 1], [[0], [1]], []]
)
def test_wrong_labels(labels):
    for metric in FIRST_ORDER:
        with pytest.raises(ValueError, match="y_true must"):
            metric(labels, [0.5, 0.5])


@pytest.mark.parametrize(
    ("prob", "message"),
    [
        ([0.5, np.nan], "1 values that are NaN"),
        ([0.5, 1.0000001], r"in \[0, 1\]"),
        ([-1e-9, 0.5], r"in \[0, 1\]"),
        ([0.5], "1 samples"),
        ([[0.5], [0.5]], "shape"),
        (["a", "b"], "dtype"),
    ],
)
@pytest.mark.parametrize("metric", FIRST_ORDER)
def test_wrong_predictions(metric, prob, message):
    with pytest.raises(ValueError, match=message):
        metric([0, 1], prob)


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, "ten"])
def test_wrong_settings(n_bins):
    with pytest.raises(ValueError, match="n_bins must be an integer"):
        metrics.expected_calibration_error([0, 1], [0.1, 0.9], n_bins=n_bins)
    with pytest.raises(ValueError, match="bandwidth"):
        metrics.smooth_calibration_curve([0, 1], [0.1, 0.9], bandwidth=0)
