"""Monte Carlo dropout (Gal & Ghahramani 2016)."""

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
    from epistemic_calibration.networks import Dropout


class MCDropout(NetworkMethod):
    """A network whose hidden activations are dropped at random, in training and in prediction.

    Parameters
    ----------
    n_hypotheses : int
        Number of passes.
    drop_probabilities : sequence of float
        Of zeroing an activation, for each hidden layer; 0.3 and 0.2 in the paper.
    mask_sharing : {"point", "function"}
        ``point``: each input of a pass has its own mask, as in the paper; hypothesis j is
        then not a function of x, but a fresh draw at each input. ``function``: one mask for
        all inputs of a pass.
    hidden_sizes : sequence of int
        Units of each hidden layer, with ReLU.
    n_epochs, batch_size : int
    learning_rate : float
        Step of Adam.
    device : {"auto", "cpu", "cuda"}
    random_state : int
    """

    label: ClassVar[str] = "MC-Dropout"
    parameter_schema: ClassVar = {
        "n_hypotheses": {
            "description": "passes, each with its own masks",
            "type": "integer",
            "minimum": 1,
        },
        "drop_probabilities": {
            "description": "probability of zeroing an activation, for each hidden layer",
            "type": "array",
            "items": DROP_PROBABILITY_SCHEMA,
            "minItems": 1,
        },
        "mask_sharing": {
            "description": "a new mask for each input (point), or one function a pass (function)",
            "enum": ["point", "function"],
        },
        **NETWORK_PARAMETER_SCHEMA,
    }

    def __init__(
        self,
        *,
        n_hypotheses: int = 100,
        drop_probabilities: Sequence[float] = (0.3, 0.2),
        mask_sharing: Literal["point", "function"] = "point",
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
        if mask_sharing not in ("point", "function"):
            raise ValueError(f"mask_sharing={mask_sharing!r} must be 'point' or 'function'")
        self.n_hypotheses = n_hypotheses
        self.drop_probabilities = drop_probabilities
        self.mask_sharing = mask_sharing

    def noise(self) -> Dropout:
        """Return the masks of the activations."""
        from epistemic_calibration.networks import Dropout

        return Dropout(tuple(self.drop_probabilities))

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return each pass's probabilities, shape (n_samples, n_hypotheses)."""
        from epistemic_calibration.networks import dropout_hypotheses

        return dropout_hypotheses(
            self.networks_,
            X,
            self.noise(),
            n_hypotheses=self.n_hypotheses,
            shared_masks=self.mask_sharing == "function",
            seed=derive_seed(self.random_state, 0),
            device=self.device,
        )
