"""The mixture of two Gaussians: samples of it, its density, and the true P(Y = 1 | x)."""

from __future__ import annotations

import numpy as np

from epistemic_calibration.seeds import derive_seed

#: Means of the negative and of the positive class (paper, appendix B.1.2).
MEANS = np.array([[2.5, 2.5], [-2.5, -2.5]])
#: Variance of each coordinate within a class (paper, appendix B.1.2).
VARIANCE = 3.0


def sample_mixture(n_samples: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X of shape (n_samples, 2), float32, and y, uint8: 1 with probability 1/2."""
    rng = np.random.default_rng(random_state)
    y = rng.integers(2, size=n_samples, dtype=np.uint8)
    X = MEANS[y] + np.sqrt(VARIANCE) * rng.standard_normal((n_samples, 2))
    return X.astype(np.float32), y


def sample_training_set(n_samples: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw at least two points as `sample_mixture` does, until both classes are present."""
    # Two points miss a class with probability 1/2, so all tries fail with probability 2^-100.
    for draw in range(100):
        X, y = sample_mixture(n_samples, derive_seed(random_state, draw))
        if 0 < np.count_nonzero(y) < n_samples:
            return X, y
    raise ValueError(f"no training set of {n_samples} points had both classes")


def true_probability(X: np.ndarray) -> np.ndarray:
    """Return P(Y = 1 | x) at ``X`` of shape (n_samples, 2), shape (n_samples,), float64.

    With equal priors and covariances the log odds are −5/3 · (x_1 + x_2).
    """
    from scipy.special import expit

    negative, positive = MEANS
    direction = (positive - negative) / VARIANCE
    return expit((np.asarray(X, dtype=np.float64) - MEANS.mean(axis=0)) @ direction)


def mixture_density(X: np.ndarray) -> np.ndarray:
    """Return the density of the mixture at ``X`` of shape (n_samples, 2), shape (n_samples,)."""
    from scipy.spatial.distance import cdist

    squares = cdist(np.asarray(X, dtype=np.float64), MEANS, "sqeuclidean")
    return np.exp(-squares / (2 * VARIANCE)).mean(axis=1) / (2 * np.pi * VARIANCE)
