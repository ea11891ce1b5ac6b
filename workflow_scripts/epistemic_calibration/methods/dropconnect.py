"""DropConnect (Wan et al. 2013) as an approximate Bayesian network (Mobiny et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from epistemic_calibration.methods._network import (
    DROP_PROBABILITY_SCHEMA,
    NETWORK_PARAMETER_SCHEMA,
    NetworkMethod,
)
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    from epistemic_calibration import networks


class DropConnect(NetworkMethod):
    """A network whose weights are masked at random, in training and in prediction.

    Masks are inverse-scaled Bernoulli variables on the weights and biases. Each pass of the
    fitted network has one mask for all inputs: it is a function, and a hypothesis.

    Parameters
    ----------
    n_hypotheses : int
        Number of passes.
    drop_probability : float
        Of zeroing a weight; 0.3 in the paper.
    layers : {"hidden", "all"}
        Layers with masks: the hidden ones, as in the paper, or the output layer too.
    hidden_sizes : sequence of int
        Units of each hidden layer, with ReLU.
    n_epochs, batch_size : int
    learning_rate : float
        Step of Adam.
    device : {"auto", "cpu", "cuda"}
    random_state : int
    """

    label: ClassVar[str] = "DropConnect"
    parameter_schema: ClassVar = {
        "n_hypotheses": {
            "description": "passes, each with its own masks",
            "type": "integer",
            "minimum": 1,
        },
        "drop_probability": {
            "description": "probability of zeroing a weight",
            **DROP_PROBABILITY_SCHEMA,
        },
        "layers": {
            "description": "layers with masks: the hidden ones, or the output layer too",
            "enum": ["hidden", "all"],
        },
        **NETWORK_PARAMETER_SCHEMA,
    }

    def __init__(
        self,
        *,
        n_hypotheses: int = 100,
        drop_probability: float = 0.3,
        layers: Literal["hidden", "all"] = "hidden",
        hidden_sizes: Sequence[int] = (100, 20),
        n_epochs: int = 20,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        super().__init__(
            hidden_sizes=hidden_sizes,
            n_epochs=n_epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            device=device,
            random_state=random_state,
        )
        if layers not in ("hidden", "all"):
            raise ValueError(f"layers={layers!r} must be 'hidden' or 'all'")
        self.n_hypotheses = n_hypotheses
        self.drop_probability = drop_probability
        self.layers = layers

    def noise(self) -> networks.DropConnect:
        """Return the masks of the weights."""
        from epistemic_calibration import networks

        return networks.DropConnect(self.drop_probability, output_layer=self.layers == "all")

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return each pass's probabilities, shape (n_samples, n_hypotheses)."""
        from epistemic_calibration.networks import dropconnect_hypotheses

        return dropconnect_hypotheses(
            self.networks_,
            X,
            self.noise(),
            n_hypotheses=self.n_hypotheses,
            seed=derive_seed(self.random_state, 0),
            device=self.device,
        )
