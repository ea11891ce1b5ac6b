"""Predictions made elsewhere: files and arrays of hypotheses from another framework."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.predictions._arrays import PredictionsError
from epistemic_calibration.predictions._files import read_file
from epistemic_calibration.predictions._intake import Inputs, intake

if TYPE_CHECKING:
    from typing import Unpack

    from epistemic_calibration.predictions._intake import Given

__all__ = ["PredictionsError", "as_predictions", "read_predictions"]

#: Memory that the arrays of a file may take.
MAX_BYTES = 16_000_000_000

logger = logging.getLogger("epistemic_calibration")


def read_predictions(
    path: str | Path,
    *,
    hypotheses: str | Sequence[str] | None = None,
    axes: str | None = None,
    groups: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> dict[str, np.ndarray]:
    """Read and check one file of predictions, of a binary task or of several classes.

    Parameters
    ----------
    path : path
        An ``.npz`` with the arrays that `as_predictions` takes, by its names; or a table
        (``.csv``, ``.tsv``, also compressed as ``.gz``, ``.bz2`` or ``.xz``; ``.parquet``) with a
        column ``y_true``, one column for each hypothesis, called ``h0``, ``h1``, ... (also
        ``member_0``, ``sample 0``, ``tree0``, ``0`` and the like), and optionally ``prediction``,
        ``epistemic_uncertainty``, ``n_positive``, ``n_labels`` and ``groups``. Any other array or
        column is an error. Several classes go in an ``.npz``.
    hypotheses : str or sequence of str, optional
        Which columns of a table are hypotheses: their names, or what their names begin with
        before a number. Of an ``.npz``, the name of the array. What else there is is left out.
    axes : str, optional
        Which axis of three is which, as in `as_predictions`; by default what the ``.npz`` says
        in ``axes``, or what can be told.
    groups : str, optional
        The column, or the array of an ``.npz``, that holds the groups, where it is not called so.
    max_bytes : int, default 16e9
        Memory that the arrays of an ``.npz`` may take by what their headers say; more is refused
        before anything is unpacked.

    Returns
    -------
    dict of str to ndarray
        As `as_predictions`.

    Raises
    ------
    PredictionsError
        Naming the file, what is wrong with it, and what to do.

    Warns
    -----
    UserWarning
        As `as_predictions`.

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
    epistemic_calibration.predictions.PredictionsError: ...mine.csv: 'fold' ...
    >>> folder.cleanup()
    """
    inputs = read_inputs(path, hypotheses, axes, groups, max_bytes)
    return _told(inputs, f"{path}: ")


def read_inputs(
    path: str | Path,
    hypotheses: str | Sequence[str] | None = None,
    axes: str | None = None,
    groups: str | None = None,
    max_bytes: int = MAX_BYTES,
    kind_of_uncertainty: str = "variance",
) -> Inputs:
    """Return what `read_predictions` does, with doubts that are not yet said."""
    path = Path(path)
    if not path.is_file():
        raise PredictionsError(f"no such file of predictions: {path}")
    try:
        arrays, columns = read_file(path, hypotheses, groups, max_bytes)
        if axes is not None:
            arrays["axes"] = axes
        inputs = intake(**arrays, columns=columns, kind_of_uncertainty=kind_of_uncertainty)
    except (PredictionsError, PermissionError) as error:
        raise PredictionsError(f"{path}: {error}") from None
    taken = [f"columns of hypotheses: {columns}"] * (columns is not None)
    inputs.notes[:0] = [*taken, f"taken: {', '.join(arrays)}"]
    return inputs


def _told(inputs: Inputs, where: str = "") -> dict[str, np.ndarray]:
    for note in inputs.notes:
        logger.info("%s%s", where, note)
    for doubt in inputs.doubts:
        warnings.warn(f"{where}{doubt}", UserWarning, stacklevel=3)
    return inputs.arrays()


def as_predictions(y_true: Any, hypotheses: Any, **given: Unpack[Given]) -> dict[str, np.ndarray]:
    """Check predictions that are in memory, as `evaluate` and `read_predictions` do.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, 1)
        Labels: 0 and 1 as numbers, booleans, ``"0"`` and ``"1"``, or ``"False"`` and ``"True"``.
        Of several classes, numbers from 0. Or whatever ``class_names`` are.
    hypotheses : array-like of shape (n_samples, n_hypotheses), or with three axes
        Estimates of P(Y = 1 | x) in [0, 1]; what exceeds the range by at most 1e-6 is clipped.
        Arrays, data frames and tensors, whether or not they require a gradient. With three axes,
        of samples, hypotheses and classes, probabilities that add up to 1 over the classes, such
        as a list of arrays of scikit-learn's ``predict_proba``; of two classes the hypotheses of
        the second are taken.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        The model's own, a variance in [0, 1/4], where it is not that of the hypotheses. Of a law
        of which mean and variance are known, the mean is the one hypothesis, and this its
        variance.
    prediction : array-like of shape (n_samples,), optional
        The model's own P(Y = 1 | x), where it is not the mean of the hypotheses.
    n_positive : array-like of int, shape (n_samples,), optional
        How many labels of each input are positive. Rounding, as of a fraction in single precision
        times ``n_labels``, is taken away.
    n_labels : int or array-like of int, shape (n_samples,), optional
        Of how many.
    label_counts : array-like of int, shape (n_samples, n_classes), optional
        How many labels of each class an input has, in place of both; also for two classes.
    groups : array-like of shape (n_samples,), optional
        Numbers or text, equal for samples that belong together, such as copies of an image; no
        parts to be compared, which are ``by`` of `evaluate`.
    class_names : array-like of shape (n_classes,), optional
        Names, or numbers, of the classes in the order of their axis; of two axes, of the labels
        0 and 1.
    axes : str, optional
        The letters n (samples), h (hypotheses) and c (classes) in the order of three axes, such
        as ``"hnc"``. By default they are told apart by the number of samples and by the axis
        along which probabilities add up to 1, where that is possible in one way only.
    exchangeable : bool, default=True
        False where the hypotheses are no draws but the whole law, such as fixed quantiles.

    Returns
    -------
    dict of str to ndarray
        What is given, by these names: ``y_true`` as uint8, of several classes as int64,
        ``hypotheses`` as float32 or float64, counts and ``groups`` as int64 from 0,
        ``exchangeable`` where it is False.

    Raises
    ------
    PredictionsError
        Naming the array, what was found, and what to do: also where arrays have the right
        shape and range and cannot be meant, such as probabilities of classes or a column of
        labels among the hypotheses, a standard deviation as uncertainty, or counts in another
        order of inputs or classes than the labels.

    TypeError
        If there is no argument of a name.

    Warns
    -----
    UserWarning
        If ``prediction`` is far from the mean of the hypotheses, samples seem to be in more
        than once or to be cross-validated, hypotheses are votes or all equal, or ``y_true`` is
        the majority of several labels.

    Examples
    --------
    >>> arrays = as_predictions([False, True], [[0.1, 0.3], [0.8, 0.9]])
    >>> arrays["y_true"]
    array([0, 1], dtype=uint8)
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
    return _told(intake(y_true, hypotheses, **given))
