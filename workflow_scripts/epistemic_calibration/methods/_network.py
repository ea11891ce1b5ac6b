"""What the methods made of multilayer perceptrons share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from epistemic_calibration.methods.base import Method, Predictions
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    from epistemic_calibration.neighbors import Neighbors
    from epistemic_calibration.networks import DropConnect, Dropout, Networks

#: Schema of the parameters that every method made of networks shares.
NETWORK_PARAMETER_SCHEMA: dict[str, dict[str, Any]] = {
    "hidden_sizes": {
        "description": "units of each hidden layer",
        "type": "array",
        "items": {"type": "integer", "minimum": 1},
        "minItems": 1,
    },
    "n_epochs": {
        "description": "passes over the training set",
        "type": "integer",
        "minimum": 1,
    },
    "batch_size": {
        "description": "samples of a minibatch",
        "type": "integer",
        "minimum": 1,
    },
    "learning_rate": {
        "description": "step of Adam",
        "type": "number",
        "exclusiveMinimum": 0,
    },
    "device": {
        "description": "where networks are trained; auto is CUDA where there is one",
        "enum": ["auto", "cpu", "cuda"],
    },
}
#: Schema of the probability of a mask's zero.
DROP_PROBABILITY_SCHEMA: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 0.99}


class NetworkMethod(Method):
    """A method whose networks, of all tasks, are trained together.

    Network j of a task has the seed ``derive_seed(random_state, j)``.

    Parameters
    ----------
    hidden_sizes : sequence of int
        Units of each hidden layer, with ReLU.
    n_epochs, batch_size : int
    learning_rate : float
        Step of Adam.
    device : {"auto", "cpu", "cuda"}
    random_state : int
    """

    #: Networks of one task.
    n_networks: int = 1

    def __init__(
        self,
        *,
        hidden_sizes: Sequence[int],
        n_epochs: int,
        batch_size: int,
        learning_rate: float,
        device: str,
        random_state: int,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state

    def noise(self) -> Dropout | DropConnect | None:
        """Return the masks of training, if any."""
        return None

    def training_labels(self, y: np.ndarray) -> np.ndarray:
        """Return the labels that the networks of a task are trained on, (n_samples,)."""
        return y

    def after_training(self, X: np.ndarray, y: np.ndarray) -> None:
        """Finish the fit of a task once ``networks_`` are trained, where there is more to it."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Train the networks and finish the fit."""
        self._fit_together([self], X, [y])
        return self

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
        """Train the networks of all tasks together, then yield each task's predictions.

        The numbers are those of `fit` and `predict` for each task alone.
        """
        methods = [cls(**parameters, random_state=seed) for seed in random_states]
        cls._fit_together(methods, X_train, Y_train.T)
        for method in methods:
            yield method.predict(X_test)

    def diagnostics(self) -> dict[str, float]:
        """Return the mean cross-entropy of the last epoch, in nats, masks included."""
        return {"final_training_loss": float(self.networks_.losses.mean())}

    @classmethod
    def _fit_together(
        cls, methods: Sequence[NetworkMethod], X: np.ndarray, labels: Sequence[np.ndarray]
    ) -> None:
        from epistemic_calibration.networks import train_networks

        # All have the same parameters but random_state.
        first, n = methods[0], methods[0].n_networks
        of_task = [m.training_labels(np.asarray(y)) for m, y in zip(methods, labels, strict=True)]
        networks: Networks = train_networks(
            X,
            np.repeat(np.stack(of_task), n, axis=0),
            seeds=[derive_seed(m.random_state, j) for m in methods for j in range(n)],
            hidden_sizes=first.hidden_sizes,
            n_epochs=first.n_epochs,
            batch_size=first.batch_size,
            learning_rate=first.learning_rate,
            noise=first.noise(),
            device=first.device,
        )
        for i, method in enumerate(methods):
            method.networks_ = networks[i * n : (i + 1) * n]
            method.after_training(X, of_task[i])
