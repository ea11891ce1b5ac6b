"""Deep ensemble (Lakshminarayanan et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epistemic_calibration.methods._network import NetworkMethod
from epistemic_calibration.parameters import parameter


@dataclass(kw_only=True, eq=False)
class DeepEnsemble(NetworkMethod):
    """Networks that differ in their initial weights and order of samples; each is a hypothesis."""

    label: ClassVar[str] = "Deep Ensemble"

    n_members: int = parameter(10, ge=1, description="networks, and so hypotheses; 10 in the paper")

    @property
    def n_networks(self) -> int:
        """Networks of one task."""
        return self.n_members

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the members' probabilities, shape (n_samples, n_members)."""
        from epistemic_calibration.methods.kernels.prediction import predict_proba

        return predict_proba(self.networks_, X, device=self.device)
