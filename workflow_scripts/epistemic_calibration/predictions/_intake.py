"""What every door takes: `evaluate`, `as_predictions`, files, torchmetrics, the workflow."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration._label_order import is_majority, order_fault
from epistemic_calibration.metrics._classes import check_class_hypotheses
from epistemic_calibration.metrics._label_counts import check_counts
from epistemic_calibration.predictions import _checks
from epistemic_calibration.predictions._arrays import (
    RATERS,
    WEIGHTS,
    PredictionsError,
    label_vector,
    of_samples,
    to_counts,
    to_groups,
    to_labels,
    to_names,
    to_numbers,
    to_numpy,
    within,
)
from epistemic_calibration.predictions._files import hypotheses_among

#: Letters of the axes, in the order that everything else takes: samples, hypotheses, classes.
AXES = "nhc"
#: What there may be beside y_true and the hypotheses.
OPTIONAL = (
    "prediction",
    "epistemic_uncertainty",
    "n_positive",
    "n_labels",
    "label_counts",
    "groups",
)

# Files round to two decimals.
_SUM_TOLERANCE = 1e-2
_HOW = (
    "Say which axis is which with axes= (--axes in the command): 'nhc' is (n_samples, "
    "n_hypotheses, n_classes), 'hnc' a list of predict_proba, 'nch' samples on the last axis"
)
_MAJORITY = (
    "y_true is what most raters said: calibration is judged against the majority, which is surer "
    "than the raters are. Δ as an estimate of their share is judged by all labels"
)


@dataclass
class Inputs:
    """Checked arrays, with names and units as `as_predictions` documents them.

    ``label_counts`` are (n_samples, n_classes), of two classes, too; ``doubts`` are sentences for
    the user, ``notes`` for a log.
    """

    y_true: np.ndarray
    hypotheses: np.ndarray
    prediction: np.ndarray | None = None
    epistemic_uncertainty: np.ndarray | None = None
    label_counts: np.ndarray | None = None
    groups: np.ndarray | None = None
    class_names: tuple[str, ...] | None = None
    exchangeable: bool = True
    kind_of_uncertainty: str = "variance"
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what `as_predictions` does."""
        arrays = {
            name: value
            for name in ("y_true", "hypotheses", *OPTIONAL)
            if (value := getattr(self, name, None)) is not None
        }
        if self.hypotheses.ndim == 2 and "label_counts" in arrays:
            counts = arrays.pop("label_counts")
            arrays |= {"n_positive": counts[:, 1], "n_labels": counts.sum(axis=1)}
        if self.class_names is not None:
            arrays["class_names"] = np.array(self.class_names)
        if not self.exchangeable:
            arrays["exchangeable"] = np.array(False)
        return arrays

    def take(self, rows: np.ndarray) -> Inputs:
        """Return the inputs of some rows, with what was said of all of them left out."""
        parts = {
            name: value[rows]
            for name in ("y_true", "hypotheses", *OPTIONAL)
            if (value := getattr(self, name, None)) is not None
        }
        if "groups" in parts:
            parts["groups"] = np.unique(parts["groups"], return_inverse=True)[1]
        return dataclasses.replace(self, **parts, doubts=[], notes=[])


class Given(TypedDict, total=False):
    """What may be given beside the labels and the hypotheses, as `as_predictions` documents it."""

    epistemic_uncertainty: ArrayLike
    prediction: ArrayLike
    n_positive: ArrayLike
    n_labels: ArrayLike
    label_counts: ArrayLike
    groups: ArrayLike
    class_names: ArrayLike
    axes: str
    exchangeable: bool


def intake(
    y_true: Any,
    hypotheses: Any,
    *,
    class_names: Any = None,
    axes: Any = None,
    exchangeable: Any = True,
    sample_weight: Any = None,
    kind_of_uncertainty: str = "variance",
    columns: list[str] | None = None,
    **given: Any,
) -> Inputs:
    """Return checked arrays; ``given`` are those of `OPTIONAL`.

    Raises
    ------
    PredictionsError
        Naming the argument, what was found, and what is allowed or to do.
    TypeError
        If there is no such argument.
    """
    if unknown := [name for name in given if name not in OPTIONAL]:
        raise TypeError(
            f"no such argument: {unknown[0]}; there are {', '.join(Given.__annotations__)}"
        )
    if sample_weight is not None:
        raise PredictionsError(f"sample_weight: {WEIGHTS}")
    exchangeable = np.asarray(exchangeable)
    if exchangeable.shape != () or exchangeable.dtype.kind != "b":
        raise PredictionsError("exchangeable must be True or False")
    given = {name: value for name, value in given.items() if value is not None}
    y, array, names = labels_and_hypotheses(
        y_true, hypotheses, class_names=class_names, axes=axes, columns=columns
    )
    n_samples, several = len(y), array.ndim == 3
    found = Inputs(
        y, array, exchangeable=bool(exchangeable), kind_of_uncertainty=kind_of_uncertainty
    )
    found.class_names = None if names is None else tuple(str(name) for name in names.tolist())
    found.doubts += _checks.leaks_and_votes(array, y, columns)
    if several:
        found.notes.append("{} samples, {} hypotheses, {} classes".format(*array.shape))
        for name in sorted({"prediction", "n_positive", "n_labels"} & set(given)):
            raise PredictionsError(
                f"{name} is not taken with several classes; several labels per input are "
                f"label_counts (n_samples, n_classes)"
            )
    else:
        _checks.refuse_class_probabilities(array, columns)
        found.y_true = y.astype(np.uint8)
    found.doubts += _take_reported(found, given)
    if "groups" in given:
        found.groups = to_groups(given["groups"], n_samples)
    if _checks.VOTES not in found.doubts:
        found.doubts += _checks.doubts_of_equal_rows(array, y, grouped="groups" in given)
    found.label_counts = _label_counts(given, n_samples, array.shape[2] if several else 2)
    if found.label_counts is not None:
        if fault := order_fault(found.label_counts, y):
            raise PredictionsError(f"label_counts (or n_positive) do not fit y_true: {fault}")
        found.doubts += [_MAJORITY] * is_majority(found.label_counts, y)
    return found


