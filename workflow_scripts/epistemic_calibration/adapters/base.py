"""What the adapters have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np


class ModelError(ValueError):
    """A model has no hypotheses that can be read; the message says what to do."""

    __module__ = "epistemic_calibration.adapters"


class ClassProbabilities(NamedTuple):
    """What an adapter finds.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_hypotheses, n_classes)
        Probabilities of all classes.
    classes : ndarray of shape (n_classes,)
        Their names, in this order.
    """

    values: np.ndarray
    classes: np.ndarray


class Adapter(ABC):
    """Reads the models of one library, of which a subclass's file bears the import name.

    Options of the library are further keywords of the two methods that read.
    """

    #: Name of the library, for messages.
    label: ClassVar[str]

    @abstractmethod
    def handles(self, model: Any) -> bool:
        """Return whether a model, or a member of a list, belongs to the library."""

    @abstractmethod
    def from_model(
        self, model: Any, X: Any, *, n_hypotheses: int | None, random_state: int
    ) -> ClassProbabilities:
        """Return the probabilities of a model that has several hypotheses.

        Raises
        ------
        ModelError
            If it has not.
        """

    @abstractmethod
    def from_list(
        self, models: Sequence[Any], X: Any, *, n_hypotheses: int | None, random_state: int
    ) -> ClassProbabilities:
        """Return the probabilities of two models or more, one hypothesis each."""


def name_of(model: Any) -> str:
    """Return what to call a model in a message."""
    if isinstance(model, (list, tuple)):
        return f"the list of {len(model)} models"
    return type(model).__name__


def check_number(n_hypotheses: int | None, n_members: int, *, name: str) -> None:
    """Check that nobody asks for another number of hypotheses than an ensemble has.

    Raises
    ------
    ModelError
        If somebody does, or there is one member only.
    """
    if n_members < 2:
        raise ModelError(f"{name} has {n_members} member, so no spread: fit two or more")
    if n_hypotheses not in (None, n_members):
        raise ModelError(
            f"n_hypotheses={n_hypotheses}, but {name} has {n_members} members, one hypothesis "
            f"each; n_hypotheses is for passes of dropout and draws"
        )


def stack(members: Sequence[np.ndarray], *, name: str) -> np.ndarray:
    """Return members' arrays of shape (n_samples, n_classes) with members on axis 1.

    Raises
    ------
    ModelError
        If their shapes differ.
    """
    shapes = {np.shape(member) for member in members}
    if len(shapes) > 1:
        shown = " and ".join(map(str, sorted(shapes)))
        raise ModelError(f"the members of {name} give different shapes: {shown}")
    return np.stack(members, axis=1)
