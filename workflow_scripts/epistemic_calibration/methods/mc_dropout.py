"""Monte Carlo dropout (Gal & Ghahramani 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from epistemic_calibration.methods._network import MAX_DROP_PROBABILITY, NetworkMethod
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    from epistemic_calibration.methods.kernels.masks import Dropout


@dataclass(kw_only=True, eq=False)
class MCDropout(NetworkMethod):
    """A network whose hidden activations are dropped at random, in training and in prediction.

    With ``mask_sharing="point"`` each input of a pass has its own mask, as in the paper;
    hypothesis j is then not a function of x, but a fresh draw at each input. With
    ``"function"`` there is one mask for all inputs of a pass.
    """

    label: ClassVar[str] = "MC-Dropout"

    n_hypotheses: int = parameter(100, ge=1, description="passes, each with its own masks")
    drop_probabilities: tuple[Annotated[float, {"ge": 0, "le": MAX_DROP_PROBABILITY}], ...] = (
        parameter(
            (0.3, 0.2),
            min_length=1,
            description="probability of zeroing an activation, for each hidden layer; 0.3 and 0.2 "
            "in the paper",
        )
    )
    mask_sharing: Literal["point", "function"] = parameter(
        "point",
        description="a mask for each input of a pass (point), or one for all of them (function)",
    )

    def noise(self) -> Dropout:
        """Return the masks of the activations."""
        from epistemic_calibration.methods.kernels.masks import Dropout

        return Dropout(tuple(self.drop_probabilities))

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return each pass's probabilities, shape (n_samples, n_hypotheses)."""
        from epistemic_calibration.methods.kernels.prediction import dropout_hypotheses

        return dropout_hypotheses(
            self.networks_,
            X,
            self.noise(),
            n_hypotheses=self.n_hypotheses,
            shared_masks=self.mask_sharing == "function",
            seed=derive_seed(self.random_state, 0),
            device=self.device,
        )
