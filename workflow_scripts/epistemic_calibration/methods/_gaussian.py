"""Hypotheses for methods that have an uncertainty but no second-order distribution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epistemic_calibration.methods.base import Method, Predictions
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed


def sample_gaussian_hypotheses(
    prediction: np.ndarray,
    epistemic_uncertainty: np.ndarray,
    *,
    n_hypotheses: int,
    random_state: int,
) -> np.ndarray:
    """Draw φ ~ N(h(x), √EU(x)), clipped to [0, 1], shape (n_samples, n_hypotheses).

    The second argument of N is the standard deviation (paper, section 4). A column is not a
    function of x: neighbouring inputs get unrelated draws.
    """
    rng = np.random.default_rng(random_state)
    hypotheses = rng.standard_normal((len(prediction), n_hypotheses))
    hypotheses *= np.sqrt(epistemic_uncertainty)[:, None]
    hypotheses += np.asarray(prediction)[:, None]
    # Clipping shrinks the variance and moves the mean towards 1/2, but a hypothesis is a
    # probability, and the published values are those of clipped draws.
    return np.clip(hypotheses, 0, 1, out=hypotheses)


@dataclass(kw_only=True, eq=False)
class GaussianMethod(Method):
    """An illustrative method: hypotheses are drawn around its own prediction.

    A subclass implements ``evaluate``.
    """

    family: ClassVar[str] = "illustrative"

    n_hypotheses: int = parameter(
        200, ge=1, description="draws from N(h, √EU) for each input, clipped to [0, 1]"
    )

    @abstractmethod
    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return h(x) and EU(x) at ``X``, each of shape (n_samples,) and in [0, 1]."""

    def _sample(self, prediction: np.ndarray, epistemic_uncertainty: np.ndarray) -> np.ndarray:
        return sample_gaussian_hypotheses(
            prediction,
            epistemic_uncertainty,
            n_hypotheses=self.n_hypotheses,
            random_state=derive_seed(self.random_state, "hypotheses"),
        )

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the drawn hypotheses at ``X``."""
        return self._sample(*self.evaluate(X))

    def epistemic_uncertainty(self, X: np.ndarray) -> np.ndarray:
        """Return EU(x), the uncertainty that the method itself reports."""
        return self.evaluate(X)[1]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return h(x), which is not the mean of the clipped hypotheses."""
        return self.evaluate(X)[0]

    def predict(self, X: np.ndarray) -> Predictions:
        """Return hypotheses, uncertainty and prediction from one evaluation."""
        prediction, epistemic_uncertainty = self.evaluate(X)
        return Predictions(
            hypotheses=self._sample(prediction, epistemic_uncertainty),
            epistemic_uncertainty=epistemic_uncertainty,
            prediction=prediction,
            diagnostics=self.diagnostics(),
        )
