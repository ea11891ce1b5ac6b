"""The loss of evidential networks for two classes (Sensoy, Kaplan & Kandemir 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

#: Of either sign, where logits are clipped before they are exponentiated, as in the authors' code.
MAX_EXPONENT = 10.0


def evidence(logits: torch.Tensor, activation: Literal["relu", "softplus", "exp"]) -> torch.Tensor:
    """Return the evidence of each class, not negative.

    Parameters
    ----------
    logits : tensor of any shape
    activation : {"relu", "softplus", "exp"}
        ``exp`` is that of the logits clipped to ±`MAX_EXPONENT`.

    Examples
    --------
    >>> evidence(torch.tensor([-1.0, 2.0]), "relu")
    tensor([0., 2.])
    """
    if activation == "relu":
        return logits.clamp_min(0)
    if activation == "softplus":
        return torch.nn.functional.softplus(logits)
    return logits.clamp(-MAX_EXPONENT, MAX_EXPONENT).exp()


@dataclass(frozen=True)
class EvidentialLoss:
    r"""Expected squared error under a Dirichlet law, and its divergence from the uniform law.

    With evidence e_k of class k, α_k = e_k + 1, S = α_0 + α_1 and p = α_1 / S, the loss of a
    label y is that of equation 5 of the paper, for two classes
    2·[(y − p)² + p(1 − p)/(S + 1)], plus λ_t·KL(Dir(α̃) ‖ Dir(1)), where α̃ is α with that of
    the true class put to 1. For two classes, a being that of the wrong one, the divergence is
    ln a + 1/a − 1. λ_t = min(1, t / ``annealing_epochs``), t being the number of epochs done.

    Attributes
    ----------
    activation : {"relu", "softplus", "exp"}
        What makes logits evidence.
    annealing_epochs : int
        Epochs until the divergence has its full weight; 0: from the start.
    """

    activation: Literal["relu", "softplus", "exp"]
    annealing_epochs: int

    def __call__(
        self, logits: torch.Tensor, targets: torch.Tensor, epoch: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the losses and their gradients, as a `Loss` of the networks."""
        done = epoch - 1
        weight = done / self.annealing_epochs if done < self.annealing_epochs else 1.0
        # (..., 2) -> (2, ...)
        by_class = logits.movedim(-1, 0).contiguous()
        alpha = evidence(by_class, self.activation).add(1)
        strength = alpha[0] + alpha[1]
        p = alpha[1] / strength
        residual, variance = p - targets, p * (1 - p)
        # α of the wrong class: 1 and 0 are wrong for the labels 0 and 1.
        wrong = torch.stack([targets, 1 - targets])
        alpha_wrong = (alpha * wrong).sum(0)
        losses = 2 * (residual * residual + variance / (strength + 1))
        losses = losses + weight * (alpha_wrong.log() + 1 / alpha_wrong - 1)

        by_p = 2 * (2 * residual + (1 - 2 * p) / (strength + 1)) / strength
        by_strength = -2 * variance / (strength + 1).square()
        by_alpha = torch.stack([by_strength - by_p * p, by_strength + by_p * (1 - p)])
        by_alpha += wrong * (weight * (alpha_wrong - 1) / alpha_wrong.square())
        return losses, (by_alpha * self._slope(by_class, alpha)).movedim(0, -1)

    def _slope(self, logits: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
        if self.activation == "relu":
            return (logits > 0).to(logits.dtype)
        if self.activation == "softplus":
            return logits.sigmoid()
        return (alpha - 1) * (logits.abs() < MAX_EXPONENT)
