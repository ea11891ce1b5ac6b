"""Intervals and detection limits of estimates whose variance grows with what they estimate."""

from __future__ import annotations

import math

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


def smallest_detectable(
    variance: float,
    third_cumulant: float,
    slope: float,
    mean: np.ndarray,
    labels: np.ndarray,
    level: float,
) -> float:
    """Return the error t that a one-sided test at 1 − level finds with probability `POWER`.

    Without an error the estimate is a χ² of this variance and third cumulant, with one it is
    normal of variance V + slope·t. Both grow with the noise of the labels, as an error of √t
    towards one half makes it: much, where positives are rare.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    critical = chi_square_quantile(level, skewness_of(third_cumulant, variance))
    critical *= math.sqrt(variance)
    rarer, count = np.minimum(mean, 1 - mean), np.maximum(np.bincount(labels), 1)

    def noise(t: float) -> np.ndarray:
        p = np.minimum(rarer + math.sqrt(t), 0.5)
        of_bins = np.bincount(labels, weights=p * (1 - p))
        return np.array([np.sum((of_bins / count) ** 2), of_bins.sum()])

    at_zero = noise(0.0)

    def excess(t: float) -> float:
        growth = noise(t) / at_zero if at_zero[1] > 0 else np.ones(2)
        return t - critical - ndtri(POWER) * math.sqrt(growth @ [variance, slope * t])

    # Where all predictions are certain nothing varies unless there is an error.
    low = max(critical, 1e-15)
    if excess(low) >= 0:
        return critical
    high = 2 * low
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, low, high, xtol=1e-15, rtol=1e-9))


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
