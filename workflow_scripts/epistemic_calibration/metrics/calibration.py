"""Metrics of the point prediction: accuracy, proper scores, calibration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._validation import (
    BLOCK_SIZE,
    check_labels,
    check_positive_integer,
    check_probabilities,
)
from epistemic_calibration.metrics.binning import equal_width_bins


class CalibrationCurve(NamedTuple):
    """A binned calibration curve, whose arrays have an entry for each bin with samples."""

    predicted: np.ndarray  # mean prediction
    frequency: np.ndarray  # of the positive class
    count: np.ndarray


class SmoothCalibrationCurve(NamedTuple):
    """A smooth calibration curve on a grid of predictions."""

    predicted: np.ndarray
    frequency: np.ndarray  # estimate of P(Y = 1 | prediction); NaN where no sample has any weight


def accuracy(y_true: ArrayLike, y_prob: ArrayLike) -> float:
    """Return the fraction of samples whose class is predicted, 1 where ``y_prob`` > 0.5.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), labels in {0, 1}
    y_prob : array-like of shape (n_samples,), predictions of P(Y = 1) in [0, 1]

    Raises
    ------
    ValueError
        If labels are not 0 and 1, or predictions are not in [0, 1].

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> metrics.accuracy([0, 1, 1, 1], [0.2, 0.9, 0.6, 0.5])
    0.75
    """
    y, p = _check(y_true, y_prob)
    return float(np.mean((p > 0.5) == (y == 1)))


def brier_score(y_true: ArrayLike, y_prob: ArrayLike) -> float:
    """Return the mean squared difference of labels and predictions, in [0, 1].

    Parameters and errors as in :func:`accuracy`.

    References
    ----------
    Brier, 1950, "Verification of forecasts expressed in terms of probability".

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> metrics.brier_score([0, 1], [0.5, 0.75])
    0.15625
    """
    y, p = _check(y_true, y_prob)
    return float(np.mean((y - p) ** 2))


def log_loss(y_true: ArrayLike, y_prob: ArrayLike) -> float:
    """Return the mean negative log-likelihood of the labels, in nats.

    A certain prediction that is wrong costs −log(1e-15) = 34.5 instead of infinity.
    Parameters and errors as in :func:`accuracy`.

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> round(metrics.log_loss([0, 1], [0.5, 0.5]), 4)
    0.6931
    """
    y, p = _check(y_true, y_prob)
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


def auroc(y_true: ArrayLike, y_prob: ArrayLike) -> float:
    """Return the area under the ROC curve, in [0, 1], or NaN where there is one class only.

    Parameters and errors as in :func:`accuracy`.

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> metrics.auroc([0, 0, 1, 1], [0.1, 0.6, 0.5, 0.9])
    0.75
    """
    from sklearn.metrics import roc_auc_score

    y, p = _check(y_true, y_prob)
    if y.min() == y.max():
        return float("nan")
    return float(roc_auc_score(y, p))


def expected_calibration_error(y_true: ArrayLike, y_prob: ArrayLike, *, n_bins: int = 10) -> float:
    """Return the expected calibration error (ECE) with bins of equal width.

    The bins are [0, 1/M), ..., [1 - 1/M, 1]: both ends belong to a bin. The frequency in
    a bin is that of the positive class (paper, section 2.1.1), not the top-label accuracy.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`accuracy`, with its errors.
    n_bins : int >= 1, default 10
        Number of bins M.

    Returns
    -------
    float
        Σ_m |B_m|/N · |acc_m − conf_m|, in [0, 1].

    References
    ----------
    Naeini, Cooper and Hauskrecht, 2015, "Obtaining well calibrated probabilities using Bayesian
    binning".

    Examples
    --------
    Two bins of two samples: |1/2 - 1/4| and |1 - 3/4|.

    >>> from epistemic_calibration import metrics
    >>> metrics.expected_calibration_error([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    """
    curve = calibration_curve(y_true, y_prob, n_bins=n_bins)
    return float(np.average(np.abs(curve.frequency - curve.predicted), weights=curve.count))


def calibration_curve(
    y_true: ArrayLike, y_prob: ArrayLike, *, n_bins: int = 10
) -> CalibrationCurve:
    """Return mean prediction, frequency and count in bins of equal width.

    Parameters, bins and errors as in :func:`expected_calibration_error`.

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> curve = metrics.calibration_curve([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    >>> curve.predicted, curve.frequency, curve.count
    (array([0.25, 0.75]), array([0.5, 1. ]), array([2, 2]))
    """
    y, p = _check(y_true, y_prob)
    n_bins = check_positive_integer(n_bins, name="n_bins")
    bins = equal_width_bins(p, n_bins)
    count = np.bincount(bins, minlength=n_bins)
    used = count > 0
    predicted, frequency = (
        np.bincount(bins, weights=values, minlength=n_bins)[used] / count[used] for values in (p, y)
    )
    return CalibrationCurve(predicted, frequency, count[used])


def smooth_calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    bandwidth: float = 0.2,
    n_points: int = 101,
) -> SmoothCalibrationCurve:
    """Return the Nadaraya–Watson estimate of P(Y = 1 | prediction) with a Beta kernel.

    At t, a sample with prediction p has the weight of the Beta(t/b + 1, (1 − t)/b + 1)
    density at p, which has no mass outside [0, 1]. The default bandwidth is that of the paper's
    figure 1c.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`accuracy`, with its errors.
    bandwidth : float > 0, default 0.2
        The b above.
    n_points : int >= 1, default 101
        Points of the grid on [0, 1], its ends included.

    References
    ----------
    Chen, 1999, "Beta kernel estimators for density functions".

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> curve = metrics.smooth_calibration_curve([0, 1], [0.25, 0.75], n_points=3)
    >>> curve.predicted
    array([0. , 0.5, 1. ])
    >>> curve.frequency.round(3)
    array([0.004, 0.5  , 0.996])
    """
    from scipy.special import xlogy

    y, p = _check(y_true, y_prob)
    n_points = check_positive_integer(n_points, name="n_points")
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth must be finite and > 0, got {bandwidth!r}")
    # Equal predictions have equal weights: sums over distinct ones are enough.
    p, group = np.unique(p, return_inverse=True)
    count, positives = np.bincount(group), np.bincount(group, weights=y)
    grid = np.linspace(0, 1, n_points)
    frequency = np.empty(n_points)
    step = max(1, BLOCK_SIZE // len(p))
    for start in range(0, n_points, step):
        t = grid[start : start + step, None] / bandwidth
        # The kernel's normalising constant depends on t only and cancels.
        log_weight = xlogy(t, p) + xlogy(1 / bandwidth - t, 1 - p)
        top = log_weight.max(axis=1, keepdims=True)
        weight = np.exp(log_weight - np.where(np.isfinite(top), top, 0))
        with np.errstate(invalid="ignore"):
            frequency[start : start + step] = (weight @ positives) / (weight @ count)
    return SmoothCalibrationCurve(grid, frequency)


def _check(y_true: ArrayLike, y_prob: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    y = check_labels(y_true)
    return y, check_probabilities(y_prob, name="y_prob", n_samples=len(y))
