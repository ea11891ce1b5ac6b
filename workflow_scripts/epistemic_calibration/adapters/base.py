"""What the readers of models have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class ModelError(ValueError):
    """A model has no hypotheses that can be read; the message says what to do."""

    __module__ = "epistemic_calibration.adapters"


def name_of(model: Any) -> str:
    """Return what to call a model in a message."""
    if isinstance(model, (list, tuple)):
        return f"the list of {len(model)} models"
    return type(model).__name__


def stack(members: Sequence[np.ndarray], n_hypotheses: int | None, *, name: str) -> np.ndarray:
    """Return members' arrays (n_samples, n_classes) with members on axis 1, as many as asked for.

    Raises
    ------
    ModelError
        If there is one member only, another number is asked for, or shapes differ.
    """
    if len(members) < 2:
        raise ModelError(f"{name} has {len(members)} member, so no spread: fit two or more")
    if n_hypotheses not in (None, len(members)):
        raise ModelError(
            f"n_hypotheses={n_hypotheses}, but {name} has {len(members)} members, one hypothesis "
            f"each; n_hypotheses is for passes of dropout and draws"
        )
    shapes = {np.shape(member) for member in members}
    if len(shapes) > 1:
        shown = " and ".join(map(str, sorted(shapes)))
        raise ModelError(f"the members of {name} give different shapes: {shown}")
    return np.stack(members, axis=1)
