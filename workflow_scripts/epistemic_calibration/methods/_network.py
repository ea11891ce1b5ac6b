"""What the methods made of multilayer perceptrons share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np

from epistemic_calibration._epochs import number_of_epochs
from epistemic_calibration.methods.base import Method, Predictions
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    from epistemic_calibration.latents._neighbors import Neighbors
    from epistemic_calibration.methods.kernels.masks import DropConnect, Dropout
    from epistemic_calibration.methods.kernels.networks import Networks

#: Largest probability of a mask's zero: above, hardly anything is left to train.
MAX_DROP_PROBABILITY = 0.99


@dataclass(kw_only=True, eq=False)
class NetworkMethod(Method):
    """A method whose networks, of all tasks, are trained together.

    Network j of a task has the seed ``derive_seed(random_state, j)``.
    """

    hidden_sizes: tuple[Annotated[int, {"ge": 1}], ...] = parameter(
        (100, 20), min_length=1, description="units of each hidden layer, with ReLU"
    )
    n_epochs: int = parameter(20, ge=1, description="passes over the training set, at least")
    min_steps: int = parameter(
        500,
        ge=1,
        description="steps of the optimiser, at least: passes are added where samples are few",
    )
    batch_size: int = parameter(32, ge=1, description="samples of a minibatch")
    learning_rate: float = parameter(1e-3, gt=0, description="step of Adam")
    device: Literal["auto", "cpu", "cuda"] = parameter(
        "auto", description="where networks are trained; auto is CUDA where there is one"
    )

    @property
    def n_networks(self) -> int:
        """Networks of one task."""
        return 1

    def noise(self) -> Dropout | DropConnect | None:
        """Return the masks of training, if any."""
        return None

    def training_labels(self, y: np.ndarray) -> np.ndarray:
        """Return the labels that the networks of a task are trained on, (n_samples,)."""
        return y

    def train(
        self, X: np.ndarray, labels: np.ndarray, *, seeds: Sequence[int], **settings: Any
    ) -> Networks:
        """Train a network for each row of ``labels``, where a task's networks follow each other.

        ``settings`` are further keywords of `train_networks`.
        """
        from epistemic_calibration.methods.kernels.networks import train_networks

        return train_networks(X, labels, seeds=seeds, noise=self.noise(), **settings)

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
        """Return the mean loss of the last epoch, masks included; cross-entropy is in nats."""
        return {"final_training_loss": float(self.networks_.losses.mean())}

    @classmethod
    def _fit_together(
        cls, methods: Sequence[NetworkMethod], X: np.ndarray, labels: Sequence[np.ndarray]
    ) -> None:
        # All have the same parameters but random_state.
        first, n = methods[0], methods[0].n_networks
        of_task = [m.training_labels(np.asarray(y)) for m, y in zip(methods, labels, strict=True)]
        networks = first.train(
            X,
            np.repeat(np.stack(of_task), n, axis=0),
            seeds=[derive_seed(m.random_state, j) for m in methods for j in range(n)],
            hidden_sizes=first.hidden_sizes,
            n_epochs=number_of_epochs(
                first.n_epochs,
                min_steps=first.min_steps,
                n_samples=len(X),
                batch_size=first.batch_size,
            ),
            batch_size=first.batch_size,
            learning_rate=first.learning_rate,
            device=first.device,
        )
        for i, method in enumerate(methods):
            method.networks_ = networks[i * n : (i + 1) * n]
            method.after_training(X, of_task[i])
