"""Numbers, labels and names from whatever holds them: tensors, frames, masked arrays, lists."""

from __future__ import annotations

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
_LEAVE_OUT = "leave out the samples they belong to, in all arrays"
#: From tables of labels to counts.
RATERS = (
    "of a column for each rater, also with gaps, give label_counts=numpy.stack([(raters == "
    "c).sum(axis=1) for c in classes], axis=1), of a row for each label pandas.crosstab("
    "table.input, table.label)"
)
_EXP = ". If these are logarithms of probabilities, give their numpy.exp"


class PredictionsError(ValueError):
    """Predictions are not what they must be; the message names the file, if there is one."""

    __module__ = "epistemic_calibration.predictions"


def listed(names: Iterable[object], limit: int = 10) -> str:
    """Return names in quotes, no more than ``limit`` of them and none of them long."""
    names = [str(name) for name in names]
    shown = ", ".join(repr(n if len(n) <= 40 else f"{n[:37]}...") for n in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def to_numpy(name: str, value: Any) -> np.ndarray:
    """Return a value as an array of numbers, booleans or text; nothing in it is missing."""
    if value is None:
        raise PredictionsError(f"{name} is None: give an array")
    parts = value if isinstance(value, (list, tuple)) else [value]
    missing = sum(int(np.ma.count_masked(p)) for p in parts if np.ma.isMaskedArray(p))
    missing += int(np.asarray(value.isna()).sum()) if hasattr(value, "isna") else 0
    try:
        array = np.asarray(_on_this_machine(value))
        if array.dtype.kind == "O" and not missing:
            items = array.ravel().tolist()
            # NaN is unequal to itself.
            missing = sum(item is None or item != item for item in items)
            made = np.array(items).reshape(array.shape)
            mixed = made.dtype.kind == "U" and not missing
            if mixed and not all(isinstance(item, str) for item in items):
                raise ValueError("text beside numbers, of which 1 and '1' would be one")
            array = made
    # Each library has errors of its own for what it cannot turn into an array.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0][:200]
        raise PredictionsError(
            f"{name} is a {type(value).__name__} that NumPy cannot read ({reason}): give a NumPy "
            f"array with rows of equal length"
        ) from None
    if missing:
        advice = RATERS if name in ("n_positive", "label_counts") else _LEAVE_OUT
        raise PredictionsError(f"{name} has {missing} masked or missing values: {advice}")
    # bfloat16 of JAX and TensorFlow.
    if array.dtype.kind == "V" and array.dtype.names is None:
        array = array.astype(np.float32)
    if array.dtype.kind == "S":
        array = array.astype(str)
    if array.dtype.kind not in "buifU":
        raise PredictionsError(f"{name} has dtype {array.dtype}, expected real numbers")
    return array


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


def to_numbers(name: str, value: Any) -> np.ndarray:
    """Return real numbers as an array of any shape, float32 or float64."""
    array = to_numpy(name, value)
    if array.dtype.kind == "U":
        text = listed([next((v for v in array.ravel() if not _is_number(v)), array.flat[0])])
        advice = RATERS if name == "label_counts" else "give numbers"
        raise PredictionsError(f"{name} holds text, such as {text}: {advice}")
    if array.dtype.kind == "f":
        return array if array.itemsize >= 4 else array.astype(np.float32)
    return array.astype(np.float64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def flat(array: np.ndarray) -> np.ndarray:
    """Return a single column as a vector."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def of_samples(name: str, array: np.ndarray, n_samples: int) -> np.ndarray:
    """Return an array of shape (n_samples,) or (n_samples, 1) as a vector, and refuse NaN."""
    array = flat(array)
    if array.shape != (n_samples,):
        raise PredictionsError(f"{name} has shape {array.shape}, expected ({n_samples},)")
    if array.dtype.kind == "f" and np.isnan(array).any():
        wrong = np.isnan(array)
        raise PredictionsError(
            f"{name} has {np.count_nonzero(wrong)} values that are NaN, the first for sample "
            f"{wrong.argmax()} (counted from 0): {_LEAVE_OUT}"
        )
    return array


def to_counts(name: str, value: Any) -> np.ndarray:
    """Return whole numbers >= 0 as int64; what differs from them by rounding is rounded."""
    values = flat(to_numbers(name, value))
    rounded = np.rint(values)
    wrong = ~((rounded >= 0) & (np.abs(values - rounded) <= _COUNT_ROUNDING))
    if wrong.any():
        advice = ""
        if name == "n_positive" and np.all((values >= 0) & (values <= 1)):
            advice = "; of fractions give numpy.rint(fraction * n_labels)"
        elif np.isnan(values).any():
            advice = f"; {RATERS}"
        raise PredictionsError(
            f"{name} must be integers >= 0, got {values[wrong][0]:g} for sample "
            f"{np.argwhere(wrong)[0][0]} (counted from 0){advice}"
        )
    return rounded.astype(np.int64)


def label_vector(value: Any, name: str) -> np.ndarray:
    """Return labels of any kind as a vector with samples, none of them missing."""
    labels = flat(to_numpy(name, value))
    if labels.ndim != 1 or labels.size == 0:
        hint = ". Of pixels give y_true.ravel()" if labels.ndim > 2 else ""
        if labels.ndim == 2 and labels.dtype.kind in "buif" and (labels.sum(axis=1) == 1).all():
            hint = ". Of indicators give y_true.argmax(axis=1)"
        raise PredictionsError(
            f"{name} must be a vector of labels, but has shape {labels.shape}{hint}"
        )
    return of_samples(name, labels, len(labels))


def to_labels(
    labels: np.ndarray, n_classes: int, names: np.ndarray | None, name: str
) -> np.ndarray:
    """Return the class 0, 1, ... of every label of a `label_vector`."""
    is_text = labels.dtype.kind == "U"
    if names is not None and (is_text or names.dtype.kind in "buif"):
        known = (names.astype(str) if is_text else names).tolist()
        place = {label: k for k, label in enumerate(known)}
        given = labels.tolist()
        if strange := set(given) - set(place):
            raise PredictionsError(
                f"{name} has {listed(sorted(strange), 5)}, which class_names lacks: {listed(known)}"
            )
        return np.array([place[label] for label in given], dtype=np.int64)
    values = np.unique(labels)
    if is_text:
        words = np.char.lower(np.char.strip(labels))
        for pair in (("0", "1"), ("false", "true")):
            if n_classes == 2 and np.isin(words, pair).all():
                return (words == pair[1]).astype(np.int64)
    elif np.isin(values, np.arange(n_classes)).all():
        return labels.astype(np.int64)
    expected = "0 and 1" if n_classes == 2 else f"the classes 0 to {n_classes - 1}"
    among = "among them " if len(values) > 5 else ""
    raise PredictionsError(
        f"{name} must hold {expected}, but has {len(values)} different value(s), {among}"
        f"{values[:5].tolist()}: {_label_advice(values)}"
    )


def _label_advice(values: np.ndarray) -> str:
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
    # −1 may also be the negative one of two.
    for mark in (255, -100, *([-1] if len(values) > 2 else [])):
        if mark in values:
            return f"if {mark} marks what to ignore, leave it out: keep = y_true != {mark}"
    return (
        f"if these are names of classes, give class_names, such as {values[:3].tolist()}; or score "
        f"one class against the rest, y_true == c"
    )


def to_names(value: Any) -> np.ndarray:
    """Return the names of classes, text or numbers, all different."""
    names = to_numpy("class_names", value)
    if names.ndim != 1 or len(np.unique(names)) < len(names):
        raise PredictionsError(
            f"class_names must be a vector of different names, got {listed(names.tolist())}"
        )
    return names


def to_groups(value: Any, n_samples: int, *, name: str = "groups") -> np.ndarray:
    """Return the group 0, 1, ... of every sample; equal values are one group."""
    groups = of_samples(name, flat(to_numpy(name, value)), n_samples)
    values, first, labels = np.unique(groups, return_index=True, return_inverse=True)
    if len(values) < 2 <= n_samples:
        raise PredictionsError(
            f"{name} are all {values[0].item()!r}: without two groups or more nothing can be said"
        )
    # By their first samples, so that nothing random depends on what they are called.
    return np.argsort(np.argsort(first))[labels].astype(np.int64)


def within(
    name: str, array: np.ndarray, high: float, *, columns: list[str] | None = None
) -> np.ndarray:
    """Return an array in [0, high], with rounding taken away; refuse what is outside."""
    if array.size == 0 or (array.min() >= 0 and array.max() <= high < np.inf):
        return array

    def place(wrong: np.ndarray) -> str:
        n, *column = np.argwhere(wrong)[0].tolist()
        j = f", hypothesis {column[0]}" if column else ""
        return f"sample {n}{f', column {columns[column[0]]!r}' if j and columns else j}"

    wrong = ~np.isfinite(array)
    if wrong.any():
        logs = np.isneginf(array[wrong]).all() and (array <= 0).all()
        raise PredictionsError(
            f"{name} has {np.count_nonzero(wrong)} values that are NaN or infinite, of "
            f"{array.size}, the first for {place(wrong)} (counted from 0)"
            + (_EXP if logs else f": {_LEAVE_OUT}")
        )
    wrong = (array < -ROUNDING) | (array > high + ROUNDING)
    if wrong.any():
        expected = f"in [0, {high:g}]" if np.isfinite(high) else ">= 0"
        raise PredictionsError(
            f"{name} lies in [{array.min():.6g}, {array.max():.6g}], expected values {expected}; "
            f"the first outside is for {place(wrong)} (counted from 0)"
            + (_range_advice(array) if np.isfinite(high) else "")
        )
    return np.clip(array, 0, high)


def _range_advice(array: np.ndarray) -> str:
    low, high = array.min(), array.max()
    if low >= -0.05 and high <= 1.05:
        return ". If this is rounding, give numpy.clip(..., 0, 1)"
    if low >= -ROUNDING:
        return ". If these are percentages, divide by 100" if 20 < high <= 100 else ""
    return _EXP if high <= 0 else ". If these are logits, give scipy.special.expit of them"
