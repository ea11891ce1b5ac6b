"""What figures and pages show of one method besides its scores, in few numbers.

Reliability, risk against coverage, and the bins that carry the error, with the inputs in them that
are to blame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from epistemic_calibration._evaluation_plot import wilson_interval
from epistemic_calibration.metrics._bins import Bins
from epistemic_calibration.metrics._clusters import mean_of_groups
from epistemic_calibration.metrics.binning import equal_width_bins

#: Bins of equal width of the reliability diagram.
N_RELIABILITY_BINS = 10
#: Coverages at which the errors are told.
N_COVERAGES = 50
#: Bins shown of those that carry the error, and inputs shown of each.
N_TOP_BINS = 4
N_TOP_INPUTS = 4


def reliability(
    y_true: np.ndarray,
    mean: np.ndarray,
    *,
    confidence_level: float,
    groups: np.ndarray | None = None,
) -> dict[str, list[float]]:
    """Return mean prediction, label frequency and its interval in ten bins of equal width.

    Parameters
    ----------
    y_true, mean : ndarray of shape (n_tasks, n_samples)
        Labels in {0, 1} and predictions in [0, 1]; sample n is the same input in every task.
    confidence_level : float in (0, 1)
    groups : ndarray of shape (n_samples,), optional
        Equal for inputs that are not independent of each other.

    Returns
    -------
    dict
        ``predicted``, ``frequency``, ``low``, ``high`` and ``n`` of every bin that is not empty.
        Wilson's interval; the labels that one input or group has count for as many independent
        ones as their frequency is precise for.

    Examples
    --------
    >>> found = reliability(np.array([[0, 1]]), np.array([[0.5, 0.5]]), confidence_level=0.95)
    >>> found["predicted"], found["frequency"], found["n"]
    ([0.5], [0.5], [2])
    """
    n_tasks, n_samples = y_true.shape
    y, prediction = (np.ravel(values).astype(float) for values in (y_true, mean))
    grouped = n_tasks > 1 or groups is not None
    inputs = np.tile(np.arange(n_samples) if groups is None else groups, n_tasks)
    bins = equal_width_bins(prediction, N_RELIABILITY_BINS)
    rows = []
    for number in np.unique(bins):
        inside = bins == number
        frequency, n = float(y[inside].mean()), int(inside.sum())
        units = np.unique(inputs[inside], return_inverse=True)[1]
        n_independent = float(units.max() + 1)
        if grouped and n_independent > 1 and 0 < frequency < 1:
            error = mean_of_groups(y[inside], units, confidence_level).standard_error
            if error > 0:
                n_independent = min(n, frequency * (1 - frequency) / error**2)
        low, high = wilson_interval(frequency, n_independent, confidence_level)
        rows.append((float(prediction[inside].mean()), frequency, float(low), float(high), n))
    names = ("predicted", "frequency", "low", "high", "n")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def risk_coverage(wrong: np.ndarray, orders: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    """Return the share of errors among the inputs that are kept, lowest order first.

    Parameters
    ----------
    wrong : ndarray of bool, any shape
    orders : mapping of str to ndarray of that shape
        What each curve orders by; inputs of equal order count by their mean.

    Returns
    -------
    dict
        ``coverage``, multiples of 0.02 up to 1, and the share of errors at each by order.

    Examples
    --------
    >>> found = risk_coverage(np.array([0, 0, 1, 1]), {"eu": np.array([1, 2, 3, 3])})
    >>> found["coverage"][24], found["eu"][24], found["eu"][-1]
    (0.5, 0.0, 0.5)
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
    uncertainty: np.ndarray,
    confidence_level: float,
) -> list[dict[str, Any]]:
    """Return the bins that contribute most to the mean corrected TECE over tasks.

    Parameters
    ----------
    y_true, mean, bins, uncertainty : ndarray of shape (n_tasks, n_samples)
        Labels, mean predictions, bins of the corrected error, squared error that is reported.
    tasks : sequence of str
    confidence_level : float in (0, 1)
        Of all intervals together, by Bonferroni over all bins: the bins are chosen for their
        error.

    Returns
    -------
    list of dict
        By decreasing contribution: ``task``, ``n``, ``predicted`` (mean, smallest, largest),
        ``frequency`` of label 1 with ``low`` and ``high``, ``contribution`` to the corrected
        TECE, and ``inputs``, those that miss most in the direction in which the bin does:
        ``row``, ``predicted``, ``label``, ``uncertainty`` (√EU in points).

    Examples
    --------
    >>> y, mean = np.array([[0, 0, 1, 1]]), np.array([[0.0, 0.1, 0.5, 0.6]])
    >>> (first, *_) = top_bins(
    ...     y, mean, np.array([[0, 0, 1, 1]]), ["cat"], uncertainty=mean, confidence_level=0.95
    ... )
    >>> first["frequency"], [shown["row"] for shown in first["inputs"]]
    (1.0, [2, 3])
    """
    found, n_bins = [], 0
    for number in range(len(tasks)):
        y, prediction = y_true[number].astype(float), mean[number].astype(float)
        sums = Bins(y, prediction, bins[number])
        used = np.flatnonzero(sums.used)
        n_bins += len(used)
        parts = sums.w * sums.squared_error / len(tasks)
        found += [(part, number, k) for part, k in zip(parts, used, strict=True)]
    found.sort(key=lambda item: (-item[0], item[1:]))
    level = 1 - (1 - confidence_level) / max(n_bins, 1)
    shown = []
    for part, number, k in found[:N_TOP_BINS]:
        if part <= 0:
            break
        rows = np.flatnonzero(bins[number] == k)
        y, prediction = y_true[number][rows].astype(float), mean[number][rows].astype(float)
        frequency = float(y.mean())
        low, high = wilson_interval(frequency, len(rows), level)
        error = (y - prediction) * (1 if frequency > prediction.mean() else -1)
        order = np.argsort(-error, kind="stable")[:N_TOP_INPUTS]
        shown.append(
            {
                "task": tasks[number],
                "n": len(rows),
                "predicted": [float(f(prediction)) for f in (np.mean, np.min, np.max)],
                "frequency": frequency,
                "low": float(low),
                "high": float(high),
                "contribution": float(part),
                "inputs": [
                    {
                        "row": int(rows[i]),
                        "predicted": float(prediction[i]),
                        "label": int(y[i]),
                        "uncertainty": float(100 * np.sqrt(uncertainty[number][rows[i]])),
                    }
                    for i in order
                ],
            }
        )
    return shown


