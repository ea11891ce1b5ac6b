"""Hypotheses of several classes: which axis is which, and which class a label is."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from epistemic_calibration.predictions._arrays import (
    finite_within,
    refuse_missing_labels,
    to_numbers,
    to_numpy,
)
from epistemic_calibration.predictions._words import PredictionsError, listed

#: Letters of the axes, in the order that everything else takes: samples, hypotheses, classes.
AXES = "nhc"

# Files round to two decimals.
_SUM_TOLERANCE = 1e-2
_MIN_SAMPLES = 4
_HOW = (
    "Say which axis is which with axes= (--axes in the command): 'nhc' is (n_samples, "
    "n_hypotheses, n_classes), 'hnc' a list of predict_proba, 'nch' samples on the last axis"
)


def n_axes(hypotheses: Any) -> int:
    """Return the number of axes of what holds hypotheses, without converting it where it can."""
    if isinstance(hypotheses, (list, tuple)) and hypotheses:
        return 1 + n_axes(hypotheses[0])
    ndim = getattr(hypotheses, "ndim", None)
    return ndim if isinstance(ndim, int) else np.ndim(hypotheses)


def class_arrays(
    y_true: Any, hypotheses: Any, axes: Any = None, class_names: Any = None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return labels 0, 1, ..., hypotheses (n_samples, n_hypotheses, n_classes), and class names.

    Raises
    ------
    PredictionsError
        As the functions below.
    """
    n_names = None
    if class_names is not None:
        class_names = _names(class_names)
        n_names = len(class_names)
    array = to_numbers("hypotheses", hypotheses)
    ordered = in_order(array, len(label_vector(y_true)), axes, n_names)
    classes, names = to_class_labels(y_true, ordered.shape[2], class_names)
    return classes, to_class_hypotheses(ordered, classes), names


def in_order(array: np.ndarray, n_samples: int, axes: Any, n_names: int | None) -> np.ndarray:
    """Return an array of three axes as (n_samples, n_hypotheses, n_classes).

    Parameters
    ----------
    array : ndarray with three axes
    n_samples : int
        Of ``y_true``.
    axes : str or None
        The letters of `AXES` in the order of the array, or None to tell them apart.
    n_names : int or None
        How many classes have names.

    Raises
    ------
    PredictionsError
        If ``axes`` are wrong, or cannot be told.
    """
    seen = f"hypotheses has shape {array.shape}"
    if axes is not None:
        order = _declared(axes)
        samples, _, classes = (order.index(letter) for letter in AXES)
        said = f"{seen}, and axes={order!r}"
        if n_names not in (None, array.shape[classes]):
            raise PredictionsError(
                f"{said} says that it has {array.shape[classes]} classes; class_names has {n_names}"
            )
        if array.shape[samples] != n_samples:
            raise PredictionsError(
                f"{said} says that its axis {samples} is the samples: it has "
                f"{array.shape[samples]}, y_true has {n_samples}"
            )
        if not _adds_up(array, classes):
            raise PredictionsError(
                f"{said} says that its axis {classes} is the classes, whose probabilities must "
                f"add up to 1{_sums(array, classes)}"
            )
        return array.transpose([order.index(letter) for letter in AXES])
    is_classes = [_adds_up(array, axis) for axis in range(3)]
    fitting = [
        "".join(order)
        for order in itertools.permutations(AXES)
        if array.shape[order.index("n")] == n_samples
        and is_classes[order.index("c")]
        and n_names in (None, array.shape[order.index("c")])
    ]
    if len(fitting) == 1:
        return array.transpose([fitting[0].index(letter) for letter in AXES])
    seen += ", three axes, as several classes have"
    if fitting:
        raise PredictionsError(f"{seen}, and may be {' or '.join(map(repr, fitting))}. {_HOW}")
    if n_samples not in array.shape:
        raise PredictionsError(f"{seen}, none of them with the {n_samples} samples of y_true")
    if not any(is_classes):
        raise PredictionsError(
            f"{seen}, along none of which the values add up to 1, as probabilities of classes do"
            f"{_sums(array, int(np.argmin([_distance(array, axis) for axis in range(3)])))}"
        )
    classes = is_classes.index(True)
    if n_names is not None and n_names != array.shape[classes]:
        raise PredictionsError(
            f"class_names has {n_names} names, and hypotheses of shape {array.shape} add up to 1 "
            f"along the axis with {array.shape[classes]}"
        )
    raise PredictionsError(
        f"{seen}, and only axis {classes} has the {n_samples} samples of y_true and adds up to 1. "
        f"{_HOW}"
    )


