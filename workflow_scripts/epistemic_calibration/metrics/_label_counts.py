"""Counts of the labels of each input, and what they say of p* without bias."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._validation import check_hypotheses, check_uncertainty
from epistemic_calibration.metrics.label_collection import (
    LabelCollectionWarning,
    stopping_fault,
)


def check_counts(n_positive: ArrayLike, n_labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return both as int64 of shape (n_samples,), checked."""
    positive, labels = np.asarray(n_positive), np.asarray(n_labels)
    if positive.ndim != 1 or positive.size == 0:
        raise ValueError(
            f"n_positive must have shape (n_samples,) and samples, got {positive.shape}"
        )
    if labels.ndim == 0:
        labels = np.full(len(positive), labels)
    if labels.shape != positive.shape:
        raise ValueError(
            f"n_labels has shape {labels.shape}, n_positive has {positive.shape}: "
            "there must be one number for each input, or one for all"
        )
    for name, values in (("n_positive", positive), ("n_labels", labels)):
        if values.dtype.kind not in "uif":
            raise ValueError(f"{name} must be integers >= 0, got dtype {values.dtype}")
        # NaN is unequal to itself, and infinity to nothing that is an integer.
        wrong = ~((values >= 0) & (np.floor(values) == values) & np.isfinite(values))
        if wrong.any():
            raise ValueError(f"{name} must be integers >= 0, got {np.unique(values[wrong])[:5]}")
    positive, labels = positive.astype(np.int64), labels.astype(np.int64)
    above = positive > labels
    if above.any():
        n = int(above.argmax())
        raise ValueError(
            f"n_positive must be at most n_labels, got {positive[n]} of {labels[n]} labels for "
            f"sample {n} and {np.count_nonzero(above) - 1} more"
        )
    return positive, labels


class LabelMoments(NamedTuple):
    """Unbiased estimates of p* and p*² for the inputs kept, and which of all these are."""

    first: np.ndarray
    second: np.ndarray
    kept: np.ndarray


def label_moments(n_positive: ArrayLike, n_labels: ArrayLike) -> LabelMoments:
    """Return the moments of inputs with two labels or more; warn as `warn_of_stopping` does."""
    positive, labels = check_counts(n_positive, n_labels)
    kept = with_two_labels(labels)
    warn_of_stopping(positive, labels)
    return LabelMoments(*moments(positive[kept], labels[kept]), kept)


def warn_of_stopping(positive: np.ndarray, labels: np.ndarray) -> None:
    """Warn where the number of labels depends on what they say."""
    fault = stopping_fault(positive, labels)
    if fault is not None:
        warnings.warn(fault, LabelCollectionWarning, stacklevel=4)


def with_two_labels(labels: np.ndarray) -> np.ndarray:
    kept = labels >= 2
    if not kept.any():
        raise ValueError("no input has two labels or more: one label says nothing of the size")
    return kept


def moments(positive: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return positive / labels, positive * (positive - 1.0) / (labels * (labels - 1.0))


def squared_error(first: np.ndarray, second: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return an unbiased estimate of (p* − centre)²."""
    # In this order it is not below 0 where p* itself is given, up to the last bit.
    return (first - centre) ** 2 + (second - first**2)


def check_inputs(
    hypotheses: ArrayLike,
    kept: np.ndarray,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return hypotheses of the inputs kept and the uncertainty that is reported of them, if any."""
    rows = check_hypotheses(hypotheses, n_samples=len(kept))
    if epistemic_uncertainty is not None:
        reported = check_uncertainty(epistemic_uncertainty, n_samples=len(kept))[kept]
    elif exchangeable and rows.shape[1] < 2:
        raise ValueError("hypotheses must be two or more for a variance, got 1")
    else:
        reported = None
    return (rows if kept.all() else rows[kept]), reported
