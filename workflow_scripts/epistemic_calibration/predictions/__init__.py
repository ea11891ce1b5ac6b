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
from epistemic_calibration.predictions._columns import hypotheses_among
from epistemic_calibration.predictions._files import read_file
from epistemic_calibration.predictions._words import COUNTS, OPTIONAL_ARRAYS, PredictionsError

__all__ = ["COUNTS", "OPTIONAL_ARRAYS", "PredictionsError", "as_predictions", "read_predictions"]

logger = logging.getLogger("epistemic_calibration")


def read_predictions(
    path: str | Path, *, hypotheses: str | Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """Read and check one file of predictions of a binary task.

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
        the whole law.
    hypotheses : str or sequence of str, optional
        Which columns of a table are hypotheses: their names, or what their names begin with
        before a number; other columns are then left out. Of an ``.npz``, the name of the array.
        Without it they are the columns called ``h0``, ``h1``, ... (also ``member_0``,
        ``sample 0``, ``tree0``, ``0`` and the like), and a further column is an error.

    Returns
    -------
    dict of str to ndarray
        ``y_true`` as uint8, ``n_positive`` and ``n_labels`` as int64, the others as float32;
        ``exchangeable`` where it is False. Which columns were taken is logged.

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
        contents = read_file(path, hypotheses)
        arrays, doubts = _checked(contents.arrays, contents.columns)
    except PredictionsError as error:
        raise PredictionsError(f"{path}: {error}") from None
    for note in contents.notes:
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
    exchangeable: bool = True,
) -> dict[str, np.ndarray]:
    """Check predictions of a binary task that are in memory, as `read_predictions` checks files.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, 1)
        Labels: 0 and 1 as numbers, booleans, ``"0"`` and ``"1"``, or ``"False"`` and ``"True"``.
    hypotheses : array-like of shape (n_samples, n_hypotheses)
        Estimates of P(Y = 1 | x) in [0, 1]; what exceeds the range by at most 1e-6 is clipped.
        Arrays, data frames and tensors, whether or not they require a gradient.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        The model's own, a variance in [0, 1/4], where it is not that of the hypotheses.
    prediction : array-like of shape (n_samples,), optional
        The model's own P(Y = 1 | x), where it is not the mean of the hypotheses.
    n_positive : array-like of int, shape (n_samples,), optional
        How many labels of each input are positive.
    n_labels : int or array-like of int, shape (n_samples,), optional
        Of how many.
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
    arrays, doubts = _checked(given, columns)
    for doubt in gaps + doubts:
        warnings.warn(doubt, UserWarning, stacklevel=2)
    return arrays


def _checked(
    given: Mapping[str, Any], columns: list[str] | None = None
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the arrays and warnings; ``columns`` are the names of the hypotheses in a table."""
    y_true = to_labels(given["y_true"])
    n_samples = len(y_true)
    counts = _counts(given, n_samples)
    exchangeable = np.asarray(given.get("exchangeable", True))
    if exchangeable.shape != () or exchangeable.dtype.kind != "b":
        raise PredictionsError("exchangeable must be True or False")
    hypotheses, doubts = to_hypotheses(given["hypotheses"], y_true, columns)
    reported = {n: to_vector(n, given[n], n_samples) for n in OPTIONAL_ARRAYS if n in given}
    if "prediction" in reported:
        reported["prediction"], more = check_prediction(reported["prediction"], hypotheses, y_true)
        doubts += more
    if "epistemic_uncertainty" in reported:
        reported["epistemic_uncertainty"] = check_uncertainty(
            reported["epistemic_uncertainty"], hypotheses
        )
    doubts += repeated_samples(hypotheses, y_true)
    predictions = Predictions(hypotheses, exchangeable=bool(exchangeable), **reported)
    arrays = check_predictions(predictions, n_samples=n_samples, task="")
    return {**arrays, **counts, "y_true": y_true}, doubts


def _counts(given: Mapping[str, Any], n_samples: int) -> dict[str, np.ndarray]:
    """Return the several labels per input, checked."""
    from epistemic_calibration.metrics.second_order import check_counts

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
