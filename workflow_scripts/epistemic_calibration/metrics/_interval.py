"""Intervals and detection limits of estimates whose variance grows with what they estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: Probability with which ``minimum_detectable`` is found.
POWER = 0.8


def invert(estimate: float, variance_at_zero: float, slope: float, z: float) -> tuple[float, float]:
    """Return the ends of {t >= 0 : |estimate − t| <= z·sqrt(variance_at_zero + slope·t)}."""

    def ends(value: float) -> tuple[float, float]:
        middle = value + slope * z**2 / 2
        half = np.sqrt(max(middle**2 - value**2 + z**2 * variance_at_zero, 0.0))
        return float(middle - half), float(middle + half)

    # An estimate below 0 must not pass for more certain than one of 0.
    return max(0.0, ends(estimate)[0]), ends(max(estimate, 0.0))[1]


def interval(
    estimate: float, variance_at_zero: float, slope: float, level: float, third_cumulant: float
) -> tuple[float, float]:
    """Return the ends of a two-sided interval, of which the lower one allows for skewness."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    low, high = invert(estimate, variance_at_zero, slope, z)
    if third_cumulant > 0:
        for _ in range(3):
            skewness = skewness_of(third_cumulant, variance_at_zero + slope * low)
            z = chi_square_quantile(0.5 + level / 2, skewness)
            low, _ = invert(estimate, variance_at_zero, slope, z)
    return low, high


class Calibrated(NamedTuple):
    """What an estimate would be if the predictions of its samples were calibrated."""

    variance: float
    third_cumulant: float
    slope: float  # of the variance, by an error that is as large everywhere
    mean: np.ndarray
    labels: np.ndarray  # bins

    def noise(self, t: float) -> np.ndarray:
        """Return sums over bins of the noise of labels squared, and of it, for an error of √t."""
        p = np.minimum(np.minimum(self.mean, 1 - self.mean) + math.sqrt(t), 0.5)
        of_bins = np.bincount(self.labels, weights=p * (1 - p))
        count = np.maximum(np.bincount(self.labels), 1)
        return np.array([np.sum((of_bins / count) ** 2), of_bins.sum()])

    @property
    def largest(self) -> float:
        """The largest error that probabilities can have."""
        return float(np.mean(np.maximum(self.mean, 1 - self.mean) ** 2))


def smallest_detectable(
    parts: Sequence[Calibrated], level: float, n_independent: float = 1.0
) -> float:
    """Return the error t that a one-sided test at 1 − level finds with probability `POWER`.

    It is of the mean of ``parts``, which counts as that of ``n_independent`` of them. Without an
    error this is a χ² of its variance and third cumulant, with one it is normal of variance
    V + slope·t. Both grow with the noise of the labels, as an error of √t towards one half makes
    it: much, where positives are rare. No error is larger than probabilities allow.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    cumulants = np.mean([part[:2] for part in parts], axis=0)
    variance, third_cumulant = cumulants / n_independent ** np.array([1, 2])
    critical = chi_square_quantile(level, skewness_of(third_cumulant, variance))
    critical *= math.sqrt(variance)
    at_zero = [part.noise(0.0) for part in parts]

    def variance_at(t: float) -> float:
        grown = (
            (part.noise(t) / noise if noise[1] > 0 else np.ones(2))
            @ [part.variance, part.slope * t]
            for part, noise in zip(parts, at_zero, strict=True)
        )
        return sum(grown) / len(parts) / n_independent

    def excess(t: float) -> float:
        return t - critical - ndtri(POWER) * math.sqrt(variance_at(t))

    largest = float(np.mean([part.largest for part in parts]))
    # Where all predictions are certain nothing varies unless there is an error.
    low = max(critical, 1e-15)
    if low >= largest or excess(largest) < 0:
        return largest
    if excess(low) >= 0:
        return critical
    return float(brentq(excess, low, largest, xtol=1e-15, rtol=1e-9))


def detectable(variance_at_zero: float, slope: float, critical: float) -> float:
    """Return t = critical·sqrt(variance_at_zero) + z_power·sqrt(variance_at_zero + slope·t)."""
    from scipy.stats import norm

    critical *= math.sqrt(variance_at_zero)
    z = norm.ppf(POWER)
    middle = critical + slope * z**2 / 2
    return float(middle + math.sqrt(middle**2 - critical**2 + z**2 * variance_at_zero))


def skewness_of(third_cumulant: float, variance: float) -> float:
    return third_cumulant / variance**1.5 if variance > 0 else 0.0


def chi_square_quantile(probability: float, skewness: float) -> float:
    """Return the quantile of a χ² that has mean 0, variance 1 and this skewness."""
    # Called many times for each estimate: a distribution of scipy.stats checks much more.
    from scipy.special import gammaincinv, ndtri

    if skewness < 1e-3:
        return float(ndtri(probability))
    shape = 4 / min(skewness, math.sqrt(8)) ** 2
    return float((gammaincinv(shape, probability) - shape) / math.sqrt(shape))


def wilson_interval(
    frequency: np.ndarray | float, n: np.ndarray | float, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval of frequencies among n, which need not be whole.

    Examples
    --------
    >>> low, high = wilson_interval(0.5, 100, 0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (0.404, 0.596)
    """
    from scipy.stats import norm

    z2 = norm.ppf(0.5 + level / 2) ** 2
    centre = (frequency + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (frequency * (1 - frequency) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.minimum(centre - half, frequency), np.maximum(centre + half, frequency)
