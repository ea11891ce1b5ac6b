"""Partitions of the predictions of several classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._groups import distinct_inputs
from epistemic_calibration.metrics._validation import check_bins, check_positive_integer
from epistemic_calibration.metrics.binning import assign_bins, merge_singletons

#: Clusters of spread within every cluster of the mean. Of 2 to 5, this saw most error.
_N_SHAPES = 3


def assign_class_bins(
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    random_state: int = 0,
) -> np.ndarray:
    """Return the bin of every sample for canonical calibration, made without labels.

    They are those of K-means on Δ, and within each K-means on the standard deviation of every
    class, divided by sqrt(1 − ‖Δ‖²), which is the largest their root sum of squares can be; a
    third as many clusters of Δ as bins. Bins of one sample are added to the nearest.

    Parameters
    ----------
    hypotheses : array-like of shape (n_samples, n_hypotheses, n_classes)
        Probabilities of the classes, which add up to 1 within 1e-3.
    n_bins : int, default 50
        Number of bins aimed at: fewer where there are fewer samples, or fewer distinct rows.
    random_state : int, default 0
        Seed of K-means.

    Returns
    -------
    ndarray of int, shape (n_samples,)
        Labels 0, 1, ..., each of them used. They stay the same if hypotheses or classes are
        numbered differently.

    Examples
    --------
    Two inputs have the same hypotheses in another order, a third the same mean without spread.

    >>> from epistemic_calibration import metrics
    >>> first, second = [0.6, 0.2, 0.2], [0.2, 0.4, 0.4]
    >>> mean = [0.4, 0.3, 0.3]
    >>> hypotheses = [[first, second], [second, first], [mean, mean], [mean, mean]]
    >>> metrics.assign_class_bins(hypotheses)
    array([1, 1, 0, 0])
    """
    return class_bins(ClassSample(None, hypotheses), n_bins, random_state)


def class_bins(
    sample: ClassSample,
    n_bins: int,
    random_state: int,
    *,
    given: ArrayLike | None = None,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Return `assign_class_bins` of a checked sample, or the bins ``given``, checked."""
    if given is not None:
        return check_bins(given, n_samples=len(sample.hypotheses))
    if groups is not None:
        first, copy = distinct_inputs(sample.hypotheses, groups)
        once = ClassSample(None, sample.hypotheses[first])
        return class_bins(once, n_bins, random_state)[copy]
    n_bins = check_positive_integer(n_bins, name="n_bins")
    # Classes in an order that does not depend on their own; rounding takes away what that of a sum
    # does.
    mean, spread = np.round(sample.mean, 12), np.round(np.sqrt(sample.variance), 12)
    order = np.lexsort((np.round(spread.mean(axis=0), 9), np.round(mean.mean(axis=0), 9)))
    mean, spread = mean[:, order], spread[:, order]
    largest = np.sqrt(np.maximum(1 - np.square(mean).sum(axis=1, keepdims=True), 0))
    # Where Δ is all but certain, spread is rounding.
    relative = np.divide(spread, largest, out=np.zeros_like(spread), where=largest > 1e-6)
    coarse = merge_singletons(
        mean, _clusters(mean, max(1, round(n_bins / _N_SHAPES)), random_state)
    )
    labels = np.empty(len(mean), dtype=np.intp)
    for k in np.unique(coarse):
        inside = np.flatnonzero(coarse == k)
        n_shapes = max(1, min(_N_SHAPES, n_bins, len(inside) // 2))
        fine = _clusters(relative[inside], n_shapes, random_state)
        labels[inside] = k * _N_SHAPES + merge_singletons(relative[inside], fine)
    return np.unique(labels, return_inverse=True)[1]


def _clusters(features: np.ndarray, n_clusters: int, random_state: int) -> np.ndarray:
    return assign_bins(np.clip(features, 0, 1), n_bins=n_clusters, random_state=random_state)
