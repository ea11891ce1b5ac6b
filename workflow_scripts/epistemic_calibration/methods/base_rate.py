"""The constant base rate, a control: it knows nothing of x and is sure of it."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from epistemic_calibration.methods.base import Method


class BaseRate(Method):
    """Every hypothesis is the fraction of positive training labels, at every input.

    Its epistemic uncertainty is 0, and where the base rate of the test set is that of the
    training set, so are its ECE and EECE: calibration alone says nothing of skill.

    Parameters
    ----------
    n_hypotheses : int
        Number of identical hypotheses.
    random_state : int
        Not used.
    """

    label: ClassVar[str] = "Base rate"
    family: ClassVar = "control"
    parameter_schema: ClassVar = {"n_hypotheses": {"type": "integer", "minimum": 1}}

    def __init__(self, *, n_hypotheses: int = 10, random_state: int = 0) -> None:
        self.n_hypotheses = n_hypotheses
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Store the fraction of positive labels; ``X`` is not used."""
        self.base_rate_ = float(np.mean(y))
        return self

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the base rate, shape (n_samples, n_hypotheses)."""
        return np.full((len(X), self.n_hypotheses), self.base_rate_)
