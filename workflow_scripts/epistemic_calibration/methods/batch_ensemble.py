"""BatchEnsemble (Wen, Tran & Ba 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from epistemic_calibration.methods._network import NetworkMethod
from epistemic_calibration.parameters import parameter

if TYPE_CHECKING:
    from epistemic_calibration.methods.kernels.minibatches import Networks


@dataclass(kw_only=True, eq=False)
class BatchEnsemble(NetworkMethod):
    """Networks that share their weights but for factors of rank one; each is a hypothesis.

    Member m has in each layer the weights W ∘ (r_m s_mᵀ) and a bias of its own. The factors
    start as random signs and are trained along with W; the loss is the mean of the members'.

    With ``minibatches="split"`` each member has a minibatch of its own, as where the paper
    splits a large minibatch into one part for each member; with ``"tiled"`` all members have
    the same one, as in the authors' code. A part has ``batch_size`` samples, and a member sees
    every sample once in an epoch, as the members of the deep ensemble do; the paper's parts are
    smaller by the number of members, and its training is half as long again as that of one
    network. The weights start as those of the other networks, and there is no weight decay.

    References
    ----------
    Wen, Tran, Ba, "BatchEnsemble: an alternative approach to efficient ensemble and lifelong
    learning", International Conference on Learning Representations 2020 (arXiv 2002.06715).
    """

    label: ClassVar[str] = "BatchEnsemble"

    n_members: int = parameter(
        4,
        ge=1,
        description="members, and so hypotheses; 4 in its paper",
    )
    minibatches: Literal["split", "tiled"] = parameter(
        "split", description="a minibatch for each member (split), or one for all of them (tiled)"
    )

    @property
    def n_networks(self) -> int:
        """Networks of one task."""
        return self.n_members

    def train(self, X: np.ndarray, labels: np.ndarray, **settings: Any) -> Networks:
        """Train an ensemble for every ``n_members`` rows of ``labels``."""
        from epistemic_calibration.methods.kernels.batch_ensembles import train_batch_ensembles

        return train_batch_ensembles(
            X, labels, n_members=self.n_members, minibatches=self.minibatches, **settings
        )

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the members' probabilities, shape (n_samples, n_members)."""
        from epistemic_calibration.methods.kernels.prediction import predict_proba

        return predict_proba(self.networks_, X, device=self.device)
