"""Numbers and labels from whatever holds them: tensors, data frames, masked arrays, lists."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from epistemic_calibration.predictions._words import PredictionsError, listed

# Sums of probabilities in single precision end this far outside [0, 1] at most.
_ROUNDING = 1e-6
_LABELS_IN_WORDS = ({"0": 0, "1": 1}, {"false": 0, "true": 1})


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
    if array.dtype.names:
        raise PredictionsError(
            f"{name} holds records with the fields {listed(array.dtype.names)}: give an array each"
        )
    if array.dtype.kind == "V":
        # bfloat16 of JAX and TensorFlow.
        try:
            array = array.astype(np.float32)
        except (TypeError, ValueError):
            raise PredictionsError(
                f"{name} has dtype {array.dtype}: give {name}.astype('float32')"
            ) from None
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
    if hasattr(value, "isna"):
        return int(np.asarray(value.isna()).sum())
    return 0


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
    if not items:
        return array.astype(float)
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


def to_labels(value: Any) -> np.ndarray:
    """Return ``y_true`` as uint8 of shape (n_samples,)."""
    labels = to_numpy("y_true", value)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        one_hot = labels.ndim == 2 and labels.shape[1] == 2 and np.isin(labels, (0, 1)).all()
        hint = ": give y_true[:, 1]" if one_hot else ""
        raise PredictionsError(
            f"y_true must be a vector of 0 and 1, but has shape {labels.shape}{hint}"
        )
    if labels.size == 0:
        raise PredictionsError("y_true has no samples")
    refuse_missing_labels(labels)
    values = np.unique(labels)
    if labels.dtype.kind == "U":
        words = {str(v): str(v).strip().casefold() for v in values[:3]}
        for known in _LABELS_IN_WORDS:
            if len(values) <= 2 and set(words.values()) <= set(known):
                return np.array([known[words[label]] for label in labels.tolist()], np.uint8)
    elif np.isin(values, (0, 1)).all():
        return labels.astype(np.uint8)
    raise PredictionsError(
        f"y_true must be a vector of 0 and 1, but has {len(values)} different value(s), "
        f"{'among them ' if len(values) > 5 else ''}{values[:5].tolist()}: {_label_advice(values)}"
    )


def refuse_missing_labels(labels: np.ndarray) -> None:
    """Refuse labels that are NaN."""
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise PredictionsError(
            f"y_true has {np.count_nonzero(np.isnan(labels))} missing values (NaN), the first for "
            f"sample {np.isnan(labels).argmax()} (counted from 0): leave these samples out, in all "
            f"arrays"
        )


def _label_advice(values: np.ndarray) -> str:
    if values.dtype.kind == "U":
        return f"say which is the positive class, such as y_true == {str(values[-1])!r}"
    if set(values.tolist()) <= {-1, 1}:
        # −1 is also a usual mark of a missing label, so that this is not for us to decide.
        return "give (y_true > 0), if -1 is the negative class and no missing label"
    if np.any(values != np.floor(values)):
        return "labels are no probabilities; how many of several labels are positive is n_positive"
    if len(values) == 2:
        return f"say which is the positive class, such as y_true == {values[-1].item()!r}"
    return (
        "score one class against the rest, y_true == c with the probabilities of class c, or all "
        "with hypotheses of shape (n_samples, n_hypotheses, n_classes), in a file an .npz"
    )


def to_vector(name: str, value: Any, n_samples: int) -> np.ndarray:
    """Return numbers of shape (n_samples,), one for each label."""
    vector = to_numbers(name, value)
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.shape != (n_samples,):
        raise PredictionsError(f"{name} has shape {vector.shape}, expected ({n_samples},)")
    return vector


def to_numbers(name: str, value: Any) -> np.ndarray:
    """Return real numbers as an array of floats, of any shape."""
    array = to_numpy(name, value)
    if array.dtype.kind == "U":
        text = array.ravel()[0] if array.size else ""
        raise PredictionsError(
            f"{name} holds text, such as {listed([text])}: give numbers, {name}.astype(float)"
        )
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def finite_within(
    name: str, array: np.ndarray, low: float, high: float, *, columns: list[str] | None = None
) -> np.ndarray:
    """Return an array with rounding beyond its range taken away; refuse what is outside it."""

    def place(wrong: np.ndarray) -> str:
        n, *column = np.argwhere(wrong)[0].tolist()
        j = f", column {columns[column[0]]!r}" if column and columns else ""
        j = j or (f", hypothesis {column[0]}" if column else "")
        return f"sample {n}{j} (counted from 0)"

    wrong = ~np.isfinite(array)
    if wrong.any():
        raise PredictionsError(
            f"{name} has {np.count_nonzero(wrong)} values that are NaN or infinite, of "
            f"{array.size}, the first for {place(wrong)}: leave these samples out, in all arrays"
        )
    wrong = (array < low - _ROUNDING) | (array > high + _ROUNDING)
    if wrong.any():
        expected = f"in [{low:g}, {high:g}]" if np.isfinite(high) else f">= {low:g}"
        advice = _range_advice(array) if np.isfinite(high) else ""
        raise PredictionsError(
            f"{name} lies in [{array.min():.6g}, {array.max():.6g}], expected values {expected}; "
            f"the first outside is for {place(wrong)}{advice}"
        )
    return np.clip(array, low, high)


def _range_advice(array: np.ndarray) -> str:
    low, high = array.min(), array.max()
    if low >= -0.05 and high <= 1.05:
        return ". If this is rounding, give numpy.clip(..., 0, 1)"
    if low >= -_ROUNDING and 20 < high <= 100:
        return ". If these are percentages, divide by 100"
    if high <= 0:
        return ". If these are logarithms of probabilities, give their numpy.exp"
    if low < 0 < high:
        return ". If these are logits, give scipy.special.expit of them"
    return ""
