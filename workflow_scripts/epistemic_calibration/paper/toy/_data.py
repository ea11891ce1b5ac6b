"""Training and test sets of the experiments, methods fitted on them, and the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from epistemic_calibration.methods import Method, Predictions, user_file
from epistemic_calibration.methods._tasks import load_told, predict_tasks
from epistemic_calibration.paper.toy._mixture import (
    sample_mixture,
    sample_training_set,
    true_probability,
)
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed


@dataclass(kw_only=True, eq=False)
class Oracle(Method):
    """The true P(Y = 1 | x) of the mixture, a control that needs no training.

    The hypotheses are p(x) + spread · min(p(x), 1 − p(x)) · u_j with u_j evenly spaced on
    [−1, 1]. Their mean is p(x), so that the TECE is 0 whatever the spread: epistemic
    calibration asks for the right mean in every level set, and allows any dispersion around
    it. Nothing is drawn, so ``random_state`` is not used.
    """

    label: ClassVar[str] = "Oracle"
    family: ClassVar[str] = "control"
    exchangeable: ClassVar[bool] = False

    spread: float = parameter(
        0.0, ge=0, le=1, description="width of the hypotheses around the truth; 0: all equal it"
    )
    n_hypotheses: int = parameter(100, ge=2, description="hypotheses at each input")

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Do nothing."""
        return self

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return hypotheses around the truth, shape (n_samples, n_hypotheses)."""
        p = true_probability(X)[:, None]
        offsets = np.linspace(-1, 1, self.n_hypotheses)
        return p + self.spread * np.minimum(p, 1 - p) * offsets


class ExperimentData:
    """Training and test set of one experiment and seed, the same for all methods.

    Parameters
    ----------
    experiment : str
    seed : int
    n_train : int
        At least 2.
    n_test : int
        0 for no test set.

    Attributes
    ----------
    key : tuple
        First parts of all seeds that the experiment derives.
    X_train, X_test : ndarray of shape (n_samples, 2), float32
    y_train, y_test : ndarray of shape (n_samples,), labels in {0, 1}
    """

    def __init__(self, experiment: str, seed: int, n_train: int, n_test: int) -> None:
        self.key = ("toy", experiment, seed)
        self.X_train, self.y_train = sample_training_set(
            n_train, derive_seed(*self.key, "training", n_train)
        )
        if n_test:
            self.X_test, self.y_test = sample_mixture(n_test, derive_seed(*self.key, "test"))

    def fit_predict(
        self,
        method: str,
        implementation: str | None,
        parameters: Mapping[str, Any] | None,
        X: np.ndarray | None = None,
    ) -> Predictions:
        """Fit a method on the training set and return its predictions.

        Parameters
        ----------
        method : str
            Its name; the seed of the fit depends on it.
        implementation : str, optional
            Registered name or file of the method, or ``oracle``; by default ``method``.
        parameters : mapping, optional
            Parameters of the method; by default its own defaults. ``min_steps`` is 1 where it
            is one of them.
        X : ndarray of shape (n_samples, 2), optional
            Where to predict; by default at the test set.

        Raises
        ------
        ValueError
            If there is no such method.
        """
        implementation = implementation or method
        cls = Oracle if implementation == "oracle" else load_told(implementation)
        parameters = dict(parameters or {})
        if "min_steps" in cls.default_parameters():
            # The paper's toy sets are as small as this, and its networks make its epochs.
            parameters["min_steps"] = 1
        fitted = predict_tasks(
            cls,
            self.X_train,
            self.y_train[:, None],
            self.X_test if X is None else X,
            parameters=parameters,
            random_states=[derive_seed(*self.key, method)],
            path=user_file(implementation),
        )
        return next(fitted)


def point_prediction(predictions: Predictions) -> np.ndarray:
    """Return the estimates of P(Y = 1 | x), shape (n_samples,): a method's own, or the mean."""
    if predictions.prediction is not None:
        return predictions.prediction
    return predictions.hypotheses.mean(axis=1, dtype=np.float64)
