"""Means over trainings of a method that all meet the same samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epistemic_calibration.metrics._interval import POWER


class Spread(NamedTuple):
    """The variance over trainings of a method, and what it would be by noise alone.

    ``share`` of it is in the variance of the mean, and it has so many degrees of freedom.
    """

    found: float
    noise: float
    share: float
    freedom: int


def over_trainings(noise: float, spread: Sequence[Spread]) -> tuple[float, float]:
    """Return the variance of a mean over trainings, or difference of such, and its freedom.

    That of the noise, and by how much more the estimates of trainings vary. The degrees of
    freedom are Satterthwaite's for variances at their upper limits of 75 %: as found, those of
    few trainings that happen to agree would pass for known.
    """
    from scipy.stats import chi2

    variance = noise + sum(max(s.found - s.noise, 0) * s.share for s in spread)
    upper = [s.found * s.share * s.freedom / chi2.ppf(0.25, s.freedom) for s in spread]
    rest = max(noise - sum(s.noise * s.share for s in spread), 0)
    estimated = sum(u**2 / s.freedom for u, s in zip(upper, spread, strict=True))
    return variance, (rest + sum(upper)) ** 2 / estimated if estimated > 0 else np.inf


def found_with(n: np.ndarray, level: float, shared: float = 0.0, of_one: float = 2.0) -> np.ndarray:
    """Return the difference that n trainings of each of two methods show with `POWER`.

    ``shared`` is the variance that stays however many trainings there are, ``of_one`` that over
    trainings of both methods; by default differences are in standard deviations of one.
    """
    from scipy.stats import t as t_distribution

    of_one = max(of_one, np.finfo(float).tiny)
    variance = shared + of_one / n
    # Of two equal variances.
    freedom = 2 * (n - 1) * (variance / (of_one / n)) ** 2
    quantiles = t_distribution.ppf([[0.5 + level / 2], [POWER]], freedom)
    return quantiles.sum(axis=0) * np.sqrt(variance)


def trainings_needed(
    difference: float, noise: float, spread: Sequence[Spread], level: float, most: int = 100
) -> int | None:
    """Return with how many trainings of each so large a difference would be found, if any."""
    if not spread:
        return None
    n = np.arange(2, most + 1)
    of_one = 2 * float(np.mean([max(s.found, s.noise) for s in spread]))
    shared = max(noise - sum(s.noise * s.share for s in spread), 0)
    enough = abs(difference) > found_with(n, level, shared, of_one)
    return int(n[enough][0]) if enough.any() else None
