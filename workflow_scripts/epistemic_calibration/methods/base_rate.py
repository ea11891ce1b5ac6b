"""The constant base rate, a control: it knows nothing of x and is sure of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from epistemic_calibration.methods.base import Method
from epistemic_calibration.parameters import parameter


@dataclass(kw_only=True, eq=False)
class BaseRate(Method):
    """Every hypothesis is the fraction of positive training labels, at every input.

    Its epistemic uncertainty is 0, and where the base rate of the test set is that of the
    training set, so are its ECE and EECE: calibration alone says nothing of skill. Nothing is
    drawn, so ``random_state`` is not used.
    """

    label: ClassVar[str] = "Base rate"
    family: ClassVar[str] = "control"
    exchangeable: ClassVar[bool] = False

    n_hypotheses: int = parameter(10, ge=1, description="identical hypotheses")

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Store the fraction of positive labels; ``X`` is not used."""
        self.base_rate_ = float(np.mean(y))
        return self

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the base rate, shape (n_samples, n_hypotheses)."""
        return np.full((len(X), self.n_hypotheses), self.base_rate_)
