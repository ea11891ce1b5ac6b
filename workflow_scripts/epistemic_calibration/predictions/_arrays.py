"""Numbers, labels and names from whatever holds them: tensors, frames, masked arrays, lists."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

#: By how much probabilities in single precision may leave their range; such values are clipped.
ROUNDING = 1e-6
# Counts that are a fraction in single precision times a number of raters.
_COUNT_ROUNDING = 1e-3
WEIGHTS = (
    "weights are not taken. Draw inputs in proportion to them, rows = rng.choice(n, n, "
    "p=weight / weight.sum()), and give y_true[rows], hypotheses[rows] and groups=rows"
)
_LABELS_IN_WORDS = ({"0": 0, "1": 1}, {"false": 0, "true": 1})


class PredictionsError(ValueError):
    """Predictions are not what they must be; the message names the file, if there is one."""

    __module__ = "epistemic_calibration.predictions"


def listed(names: Iterable[object], limit: int = 10) -> str:
    """Return names in quotes, no more than ``limit`` of them and none of them long."""
    names = [str(name) for name in names]
    shown = ", ".join(
        repr(name if len(name) <= 40 else f"{name[:37]}...") for name in names[:limit]
    )
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def to_numpy(name: str, value: Any) -> np.ndarray:
    """Return a value as an array of numbers, booleans or text; nothing in it is missing."""
    if value is None:
        raise PredictionsError(f"{name} is None: give an array")
    missing = _n_missing(value)
    if missing:
        raise PredictionsError(
            f"{name} has {missing} masked or missing values: leave out the samples they belong to, "
            f"in all arrays"
        )
    try:
        array = np.asarray(_on_this_machine(value))
    # Each library has errors of its own for what it cannot turn into an array.
    except Exception as error:
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        reason = str(error).strip().partition("\n")[0][:200]
        raise PredictionsError(
            f"{name} is a {kind} that NumPy cannot read ({reason}): give a NumPy array with rows "
            f"of equal length"
        ) from None
    if array.dtype.kind == "O":
        array = _from_objects(name, array)
    # bfloat16 of JAX and TensorFlow.
    if array.dtype.kind == "V" and array.dtype.names is None:
        array = array.astype(np.float32)
    if array.dtype.kind == "S":
        array = array.astype(str)
    if array.dtype.kind not in "buifU":
        raise PredictionsError(f"{name} has dtype {array.dtype}, expected real numbers")
    return array


def _n_missing(value: Any) -> int:
    if np.ma.isMaskedArray(value):
        return int(np.ma.count_masked(value))
    if isinstance(value, (list, tuple)):
        return sum(int(np.ma.count_masked(v)) for v in value if np.ma.isMaskedArray(v))
    return int(np.asarray(value.isna()).sum()) if hasattr(value, "isna") else 0


def _on_this_machine(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any(hasattr(v, "detach") for v in value):
        return [_on_this_machine(v) for v in value]
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        # NumPy has no bfloat16.
        if value.is_floating_point() and value.element_size() < 4:
            value = value.float()
        return value.numpy()
    return value.to_numpy() if hasattr(value, "isna") else value


def _from_objects(name: str, array: np.ndarray) -> np.ndarray:
    items = array.ravel().tolist()
    for kinds, dtype in (((bool, np.bool_), bool), ((str,), str), ((numbers.Real,), float)):
        if all(isinstance(item, kinds) for item in items):
            return array.astype(dtype)
    found = sorted({type(item).__name__ for item in items})
    # NaN is unequal to itself.
    if {"NoneType", "NAType"} & set(found) or any(i != i for i in items if isinstance(i, float)):
        raise PredictionsError(
            f"{name} has missing values: leave out the samples they belong to, in all arrays"
        )
    raise PredictionsError(
        f"{name} holds Python objects of the type(s) {listed(found)}: give an array of numbers, "
        f"such as {name}.astype(float)"
    )


def to_numbers(name: str, value: Any) -> np.ndarray:
    """Return real numbers as an array of any shape, float32 or float64."""
    array = to_numpy(name, value)
    if array.dtype.kind == "U":
        text = array.ravel()[0] if array.size else ""
        raise PredictionsError(
            f"{name} holds text, such as {listed([text])}: give numbers, {name}.astype(float)"
        )
    if array.dtype.kind == "f":
        return array if array.itemsize >= 4 else array.astype(np.float32)
    return array.astype(np.float64)


def to_vector(name: str, value: Any, n_samples: int) -> np.ndarray:
    """Return numbers of shape (n_samples,), one for each label."""
    vector = _flat(to_numbers(name, value))
    if vector.shape != (n_samples,):
        raise PredictionsError(f"{name} has shape {vector.shape}, expected ({n_samples},)")
    return vector


def to_counts(name: str, value: Any) -> np.ndarray:
    """Return whole numbers >= 0 as int64; what differs from them by rounding is rounded."""
    values = _flat(to_numbers(name, value))
    rounded = np.rint(values)
    wrong = ~((rounded >= 0) & (np.abs(values - rounded) <= _COUNT_ROUNDING))
    if wrong.any():
        advice = ""
        if name == "n_positive" and np.all((values >= 0) & (values <= 1)):
            advice = "; of fractions give numpy.rint(fraction * n_labels)"
        elif np.isnan(values).any():
            advice = "; of raters with gaps give numpy.nansum(raters == 1, axis=1), and how many"
        raise PredictionsError(
            f"{name} must be integers >= 0, got {values[wrong][0]:g} for sample "
            f"{np.argwhere(wrong)[0][0]} (counted from 0){advice}"
        )
    return rounded.astype(np.int64)


def _flat(array: np.ndarray) -> np.ndarray:
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def label_vector(value: Any, *, name: str = "y_true") -> np.ndarray:
    """Return labels of any kind as a vector with samples, none of them missing."""
    labels = _flat(to_numpy(name, value))
    if labels.ndim != 1:
        hint = ""
        if labels.ndim == 2 and labels.dtype.kind in "buif" and np.isin(labels, (0, 1)).all():
            hint = ". Of indicators give y_true.argmax(axis=1)" * bool((labels.sum(1) == 1).all())
        elif labels.ndim > 2:
            hint = ". Of pixels give y_true.ravel()"
        raise PredictionsError(
            f"{name} must be a vector of labels, but has shape {labels.shape}{hint}"
        )
    if labels.size == 0:
        raise PredictionsError(f"{name} has no samples")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise PredictionsError(
            f"{name} has {np.count_nonzero(np.isnan(labels))} missing values (NaN), the first for "
            f"sample {np.isnan(labels).argmax()} (counted from 0): leave these samples out, in all "
            f"arrays"
        )
    return labels


def to_labels(
    labels: np.ndarray, n_classes: int, names: np.ndarray | None, *, name: str = "y_true"
) -> np.ndarray:
    """Return the class 0, 1, ... of every label of a `label_vector`."""
    if names is not None and (labels.dtype.kind == "U" or names.dtype.kind in "buif"):
        return _positions(labels, names)
    values = np.unique(labels)
    if labels.dtype.kind == "U":
        words = {str(value): str(value).strip().casefold() for value in values[:3]}
        for known in _LABELS_IN_WORDS:
            if n_classes == 2 and len(values) <= 2 and set(words.values()) <= set(known):
                return np.array([known[words[label]] for label in labels.tolist()])
    elif np.isin(values, np.arange(n_classes)).all():
        return labels.astype(np.int64)
    expected = "0 and 1" if n_classes == 2 else f"the classes 0 to {n_classes - 1}"
    among = "among them " if len(values) > 5 else ""
    raise PredictionsError(
        f"{name} must hold {expected}, but has {len(values)} different value(s), {among}"
        f"{values[:5].tolist()}: {_label_advice(values, n_classes)}"
    )


def _label_advice(values: np.ndarray, n_classes: int) -> str:
    if values.dtype.kind == "U":
        return (
            "give class_names, all names in the order of the classes (of scikit-learn, "
            f"model.classes_), such as class_names={values[:3].tolist()}; in a table, write numbers"
        )
    if np.any(values != np.floor(values)):
        return (
            "labels are no probabilities; of a fraction of raters give n_positive = "
            "numpy.rint(fraction * n_labels) and n_labels"
        )
    if values[-1] in (255, -100) or (values[0] in (-1, -100) and len(values) > 2):
        mark = int(values[-1] if values[-1] == 255 else values[0])
        return (
            f"if {mark} marks what to ignore, leave it out, in all arrays: keep = y_true != {mark}"
        )
    if n_classes > 2 and np.array_equal(values, np.arange(1, n_classes + 1)):
        return "if classes are counted from 1, subtract 1"
    if n_classes > 2 or len(values) == 2:
        # −1 is also a usual mark of a missing label, so that this is not for us to decide.
        return f"if these are names of classes, give class_names, such as {values[:3].tolist()}"
    return (
        "score one class against the rest, y_true == c with the probabilities of class c, or all "
        "with hypotheses of shape (n_samples, n_hypotheses, n_classes), in a file an .npz"
    )


def to_names(value: Any) -> np.ndarray:
    """Return the names of classes, text or numbers, all different."""
    names = to_numpy("class_names", value)
    if names.ndim != 1 or len(np.unique(names)) < len(names):
        raise PredictionsError(
            f"class_names must be a vector of different names, got "
            f"{'shape ' + str(names.shape) if names.ndim != 1 else listed(names.tolist())}"
        )
    return names


def _positions(labels: np.ndarray, names: np.ndarray) -> np.ndarray:
    names = names.astype(str) if labels.dtype.kind == "U" else names
    order = np.argsort(names)
    found = np.minimum(np.searchsorted(names, labels, sorter=order), len(names) - 1)
    positions = order[found]
    wrong = names[positions] != labels
    if wrong.any():
        raise PredictionsError(
            f"y_true has {listed(np.unique(labels[wrong]).tolist(), 5)}, which class_names lacks: "
            f"{listed(names)}"
        )
    return positions.astype(np.int64)


def to_groups(value: Any, n_samples: int, *, name: str = "groups") -> np.ndarray:
    """Return the group 0, 1, ... of every sample; equal values are one group."""
    groups = _flat(to_numpy(name, value))
    if groups.shape != (n_samples,):
        raise PredictionsError(f"{name} has shape {groups.shape}, expected ({n_samples},)")
    if groups.dtype.kind == "f" and np.isnan(groups).any():
        raise PredictionsError(
            f"{name} has {np.count_nonzero(np.isnan(groups))} missing values, the first for sample "
            f"{np.isnan(groups).argmax()} (counted from 0): inputs of unknown group would be one "
            f"group"
        )
    values, first, labels = np.unique(groups, return_index=True, return_inverse=True)
    # By their first samples, so that nothing random depends on what they are called.
    labels = np.argsort(np.argsort(first))[labels]
    if len(values) < 2 <= n_samples:
        raise PredictionsError(
            f"{name} are all {values[0].item()!r}: without two groups or more nothing can be said"
        )
    return labels.astype(np.int64)


def within(
    name: str, array: np.ndarray, high: float, *, columns: list[str] | None = None
) -> np.ndarray:
    """Return an array in [0, high], with rounding taken away; refuse what is outside."""
    if array.size == 0 or (array.min() >= 0 and array.max() <= high < np.inf):
        return array

    def place(wrong: np.ndarray) -> str:
        n, *column = np.argwhere(wrong)[0].tolist()
        j = f", column {columns[column[0]]!r}" if column and columns else ""
        j = j or (f", hypothesis {column[0]}" if column else "")
        return f"sample {n}{j} (counted from 0)"

    wrong = ~np.isfinite(array)
    if wrong.any():
        logs = np.isneginf(array[wrong]).all() and (array <= 0).all()
        advice = _EXP if logs else ": leave these samples out, in all arrays"
        raise PredictionsError(
            f"{name} has {np.count_nonzero(wrong)} values that are NaN or infinite, of "
            f"{array.size}, the first for {place(wrong)}{advice}"
        )
    wrong = (array < -ROUNDING) | (array > high + ROUNDING)
    if wrong.any():
        expected = f"in [0, {high:g}]" if np.isfinite(high) else ">= 0"
        advice = _range_advice(array) if np.isfinite(high) else ""
        raise PredictionsError(
            f"{name} lies in [{array.min():.6g}, {array.max():.6g}], expected values {expected}; "
            f"the first outside is for {place(wrong)}{advice}"
        )
    return np.clip(array, 0, high)


_EXP = ". If these are logarithms of probabilities, give their numpy.exp"


def _range_advice(array: np.ndarray) -> str:
    low, high = array.min(), array.max()
    if low >= -0.05 and high <= 1.05:
        return ". If this is rounding, give numpy.clip(..., 0, 1)"
    if low >= -ROUNDING and 20 < high <= 100:
        return ". If these are percentages, divide by 100"
    if low >= -ROUNDING:
        return ". If these are likelihoods of answers, divide by their sum over the answers"
    if high <= 0:
        return _EXP
    if low < 0 < high:
        return ". If these are logits, give scipy.special.expit of them"
    return ""
