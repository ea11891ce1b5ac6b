"""Stochastic weight averaging, Gaussian: SWAG (Maddox et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epistemic_calibration.methods._network import NetworkMethod
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    from epistemic_calibration.methods.kernels.networks import Networks


@dataclass(frozen=True)
class Moments:
    """Of the weights that stochastic gradient descent passes, as one vector each.

    Attributes
    ----------
    mean, variance : ndarray of shape (n_weights,)
        First moment, and second moment less its square; float64.
    deviations : ndarray of shape (n_weights, rank)
        Last iterates less the mean of all iterates up to each.
    """

    mean: np.ndarray
    variance: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of_iterates(cls, iterates: np.ndarray, rank: int) -> Moments:
        """Return the moments of iterates (n_iterates, n_weights), with ``rank`` deviations.

        Examples
        --------
        >>> moments = Moments.of_iterates(np.array([[1.0], [3.0], [8.0]]), rank=2)
        >>> moments.mean, moments.deviations
        (array([4.]), array([[1., 4.]]))
        """
        iterates = np.asarray(iterates, dtype=np.float64)
        counts = np.arange(1, len(iterates) + 1)[:, None]
        running_means = np.cumsum(iterates, axis=0) / counts
        return cls(
            mean=iterates.mean(axis=0),
            variance=iterates.var(axis=0),
            deviations=(iterates - running_means)[-rank:].T,
        )

    def draw(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Return draws of the weights, float64 of shape (n_draws, n_weights).

        Their law is normal with covariance ½·(diag(variance) + D Dᵀ/(rank − 1)), D being the
        deviations.
        """
        rank = self.deviations.shape[1]
        draws = rng.standard_normal((n_draws, len(self.mean))) * np.sqrt(self.variance / 2)
        along = rng.standard_normal((n_draws, rank))
        draws += along @ self.deviations.T / np.sqrt(2 * (rank - 1))
        return draws + self.mean


@dataclass(kw_only=True, eq=False)
class SWAG(NetworkMethod):
    """A normal law of the weights that stochastic gradient descent passes, epoch by epoch.

    Training by Adam, as that of the other networks, is followed by stochastic gradient descent
    with momentum at a constant rate. The weights at the end of each of its epochs give the mean,
    the variance of each weight, and the last ``rank`` deviations from the running mean; the law
    has covariance ½·(Σ_diag + D Dᵀ/(rank − 1)) (algorithm 1 of the paper). A hypothesis is the
    network with a draw of all weights, a function of x.

    From the paper depart: the first phase, which is stochastic gradient descent with a falling
    rate there; no weight decay, which the other networks do not have either; and there is no
    batch normalisation whose statistics had to be updated.

    References
    ----------
    Maddox, Izmailov, Garipov, Vetrov, Wilson, "A simple baseline for Bayesian uncertainty in
    deep learning", Advances in Neural Information Processing Systems 32, 2019 (arXiv 1902.02476).

    Raises
    ------
    ValueError
        If ``rank`` is larger than ``n_collected``.
    """

    label: ClassVar[str] = "SWAG"

    n_hypotheses: int = parameter(30, ge=1, description="draws of the weights; 30 in its paper")
    rank: int = parameter(
        20, ge=2, description="deviations that span the covariance; 20 in its paper"
    )
    n_collected: int = parameter(
        30,
        ge=2,
        description="epochs at the constant rate, after each of which weights are collected; at "
        "least the rank; ours",
    )
    constant_rate: float = parameter(
        0.01, gt=0, description="step of stochastic gradient descent; 0.01 or 0.05 in its paper"
    )
    momentum: float = parameter(
        0.9, ge=0, lt=1, description="of stochastic gradient descent; 0.9 in its paper"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > self.n_collected:
            raise ValueError(
                f"rank={self.rank} must be at most n_collected={self.n_collected}, the number of "
                f"weights that are collected"
            )

    def train(self, X: np.ndarray, labels: np.ndarray, **settings: Any) -> Networks:
        """Train a network for each row of ``labels``, and collect its iterates."""
        from epistemic_calibration.methods.kernels.networks import ConstantRate

        phase = ConstantRate(self.n_collected, self.constant_rate, self.momentum)
        return super().train(X, labels, constant_rate=phase, **settings)

    def after_training(self, X: np.ndarray, y: np.ndarray) -> None:
        """Take the moments of the iterates."""
        layers = [w[0].reshape(self.n_collected, -1) for w in self.networks_.iterates]
        self.moments_ = Moments.of_iterates(np.concatenate(layers, axis=1), self.rank)

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return each draw's probabilities, shape (n_samples, n_hypotheses)."""
        from epistemic_calibration.methods.kernels.networks import Networks
        from epistemic_calibration.methods.kernels.prediction import predict_proba

        rng = np.random.default_rng(derive_seed(self.random_state, "weights"))
        draws = self.moments_.draw(self.n_hypotheses, rng).astype(np.float32)
        shapes = [w.shape[1:] for w in self.networks_.weights]
        ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
        weights = tuple(
            layer.reshape(-1, *shape)
            for layer, shape in zip(np.split(draws, ends, axis=1), shapes, strict=True)
        )
        unknown = np.full(self.n_hypotheses, np.nan)
        return predict_proba(Networks(weights, unknown), X, device=self.device)
