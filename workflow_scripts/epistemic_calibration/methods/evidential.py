"""Evidential deep learning (Sensoy, Kaplan & Kandemir 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from epistemic_calibration.methods._network import NetworkMethod
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    from epistemic_calibration.methods.kernels.networks import Networks


@dataclass(kw_only=True, eq=False)
class Evidential(NetworkMethod):
    """A network whose outputs are evidence for each class: P(Y = 1 | x) has a Beta law.

    With evidence e_k ≥ 0 of class k, the law at x is Beta(e_1 + 1, e_0 + 1). Training minimises
    the expected squared error under that law, plus its divergence from the uniform law once the
    evidence of the true class is removed, whose weight grows with the epochs (equation 5 of the
    paper, and the text after it). The paper has as many classes as the data; here each
    one-vs-all task has two, for which the divergence is elementary. Evidence is the softplus of
    a logit and not its ReLU, the paper's example: where the logit of a class is negative at all
    inputs, as often at the start, nothing ever moves a ReLU, and the class never has evidence.

    With ``hypotheses="quantiles"`` the hypotheses are the quantiles of the law at (j − ½)/H,
    which are the whole law but for a little of its tails. With ``"draws"`` each input has draws
    of its own, so that hypothesis j is no function of x.

    References
    ----------
    Sensoy, Kaplan, Kandemir, "Evidential deep learning to quantify classification uncertainty",
    Advances in Neural Information Processing Systems 31, 2018 (arXiv 1806.01768).
    """

    label: ClassVar[str] = "Evidential"

    n_hypotheses: int = parameter(100, ge=1, description="quantiles or draws of the law; ours")
    hypotheses: Literal["quantiles", "draws"] = parameter(
        "quantiles", description="quantiles of the law at (j − ½)/H, or draws from it"
    )
    evidence: Literal["relu", "softplus", "exp"] = parameter(
        "softplus",
        description="what makes logits evidence; relu in its paper, which may leave a class "
        "without any for good",
    )
    annealing_epochs: int = parameter(
        10,
        ge=0,
        description="epochs until the divergence has its full weight, 0: from the start; 10 in "
        "its paper",
    )

    @property
    def exchangeable(self) -> bool:
        """Whether the hypotheses are draws; quantiles are the law itself."""
        return self.hypotheses == "draws"

    def train(self, X: np.ndarray, labels: np.ndarray, **settings: Any) -> Networks:
        """Train a network for each row of ``labels`` on the evidential loss."""
        from epistemic_calibration.methods.kernels.evidential_loss import EvidentialLoss

        loss = EvidentialLoss(self.evidence, self.annealing_epochs)
        return super().train(X, labels, loss=loss, **settings)

    def beta_parameters(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α and β of the law of P(Y = 1 | x), at least 1, each of shape (n_samples,)."""
        import torch

        from epistemic_calibration.methods.kernels.evidential_loss import evidence
        from epistemic_calibration.methods.kernels.prediction import last_hidden_activations

        hidden = last_hidden_activations(self.networks_, X, device=self.device)[0]
        output = self.networks_.weights[-1][0].astype(np.float64)
        logits = torch.from_numpy(hidden @ output[:-1] + output[-1])
        negative, positive = evidence(logits, self.evidence).add(1).numpy().T
        return positive, negative

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return quantiles or draws of each input's law, shape (n_samples, n_hypotheses)."""
        from scipy.special import betaincinv

        alpha, beta = (values[:, None] for values in self.beta_parameters(X))
        shape = (len(X), self.n_hypotheses)
        if self.hypotheses == "draws":
            rng = np.random.default_rng(derive_seed(self.random_state, "hypotheses"))
            return rng.beta(alpha, beta, size=shape)
        return betaincinv(alpha, beta, (np.arange(self.n_hypotheses) + 0.5) / self.n_hypotheses)
