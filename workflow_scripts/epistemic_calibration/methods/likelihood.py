"""Plausibility of each class from the labels of the nearest neighbours (Nguyen et al. 2022)."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from epistemic_calibration.latents._neighbors import nearest_neighbors
from epistemic_calibration.methods._gaussian import GaussianMethod
from epistemic_calibration.parameters import parameter

logger = logging.getLogger("epistemic_calibration")


@dataclass(kw_only=True, eq=False)
class Likelihood(GaussianMethod):
    """Neighbours vote for the class; few or divided neighbours leave both plausible.

    With p positive and n negative labels near x, L(t) = t^p (1 − t)^n / max is the relative
    likelihood of P(Y = 1 | x) = t. A class is plausible to the degree
    π(1) = sup_t min(L(t), 2t − 1) and π(0) = sup_t min(L(t), 1 − 2t), and the epistemic
    uncertainty is the degree to which both are. The prediction h is the vote of the
    ``n_neighbors`` nearest points, weighted by inverse distance.

    ``definition`` says which of these points count as near. ``literature``: all of them, and
    EU = min(π(1), π(0)). ``paper``: those closer than ``radius``, or the nearest alone where
    none is, and EU is half of that minimum, which reproduces the published values.

    References
    ----------
    Nguyen, Shaker, Hüllermeier, "How to measure uncertainty in uncertainty sampling for
    active learning", Machine Learning 111, 2022, equations 14 to 17.
    """

    label: ClassVar[str] = "Likelihood"
    uses_neighbors: ClassVar[bool] = True

    definition: Literal["paper", "literature"] = parameter(
        "paper",
        description="which neighbours count as near: those within the radius (paper), or all",
    )
    n_neighbors: int = parameter(
        10,
        ge=1,
        description="nearest training points that vote, or all where there are fewer; 10 in the "
        "paper's appendix",
    )
    radius: float = parameter(
        0.3,
        gt=0,
        description="distance within which a neighbour counts as near, in units of X; only for "
        "the definition paper",
    )

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Store the training points."""
        self.X_ = X
        self.y_ = np.asarray(y).astype(np.int64)
        self.n_neighbors_ = min(self.n_neighbors, len(X))
        if self.n_neighbors_ < self.n_neighbors:
            logger.info(
                "likelihood: %d training points, fewer than %d neighbours: using all of them",
                len(X),
                self.n_neighbors,
            )
        return self

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return h(x) and EU(x) at ``X``, each of shape (n_samples,)."""
        if self.neighbors is None:
            distances, indices = nearest_neighbors(self.X_, X, self.n_neighbors_)
        else:
            distances, indices = self.neighbors.nearest(self.n_neighbors_)
        labels = self.y_[indices]

        near = np.ones(labels.shape, dtype=bool)
        if self.definition == "paper":
            near = distances < self.radius
            near[:, 0] |= ~near.any(axis=1)
        n_positive = np.sum(labels & near, axis=1)
        n_negative = np.sum(near, axis=1) - n_positive

        counts, inverse = np.unique(
            np.column_stack([n_positive, n_negative]), axis=0, return_inverse=True
        )
        uncertainty = np.array([min(plausibilities(p, n)) for p, n in counts.tolist()])[inverse]
        if self.definition == "paper":
            uncertainty /= 2
        return _inverse_distance_vote(labels, distances), uncertainty


def plausibilities(n_positive: int, n_negative: int) -> tuple[float, float]:
    """Return π(1) and π(0), how plausible each class is given the labels near a point.

    Parameters
    ----------
    n_positive, n_negative : int
        Numbers of labels, not negative. Without any label both classes are fully plausible.

    Returns
    -------
    tuple of float
        π(1) = sup_t min(L(t), 2t − 1) and π(0) = sup_t min(L(t), 1 − 2t), in [0, 1].

    Examples
    --------
    >>> plausibilities(0, 0)
    (1.0, 1.0)
    >>> positive, negative = plausibilities(1, 0)
    >>> positive, round(negative, 6)
    (1.0, 0.333333)
    """
    return _plausibility(n_positive, n_negative), _plausibility(n_negative, n_positive)


def _plausibility(n_for: int, n_against: int) -> float:
    from scipy.optimize import brentq
    from scipy.special import xlog1py, xlogy

    if n_against == 0:
        return 1.0
    mode = n_for / (n_for + n_against)
    log_maximum = xlogy(n_for, mode) + xlogy(n_against, 1 - mode)

    # In s = 2t − 1. Beyond the mode L falls from 1 to 0 while s rises to 1: the supremum of
    # their minimum is where they meet. Solving for s keeps small values accurate.
    def excess(s: float) -> float:
        log_likelihood = xlog1py(n_for, s) + xlog1py(n_against, -s)
        log_likelihood -= (n_for + n_against) * np.log(2) + log_maximum
        return float(np.exp(log_likelihood) - s)

    return brentq(excess, max(2 * mode - 1, 0.0), 1.0, xtol=sys.float_info.min)


def _inverse_distance_vote(labels: np.ndarray, distances: np.ndarray) -> np.ndarray:
    # Where points coincide with the input their weight is infinite: they alone vote.
    coincide = distances == 0
    weights = np.divide(1.0, distances, out=coincide.astype(np.float64), where=~coincide)
    weights = np.where(coincide.any(axis=1, keepdims=True), coincide, weights)
    return np.sum(weights * labels, axis=1) / np.sum(weights, axis=1)
