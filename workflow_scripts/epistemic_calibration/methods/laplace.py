"""Last-layer Laplace approximation (Daxberger et al. 2021)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from epistemic_calibration.methods._network import NetworkMethod
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    import torch


@dataclass(kw_only=True, eq=False)
class LastLayerLaplace(NetworkMethod):
    """A network with a Gaussian posterior of its last layer, by laplace-torch.

    The posterior's precision is the generalised Gauss-Newton matrix of the cross-entropy at
    the trained weights, plus a prior precision that maximises the marginal likelihood. A
    hypothesis is the network with a draw of the last layer (``pred_type="nn"``), a function
    of x; the linearised predictive ("glm") would draw a noise vector for all inputs instead.
    The network is trained on ``device``; the Laplace approximation is made on the CPU.
    """

    label: ClassVar[str] = "Laplace"

    n_hypotheses: int = parameter(
        100, ge=1, description="draws of the last layer's weights; 100 in the paper"
    )
    hessian_structure: Literal["full", "diag"] = parameter(
        "full", description="structure of the last layer's posterior precision"
    )

    def after_training(self, X: np.ndarray, y: np.ndarray) -> None:
        """Approximate the posterior of the last layer."""
        import torch
        from laplace import Laplace
        from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

        # What the hidden layers make of the inputs is fixed: the last layer is a model of its
        # own, and its Laplace approximation is the last-layer approximation of the network.
        data = TensorDataset(self._features(X), torch.from_numpy(np.asarray(y).astype(np.int64)))
        # Batches are read by one index array each; loading them point by point takes longer
        # than all the rest.
        batches = BatchSampler(SequentialSampler(data), 4096, drop_last=False)
        output = self.networks_.weights[-1][0]
        # Layers and data loaders draw from the global state.
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            last_layer = torch.nn.Linear(len(output) - 1, output.shape[1], dtype=torch.float64)
            last_layer.weight.copy_(torch.from_numpy(output[:-1].T))
            last_layer.bias.copy_(torch.from_numpy(output[-1]))
        with torch.random.fork_rng(devices=[]):
            self.laplace_ = Laplace(
                torch.nn.Sequential(torch.nn.Identity(), last_layer),  # must have a layer before
                "classification",
                subset_of_weights="last_layer",
                hessian_structure=self.hessian_structure,
            )
            self.laplace_.fit(DataLoader(data, sampler=batches, batch_size=None))
            with warnings.catch_warnings():
                # It concerns the linearised predictive only.
                warnings.filterwarnings("ignore", message="By default `link_approx`")
                self.laplace_.optimize_prior_precision(method="marglik", pred_type="nn")

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return each draw's probabilities, shape (n_samples, n_hypotheses)."""
        import torch

        generator = torch.Generator().manual_seed(derive_seed(self.random_state, "weights"))
        with torch.no_grad():
            probabilities = self.laplace_.predictive_samples(
                self._features(X),
                pred_type="nn",
                n_samples=self.n_hypotheses,
                generator=generator,
            )
        return np.ascontiguousarray(probabilities[:, :, 1].T.numpy())

    def diagnostics(self) -> dict[str, float]:
        """Return the loss of the last epoch, in nats, and the prior precision."""
        return {
            **super().diagnostics(),
            "prior_precision": float(self.laplace_.prior_precision),
        }

    def _features(self, X: np.ndarray) -> torch.Tensor:
        import torch

        from epistemic_calibration.methods.kernels.prediction import last_hidden_activations

        features = last_hidden_activations(self.networks_, X, device=self.device)[0]
        return torch.from_numpy(features).double()
