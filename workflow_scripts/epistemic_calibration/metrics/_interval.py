"""Intervals and detection limits of estimates whose variance grows with what they estimate."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

#: Variance and third cumulant of an estimate where the error is t, spread evenly.
Cumulants = Callable[[float], tuple[float, float]]

#: Samples of which sums are made at once: more would not fit in the processor's cache.
_AT_ONCE = 1 << 14

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


def smallest_detectable(cumulants: Cumulants, level: float, *, rtol: float = 1e-9) -> float:
    """Return the error that a one-sided test at 1 − level finds with probability `POWER`.

    The estimate with mean t is taken as a χ² of the same variance and skewness. As normal it
    would be found less often than promised: where positives are rare, by a fifth.
    """
    from scipy.optimize import brentq

    def quantile(t: float, probability: float) -> float:
        variance, third = cumulants(t)
        skewness = skewness_of(third, variance)
        return t + math.sqrt(variance) * chi_square_quantile(probability, skewness)

    critical = quantile(0.0, level)

    def excess(t: float) -> float:
        return quantile(t, 1 - POWER) - critical

    # Where all predictions are certain nothing varies unless there is an error.
    low = max(critical, 1e-15)
    if excess(low) >= 0:
        return critical
    high = 2 * low
    while excess(high) < 0:
        low, high = high, 2 * high
    return float(brentq(excess, low, high, xtol=1e-15, rtol=rtol))


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


def label_variance(mean: np.ndarray, t: float) -> np.ndarray:
    """Return the variance of labels whose P(Y = 1 | Π) is off Δ by √t.

    In either direction, on average over both, if both leave probabilities; else towards one half.
    """
    largest = np.minimum(mean, 1 - mean)
    towards_half = np.clip(largest + math.sqrt(t), 0, 1)
    return np.where(
        largest < math.sqrt(t), towards_half * (1 - towards_half), mean * (1 - mean) - t
    )


def calibrated_cumulants(
    mean: np.ndarray, labels: np.ndarray, n: np.ndarray, shares: np.ndarray
) -> Cumulants:
    """Return the cumulants of Σ shares Σ_{i≠k} e_i e_k over bins, of independent labels.

    Exact at t = 0. At t > 0 the samples of a bin err in one direction (see `label_variance`).
    ``n`` and ``shares`` are 0 for bins that are not used.
    """
    # An error √t in all n samples adds 2·shares·(n − 1)·√t·Σe.
    linear = 2 * shares * np.maximum(n - 1, 0)
    # No fewer samples than there are sums.
    at_once = max(_AT_ONCE, len(n))

    def sums_of(samples: slice, t: float) -> np.ndarray:
        """Return the sums over bins of some samples, one a row."""
        size, p = math.sqrt(t), mean[samples]
        largest = np.minimum(p, 1 - p)
        noise = label_variance(p, t)
        # Third moments of e, and the same times the direction of the error.
        one_way = largest < size
        skewed = noise * (1 - 2 * np.clip(largest + size, 0, 1))
        third = np.where(
            one_way,
            np.where(p < 0.5, skewed, -skewed),
            (1 - 2 * p) * (p * (1 - p) - 3 * t),
        )
        signed = np.where(one_way, skewed, size * (1 - 6 * p * (1 - p) + 2 * t))
        squares = noise**2
        summed = (noise, squares, squares * noise, third, third**2, signed, signed * noise)
        return np.stack([np.bincount(labels[samples], weights=v, minlength=len(n)) for v in summed])

    def at(t: float) -> tuple[float, float]:
        starts = range(0, len(mean), at_once)
        blocks = (sums_of(slice(start, start + at_once), t) for start in starts)
        v, v2, v3, m, m2, s, sv = functools.reduce(np.add, blocks)
        slope = linear * math.sqrt(t)
        variance = 2 * shares**2 * (v**2 - v2) + slope**2 * v
        cumulant = (
            shares**3 * (8 * (v**3 - 3 * v * v2 + 2 * v3) + 4 * (m**2 - m2))
            + 6 * shares * slope**2 * (v**2 - v2)
            + 12 * shares**2 * slope * (s * v - sv)
            + slope**3 * s
        )
        return max(float(variance.sum()), 0.0), float(cumulant.sum())

    return at


def noise_of_bins(
    variance: Callable[[float], np.ndarray], labels: np.ndarray
) -> Callable[[float], float]:
    """Return the root of the sum of squares over bins of the variance of their labels, by t."""

    def noise(t: float) -> float:
        return float(np.linalg.norm(np.bincount(labels, weights=variance(t))))

    return noise


def grown_cumulants(
    noise: Callable[[float], float], variance: float, third_cumulant: float, slope: float
) -> Cumulants:
    """Return cumulants from those at t = 0, and what an even error adds to the variance.

    The estimate is taken as a sum of equal χ², noncentral with the error, in labels whose
    `noise_of_bins` changes with t.
    """
    tail = third_cumulant / variance if variance > 0 else 0.0
    at_zero = noise(0.0)

    def at(t: float) -> tuple[float, float]:
        growth = noise(t) / at_zero if at_zero > 0 else 1.0
        added = growth * slope * t
        return (
            growth**2 * variance + added,
            growth**3 * third_cumulant + 1.5 * growth * tail * added,
        )

    return at
