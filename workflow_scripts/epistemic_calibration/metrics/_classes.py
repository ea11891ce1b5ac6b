"""Checked labels and hypotheses of several classes, and their moments."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._validation import check_hypotheses, row_blocks

#: How far from 1 the probabilities of the classes may add up: rounding of files and float16.
SUM_TOLERANCE = 1e-3


def check_class_labels(y_true: ArrayLike, *, n_classes: int) -> np.ndarray:
    """Return labels as integers 0, ..., n_classes − 1, shape (n_samples,)."""
    labels = np.asarray(y_true)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"y_true must have shape (n_samples,) and samples, got {labels.shape}")
    if labels.dtype.kind not in "buif":
        raise ValueError(f"y_true must be integers, got dtype {labels.dtype}")
    # NaN is unequal to itself.
    wrong = ~((labels >= 0) & (labels < n_classes) & (np.floor(labels) == labels))
    if wrong.any():
        raise ValueError(
            f"y_true must be classes 0 to {n_classes - 1}, as the last axis of hypotheses has "
            f"{n_classes}; got {np.unique(labels[wrong])[:5]}"
        )
    return labels.astype(np.intp)


def check_class_hypotheses(hypotheses: ArrayLike, *, n_samples: int | None = None) -> np.ndarray:
    """Return hypotheses of shape (n_samples, n_hypotheses, n_classes) that add up to 1.

    The dtype is kept where it is a float of 32 bits or more, otherwise it is float64.
    """
    array = np.asarray(hypotheses)
    if array.ndim != 3 or array.size == 0:
        raise ValueError(
            "hypotheses must have shape (n_samples, n_hypotheses, n_classes) and entries, "
            f"got shape {array.shape}"
        )
    flat = check_hypotheses(array.reshape(len(array), -1))
    sums = np.empty(array.shape[:2])
    for block in row_blocks(flat):
        sums[block] = array[block].sum(axis=2, dtype=np.float64)
    if not _are_one(sums):
        raise ValueError(_why_not_one(array, sums))
    if n_samples is not None and len(array) != n_samples:
        hint = ""
        if array.shape[1] == n_samples:
            hint = "; if hypotheses come first, transpose with .transpose(1, 0, 2)"
        raise ValueError(f"hypotheses has {len(array)} samples, y_true has {n_samples}{hint}")
    if array.shape[2] < 2:
        raise ValueError("hypotheses must have two classes or more, got 1 on the last axis")
    keep = array.dtype.kind == "f" and array.dtype.itemsize >= 4
    dtype = array.dtype if keep else np.dtype(np.float64)
    normalised = np.empty(array.shape, dtype=dtype)
    for block in row_blocks(flat):
        normalised[block] = array[block] / sums[block][:, :, None]
    # Rounding may leave a probability of 1 a little above it.
    return np.minimum(normalised, 1, out=normalised)


def _are_one(sums: np.ndarray) -> bool:
    return bool(np.abs(sums - 1).max() <= SUM_TOLERANCE)


def _why_not_one(array: np.ndarray, sums: np.ndarray) -> str:
    seen = f"got sums in [{sums.min():.6g}, {sums.max():.6g}]"
    start = "the last axis of hypotheses must be classes, whose probabilities add up to 1"
    for axis, remedy in ((1, ".transpose(0, 2, 1)"), (0, ".transpose(1, 2, 0)")):
        if _are_one(array.sum(axis=axis, dtype=np.float64)):
            return f"{start}; it is axis {axis} that does: transpose with {remedy}"
    return f"{start}; {seen}"


class ClassSample:
    """Hypotheses of several classes and, where needed, labels: checked, with their moments.

    ``mean`` and ``variance`` (ddof 0) have shape (n_samples, n_classes).
    """

    def __init__(self, y_true: ArrayLike | None, hypotheses: ArrayLike) -> None:
        n_samples = None if y_true is None else np.size(y_true)
        self.hypotheses = check_class_hypotheses(hypotheses, n_samples=n_samples)
        self.y = None if y_true is None else check_class_labels(y_true, n_classes=self.n_classes)

    @property
    def n_classes(self) -> int:
        return self.hypotheses.shape[2]

    @property
    def blocks(self) -> list[slice]:
        return list(row_blocks(self.hypotheses.reshape(len(self.hypotheses), -1)))

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        shape = len(self.hypotheses), self.n_classes
        mean, variance = np.empty(shape), np.empty(shape)
        for block in self.blocks:
            rows = self.hypotheses[block].astype(np.float64)
            mean[block] = rows.mean(axis=1)
            rows -= mean[block, None]
            variance[block] = np.einsum("njc,njc->nc", rows, rows) / rows.shape[1]
        # Float32 adds up to 1 only to seven digits.
        mean /= mean.sum(axis=1, keepdims=True)
        return mean, variance

    @property
    def mean(self) -> np.ndarray:
        return self._moments[0]

    @property
    def variance(self) -> np.ndarray:
        return self._moments[1]

    @cached_property
    def top(self) -> np.ndarray:
        """The predicted class, the lowest of several with the same Δ."""
        # Rounding keeps ties together that differ by the order of a sum.
        return np.round(self.mean, 12).argmax(axis=1)

    def error(self) -> np.ndarray:
        """Return e = onehot(y) − Δ."""
        error = -self.mean
        error[np.arange(len(error)), self.y] += 1
        return error
