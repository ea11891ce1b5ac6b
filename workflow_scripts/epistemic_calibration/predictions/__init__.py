"""Predictions made elsewhere: files and arrays of hypotheses from another framework."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epistemic_calibration.methods.base import Predictions, check_predictions
from epistemic_calibration.predictions._arrays import to_labels, to_numbers, to_vector
from epistemic_calibration.predictions._checks import (
    check_prediction,
    check_uncertainty,
    repeated_samples,
    to_hypotheses,
)
from epistemic_calibration.predictions._classes import (
    class_arrays,
    n_axes,
    to_groups,
    to_label_counts,
)
from epistemic_calibration.predictions._columns import hypotheses_among
from epistemic_calibration.predictions._files import read_file
from epistemic_calibration.predictions._words import (
    COUNTS,
    GROUPS,
    OPTIONAL_ARRAYS,
    PredictionsError,
)

__all__ = ["COUNTS", "OPTIONAL_ARRAYS", "PredictionsError", "as_predictions", "read_predictions"]

logger = logging.getLogger("epistemic_calibration")


def read_predictions(
    path: str | Path,
    *,
    hypotheses: str | Sequence[str] | None = None,
    axes: str | None = None,
    groups: str | None = None,
) -> dict[str, np.ndarray]:
    """Read and check one file of predictions, of a binary task or of several classes.

    Parameters
    ----------
    path : path
        An ``.npz`` with ``hypotheses`` (n_samples, n_hypotheses) in [0, 1], ``y_true``
        (n_samples,) in {0, 1}, and optionally ``prediction`` (n_samples,) in [0, 1] and
        ``epistemic_uncertainty`` (n_samples,), a variance in [0, 1/4], where the model reports
        its own; or a table (``.csv``, ``.tsv``, ``.txt``, also compressed as ``.gz``, ``.bz2``
        or ``.xz``; ``.parquet``) with a column ``y_true``, optionally columns ``prediction``
        and ``epistemic_uncertainty``, and one column for each hypothesis. Both may hold
        ``n_positive`` and ``n_labels`` (n_samples,), how many of how many labels of each input
        are positive; an ``.npz``, instead, ``label_counts`` (n_samples, 2), how many are
        negative and positive, and ``exchangeable``, False where the hypotheses are no draws but
        the whole law. Both may hold ``groups`` (n_samples,), equal for samples that belong
        together.

        Of several classes, in an ``.npz`` alone, ``hypotheses`` have three axes, samples,
        hypotheses and classes in any order; ``y_true`` are the classes, as numbers from 0 or by
        the names in ``class_names`` (n_classes,); ``label_counts`` is (n_samples, n_classes).
    hypotheses : str or sequence of str, optional
        Which columns of a table are hypotheses: their names, or what their names begin with
        before a number; other columns are then left out. Of an ``.npz``, the name of the array.
        Without it they are the columns called ``h0``, ``h1``, ... (also ``member_0``,
        ``sample 0``, ``tree0``, ``0`` and the like), and a further column is an error.
    axes : str, optional
        Which axis of three is which, as in `as_predictions`; by default what the ``.npz`` says
        in ``axes``, or what can be told.
    groups : str, optional
        The column, or the array of an ``.npz``, that holds the groups, where it is not called so.

    Returns
    -------
    dict of str to ndarray
        ``y_true`` as uint8, ``n_positive`` and ``n_labels`` as int64, ``groups`` as int64 from 0,
        the others as float32; ``exchangeable`` where it is False. Which columns were taken is
        logged.

        Of several classes, ``y_true`` is int64 from 0, ``hypotheses`` (n_samples, n_hypotheses,
        n_classes), ``class_names`` text, and ``label_counts`` int64. Two classes are a binary task:
        the hypotheses are those of the second class, and ``class_names`` are given beside.

    Raises
    ------
    PredictionsError
        Naming the file, what is wrong with it, and what to do.

    Warns
    -----
    UserWarning
        As `as_predictions`; if numbers of the hypotheses are left out.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "mine.csv"
    >>> _ = path.write_text("y_true,h0,h1\\n0,0.1,0.3\\n1,0.8,0.9\\n0,0.2,0.1\\n")
    >>> read_predictions(path)["hypotheses"].shape
    (3, 2)
    >>> _ = path.write_text("y_true,h0,fold\\n0,0.1,1\\n1,0.8,0\\n")
    >>> read_predictions(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    epistemic_calibration.predictions.PredictionsError: ...mine.csv: column(s) 'fold' ...
    >>> folder.cleanup()
    """
    path = Path(path)
    if not path.is_file():
        raise PredictionsError(f"no such file of predictions: {path}")
    try:
        contents = read_file(path, hypotheses, groups)
        if axes is not None:
            contents.arrays["axes"] = axes
        arrays, doubts, notes = _checked(contents.arrays, contents.columns)
    except PredictionsError as error:
        raise PredictionsError(f"{path}: {error}") from None
    for note in [*contents.notes, *notes]:
        logger.info("%s: %s", path, note)
    for doubt in [*contents.doubts, *doubts]:
        warnings.warn(f"{path}: {doubt}", UserWarning, stacklevel=2)
    return arrays


def as_predictions(
    y_true: Any,
    hypotheses: Any,
    *,
    epistemic_uncertainty: Any = None,
    prediction: Any = None,
    n_positive: Any = None,
    n_labels: Any = None,
    label_counts: Any = None,
    groups: Any = None,
    class_names: Any = None,
    axes: str | None = None,
    exchangeable: bool = True,
) -> dict[str, np.ndarray]:
    """Check predictions that are in memory, as `read_predictions` checks files.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, 1)
        Labels: 0 and 1 as numbers, booleans, ``"0"`` and ``"1"``, or ``"False"`` and ``"True"``.
        Of several classes, numbers from 0, or whatever ``class_names`` are.
    hypotheses : array-like of shape (n_samples, n_hypotheses), or with three axes
        Estimates of P(Y = 1 | x) in [0, 1]; what exceeds the range by at most 1e-6 is clipped.
        Arrays, data frames and tensors, whether or not they require a gradient. With three axes,
        of samples, hypotheses and classes, probabilities that add up to 1 over the classes, such
        as a list of arrays of scikit-learn's ``predict_proba``.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        The model's own, a variance in [0, 1/4], where it is not that of the hypotheses.
    prediction : array-like of shape (n_samples,), optional
        The model's own P(Y = 1 | x), where it is not the mean of the hypotheses.
    n_positive : array-like of int, shape (n_samples,), optional
        How many labels of each input are positive.
    n_labels : int or array-like of int, shape (n_samples,), optional
        Of how many.
    label_counts : array-like of int, shape (n_samples, n_classes), optional
        How many labels of each class an input has, in place of both; also for two classes.
    groups : array-like of shape (n_samples,), optional
        Numbers or text, equal for samples that belong together, such as copies of an image.
    class_names : array-like of shape (n_classes,), optional
        Names, or numbers, of the classes in the order of their axis.
    axes : str, optional
        The letters n (samples), h (hypotheses) and c (classes) in the order of three axes, such
        as ``"hnc"``. By default they are told apart by the number of samples and by the axis
        along which probabilities add up to 1, where that is possible in one way only.
    exchangeable : bool, default=True
        False where the hypotheses are no draws but the whole law, such as fixed quantiles.

    Returns
    -------
    dict of str to ndarray
        As `read_predictions`.

    Raises
    ------
    PredictionsError
        Naming the array, what was found, and what to do: also where arrays have the right
        shape and range and cannot be meant, such as probabilities of classes or a column of
        labels among the hypotheses, or a standard deviation as uncertainty.

    Warns
    -----
    UserWarning
        If ``prediction`` is far from the mean of the hypotheses, or samples seem to be in more
        than once.

    Examples
    --------
    >>> arrays = as_predictions([False, True], [[0.1, 0.3], [0.8, 0.9]])
    >>> arrays["y_true"], arrays["hypotheses"].dtype
    (array([0, 1], dtype=uint8), dtype('float32'))
    >>> members = [[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]]
    >>> as_predictions(["cat", "dog"], members, class_names=["cat", "dog", "eel"], axes="hnc")[
    ...     "hypotheses"
    ... ].shape
    (2, 2, 3)
    >>> as_predictions([0, 1], [[0.9, 0.1], [0.2, 0.8]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    epistemic_calibration.predictions.PredictionsError: hypotheses has shape (2, 2), and ...
    """
    given = {
        "y_true": y_true,
        "hypotheses": hypotheses,
        "epistemic_uncertainty": epistemic_uncertainty,
        "prediction": prediction,
        "n_positive": n_positive,
        "n_labels": n_labels,
        "label_counts": label_counts,
        "groups": groups,
        "class_names": class_names,
        "axes": axes,
        "exchangeable": exchangeable,
    }
    columns, gaps = None, []
    if hasattr(hypotheses, "columns"):
        columns = [str(name) for name in hypotheses.columns]
        try:
            _, gaps = hypotheses_among(columns, "or give hypotheses[[...]].to_numpy()")
        except PredictionsError as error:
            raise PredictionsError(f"hypotheses: {error}") from None
    required = ("y_true", "hypotheses")
    given = {n: a for n, a in given.items() if a is not None or n in required}
    arrays, doubts, notes = _checked(given, columns)
    for note in notes:
        logger.info("%s", note)
    for doubt in gaps + doubts:
        warnings.warn(doubt, UserWarning, stacklevel=2)
    return arrays


def _checked(
    given: Mapping[str, Any], columns: list[str] | None = None
) -> tuple[dict[str, np.ndarray], list[str], list[str]]:
    """Return the arrays, warnings, and notes for a log.

    ``columns`` are the names of the hypotheses in a table.
    """
    exchangeable = np.asarray(given.get("exchangeable", True))
    if exchangeable.shape != () or exchangeable.dtype.kind != "b":
        raise PredictionsError("exchangeable must be True or False")
    notes: list[str] = []
    of_classes = {}
    if n_axes(given["hypotheses"]) == 3:
        arrays, notes = _of_classes(given)
        if arrays["hypotheses"].shape[2] > 2:
            doubts = []
            if GROUPS not in arrays:
                doubts = repeated_samples(arrays["hypotheses"], arrays["y_true"])
            if not exchangeable:
                arrays["exchangeable"] = np.array(False)
            return arrays, doubts, notes
        of_classes = {"class_names": arrays["class_names"]}
        given = {**given, "y_true": arrays["y_true"], "hypotheses": arrays["hypotheses"][:, :, 1]}
    else:
        for name in ("axes", "class_names"):
            if name in given:
                raise PredictionsError(
                    f"{name} is for hypotheses of three axes, samples, hypotheses and classes; "
                    f"they have {n_axes(given['hypotheses'])}"
                )
    y_true = to_labels(given["y_true"])
    n_samples = len(y_true)
    counts = _counts(given, n_samples)
    hypotheses, doubts = to_hypotheses(given["hypotheses"], y_true, columns)
    reported = {n: to_vector(n, given[n], n_samples) for n in OPTIONAL_ARRAYS if n in given}
    if "prediction" in reported:
        reported["prediction"], more = check_prediction(reported["prediction"], hypotheses, y_true)
        doubts += more
    if "epistemic_uncertainty" in reported:
        reported["epistemic_uncertainty"] = check_uncertainty(
            reported["epistemic_uncertainty"], hypotheses
        )
    groups = {}
    if GROUPS in given:
        groups = {GROUPS: to_groups(given[GROUPS], n_samples)}
    else:
        doubts += repeated_samples(hypotheses, y_true)
    predictions = Predictions(hypotheses, exchangeable=bool(exchangeable), **reported)
    arrays = check_predictions(predictions, n_samples=n_samples, task="")
    return {**arrays, **counts, **groups, **of_classes, "y_true": y_true}, doubts, notes


def _of_classes(given: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return arrays of hypotheses with three axes, also where two classes are one task."""
    from epistemic_calibration.metrics._classes import check_class_hypotheses

    y_true, hypotheses, names = class_arrays(
        given["y_true"], given["hypotheses"], given.get("axes"), given.get("class_names")
    )
    n_samples, n_hypotheses, n_classes = hypotheses.shape
    notes = [f"{n_samples} samples, {n_hypotheses} hypotheses, {n_classes} classes"]
    arrays: dict[str, np.ndarray] = {"y_true": y_true, "class_names": np.array(names)}
    if n_classes == 2:
        notes.append(f"two classes are a binary task: hypotheses are those of {names[1]!r}")
        return {**arrays, "hypotheses": hypotheses}, notes
    for name in (*OPTIONAL_ARRAYS, *COUNTS):
        if name in given:
            instead = ": give label_counts (n_samples, n_classes)" if name in COUNTS else ""
            raise PredictionsError(f"{name} is not taken with several classes{instead}")
    if "label_counts" in given:
        arrays["label_counts"] = to_label_counts(given["label_counts"], (n_samples, n_classes))
    if GROUPS in given:
        arrays[GROUPS] = to_groups(given[GROUPS], n_samples)
    try:
        check_class_hypotheses(hypotheses)
    except ValueError as error:
        raise PredictionsError(str(error)) from None
    return {**arrays, "hypotheses": hypotheses.astype(np.float32, order="C")}, notes


def _counts(given: Mapping[str, Any], n_samples: int) -> dict[str, np.ndarray]:
    """Return the several labels per input, checked."""
    from epistemic_calibration.metrics._label_counts import check_counts

    named = {n: to_numbers(n, given[n]) for n in COUNTS if n in given}
    if "label_counts" in given:
        both = to_numbers("label_counts", given["label_counts"])
        if named or both.ndim != 2 or both.shape[1] != 2:
            raise PredictionsError(
                f"label_counts has shape {both.shape}; it must be ({n_samples}, 2), how many "
                f"labels are negative and how many positive, in place of n_positive and n_labels"
            )
        named = {"n_positive": both[:, 1], "n_labels": both.sum(axis=1)}
    if not named:
        return {}
    if missing := [name for name in COUNTS if name not in named]:
        raise PredictionsError(f"lacks {missing[0]}, which goes with {', '.join(named)}")
    columns = (a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in named.values())
    try:
        counts = dict(zip(COUNTS, check_counts(*columns), strict=True))
    except ValueError as error:
        raise PredictionsError(str(error)) from None
    if len(counts["n_labels"]) != n_samples:
        raise PredictionsError(
            f"n_labels has {len(counts['n_labels'])} samples, y_true has {n_samples}"
        )
    return counts
