"""Checks of what users pass to the metrics."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

#: Elements that are cast to float64 at once, so that float32 hypotheses need no full copy.
BLOCK_SIZE = 1 << 22
#: Elements of `row_blocks`, which have many steps: in float64 they fit in the processor's cache.
_ROW_BLOCK_SIZE = 1 << 18

#: By how much sums that are rounded may leave [0, 1]; such values are clipped.
ROUNDING = 1e-12


def check_labels(y_true: ArrayLike, *, name: str = "y_true") -> np.ndarray:
    """Return binary labels as float64, shape (n_samples,).

    Floats, so that the difference of labels and predictions never wraps around as
    that of unsigned integers does.
    """
    labels = np.asarray(y_true)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"{name} must have shape (n_samples,) and samples, got {labels.shape}")
    if labels.dtype.kind not in "buif":
        raise ValueError(f"{name} must be labels 0 and 1, got dtype {labels.dtype}")
    wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        raise ValueError(f"{name} must be labels 0 and 1, got {np.unique(labels[wrong])[:5]}")
    return labels.astype(np.float64)


def check_labels_of_tasks(y_true: Sequence[ArrayLike]) -> list[np.ndarray]:
    """Return the labels of each task, which all have as many samples."""
    labels = [check_labels(y) for y in y_true]
    for y in labels:
        if len(y) != len(labels[0]):
            raise ValueError(f"y_true has tasks of {len(labels[0])} and of {len(y)} samples")
    return labels


def check_probabilities(
    values: ArrayLike, *, name: str, n_samples: int | None = None
) -> np.ndarray:
    """Return probabilities as float64, shape (n_samples,), clipped where they are rounded."""
    return _check_vector(values, name=name, n_samples=n_samples, upper=1.0)


def check_uncertainty(values: ArrayLike, *, n_samples: int) -> np.ndarray:
    """Return a reported epistemic uncertainty as float64, shape (n_samples,)."""
    return _check_vector(values, name="epistemic_uncertainty", n_samples=n_samples, upper=None)


def check_hypotheses(hypotheses: ArrayLike, *, n_samples: int | None = None) -> np.ndarray:
    """Return hypotheses as an array of shape (n_samples, n_hypotheses), dtype kept.

    What is outside [0, 1] by rounding is clipped, in a copy.
    """
    array = np.asarray(hypotheses)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            "hypotheses must have shape (n_samples, n_hypotheses) and entries, "
            f"got shape {array.shape}"
        )
    _check_length(len(array), n_samples, name="hypotheses")
    return _in_range(array, name="hypotheses", upper=1.0)


def check_bins(bins: ArrayLike, *, n_samples: int) -> np.ndarray:
    """Return bin labels 0, 1, ..., without gaps, shape (n_samples,)."""
    labels = np.asarray(bins)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            "bins must be integers of shape (n_samples,), "
            f"got dtype {labels.dtype} and shape {labels.shape}"
        )
    _check_length(len(labels), n_samples, name="bins")
    return np.unique(labels, return_inverse=True)[1]


def check_positive_integer(value: int, *, name: str, minimum: int = 1) -> int:
    """Return ``value`` as int, or raise ValueError where it is not an integer >= minimum."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return int(value)


def check_tasks(**arrays: Sequence[ArrayLike] | None) -> int:
    """Return of how many tasks there are arrays: of the first argument, and of all others given."""
    (first, of_first), *others = arrays.items()
    for name, of_tasks in others:
        if of_tasks is not None and len(of_tasks) != len(of_first):
            raise ValueError(
                f"{name} has {len(of_tasks)} tasks, {first} has {len(of_first)}: there must be one "
                f"array for each task"
            )
    if len(of_first) == 0:
        raise ValueError(f"{first} must have one array for each task, got none")
    return len(of_first)


def check_fraction(value: float, *, name: str) -> float:
    """Return ``value`` as float, or raise ValueError where it is not in (0, 1)."""
    if not isinstance(value, numbers.Real) or not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, both excluded, got {value!r}")
    return float(value)


def row_blocks(array: np.ndarray) -> Iterator[slice]:
    """Yield slices of rows that hold few enough elements to be cast to float64 at once."""
    step = max(1, _ROW_BLOCK_SIZE // array.shape[1])
    for start in range(0, len(array), step):
        yield slice(start, min(start + step, len(array)))


def _check_vector(
    values: ArrayLike, *, name: str, n_samples: int | None, upper: float | None
) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have shape (n_samples,) and samples, got {array.shape}")
    _check_length(len(array), n_samples, name=name)
    return _in_range(array, name=name, upper=upper).astype(np.float64)


def _check_length(length: int, n_samples: int | None, *, name: str) -> None:
    if n_samples is not None and length != n_samples:
        raise ValueError(f"{name} has {length} samples, the other arguments have {n_samples}")


def _in_range(array: np.ndarray, *, name: str, upper: float | None) -> np.ndarray:
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must be real numbers, got dtype {array.dtype}")
    low, high = array.min(), array.max()
    allowed = "finite and >= 0" if upper is None else "in [0, 1]"
    if not (np.isfinite(low) and np.isfinite(high)):
        n_bad = np.count_nonzero(~np.isfinite(array))
        raise ValueError(f"{name} must be {allowed}, got {n_bad} values that are NaN or infinite")
    if low >= 0 and (upper is None or high <= upper):
        return array
    if low < -ROUNDING or (upper is not None and high > upper + ROUNDING):
        raise ValueError(f"{name} must be {allowed}, got values in [{low}, {high}]")
    return np.clip(array, 0, upper)
