"""Evidential k nearest neighbours (Denœux 1995)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from epistemic_calibration.latents._neighbors import nearest_neighbors
from epistemic_calibration.methods._gaussian import GaussianMethod
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed

logger = logging.getLogger("epistemic_calibration")


@dataclass(kw_only=True, eq=False)
class EvidentialKNN(GaussianMethod):
    """Each neighbour is a piece of evidence, combined by Dempster's rule.

    Neighbour i supports its class with mass φ_i = alpha · exp(−(d_i / d̄)^beta), d̄ being the
    mean distance between training points, and leaves 1 − φ_i to the whole frame
    Θ = {0, 1}. With q_c = Π (1 − φ_i) over the neighbours of class c and
    Z = q_1 + q_0 − q_1 q_0, the normalised combination is m_1 = (1 − q_1) q_0 / Z,
    m_0 = (1 − q_0) q_1 / Z, m_Θ = q_1 q_0 / Z. The prediction is the pignistic
    probability h = m_1 + m_Θ / 2; the epistemic uncertainty is m_Θ.

    References
    ----------
    Denœux, "A k-nearest neighbor classification rule based on Dempster-Shafer theory",
    IEEE Transactions on Systems, Man and Cybernetics 25, 1995.
    """

    label: ClassVar[str] = "EK-NN"
    uses_neighbors: ClassVar[bool] = True

    n_neighbors: int = parameter(
        12,
        ge=1,
        description="nearest training points that are combined, or all where there are fewer; "
        "12 in the paper's appendix",
    )
    alpha: float = parameter(
        0.4,
        gt=0,
        lt=1,
        description="mass of a neighbour at distance 0; 0.4 in the paper's appendix",
    )
    beta: float = parameter(
        0.5, gt=0, description="exponent of the relative distance; 0.5 in the paper's appendix"
    )
    n_pairs: int = parameter(
        10_000,
        ge=1,
        description="pairs of distinct training points whose mean distance estimates d̄; ours",
    )

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Store the training points and estimate their mean distance.

        Raises
        ------
        ValueError
            If there are fewer than two training points.
        """
        if len(X) < 2:
            raise ValueError(f"X has {len(X)} training point(s); a mean distance needs at least 2")
        self.X_ = X
        self.y_ = np.asarray(y).astype(np.int64)
        self.n_neighbors_ = min(self.n_neighbors, len(X))
        if self.n_neighbors_ < self.n_neighbors:
            logger.info(
                "eknn: %d training points, fewer than %d neighbours: using all of them",
                len(X),
                self.n_neighbors,
            )
        self.mean_distance_ = self._mean_distance(X)
        return self

    def _mean_distance(self, X: np.ndarray) -> float:
        rng = np.random.default_rng(derive_seed(self.random_state, "pairs"))
        first = rng.integers(len(X), size=self.n_pairs)
        second = (first + rng.integers(1, len(X), size=self.n_pairs)) % len(X)
        differences = X[first].astype(np.float64) - X[second]
        return float(np.linalg.norm(differences, axis=1).mean())

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return h(x) and EU(x) at ``X``, each of shape (n_samples,)."""
        if self.neighbors is None:
            distances, indices = nearest_neighbors(self.X_, X, self.n_neighbors_)
        else:
            distances, indices = self.neighbors.nearest(self.n_neighbors_)
        labels = self.y_[indices]

        # Where all training points coincide d̄ is 0: any other point is infinitely far.
        relative = np.divide(
            distances,
            self.mean_distance_,
            out=np.where(distances > 0, np.inf, 0.0),
            where=self.mean_distance_ > 0,
        )
        doubts = 1 - self.alpha * np.exp(-(relative**self.beta))
        q_1 = np.where(labels == 1, doubts, 1.0).prod(axis=1)
        q_0 = np.where(labels == 0, doubts, 1.0).prod(axis=1)
        normalizer = q_1 + q_0 - q_1 * q_0
        ignorance = q_1 * q_0 / normalizer
        return (1 - q_1) * q_0 / normalizer + ignorance / 2, ignorance