def _declared(axes: Any) -> str:
    letters = str(np.asarray(axes)[()]).strip().casefold()
    if sorted(letters) != sorted(AXES):
        raise PredictionsError(
            f"axes must be the letters n (samples), h (hypotheses) and c (classes) in the order "
            f"of the array, such as 'nhc' or 'hnc', got {letters!r}"
        )
    return letters


def _distance(array: np.ndarray, axis: int) -> float:
    if array.size == 0:
        return np.inf
    distance = np.abs(array.sum(axis=axis, dtype=np.float64) - 1).max()
    return float(distance) if np.isfinite(distance) else np.inf


def _adds_up(array: np.ndarray, axis: int) -> bool:
    return array.shape[axis] > 1 and _distance(array, axis) <= _SUM_TOLERANCE


def _sums(array: np.ndarray, axis: int) -> str:
    """Return the end of a sentence on sums that are not 1."""
    wrong = np.count_nonzero(~np.isfinite(array))
    if wrong:
        return f"; it has {wrong} values that are NaN or infinite, of {array.size}"
    if array.size and array.min() < 0:
        return ". If these are logits, give scipy.special.softmax of them, along the classes"
    sums = array.sum(axis=axis, dtype=np.float64)
    if not sums.size:
        return "; it is empty"
    return (
        f"; along axis {axis} sums lie in [{sums.min():.4g}, {sums.max():.4g}]. Of labels that "
        f"do not exclude each other, give one class at a time"
    )


def to_class_labels(value: Any, n_classes: int, class_names: Any) -> tuple[np.ndarray, list[str]]:
    """Return the class 0, 1, ... of every sample, and the names of the classes.

    Raises
    ------
    PredictionsError
        If a label is none of the classes, or names are not as many and all different.
    """
    labels = label_vector(value)
    names = None if class_names is None else _names(class_names)
    text = names if names is not None else np.arange(n_classes)
    shown = [str(name) for name in text.tolist()]
    if labels.dtype.kind == "U":
        if names is None:
            raise PredictionsError(
                f"y_true holds names, {listed(np.unique(labels)[:5])}: give class_names, all names "
                f"in the order of the classes of hypotheses (of scikit-learn, model.classes_)"
            )
        return _positions(labels, np.array(shown), shown), shown
    refuse_missing_labels(labels)
    if names is not None and names.dtype.kind in "buif":
        return _positions(labels, names, shown), shown
    wrong = ~((labels >= 0) & (labels < n_classes) & (labels == np.floor(labels)))
    if wrong.any():
        values = np.unique(labels)
        advice = ""
        if np.array_equal(values, np.arange(1, n_classes + 1)):
            advice = ": if classes are counted from 1, subtract 1"
        elif len(values) <= n_classes and values.min() >= 0:
            advice = ": if these are names of classes, give them as class_names"
        raise PredictionsError(
            f"y_true has labels such as {labels[wrong][0].item():g}, and must have the classes 0 "
            f"to {n_classes - 1}, as hypotheses have {n_classes}{advice}"
        )
    return labels.astype(np.int64), shown