def diagnose(
    y_true: np.ndarray,
    compared: Mapping[str, np.ndarray],
    tasks: Sequence[str],
    *,
    confidence_level: float,
    groups: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return everything that figures and pages show of one method besides its scores.

    Parameters
    ----------
    y_true : ndarray of shape (n_tasks, n_samples)
    compared : mapping
        ``mean_prediction``, ``bins`` and ``uncertainty``, each of the shape of ``y_true``.
    tasks : sequence of str
    confidence_level : float in (0, 1)
    groups : ndarray of shape (n_samples,), optional
        As in `reliability`.

    Returns
    -------
    dict
        ``reliability`` and ``risk_coverage`` of all tasks together, by ``uncertainty`` and by
        ``prediction``, 1 − max p; ``top_bins``.

    Examples
    --------
    >>> y, mean = np.array([[0, 1, 0, 1]]), np.array([[0.2, 0.3, 0.6, 0.9]])
    >>> compared = {"mean_prediction": mean, "bins": np.array([[0, 0, 1, 1]]), "uncertainty": mean}
    >>> sorted(diagnose(y, compared, ["cat"], confidence_level=0.95))
    ['reliability', 'risk_coverage', 'top_bins']
    """
    mean, uncertainty = compared["mean_prediction"], compared["uncertainty"]
    options = {"confidence_level": confidence_level}
    orders = {"uncertainty": uncertainty, "prediction": np.minimum(mean, 1 - mean)}
    return {
        "reliability": reliability(y_true, mean, groups=groups, **options),
        "risk_coverage": risk_coverage((mean > 0.5) != (y_true == 1), orders),
        "top_bins": top_bins(
            y_true, mean, compared["bins"], tasks, uncertainty=uncertainty, **options
        ),
    }
