"""Predictions made elsewhere: files of hypotheses from another framework."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from epistemic_calibration.methods.base import Predictions, check_predictions

#: Arrays of a file of predictions that may be left out.
OPTIONAL_ARRAYS = ("epistemic_uncertainty", "prediction")


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
        and ``epistemic_uncertainty``, and one column for each hypothesis.

    Returns
    -------
    dict of str to ndarray
        The arrays by these names; ``y_true`` as uint8, the others as float32.

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
    try:
        checked = check_predictions(Predictions(**arrays), n_samples=len(y_true), task=path.stem)
    except RuntimeError as error:
        raise PredictionsError(f"{path}: {error}") from error
    return {**checked, "y_true": y_true.astype(np.uint8)}


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in ("hypotheses", "y_true") if name not in file.files]
            if missing:
                raise PredictionsError(
                    f"{path} lacks {' and '.join(missing)}; it holds {', '.join(file.files)}"
                )
            names = ("hypotheses", "y_true", *OPTIONAL_ARRAYS)
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
    arrays = {n: table.pop(n).to_numpy() for n in ("y_true", *OPTIONAL_ARRAYS) if n in table}
    text = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    if text:
        raise PredictionsError(f"{path}: column(s) {', '.join(text)} hold no numbers")
    return {**arrays, "hypotheses": table.to_numpy()}
