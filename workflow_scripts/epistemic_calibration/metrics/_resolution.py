"""Finer bins where the labels show that these see more.

The ladder of ever finer bins is made without labels; which rung is used depends on them, so what
is estimated is the error at a resolution that the data support.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from epistemic_calibration.metrics._bins import Bins
from epistemic_calibration.metrics._interval import chi_square_quantile, skewness_of
from epistemic_calibration.metrics._sample import Sample

#: Samples in a bin, on average, of the finest bins.
_LEAST = 8
#: Probability of leaving the first bins where finer ones see no more.
_ALPHA = 0.01


def refined(
    sample: Sample,
    coarse: np.ndarray,
    fine: np.ndarray,
    others: Sequence[tuple[np.ndarray, np.ndarray]] = (),
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return coarse and fine bins, finer ones or others, and how many were looked at.

    The number is 0 where the bins are the first ones.
    """
    finer = [*finer_bins(sample.mean, sample.variance, coarse, fine), *others]
    chosen = resolved(sample.y, sample.mean, [(coarse, fine), *finer])
    return (*finer[chosen - 1], len(finer)) if chosen else (coarse, fine, 0)


def finer_bins(
    mean: np.ndarray, variance: np.ndarray, coarse: np.ndarray, fine: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of coarse bins of Δ and of bins within them that are finer than ``fine``.

    Coarse bins are divided by Δ in 2, 4, ... parts of as many samples, and the fine bins along
    with them; or by the spread instead, relative to the largest that Δ allows; or by both.
    """
    most = len(mean) // _LEAST
    largest = np.sqrt(mean * (1 - mean))
    spread = np.sqrt(variance)
    spread = np.divide(spread, largest, out=np.zeros_like(spread), where=largest > 1e-6)
    by_mean, by_spread = _ranks(mean, coarse), _ranks(spread, coarse)
    n_coarse, n_fine = coarse.max() + 1, fine.max() + 1
    powers = 2 ** np.arange(16)
    # Bins of Δ alone, where there are too few samples to divide these by shape.
    ladder = [(p, 0 if p * n_fine <= most else 1) for p in powers[1:] if p * n_coarse <= most]
    ladder += [(1, q) for q in powers[3:] if q * n_coarse <= most]
    ladder += [(p, 8 * p) for p in powers[1:] if 8 * p**2 * n_coarse <= most]
    found = []
    for n_parts, n_shapes in ladder:
        part = _joined(coarse, np.floor(by_mean * n_parts))
        cell = _joined(part, np.floor(by_spread * n_shapes) if n_shapes else fine)
        if cell.max() + 1 > n_fine or n_shapes == 1:
            found.append((part, cell))
    return found


def _joined(labels: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Return a label for each combination."""
    for other in others:
        other = other.astype(np.intp)
        labels = np.unique(labels * (other.max() + 1) + other, return_inverse=True)[1]
    return labels


def _ranks(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the rank in (0, 1) of every value within its bin; ties share the middle one."""
    # Rounding keeps ties together that differ by the order of a sum.
    values = np.round(values, 12)
    order = np.lexsort((values, labels))
    tied = np.append(False, (np.diff(values[order]) == 0) & (np.diff(labels[order]) == 0))
    run = np.cumsum(~tied) - 1
    size = np.bincount(run)
    first = np.cumsum(size) - size
    count = np.bincount(labels)
    start = (np.cumsum(count) - count)[labels[order]]
    ranks = np.empty(len(values))
    ranks[order] = ((first + size / 2)[run] - start) / count[labels[order]]
    return ranks


def resolved(
    y: np.ndarray, mean: np.ndarray, partitions: Sequence[tuple[np.ndarray, np.ndarray]]
) -> int:
    """Return which coarse and fine bins to use: the first, unless others see significantly more.

    The difference of two estimates is a quadratic form in the noise of the
    labels, whose law is taken as a χ² of the same variance and skewness; all of them are looked at
    (Bonferroni). Of those that see more, the one of largest estimate less its standard error is
    used (Laurent and Massart, 2000).
    """
    first = Bins(y, mean, partitions[0][1])
    noise = mean * (1 - mean)
    # What labels of a bin vary by, where it is more than they should.
    noise = np.maximum(noise, _of_bins(first.s2, first)[partitions[0][1]])
    bases = [_Form(y, mean, labels, noise) for labels in partitions[0]]
    level = 1 - _ALPHA / max(1, 2 * (len(partitions) - 1))
    best, chosen = -math.inf, 0
    for k, pair in enumerate(partitions[1:], 1):
        forms = [_Form(y, mean, labels, noise) for labels in pair]
        scores = [form.excess(base, level) for form, base in zip(forms, bases, strict=True)]
        score = scores[1][1]
        if any(significant for significant, _ in scores) and score > best:
            best, chosen = score, k
    return chosen


def _of_bins(values: np.ndarray, b: Bins) -> np.ndarray:
    """Return values of the used bins for all bins, 0 for the others."""
    result = np.zeros(len(b.used))
    result[b.used] = values
    return result


class _Form:
    """A corrected error as a quadratic form of independent labels with some variances."""

    def __init__(
        self, y: np.ndarray, mean: np.ndarray, labels: np.ndarray, noise: np.ndarray
    ) -> None:
        b = Bins(y, mean, labels)
        self.labels, self.noise = labels, noise
        self.estimate = float(b.w @ b.squared_error)
        self.share = _of_bins(b.w / b.pairs, b)
        self.variance = self._pairs(labels, self.share**2)
        third = noise * (1 - 2 * mean)
        cubes, squares = (np.bincount(labels, weights=v) for v in (third, third**2))
        self.third_cumulant = 8 * self.share**3 @ np.bincount(labels, weights=noise) ** 3
        self.third_cumulant += 4 * self.share**3 @ (cubes**2 - squares)

    def _pairs(self, labels: np.ndarray, weights: np.ndarray) -> float:
        sums, squares = (np.bincount(labels, weights=v) for v in (self.noise, self.noise**2))
        return float(2 * weights @ (sums**2 - squares))

    def excess(self, other: _Form, level: float) -> tuple[bool, float]:
        """Return whether it sees significantly more, and how much more at least."""
        variance = self.variance + other.variance - 2 * self._covariance(other)
        deviation = math.sqrt(max(variance, 0.0))
        more = self.estimate - other.estimate
        z = chi_square_quantile(level, skewness_of(float(self.third_cumulant), variance))
        return more > z * deviation > 0, more - deviation

    def _covariance(self, other: _Form) -> float:
        _, first, both = np.unique(
            self.labels * len(other.share) + other.labels, return_index=True, return_inverse=True
        )
        weights = self.share[self.labels[first]] * other.share[other.labels[first]]
        return self._pairs(both, weights)
