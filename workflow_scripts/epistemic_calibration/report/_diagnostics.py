"""What figures and pages show of one method besides its scores.

Reliability, risk by coverage, and the bins that carry the calibration error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from epistemic_calibration.metrics._interval import wilson_interval
from epistemic_calibration.metrics._means import mean_of_groups
from epistemic_calibration.metrics.binning import equal_width_bins
from epistemic_calibration.metrics.corrected import form_of

#: Bins of equal width of the reliability diagram.
N_RELIABILITY_BINS = 10
#: Coverages at which the errors are told.
N_COVERAGES = 50
#: Bins shown of those that carry the calibration error.
N_TOP_BINS = 4


def reliability(
    y_true: np.ndarray,
    mean: np.ndarray,
    *,
    confidence_level: float,
    groups: np.ndarray | None = None,
) -> dict[str, list[float]]:
    """Return mean prediction, label frequency and its interval in ten bins of equal width.

    ``y_true`` and ``mean`` have shape (n_tasks, n_samples), a column per input. Inputs of equal
    ``groups`` (n_samples,) are not independent. Of every bin that is not empty: ``predicted``,
    ``frequency``, ``low``, ``high`` (Wilson) and ``n``. The labels of one input or group count
    for as many independent ones as their frequency is precise for.
    """
    n_tasks, n_samples = y_true.shape
    y, prediction = (np.ravel(values).astype(float) for values in (y_true, mean))
    grouped = n_tasks > 1 or groups is not None
    inputs = np.tile(np.arange(n_samples) if groups is None else groups, n_tasks)
    bins = equal_width_bins(prediction, N_RELIABILITY_BINS)
    rows = []
    for number in np.unique(bins):
        inside = bins == number
        units = inputs[inside] if grouped else None
        rows.append(_bin(y[inside], prediction[inside], units, confidence_level))
    return {name: [row[name] for row in rows] for name in rows[0]}


def _bin(
    y: np.ndarray, prediction: np.ndarray, units: np.ndarray | None, level: float
) -> dict[str, float]:
    frequency, n = float(y.mean()), len(y)
    n_independent = float(n)
    if units is not None:
        units = np.unique(units, return_inverse=True)[1]
        n_independent = float(units.max() + 1)
        if n_independent > 1 and 0 < frequency < 1:
            error = mean_of_groups(y, units, level).standard_error
            if error > 0:
                n_independent = min(n, frequency * (1 - frequency) / error**2)
    low, high = map(float, wilson_interval(frequency, n_independent, level))
    predicted = float(prediction.mean())
    return {"predicted": predicted, "frequency": frequency, "low": low, "high": high, "n": n}


def risk_coverage(wrong: np.ndarray, orders: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    """Return the share of errors among the inputs that are kept, lowest order first.

    Inputs of equal order count by their mean. ``coverage`` has the multiples of 0.02 up to 1.
    """
    wrong = np.ravel(wrong).astype(float)
    coverage = np.arange(1, N_COVERAGES + 1) / N_COVERAGES
    found = {"coverage": coverage.tolist()}
    for name, order in orders.items():
        _, place = np.unique(np.ravel(order), return_inverse=True)
        counts, errors = (np.bincount(place, weights=w) for w in (None, wrong))
        kept = np.concatenate([[0], np.cumsum(counts)])
        total = np.interp(coverage * len(wrong), kept, np.concatenate([[0], np.cumsum(errors)]))
        found[name] = (total / (coverage * len(wrong))).tolist()
    return found


def top_bins(
    y_true: np.ndarray,
    mean: np.ndarray,
    bins: np.ndarray,
    tasks: Sequence[str],
    *,
    confidence_level: float,
    groups: np.ndarray | None = None,
) -> list[dict[str, Any]]:
    """Return the bins that contribute most to the mean corrected TECE over tasks, largest first.

    Each has its ``task``, what `reliability` returns of a bin, and its ``share`` of the corrected
    TECE, None where that is not above 0. Since they are chosen for their error, their intervals are
    of all bins together, by Bonferroni.
    """
    y_true, mean = y_true.astype(float), mean.astype(float)
    parts = []
    for number in range(len(tasks)):
        b = form_of(y_true[number], mean[number], bins[number], groups).bins
        of_bins = zip((b.w * b.squared_error).tolist(), np.flatnonzero(b.used), strict=True)
        parts += [(part, number, k) for part, k in of_bins]
    total = sum(part for part, *_ in parts)
    level = 1 - (1 - confidence_level) / len(parts)
    found = []
    for part, number, k in sorted(parts, key=lambda of_bin: -of_bin[0])[:N_TOP_BINS]:
        if part > 0:
            inside = bins[number] == k
            among = None if groups is None else groups[inside]
            row = _bin(y_true[number][inside], mean[number][inside], among, level)
            share = part / total if total > 0 else None
            found.append({"task": tasks[number], **row, "share": share})
    return found


def diagnose(
    y_true: np.ndarray,
    compared: Mapping[str, np.ndarray],
    tasks: Sequence[str],
    *,
    confidence_level: float,
    groups: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return what figures and pages show of one method besides its scores.

    ``compared`` has ``mean_prediction``, ``bins`` and ``uncertainty``, shaped as ``y_true``; all
    else is as of `reliability`. Curves of risk are by ``uncertainty`` and ``prediction``.
    """
    mean, uncertainty = compared["mean_prediction"], compared["uncertainty"]
    orders = {"uncertainty": uncertainty, "prediction": np.minimum(mean, 1 - mean)}
    options = {"confidence_level": confidence_level, "groups": groups}
    return {
        "reliability": reliability(y_true, mean, **options),
        "risk_coverage": risk_coverage((mean > 0.5) != (y_true == 1), orders),
        "top_bins": top_bins(y_true, mean, compared["bins"], tasks, **options),
    }
