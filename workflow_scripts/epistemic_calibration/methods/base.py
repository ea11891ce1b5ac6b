"""The contract every method of the benchmark keeps."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

if TYPE_CHECKING:
    import numpy as np

    from epistemic_calibration.neighbors import Neighbors


@dataclass(frozen=True)
class Predictions:
    """What a fitted method says of the test points of one one-vs-all task.

    Attributes
    ----------
    hypotheses : ndarray of shape (n_samples, n_hypotheses)
        h_j(x_n), estimates of P(Y = 1 | x_n) in [0, 1].
    epistemic_uncertainty : ndarray of shape (n_samples,) or None
        The uncertainty that the method itself reports, where it is not the variance
        of the hypotheses.
    prediction : ndarray of shape (n_samples,) or None
        The method's own point prediction in [0, 1], where it is not the mean of the
        hypotheses.
    diagnostics : dict
        Numbers that tell whether the fit can be trusted (R-hat, ...), by name.
    """

    hypotheses: np.ndarray
    epistemic_uncertainty: np.ndarray | None = None
    prediction: np.ndarray | None = None
    diagnostics: dict[str, float] = field(default_factory=dict)


class Method(ABC):
    """A second-order classifier: its hypotheses are draws of P(Y = 1 | x).

    A subclass takes its parameters in ``__init__`` as keywords with defaults, and
    states their bounds in ``parameter_schema``. It implements ``fit`` and
    ``sample_hypotheses``; it may report its own ``epistemic_uncertainty`` and
    ``predict_proba``; it may override ``fit_predict_tasks`` where several tasks are
    faster together. Heavy libraries are imported inside the methods, since every
    method's class is read whenever the configuration is checked.
    """

    #: Name in tables and figures.
    label: ClassVar[str]
    #: ``active``: the reported uncertainty is the variance of the hypotheses by design;
    #: ``illustrative``: it is not, and hypotheses are drawn to fit it (paper, section 4);
    #: ``control``: a baseline whose place is known from theory.
    family: ClassVar[Literal["active", "illustrative", "control"]] = "active"
    #: JSON schema of each parameter of ``__init__`` but ``random_state``, by name.
    parameter_schema: ClassVar[dict[str, dict[str, Any]]] = {}
    #: Whether the method uses the nearest neighbours that are found once for all tasks.
    uses_neighbors: ClassVar[bool] = False

    random_state: int
    #: Precomputed neighbours of the points given to ``sample_hypotheses``, if any.
    neighbors: Neighbors | None = None

    @abstractmethod
    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit on ``X`` (n_samples, n_features) and labels ``y`` (n_samples,) in {0, 1}."""

    @abstractmethod
    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the hypotheses at ``X``, shape (n_samples, n_hypotheses), in [0, 1]."""

    def epistemic_uncertainty(self, X: np.ndarray) -> np.ndarray | None:
        """Return the method's own uncertainty, shape (n_samples,), or None for the variance."""
        return None

    def predict_proba(self, X: np.ndarray) -> np.ndarray | None:
        """Return the method's own P(Y = 1 | x), shape (n_samples,), or None for the mean."""
        return None

    def diagnostics(self) -> dict[str, float]:
        """Return numbers by name that tell whether the fit can be trusted."""
        return {}

    def predict(self, X: np.ndarray) -> Predictions:
        """Return everything that the fitted method says of ``X``."""
        return Predictions(
            hypotheses=self.sample_hypotheses(X),
            epistemic_uncertainty=self.epistemic_uncertainty(X),
            prediction=self.predict_proba(X),
            diagnostics=self.diagnostics(),
        )

    @classmethod
    def fit_predict_tasks(
        cls,
        X_train: np.ndarray,
        Y_train: np.ndarray,
        X_test: np.ndarray,
        *,
        parameters: Mapping[str, Any],
        random_states: Sequence[int],
        neighbors: Neighbors | None = None,
    ) -> Iterator[Predictions]:
        """Fit every task and yield its predictions, in the order of the tasks.

        A task's predictions depend on its own labels and seed only, not on the tasks
        it shares the call with.

        Parameters
        ----------
        X_train : ndarray of shape (n_train, n_features)
        Y_train : ndarray of shape (n_train, n_tasks), labels in {0, 1}
        X_test : ndarray of shape (n_test, n_features)
        parameters : mapping
            Keywords of ``__init__``.
        random_states : sequence of int, one per task
        neighbors : Neighbors, optional
            Nearest training points of ``X_test``.
        """
        for labels, random_state in zip(Y_train.T, random_states, strict=True):
            method = cls(**parameters, random_state=random_state)
            method.neighbors = neighbors
            yield method.fit(X_train, labels).predict(X_test)

    @classmethod
    def default_parameters(cls) -> dict[str, Any]:
        """Return the defaults of ``__init__``, without ``random_state``."""
        signature = inspect.signature(cls.__init__).parameters.values()
        return {
            p.name: p.default
            for p in signature
            if p.name not in ("self", "random_state") and p.default is not p.empty
        }
