"""Deep ensemble (Lakshminarayanan et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from epistemic_calibration.methods._network import NETWORK_PARAMETER_SCHEMA, NetworkMethod


class DeepEnsemble(NetworkMethod):
    """Networks that differ in their initial weights and order of samples; each is a hypothesis.

    Parameters
    ----------
    n_members : int
        Number of networks, and so of hypotheses; 10 in the paper.
    hidden_sizes : sequence of int
        Units of each hidden layer, with ReLU.
    n_epochs, batch_size : int
    learning_rate : float
        Step of Adam.
    device : {"auto", "cpu", "cuda"}
    random_state : int
    """

    label: ClassVar[str] = "Deep Ensemble"
    parameter_schema: ClassVar = {
        "n_members": {
            "description": "networks, and so hypotheses",
            "type": "integer",
            "minimum": 1,
        },
        **NETWORK_PARAMETER_SCHEMA,
    }

    def __init__(
        self,
        *,
        n_members: int = 10,
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
        self.n_members = n_members

    @property
    def n_networks(self) -> int:
        """Networks of one task."""
        return self.n_members

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the members' probabilities, shape (n_samples, n_members)."""
        from epistemic_calibration.networks import predict_proba

        return predict_proba(self.networks_, X, device=self.device)
