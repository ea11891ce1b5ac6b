"""Means over samples that come in groups, their ratios and squares, with intervals.

A group is what is independent of the others: one sample, copies of an image, or inputs that
the same people labelled. Whatever is estimated, the contributions of samples are summed over
groups before a variance is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._groups import form_of_pairs, group_sums
from epistemic_calibration.metrics._interval import (
    chi_square_quantile,
    detectable,
    skewness_of,
)
from epistemic_calibration.metrics.corrected import CorrectedError, result_of_form

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Standardised skewness of a mean above which intervals are not widened further.
_MAX_SKEWNESS = 0.5


@dataclass(frozen=True, repr=False)
class Estimate:
    """An estimate with its uncertainty.

    Attributes
    ----------
    estimate : float
    standard_error : float
    ci_low, ci_high : float
        Two-sided confidence interval.
    confidence_level : float
    """

    estimate: float
    standard_error: float
    ci_low: float
    ci_high: float
    confidence_level: float

    def __repr__(self) -> str:
        return f"Estimate({summary_line(self)})"


def summary_line(value: Estimate | CorrectedError) -> str:
    """Return estimate, standard error and interval in a few digits."""
    interval = f"[{value.ci_low:.4g}, {value.ci_high:.4g}]"
    return f"{value.estimate:.3g} ± {value.standard_error:.3g} {interval}"


def t_quantile(level: float, n_groups: ArrayLike) -> np.ndarray:
    """Return how many standard errors a two-sided interval reaches to each side."""
    from scipy.stats import t

    return t.ppf(0.5 + level / 2, np.asarray(n_groups) - 1)


class Sums:
    """Sums over groups of what inputs deviate from a mean, each row of ``values`` for itself."""

    def __init__(
        self, values: np.ndarray, groups: np.ndarray, leverage: np.ndarray | None = None
    ) -> None:
        n_groups = int(groups.max()) + 1
        centred = values - values.mean(axis=1, keepdims=True)
        sums = np.stack([np.bincount(groups, weights=row) for row in centred])
        if leverage is not None:
            # As the jackknife has it: a group pulls the ratio towards its own.
            share = np.bincount(groups, weights=leverage) / leverage.sum()
            sums /= 1 - np.clip(share, 0, 0.5)
        self.sums = sums * (math.sqrt(n_groups / (n_groups - 1)) / values.shape[1])
        # Of the means: robust to dependence within groups, the usual one of single inputs.
        self.covariance = self.sums @ self.sums.T
        self.n_groups = n_groups

    def critical(self, contrast: ArrayLike, level: float) -> tuple[float, float]:
        """Return how many standard errors a mean may lie below and above its estimate.

        Errors of rare positives are so skewed that ± 1.96 of them would miss the truth on one
        side only: Hall's transformation of the t statistic allows for that.
        """
        z = float(t_quantile(level, self.n_groups))
        values = np.asarray(contrast) @ self.sums
        scale = float(values @ values)
        if scale <= 0:
            return z, z
        skewness = float(np.clip(np.sum(values**3) / scale**1.5, -_MAX_SKEWNESS, _MAX_SKEWNESS))
        if abs(skewness) < 1e-6:
            return z, z
        low, high = (
            3 / skewness * (float(np.cbrt(1 + skewness * (x - skewness / 6))) - 1) for x in (z, -z)
        )
        return low, -high


def mean_of_groups(
    values: np.ndarray, groups: np.ndarray, level: float, *, least: float = -math.inf
) -> Estimate:
    """Return the mean of ``values``, whose interval is cut at ``least``."""
    sums = Sums(values[None], groups)
    estimate = float(values.mean())
    standard_error = math.sqrt(sums.covariance[0, 0])
    below, above = sums.critical([1.0], level)
    # An estimate below what is possible must not pass for more certain than one at the edge.
    high = max(estimate, least) + above * standard_error
    low = max(estimate - below * standard_error, least)
    return Estimate(estimate, standard_error, low, high, level)


def shifted(estimate: Estimate, shift: float) -> Estimate:
    """Return an estimate of at least 0 and its interval moved by what has no noise of its own."""
    value = estimate.estimate + shift
    below = estimate.estimate - estimate.ci_low
    above = estimate.ci_high - max(estimate.estimate, 0)
    return Estimate(
        estimate=value,
        standard_error=estimate.standard_error,
        ci_low=max(value - below, 0.0),
        ci_high=max(value, 0.0) + above,
        confidence_level=estimate.confidence_level,
    )


def ratio_of_means(
    numerator: np.ndarray,
    denominator: np.ndarray,
    groups: np.ndarray,
    level: float,
    *,
    least: float = -math.inf,
) -> Estimate:
    """Return the ratio of two means with Fieller's interval; the denominator is not below 0.

    These are the ratios r at which the mean of numerator − r·denominator is not significantly
    unlike 0. There are arbitrarily large ones where the denominator may be 0. With
    ``least`` = 0 the numerator cannot be below 0 either.
    """
    n, d = float(numerator.mean()), float(denominator.mean())
    sums = Sums(np.stack([numerator, denominator]), groups, denominator if d > 0 else None)
    covariance = sums.covariance
    ratio = standard_error = math.nan
    if d > 0:
        ratio = n / d
        contrast = np.array([1.0, -ratio])
        standard_error = math.sqrt(max(contrast @ covariance @ contrast, 0.0)) / d
    n, d = max(n, least), max(d, 0.0)

    def end(side: int, z: float) -> float:
        # a·r² − 2b·r + c = 0
        a = d**2 - z**2 * covariance[1, 1]
        b = n * d - z**2 * covariance[0, 1]
        c = n**2 - z**2 * covariance[0, 0]
        root = math.sqrt(max(b**2 - a * c, 0.0))
        if least == 0 and side == 0:
            if c <= 0:
                return 0.0
            # A denominator of exactly 0 leaves no finite ratio.
            return c / (b + root) if b + root > 0 else math.inf
        if a <= 0:
            return math.inf if side else -math.inf
        return (b + root) / a if side else (b - root) / a

    ends = []
    for side in (0, 1):
        z = float(t_quantile(level, sums.n_groups))
        # The skewness is that of the contrast at the end itself.
        for _ in range(5):
            r = end(side, z)
            z = sums.critical([1.0, -r] if math.isfinite(r) else [0.0, -np.sign(r)], level)[side]
        ends.append(end(side, z))
    return Estimate(ratio, standard_error, float(ends[0]), float(ends[1]), level)


def _columns(matrix: csr_array) -> np.ndarray:
    return np.asarray(matrix.sum(axis=0)).ravel()


def squares_of_means(
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], level: float
) -> CorrectedError:
    """Return the mean over parts of Σ w (E[v | bin])², from pairs of different groups.

    A part has values v, their bins and their groups; bins of all parts are the columns of one
    matrix of sums S_gu, g a group and u a bin. With n_u values in a bin, the estimate is
    Σ_u a_u Σ_{g≠h} S_gu S_hu, a_u = w_u/(n_u² − Σ_g n_gu²). Where all means are 0, its variance is
    2 Σ_{uv} a_u a_v Σ_{g≠h} (S_gu S_gv)(S_hu S_hv); where they are μ, that of 2 Σ_g Σ_u a_u μ_u
    (n_u − n_gu) S_gu is added.
    """
    offsets = np.cumsum([0] + [labels.max() + 1 for _, labels, _ in parts])
    values, labels, groups = map(np.concatenate, zip(*parts, strict=True))
    labels = labels + np.repeat(offsets[:-1], [len(of_bin) for _, of_bin, _ in parts])
    n_groups, n_bins = int(groups.max()) + 1, int(offsets[-1])
    part = np.searchsorted(offsets, np.arange(n_bins), side="right") - 1
    counts = group_sums(1.0, labels, groups, n_groups, n_bins)
    n, n_inside = _columns(counts), _columns(counts > 0)
    pairs = np.where(n_inside > 1, n**2 - _columns(counts.power(2)), 0)
    used = pairs > 0
    n_used = np.bincount(part, weights=n * used)
    if (n_used == 0).any():
        raise ValueError("every sample is alone in its bin: use fewer bins")
    weights = np.where(used, n / n_used[part], 0) / len(parts)
    shares = np.divide(weights, pairs, out=np.zeros_like(weights), where=used)

    sums = group_sums(values, labels, groups, n_groups, n_bins)
    means = _columns(sums) / n
    squares = np.divide(
        _columns(sums) ** 2 - _columns(sums.power(2)), pairs, out=np.zeros_like(means), where=used
    )
    estimate, plug_in = float(weights @ squares), float(weights @ means**2)

    # Residuals around an estimated mean are too small by this factor.
    factor = np.sqrt(n_inside / np.maximum(n_inside - 1, 1)) * used
    residual = (values - means[labels]) * factor[labels]
    residuals = group_sums(residual, labels, groups, n_groups, n_bins)
    _, variance_at_zero, third_cumulant = form_of_pairs(residuals, shares)

    def linear_variance(means: np.ndarray) -> float:
        influence = residuals @ (2 * shares * n * means)
        influence -= (residuals * counts) @ (2 * shares * means)
        # Other inputs would lie in other bins.
        of_part = np.bincount(part, weights=weights * means**2) * len(parts)
        influence += counts @ ((means**2 - of_part[part]) * weights / n)
        return float(influence @ influence)

    slope = even = linear_variance(np.ones(n_bins))
    error = float(weights @ np.maximum(squares, 0))
    if error > 0:
        slope = linear_variance(np.sign(means) * np.sqrt(np.maximum(squares, 0))) / error
    # Of bins that are few, or unequal, the estimate is skewed where there is no error.
    critical = chi_square_quantile(level, skewness_of(third_cumulant, variance_at_zero))
    return result_of_form(
        estimate=estimate,
        plug_in=plug_in,
        noise_floor=plug_in - estimate,
        variance_at_zero=variance_at_zero,
        minimum_detectable=detectable(variance_at_zero, even, critical),
        slope=slope,
        third_cumulant=third_cumulant,
        dropped_mass=float(np.mean(1 - n_used / np.bincount(part, weights=n))),
        n_bins=int(np.count_nonzero(used)),
        level=level,
    )
