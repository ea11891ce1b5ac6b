"""Fitting a method on tasks whose arrays it cannot change."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.methods import load_method, user_file
from epistemic_calibration.methods._faults import told
from epistemic_calibration.methods.base import Method, MethodError, Predictions

if TYPE_CHECKING:
    from epistemic_calibration.latents._neighbors import Neighbors


def load_told(name_or_file: str) -> type[Method]:
    """Return what `load_method` does; whatever a user's file raises is told in one line.

    Raises
    ------
    MethodError
        Naming the file, its line, and what to do.
    """
    path = user_file(name_or_file)
    try:
        return load_method(name_or_file)
    except Exception as error:
        if path is None:
            raise
        raise MethodError(f"{path}: {told(error, path)}") from error


def predict_tasks(
    method: type[Method],
    X_train: np.ndarray,
    Y_train: np.ndarray,
    X_test: np.ndarray,
    *,
    parameters: Mapping[str, Any],
    random_states: Sequence[int],
    neighbors: Neighbors | None = None,
    path: str | Path | None = None,
) -> Iterator[Predictions]:
    """Yield what `Method.fit_predict_tasks` does, on read-only arrays.

    A method that changed what it is given would spoil the tasks after it, and its numbers would
    depend on how tasks are grouped.

    ``path`` is the user's file that defines the method, whose line is named where it raises.

    Raises
    ------
    MethodError
        If a method of a user's file raises, or an array has been changed nonetheless, as through
        a tensor that shares its memory.
    """
    given = {"X_train": X_train, "Y_train": Y_train, "X_test": X_test}
    given |= {} if neighbors is None else neighbors._asdict()
    given = {name: read_only(array) for name, array in given.items()}
    shared = {name: given.pop(name) for name in ("X_train", "Y_train", "X_test")}
    digests = {name: _digest(array) for name, array in {**shared, **given}.items()}
    fitted = iter(
        method.fit_predict_tasks(
            **shared,
            parameters=parameters,
            random_states=random_states,
            neighbors=None if neighbors is None else type(neighbors)(**given),
        )
    )
    while True:
        with warnings.catch_warnings():
            # A tensor made of a read-only array can be written to, which is checked below.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
            try:
                predictions = next(fitted)
            except StopIteration:
                return
            except Exception as error:
                if path is None:
                    raise
                raise MethodError(f"{path}: {told(error, path)}") from error
        for name, array in {**shared, **given}.items():
            if _digest(array) != digests[name]:
                raise MethodError(
                    f"{path or method.__name__}: {name} has been changed in place, as a tensor "
                    f"made by torch.from_numpy allows, which spoils the tasks after it; work on a "
                    f"copy (torch.tensor(X))"
                )
        yield predictions


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to.

    Examples
    --------
    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view


def _digest(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array))
