"""What a page shows of one method besides its scores, in few numbers.

Reliability, a histogram of the uncertainty, and the bins that carry the error, with the inputs in
them that are to blame.
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
#: Edges of the histogram of √EU, in points of probability; what is smaller is in the first bin.
EU_EDGES = np.concatenate([[0.0], np.logspace(-1.5, 2, 22)])
#: Bins shown of those that carry the error, and inputs shown of each.
N_TOP_BINS = 5
N_TOP_INPUTS = 8


def reliability(
    y_true: np.ndarray, mean: np.ndarray, *, confidence_level: float
) -> dict[str, list[float]]:
    """Return mean prediction, label frequency and its interval in ten bins of equal width.

    Parameters
    ----------
    y_true, mean : ndarray of shape (n_tasks, n_samples)
        Labels in {0, 1} and predictions in [0, 1]; sample n is the same input in every task.
    confidence_level : float in (0, 1)

    Returns
    -------
    dict
        ``predicted``, ``frequency``, ``low``, ``high`` and ``n`` of every bin that is not empty.
        Wilson's interval; the labels that one input has in several tasks count for as many
        independent ones as their frequency is precise for.

    Examples
    --------
    >>> found = reliability(np.array([[0, 1]]), np.array([[0.5, 0.5]]), confidence_level=0.95)
    >>> found["predicted"], found["frequency"], found["n"]
    ([0.5], [0.5], [2])
    """
    n_tasks, n_samples = y_true.shape
    y, prediction = (np.ravel(values).astype(float) for values in (y_true, mean))
    inputs = np.tile(np.arange(n_samples), n_tasks)
    bins = equal_width_bins(prediction, N_RELIABILITY_BINS)
    rows = []
    for number in np.unique(bins):
        inside = bins == number
        frequency, n = float(y[inside].mean()), int(inside.sum())
        groups = np.unique(inputs[inside], return_inverse=True)[1]
        n_independent = float(groups.max() + 1)
        if n_tasks > 1 and n_independent > 1 and 0 < frequency < 1:
            error = mean_of_groups(y[inside], groups, confidence_level).standard_error
            if error > 0:
                n_independent = min(n, frequency * (1 - frequency) / error**2)
        elif n_tasks == 1:
            n_independent = n
        low, high = wilson_interval(frequency, n_independent, confidence_level)
        rows.append((float(prediction[inside].mean()), frequency, float(low), float(high), n))
    names = ("predicted", "frequency", "low", "high", "n")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def uncertainty_histogram(
    y_true: np.ndarray, mean: np.ndarray, uncertainty: np.ndarray
) -> dict[str, list[int]]:
    """Return how many inputs have which √EU, the predicted class ``right`` or ``wrong``.

    Parameters
    ----------
    y_true, mean, uncertainty : ndarray of one shape

    Returns
    -------
    dict
        Counts in the bins of `EU_EDGES`.

    Examples
    --------
    >>> found = uncertainty_histogram(np.ones(2), np.array([0.9, 0.4]), np.array([0.01, 0.0]))
    >>> sum(found["right"]), sum(found["wrong"]), found["wrong"][0]
    (1, 1, 1)
    """
    points = np.clip(100 * np.sqrt(np.ravel(uncertainty)), 0, EU_EDGES[-1])
    right = (np.ravel(mean) > 0.5) == (np.ravel(y_true) == 1)
    return {
        name: np.histogram(points[chosen], EU_EDGES)[0].tolist()
        for name, chosen in (("right", right), ("wrong", ~right))
    }


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
) -> dict[str, Any]:
    """Return everything that a page shows of one method besides its scores.

    Parameters
    ----------
    y_true : ndarray of shape (n_tasks, n_samples)
    compared : mapping
        ``mean_prediction``, ``bins`` and ``uncertainty``, each of the shape of ``y_true``.
    tasks : sequence of str
    confidence_level : float in (0, 1)

    Returns
    -------
    dict
        ``reliability`` and ``histogram``, each a list with what all tasks have together and then
        each task; ``top_bins``.

    Examples
    --------
    >>> y, mean = np.array([[0, 1, 0, 1]]), np.array([[0.2, 0.3, 0.6, 0.9]])
    >>> compared = {"mean_prediction": mean, "bins": np.array([[0, 0, 1, 1]]), "uncertainty": mean}
    >>> sorted(diagnose(y, compared, ["cat"], confidence_level=0.95))
    ['histogram', 'reliability', 'top_bins']
    """
    mean, uncertainty = compared["mean_prediction"], compared["uncertainty"]
    parts = [slice(None), *(slice(k, k + 1) for k in range(len(tasks)))]
    return {
        "reliability": [
            reliability(y_true[part], mean[part], confidence_level=confidence_level)
            for part in parts
        ],
        "histogram": [
            uncertainty_histogram(y_true[part], mean[part], uncertainty[part]) for part in parts
        ],
        "top_bins": top_bins(
            y_true,
            mean,
            compared["bins"],
            tasks,
            uncertainty=uncertainty,
            confidence_level=confidence_level,
        ),
    }
