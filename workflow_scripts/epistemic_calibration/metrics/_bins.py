"""Sums over bins, of which the corrected errors are made."""

from __future__ import annotations

import numpy as np


def hidden_variance(noise: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """Return the variance of labels of which n are all the same, and so do not show it.

    It is that of Bernoulli(Δ), or of the largest frequency at which as many labels are the
    same with a probability of 5 % ("rule of three"), whichever is smaller.
    """
    frequency = np.minimum(1 - 0.05 ** (1 / n), 0.5)
    return np.minimum(noise, frequency * (1 - frequency))


def variance_of_one_class(noise: np.ndarray, n: np.ndarray, one_class: np.ndarray) -> np.ndarray:
    """Return the least variance of the labels of bins, 0 where they are of both classes.

    It is that of `hidden_variance`, and no less than what the labels of all such bins together
    may hide. Predictions of exactly 0 or 1 would else pass for certain that no label contradicts.
    ``noise`` is the mean of Δ(1 − Δ) in each bin, ``n`` the number of samples, or groups.
    """
    together = hidden_variance(np.array(np.inf), max(1, int(n[one_class].sum())))
    return np.where(one_class, np.maximum(hidden_variance(noise, n), together), 0)


class Bins:
    """What the bins of two samples or more say about the error e = y − Δ.

    Arrays have an entry for each of these bins, but for ``used``, which says of all bins, in the
    order of their labels, whether they are among them.
    """

    n: np.ndarray
    w: np.ndarray  # weights
    pairs: np.ndarray  # ordered pairs of samples
    noise: np.ndarray  # sum of Δ(1 − Δ)
    noise_squared: np.ndarray  # sum of its squares
    error: np.ndarray  # mean of e
    squared_error: np.ndarray  # (E[e | bin])² without bias: mean of e_i e_k over ordered pairs
    least_variance: np.ndarray  # of `variance_of_one_class`
    s2: np.ndarray  # variance of e, at least that

    def __init__(self, y: np.ndarray, mean: np.ndarray, labels: np.ndarray) -> None:
        count = np.bincount(labels)
        used = count > 1
        if not used.any():
            raise ValueError("every sample is alone in its bin: use fewer bins")
        self.used = used
        self.dropped_mass = float(count[~used].sum() / len(y))
        self.n = count[used]
        self.w = self.n / self.n.sum()
        self.pairs = self.n * (self.n - 1.0)
        error, noise = y - mean, mean * (1 - mean)
        third = noise * (1 - 2 * mean)
        powers = (error, error**2, noise, noise**2, noise**3, third, third**2)
        sums, squares, *self._powers = (np.bincount(labels, weights=v)[used] for v in powers)
        self.noise, self.noise_squared = self._powers[:2]
        self.error = sums / self.n
        self.squared_error = (sums**2 - squares) / self.pairs
        positives = np.bincount(labels, weights=y)[used]
        one_class = (positives == 0) | (positives == self.n)
        self.least_variance = variance_of_one_class(self.noise / self.n, self.n, one_class)
        variance = (squares - sums**2 / self.n) / (self.n - 1)
        self.s2 = np.maximum(variance, self.least_variance)

    def calibrated_cumulants(self) -> tuple[float, float]:
        """Return variance and third cumulant of the estimate where P(Y = 1 | Π) = Δ, exactly."""
        v, v2, v3, m, m2 = self._powers
        shares = self.w / self.pairs
        cubes = 8 * (v**3 - 3 * v * v2 + 2 * v3) + 4 * (m**2 - m2)
        return max(float(2 * shares**2 @ (v**2 - v2)), 0.0), float(shares**3 @ cubes)