def _take_reported(found: Inputs, given: dict[str, Any]) -> list[str]:
    """Set what the model itself reports; return what is to be doubted."""
    y, array, doubts = found.y_true, found.hypotheses, []
    for name in sorted({"prediction", "epistemic_uncertainty"} & set(given)):
        own = of_samples(name, to_numbers(name, given[name]), len(y))
        if name == "prediction":
            found.prediction, doubts = _checks.check_prediction(own, array, y)
        # Of other kinds and of several classes only the order counts.
        elif array.ndim == 2 and found.kind_of_uncertainty == "variance":
            found.epistemic_uncertainty = _checks.check_uncertainty(own, array)
        else:
            found.epistemic_uncertainty = within(name, own, np.inf)
    return doubts


def labels_and_hypotheses(
    y_true: Any,
    hypotheses: Any,
    *,
    class_names: Any = None,
    axes: Any = None,
    columns: list[str] | None = None,
    name: str = "y_true",
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return labels 0, 1, ..., hypotheses in [0, 1], and names of the classes, if there are any.

    The hypotheses have the axes samples and hypotheses, and of three classes or more classes.
    """
    if hasattr(hypotheses, "columns"):
        columns = hypotheses_among([str(column) for column in hypotheses.columns])
    array = to_numbers("hypotheses", hypotheses)
    if array.ndim > 3:
        raise PredictionsError(_of_pixels(to_numpy(name, y_true), array))
    labels = label_vector(y_true, name)
    names = None if class_names is None else to_names(class_names)
    if array.ndim == 3:
        array = _in_order(array, len(labels), axes, None if names is None else len(names))
    elif axes is not None:
        raise PredictionsError(
            f"axes is for hypotheses of three axes, samples, hypotheses and classes; they have "
            f"{array.ndim}"
        )
    elif names is not None and len(names) != 2:
        raise PredictionsError(
            f"class_names must be two, as hypotheses have two axes, got {len(names)}"
        )
    n_classes = array.shape[2] if array.ndim == 3 else 2
    y = to_labels(labels, n_classes, names, name)
    if array.ndim < 2 or len(array) != len(y) or array.size == 0:
        raise PredictionsError(_not_of_samples(array, len(y)))
    array = within("hypotheses", array, 1, columns=columns)
    if array.ndim == 3:
        names = np.arange(n_classes) if names is None else names
        try:
            array = array[:, :, 1] if n_classes == 2 else check_class_hypotheses(array)
        except ValueError as error:
            raise PredictionsError(str(error)) from None
    return y, array, names


def _not_of_samples(array: np.ndarray, n_samples: int) -> str:
    hint = ""
    if array.shape == (n_samples,):
        hint = ". For a single hypothesis, give numpy.reshape(hypotheses, (-1, 1))"
    elif array.ndim == 2 and array.shape[1] == n_samples:
        hint = ". It looks transposed: give numpy.transpose(hypotheses)"
    return f"hypotheses has shape {array.shape}, expected ({n_samples}, n_hypotheses){hint}"


def _of_pixels(labels: np.ndarray, array: np.ndarray) -> str:
    """Return how to make samples of the pixels of images."""
    seen = (
        f"y_true has shape {labels.shape}, hypotheses {array.shape}: of images, pixels are samples"
    )
    further = array.ndim - labels.ndim
    fitting = [
        axes
        for axes in itertools.combinations(range(array.ndim), further)
        if np.delete(array.shape, axes).tolist() == list(labels.shape)
    ]
    if labels.ndim < 2 or further not in (1, 2) or not fitting:
        return (
            f"{seen}. Move members, and classes behind them, to the last axes with numpy.moveaxis, "
            f"reshape the others to one, and do the same with y_true"
        )
    axes = fitting[0]
    if further == 2 and _adds_up(array, axes[0]):
        axes = axes[::-1]
    shape = ", ".join(str(array.shape[axis]) for axis in axes)
    ends = (axes[0], -1) if further == 1 else (axes, (-2, -1))
    n_images = labels.shape[0]
    return (
        f"{seen}. Give keep = y_true.ravel() != 255 (or what is to be ignored), "
        f"y_true.ravel()[keep], numpy.moveaxis(hypotheses, {ends[0]}, {ends[1]})"
        f".reshape(-1, {shape})[keep], and groups=numpy.repeat(numpy.arange({n_images}), "
        f"{labels.size // n_images})[keep]"
    )


def _in_order(array: np.ndarray, n_samples: int, axes: Any, n_names: int | None) -> np.ndarray:
    """Return an array of three axes as (n_samples, n_hypotheses, n_classes)."""
    orders = ["".join(order) for order in itertools.permutations(AXES)]
    if axes is not None:
        axes = str(np.asarray(axes)[()]).strip().casefold()
        if axes not in orders:
            raise PredictionsError(
                f"axes must be the letters n (samples), h (hypotheses) and c (classes) in the "
                f"order of the array, such as 'nhc' or 'hnc', got {axes!r}"
            )
        orders = [axes]
    misfits = {order: _misfit(array, order, n_samples, n_names) for order in orders}
    fitting = [order for order, misfit in misfits.items() if not misfit]
    if len(fitting) == 1:
        return array.transpose([fitting[0].index(letter) for letter in AXES])
    seen = f"hypotheses has shape {array.shape}, three axes, as several classes have"
    if fitting:
        raise PredictionsError(f"{seen}, and may be {' or '.join(map(repr, fitting))}. {_HOW}")
    if axes is None and 1 in array.shape:
        raise PredictionsError(
            f"{seen}; it may be an axis of length 1 that is too many: give numpy.squeeze of it"
        )
    nearest = next((o for o in orders if array.shape[o.index("n")] == n_samples), orders[0])
    raise PredictionsError(f"{seen}; with axes={nearest!r} {misfits[nearest]}")


def _misfit(array: np.ndarray, axes: str, n_samples: int, n_names: int | None) -> str:
    """Return in what an array does not have these axes, nothing if it has."""
    samples, _, classes = (axes.index(letter) for letter in AXES)
    if array.shape[samples] != n_samples:
        return (
            f"its axis {samples} is the samples: it has {array.shape[samples]}, y_true has "
            f"{n_samples}"
        )
    if n_names not in (None, array.shape[classes]):
        return f"it has {array.shape[classes]} classes; class_names has {n_names}"
    if _adds_up(array, classes):
        return ""
    why = f"its axis {classes} is the classes, whose probabilities must add up to 1"
    if wrong := np.count_nonzero(~np.isfinite(array)):
        return f"{why}; it has {wrong} values that are NaN or infinite, of {array.size}"
    if array.size and array.min() < 0:
        return f"{why}. If these are logits, give scipy.special.softmax of them, along the classes"
    sums = array.sum(axis=classes, dtype=np.float64).ravel() if array.size else np.zeros(1)
    return (
        f"{why}; along axis {classes} sums lie in [{sums.min():.4g}, {sums.max():.4g}]. Of labels "
        f"that do not exclude each other, give one class at a time"
    )


def _adds_up(array: np.ndarray, axis: int) -> bool:
    if array.shape[axis] < 2 or array.size == 0:
        return False
    # NaN is no less than anything.
    return bool(np.abs(array.sum(axis=axis, dtype=np.float64) - 1).max() <= _SUM_TOLERANCE)


def _label_counts(given: dict[str, Any], n_samples: int, n_classes: int) -> np.ndarray | None:
    """Return how many labels of each class the inputs have, (n_samples, n_classes)."""
    named = [name for name in ("n_positive", "n_labels") if name in given]
    if "label_counts" in given:
        counts = to_numbers("label_counts", given["label_counts"])
        if counts.shape != (n_samples, n_classes) or named:
            raise PredictionsError(
                f"label_counts has shape {counts.shape}; it must be ({n_samples}, {n_classes}), "
                f"how many labels of each class every sample has, in place of n_positive and "
                f"n_labels; {RATERS}"
            )
        return to_counts("label_counts", counts)
    if not named:
        return None
    if len(named) == 1:
        lacking = "n_labels" if "n_positive" in named else "n_positive"
        raise PredictionsError(f"n_positive and n_labels go together; {lacking} is missing")
    total = to_counts("n_labels", given["n_labels"])
    try:
        positive, total = check_counts(to_counts("n_positive", given["n_positive"]), total)
    except ValueError as error:
        raise PredictionsError(str(error)) from None
    if len(positive) != n_samples:
        raise PredictionsError(f"n_positive has shape {positive.shape}, expected ({n_samples},)")
    return np.stack([total - positive, positive], axis=1)
