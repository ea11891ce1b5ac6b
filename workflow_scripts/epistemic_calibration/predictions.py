"""Predictions made elsewhere: files of hypotheses from another framework."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from epistemic_calibration.methods.base import Predictions, check_predictions

#: What a file of predictions may hold beside y_true and the hypotheses: what a model reports,
OPTIONAL_ARRAYS = ("epistemic_uncertainty", "prediction")
#: and several labels per input.
COUNTS = ("n_positive", "n_labels")


class PredictionsError(ValueError):
    """A file of predictions is not what it must be; the message names the file."""


def read_predictions(path: str | Path) -> dict[str, np.ndarray]:
    """Read and check one file of predictions of a binary task.

    Parameters
    ----------
    path : path
        An ``.npz`` with ``hypotheses`` (n_samples, n_hypotheses) in [0, 1], ``y_true``
        (n_samples,) in {0, 1}, and optionally ``prediction`` (n_samples,) in [0, 1] and
        ``epistemic_uncertainty`` (n_samples,), not negative, where the model reports its own;
        or a ``.csv`` with a header: a column ``y_true``, optionally columns ``prediction``
        and ``epistemic_uncertainty``, and one column for each hypothesis. Both may hold
        ``n_positive`` and ``n_labels`` (n_samples,), how many of how many labels of each input
        are positive; an ``.npz``, instead, ``label_counts`` (n_samples, 2), how many are
        negative and positive, and ``exchangeable``, False where the hypotheses are no draws but
        the whole law.

    Returns
    -------
    dict of str to ndarray
        ``y_true`` as uint8, ``n_positive`` and ``n_labels`` as int64, the others as float32;
        ``exchangeable`` where it is False.

    Raises
    ------
    PredictionsError
        Naming the file and what is wrong with it.
    """
    path = Path(path)
    if not path.is_file():
        raise PredictionsError(f"no such file of predictions: {path}")
    readers = {".npz": _read_npz, ".csv": _read_csv}
    if path.suffix not in readers:
        raise PredictionsError(f"{path}: a file of predictions ends in .npz or .csv")
    arrays = readers[path.suffix](path)
    y_true = arrays.pop("y_true")
    if y_true.ndim != 1 or not np.isin(y_true, (0, 1)).all():
        raise PredictionsError(
            f"{path}: y_true must be a vector of 0 and 1, but has shape {y_true.shape} and values "
            f"{np.unique(y_true)[:5].tolist()}"
        )
    counts = _counts(path, arrays, len(y_true))
    try:
        checked = check_predictions(Predictions(**arrays), n_samples=len(y_true), task=path.stem)
    except RuntimeError as error:
        raise PredictionsError(f"{path}: {error}") from error
    return {**checked, **counts, "y_true": y_true.astype(np.uint8)}


def _counts(path: Path, arrays: dict[str, np.ndarray], n_samples: int) -> dict[str, np.ndarray]:
    """Take the several labels per input out of the arrays of a file, checked."""
    from epistemic_calibration.metrics.second_order import check_counts

    exchangeable = arrays.pop("exchangeable", np.array(True))
    if exchangeable.shape != () or exchangeable.dtype.kind != "b":
        raise PredictionsError(f"{path}: exchangeable must be True or False")
    arrays["exchangeable"] = bool(exchangeable)
    given = {name: arrays.pop(name) for name in COUNTS if name in arrays}
    if "label_counts" in arrays:
        both = arrays.pop("label_counts")
        if given or both.ndim != 2 or both.shape[1] != 2:
            raise PredictionsError(
                f"{path}: label_counts has shape {both.shape}; it must be ({n_samples}, 2), how "
                f"many labels are negative and how many positive, in place of n_positive and "
                f"n_labels"
            )
        given = {"n_positive": both[:, 1], "n_labels": both.sum(axis=1)}
    if not given:
        return {}
    if missing := [name for name in COUNTS if name not in given]:
        raise PredictionsError(f"{path} lacks {missing[0]}, which goes with {', '.join(given)}")
    try:
        counts = dict(zip(COUNTS, check_counts(*given.values()), strict=True))
    except ValueError as error:
        raise PredictionsError(f"{path}: {error}") from error
    if len(counts["n_labels"]) != n_samples:
        raise PredictionsError(
            f"{path}: n_labels has {len(counts['n_labels'])} samples, y_true has {n_samples}"
        )
    return counts


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in ("hypotheses", "y_true") if name not in file.files]
            if missing:
                raise PredictionsError(
                    f"{path} lacks {' and '.join(missing)}; it holds {', '.join(file.files)}"
                )
            names = ("hypotheses", "y_true", *OPTIONAL_ARRAYS, *COUNTS)
            names += ("label_counts", "exchangeable")
            return {name: file[name] for name in names if name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, PredictionsError):
            raise
        raise PredictionsError(f"{path} cannot be read: {error}") from error


def _read_csv(path: Path) -> dict[str, np.ndarray]:
    import pandas as pd

    try:
        table = pd.read_csv(path)
    except ValueError as error:
        raise PredictionsError(f"{path} cannot be read: {error}") from error
    if "y_true" not in table:
        raise PredictionsError(f"{path} lacks the column y_true; it has {', '.join(table.columns)}")
    names = ("y_true", *OPTIONAL_ARRAYS, *COUNTS)
    arrays = {n: table.pop(n).to_numpy() for n in names if n in table}
    text = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    if text:
        raise PredictionsError(f"{path}: column(s) {', '.join(text)} hold no numbers")
    return {**arrays, "hypotheses": table.to_numpy()}