def label_vector(value: Any) -> np.ndarray:
    """Return labels of any kind as a vector with samples."""
    labels = to_numpy("y_true", value)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        one_hot = labels.ndim == 2 and labels.dtype.kind in "buif"
        one_hot = one_hot and bool((np.isin(labels, (0, 1)).all() & (labels.sum(1) == 1)).all())
        hint = ": give y_true.argmax(axis=1)" if one_hot else ""
        raise PredictionsError(
            f"y_true must be a vector of labels, but has shape {labels.shape}{hint}"
        )
    if labels.size == 0:
        raise PredictionsError("y_true has no samples")
    return labels


def _names(value: Any) -> np.ndarray:
    names = to_numpy("class_names", value)
    if names.ndim != 1 or len(np.unique(names)) < len(names):
        raise PredictionsError(
            f"class_names must be a vector of different names, got "
            f"{'shape ' + str(names.shape) if names.ndim != 1 else listed(names.tolist())}"
        )
    return names


def _positions(labels: np.ndarray, names: np.ndarray, shown: list[str]) -> np.ndarray:
    order = np.argsort(names)
    found = np.minimum(np.searchsorted(names, labels, sorter=order), len(names) - 1)
    positions = order[found]
    wrong = names[positions] != labels
    if wrong.any():
        raise PredictionsError(
            f"y_true has {listed(np.unique(labels[wrong]).tolist(), 5)}, which class_names lacks: "
            f"{listed(shown)}"
        )
    return positions.astype(np.int64)


def to_class_hypotheses(array: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return hypotheses in order, in [0, 1]; refuse labels among them.

    Raises
    ------
    PredictionsError
        If a value is not in [0, 1], or one of the hypotheses is the labels themselves.
    """
    array = finite_within("hypotheses", array, 0, 1)
    n_samples = len(array)
    if n_samples < _MIN_SAMPLES or len(np.unique(classes)) < 2:
        return array
    right = np.take_along_axis(array, classes[:, None, None], axis=2)[:, :, 0] == 1
    leaks = right.all(axis=0)
    if leaks.any() and not ((array == 0) | (array == 1)).all():
        raise PredictionsError(
            f"hypotheses: number {int(leaks.argmax())} is y_true itself, a leak of the labels: "
            f"leave it out"
        )
    return array


def to_label_counts(value: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return how many labels of each class an input has, int64 (n_samples, n_classes)."""
    counts = to_numbers("label_counts", value)
    if counts.shape != shape:
        raise PredictionsError(
            f"label_counts has shape {counts.shape}; it must be {shape}, how many labels of each "
            f"class every sample has"
        )
    wrong = ~((counts >= 0) & (counts == np.floor(counts)) & np.isfinite(counts))
    if wrong.any():
        n, c = np.argwhere(wrong)[0].tolist()
        raise PredictionsError(
            f"label_counts must be integers >= 0, got {counts[n, c]:g} for sample {n}, class {c}"
        )
    return counts.astype(np.int64)


def to_groups(value: Any, n_samples: int) -> np.ndarray:
    """Return the group 0, 1, ... of every sample; equal values are one group."""
    groups = to_numpy("groups", value)
    if groups.ndim == 2 and groups.shape[1] == 1:
        groups = groups[:, 0]
    if groups.shape != (n_samples,):
        raise PredictionsError(f"groups has shape {groups.shape}, expected ({n_samples},)")
    if groups.dtype.kind == "f" and np.isnan(groups).any():
        raise PredictionsError(
            f"groups has {np.count_nonzero(np.isnan(groups))} missing values, the first for sample "
            f"{np.isnan(groups).argmax()} (counted from 0): inputs of unknown group would be one "
            f"group"
        )
    values, first, labels = np.unique(groups, return_index=True, return_inverse=True)
    # By their first samples, so that nothing random depends on what they are called.
    labels = np.argsort(np.argsort(first))[labels]
    if len(values) < 2 <= n_samples:
        raise PredictionsError(
            f"groups are all {values[0].item()!r}: without two groups or more nothing can be said"
        )
    return labels.astype(np.int64)
