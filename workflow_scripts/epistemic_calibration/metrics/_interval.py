"""Intervals and detection limits of estimates whose variance grows with what they estimate."""

from __future__ import annotations

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


def detectable(variance_at_zero: float, slope: float, level: float) -> float:
    """Return t = z_level·sqrt(variance_at_zero) + z_power·sqrt(variance_at_zero + slope·t)."""
    from scipy.stats import norm

    critical = norm.ppf(level) * np.sqrt(variance_at_zero)
    z = norm.ppf(POWER)
    middle = critical + slope * z**2 / 2
    return float(middle + np.sqrt(middle**2 - critical**2 + z**2 * variance_at_zero))
