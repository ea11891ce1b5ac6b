"""DropConnect (Wan et al. 2013) as an approximate Bayesian network (Mobiny et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from epistemic_calibration.methods._network import MAX_DROP_PROBABILITY, NetworkMethod
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    from epistemic_calibration.methods.kernels import masks


@dataclass(kw_only=True, eq=False)
class DropConnect(NetworkMethod):
    """A network whose weights are masked at random, in training and in prediction.

    Masks are inverse-scaled Bernoulli variables on the weights and biases. Each pass of the
    fitted network has one mask for all inputs: it is a function, and a hypothesis.
    """

    label: ClassVar[str] = "DropConnect"

    n_hypotheses: int = parameter(100, ge=1, description="passes, each with its own masks")
    drop_probability: float = parameter(
        0.3,
        ge=0,
        le=MAX_DROP_PROBABILITY,
        description="probability of zeroing a weight; 0.3 in the paper",
    )
    layers: Literal["hidden", "all"] = parameter(
        "hidden",
        description="layers with masks: the hidden ones, as in the paper, or the output layer too",
    )

    def noise(self) -> masks.DropConnect:
        """Return the masks of the weights."""
        from epistemic_calibration.methods.kernels import masks

        return masks.DropConnect(self.drop_probability, output_layer=self.layers == "all")

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return each pass's probabilities, shape (n_samples, n_hypotheses)."""
        from epistemic_calibration.methods.kernels.prediction import dropconnect_hypotheses

        return dropconnect_hypotheses(
            self.networks_,
            X,
            self.noise(),
            n_hypotheses=self.n_hypotheses,
            seed=derive_seed(self.random_state, 0),
            device=self.device,
        )
